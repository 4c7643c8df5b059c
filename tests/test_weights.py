"""Parameters from a config alone: exact against built models, sums that add up, refusals for the rest."""

from __future__ import annotations

import json
import re
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvgauge.errors import KvgaugeError, MissingFieldError
from kvgauge.readers.hf.weights import read_weights, why_unknown
from kvgauge.readers.hf.weights.tables import block, known_weight_types, weight_row
from kvgauge.render.messages.errors_zh import chinese
from kvgauge.sources.catalogue import all_models, find_model
from kvgauge.weights import ModelWeights, Part, TensorFamily, WeightShard
from strategies import models
from support import ROOT, SHARED, config_of, golden_lines
from test_hostile import JUNK, SPECIMENS, json_values

GOLDEN = golden_lines("parameters_transformers_5.24.0.jsonl")
RECORDS = SHARED / "data/configs/params.jsonl"
REAL = SHARED / "data/configs/real"


def weights_of(model: str) -> ModelWeights:
    weights = read_weights(config_of(model))
    assert weights is not None, model
    return weights


@pytest.mark.parametrize("record", GOLDEN, ids=lambda r: r["id"])
def test_equals_the_built_model(record):
    weights = weights_of(record["id"])
    assert weights.num_parameters == record["num_parameters"]
    assert weights.num_active_parameters == record["num_active_parameters"]
    assert {part.value: count for part, count in weights.by_part.items()} == record["by_part"]


@pytest.mark.parametrize(
    "record",
    golden_lines("parameters_small_transformers_5.24.0.jsonl"),
    ids=lambda r: r["config"]["model_type"],
)
def test_a_small_model_of_each_type_equals_its_class(record):
    weights = read_weights(record["config"])
    assert weights is not None
    assert weights.num_parameters == record["num_parameters"]
    check_sums(weights)


def test_nearly_every_row_of_the_catalogue_has_weights():
    lacking, unknown = set(), 0
    for raw, _ in all_models():
        try:
            unknown += read_weights(raw.config) is None
        except MissingFieldError:
            lacking.add(raw.id)
    assert unknown <= 20
    assert len(lacking) <= 6


def test_entries_of_a_list_may_be_kinds_of_experts():
    config = config_of("baidu/ERNIE-4.5-VL-28B-A3B-PT")
    text = config["text_config"] | {"moe_intermediate_size": [1536]}
    with pytest.raises(MissingFieldError, match=r"moe_intermediate_size\[1\]"):
        read_weights(config | {"text_config": text})


def test_a_composite_that_lost_its_towers_is_not_weighed_without_them():
    """No file of a class that saves its towers: half of what it holds would be missing in silence."""
    config = config_of("google/gemma-4-E2B-it")
    lost = {k: v for k, v in config.items() if k not in ("vision_config", "audio_config")}
    bare = {k: v for k, v in lost.items() if k != "transformers_version"}
    with pytest.raises(MissingFieldError, match="vision_config"):
        read_weights(bare)
    for whole in (lost, bare | {"vision_config": None}, bare | {"vision_config": None, "audio_config": None}):
        weights = read_weights(whole)
        assert weights is not None
        assert not set(weights.by_part) & {Part.VISION, Part.AUDIO}


def test_a_tower_that_the_type_does_not_have_is_not_dropped():
    vision = config_of("mistralai/Ministral-3-3B-Instruct-2512")["vision_config"]
    plain = config_of("Qwen/Qwen3-8B")
    assert read_weights(plain | {"vision_config": vision}) is None
    assert read_weights(plain | {"vision_config": {}}) == read_weights(plain)


def test_towers_of_one_family_meet_the_count_of_both():
    """The hub counts 7,996,156,490 in gemma-4-E4B: keys and values of layers that share them, 42 scalars."""
    weights = weights_of("google/gemma-4-E4B-it")
    shared = 15 * (2 * 2 * 256 * 2560 + 256) + 3 * (2 * 2 * 512 * 2560 + 512)
    assert weights.num_parameters + shared + 42 == 7_996_156_490


@pytest.mark.parametrize(("size", "on_the_hub"), [("E2B", 5_439_438_272), ("E4B", 7_849_978_192)])
def test_gemma_3n_is_what_the_hub_counts(size, on_the_hub):
    """Towers as timm 1.0.31 (mobilenetv5_300m_enc) and Transformers 5.24.0 build them on the meta device."""
    weights = weights_of(f"google/gemma-3n-{size}-it")
    assert weights.num_parameters == on_the_hub
    assert weights.by_part[Part.VISION] == 294_126_912
    assert weights.by_part[Part.AUDIO] == 681_348_640
    assert weights.by_part[Part.PROJECTOR] == 4_460_544 + 3_345_408
    tower = [f for f in weights.families if "timm_model" in f.name]
    assert sum(family.num_tensors for family in tower) == 548
    check_sums(weights)


def test_keys_of_layers_that_share_are_the_checkpoints_not_the_class():
    config = config_of("google/gemma-3n-E4B-it")
    text = read_weights(config["text_config"])
    assert text.num_parameters == 6_835_235_568
    both = weights_of("google/gemma-3n-E4B-it").by_part[Part.ATTENTION]
    assert both - text.by_part[Part.ATTENTION] == 15 * (2 * 512 * 2048 + 256)


def test_a_network_of_another_name_is_not_taken_for_the_known_one():
    config = config_of("google/gemma-3n-E2B-it")
    vision = config["vision_config"] | {"architecture": "mobilenetv5_base"}
    assert read_weights(config | {"vision_config": vision}) is None
    lost = {k: v for k, v in config.items() if k not in ("vision_config", "transformers_version")}
    with pytest.raises(MissingFieldError, match="vision_config"):
        read_weights(lost)


def test_a_draft_of_the_first_eagle_has_a_projection_and_no_head():
    """2,040,537,088 elements on the hub; the class that its file names would have 72 % more."""
    weights = weights_of("yuhuili/EAGLE-LLaMA3-Instruct-70B")
    assert weights.num_parameters == 2_040_537_088
    assert {f.name for f in weights.families if not f.layers} == {"embed_tokens.weight", "fc.weight"}
    config = config_of("yuhuili/EAGLE-LLaMA3-Instruct-70B")
    assert read_weights(config | {"bias": True}).num_parameters == 2_040_537_088 + 8192


@pytest.mark.parametrize(
    "fields",
    [
        {"architectures": ["LlamaForCausalLMEagle3"]}, {"architectures": ["Eagle3LlamaForCausalLM"]},
        {"architectures": ["DFlashDraftModel"]}, {"draft_vocab_size": 32000}, {"num_hidden_layers": 1},
    ],
)  # fmt: skip
def test_other_drafts_are_not_priced_as_their_target(fields):
    config = config_of("meta-llama/Llama-3.1-8B-Instruct") | fields
    assert read_weights(config) is None
    assert (
        why_unknown(config) == "it is a draft for speculative decoding, whose file does not tell its tensors"
    )


def test_why_tensors_are_not_known_names_what_is_missing():
    llama = config_of("meta-llama/Llama-3.1-8B-Instruct")
    mixtral = config_of("mistralai/Mixtral-8x7B-Instruct-v0.1")
    for config, said in (
        (config_of("Infi-MM/infimm-zephyr"), "the tensors of infimm-zephyr are not known"),
        (config_of("openbmb/MiniCPM-o-2_6"), "the file names no model type"),
        (llama | {"vision_config": {"depth": 2}}, "llama is not known with a vision_config"),
        (llama | {"kv_lora_rank": 512, "qk_rope_head_dim": 64}, "accounts for kv_lora_rank in the file"),
        (mixtral | {"intermediate_size": 0}, "intermediate_size is 0 in the file"),
        (small_config("llava") | {"vision_config": {"model_type": "eva"}}, "vision_config.model_type 'eva'"),
    ):
        assert said in why_unknown(config)
        assert re.search(r"[一-鿿]", chinese(why_unknown(config)))
    assert why_unknown(llama) == ""


def small_config(model_type: str) -> dict[str, Any]:
    lines = golden_lines("parameters_small_transformers_5.24.0.jsonl")
    return next(r["config"] for r in lines if r["config"]["model_type"] == model_type)


def test_parts_of_an_unknown_kind_are_not_guessed():
    config = small_config("llava")
    vision = config.get("vision_config", {}) | {"model_type": "eva"}
    assert read_weights(config | {"vision_config": vision}) is None


def test_layers_may_state_sizes_of_their_own():
    config = small_config("gemma4_text")
    widths = {f.shape for f in read_weights(config).families if f.name.endswith("self_attn.q_norm.weight")}
    assert widths == {(256,), (512,)}


def excepted() -> dict[str, str]:
    """Return id -> reason of the table in docs/parameters.md."""
    text = (ROOT / "docs/parameters.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]*) \|.*\| (.+) \|$", text, re.MULTILINE)
    return {name: reason for name, _, reason in rows}


@pytest.mark.skipif(not RECORDS.exists(), reason="needs ../shared")
def test_every_shared_record_is_equal_or_in_the_table():
    known = excepted()
    unequal, built = [], 0
    for line in RECORDS.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["params_total"] is None:
            continue
        built += record["params_by_part"] is not None
        if _parameters(record["id"]) != record["params_total"]:
            unequal.append((record["id"], record["params_by_part"] is not None))
    assert {name for name, _ in unequal} == set(known)
    assert sum(is_built for _, is_built in unequal) <= built * 0.05


def _parameters(model: str) -> int | None:
    path = REAL / (model.replace("/", "--") + ".json")
    raw = find_model(model)
    if not path.exists() and raw is None:
        return None
    config = json.loads(path.read_text(encoding="utf-8")) if path.exists() else raw.config
    try:
        weights = read_weights(config)
    except KvgaugeError:
        return None
    return None if weights is None else weights.num_parameters


@pytest.mark.parametrize(
    ("model", "billions"),
    [
        ("deepseek-ai/DeepSeek-V3", 37.5),
        ("openai/gpt-oss-120b", 5.7),
        ("Qwen/Qwen3-30B-A3B", 3.35),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", 12.9),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 3.88),
    ],
)
def test_active_parameters_are_what_the_authors_say(model, billions):
    assert weights_of(model).num_active_parameters / 1e9 == pytest.approx(billions, rel=0.03)


def test_a_dense_model_is_active_throughout():
    weights = weights_of("Qwen/Qwen3-8B")
    assert weights.num_active_parameters == weights.num_parameters == 8_190_735_360


@pytest.mark.parametrize(
    ("model", "with_mtp"),
    [
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 81_324_862_720),
        ("Qwen/Qwen3.5-35B-A3B", 35_951_822_704),
        ("XiaomiMiMo/MiMo-7B-RL", 7_622_619_136 + 210_790_400),
    ],
)
def test_multi_token_prediction_is_what_the_checkpoint_has_more(model, with_mtp):
    weights = weights_of(model)
    assert weights.num_parameters + weights.num_mtp_parameters == with_mtp
    assert weights.by_part[Part.MTP] == weights.num_mtp_parameters


def test_tied_heads_count_once():
    config = config_of("Qwen/Qwen3-8B")
    untied = read_weights(config | {"tie_word_embeddings": False})
    tied = read_weights(config | {"tie_word_embeddings": True})
    assert untied.num_parameters - tied.num_parameters == config["vocab_size"] * config["hidden_size"]
    head = next(f for f in tied.families if f.part is Part.LM_HEAD)
    assert head.num_parameters == 0
    assert head.tied_to


def test_a_model_of_many_tensors_is_a_few_families():
    weights = weights_of("deepseek-ai/DeepSeek-V3.2")
    assert len(weights.families) < 50
    assert sum(family.num_tensors for family in weights.families) > 40_000


def test_kv_projections_say_their_heads():
    family = next(f for f in weights_of("Qwen/Qwen3-8B").families if f.name.endswith("k_proj.weight"))
    assert family == TensorFamily(
        "model.layers.{layer}.self_attn.k_proj.weight",
        (1024, 4096),
        Part.ATTENTION,
        WeightShard.KV_HEADS,
        tuple(range(36)),
        shard_units=8,
    )


def test_unknown_types_have_no_weights_rather_than_wrong_ones():
    config = config_of("Qwen/Qwen3-8B")
    assert read_weights(config | {"model_type": "mystery"}) is None
    assert read_weights(config | {"num_experts": 64}) is None  # a dense type's name over experts
    assert read_weights(config | {"kv_lora_rank": 512, "qk_rope_head_dim": 64}) is None


def test_a_lost_vision_part_is_refused_not_guessed():
    config = config_of("Qwen/Qwen2.5-VL-32B-Instruct")
    del config["vision_config"]
    with pytest.raises(KvgaugeError, match="vision_config"):
        read_weights(config)


@pytest.mark.parametrize("model", ["moonshotai/Kimi-Linear-48B-A3B-Instruct", "zai-org/GLM-4.7-Flash"])
def test_a_lost_pattern_of_experts_is_refused_not_guessed(model):
    config = {k: v for k, v in config_of(model).items() if not k.startswith(("first_k_", "mlp_layer"))}
    with pytest.raises(MissingFieldError, match="first_k_dense_replace, which says which layers are sparse"):
        read_weights(config)
    with pytest.raises(MissingFieldError, match="first_k_dense_replace"):
        read_weights(config | {"moe_layer_freq": 1})
    assert read_weights(config | {"first_k_dense_replace": 1, "intermediate_size": 9216}) is not None


def test_a_step_of_experts_leaves_the_first_dense_layers_to_the_class():
    config = config_of("deepseek-ai/DeepSeek-V3")
    lost = {k: v for k, v in config.items() if k != "first_k_dense_replace"} | {"moe_layer_freq": 1}
    assert read_weights(lost).num_parameters == weights_of("deepseek-ai/DeepSeek-V3").num_parameters


def test_a_missing_width_is_named():
    config = {k: v for k, v in config_of("Qwen/Qwen3-8B").items() if k != "intermediate_size"}
    config.pop("architectures", None)
    with pytest.raises(KvgaugeError):
        read_weights(config | {"model_type": "deepseek"})


@pytest.mark.parametrize("model_type", known_weight_types())
def test_rows_name_blocks_that_exist(model_type):
    row = weight_row(model_type)
    names = [*row.blocks, *(name for stack in row.stacks for name in stack.blocks)]
    assert names
    assert all(block(name).tensors for name in names)


def check_sums(weights: ModelWeights) -> None:
    total = sum(
        prod(f.shape) * max(1, len(f.layers)) * max(1, f.num_experts)
        for f in weights.families
        if not f.tied_to
    )
    assert weights.num_parameters == total == sum(weights.by_part.values()) - weights.num_mtp_parameters
    assert 0 <= weights.num_active_parameters <= total
    seen = [(f.name, layer) for f in weights.families for layer in (f.layers or (None,))]
    assert len(seen) == len(set(seen))
    for family in weights.families:
        assert bool(family.layers) is ("{layer}" in family.name)
        assert (family.num_experts > 0) is (family.stacked or "{expert}" in family.name)
        assert all(size > 0 for size in family.shape)


@pytest.mark.parametrize("record", GOLDEN, ids=lambda r: r["id"])
def test_families_add_up(record):
    check_sums(weights_of(record["id"]))


def adds_up_or_refuses(config: dict[str, Any]) -> None:
    try:
        weights = read_weights(config)
    except KvgaugeError as error:
        assert error.code
        assert "\n" not in error.message
        for text in (error.message, error.hint or "现"):
            assert re.search(r"[一-鿿]", chinese(text)), text
        return
    if weights is not None:
        check_sums(weights)


@pytest.mark.parametrize("model", SPECIMENS)
def test_every_field_may_be_anything(model):
    config = config_of(model)
    for field in config:
        for value in JUNK:
            adds_up_or_refuses(config | {field: value})
    for nest in ("text_config", "vision_config", "audio_config"):
        for field in config.get(nest) or ():
            for value in JUNK:
                adds_up_or_refuses(config | {nest: config[nest] | {field: value}})


@given(st.dictionaries(st.text(max_size=12), json_values, max_size=8), st.sampled_from(known_weight_types()))
@settings(max_examples=200, deadline=None)
def test_arbitrary_objects(config, model_type):
    adds_up_or_refuses(config | {"model_type": model_type})


@given(models, st.sampled_from(known_weight_types()))
@settings(max_examples=200, deadline=None)
def test_random_models_under_any_name(config, model_type):
    adds_up_or_refuses(config | {"vocab_size": 1000, "intermediate_size": 256, "model_type": model_type})
