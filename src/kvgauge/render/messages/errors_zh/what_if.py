"""What is wrong with a ``--weights`` scheme."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    "--weights is too long": "--weights 过长",
    "for example int4,group=64": "例如 int4,group=64",
    "{0} is no quantisation of weights that is known": "未知的权重量化方式 {0}",
    "one of: {0}, or a mix of llama.cpp: q4_k_m, q8_0": "可选：{0}，或 llama.cpp 的混合类型：q4_k_m、q8_0",
    "{0} has no rule to price it by: types are chosen model by model with an importance matrix": (
        "{0} 没有可用来计算的规则：它的类型是借助重要性矩阵逐个模型选定的"
    ),
    "give the file itself: ORG/NAME:FILE.gguf": "请直接给出文件：ORG/NAME:FILE.gguf",
    "{0} is no option of {1}": "{0} 不是 {1} 的选项",
    "options are NAME=VALUE, parts are joined by +: keep=embedding+lm_head": (
        "选项写作 NAME=VALUE，多个部分用 + 连接：keep=embedding+lm_head"
    ),
    "{0} has no option {1}": "{0} 没有选项 {1}",
    "{0} takes {1}": "{0} 可用的选项：{1}",
    "{0} takes no option": "{0} 不带选项",
    "{0} is given twice": "{0} 给出了两次",
    "give each option once": "每个选项只给一次",
    "{0} is no part of a model": "{0} 不是模型的组成部分",
    "parts are {0}": "可用的部分：{0}",
    "bits={0} is not possible": "bits={0} 不可行",
    "bits are 2 to 8": "bits 须为 2 到 8",
    "group={0} is not possible": "group={0} 不可行",
    "a group is a multiple of 8 up to {0}; group=channel is a whole row": (
        "group 须为 8 的倍数且不超过 {0}；group=channel 表示整行"
    ),
    "{0}={1} is not possible": "{0}={1} 不可行",
    "what {0} makes of this model is not known": "不知道 {0} 会把这个模型变成什么样",
    "give a GGUF file of it: ORG/NAME:FILE.gguf": "请给出它的 GGUF 文件：ORG/NAME:FILE.gguf",
}
