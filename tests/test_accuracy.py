"""``accuracy``: every record is replayed or says why not; stated ones agree; nothing in a record can break it."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvgauge
from kvgauge.cli.app import execute
from kvgauge.data import read_data
from kvgauge.errors import KvgaugeError
from kvgauge.render.accuracy import draw_accuracy, has_cause
from kvgauge.render.messages import Texts
from kvgauge.render.view import View
from kvgauge.replay.figures import SKIPS, Figure
from kvgauge.replay.memory import activation
from kvgauge.replay.models import ModelFinder
from kvgauge.replay.outcomes import AccuracyResult, cause_of
from kvgauge.replay.reading import parse_record
from kvgauge.replay.records import QUANTITIES, Record, engine_family
from kvgauge.replay.replaying import accuracy, outcomes
from kvgauge.replay.weights import file_scheme
from support import ROOT, SHARED

LOGS = SHARED / "data" / "fieldlogs"
NAMES = ("vllm", "sglang", "trtllm", "llamacpp", "others")
ROWS = [json.loads(line) for line in read_data("evidence.jsonl").splitlines()]


@pytest.fixture(scope="module")
def shipped() -> AccuracyResult:
    return accuracy()


def tool():
    spec = importlib.util.spec_from_file_location("evidence_tool", ROOT / "tools/evidence.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_public_name(shipped):
    assert kvgauge.accuracy is accuracy
    assert shipped.to_dict()["schema"] == "kvgauge.accuracy/1"


def test_stated_figures_of_rules_are_exact_but_for_named_ones(shipped):
    exact, count = shipped.exact_of_rules()
    assert count >= 200
    assert exact >= 0.98 * count
    assert all(each.cause for each in shipped.named)


def test_every_figure_of_a_rule_or_of_weights_that_does_not_agree_has_a_cause(shipped):
    without = [(e.id, e.quantity) for e in shipped.disagreeing if has_cause(e) and not e.cause]
    assert without == []


def test_every_cause_is_of_a_figure_and_in_both_languages(shipped):
    off = {each.id for each in shipped.disagreeing} | {f"{e.id} {e.quantity}" for e in shipped.disagreeing}
    causes = json.loads(read_data("evidence_causes.json"))
    assert set(causes) <= off
    for words in causes.values():
        assert words["en"].isascii()
        assert any("\u4e00" <= c <= "\u9fff" for c in words["zh"])
    assert cause_of("vllm-476", "kv_tokens", "zh") != cause_of("vllm-476", "kv_tokens")


def test_nothing_usable_is_skipped_but_for_a_shape(shipped):
    usable = {(row["id"], quantity) for row in ROWS for quantity in row["usable_for"]}
    answered = {(each.id, each.quantity) for each in shipped.outcomes}
    assert usable <= answered
    skipped = Counter(
        e.skip for e in shipped.outcomes if e.status == "skipped" and (e.id, e.quantity) in usable
    )
    assert set(skipped) <= {"no_shape", "null"}
    assert skipped["null"] <= 1
    assert skipped.total() <= 0.02 * len(usable)


def test_the_data_and_the_document_are_as_the_tool_makes_them():
    module = tool()
    for path, text in module.built().items():
        assert path.read_text(encoding="utf-8") == text, "run python tools/evidence.py"
    document = module.DOCUMENT.read_text(encoding="utf-8")
    assert module.document(document) == document, "run python tools/evidence.py"


def test_the_document_names_every_field_of_the_data():
    document = (ROOT / "docs/accuracy.md").read_text(encoding="utf-8")
    module = tool()
    # Read for people, or for sources alone.
    for name in (module.TEXTS | module.NUMBERS | module.LISTS) - {"tp", "kv_layers", "dtype"}:
        assert f"`{name}`" in document, name


def test_sums_of_the_table(shipped):
    assert sum(row.count + sum(row.skipped.values()) for row in shipped.summary) == len(shipped.outcomes)
    for row in shipped.summary:
        assert set(row.skipped) <= set(SKIPS)
        assert row.held <= row.ranged <= row.count


@pytest.mark.skipif(not LOGS.exists(), reason="the records of logs are not beside the checkout")
@pytest.mark.parametrize("name", NAMES)
def test_the_handed_files_replay(name):
    result = accuracy(LOGS / f"{name}.jsonl")
    records = [json.loads(line) for line in (LOGS / f"{name}.jsonl").read_text().splitlines()]
    usable = {(r["id"], quantity) for r in records for quantity in r["usable_for"]}
    answered = {(each.id, each.quantity): each for each in result.outcomes}
    assert usable <= set(answered)
    skipped = [
        key for key in usable if answered[key].status == "skipped" and answered[key].skip != "no_shape"
    ]
    assert skipped == []
    assert all(each.cause for each in result.named)
    exact, count = result.exact_of_rules()
    assert exact >= 0.94 * count


@pytest.mark.parametrize(
    ("figure", "status"),
    [
        (Figure(100, 100), "exact"), (Figure(100, 100.4, 0.4), "exact"), (Figure(100, 100.4), "within"),
        (Figure(100, 100.6), "off"), (Figure(0, 1), "off"), (Figure(0, 0), "exact"),
    ],
)  # fmt: skip
def test_what_is_exact(figure, status):
    assert figure.status == status
    assert (figure.error_fraction is None) == (figure.measured == 0)


@pytest.mark.parametrize(
    ("fields", "basis"),
    [
        ({}, "hard"),
        ({"soft": True, "assumed": ["kv_cache_dtype auto", "no speculation"]}, "default"),
        ({"soft": True, "assumed": ["kv_cache_dtype auto", "tp 1"]}, "soft"),
        (
            {"soft": True, "assumed": ["kv_cache_dtype auto"], "config_basis": "inferred from figures: x"},
            "soft",
        ),
        ({"soft": True}, "soft"),
        ({"soft": True, "soft_for": ["graphs"]}, "hard"),
        ({"soft": True, "assumed": ["version by date"], "note": "rounded by author"}, "soft"),
    ],
)
def test_how_well_inputs_are_known(fields, basis):
    assert Record(fields).basis("kv_tokens") == basis


@pytest.mark.parametrize(
    ("word", "family"),
    [("vllm", "vllm"), ("trtllm", "tensorrt-llm"), ("LM Studio (llama.cpp)", "llama.cpp"), ("SGLang", "sglang"),
     ("mlx-lm", "mlx-lm"), ("", "?")],
)  # fmt: skip
def test_engines_by_their_words(word, family):
    assert engine_family(word) == family


def test_file_types_as_logs_print_them():
    assert file_scheme("Q5_K - Small") == "q5_k_s"
    assert file_scheme("IQ4_XS - 4.25 bpw") == "iq4_xs"
    assert file_scheme("F16") == "fp16"
    assert file_scheme("all F32 (guessed)") == ""


def record(**fields: object) -> Record:
    base = {
        "id": "one", "engine": "vllm", "engine_version": "0.19.0", "config_ref": "Qwen/Qwen3-8B",
        "engine_args": "--max-model-len 40960", "kv_available_gib": 53.0, "kv_tokens": 385936,
        "usable_for": ["kv_tokens"],
    }  # fmt: skip
    return Record({**base, **fields})


def tokens(changed: Record):
    """Return the outcome of the tokens of a record."""
    return next(each for each in outcomes([changed], ModelFinder()) if each.quantity == "kv_tokens")


def test_one_record_of_each_kind():
    found = tokens(record())
    assert (found.status, found.predicted) == ("exact", 385936)
    found = tokens(record(kv_available_gib=None, gpu_blocks=24121))
    assert found.status == "exact"
    found = tokens(record(config_ref="no/such"))
    assert (found.status, found.skip) == ("skipped", "no_shape")
    found = tokens(record(kv_available_gib=None))
    assert (found.status, found.skip) == ("skipped", "null")
    found = tokens(record(engine_args="-tp 3"))
    assert (found.status, found.predicted) == ("off", None)
    assert "--tp 3 does not divide" in found.reason
    rows = list(outcomes([record(usable_for=[], note="a fixture", max_concurrency=2.0)], ModelFinder()))
    assert {row.skip for row in rows} == {"fixture"}


def test_configs_beside_the_records(tmp_path: Path):
    folder = tmp_path / "configs" / "logs"
    folder.mkdir(parents=True)
    config = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 1024, "num_attention_heads": 8,
              "num_key_value_heads": 8, "torch_dtype": "float16", "max_position_embeddings": 4096}  # fmt: skip
    (folder / "lab--tiny.json").write_text(json.dumps(config), encoding="utf-8")
    row = {**record().fields, "config_ref": "lab/tiny", "engine_args": "", "gpu_blocks": 10, "kv_tokens": 160}
    inner = tmp_path / "records"
    inner.mkdir()
    file = inner / "mine.jsonl"
    file.write_text(json.dumps(row) + "\n\n", encoding="utf-8")
    found = next(e for e in accuracy(file).outcomes if e.quantity == "kv_tokens")
    assert found.status == "exact"
    file.write_text(json.dumps({**row, "config_ref": "../configs/logs/lab--tiny.json"}), encoding="utf-8")
    assert "exact" in {each.status for each in accuracy(file).outcomes}
    file.write_text(json.dumps({**row, "config_ref": str(folder / "lab--tiny.json")}), encoding="utf-8")
    assert "exact" in {each.status for each in accuracy(file).outcomes}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lab--tiny.json").write_text(json.dumps(config), encoding="utf-8")
    lone = tmp_path / "a/b/c/d/mine.jsonl"
    lone.parent.mkdir(parents=True)
    lone.write_text(json.dumps(row), encoding="utf-8")
    assert {e.skip for e in accuracy(lone).outcomes} == {"no_shape", "null"}
    assert "exact" in {e.status for e in accuracy(lone, configs=elsewhere).outcomes}


@pytest.mark.parametrize("line", [b"x", b"[]", b'{"a":', b"1", b"\xff", b"[" * 5000])
def test_lines_that_are_no_records(line, tmp_path):
    with pytest.raises(KvgaugeError):
        parse_record(line, "f, line 1")
    file = tmp_path / "f.jsonl"
    file.write_bytes(line + b"\n")
    with pytest.raises(KvgaugeError):
        accuracy(file)


def test_errors_of_the_command(tmp_path, capsys):
    assert execute(["accuracy", str(tmp_path / "none.jsonl")]) == 4
    assert "can't be read" in capsys.readouterr().err
    (tmp_path / "long.jsonl").write_bytes(b"x" * (1 << 21))
    assert execute(["accuracy", str(tmp_path / "long.jsonl"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "damaged_file"
    assert execute(["accuracy", "a", "b"]) == 2


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [40, 120])
def test_text(shipped, lang, width):
    text = draw_accuracy(shipped, View(Texts(lang), "gib", width))
    assert "vllm-476" in text
    assert "98" in text


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_command_in_text_and_markdown(lang, capsys):
    assert execute(["accuracy", "--lang", lang]) == 0
    assert execute(["accuracy", "--lang", lang, "--markdown"]) == 0
    assert "| --- |" in capsys.readouterr().out


HOSTILE = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(allow_nan=True), st.text(max_size=20),
    st.lists(st.text(max_size=9), max_size=3), st.dictionaries(st.text(max_size=9), st.integers(), max_size=3),
    st.sampled_from(["-tp 4", "--max-model-len 1", "-c 512 -np 4", "Q8_0", "0.6.4", "2025-01", "Qwen/Qwen3-8B",
                     "deepseek-ai/DeepSeek-V3", "Qwen/Qwen3.5-27B", "../x", "/etc/passwd", "H100", "q8_0"]),
)  # fmt: skip
FIELDS = sorted({name for row in ROWS for name in row} - {"usable_for", "engine", "id"})


@given(
    st.sampled_from(ROWS),
    st.dictionaries(st.sampled_from(FIELDS), HOSTILE, min_size=1, max_size=4),
    st.sampled_from(["vllm", "sglang", "trtllm", "llama.cpp", "ik_llama.cpp", "other"]),
)
@settings(max_examples=150, deadline=None)
def test_no_field_can_break_a_replay(row, changes, engine):
    fields = {**row, **changes, "engine": engine, "usable_for": list(QUANTITIES)}
    for found in outcomes([Record(fields)], ModelFinder()):
        json.dumps(found.to_dict(), allow_nan=False)


def test_a_peak_of_0_27_holds_the_guess_of_graphs():
    """From then on vLLM prints one figure for both, and nothing beside torch apart."""
    row = {
        "id": "x", "engine": "vllm", "model": "Qwen/Qwen3-30B-A3B", "config_ref": "Qwen/Qwen3-30B-A3B",
        "gpu": "H100 80GB", "gpu_count": 1, "engine_args": "--max-model-len 8192", "activation_peak_gib": 4.0,
        "usable_for": ["activation"],
    }  # fmt: skip

    def predicted(**told: object) -> float:
        return activation(Record({**row, **told}), ModelFinder()).predicted

    assert predicted(engine_version="0.27.1") > predicted(engine_version="0.26.0") + 0.5
    assert predicted(engine_version="0.27.1", non_torch_gib=0.2) == predicted(engine_version="0.26.0")


def test_weights_of_sglang_hold_what_loading_takes(shipped):
    found = {e.id: e for e in shipped.outcomes if e.engine == "sglang" and e.quantity == "weights"}
    assert all(found[name].is_held for name in ("sglang-001", "sglang-011", "sglang-019", "sglang-035"))
