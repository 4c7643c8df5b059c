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
    "one object a line, as docs/accuracy.md describes": "每行一个对象，格式见 docs/accuracy.md",
}
