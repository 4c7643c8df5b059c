"""The answer of ``size``: cache, state and weights of a model under a load, and its JSON."""

from __future__ import annotations

from functools import cached_property

from kvgauge.allocations import allocation, cache_allocations
from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.cache import CacheAnswer
from kvgauge.dtypes import display_dtype
from kvgauge.engines.base import RequestedDtypes
from kvgauge.models import Model
from kvgauge.readers import is_gguf
from kvgauge.units import json_number
from kvgauge.values import dataclass
from kvgauge.weight_answer import WeightAnswer
from kvgauge.workload import Parallelism, Workload


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
    weights: WeightAnswer | None = None

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
        """What each rank holds: its weights, then one entry a group of layers."""
        result: list[dict[str, object]] = []
        weights = self.weights
        if weights is not None:
            because = weights.because
            if weights.offload is not None:
                grade = weights.grade if is_gguf(self.model.raw.config) else "assumed"
                for place, held in weights.placement:
                    rank = 0 if place == "host" else int(place.removeprefix("gpu:"))
                    entry = allocation("weights", "weights", rank, held, grade, because)
                    result += [entry | {"place": place}] if held else []
                return [*result, *cache_allocations(self.cache, self.grade)]
            for rank, held in enumerate(weights.per_rank_bytes):
                result.append(allocation("weights", "weights", rank, held, weights.grade, because))
        return [*result, *cache_allocations(self.cache, self.grade)]

    def to_dict(self) -> dict[str, object]:
        """Return the ``kvgauge.size/1`` object."""
        return {
            "schema": "kvgauge.size/1",
            "model": self.model.to_dict(),
            "request": request_dict(self.request, self.cache.demand.dtypes, self.model.architecture),
            "cache": self.cache_dict(),
            "weights": self.weights.to_dict() if self.weights else None,
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
        from kvgauge.rank_terms import rank_terms  # noqa: PLC0415

        answer = self.cache
        theory = self.theory or answer
        fullest = rank_terms(answer)
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
            "rank_terms": None if fullest is None else fullest.to_dict(),
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
_ASSUMING = (
    "inferred", "layer_order_unknown", "engine_version_newer", "block_size_assumed", "drafter_layers_assumed",
    "drafter_priced_assumed", "kv_connector_assumed", "latent_assumed", "nvfp4_workspace_assumed",
    "windows_assumed", "sparse_index_assumed", "states_assumed", "dtype_assumed",
)  # fmt: skip


def request_dict(
    request: Request, dtypes: RequestedDtypes, architecture: ModelArchitecture
) -> dict[str, object]:
    """Return the ``request`` object: the load as it was understood, dtypes resolved."""
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
