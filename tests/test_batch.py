"""``size --ndjson``: requests in, answers out, in the same order."""

from __future__ import annotations

import inspect
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kvgauge
from kvgauge.cli import batch
from kvgauge.cli.app import execute
from kvgauge.keywords import COMPARE, FIT, SIZE, VERIFY
from test_schemas import validate

NAME = "Qwen/Qwen3-8B"


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    for name in [n for n in os.environ if n.startswith(("KVGAUGE_", "LC_", "LANG"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def answers(capsys):
    """Run lines of requests: (exit code, one object a line)."""

    def call(lines: list[object], *options: str) -> tuple[int, list[dict]]:
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        Path("requests.ndjson").write_text("\n".join(texts) + "\n", encoding="utf-8")
        code = execute(["size", "--ndjson", "requests.ndjson", *options])
        out, err = capsys.readouterr()
        assert err == ""
        return code, [json.loads(line) for line in out.splitlines()]

    return call


def test_answers_stand_in_the_order_of_the_requests(answers):
    contexts = [4096, "8k", None, 512]
    code, found = answers([{"model": NAME, "context": context} for context in contexts])
    assert code == 0
    assert [a["request"]["context_tokens"] for a in found] == [4096, 8192, 32768, 512]
    for answer in found:
        validate("size", answer)


def test_a_line_answers_as_the_call(answers):
    load = {"context": "16k", "sequences": 3, "kv_dtype": "fp8", "tp": 2, "overrides": {"head_dim": 64}}
    _, (answer,) = answers([{"model": NAME, **load}])
    assert answer == json.loads(json.dumps(kvgauge.size(NAME, **load).to_dict()))


def test_a_config_may_stand_in_a_line(answers):
    config = dict(kvgauge.load(NAME).raw.config)
    _, (answer,) = answers([{"model": config, "context": 32768}])
    assert answer["cache"]["total_bytes"] == 4_831_838_208


def test_options_are_the_defaults_of_all_lines(answers):
    code, found = answers([{}, {"context": "4k"}, {"model": "openai/gpt-oss-20b"}], NAME, "--context", "2k")
    assert code == 0
    assert [a["model"]["id"] for a in found] == [NAME, NAME, "openai/gpt-oss-20b"]
    assert [a["request"]["context_tokens"] for a in found] == [2048, 4096, 2048]


BAD = [
    ("{", "damaged_file", "not JSON"),
    ("[1]", "damaged_file", "a list"),
    ('{"model": "a", "model": "b"}', "damaged_file", "twice"),
    ({}, "invalid_request", "MODEL is missing"),
    ({"model": NAME, "contxt": 1}, "invalid_request", "contxt"),
    ({"model": NAME, "kv-dtype": "fp8"}, "invalid_request", "kv-dtype"),
    ({"model": NAME, "context": 1.5}, "invalid_request", "context is to be"),
    ({"model": NAME, "context": True}, "invalid_request", "context is to be"),
    ({"model": NAME, "context": -1}, "invalid_request", "out of range"),
    ({"model": NAME, "engine": 5}, "invalid_request", "engine is to be text"),
    ({"model": NAME, "overrides": [1]}, "invalid_request", "overrides is to be an object"),
    ({"model": 7}, "invalid_request", "model is to be"),
    ({"model": "-"}, "invalid_request", "standard input"),
    ({"model": NAME, "tp": 3}, "feature_unsupported", "--tp 3"),
    ({"model": "no-such-model"}, "model_not_found", "no-such-model"),
    ({"model": {"model_type": "llama"}}, "missing_field", ""),
]


def test_a_bad_line_is_an_error_object_and_the_rest_is_answered(answers):
    lines = [line for pair in BAD for line in (pair[0], {"model": NAME})]
    code, found = answers(lines)
    assert code == 1
    assert len(found) == len(lines)
    for (_, word, text), error, answer in zip(BAD, found[::2], found[1::2], strict=True):
        validate("error", error)
        assert error["error"]["code"] == word
        assert text in error["error"]["message"]
        assert error["error"]["hint"]
        assert answer["cache"]["total_bytes"] == 4_831_838_208


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_defect_costs_its_own_line(answers, monkeypatch, lang):
    def fail(model, **_keywords):
        raise {"a": RuntimeError, "b": RecursionError, "c": MemoryError}[model]

    monkeypatch.setattr(batch, "size", fail)
    code, found = answers([{"model": name} for name in "abc"], "--lang", lang)
    assert (code, [error["error"]["code"] for error in found]) == (1, ["internal"] * 3)


def test_blank_lines_are_left_out(answers):
    assert len(answers(["", {"model": NAME}, "  ", {"model": NAME}, "\r"])[1]) == 2
    assert answers([""]) == (0, [])


def test_long_lines_and_many_requests_are_bounded(answers, monkeypatch):
    monkeypatch.setattr(batch, "MAX_LINE_BYTES", 60)
    monkeypatch.setattr(batch, "MAX_REQUESTS", 4)
    code, found = answers(
        [{"model": NAME}, "x" * 1000, {"model": NAME}, {"model": NAME}, {"model": NAME}, "x"]
    )
    assert code == 1
    assert ["error" in answer for answer in found] == [False, True, False, False, True]
    assert "longer than 60 bytes" in found[1]["error"]["message"]
    assert "more than 4 requests" in found[4]["error"]["message"]


def test_a_line_of_the_greatest_length_is_read(monkeypatch):
    monkeypatch.setattr(batch, "MAX_LINE_BYTES", 4)
    lines = list(batch._lines(io.BytesIO(b"abc\nabcd\nabcde\nab")))
    assert [line if isinstance(line, bytes) else "long" for line in lines] == [
        b"abc\n",
        "long",
        "long",
        b"ab",
    ]


def test_keywords_are_those_of_size():
    files = {"progress", "local_files", "gpu_file", "check", "command"}
    for call, known in ((kvgauge.size, SIZE), (kvgauge.fit, FIT), (kvgauge.verify, {**VERIFY, "log": ()})):
        assert set(known) == set(inspect.signature(call).parameters) - files
    assert set(COMPARE) - {"models"} == set(SIZE) - {"model"}


@pytest.mark.parametrize(
    "argv",
    [
        ("--ndjson", "missing.ndjson"),
        ("--ndjson", "-", "--why"),
        ("--ndjson", "-", "--markdown"),
        ("--ndjson",),
    ],
)
def test_a_wrong_command_line_is_one_line_of_json(capsys, argv):
    code = execute(["size", *argv])
    (line,) = capsys.readouterr().out.splitlines()
    validate("error", json.loads(line))
    assert code in (2, 4)


def test_the_variable_is_for_size_alone(capsys, monkeypatch):
    Path("requests.ndjson").write_text(json.dumps({"model": NAME}), encoding="utf-8")
    monkeypatch.setenv("KVGAUGE_NDJSON", "requests.ndjson")
    assert execute(["doctor"]) == 0
    assert capsys.readouterr().out.startswith("version ")
    assert execute(["size"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "kvgauge.size/1"


def test_standard_input_is_answered_line_by_line():
    command = [sys.executable, "-m", "kvgauge", "size", "--ndjson", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        for context in (1024, 2048):
            process.stdin.write(json.dumps({"model": NAME, "context": context}) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["request"]["context_tokens"] == context
        process.stdin.close()
        assert process.wait(timeout=30) == 0


def test_notes_speak_the_language(answers):
    _, (answer,) = answers([{"model": NAME, "context": "1m"}], "--lang", "zh")
    assert "上限" in answer["notes"][0]["message"]
