"""The answer of ``size`` in words: its first line, its facts, its layers, its load. Drawn by others."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from kvgauge.dtypes import display_dtype
from kvgauge.layers import Axis, Role
from kvgauge.render.clean import clean
from kvgauge.render.kinds import group_labels
from kvgauge.render.numbers import count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvgauge.cache import CacheAnswer, Stretch
    from kvgauge.engines.base import GroupDemand, StreamDemand
    from kvgauge.fit_result import FitResult
    from kvgauge.render.view import View
    from kvgauge.size_result import Request, SizeResult
    from kvgauge.weight_answer import WeightAnswer

Pairs = list[tuple[str, str]]


class GroupRow(NamedTuple):
    """One group of layers as text; ``formula`` says why there is none where there are no bytes.

    ``kept`` is what must be kept of it, where the engine sets aside more.
    """

    label: str
    num_layers: str
    size: str
    formula: str
    kept: str = ""


def model_name(result: SizeResult | FitResult, view: View) -> str:
    """Return what an answer calls the model."""
    raw = result.model.raw
    return view.texts("source_stdin") if raw.source == "stdin" else clean(raw.id)


def headline(result: SizeResult, view: View) -> str:
    """Return the first line: the total for this load."""
    texts, request = view.texts, result.request
    name = model_name(result, view)
    if result.cache.family == "none":
        return texts("headline_none", model=name)
    values = {
        "model": name,
        "total": view.size(result.cache.total_bytes),
        "what": texts(_what(result.cache)),
        "load": load_text(request.workload.sequences, request.workload.context_tokens, view),
    }
    if request.engine == "theory":
        return texts("headline_theory", **values)
    return texts("headline_engine", **values, engine=engine_text(request))


def load_text(sequences: int, context_tokens: int, view: View) -> str:
    """Return the load in words."""
    tokens = tokens_text(context_tokens, view)
    if sequences == 1:
        return view.texts("load_one", tokens=tokens)
    return view.texts("load_many", sequences=f"{sequences:,}", tokens=tokens)


def tokens_text(count: int, view: View) -> str:
    """Return a number of tokens with its unit."""
    return view.texts("token" if count == 1 else "tokens", tokens=f"{count:,}")


def _what(cache: CacheAnswer) -> str:
    if cache.family == "recurrent":
        return "what_state"
    return "what_both" if cache.family.startswith("hybrid_") else "what_cache"


def engine_text(request: Request) -> str:
    """Return an engine with its version."""
    return f"{request.engine} {request.engine_version}" if request.engine_version else request.engine


def facts(result: SizeResult, view: View) -> Pairs:
    """Return how one sequence grows, what theory says, and what each GPU holds."""
    texts, cache = view.texts, result.cache
    rows = [(texts("growth_label"), growth_text(cache, view))] if cache.family != "none" else []
    if result.theory is not None:
        rows.append((texts("theory_label"), texts("theory_line", size=view.size(result.theory.total_bytes))))
    if cache.demand.kept:
        rows += _set_aside(cache, view)
    if cache.demand.placed:
        from kvgauge.render.placed_facts import placed_rows  # noqa: PLC0415 - of few engines

        rows += placed_rows(result, view)
    if cache.parallelism.num_gpus > 1 and rows and not cache.demand.placed:
        rows.append((texts("gpus_label"), _gpus(cache, cache.per_rank_bytes, view)))
    weights = result.weights
    if weights is not None:
        rows.append((texts("weights_label"), weights_text(weights, view)))
        if weights.placement and not cache.demand.placed:
            rows.append((texts("weights_places_label"), _places(weights, view)))
        if cache.parallelism.num_gpus > 1 and not cache.demand.placed:
            rows.append((texts("weights_gpus_label"), _gpus(cache, weights.per_rank_bytes, view)))
    return rows


def _set_aside(cache: CacheAnswer, view: View) -> Pairs:
    """Return what makes up the bytes of an engine, of all ranks, and its blocks."""
    from kvgauge.allocations import set_aside  # noqa: PLC0415 - of few engines

    texts, parts = view.texts, set_aside(cache)
    names = ("kept", "beyond_window", "in_flight", "state_copies", "padding")
    shown = [texts(f"aside_{name}", size=view.size(parts[name])) for name in names if parts[name]]
    line = texts("aside_join").join(shown)
    if parts["reserved"]:
        line = texts("aside_beside", sum=line, size=view.size(parts["reserved"]))
    rows = [(texts("aside_label"), line)]
    details = cache.demand.details
    count, tokens, size = (details.get(key) for key in ("blocks", "block_size_tokens", "bytes_per_block"))
    if isinstance(count, int) and isinstance(tokens, int) and isinstance(size, int):
        text = texts("blocks_line", count=f"{count:,}", tokens=f"{tokens:,}", size=view.size(size))
        rows.append((texts("blocks_label"), text))
    return rows


def weights_text(weights: WeightAnswer, view: View) -> str:
    """Return the bytes of the weights, their parameters, and what they are stored as."""
    texts, stored = view.texts, weights.stored
    count, active = stored.num_parameters, stored.num_active_parameters
    key = "weights_parameters" if active in (None, count) else "weights_active"
    key = key if count else "weights_uncounted"
    parameters = texts(key, count=count_text(count), active=count_text(active or 0))
    scheme = display_dtype(stored.scheme)
    line = texts("weights_line", size=view.size(weights.total_bytes), parameters=parameters, scheme=scheme)
    if not stored.mtp_bytes:
        return line
    key = "weights_mtp" if weights.mtp else "weights_without_mtp"
    return texts(key, line=line, size=view.size(stored.mtp_bytes))


def _places(weights: WeightAnswer, view: View) -> str:
    sizes = dict(weights.placement)
    return view.texts("weights_places", gpu=view.size(sizes["gpu:0"]), host=view.size(sizes["host"]))


def weight_rows(weights: WeightAnswer, view: View) -> list[tuple[str, str, str, str]]:
    """Return the parts of the weights: name, parameters, format, bytes."""
    return [
        (
            view.texts(f"part.{row.part.value}"),
            count_text(row.num_parameters),
            display_dtype(row.dtype),
            view.size(row.num_bytes),
        )
        for row in weights.by_part
    ]


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
    return view.texts("growth_slope_to", size=size, tokens=tokens_text(stretch.to_tokens, view))


def _gpus(cache: CacheAnswer, per_rank_bytes: Sequence[int], view: View) -> str:
    """Say what each GPU holds, those of all replicas counted."""
    texts, spread = view.texts, cache.parallelism
    named = {"tp": spread.tensor, "pp": spread.pipeline, "dp": spread.data, "ep": spread.expert}
    named["dcp"] = spread.context
    layout = ", ".join(f"{name} {ranks}" for name, ranks in named.items() if ranks > 1)
    runs = [
        (size, [rank for rank, _ in members])
        for size, members in groupby(enumerate(per_rank_bytes), key=lambda pair: pair[1])
    ]
    if len(runs) == 1:
        key = "gpus_equal" if cache.replicas_are_equal else "gpus_at_most"
        return texts(key, size=view.size(runs[0][0]), count=f"{spread.num_gpus:,}", layout=layout)
    spans = [
        texts(
            "gpus_some" if len(ranks) > 1 else "gpus_single",
            size=view.size(size),
            first=ranks[0],
            last=ranks[-1],
        )
        for size, ranks in runs
    ]
    key = "gpus_layout" if spread.data == 1 else "gpus_replicas"
    return texts(key, spans=texts("gpus_join").join(spans), layout=layout, replicas=f"{spread.data:,}")


def group_rows(cache: CacheAnswer, view: View) -> list[GroupRow]:
    """Return the groups of layers with their bytes."""
    demands = cache.demand.groups
    labels = group_labels(demands, view.texts)
    kept: Sequence[int | None] = [None] * len(demands)
    if cache.demand.kept:
        from kvgauge.allocations import kept_bytes  # noqa: PLC0415 - of few engines

        kept = kept_bytes(cache)
    return [
        GroupRow(
            label,
            "" if demand.is_engines_own else f"{demand.group.num_layers:,}",
            view.size(size),
            _formula(demand, cache, view),
            "" if must is None or demand.is_engines_own else view.size(must),
        )
        for demand, label, size, must in zip(demands, labels, cache.group_bytes, kept, strict=True)
    ]


def group_table(
    cache: CacheAnswer, view: View, *, formulas: bool = True
) -> tuple[list[str], list[list[str]]]:
    """Return the keys of the columns and the rows of the groups; what must be kept stands beside."""
    keys = ["column_cache", "column_layers", "column_bytes"]
    fields = ["label", "num_layers", "size"]
    if cache.demand.kept:
        keys.insert(2, "column_kept")
        fields.insert(2, "kept")
    if formulas:
        keys.append("column_formula")
        fields.append("formula")
    return keys, [[getattr(row, name) for name in fields] for row in group_rows(cache, view)]


def _formula(demand: GroupDemand, cache: CacheAnswer, view: View) -> str:
    from kvgauge.formulas import group_formula  # noqa: PLC0415

    if not demand.streams:
        return ""
    if _has_image_axis([demand]) and not cache.workload.image_tokens:
        return view.texts("no_image_tokens")
    return group_formula(demand, cache.workload).formula


def _has_image_axis(demands: list[GroupDemand] | tuple[GroupDemand, ...]) -> bool:
    return any(s.counted.axis is Axis.IMAGE for demand in demands for s in demand.streams)


def share_of_kinds(cache: CacheAnswer, view: View) -> list[tuple[str, int]]:
    """Return the kinds of cache that hold bytes, each with its bytes."""
    by_kind: dict[str, int] = {}
    for demand, size in zip(cache.demand.groups, cache.group_bytes, strict=True):
        kind = "padding" if demand.is_engines_own else demand.group.kind.value
        label = view.texts(f"kind.{kind}")
        by_kind[label] = by_kind.get(label, 0) + size
    return [(label, size) for label, size in by_kind.items() if size > 0]


def load_rows(result: SizeResult, view: View) -> Pairs:
    """Return the load as it was understood, what was assumed, and how sure the answer is."""
    texts, request = view.texts, result.request
    load = request.workload
    rows = [
        ("context", context_text(result, view)),
        ("sequences", defaulted("sequences", f"{load.sequences:,}", request, view)),
    ]
    if load.shared_prefix_tokens:
        rows.append(("prefix", texts("prefix_value", tokens=tokens_text(load.shared_prefix_tokens, view))))
    if load.encoder_tokens:
        text = tokens_text(load.encoder_tokens, view)
        rows.append(("encoder", defaulted("encoder_tokens", text, request, view)))
    if load.image_tokens or _has_image_axis(result.cache.demand.groups):
        text = tokens_text(load.image_tokens, view)
        rows.append(("image", text if load.image_tokens else texts("default", value=text)))
    if load.mtp:
        rows.append(("mtp", texts("mtp_one" if load.mtp == 1 else "mtp_many", count=load.mtp)))
    rows += [*_dtypes(result, view), *_origin(result, view)]
    return [(texts(f"assumed_{name}"), value) for name, value in rows]


def _dtypes(result: SizeResult, view: View) -> Pairs:
    streams = [s for g in result.cache.demand.groups for s in g.streams]
    rows = [] if result.cache.family == "recurrent" else [("kv", _key_value(streams, result, view))]
    states = {s.dtype for s in streams if s.role is Role.RECURRENT}
    if states:
        rows.append(("state", ", ".join(display_dtype(name) for name in sorted(states))))
    return rows


def _key_value(streams: Sequence[StreamDemand], result: SizeResult, view: View) -> str:
    """How K and V, or the rows in their place, are stored; an engine may pack them in its own way."""
    from kvgauge.formulas import GROUP_ELEMENTS, packed_bits  # noqa: PLC0415

    texts, dtypes, auto = view.texts, result.cache.demand.dtypes, result.model.architecture.model_dtype
    k, v = display_dtype(dtypes.k or auto), display_dtype(dtypes.v or auto)
    kv = k if k == v else texts("kv_value", k=k, v=v)
    bits = next((b for s in streams if (b := packed_bits(s))), None)
    if bits is not None:
        return texts("kv_packed", bits=bits, group=GROUP_ELEMENTS, dtype=kv)
    rows = {s.dtype for s in streams if s.role in (Role.KEY, Role.VALUE, Role.LATENT, Role.RECORD)}
    if len(rows) == 1 and not rows & {dtypes.k or auto, dtypes.v or auto}:
        return display_dtype(rows.pop())
    return defaulted("k_dtype", kv, result.request, view)


def _origin(result: SizeResult, view: View) -> Pairs:
    """Engine, changed fields, where the model comes from, and the grade with its reasons."""
    texts, request, raw = view.texts, result.request, result.model.raw
    rows = [("engine", defaulted("engine", engine_text(request), request, view))]
    card = result.cache.demand.details.get("gpu")
    if isinstance(card, str):
        rows.append(("gpu", texts("fit_gpu_assumed", name=clean(card))))
    if raw.overrides:
        rows.append(
            ("overrides", clean(", ".join(f"{key} = {value}" for key, value in raw.overrides.items())))
        )
    rows.append(("source", texts(f"source_{raw.source}", provenance=clean(raw.provenance))))
    if result.weights is not None:
        asked = result.weights.what_if
        origin = texts(f"weights_from.{result.weights.stored.source}")
        rows.append(("weights", texts("weights_as", scheme=asked.scheme.text) if asked else origin))
    reasons = texts("grade_join").join(texts(f"grade_why.{code}") for code in result.assumed_because)
    rows.append(("grade", texts(f"grade.{result.grade}", why=reasons)))
    return rows


def context_text(result: SizeResult | FitResult, view: View) -> str:
    """Return the context of the load, whether it was given, and the model's limit."""
    texts, limit = view.texts, result.model.architecture.context_limit_tokens
    text = tokens_text(result.request.workload.context_tokens, view)
    is_default = "context_tokens" in result.request.defaulted
    if limit is None:
        return texts("default", value=text) if is_default else text
    return texts("default_limit" if is_default else "limit", value=text, tokens=f"{limit:,}")


def defaulted(name: str, text: str, request: Request, view: View) -> str:
    """Return a value of the request, marked where it was not given."""
    return view.texts("default", value=text) if name in request.defaulted else text
