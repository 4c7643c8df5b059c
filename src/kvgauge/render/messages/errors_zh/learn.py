"""What ``learn`` refuses."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    "there is no topic {0}": "没有主题 {0}",
    "{0} needs {1}, which is not installed: pip install 'kvgauge[lab]'": (
        "{0} 需要 {1}，尚未安装：pip install 'kvgauge[lab]'"
    ),
    "kvgauge learn lists the topics": "kvgauge learn 列出所有主题",
    "--tokens {0} is out of range": "--tokens {0} 超出范围",
    "1 to {0} tokens": "1 到 {0} 个 token",
    "none of the {0} layers is plain attention with an FFN behind it": (
        "{0} 层中没有一层是普通注意力加 FFN 的结构"
    ),
    "kvgauge explain shows what its layers keep": "kvgauge explain 显示各层保存什么",
    "activations are not held in {0}": "激活不以 {0} 存放",
    "fp32, bf16, fp16 or fp8": "可用 fp32、bf16、fp16 或 fp8",
}
