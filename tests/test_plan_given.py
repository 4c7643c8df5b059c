"""``plan`` where ranks, flags or a version are given: what is refused, what is said, and that reasons are true."""

from __future__ import annotations

import re
from functools import lru_cache

import pytest

import kvgauge
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError

SMALL, LATENT = "Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-V3.2"


@lru_cache(maxsize=8)
def loaded(name: str = SMALL) -> kvgauge.Model:
    return kvgauge.load(name, offline=True)


def planned(name: str = SMALL, **words: object) -> kvgauge.PlanResult:
    return kvgauge.plan(loaded(name), **words)


def steps(result: kvgauge.PlanResult) -> dict[str, dict[str, object]]:
    return {str(step["code"]): step for step in (step.to_dict() for step in result.decision_path)}


def test_ranks_that_cannot_spread_the_model_are_refused_as_in_fit():
    with pytest.raises(FeatureUnsupportedError) as told:
        kvgauge.fit(loaded(), gpu="H100:8", tp=3)
    for words in ({"gpu": "H100:8", "tp": 3}, {"gpu": "H100", "engine_args": "-tp 3", "engine": "vllm"}):
        with pytest.raises(FeatureUnsupportedError) as refused:
            planned(**words)
        assert str(refused.value) == str(told.value)


@pytest.mark.parametrize("words", [{"tp": 4}, {"tp": 2, "pp": 2}, {"engine": "vllm", "engine_args": "-tp 4"}])
def test_ranks_without_their_gpus_are_refused(words):
    with pytest.raises(InvalidRequestError, match="they make 4, and there are up to 2"):
        planned(gpu="H100:2", **words)


@pytest.mark.parametrize(
    ("words", "count"), [({"pp": 3, "engine": "llama.cpp"}, 3), ({"tp": 2, "pp": 3}, 6), ({"tp": 2}, 2)]
)
def test_so_many_gpus_as_the_ranks_make_are_looked_at(words, count):
    assert planned(gpu="H100", **words).best.num_gpus == count


def test_context_parallel_ranks_alone_leave_the_tensor_ranks_free():
    best = planned(LATENT, gpu="H200:8", dcp=8, sequences=8).best
    assert (best.parallelism.tensor, best.parallelism.context) == (8, 8)


@pytest.mark.parametrize("words", [{"tp": 2}, {"engine": "vllm", "engine_args": "--tensor-parallel-size 2"}])
def test_the_decision_asks_nothing_of_one_gpu_where_ranks_are_given(words):
    held, short = planned(gpu="H100", **words), planned(gpu="H100:8", sequences=400, **words)
    assert not {"weights", "cache", "copies", "one"} & {*steps(held), *steps(short)}
    assert held.options and "choice" in steps(held)
    assert not short.options and steps(short)["given"]["answer"] == "no"


def test_a_no_says_what_is_lacking():
    """Where the need is below what there is, the answer names the flags or the margin."""
    flags = steps(planned(gpu="H100", sequences=8, engine="vllm", engine_args="--max-num-seqs 2"))
    assert "flags allow less" in flags["cache"]["because"]
    for words in ({"gpu": "L4", "sequences": 1}, {"gpu": "H100", "sequences": 12, "kv_dtype": "bf16"}):
        for step in planned(**words).decision_path:
            for note in step.because:
                if note.code == "plan_need" and step.answer.code == "plan_no":
                    assert note.sizes[0] > note.sizes[1], note.message


def test_what_is_to_be_known_of_the_request_is_said():
    said = {note.code for note in planned(gpu="H100", context="64k", engine="vllm@99.0").notes}
    assert "context_beyond_limit" in said
    asked = kvgauge.fit(loaded(), gpu="H100", context="64k", engine="vllm@99.0").notes
    assert said <= {note.code for note in asked}
    assert any(note.code.endswith("version_newer") or "newest known" in note.message for note in asked)
    assert len(said) > 1


def amount(text: str) -> tuple[str, float]:
    found = re.search(r"\(\$([\d,.]+)(/h)?\)", text)
    return (found[2] or "", float(found[1].replace(",", "")))


@pytest.mark.parametrize(
    "words",
    [{}, {"gpu": "L4,A10,RTX 4090", "sequences": 8}, {"gpu": "H100,L4", "top": 3}, {"engine": "llama.cpp"}],
)
def test_next_cheaper_is_cheaper_and_nothing_is_said_untruly(words):
    options = planned(**words).options
    for place, option in enumerate(options):
        for note in option.reasons:
            if note.code == "plan_nothing_cheaper":
                assert place == 0
            elif note.code.startswith("plan_cheaper_") and "($" in note.message:
                unit, price = amount(note.message)
                assert price < (option.price_per_hour if unit else option.purchase_price)
            elif note.code == "plan_no_common_price":
                before = options[place - 1]
                assert (option.price_per_hour is None) is not (before.price_per_hour is None) or (
                    option.price_per_hour is None
                )


@pytest.mark.parametrize("count", [2, 3, 8])
def test_layers_dealt_out_take_no_more_than_they_are_told(count):
    """llama.cpp allocates what it is told: with room to spare on each card, nothing is overdrawn."""
    words = {"engine": "llama.cpp", "gpu": f"H100:{count}", "context": 32768}
    answer = kvgauge.fit(loaded(), **words, pp=count)
    assert min(device.free_bytes for device in answer.devices) > 60 << 30
    assert "memory_overdrawn" not in {note.code for note in answer.notes}
    assert planned(**words, pp=count).best.num_gpus == count


def test_the_weights_told_are_those_that_the_card_holds():
    """llama.cpp keeps the token embeddings on the host."""
    step = planned(gpu="H100", engine="llama.cpp").decision_path[0]
    weights, working, _ = step.because[0].sizes
    answer = kvgauge.fit(loaded(), gpu="H100", engine="llama.cpp")
    assert weights == answer.verdict.weights_bytes
    assert working == answer.verdict.taken_bytes - weights > 0


def test_replicas_on_several_machines_are_started_on_all():
    answer = kvgauge.fit(loaded(LATENT), engine="vllm", gpu="H200:16", tp=8, dp=2, ep=16)
    assert answer.launch_command.endswith("--distributed-executor-backend ray --data-parallel-backend ray")
    again = kvgauge.fit(loaded(LATENT), command=answer.launch_command, gpu="H200:16", context=32768)
    assert again.launch_command == answer.launch_command
    alone = kvgauge.fit(loaded(LATENT), engine="vllm", gpu="H200:8", tp=4, dp=2, ep=8)
    assert "ray" not in alone.launch_command
