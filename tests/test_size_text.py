"""size and models as text: nothing looks alike, nothing is blank, figures keep their zeros and units."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvgauge
from designs import DESIGNS
from kvgauge.cli.app import execute
from kvgauge.render.kinds import group_labels
from kvgauge.render.messages import Texts
from kvgauge.render.size import draw_size
from kvgauge.render.size_facts import facts, group_rows, load_rows
from kvgauge.render.view import View
from kvgauge.render.wrap import wrap
from kvgauge.sources.catalogue import all_models
from kvgauge.units import format_bytes

EN = View(Texts("en"), "gib", 80)
ZH = View(Texts("zh"), "gib", 80)
UNKNOWN = {"model_type": "brandnew", "num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 8,
           "num_key_value_heads": 2}  # fmt: skip


def of_gpus(**load) -> str:
    return dict(facts(kvgauge.size("Qwen/Qwen3-8B", **load), EN))["Per GPU"]


def test_each_gpu_of_all_replicas_is_counted():
    assert of_gpus(tp=2, dp=4, sequences=8) == "4.50 GiB on each of 8 GPUs (tp 2, dp 4)"
    assert of_gpus(dp=4, sequences=8) == "9.00 GiB on each of 4 GPUs (dp 4)"
    assert of_gpus(tp=2, dp=4, sequences=6).startswith("at most 4.50 GiB on each of 8 GPUs")
    assert of_gpus(pp=5, dp=2, sequences=2).endswith("of the fullest of 2 replicas (pp 5, dp 2)")
    assert "Per GPU" not in dict(facts(kvgauge.size("Qwen/Qwen3-8B"), EN))


def test_the_card_whose_defaults_an_engine_takes_is_named():
    assert dict(load_rows(kvgauge.size("Qwen/Qwen3-8B", engine="vllm"), EN))["card"].startswith("H100")
    assert "card" not in dict(load_rows(kvgauge.size("Qwen/Qwen3-8B"), EN))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_two_groups_of_the_catalogue_look_alike(lang):
    texts = Texts(lang)
    for raw, _ in all_models():
        try:
            model = kvgauge.load(raw.config)
        except kvgauge.KvgaugeError:
            continue
        demands = kvgauge.size(model, mtp=1 if model.architecture.mtp_layers else 0).cache.demand.groups
        counts = Counter(group_labels(demands, texts))
        assert max(counts.values(), default=1) == 1, (raw.id, counts)


def test_alike_groups_are_told_apart():
    rows = group_rows(kvgauge.size("apple/OpenELM-270M").cache, EN)
    assert [row.label for row in rows] == ["full, 3 heads", "full, 4 heads", "full, 5 heads"]
    labels = [row.label for row in group_rows(kvgauge.size("deepseek-ai/DeepSeek-V4-Flash").cache, EN)]
    assert labels == ["sliding, 128 tokens", "compressed, 4 to 1", "index", "compressed, 128 to 1"]


def test_a_formula_is_blank_only_where_nothing_is_kept():
    vision = group_rows(kvgauge.size("meta-llama/Llama-3.2-11B-Vision").cache, EN)
    assert [row.formula for row in vision] == ["L × 2 × H_kv × D × T × B × b", "--image-tokens is 0"]
    for row in group_rows(kvgauge.size("Qwen/Qwen3-8B", context=0).cache, EN):
        assert row.formula.startswith("L ×")


def test_no_row_of_the_load_is_blank():
    for model in ("Qwen/Qwen3-8B", "openai/whisper-large-v3", "state-spaces/mamba-130m-hf", DESIGNS["index"]):
        for context in (0, 1, 448):
            result = kvgauge.size(model, context=context)
            assert all(value for _, value in load_rows(result, EN))
            assert not re.search(r"\b1 tokens", draw_size(result, EN))


def test_the_grade_says_why():
    assert dict(load_rows(kvgauge.size("Qwen/Qwen3-8B"), EN))["grade"].startswith("exact:")
    grade = dict(load_rows(kvgauge.size(UNKNOWN), EN))["grade"]
    assert grade.startswith("assumed: inferred from the shape fields")
    assert "bf16 was taken" in grade
    assert "推断" in dict(load_rows(kvgauge.size(UNKNOWN), ZH))["等级"]
    given_dtype = kvgauge.size({**UNKNOWN, "model_type": "llama"}, kv_dtype="fp16")
    assert given_dtype.grade == "exact"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_reason_to_assume_has_words(lang):
    from kvgauge.size_result import _ASSUMING

    assert all(Texts(lang)(f"grade_why.{code}") for code in _ASSUMING)


def test_grammar():
    assert "MTP        1 speculative token\n" in draw_size(kvgauge.size("zai-org/GLM-4.5", mtp=1), EN)
    assert "MTP        2 speculative tokens\n" in draw_size(kvgauge.size("zai-org/GLM-4.5", mtp=2), EN)
    notes = {n.code: n.message for n in kvgauge.size("Qwen/Qwen3-8B", dp=4).notes}
    assert notes["data_parallel"] == "per GPU: the fullest of 4 replicas, which holds 1 sequence"


@pytest.mark.parametrize("design", DESIGNS)
def test_shares_have_three_figures(design):
    for view in (EN, ZH):
        text = draw_size(kvgauge.size(DESIGNS[design]), view)
        for figure in re.findall(r"([\d.,]+) %", text):
            assert figure == "100" or len(figure.replace(".", "").lstrip("0")) == 3, figure


@given(st.integers(0, 1 << 60))
def test_sizes_have_three_figures_at_most(size):
    for units in ("gib", "gb"):
        number, unit = format_bytes(size, units).split()
        figures = re.sub(r"[.,]", "", number).lstrip("0")
        assert unit in ("B", "TiB", "TB") or len(figures) == 3


def read_from_stdin(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kvgauge", *words]
    environ = {k: v for k, v in os.environ.items() if not k.startswith("KVGAUGE_")} | {
        "COLUMNS": "80",
        "LC_ALL": "C.UTF-8",
    }
    return subprocess.run(
        command, input=json.dumps(UNKNOWN), env=environ, capture_output=True, encoding="utf-8", check=True
    )


def test_standard_input_has_a_name():
    done = read_from_stdin("-")
    assert done.stdout.startswith("standard input: ")
    done = read_from_stdin("compare", "-", "Qwen/Qwen3-8B")
    assert "\nstandard input " in done.stdout
    assert "note: standard input: the config" in done.stderr
    assert "\n- " not in done.stdout


def test_models_show_what_does_not_grow(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("KVGAUGE_LANG", "en")
    execute(["models", "mamba-130m"])
    head, row = capsys.readouterr().out.splitlines()
    assert re.split(r" {2,}", head) == ["Name", "Family", "Layers", "Token limit", "Fixed", "Per token"]
    assert re.split(r" {2,}", row) == ["state-spaces/mamba-130m-hf", "recurrent", "24", "2.67 MiB", "-"]


UNITS = r"[\d.,]*\d (?:[KMGT]iB|B|%|tokens?|sequences?|GPUs|heads|个|条|张|层)(?![A-Za-z])|(?:tp|dp|pp) \d+"


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", range(40, 100, 7))
def test_a_number_stays_with_its_unit(lang, width):
    view = View(Texts(lang), "gib", width)
    for model in ("Qwen/Qwen3-8B", "google/gemma-3-27b-it", "deepseek-ai/DeepSeek-V4-Flash"):
        result = kvgauge.size(model, sequences=8, tp=2, dp=3, context="max")
        for text in (view.texts.note(note) for note in result.notes):
            lines = wrap(text, width)
            assert re.findall(UNITS, text) == [u for line in lines for u in re.findall(UNITS, line)]
        drawn = draw_size(result, view)
        assert not re.search(r"\d\n\s*(?:[KMGT]iB|%|tokens?|sequences?|GPUs)\b", drawn)


def test_notes_are_in_the_units_of_the_answer(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    argv = ["google/gemma-3-27b-it", "--engine", "transformers"]
    for lang in ("en", "zh"):
        execute([*argv, "--lang", lang])
        assert re.search(r"\d GiB", capsys.readouterr().err)
        execute([*argv, "--units", "gb", "--lang", lang])
        err = capsys.readouterr().err
        assert re.search(r"\d GB", err)
        assert "iB" not in err


def test_labels_before_notes_are_full_width_in_chinese(capsys):
    execute(["Qwen/Qwen3-8B", "--context", "1m", "--lang", "zh"])
    assert capsys.readouterr().err.startswith("警告：1,048,576 个 token")
    execute(["no-such-model", "--lang", "zh"])
    assert capsys.readouterr().err.startswith("kvgauge：")
