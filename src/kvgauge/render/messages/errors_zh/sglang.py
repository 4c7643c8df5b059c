"""What SGLang can't hold, and its flags."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    # versions
    "{0} is not a version of sglang": "{0} 不是 sglang 的版本",
    "for example sglang@{0}": "例如 sglang@{0}",
    "--engine sglang@{0} or a later version": "请用 --engine sglang@{0} 或更新的版本",
    "how sglang {0} keeps compressed caches is not known, only from {1} on": (
        "sglang {0} 如何保存压缩缓存未知，仅知 {1} 起的规则"
    ),
    # dtypes
    "--kv-cache-dtype {0} is not known to sglang": "sglang 不认识 --kv-cache-dtype {0}",
    "sglang keeps {what} in bf16 or fp8_e4m3, not in {0}": "sglang 用 bf16 或 fp8_e4m3 保存{what}，不用 {0}",
    "a compressed cache": "压缩缓存",
    "a sparse latent cache": "稀疏潜向量缓存",
    "--kv-cache-dtype auto picks one of them": "--kv-cache-dtype auto 会从中选择",
    # designs
    "how sglang keeps {kind?} layers is not known": "sglang 如何保存{kind?}层未知",
    "how sglang keeps records of {0} tokens is not known": "sglang 如何保存 {0} 个 token 的记录未知",
    "how sglang keeps encoder-decoder models is not known": "sglang 如何保存编码器-解码器模型的缓存未知",
    "sglang keeps one number of KV heads for all layers, this model has {0}": (
        "sglang 的各层使用同一 KV 头数，而该模型有 {0} 种"
    ),
    "--engine vllm keeps layers of several shapes": "--engine vllm 可保存多种形状的层",
    "sglang {0} runs no recurrent layers of {model?}": "sglang {0} 不能运行 {model?} 的循环层",
    "this model": "该模型",
    "sglang keeps no state of the kind {0}": "sglang 不保存 {0} 类型的状态",
    "this model keeps no cache, and sglang sets none aside": "该模型没有缓存，sglang 也不为它预留",
    "sglang keeps K and V in one dtype": "sglang 的 K 与 V 用同一 dtype",
    "sglang shares no prefix here: its radix cache is off": "sglang 此处不共享前缀：radix 缓存已关闭",
    "leave out --shared-prefix or --disable-radix-cache": (
        "请去掉 --shared-prefix，或去掉 --disable-radix-cache"
    ),
    "what sglang keeps under decode context parallelism is not known": (
        "sglang 在解码上下文并行下保存什么未知"
    ),
    "leave --dcp out": "请去掉 --dcp",
    "attention groups need their ranks beside them among the engine's flags": (
        "注意力分组需要在引擎参数中一并给出其 rank 数"
    ),
    "--engine-args '--tp-size 8 --dp-size 8 --enable-dp-attention', and no --tp or --dp": (
        "写作 --engine-args '--tp-size 8 --dp-size 8 --enable-dp-attention'，不另给 --tp 或 --dp"
    ),
    "the config does not say how long a sequence may be, which sglang bounds requests by": (
        "config 没有给出序列的最大长度，而 sglang 据此限制请求数"
    ),
    "--context-length says it": "可用 --context-length 给出",
    "--dp-size {0} does not divide --tp-size {1}": "--dp-size {0} 不能整除 --tp-size {1}",
    "attention groups lie inside the tensor-parallel ranks": "注意力分组位于张量并行的 rank 之内",
    # flags
    "sglang reads 32768, 32k as 32,000 and 32Ki as 32,768": (
        "sglang 接受 32768；32k 表示 32,000，32Ki 表示 32,768"
    ),
    "{0} {1} is not a ratio": "{0} {1} 不是比例",
    "write it like 0.8": "写法如 0.8",
    "--speculative-algorithm {0} is not known to sglang": "sglang 不认识 --speculative-algorithm {0}",
    "leave it out: every rank then holds whole contexts": "请去掉它：每个 rank 便保存完整的上下文",
    "leave it out: pools of fixed sizes are then used": "请去掉它：便使用大小固定的池",
    "leave it out: the whole cache then lies on the card": "请去掉它：整个缓存便都在显卡上",
}
