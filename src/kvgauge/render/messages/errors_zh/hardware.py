"""Accelerators: names, sizes, own files, this machine."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    # names
    "the name of a device is empty": "设备名称为空",
    "the name of a device is longer than {0} characters": "设备名称超过 {0} 个字符",
    "'kvgauge gpus' lists what is known; --memory 80GiB takes any device by its memory": (
        "'kvgauge gpus' 列出已知设备；--memory 80GiB 可按显存指定任何设备"
    ),
    "{0}: {1} is no number of devices": "{0}：{1} 不是设备数量",
    "{0} names no one device": "{0} 不是某一种设备的名称",
    "'kvgauge plan MODEL --gpu all' looks at all; no number, no other name beside it": (
        "'kvgauge plan MODEL --gpu all' 查看所有设备；不要同时写数量或其他名称"
    ),
    "1 to {0}": "1 到 {0}",
    "{0} is a size, not a device": "{0} 是大小，不是设备",
    "--memory {0} takes it": "请用 --memory {0}",
    "{0} is a slice of a device": "{0} 是设备的切片",
    "--memory takes a slice by its own memory": "请用 --memory 写出该切片自己的显存",
    "{0} names several kinds of devices": "{0} 写了几种设备",
    "give one kind at a time": "一次只写一种设备",
    "no device of that family is called {0}": "该系列中没有名为 {0} 的设备",
    "known are {forms?}": "已知的有 {forms?}",
    "{0} and {1} more": "{0}，另有 {1} 个",
    "no device is known by the name {0}": "没有名为 {0} 的已知设备",
    "memory of {0} bytes holds nothing": "{0} 字节的显存放不下任何内容",
    "write it like 80GiB or 80GiB:2": "写成 80GiB 或 80GiB:2",
    # own files
    "write rows as 'kvgauge gpus NAME --json' prints them; a name and a memory are enough": (
        "按 'kvgauge gpus NAME --json' 的输出格式写每一行；name 和 memory 两项即可"
    ),
    "can't read {0}: {why?}": "无法读取 {0}：{why?}",
    "not a path": "不是路径",
    "{0} is larger than 1 MiB": "{0} 超过 1 MiB",
    "two rows have the name {0}": "有两行的名称都是 {0}",
    "give each its own": "请给每行不同的名称",
    "gpus is no list of 1 to {0} rows": "gpus 不是 1 到 {0} 行的列表",
    "gpus[{0}] is no object": "gpus[{0}] 不是对象",
    "{0} is no field of a device": "{0} 不是设备的字段",
    "{0} is not {what}": "{0} 不是{what}",
    "a text of 1 to {0} printable characters": " 1 到 {0} 个可打印字符的文本",
    "a number above 0": "大于 0 的数",
    "a size such as 47.4GiB, or bytes": "形如 47.4GiB 的大小或字节数",
    "a whole number of {0} to {1}": " {0} 到 {1} 的整数",
    "one of {0}": "可选值之一：{0}",
    "a list of at most {0} names": "至多 {0} 个名称的列表",
    "a range: low_bytes, central_bytes, high_bytes in this order": (
        "由小到大的范围：low_bytes、central_bytes、high_bytes"
    ),
    "an object with {0}": "含有 {0} 的对象",
    "an object with gb_per_second and kind": "含有 gb_per_second 和 kind 的对象",
    "a list of at most {0} prices": "至多 {0} 个价格的列表",
    "a price with usd_per_hour or usd": "含有 usd_per_hour 或 usd 的价格",
    "a date such as 2026-11": "形如 2026-11 的日期",
    # this machine
    "name it: --gpu NAME, or --memory 80GiB; 'kvgauge gpus' lists what is known": (
        "请写出名称：--gpu NAME，或 --memory 80GiB；'kvgauge gpus' 列出已知设备"
    ),
    "the devices of this machine are not known: {why?}": "无法得知本机的设备：{why?}",
    "the devices of this machine are not known: neither nvidia-smi nor rocm-smi is here": (
        "无法得知本机的设备：没有 nvidia-smi，也没有 rocm-smi"
    ),
    "{0} shows no device": "{0} 没有显示任何设备",
    "{0} gave no answer in {1} s": "{0} 在 {1} 秒内没有应答",
    "{0} can't be run": "{0} 无法运行",
    "{0} ended with code {1}": "{0} 以代码 {1} 退出",
    "this machine has several kinds of devices: {0}": "本机有几种设备：{0}",
    "name one of them: --gpu NAME:COUNT": "请写出其中一种：--gpu NAME:COUNT",
}
