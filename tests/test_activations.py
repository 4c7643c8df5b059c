"""``learn activations``: against the figures of known models, against ``size``, and what it refuses."""

from __future__ import annotations

import json

import pytest

import kvgauge
from kvgauge.cli.app import execute
from kvgauge.errors import KvgaugeError
from kvgauge.lab.activations import learn_activations
from kvgauge.sources.catalogue import model_names

GIB = 1 << 30


def made(answer, name, phase="prefill", group=0):
    passed = getattr(answer.groups[group], phase)
    return next(one for one in passed.made if one.life.name == name)


def test_qwen3_8b():
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
    assert group.fates == {"residual": 2, "discarded": 10, "cached": 2, "passed_on": 1}
    # two score matrices of 64 GiB, input, and the query is freed before the weights stand
    assert group.prefill.plain_peak.size_bytes == 128 * GIB + 256 * (1 << 20)
    assert group.prefill.plain_peak.name == "weights"


def test_mixture_and_windows():
    experts = learn_activations("Qwen/Qwen3-30B-A3B", tokens=10)
    assert made(experts, "gate").dimensions == (10, 8 * 768)
    assert made(experts, "down").dimensions == (10, 8, 2048)
    windows = learn_activations("google/gemma-3-27b-it", tokens="32k")
    assert [group.shape.window_tokens for group in windows.groups] == [1024, None]
    assert made(windows, "scores", "decode").dimensions == (32, 1, 1024)
    assert made(windows, "scores", "decode", 1).dimensions == (32, 1, 32768)


@pytest.mark.parametrize("name", model_names()[::7])
def test_the_cache_is_that_of_size(name):
    try:
        answer = learn_activations(name, tokens=5000, dtype="bf16", offline=True)
    except KvgaugeError:
        return
    cache = kvgauge.size(name, context=5000, kv_dtype="bf16", offline=True).to_dict()["cache"]
    sizes = {layer["index"]: layer["bytes"] for layer in cache["layers"]}
    for group in answer.groups:
        assert {sizes[index] for index in group.indices} == {group.cached_bytes}
        kept = [one for one in group.decode.made if one.life.fate == "cached"]
        assert len(kept) == 2
        peaks = (group.prefill, group.decode)
        assert all(one.flash_peak.size_bytes <= one.plain_peak.size_bytes for one in peaks)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("Qwen/Qwen3-8B", "--tokens", "0"), 2),
        (("Qwen/Qwen3-8B", "--tokens", "2000m"), 2),
        (("Qwen/Qwen3-8B", "--tokens", "x"), 2),
        (("Qwen/Qwen3-8B", "--dtype", "nvfp4"), 1),
        (("Qwen/Qwen3-8B", "--dtype", "zzz"), 2),
        (("state-spaces/mamba-2.8b-hf",), 1),
    ],
)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_bad_requests_are_one_line(capsys, words, code, lang):
    assert execute(["learn", "activations", *words, "--lang", lang, "--offline"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert 1 <= len(err.splitlines()) <= 2


@pytest.mark.parametrize("width", ["40", "80", "120"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_text_shows_what_json_says(capsys, monkeypatch, lang, width):
    monkeypatch.setenv("COLUMNS", width)
    words = ["learn", "activations", "google/gemma-3-27b-it", "--lang", lang]
    assert execute(words) == 0
    shown = capsys.readouterr().out
    execute([*words, "--json"])
    answer = json.loads(capsys.readouterr().out)
    for group in answer["groups"]:
        assert kvgauge.units.format_bytes(group["cached_bytes"]) in " ".join(shown.split())
    assert max(len(line) for line in shown.splitlines()) <= int(width)
