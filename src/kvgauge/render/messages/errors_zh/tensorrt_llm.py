"""What TensorRT-LLM can't hold, and its flags."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    # versions and dtypes
    "{0} is not a version of tensorrt-llm": "{0} 不是 tensorrt-llm 的版本",
    "for example tensorrt-llm@{0}": "例如 tensorrt-llm@{0}",
    "kv_cache_dtype {0} is not known to tensorrt-llm": "tensorrt-llm 不认识 kv_cache_dtype {0}",
    # designs
    "how tensorrt-llm keeps {kind?} layers is not known": "tensorrt-llm 如何保存{kind?}层未知",
    "tensorrt-llm keeps K and V in one dtype": "tensorrt-llm 的 K 与 V 用同一 dtype",
    "tensorrt-llm shares no prefix here: its blocks are not reused": (
        "tensorrt-llm 此处不共享前缀：块复用已关闭"
    ),
    "leave --shared-prefix out, or enable_block_reuse=false": (
        "请去掉 --shared-prefix，或去掉 enable_block_reuse=false"
    ),
    "what tensorrt-llm keeps under decode context parallelism is not known": (
        "tensorrt-llm 在解码上下文并行下保存什么未知"
    ),
    "--engine-args '--tp_size 8 --enable_attention_dp', and no --tp or --dp": (
        "写作 --engine-args '--tp_size 8 --enable_attention_dp'，不另给 --tp 或 --dp"
    ),
    "replicas of tensorrt-llm share experts only where attention has one rank in each": (
        "tensorrt-llm 的副本只有在各自的注意力只占一个 rank 时才共享专家"
    ),
    "--tp 1 with --ep as large as --dp, or an --ep that divides --tp": (
        "用 --tp 1 且 --ep 等于 --dp，或让 --ep 整除 --tp"
    ),
    "tensorrt-llm keeps no state of the kind {0}": "tensorrt-llm 不保存 {0} 类型的状态",
    "this model keeps no cache, and tensorrt-llm sets none aside": (
        "该模型没有缓存，tensorrt-llm 也不为它预留"
    ),
    "the config does not say how long a sequence may be, which tensorrt-llm bounds blocks by": (
        "config 没有给出序列的最大长度，而 tensorrt-llm 据此限制块数"
    ),
    "--max_seq_len says it": "可用 --max_seq_len 给出",
    # flags
    "tokens_per_block {0} is not a power of two": "tokens_per_block {0} 不是 2 的幂",
    "32 and 64 are usual": "常用 32 和 64",
    "max_attention_window lists more than {0} layers": "max_attention_window 列出了超过 {0} 层",
    "{0} {1} is not a share of the free memory": "{0} {1} 不是空闲显存的比例",
    "{0} {1} is neither true nor false": "{0} {1} 既不是 true 也不是 false",
    "{0} is not a list of token counts": "{0} 不是 token 数的列表",
    "write it like [512, 32768]": "写法如 [512, 32768]",
    "write its kv_cache_config fields out, as kv_cache_config.tokens_per_block=32": (
        "请把其中的 kv_cache_config 字段逐一写出，如 kv_cache_config.tokens_per_block=32"
    ),
}
