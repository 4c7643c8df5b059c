"""Answers as Markdown: tables that paste into an issue, a chat or a document."""

from __future__ import annotations

import re

from kvgauge.render.sheet import Listing, Sheet, TableOf

#: What Markdown acts on inside a line; an underscore between letters is left as it is.
_MARKS = re.compile(r"[\\`*|<>\[\]~]|(?<![^\W_])_|_(?![^\W_])")


def to_markdown(sheet: Sheet) -> str:
    """Return a sheet as Markdown, blocks apart by an empty line."""
    parts = [f"**{escape(sheet.title)}**"] if sheet.title else []
    for block in sheet.blocks:
        parts.append(_block(block))
    return "\n\n".join(parts) + "\n"


def _block(block: str | TableOf | Listing) -> str:
    if isinstance(block, TableOf):
        return _table(block)
    if isinstance(block, Listing):
        fence = "~~~~" if "```" in block.text else "```"
        return f"{fence}{block.language}\n{block.text}\n{fence}"
    return escape(block)


def escape(text: str) -> str:
    r"""Return text that Markdown shows as it is.

    >>> escape("a|b *c* H_kv")
    'a\\|b \\*c\\* H_kv'
    """
    return _MARKS.sub(lambda mark: f"\\{mark[0]}", text.replace("\n", " "))


def _table(table: TableOf) -> str:
    rules = ["---:" if n in table.right else "---" for n in range(len(table.columns))]
    rows = [[_cell(text, is_code=n in table.code) for n, text in enumerate(row)] for row in table.rows]
    lines = [[escape(name) for name in table.columns], rules, *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(text: str, *, is_code: bool) -> str:
    if not is_code or not text or "`" in text:
        return escape(text)
    return f"`{text.replace('|', chr(92) + '|')}`"
