"""What keeps weights from being divided over ranks."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    "--tp {0} does not divide the {1} {what} of {2}": "--tp {0} 不能整除 {2} 的 {1} 个{what}",
    "outputs": "输出",
    "inputs": "输入",
    "padded rows": "补齐后的行",
    "--tp {0} and the {1} key-value heads or groups of {2} don't divide one another": (
        "--tp {0} 与 {2} 的 {1} 个键值头（或分组）互不整除"
    ),
    "--tp {0} leaves {1} of {2} on a rank, which is no multiple of its {3}x{4} quantisation blocks": (
        "--tp {0} 时每个 rank 持有 {2} 的 {1} 行或列，不是其 {3}x{4} 量化块的整数倍"
    ),
    "--tp {0} leaves an expert {1} wide on a rank, which its {2}x{3} quantisation blocks can't be cut to": (
        "--tp {0} 时每个 rank 上专家的宽度为 {1}，其 {2}x{3} 量化块无法细分到能整除它"
    ),
    "--ep {0} can't be spread over --tp {1} x --dp {2} ranks": (
        "--ep {0} 无法分布到 --tp {1} x --dp {2} 个 rank 上"
    ),
    "--ep {0} can": "可用 --ep {0}",
    "expert parallelism needs --tp or --dp": "专家并行需要 --tp 或 --dp",
}
