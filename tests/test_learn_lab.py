"""The topics of ``learn`` that run mechanisms: figures, refusals, both languages, any width."""

from __future__ import annotations

import json

import pytest

import kvgauge
from kvgauge.cli.app import execute

pytest.importorskip("numpy")

TOPICS = ("mechanisms", "flash", "paged", "quantised")


@pytest.fixture
def kv(capsys, monkeypatch):
    monkeypatch.setenv("KVGAUGE_LANG", "en")
    monkeypatch.setenv("COLUMNS", "80")

    def call(*argv: str) -> tuple[int, str, str]:
        code = execute(["learn", *argv, "--offline"])
        return (code, *capsys.readouterr())

    return call


def answer(kv, *argv: str) -> dict:
    code, out, err = kv(*argv, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_mechanisms_shows_the_articles_table_and_what_it_leaves_out(kv):
    code, out, err = kv("mechanisms")
    assert (code, err) == (0, "")
    for figure in (
        "3.00 GiB",
        "1.65 GiB",
        "640 MiB",
        "192 MiB",
        "−45 %",
        "−79 %",
        "−94 %",
        "61.4 MiB",
        "46.8 MiB",
    ):
        assert figure in out
    assert "Counted and computed bytes agree at 32 of 32 contexts." in out
    small = answer(kv, "mechanisms", "openai/gpt-oss-20b", "--tokens", "128k")
    (model,) = small["models"]
    assert model["layers"] == {"sliding": 12, "gqa": 12}
    size = kvgauge.size("openai/gpt-oss-20b", context="128k", kv_dtype="bf16").cache
    assert model["cache_bytes"] + model["state_bytes"] == size.bytes_per_sequence


def test_flash_gives_the_articles_figures_in_both_units(kv):
    code, out, err = kv("flash")
    assert (code, err) == (0, "")
    for figure in ("2.00 GiB", "68.7 GB", "137.4 GB", "274.9 GB", "256 GiB", "50.0 %", "4.50 GiB"):
        assert figure in out
    found = answer(kv, "flash", "--sequences", "4", "--tile", "256x64")
    assert all(run["equals_formula"] and run["difference"] < 1e-12 for run in found["runs"])
    assert found["load"]["score_passes_bytes"] == 36 * 4 * found["layer"]["score_passes_bytes"]
    # Half as many blocks of queries as 128: K and V pass by half as often.
    wide, usual = found["layer"], answer(kv, "flash")["layer"]
    fixed = 2 * 32 * 2 * 32_768 * 128
    assert 2 * (wide["tiled_bytes"] - fixed) == usual["tiled_bytes"] - fixed
    assert found["cache_bytes"] == kvgauge.size("Qwen/Qwen3-8B", context="32k", sequences=4).cache.total_bytes


def test_flash_counts_full_layers_of_one_width_and_says_which_it_leaves_out(kv):
    found = answer(kv, "flash", "openai/gpt-oss-20b")
    assert (found["num_layers"], found["head_dim"]) == (12, 64)
    assert [note["code"] for note in found["notes"]] == ["flash_layers_left_out"]
    assert "有 12 层" in kv("flash", "openai/gpt-oss-20b", "--lang", "zh")[2]


def test_paged_fractions_add_up_and_stand_beside_what_is_quoted(kv):
    found = answer(kv, "paged", "--block-sizes", "16,64")
    for row in found["schemes"]:
        parts = ("filled", "reserved", "internal", "external", "free")
        assert sum(row[f"{part}_fraction"] for part in parts) == pytest.approx(1)
    by_name = {(row["scheme"], row["block_tokens"]): row for row in found["schemes"]}
    assert by_name["paged", 16]["filled_fraction"] > 0.9
    assert by_name["true_length", None]["filled_fraction"] < 0.7
    assert by_name["paged", 16]["mean_running"] > 2 * by_name["reserve_maximum", None]["mean_running"]
    quotes = [(quote["without_low"], quote["without_high"], quote["paged"]) for quote in found["quotes"]]
    assert quotes == [(0.5, 0.7, 0.95), (0.204, 0.382, 0.963)]
    out = kv("paged", "--block-sizes", "16")[1]
    assert "50 % to 70 %" in out
    assert "20.4 % to 38.2 %, and 96.3 %" in out
    assert found["decode"]["difference"] < 1e-12
    assert [page["block"] for page in found["decode"]["pages"]] == [0, 3, 6, 9]


def test_paged_streams_follow_their_seed_and_prefix(kv):
    first, again, other = (answer(kv, "paged", "--requests", "40", "--seed", seed) for seed in "112")
    assert first == again
    assert first["schemes"] != other["schemes"]
    shared = answer(kv, "paged", "--requests", "40", "--shared-prefix", "256", "--block-sizes", "16")
    assert shared["schemes"][-1]["shared_tokens"] > 256


def test_paged_without_pressure_is_said(kv):
    found = answer(kv, "paged", "--requests", "1")
    assert {row["filled_fraction"] for row in found["schemes"]} == {None}
    assert [note["code"] for note in found["notes"]] == ["paged_untested"]
    assert "从未让请求等待" in kv("paged", "--requests", "1", "--lang", "zh")[2]


def test_quantised_bytes_are_the_cores(kv):
    found = answer(kv, "quantised")
    assert [sample["name"] for sample in found["samples"]] == ["even", "outliers", "shipped_model"]
    for sample in found["samples"]:
        rows = {row["name"]: row for row in sample["formats"]}
        assert rows["bf16"]["bf16_ratio"] == 1
        assert all(row["core_bytes"] in (None, row["counted_bytes"]) for row in rows.values())
        assert rows["int4"]["output_error_both"] > rows["int8"]["output_error_both"]
    assert "nvfp4" not in kv("quantised", "--head-dim", "20")[1].partition("shipped")[0]


@pytest.mark.parametrize("name", TOPICS)
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("columns", [40])
def test_text_fits_the_terminal(kv, monkeypatch, name, lang, columns):
    from rich.cells import cell_len

    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, err = kv(name, "--lang", lang)
    assert (code, err) == (0, "")
    assert max(map(cell_len, out.splitlines())) <= columns
    assert "{" not in out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("mechanisms", "deepseek-ai/DeepSeek-V4-Flash"), 1, "the lab has no layer of compressed_attention"),
        (("mechanisms", "deepseek-ai/DeepSeek-V3.2"), 1, "layer 0 has two caches"),
        (("mechanisms", "openai/whisper-large-v3"), 1, "the lab"),
        (("mechanisms", "no/such"), 4, "no/such"),
        (("mechanisms", "--tokens", "0"), 2, "--tokens 0 is out of range"),
        (("flash", "zai-org/GLM-4.7-Flash"), 1, "has no layer of plain attention over all tokens"),
        (("flash", "--tile", "64"), 2, "--tile '64' is not understood"),
        (("flash", "--tile", "0x64"), 2, "--tile 0 is out of range"),
        (("flash", "--tokens", "9999999999999"), 2, "--tokens"),
        (("flash", "--dtype", "q4_0"), 1, "activations are not held in q4_0"),
        (("flash", "--sequences", "-1"), 2, "--sequences"),
        (("paged", "--pool", "1"), 2, "--pool 1 is out of range"),
        (("paged", "--requests", "1000000"), 2, "--requests 1000000 is out of range"),
        (("paged", "--block-sizes", "0"), 2, "--block-sizes 0 is out of range"),
        (("paged", "--block-sizes", "16,x"), 2, "--block-sizes"),
        (("paged", "--block-sizes", ",".join(map(str, range(1, 15)))), 2, "names 14 numbers"),
        (("paged", "--max-model-len", "60k"), 2, "does not fit in --pool"),
        (("paged", "--shared-prefix", "2040"), 2, "leaves no room"),
        (("paged", "x"), 2, "x is one word too many"),
        (("quantised", "--head-dim", "0"), 2, "--head-dim 0 is out of range"),
        (("quantised", "--outliers", "999"), 2, "--outliers 999 is out of range"),
        (("quantised", "--seed", "-5"), 2, "--seed"),
    ],
)
def test_what_is_wrong_is_one_line(kv, words, code, said):
    found, out, err = kv(*words)
    assert (found, out) == (code, "")
    assert said in err
    assert len(err.splitlines()) <= 2
    chinese = kv(*words, "--lang", "zh")
    assert (chinese[0], chinese[1]) == (code, "")
