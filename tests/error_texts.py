"""The texts that errors and hints are made of, found in the source: literals, with ``{}`` for what is filled in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import kvgauge

SOURCE = Path(kvgauge.__file__).parent

#: Parts that write errors, or the phrases that errors are made of; and every module that imports them.
PACKAGES = ("cli/", "readers/", "sources/", "engines/")

#: Modules among these whose texts are scripts, examples, tables and notes.
NO_ERRORS = (
    "__init__.py", "cli/completion.py", "cli/help.py", "cli/topics.py", "engines/index.py", "engines/transformers_notes.py",
    "engines/vllm/devices.py", "engines/vllm/notes.py", "engines/sglang/devices.py", "engines/sglang/notes.py",
    "engines/tensorrt_llm/notes.py", "render/", "replay/figures.py", "replay/llamacpp.py", "replay/memory.py",
    "replay/models.py", "replay/plain.py", "replay/replaying.py", "replay/vllm.py", "replay/weights.py",
    "verification/advising.py",
)  # fmt: skip

_SENTENCE = re.compile(r"[A-Za-z]\S* +\S|\{\} [a-z]")


class Literal(NamedTuple):
    """A text and where it stands."""

    text: str
    place: str


def literals(*, everything: bool = False) -> Iterator[Literal]:
    """Yield the texts of errors, or every text of the package."""
    for file in sorted(SOURCE.rglob("*.py")):
        name = file.relative_to(SOURCE).as_posix()
        source = file.read_text(encoding="utf-8")
        speaks = name.startswith(PACKAGES) or "kvgauge.errors" in source
        if name.startswith("render/messages/") or (
            not everything and (not speaks or name.startswith(NO_ERRORS))
        ):
            continue
        for node, text in _texts(ast.parse(source)):
            if everything or ("\n" not in text and _SENTENCE.search(text)):
                yield Literal(text, f"{name}:{node.lineno}")


def _texts(node: ast.AST, notes: frozenset[str] = frozenset()) -> Iterator[tuple[ast.expr, str]]:
    """Yield joined texts; docstrings, annotations and the messages of notes are none."""
    if isinstance(node, ast.FunctionDef):
        notes = frozenset(_note_names(node))
    for child in _children(node):
        if isinstance(child, ast.Assign) and {getattr(t, "id", "") for t in child.targets} & notes:
            continue
        if isinstance(child, ast.expr) and _is_text(child):
            yield child, skeleton(child)
            for inner in _holes(child):
                yield from _texts(ast.Expr(inner), notes)
        else:
            yield from _texts(child, notes)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Note", "cast", "TypeVar"):
        return
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if isinstance(child, ast.AST) and not (is_docstring and field == "body"):
                yield child


def _note_names(function: ast.FunctionDef) -> set[str]:
    """Return the variables that are messages of notes."""
    calls = [n for n in ast.walk(function) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "Note"]
    return {a.id for call in calls for a in call.args if isinstance(a, ast.Name)}


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _parts(node: ast.expr) -> list[str | ast.expr]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return [part.value for part in node.values]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_parts(node.left), *_parts(node.right)]
    return [node]


def _holes(node: ast.expr) -> list[ast.expr]:
    return [part for part in _parts(node) if isinstance(part, ast.expr)]


def skeleton(node: ast.expr) -> str:
    """Return a text with ``{}`` for each run of what is filled in."""
    joined = "".join(part if isinstance(part, str) else "{}" for part in _parts(node))
    return plain(joined)


def plain(text: str) -> str:
    """Return a text with ``{}`` for each run of holes, whatever their names; ``a[0]`` is one."""
    return re.sub(r"\{\}(?:\[\{\}\]|\{\})+", "{}", re.sub(r"\{\w*[?+]?(?::g)?\}", "{}", text))
