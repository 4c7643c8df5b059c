"""The search for the most that fits: whatever is guessed, the same is found, and soon where the guess is good."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvgauge
from kvgauge.fit_search import largest


@given(st.integers(-2, 2000), st.integers(-2, 2000), st.none() | st.integers(-10, 3000))
def test_the_largest_is_found_from_any_guess(most, edge, near):
    tried = []

    def fits(number):
        assert 1 <= number <= most
        tried.append(number)
        return number <= edge

    assert largest(most, fits, near) == max(0, min(most, edge))
    assert len(tried) == len(set(tried))
    assert len(tried) < 30


@pytest.mark.parametrize("off", [-10, -1, 0, 1, 10])
def test_a_good_guess_saves_most_of_the_search(off):
    tried = []
    assert largest(1 << 30, lambda number: tried.append(number) or number <= 5000, 5000 + off) == 5000
    assert len(tried) < 12


@pytest.mark.parametrize("gpu", ["H100", "RTX 4090", "H200:8"])
@pytest.mark.parametrize("engine", ["vllm", "sglang", "llama.cpp", "tensorrt-llm"])
def test_what_is_found_fits_and_one_more_does_not(gpu, engine):
    load = {"gpu": gpu, "engine": engine, "suggestions": False}
    found = kvgauge.fit("Qwen/Qwen3-8B", context=4096, sequences=4, **load).to_dict()
    most = found["max_sequences"]
    assert most > 0
    if found["max_sequences_limited_by"] != "memory":
        return
    for count, slack in ((most, True), (most + 1, False)):
        answer = kvgauge.fit("Qwen/Qwen3-8B", context=4096, sequences=count, **load).to_dict()
        assert (answer["verdict"]["slack_bytes"] >= 0) is slack
