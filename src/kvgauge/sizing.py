"""``size``: the public call behind the command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.cache import CacheAnswer
from kvgauge.engine_weights import refuse_weights
from kvgauge.engines import load_engine
from kvgauge.models import Model, ModelLike, load
from kvgauge.preparing import Options, Prepared, prepare, with_command
from kvgauge.size_result import SizeResult
from kvgauge.weighing import answer_weights
from kvgauge.weight_answer import WeightAnswer

if TYPE_CHECKING:
    from kvgauge.engines.base import Demand, Offload
    from kvgauge.sources.weight_files import Progress


def size(
    model: ModelLike | None = None,
    *,
    command: str | None = None,
    context: int | str | None = None,
    max_model_len: int | str | None = None,
    sequences: int | None = None,
    encoder_tokens: int | str | None = None,
    image_tokens: int | str | None = None,
    shared_prefix: int | str | None = None,
    kv_dtype: str | None = None,
    k_dtype: str | None = None,
    v_dtype: str | None = None,
    state_dtype: str | None = None,
    index_dtype: str | None = None,
    mtp: int | None = None,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    ep: int | None = None,
    dcp: int | None = None,
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
        command: a whole launch line: it says engine and flags, and the model where ``model`` is None.
        context: tokens of one sequence; None is the lesser of 32,768 and the model's limit, "max" the limit.
        max_model_len: tokens that the engine is told to reserve; alone it is the context too.
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
    model, engine, engine_args = with_command(command, model, engine, engine_args)
    options = Options(
        context, max_model_len, sequences, encoder_tokens, image_tokens, shared_prefix,
        kv_dtype, k_dtype, v_dtype, state_dtype, index_dtype, mtp, tp, pp, dp, ep, dcp,
    )  # fmt: skip
    prepared = prepare(
        model,
        options,
        engine=engine,
        engine_args=engine_args,
        overrides=overrides,
        revision=revision,
        refresh=refresh,
        offline=offline,
        progress=progress,
    )
    request, architecture = prepared.request, prepared.architecture
    demand = _demand(prepared)
    answer = CacheAnswer(architecture, request.workload, request.parallelism, demand)
    theory = None
    if request.engine != "theory":
        own = prepared.model.architecture
        plain = load_engine("theory").demand(
            own, request.workload, replace(demand.dtypes), version=None, args=""
        )
        theory = CacheAnswer(own, request.workload, request.parallelism, plain)
    _ = answer.per_rank_bytes  # refuses an impossible split now, not when it is printed
    weighed, weight_notes = weigh_request(prepared, scheme=weights, without=no_weights)
    beside = beside_weights(prepared, weighed)
    if beside is not prepared:
        answer = replace(answer, demand=_demand(beside))
    notes = (*prepared.notes, *demand.notes, *prepared.late_notes, *weight_notes)
    return SizeResult(prepared.model, request, answer, notes, theory, weighed)


def _demand(prepared: Prepared) -> Demand:
    request = prepared.request
    return prepared.engine.demand(
        prepared.architecture,
        request.workload,
        request.dtypes,
        version=request.engine_version,
        args=request.engine_args,
        setup=prepared.setup,
    )


def beside_weights(prepared: Prepared, weighed: WeightAnswer | None) -> Prepared:
    """Return the request with what its engine asks of the weights: matrices that wait on the host."""
    placed = None if weighed is None or weighed.elsewhere else weighed.gguf
    if placed is None or not (placed.host_matrix_bytes or placed.host_output_bytes):
        return prepared
    setup = replace(
        prepared.setup,
        host_matrix_bytes=placed.host_matrix_bytes,
        host_output_bytes=placed.host_output_bytes,
    )
    return replace(prepared, setup=setup)


def _offloaded(weighed: WeightAnswer, offload: Offload, architecture: ModelArchitecture) -> WeightAnswer:
    """Return the weights where llama.cpp puts them; a checkpoint's as a conversion of it would lie."""
    layout = weighed.layout
    if layout is None:
        from kvgauge.engines.llamacpp_weights import GgufLayout  # noqa: PLC0415 - of one engine

        extra = len({layer.index for layer in architecture.mtp_layers})
        layout = GgufLayout(architecture.num_layers + extra, has_head=not architecture.encoder_only)
    return replace(weighed, offload=offload, layout=layout)


def weigh_request(
    prepared: Prepared, *, scheme: str | None, without: bool, like: WeightAnswer | None = None
) -> tuple[WeightAnswer | None, tuple[Note, ...]]:
    """Return the weights of a request, cut as its engine cuts them, and what to say about them.

    Args:
        like: those of a like request; where they are equal, they are taken, with what they have worked out.

    Raises:
        KvgaugeError: the scheme is not known or not possible, a shape can't be divided over the ranks, or the
            engine does not run the weights on the card.
    """
    if without:
        return None, ()
    request, engine = prepared.request, prepared.engine
    setup = replace(prepared.setup, engine_version=request.engine_version)
    weighed, notes = answer_weights(
        prepared.model,
        request.parallelism,
        scheme=scheme,
        mtp=bool(request.workload.mtp),
        cut=lambda experts: engine.shard_policy(prepared.architecture, setup, experts),
        like=like,
    )
    if weighed is not None:
        refuse_weights(request.engine, request.engine_version, setup.card, weighed.stored.scheme)
    offload = engine.offload(request.engine_args, request.engine_version, prepared.setup)
    if weighed is not None and offload is not None:
        placed = _offloaded(weighed, offload, prepared.architecture)
        weighed = like if like is not None and placed == like else placed
    return weighed, notes


__all__ = ["Model", "ModelLike", "SizeResult", "beside_weights", "load", "size", "weigh_request"]
