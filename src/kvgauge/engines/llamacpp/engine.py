"""llama.cpp as an engine of the commands: options and flags become a launch, plans become answers."""

from __future__ import annotations

from collections.abc import Mapping

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.engines.base import Demand, Offload, Placed, PlainEngine, RequestedDtypes
from kvgauge.engines.llamacpp.builds import NEWEST, build_notes, rules_for
from kvgauge.engines.llamacpp.capacity import LlamaCapacity
from kvgauge.engines.llamacpp.demand import device_stages, group_demands
from kvgauge.engines.llamacpp.load import LlamaLoad, cache_types, load_of, slot_tokens, told_by
from kvgauge.engines.llamacpp.placement import HOST, layer_placement
from kvgauge.engines.llamacpp.plan import LlamaPlan, plan
from kvgauge.engines.llamacpp.settings import LlamaSettings, settings_of
from kvgauge.engines.setup import PLAIN_SETUP, Setup
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.workload import Parallelism, Workload


class LlamaEngine(PlainEngine):
    """llama.cpp, as llama-server starts it."""

    name = "llama.cpp"
    reads_gguf = True

    def resolve_version(self, version: str | None) -> tuple[str | None, tuple[Note, ...]]:
        """Return the version, and a note where another build's rules stand in.

        Raises:
            InvalidRequestError: not a version.
            FeatureUnsupportedError: older than what is known.
        """
        if version is None:
            return NEWEST.name, ()
        _ = rules_for(version)
        return version, build_notes(version)

    def told(self, args: str) -> Mapping[str, object]:
        """Return what the flags say of options."""
        return told_by(args, version=None, sequences=None)

    def told_beside(
        self, args: str, version: str | None, sequences: int | None, limit_tokens: int | None
    ) -> Mapping[str, object]:
        """Return what the flags say of options; a context over all slots is divided by their number."""
        return told_by(args, version=version, sequences=sequences, limit_tokens=limit_tokens)

    def ranks(self, spread: Parallelism) -> Parallelism:
        """Return the devices as stages: llama.cpp deals out whole layers.

        Raises:
            FeatureUnsupportedError: ranks of a kind that it does not have.
        """
        for word, ranks in (("dp", spread.data), ("ep", spread.expert), ("dcp", spread.context)):
            if ranks > 1:
                raise FeatureUnsupportedError(
                    f"llama.cpp has no --{word}: its devices share the layers out",
                    hint="--pp 2 means two devices, as -ts does among its own flags",
                    field=word,
                )
        return Parallelism(pipeline=spread.tensor * spread.pipeline)

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
        """Return what the context of this launch allocates.

        Raises:
            InvalidRequestError: a flag is malformed.
            FeatureUnsupportedError: llama.cpp would not start, or abort.
        """
        _no_shared_prefix(workload)
        load = load_of(workload, dtypes, version=version, args=args, setup=setup)
        found = plan(architecture, load.settings)
        groups = (*architecture.groups, *(architecture.mtp_groups if workload.mtp else ()))
        is_empty = not workload.context_tokens and not load.is_reserved
        return Demand(
            group_demands(load, architecture, groups, is_empty=is_empty),
            cache_types(load.settings, architecture),
            (*found.notes, *_shared_cells(load, workload, found)),
            details_of(found, load.settings),
            stages=_stages(architecture, load.settings, setup.parallelism.pipeline),
            placed=placed(found, without_cells=is_empty),
            in_cells=True,
        )

    def offload(self, args: str, version: str | None, setup: Setup) -> Offload:
        """Return which blocks go to the devices, and each one's share."""
        devices = setup.parallelism.num_gpus
        return _offload(settings_of(args, num_gpus=devices, build=rules_for(version)), devices)

    def capacity(
        self,
        architecture: ModelArchitecture,
        workload: Workload,
        dtypes: RequestedDtypes,
        *,
        version: str | None = None,
        args: str = "",
        setup: Setup = PLAIN_SETUP,
    ) -> LlamaCapacity:
        """Return what the bytes for caches and states hold under this load.

        Raises:
            InvalidRequestError: a flag is malformed.
            FeatureUnsupportedError: llama.cpp would not start, or abort.
        """
        _no_shared_prefix(workload)

        def of(changed: Workload, own: Setup) -> LlamaLoad:
            return load_of(changed, dtypes, version=version, args=args, setup=own)

        limit = architecture.context_limit_tokens
        sequences = None if setup.default_sequences else workload.sequences
        told = told_by(args, version=version, sequences=sequences, limit_tokens=limit)
        return LlamaCapacity(architecture, workload, setup, args, told, of)


def details_of(found: LlamaPlan, settings: LlamaSettings) -> dict[str, object]:
    """Return the engine's own figures."""
    return {
        **found.details(),
        "n_ctx_seq": slot_tokens(settings, found.cells),
        "slots": found.sequences,
        "micro_batch_tokens": found.micro_batch_tokens,
        "prompt_cache_bytes": found.prompt_cache_bytes,
        "checkpoint_bytes": found.checkpoint_bytes,
    }


def placed(found: LlamaPlan, *, without_cells: bool = False) -> tuple[Placed, ...]:
    """Return the allocations of a plan; what lies on the host stands with the first rank."""
    return tuple(
        Placed(
            part.name,
            part.kind,
            0 if part.place == HOST else int(part.place.removeprefix("gpu:")),
            part.place,
            part.bytes,
            part.low,
            part.high,
            part.grade,
            part.because,
        )
        for part in found.allocations
        if not (without_cells and part.kind == "cache")
    )


def _shared_cells(load: LlamaLoad, workload: Workload, found: LlamaPlan) -> tuple[Note, ...]:
    """Say that sequences share cells that not all of them can fill."""
    if not load.is_pooled or workload.context_tokens * workload.sequences <= found.n_ctx:
        return ()
    cells, sequences = f"{found.n_ctx:,}", f"{workload.sequences:,}"
    text = f"the {sequences} sequences share {cells} cells: together they hold no more tokens than that"
    return (Note("llamacpp_cells_shared", "info", text, (("sequences", sequences), ("cells", cells))),)


def _no_shared_prefix(workload: Workload) -> None:
    if workload.shared_prefix_tokens:
        raise FeatureUnsupportedError(
            "llama.cpp allocates the cells of every sequence ahead, it shares no prefix",
            hint="leave --shared-prefix out",
            field="shared-prefix",
        )


def _stages(architecture: ModelArchitecture, settings: LlamaSettings, devices: int) -> tuple[range, ...]:
    if devices == 1:
        return ()
    extra = len({layer.index for layer in architecture.mtp_layers})
    placement = layer_placement(settings, architecture.num_layers + extra)
    return device_stages(placement, architecture.num_layers, devices)


def _offload(settings: LlamaSettings, ranks: int) -> Offload:
    """Return where weights go, with a share for each rank; without devices, to the host."""
    used = settings.num_gpus if settings.split_mode != "none" else min(1, settings.num_gpus)
    told = settings.tensor_split[:used]
    shares = told if sum(told) else (1.0,) * used
    layers = settings.gpu_layers if used else 0
    dealt = (*shares, *(0.0,) * (ranks - len(shares))) if used else (1.0,) * ranks
    return Offload(layers, dealt, settings.cpu_moe_layers, settings.overrides)


ENGINE = LlamaEngine()
__all__ = ["ENGINE", "LlamaEngine", "details_of", "placed"]
