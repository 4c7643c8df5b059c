"""GGUF headers: metadata and tensor table, never tensor data, from anything that reads byte ranges.

Format: github.com/ggml-org/ggml ``docs/gguf.md``, versions 2 and 3, little endian. Nothing is allocated by
a number that the file claims: a claim is held against the bytes that are left, and what is kept is bounded.
Large arrays (tokens, merges, scores) are walked over; their length is kept.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import Protocol

from kvgauge.errors import DamagedFileError, one_line
from kvgauge.sources.gguf_split import SplitName
from kvgauge.values import dataclass

MAGIC = b"GGUF"

MAX_HEADER_BYTES = 512 << 20
MAX_ENTRIES = 1 << 16
MAX_TENSORS = 1 << 18
MAX_KEY_BYTES = (1 << 16) - 1
MAX_TENSOR_NAME_BYTES = 256
MAX_KEPT_TEXT_BYTES = 1 << 10
MAX_KEPT_ITEMS = 10_000
MAX_STRINGS = 1 << 23
MAX_ARRAY_DEPTH = 4
MAX_DIMENSIONS = 4

_FIRST_CHUNK = 1 << 20
_MAX_CHUNK = 8 << 20

_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
#: Value types of fixed width; 8 is a string, 9 an array.
_SCALARS = {
    0: struct.Struct("<B"), 1: struct.Struct("<b"), 2: struct.Struct("<H"), 3: struct.Struct("<h"),
    4: _U32, 5: struct.Struct("<i"), 6: struct.Struct("<f"), 7: struct.Struct("<B"),
    10: _U64, 11: struct.Struct("<q"), 12: struct.Struct("<d"),
}  # fmt: skip
_BOOL, _STRING, _ARRAY = 7, 8, 9

#: Type number of a tensor -> (name, elements a block, bytes a block). ggml.h of llama.cpp v0.5.0.
TENSOR_TYPES: Mapping[int, tuple[str, int, int]] = {
    0: ("f32", 1, 4), 1: ("f16", 1, 2), 2: ("q4_0", 32, 18), 3: ("q4_1", 32, 20), 6: ("q5_0", 32, 22),
    7: ("q5_1", 32, 24), 8: ("q8_0", 32, 34), 9: ("q8_1", 32, 36), 10: ("q2_k", 256, 84),
    11: ("q3_k", 256, 110), 12: ("q4_k", 256, 144), 13: ("q5_k", 256, 176), 14: ("q6_k", 256, 210),
    15: ("q8_k", 256, 292), 16: ("iq2_xxs", 256, 66), 17: ("iq2_xs", 256, 74), 18: ("iq3_xxs", 256, 98),
    19: ("iq1_s", 256, 50), 20: ("iq4_nl", 32, 18), 21: ("iq3_s", 256, 110), 22: ("iq2_s", 256, 82),
    23: ("iq4_xs", 256, 136), 24: ("i8", 1, 1), 25: ("i16", 1, 2), 26: ("i32", 1, 4), 27: ("i64", 1, 8),
    28: ("f64", 1, 8), 29: ("iq1_m", 256, 56), 30: ("bf16", 1, 2), 34: ("tq1_0", 256, 54),
    35: ("tq2_0", 256, 66), 39: ("mxfp4", 32, 17), 40: ("nvfp4", 64, 36), 41: ("q1_0", 128, 18),
    42: ("q2_0", 64, 18),
}  # fmt: skip


class ByteRanges(Protocol):
    """A file that is read by ranges, local or remote."""

    @property
    def size(self) -> int:
        """Bytes of the whole file."""

    def read(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset``."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One row of the tensor table; the shape as in the file, fastest dimension first."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    num_bytes: int


@dataclass(frozen=True)
class GgufHeader:
    """What stands before the tensor data.

    Args:
        metadata: key -> number, truth value, text or list of numbers. A long text or list is a mapping with
            ``type`` and ``length`` instead.
    """

    version: int
    metadata: Mapping[str, object]
    tensors: tuple[Tensor, ...]
    alignment: int
    data_offset: int


def read_header(source: ByteRanges, where: str) -> GgufHeader:
    """Read the header of one file.

    Args:
        source: the file.
        where: its name, for messages.

    Raises:
        DamagedFileError: not a GGUF, cut off, or it claims what can't be.
    """
    cursor = _Cursor(source, where)
    version = _version(cursor)
    num_tensors, num_entries = cursor.u64(), cursor.u64()
    cursor.check_count(num_entries, 13, MAX_ENTRIES, "metadata entries")
    cursor.check_count(num_tensors, 24, MAX_TENSORS, "tensors")
    metadata: dict[str, object] = {}
    for _ in range(num_entries):
        key = cursor.text(MAX_KEY_BYTES, "a key")
        if key in metadata:
            raise cursor.damaged(f"has the key {key[:80]!r} twice")
        metadata[key] = _value(cursor, cursor.u32(), depth=0)
    alignment = _alignment(cursor, metadata)
    rows = [_tensor(cursor) for _ in range(num_tensors)]
    data_offset = -(-cursor.position // alignment) * alignment
    _check_table(cursor, rows, alignment, data_offset)
    return GgufHeader(version, metadata, tuple(rows), alignment, data_offset)


def _version(cursor: _Cursor) -> int:
    if cursor.take(4) != MAGIC:
        raise cursor.damaged("is not a GGUF file")
    version = cursor.u32()
    if version and version & 0xFFFF == 0:
        raise cursor.damaged("is big endian, which is not read", "convert it for a little-endian machine")
    if version not in (2, 3):
        raise cursor.damaged(f"is GGUF version {version}; 2 and 3 are read", "convert the model again")
    return version


def _alignment(cursor: _Cursor, metadata: Mapping[str, object]) -> int:
    value = metadata.get("general.alignment", 32)
    if not isinstance(value, int) or not 1 <= value <= 1 << 20 or value & (value - 1):
        raise cursor.damaged(f"has general.alignment {str(value)[:40]}, which is no small power of two")
    return value


def _value(cursor: _Cursor, kind: int, depth: int) -> object:
    if kind == _STRING:
        return cursor.kept_text()
    if kind == _ARRAY:
        return _array(cursor, depth + 1)
    layout = _SCALARS.get(kind)
    if layout is None:
        raise cursor.damaged(f"has a value of type {kind}, which does not exist")
    (value,) = layout.unpack(cursor.take(layout.size))
    return cursor.truth(value) if kind == _BOOL else value


def _array(cursor: _Cursor, depth: int) -> object:
    if depth > MAX_ARRAY_DEPTH:
        raise cursor.damaged(f"nests arrays deeper than {MAX_ARRAY_DEPTH}")
    kind, count = cursor.u32(), cursor.u64()
    if kind == _STRING:
        cursor.skip_strings(count)
        return {"type": "string", "length": count}
    if kind == _ARRAY:
        cursor.check_count(count, 12, MAX_KEPT_ITEMS - cursor.nested, "nested arrays")
        cursor.nested += count
        for _ in range(count):
            _array(cursor, depth + 1)
        return {"type": "array", "length": count}
    layout = _SCALARS.get(kind)
    if layout is None:
        raise cursor.damaged(f"has an array of type {kind}, which does not exist")
    cursor.check_count(count, layout.size, MAX_HEADER_BYTES, "array items")
    if count > MAX_KEPT_ITEMS or cursor.kept_items + count > MAX_ENTRIES * 8:
        cursor.skip(count * layout.size)
        return {"type": "number", "length": count}
    cursor.kept_items += count
    values = struct.unpack(f"<{count}{layout.format[1:]}", cursor.take(count * layout.size))
    return [cursor.truth(v) for v in values] if kind == _BOOL else list(values)


def _tensor(cursor: _Cursor) -> Tensor:
    name = cursor.text(MAX_TENSOR_NAME_BYTES, "a tensor name")
    num_dimensions = cursor.u32()
    if num_dimensions > MAX_DIMENSIONS:
        raise cursor.damaged(f"gives the tensor {name[:80]!r} {num_dimensions} dimensions")
    shape = tuple(cursor.u64() for _ in range(num_dimensions))
    number, offset = cursor.u32(), cursor.u64()
    if number not in TENSOR_TYPES:
        raise cursor.damaged(f"has the tensor {name[:80]!r} of type {number}, which does not exist")
    dtype, block, block_bytes = TENSOR_TYPES[number]
    elements = math.prod(shape)
    if any(n >= 1 << 63 for n in shape) or elements >= 1 << 63 or (shape and shape[0] % block):
        raise cursor.damaged(f"has the tensor {name[:80]!r} of shape {shape}, which {dtype} can't hold")
    return Tensor(name, dtype, shape, offset, elements // block * block_bytes)


def _check_table(cursor: _Cursor, rows: list[Tensor], alignment: int, data_offset: int) -> None:
    """Tensors lie side by side inside the file, each name once."""
    if len({row.name for row in rows}) != len(rows):
        raise cursor.damaged("names a tensor twice")
    end, previous = 0, ""
    for row in sorted(rows, key=lambda r: (r.offset, r.num_bytes)):
        if row.offset % alignment:
            raise cursor.damaged(f"has the tensor {row.name[:80]!r} at an offset that is not aligned")
        if row.offset < end:
            raise cursor.damaged(f"has the tensors {previous[:60]!r} and {row.name[:60]!r} overlap")
        end, previous = row.offset + row.num_bytes, row.name
    if rows and data_offset + end > cursor.size:
        missing = data_offset + end - cursor.size
        hint = "the download may be incomplete: fetch the file again"
        raise cursor.damaged(f"ends {missing} bytes before its tensor {previous[:80]!r} does", hint)


@dataclass
class _Cursor:
    """Reads forward through a file in few growing chunks; never holds more than two of them."""

    source: ByteRanges
    where: str
    position: int = 0
    size: int = 0
    kept_items: int = 0
    strings: int = 0
    nested: int = 0
    chunk: int = _FIRST_CHUNK
    buffer: bytes = b""
    start: int = 0

    def __post_init__(self) -> None:
        self.size = self.source.size

    def damaged(self, what: str, hint: str = "fetch or convert the file again") -> DamagedFileError:
        """Return the error for this file (to raise)."""
        return DamagedFileError(f"{one_line(self.where, 160)} {what}", hint=hint, field=self.where)

    def check_count(self, count: int, least_bytes: int, limit: int, what: str) -> None:
        """Refuse a claimed count that the rest of the file could not hold, or that is out of reason."""
        if count > limit or count * least_bytes > self.size - self.position:
            raise self.damaged(f"claims {count} {what}, more than it can hold")

    def take(self, length: int) -> bytes:
        """Return the next bytes. ``length`` has been checked by the caller."""
        self._need(length)
        begin = self.position - self.start
        self.position += length
        return self.buffer[begin : begin + length]

    def skip(self, length: int) -> None:
        """Pass over bytes without reading them."""
        self._check_end(length)
        self.position += length

    def u32(self) -> int:
        """Return the next 32-bit number."""
        (value,) = _U32.unpack(self.take(4))
        return int(value)

    def u64(self) -> int:
        """Return the next 64-bit number."""
        (value,) = _U64.unpack(self.take(8))
        return int(value)

    def truth(self, value: int) -> bool:
        """Return a truth value, which is stored as 0 or 1."""
        if value > 1:
            raise self.damaged(f"has a truth value of {value}")
        return bool(value)

    def text(self, limit: int, what: str) -> str:
        """Return a string that must be short and UTF-8."""
        length = self.u64()
        if length > limit:
            raise self.damaged(f"has {what} of {length} bytes")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise self.damaged(f"has {what} that is not UTF-8") from None

    def kept_text(self) -> object:
        """Return a string value, or its length where it is long."""
        length = self.u64()
        if length > MAX_KEPT_TEXT_BYTES:
            self.skip(length)
            return {"type": "string", "length": length}
        return self.take(length).decode("utf-8", errors="replace")

    def skip_strings(self, count: int) -> None:
        """Pass over ``count`` strings, each with its length before it."""
        self.check_count(count, 8, MAX_STRINGS - self.strings, "strings")
        self.strings += count
        unpack, buffer, at, end = _U64.unpack_from, self.buffer, self.position - self.start, len(self.buffer)
        for _ in range(count):
            if at + 8 > end:
                self.position = self.start + at
                self._need(8)
                buffer, at, end = self.buffer, self.position - self.start, len(self.buffer)
            at += 8 + unpack(buffer, at)[0]
        self.position = self.start + at
        self._check_end(0)

    def _check_end(self, length: int) -> None:
        if self.position + length > self.size:
            hint = "the download may be incomplete: fetch the file again"
            raise self.damaged("ends in the middle of its header", hint)
        if self.position + length > MAX_HEADER_BYTES:
            raise self.damaged(f"has a header of more than {MAX_HEADER_BYTES >> 20} MiB")

    def _need(self, length: int) -> None:
        """Have the next ``length`` bytes in the buffer."""
        self._check_end(length)
        have = self.start + len(self.buffer)
        if self.start <= self.position and self.position + length <= have:
            return
        rest = self.buffer[self.position - self.start :] if self.position < have else b""
        begin = self.position + len(rest)
        wanted = min(max(length - len(rest), self.chunk), self.size - begin)
        data = self.source.read(begin, wanted)
        if len(data) != wanted:
            raise self.damaged(f"ends early: {len(data)} of {wanted} bytes at {begin}")
        self.buffer, self.start = rest + data, self.position
        self.chunk = _MAX_CHUNK


@dataclass(frozen=True)
class GgufModel:
    """A model in one file or a split set: metadata of the first, tensors of all."""

    metadata: Mapping[str, object]
    tensors: tuple[Tensor, ...]
    files: tuple[str, ...]


def read_model(open_file: Callable[[str], ByteRanges], name: str) -> GgufModel:
    """Read a model, the other files of its split set included.

    Args:
        open_file: opens a file that lies where the first lies, by its bare name.
        name: bare name of the file that was asked for; of a split set, any of it.

    Raises:
        DamagedFileError: a file is damaged, missing, or not of this set.
    """
    split = SplitName.parse(name)
    names = split.all_names() if split else [name]
    first = read_header(open_file(names[0]), names[0])
    stated = first.metadata.get("split.count", 1)
    if stated != len(names) and (split is not None or stated not in (0, 1)):
        raise DamagedFileError(
            f"{names[0]} says that it is one of {str(stated)[:20]} files, its name says {len(names)}",
            hint="name the files as they were published: NAME-00001-of-0000N.gguf",
            field=names[0],
        )
    headers = [first, *(read_header(open_file(other), other) for other in names[1:])]
    for index, header in enumerate(headers):
        _check_part(header, index, names)
    tensors = tuple(tensor for header in headers for tensor in header.tensors)
    if len({tensor.name for tensor in tensors}) != len(tensors):
        raise DamagedFileError(f"two files of {names[0]} hold the same tensor", field=names[0])
    return GgufModel(first.metadata, tensors, tuple(names))


def _check_part(header: GgufHeader, index: int, names: list[str]) -> None:
    if len(names) == 1:
        return
    number, count = header.metadata.get("split.no"), header.metadata.get("split.count")
    if number != index or count != len(names):
        raise DamagedFileError(
            f"{names[index]} says that it is file {str(number)[:20]} of {str(count)[:20]} (counted from 0), "
            f"not {index} of {len(names)}",
            hint="the files are of different sets; fetch them again",
            field=names[index],
        )
