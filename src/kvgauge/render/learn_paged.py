"""``learn paged`` as text."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from kvgauge.render.numbers import ratio_text
from kvgauge.render.view import Grid, View, plain, table

if TYPE_CHECKING:
    from kvgauge.lab.paging.answer import PagedAnswer, Quote, SchemeRow
    from kvgauge.lab.paging.tracing import DecodeStep, TraceStep

_COLUMNS = (
    "paged_scheme", "paged_filled", "paged_reserved", "paged_internal", "paged_external", "paged_free",
    "paged_running", "paged_ratio",
)  # fmt: skip
_NARROW = ("paged_scheme", "paged_filled", "paged_internal", "paged_running")


def draw_paged(answer: PagedAnswer, view: View) -> str:
    """Return the schemes, what others say of them, a history of sharing, one decode step."""
    texts, stream = view.texts, answer.stream
    title = texts(
        "paged_title",
        requests=f"{len(stream.requests):,}",
        mean=f"{stream.mean_tokens:,.0f}",
        longest=f"{stream.longest_tokens:,}",
        pool=f"{stream.pool_tokens:,}",
        maximum=f"{stream.max_tokens:,}",
    )
    return view.draw(
        plain(title, "bold"),
        _schemes(answer, view),
        plain(texts("paged_legend")),
        *(plain(_quote(quote, view)) for quote in answer.quotes),
        plain(""),
        plain(texts("paged_sharing_title"), "bold"),
        _sharing(answer.sharing, view),
        plain(""),
        plain(_decode_title(answer.decode, view), "bold"),
        _pages(answer.decode, view),
        plain(texts("paged_decode_equal", off=f"{answer.decode.difference:.0e}")),
    )


def _schemes(answer: PagedAnswer, view: View) -> Grid:
    names = _NARROW if view.is_narrow else _COLUMNS
    grid = table(*(view.texts(name) for name in names), right=tuple(range(1, len(names))))
    for row in answer.schemes:
        cells = _cells(row, view)
        grid.add_texts(*(cells[name] for name in names))
    return grid


def _cells(row: SchemeRow, view: View) -> dict[str, str]:
    shares = (
        row.filled_fraction, row.reserved_fraction, row.internal_fraction, row.external_fraction,
        row.free_fraction,
    )  # fmt: skip
    return {
        "paged_scheme": view.texts(f"paged_scheme.{row.scheme}", tokens=row.block_tokens),
        **{name: _percent(share) for name, share in zip(_COLUMNS[1:6], shares, strict=True)},
        "paged_running": "" if row.mean_running is None else f"{row.mean_running:.1f}",
        "paged_ratio": "" if row.running_ratio is None else f"{ratio_text(Fraction(row.running_ratio))}×",
    }


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _quote(quote: Quote, view: View) -> str:
    shares = (quote.without_low, quote.without_high, quote.paged)
    low, high, paged = (f"{100 * share:g} %" for share in shares)
    return view.texts(f"paged_quote.{quote.source.partition(':')[0]}", low=low, high=high, paged=paged)


def _sharing(steps: tuple[TraceStep, ...], view: View) -> Grid:
    texts = view.texts
    columns = ("paged_deed", "paged_used", "paged_known", "paged_copied", "paged_tables")
    grid = table(*(texts(name) for name in columns), right=(1, 2, 3))
    for step in steps:
        tables = "; ".join(f"{n}: {' '.join(map(str, blocks))}" for n, blocks in step.tables)
        used = str(step.used_blocks)
        if step.idle_blocks:
            used = texts("paged_used_idle", used=step.used_blocks, idle=step.idle_blocks)
        known, copied = str(step.known_tokens or ""), str(step.copied_rows or "")
        grid.add_texts(texts(f"paged_deed.{step.deed}"), used, known, copied, tables)
    return grid


def _decode_title(step: DecodeStep, view: View) -> str:
    return view.texts(
        "paged_decode_title",
        position=step.position,
        heads=step.num_heads,
        kv_heads=step.num_kv_heads,
        tiles=step.num_tiles,
    )


def _pages(step: DecodeStep, view: View) -> Grid:
    grid = table(view.texts("paged_page_tokens"), view.texts("paged_page_block"), right=(1,))
    for page in step.pages:
        last = page.first_token + page.num_tokens - 1
        grid.add_texts(f"{page.first_token}-{last}", str(page.block))
    return grid
