"""What the parser of the command line, the system and Python's JSON parser say, which our messages repeat."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    # the parser of the command line
    "option {0} requires an argument": "选项 {0} 需要一个值",
    "option {0} does not take a value": "选项 {0} 不带值",
    "got unexpected extra argument ({0})": "多出一个参数（{0}）",
    "got unexpected extra arguments ({0})": "多出几个参数（{0}）",
    "{0} is not one of {1}": "{0} 不在可选值之中：{1}",
    "{0} is not a valid integer": "{0} 不是整数",
    "{0} is not a valid integer range": "{0} 不是整数",
    "{0} is not in the range {1}": "{0} 不在范围 {1} 之内",
    "{0} is not a valid boolean. Recognized values: {1}": "{0} 不是布尔值；可用：{1}",
    "no such command {0}": "没有命令 {0}",
    "missing command": "没有写命令",
    "No closing quotation": "引号没有闭合",
    "No escaped character": "反斜杠之后没有字符",
    # the operating system
    "permission denied": "没有权限",
    "no such file or directory": "没有该文件或目录",
    "is a directory": "是目录",
    "not a directory": "不是目录",
    "file name too long": "文件名过长",
    "too many levels of symbolic links": "符号链接层数过多",
    "input/output error": "输入输出错误",
    "No space left on device": "设备上没有剩余空间",
    "Permission denied": "没有权限",
    "Input/output error": "输入输出错误",
    # JSON
    "Expecting value": "此处应为一个值",
    "Expecting property name enclosed in double quotes": "此处应为双引号括起的键",
    "Expecting '{0}' delimiter": "此处应为 '{0}'",
    "Unterminated string starting at": "字符串没有结束",
    "Invalid control character at": "含有控制字符",
    "Extra data": "之后有多余的内容",
    "Invalid \\escape": "无效的转义",
    "Invalid \\uXXXX escape": "无效的 \\uXXXX 转义",
    "Illegal trailing comma before end of object": "对象末尾多了逗号",
    "Illegal trailing comma before end of array": "列表末尾多了逗号",
}
