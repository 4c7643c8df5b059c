"""What keeps the tensors of a config from being counted."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    # absent fields
    "describes a part of the model": "它描述模型的一个部分",
    "gives the number of tensors": "它给出张量的个数",
    "gives the shape of a tensor": "它给出一个张量的形状",
    "gives the shape of the query projection": "它给出查询投影的形状",
    "gives the width of the MLP": "它给出 MLP 的宽度",
    # values
    "an MLP replaced by a linear map is not known": "用线性映射代替 MLP 的设计未知",
    "ffn_mult must be a positive number": "ffn_mult 须为正数",
    "{0} has no entry for layer {1}": "{0} 中没有第 {1} 层的项",
    "{0} is {1}, which is no size of a tensor": "{0} 为 {1}，不能作为张量的尺寸",
    "{0} must be a number, not {1}": "{0} 须为数字，而不是 {1}",
    # tensors that are not known
    "the file names no model type": "文件没有写明模型类型",
    "it is a draft for speculative decoding, whose file does not tell its tensors": (
        "它是投机解码的草稿模型，文件没有说明它有哪些张量"
    ),
    "the tensors of {0}.{1} {2} are not known": "{0}.{1} 为 {2} 时张量未知",
    "{0} is not known with a {1}": "已知的 {0} 没有 {1}",
    "no tensor known of {0} accounts for {where?} in the file": "{0} 的已知张量无法解释文件中的 {where?}",
    "{0} is 0 in the file, and no tensor accounts for {where?}": "文件中 {0} 为 0，没有张量能解释 {where?}",
    "convolution layers": "卷积层",
    "recurrent layers": "循环层",
    "--weights {0}: {why}": "--weights {0}：{why}",
    # weight files
    "{0} holds no language model": "{0} 不是语言模型的权重",
    "give the model's own weight file, its config.json or its folder": (
        "请给出模型自己的权重文件、它的 config.json 或所在目录"
    ),
    "there is no config.json beside {0}": "{0} 旁边没有 config.json",
    "weights alone don't say what a model keeps; put its config.json beside them": (
        "仅凭权重无法知道模型要保留什么；请把它的 config.json 放在旁边"
    ),
    "the folder holds more than {0} weight files": "该文件夹中的权重文件多于 {0} 个",
    "{0} of {1} files": "{1} 个文件中的 {0} 个",
    "name one of them": "请写出其中一个",
    "{0} headers take more than {1} s": "{0} 个文件头耗时超过 {1} 秒",
    # arithmetic
    "the shape {0} can't be calculated: {why}": "无法计算形状 {0}：{why}",
    "a value is not a number": "有一个值不是数字",
    "a value is too large": "有一个值过大",
    "it divides by zero": "除数为零",
    "{0} is not a number": "{0} 不是数字",
}
