"""What the lines of a log say, gathered into a record: one for each start of an engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kvgauge.verification import phrases
from kvgauge.verification.launch import launch_facts
from kvgauge.verification.llamacpp_lines import LlamaLines
from kvgauge.verification.phrases import Phrase

#: Of several ranks the smallest pool holds, and the fullest rank; of others the last line.
_SMALLEST = frozenset({
    "kv_available_gib", "kv_tokens", "gpu_blocks", "max_concurrency", "tokens", "total_gpu_gib",
})  # fmt: skip
_LARGEST = frozenset({"weights_gib", "weights_gb", "activation_peak_gib", "non_torch_gib", "graph_gib",
                      "graph_est_gib"})  # fmt: skip
#: Fields of whole numbers.
_WHOLE = frozenset({
    "kv_tokens", "gpu_blocks", "tokens", "blocks", "tokens_per_block", "cells", "n_ctx", "n_ctx_per_seq",
    "n_seq_max",
    "n_batch", "n_ubatch", "max_model_len", "max_num_batched_tokens", "attention_block_size",
    "mamba_cache_size",
    "max_running_requests", "context_len", "estimated_max_len", "ngl", "n_layer_all", "max_pages_per_seq",
    "engine_size_mib",
})  # fmt: skip
#: Engines that make a small pool first, to measure with.
_LAST = frozenset({"tensorrt-llm", "llama.cpp"})
_GROUPED = ("extra", "hparams")
#: Starts in one log beyond which further ones are not told apart.
MAX_STARTS = 64
#: Figures that make a start worth an answer.
FIGURES = frozenset({
    "kv_available_gib", "kv_tokens", "gpu_blocks", "max_concurrency", "kv_needed_gib", "weights_gib",
    "weights_gb",
    "activation_peak_gib", "graph_gib", "tokens", "kv_gb", "k_gb", "kv_gib", "kv_mib", "swa_kv_mib",
    "rs_mib", "blocks",
    "compute_mib", "ssm_gb",
})  # fmt: skip


@dataclass
class Start:
    """One start of an engine: its fields, and the spread over its ranks.

    Args:
        spread: figures of which ranks print unlike values.
        failures: codes of what failed, with the line's size in bytes where one was asked for.
    """

    fields: dict[str, object] = field(default_factory=dict)
    spread: dict[str, tuple[float, float]] = field(default_factory=dict)
    failures: dict[str, int | None] = field(default_factory=dict)
    engines: dict[str, int] = field(default_factory=dict)
    args: dict[str, str] = field(default_factory=dict)
    llama: LlamaLines = field(default_factory=LlamaLines)

    @property
    def engine(self) -> str:
        """The engine most of whose lines were seen."""
        return max(self.engines, key=lambda name: self.engines[name], default="")

    @property
    def figures(self) -> int:
        """How many figures there are."""
        return len(FIGURES & set(self.record()))

    def record(self) -> dict[str, object]:
        """Return the fields of a record."""
        own = self.llama.fields() if self.engine == "llama.cpp" else {}
        return {**self.fields, **self._apart(), **own, "engine": self.engine}

    def _apart(self) -> dict[str, object]:
        """Return the memory outside torch, of logs that print it in one sum with the weights."""
        extra = self.fields.get("extra")
        consumed = extra.get("consumed_gib") if isinstance(extra, dict) else None
        weights = self.fields.get("weights_gib")
        if (
            not isinstance(consumed, float)
            or not isinstance(weights, float)
            or "non_torch_gib" in self.fields
        ):
            return {}
        return {"non_torch_gib": round(consumed - weights, 4)}

    def start(self, facts: Mapping[str, object]) -> None:
        """Take how the engine was started; flags of several lines are put together."""
        for name, value in facts.items():
            if name == "args" and isinstance(value, dict):
                self.args |= value
            else:
                self.fields[name] = value

    def take(self, name: str, value: object, *, is_last: bool = False) -> None:
        """Take a value of a line; figures of several ranks are put together, unless the last line holds."""
        group, _, inner = name.partition("__")
        if inner and group in _GROUPED:
            target = self.fields.setdefault(group, {})
            assert isinstance(target, dict)  # noqa: S101 - made here
            name = inner
        else:
            target = self.fields
        known = target.get(name)
        both = isinstance(known, int | float) and isinstance(value, int | float)
        if both and known != value and not is_last:
            assert isinstance(known, int | float)  # noqa: S101 - for the type checker
            assert isinstance(value, int | float)  # noqa: S101 - as above
            low, high = self.spread.get(name, (known, known))
            self.spread[name] = (min(low, value), max(high, value))
            if name in _SMALLEST:
                value = min(known, value)
            elif name in _LARGEST:
                value = max(known, value)
        target[name] = value


def read_starts(lines: Iterable[str]) -> list[Start]:
    """Return every start of an engine that a log shows, in order."""
    starts = [Start()]
    for line in lines:
        told = launch_facts(line)
        if told is not None:
            engine, facts = told
            if _is_another(starts[-1], engine, facts) and len(starts) < MAX_STARTS:
                starts.append(Start())
            _seen(starts[-1], engine)
            starts[-1].start(facts)
        is_new = phrases.BANNER.search(line) is not None or starts[-1].llama.is_new_model(line)
        if is_new and starts[-1].figures and len(starts) < MAX_STARTS:
            starts.append(Start())
        _read(starts[-1], line)
    return [start for start in starts if start.engines]


def _is_another(start: Start, engine: str, facts: Mapping[str, object]) -> bool:
    """Whether a line that says how an engine was started belongs to another start than the one so far."""
    known = start.fields.get("model")
    model = facts.get("model")
    changed = known is not None and model is not None and model != known
    return changed or (start.figures > 0 and bool(model)) or (bool(start.engine) and engine != start.engine)


def _seen(start: Start, engine: str) -> None:
    start.engines[engine] = start.engines.get(engine, 0) + 1


def _read(start: Start, line: str) -> None:
    for phrase in phrases.PHRASES:
        match = phrase.says.search(line)
        if match is not None:
            _seen(start, phrase.engine)
            _take(start, phrase, match.groupdict())
    if start.llama.read(line):
        _seen(start, "llama.cpp")
    for says, build in phrases.LLAMA_ERAS:
        if says.search(line):
            start.fields.setdefault("era", build)
            break
    for code, says in phrases.FAILURES:
        if says.search(line):
            start.failures[code] = _tried(line) or start.failures.get(code)


def _take(start: Start, phrase: Phrase, found: Mapping[str, str | None]) -> None:
    for name, text in found.items():
        if text is not None:
            value = number(str(text), whole=name.rpartition("__")[2] in _WHOLE)
            shown = _text(name, str(text)) if value is None or name in _TEXTS else value
            start.take(name, shown, is_last=phrase.engine in _LAST)


def _text(name: str, text: str) -> str:
    word = text.strip()
    return word.removeprefix("v") if name == "engine_version" else word


_TEXTS = frozenset({"engine_version", "quant", "model", "file", "flash_attn", "k_type", "v_type",
"hparams__model_size",
                    "kv_unified"})  # fmt: skip


def number(text: str, *, whole: bool = False) -> float | int | None:
    """Return a number as logs print it, None where it is none.

    >>> number("514,944", whole=True), number("53.29"), number("-2.14"), number("auto")
    (514944, 53.29, -2.14, None)
    """
    bare = text.replace(",", "")
    try:
        return int(float(bare)) if whole else float(bare)
    except (ValueError, OverflowError):
        return None


def _tried(line: str) -> int | None:
    match = phrases.TRIED.search(line)
    if match is None:
        return None
    size = float(match["size"] or match["mib"] or 0)
    return int(size * (1 << 30 if match["unit"] == "GiB" else 1 << 20))
