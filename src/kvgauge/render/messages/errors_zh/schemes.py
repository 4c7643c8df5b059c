"""What keeps a quantised checkpoint's bytes from being known."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    "weights quantised with {0} are not known": "未知的权重量化方式：{0}",
    "give the safetensors files or their index, which say the bytes themselves": (
        "请给出 safetensors 文件或其索引，其中写明了实际字节数"
    ),
    "a GGUF repository holds one file for each quantisation": "GGUF 仓库为每种量化各存一个文件",
    "name the file: org/name:file.gguf": "请写出文件：org/name:file.gguf",
    # fields of the block
    "{0} must be {wanted}, not {1}": "{0} 须为{wanted}，而不是 {1}",
    "a word": "一个词",
    "a number of values, or -1 for a row": "数值个数，或用 -1 表示整行",
    "a number of values": "数值个数",
    "a list of names": "名称列表",
    "two numbers": "两个数",
    "two numbers or null": "两个数或 null",
    "a few groups": "少量的组",
    "{0} has {1} entries, more than {2}": "{0} 有 {1} 项，超过 {2}",
    "{0} is missing, which says how the weights are packed": "缺少 {0}，它说明权重如何打包",
    "add it, or give it with --override {0}=": "请补上该字段，或用 --override {0}= 指定",
    "{0} must hold an object, not {1}": "{0} 须为对象，而不是 {1}",
    # lists of modules
    "a pattern of module names has {0} characters, more than {1}": "某个模块名模式有 {0} 个字符，超过 {1}",
    "{0} is no pattern of module names": "{0} 不是模块名的模式",
    "the pattern {0} uses an expression that is not known": "模式 {0} 使用了未知的写法",
    "a module name has {0} characters, more than {1}": "某个模块名有 {0} 个字符，超过 {1}",
    "the list of modules is too long": "模块列表过长",
    "the patterns of module names take too long to match": "模块名模式的匹配耗时过长",
    "the numbers {0} of a module name are none": "模块名中的 {0} 不是数字",
    "the numbers {0} of a module name are too many": "模块名中的 {0} 数目过多",
    # formats
    "{0} packs {1} values a block, a row of {2} can't be packed": (
        "{0} 每块打包 {1} 个值，长度为 {2} 的行无法打包"
    ),
}
