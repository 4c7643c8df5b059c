"""``size``: the public call behind the command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.cache import CacheAnswer
from kvgauge.dtypes import canonical_dtype
from kvgauge.engines import load_engine, parse_engine
from kvgauge.engines.base import RequestedDtypes
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.models import Model, ModelLike, load
from kvgauge.request_notes import context_notes, idle_option_notes, override_notes, parallel_notes
from kvgauge.size_result import Request, SizeResult
from kvgauge.units import parse_tokens
from kvgauge.weighing import answer_weights
from kvgauge.weight_answer import WeightAnswer
from kvgauge.workload import Parallelism, Workload

if TYPE_CHECKING:
    from kvgauge.sources.weight_files import Progress

DEFAULT_CONTEXT_TOKENS = 32768


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
    weights: str | None = None,
    no_weights: bool = False,
    overrides: Mapping[str, object] | None = None,
    revision: str | None = None,
    refresh: bool = False,
    offline: bool = False,
    progress: Progress | None = None,
) -> SizeResult:
    """Return the cache, state and weights of a model under a load.

    Args:
        model: anything ``load`` accepts.
        context: tokens of one sequence; None is the lesser of 32,768 and the model's limit, "max" the limit.
        kv_dtype: dtype of K and V; ``k_dtype`` and ``v_dtype`` go before it. None or "auto": what the
            checkpoint prescribes, else the model dtype.
        engine: ``name[@version]``; None is ``theory``.
        weights: a quantisation that the weights are priced in instead of their own: int4, fp8, q4_k_m ...
        no_weights: leave the weights out.
        revision, refresh, offline, progress: where the model comes from, as in ``load``.

    Raises:
        KvgaugeError: the model, the request or their combination is refused; says why.

    >>> config = {"model_type": "qwen3", "num_hidden_layers": 36, "num_attention_heads": 32,
    ...           "num_key_value_heads": 8, "head_dim": 128, "hidden_size": 4096, "torch_dtype": "bfloat16"}
    >>> size(config, context="32k").cache.total_bytes  # Qwen3-8B: 4.5 GiB
    4831838208
    """
    loaded = load(
        model, overrides=overrides, revision=revision, refresh=refresh, offline=offline, progress=progress
    )
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
    weighed: WeightAnswer | None = None
    weight_notes: tuple[Note, ...] = ()
    if not no_weights:
        weighed, weight_notes = answer_weights(loaded, request.parallelism, scheme=weights, mtp=bool(mtp))
    notes = (
        *architecture.notes,
        *override_notes(architecture, loaded.raw.overrides),
        *context_notes(architecture, workload),
        *idle_option_notes(architecture, workload, dtypes, encoder_given=encoder_tokens is not None),
        *version_notes,
        *demand.notes,
        *parallel_notes(workload, request.parallelism, loaded.raw.config),
        *weight_notes,
    )
    return SizeResult(loaded, request, answer, notes, theory, weighed)


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
