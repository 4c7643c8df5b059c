"""The generation of ``learn walk`` as text: what the cache holds, saves and costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvgauge.render.learn_walk import grid, numbers, percent, row, shown
from kvgauge.render.view import View, plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kvgauge.lab.walk import WalkAnswer
    from kvgauge.lab.walk_cache import CacheStep, Generation

#: Steps that are shown; of more the last ones.
MAX_STEPS = 12
_BYTES = ("column_step_number", "column_chosen", "column_held", "column_size_says", "column_read")
_WORK = ("column_step_number", "column_computed", "column_computed_without", "column_ms", "column_ms_without")
_FRESH = ("column_step_number", "column_query_begins", "column_scores")


def generation(answer: WalkAnswer, view: View) -> list[RenderableType]:
    """Return the generation: bytes, work, what stays and what is new."""
    texts, made = view.texts, answer.generation
    said = shown(answer.said)
    first = len(made.steps) - MAX_STEPS if len(made.steps) > MAX_STEPS else 0
    steps = [(str(first + n + 1), step) for n, step in enumerate(made.steps[first:])]
    return [
        plain(texts("walk_generation", said=said), "bold"),
        plain(texts("walk_bytes", prompt=made.prompt_tokens)),
        _bytes(steps, view),
        plain(_equal(made, view)),
        plain(""),
        plain(texts("walk_work_title"), "bold"),
        _work(steps, view),
        plain(_saved(made, view)),
        *([] if made.same_tokens else [plain(texts("walk_other_tokens"))]),
        plain(texts("walk_not_constant")),
        *([plain(texts("walk_overhead"))] if answer.is_shipped else []),
        plain(""),
        plain(texts("walk_stays_title"), "bold"),
        plain(texts("walk_stays", moved=f"{made.moved:.3g}", recomputed=f"{made.recomputed:.1e}")),
        plain(texts("walk_fresh")),
        _fresh(steps, view),
    ]


def _bytes(steps: list[tuple[str, CacheStep]], view: View) -> RenderableType:
    result = grid(view, *_BYTES, right=(0, 2, 3, 4))
    for number, step in steps:
        chosen = f"{shown(step.text)} {percent(step.share)}"
        sizes = (f"{size:,} B" for size in (step.held_bytes, step.size_bytes, step.read_bytes))
        result.add_texts(number, chosen, *sizes)
    return result


def _equal(made: Generation, view: View) -> str:
    is_equal = all(step.held_bytes == step.size_bytes for step in made.steps)
    last = made.steps[-1]
    per_token = last.held_bytes // last.tokens
    key = "walk_equal" if is_equal else "walk_unequal"
    return view.texts(key, per_token=f"{per_token:,}", tokens=last.tokens)


def _work(steps: list[tuple[str, CacheStep]], view: View) -> RenderableType:
    result = grid(view, *_WORK, right=(0, 1, 2, 3, 4))
    for number, step in steps:
        times = (f"{1000 * step.seconds:.1f}", f"{1000 * step.seconds_without:.1f}")
        result.add_texts(number, str(step.rows), str(step.rows_without), *times)
    return result


def _saved(made: Generation, view: View) -> str:
    return view.texts(
        "walk_saved",
        tokens=made.tokens,
        rows=made.rows,
        rows_without=made.rows_without,
        from_one=made.rows_from_one,
    )


def _fresh(steps: list[tuple[str, CacheStep]], view: View) -> RenderableType:
    result = grid(view, *_FRESH, right=(0,))
    for number, step in steps:
        limit = 2 if view.is_narrow else 4
        more = " …" if len(step.scores) > limit else ""
        result.add_texts(number, numbers(step.query, view), row(step.scores[-limit:]) + more)
    return result
