"""The terms of the fullest rank give what that rank holds, at every context."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvgauge
from kvgauge.rank_terms import rank_terms

CASES = [
    ("deepseek-ai/DeepSeek-V3.2", {"tp": 8}),
    ("Qwen/Qwen3.5-35B-A3B", {"tp": 4}),
    ("google/gemma-3-27b-it", {"tp": 2, "pp": 3}),
    ("openai/gpt-oss-120b", {"tp": 2, "dp": 2}),
    ("Qwen/Qwen3-8B", {"tp": 16}),
]


@pytest.mark.parametrize("engine", ["theory", "vllm", "sglang"])
@pytest.mark.parametrize(("model", "split"), CASES, ids=[model for model, _ in CASES])
@settings(max_examples=8, deadline=None)
@given(context=st.integers(1, 200_000), other=st.integers(1, 200_000), sequences=st.integers(1, 9))
def test_terms_hold_what_the_fullest_rank_holds(model, split, engine, context, other, sequences):
    answer = kvgauge.size(model, context=context, sequences=sequences, engine=engine, **split).cache
    terms = rank_terms(answer)
    assert terms is not None
    many = -(-sequences // answer.parallelism.data)
    assert many * terms.bytes_at(context) == answer.per_rank_bytes[terms.rank] == max(answer.per_rank_bytes)
    if engine == "theory":  # whose layers keep the same rows whatever the load
        at_other = kvgauge.size(model, context=other, sequences=sequences, engine=engine, **split).cache
        assert many * terms.bytes_at(other) == at_other.per_rank_bytes[terms.rank]


def test_no_terms_where_rows_are_shared_or_divided():
    shared = kvgauge.size("Qwen/Qwen3-8B", sequences=4, shared_prefix=1024).cache
    divided = kvgauge.size("deepseek-ai/DeepSeek-V3", tp=8, dcp=8).cache
    assert rank_terms(shared) is None
    assert rank_terms(divided) is None


def test_the_json_carries_them():
    found = kvgauge.size("Qwen/Qwen3-8B", context=1000, tp=2).to_dict()["cache"]["rank_terms"]
    assert found == {
        "rank": 0,
        "fixed_bytes": 0,
        "terms": [
            {
                "group": "full",
                "from_tokens": 0,
                "to_tokens": None,
                "step_tokens": 1,
                "rounding": "floor",
                "bytes_per_step": 73728,
            }
        ],
    }
