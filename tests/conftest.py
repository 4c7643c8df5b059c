"""Shared fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

import kvgauge
from support import SHARED

settings.register_profile("ci", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with more records of the same kinds; tests that widen with it are skipped without."""
    if not SHARED.is_dir():
        pytest.skip(f"{SHARED.name}/ is not beside the checkout: the wider records are left out")
    return SHARED


@pytest.fixture(scope="session")
def qwen3_8b() -> kvgauge.Model:
    return kvgauge.load("Qwen/Qwen3-8B")
