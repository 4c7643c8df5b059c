"""``splits``: other ways to divide serving than over equal ranks. The public call behind ``plan --split``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kvgauge.errors import InvalidRequestError
from kvgauge.models import ModelLike, load
from kvgauge.sizing import size
from kvgauge.splits.attention_ffn import attention_ffn, in_sram
from kvgauge.splits.caches import disaggregated, offload, prefix
from kvgauge.splits.figures import KINDS, Split
from kvgauge.splits.links import default_card, network_of
from kvgauge.splits.load import SplitLoad
from kvgauge.units import parse_size, parse_tokens
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvgauge.hardware import Accelerator
    from kvgauge.size_result import SizeResult

_ANSWERS: Mapping[str, Callable[[SplitLoad], Split]] = {
    "prefix": prefix,
    "offload": offload,
    "disaggregated": disaggregated,
    "attention-ffn": attention_ffn,
    "sram": in_sram,
}

_ON_RACKS = frozenset({"attention-ffn", "sram"})


@dataclass(frozen=True)
class SplitAnswer:
    """The splits that were asked for, and the load that they divide.

    Args:
        prompt_tokens: the part of the context that is prefilled.
        attention_card, sram_card: of a split between attention and feed-forward.
    """

    sized: SizeResult
    prompt_tokens: int
    attention_card: Accelerator
    sram_card: Accelerator
    splits: tuple[Split, ...]

    def to_dict(self) -> list[dict[str, object]]:
        """Return the ``splits`` of ``kvgauge.plan/1``."""
        return [split.to_dict() for split in self.splits]


def splits(
    model: ModelLike,
    kinds: Iterable[str] = KINDS,
    *,
    gpu: str | None = None,
    sram: str | None = None,
    host_memory: int | str | None = None,
    network: str | None = None,
    prompt: int | str | None = None,
    context: int | str | None = None,
    sequences: int | None = None,
    offline: bool = False,
    **options: object,
) -> SplitAnswer:
    """Return what each way of dividing the work holds, moves and takes at least.

    Args:
        kinds: of ``prefix`` (shared tokens kept once), ``offload`` (caches on the host), ``disaggregated``
            (prefill on GPUs of its own), ``attention-ffn`` (feed-forward weights in on-chip memory) and
            ``sram`` (everything there).
        gpu: the card; attention-ffn and sram without one: the card that such racks ship with.
        sram: the card with on-chip memory; None: the rack of the catalogue.
        host_memory: that may hold caches.
        network: of one GPU, ``400g`` or ``50GB/s``.
        prompt: tokens that are prefilled; None: the whole context.
        options: the other keywords of ``size``: dtypes, engine, parallelism, shared_prefix, mtp.

    Raises:
        KvgaugeError: the model, the load or a card is refused; says why.

    >>> answer = splits("Qwen/Qwen3-8B", ["disaggregated"], context="32k", network="400g")
    >>> answer.splits[0]["prompt_rank_bytes"]  # 4.5 GiB move, in 97 ms at least
    4831838208
    """
    from kvgauge.hardware import parse_gpu  # noqa: PLC0415 - not every split names a card

    chosen = _known(kinds)
    loaded = load(model, offline=offline)
    sized = size(loaded, context=context, sequences=sequences, **options)  # type: ignore[arg-type]
    longest = sized.request.workload.context_tokens
    tokens = longest if prompt is None else parse_tokens(prompt, what="prompt")
    if tokens > longest:
        raise InvalidRequestError(
            f"a prompt of {tokens:,} tokens is longer than the context of {longest:,}",
            hint="the context is prompt and answer together",
            field="prompt",
        )
    alone = {**options, "no_weights": True, "shared_prefix": None, "max_model_len": None}
    one, start = (
        size(loaded, context=held, sequences=1, **alone).cache  # type: ignore[arg-type]
        for held in (longest, tokens)
    )
    card = parse_gpu(gpu)[0] if gpu is not None else None
    attention = card or default_card("attention")
    rack = parse_gpu(sram)[0] if sram is not None else default_card("sram")
    host = None if host_memory is None else parse_size(host_memory, what="host memory")
    plain = SplitLoad(sized, one, start, card, network_of(network), host)
    racked = replace(plain, card=attention, sram=rack)
    answers = tuple(_ANSWERS[kind](racked if kind in _ON_RACKS else plain) for kind in chosen)
    return SplitAnswer(sized, tokens, attention, rack, answers)


def _known(kinds: Iterable[str]) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(kinds))
    for kind in chosen:
        if kind not in KINDS:
            raise InvalidRequestError(
                f"split {kind!r} is not known", hint=f"one of {', '.join(KINDS)}", field="split"
            )
    return chosen
