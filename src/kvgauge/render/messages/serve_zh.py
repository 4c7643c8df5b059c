"""Chinese texts of ``serve``."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    "serve_at": "kvgauge 页面地址：{url}（按 Ctrl-C 结束）",
    "serve_open": "警告：能访问本机的人都可以提问，并可查询本机 hub 令牌能看到的任何模型；"
    "不加 --host 时页面只供本机使用",
    "error.forbidden": "拒绝：",
    "error.not_found": "找不到：",
    "error.method_not_allowed": "方法不对：",
    "error.timeout": "超时：",
    "error.too_large": "过大：",
    "error.unsupported_media_type": "类型不对：",
    "error.busy": "繁忙：",
    "help.verb.serve": "网页与 JSON API；除非用 --host 开放，否则只供本机使用。",
    "help.section.serve": "服务器",
    "help.option.host": "监听地址：默认 127.0.0.1；0.0.0.0 会向网络开放。",
    "help.option.port": "端口：默认 8642；0 表示任取一个空闲端口。",
}
