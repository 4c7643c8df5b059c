"""scripts/kv_cache_calculator.py: the interface and the lines of the article."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from designs import ARTICLE, DESIGNS
from support import ROOT

SCRIPT = ROOT / "scripts" / "kv_cache_calculator.py"

QWEN3_8B = {
    "model_type": "qwen3", "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
    "head_dim": 128, "hidden_size": 4096, "torch_dtype": "bfloat16", "max_position_embeddings": 40960,
}  # fmt: skip

BLOCK = """\
Model: Qwen/Qwen3-8B
Architecture: gqa
  layers:                        36
  num_kv_heads:                   8
  head_dim:                     128
  per_token_bytes:          147456
  per_token_kib:             144.0
  context_length:            32768
  total_gib:                4.5000

  >>> KV Cache = 4.5000 GiB (4.8318 GB) for 32768 tokens, batch=1
"""


def run(
    *arguments: str, interpreter: tuple[str, ...] = (sys.executable,)
) -> subprocess.CompletedProcess[str]:
    command = [*interpreter, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


@pytest.fixture
def config(tmp_path):
    def write(content: dict, name: str = "config.json") -> str:
        path = tmp_path / name
        path.write_text(json.dumps(content), encoding="utf-8")
        return str(path)

    return write


def test_the_block_of_the_article():
    assert run("Qwen/Qwen3-8B").stdout == BLOCK


def test_a_file_gives_the_same_lines(config):
    path = config(QWEN3_8B)
    assert run(path).stdout == BLOCK.replace("Qwen/Qwen3-8B", path)


def test_custom_parameters(config):
    done = run(config(QWEN3_8B), "--context-length", "131072", "--batch-size", "4", "--dtype-bytes", "1")
    assert "  >>> KV Cache = 36.0000 GiB (38.6547 GB) for 131072 tokens, batch=4\n" in done.stdout


@pytest.mark.parametrize(
    ("design", "architecture", "gib", "state"),
    [
        ("Qwen3-30B-A3B", "gqa", "3.0000", 0),
        ("GLM-4.7-Flash", "mla", "1.6523", 0),
        ("Qwen3.5-35B-A3B", "hybrid_attention", "0.6250", 64_389_120),
        ("Nemotron-3-Nano-30B-A3B", "hybrid_mamba", "0.1875", 49_082_368),
    ],
)
def test_the_growing_cache_then_the_state(config, design, architecture, gib, state):
    lines = run(config(ARTICLE[design])).stdout.splitlines()
    assert lines[1] == f"Architecture: {architecture}"
    assert f"  total_gib:                {gib}" in lines
    cache = next(i for i, line in enumerate(lines) if line.startswith(f"  >>> KV Cache = {gib} GiB"))
    after = lines[cache + 1 :]
    assert len(after) == bool(state)
    assert all(f"{state} bytes" in line for line in after)


@pytest.mark.parametrize("design", DESIGNS)
def test_every_design_has_an_answer(config, design):
    done = run(config(DESIGNS[design]), "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["total_gib"] == figures["total_bytes"] / 2**30
    assert figures["context_length"] == 32768


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 2),
        (["Qwen/Qwen3-8B", "--dtype-bytes", "3"], 2),
        (["Qwen/Qwen3-8B", "--batch-size", "0"], 2),
        (["Qwen/Qwen3-8B", "--context-length", "-5"], 2),
        (["Qwen/Qwen3-8B", "--nonsense"], 2),
        (["no/such-model"], 4),
        ([str(ROOT / "README.md")], 1),
    ],
)
def test_errors_are_one_line(arguments, code):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.count("\n") == 1
    as_json = run(*arguments, "--json")
    assert as_json.returncode == code
    assert json.loads(as_json.stdout)["schema"] == "kvgauge.error/1"


def test_it_runs_from_a_checkout(config):
    done = run(config(QWEN3_8B), interpreter=(sys.executable, "-S", "-E"))
    assert done.stdout.endswith("for 32768 tokens, batch=1\n"), done.stderr


def test_a_closed_pipe_is_quiet(config):
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, str(SCRIPT), config(QWEN3_8B)], stdout=write, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")
