"""What vLLM can't hold, and its flags."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    # versions
    "{0} is not a version of vllm": "{0} 不是 vllm 的版本",
    "for example vllm@{0}": "例如 vllm@{0}",
    "--engine vllm@{0} or a later version": "请用 --engine vllm@{0} 或更新的版本",
    "how vllm {0} groups the caches of this model is not known, only from {1} on": (
        "vllm {0} 如何对该模型的缓存分组未知，仅知 {1} 起的规则"
    ),
    "how vllm {0} keeps latents is not known, only from {1} on": (
        "vllm {0} 如何保存潜向量未知，仅知 {1} 起的规则"
    ),
    # dtypes and backends
    "--kv-cache-dtype {0} is not known to vllm": "vllm 不认识 --kv-cache-dtype {0}",
    "vllm keeps no latent in {0}": "vllm 不用 {0} 保存潜向量",
    "fp8, auto or nvfp4_ds_mla can hold one": "可用 fp8、auto 或 nvfp4_ds_mla",
    "{0} packs latents, of which this model has none": "{0} 用于打包潜向量，而该模型没有潜向量",
    "fp8 or nvfp4 suit it": "可用 fp8 或 nvfp4",
    "vllm has no attention backend that keeps a {0} cache of this model on {card?}": (
        "vllm 没有能在 {card?} 上以 {0} 保存该模型缓存的注意力后端"
    ),
    "--kv-cache-dtype bfloat16 runs on every card": "--kv-cache-dtype bfloat16 在任何显卡上都能运行",
    "vllm has no backend for sparse latent attention on {card?}": (
        "vllm 在 {card?} 上没有稀疏潜向量注意力的后端"
    ),
    "{name?} (compute capability {0})": "{name?}（计算能力 {0}）",
    "this card": "该显卡",
    "Hopper and Blackwell cards run it": "Hopper 与 Blackwell 显卡可以运行",
    "no attention backend of vllm takes blocks of {0} tokens for this model": (
        "vllm 没有注意力后端能让该模型使用 {0} token 的块"
    ),
    "--block-size takes multiples of {0}": "--block-size 须为 {0} 的倍数",
    "how vllm brings pages of {0} and {1} bytes to one size is not known": (
        "vllm 如何把 {0} 与 {1} 字节的页统一为一种大小未知"
    ),
    "another --block-size or --kv-cache-dtype may be": "可试试别的 --block-size 或 --kv-cache-dtype",
    # designs
    "vllm keeps no state of the kind {0}": "vllm 不保存 {0} 类型的状态",
    "how vllm keeps {kind?} layers is not known": "vllm 如何保存{kind?}层未知",
    "how vllm keeps records of {0} tokens is not known": "vllm 如何保存 {0} 个 token 的记录未知",
    "vllm does not spread {kind?} layers over decode-context ranks": (
        "vllm 不把{kind?}层分布到解码上下文的 rank 上"
    ),
    "leave --decode-context-parallel-size out": "请去掉 --decode-context-parallel-size",
    "--engine theory says what must be kept": "--engine theory 给出必须保留的量",
    "this model keeps no cache, and vllm sets none aside": "该模型没有缓存，vllm 也不为它预留",
    "it is an encoder; --engine theory says the same": "它是编码器；--engine theory 的结果相同",
    "the config does not say how long a sequence may be, which vllm reserves for": (
        "config 没有给出序列的最大长度，而 vllm 按它预留"
    ),
    "--max-model-len says it": "可用 --max-model-len 给出",
    # flags
    "{0} {1} is not a whole number": "{0} {1} 不是整数",
    "vllm reads 32768, 32k as 32,000 and 32K as 32,768": (
        "vllm 接受 32768；32k 表示 32,000，32K 表示 32,768"
    ),
    "{0} {1} is not a mode": "{0} {1} 不是可用的模式",
    "{0} {1} is not a share of the card": "{0} {1} 不是显存的比例",
    "write it like 0.9": "写法如 0.9",
    "{0} needs a value": "{0} 需要一个值",
    "--engine-args contradicts itself: {0} is given with two values": "--engine-args 自相矛盾：{0} 有两个值",
    "give it once": "请只给一次",
    "what {0} changes in the cache is not known": "{0} 对缓存的影响未知",
    "give the fields with --override": "请用 --override 给出这些字段",
    "leave it out: every layer is then in one dtype": "请去掉它：各层便用同一 dtype",
    "write its flags out": "请把其中的参数逐一写出",
    "{0} is not a JSON object": "{0} 不是 JSON 对象",
    """for example '{"method": "mtp", "num_speculative_tokens": 1}'""": (
        """例如 '{"method": "mtp", "num_speculative_tokens": 1}'"""
    ),
    "--speculative-config does not say num_speculative_tokens": (
        "--speculative-config 没有给出 num_speculative_tokens"
    ),
    "every method but mtp needs it": "除 mtp 外的方法都需要它",
}
