"""What the lab refuses to run."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    "the lab runs 1 to {0} tokens, not {1}": "实验只运行 1 到 {0} 个 token，而不是 {1}",
    "bytes are exact at any length: kvgauge size": "任意长度的精确字节数：kvgauge size",
    "the lab has no layer of {0}": "实验中没有 {0} 层",
    "it runs {0}": "它能运行 {0}",
    "the lab needs {0} for layer {1}": "实验运行第 {1} 层需要 {0}",
    "layer {0} has two caches": "第 {0} 层有两个缓存",
    "the lab runs layers of one": "实验只运行有一个缓存的层",
    "layer {0} keeps {1} elements of a token, the lab's {2} {3}": (
        "第 {0} 层为一个 token 保存 {1} 个元素，而实验的 {2} 保存 {3} 个"
    ),
    "the lab runs the plain form of each mechanism": "实验只运行每种机制的普通形式",
    "--{0} {1} is out of range": "--{0} {1} 超出范围",
    "the lab takes {0} to {1}": "实验接受 {0} 到 {1}",
    "--{0} names {1} numbers": "--{0} 写了 {1} 个数",
    "twelve at most": "最多十二个",
    "--tile {0} is not understood": "无法理解 --tile {0}",
    "write it like 128x64": "请写成 128x64",
    "{0} has no layer of plain attention over all tokens": "{0} 没有对全部 token 做普通注意力的层",
    "--shared-prefix {0} leaves no room in --max-model-len {1}": (
        "--shared-prefix {0} 在 --max-model-len {1} 中没有留下余地"
    ),
    "16 tokens at least must follow it": "其后至少要有 16 个 token",
    "--max-model-len {0} does not fit in --pool {1} under every scheme": (
        "--max-model-len {0} 并非在每种方案下都放得进 --pool {1}"
    ),
    "{0} tokens do": "{0} 个 token 可以",
    "its layers have {0} weights with widths divided, too many to run here": (
        "宽度缩小后各层仍有 {0} 个权重，太多，无法在此运行"
    ),
    "the lab runs up to {0}": "实验最多运行 {0} 个",
    "the heads of layer {0} do not share evenly, or have an odd width": "第 {0} 层的头不能均分，或宽度为奇数",
    "the lab reads the config of a model, not its GGUF": "实验读取模型的配置，而不是 GGUF",
    "name the model on the hub": "请写模型在 hub 上的名称",
}
