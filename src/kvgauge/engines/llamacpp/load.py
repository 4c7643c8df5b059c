"""A load and the flags of a launch as llama.cpp's settings: for all sequences, and for one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kvgauge.architecture import ModelArchitecture
from kvgauge.engines.base import RequestedDtypes
from kvgauge.engines.llamacpp.builds import rules_for
from kvgauge.engines.llamacpp.cells import context_sizes
from kvgauge.engines.llamacpp.flags import parse
from kvgauge.engines.llamacpp.settings import LlamaSettings, settings_of
from kvgauge.engines.setup import Setup
from kvgauge.layers import Role
from kvgauge.values import dataclass
from kvgauge.workload import Workload

_STATES = frozenset({Role.RECURRENT, Role.CONV, Role.COMPRESSOR})
#: Settings that flags state of a type -> name of the option.
_TYPES = {"k_type": "k_dtype", "v_type": "v_dtype"}


@dataclass(frozen=True, slots=True)
class LlamaLoad:
    """A load as llama.cpp is told of it.

    Args:
        settings: of the launch.
        one: the same for one sequence; ``settings`` where the server's own slots share what one may use.
        is_reserved: the context is told apart from the load, so the load does not change the allocation.
    """

    settings: LlamaSettings
    one: LlamaSettings
    is_reserved: bool

    @property
    def is_pooled(self) -> bool:
        """Whether several sequences share one stream of cells."""
        return self.settings.unified and self.one is not self.settings


def load_of(
    workload: Workload, dtypes: RequestedDtypes, *, version: str | None, args: str, setup: Setup
) -> LlamaLoad:
    """Return the settings that options and flags make; the flags win.

    Raises:
        InvalidRequestError: a flag or value that llama.cpp does not take.
        FeatureUnsupportedError: a type or a number of sequences that it does not serve.
    """
    tokens = max(1, setup.reserve_tokens or workload.context_tokens)
    settings = settings_of(
        args,
        context_tokens=tokens,
        sequences=None if setup.default_sequences else workload.sequences,
        k_type=dtypes.k,
        v_type=dtypes.v,
        draft_tokens=workload.mtp or None,
        num_gpus=setup.parallelism.num_gpus,
        build=rules_for(version),
    )
    settings = replace(
        settings, host_matrix_bytes=setup.host_matrix_bytes, host_output_bytes=setup.host_output_bytes
    )
    if not settings.context_tokens:  # -c 0: what the model's own limit leaves to one sequence is reserved
        streams = 1 if settings.unified else settings.sequences
        settings = replace(settings, context_tokens=tokens * streams)
    has_own_slots = setup.default_sequences and settings.sequences != workload.sequences
    one = settings
    if settings.sequences > 1 and not has_own_slots:
        one = replace(settings, sequences=1, context_tokens=tokens)
    return LlamaLoad(settings, one, tokens != max(1, workload.context_tokens))


def told_by(
    args: str, *, version: str | None, sequences: int | None, limit_tokens: int | None = None
) -> Mapping[str, object]:
    """Return what flags say of options.

    Args:
        sequences: what an option says, which a context over all slots is divided by.
        limit_tokens: of the model, which ``-c 0`` takes.
    """
    stated = parse(args)
    settings = settings_of(args, sequences=sequences, build=rules_for(version))
    found: dict[str, object] = {}
    for name, option in _TYPES.items():
        if name in stated or "kv_type" in stated:
            found[option] = getattr(settings, name)
    if "sequences" in stated and settings.sequences == stated["sequences"]:
        found["sequences"] = settings.sequences
    if {"context", "context_each", "slot_limit"} & set(stated):
        if settings.context_tokens or limit_tokens:
            own = slot_tokens(settings, context_sizes(settings, limit_tokens).cells)
            found["max_model_len"] = min(own, settings.slot_tokens or own)
        else:
            found["max_model_len"] = "max"
    if settings.mtp:
        found["mtp"] = max(1, settings.rollback_tokens)
    if settings.num_gpus > 1:
        found |= {"tp": 1, "pp": settings.num_gpus}
    return found


def slot_tokens(settings: LlamaSettings, cells: int) -> int:
    """Return the tokens of one slot: all cells of its stream; before slots shared them, an even part.

    Args:
        cells: of one stream.
    """
    is_divided = settings.unified and not settings.build.unified
    return cells // settings.sequences if is_divided else cells


def cache_types(settings: LlamaSettings, architecture: ModelArchitecture) -> RequestedDtypes:
    """Return the formats of the cache, canonical; states are fp32, an index is kept as K is."""
    roles = {stream.role for group in architecture.groups for stream in group.streams}
    return RequestedDtypes(
        settings.k_type,
        settings.v_type,
        "f32" if roles & _STATES else None,
        settings.k_type if Role.INDEX in roles else None,
    )
