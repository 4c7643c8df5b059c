"""The tensors that GGUF metadata implies, held against what llama.cpp v0.5.0 creates for the same keys.

``golden/gguf_tensors_llama.cpp_v0.5.0.jsonl``: for every architecture that is known, small shapes and what the
library made of them. ``golden/ggml_mixes_llama.cpp_v0.5.0.jsonl``: published models.
"""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvgauge
from kvgauge.readers.gguf.rows import known_architectures
from kvgauge.readers.gguf.tensor_tables import known_tensor_architectures
from kvgauge.readers.gguf.tensors import read_tensors
from kvgauge.weights import ModelWeights, Part
from support import golden_lines

FIRST, *CREATED = golden_lines("gguf_tensors_llama.cpp_v0.5.0.jsonl")
_, *PUBLISHED = golden_lines("ggml_mixes_llama.cpp_v0.5.0.jsonl")

#: Architectures whose tensors are not known: no language models, drafts, and designs of few models.
UNKNOWN = {
    "clip", "dflash", "eagle3", "gemma4-assistant", "gptj", "hrm_text", "jina-bert-v2",
    "pockettts", "qwen3tts", "wavtokenizer-dec",
}  # fmt: skip


def metadata(architecture: str, keys: dict[str, Any]) -> dict[str, Any]:
    """Return whole keys; null is absent."""
    values: dict[str, Any] = {"general.architecture": architecture, "tokenizer.ggml.token_type_count": 2}
    for key, value in keys.items():
        if value is not None:
            values[key if key.startswith("xielu") else f"{architecture}.{key}"] = value
    return values


def created(record: dict[str, Any]) -> ModelWeights:
    """Return our tensors for a row of the library."""
    weights = read_tensors(metadata(record["architecture"], {**FIRST["keys"], **record["keys"]}))
    assert weights is not None
    return weights


def lines(weights: ModelWeights) -> list[str]:
    """Return ``name dims`` of every tensor, one by one."""
    found = []
    for family in weights.families:
        shape = list((family.num_experts, *family.shape) if family.stacked else family.shape)
        while len(shape) > 1 and shape[0] == 1:
            shape.pop(0)
        dims = "x".join(map(str, shape))
        found += [f"{family.name.replace('{layer}', str(i))} {dims}\n" for i in family.layers or (0,)]
    return sorted(found, key=lambda line: line.split(" ")[0])


@pytest.mark.parametrize("record", CREATED, ids=lambda r: r["architecture"])
def test_tensors_are_those_that_llama_cpp_creates(record):
    weights = created(record)
    names = lines(weights)
    assert len(names) == record["num_tensors"]
    assert weights.num_parameters == record["num_parameters"]
    assert hashlib.sha256("".join(names).encode()).hexdigest()[:16] == record["digest"]


def test_every_architecture_is_covered_or_named():
    known = set(known_tensor_architectures())
    assert set(known_architectures()) - known == UNKNOWN
    assert known <= {record["architecture"] for record in CREATED}
    assert read_tensors({"general.architecture": "mystery"}) is None
    assert read_tensors({}) is None


@pytest.mark.parametrize("record", PUBLISHED, ids=lambda r: r["model"])
def test_parameters_of_published_models(record):
    keys = metadata(record["architecture"], record["keys"])
    weights = read_tensors(keys, tied=record["tied"])
    assert weights.num_parameters == record["num_parameters"]
    assert weights.num_active_parameters <= weights.num_parameters
    assert (
        read_tensors(keys).num_parameters == record["num_parameters"]
    )  # the head as published models have it


def test_blocks_at_the_end_are_multi_token_prediction():
    record = next(r for r in PUBLISHED if r["model"] == "glm-5")
    weights = read_tensors(metadata(record["architecture"], record["keys"]))
    assert {family.part for family in weights.mtp_families} == {Part.MTP}
    assert {layer for family in weights.mtp_families for layer in family.layers} == {78}
    assert weights.num_mtp_parameters > 9_000_000_000
    assert max(layer for family in weights.families for layer in family.layers) == 77


def test_a_head_that_no_key_tells_of_is_said():
    keys = {"block_count": 2, "embedding_length": 64, "feed_forward_length": 128, "attention.head_count": 4}
    for architecture, noted in (("qwen2", True), ("gemma", False), ("xverse", False)):
        own = {**keys, "attention.head_count_kv": 2, "attention.key_length": 16, "attention.value_length": 16}
        weights = read_tensors(metadata(architecture, {**own, "vocab_size": 1000}))
        assert [note.code for note in weights.notes] == (["gguf_head_assumed"] if noted else [])
        head = any(family.part is Part.LM_HEAD for family in weights.families)
        assert head is (architecture == "xverse")


@pytest.mark.parametrize("record", CREATED[::7], ids=lambda r: r["architecture"])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_any_value_of_any_key_is_answered_or_refused(record, data):
    keys = metadata(record["architecture"], {**FIRST["keys"], **record["keys"]})
    name = data.draw(st.sampled_from(sorted(keys)))
    junk = st.one_of(
        st.none(),
        st.integers(-3, 1 << 70),
        st.floats(),
        st.text(max_size=5),
        st.lists(st.integers(-2, 9), max_size=12),
    )
    keys[name] = data.draw(junk)
    try:
        weights = read_tensors(keys)
    except kvgauge.KvgaugeError as error:
        assert error.message
        assert "\n" not in error.message
    else:
        assert weights is None or weights.num_parameters >= 0
