"""The built wheel in a fresh environment: the command, the module, and one command without installation."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from support import ROOT

ANSWER = "Qwen/Qwen3-8B: 4.50 GiB of KV cache"


def call(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("KVGAUGE_", "PYTHON", "LC_", "LANG"))}
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, env=kept, capture_output=True, encoding="utf-8", check=False
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the tree without the network."""
    pytest.importorskip("hatchling", reason="the build backend is not here")
    folder = tmp_path_factory.mktemp("tree")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    done = call(sys.executable, "-m", "build", "--wheel", "--no-isolation", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = (folder / "dist").glob("*.whl")
    return file


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment that holds the wheel; dependencies come from this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    done = call(programs / "python", "-m", "pip", "install", "--no-deps", "--no-index", wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(call(programs / "python", "-c", code, cwd=folder).stdout.strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return programs


def test_the_wheel_is_what_runs(scripts, tmp_path):
    done = call(scripts / "python", "-c", "import kvgauge; print(kvgauge.__file__)", cwd=tmp_path)
    assert Path(done.stdout.strip()).is_relative_to(scripts.parent), done.stderr


@pytest.mark.parametrize("program", [["kvgauge"], ["python", "-m", "kvgauge"]])
def test_the_command_and_the_module(scripts, tmp_path, program):
    done = call(scripts / program[0], *program[1:], "Qwen/Qwen3-8B", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(ANSWER)
    done = call(scripts / program[0], *program[1:], "no-such-model", "--lang", "zh", cwd=tmp_path)
    assert done.returncode == 4
    assert "no-such-model" in done.stderr


def test_data_and_schemas_are_in_it(scripts, tmp_path):
    for words in (
        ["models"],
        ["completion", "bash"],
        ["explain", "Qwen/Qwen3-8B", "--json"],
        ["doctor"],
        ["learn", "walk"],
    ):
        done = call(scripts / "kvgauge", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_one_command_without_installation(wheel, tmp_path):
    """``uvx --from``; what it depends on comes from its cache or an index, where one can be reached."""
    if not shutil.which("uvx"):
        pytest.skip("uv is not here")
    done = call("uvx", "--python", sys.executable, "--from", wheel, "kvgauge", "Qwen/Qwen3-8B", cwd=tmp_path)
    if done.returncode and re.search(r"fetch|network|connect|dns", done.stderr, re.IGNORECASE):
        pytest.skip("uv reaches no index")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(ANSWER)
