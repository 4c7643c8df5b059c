"""Completion: what each shell is offered, and the scripts in the shells themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kvgauge.cli.arguments import SHELLS, VERBS
from kvgauge.cli.completion import FILES, offers, script
from kvgauge.cli.options import VERB_OPTIONS
from kvgauge.dtypes import canonical_dtype, dtype_words
from kvgauge.sources.catalogue import model_names

MAIN = "from kvgauge.cli import main; main()"


def test_verbs_come_first():
    assert offers([""]) == [*VERBS, FILES]
    assert offers(["comp"]) == ["compare", "completion", FILES]
    assert offers([]) == offers([""])


def test_models_are_offered_with_aliases_in_any_case():
    assert "Qwen/Qwen3-8B" in offers(["qwen/qwen3-8"])
    assert offers(["size", ""]) == [*model_names(), FILES]
    assert "Qwen/Qwen3-8B" in offers(["--json", "compare", "openai/gpt-oss-20b", "Qwen/Qwen3-8"])
    assert offers(["size", "Qwen/Qwen3-8B", ""]) == []
    assert "Qwen/Qwen3-8B-FP8" in offers(["explain", "Qwen/Qwen3-8B-"])
    assert offers(["doctor", ""]) == []


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_is_offered_its_options(verb):
    flags = [flag for row in VERB_OPTIONS[verb] if row.section != "later" for flag in row.flags]
    assert offers([verb, "--"]) == [flag for flag in (*flags, "--help") if flag.startswith("--")]


def test_options_before_the_verb():
    assert "--version" in offers(["--v"])
    assert "--gpu" not in offers(["--g"])
    assert offers(["--con"]) == ["--context", "--context-length", "--concurrency"]


def test_values():
    assert offers(["m", "--engine", "tr"])[0] == "transformers"
    assert "transformers@5.24.0" in offers(["m", "--engine", "transformers@"])
    assert {"fp8", "fp8_ds_mla", "fp8_e5m2"} <= set(offers(["m", "--kv-dtype", "fp8"]))
    assert "q8_0" in offers(["m", "-ctk", "q"])
    assert offers(["--lang", ""]) == ["en", "zh"]
    assert offers(["m", "--override", ""]) == []
    assert offers(["m", "--ndjson", ""]) == [FILES]
    assert offers(["m", "--mtp", "--js"]) == ["--json"]
    assert offers(["completion", ""]) == list(SHELLS)
    assert offers(["help", "mod"]) == ["models"]


def test_values_behind_an_equals_sign():
    assert offers(["m", "--units=g"]) == ["--units=gib", "--units=gb"]
    assert offers(["m", "--json=x"]) == []
    assert offers(["m", "--units", "=", "g"], splits=True) == ["gib", "gb"]
    assert offers(["m", "--units", "="], splits=True) == ["gib", "gb", "bytes"]


def test_every_dtype_word_is_understood():
    for word in dtype_words():
        assert word == "auto" or canonical_dtype(word)


def ask(*words: str, shell: str = "zsh", **environ: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "_KVGAUGE_COMPLETE": shell, **environ}
    command = [sys.executable, *environ.pop("FLAGS", "").split(), "-c", MAIN, *words]
    return subprocess.run(command, env=environ, capture_output=True, encoding="utf-8", check=False)


def test_the_program_answers_a_shell():
    done = ask("size", "qwen/qwen3-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Qwen/Qwen3-8B" in done.stdout.splitlines()


def test_an_answer_imports_tables_alone():
    seen: set[str] = set()
    for words in (("size", "qwen"), ("--kv-dtype", ""), ("--engine", ""), ("--",)):
        seen |= set(ask(*words, FLAGS="-X importtime").stderr.split())
    assert "kvgauge.cli.completion" in seen
    heavy = {"click", "rich", "huggingface_hub", "kvgauge.readers", "kvgauge.sizing", "kvgauge.render", "ssl"}
    assert not seen & heavy


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_are_printed(shell):
    done = subprocess.run(
        [sys.executable, "-m", "kvgauge", "completion", shell],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stdout == script(shell)
    assert f"_KVGAUGE_COMPLETE={shell}" in done.stdout


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A folder with a program of the name ``kvgauge``, to be put on the path."""
    file = tmp_path / "bin" / "kvgauge"
    file.parent.mkdir()
    file.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kvgauge "$@"\n', encoding="utf-8")
    file.chmod(0o755)
    return file.parent


def in_shell(program: Path, *command: str, **keywords: str) -> str:
    environ = {**os.environ, "PATH": f"{program}{os.pathsep}{os.environ['PATH']}", "HOME": str(program)}
    done = subprocess.run(
        command,
        env=environ,
        cwd=program,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
        **keywords,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def need(shell: str) -> str:
    if os.name == "nt" or not shutil.which(shell):
        pytest.skip(f"{shell} is not here")
    return shell


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("kvgauge comp", "compare completion"),
        ("kvgauge size qwen/qwen3-8b-f", "Qwen/Qwen3-8B-FP8"),
        ("kvgauge size x --units = g", "gib gb"),
        ("kvgauge size x --index-d", "--index-dtype"),
    ],
)
def test_bash(program, words, found):
    setting = (
        f'eval "$(kvgauge completion bash)"; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))'
    )
    out = in_shell(program, need("bash"), "-c", f'{setting}; _kvgauge kvgauge; echo "${{COMPREPLY[*]}}"')
    assert out.split() == found.split()


@pytest.mark.parametrize(
    ("line", "found"),
    [("kvgauge size qwen/qwen3-8b-f", "Qwen/Qwen3-8B-FP8"), ("kvgauge x --units=g", "--units=gib")],
)
def test_fish(program, line, found):
    code = f"kvgauge completion fish | source; complete --do-complete '{line}'"
    assert found in in_shell(program, need("fish"), "-c", code).splitlines()


def test_zsh(program):
    code = """
    compdef() { true }
    _files() { true }
    compadd() { print -l -- "${(@P)@[-1]}" }
    eval "$(kvgauge completion zsh)"
    words=(kvgauge size qwen/qwen3-8b-f) CURRENT=3
    _kvgauge
    """
    assert "Qwen/Qwen3-8B-FP8" in in_shell(program, need("zsh"), "-f", "-c", code).splitlines()
