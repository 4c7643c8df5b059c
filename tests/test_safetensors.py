"""safetensors headers: as the format's own library reads them, and nothing hostile passes."""

from __future__ import annotations

import json
import os
import random
import struct
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub_server import File, HubServer
from kvgauge.errors import DamagedFileError, KvgaugeError
from kvgauge.sources import safetensors as ours
from kvgauge.sources.gguf_local import LocalFile
from kvgauge.sources.names import HubName
from kvgauge.sources.safetensors import TensorInfo, read_checkpoint, read_header, read_index


class Memory:
    """Bytes in memory, of a size that may be claimed larger."""

    def __init__(self, data: bytes, size: int | None = None) -> None:
        self.data, self.size = data, len(data) if size is None else size

    def read(self, offset: int, length: int) -> bytes:
        return self.data[offset : offset + length]


def packed(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(dtype: str = "BF16", shape: list | None = None, begin: int = 0, end: int = 16) -> dict:
    return {"dtype": dtype, "shape": [2, 4] if shape is None else shape, "data_offsets": [begin, end]}


def test_a_header():
    data = packed({"__metadata__": {"format": "pt"}, "b": tensor(begin=16, end=32), "a": tensor()}, bytes(32))
    found = read_header(Memory(data), "x.safetensors")
    assert found.tensors == (TensorInfo("b", "BF16", (2, 4), 16), TensorInfo("a", "BF16", (2, 4), 16))
    assert (found.num_bytes, found.metadata, found.files) == (32, {"format": "pt"}, ("x.safetensors",))
    assert found.tensors[0].num_elements == 8


@pytest.mark.parametrize(
    ("dtype", "shape", "size"),
    [("F4", [3, 4], 6), ("F6_E2M3", [4], 3), ("F8_E4M3", [0, 7], 0), ("F32", [], 4), ("BOOL", [1] * 32, 1)],
)
def test_odd_shapes_and_dtypes(dtype, shape, size):
    found = read_header(Memory(packed({"x": tensor(dtype, shape, 0, size)}, bytes(size))), "x")
    assert found.num_bytes == size


def test_as_the_formats_own_library(tmp_path: Path):
    numpy = pytest.importorskip("numpy")
    official = pytest.importorskip("safetensors.numpy")
    from safetensors import safe_open

    chance = random.Random(7)  # noqa: S311 - any shapes will do
    kinds = ["float16", "float32", "float64", "int8", "int64", "uint8", "bool", "uint16", "complex64"]
    tensors = {
        f"model.layers.{n}.w{n % 3}": numpy.zeros(
            [chance.randint(0, 5) for _ in range(n % 4)], chance.choice(kinds)
        )
        for n in range(60)
    }
    path = tmp_path / "model.safetensors"
    official.save_file(tensors, path, metadata={"format": "np"})
    found = read_header(LocalFile(path), path.name)
    with safe_open(path, "np") as theirs:
        slices = {name: theirs.get_slice(name) for name in theirs.keys()}  # noqa: SIM118 - not a dict
        expected = {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in slices.items()}
        assert found.metadata == theirs.metadata()
    assert {t.name: (t.dtype, t.shape) for t in found.tensors} == expected
    assert {t.name: t.num_bytes for t in found.tensors} == {
        name: array.nbytes for name, array in tensors.items()
    }


def test_what_the_formats_own_library_refuses_is_refused():
    theirs = pytest.importorskip("safetensors")
    for header, data in HOSTILE.values():
        file = packed(header, data)
        with pytest.raises(DamagedFileError):
            read_header(Memory(file), "x")
        if header in (b"{}x", b"[]"):
            with pytest.raises(Exception, match=r"."):
                theirs.deserialize(file)


HOSTILE = {
    "overlap": ({"a": tensor(), "b": tensor(begin=8, end=24)}, bytes(24)),
    "same place": ({"a": tensor(), "b": tensor()}, bytes(16)),
    "gap": ({"a": tensor(), "b": tensor(begin=20, end=36)}, bytes(36)),
    "not from the start": ({"a": tensor(begin=8, end=24)}, bytes(24)),
    "backwards": ({"a": tensor(begin=16, end=0)}, bytes(16)),
    "negative": ({"a": tensor(begin=-16, end=0)}, bytes(16)),
    "beyond the file": ({"a": tensor()}, bytes(15)),
    "data nobody claims": ({"a": tensor()}, bytes(17)),
    "shape too large": ({"a": tensor(shape=[1 << 40, 1 << 40])}, bytes(16)),
    "shape negative": ({"a": tensor(shape=[-2, -4])}, bytes(16)),
    "shape no numbers": ({"a": tensor(shape=[2.0, 4])}, bytes(16)),
    "shape truth values": ({"a": tensor(shape=[True, 8])}, bytes(16)),
    "too many dimensions": ({"a": tensor(shape=[1] * 99)}, bytes(16)),
    "huge number": ({"a": tensor(shape=[1 << 70])}, bytes(16)),
    "unknown dtype": ({"a": tensor("Q4_0")}, bytes(16)),
    "no dtype": ({"a": {"shape": [8], "data_offsets": [0, 16]}}, bytes(16)),
    "half a byte": ({"a": tensor("F4", [3], 0, 1)}, bytes(1)),
    "no row": ({"a": 7}, bytes(16)),
    "offsets of three": ({"a": {**tensor(), "data_offsets": [0, 16, 32]}}, bytes(16)),
    "metadata no texts": ({"__metadata__": {"a": 1}}, b""),
    "metadata no table": ({"__metadata__": []}, b""),
    "twice": (b'{"a": {"dtype":"U8","shape":[1],"data_offsets":[0,1]}, "a": {}}', b"x"),
    "no object": (b"[]", b""),
    "trailing": (b"{}x", b""),
    "not UTF-8": (b'{"\xff": 1}', b""),
    "deep": (b'{"a":' + b"[" * 100_000, b""),
    "blank": (b"   ", b""),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("padding", [0, 2 << 20])
def test_hostile_headers(name, padding):
    """Small ones and, by the other way of parsing, large ones."""
    header, data = HOSTILE[name]
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * padding
    begin = time.monotonic()
    with pytest.raises(DamagedFileError) as caught:
        read_header(Memory(packed(text, data)), "x.safetensors")
    assert time.monotonic() - begin < 2
    assert "x.safetensors" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("length", [1 << 63, (1 << 64) - 1, 100_000_001, 17, 3, 0])
def test_lengths_that_lie(length):
    with pytest.raises(DamagedFileError):
        read_header(Memory(packed(b"{ }", bytes(5), length)), "x")


@pytest.mark.parametrize("size", range(8))
def test_no_room_for_a_length(size):
    with pytest.raises(DamagedFileError, match="ends before its header"):
        read_header(Memory(bytes(size)), "x")


def test_more_entries_than_any_model():
    text = b"{" + b",".join(b'"%d":{}' % n for n in range(2_200_000)) + b"}"
    begin = time.monotonic()
    with pytest.raises(DamagedFileError, match="more entries"):
        read_header(Memory(packed(text)), "x")
    assert time.monotonic() - begin < 2


@given(st.binary(max_size=300))
def test_arbitrary_bytes(data):
    for file in (data, packed(data)):
        try:
            read_header(Memory(file), "x")
        except KvgaugeError as error:
            assert error.message


def test_every_truncation_is_refused():
    whole = packed({"a": tensor(), "b": tensor(begin=16, end=32)}, bytes(32))
    for size in range(len(whole)):
        with pytest.raises(DamagedFileError):
            read_header(Memory(whole[:size]), "x")


# A split model


def split(tmp_path: Path | None = None) -> tuple[dict[str, bytes], bytes]:
    files = {
        "model-00001-of-00002.safetensors": packed({"a": tensor()}, bytes(16)),
        "model-00002-of-00002.safetensors": packed({"b": tensor("F32", [2], 0, 8)}, bytes(8)),
    }
    names = sorted(files)
    index = json.dumps(
        {"metadata": {"total_size": 24}, "weight_map": {"a": names[0], "b": names[1]}}
    ).encode()
    return files, index


def test_a_split_model():
    files, index = split()
    found = read_checkpoint(lambda name: Memory(files[name]), index)
    assert [t.name for t in found.tensors] == ["a", "b"]
    assert (found.num_bytes, found.files) == (24, tuple(sorted(files)))
    single = read_checkpoint(lambda name: Memory({"model.safetensors": packed({})}[name]), None)
    assert single.tensors == ()


def test_a_split_model_that_does_not_fit():
    files, index = split()
    first, second = sorted(files)
    with pytest.raises(DamagedFileError, match="both hold a"):
        read_checkpoint(lambda _: Memory(files[first]), index)
    wrong = json.dumps({"weight_map": {"a": second, "b": first}}).encode()
    with pytest.raises(DamagedFileError, match="does not hold a, which the index"):
        read_checkpoint(lambda name: Memory(files[name]), wrong)


@pytest.mark.parametrize(
    "index",
    [
        b"", b"[]", b"{}", b'{"weight_map": {}}', b'{"weight_map": []}', b'{"weight_map": {"a": 7}}',
        b'{"weight_map": {"a": "../x.safetensors"}}', b'{"weight_map": {"a": "/x.safetensors"}}',
        b'{"weight_map": {"a": "x\\\\y.safetensors"}}', b'{"weight_map": {"a": "https://x/y.safetensors"}}',
        b'{"weight_map": {"a": ".safetensors"}}', b'{"weight_map": {"a": "x.bin"}}',
        json.dumps({"weight_map": {str(n): f"{n}.safetensors" for n in range(5000)}}).encode(),
    ],
)  # fmt: skip
def test_hostile_indexes(index):
    with pytest.raises(DamagedFileError):
        read_index(index)


# On the hub


def test_a_terabyte_on_the_hub_costs_its_headers(monkeypatch, tmp_path):
    from huggingface_hub import constants

    from kvgauge.sources.hub import connect

    server = HubServer()
    monkeypatch.setattr(constants, "ENDPOINT", server.url)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    rows = {f"layers.{n}.w": tensor("BF16", [1 << 16, 1 << 13], n << 30, (n + 1) << 30) for n in range(64)}
    header = packed(rows)
    names = [f"model-{n:05}-of-00016.safetensors" for n in range(1, 17)]
    server.add("org/huge", {name: File(header, len(header) + (64 << 30), linked=True) for name in names})
    repository = connect(HubName("org/huge"))
    found = [read_header(repository.open(name), name) for name in names]
    server.close()
    assert sum(part.num_bytes for part in found) == 1 << 40
    assert len(server.requests) == 32  # one answer of the hub and one of its storage a file
    assert server.sent_bytes < 3 << 20


def test_a_local_file_is_not_read_whole(tmp_path):
    header = packed({"a": tensor("U8", [1 << 40], 0, 1 << 40)})
    path = tmp_path / "model.safetensors"
    path.write_bytes(header)
    os.truncate(path, len(header) + (1 << 40))
    assert read_header(LocalFile(path), path.name).num_bytes == 1 << 40
    assert path.name == ours.SINGLE_FILE
