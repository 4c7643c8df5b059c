"""What one rank holds, group by group: the whole formula with this rank's heads, layers, rows and sequences.

Ranks that hold the same are told once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kvgauge.arithmetic import evaluate, symbol_names
from kvgauge.cache import layers_in_stage
from kvgauge.engines.base import GroupDemand, rank_vectors
from kvgauge.formulas import Definition, GroupFormula, Number, Share, group_formula
from kvgauge.group_steps import group_title, symbol_texts
from kvgauge.layers import Axis, Role, Shard
from kvgauge.steps import Facts, Step, sum_symbols
from kvgauge.values import dataclass

_SOURCE = "vLLM distributed/utils.py, model_executor/models/llama.py"
_STATE = frozenset({Role.RECURRENT, Role.CONV})


def rank_steps(facts: Facts) -> list[Step]:
    """Return a step for each distinct part of a rank, then their sums; the fullest rank's is ``per_rank``."""
    cache, spread = facts.cache, facts.cache.parallelism
    if spread.tensor * spread.pipeline * spread.data == 1:
        return [_single(facts)]
    ranks = range(spread.pipeline * spread.tensor)
    steps: list[Step] = []
    for number, demand in enumerate(cache.demand.groups):
        parts: dict[tuple[object, ...], tuple[_Part, list[int]]] = {}
        for rank in ranks:
            part = _Part.of(number, rank, facts)
            if cache.rank_group_bytes[rank][number]:
                parts.setdefault(part.content, (part, []))[1].append(rank)
        for count, (part, members) in enumerate(parts.values(), 1):
            name = f"rank.{demand.group.name}" + (f".{count}" if count > 1 else "")
            steps.append(_part_step(name, part, members, facts))
    return [*steps, *_sums(facts)]


@dataclass(frozen=True)
class _Part:
    """One group on one rank."""

    whole: GroupDemand
    demand: GroupDemand
    formula: GroupFormula
    size_bytes: int

    @property
    def content(self) -> tuple[object, ...]:
        """What ranks that are told together have in common."""
        shapes = tuple(s.vectors for s in self.demand.streams)
        return (self.demand.group.num_layers, shapes, self.size_bytes)

    @classmethod
    def of(cls, number: int, rank: int, facts: Facts) -> _Part:
        cache, spread = facts.cache, facts.cache.parallelism
        whole = cache.demand.groups[number]
        stage, tensor_rank = divmod(rank, spread.tensor)
        stages = cache.stages
        count = layers_in_stage(whole.group, stages[stage], is_last=stage == len(stages) - 1)
        streams = tuple(
            replace(s, vectors=rank_vectors(s.vectors, s.shard, spread.tensor, s.role)) for s in whole.streams
        )
        group = replace(whole.group, indices=whole.group.indices[:count])
        own = GroupDemand(group, streams, whole.pooled)
        load = replace(cache.workload, sequences=-(-cache.workload.sequences // spread.data))
        place = 0 if cache.demand.equal_context_ranks else tensor_rank % spread.context
        share = Share(spread.context, place)
        formula = group_formula(own, load, share)
        return cls(whole, own, formula, cache.rank_group_bytes[rank][number])


def _part_step(name: str, part: _Part, members: list[int], facts: Facts) -> Step:
    words = facts.words
    whole = facts.fields.spell_out(group_formula(part.whole, facts.cache.workload), part.whole.group)
    formula = _with_whole(part.formula, whole, facts)
    paths, meanings = symbol_texts(formula, part.demand, facts)
    paths |= {
        f"{n}_all": p for n, p in symbol_texts(whole, part.whole, facts)[0].items() if f"{n}_all" in meanings
    }
    title = group_title(part.whole, facts, part.demand.group.num_layers)
    return Step(
        name,
        words.phrase("title", "ranks", ranks=ranks_text(members, facts), group=title),
        words.sentences(_sentences(part, facts)),
        formula.formula,
        formula.symbols,
        part.size_bytes,
        _SOURCE,
        ", ".join(dict.fromkeys(p for p in paths.values() if not p.startswith("--"))) or None,
        paths,
        meanings,
        definitions=formula.definitions,
        told=frozenset(n for n, v in formula.symbols.items() if whole.symbols.get(n) == v),
    )


def _with_whole(formula: GroupFormula, whole: GroupFormula, facts: Facts) -> GroupFormula:
    """Return the rank's formula, symbols that differ from the whole model's made from those."""
    spread = facts.cache.parallelism
    ranks: Mapping[str, Number] = {"N_tp": spread.tensor, "N_dp": spread.data}
    symbols, definitions = dict(formula.symbols), {d.symbol: d for d in formula.definitions}
    for name in symbol_names(formula.formula):
        base = whole.symbols.get(name, symbols[name])
        if base == symbols[name]:
            continue
        divisor = "N_dp" if name == "B" else "N_tp"
        text, values = f"ceil({name}_all / {divisor})", {f"{name}_all": base, divisor: ranks[divisor]}
        if name == "L":
            symbols["L_all"] = base
        elif evaluate(text, values) == symbols[name]:
            definitions[name] = Definition(name, text)
            symbols |= values
    for definition in whole.definitions:
        names = (definition.symbol, *symbol_names(definition.formula))
        if all(symbols.get(n, whole.symbols[n]) == whole.symbols[n] for n in names):
            definitions.setdefault(definition.symbol, definition)
            symbols |= {n: whole.symbols[n] for n in names}
    texts = [formula.formula, *(d.formula for d in definitions.values()), "L_all"]
    used = {name for text in texts for name in symbol_names(text)}
    kept = {name: value for name, value in symbols.items() if name in used}
    return replace(
        formula, symbols=kept, definitions=tuple(d for d in definitions.values() if d.symbol in kept)
    )


def _sentences(part: _Part, facts: Facts) -> list[str]:
    """Say what is divided, copied and dealt out."""
    words, spread, load = facts.words, facts.cache.parallelism, facts.cache.workload
    texts: list[str] = []
    if spread.tensor > 1:
        texts += _tensor_sentences(part, facts)
    if spread.pipeline > 1:
        own, layers = part.demand.group.num_layers, part.whole.group.num_layers
        texts.append(words.phrase("stage", "ranks", own=own, layers=layers))
    if spread.data > 1:
        own = -(-load.sequences // spread.data)
        texts.append(
            words.phrase("replica_sequences", "ranks", sequences=load.sequences, dp=spread.data, own=own)
        )
    return texts


def _tensor_sentences(part: _Part, facts: Facts) -> list[str]:
    words, tp, dcp = facts.words, facts.cache.parallelism.tensor, facts.cache.parallelism.context
    streams = part.whole.streams
    rows = [s for s in streams if s.role not in _STATE and s.role is not Role.COMPRESSOR]
    dealt = dcp > 1 and any(s.counted.axis is Axis.DECODER and s.counted.to_tokens is None for s in rows)
    texts: list[str] = []
    heads = next((s.vectors for s in rows if s.shard is Shard.HEADS), None)
    if heads is not None:
        key = "heads_divided" if heads % tp == 0 else "heads_copied"
        values = {"heads": heads, "tp": tp, "own": max(1, heads // tp), "copies": tp // heads}
        texts.append(words.phrase(key, "ranks", **values))
    elif rows and not dealt:
        texts.append(words.phrase("rows_copied", "ranks", tp=tp))
    if dealt:
        key = "rows_dealt" if heads is not None or dcp == tp else "rows_dealt_copies"
        texts.append(words.phrase(key, "ranks", tp=tp, dcp=dcp, copies=tp // dcp))
    if any(s.role is Role.COMPRESSOR for s in streams):
        texts.append(words.phrase("ring_copied", "ranks", tp=tp))
    if any(s.role in _STATE for s in streams):
        texts.append(words.phrase("state_divided", "ranks", tp=tp))
        if any(s.shard is Shard.GROUPS and s.vectors < tp for s in streams):
            texts.append(words.phrase("groups_padded", "ranks", tp=tp))
    return texts


def _sums(facts: Facts) -> list[Step]:
    """One sum for each kind of rank, the fullest first."""
    classes: dict[tuple[int, ...], list[int]] = {}
    for rank, sizes in enumerate(facts.cache.rank_group_bytes):
        classes.setdefault(sizes, []).append(rank)
    ordered = sorted(classes.items(), key=lambda pair: -sum(pair[0]))
    return [
        _sum(f"per_rank.{members[0]}" if place else "per_rank", sizes, members, facts)
        for place, (sizes, members) in enumerate(ordered)
    ]


def _sum(name: str, sizes: tuple[int, ...], members: list[int], facts: Facts, key: str = "per_rank") -> Step:
    words = facts.words
    formula, symbols = sum_symbols(dict(enumerate(sizes, 1)))
    meanings: dict[str, str] = {}
    for number, demand in enumerate(facts.cache.demand.groups):
        layers = _Part.of(number, members[0], facts).demand.group.num_layers
        title = group_title(demand, facts, layers)
        meanings[f"G_{number + 1}"] = words.phrase("step_rank", title=title)
    meanings = {name: meanings[name] for name in symbols}
    ranks = ranks_text(members, facts)
    title, text = words.title("steps", key, ranks=ranks), words.text("steps", key, ranks=ranks)
    return Step(name, title, text, formula, symbols, sum(sizes), _SOURCE, symbol_meanings=meanings)


def _single(facts: Facts) -> Step:
    step = _sum("per_rank", facts.cache.rank_group_bytes[0], [0], facts, "single_rank")
    return replace(step, is_repeat=True)


def ranks_text(members: list[int], facts: Facts) -> str:
    """Return ranks in words: all of them, one, or spans of them."""
    words, count = facts.words, len(facts.cache.rank_group_bytes)
    if count == 1:
        return words.phrase("replica", "ranks")
    if len(members) == count:
        return words.phrase("every", "ranks", count=count)
    spans: list[list[int]] = []
    for rank in members:
        if spans and rank == spans[-1][-1] + 1:
            spans[-1][1:] = [rank]
        else:
            spans.append([rank])
    text = words.listed(["-".join(map(str, span)) for span in spans])
    return words.phrase("one" if len(members) == 1 else "some", "ranks", ranks=text)
