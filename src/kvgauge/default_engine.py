"""The engine of a request that names none: by the model's file, else by what runs on the cards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvgauge.architecture import Note
from kvgauge.engine_cards import default_engine_on
from kvgauge.engines import ENGINES
from kvgauge.readers import is_gguf

if TYPE_CHECKING:
    from kvgauge.cards import NamedCard
    from kvgauge.models import Model

GGUF_ENGINE = "llama.cpp"


def default_engine(model: Model, cards: Sequence[NamedCard] = ()) -> tuple[str, tuple[Note, ...]]:
    """Return the engine of a model that none is named for, and the note that says so.

    Args:
        cards: those that are named.
    """
    makes = [card.make for card in cards]
    usual = default_engine_on(())
    name = GGUF_ENGINE if is_gguf(model.raw.config) else default_engine_on(makes)
    versions = ENGINES[name].versions if name in ENGINES else ()
    shown = f"{name} {versions[-1]}" if versions else name
    if is_gguf(model.raw.config) or name == usual:
        text = f"no engine was named; {shown} is taken"
        return name, (Note("engine_default", "info", text, (("engine", shown),)),)
    other = next(card.card.name for card in cards if default_engine_on((card.make,)) != usual)
    text = f"no engine was named; {shown} is taken, which runs on {other}"
    return name, (Note("engine_default_card", "info", text, (("engine", shown), ("name", other))),)


__all__ = ["default_engine"]
