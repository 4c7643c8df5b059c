"""Weights from tensors: byte for byte, by part, and the same parameters as the config implies."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import checkpoints as made
from kvgauge.checkpoint_weights import stored_from_checkpoint
from kvgauge.errors import KvgaugeError
from kvgauge.readers.hf.weights import read_weights
from kvgauge.readers.tensor_names import Kept, place_of, split_name
from kvgauge.sources.safetensors import DTYPE_BITS
from kvgauge.stored_weights import StoredWeights
from kvgauge.weight_ranks import rank_bytes
from kvgauge.weights import Part, WeightShard
from kvgauge.workload import Parallelism
from support import config_of

CONFIGS = {"dense": made.LLAMA, "tied": made.TIED, "moe": made.MOE, "mtp": made.DEEPSEEK}
LAYERS = {name: config["num_hidden_layers"] for name, config in CONFIGS.items()}


def parts_bytes(stored: StoredWeights) -> int:
    return sum(row.num_bytes for row in stored.by_part(mtp=True))


@pytest.mark.parametrize("name", CONFIGS)
def test_plain_tensors_weigh_what_the_config_implies(name):
    weights = made.weights_of(CONFIGS[name])
    found = stored_from_checkpoint(made.checkpoint(made.tensors_of(CONFIGS[name])), weights, LAYERS[name])
    assert found.num_bytes == 2 * weights.num_parameters
    assert found.mtp_bytes == 2 * weights.num_mtp_parameters
    assert found.num_parameters == weights.num_parameters
    assert found.num_active_parameters == weights.num_active_parameters
    assert {row.part: row.num_parameters for row in found.by_part(mtp=True)} == weights.by_part
    assert (found.source, found.scheme, found.notes) == ("safetensors", "bf16", ())


@pytest.mark.parametrize("name", CONFIGS)
def test_names_alone_tell_the_same_parts(name):
    weights = made.weights_of(CONFIGS[name])
    found = stored_from_checkpoint(made.checkpoint(made.tensors_of(CONFIGS[name])), None, LAYERS[name])
    assert {row.part: row.num_parameters for row in found.by_part(mtp=True)} == weights.by_part
    assert found.num_parameters == weights.num_parameters
    assert found.num_active_parameters == (None if name in ("moe", "mtp") else weights.num_parameters)


MODELS = (
    "Qwen/Qwen3-8B", "openai/gpt-oss-20b", "deepseek-ai/DeepSeek-V3.2", "google/gemma-3-27b-it",
    "Qwen/Qwen3-Next-80B-A3B-Instruct", "tiiuae/falcon-7b", "google-t5/t5-base", "openai/whisper-large-v3",
    "moonshotai/Kimi-K2-Instruct", "zai-org/GLM-4.5-Air", "mistralai/Mixtral-8x7B-Instruct-v0.1",
)  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
def test_published_shapes(model):
    try:
        config = config_of(model)
    except AssertionError:
        pytest.skip("not in the catalogue")
    weights = read_weights(config)
    if weights is None:
        pytest.skip("its tensors are not known")
    tensors = made.tensors_of(config, tied=True)
    found = stored_from_checkpoint(made.checkpoint(tensors), weights, config.get("num_hidden_layers", 0))
    assert (found.num_bytes, found.mtp_bytes) == (2 * weights.num_parameters, 2 * weights.num_mtp_parameters)
    assert found.file_bytes == made.num_bytes(tensors)
    assert not found.notes
    assert {row.part: row.num_parameters for row in found.by_part(mtp=True)} == weights.by_part


SCHEMES = {
    made.gptq: "gptq int4", made.gptq3: "gptq int3", made.awq: "awq int4", made.fp8_blocks: "fp8",
    made.fp8_static: "fp8", made.modelopt_nvfp4: "nvfp4", made.compressed_nvfp4: "nvfp4",
    made.compressed_int4: "int4", made.compressed_int8: "int8", made.bnb_nf4: "nf4",
    made.deepseek_fp4: "mxfp4", made.mlx4: "mlx 4 bit",
}  # fmt: skip


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.__name__)
@pytest.mark.parametrize("name", CONFIGS)
def test_quantised_tensors(scheme, name):
    weights = made.weights_of(CONFIGS[name])
    tensors = made.quantised(made.tensors_of(CONFIGS[name]), scheme)
    for config in (weights, None):
        found = stored_from_checkpoint(made.checkpoint(tensors), config, LAYERS[name])
        assert found.file_bytes == parts_bytes(found) == made.num_bytes(tensors)
        assert not found.notes
        by_part = {}
        for row in found.by_part(mtp=True):
            by_part[row.part] = by_part.get(row.part, 0) + row.num_parameters
        assert {part: count for part, count in by_part.items() if count} in (weights.by_part, by_part)
        if config is not None or scheme not in (made.compressed_int4, made.mlx4):
            assert found.num_parameters == weights.num_parameters
            assert by_part == weights.by_part
        if config is not None:
            assert found.scheme == SCHEMES[scheme]


def test_bits_that_no_tensor_tells_are_not_guessed():
    tensors = made.quantised(made.tensors_of(made.LLAMA), made.compressed_int4)
    assert stored_from_checkpoint(made.checkpoint(tensors)).num_parameters == 0


def cuts(found: StoredWeights, name: str) -> tuple[tuple[int, ...], WeightShard]:
    family = next(item.family for item in found.families if item.family.name.endswith(name))
    return family.shape, family.shard


def test_what_lies_inputs_first_is_turned():
    """GPTQ and AWQ matrices lie inputs first; outputs come first in a family, so a cut means what it says."""
    weights = made.weights_of(made.LLAMA)
    tensors = made.quantised(made.tensors_of(made.LLAMA), made.gptq)
    found = stored_from_checkpoint(made.checkpoint(tensors), weights, 3)
    assert cuts(found, "gate_proj.qweight") == ((512, 32), WeightShard.COLUMN)
    assert cuts(found, "gate_proj.scales") == ((512, 4), WeightShard.COLUMN)
    assert cuts(found, "gate_proj.qzeros") == ((64, 4), WeightShard.COLUMN)
    assert cuts(found, "gate_proj.g_idx") == ((256,), WeightShard.REPLICATED)
    assert cuts(found, "down_proj.qweight") == ((256, 64), WeightShard.ROW)
    assert cuts(found, "down_proj.scales") == ((256, 8), WeightShard.ROW)
    assert cuts(found, "down_proj.g_idx") == ((512,), WeightShard.COLUMN)
    assert cuts(found, "k_proj.qweight") == ((64, 32), WeightShard.KV_HEADS)
    tensors = made.quantised(made.tensors_of(made.LLAMA), made.awq)
    found = stored_from_checkpoint(made.checkpoint(tensors), weights, 3)
    assert cuts(found, "down_proj.qweight") == ((32, 512), WeightShard.ROW)


def test_scales_are_cut_as_their_matrix_or_not_at_all():
    weights = made.weights_of(made.LLAMA)
    found = stored_from_checkpoint(
        made.checkpoint(made.quantised(made.tensors_of(made.LLAMA), made.modelopt_nvfp4)), weights, 3
    )
    assert cuts(found, "down_proj.weight_scale") == ((256, 32), WeightShard.ROW)
    assert cuts(found, "down_proj.weight_scale_2") == ((1,), WeightShard.REPLICATED)
    found = stored_from_checkpoint(
        made.checkpoint(made.quantised(made.tensors_of(made.LLAMA), made.compressed_int8)), weights, 3
    )
    assert cuts(found, "down_proj.weight_scale") == ((256, 1), WeightShard.REPLICATED)
    assert cuts(found, "up_proj.weight_scale") == ((512, 1), WeightShard.COLUMN)
    found = stored_from_checkpoint(
        made.checkpoint(made.quantised(made.tensors_of(made.LLAMA), made.bnb_nf4)), weights, 3
    )
    assert cuts(found, "down_proj.weight") == ((256 * 512 // 2, 1), WeightShard.COLUMN)


def test_a_tied_head_that_the_file_holds_counts_once():
    weights = made.weights_of(made.TIED)
    tensors = made.tensors_of(made.TIED, tied=True)
    assert "lm_head.weight" in tensors
    found = stored_from_checkpoint(made.checkpoint(tensors), weights, 3)
    head = 2 * 384 * 256
    assert (found.num_bytes, found.file_bytes) == (
        2 * weights.num_parameters,
        2 * weights.num_parameters + head,
    )
    assert not any(row.part is Part.LM_HEAD for row in found.by_part())
    assert not found.notes


def test_the_embeddings_that_stacks_share_count_once():
    shared = ("BF16", (384, 64))
    tensors = {
        "shared.weight": shared,
        "encoder.embed_tokens.weight": shared,
        "decoder.embed_tokens.weight": shared,
    }
    found = stored_from_checkpoint(made.checkpoint(tensors))
    assert (found.num_bytes, found.file_bytes, found.num_parameters) == (49152, 3 * 49152, 384 * 64)


def test_layers_behind_the_last_predict_tokens():
    tensors = made.tensors_of(made.LLAMA)
    extra = {name.replace("layers.2.", "layers.3."): t for name, t in tensors.items() if "layers.2." in name}
    for weights in (made.weights_of(made.LLAMA), None):
        found = stored_from_checkpoint(made.checkpoint({**tensors, **extra}), weights, 3)
        assert found.num_bytes == made.num_bytes(tensors)
        assert found.mtp_bytes == made.num_bytes(extra)
        assert {row.part for row in found.by_part(mtp=True)} >= {Part.MTP}
        assert not found.notes


def test_buffers_are_bytes_and_no_parameters():
    tensors = made.tensors_of(made.LLAMA)
    buffers = {
        "model.layers.0.self_attn.rotary_emb.inv_freq": ("F32", (16,)),
        "model.layers.0.self_attn.bias": ("BOOL", (1, 1, 64, 64)),
        "model.layers.0.mlp.gate.e_score_correction_bias": ("F32", (8,)),
    }
    weights = made.weights_of(made.LLAMA)
    found = stored_from_checkpoint(made.checkpoint({**tensors, **buffers}), weights, 3)
    assert found.num_bytes == made.num_bytes(tensors) + 64 + 4096 + 32
    assert found.num_parameters == weights.num_parameters
    assert not found.notes


def test_a_checkpoint_that_is_not_its_configs():
    weights = made.weights_of(made.LLAMA)
    tensors = made.tensors_of({**made.LLAMA, "num_hidden_layers": 2})
    found = stored_from_checkpoint(made.checkpoint(tensors), weights, 3)
    assert [note.code for note in found.notes] == ["weights_differ_from_config"]
    assert found.notes[0].level == "warning"
    assert f"{weights.num_parameters:,}" in found.notes[0].message
    assert found.num_parameters == made.num_bytes(tensors) // 2 != weights.num_parameters


def test_stacked_experts_of_mxfp4():
    """gpt-oss: blocks of 16 bytes, a scale for 32 values, biases, all experts in one tensor."""
    base = "model.layers.0.mlp.experts."
    tensors = {
        "model.embed_tokens.weight": ("BF16", (384, 256)),
        f"{base}gate_up_proj_blocks": ("U8", (8, 256, 8, 16)),
        f"{base}gate_up_proj_scales": ("U8", (8, 256, 8)),
        f"{base}gate_up_proj_bias": ("BF16", (8, 256)),
        f"{base}down_proj_blocks": ("U8", (8, 256, 4, 16)),
        f"{base}down_proj_scales": ("U8", (8, 256, 4)),
        f"{base}down_proj_bias": ("BF16", (8, 256)),
        "model.layers.0.mlp.router.weight": ("BF16", (8, 256)),
    }
    found = stored_from_checkpoint(made.checkpoint(tensors))
    assert found.num_bytes == made.num_bytes(tensors)
    assert found.scheme == "mxfp4"
    experts = sum(row.num_parameters for row in found.by_part() if row.part is Part.EXPERTS)
    assert experts == 8 * (256 * 256 + 256 + 256 * 128 + 256)
    assert {item.family.num_experts for item in found.families if item.family.part is Part.EXPERTS} == {8}
    assert cuts(found, "gate_up_proj_blocks") == ((256, 128), WeightShard.COLUMN)
    assert cuts(found, "down_proj_blocks") == ((256, 64), WeightShard.ROW)
    assert cuts(found, "down_proj_bias") == ((256,), WeightShard.REPLICATED)


def test_stacked_experts_that_lie_inputs_first():
    tensors = {
        "model.embed_tokens.weight": ("BF16", (384, 256)),
        "model.layers.0.mlp.experts.gate_up_proj": ("BF16", (8, 256, 192)),
        "model.layers.0.mlp.experts.down_proj": ("BF16", (8, 96, 256)),
    }
    found = stored_from_checkpoint(made.checkpoint(tensors))
    assert cuts(found, "gate_up_proj") == ((192, 256), WeightShard.COLUMN)
    assert cuts(found, "down_proj") == ((256, 96), WeightShard.ROW)


CONSOLIDATED = {
    "tok_embeddings.weight": (Part.EMBEDDING, WeightShard.VOCABULARY),
    "output.weight": (Part.LM_HEAD, WeightShard.VOCABULARY),
    "norm.weight": (Part.NORM, WeightShard.REPLICATED),
    "layers.4.attention.wq.weight": (Part.ATTENTION, WeightShard.COLUMN),
    "layers.4.attention.wo.weight": (Part.ATTENTION, WeightShard.ROW),
    "layers.4.attention.wk.weight": (Part.ATTENTION, WeightShard.KV_HEADS),
    "layers.4.attention_norm.weight": (Part.NORM, WeightShard.REPLICATED),
    "layers.4.feed_forward.w1.weight": (Part.MLP, WeightShard.COLUMN),
    "layers.4.feed_forward.w2.weight": (Part.MLP, WeightShard.ROW),
    "layers.4.feed_forward.experts.1.w3.weight": (Part.EXPERTS, WeightShard.COLUMN),
    "layers.4.feed_forward.gate.weight": (Part.ROUTER, WeightShard.REPLICATED),
    "layers.4.attn.wq_a.weight": (Part.ATTENTION, WeightShard.REPLICATED),
    "layers.4.attn.indexer.wq_b.weight": (Part.INDEXER, WeightShard.REPLICATED),
    "layers.4.ffn.shared_experts.w2.weight": (Part.SHARED_EXPERTS, WeightShard.ROW),
    "embed.weight": (Part.EMBEDDING, WeightShard.VOCABULARY),
    "head.weight": (Part.LM_HEAD, WeightShard.VOCABULARY),
    "vision_encoder.transformer.layers.0.attention.wq.weight": (Part.VISION, WeightShard.REPLICATED),
    "vision_language_adapter.w_in.weight": (Part.PROJECTOR, WeightShard.REPLICATED),
    "model.visual.merger.mlp.0.weight": (Part.PROJECTOR, WeightShard.REPLICATED),
    "model.layers.3.linear_attn.in_proj_qkvz.weight": (Part.LINEAR_ATTENTION, WeightShard.COLUMN),
    "backbone.layers.3.mixer.A_log": (Part.MAMBA, WeightShard.COLUMN),
    "backbone.layers.3.mixer.down_proj.weight": (Part.MLP, WeightShard.ROW),
    "something.nobody.knows": (Part.OTHER, WeightShard.REPLICATED),
}


@pytest.mark.parametrize("name", CONSOLIDATED)
def test_what_names_say(name):
    place = place_of(name)
    assert (place.part, place.shard) == CONSOLIDATED[name]


def test_suffixes():
    kept = {
        "a.q_proj.weight": Kept.VALUES, "a.q_proj.qweight": Kept.VALUES, "a.q_proj.weight_packed": Kept.VALUES,
        "a.q_proj.weight_scale_inv": Kept.SCALES, "a.q_proj.qzeros": Kept.SCALES, "a.q_proj.g_idx": Kept.PER_INPUT,
        "a.q_proj.input_scale": Kept.ONCE, "a.k_proj.k_scale": Kept.ONCE, "a.w1.qscale_act": Kept.ONCE,
        "a.q_proj.weight.absmax": Kept.SCALES, "a.q_proj.weight.quant_state.bitsandbytes__fp4": Kept.ONCE,
        "a.experts.down_proj_scales": Kept.SCALES, "a.experts.down_proj_blocks": Kept.VALUES,
        "a.router.per_expert_scale": Kept.VALUES, "a.rotary_emb.inv_freq": Kept.BUFFER, "a.A_log": Kept.VALUES,
    }  # fmt: skip
    assert {name: place_of(name).kept for name in kept} == kept


def test_families_of_published_configs_by_name_alone(shared: Path):
    """Wherever the name can tell, the words say what the tables of the model types say."""
    import json

    wrong = total = 0
    for file in sorted((shared / "data/configs/real").glob("*.json")):
        try:
            weights = read_weights(json.loads(file.read_text()))
        except Exception:  # noqa: S112 - other tests look at these
            continue
        for family in weights.families if weights else ():
            name = family.name.replace("{layer}", "0").replace("{expert}", "0")
            total += 1
            wrong += place_of(name).part is not family.part
    assert total > 5000
    assert wrong < total / 30


WORDS = """model layers mlp experts self_attn q_proj down_proj mtp lm_head visual blocks encoder norm weight bias
qweight scales g_idx weight_scale gate_up_proj_blocks scale e_score_correction_bias 0 1 2 7 01 007 99999999999 -1
٣ {layer} {expert} é"""
NAMES = st.lists(st.sampled_from([*WORDS.split(), "", ".", " "]), max_size=8).map(".".join)
SHAPES = st.lists(st.sampled_from([0, 1, 2, 3, 4, 8, 16]), max_size=4).map(tuple)


@given(
    st.dictionaries(
        st.one_of(NAMES, st.text(max_size=600)), st.tuples(st.sampled_from(sorted(DTYPE_BITS)), SHAPES)
    ),
    st.sampled_from([None, *CONFIGS]),
    st.integers(0, 3),
)
def test_any_tensors_are_in_exactly_one_family(tensors, name, num_layers):
    whole = {n: t for n, t in tensors.items() if math.prod(t[1]) * DTYPE_BITS[t[0]] % 8 == 0}
    weights = None if name is None else made.weights_of(CONFIGS[name])
    found = stored_from_checkpoint(made.checkpoint(whole), weights, num_layers)
    assert found.file_bytes == made.num_bytes(whole)
    assert sum(item.family.num_tensors for item in (*found.families, *found.mtp_families)) == len(whole)
    assert found.num_bytes + found.mtp_bytes == parts_bytes(found) <= found.file_bytes
    with suppress(KvgaugeError):
        rank_bytes(found, Parallelism(2), num_layers=num_layers)


@pytest.mark.parametrize("scheme", [None, *SCHEMES], ids=lambda scheme: scheme and scheme.__name__)
@pytest.mark.parametrize("name", CONFIGS)
def test_ranks_hold_it_all(scheme, name):
    weights = made.weights_of(CONFIGS[name])
    tensors = made.tensors_of(CONFIGS[name])
    tensors = made.quantised(tensors, scheme) if scheme else tensors
    found = stored_from_checkpoint(made.checkpoint(tensors), weights, LAYERS[name])
    for tp in (1, 2, 4):
        ranks = rank_bytes(found, Parallelism(tp), num_layers=LAYERS[name])
        assert found.num_bytes <= sum(ranks) <= found.num_bytes * (1 + 0.12 * (tp - 1))
        assert (tp > 1) or sum(ranks) == found.num_bytes


def test_heads_told_by_the_caller():
    tensors = made.tensors_of(made.LLAMA)
    found = stored_from_checkpoint(made.checkpoint(tensors), None, 3, num_kv_heads=2)
    known = stored_from_checkpoint(made.checkpoint(tensors), made.weights_of(made.LLAMA), 3)
    for tp in (2, 4, 8):
        ranks = rank_bytes(found, Parallelism(tp), num_layers=3)
        assert ranks == rank_bytes(known, Parallelism(tp), num_layers=3)


@given(st.text(max_size=700))
def test_any_name_has_a_place(name):
    template, layer, expert = split_name(name)
    place = place_of(name)
    assert place.template == template
    assert (place.layer, place.expert) == (layer, expert)


def test_packings_that_are_not_known_count_no_parameters():
    """EXL2, AQLM: bytes are bytes, and the config alone says how many parameters they stand for."""
    tensors = dict(list(made.tensors_of(made.LLAMA).items())[:3])
    for name, dtype in (("q_weight", "I32"), ("codes", "I16"), ("trellis", "I16")):
        odd = {**tensors, f"model.layers.0.mlp.up_proj.{name}": (dtype, (16, 32))}
        found = stored_from_checkpoint(made.checkpoint(odd), made.weights_of(made.LLAMA), 3)
        assert found.num_bytes == made.num_bytes(odd)
        assert found.num_parameters == made.weights_of(made.LLAMA).num_parameters
        assert not found.notes
        assert stored_from_checkpoint(made.checkpoint(odd)).num_parameters == 0
