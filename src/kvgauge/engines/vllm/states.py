"""State layers in vLLM: shapes of one request's state on one rank, and the dtype of each part.

Sources: ``model_executor/layers/mamba/mamba_utils.py`` (shapes, dtypes) and
``model_executor/models/config.py`` of vLLM 0.33.0.
"""

from __future__ import annotations

from kvgauge.architecture import ModelArchitecture
from kvgauge.dtypes import row_bytes
from kvgauge.engines.base import rank_vectors
from kvgauge.engines.vllm.cache_spec import CacheSpec, SpecKind
from kvgauge.engines.vllm.kv_dtypes import model_dtype
from kvgauge.engines.vllm.settings import VllmSettings
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.layers import LayerCache, Mechanism, Role

#: Recurrences that vLLM runs; whether a drafted token adds a column to their convolution.
_KNOWN = {
    Mechanism.MAMBA1: False,
    Mechanism.MAMBA2: True,
    Mechanism.GATED_DELTA_NET: True,
    Mechanism.KIMI_DELTA: True,
    Mechanism.SHORT_CONVOLUTION: True,
    Mechanism.LIGHTNING: False,
}
#: Types whose config is asked for the dtype of the state; the default where it is silent.
_ASKED_TYPES = {
    "nemotron_h": "f32",
    "nemotron_h_puzzle": "f32",
    "qwen3_5_text": None,
    "qwen3_5_moe_text": None,
}


def state_spec(architecture: ModelArchitecture, layer: LayerCache, settings: VllmSettings) -> CacheSpec:
    """Return the spec of one state layer: its block and padding are set when hybrids are aligned.

    Raises:
        FeatureUnsupportedError: a recurrence that vLLM does not run, or ranks that do not divide it.
    """
    if layer.mechanism not in _KNOWN:
        raise FeatureUnsupportedError(
            f"vllm keeps no state of the kind {layer.mechanism.value}",
            hint="--engine theory says what must be kept",
            field="engine",
        )
    conv = settings.conv_dtype or model_dtype(architecture, settings.dtype)
    state = _state_dtype(architecture, layer, settings, conv)
    drafted = settings.speculation.tokens if _KNOWN[layer.mechanism] else 0
    page = 0
    shape: list[tuple[str, int, str]] = []
    for stream in layer.streams:
        dtype = state if stream.role is Role.RECURRENT else conv
        columns = stream.columns + drafted if stream.role is Role.CONV else stream.columns
        vectors = rank_vectors(stream.vectors, stream.shard, settings.tensor, stream.role)
        page += row_bytes(dtype, stream.role, vectors, stream.width, columns)
        shape.append((stream.role.value, vectors * stream.width * columns, dtype))
    return CacheSpec(layer.index, SpecKind.RECURRENT, 0, page, 0, shape=(layer.mechanism.value, *shape))


def state_dtypes(architecture: ModelArchitecture, settings: VllmSettings) -> str | None:
    """Return the dtype of recurrent state, canonical; None where the model has none."""
    conv = settings.conv_dtype or model_dtype(architecture, settings.dtype)
    for layer in architecture.layers:
        if any(stream.role is Role.RECURRENT for stream in layer.streams):
            return _state_dtype(architecture, layer, settings, conv)
    return None


def _state_dtype(
    architecture: ModelArchitecture, layer: LayerCache, settings: VllmSettings, conv: str
) -> str:
    if settings.state_dtype is not None:
        return settings.state_dtype
    if layer.mechanism is Mechanism.KIMI_DELTA:
        return "f32"
    if architecture.model_type in _ASKED_TYPES:
        declared = next((s.declared_dtype for s in layer.streams if s.role is Role.RECURRENT), None)
        return declared or _ASKED_TYPES[architecture.model_type] or conv
    return conv
