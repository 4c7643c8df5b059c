"""What ``explain`` says is true of what is stored: every shipped model, engines, ranks, both languages."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from importlib import resources

import pytest

import kvgauge
from designs import DESIGNS
from kvgauge.arithmetic import evaluate, symbol_names
from kvgauge.derivation import Explanation
from kvgauge.errors import KvgaugeError
from kvgauge.layers import Axis, LayerKind, Role
from kvgauge.render.explain import draw_explanation
from kvgauge.render.messages import Texts
from kvgauge.render.view import View
from kvgauge.texts import Count, Words
from support import config_of

LANGS = ("en", "zh")
ENGINES = (
    {"engine": "transformers"},
    {"engine": "transformers@4.57.3"},
    {"engine": "transformers", "engine_args": "cache=static max_cache_len=777"},
    {"engine": "transformers", "engine_args": "cache=static"},
    {"engine": "transformers", "engine_args": "cache=quantized nbits=4 prompt=200"},
    {"engine": "transformers", "engine_args": "cache=quantized nbits=2 prompt=0"},
    {"engine": "transformers", "engine_args": "cache=dynamic_without_config"},
    {"engine": "llama.cpp"},
    {"engine": "llama.cpp", "engine_args": "-kvu -ctk q8_0 -ctv q8_0", "sequences": 3},
    {"engine": "llama.cpp@b5430", "engine_args": "-c 32768 -np 2", "context": 1000},
    {"engine": "llama.cpp", "engine_args": "-ts 3,1", "sequences": 2},
)
SPREADS = (
    {"tp": 2},
    {"tp": 4, "sequences": 5},
    {"tp": 8, "dcp": 4, "context": 1003},
    {"dp": 3, "sequences": 5},
    {"tp": 2, "pp": 2, "dp": 2, "sequences": 5},
    {"tp": 4, "context": 1001, "sequences": 5, "shared_prefix": 700},
)
SHOWN = (
    *DESIGNS,
    "deepseek-ai/DeepSeek-V3",
    "deepseek-ai/DeepSeek-V4-Flash",
    "zai-org/GLM-5.3-Flash",
    "openai/gpt-oss-120b",
    "RWKV/rwkv-5-world-3b",
    "openai/whisper-large-v3",
    "Snowflake/snowflake-arctic-embed-m",
)


@lru_cache
def model(name: str) -> kvgauge.Model:
    return kvgauge.load(DESIGNS[name] if name in DESIGNS else config_of(name))


def opened(name: str, lang: str = "en", **load: object) -> Explanation | None:
    """Explain, or None where the model or the engine refuses the load."""
    try:
        result = kvgauge.size(model(name), **load)
    except KvgaugeError:
        return None
    return kvgauge.explain(result, lang=lang)


def steps(name: str, **load: object) -> dict:
    explanation = opened(name, **load)
    assert explanation is not None
    return {step.id: step for step in explanation.steps}


def drawn(explanation: Explanation, units: str = "gib", width: int = 400) -> str:
    return draw_explanation(explanation, View(Texts(explanation.lang), units, width))


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("load", [*ENGINES, *SPREADS], ids=str)
def test_every_step_evaluates_and_every_symbol_is_explained(load, lang):
    count = 0
    for name in SHOWN:
        explanation = opened(name, lang, **load)
        for step in explanation.steps if explanation else ():
            assert evaluate(step.formula, step.symbols) == step.value_bytes, (name, step)
            for symbol, formula in step.definitions:
                assert evaluate(formula, step.symbols) == step.symbols[symbol], (name, step.id, symbol)
            used = {
                n
                for text in (step.formula, *(d.formula for d in step.definitions))
                for n in symbol_names(text)
            }
            assert used <= set(step.symbols)
            assert set(step.told) <= set(step.symbols)
            assert all(step.symbol_meanings[symbol] != symbol for symbol in step.symbols), step
            assert "{" not in step.title + step.text
            count += 1
    assert count


# What is stored, not what could be


@pytest.mark.parametrize("load", ENGINES, ids=str)
@pytest.mark.parametrize("name", SHOWN)
def test_words_follow_the_rows_that_an_engine_keeps(name, load):
    explanation = opened(name, **load)
    if explanation is None:
        return
    cache = explanation.result.cache
    by_id = {step.id: step for step in explanation.steps}
    for demand in cache.demand.groups:
        text, roles = by_id[f"group.{demand.group.name}"].text, {s.role for s in demand.streams}
        grows = any(s.counted.axis is Axis.DECODER for s in demand.streams)
        assert ("One latent row" in text) <= (Role.LATENT in roles), name
        assert ("in step with the context" in text) <= grows, name
        kept = {s.counted.to_tokens for s in demand.streams}
        window = demand.group.window_tokens
        assert ("Only the last" in text) <= (kept == {window}), name
    for step in explanation.steps:
        assert not any(isinstance(v, int) and v < 0 for v in step.symbols.values()), (name, step)


def test_expanded_latents_save_nothing():
    by_id = steps("deepseek-ai/DeepSeek-V3", engine="transformers@4.57.3")
    assert "K and V of every head" in by_id["group.latent"].text
    assert "The design needs 1.41 %" in by_id["why"].text
    assert "keeps 100 % of plain multi-head attention" in by_id["why"].text


def test_a_quantised_cache_is_spelled_out():
    step = steps("mha", engine="transformers", engine_args="cache=quantized nbits=4 prompt=200", context=1000)
    group = step["group.full"]
    assert group.formula == "L × 2 × H_kv × D × B × (n_q × b_q + n_t × b)"
    assert (group.symbols["n_q"], group.symbols["n_t"], group.symbols["b_q"]) == (968, 32, 0.5625)
    assert "packed in 4 bits" in group.text
    assert "less than" in step["theory"].text
    assert "packed in 4 bits" in step["theory"].text


def test_a_static_cache_says_how_much_it_allocates():
    args = "cache=static max_cache_len=65536"
    by_id = steps("mha", engine="transformers", engine_args=args, context=32768)
    group = by_id["group.full"]
    assert group.formula == "L × 2 × H_kv × D × n_max × B × b"
    assert group.symbols["n_max"] == 65536
    assert group.symbol_paths["n_max"] == "--engine-args"
    assert "does not grow" in group.text
    assert "keeps 200 % of plain multi-head attention" in by_id["why"].text
    assert "allocates ahead" in by_id["fixed"].text


def test_a_window_is_that_of_the_config():
    group = steps("windows", engine="transformers", context=4096)["group.sliding"]
    assert "min(T, W - 1)" in group.formula
    assert group.symbols["W"] == 128
    assert group.symbol_paths["W"] == "sliding_window"
    assert "keeps 127 of them" in group.text


def test_an_encoder_mixes_tokens_and_keeps_none():
    explanation = opened("Snowflake/snowflake-arctic-embed-m")
    assert explanation is not None
    text = drawn(explanation)
    assert "These layers mix tokens" in text
    assert "One sequence" not in text


# Where values come from


def test_no_option_is_named_that_was_not_given():
    names = [line["id"] for line in _catalogue()]
    for name in names:
        for step in kvgauge.explain(name).steps:
            paths = set(step.symbol_paths.values())
            assert not paths & {"--kv-dtype", "--k-dtype", "--v-dtype", "--state-dtype"}, (name, step.id)


def _catalogue() -> list[dict]:
    text = resources.files("kvgauge.data").joinpath("models.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_an_option_that_was_given_is_named():
    by_id = steps("Qwen3.5-35B-A3B", kv_dtype="fp8", state_dtype="bf16")
    assert by_id["group.full"].symbol_paths["b"] == "--kv-dtype"
    assert by_id["group.recurrent"].symbol_paths["b_S"] == "--state-dtype"
    assert steps("Qwen3.5-35B-A3B")["group.recurrent"].symbol_paths["b_S"] == "text_config.mamba_ssm_dtype"


def test_a_default_says_so():
    assert steps("openai/gpt-oss-120b")["group.full"].symbol_meanings["b"].endswith("bf16 by default")
    assert steps("kimi")["group.recurrent"].symbol_meanings["b_S"].endswith("fp32 by default")
    paths = {s.symbol_paths["b"] for s in steps("deepseek-ai/DeepSeek-V4-Flash").values() if "b" in s.symbols}
    assert paths == {"torch_dtype"}


def test_a_field_that_is_named_holds_the_number():
    for name in SHOWN:
        explanation = opened(name)
        assert explanation is not None
        fields = dict(explanation.result.model.architecture.fields)
        for step in explanation.steps:
            for symbol, path in step.symbol_paths.items():
                value = fields.get(path)
                if symbol not in ("L", "L_all") and type(value) is int:
                    assert step.symbols[symbol] == value, (name, step.id, symbol, path)


# Designs in their own words


@pytest.mark.parametrize(
    ("name", "group", "said", "not_said"),
    [
        ("zai-org/GLM-5.3-Flash", "latent", "without a rotary key", "one rotary key"),
        ("zai-org/GLM-5.3-Flash", "index", "one narrow key for every 16 tokens", "narrow key a token"),
        (
            "deepseek-ai/DeepSeek-V4-Flash",
            "index",
            "Every compressed record has one narrow key",
            "serves as key",
        ),
        ("deepseek-ai/DeepSeek-V4-Flash", "compressed", "Compressed sparse attention", "Heavily"),
        ("deepseek-ai/DeepSeek-V4-Flash", "compressed_2", "Heavily compressed attention", "sparse"),
        ("deepseek-ai/DeepSeek-V4-Flash", "sliding", "not compressed", "fewer"),
        ("RWKV/rwkv-5-world-3b", "recurrent", "there is no convolution", "columns"),
    ],
)
def test_a_design_is_named_by_its_own_words(name, group, said, not_said):
    step = steps(name)[f"group.{group}"]
    assert said in step.text
    assert not_said not in step.text


def test_token_shift_is_no_convolution():
    by_id = steps("RWKV/rwkv-5-world-3b")
    assert "convolution" not in " ".join(by_id["group.recurrent"].symbol_meanings.values())
    assert "convolution" not in by_id["fixed"].text


def test_the_fixed_part_names_what_it_is_made_of():
    assert "wait to be compressed" in steps("compressed")["fixed"].text
    assert "convolution columns" in steps("both")["fixed"].text
    assert "encoder" in steps("encoder_decoder")["fixed"].text


@pytest.mark.parametrize(
    ("name", "load"),
    [("openai/whisper-large-v3", {}), ("meta-llama/Llama-3.2-11B-Vision-Instruct", {"image_tokens": 6404})],
)
def test_cross_attention_is_not_forgotten(name, load):
    by_id = steps(name, **load)
    cross = Words("en").size(by_id["group.cross"].value_bytes)
    assert cross in by_id["why"].text
    assert "nothing is saved" not in by_id["why"].text
    assert "write a cache" not in by_id["why"].text


# Ranks


@pytest.mark.parametrize("load", SPREADS, ids=str)
@pytest.mark.parametrize("name", SHOWN)
def test_every_rank_is_opened(name, load):
    explanation = opened(name, **load)
    if explanation is None:
        return
    cache = explanation.result.cache
    parts = [s for s in explanation.steps if s.id.startswith("rank.")]
    sums = [s for s in explanation.steps if s.id.startswith("per_rank")]
    assert {s.value_bytes for s in sums} == set(cache.per_rank_bytes)
    assert sums[0].value_bytes == max(cache.per_rank_bytes)
    sizes = {size for ranks in cache.rank_group_bytes for size in ranks if size}
    assert {s.value_bytes for s in parts} == sizes
    assert not any("Nothing is divided" in s.text for s in explanation.steps)
    for step in parts:
        assert len(step.symbols) > 1
        assert step.text


def test_heads_are_divided_or_copied():
    step = steps("Qwen3.5-35B-A3B", tp=4)["rank.full"]
    assert step.symbols["H_kv"] == 1
    assert ("H_kv", "ceil(H_kv_all / N_tp)") in step.definitions
    assert "2 KV heads can't be divided over 4 tensor-parallel ranks: each is copied to 2" in step.text
    assert "32 KV heads are divided over 4" in steps("mha", tp=4)["rank.full"].text


def test_latents_are_copied_or_dealt_out():
    assert "each of the 8 tensor-parallel ranks holds a copy" in steps("index", tp=8)["rank.latent"].text
    dealt = steps("index", tp=8, dcp=8)
    assert "dealt out over 8" in dealt["rank.latent"].text
    assert "ceil(T / N_dcp)" in dealt["rank.index"].formula
    assert not any("copied" in s.text for s in dealt.values())


def test_stages_and_replicas_are_told():
    text = steps("Qwen3.5-35B-A3B", tp=2, pp=2, dp=2, sequences=5)["rank.full"].text
    assert "The pipeline stage has 5 of the 10 layers" in text
    assert "The 5 sequences are spread over 2 replicas; the fullest holds 3" in text


# For people


@pytest.mark.parametrize("name", SHOWN)
def test_why_comes_first_and_nothing_is_said_twice(name):
    explanation = opened(name)
    assert explanation is not None
    text = drawn(explanation)
    assert text.startswith("Why it needs what it needs")
    assert not re.search(r"^\d+\. (All sequences|One device)", text, re.MULTILINE)
    assert not re.search(r"^\d+\. Fixed part  0 B", text, re.MULTILINE)
    ids = {step.id for step in explanation.steps}
    assert {"per_sequence", "total", "fixed", "growth", "per_rank", "why"} <= ids  # the JSON keeps them


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("load", [{}, {"tp": 2, "sequences": 3}, ENGINES[0], ENGINES[1]], ids=str)
def test_no_internal_name_is_shown(load, lang):
    for name in SHOWN:
        explanation = opened(name, lang, **load)
        if explanation is None:
            continue
        text = drawn(explanation)
        names = {demand.group.name for demand in explanation.result.cache.demand.groups}
        assert not names & {symbol for step in explanation.steps for symbol in step.symbols}
        assert not re.search(r"\bgroup\.|\bcompressed_\d", text)
        if lang == "zh":
            own = re.sub(r"取自 \S+|来源：.*", "", text)
            assert not re.search(r"\b(layers?|heads|rows|tokens|sum of|the|of|bytes)\b", own), name


@pytest.mark.parametrize("units", ["gib", "gb", "bytes"])
def test_sentences_follow_the_units(units):
    explanation = opened("zai-org/GLM-5.3-Flash")
    assert explanation is not None
    text = explanation.in_units(units).steps[-1].text
    assert {"gib": "141 MiB", "gb": "148 MB", "bytes": "147,709,952 B"}[units] in text
    assert "bytes" not in drawn(explanation, "gib").split("\n1. ")[0]


def test_results_carry_their_unit():
    for name in SHOWN:
        explanation = opened(name)
        assert explanation is not None
        assert all(step.with_numbers.endswith(" B") for step in explanation.steps)


def test_plurals():
    one_head = {**DESIGNS["mha"], "num_key_value_heads": 1, "num_hidden_layers": 1}
    by_id = {s.id: s for s in kvgauge.explain(one_head, context=1).steps}
    assert "32 query heads share 1 KV head." in by_id["why"].text
    assert by_id["group.full"].title.endswith(", 1 layer")
    assert "single sequence of 1 token." in by_id["per_sequence"].text
    assert f"{Count(2):~keeps|keep} {Count(1):row|rows}" == "keep 1 row"


def test_kinds_that_keep_rows_are_linear_in_chinese():
    full = next(s for s in kvgauge.explain(DESIGNS["mha"], lang="zh").steps if s.id == "group.full")
    assert "成正比（线性）增长" in full.text
    text = json.dumps(
        [s.to_dict() for n in SHOWN if (e := opened(n, "zh")) for s in e.steps], ensure_ascii=False
    )
    assert "潜变量" not in text
    assert "等比" not in text
    assert LayerKind.LATENT.value not in {s.title for s in kvgauge.explain(DESIGNS["index"], lang="zh").steps}


# GGUF


GGUF = {
    "general.architecture": "qwen35moe",
    **{
        f"qwen35moe.{key}": value
        for key, value in {
            "block_count": 40, "context_length": 262144, "embedding_length": 2048, "attention.head_count": 16,
            "attention.head_count_kv": 2, "attention.key_length": 256, "attention.value_length": 256,
            "full_attention_interval": 4, "ssm.conv_kernel": 4, "ssm.state_size": 128, "ssm.group_count": 16,
            "ssm.time_step_rank": 32, "ssm.inner_size": 4096,
        }.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("lang", LANGS)
def test_gguf_keys_stand_behind_the_symbols(lang):
    explanation = kvgauge.explain(GGUF, context=32768, lang=lang)
    config = kvgauge.explain(DESIGNS["Qwen3.5-35B-A3B"], context=32768, lang=lang)
    assert [s.value_bytes for s in explanation.steps] == [s.value_bytes for s in config.steps]
    by_id = {s.id: s for s in explanation.steps}
    assert by_id["group.full"].symbol_paths["H_kv"] == "qwen35moe.attention.head_count_kv"
    assert by_id["group.full"].symbol_paths["D"] == "qwen35moe.attention.key_length"
    assert by_id["mha"].symbol_paths["H_q"] == "qwen35moe.attention.head_count"
    assert ("S", "d_inner × N_m") in by_id["group.recurrent"].definitions
