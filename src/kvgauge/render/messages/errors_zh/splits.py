"""Other ways to divide serving: prefixes, offload, disaggregation, on-chip memory."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    "split {0} is not known": "不认识拆分方式 {0}",
    "no prefix is shared": "没有共享前缀",
    "--shared-prefix TOKENS says how long it is": "用 --shared-prefix TOKENS 写出其长度",
    "a prompt of {0} tokens is longer than the context of {1}": "{0} 个 token 的提示比 {1} 的上下文还长",
    "the context is prompt and answer together": "上下文是提示与回答之和",
    "network {0} is not understood": "无法理解网络速率 {0}",
    "write it like 400g (Gb/s) or 50GB/s": "写成 400g（Gb/s）或 50GB/s",
    "host memory": "主机内存",
    "this split needs the weights": "这种拆分需要权重",
    "leave out --no-weights": "请去掉 --no-weights",
    "this split needs a card": "这种拆分需要指定显卡",
    "--gpu NAME[:COUNT]": "--gpu NAME[:COUNT]",
    "this split needs a card that holds weights in on-chip memory": "这种拆分需要把权重放在片上存储中的设备",
    "one of: kvgauge gpus sram": "可选设备见：kvgauge gpus sram",
    "{what} of {1} is not known": "{1} 的{what}未知",
    "the PCIe generation": " PCIe 代次",
    "the memory bandwidth": "显存带宽",
    "the on-chip bandwidth": "片上存储带宽",
    "name a card whose row has it: kvgauge gpus --json, or --gpu-file": (
        "请指定有该项数据的设备：kvgauge gpus --json，或 --gpu-file"
    ),
    "the weights of this model are known as a total, not by layer": "该模型的权重只知道总量，不知道各层",
    "the width of a token's vector does not follow from the weights": "无法从权重得出 token 向量的宽度",
    "give its config or its files": "请给出它的配置或文件",
    "attention weights and the cache of one sequence exceed one {0}": (
        "注意力权重加上一个序列的缓存超过一张 {0}"
    ),
    "a shorter context, an 8-bit KV dtype or a larger card": "缩短上下文、用 8 位 KV 或更大的显卡",
}
