"""Read unpacked releases of the engines into tables by version: flags, their values, and models that load.

    python tools/engine_releases.py vllm FOLDER
    python tools/engine_releases.py sglang FOLDER
    python tools/engine_releases.py llama.cpp FOLDER
    python tools/engine_releases.py transformers FOLDER
    python tools/engine_releases.py check

FOLDER holds one folder a release, named after it (``0.33.0``, ``b4234``, ``v0.5.0``), with the release's own
files as the wheel or the repository lays them out; nothing is imported or run. Rewritten is the engine's part
of ``src/kvgauge/data/engine_releases.json``. A flag, value or class stands under the span of releases that
have it: ``A..B`` from A to B, ``A..`` still in the newest, ``..B`` already in the oldest, and ``..`` in all;
what came back after a gap has two spans. The part of TensorRT-LLM, whose wheels lie elsewhere, was read from
its repository at the commits that its source names, and is written by hand.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "src" / "kvgauge" / "data" / "engine_releases.json"
#: Flags whose values are kept too, by engine.
VALUED = {
    "vllm": ("--kv-cache-dtype", "--mamba-cache-dtype", "--mamba-ssm-cache-dtype", "--mamba-cache-mode"),
    "sglang": (
        "--kv-cache-dtype", "--mamba-ssm-dtype", "--mamba-scheduler-strategy", "--mamba-radix-cache-strategy",
        "--speculative-algorithm",
    ),
    "llama.cpp": ("--spec-type",),
}  # fmt: skip
SOURCES = {
    "vllm": "released wheels: engine/arg_utils.py, entrypoints/**/cli_args.py, config, models/registry.py",
    "sglang": "released wheels: srt/server_args.py, srt/arg_groups, EntryClass of srt/models",
    "transformers": "released package: classes of models/*/modeling_*.py with _supports_attention_backend",
    "llama.cpp": "source of releases: common/arg.cpp, register names of the conversion to GGUF",
}
#: Tables of vLLM's registry that don't name classes which it loads for themselves.
_NOT_SERVED = ("SPECULATIVE", "PREVIOUSLY", "BACKEND", "OOT", "ROCM", "PARTIALLY", "SUBPROCESS")
_HUGE = 100_000_000

#: What one release has: flags, values of some of them, classes.
Facts = tuple[set[str], dict[str, set[str]], set[str]]


def _trees(paths: Iterable[Path]) -> Iterator[ast.Module]:
    for path in paths:
        if path.is_file():
            yield ast.parse(path.read_text(encoding="utf-8-sig", errors="replace"))


def _strings(node: ast.AST | None) -> list[str]:
    """Return the constant strings of an expression, in order."""
    if node is None:
        return []
    return [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def _constants(trees: Iterable[ast.Module]) -> dict[str, list[str]]:
    """Return NAME -> strings of module-level ``NAME = [...]`` or ``NAME = Literal[...]``."""
    found: dict[str, list[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(target, ast.Name):
                found.setdefault(target.id, _strings(node.value))
    return found


def _added(tree: ast.Module) -> Iterator[tuple[list[str], dict[str, ast.expr]]]:
    """Yield (spellings, keywords) of each ``add_argument``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            names = [name for name in names if name.startswith("-")]
            if names:
                yield names, {k.arg: k.value for k in node.keywords if k.arg}


def _choices(node: ast.expr | None, constants: Mapping[str, list[str]]) -> set[str]:
    if isinstance(node, ast.Name):
        return set(constants.get(node.id, ()))
    return {word for word in _strings(node) if word}


def _vllm(root: Path) -> Facts:
    root /= "vllm"
    config = [root / "config.py", *sorted((root / "config").glob("*.py")), root / "engine" / "arg_utils.py"]
    constants = _constants(_trees(config))
    ends = sorted((root / "entrypoints").rglob("cli_args.py"))
    trees = [*_trees([root / "engine" / "arg_utils.py", root / "entrypoints/cli/serve.py"]), *_trees(ends)]
    flags: set[str] = {"--config"}
    values: dict[str, set[str]] = {}
    literals = {"--kv-cache-dtype": "CacheDType", "--mamba-cache-dtype": "MambaDType",
                "--mamba-ssm-cache-dtype": "MambaDType", "--mamba-cache-mode": "MambaCacheMode"}  # fmt: skip
    for tree in trees:
        for names, keywords in _added(tree):
            flags |= set(names)
            for name in set(names) & set(VALUED["vllm"]):
                values[name] = _choices(keywords.get("choices"), constants) or set(
                    constants.get(literals[name], ())
                )
        flags |= set(_fields(tree, "FrontendArgs"))
    return flags, values, _vllm_models(root / "model_executor" / "models")


def _fields(tree: ast.Module, ending: str) -> Iterator[str]:
    """Yield a flag for each field of dataclasses whose name ends so, but those of the batch runner."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name.endswith(ending) and "Batch" not in node.name:
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    yield "--" + line.target.id.replace("_", "-")


def _vllm_models(folder: Path) -> set[str]:
    path = folder / "registry.py"
    tree = next(_trees([path if path.is_file() else folder / "__init__.py"]))
    found: set[str] = set()
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        name = getattr(target, "id", "")
        if not name.endswith("_MODELS") or any(word in name for word in _NOT_SERVED):
            continue
        if isinstance(getattr(node, "value", None), ast.Dict):
            found |= {k.value for k in node.value.keys if isinstance(k, ast.Constant)}  # type: ignore[union-attr]
    return found


def _sglang(root: Path) -> Facts:
    root = root / "sglang" / "srt"
    groups = sorted((root / "arg_groups").rglob("*.py"))
    constants = _constants(_trees([root / "server_args.py", *groups]))
    flags: set[str] = set()
    values: dict[str, set[str]] = {}

    def note(names: Iterable[str], choices: set[str]) -> None:
        flags.update(names)
        for name in set(names) & set(VALUED["sglang"]):
            values[name] = choices

    for tree in _trees([root / "server_args.py", *groups]):
        for names, keywords in _added(tree):
            note(names, _choices(keywords.get("choices"), constants))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for names, choices in _annotated(node, constants):
                    note(names, choices)
    return flags, values, _sglang_models(root / "models")


def _annotated(
    node: ast.ClassDef, constants: Mapping[str, list[str]]
) -> Iterator[tuple[list[str], set[str]]]:
    """Yield (spellings, choices) of the fields that are declared as ``name: A[type, Arg(...)]``."""
    for line in node.body:
        if not (isinstance(line, ast.AnnAssign) and isinstance(line.annotation, ast.Subscript)):
            continue
        outer = line.annotation
        if getattr(outer.value, "id", "") not in ("A", "Annotated") or not isinstance(outer.slice, ast.Tuple):
            continue
        kind, metas = outer.slice.elts[0], outer.slice.elts[1:]
        arg = next((m for m in metas if isinstance(m, ast.Call) and getattr(m.func, "id", "") == "Arg"), None)
        if arg is None and not any(_strings(m) for m in metas):
            continue
        keywords = {k.arg: k.value for k in arg.keywords if k.arg} if arg is not None else {}
        if getattr(keywords.get("no_cli"), "value", False):
            continue
        own = _strings(keywords.get("cli_name")) or ["--" + getattr(line.target, "id", "").replace("_", "-")]
        choices = _choices(keywords.get("choices"), constants)
        yield [*own, *_strings(keywords.get("aliases"))], choices or set(_strings(kind))


def _sglang_models(folder: Path) -> set[str]:
    found: set[str] = set()
    for tree in _trees(sorted(folder.glob("*.py"))):
        for node in tree.body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            if getattr(target, "id", "") == "EntryClass":
                found |= {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}  # type: ignore[attr-defined]
    return found


_OPTION = re.compile(r"add_opt\((?:common|llama)_arg\(\s*\{([^}]*)\}\s*,(?:\s*\{([^}]*)\}\s*,)?")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_OLD_FLAG = re.compile(r'arg == "(-[^"]+)"')


def _llamacpp(root: Path) -> Facts:
    flags: set[str] = set()
    values: dict[str, set[str]] = {}
    path = root / "common" / "arg.cpp"
    if path.is_file():
        text = path.read_text(encoding="utf-8", errors="replace")
        for first, second in _OPTION.findall(text):
            flags |= {word for word in _QUOTED.findall(f"{first},{second}") if word.startswith("-")}
    else:
        for old in ("common/common.cpp", "examples/server/server.cpp"):
            if (root / old).is_file():
                flags |= set(_OLD_FLAG.findall((root / old).read_text(encoding="utf-8", errors="replace")))
    spec = root / "common" / "speculative.cpp"
    if "--spec-type" in flags and spec.is_file():
        text = spec.read_text(encoding="utf-8")
        values["--spec-type"] = set(re.findall(r'\{\s*"([a-z0-9-]+)"\s*,\s*COMMON_SPECULATIVE_TYPE', text))
    return flags, values, _llamacpp_models(root)


def _llamacpp_models(root: Path) -> set[str]:
    found: set[str] = set()
    files = [*root.glob("convert*hf*to*gguf.py"), *sorted((root / "conversion").glob("*.py"))]
    for path in files:
        text = path.read_text(encoding="utf-8", errors="replace")
        for inner in re.findall(r"@(?:Model|ModelBase|TextModel|MmprojModel)\.register\(([^)]*)\)", text):
            found |= set(_QUOTED.findall(inner))
    return found


def _transformers(root: Path) -> Facts:
    """Read the classes whose attention is behind an interface, as the engines' Transformers backends ask."""
    bases: dict[str, list[str]] = {}
    marked: dict[str, bool] = {}
    for tree in _trees(sorted((root / "transformers" / "models").rglob("modeling_*.py"))):
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]
                own = [line for line in node.body if isinstance(line, ast.Assign)]
                for line in own:
                    if getattr(line.targets[0], "id", "") == "_supports_attention_backend":
                        marked[node.name] = bool(getattr(line.value, "value", False))

    def takes(name: str, depth: int = 0) -> bool:
        if name in marked or depth > 8:
            return marked.get(name, False)
        return any(takes(base, depth + 1) for base in bases.get(name, ()))

    ends = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")
    return set(), {}, {name for name in bases if name.endswith(ends) and takes(name)}


READERS: Mapping[str, Callable[[Path], Facts]] = {
    "vllm": _vllm, "sglang": _sglang, "llama.cpp": _llamacpp, "transformers": _transformers,
}  # fmt: skip


def _order(name: str) -> tuple[int, ...]:
    """Return what releases are ordered by; builds of llama.cpp come before its versions."""
    if re.fullmatch(r"b\d+", name):
        return (-1, int(name[1:]))
    return tuple(int(part) if part.isdecimal() else -_HUGE for part in re.findall(r"\d+|rc", name))


def _spans(has: Iterable[tuple[str, bool]]) -> Iterator[str]:
    """Yield the spans of a fact, from (release, whether it has it) in order."""
    rows = list(has)
    start: int | None = None
    for at, (_, own) in enumerate([*rows, ("", False)]):
        if own and start is None:
            start = at
        elif not own and start is not None:
            first = "" if start == 0 else rows[start][0]
            yield f"{first}..{'' if at == len(rows) else rows[at - 1][0]}"
            start = None


def _table(releases: list[str], found: list[set[str]]) -> dict[str, str]:
    """Return span -> the words that have it, joined by spaces."""
    spans: dict[str, list[str]] = {}
    for word in sorted(set().union(*found)):
        for span in _spans(zip(releases, (word in own for own in found), strict=True)):
            spans.setdefault(span, []).append(word)
    return {span: " ".join(words) for span, words in sorted(spans.items())}


def build(engine: str, folder: Path) -> dict[str, object]:
    """Return an engine's part of the table, from a folder of releases."""
    releases = sorted((p.name for p in folder.iterdir() if p.is_dir()), key=_order)
    facts = [READERS[engine](folder / name) for name in releases]
    with_models = [n for n, fact in enumerate(facts) if fact[2]]
    flagged = [n for n, fact in enumerate(facts) if fact[0]]
    return {
        "source": SOURCES[engine],
        "releases": " ".join(releases[n] for n in flagged),
        "flags": _table([releases[n] for n in flagged], [facts[n][0] for n in flagged]),
        "values": {
            flag: _table([releases[n] for n in flagged], [facts[n][1].get(flag, set()) for n in flagged])
            for flag in VALUED.get(engine, ())
        },
        "model_releases": " ".join(releases[n] for n in with_models),
        "models": _table([releases[n] for n in with_models], [facts[n][2] for n in with_models]),
    }


def main(words: list[str]) -> int:
    """Rewrite an engine's part, or check that the table is in its own form."""
    table = json.loads(DATA.read_text(encoding="utf-8")) if DATA.is_file() else {}
    if len(words) == 2 and words[0] in READERS:
        table[words[0]] = build(words[0], Path(words[1]))
    elif words != ["check"]:
        sys.stderr.write(__doc__ or "")
        return 2
    text = json.dumps(table, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if words == ["check"]:
        return int(text != DATA.read_text(encoding="utf-8"))
    DATA.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
