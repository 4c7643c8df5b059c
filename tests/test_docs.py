"""Every command that the documents show is run, and what they show of its output is compared."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gguf_files import write
from kvgauge._version import __version__
from support import ROOT, config_of

DOCUMENTS = ["README.md", "README.zh-CN.md"]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(document: str) -> list[tuple[str, str]]:
    """Return (language, text) of every fenced block."""
    return _BLOCK.findall((ROOT / document).read_text(encoding="utf-8"))


def commands(document: str) -> list[str]:
    """Return the kvgauge command of every line of a plain block."""
    lines = [line for language, text in blocks(document) if not language for line in text.splitlines()]
    found = [line.split(" && ")[-1] if line.startswith("pip install .") else line for line in lines]
    return [line for line in found if "kvgauge " in line and not line.startswith(("git ", "python", "pip"))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which the documents' placeholder paths exist."""
    model = tmp_path / "path/to/model-folder"
    model.mkdir(parents=True)
    config = json.dumps(config_of("Qwen/Qwen3-8B"))
    (model / "config.json").write_text(config, encoding="utf-8")
    (tmp_path / "path/to/config.json").write_text(config, encoding="utf-8")
    requests = ({"model": "Qwen/Qwen3-8B"}, {"model": "path/to/config.json", "context": "4k", "tp": 2})
    lines = "".join(f"{json.dumps(request)}\n" for request in requests)
    (tmp_path / "path/to/requests.ndjson").write_text(lines, encoding="utf-8")
    write(tmp_path / "path/to/model.gguf")
    shutil.copy(ROOT / "tests/logs/vllm_0.19.0_tp2.log", tmp_path / "path/to/server.log")
    return tmp_path


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a documented command with this interpreter's kvgauge; a server until it says where it is."""
    data = None
    command = re.sub(r"^uvx --from \S+ |^eval \"\$\(|\)\"$| \| source$", "", command)
    command, _, file = command.partition(" < ")
    if file:
        data = (folder / file).read_text(encoding="utf-8")
    if command.startswith("cat "):
        source, _, command = command.partition(" | ")
        data = (folder / shlex.split(source)[1]).read_text(encoding="utf-8")
    arguments = shlex.split(command)
    assert arguments[0] == "kvgauge"
    env = {k: v for k, v in os.environ.items() if not k.startswith("KVGAUGE_")}
    env |= {"PYTHONIOENCODING": "utf-8", "LC_ALL": "C.UTF-8", "COLUMNS": "80", "NO_COLOR": "1"}
    call = [sys.executable, "-c", "from kvgauge.cli import main; main()", *arguments[1:]]
    if arguments[1] == "serve":
        return _run_server(call, folder, env)
    return subprocess.run(
        call, check=False, cwd=folder, env=env, input=data, capture_output=True, encoding="utf-8", timeout=60
    )


def _run_server(call: list[str], folder: Path, env: dict) -> subprocess.CompletedProcess[str]:
    """Start a server, wait for its first line and stop it."""
    port = [] if "--port" in call else ["--port", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*call, *port], cwd=folder, env=env, stdout=pipe, stderr=pipe, encoding="utf-8"
    ) as server:
        line = server.stdout.readline()
        server.terminate()
        rest, err = server.communicate(timeout=30)
    return subprocess.CompletedProcess(call, server.returncode, line + rest, err)


@pytest.mark.parametrize(
    ("document", "command"), [(document, c) for document in DOCUMENTS for c in commands(document)]
)
def test_documented_commands_work(document, command, folder):
    done = run(command, folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documented_output_is_real(document, folder):
    plain = blocks(document)
    shown = [(plain[i - 1][1], text) for i, (language, text) in enumerate(plain) if language == "text"]
    assert shown
    for command, text in shown:
        line = command.strip().split(" && ")[-1]
        assert text.rstrip() in run(line, folder).stdout, line


def test_both_documents_run_the_same_commands():
    english, chinese = ([c.replace(" --lang zh", "") for c in commands(name)] for name in DOCUMENTS)
    assert english == chinese
    assert len(english) > 20


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documents_name_the_wheel_of_this_version(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    assert set(re.findall(r"kvgauge-([\w.]+)-py3", text)) == {__version__}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documented_python_is_real(document):
    (code,) = (text for language, text in blocks(document) if language == "python")
    scope: dict[str, object] = {}
    for line in code.splitlines():
        expression, _, comment = line.partition("  #")
        expected = re.search(r"(\d+|Fraction\(.*\))$", comment)
        if expected and "=" not in expression:
            assert repr(eval(expression, scope)) == expected[1], line
        elif line.strip():
            exec(line, scope)


def test_the_two_main_commands_stand_first():
    first = [text for language, text in blocks("README.md") if not language]
    assert first[0].strip() == "pip install . && kvgauge size Qwen/Qwen3-8B"
    assert "pip install '.[dev]' && python -m pytest" in [text.strip() for text in first]


def test_documents_name_no_machine():
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"/(work|tmp|home|root)/", text), path.name
