"""Simplified Chinese of what llama.cpp's answers say of places and allocations."""

from __future__ import annotations

from collections.abc import Mapping

NOTES: Mapping[str, str] = {
    "llamacpp_cells_shared": "{sequences} 条序列共用 {cells} 个单元：合计不能超过这么多 token",
}

MESSAGES: Mapping[str, str] = {
    "engine.llama.cpp": "llama.cpp，按 llama-server 的启动方式：各设备与主机上的每个子缓存、状态与缓冲区",
    "placed_label": "{place}",
    "placed_host": "主机内存",
    "placed_part": "{name} {size}",
    "placed_range": "{name} {size}（{low} 至 {high}）",
    "placed_join": "，",
    "placed_sum": "{size}：{parts}",
}
