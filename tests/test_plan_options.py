"""Options of ``plan`` that are shared: weights that lie elsewhere, and options that nothing would read."""

from __future__ import annotations

import json
from functools import lru_cache

import pytest

import kvgauge
from kvgauge.cli.app import execute
from kvgauge.cli.options import LOAD, VERB_OPTIONS
from kvgauge.errors import InvalidRequestError
from kvgauge.keywords import FIT, PLAN, SIZE
from test_schemas import validate

SMALL = "Qwen/Qwen3-8B"
GIB = 1 << 30


@lru_cache(maxsize=8)
def loaded(name: str = SMALL) -> kvgauge.Model:
    return kvgauge.load(name, offline=True)


def test_every_option_of_a_load_is_one_of_size_fit_and_plan():
    for verb in ("size", "compare", "explain", "fit", "plan"):
        assert {row.name for row in LOAD} <= {row.name for row in VERB_OPTIONS[verb]}, verb
    assert set(SIZE) - set(FIT) == set()
    assert set(SIZE) - set(PLAN) == set()


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm", "llama.cpp"])
def test_weights_that_lie_elsewhere_take_nothing_of_a_card(engine):
    words = {"gpu": "RTX 4090", "context": 16_384, "sequences": 4, "engine": engine}
    here, elsewhere = (kvgauge.fit(loaded(), no_weights=out, **words) for out in (False, True))
    held = here.devices[0].weight_bytes
    assert held > 14 * GIB
    assert elsewhere.devices[0].weight_bytes == 0
    assert here.verdict.required_bytes - elsewhere.verdict.required_bytes == held
    assert elsewhere.max_sequences.count > here.max_sequences.count
    assert elsewhere.launch_command == ""
    assert "weights_elsewhere" in {note.code for note in elsewhere.notes}
    assert "weights_elsewhere" not in {note.code for note in here.notes}
    told = elsewhere.to_dict()
    validate("fit", told)
    assert next(one for one in told["devices"][0]["allocations"] if one["kind"] == "weights")["bytes"] == 0


@pytest.mark.parametrize("engine", ["vllm", "llama.cpp"])
def test_a_plan_without_weights_is_one_of_caches(engine, capsys):
    words = ["--gpu", "L4", "--context", "16k", "--sequences", "8", "--engine", engine]
    assert execute(["plan", SMALL, *words, "--no-weights", "--json", "--offline"]) == 0
    found = json.loads(capsys.readouterr().out)
    validate("plan", found)
    assert found["options"]
    assert "weights_elsewhere" in {note["code"] for note in found["notes"]}
    assert not {"weights", "published", "scheme"} & {step["code"] for step in found["decision_path"]}
    assert all(one["weights_changed"] is one["checkpoint_changed"] is None for one in found["options"])
    for option in found["options"]:
        assert "--no-weights" in option["fit_arguments"]
        assert execute(["fit", SMALL, *option["fit_arguments"], "--json", "--offline"]) == 0
        again = json.loads(capsys.readouterr().out)
        assert again["verdict"] == option["verdict"]
    with_them = kvgauge.plan(loaded(), gpu="L4", context="16k", sequences=8, engine=engine)
    assert found["options"][0]["num_gpus"] <= with_them.best.num_gpus


def test_nothing_is_written_that_would_start_without_weights(tmp_path, capsys):
    argv = ["plan", SMALL, "--gpu", "H100", "--no-weights", "--offline", "--emit", str(tmp_path / "out")]
    assert execute(argv) == 2
    assert "nothing to start without the weights" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "words",
    [{"sram": "Groq 3 LPX rack"}, {"host_memory": "1TiB"}, {"network": "400g"}, {"network": "nonsense"}],
)
def test_what_only_a_split_reads_is_refused_without_one(words):
    (name,) = words
    with pytest.raises(InvalidRequestError, match="changes nothing without --split") as told:
        kvgauge.plan(loaded(), gpu="H100", **words)
    assert told.value.field == name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gpus-per-machine", "4"], "changes nothing without --emit"),
        (["--emit", ""], "names no folder"),
        (["--emit", "--check"], "names an option"),
        (["--emit", "x", "--gpus-per-machine", "0"], "0 is no count"),
        (["--network", "400g"], "changes nothing without --split"),
    ],
)
def test_what_nothing_reads_is_one_line(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for lang in ("en", "zh"):
        assert execute(["plan", SMALL, "--gpu", "H100", "--offline", *words, "--lang", lang]) == 2
        said = capsys.readouterr().err.splitlines()
        assert len([line for line in said if line.startswith("kvgauge")]) == 1
        assert (message in said[0]) == (lang == "en")
    assert not list(tmp_path.iterdir())


def test_a_share_that_an_engine_does_not_take_is_told_as_in_fit():
    words = {"gpu": "RTX 3090", "context": 4096, "engine": "llama.cpp", "utilization": 0.5}
    for answer in (kvgauge.fit(loaded(), **words), kvgauge.plan(loaded(), **words)):
        assert "option_without_effect" in {note.code for note in answer.notes}
