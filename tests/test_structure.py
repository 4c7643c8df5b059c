"""The design holds: the direction of imports, a light core, one public surface."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kvgauge

PACKAGE = Path(kvgauge.__file__).parent

#: What a part may import of the package, beside frozen ``values``; parts not named may import anything below
#: them in the flow.
ALLOWED = {
    "identity": set(),
    "layers": set(),
    "units": {"errors"},
    "dtypes": {"errors", "layers"},
    "architecture": {"layers"},
    "weights": {"architecture"},
    "weight_formats": {"errors"},
    "stored_weights": {"architecture", "weight_formats", "weights"},
    "sharding": {"errors", "weight_formats", "weights"},
    "workload": {"errors", "layers", "units"},
    "readers": {
        "architecture", "data", "dtypes", "errors", "layers", "readers", "stored_weights", "weight_formats",
        "weights",
    },
    "sources": {"_version", "data", "errors", "sources"},
    "engines": {
        "architecture", "data", "dtypes", "engines", "errors", "identity", "layers", "sharding",
        "stored_weights", "units", "weight_formats", "weights", "workload",
    },
    "cache": {"architecture", "dtypes", "engines", "errors", "layers", "workload"},
}  # fmt: skip
THIRD_PARTY = {
    "cli": {"click", "rich"},
    "render": {"rich"},
    "emit": {"yaml"},
    "web": {"starlette", "uvicorn", "h11"},
    "lab": {"numpy", "safetensors", "tokenizers"},
}
#: Modules that may use the hub's own library, for its settings; each imports it when a hub is asked for.
HUB_MODULES = {"sources/hub.py", "sources/hub_cache.py"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imported(path: Path) -> set[str]:
    """Return the dotted modules that a file imports, wherever in the file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_follow_the_flow(path):
    part = part_of(path)
    if part not in ALLOWED:
        return
    inner = {name.split(".")[1] for name in imported(path) if name.startswith("kvgauge.")}
    assert inner <= ALLOWED[part] | {part, "values"}


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_only_the_terminal_parts_use_libraries(path):
    roots = {name.split(".")[0] for name in imported(path)} - {"kvgauge"}
    foreign = {name for name in roots if name not in sys.stdlib_module_names}
    allowed = THIRD_PARTY.get(part_of(path), set())
    if path.relative_to(PACKAGE).as_posix() in HUB_MODULES:
        allowed = {"huggingface_hub"}
    assert foreign <= allowed


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_modules_stay_small(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_public_names():
    assert sorted(kvgauge.__all__) == dir(kvgauge)
    for name in kvgauge.__all__:
        assert getattr(kvgauge, name) is not None
    with pytest.raises(AttributeError):
        _ = kvgauge.nonsense


@pytest.mark.parametrize(
    "command", ["import kvgauge", "import kvgauge; kvgauge.size('Qwen/Qwen3-8B').to_dict()"]
)
def test_the_core_imports_no_library(command):
    heavy = {"click", "rich", "huggingface_hub", "numpy", "urllib.request", "ssl", "kvgauge.sources.names"}
    check = f"{command}\nimport sys\nprint(sorted(set(sys.modules) & {heavy}))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "[]"
