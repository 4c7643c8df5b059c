"""A request of ``plan``, understood: what is pinned, what is searched over, and who is asked."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from kvgauge.engines import load_engine, parse_engine
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.fit_search import Search
from kvgauge.planning.cases import OWN, Evaluator, Formats
from kvgauge.planning.devices import PlanDevice, devices_of
from kvgauge.planning.layouts import Space, space_of
from kvgauge.planning.prices import PriceTable
from kvgauge.planning.rules import EngineRules, engine_rules, plan_rules
from kvgauge.preparing import Options, Prepared, prepare
from kvgauge.published_weights import smaller_checkpoints
from kvgauge.units import parse_size, parse_tokens
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvgauge.models import Model

AXES = ("tp", "pp", "dp", "ep", "dcp")
#: Axes whose ranks are GPUs of their own.
_MULTIPLIED = ("tp", "pp", "dp")
_KV = ("kv_dtype", "k_dtype", "v_dtype")


@dataclass(frozen=True)
class Asked:
    """A request.

    Args:
        options: the load, and the ranks that are given.
        engine: ``name[@version]``.
        scheme: weights that are asked for.
        reserve: kept free on each GPU.
        no_weights: they lie on none of the devices.
    """

    model: Model
    options: Options
    engine: str
    engine_args: str = ""
    scheme: str | None = None
    reserve: int | str | None = None
    no_weights: bool = False

    @cached_property
    def rules(self) -> EngineRules:
        """How the engine can be spread.

        Raises:
            FeatureUnsupportedError: it has no pool.
        """
        return engine_rules(parse_engine(self.engine)[0])

    @cached_property
    def told(self) -> Mapping[str, object]:
        """What the engine's flags say of options."""
        return load_engine(parse_engine(self.engine)[0]).told(self.engine_args)

    @cached_property
    def pinned(self) -> dict[str, int]:
        """Ranks that are given, by option or flag; the flags win."""
        given = {axis: getattr(self.options, axis) for axis in AXES}
        stated = {axis: self.told[axis] for axis in AXES if axis in self.told}
        return {axis: count for axis, count in (given | stated).items() if isinstance(count, int)}

    @cached_property
    def prepared(self) -> Prepared:
        """The request without a card, and without the ranks that options give.

        Raises:
            KvgaugeError: what is wrong with it whatever the card.
        """
        return prepare(self.model, self._free, engine=self.engine, engine_args=self.engine_args)

    @property
    def _free(self) -> Options:
        return replace(self.options, **dict.fromkeys(AXES))

    @property
    def given_ranks(self) -> int:
        """GPUs of the ranks that are given, those left free taken as 1."""
        return prod(self.pinned.get(axis, 1) for axis in _MULTIPLIED)

    def refuse_ranks(self) -> None:
        """Refuse ranks that can't spread the model, whatever the card.

        Raises:
            KvgaugeError: names what can.
        """
        whole = AXES if all(axis in self.pinned for axis in _MULTIPLIED) else ("tp", "pp")
        ranks = {axis: self.pinned[axis] for axis in whole if axis in self.pinned}
        if ranks:
            options = replace(self._free, **ranks)  # type: ignore[arg-type]
            made = prepare(self.model, options, engine=self.engine, engine_args=self.engine_args)
            Search(made, None).capacity(made.request.workload)

    @cached_property
    def is_kv_free(self) -> bool:
        """Whether nothing says how the cache is stored."""
        return not any(getattr(self.options, name) or name in self.told for name in _KV)

    @cached_property
    def formats(self) -> tuple[Formats, ...]:
        """Ways to store the load with the weights that there are."""
        return (OWN, Formats(kv=self.rules.kv_word)) if self.is_kv_free else (OWN,)

    @cached_property
    def schemes(self) -> tuple[str, ...]:
        """Quantisations that the checkpoint does not offer, where none is asked for."""
        if self.scheme is not None or self.no_weights:
            return ()
        own = self.evaluator.weights_bytes(None)
        return tuple(word for word in self.rules.schemes if self.evaluator.weights_bytes(word) < own)

    @cached_property
    def catalogue(self) -> tuple[PlanDevice, ...]:
        """Devices that are looked at where none is named."""
        return devices_of(None, None, None, self.rules, PriceTable(), parse_engine(self.engine)[1])

    @cached_property
    def published(self) -> Mapping[str, Asked]:
        """The same request of smaller published checkpoints, by name, where no weights are asked for."""
        if self.scheme is not None or self.no_weights or self.prepared.engine.reads_gguf:
            return {}
        if self.model.raw.overrides:
            return {}
        found = smaller_checkpoints(self.model, self.evaluator.weights_bytes(None))
        return {model.raw.id: replace(self, model=model) for model in found}

    @cached_property
    def needs_nvidia(self) -> bool:
        """Whether some weights are in a format that only NVIDIA's cards have kernels for."""
        stored = None if self.no_weights else self.model.weighed.stored
        names = set() if stored is None else {item.format.name for item in stored.families}
        return bool(names & plan_rules().nvidia_formats)

    def of(self, formats: Formats) -> Asked:
        """Return the request that formats belong to."""
        return self if formats.checkpoint is None else self.published[formats.checkpoint]

    @cached_property
    def space(self) -> Space:
        """The ways to spread the model.

        Raises:
            FeatureUnsupportedError: its weights are not known.
        """
        stored = self.model.weighed.stored
        if stored is None:
            raise FeatureUnsupportedError(
                "what a card leaves for the cache is not known without the weights",
                hint="--kv-memory 40GiB gives the pool on each GPU instead",
                field="weights",
            )
        return space_of(
            self.prepared.architecture,
            self.rules,
            has_experts=any(item.family.num_experts for item in stored.families),
            sequences=self.prepared.request.workload.sequences,
            pinned=self.pinned,
        )

    @cached_property
    def evaluator(self) -> Evaluator:
        """Who is asked."""
        kept = 0 if self.reserve is None else parse_size(self.reserve, what="reserve")
        return Evaluator(
            self.model, self._free, self.engine, self.engine_args, self.scheme, kept, self.no_weights
        )


def refuse_unread(given: Mapping[str, object], missing: str) -> None:
    """Refuse options that only another one reads, which is not there.

    Raises:
        InvalidRequestError: names the first of them.
    """
    for name, value in given.items():
        if value is not None:
            shown, other = name.replace("_", "-"), f"--{missing}"
            raise InvalidRequestError(
                f"--{shown} changes nothing without {other}",
                hint=f"give {other} too, or leave it out",
                field=name,
            )


def context_of(
    context: int | str | None, prompt: int | str | None, output: int | str | None
) -> int | str | None:
    """Return the context: as given, else the sum of prompt and output.

    Raises:
        InvalidRequestError: both are given, or one part without the other.

    >>> context_of(None, "30k", 2048), context_of("32k", None, None)
    (32768, '32k')
    """
    if prompt is None and output is None:
        return context
    if context is not None:
        raise InvalidRequestError(
            "--context is the sum of --prompt-tokens and --output-tokens; it can't be given beside them",
            hint="give the context, or its two parts",
            field="context",
        )
    return sum(
        parse_tokens(0 if part is None else part, what=what)
        for part, what in ((prompt, "prompt-tokens"), (output, "output-tokens"))
    )


__all__ = ["AXES", "Asked", "context_of", "refuse_unread"]
