"""``learn pipeline``: a decoder from text to the next token, with the shapes and bytes of one model.

What is computed here is drawn by ``render.learn_pipeline``: where the cache, tiling and paging act.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from kvgauge.architecture import Note
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.lab.activations import LayerLife, learn_activations
from kvgauge.lab.mixers import Attention
from kvgauge.models import Model, ModelLike
from kvgauge.weights import Part

#: Tokens of a page as vLLM's smallest is, on most cards.
PAGE_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Stage:
    """What stands at one place of the pipeline in a decode step of one sequence.

    Args:
        code: its name, never translated.
        dimensions: elements along each axis.
    """

    code: str
    dimensions: tuple[int, ...]
    size_bytes: int

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {"code": self.code, "dimensions": list(self.dimensions), "bytes": self.size_bytes}


@dataclass(frozen=True, slots=True)
class PipelineAnswer:
    """The answer of ``learn pipeline``.

    Args:
        num_layers: layers of the drawn shape, of all layers of the model.
        stages: by code.
        layer_cache_bytes: what one drawn layer keeps of the context; ``cache_bytes`` all of them.
        page_bytes: one page of one layer.
    """

    model: Model
    tokens: int
    num_layers: int
    vocabulary: int
    stages: dict[str, Stage]
    layer_cache_bytes: int
    cache_bytes: int
    num_pages: int
    page_bytes: int
    notes: tuple[Note, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the ``kvgauge.learn_pipeline/1`` object."""
        return {
            "schema": "kvgauge.learn_pipeline/1",
            "model": self.model.to_dict(),
            "context_tokens": self.tokens,
            "num_layers": self.num_layers,
            "vocabulary": self.vocabulary,
            "stages": [stage.to_dict() for stage in self.stages.values()],
            "layer_cache_bytes": self.layer_cache_bytes,
            "cache_bytes": self.cache_bytes,
            "page_tokens": PAGE_TOKENS,
            "num_pages": self.num_pages,
            "page_bytes": self.page_bytes,
            "notes": [note.to_dict() for note in self.notes],
        }


def learn_pipeline(
    model: ModelLike, *, tokens: int | str | None = None, dtype: str | None = None, offline: bool = False
) -> PipelineAnswer:
    """Return what one decode step of a model makes, place by place, and what the cache holds by then.

    Layers of the shape that most layers have are drawn; a note says which others there are.

    Raises:
        KvgaugeError: as ``learn activations``.

    >>> answer = learn_pipeline("Qwen/Qwen3-8B", tokens="32k")
    >>> answer.stages["scores"].dimensions, answer.cache_bytes
    ((32, 1, 32768), 4831838208)
    """
    lives = learn_activations(model, tokens=tokens, dtype=dtype, offline=offline)
    drawable = [group for group in lives.groups if _is_drawable(group)]
    if not drawable:
        raise FeatureUnsupportedError(
            f"none of the {lives.model.architecture.num_layers} layers is plain attention with an FFN",
            hint="kvgauge learn activations shows layers of other kinds",
        )
    drawn = max(drawable, key=lambda group: len(group.indices))
    row = _row_bytes(drawn, lives.element_bytes)
    kept = drawn.cached_bytes // row
    return PipelineAnswer(
        lives.model,
        lives.tokens,
        len(drawn.indices),
        _vocabulary(lives.model),
        _stages(drawn, kept, lives.element_bytes, _vocabulary(lives.model)),
        drawn.cached_bytes,
        sum(len(group.indices) * group.cached_bytes for group in lives.groups),
        -(-kept // PAGE_TOKENS),
        PAGE_TOKENS * row,
        (*lives.notes, *_others(lives.groups, drawn)),
    )


def _vocabulary(model: Model) -> int:
    stored = model.weighed.stored
    families = () if stored is None else stored.families
    return next((each.family.shape[0] for each in families if each.family.part is Part.EMBEDDING), 0)


def _is_drawable(group: LayerLife) -> bool:
    """Whether a layer is attention that keeps rows of its own, with an FFN behind it."""
    mixer = group.shape.mixer
    return isinstance(mixer, Attention) and not mixer.is_borrowed and bool(group.shape.ffn)


def _row_bytes(group: LayerLife, element_bytes: int) -> int:
    """Return what one token leaves in a layer."""
    mixer = group.shape.mixer
    assert isinstance(mixer, Attention)  # noqa: S101 - of a drawable layer
    return mixer.kv_heads * (mixer.key_width + mixer.value_width) * element_bytes


def _stages(drawn: LayerLife, kept: int, element_bytes: int, vocabulary: int) -> dict[str, Stage]:
    mixer = drawn.shape.mixer
    assert isinstance(mixer, Attention)  # noqa: S101 - as above
    beside = {
        "logits": (1, vocabulary),
        "cached_keys": (kept, mixer.kv_heads, mixer.key_width),
        "cached_values": (kept, mixer.kv_heads, mixer.value_width),
    }
    made = [Stage(one.life.name, one.dimensions, one.size_bytes) for one in drawn.decode.made]
    rest = [Stage(code, sides, prod(sides) * element_bytes) for code, sides in beside.items()]
    return {stage.code: stage for stage in (*made, *rest)}


def _others(groups: tuple[LayerLife, ...], drawn: LayerLife) -> tuple[Note, ...]:
    rest = sum(len(group.indices) for group in groups) - len(drawn.indices)
    if not rest:
        return ()
    text = f"layers of another shape are not drawn: {rest}; the whole cache has them"
    return (Note("layers_not_drawn", "info", text, (("count", str(rest)),)),)
