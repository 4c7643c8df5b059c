"""Answers as HTML for notebooks: small tables of their own, everything escaped, no script."""

from __future__ import annotations

from html import escape

from kvgauge.render.sheet import Listing, Sheet, TableOf

_CELL = "padding:.2em .8em;text-align:"


def to_html(sheet: Sheet) -> str:
    """Return a sheet as one ``div``."""
    parts = [f"<p><strong>{escape(sheet.title)}</strong></p>"] if sheet.title else []
    for block in sheet.blocks:
        parts.append(_block(block))
    return f'<div class="kvgauge">{"".join(parts)}</div>'


def _block(block: str | TableOf | Listing) -> str:
    if isinstance(block, TableOf):
        return _table(block)
    if isinstance(block, Listing):
        return f"<pre>{escape(block.text)}</pre>"
    return f"<p>{escape(block)}</p>"


def _table(table: TableOf) -> str:
    head = "".join(_cell("th", name, n, table) for n, name in enumerate(table.columns))
    rows = "".join(
        f"<tr>{''.join(_cell('td', text, n, table) for n, text in enumerate(row))}</tr>" for row in table.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(tag: str, text: str, column: int, table: TableOf) -> str:
    inner = escape(text)
    if tag == "td" and text and column in table.code:
        inner = f"<code>{inner}</code>"
    side = "right" if column in table.right else "left"
    return f'<{tag} style="{_CELL}{side}">{inner}</{tag}>'
