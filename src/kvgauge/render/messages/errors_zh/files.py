"""What is wrong with a file: not there, not readable, damaged."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    # files and folders
    "{0} can't be read: {reason?}": "无法读取 {0}：{reason?}",
    "not readable": "不可读",
    "not a usable path": "路径不可用",
    "check its permissions": "请检查其权限",
    "check its permissions, or ask with --refresh": "请检查其权限，或用 --refresh 查询",
    "check the path and its permissions": "请检查路径与权限",
    "{0} is not a regular file": "{0} 不是普通文件",
    "{0} is missing": "缺少 {0}",
    "{0} holds no config.json": "{0} 中没有 config.json",
    "give a config.json, a GGUF or a folder that holds one": "请给出 config.json、GGUF 或含有它们的文件夹",
    "standard input can't be read": "无法读取标准输入",
    "pipe a config.json into it": "请用管道把 config.json 传入",
    "standard input": "标准输入",
    "{0} holds a projector only, no language model": "{0} 中只有投影器，没有语言模型",
    "name the model's file": "请写出模型的文件名",
    "{0} holds several models: {1}": "{0} 中有多个模型：{1}",
    "name one file": "请写出其中一个文件",
    # JSON
    "{where?} is larger than {0} MiB": "{where?} 大于 {0} MiB",
    "{where?} is empty": "{where?} 是空的",
    "{where?} is not UTF-8 (byte {0})": "{where?} 不是 UTF-8（第 {0} 字节）",
    "save it as UTF-8": "请存为 UTF-8",
    "{where?} holds {kind?}, not an object": "{where?} 的内容是{kind?}，不是对象",
    "null": " null",
    "a number": "数字",
    "a list": "列表",
    "a text": "文本",
    "a truth value": "布尔值",
    "give the config.json as the model's authors published it": "请给出模型作者发布的 config.json",
    "{where?} has the key {0} twice in one object": "{where?} 的同一个对象中有两个键 {0}",
    "remove one of them": "请去掉其中一个",
    "{where?} is not JSON: {reason?} at line {0}, column {1}": (
        "{where?} 不是 JSON：第 {0} 行第 {1} 列，{reason?}"
    ),
    "{where?} holds a number with too many digits": "{where?} 含有位数过多的数字",
    "{where?} nests deeper than {0} levels": "{where?} 的嵌套超过 {0} 层",
    "{where?} holds half of a surrogate pair": "{where?} 含有半个代理对",
    "the list of files": "文件列表",
    "the manifest of {0}": "{0} 的清单",
    # GGUF
    "fetch or convert the file again": "请重新下载或转换该文件",
    "the download may be incomplete: fetch the file again": "下载可能不完整：请重新下载",
    "{0} claims {1} {what}, more than it can hold": "{0} 声称有 {1} 个{what}，超出它所能容纳的",
    "metadata entries": "元数据项",
    "tensors": "张量",
    "strings": "字符串",
    "nested arrays": "嵌套数组",
    "array items": "数组元素",
    "{0} has {what} of {1} bytes": "{0} 有{what}长 {1} 字节",
    "{0} has {what} that is not UTF-8": "{0} 有{what}不是 UTF-8",
    "a key": "一个键",
    "a tensor name": "一个张量名",
    "{0} has the key {1} twice": "{0} 中有两个键 {1}",
    "{0} is not a GGUF file": "{0} 不是 GGUF 文件",
    "{0} is big endian, which is not read": "{0} 是大端序，不支持",
    "convert it for a little-endian machine": "请转换为小端序",
    "{0} is GGUF version {1}; 2 and 3 are read": "{0} 是 GGUF 版本 {1}；支持 2 与 3",
    "convert the model again": "请重新转换模型",
    "{0} has general.alignment {1}, which is no small power of two": (
        "{0} 的 general.alignment 为 {1}，不是较小的 2 的幂"
    ),
    "{0} has a value of type {1}, which does not exist": "{0} 含有类型 {1} 的值，而没有这种类型",
    "{0} nests arrays deeper than {1}": "{0} 的数组嵌套超过 {1} 层",
    "{0} has an array of type {1}, which does not exist": "{0} 含有类型 {1} 的数组，而没有这种类型",
    "{0} gives the tensor {1} {2} dimensions": "{0} 中张量 {1} 有 {2} 维",
    "{0} has the tensor {1} of type {2}, which does not exist": "{0} 中张量 {1} 的类型为 {2}，而没有这种类型",
    "{0} has the tensor {1} of shape {2}, which {3} can't hold": (
        "{0} 中张量 {1} 的形状为 {2}，{3} 无法存放"
    ),
    "{0} names a tensor twice": "{0} 中有同名的张量",
    "{0} has the tensor {1} at an offset that is not aligned": "{0} 中张量 {1} 的偏移没有对齐",
    "{0} has the tensors {1} and {2} overlap": "{0} 中张量 {1} 与 {2} 重叠",
    "{0} ends {1} bytes before its tensor {2} does": "{0} 在张量 {2} 结束之前少了 {1} 字节",
    "{0} has a truth value of {1}": "{0} 含有取值为 {1} 的布尔值",
    "{0} ends in the middle of its header": "{0} 的文件头不完整",
    "{0} has a header of more than {1} MiB": "{0} 的文件头超过 {1} MiB",
    "{0} ends early: {1} of {2} bytes at {3}": "{0} 提前结束：在 {3} 处只有 {2} 字节中的 {1} 字节",
    "{0} says that it is one of {1} files, its name says {2}": "{0} 写明共有 {1} 个文件，文件名却是 {2} 个",
    "name the files as they were published: NAME-00001-of-0000N.gguf": (
        "请用发布时的文件名：NAME-00001-of-0000N.gguf"
    ),
    "two files of {0} hold the same tensor": "{0} 一组中有两个文件含有同一个张量",
    "{0} says that it is file {1} of {2} (counted from 0), not {3} of {4}": (
        "{0} 写明是 {2} 个文件中的第 {1} 个（从 0 数起），而不是 {4} 个中的第 {3} 个"
    ),
    "the files are of different sets; fetch them again": "这些文件不属于同一组；请重新下载",
    "a split set is read when all of its files lie in one folder": "分卷的所有文件须在同一个文件夹中",
    "{0} is no file of a set of {1}": "{0} 不是一组 {1} 个文件中的一个",
    "check its name": "请检查文件名",
    # Ollama
    "pull it again: ollama pull {0}": "请重新拉取：ollama pull {0}",
    "{0} has a manifest of more than 1 MiB": "{0} 的清单超过 1 MiB",
    "{0} has a manifest without a list of layers": "{0} 的清单没有层列表",
    "{0} has {1} model layers in its manifest; one GGUF can be read": (
        "{0} 的清单中有 {1} 个模型层；只能读取一个 GGUF"
    ),
    "{0} has a digest in its manifest that is not sha256 in hex": "{0} 的清单中有不是 sha256 十六进制的摘要",
    "{0} lacks its blob {1}": "{0} 缺少 blob {1}",
    "{0} has {1} bytes in its blob, {2} in its manifest": "{0} 的 blob 有 {1} 字节，清单写的是 {2}",
    # safetensors
    "fetch the file again": "请重新下载该文件",
    "{0} ends before its header": "{0} 在文件头之前就结束了",
    "{0} claims a header of {1} bytes, more than the format allows": (
        "{0} 声称文件头有 {1} 字节，超过格式所允许的"
    ),
    "{0} claims a header of {1} bytes and has {2}": "{0} 声称文件头有 {1} 字节，实际有 {2}",
    "{0} ends inside its header": "{0} 在文件头中间就结束了",
    "{0} and {1} both hold {2}": "{0} 与 {1} 都含有 {2}",
    "{0} does not hold {1}, which the index puts there": "{0} 中没有 {1}，而索引说它在其中",
    "{0} has no weight_map": "{0} 没有 weight_map",
    "{0} puts {1} in something that is no file beside it": "{0} 把 {1} 指向了不在同一文件夹中的文件",
    "{0} names more than {1} files": "{0} 写有的文件超过 {1} 个",
    "{0} has a header that is no JSON object": "{0} 的文件头不是 JSON 对象",
    "{0} has a header of more entries than any model": "{0} 的文件头的项数多于任何模型",
    "{0} has the name {1} twice": "{0} 中有两个名称 {1}",
    "{0} has a header that is not UTF-8": "{0} 的文件头不是 UTF-8",
    "{0} has a header that is not JSON": "{0} 的文件头不是 JSON",
    "{0} has __metadata__ that is no table of texts": "{0} 的 __metadata__ 不是文本表",
    "{0} gives {1} the dtype {2}, which the format lacks": "{0} 中 {1} 的 dtype 为 {2}，格式没有这种类型",
    "{0} gives {1} a shape that is none": "{0} 中 {1} 的形状无效",
    "{0} gives {1} no place for its data": "{0} 中 {1} 没有数据位置",
    "{0} gives {1} {2} bytes, its shape needs {3}": "{0} 中 {1} 有 {2} 字节，按形状需要 {3}",
    "{0} has data that overlap": "{0} 中有重叠的数据",
    "{0} has a gap between its data": "{0} 的数据之间有空隙",
    "{0} holds {1} bytes of data, its header describes {2}": "{0} 有 {1} 字节数据，文件头描述的是 {2}",
}
