"""Write an answer: as the JSON object of the contract, or as Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvgauge.comparison import Comparison
    from kvgauge.derivation import Explanation
    from kvgauge.fit_result import FitResult
    from kvgauge.planning.result import PlanResult
    from kvgauge.render.sheet import Sheet
    from kvgauge.render.view import View
    from kvgauge.size_result import SizeResult
    from kvgauge.verification.answer import VerifyResult
    from kvgauge.web.asking import Speech

JSON_TYPE, MARKDOWN_TYPE = "application/json", "text/markdown; charset=utf-8"
_COLUMNS = 100


@dataclass(frozen=True, slots=True)
class Told:
    """An answer as it is sent."""

    body: bytes
    media_type: str = JSON_TYPE


def as_json(answer: Mapping[str, object]) -> bytes:
    """Return an object as JSON."""
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace")


def told(answer: Mapping[str, object]) -> Told:
    """Return an object that is told as JSON alone."""
    return Told(as_json(answer))


def tell_size(result: SizeResult, speech: Speech) -> Told:
    """Write a size."""
    from kvgauge.render.answer_json import size_json  # noqa: PLC0415 - with the first answer
    from kvgauge.render.sheet import size_sheet  # noqa: PLC0415

    return _tell(speech, lambda: size_json(result, speech.texts), lambda view: size_sheet(result, view))


def tell_explanation(result: Explanation, speech: Speech) -> Told:
    """Write an explanation."""
    from kvgauge.render.sheet import explanation_sheet  # noqa: PLC0415 - with the first answer

    return _tell(speech, result.to_dict, lambda view: explanation_sheet(result, view))


def tell_comparison(result: Comparison, speech: Speech) -> Told:
    """Write a comparison."""
    from kvgauge.render.answer_json import comparison_json  # noqa: PLC0415 - with the first answer
    from kvgauge.render.sheet import comparison_sheet  # noqa: PLC0415

    return _tell(
        speech, lambda: comparison_json(result, speech.texts), lambda view: comparison_sheet(result, view)
    )


def tell_fit(result: FitResult, speech: Speech) -> Told:
    """Write whether a load fits."""
    from kvgauge.render.answer_json import fit_json  # noqa: PLC0415 - with the first answer
    from kvgauge.render.fit_facts import fit_sheet  # noqa: PLC0415

    return _tell(
        speech,
        lambda: fit_json(result, speech.texts, speech.units),
        lambda view: fit_sheet(result, view),
    )


def tell_plan(result: PlanResult, speech: Speech) -> Told:
    """Write a plan."""
    from kvgauge.render.answer_json import plan_json  # noqa: PLC0415 - with the first answer
    from kvgauge.render.plan_facts import plan_sheet  # noqa: PLC0415

    return _tell(
        speech,
        lambda: plan_json(result, speech.texts, speech.units),
        lambda view: plan_sheet(result, view),
    )


def tell_verified(result: VerifyResult, speech: Speech) -> Told:
    """Write what a log was held against."""
    from kvgauge.render.answer_json import verify_json  # noqa: PLC0415 - with the first answer
    from kvgauge.render.verify import verify_sheet  # noqa: PLC0415

    return _tell(speech, lambda: verify_json(result, speech.texts), lambda view: verify_sheet(result, view))


def _tell(speech: Speech, answer: Callable[[], Mapping[str, object]], sheet: Callable[[View], Sheet]) -> Told:
    if speech.format == "json":
        return told(answer())
    from kvgauge.render.markdown import to_markdown  # noqa: PLC0415 - few ask for it
    from kvgauge.render.view import View  # noqa: PLC0415

    text = to_markdown(sheet(View(speech.texts, speech.units, _COLUMNS)))
    return Told(text.encode("utf-8", "replace"), MARKDOWN_TYPE)
