"""Hugging Face Transformers: what its cache objects hold.

The bytes are those of the cache's own tensors (logical bytes). Versions differ by the table in
``transformers_versions``; the words of ``--engine-args`` by ``transformers_args``.
"""

from __future__ import annotations

from kvgauge.architecture import LayerGroup, ModelArchitecture, Note
from kvgauge.dtypes import display_dtype
from kvgauge.engines.base import Demand, GroupDemand, PlainEngine, RequestedDtypes
from kvgauge.engines.setup import PLAIN_SETUP, Setup
from kvgauge.engines.transformers_args import CacheChoice, parse_cache_choice
from kvgauge.engines.transformers_notes import storage_notes
from kvgauge.engines.transformers_offload import check_offloading, offloading_notes, placed_layers
from kvgauge.engines.transformers_streams import OUTSIDE, WINDOW_KINDS, Storage, group_demands
from kvgauge.engines.transformers_versions import NEWEST, VersionRules, rules_for, version_notes
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.layers import STATE_KINDS, LayerKind, Mechanism
from kvgauge.workload import Workload

#: Dtypes that activations can have, hence K and V.
_ACTIVATION_DTYPES = frozenset({"f32", "f16", "bf16"})

#: Layer kinds that a cache object which knows no config can't hold.
_NEEDS_CONFIG = frozenset({LayerKind.INDEX, LayerKind.BLOCK_INDEX, LayerKind.COMPRESSED})
#: Designs with cache objects of their own, which StaticCache does not replace.
_OWN_CACHE = frozenset({Mechanism.LIGHTNING, Mechanism.RWKV, Mechanism.COMPRESSED_ATTENTION})
#: What QuantizedCache accepts: "full_attention", latents included; before the check, every attention layer.
_QUANTIZED_KINDS = frozenset({LayerKind.FULL, LayerKind.LATENT})
_UNCHECKED_KINDS = _QUANTIZED_KINDS | WINDOW_KINDS | {LayerKind.SHARED}


class TransformersEngine(PlainEngine):
    """Transformers, every version from 4.57 on."""

    name = "transformers"

    def resolve_version(self, version: str | None) -> tuple[str | None, tuple[Note, ...]]:
        """Return the version, and a note where another version's rules stand in.

        Raises:
            InvalidRequestError: not a version.
            FeatureUnsupportedError: older than what is known.
        """
        if version is None:
            return NEWEST.version, ()
        return version, version_notes(version)

    def demand(
        self,
        architecture: ModelArchitecture,
        workload: Workload,
        dtypes: RequestedDtypes,
        *,
        version: str | None = None,
        args: str = "",
        setup: Setup = PLAIN_SETUP,
    ) -> Demand:
        """Return what the cache object holds.

        Raises:
            InvalidRequestError: a word of ``args`` is not known.
            FeatureUnsupportedError: this cache object refuses the model, or the dtype.
        """
        rules, choice = rules_for(version), parse_cache_choice(args)
        resolved = _resolve_dtypes(architecture, dtypes)
        groups = (*architecture.groups, *(architecture.mtp_groups if workload.mtp else ()))
        _check(architecture, groups, workload, choice, rules)
        if choice.offloading:
            check_offloading(architecture, groups, choice, rules, setup.parallelism)
        storage = Storage(rules, choice, architecture, workload, resolved)
        demands = tuple(part for group in groups for part in group_demands(group, storage))
        kept = demands
        if choice.word == "dynamic" and architecture.model_type in rules.no_cache_object:
            kept = tuple(GroupDemand(demand.group, ()) for demand in demands)
        notes, details = storage_notes(storage, demands, kept)
        placed = placed_layers(storage, demands) if choice.offloading else ()
        notes = (*_dtype_notes(architecture, dtypes), *notes, *offloading_notes(placed))
        return Demand(kept, resolved, notes, details, placed=placed)


def _resolve_dtypes(architecture: ModelArchitecture, asked: RequestedDtypes) -> RequestedDtypes:
    """Fill in the model dtype; the checkpoint's KV scheme is not read by Transformers."""
    for word in (asked.k, asked.v, asked.state, asked.index):
        if word is not None and word not in _ACTIVATION_DTYPES:
            raise FeatureUnsupportedError(
                f"transformers keeps the cache in the dtype of activations, not in {display_dtype(word)}",
                hint='--engine-args "cache=quantized backend=quanto nbits=4" packs K and V',
                field="kv_dtype",
            )
    model_dtype = architecture.model_dtype
    return RequestedDtypes(asked.k or model_dtype, asked.v or model_dtype, asked.state, asked.index)


def _dtype_notes(architecture: ModelArchitecture, asked: RequestedDtypes) -> tuple[Note, ...]:
    prescribed = architecture.prescribed_kv_dtype
    if prescribed is None or (asked.k and asked.v):
        return ()
    word = display_dtype(prescribed)
    text = f"the checkpoint asks for a {word} KV cache, which transformers does not read"
    return (Note("kv_dtype_ignored", "info", text, (("dtype", word), ("field", architecture.prescribed_by))),)


# -- refusals -------------------------------------------------------------------------------------


def _check(
    architecture: ModelArchitecture,
    groups: tuple[LayerGroup, ...],
    workload: Workload,
    choice: CacheChoice,
    rules: VersionRules,
) -> None:
    if workload.shared_prefix_tokens:
        raise FeatureUnsupportedError(
            "transformers keeps the prefix of every sequence, it shares none",
            hint="leave --shared-prefix out",
            field="shared-prefix",
        )
    match choice.cache:
        case "dynamic_without_config":
            refused = [g for g in groups if g.kind in _NEEDS_CONFIG or _needs_state_layer(g, rules)]
            reason = "DynamicCache without a config makes plain layers only"
        case "static":
            refused = [g for g in groups if g.mechanism in _OWN_CACHE or _not_in_static(g, rules)]
            reason = "StaticCache has no layer for it"
        case "quantized":
            _check_quantized(architecture, choice, rules)
            kinds = _QUANTIZED_KINDS if rules.quantized_checks_layers else _UNCHECKED_KINDS
            refused = [g for g in groups if g.kind not in kinds]
            reason = "QuantizedCache takes models whose layers are all full attention"
        case _:
            return
    if refused:
        what = f"the {refused[0].kind.value} layers of {architecture.model_type}"
        raise FeatureUnsupportedError(
            f"cache={choice.word} can't hold {what}: {reason}",
            hint="cache=dynamic is what the model makes itself",
            field="engine-args",
        )


def _needs_state_layer(group: LayerGroup, rules: VersionRules) -> bool:
    if group.kind not in STATE_KINDS:
        return False
    return OUTSIDE.get(group.mechanism) is None or group.mechanism in _OWN_CACHE or not rules.state_in_static


def _not_in_static(group: LayerGroup, rules: VersionRules) -> bool:
    return group.kind in STATE_KINDS and not rules.state_in_static


def _check_quantized(architecture: ModelArchitecture, choice: CacheChoice, rules: VersionRules) -> None:
    if choice.backend not in rules.quantized_backends:
        raise FeatureUnsupportedError(
            f"transformers {rules.version} has no {choice.backend} backend for its quantised cache",
            hint="it has " + ", ".join(rules.quantized_backends),
            field="engine-args",
        )
    if architecture.is_encoder_decoder:
        raise FeatureUnsupportedError(
            "QuantizedCache takes decoder-only models",
            hint="cache=dynamic or cache=static",
            field="engine-args",
        )
    if choice.backend != "fp8" and architecture.model_dtype == "f32":
        raise FeatureUnsupportedError(
            "the bytes of quantised groups with fp32 scales are not known",
            hint="give a model in bf16 or fp16",
            field="engine-args",
        )


ENGINE = TransformersEngine()
