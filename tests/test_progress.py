"""The line that counts weight files: for a person at a terminal who has waited a second, and for nobody else."""

from __future__ import annotations

import io
import sys

import pytest

from kvgauge.cli import progress
from kvgauge.cli.progress import ProgressLine
from kvgauge.render.messages import Texts


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_person_sees_how_far_it_is_and_then_nothing(monkeypatch, clock):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    line = ProgressLine(Texts("en"))
    line(1, 160)
    assert screen.getvalue() == ""  # not worth a word yet
    clock[0] += 1.5
    line(80, 160)
    assert screen.getvalue().endswith("reading headers of weight files: 80 of 160")
    line(160, 160)
    assert screen.getvalue().endswith("\r")
    assert screen.getvalue().rsplit("\r", 2)[1].strip() == ""


def test_a_pipe_sees_nothing(monkeypatch, clock):
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    line = ProgressLine(Texts("zh"))
    clock[0] += 10
    line(80, 160)
    assert pipe.getvalue() == ""
