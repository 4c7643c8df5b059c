"""safetensors headers: names, dtypes, shapes and sizes of tensors, never their data.

Format: github.com/huggingface/safetensors, ``README.md``: eight bytes little endian of header length, a JSON
object, the data. A split model has ``*.safetensors.index.json``, which says in which file a tensor lies.
Files are read by ranges, local or remote; every claim of a header is held against the size of the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from kvgauge.errors import DamagedFileError, one_line
from kvgauge.sources.json_text import parse_object

#: The most that the format lets a header have.
MAX_HEADER_BYTES = 100_000_000
#: Commas and colons of a header: some 300,000 tensors. What a header may make of the memory.
MAX_SEPARATORS = 1 << 22
MAX_DIMENSIONS = 32
MAX_FILES = 4096
INDEX_FILE, SINGLE_FILE = "model.safetensors.index.json", "model.safetensors"

#: Dtype word of the format -> bits of an element.
DTYPE_BITS: Mapping[str, int] = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
    "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64, "F8_E4M3": 8, "F8_E5M2": 8,
    "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip

_HINT = "fetch the file again"


class ByteRanges(Protocol):
    """A file that is read by ranges, local or remote."""

    @property
    def size(self) -> int:
        """Its size in bytes."""

    def read(self, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``; fewer where the file ends."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor: its name, dtype word of the format, shape, and bytes of data.

    Args:
        begin: where its data lies in its file, counted from the end of the header.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    num_bytes: int
    begin: int = field(default=0, compare=False)

    @property
    def num_elements(self) -> int:
        """Elements, 1 for a scalar."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The tensors of one file or a split set, and what the files say of themselves."""

    tensors: tuple[TensorInfo, ...]
    files: tuple[str, ...]
    metadata: Mapping[str, str]

    @property
    def num_bytes(self) -> int:
        """Bytes of all tensors' data."""
        return sum(tensor.num_bytes for tensor in self.tensors)


def read_header(source: ByteRanges, where: str) -> Checkpoint:
    """Read one file's header.

    Args:
        where: the file's name, for messages.

    Raises:
        DamagedFileError: the header is too long, no JSON, or contradicts itself or the file.
    """
    start = source.read(0, 8)
    if len(start) < 8:
        raise _damaged(where, "ends before its header")
    length = int.from_bytes(start, "little")
    if length > MAX_HEADER_BYTES:
        raise _damaged(where, f"claims a header of {length} bytes, more than the format allows")
    if 8 + length > source.size:
        raise _damaged(where, f"claims a header of {length} bytes and has {source.size}")
    text = source.read(8, length)
    if len(text) != length:
        raise _damaged(where, "ends inside its header")
    header = _parsed(text, where)
    metadata = _metadata(header.pop("__metadata__", None), where)
    rows = [_tensor(name, row, where) for name, row in header.items()]
    _check_layout([offsets for _, offsets in rows], source.size - 8 - length, where)
    return Checkpoint(tuple(tensor for tensor, _ in rows), (where,), metadata)


def read_checkpoint(open_file: Callable[[str], ByteRanges], index: bytes | None) -> Checkpoint:
    """Read a model: ``model.safetensors``, or every file that an index names.

    Args:
        open_file: opens a file that lies where the index lies, by its bare name.
        index: content of ``model.safetensors.index.json``, or None where the model is one file.

    Raises:
        DamagedFileError: a file is damaged, or holds other tensors than the index says.
    """
    if index is None:
        return read_header(open_file(SINGLE_FILE), SINGLE_FILE)
    file_of = read_index(index)
    files = tuple(sorted(set(file_of.values())))
    return joined([read_header(open_file(file), file) for file in files], file_of)


def joined(parts: Sequence[Checkpoint], file_of: Mapping[str, str] | None = None) -> Checkpoint:
    """Join the headers of a split model.

    Args:
        parts: one for each file, in the order of names.
        file_of: tensor name -> file, as an index says; None where there is none.

    Raises:
        DamagedFileError: two files hold one tensor, or a file lacks what the index puts there.
    """
    found: dict[str, str] = {}
    for part in parts:
        for tensor in part.tensors:
            if tensor.name in found:
                raise _damaged(part.files[0], f"and {found[tensor.name]} both hold {_about(tensor.name)}")
            found[tensor.name] = part.files[0]
    for name, file in (file_of or {}).items():
        if found.get(name) != file:
            raise _damaged(file, f"does not hold {_about(name)}, which the index puts there")
    metadata = {key: value for part in reversed(parts) for key, value in part.metadata.items()}
    tensors = tuple(tensor for part in parts for tensor in part.tensors)
    return Checkpoint(tensors, tuple(file for part in parts for file in part.files), metadata)


class Index(NamedTuple):
    """What an index says.

    Args:
        file_of: tensor name -> bare file name.
        total_bytes: ``metadata.total_size``, the bytes of all tensors; None where it says none.
    """

    file_of: Mapping[str, str]
    total_bytes: int | None


def read_index(data: bytes) -> Mapping[str, str]:
    """Return tensor name -> bare file name of an index.

    Raises:
        DamagedFileError: it is no index, or names a file outside its folder.

    >>> read_index(b'{"weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors"}}')
    {'lm_head.weight': 'model-00001-of-00002.safetensors'}
    """
    return read_whole_index(data).file_of


def read_whole_index(data: bytes, where: str = INDEX_FILE, ending: str = ".safetensors") -> Index:
    """Return what an index says.

    Args:
        where: the index's own name, for messages.
        ending: of the files that it may name.

    Raises:
        DamagedFileError: it is no index, or names a file outside its folder.
    """
    value = _parsed(data, where)
    file_of = value.get("weight_map")
    if not isinstance(file_of, dict) or not file_of:
        raise _damaged(where, "has no weight_map")
    good: set[str] = set()
    for name, file in file_of.items():
        if not isinstance(file, str) or (file not in good and not _is_bare_name(file, ending)):
            raise _damaged(where, f"puts {_about(name)} in something that is no file beside it")
        good.add(file)
    if len(set(file_of.values())) > MAX_FILES:
        raise _damaged(where, f"names more than {MAX_FILES} files")
    return Index(file_of, _total_size(value.get("metadata")))


def _total_size(metadata: object) -> int | None:
    """Return the stated total; some writers made it a float."""
    size = metadata.get("total_size") if isinstance(metadata, dict) else None
    if isinstance(size, float) and size.is_integer():
        size = int(size)
    return size if type(size) is int and 0 < size < 1 << 63 else None


def _is_bare_name(file: str, ending: str) -> bool:
    plain = not any(c in file for c in "/\\:\0") and file.isprintable()
    return plain and file.endswith(ending) and not file.startswith(".") and len(file) <= 255


def _parsed(text: bytes, where: str) -> dict[str, object]:
    """Return a header's object: of config size through the careful parser, else with its limits of shape."""
    if not text.lstrip().startswith(b"{"):
        raise _damaged(where, "has a header that is no JSON object")
    if len(text) <= 1 << 20:
        return parse_object(text, where)
    if text.count(b",") + text.count(b":") > MAX_SEPARATORS:
        raise _damaged(where, "has a header of more entries than any model")
    return _parsed_large(text, where)


def _parsed_large(text: bytes, where: str) -> dict[str, object]:
    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=_unique)
    except _DuplicateNameError as error:
        raise _damaged(where, f"has the name {error.args[0]!r} twice") from None
    except UnicodeDecodeError:
        raise _damaged(where, "has a header that is not UTF-8") from None
    except (ValueError, RecursionError):
        raise _damaged(where, "has a header that is not JSON") from None
    if not isinstance(value, dict):
        raise _damaged(where, "has a header that is no JSON object")
    return value


class _DuplicateNameError(Exception):
    pass


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise _DuplicateNameError(one_line(key, 80))
        result[key] = value
    return result


def _metadata(value: object, where: str) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise _damaged(where, "has __metadata__ that is no table of texts")
    return value


def _tensor(name: str, row: object, where: str) -> tuple[TensorInfo, tuple[int, int]]:
    """Return a tensor and where its data lies, counted from the end of the header."""
    fields = row if isinstance(row, dict) else {}
    dtype, shape, offsets = fields.get("dtype"), fields.get("shape"), fields.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
        raise _damaged(
            where, f"gives {_about(name)} the dtype {one_line(str(dtype), 20)}, which the format lacks"
        )
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or not all(map(_is_count, shape)):
        raise _damaged(where, f"gives {_about(name)} a shape that is none")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        raise _damaged(where, f"gives {_about(name)} no place for its data")
    begin, end = offsets
    bits = math.prod(shape) * DTYPE_BITS[dtype]
    if bits % 8 or end - begin != bits // 8:
        raise _damaged(where, f"gives {_about(name)} {end - begin} bytes, its shape needs {bits / 8:g}")
    return TensorInfo(name, dtype, tuple(shape), end - begin, begin), (begin, end)


def _about(name: str) -> str:
    return one_line(name, 80)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _check_layout(places: Iterable[tuple[int, int]], data_bytes: int, where: str) -> None:
    """Data lies without gaps and overlaps, from the end of the header to the end of the file."""
    reached = 0
    for begin, end in sorted(places):
        if begin != reached:
            raise _damaged(
                where, "has data that overlap" if begin < reached else "has a gap between its data"
            )
        reached = end
    if reached != data_bytes:
        raise _damaged(where, f"holds {data_bytes} bytes of data, its header describes {reached}")


def _damaged(where: str, what: str) -> DamagedFileError:
    return DamagedFileError(f"{where} {what}", hint=_HINT, field=where)
