"""Other ways to divide serving, and files that start a plan elsewhere."""

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
    # files
    "no files can be written for {0}": "无法为 {0} 写出文件",
    "--engine is one of {0}": "--engine 可选 {0}",
    "{0} is no count of GPUs of a machine": "{0} 不是一台机器的 GPU 数",
    "1 to 1024": "1 到 1024",
    "{0} GPUs do not fill machines of {1}": "{0} 张 GPU 填不满每台 {1} 张的机器",
    "a count of GPUs that machines share evenly, or another --gpus-per-machine": (
        "请用各机器可均分的 GPU 数，或改 --gpus-per-machine"
    ),
    "the launch command can't be split: {0}": "无法拆分启动命令：{0}",
    "KServe's runtime spreads tensor and pipeline ranks over machines, no data-parallel ones": (
        "KServe 的运行时可把张量并行和流水线并行分到多台机器，数据并行不行"
    ),
    "--emit leaderworkerset=FOLDER": "--emit leaderworkerset=FOLDER",
    "{0} does not start {1}": "{0} 不能启动 {1}",
    "--emit {0} names no folder": "--emit {0} 没有写文件夹",
    "--emit {0}=FOLDER": "--emit {0}=FOLDER",
    "--emit knows no system {0}": "--emit 不认识系统 {0}",
    "one of {0}; a folder of such a name is written ./{1}": "可用：{0}；这种名字的文件夹写作 ./{1}",
    "--emit names no folder": "--emit 没有写文件夹",
    "--emit FOLDER": "--emit 文件夹",
    "--emit {0} names an option, no folder": "--emit {0} 是选项，不是文件夹",
    "a folder of such a name is written ./{0}": "这种名字的文件夹写作 ./{0}",
    "{0} is there already": "{0} 已经存在",
    "name another folder, or remove it": "请换一个文件夹，或删除它",
    "can't write to {0}: {1}": "无法写入 {0}：{1}",
    "name a folder of yours": "请写一个自己的文件夹",
    "--emit has nothing to write: nothing holds the load": "--emit 没有可写的：没有方案放得下这个负载",
    "kvgauge plan without it says why": "去掉它，kvgauge plan 会说明原因",
}
