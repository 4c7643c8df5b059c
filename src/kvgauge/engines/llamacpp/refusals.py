"""What llama.cpp does not start with (``llama_init_from_model``), and where it aborts."""

from __future__ import annotations

from kvgauge.architecture import ModelArchitecture
from kvgauge.dtypes import get_format
from kvgauge.engines.llamacpp.cells import ContextSizes
from kvgauge.engines.llamacpp.settings import LlamaSettings
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.layers import LayerCache, Mechanism, Role

_ONE_ROW = frozenset({Mechanism.LATENT_ATTENTION, Mechanism.COMPRESSED_ATTENTION})
#: Their fused QKV rows can't be rotated for quantised types in several streams
#: (``ggml_backend_sched_split_graph``).
_FUSED_ROWS = frozenset({"phi3"})
#: Heads of a multiple of this are rotated before they are quantised.
_ROTATED = 64

#: Their graphs reshape a micro-batch into equal parts a sequence (``ggml_can_repeat`` fails otherwise).
_EVEN_PARTS = frozenset({"kimi-linear", "minimax-01"})


def check_types(architecture: ModelArchitecture, settings: LlamaSettings) -> None:
    """Refuse cache types that do not go together, or with the model's heads.

    Raises:
        FeatureUnsupportedError: llama.cpp would not start; names the reason.
    """
    k, v = settings.k_type, settings.v_type
    quantised = {name for name in (k, v) if get_format(name).row_block > 1}
    if v in quantised and settings.flash == "off":
        raise FeatureUnsupportedError(
            f"llama.cpp keeps V in {v} with flash attention only",
            hint="-fa on, or -ctv f16",
            field="v_dtype",
        )
    if k != v and any(layer.mechanism in _ONE_ROW for layer in architecture.layers):
        raise FeatureUnsupportedError(
            f"{architecture.model_type} keeps K and V as one row, so -ctk {k} and -ctv {v} must be one type",
            hint=f"-ctk {k} -ctv {k}",
            field="v_dtype",
        )
    if settings.flash != "off":
        for layer in architecture.layers:
            _check_blocks(layer, k, v)


def _check_blocks(layer: LayerCache, k: str, v: str) -> None:
    """Refuse a head that is no whole number of blocks; a latent or record is one head."""
    for stream in layer.streams:
        if stream.role in (Role.KEY, Role.VALUE):
            dtype, width = (k if stream.role is Role.KEY else v), stream.width
        elif stream.role in (Role.LATENT, Role.RECORD):
            dtype, width = k, sum(s.elements for s in layer.streams if s.role is not Role.COMPRESSOR)
        else:
            continue
        block = get_format(dtype).row_block
        if block > 1 and width % block:
            raise FeatureUnsupportedError(
                f"{dtype} packs {block} elements a block, the heads of layer {layer.index} have {width}",
                hint="use a type whose block divides the head: q8_0 (32), f16 (1)",
                field="kv_dtype",
            )


def check_streams(architecture: ModelArchitecture, settings: LlamaSettings, sizes: ContextSizes) -> None:
    """Refuse streams that the model's graph aborts on in v0.5.0.

    Raises:
        FeatureUnsupportedError: sequences need one stream here.
    """
    if sizes.streams == 1:
        return
    name = architecture.model_type
    if name in _FUSED_ROWS and _rotates(architecture, settings):
        raise FeatureUnsupportedError(
            f"llama.cpp aborts on {name} with {sizes.streams} streams of a {settings.k_type} cache",
            hint="add --kv-unified, or -ctk f16 -ctv f16",
            field="sequences",
        )
    uneven = name in _EVEN_PARTS and sizes.micro_batch_tokens % sizes.streams
    if architecture.is_encoder_decoder or uneven:
        raise FeatureUnsupportedError(
            f"llama.cpp aborts on {name} with {sizes.streams} streams of "
            f"{sizes.micro_batch_tokens} tokens a micro-batch",
            hint="add --kv-unified, so that sequences share one stream",
            field="sequences",
        )


def _rotates(architecture: ModelArchitecture, settings: LlamaSettings) -> bool:
    """Whether heads of K and V are rotated, which spreads outliers of quantised rows."""
    quantised = min(get_format(settings.k_type).row_block, get_format(settings.v_type).row_block) > 1
    widths = {s.width for c in architecture.layers for s in c.streams if s.role is Role.KEY}
    return quantised and len(widths) == 1 and not next(iter(widths)) % _ROTATED
