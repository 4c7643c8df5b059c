"""Which engine runs on which card: refused in ``fit`` as in ``plan``, over the whole catalogue."""

from __future__ import annotations

import json
from functools import lru_cache

import pytest

import kvgauge
from kvgauge.data import read_data
from kvgauge.engine_cards import Make, runs_on
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.hardware import all_accelerators
from kvgauge.planning.devices import devices_of
from kvgauge.planning.prices import PriceTable
from kvgauge.planning.rules import engine_rules

ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp")


@lru_cache(maxsize=2)
def loaded() -> kvgauge.Model:
    return kvgauge.load("Qwen/Qwen3-0.6B", offline=True)


@pytest.mark.parametrize(
    ("engine", "card", "runs"),
    [
        ("vllm", "Groq 3 LPX rack", False),
        ("llama.cpp", "WSE-3", False),
        ("tensorrt-llm", "MI300X", False),
        ("tensorrt-llm", "Apple M3 Ultra 96GB", False),
        ("llama.cpp", "TPU v6e", False),
        ("vllm", "P100 PCIe 16GB", False),
        ("sglang", "V100 SXM2 32GB", False),
        ("vllm", "V100 SXM2 32GB", True),
        ("llama.cpp", "P100 PCIe 16GB", True),
        ("llama.cpp", "Apple M3 Ultra 96GB", True),
        ("vllm", "MI300X", True),
        ("tensorrt-llm", "H100", True),
    ],
)
def test_a_card_that_an_engine_does_not_run_on_is_refused(engine, card, runs):
    if runs:
        assert kvgauge.fit(loaded(), engine=engine, gpu=card, context=4096).verdict.fits
        return
    with pytest.raises(FeatureUnsupportedError, match=f"{engine} does not run on") as refused:
        kvgauge.fit(loaded(), engine=engine, gpu=card, context=4096)
    named = [name for name in ENGINES if name in refused.value.hint]
    for name in named:  # what the hint promises holds
        kvgauge.fit(loaded(), engine=name, gpu=card, context=4096)


@pytest.mark.parametrize("engine", ENGINES)
def test_plan_and_fit_agree_over_the_catalogue(engine):
    looked_at = {device.name for device in devices_of("all", None, None, engine_rules(engine), PriceTable())}
    for device in all_accelerators():
        make = Make(device.vendor, device.kind, device.compute_capability)
        if device.name in looked_at:
            assert runs_on(engine, make), device.name
        if not runs_on(engine, make):
            with pytest.raises(FeatureUnsupportedError):
                kvgauge.fit(loaded(), engine=engine, gpu=device.name, context=4096)


def test_a_named_card_that_is_refused_is_told_in_the_decision():
    result = kvgauge.plan(loaded(), engine="tensorrt-llm", gpu="MI300X")
    assert not result.options
    assert "does not run on" in result.decision_path[0].because[0].message


def test_a_card_of_which_only_the_memory_is_known_is_refused_by_no_rule():
    assert all(runs_on(engine, Make()) for engine in ENGINES)


def test_every_rule_has_a_source():
    assert all(
        row["source"] and set(row["engines"]) <= set(ENGINES)
        for row in json.loads(read_data("engine_cards.json"))
    )
