"""GGUF files for tests, byte by byte, damaged ones too; and a small valid model."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64 = 4, 5, 6, 7, 8, 9, 10
_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}

QWEN3 = {
    "general.architecture": "qwen3",
    "general.name": "Tiny Qwen3",
    "qwen3.block_count": 2,
    "qwen3.context_length": 4096,
    "qwen3.embedding_length": 64,
    "qwen3.attention.head_count": 4,
    "qwen3.attention.head_count_kv": 2,
    "qwen3.attention.key_length": 16,
    "qwen3.attention.value_length": 16,
}
TENSORS = (
    ("token_embd.weight", (64, 8)),
    ("blk.0.attn_k.weight", (64, 32)),
    ("blk.1.attn_k.weight", (64, 32)),
)


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def typed(value: object) -> bytes:
    """Return a value with its type before it."""
    if isinstance(value, bool):
        return struct.pack("<IB", BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", UINT32, value) if value >= 0 else struct.pack("<Ii", INT32, value)
    if isinstance(value, float):
        return struct.pack("<If", FLOAT32, value)
    if isinstance(value, str):
        return struct.pack("<I", STRING) + text(value)
    assert isinstance(value, list)
    items = [typed(item) for item in value] or [typed(0)]
    kind = items[0][:4]
    return (
        struct.pack("<I", ARRAY)
        + kind
        + struct.pack("<Q", len(value))
        + b"".join(i[4:] for i in items[: len(value)])
    )


def tensor_row(name: str, shape: Sequence[int], offset: int, kind: int = 1) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def gguf(
    values: Mapping[str, object] | Sequence[tuple[str, object]] = QWEN3,
    tensors: Sequence[tuple[str, Sequence[int]]] = TENSORS,
    *,
    version: int = 3,
    num_tensors: int | None = None,
    num_entries: int | None = None,
    raw_entries: Sequence[bytes] = (),
    rows: Sequence[bytes] | None = None,
    data: int | None = None,
) -> bytes:
    """Return a file of f16 tensors side by side; every claim can be replaced by another."""
    entries = list(values.items()) if isinstance(values, Mapping) else list(values)
    count = len(entries) + len(raw_entries) if num_entries is None else num_entries
    body, offset, table = b"", 0, []
    for name, shape in tensors:
        table.append(tensor_row(name, shape, offset))
        size = 2
        for dimension in shape:
            size *= dimension
        offset += -(-size // 32) * 32
    rows = table if rows is None else rows
    head = b"GGUF" + struct.pack("<IQQ", version, len(rows) if num_tensors is None else num_tensors, count)
    body = head + b"".join(text(k) + typed(v) for k, v in entries) + b"".join(raw_entries) + b"".join(rows)
    return body + bytes(-len(body) % 32) + bytes(offset if data is None else data)


def write(path: Path, *args: object, **kwargs: object) -> Path:
    path.write_bytes(gguf(*args, **kwargs))
    return path


def split_set(folder: Path, prefix: str = "model", count: int = 3) -> list[Path]:
    """Write a split set as llama-gguf-split does: metadata in the first, tensors spread."""
    paths = []
    for number in range(count):
        own = {"split.no": number, "split.count": count, "split.tensors.count": len(TENSORS)}
        values = {**QWEN3, **own} if number == 0 else own
        paths.append(
            write(
                folder / f"{prefix}-{number + 1:05d}-of-{count:05d}.gguf",
                values,
                TENSORS[number : number + 1],
            )
        )
    return paths
