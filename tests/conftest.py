"""Shared fixtures."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

import kvgauge
from support import SHARED

# No test reaches a network or the caches of the one who runs it: the hub's settings are read at import, and
# child processes inherit them. Tests of the hub talk to a server on loopback and say so.
os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HOME": tempfile.mkdtemp(prefix="kvgauge-hub-")}
for _name in ("HF_ENDPOINT", "HF_TOKEN", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "MODELSCOPE_ENDPOINT"):
    os.environ.pop(_name, None)
for _name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
    os.environ.pop(_name, None)
    os.environ.pop(_name.lower(), None)

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
