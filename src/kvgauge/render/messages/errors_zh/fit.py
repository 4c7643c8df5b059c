"""What ``fit`` refuses, and the phrases in its suggestions."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    "fit needs a device, or the bytes of its pool": "fit 需要一个设备，或缓存池的字节数",
    "--kv-memory 40GiB gives the pool on each GPU": "--kv-memory 40GiB 给出每张 GPU 的缓存池",
    "the pool is given with --kv-memory in this release": "本版本需用 --kv-memory 给出缓存池",
    "an engine's start-up log prints it: --kv-memory 40GiB": "引擎的启动日志会打印它：--kv-memory 40GiB",
    "{0} has no pool of cache that a load could fit in": "{0} 没有可容纳负载的缓存池",
    "--engine vllm has one; 'kvgauge engines' lists the engines": (
        "--engine vllm 有；'kvgauge engines' 列出各引擎"
    ),
    "there can't be {0} GPUs": "GPU 数量不能是 {0}",
    "give 1 or more": "请给出 1 或更多",
    "--tp, --pp and --dp make {0} ranks, and there are {1} GPUs": (
        "--tp、--pp、--dp 共 {0} 个 rank，而 GPU 只有 {1} 张"
    ),
    "give {0} GPUs, or fewer ranks": "请给出 {0} 张 GPU，或减少 rank",
    "vllm keeps K and V in one dtype": "vllm 的 K 与 V 用同一 dtype",
    "vllm shares no prefix here: prefix caching is off": "vllm 此处不共享前缀：前缀缓存已关闭",
    "leave --shared-prefix out, or turn it on with --enable-prefix-caching": (
        "请去掉 --shared-prefix，或用 --enable-prefix-caching 打开"
    ),
    "--{0} max: the config states no limit": "--{0} max：配置没有写上限",
    # weights
    "the tensors of {kind?} are not known": "{kind?} 的张量未知",
    "this type": "该类型",
    "leave --weights out": "请去掉 --weights",
    # phrases
    "which fits": "放得下",
    "which does not fit either": "仍放不下",
}
