"""What ``plan`` refuses."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    "--{0} changes nothing without {1}": "没有 {1} 时 --{0} 不起作用",
    "--emit has nothing to start without the weights": "没有权重，--emit 没有可启动的内容",
    "give {0} too, or leave it out": "请同时给出 {0}，或去掉它",
    "--gpu names {0} devices": "--gpu 给出了 {0} 种设备",
    "--gpu names {0} with two numbers": "--gpu 对 {0} 给出了两个数量",
    "name each kind once": "每种设备只写一次",
    "'kvgauge gpus' lists what is known": "'kvgauge gpus' 列出已知设备",
    "1 to {0}, joined by commas": "1 至 {0} 种，用逗号连接",
    "--top must be a whole number from 1 to {0}": "--top 必须是 1 至 {0} 的整数",
    "--context is the sum of --prompt-tokens and --output-tokens; it can't be given beside them": (
        "--context 是 --prompt-tokens 与 --output-tokens 之和，不能与它们同时给出"
    ),
    "give the context, or its two parts": "请给出上下文，或它的两部分",
    'for example {"H100": 2.5, "RTX 4090": {"usd_per_hour": 0.4, "date": "2026-11", "source": "my cloud"}}': (
        '例如 {"H100": 2.5, "RTX 4090": {"usd_per_hour": 0.4, "date": "2026-11", "source": "my cloud"}}'
    ),
    "price of {0} is to be {1?}": "{0} 的价格应为{1?}",
    "a number, or an object with usd_per_hour or usd, date and source": (
        "一个数字，或含 usd_per_hour 或 usd、date、source 的对象"
    ),
    "a number of US dollars": "美元数",
    "a number of US dollars above 0": "大于 0 的美元数",
    "{0} has more than {1} rows": "{0} 多于 {1} 行",
}
