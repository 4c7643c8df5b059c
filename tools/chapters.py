"""Build the chapters of ``docs/learn`` from their sources, or check that they are as built.

    python tools/chapters.py build
    python tools/chapters.py check

A source is Markdown with ``{{name}}`` where a figure stands; the names and their expressions are in
``figures.toml``. No figure with a unit may be written by hand, but in quotations
that ``quotations.txt`` lists and in commands to type.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from chapter_figures import NAMES, run

ROOT = Path(__file__).parents[1] / "docs/learn"
SOURCE = ROOT / "source"
LANGUAGES = ("en", "zh")
BANNER = "<!-- built by tools/chapters.py from docs/learn/source; change it there -->\n\n"

_COMMAND = re.compile(r"^kvgauge .*$|`(?:kvgauge |--)[^`]*`", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{\{([\w.]+)\}\}")
#: Names with hyphens, whose figures are no figures: Qwen3-30B-A3B.
_NAME = re.compile(r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9.]*(?:-[A-Za-z0-9.]+)+")
_MEASURES = (
    r"(?:[kKMGTPE]i?)?[Bb](?:/s|ps)?\b|(?:[kKMGTPE]i?)?bits?\b|bytes?\b|%|(?:[kMG])?Hz\b|[kMGTPE]?FLOPS?\b|TOPS\b|"
    r"k?W\b|[mµμn]?s\b|(?<=\d)[kKMx×]\b|(?<=\d)×(?!\s*[\d§])|tokens?\b|GPUs?\b|"
)
_UNITS = {
    "en": _MEASURES + (
        r"layers?\b|heads?\b|param(?:eter)?s?\b|cards?\b|racks?\b|chips?\b|blocks?\b|pages?\b|sequences?\b|"
        r"requests?\b|values?\b|numbers?\b|elements?\b|dimensions?\b|experts?\b|rows?\b|columns?\b|entries\b|"
        r"pairs?\b|cores?\b|slots?\b|copies\b|(?:milli|micro|nano)?seconds?\b|minutes?\b|hours?\b|days?\b|"
        r"percent\b|times\b|steps?\b|watts?\b|thousand\b|million\b|billion\b|trillion\b"
    ),
    "zh": _MEASURES + (
        r"字节|比特|位|词元|层|头|参数|张|块|页|序列|请求|数字|数值|元素|维|专家|行|列|[毫微纳]?秒|分钟|小时|倍|步|"
        r"机柜|片|颗|枚|组|条|份|次|对|个|千|万|亿|瓦"
    ),
}  # fmt: skip
_NUMBER = r"(?<![A-Za-z0-9_.{])[\d½¼¾][\d,.]*(?:[eE][+-]?\d+)?"
#: Between number and unit: blanks, a hyphen, the marks of Markdown.
_BETWEEN = r"(?:\s|&nbsp;|[-*_`])*"
_BY_HAND = {lang: re.compile(rf"{_NUMBER}{_BETWEEN}(?:{units})") for lang, units in _UNITS.items()}


@lru_cache(maxsize=1)
def expressions() -> dict[str, str]:
    """Return name -> expression; names of a table are prefixed with it."""
    with (SOURCE / "figures.toml").open("rb") as file:
        tables: dict[str, dict[str, str]] = tomllib.load(file)
    del tables["models"]
    return {f"{table}.{name}": text for table, rows in tables.items() for name, text in rows.items()}


@lru_cache(maxsize=1)
def models() -> dict[str, str]:
    """Return the short names of models."""
    with (SOURCE / "figures.toml").open("rb") as file:
        found: dict[str, str] = tomllib.load(file)["models"]
    return found


@lru_cache(maxsize=4096)
def evaluate(name: str, lang: str) -> str:
    """Return the shown value of a named expression.

    Raises:
        KeyError: no such name.
    """
    scope: dict[str, Any] = {"__builtins__": {}, **NAMES, **models(), "lang": lang}
    return str(eval(expressions()[name], scope))  # noqa: S307 - the project's own expressions


def quotations() -> tuple[str, ...]:
    """Return what the chapters may quote as it stands."""
    lines = (SOURCE / "quotations.txt").read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def written_by_hand(text: str, lang: str) -> list[str]:
    """Return the figures with a unit that a source states without an expression."""
    for quoted in quotations():
        text = text.replace(f"“{quoted}”", "")
    text = _NAME.sub("", _COMMAND.sub("", _PLACEHOLDER.sub("§", text)))
    return [match[0] for match in _BY_HAND[lang].finditer(text)]


def chapters(lang: str) -> list[Path]:
    """Return the sources of a language."""
    return sorted((SOURCE / lang).glob("*.md"))


def build(source: Path, lang: str) -> str:
    """Return a chapter with its figures filled in.

    Raises:
        ValueError: a figure is written by hand, or a name has no expression.
    """
    text = source.read_text(encoding="utf-8")
    wrong = written_by_hand(text, lang)
    if wrong:
        raise ValueError(f"{lang}/{source.name}: written by hand, not evaluated: {wrong}")
    unknown = sorted({name for name in _PLACEHOLDER.findall(text) if name not in expressions()})
    if unknown:
        raise ValueError(f"{lang}/{source.name}: no expression is named {unknown}")
    return BANNER + _PLACEHOLDER.sub(lambda match: evaluate(match[1], lang), text)


def pages(lang: str) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of every built file of a language: the chapters, then the drawing of L1."""
    for source in chapters(lang):
        yield source.name, build(source, lang)
    yield "pipeline.svg", run(f"learn pipeline {models()['QWEN3_8B']} --lang {lang}") + "\n"


def main() -> None:
    """Build or check every chapter, and the drawing, in both languages."""
    verb = sys.argv[1] if len(sys.argv) == 2 else ""
    if verb not in ("build", "check"):
        sys.exit("usage: python tools/chapters.py build | check")
    stale = []
    for lang in LANGUAGES:
        for name, text in pages(lang):
            target = ROOT / lang / name
            if verb == "build":
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
            elif not target.exists() or target.read_text(encoding="utf-8") != text:
                stale.append(f"{lang}/{name}")
    if stale:
        sys.exit(f"not as built: {', '.join(stale)}; run python tools/chapters.py build")


if __name__ == "__main__":
    main()
