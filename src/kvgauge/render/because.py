"""Why a figure of a log is as it is, in the language of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvgauge.render.messages import Texts
    from kvgauge.verification.answer import Line


def because_text(line: Line, texts: Texts) -> str:
    """Return the words of a line: the setting that would explain it, else how its prediction follows."""
    if line.setting:
        return texts("verify_agrees_with", setting=line.setting)
    return texts.error(line.because)
