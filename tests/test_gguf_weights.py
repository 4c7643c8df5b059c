"""Weights of a GGUF from its tensor table, and where llama.cpp puts them.

``../shared`` has the buffers of 44 models, on the CPU and with all layers on one device (f16 matrices).
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvgauge
from gguf_files import gguf
from kvgauge.engines.llamacpp_weights import DEVICE_ALIGN_BYTES, GgufLayout, gguf_placement
from kvgauge.ggml_mixes import ggml_format
from kvgauge.gguf_weights import gguf_layout, gguf_weights, mix_of_metadata, stored_from_gguf
from kvgauge.sources.gguf import TENSOR_TYPES, GgufModel, Tensor, read_model
from kvgauge.stored_weights import StoredWeights
from kvgauge.weights import Part
from support import SHARED
from test_gguf_tensors import PUBLISHED, metadata

ORACLE = SHARED / "data" / "oracle"
RECORDS = {record["model"]: record for record in PUBLISHED}
#: Matrices that were f32 in the recorded runs, where a mix makes them f16.
WIDE_IN_THE_RUNS = {"deepseek4": ("hc_", "compressor"), "qwen35moe": ("ssm_alpha",)}


def table_of(stored: StoredWeights) -> tuple[Tensor, ...]:
    """Return a tensor table that holds what ``stored`` says."""
    rows, offset = [], 0
    for family in (*stored.families, *stored.mtp_families):
        own = family.family
        shape = (own.num_experts, *own.shape) if own.stacked else own.shape
        size = family.format.stored_bytes(shape)
        for layer in own.layers or (-1,):
            name = own.name.replace("{layer}", str(layer))
            rows.append(Tensor(name, family.format.name, tuple(reversed(shape)), offset, size))
            offset += -(-size // 32) * 32
    return tuple(rows)


def keys_of(name: str) -> dict:
    return metadata(RECORDS[name]["architecture"], RECORDS[name]["keys"])


@pytest.mark.parametrize("record", PUBLISHED, ids=lambda r: r["model"])
def test_a_table_says_what_the_mix_says(record):
    keys = metadata(record["architecture"], record["keys"])
    priced = mix_of_metadata(keys, "q4_k_m", tied=record["tied"])
    read = stored_from_gguf(table_of(priced), keys)
    assert read.num_bytes == priced.num_bytes == record["mixes"]["q4_k_m"][0]
    assert read.mtp_bytes == priced.mtp_bytes
    assert read.num_parameters == record["num_parameters"]
    assert read.num_active_parameters == priced.num_active_parameters
    assert read.by_part(mtp=True) == priced.by_part(mtp=True)
    assert read.source == "gguf"


@pytest.mark.parametrize("name", ["qwen3-30b-a3b", "gemma-4-e2b", "glm-5", "rwkv6-7b", "gpt-oss-120b"])
def test_a_table_is_priced_in_another_mix(name):
    record, keys = RECORDS[name], keys_of(name)
    table = table_of(mix_of_metadata(keys, "q4_k_m", tied=record["tied"]))
    for mix in ("q8_0", "q2_k", "iq4_xs"):
        stored = gguf_weights(keys, table, mix=mix)
        assert stored.num_bytes == record["mixes"][mix][0]
        assert stored.num_parameters == record["num_parameters"]


def test_a_file_and_a_split_set_read_alike():
    values = {**keys_of("qwen3-0.6b"), "general.file_type": 1}
    values = {key: value for key, value in values.items() if not isinstance(value, list)}
    tensors = [
        ("token_embd.weight", (64, 100)),
        ("blk.0.attn_k.weight", (64, 32)),
        ("output_norm.weight", (64,)),
    ]
    data = gguf(values, tensors)

    class File:
        size = len(data)

        def read(self, offset: int, length: int) -> bytes:
            return data[offset : offset + length]

    model: GgufModel = read_model(lambda name: File(), "a.gguf")
    stored = gguf_weights(model.metadata, model.tensors)
    assert stored.num_bytes == 2 * (6400 + 2048 + 64)
    assert [(part.part, part.dtype) for part in stored.by_part()] == [
        (Part.EMBEDDING, "f16"), (Part.ATTENTION, "f16"), (Part.NORM, "f16"),
    ]  # fmt: skip
    assert stored.scheme == "f16"


def test_metadata_alone_is_priced_in_the_mix_that_it_names():
    keys = keys_of("llama-3.1-8b")
    assert gguf_weights(keys) is None
    assert gguf_weights({**keys, "general.file_type": 15}).num_bytes == 4_912_898_048
    assert gguf_weights({**keys, "general.file_type": 15}, mix="q8_0").num_bytes == 8_532_934_656
    assert gguf_weights({**keys, "general.file_type": 999}) is None
    assert gguf_weights({"general.architecture": "mystery", "general.file_type": 15}) is None


def test_experts_of_old_files_are_one_family():
    keys = {"general.architecture": "llama", "llama.expert_count": 4, "llama.expert_used_count": 2,
            "llama.block_count": 2}  # fmt: skip
    rows = [
        Tensor(f"blk.{layer}.ffn_gate.{expert}.weight", "q4_0", (64, 32), 0, 1152)
        for layer in range(2)
        for expert in range(4)
    ]
    (stored,) = stored_from_gguf(rows, keys).families
    assert stored.family.name == "blk.{layer}.ffn_gate.{expert}.weight"
    assert (stored.family.num_experts, stored.family.num_active_experts, stored.family.part) == (
        4,
        2,
        Part.EXPERTS,
    )
    assert stored.num_bytes == 8 * 1152


def test_names_that_nobody_knows_are_kept():
    rows = [Tensor("mystery", "q8_0", (32,), 0, 34), Tensor("blk.0.x_norm.weight", "f32", (7,), 0, 28)]
    stored = stored_from_gguf(rows, {"general.architecture": "x"})
    assert [family.family.part for family in stored.families] == [Part.OTHER, Part.NORM]
    assert stored.num_bytes == 64 + 32  # tensors start at multiples of 32 bytes
    assert stored.scheme == "q8_0"


@pytest.mark.skipif(not ORACLE.exists(), reason="../shared is not there")
def test_buffers_of_recorded_runs():
    runs = {}
    for line in (ORACLE / "llamacpp_v0.5.0_offload.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if "buffers" in row["result"]:
            runs[row["model"]] = {b["buft"]: b["model"] for b in row["result"]["buffers"]}
    for line in (ORACLE / "llamacpp_v0.5.0_models.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        keys = metadata(row["arch"], row["hparams"])
        stored = as_in_the_runs(mix_of_metadata(keys, "f16", tied=row["tied_output"]), row["arch"])
        align = DEVICE_ALIGN_BYTES["rpc"]
        alone = gguf_placement(stored, gguf_layout(keys), offloaded=0, device_align_bytes=align)
        shared = gguf_placement(stored, gguf_layout(keys), device_align_bytes=align)
        assert alone.host_bytes == row["model_bytes"]["CPU"]
        assert not any(alone.device_bytes)
        assert {"CPU": shared.host_bytes, "RPC0": shared.device_bytes[0]} == runs[row["model"]]


def as_in_the_runs(stored: StoredWeights, architecture: str) -> StoredWeights:
    wide = WIDE_IN_THE_RUNS.get(architecture, ())
    families = tuple(
        replace(f, format=ggml_format("f32")) if any(word in f.family.name for word in wide) else f
        for f in stored.families
    )
    return replace(stored, families=families)


#: Bytes of the CPU and of one device with all layers, f16 matrices, from recorded runs.
PLACED = {
    "llama-3.1-8b": (16_061_054_976, 1_050_673_152, 15_010_381_824),
    "qwen3-0.6b": (1_192_230_912, 311_164_928, 1_192_230_912),
    "gemma-3n-e2b": (9_992_546_944, 5_105_254_400, 4_887_292_544),
    "gemma-4-e2b": (10_063_017_984, 5_502_926_848, 4_560_091_136),
    "starcoder-15b": (31_040_364_544, 704_643_072, 30_939_701_248),
    "glm-5": (1_488_060_696_576, 1_903_165_440, 1_486_157_531_136),
    "mimo-v2-flash": (617_667_437_568, 1_249_902_592, 616_417_534_976),
}


@pytest.mark.parametrize("name", PLACED)
def test_host_and_device(name):
    keys = keys_of(name)
    stored = mix_of_metadata(keys, "f16", tied=RECORDS[name]["tied"])
    alone = gguf_placement(stored, gguf_layout(keys), offloaded=0)
    shared = gguf_placement(stored, gguf_layout(keys), device_align_bytes=32)
    assert (alone.host_bytes, shared.host_bytes, *shared.device_bytes) == PLACED[name]


def test_blocks_leave_the_host_from_the_end():
    keys = keys_of("llama-3.1-8b")
    stored = mix_of_metadata(keys, "q8_0")
    placed = [gguf_placement(stored, gguf_layout(keys), offloaded=n) for n in range(34)]
    assert placed[0].device_bytes == (0,)
    assert (
        placed[33]
        == gguf_placement(stored, gguf_layout(keys))
        == gguf_placement(stored, gguf_layout(keys), offloaded=99)
    )
    assert {p.total_bytes for p in placed} == {stored.num_bytes}  # an own head moves, it is not copied
    head = RECORDS["llama-3.1-8b"]["mixes"]["q8_0"][3]
    assert placed[1].device_bytes[0] - head == 4096 * 4  # the output and its norm go first
    steps = {b.device_bytes[0] - a.device_bytes[0] for a, b in pairwise(placed[1:])}
    assert len(steps) == 1


def test_devices_take_blocks_by_their_shares():
    keys = keys_of("llama-3.1-8b")
    stored = mix_of_metadata(keys, "q8_0")
    two = gguf_placement(stored, gguf_layout(keys), shares=(1, 1))
    assert sum(two.device_bytes) == gguf_placement(stored, gguf_layout(keys)).device_bytes[0]
    assert two.device_bytes[1] > two.device_bytes[0]  # 16 blocks and the output against 17
    uneven = gguf_placement(stored, gguf_layout(keys), shares=(3, 1))
    assert uneven.device_bytes[0] > 2 * uneven.device_bytes[1]


@pytest.mark.parametrize("wrong", [{"offloaded": -1}, {"shares": ()}, {"shares": (0, 0)}, {"shares": (1, -1)},
                                   {"shares": (float("nan"),)}])  # fmt: skip
def test_impossible_placements_are_refused(wrong):
    stored = mix_of_metadata(keys_of("gemma-7b"), "q8_0")
    with pytest.raises(kvgauge.KvgaugeError) as caught:
        gguf_placement(stored, GgufLayout(28), **wrong)
    assert caught.value.code == "invalid_request"


def test_multi_token_prediction_stays_away_unless_asked_for():
    keys = keys_of("glm-4.5-air")
    stored = mix_of_metadata(keys, "q4_k_m")
    without, with_it = (gguf_placement(stored, gguf_layout(keys), mtp=mtp) for mtp in (False, True))
    assert with_it.total_bytes - without.total_bytes == stored.mtp_bytes > 0


names = st.one_of(
    st.sampled_from(["token_embd.weight", "output.weight", "blk.0.attn_k.weight", "blk.3.ffn_up_exps.weight",
                     "blk.1.ffn_down.2.weight", "blk.999999.x", "enc.blk.0.attn_q.weight", "blk..", ""]),
    st.text(max_size=12),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(
        st.tuples(names, st.sampled_from(list(TENSOR_TYPES)), st.lists(st.integers(0, 300), max_size=4)), max_size=8
    ),
    values=st.dictionaries(
        st.sampled_from(["general.architecture", "llama.block_count", "llama.nextn_predict_layers",
                         "llama.expert_used_count", "general.alignment", "general.file_type"]),
        st.one_of(st.none(), st.just("llama"), st.integers(-3, 1 << 70), st.lists(st.integers(0, 5), max_size=3)),
    ),
)  # fmt: skip
def test_any_tensor_table(rows, values):
    tensors = []
    for name, kind, dims in rows:
        dtype, block, size = TENSOR_TYPES[kind]
        shape = (dims[0] // block * block, *dims[1:]) if dims else ()
        elements = prod(shape)
        if elements % block == 0:
            tensors.append(Tensor(name, dtype, shape, 0, elements // block * size))
    try:
        stored = stored_from_gguf(tensors, values)
        placed = gguf_placement(stored, gguf_layout(values))
    except kvgauge.KvgaugeError as error:
        assert error.message
        return
    assert stored.file_bytes >= 0
    assert placed.total_bytes >= 0
