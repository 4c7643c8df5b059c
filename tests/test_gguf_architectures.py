"""Every architecture of the table, and whatever its keys may hold."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kvgauge
from kvgauge.errors import KvgaugeError
from kvgauge.layers import LayerKind, Mechanism
from kvgauge.readers.gguf import read_metadata
from kvgauge.readers.gguf.rows import ArchitectureRow, architecture_row, known_architectures

#: A value of every key that any architecture reads; 6 blocks.
KEYS: dict[str, object] = {
    "block_count": 6, "context_length": 65536, "embedding_length": 512, "decoder_block_count": 6,
    "feed_forward_length": [0, 64, 0, 64, 0, 64], "leading_dense_block_count": 1, "full_attention_interval": 3,
    "attention.head_count": 8, "attention.head_count_kv": 2, "attention.key_length": 32,
    "attention.value_length": 32, "attention.sliding_window": 128,
    "attention.sliding_window_pattern": [True, False] * 3, "attention.indexer.key_length": 16,
    "attention.indexer.top_k": 8, "attention.indexer.types": [1, 0, 1, 0, 1, 0],
    "attention.compress_ratios": [0, 4, 128, 4, 128, 4], "rope.dimension_count": 16, "ssm.conv_kernel": 4,
    "ssm.inner_size": 64, "ssm.state_size": 16, "ssm.time_step_rank": 4, "ssm.group_count": 2,
    "kda.head_dim": 16, "wkv.head_size": 32, "token_shift_count": 2, "shortconv.l_cache": 3,
}  # fmt: skip
LATENT = {
    "attention.kv_lora_rank": 64, "attention.key_length": 80, "attention.value_length": 64,
    "attention.key_length_mla": 48, "attention.value_length_mla": 32, "attention.head_count_kv": 1,
    "attention.kv_lora_rank_swa": 32, "attention.key_length_swa": 48,
}  # fmt: skip

READABLE = [name for name in known_architectures() if architecture_row(name).refused is None]


def metadata(name: str, keys: dict[str, object]) -> dict[str, object]:
    return {"general.architecture": name, **{f"{name}.{key}": value for key, value in keys.items()}}


def complete(name: str) -> dict[str, object]:
    """Return metadata with all that this architecture reads."""
    row = architecture_row(name)
    keys = KEYS | (LATENT if row.latent else {})
    if row.state_layers in ("no_kv_heads", "no_kv_heads_or_ffn"):
        keys["attention.head_count_kv"] = [0, 0, keys["attention.head_count_kv"], 0, 0, 0]
    if name == "qwen4exp":
        keys["attention.compress_ratios"] = 4
    return metadata(name, keys)


@pytest.mark.parametrize("name", READABLE)
def test_every_architecture_is_read(name):
    row, result = architecture_row(name), kvgauge.size(complete(name), context=1000)
    kinds = {layer.kind for layer in result.model.architecture.layers}
    mechanisms = {layer.mechanism for layer in result.model.architecture.layers}
    assert (result.cache.total_bytes == 0) is row.no_cache
    assert "inferred" not in [note.code for note in result.notes]
    if row.state:
        assert Mechanism(row.state) in mechanisms
    if row.windows and row.windows.num_layers is None:
        assert kinds & {LayerKind.SLIDING, LayerKind.CHUNKED}
    if row.indexer:
        assert kinds & {LayerKind.INDEX, LayerKind.BLOCK_INDEX}
    if row.latent and not row.state:
        assert Mechanism.LATENT_ATTENTION in mechanisms
    assert kvgauge.explain(result).steps


@pytest.mark.parametrize("name", READABLE)
def test_no_key_of_its_shape_can_be_left_out_unnoticed(name):
    """Without a key the answer is the same, says that it used a default, or is refused."""
    keys = complete(name)
    whole = kvgauge.size(keys, context=1000)
    for key in list(keys)[1:]:
        less = {k: v for k, v in keys.items() if k != key}
        try:
            result = kvgauge.size(less, context=1000)
        except KvgaugeError as error:
            assert error.code in ("missing_field", "invalid_field", "unknown_architecture")
            continue
        if result.cache.total_bytes != whole.cache.total_bytes:
            assert key.removeprefix(f"{name}.") in _DEFINED, key


#: Keys whose absence means something by the format itself.
_DEFINED = {
    "attention.head_count_kv", "attention.sliding_window",
    "attention.sliding_window_pattern", "attention.key_length_swa", "attention.kv_lora_rank_swa",
    "attention.indexer.types", "decoder_block_count", "full_attention_interval", "token_shift_count",
    "context_length",
}  # fmt: skip

NUMBERS = st.one_of(
    st.integers(-2, 200),
    st.sampled_from([0, 1, 4, 128, 1 << 20, 1 << 40, 1 << 70, -(1 << 63)]),
    st.booleans(),
)
VALUES = st.one_of(
    NUMBERS, st.none(), st.floats(), st.text(max_size=5), st.lists(NUMBERS, max_size=8),
    st.just({"type": "number", "length": 9}), st.lists(st.lists(NUMBERS, max_size=2), max_size=8),
)  # fmt: skip


@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from([*READABLE, "newarch"]),
    st.dictionaries(st.sampled_from([*KEYS, *LATENT, "nextn_predict_layers", "num_loops", "ple.layers",
                                     "attention.shared_kv_layers", "attention.recurrent_layers"]), VALUES, max_size=6),
)  # fmt: skip
def test_any_value_is_read_or_refused(name, changes):
    base = complete(name) if name in READABLE else metadata(name, KEYS)
    start = time.perf_counter()
    try:
        architecture = read_metadata({**base, **{f"{name}.{key}": value for key, value in changes.items()}})
        kvgauge.size({**base, **{f"{name}.{key}": value for key, value in changes.items()}}, context=64)
        assert architecture.num_layers >= 1
    except KvgaugeError as error:
        assert error.message
    assert time.perf_counter() - start < 2


def test_rows_hold_known_words():
    for name in known_architectures():
        row = architecture_row(name)
        assert isinstance(row, ArchitectureRow)
        assert row.known
        assert (row.state is None) == (row.state_layers is None)
        assert row.state is None or Mechanism(row.state)
        assert row.state_layers in (None, "all", "beside", "no_kv_heads", "no_kv_heads_or_ffn", "interval")
        assert (row.state_layers == "interval") == (row.interval is not None)
        assert row.indexer is None or row.indexer.layers in ("all", "types", "after_dense", "attention")


def test_the_table_has_the_architectures_of_the_official_package():
    """Names are llama.cpp's; the package may know fewer, but no other ones."""
    constants = pytest.importorskip("gguf.constants")
    names = {name for name in constants.MODEL_ARCH_NAMES.values() if name != "mmproj"}
    assert names <= set(known_architectures())
