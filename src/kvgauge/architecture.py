"""A model as a list of layer caches: what a reader yields and every engine starts from."""

from __future__ import annotations

from functools import cached_property
from typing import Literal, NamedTuple

from kvgauge.layers import LayerCache, LayerKind, Mechanism, Stream
from kvgauge.values import dataclass

NoteLevel = Literal["info", "warning"]


class Note(NamedTuple):
    """Something the user should know beside the numbers.

    ``values`` fill the placeholders of the translated message; ``message`` is the English text. ``sizes`` are
    the bytes that both show, for a reader who asked for other units.
    """

    code: str
    level: NoteLevel
    message: str
    values: tuple[tuple[str, str], ...] = ()
    sizes: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, str]:
        """Return the JSON object of the contract."""
        return {"code": self.code, "level": self.level, "message": self.message}


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """Layer caches of one shape."""

    name: str
    kind: LayerKind
    mechanism: Mechanism
    streams: tuple[Stream, ...]
    window_tokens: int | None
    indices: tuple[int, ...]
    sources: tuple[str, ...] = ()

    @property
    def num_layers(self) -> int:
        """Number of layers in the group."""
        return len(self.indices)


@dataclass(frozen=True)
class ModelArchitecture:
    """Shapes and facts of one model; no bytes, no engine.

    Args:
        layers: one entry a cache; layers without a cache are listed with kind ``none``.
        mtp_layers: caches of the multi-token-prediction module, one tuple for one speculative step.
        num_layers: decoder blocks of the model, as its config counts them.
        model_dtype: canonical dtype of weights and activations.
        prescribed_kv_dtype: what the checkpoint's quantisation asks for, canonical, or None.
        num_attention_heads: query heads; None where the model has no attention.
        modelopt_kv_dtype: the same as a ModelOpt block asks for it, the one scheme that vLLM obeys unasked.
        encoder_tokens: fixed length of the encoder's output (Whisper: 1500), or None.
        encoder_only: the model keeps no cache by design.
        dimensions: sizes that only an engine's working buffers and defaults depend on, under their names in
            the file: of a GGUF its metadata's, of a config the config's own, dotted where nested; the largest
            where the file lists one a layer.
        block_dimensions: sizes of a GGUF that differ between its blocks, one entry a block, under their names
            in the file; ``feed_forward`` is 0 for a block without one, 1 for a dense one, 2 for experts.
    """

    model_type: str
    architecture: str
    layers: tuple[LayerCache, ...]
    num_layers: int
    model_dtype: str
    mtp_layers: tuple[LayerCache, ...] = ()
    num_attention_heads: int | None = None
    context_limit_tokens: int | None = None
    encoder_tokens: int | None = None
    encoder_only: bool = False
    is_encoder_decoder: bool = False
    prescribed_kv_dtype: str | None = None
    prescribed_by: str = ""
    modelopt_kv_dtype: str | None = None
    fields: tuple[tuple[str, object], ...] = ()
    notes: tuple[Note, ...] = ()
    dimensions: tuple[tuple[str, int], ...] = ()
    block_dimensions: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @cached_property
    def groups(self) -> tuple[LayerGroup, ...]:
        """Layer caches grouped by shape, in order of first appearance."""
        return group_layers(self.layers)

    @cached_property
    def mtp_groups(self) -> tuple[LayerGroup, ...]:
        """The same for the multi-token-prediction module."""
        return group_layers(self.mtp_layers, prefix="mtp_")


def group_layers(layers: tuple[LayerCache, ...], prefix: str = "") -> tuple[LayerGroup, ...]:
    """Group layer caches of equal shape; names are unique and stable."""
    by_shape: dict[tuple[object, ...], list[LayerCache]] = {}
    for layer in layers:
        by_shape.setdefault(layer.shape, []).append(layer)
    groups: list[LayerGroup] = []
    seen: dict[str, int] = {}
    for members in by_shape.values():
        first = members[0]
        base = prefix + first.kind.value
        seen[base] = seen.get(base, 0) + 1
        name = base if seen[base] == 1 else f"{base}_{seen[base]}"
        groups.append(
            LayerGroup(
                name,
                first.kind,
                first.mechanism,
                first.streams,
                first.window_tokens,
                tuple(layer.index for layer in members),
                first.sources,
            )
        )
    return tuple(groups)
