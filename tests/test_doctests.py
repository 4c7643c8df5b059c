"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import kvgauge

NAMES = sorted(m.name for m in pkgutil.walk_packages(kvgauge.__path__, "kvgauge."))


@pytest.mark.parametrize("name", NAMES)
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_package_example():
    assert doctest.testmod(kvgauge).attempted > 0
