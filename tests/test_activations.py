"""``learn activations``: against known models, against the weights' shapes, ``size``, and a real forward pass."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import kvgauge
from kvgauge.cli.app import execute
from kvgauge.errors import KvgaugeError
from kvgauge.lab.activations import learn_activations
from kvgauge.lab.life import LIVES, Fate, held_at
from kvgauge.lab.measuring import compare, run_measured
from kvgauge.lab.mixers import Attention
from kvgauge.sources.catalogue import model_names
from kvgauge.units import format_bytes
from kvgauge.weighing import decoder_shapes
from kvgauge.weights import Part
from lab_models import CONFIGS, make

GIB, MIB = 1 << 30, 1 << 20


def made(answer, name, phase="prefill", group=0):
    passed = getattr(answer.groups[group], phase)
    return next(one for one in passed.made if one.life.name == name)


# Known models


def test_the_fifteen_of_qwen3_8b():
    answer = learn_activations("Qwen/Qwen3-8B", tokens="32k")
    (group,) = answer.groups
    assert len(group.indices) == 36
    sizes = {one.life.number: one.dimensions[1:] for one in group.decode.made if one.life.number}
    assert sorted(sizes) == list(range(1, 16))
    assert {sizes[n] for n in (1, 8, 9, 10, 14, 15)} == {(4096,)}
    assert {sizes[n] for n in (11, 12, 13)} == {(12288,)}
    assert made(answer, "query", "decode").dimensions == (32, 1, 128)
    assert made(answer, "key", "decode").dimensions == (8, 1, 128)
    assert made(answer, "scores").size_bytes == 64 * GIB
    assert group.fates == {"cached": 2, "state": 0, "passed_on": 1, "residual": 2, "discarded": 10}
    # two score matrices of 64 GiB and the input; the query is freed before the weights stand
    assert (group.prefill.plain_peak.size_bytes, group.prefill.plain_peak.name) == (
        128 * GIB + 256 * MIB,
        "weights",
    )
    assert group.cached_bytes * 36 == 4_831_838_208


def test_heads_of_a_latent_that_the_config_leaves_to_the_matrices():
    """MiniCPM3-4B: q_b_proj gives 40 x 96, kv_b_proj 40 x (64 + 64), o_proj takes 40 x 64."""
    (group,) = learn_activations("openbmb/MiniCPM3-4B", tokens=10).groups
    assert made(learn_activations("openbmb/MiniCPM3-4B", tokens=10), "query").dimensions == (40, 10, 96)
    mixer = group.shape.mixer
    assert (mixer.latent, mixer.rope, mixer.key_width, mixer.value_width) == (256, 32, 96, 64)
    assert group.cached_bytes == 10 * (256 + 32) * 2


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("unsloth/Qwen3-8B-GGUF", "Qwen/Qwen3-8B"),
        ("unsloth/Qwen3-Next-80B-A3B-Instruct-GGUF", "Qwen/Qwen3-Next-80B-A3B-Instruct"),
    ],
)
def test_shapes_need_no_scheme_of_the_weights(name, plain):
    assert learn_activations(name).to_dict()["groups"] == learn_activations(plain).to_dict()["groups"]


def test_a_decoder_is_described_though_its_tower_is_not():
    assert sum(len(group.indices) for group in learn_activations("stepfun-ai/Step-3.7-Flash").groups) == 45


def test_one_token_is_one(capsys):
    assert execute(["learn", "activations", "Qwen/Qwen3-8B", "--tokens", "1", "--lang", "en"]) == 0
    assert "what one layer makes of 1 token in bf16" in capsys.readouterr().out


@pytest.mark.parametrize("topic", ["activations", "pipeline"])
def test_without_a_model_the_hint_is_of_the_topic(topic, capsys):
    assert execute(["learn", topic, "--lang", "en"]) == 2
    assert f"for example: kvgauge learn {topic} Qwen/Qwen3-8B --tokens 32k" in capsys.readouterr().err


def test_mixtures_and_windows():
    experts = learn_activations("Qwen/Qwen3-30B-A3B", tokens=10)
    assert made(experts, "gate").dimensions == (10, 8 * 768)
    assert made(experts, "down").dimensions == (10, 8, 2048)
    windows = learn_activations("google/gemma-3-27b-it", tokens="32k")
    assert [group.shape.window_tokens for group in windows.groups] == [1024, None]
    assert made(windows, "scores", "decode").dimensions == (32, 1, 1024)
    assert made(windows, "scores", "decode", 1).dimensions == (32, 1, 32768)


def test_latents_are_unpacked_in_prefill_and_absorbed_in_decode():
    answer = learn_activations("zai-org/GLM-4.7-Flash", tokens=100)
    assert [len(group.indices) for group in answer.groups] == [1, 46]
    assert made(answer, "latent").dimensions == (100, 512)
    assert made(answer, "rope_key").dimensions == (100, 64)
    assert made(answer, "made_key").dimensions == (20, 100, 256)
    names = {one.life.name for one in answer.groups[0].decode.made}
    assert {"absorbed_query", "latent_outputs"} <= names
    assert not names & {"made_key", "made_value", "key", "value"}
    assert answer.groups[0].cached_bytes == 100 * 576 * 2


def test_mixers_and_ffns_side_by_side():
    answer = learn_activations("tiiuae/falcon-7b", tokens=100)
    names = [one.life.name for one in answer.groups[0].prefill.made]
    assert not {"post_attention", "normed_post_attention"} & set(names)
    # the input, its norm and all that the mixer left are held while the FFN works
    held = held_at(answer.groups[0].prefill.made, flash=True)
    width = 100 * 4544 * 2
    assert held["up"] == 3 * width + 4 * width  # input, norm, attention's output, and the FFN's own
    assert held["middle"] == 2 * width + 2 * 4 * width
    two_norms = learn_activations("tiiuae/falcon-40b", tokens=100).groups[0].shape
    assert (two_norms.is_parallel, two_norms.shares_norm) == (True, False)
    assert not learn_activations("Qwen/Qwen3-8B").groups[0].shape.is_parallel
    neox = dict(kvgauge.load("togethercomputer/RedPajama-INCITE-Chat-3B-v1").raw.config)
    told = [
        learn_activations({**neox, "use_parallel_residual": one}).groups[0].shape for one in (True, False)
    ]
    assert [shape.is_parallel for shape in told] == [True, False]
    hybrid = learn_activations("tiiuae/Falcon-H1-0.5B-Base", tokens=100).groups[0]
    assert (hybrid.fates["cached"], hybrid.fates["state"]) == (2, 2)


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("allenai/OLMo-2-0425-1B-Instruct", ["norms_elsewhere"]),
        ("google/gemma-3-27b-it", ["norms_elsewhere"]),
        ("Qwen/Qwen3-8B", []),
    ],
)
def test_norms_in_other_places_are_said(name, codes):
    assert [note.code for note in learn_activations(name, tokens=9).notes] == codes


def test_an_encoders_keys_and_values_are_made_once():
    answer = learn_activations("openai/whisper-large-v3", tokens=100)
    (group,) = answer.groups
    assert group.prefill.encoder == 1500
    assert group.fates == {"cached": 4, "state": 0, "passed_on": 1, "residual": 3, "discarded": 15}
    assert made(answer, "cross_key").dimensions == (20, 1500, 64)
    assert made(answer, "cross_scores", "decode").dimensions == (20, 1, 1500)
    assert "cross_key" not in {one.life.name for one in group.decode.made}
    kept = sum(one.size_bytes for one in group.prefill.made if one.life.fate is Fate.CACHED)
    assert kept == group.cached_bytes
    held = held_at(group.prefill.made, flash=True)
    assert held["cross_query"] == 3 * 100 * 1280 * 2  # what is added to, its norm, the query


def test_states_do_not_grow():
    short, long = (
        learn_activations("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", tokens=n) for n in (100, 10_000)
    )
    assert sorted(len(group.indices) for group in short.groups) == [6, 23, 23]
    mamba = short.groups[0]
    assert mamba.fates["state"] == 2
    assert mamba.cached_bytes * 23 == 49_082_368 == long.groups[0].cached_bytes * 23
    kept = [one.size_bytes for one in mamba.decode.made if one.life.fate is Fate.STATE]
    assert sum(kept) == mamba.cached_bytes
    experts = short.groups[1]
    assert (experts.cached_bytes, experts.fates["cached"]) == (0, 0)
    assert made(short, "up", group=1).dimensions == (100, 6 * 1856 + 3712)


def test_most_of_the_catalogue_is_described():
    found = [described(name) for name in model_names()[::11]]
    assert sum(answer is not None for answer in found) > 0.85 * len(found)


# The catalogue against weights and sizes


def described(name):
    try:
        return learn_activations(name, tokens=5000, dtype="bf16", offline=True)
    except KvgaugeError as error:
        assert "described here" in error.message or "weights are not known" in error.message
        return None


@pytest.mark.parametrize("name", model_names()[::7])
def test_the_cache_is_that_of_size_and_widths_are_those_of_weights(name):
    answer = described(name)
    if answer is None:
        return
    layers = kvgauge.size(name, context=5000, kv_dtype="bf16", offline=True).cache.layers
    stored = answer.model.weighed.stored
    shapes = decoder_shapes(answer.model.raw)
    families = shapes if stored is None else [each.family for each in stored.families]
    for group in answer.groups:
        index = group.indices[0]
        assert group.cached_bytes == sum(layer.total_bytes for layer in layers if layer.index == index)
        for phase in (group.prefill, group.decode):
            assert phase.flash_peak.size_bytes <= phase.plain_peak.size_bytes
        if isinstance(group.shape.mixer, Attention):
            width = made(replace(answer, groups=(group,)), "concatenated").dimensions[1]
            read = {
                family.shape[1]
                for family in families
                if index in family.layers
                and family.part is Part.ATTENTION
                and family.name.endswith(("self_attn.o_proj.weight", "attn.c_proj.weight"))
            }
            assert read <= {width}


def test_every_reader_is_a_row():
    names = [life.name for life in LIVES]
    for place, life in enumerate(LIVES):
        for reader in (*life.read_by, *life.flash_read_by):
            assert names.index(reader) > place or life.name in ("query",)


# A real forward pass


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("tokens", [1, 2, 9, 60])
def test_the_decoder_makes_and_holds_what_was_computed(tmp_path, name, tokens):
    make(tmp_path, name)
    answer = learn_activations(str(tmp_path), tokens=tokens, measure=True)
    (group,) = answer.groups
    for phase in (group.prefill, group.decode):
        assert phase.measured.differences == ()
        assert phase.measured.layers == 2
        assert len(phase.measured.made) == 17
        assert phase.measured.peak == phase.plain_peak


def test_the_cache_that_was_run_is_what_is_kept(tmp_path):
    folder = make(tmp_path, "qwen3_gqa")
    run = run_measured(folder, 12)
    answer = learn_activations(str(tmp_path), tokens=12, dtype="fp32")
    assert run.cache.num_bytes == 2 * answer.groups[0].cached_bytes
    kept = [one for one in answer.groups[0].prefill.made if one.life.fate is Fate.CACHED]
    assert sum(one.size_bytes for one in kept) == answer.groups[0].cached_bytes


def test_a_wrong_prediction_is_noticed(tmp_path):
    run = run_measured(make(tmp_path, "llama_gqa"), 9)
    answer = learn_activations(str(tmp_path), tokens=9, dtype="fp32")
    wrong = learn_activations(str(tmp_path), tokens=9, dtype="bf16")
    other = learn_activations(str(tmp_path), tokens=8, dtype="fp32")
    assert compare(run.prefill, (0, 1), answer.groups[0].prefill.made).differences == ()
    assert len(compare(run.prefill, (0, 1), wrong.groups[0].prefill.made).differences) == 17
    assert len(compare(run.prefill, (0, 1), other.groups[0].prefill.made).differences) == 17


# The command


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("Qwen/Qwen3-8B", "--tokens", "0"), 2),
        (("Qwen/Qwen3-8B", "--tokens", "2000m"), 2),
        (("Qwen/Qwen3-8B", "--tokens", "x"), 2),
        (("Qwen/Qwen3-8B", "--dtype", "nvfp4"), 1),
        (("Qwen/Qwen3-8B", "--dtype", "zzz"), 2),
        (("Qwen/Qwen3-8B", "--measure"), 4),
        (("kvgauge-lab", "--measure", "--tokens", "1m"), 2),
        (("kvgauge-lab", "--measure", "--dtype", "bf16"), 2),
        (("deepseek-ai/DeepSeek-V4-Flash",), 1),
    ],
)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_bad_requests_are_one_line(capsys, words, code, lang):
    assert execute(["learn", "activations", *words, "--lang", lang, "--offline"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert 1 <= len(err.splitlines()) <= 2


SHOWN = {
    "windows": ("google/gemma-3-27b-it",),
    "latents": ("deepseek-ai/DeepSeek-V3.2", "--tokens", "4k"),
    "states": ("Qwen/Qwen3.5-35B-A3B", "--dtype", "fp8"),
    "measured": ("kvgauge-lab", "--measure", "--tokens", "32"),
}


@pytest.mark.parametrize("width", ["40", "80", "120"])
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", SHOWN)
def test_the_text_shows_what_json_says(capsys, monkeypatch, lang, width, name):
    monkeypatch.setenv("COLUMNS", width)
    words = ["learn", "activations", *SHOWN[name], "--lang", lang]
    assert execute(words) == 0
    shown = " ".join(capsys.readouterr().out.split())
    execute([*words, "--json"])
    answer = json.loads(capsys.readouterr().out)
    for group in answer["groups"]:
        sizes = [group["cached_bytes"], group["passed_on_bytes"], group["prefill"]["peak"]["bytes"]]
        sizes += [one["bytes"] for one in group["prefill"]["activations"]]
        assert all(format_bytes(size) in shown for size in sizes)
        assert (group["prefill"]["measured"] is None) == (name != "measured")
    assert max(map(len, shown.splitlines())) > 0
