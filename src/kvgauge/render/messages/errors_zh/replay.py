"""Files of recorded measurements, and logs."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    "give a file with one JSON object a line; without one the shipped records are replayed": (
        "请给出每行一个 JSON 对象的文件；不给则重放随附的记录"
    ),
    "{0}, line {1}: more than {2} MiB a line or {3} records": (
        "{0} 第 {1} 行：一行超过 {2} MiB，或记录超过 {3} 条"
    ),
    "{0}, line {1}": "{0} 第 {1} 行",
    "{where} is no JSON object": "{where}不是 JSON 对象",
    # why a figure is left out
    "a needed field null": "所需的字段为空",
    "fixture": "测试样例",
    "soft: a guess in the record, or unequal cards": "不作准：记录中有猜测，或各卡不同",
    "not predicted yet": "尚未预测",
    # how a prediction follows
    "{0} B a token": "每 token {0} B",
    "{0} B a block": "每块 {0} B",
    "pool / {0} B": "缓存池 / {0} B",
    "layers that keep every token": "保留全部 token 的各层",
    "blocks / {0} a request x {1}": "块数 / 每请求 {0} x {1}",
    "blocks / groups x block": "块数 / 组数 x 块",
    "blocks x block": "块数 x 块",
    "{0} blocks a request of {1}": "{1} 的请求占 {0} 块",
    "{0} blocks": "{0} 块",
    "blocks of {0} tokens": "每块 {0} 个 token",
    "a share of the free memory": "空闲内存的一个份额",
    "free memory and the static fraction": "空闲内存与静态份额",
    "{0} bits a weight": "每权重 {0} bit",
    "{0} cells": "{0} 个单元",
    "{0} sequences": "{0} 条序列",
    "{0} of {1} GiB free, less {2} of weights": "空闲 {1} GiB 的 {0}，减去权重 {2}",
    "{0} of {1} GiB, less {2} of weights and the terms beside them": (
        "{1} GiB 的 {0}，减去权重 {2} 与其余各项"
    ),
    "{0} batch sizes x {1} layers": "{0} 种批量 x {1} 层",
    "a forward pass of {0} tokens, {1} wide": "{0} 个 token 的一次前向，宽 {1}",
    "a pass of the encoder for images of {0} tokens": "{0} 个 token 图像的一次编码器前向",
    "logits of {0} sequences x {1} words, beside {2} tokens": (
        "{0} 条序列 x {1} 个词的 logits，另有 {2} 个 token"
    ),
    "no public shape for the model here": "此处没有该模型的公开形状",
    "no public shape for the model here ({0})": "此处没有该模型的公开形状（{0}）",
    "not predicted yet ({0})": "尚未预测（{0}）",
    # verify
    "nothing is piped in": "没有管道输入",
    "for example: kvgauge verify - < server.log": "例如：kvgauge verify - < server.log",
    "{0} is a folder": "{0} 是文件夹",
    "give the log itself": "请给出日志文件",
    "no such file": "没有该文件",
    "give the file that the engine's output was written to, or - for a pipe": (
        "请给出引擎输出所写入的文件，或用 - 表示管道"
    ),
    "the log has no line with a figure of memory that is known here": "日志中没有此处认识的内存数字",
    "looked for {0}": "查找过 {0}",
    "verify does not take {0} for a log of {engine?}": "verify 对 {engine?} 的日志不接受 {0}",
    "an unknown engine": "未知引擎",
    "give the engine's own flags with --engine-args": "请用 --engine-args 给出引擎自己的参数",
    "one object a line, as docs/accuracy.md describes": "每行一个对象，格式见 docs/accuracy.md",
}
