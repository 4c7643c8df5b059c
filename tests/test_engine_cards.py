"""Which engine runs on which card: refused in ``fit`` as in ``plan``, over the whole catalogue."""

from __future__ import annotations

import json
from functools import lru_cache

import pytest

import kvgauge
from kvgauge.cards import make_of
from kvgauge.data import read_data
from kvgauge.engine_cards import Make, default_engine_on, runs_on
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.hardware import all_accelerators
from kvgauge.planning.devices import devices_of
from kvgauge.planning.prices import PriceTable
from kvgauge.planning.rules import engine_rules

ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp")


#: Cards that an engine runs on through a plugin of others.
THROUGH = {("vllm", "Apple M3 Ultra 96GB")}


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
        ("vllm", "V100 SXM2 32GB", False),
        ("vllm@0.14.0", "V100 SXM2 32GB", True),
        ("vllm", "Radeon RX 6900 XT", False),
        ("vllm", "Radeon RX 7900 XTX", True),
        ("llama.cpp", "Radeon RX 6900 XT", True),
        ("sglang", "Apple M3 Ultra 96GB", False),
        ("vllm", "Apple M3 Ultra 96GB", True),
        ("llama.cpp", "P100 PCIe 16GB", True),
        ("llama.cpp", "Apple M3 Ultra 96GB", True),
        ("vllm", "MI300X", True),
        ("tensorrt-llm", "H100", True),
    ],
)
def test_a_card_that_an_engine_does_not_run_on_is_refused(engine, card, runs):
    if runs:
        fitted = kvgauge.fit(loaded(), engine=engine, gpu=card, context=4096)
        assert fitted.verdict.fits
        is_noted = "engine_through" in {note.code for note in fitted.notes}
        assert is_noted == ((engine, card) in THROUGH)
        return
    with pytest.raises(FeatureUnsupportedError, match=f"{engine} does not run on") as refused:
        kvgauge.fit(loaded(), engine=engine, gpu=card, context=4096)
    named = [name for name in ENGINES if name in refused.value.hint.rpartition("these")[2]]
    for name in named:  # what the hint promises holds
        kvgauge.fit(loaded(), engine=name, gpu=card, context=4096)


@pytest.mark.parametrize("engine", ENGINES)
def test_plan_and_fit_agree_over_the_catalogue(engine):
    looked_at = {device.name for device in devices_of("all", None, None, engine_rules(engine), PriceTable())}
    for device in all_accelerators():
        make = make_of(device)
        if device.name in looked_at:
            assert runs_on(engine, make), device.name
        if not runs_on(engine, make):
            with pytest.raises(FeatureUnsupportedError):
                kvgauge.fit(loaded(), engine=engine, gpu=device.name, context=4096)


def test_a_named_card_that_is_refused_is_told_in_the_decision():
    result = kvgauge.plan(loaded(), engine="tensorrt-llm", gpu="MI300X")
    assert not result.options
    assert "does not run on" in result.decision_path[0].because[0].message


def test_the_engine_that_nobody_names_runs_on_every_card():
    for device in all_accelerators():
        engines = [name for name in ENGINES if runs_on(name, make_of(device))]
        taken = default_engine_on([make_of(device)])
        assert taken in engines or not engines, device.name


@pytest.mark.parametrize(
    ("card", "engine", "code"),
    [
        ("H100", "vllm", "engine_default"),
        ("MI300X", "vllm", "engine_default"),
        ("RX 7900 XTX", "vllm", "engine_default"),
        ("RX 6900 XT", "llama.cpp", "engine_default_card"),
        ("M3 Ultra", "llama.cpp", "engine_default_card"),
        ("P40", "llama.cpp", "engine_default_card"),
        ("TPU v6e", "vllm", "engine_default"),
        ("Trainium2", "vllm", "engine_default"),
    ],
)
def test_fit_and_plan_take_the_same_engine(card, engine, code):
    fitted = kvgauge.fit(loaded(), gpu=card, context=4096)
    planned = kvgauge.plan(loaded(), gpu=card, context=4096)
    assert fitted.request.engine == engine
    assert all(option.fit.request.engine == engine for option in planned.options)
    for answer in (fitted, planned):
        assert code in {note.code for note in answer.notes}


def test_several_cards_get_an_engine_that_runs_on_all():
    planned = kvgauge.plan(loaded(), gpu="M3 Ultra,H100", context=4096)
    assert {option.fit.request.engine for option in planned.options} == {"llama.cpp"}
    assert {"engine_default_card", "gpu_form_assumed"} <= {note.code for note in planned.notes}


def test_a_card_of_which_only_the_memory_is_known_is_refused_by_no_rule():
    assert all(runs_on(engine, Make()) for engine in ENGINES)


def test_every_rule_has_a_source():
    assert all(
        row["source"] and set(row["engines"]) <= set(ENGINES)
        for row in json.loads(read_data("engine_cards.json"))
    )
