"""``plan --split`` and ``--emit``: the first option, divided otherwise, or written down to be started."""

from __future__ import annotations

import json

import pytest

import kvgauge
from kvgauge.cli.app import execute
from kvgauge.data import read_data
from kvgauge.render.messages import LANGUAGES, Texts

LOAD = ("--context", "32k", "--sequences", "8", "--offline")


@pytest.fixture
def kv(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")

    def call(*argv):
        code = execute(argv)
        return (code, *capsys.readouterr())

    return call


def test_splits_are_on_the_cards_of_the_first_option(kv):
    code, out, _ = kv("plan", "Qwen/Qwen3-8B", *LOAD, "--split", "offload,disaggregated", "--json")
    answer = json.loads(out)
    best = answer["options"][0]
    kinds = {split["kind"]: split for split in answer["splits"]}
    assert (code, list(kinds)) == (0, ["offload", "disaggregated"])
    ranks = best["parallelism"]
    alone = kvgauge.size(
        "Qwen/Qwen3-8B", context="32k", tp=ranks["tensor_parallel"], pp=ranks["pipeline_parallel"],
        kv_dtype=best["request"]["k_dtype"], engine="vllm@0.33.0",
    )  # fmt: skip
    figures = {figure["code"]: figure["value"] for figure in kinds["offload"]["figures"]}
    assert best["request"]["k_dtype"] == "fp8"  # of the option, not of the checkpoint
    assert figures["rank_bytes"] == max(alone.cache.per_rank_bytes)


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("form", [(), ("--markdown",)])
def test_every_split_is_drawn(kv, lang, form):
    code, out, err = kv(
        "plan", "Qwen/Qwen3-30B-A3B", "--sequences", "8", "--gpu", "H100:2", "--split", "all",
        "--shared-prefix", "1k", "--prompt-tokens", "30k", "--output-tokens", "2k", "--host-memory", "1TiB",
        "--network", "400g", "--offline", "--lang", lang, *form,
    )  # fmt: skip
    assert code == 0, err
    texts = Texts(lang)
    words = "".join(out.split())
    for code in json.loads(read_data("splits.json"))["figures"]:
        assert "".join(texts(f"figure.{code}").split()) in words, code


def test_the_prompt_is_that_of_the_plan(kv):
    _, out, _ = kv(
        "plan", "Qwen/Qwen3-8B", "--gpu", "H100:1", "--prompt-tokens", "30k", "--output-tokens", "2k",
        "--split", "disaggregated", "--offline", "--json",
    )  # fmt: skip
    (split,) = json.loads(out)["splits"]
    assert split["figures"][1] == {
        "code": "prompt_rank_bytes", "value": 30 * 1024 * 147_456, "unit": "bytes",
        "formula": "max ranks cache(prompt)", "bound": None,
    }  # fmt: skip


def test_a_trillion_parameters_and_the_racks(kv):
    _, out, _ = kv(
        "plan", "moonshotai/Kimi-K2-Instruct", "--context", "128k", "--sequences", "64", "--offline",
        "--split", "attention-ffn,sram", "--json",
    )  # fmt: skip
    racks = {split["kind"]: split["figures"] for split in json.loads(out)["splits"]}
    assert next(one["value"] for one in racks["sram"] if one["code"] == "racks_for_weights") >= 8


def test_the_first_option_is_written_down(kv, tmp_path):
    code, out, err = kv(
        "plan", "deepseek-ai/DeepSeek-V3", "--context", "128k", "--sequences", "16", "--gpu", "H100:16",
        "--offline", "--emit", str(tmp_path / "out"), "--json",
    )  # fmt: skip
    assert code == 0, err
    answer = json.loads(out)
    written = [one["system"] for one in answer["emitted"]]
    replicas = answer["options"][0]["parallelism"]["data_parallel"]
    assert written == ["ray", "leaderworkerset", *(["kserve"] if replicas == 1 else [])]
    script = (tmp_path / "out/ray.sh").read_text(encoding="utf-8")
    assert answer["options"][0]["launch_command"].split(" --distributed")[0] in script
    code, out, err = kv(
        "plan", "deepseek-ai/DeepSeek-V3", "--context", "128k", "--sequences", "16", "--gpu", "H100:16",
        "--offline", "--emit", str(tmp_path / "out"),
    )  # fmt: skip
    assert (code, out) == (2, "")
    assert "is there already" in err


def test_nothing_is_written_where_nothing_fits(kv, tmp_path):
    code, _, err = kv(
        "plan", "deepseek-ai/DeepSeek-V3", "--gpu", "RTX 3070:1", "--offline", "--emit", str(tmp_path / "o")
    )
    assert code == 2
    assert "nothing holds the load" in err
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("--split", "prefix"), "no prefix is shared"),
        (("--split", "nonsense"), "is not known"),
        (("--split", "offload", "--network", "fast"), "is not understood"),
        (("--split", "sram", "--sram", "H100"), "on-chip memory"),
        (("--emit", "ray"), "names no folder"),
        (("--emit", "sglang=/dev/null/x"), "does not start vllm"),
    ],
)
def test_wrong_wishes_are_said_in_one_line(kv, argv, text):
    code, out, err = kv("plan", "Qwen/Qwen3-8B", "--gpu", "H100:1", *LOAD, *argv)
    assert code == 2
    assert text in err
    assert "Traceback" not in out + err
