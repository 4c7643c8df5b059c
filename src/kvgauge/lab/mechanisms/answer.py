"""``learn mechanisms``: one layer of each mechanism, then whole patterns of models, run and counted."""

from __future__ import annotations

from dataclasses import dataclass

from kvgauge.architecture import Note
from kvgauge.lab.limits import bounded
from kvgauge.lab.mechanisms.comparison import (
    ARTICLE_MODELS,
    SAMPLES,
    MechanismRow,
    StackRow,
    run_mechanism,
    run_models,
)
from kvgauge.models import ModelLike

#: Tokens that are run: longer than the sample's window, and few enough for whole models.
_LAYER_TOKENS, _MODEL_TOKENS = 32, 8
_DEFAULT_CONTEXT, _MAX_CONTEXT = 32_768, 1 << 30


@dataclass(frozen=True, slots=True)
class MechanismsAnswer:
    """The answer of ``learn mechanisms``."""

    context_tokens: int
    mechanisms: tuple[MechanismRow, ...]
    models: tuple[StackRow, ...]
    notes: tuple[Note, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the ``kvgauge.learn_mechanisms/1`` object."""
        return {
            "schema": "kvgauge.learn_mechanisms/1",
            "request": {"context_tokens": self.context_tokens},
            "mechanisms": [row.to_dict() for row in self.mechanisms],
            "models": [row.to_dict() for row in self.models],
            "notes": [note.to_dict() for note in self.notes],
        }


def learn_mechanisms(
    model: ModelLike | None = None, *, tokens: int | str | None = None, offline: bool = False
) -> MechanismsAnswer:
    """Run the mechanisms, and the pattern of a model or of the article's four.

    Args:
        tokens: the context at which true sizes are given; default 32k.

    Raises:
        KvgaugeError: the model is refused, or has layers that the lab does not run; the tokens are too many.
    """
    context = bounded(tokens, _DEFAULT_CONTEXT, 1, _MAX_CONTEXT, "tokens")
    names = ARTICLE_MODELS if model is None else (model,)
    models = run_models(names, num_tokens=_MODEL_TOKENS, context=context, offline=offline)
    mechanisms = tuple(run_mechanism(shape, _LAYER_TOKENS) for shape in SAMPLES)
    return MechanismsAnswer(context, mechanisms, tuple(models))
