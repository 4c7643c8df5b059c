"""What llama-quantize would write, to the byte: the types that a mix gives tensors.

``golden/ggml_mixes_llama.cpp_v0.5.0.jsonl``: published models, per mix bytes of all, of the embedding, per-layer
embeddings, the head, the experts, and by type. ``../shared`` has more of them.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvgauge
from kvgauge.ggml_mixes import (
    MixModel,
    ggml_format,
    mix_name,
    mix_names,
    mix_of_file_type,
    needs_importance_matrix,
    price_mix,
)
from kvgauge.gguf_from_config import mix_of_config
from kvgauge.gguf_weights import mix_of_metadata
from kvgauge.readers.hf.weights import read_weights
from kvgauge.stored_weights import StoredWeights
from kvgauge.weights import ModelWeights, Part, TensorFamily
from support import SHARED, config_of, golden_lines
from test_gguf_tensors import CREATED, FIRST, PUBLISHED, metadata

ORACLE = SHARED / "data" / "oracle"
EMBEDDINGS = ("token_embd.weight", "per_layer_token_embd.weight", "output.weight")


def figures(stored: StoredWeights) -> list:
    """Return what a record of a mix states."""
    by_type: Counter[str] = Counter()
    by_name: Counter[str] = Counter()
    experts = 0
    for family in stored.families:
        by_type[family.format.name] += family.num_bytes
        by_name[family.family.name] += family.num_bytes
        if family.family.stacked:
            experts += family.num_bytes
    return [stored.num_bytes, *(by_name[name] for name in EMBEDDINGS), experts, dict(by_type)]


@pytest.mark.parametrize("record", PUBLISHED, ids=lambda r: r["model"])
def test_mixes_of_published_models(record):
    keys = metadata(record["architecture"], record["keys"])
    for mix, expected in record["mixes"].items():
        stored = mix_of_metadata(keys, mix, tied=record["tied"])
        assert figures(stored) == expected, mix
        assert stored.scheme == mix


def test_mixes_of_a_config_with_towers_are_those_of_its_language_model():
    """Per-layer embeddings padded to the vocabulary, keys of layers that share others' kept."""
    record = next(record for record in PUBLISHED if record["model"] == "gemma-3n-e2b")
    config = config_of("google/gemma-3n-E2B-it")
    weights = read_weights(config)
    for mix, expected in record["mixes"].items():
        assert figures(mix_of_config(weights, config, mix)) == expected, mix


@pytest.mark.parametrize("record", CREATED, ids=lambda r: r["architecture"])
def test_mixes_of_every_architecture(record):
    keys = metadata(record["architecture"], {**FIRST["keys"], **record["keys"]})
    for mix, expected in record["mixes"].items():
        assert mix_of_metadata(keys, mix).num_bytes == expected, mix


@pytest.mark.skipif(not ORACLE.exists(), reason="../shared is not there")
def test_all_recorded_mixes():
    models = {}
    for line in (ORACLE / "llamacpp_v0.5.0_models.jsonl").read_text(encoding="utf-8").splitlines():
        models[json.loads(line)["model"]] = json.loads(line)
    for line in (ORACLE / "llamacpp_v0.5.0_weights.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        model = models[row["model"]]
        stored = mix_of_metadata(
            metadata(model["arch"], model["hparams"]), row["ftype"], tied=model["tied_output"]
        )
        names = ("bytes", "token_embd", "per_layer_token_embd", "output", "experts")
        types = {name.lower(): size for name, size in row["by_type"].items()}
        assert figures(stored) == [*(row[name] for name in names), types], (row["model"], row["ftype"])
        assert stored.num_parameters == row["n_params"]


def test_a_mix_is_no_number_of_bits():
    """Rows that no 256 divides fall back; what a constant per mix gets wrong."""
    record = next(r for r in PUBLISHED if r["architecture"] == "gpt-oss")
    types = record["mixes"]["q4_k_m"][-1]
    assert {"q5_0", "q8_0"} <= set(types)
    assert record["mixes"]["q4_k_m"][0] * 8 / record["num_parameters"] > 5.8


def test_names_of_mixes():
    assert [mix_name(word) for word in ("Q4_K_M", "q4-k-m", " Q4_K ", "MXFP4")] == ["q4_k_m"] * 3 + [
        "mxfp4_moe"
    ]
    assert {number: mix_of_file_type(number) for number in (0, 1, 7, 15, 30, 99)} == {
        0: "f32", 1: "f16", 7: "q8_0", 15: "q4_k_m", 30: "iq4_xs", 99: None,
    }  # fmt: skip
    assert needs_importance_matrix("iq2_xxs")
    assert not needs_importance_matrix("q2_k")
    with pytest.raises(kvgauge.KvgaugeError) as caught:
        mix_name("q4_k_xl\x1b[31m")
    assert caught.value.code == "feature_unsupported"
    assert "\x1b" not in caught.value.message


def test_types_have_the_bytes_of_the_table():
    assert {name: ggml_format(name).stored_bytes((1, 512)) for name in ("q8_0", "q6_k", "mxfp4", "f16", "tq1_0")} == {
        "q8_0": 544, "q6_k": 420, "mxfp4": 272, "f16": 1024, "tq1_0": 108,
    }  # fmt: skip


def test_rows_that_nothing_packs_are_refused():
    family = TensorFamily("blk.{layer}.ffn_up.weight", (64, 72), Part.MLP, layers=(0,))
    model = MixModel("llama", 1)
    assert price_mix(ModelWeights((family,)), "q8_0", model).families[0].format.name == "f16"
    with pytest.raises(kvgauge.KvgaugeError, match="q1_0 packs 128 values"):
        price_mix(ModelWeights((family,)), "q1_0", model)


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(
        ["blk.{layer}.attn_v.weight", "blk.{layer}.ffn_down.weight", "token_embd.weight", "output.weight",
         "blk.{layer}.ffn_gate_exps.weight", "blk.{layer}.attn_norm.weight", "mystery", "blk.{layer}.x.weight"]
    ),
    shape=st.lists(st.integers(1, 1 << 20), max_size=4).map(tuple),
    mix=st.sampled_from(mix_names()),
    layers=st.integers(0, 200),
    experts=st.integers(0, 300),
    architecture=st.sampled_from(["llama", "falcon", "bailingmoe3", "", "x"]),
)  # fmt: skip
def test_any_tensor_in_any_mix(name, shape, mix, layers, experts, architecture):
    blocks = tuple(range(layers)) if "{layer}" in name else ()
    family = TensorFamily(name, shape, Part.OTHER, layers=blocks, num_experts=experts, stacked=bool(experts))
    model = MixModel(architecture, layers, 0, experts, 32, 8)
    try:
        stored = price_mix(ModelWeights((family,)), mix, model)
    except kvgauge.KvgaugeError as error:
        assert error.code == "feature_unsupported"
        return
    assert sum(f.family.num_tensors for f in stored.families) == (
        layers if "{layer}" in name and layers else 1
    )
    assert stored.num_bytes > 0


def test_golden_is_broad():
    first, *rest = golden_lines("ggml_mixes_llama.cpp_v0.5.0.jsonl")
    assert first["source"]
    assert len({row["architecture"] for row in rest}) >= 34
    assert all(len(row["mixes"]) == 20 for row in rest)
