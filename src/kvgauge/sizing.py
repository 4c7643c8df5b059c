"""``load`` and ``size``: the public calls behind the ``size`` command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.cache import CacheAnswer
from kvgauge.dtypes import canonical_dtype, display_dtype
from kvgauge.engines import load_engine, parse_engine
from kvgauge.engines.base import RequestedDtypes, allocation_kind
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.readers import read_architecture
from kvgauge.request_notes import context_notes, idle_option_notes, override_notes, parallel_notes
from kvgauge.sources import RawModel, apply_overrides, load_raw
from kvgauge.units import json_number, parse_tokens
from kvgauge.workload import Parallelism, Workload

DEFAULT_CONTEXT_TOKENS = 32768


@dataclass(frozen=True)
class Model:
    """A model that was found and read; pass it wherever a model is asked for."""

    raw: RawModel
    architecture: ModelArchitecture

    def to_dict(self) -> dict[str, object]:
        """Return the ``model`` object of the JSON contract."""
        return {
            "id": self.raw.id,
            "revision": self.raw.revision,
            "source": self.raw.source,
            "model_type": self.architecture.model_type,
            "architecture": self.architecture.architecture,
            "num_layers": self.architecture.num_layers,
            "context_limit_tokens": self.architecture.context_limit_tokens,
            "overrides": dict(self.raw.overrides),
        }


ModelLike = str | Path | Mapping[str, object] | Model


def load(
    model: ModelLike,
    *,
    overrides: Mapping[str, object] | None = None,
    revision: str | None = None,
    refresh: bool = False,
    offline: bool = False,
) -> Model:
    """Find and read a model: a name, a path, ``-``, or a parsed config.

    Args:
        revision: a branch, tag or commit on the hub; ``org/name@revision`` says the same.
        refresh: ask the hub, whatever the catalogue and the local cache say.
        offline: use the catalogue, local files and the local cache alone.

    Raises:
        KvgaugeError: not found, damaged or not understood.

    >>> config = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    >>> load(config).architecture.num_layers
    2
    """
    if isinstance(model, Model):
        if not overrides:
            return model
        raw = apply_overrides(model.raw, {**model.raw.overrides, **overrides})
    else:
        raw = load_raw(model, overrides, offline=offline, revision=revision, refresh=refresh)
    shapes = {tensor.name: tensor.shape for tensor in raw.tensors}
    return Model(raw, read_architecture(raw.config, raw.quantization, shapes))


@dataclass(frozen=True)
class Request:
    """A load as it was understood, defaults filled in and named."""

    workload: Workload
    parallelism: Parallelism
    dtypes: RequestedDtypes
    engine: str
    engine_version: str | None
    engine_args: str
    defaulted: tuple[str, ...]


@dataclass(frozen=True)
class SizeResult:
    """The answer of ``size``."""

    model: Model
    request: Request
    cache: CacheAnswer
    notes: tuple[Note, ...]
    theory: CacheAnswer | None = None

    @property
    def grade(self) -> str:
        """``exact``, or ``assumed`` where a note says that something had to be."""
        return "assumed" if self.assumed_because else "exact"

    @property
    def assumed_because(self) -> tuple[str, ...]:
        """The codes of the notes that say what had to be assumed."""
        asked = self.request.dtypes
        answered = {"dtype_assumed"} if asked.k and asked.v else set[str]()
        codes = {note.code for note in self.notes} - answered
        return tuple(code for code in _ASSUMING if code in codes)

    @cached_property
    def allocations(self) -> list[dict[str, object]]:
        """What each rank holds, one entry a group of layers."""
        result: list[dict[str, object]] = []
        for rank, groups in enumerate(self.cache.rank_group_bytes):
            for demand, size in zip(self.cache.demand.groups, groups, strict=True):
                if size:
                    because = f"{demand.group.num_layers} {demand.group.kind.value} layers"
                    kind = allocation_kind(demand.group.kind)
                    result.append(_allocation(demand.group.name, kind, rank, size, self.grade, because))
        return result

    def to_dict(self) -> dict[str, object]:
        """Return the ``kvgauge.size/1`` object."""
        return {
            "schema": "kvgauge.size/1",
            "model": self.model.to_dict(),
            "request": _request_dict(self.request, self.cache.demand.dtypes, self.model.architecture),
            "cache": self.cache_dict(),
            "weights": None,
            "engine": {
                "name": self.request.engine,
                "version": self.request.engine_version,
                "allocations": self.allocations,
                "details": self.cache.demand.details,
            },
            "notes": [note.to_dict() for note in self.notes],
        }

    def cache_dict(self) -> dict[str, object]:
        """Return the ``cache`` object."""
        from kvgauge.formulas import group_formula  # noqa: PLC0415 - only the full answer needs formulas

        answer = self.cache
        theory = self.theory or answer
        return {
            "family": answer.family,
            "total_bytes": answer.total_bytes,
            "bytes_per_sequence": answer.bytes_per_sequence,
            "fixed_bytes_per_sequence": answer.fixed_bytes_per_sequence,
            "growth_bytes_per_token": json_number(answer.growth_bytes_per_token),
            "theory_total_bytes": theory.total_bytes,
            "terms": [term.to_dict() for term in answer.terms],
            "curve": [{"tokens": t, "bytes": b, "exact": True} for t, b in answer.curve],
            "per_rank_bytes": list(answer.per_rank_bytes),
            "layers": [
                {
                    "index": layer.index,
                    "kind": layer.kind.value,
                    "bytes": layer.total_bytes,
                    "bytes_per_token": json_number(layer.bytes_per_token),
                    "fixed_bytes": layer.fixed_bytes,
                    "window_tokens": layer.window_tokens,
                    "shares_cache_of": layer.shares_cache_of,
                }
                for layer in answer.layers
            ],
            "groups": [
                {
                    "kind": demand.group.kind.value,
                    "name": demand.group.name,
                    "mechanism": demand.group.mechanism.value,
                    "num_layers": demand.group.num_layers,
                    **group_formula(demand, answer.workload).to_dict(),
                    "bytes": size,
                }
                for demand, size in zip(answer.demand.groups, answer.group_bytes, strict=True)
            ],
        }

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from kvgauge.render.notebook import size_html  # noqa: PLC0415 - the core draws nothing

        return size_html(self)


#: Notes that say an answer rests on more than shapes and rules, the weightiest first.
_ASSUMING = ("inferred", "layer_order_unknown", "engine_version_newer", "dtype_assumed")


def _allocation(
    name: str, kind: str, rank: int, size_bytes: int, grade: str, because: str
) -> dict[str, object]:
    return {
        "name": name,
        "kind": kind,
        "rank": rank,
        "place": f"gpu:{rank}",
        "bytes": size_bytes,
        "low_bytes": size_bytes,
        "high_bytes": size_bytes,
        "grade": grade,
        "because": because,
    }


def _request_dict(
    request: Request, dtypes: RequestedDtypes, architecture: ModelArchitecture
) -> dict[str, object]:
    load, spread = request.workload, request.parallelism
    return {
        "context_tokens": load.context_tokens,
        "sequences": load.sequences,
        "encoder_tokens": load.encoder_tokens,
        "image_tokens": load.image_tokens,
        "shared_prefix_tokens": load.shared_prefix_tokens,
        "k_dtype": display_dtype(dtypes.k or architecture.model_dtype),
        "v_dtype": display_dtype(dtypes.v or architecture.model_dtype),
        "state_dtype": display_dtype(dtypes.state) if dtypes.state else "auto",
        "index_dtype": display_dtype(dtypes.index) if dtypes.index else "auto",
        "mtp": load.mtp,
        "engine": request.engine,
        "engine_version": request.engine_version,
        "tensor_parallel": spread.tensor,
        "pipeline_parallel": spread.pipeline,
        "data_parallel": spread.data,
        "expert_parallel": spread.expert,
        "context_parallel": spread.context,
        "defaulted": list(request.defaulted),
    }


def size(
    model: ModelLike,
    *,
    context: int | str | None = None,
    sequences: int | None = None,
    encoder_tokens: int | str | None = None,
    image_tokens: int | str | None = None,
    shared_prefix: int | str | None = None,
    kv_dtype: str | None = None,
    k_dtype: str | None = None,
    v_dtype: str | None = None,
    state_dtype: str | None = None,
    index_dtype: str | None = None,
    mtp: int = 0,
    tp: int = 1,
    pp: int = 1,
    dp: int = 1,
    ep: int = 1,
    dcp: int = 1,
    engine: str | None = None,
    engine_args: str = "",
    overrides: Mapping[str, object] | None = None,
    revision: str | None = None,
    refresh: bool = False,
    offline: bool = False,
) -> SizeResult:
    """Return the cache and state of a model under a load.

    Args:
        model: anything ``load`` accepts.
        context: tokens of one sequence; None is the lesser of 32,768 and the model's limit, "max" the limit.
        kv_dtype: dtype of K and V; ``k_dtype`` and ``v_dtype`` go before it. None or "auto": what the
            checkpoint prescribes, else the model dtype.
        engine: ``name[@version]``; None is ``theory``.
        revision, refresh, offline: where the model comes from, as in ``load``.

    Raises:
        KvgaugeError: the model, the request or their combination is refused; says why.

    >>> config = {"model_type": "qwen3", "num_hidden_layers": 36, "num_attention_heads": 32,
    ...           "num_key_value_heads": 8, "head_dim": 128, "hidden_size": 4096, "torch_dtype": "bfloat16"}
    >>> size(config, context="32k").cache.total_bytes  # Qwen3-8B: 4.5 GiB
    4831838208
    """
    loaded = load(model, overrides=overrides, revision=revision, refresh=refresh, offline=offline)
    architecture = loaded.architecture
    name, version = parse_engine(engine) if engine else ("theory", None)
    encoder = encoder_tokens if architecture.is_encoder_decoder else 0
    defaulted = _defaulted(
        context_tokens=context,
        sequences=sequences,
        encoder_tokens=encoder,
        k_dtype=k_dtype or kv_dtype,
        v_dtype=v_dtype or kv_dtype,
        engine=engine,
    )
    workload = _workload(architecture, context, sequences, encoder_tokens, image_tokens, shared_prefix, mtp)
    kv_word = kv_dtype
    dtypes = RequestedDtypes(
        _dtype(k_dtype or kv_word), _dtype(v_dtype or kv_word), _dtype(state_dtype), _dtype(index_dtype)
    )
    implementation = load_engine(name)
    version, version_notes = implementation.resolve_version(version)
    demand = implementation.demand(architecture, workload, dtypes, version=version, args=engine_args)
    request = Request(
        workload, Parallelism(tp, pp, dp, ep, dcp), dtypes, name, version, engine_args, defaulted
    )
    answer = CacheAnswer(architecture, workload, request.parallelism, demand)
    theory = None
    if name != "theory":
        plain = load_engine("theory").demand(
            architecture, workload, replace(demand.dtypes), version=None, args=""
        )
        theory = CacheAnswer(architecture, workload, request.parallelism, plain)
    _ = answer.per_rank_bytes  # refuses an impossible split now, not when it is printed
    notes = (
        *architecture.notes,
        *override_notes(architecture, loaded.raw.overrides),
        *context_notes(architecture, workload),
        *idle_option_notes(architecture, workload, dtypes, encoder_given=encoder_tokens is not None),
        *version_notes,
        *demand.notes,
        *parallel_notes(workload, request.parallelism, loaded.raw.config),
    )
    return SizeResult(loaded, request, answer, notes, theory)


def _defaulted(**given: object) -> tuple[str, ...]:
    """Return the fields of the request that were not given."""
    return tuple(name for name, value in given.items() if value is None)


def _dtype(word: str | None) -> str | None:
    return None if word is None or word.strip().lower() == "auto" else canonical_dtype(word)


def _workload(
    architecture: ModelArchitecture,
    context: int | str | None,
    sequences: int | None,
    encoder_tokens: int | str | None,
    image_tokens: int | str | None,
    shared_prefix: int | str | None,
    mtp: int,
) -> Workload:
    limit = architecture.context_limit_tokens
    context_tokens = _context(context, limit)
    if encoder_tokens is not None:
        encoder = parse_tokens(encoder_tokens, what="encoder-tokens")
    elif architecture.is_encoder_decoder:
        encoder = architecture.encoder_tokens or context_tokens
    else:
        encoder = 0
    if mtp and not architecture.mtp_layers:
        raise FeatureUnsupportedError(
            "the config describes no multi-token-prediction layers", hint="leave --mtp out", field="mtp"
        )
    return Workload(
        context_tokens,
        1 if sequences is None else sequences,
        encoder,
        parse_tokens(image_tokens or 0, what="image-tokens"),
        parse_tokens(shared_prefix or 0, what="shared-prefix"),
        mtp,
    )


def _context(context: int | str | None, limit: int | None) -> int:
    if context is None:
        return DEFAULT_CONTEXT_TOKENS if limit is None else min(DEFAULT_CONTEXT_TOKENS, limit)
    if isinstance(context, str) and context.strip().lower() == "max":
        if limit is None:
            raise InvalidRequestError(
                "--context max: the config states no limit", hint="give a number of tokens", field="context"
            )
        return limit
    return parse_tokens(context)


__all__ = ["Model", "ModelLike", "SizeResult", "load", "size"]
