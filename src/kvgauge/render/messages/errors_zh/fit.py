"""What ``fit`` refuses, and the phrases in its suggestions."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    "{0} is no server that plan could lay out over GPUs": "{0} 不是 plan 能铺到 GPU 上的服务引擎",
    "--engine vllm, sglang, tensorrt-llm or llama.cpp is one": (
        "--engine vllm、sglang、tensorrt-llm、llama.cpp 是"
    ),
    "{0} does not run on {1}": "{0} 不能在 {1} 上运行",
    "of the engines known here, these do: {0}": "已知的引擎中可以的有：{0}",
    "earlier versions of {0} do, and of the engines known here these: {1}": (
        "{0} 的早期版本可以；已知的引擎中可以的有：{1}"
    ),
    "no engine known here does; 'kvgauge plan' says how many hold the weights": (
        "已知的引擎都不能；'kvgauge plan' 给出放下权重要多少个"
    ),
    "fit needs a device, or the bytes of its pool": "fit 需要一个设备，或缓存池的字节数",
    "--gpu H100 or --memory 80GiB names a device; --kv-memory 40GiB gives the pool on each GPU": (
        "--gpu H100 或 --memory 80GiB 指定设备；--kv-memory 40GiB 给出每张 GPU 的缓存池"
    ),
    "what a card leaves for the cache is not known without the weights": "没有权重就不知道显卡还剩多少",
    "--kv-memory 40GiB gives the pool on each GPU instead": "可用 --kv-memory 40GiB 给出每卡缓存池",
    "--reserve {0} leaves the engine nothing of the GPU": "--reserve {0} 没有给引擎留下显存",
    "reserve less, or take a larger GPU": "请少留一些，或换更大的 GPU",
    "{0} has {1} devices, and none is named": "{0} 有 {1} 种设备，而没有指定哪一种",
    "--gpu names one: {0}": "用 --gpu 指定一种：{0}",
    "--gpu says {0} GPUs and --memory {1}": "--gpu 为 {0} 张 GPU，而 --memory 为 {1} 张",
    "give the count once": "数量只需给出一次",
    "utilization {0} is no share of a card": "utilization {0} 不是显存比例",
    "{0} has no pool of cache that a load could fit in": "{0} 没有可容纳负载的缓存池",
    "--engine vllm has one; 'kvgauge engines' lists the engines": (
        "--engine vllm 有；'kvgauge engines' 列出各引擎"
    ),
    "there can't be {0} GPUs": "GPU 数量不能是 {0}",
    "give 1 or more": "请给出 1 或更多",
    "--tp, --pp and --dp make {0} ranks, and there are {1} GPUs": (
        "--tp、--pp、--dp 共 {0} 个 rank，而 GPU 只有 {1} 张"
    ),
    "the ranks that are given can't be laid on the GPUs: they make {0}, and there are up to {1}": (
        "给定的 rank 无法放到这些 GPU 上：共 {0} 个，而 GPU 至多 {1} 张"
    ),
    "leave some of --tp, --pp, --dp, --ep and --dcp out, or give other GPUs": (
        "请去掉 --tp、--pp、--dp、--ep、--dcp 中的一些，或给出别的 GPU"
    ),
    "give {0} GPUs, or fewer ranks": "请给出 {0} 张 GPU，或减少 rank",
    "vllm keeps K and V in one dtype": "vllm 的 K 与 V 用同一 dtype",
    "vllm shares no prefix here: prefix caching is off": "vllm 此处不共享前缀：前缀缓存已关闭",
    "leave --shared-prefix out, or turn it on with --enable-prefix-caching": (
        "请去掉 --shared-prefix，或用 --enable-prefix-caching 打开"
    ),
    "--{0} max: the config states no limit": "--{0} max：配置没有写上限",
    "{0} {1} is not a number of GiB": "{0} {1} 不是以 GiB 计的数",
    "write it like 4 or 1.5": "写作 4 或 1.5 这样",
    "{0} {1} has no {2}": "{0} {1} 没有 {2}",
    "{0} and later have it": "{0} 及以后的版本有",
    "{0} {1} runs {2} weights from compute capability {3} on; {card?} has {4}": (
        "{0} {1} 从计算能力 {3} 起才能运行 {2} 权重；{card?} 为 {4}"
    ),
    "the card": "该显卡",
    "sglang keeps no nvfp4 cache on {card?}: it asks for compute capability 10 or 12": (
        "sglang 在 {card?} 上不保存 nvfp4 缓存：它要求计算能力 10 或 12"
    ),
    "--engine-args '--kv-cache-dtype fp4_mx_block16' keeps 4 bits there too": (
        "--engine-args '--kv-cache-dtype fp4_mx_block16' 在其上同样保存 4 位"
    ),
    "{0} and later run them there": "{0} 及以后的版本可以",
    "other weights, or another card": "请换权重，或换显卡",
    "{0} {1} does not load {2}": "{0} {1} 不能加载 {2}",
    "{0} to {1} have it": "{0} 至 {1} 有",
    "{0} says it there": "那里用 {0}",
    "it takes: {0}": "可用：{0}",
    "{0} of {1} {2} takes no {3}": "{1} {2} 的 {0} 不接受 {3}",
    "what vllm keeps in {0} is not known": "vllm 以 {0} 保存什么尚不清楚",
    "its last version with it is {0}": "最后一个有它的版本是 {0}",
    "give a model, or a --command that names one": "请给出模型，或写有模型的 --command",
    "--command is longer than {0} characters": "--command 超过 {0} 个字符",
    "--command starts no engine that is known": "--command 没有启动任何已知的引擎",
    "for example --command 'vllm serve Qwen/Qwen3-8B --max-model-len 32768'": (
        "例如 --command 'vllm serve Qwen/Qwen3-8B --max-model-len 32768'"
    ),
    "--command: {0}": "--command：{0}",
    "--engine is {0}, and --command starts {1}": "--engine 为 {0}，而 --command 启动的是 {1}",
    "leave --engine out": "请去掉 --engine",
    "the rule of thumb knows no --{0}": "经验公式没有 --{0}",
    "--engine vllm plans stages and context parallelism": "--engine vllm 可规划流水线与上下文并行",
    # weights
    "the tensors of {kind?} are not known": "{kind?} 的张量未知",
    "this type": "该类型",
    "leave --weights out": "请去掉 --weights",
}
