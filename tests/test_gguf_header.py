"""The header reader: what the official package writes, what hostile files claim."""

from __future__ import annotations

import struct
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gguf_files import ARRAY, QWEN3, STRING, TENSORS, UINT32, gguf, tensor_row, text, typed
from kvgauge.errors import DamagedFileError, KvgaugeError
from kvgauge.readers.gguf import read_metadata
from kvgauge.sources.gguf import TENSOR_TYPES, read_header


class Bytes:
    """Bytes that are read by ranges and count what is asked of them."""

    def __init__(self, data: bytes, size: int | None = None) -> None:
        self.data = data
        self.size = len(data) if size is None else size
        self.asked: list[tuple[int, int]] = []

    def read(self, offset: int, length: int) -> bytes:
        self.asked.append((offset, length))
        return self.data[offset : offset + length]


def header(data: bytes, size: int | None = None):
    return read_header(Bytes(data, size), "model.gguf")


def test_a_valid_file():
    read = header(gguf())
    assert read.version == 3
    assert read.metadata == QWEN3
    assert [(t.name, t.dtype, t.shape, t.num_bytes) for t in read.tensors] == [
        (name, "f16", shape, 2 * shape[0] * shape[1]) for name, shape in TENSORS
    ]
    assert header(gguf(version=2)).metadata == QWEN3


def test_every_value_type():
    values = {
        0: 200,
        1: -3,
        2: 60_000,
        3: -300,
        4: 1 << 31,
        5: -5,
        6: 0.5,
        10: 1 << 40,
        11: -(1 << 40),
        12: 0.25,
    }
    formats = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 10: "Q", 11: "q", 12: "d"}
    raw = [
        text(f"k{kind}") + struct.pack(f"<I{formats[kind]}", kind, value) for kind, value in values.items()
    ]
    raw += [
        text(f"a{kind}") + struct.pack(f"<IIQ2{formats[kind]}", ARRAY, kind, 2, value, value)
        for kind, value in values.items()
    ]
    raw += [text("yes") + typed(True), text("flags") + typed([True, False]), text("none") + typed([])]
    read = header(gguf({}, (), raw_entries=raw)).metadata
    assert all(
        read[f"k{kind}"] == value and read[f"a{kind}"] == [value] * 2 for kind, value in values.items()
    )
    assert (read["yes"], read["flags"], read["none"]) == (True, [True, False], [])


def test_what_is_large_is_passed_over_and_counted():
    tokens = [f"token{i}" for i in range(300_000)]
    values = {**QWEN3, "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.scores": [0.0] * 300_000,
              "tokenizer.chat_template": "x" * 100_000, "qwen3.last": 7}  # fmt: skip
    source = Bytes(gguf(values))
    read = read_header(source, "model.gguf")
    assert read.metadata["tokenizer.ggml.tokens"] == {"type": "string", "length": 300_000}
    assert read.metadata["tokenizer.ggml.scores"] == {"type": "number", "length": 300_000}
    assert read.metadata["tokenizer.chat_template"] == {"type": "string", "length": 100_000}
    assert read.metadata["qwen3.last"] == 7
    assert len(source.asked) <= 3
    assert len(read.tensors) == len(TENSORS)


def test_a_header_is_read_in_few_requests():
    """Not one byte of tensor data beyond the first chunk, however large the file."""
    data = gguf(tensors=[*TENSORS, ("output.weight", (1 << 20, 1 << 18))], data=0)
    source = Bytes(data + bytes(1 << 21), size=1 << 42)
    read = read_header(source, "model.gguf")
    assert len(source.asked) == 1
    assert source.asked[0][1] <= 1 << 20
    assert read.tensors[-1].num_bytes == 1 << 39


def test_tensor_types_are_those_of_the_official_package():
    constants = pytest.importorskip("gguf.constants")
    for kind, (block, size) in constants.GGML_QUANT_SIZES.items():
        if kind.name == "Q8_1":  # 36 in ggml's own table since both of its scales are 16-bit; in no file
            continue
        name, *sizes = TENSOR_TYPES[kind.value]
        assert (name, sizes) == (kind.name.lower(), [block, size])


def test_files_of_the_official_writer(tmp_path: Path):
    official, np = pytest.importorskip("gguf"), pytest.importorskip("numpy")
    path = tmp_path / "model.gguf"
    writer = official.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_head_count([4, 8])
    writer.add_head_count_kv(4)
    writer.add_embedding_length(64)
    writer.add_key_length(16)
    writer.add_value_length(16)
    writer.add_token_list([b"a", b"\xff\xfe", "ü".encode()])
    writer.add_token_scores([0.0, 1.0, 2.0])
    writer.add_bool("llama.flag", True)
    writer.add_float64("llama.double", 0.1)
    writer.add_int64("llama.long", -1)
    writer.add_custom_alignment(64)
    writer.add_tensor("blk.0.attn_k.weight", np.zeros((64, 64), dtype=np.float16))
    writer.add_tensor("odd", np.zeros(3, dtype=np.float32))
    writer.add_tensor("q", np.zeros((2, 34), dtype=np.uint8), raw_dtype=official.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    read = header(path.read_bytes())
    theirs = official.GGUFReader(path)
    assert read.alignment == 64
    assert read.data_offset == theirs.data_offset
    ours = [(t.name, t.dtype, t.shape, read.data_offset + t.offset, t.num_bytes) for t in read.tensors]
    assert ours == [
        (t.name, t.tensor_type.name.lower(), tuple(int(n) for n in t.shape), t.data_offset, t.n_bytes)
        for t in theirs.tensors
    ]
    for key, value in read.metadata.items():
        if not isinstance(value, dict):
            assert theirs.fields[key].contents() == value, key
    assert read.metadata["tokenizer.ggml.tokens"]["length"] == 3
    assert read_metadata(read.metadata, {t.name: t.shape for t in read.tensors}).num_layers == 2


HUGE = 1 << 63
CLAIMS = {
    "no GGUF": b"GGML" + gguf()[4:],
    "empty": b"",
    "version 1": gguf(version=1),
    "version 9": gguf(version=9),
    "big endian": b"GGUF" + struct.pack(">I", 3) + gguf()[8:],
    "2^63 entries": gguf(num_entries=HUGE),
    "2^63 tensors": gguf(num_tensors=HUGE),
    "2^64 - 1 tensors": gguf(num_tensors=(1 << 64) - 1),
    "more entries than there are": gguf(num_entries=len(QWEN3) + 1000),
    "a key of 2^60 bytes": gguf(raw_entries=[struct.pack("<Q", 1 << 60) + b"key"]),
    "a text of 2^60 bytes": gguf(raw_entries=[text("k") + struct.pack("<IQ", STRING, 1 << 60)]),
    "a text of 2^64 - 1 bytes": gguf(raw_entries=[text("k") + struct.pack("<IQ", STRING, (1 << 64) - 1)]),
    "2^62 numbers": gguf(raw_entries=[text("k") + struct.pack("<IIQ", ARRAY, UINT32, 1 << 62)]),
    "2^62 texts": gguf(raw_entries=[text("k") + struct.pack("<IIQ", ARRAY, STRING, 1 << 62)]),
    "a text in a list of 2^60 bytes": gguf(
        raw_entries=[text("k") + struct.pack("<IIQQ", ARRAY, STRING, 1, 1 << 60)]
    ),
    "2^62 lists": gguf(raw_entries=[text("k") + struct.pack("<IIQ", ARRAY, ARRAY, 1 << 62)]),
    "lists in lists": gguf(
        raw_entries=[text("k") + struct.pack("<I", ARRAY) + struct.pack("<IQ", ARRAY, 1) * 50]
    ),
    "an unknown type": gguf(raw_entries=[text("k") + struct.pack("<I", 13)]),
    "a list of an unknown type": gguf(raw_entries=[text("k") + struct.pack("<IIQ", ARRAY, 99, 0)]),
    "a truth value of 7": gguf(raw_entries=[text("k") + struct.pack("<IB", 7, 7)]),
    "a key twice": gguf([*QWEN3.items(), ("qwen3.block_count", 4)]),
    "a key that is no text": gguf(raw_entries=[text(b"\xff\xfe") + typed(1)]),
    "a tensor twice": gguf(tensors=[TENSORS[0], TENSORS[0]]),
    "a tensor name of 2^60 bytes": gguf(rows=[struct.pack("<Q", 1 << 60)], num_tensors=1),
    "five dimensions": gguf(rows=[tensor_row("t", (1, 1, 1, 1, 1), 0)]),
    "2^31 dimensions": gguf(rows=[text("t") + struct.pack("<I", 1 << 31)]),
    "a tensor of an unknown type": gguf(rows=[tensor_row("t", (32,), 0, kind=77)]),
    "a removed type": gguf(rows=[tensor_row("t", (32,), 0, kind=4)]),
    "more elements than 2^63": gguf(rows=[tensor_row("t", (1 << 40, 1 << 40), 0)]),
    "a negative dimension": gguf(rows=[tensor_row("t", ((1 << 64) - 32,), 0)]),
    "a row that holds no whole block": gguf(rows=[tensor_row("t", (33, 2), 0, kind=8)]),
    "tensors that overlap": gguf(rows=[tensor_row("a", (64, 2), 0), tensor_row("b", (64, 2), 64)]),
    "tensors at one place": gguf(rows=[tensor_row("a", (64, 2), 0), tensor_row("b", (64, 2), 0)]),
    "an offset that is not aligned": gguf(rows=[tensor_row("a", (64,), 5)]),
    "an offset beyond the file": gguf(rows=[tensor_row("a", (64,), 1 << 40)]),
    "a negative offset": gguf(rows=[tensor_row("a", (64,), (1 << 64) - 32)]),
    "an alignment of 0": gguf({**QWEN3, "general.alignment": 0}),
    "an alignment of 48": gguf({**QWEN3, "general.alignment": 48}),
    "an alignment of 2^31": gguf({**QWEN3, "general.alignment": 1 << 31}),
    "an alignment in words": gguf({**QWEN3, "general.alignment": "32"}),
}


@pytest.mark.parametrize("data", CLAIMS.values(), ids=list(CLAIMS))
def test_impossible_claims_are_refused(data):
    tracemalloc.start()
    start = time.perf_counter()
    with pytest.raises(DamagedFileError) as caught:
        header(data)
    assert time.perf_counter() - start < 1
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()
    assert "model.gguf" in caught.value.message
    assert caught.value.hint


def test_a_claim_within_a_huge_file_is_bounded_too():
    """A file that says it has 2^60 bytes still can't have everything walked over."""
    for raw in (
        struct.pack("<IQ", STRING, 1 << 59),
        struct.pack("<IIQ", ARRAY, UINT32, 1 << 50),
        struct.pack("<IIQ", ARRAY, STRING, 1 << 50),
        struct.pack("<IIQ", ARRAY, ARRAY, 1 << 50),
    ):
        with pytest.raises(DamagedFileError):
            header(gguf(raw_entries=[text("k") + raw]), size=1 << 60)
    for claim in ({"num_entries": 1 << 40}, {"num_tensors": 1 << 40}):
        with pytest.raises(DamagedFileError):
            header(gguf(**claim), size=1 << 60)


def test_a_file_cut_off_anywhere_is_refused():
    data = gguf({**QWEN3, "tokenizer.ggml.tokens": ["a", "bc"], "qwen3.list": [1, 2, 3]})
    for end in range(len(data)):
        with pytest.raises(DamagedFileError):
            header(data[:end])
    assert header(data)


def test_a_source_that_gives_less_than_asked_is_refused():
    with pytest.raises(DamagedFileError, match="ends early"):
        header(gguf()[:100], size=len(gguf()))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400))
def test_random_bytes_are_refused(data):
    for start in (b"", b"GGUF", b"GGUF\x03\0\0\0"):
        with pytest.raises(DamagedFileError):
            header(start + data)


_VALID = gguf({**QWEN3, "tokenizer.ggml.tokens": ["a", "bc"], "qwen3.list": [1, 2, 3], "qwen3.flag": True})


@settings(max_examples=600, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, len(_VALID) - 1), st.binary(min_size=1, max_size=8)), min_size=1, max_size=4
    )
)
def test_mutated_files_are_read_or_refused(edits):
    data = bytearray(_VALID)
    for at, new in edits:
        data[at : at + len(new)] = new
    try:
        read = header(bytes(data[: len(_VALID)]))
        read_metadata(read.metadata, {t.name: t.shape for t in read.tensors})
    except KvgaugeError as error:
        assert error.message.isprintable()


def test_every_flipped_bit_is_read_or_refused():
    end = len(_VALID) - 64 * 8 * 2
    for at in range(0, end, 3):
        data = bytearray(_VALID)
        data[at] ^= 1 << (at % 8)
        try:
            read = header(bytes(data))
            read_metadata(read.metadata, {t.name: t.shape for t in read.tensors})
        except KvgaugeError as error:
            assert error.code in ("damaged_file", "invalid_field", "missing_field", "unknown_architecture")
