"""Bytes from a config's quantisation: equal to quantisers' own layers, to engines' models, to published sizes."""

from __future__ import annotations

import contextlib
import json
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvgauge.errors import FeatureUnsupportedError, InvalidFieldError, KvgaugeError, MissingFieldError
from kvgauge.readers.hf.schemes import read_scheme, stored_weights
from kvgauge.readers.hf.schemes.block import find_block
from kvgauge.readers.hf.schemes.expressions import MAX_PATTERN, matches
from kvgauge.readers.hf.schemes.names import MAX_NAME, Mode, NameSet, spellings
from kvgauge.readers.hf.schemes.rules import is_linear, modules_of
from kvgauge.readers.hf.weights import read_weights
from kvgauge.render.messages.errors_zh import chinese
from kvgauge.sources.catalogue import find_model
from kvgauge.stored_weights import StoredWeights
from kvgauge.weights import ModelWeights, Part, TensorFamily
from support import SHARED, config_of, golden_lines
from test_hostile import JUNK, json_values

LAYERS = golden_lines("quantised_layers_2026-11.jsonl")
VLLM = golden_lines("vllm_0.33.0_quantised.jsonl")
MLX = golden_lines("mlx_repositories_2026-11.jsonl")
REAL = SHARED / "data/configs/real"

#: What an engine holds beside the checkpoint: one matrix more where K is V too (5 layers of 1024 x 2816).
ENGINE_EXTRA = {"nvidia/Gemma-4-26B-A4B-NVFP4": 5 * 1024 * 2816 * 2}

FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": True}
BNB = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
ROUND = {"quant_method": "auto-round", "bits": 4, "group_size": 128, "packing_format": "auto_round:auto_gptq"}
INT4 = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": True}
PACKED = {
    "quant_method": "compressed-tensors",
    "format": "pack-quantized",
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": INT4}},
    "ignore": ["lm_head"],
}
INT8 = {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}
W8A8 = {
    "quant_method": "compressed-tensors",
    "format": "int-quantized",
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": INT8,
            "input_activations": INT8 | {"strategy": "token", "dynamic": True},
        }
    },
    "ignore": ["lm_head"],
}
NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}
MIXED = {
    "quant_method": "modelopt",
    "quant_algo": "MIXED_PRECISION",
    "quantized_layers": {"model.layers.{0-3}.mlp": {"quant_algo": "FP8"}},
}
QUARK = {
    "quant_method": "quark",
    "global_quant_config": {"weight": {"dtype": "fp4", "qscheme": "per_group", "group_size": 32}},
    "exclude": ["lm_head"],
}
HQQ = {"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}}
TORCHAO = {"quant_method": "torchao", "quant_type": "int8_weight_only"}
MXFP4 = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}
MLX_BLOCK = {"bits": 4, "group_size": 64}
BLOCKS = (FP8, GPTQ, AWQ, BNB, ROUND, PACKED, NVFP4, MIXED, QUARK, HQQ, TORCHAO, MXFP4, MLX_BLOCK)


def stored(model: str, block: object = None, dtype: str = "bf16", **fields: object) -> StoredWeights:
    """Return a catalogue model's weights, under another block where one is given."""
    raw = find_model(model)
    assert raw is not None, model
    config = {**raw.config, **fields}
    if block is not None:
        config["quantization_config"] = block
    weights = read_weights(config)
    assert weights is not None, model
    return stored_weights(weights, config, None if block is not None else raw.quantization, dtype)


def known_weights(config: dict[str, Any]) -> ModelWeights | None:
    """Return the families of a config, or None where they can't be known."""
    try:
        return read_weights(config)
    except MissingFieldError:
        return None


def formats(weights: StoredWeights, end: str) -> dict[str, int]:
    """Return format -> layers of the families whose name ends so."""
    found = [one for one in weights.families if one.family.name.endswith(end)]
    return {one.format.name: max(1, len(one.family.layers)) for one in found}


# -- truths -------------------------------------------------------------------------------------


@pytest.mark.parametrize("record", LAYERS, ids=lambda r: f"{r['library']} {r['bytes']}")
def test_a_layer_has_the_bytes_that_the_quantiser_writes(record):
    family = TensorFamily(
        "model.layers.{layer}.mlp.up_proj.weight", tuple(record["shape"]), Part.MLP, layers=(0,)
    )
    config = {"quantization_config": record["block"]}
    found = stored_weights(ModelWeights((family,)), config, None, record["dtype"]).num_bytes
    spare = 8 * bool(record["block"].get("bnb_4bit_use_double_quant"))  # digits of an offset in a text
    assert abs(found - record["bytes"]) <= spare


@pytest.mark.parametrize("record", VLLM, ids=lambda r: r["id"])
def test_equals_what_vllm_builds(record):
    raw = find_model(record["id"])
    weights = known_weights(raw.config)
    if weights is None:
        pytest.skip("its tensors are not known")
    found = stored_weights(weights, raw.config, raw.quantization, record["dtype"]).num_bytes
    expected = record["bytes"] - ENGINE_EXTRA.get(record["id"], 0)
    assert found == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("record", MLX, ids=lambda r: r["id"])
def test_equals_the_size_of_an_mlx_repository(record):
    config = {k: v for k, v in config_of(record["base"]).items() if k != "quantization_config"}
    config["quantization"] = record["block"]
    found = stored_weights(read_weights(config), config, None, "bf16").num_bytes
    assert found == pytest.approx(record["bytes"], rel=2e-4)


@pytest.mark.parametrize(
    ("model", "size"), [("openai/gpt-oss-120b", 65_248_815_744), ("openai/gpt-oss-20b", 13_761_264_768)]
)
def test_gpt_oss_weighs_what_its_repository_holds(model, size):
    weights = stored(model)
    assert weights.num_bytes == size
    assert weights.scheme == "mxfp4"


@pytest.mark.parametrize(
    ("model", "elements"),
    [
        ("Qwen/Qwen3-32B-FP8", 32_764_027_904),
        ("Qwen/Qwen3-30B-A3B-FP8", 30_533_947_392),
        ("RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic", 108_659_340_800),
    ],
)
def test_values_and_scales_are_as_many_as_the_hub_counts(model, elements):
    count = 0
    for one in stored(model).families:
        rows, columns = one.family.shape[-2:] if len(one.family.shape) > 1 else (1, one.family.shape[0])
        tiles = sum(tile.stored_bytes(rows, columns) * 8 // tile.bits for tile in one.format.tiles)
        copies = max(1, len(one.family.layers)) * max(1, one.family.num_experts)
        count += copies * (one.family.num_elements + tiles) if not one.family.tied_to else 0
    assert count == elements


@pytest.mark.parametrize(
    ("model", "block", "gib"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", W8A8, 67.7229),  # vllm-project/vllm#12569
        ("meta-llama/Llama-3.1-70B-Instruct", NVFP4 | {"quant_algo": "FP8"}, 67.7),
        ("meta-llama/Llama-3.1-70B-Instruct", AWQ, 37.09),
        ("meta-llama/Llama-3.1-8B-Instruct", NVFP4, 5.6473),
    ],
)
def test_what_vllm_said_that_it_loaded(model, block, gib):
    assert stored(model, block).num_bytes / 2**30 == pytest.approx(gib, rel=7e-3)


@pytest.mark.skipif(not REAL.exists(), reason="needs ../shared")
def test_files_with_full_lists_weigh_what_compact_ones_do():
    seen = 0
    for record in VLLM:
        stem = record["id"].replace("/", "--")
        config = json.loads((REAL / f"{stem}.json").read_text(encoding="utf-8"))
        side = REAL / f"{stem}.hf_quant_config.json"
        side_file = json.loads(side.read_text(encoding="utf-8")) if side.exists() else None
        raw = find_model(record["id"])
        weights, again = known_weights(config), known_weights(raw.config)
        if weights is None or again is None:
            continue
        compact = stored_weights(again, raw.config, raw.quantization, "bf16")
        assert stored_weights(weights, config, side_file, "bf16").num_bytes == compact.num_bytes, stem
        seen += 1
    assert seen > 20


@pytest.mark.skipif(not REAL.exists(), reason="needs ../shared")
def test_every_quantised_config_is_read_or_refused_for_its_tensors():
    read = 0
    for path in sorted(REAL.glob("*.json")):
        config = json.loads(path.read_text(encoding="utf-8"))
        side = path.with_name(path.stem + ".hf_quant_config.json")
        side_file = json.loads(side.read_text(encoding="utf-8")) if side.exists() else None
        if path.stem.endswith("hf_quant_config"):
            continue
        block = find_block(config, side_file)
        read += block is not None and bool(read_scheme(block).label)
    assert read > 40


# -- what a scheme takes ------------------------------------------------------------------------


def test_weights_without_a_block_are_plain():
    weights = stored("Qwen/Qwen3-8B")
    assert weights.scheme == "bf16"
    assert weights.num_bytes == 2 * weights.families[0].family.num_elements + sum(
        one.num_bytes for one in weights.families[1:]
    )
    assert {one.format.name for one in weights.families} == {"bf16"}


@pytest.mark.parametrize("block", BLOCKS[:-3], ids=lambda b: str(b.get("quant_method")))
def test_norms_and_embeddings_are_left_alone(block):
    weights = stored("Qwen/Qwen3-8B", block)
    for one in weights.families:
        if one.family.part is Part.NORM or "embed" in one.family.name or "norm" in one.family.name:
            assert one.format.name == "bf16", one.family.name


def test_routers_and_heads_stay_by_default():
    for block in (FP8, GPTQ, AWQ, ROUND, PACKED, NVFP4):
        weights = stored("Qwen/Qwen3-30B-A3B", block)
        assert formats(weights, "mlp.gate.weight") == {"bf16": 48}
        assert formats(weights, "lm_head.weight") == {"bf16": 1}


def test_a_list_splits_a_family_by_layers():
    block = NVFP4 | {"ignore": ["lm_head", "model.layers.{0-9}.self_attn*", "model.layers.20.mlp.*"]}
    weights = stored("Qwen/Qwen3-8B", block)
    assert formats(weights, "q_proj.weight") == {"bf16": 10, "nvfp4": 26}
    assert formats(weights, "up_proj.weight") == {"bf16": 1, "nvfp4": 35}


def test_a_pattern_of_layers_splits_too():
    block = PACKED | {
        "ignore": ["lm_head", r"re:.*layers\.[0-3]\.mlp\..*", r"re:model\.layers\.1\d\..*o_proj"]
    }
    weights = stored("Qwen/Qwen3-8B", block)
    assert formats(weights, "down_proj.weight") == {"bf16": 4, "int4": 32}
    assert formats(weights, "o_proj.weight") == {"bf16": 10, "int4": 26}


def test_groups_of_targets_have_their_own_formats():
    groups = {
        "group_0": {"targets": ["Linear"], "weights": INT4},
        "group_1": {"targets": ["re:.*down_proj", "model.layers.0.self_attn.o_proj"], "weights": INT8},
    }
    weights = stored("Qwen/Qwen3-8B", PACKED | {"config_groups": groups})
    assert formats(weights, "down_proj.weight") == {"int8": 36}
    assert formats(weights, "o_proj.weight") == {"int8": 1, "int4": 35}
    assert weights.scheme == "compressed-tensors int4 g128, int8"


def test_gptq_overrides_and_lists():
    dynamic = {r"-:.*\.o_proj": {}, r"+:model\.layers\.(?:0|1)\..*": {"bits": 8, "group_size": 64}}
    weights = stored("Qwen/Qwen3-8B", GPTQ | {"dynamic": dynamic, "lm_head": True})
    assert formats(weights, "o_proj.weight") == {"bf16": 36}
    assert formats(weights, "up_proj.weight") == {"int8": 2, "int4": 34}
    assert formats(weights, "lm_head.weight") == {"int4": 1}
    listed = stored("Qwen/Qwen3-8B", GPTQ | {"modules_in_block_to_quantize": [["mlp.up_proj"]]})
    assert formats(listed, "up_proj.weight") == {"int4": 36}
    assert formats(listed, "down_proj.weight") == {"bf16": 36}


def test_auto_round_layers_of_their_own():
    extra = {
        "model.layers.0.self_attn.q_proj": {"bits": 8},
        r".*down_proj.*": {"bits": 16, "data_type": "float"},
        "lm_head": {"bits": 8, "group_size": 128},
    }
    weights = stored("Qwen/Qwen3-8B", ROUND | {"extra_config": extra})
    assert formats(weights, "q_proj.weight") == {"int8": 1, "int4": 35}
    assert formats(weights, "down_proj.weight") == {"bf16": 36}
    assert formats(weights, "lm_head.weight") == {"int8": 1}


def test_mixed_precision_gives_each_module_its_format():
    weights = stored("nvidia/Qwen3.6-35B-A3B-NVFP4")
    assert formats(weights, "linear_attn.out_proj.weight") == {"fp8": 30}
    assert formats(weights, "up_proj.weight") == {"nvfp4": 40}
    assert formats(weights, "in_proj_a.weight") == {"bf16": 30}
    assert all(one.format.name == "bf16" for one in weights.mtp_families)


def test_a_block_that_lists_nothing_says_so():
    weights = stored("Qwen/Qwen3-8B", {"quant_method": "modelopt", "quant_algo": "FP8"})
    assert formats(weights, "lm_head.weight") == {"bf16": 1}
    assert [note.code for note in weights.notes] == ["kept_layers_assumed"]
    assert not stored("Qwen/Qwen3-8B", NVFP4).notes


def test_a_block_says_what_was_taken_for_granted():
    for block in (BNB, AWQ, GPTQ, FP8, PACKED):
        marked = stored("Qwen/Qwen3-8B", block | {"_assumed": ["kept_layers", "group_size", "other"]})
        assert [n.code for n in marked.notes] == ["kept_layers_assumed", "group_size_assumed"]
        assert {n.level for n in marked.notes} == {"warning"}
        assert marked.num_bytes == stored("Qwen/Qwen3-8B", block).num_bytes
    twice = stored(
        "Qwen/Qwen3-8B",
        {"quant_method": "modelopt", "quant_algo": "FP8", "_assumed": ["kept_layers"]},
    )
    assert [n.code for n in twice.notes] == ["kept_layers_assumed"]
    config = config_of("Qwen/Qwen3-8B")
    side_file = {"quantization": {"quant_algo": "FP8", "exclude_modules": [], "_assumed": ["kept_layers"]}}
    beside = stored_weights(read_weights(config), config, side_file, "bf16")
    assert [n.code for n in beside.notes] == ["kept_layers_assumed"]
    with pytest.raises(InvalidFieldError, match="_assumed"):
        stored("Qwen/Qwen3-8B", BNB | {"_assumed": 3})


def test_prediction_modules_keep_their_inputs_and_have_fp8_experts():
    weights = stored("deepseek-ai/DeepSeek-V3")
    words = {
        one.family.name.rpartition("layers.{layer}.")[2]: one.format.name for one in weights.mtp_families
    }
    assert words["eh_proj.weight"] == words["mlp.gate.weight"] == "bf16"
    assert words["mlp.experts.{expert}.up_proj.weight"] == "fp8"


def test_deepseek_v4_has_experts_in_four_bits_and_small_scales():
    weights = stored("deepseek-ai/DeepSeek-V4-Pro")
    by_part = {(row.part, row.dtype) for row in weights.by_part()}
    assert (Part.EXPERTS, "mxfp4") in by_part
    assert (Part.SHARED_EXPERTS, "fp8") in by_part
    fp8 = stored("deepseek-ai/DeepSeek-V4-Pro", expert_dtype="fp8")
    assert (Part.EXPERTS, "fp8") in {(row.part, row.dtype) for row in fp8.by_part()}
    experts = next(
        one for one in stored("nvidia/DeepSeek-V4-Pro-NVFP4").families if "{expert}" in one.family.name
    )
    assert experts.format.name == "nvfp4"


def test_stacks_of_experts_become_modules_unless_the_method_stacks():
    family = TensorFamily(
        "model.layers.{layer}.mlp.experts.gate_up_proj", (8, 4), Part.EXPERTS, layers=(0,), num_experts=2,
        stacked=True,
    )  # fmt: skip
    assert sum(part.num_parameters for part in modules_of(family)) == family.num_parameters
    assert all("{expert}" not in one.family.name for one in stored("openai/gpt-oss-20b").families)
    weights = stored("Qwen/Qwen3.5-35B-A3B", FP8)
    assert formats(weights, "experts.{expert}.gate_proj.weight") == {"fp8": 40}


def test_a_block_of_the_language_model_leaves_the_towers_alone():
    weights = stored("moonshotai/Kimi-K2.5")
    towers = {one.format.name for one in weights.families if one.family.part in (Part.VISION, Part.PROJECTOR)}
    assert towers == {"bf16"}


@pytest.mark.parametrize(
    ("name", "linear"),
    [
        ("model.layers.{layer}.self_attn.q_proj.weight", True),
        ("model.layers.{layer}.mixer.in_proj.weight", True),
        ("model.layers.{layer}.self_attn.q_norm.weight", False),
        ("model.layers.{layer}.mamba.A_log", False),
        ("model.embed_tokens.weight", False),
        ("visual.pos_embed.weight", False),
    ],
)
def test_what_is_a_linear_layer(name, linear):
    assert is_linear(TensorFamily(name, (64, 64), Part.ATTENTION, layers=(0,))) is linear


# -- names --------------------------------------------------------------------------------------


def test_spellings_of_one_module():
    names = spellings("language_model.model.layers.#.mlp.experts.#.up_proj")
    assert "language_model.model.layers.#.block_sparse_moe.experts.#.w3" in names
    assert "model.language_model.layers.#.mlp.experts.#.up_proj" in names
    assert names[0] == "language_model.model.layers.#.mlp.experts.#.up_proj"


@pytest.mark.parametrize(
    ("listed", "mode", "layers"),
    [
        ("model.layers.0.mlp.up_proj", Mode.EXACT, {0}),
        ("model.layers.{0,2-3}.mlp.up_proj", Mode.EXACT, {0, 2, 3}),
        ("model.layers.1", Mode.PATH, {1}),
        ("model.layers.1*", Mode.PATH, {1}),
        ("mlp", Mode.PATH, set(range(12))),
        ("up_proj", Mode.PATH, set(range(12))),
        ("*.mlp.*", Mode.PATH, set(range(12))),
        ("model.language_model.layers.11.mlp*", Mode.PATH, {11}),
        ("lm", Mode.PATH, set()),
        ("p_proj", Mode.CONTAINS, set(range(12))),
        ("re:.*layers.(3|4).*", Mode.EXACT, {3, 4}),
        ("mlp", Mode.EXACT, set()),
        ("model.layers.12.mlp.up_proj", Mode.EXACT, set()),
    ],
)
def test_which_layers_a_name_covers(listed, mode, layers):
    family = TensorFamily(
        "model.layers.{layer}.mlp.up_proj.weight", (8, 8), Part.MLP, layers=tuple(range(12))
    )
    assert NameSet.of([listed], mode).layers_of(family, frozenset(range(12))) == layers


ALPHABET = st.sampled_from(
    ["a", "b", ".", r"\.", "a*", "b+", "(a|b)", "[ab]", "[^a]", ".*", "a?", r"\d", "(ab)*", "$"]
)


@given(st.lists(ALPHABET, max_size=6).map("".join), st.text("ab.1", max_size=8))
@settings(max_examples=400, deadline=None)
def test_patterns_match_what_python_matches(pattern, text):
    assert matches(pattern, text) == (re.match(pattern, text) is not None)
    assert matches(pattern, text, anywhere=True) == (re.search(pattern, text) is not None)


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        (r"^(?!.*experts).*proj$", "model.layers.0.mlp.up_proj", True),
        (r"^(?!.*experts).*proj$", "model.layers.0.mlp.experts.1.up_proj", False),
        (r"model\.layers\.(1[0-5]|2\d)\.", "model.layers.13.mlp", True),
        (r"a{2,3}b", "aaab", True),
        (r"a{2}$", "aaa", False),
    ],
)
def test_patterns_of_published_configs(pattern, text, fits):
    assert matches(pattern, text) is fits


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", "(.*)*x", "(a*)*(a*)*(a*)*b", ".*.*.*.*.*.*x"])
def test_no_pattern_takes_long(pattern):
    started = time.process_time()
    assert not matches(pattern, "a" * 200 + "!")
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "pattern", ["(", ")", "[a", "*a", "a**", "a" * (MAX_PATTERN + 1), "(" * 50 + ")" * 50]
)
def test_broken_patterns_are_invalid(pattern):
    with pytest.raises(InvalidFieldError):
        matches(pattern, "model")


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?P<n>a)", "(?<=a)b", "a{1000}", r"\bx"])
def test_unknown_expressions_are_refused(pattern):
    with pytest.raises(FeatureUnsupportedError):
        matches(pattern, "model")


# -- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method", ["aqlm", "vptq", "quip", "eetq", "exl3", "spqr", "higgs", "mystery", "gguf"]
)
def test_unknown_methods_are_refused_by_name(method):
    with pytest.raises(FeatureUnsupportedError, match="(?i)" + method):
        stored("Qwen/Qwen3-8B", {"quant_method": method, "bits": 4})


@pytest.mark.parametrize(
    "block",
    [
        GPTQ | {"bits": 1},
        GPTQ | {"checkpoint_format": "marlin"},
        AWQ | {"version": "gemv"},
        ROUND | {"packing_format": "auto_round:mystery"},
        PACKED | {"format": "mystery"},
        PACKED | {"config_groups": {}},
        NVFP4 | {"quant_algo": "W2A2"},
        MIXED | {"quantized_layers": {}},
        TORCHAO | {"quant_type": "autoquant"},
        {"quant_method": ""},
        {"mystery": 1},
    ],
)
def test_unknown_variants_are_refused(block):
    with pytest.raises(FeatureUnsupportedError):
        stored("Qwen/Qwen3-8B", block)


def test_a_missing_number_is_named():
    with pytest.raises(MissingFieldError, match=r"quantization_config\.bits"):
        stored("Qwen/Qwen3-8B", {"quant_method": "gptq"})


@pytest.mark.parametrize(
    "block",
    [
        [],
        "fp8",
        FP8 | {"weight_block_size": [128]},
        FP8 | {"weight_block_size": [0, 128]},
        FP8 | {"modules_to_not_convert": "gate"},
        FP8 | {"modules_to_not_convert": ["x" * (MAX_NAME + 1)]},
        FP8 | {"modules_to_not_convert": [f"a{i}" for i in range(5000)]},
        FP8 | {"modules_to_not_convert": ["layers.{0-999999999}.mlp"]},
        GPTQ | {"group_size": 0},
        GPTQ | {"dynamic": []},
        PACKED | {"config_groups": {"g": 1}},
        BNB | {"load_in_4bit": "yes"},
    ],
)
def test_wrong_kinds_are_invalid(block):
    with pytest.raises(InvalidFieldError):
        stored("Qwen/Qwen3-8B", block)


def stores_or_refuses(block: object, side_file: Any = None) -> None:
    families = (
        TensorFamily("model.layers.{layer}.mlp.up_proj.weight", (96, 64), Part.MLP, layers=(0, 1, 2)),
        TensorFamily("model.layers.{layer}.mlp.experts.{expert}.w1.weight", (96, 64), Part.EXPERTS, layers=(1,),
                     num_experts=4),
        TensorFamily("model.embed_tokens.weight", (100, 64), Part.EMBEDDING),
    )  # fmt: skip
    config = {} if block is None else {"quantization_config": block}
    try:
        weights = stored_weights(ModelWeights(families), config, side_file, "bf16")
    except KvgaugeError as error:
        assert error.code
        assert "\n" not in error.message
        for text in (error.message, error.hint or "现"):
            assert re.search(r"[一-鿿]", chinese(text)), text
        return
    assert weights.num_bytes > 0
    assert sum(one.family.num_parameters for one in weights.families) == 96 * 64 * 7 + 6400


@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: str(b.get("quant_method")))
def test_every_field_may_be_anything(block):
    for field in (*block, "ignore", "modules_to_not_convert", "quant_method", "dynamic", "extra_config"):
        for value in (*JUNK, ["re:("], ["re:(a+)+$"], {"model": {"bits": "x"}}):
            stores_or_refuses(block | {field: value})
            stores_or_refuses(None, {"quantization": block | {field: value}})


def test_inner_fields_may_be_anything():
    for group in ({"weights": INT4}, {"targets": ["Linear"]}):
        for field in (*INT4, "block_structure", "actorder", "dynamic"):
            for value in JUNK:
                inner = {"targets": ["Linear"], "weights": INT4 | {field: value}, **group}
                stores_or_refuses(PACKED | {"config_groups": {"group_0": inner}})
                inner["weights"] = INT4 | {field: value}
                stores_or_refuses(PACKED | {"config_groups": {"group_0": inner}, "format": "int-quantized"})


@given(st.dictionaries(st.text(max_size=12), json_values, max_size=6), st.sampled_from(BLOCKS))
@settings(max_examples=200, deadline=None)
def test_arbitrary_blocks(fields, block):
    stores_or_refuses(block | fields)
    stores_or_refuses(fields)
    stores_or_refuses(None, fields)


@pytest.mark.parametrize("pattern", [r"(?:layers|.+)+\.(1|2)\.x{}", r".*layers\.[0-9]\.mlp{}", r"(a+)+\d{}"])
def test_a_thousand_patterns_of_deep_models_end_soon(pattern):
    layers = tuple(range(10_000))
    family = TensorFamily("model.layers.{layer}.mlp.up_proj.weight", (8, 8), Part.MLP, layers=layers)
    patterns = [pattern.replace("{}", str(number)) for number in range(900)]
    for block in (
        PACKED | {"ignore": [f"re:{one}" for one in patterns[:50]]},
        GPTQ | {"dynamic": {one: {"bits": 8} for one in patterns}},
        ROUND | {"extra_config": {one: {"bits": 8, "group_size": 1 + i} for i, one in enumerate(patterns)}},
    ):
        started = time.process_time()
        with contextlib.suppress(InvalidFieldError):
            stored_weights(ModelWeights((family,)), {"quantization_config": block}, None, "bf16")
        assert time.process_time() - started < 20


def test_ten_thousand_modules_take_no_time():
    layers = {
        f"model.layers.{layer}.mlp.experts.{expert}.w1": {"quant_algo": "NVFP4", "group_size": 16}
        for layer in range(60)
        for expert in range(384)
    }
    started = time.process_time()
    stores_or_refuses(
        {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers}
    )
    assert time.process_time() - started < 2
