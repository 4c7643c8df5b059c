"""Every object of the JSON contract against the schema that ships with the package."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources

import jsonschema
import pytest

import kvgauge
from designs import DESIGNS, LOADS
from gguf_files import QWEN3
from kvgauge.cli.topics import TOPICS
from kvgauge.errors import KvgaugeError
from support import ROOT

NAMES = (
    "size",
    "compare",
    "explain",
    "fit",
    "plan",
    "verify",
    "accuracy",
    "models",
    "gpus",
    "engines",
    "doctor",
    "completion",
    "learn",
    *(f"learn_{topic}" for topic in TOPICS),
    "error",
)


def schema(name: str) -> dict:
    return json.loads(resources.files("kvgauge.data").joinpath(f"schemas/{name}.json").read_text("utf-8"))


def validate(name: str, answer: dict) -> None:
    """Validate what a reader of the JSON would see."""
    jsonschema.Draft202012Validator(schema(name)).validate(json.loads(json.dumps(answer)))


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_schemas(name):
    jsonschema.Draft202012Validator.check_schema(schema(name))
    assert schema(name)["properties"]["schema"] == {"const": f"kvgauge.{name}/1"}


@pytest.mark.parametrize("engine", ["theory", "transformers", "vllm", "llama.cpp"])
@pytest.mark.parametrize("load", LOADS, ids=str)
@pytest.mark.parametrize("design", DESIGNS)
def test_size_and_explain(design, load, engine):
    try:
        result = kvgauge.size(DESIGNS[design], engine=engine, **load)
    except KvgaugeError as error:
        validate("error", error.to_dict())
        return
    validate("size", result.to_dict())
    for lang in ("en", "zh"):
        validate("explain", kvgauge.explain(result, lang=lang).to_dict())


@pytest.mark.parametrize("load", LOADS, ids=str)
@pytest.mark.parametrize("design", DESIGNS)
def test_fit(design, load):
    try:
        result = kvgauge.fit(DESIGNS[design], kv_memory="2GiB", engine="vllm", **load)
    except KvgaugeError as error:
        validate("error", error.to_dict())
        return
    validate("fit", result.to_dict())


def test_gguf():
    result = kvgauge.size(QWEN3)
    validate("size", result.to_dict())
    validate("explain", kvgauge.explain(result).to_dict())
    validate("compare", kvgauge.compare([QWEN3, "Qwen/Qwen3-8B"]).to_dict())


def test_compare():
    validate("compare", kvgauge.compare([*DESIGNS.values(), {}, "no/such-model"]).to_dict())


def test_shared_configs(shared):
    for path in sorted((shared / "data" / "configs" / "real").glob("*.json")):
        try:
            result = kvgauge.size(path)
        except KvgaugeError as error:
            validate("error", error.to_dict())
        else:
            validate("size", result.to_dict())
            validate("explain", kvgauge.explain(result).to_dict())


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("size", {"notes": None}),
        ("size", {"cache": {"total_bytes": 1.5}}),
        ("explain", {"steps": []}),
        ("error", {"error": {"code": "Not A Code", "message": "x", "hint": "", "field": None}}),
    ],
)
def test_schemas_refuse_what_is_wrong(name, change):
    result = kvgauge.size(DESIGNS["mha"])
    answers = {
        "size": result.to_dict(),
        "explain": kvgauge.explain(result).to_dict(),
        "error": {"schema": "x"},
    }
    with pytest.raises(jsonschema.ValidationError):
        validate(name, {**answers[name], **change})


COMMANDS = {
    "size": ["size", "Qwen/Qwen3-8B"],
    "compare": ["compare", "Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B"],
    "explain": ["explain", "Qwen/Qwen3.5-35B-A3B", "--lang", "zh"],
    "fit": ["fit", "Qwen/Qwen3-8B", "--kv-memory", "1GiB"],
    "plan": ["plan", "Qwen/Qwen3-8B", "--gpu", "L4", "--context", "32k", "--sequences", "8"],
    "verify": ["verify", str(ROOT / "tests/logs/vllm_0.19.0_tp2.log")],
    "accuracy": ["accuracy"],
    "models": ["models"],
    "gpus": ["gpus"],
    "engines": ["engines"],
    "doctor": ["doctor"],
    "completion": ["completion", "fish"],
    "learn": ["learn"],
    **{f"learn_{name}": topic.example.split()[1:] for name, topic in TOPICS.items()},
    "error": ["size", "no/such-model"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_print_their_schema(name):
    start = "import sys; from kvgauge.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", start, *COMMANDS[name], "--json"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == (4 if name == "error" else 0), done.stderr.decode()
    validate(name, json.loads(done.stdout))
