"""A plan for a model that the engine does not load is refused, naming engines that do."""

from __future__ import annotations

from kvgauge.engine_models import KNOWN_ENGINES, classes_of, is_loaded
from kvgauge.engines import releases
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.preparing import Prepared


def refuse_unloaded(prepared: Prepared) -> None:
    """Refuse a model that the version surely does not load; the hint names engines that have its class.

    Raises:
        FeatureUnsupportedError: it does not.
    """
    if is_loaded(prepared.notes):
        return
    request, classes = prepared.request, classes_of(prepared.model.raw.config)
    others = [
        engine
        for engine in KNOWN_ENGINES
        if engine != request.engine and any(releases.loads(engine, name, None) for name in classes)
    ]
    found = releases.span_words(releases.model_span(request.engine, classes[0]))
    hint = f"of the engines known here, these do: {', '.join(others)}" if others else found
    raise FeatureUnsupportedError(
        f"{request.engine} {request.engine_version} does not load {classes[0]}", hint=hint, field="engine"
    )


__all__ = ["refuse_unloaded"]
