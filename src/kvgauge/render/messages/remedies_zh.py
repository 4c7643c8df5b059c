"""Simplified Chinese of what would make a load fit."""

from __future__ import annotations

from collections.abc import Mapping

_WHAT = {
    "reserve_less": "{what} 只预留负载所需",
    "raise_limit": "{what} 允许这样的负载",
    "lower_max_num_seqs": "{what} 可让引擎启动",
    "larger_share": "{what} 让引擎多用每张 GPU 的显存",
    "fewer_batched_tokens": "{what}（预填充变慢）",
    "kv_dtype_fp8": "{what}",
    "kv_dtype_q8_0": "{what}",
    "kv_dtype_q4_0": "{what}（略有损失）",
    "eager": "{what}（解码变慢）",
    "no_prefix_caching": "{what}（重复的提示需重新计算）",
    "shorter_context": "上下文不超过 {what} 个 token",
    "fewer_sequences": "至多 {what} 条序列",
    "published_quantisation": "{what}（已发布的量化版本）",
    "own_quantisation": "{what}（需自行量化）",
    "more_ranks": "{what}，用 {count} 张 GPU",
    "another_card": "{what}",
    "experts_on_host": "{what} 把专家放在主机内存（较慢）",
    "cache_on_host": "{what} 把缓存放在主机内存（较慢）",
    "layers_on_host": "{what} 把其余各层放在主机内存（较慢）",
    "weights_on_host": "{what} 每一步都从主机读权重（慢得多）",
    "together": "合用：{what}",
}
_ENDS = {
    "fits": "：放得下，余 {slack}",
    "tight": "：勉强放得下，通常余 {slack}",
    "short": "：差 {lack}，原来差 {before}",
}

NOTES: Mapping[str, str] = {
    f"{code}_{end}": what + text for code, what in _WHAT.items() for end, text in _ENDS.items()
}
