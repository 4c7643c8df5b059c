"""What a notebook shows of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvgauge.render.html import to_html
from kvgauge.render.messages import Texts
from kvgauge.render.sheet import comparison_sheet, explanation_sheet, size_sheet
from kvgauge.render.view import View

if TYPE_CHECKING:
    from kvgauge.comparison import Comparison
    from kvgauge.derivation import Explanation
    from kvgauge.fit_result import FitResult
    from kvgauge.planning.result import PlanResult
    from kvgauge.render.messages import Lang
    from kvgauge.size_result import SizeResult

_WIDTH = 120


def _view(lang: Lang = "en") -> View:
    return View(Texts(lang), "gib", _WIDTH)


def size_html(result: SizeResult) -> str:
    """Return the answer of ``size``."""
    return to_html(size_sheet(result, _view()))


def fit_html(result: FitResult) -> str:
    """Return the answer of ``fit``."""
    from kvgauge.render.fit_facts import fit_sheet  # noqa: PLC0415 - one answer is shown

    return to_html(fit_sheet(result, _view()))


def plan_html(result: PlanResult) -> str:
    """Return the answer of ``plan``."""
    from kvgauge.render.plan_facts import plan_sheet  # noqa: PLC0415 - one answer is shown

    return to_html(plan_sheet(result, _view()))


def comparison_html(comparison: Comparison) -> str:
    """Return the answer of ``compare``."""
    return to_html(comparison_sheet(comparison, _view()))


def explanation_html(explanation: Explanation) -> str:
    """Return the answer of ``explain``, in its language."""
    return to_html(explanation_sheet(explanation, _view("zh" if explanation.lang == "zh" else "en")))
