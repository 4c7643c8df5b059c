"""The answer of ``size`` as text: total, growth, layers, ranks, and what was assumed."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from kvgauge.layers import LayerKind, Role
from kvgauge.render.bar import Part, segments
from kvgauge.render.clean import clean
from kvgauge.render.view import View, labelled, plain, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kvgauge.architecture import LayerGroup
    from kvgauge.cache import CacheAnswer, Stretch
    from kvgauge.sizing import Request, SizeResult

_NOTHING = frozenset({LayerKind.NONE, LayerKind.SHARED})
_BAR_CELLS = 60


def draw_size(result: SizeResult, view: View) -> str:
    """Return the whole answer."""
    return view.draw(*_parts(result, view))


def _parts(result: SizeResult, view: View) -> list[RenderableType]:
    if result.cache.family == "none":
        return [plain(view.texts("headline_none", model=clean(result.model.raw.id)), "bold")]
    parts: list[RenderableType] = [plain(headline(result, view), "bold"), labelled(_facts(result, view)), ""]
    parts.append(_groups(result.cache, view))
    bar = _bar(result.cache, view)
    parts += [Text(), *bar] if bar else []
    return [*parts, "", plain(view.texts("assumed_title"), "bold"), _assumptions(result, view)]


def headline(result: SizeResult, view: View) -> str:
    """Return the first line: the total for this load."""
    texts, request = view.texts, result.request
    values = {
        "model": clean(result.model.raw.id),
        "total": view.size(result.cache.total_bytes),
        "what": texts(_what(result.cache)),
        "load": load_text(request.workload.sequences, request.workload.context_tokens, view),
    }
    if request.engine == "theory":
        return texts("headline_theory", **values)
    return texts("headline_engine", **values, engine=_engine(request))


def load_text(sequences: int, context_tokens: int, view: View) -> str:
    """Return the load in words."""
    tokens = f"{context_tokens:,}"
    if sequences == 1:
        return view.texts("load_one", tokens=tokens)
    return view.texts("load_many", sequences=f"{sequences:,}", tokens=tokens)


def _what(cache: CacheAnswer) -> str:
    if cache.family == "recurrent":
        return "what_state"
    return "what_both" if cache.family.startswith("hybrid_") else "what_cache"


def _engine(request: Request) -> str:
    return f"{request.engine} {request.engine_version}" if request.engine_version else request.engine


def _facts(result: SizeResult, view: View) -> list[tuple[str, str]]:
    texts, cache = view.texts, result.cache
    rows = [(texts("growth_label"), growth_text(cache, view))]
    if result.theory is not None:
        rows.append((texts("theory_label"), texts("theory_line", size=view.size(result.theory.total_bytes))))
    if len(cache.per_rank_bytes) > 1:
        rows.append((texts("ranks_label"), _ranks(cache, view)))
    return rows


def growth_text(cache: CacheAnswer, view: View) -> str:
    """Return "fixed F, then A per token to W, then B per token"."""
    texts, fixed = view.texts, cache.fixed_bytes_per_sequence
    stretches = [s for s in cache.stretches if s.bytes_per_token or s.from_tokens]
    if not stretches:
        return texts("growth_fixed_only", size=view.size(fixed))
    steps = [texts("growth_fixed", size=view.size(fixed))] if fixed else []
    return texts("growth_then").join([*steps, *(_stretch(s, view) for s in stretches)])


def _stretch(stretch: Stretch, view: View) -> str:
    if not stretch.bytes_per_token:
        return view.texts("growth_none_after")
    size = view.size(stretch.bytes_per_token)
    if stretch.to_tokens is None:
        return view.texts("growth_slope", size=size)
    return view.texts("growth_slope_to", size=size, tokens=f"{stretch.to_tokens:,}")


def _ranks(cache: CacheAnswer, view: View) -> str:
    texts, spread = view.texts, cache.parallelism
    named = {"tp": spread.tensor, "pp": spread.pipeline, "dp": spread.data, "dcp": spread.context}
    layout = ", ".join(f"{name} {ranks}" for name, ranks in named.items() if ranks > 1)
    runs = [
        (size, [rank for rank, _ in members])
        for size, members in groupby(enumerate(cache.per_rank_bytes), key=lambda pair: pair[1])
    ]
    if len(runs) == 1:
        size, ranks = runs[0]
        return texts("ranks_equal", size=view.size(size), count=len(ranks), layout=layout)
    spans = [
        texts(
            "ranks_some" if len(ranks) > 1 else "ranks_single",
            size=view.size(size),
            first=ranks[0],
            last=ranks[-1],
        )
        for size, ranks in runs
    ]
    return f"{texts('ranks_join').join(spans)} {texts('ranks_layout', layout=layout)}"


def _kind(group: LayerGroup, view: View) -> str:
    texts = view.texts
    name = texts(f"kind.{group.kind.value}")
    if group.window_tokens is not None:
        name = texts("kind_window", kind=name, tokens=f"{group.window_tokens:,}")
    return texts("kind_mtp", kind=name) if group.name.startswith("mtp_") else name


def _groups(cache: CacheAnswer, view: View) -> RenderableType:
    from kvgauge.formulas import group_formula  # noqa: PLC0415

    texts = view.texts
    names = [texts("column_cache"), texts("column_layers"), texts("column_bytes")]
    grid = table(*names, *([] if view.is_narrow else [texts("column_formula")]), right=(1, 2))
    for demand, size in zip(cache.demand.groups, cache.group_bytes, strict=True):
        cells = [_kind(demand.group, view), f"{demand.group.num_layers}", view.size(size)]
        if not view.is_narrow:
            cells.append(group_formula(demand, cache.workload).formula if size else "")
        grid.add_texts(*cells)
    return grid


def _bar(cache: CacheAnswer, view: View) -> list[RenderableType]:
    """One bar over the kinds of cache, where there is more than one."""
    by_kind: dict[str, int] = {}
    for demand, size in zip(cache.demand.groups, cache.group_bytes, strict=True):
        label = view.texts(f"kind.{demand.group.kind.value}")
        by_kind[label] = by_kind.get(label, 0) + size
    parts = [Part(label, size) for label, size in by_kind.items() if size > 0]
    if len(parts) < 2:
        return []
    pieces = segments(parts, min(_BAR_CELLS, view.width))
    bar = Text.assemble(*((piece.pattern * piece.cells, piece.style) for piece in pieces))
    legend = table("", "", "", "", right=(2, 3))
    legend.show_header = False
    for piece in pieces:
        share = f"{100 * piece.part.size_bytes / cache.total_bytes:.3g} %"
        legend.add_texts(
            Text(piece.pattern, piece.style), piece.part.label, view.size(piece.part.size_bytes), share
        )
    return [bar, legend]


def _assumptions(result: SizeResult, view: View) -> RenderableType:
    texts, request = view.texts, result.request
    load = request.workload
    rows = [
        ("context", _context(result, view)),
        ("sequences", _defaulted("sequences", f"{load.sequences:,}", request, view)),
    ]
    if load.shared_prefix_tokens:
        rows.append(("prefix", texts("prefix_value", tokens=f"{load.shared_prefix_tokens:,}")))
    if load.encoder_tokens:
        rows.append(("encoder", texts("tokens", tokens=f"{load.encoder_tokens:,}")))
    if load.image_tokens:
        rows.append(("image", texts("tokens", tokens=f"{load.image_tokens:,}")))
    if load.mtp:
        rows.append(("mtp", texts("mtp_value", count=load.mtp)))
    rows += _reading(result, view)
    pairs = [(texts(f"assumed_{name}"), value) for name, value in rows]
    return Padding(labelled(pairs), (0, 0, 0, 2))


def _reading(result: SizeResult, view: View) -> list[tuple[str, str]]:
    """Dtypes, engine, overrides, source and grade."""
    from kvgauge.dtypes import display_dtype  # noqa: PLC0415

    texts, request, raw = view.texts, result.request, result.model.raw
    dtypes, auto = result.cache.demand.dtypes, result.model.architecture.model_dtype
    k, v = display_dtype(dtypes.k or auto), display_dtype(dtypes.v or auto)
    kv = k if k == v else texts("kv_value", k=k, v=v)
    rows = [] if result.cache.family == "recurrent" else [("kv", _defaulted("k_dtype", kv, request, view))]
    states = {s.dtype for g in result.cache.demand.groups for s in g.streams if s.role is Role.RECURRENT}
    if states:
        rows.append(("state", ", ".join(display_dtype(name) for name in sorted(states))))
    rows.append(("engine", _defaulted("engine", _engine(request), request, view)))
    if raw.overrides:
        rows.append(
            ("overrides", clean(", ".join(f"{key} = {value}" for key, value in raw.overrides.items())))
        )
    provenance = clean(raw.provenance)
    rows.append(("source", texts(f"source_{raw.source}", provenance=provenance)))
    grades = sorted({str(allocation["grade"]) for allocation in result.allocations})
    rows.append(("grade", "; ".join(texts(f"grade.{grade}") for grade in grades)))
    return rows


def _context(result: SizeResult, view: View) -> str:
    texts, limit = view.texts, result.model.architecture.context_limit_tokens
    text = texts("tokens", tokens=f"{result.request.workload.context_tokens:,}")
    is_default = "context_tokens" in result.request.defaulted
    if limit is None:
        return texts("default", value=text) if is_default else text
    return texts("default_limit" if is_default else "limit", value=text, tokens=f"{limit:,}")


def _defaulted(name: str, text: str, request: Request, view: View) -> str:
    return view.texts("default", value=text) if name in request.defaulted else text
