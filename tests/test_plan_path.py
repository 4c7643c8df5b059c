"""The decision of ``plan``: every question that matters, of every engine, with answers that ``fit`` gives too."""

from __future__ import annotations

import re
from functools import lru_cache

import pytest

import kvgauge
from kvgauge.hardware import accelerator, matches
from kvgauge.planning.result import PathStep
from kvgauge.planning.rules import engine_rules
from kvgauge.render.messages import zh

SMALL = "Qwen/Qwen3-8B"
ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp")


@lru_cache(maxsize=8)
def loaded(name: str = SMALL) -> kvgauge.Model:
    return kvgauge.load(name, offline=True)


def path(name: str = SMALL, **words: object) -> dict[str, PathStep]:
    found = kvgauge.plan(loaded(name), **words)
    return {step.question.code.removeprefix("plan_ask_"): step for step in found.decision_path}


def is_option(verdict: kvgauge.FitResult) -> bool:
    found = verdict.verdict
    return found.status == "fits" and found.slack_bytes >= found.available_bytes * 3 / 100


@pytest.mark.parametrize("engine", ENGINES)
def test_every_question_that_matters_is_asked_of_every_engine(engine):
    words = {"gpu": "RTX 4090", "context": 32_768, "sequences": 8, "engine": engine}
    asked = path(**words)
    spread = "layers" if engine == "llama.cpp" else "tensor"
    wanted = [
        "weights", "cache", "copies", "small_cache", "shorter", "scheme", "bigger", spread, "spread_cache",
        "pipeline", "choice",
    ]  # fmt: skip
    assert [code for code in asked if code in wanted] == wanted
    for code, kv in ((spread, None), ("spread_cache", engine_rules(engine).kv_word)):
        count = int(asked[code].answer.message)
        ranks = {"pp" if engine == "llama.cpp" else "tp": count}
        assert is_option(kvgauge.fit(loaded(), num_gpus=count, kv_dtype=kv, **words, **ranks)), code
    assert all(step.because for code, step in asked.items() if code not in ("heads", "shorter"))


def test_copies_hold_the_load_with_the_margin():
    words = {"gpu": "H100", "context": 32_768, "engine": "vllm", "kv_dtype": "bf16"}
    step = path(sequences=16, **words)["copies"]
    held, copies = (
        int(re.search(r"\d+", text)[0]) for text in (step.because[0].message[8:], step.answer.message)
    )
    assert copies == -(-16 // held) == 2
    assert is_option(kvgauge.fit(loaded(), sequences=held, **words))
    assert not is_option(kvgauge.fit(loaded(), sequences=held + 1, **words))


def test_a_share_of_all_is_too_much_not_a_margin_too_small():
    asked = path(gpu="H100", utilization=1, context=4096)
    assert "more than the GPU has: lower its share" in asked["cache"].because[-1].message
    assert not [note for step in asked.values() for note in step.because if "margin" in note.message]


@pytest.mark.parametrize(("gpu", "maker"), [("L4:1", "NVIDIA"), ("MI210:1", "AMD")])
def test_a_bigger_card_is_of_the_same_maker_where_there_is_one(gpu, maker):
    name = path(gpu=gpu, context=32_768, sequences=14)["bigger"].answer.message
    assert accelerator(matches(name)[0]).vendor == maker


def test_what_copies_of_heads_and_state_come_to():
    """Two KV heads: past two ranks the cache per GPU shrinks by the state alone, which all ranks divide."""
    asked = path("Qwen/Qwen3.5-35B-A3B", gpu="H100:8", context=32_768, sequences=8)
    cache = [note.sizes[0] for note in asked["heads"].because[1:]]
    state = [note.sizes[0] for note in asked["state"].because[1:]]
    assert len(cache) == 3
    assert len(state) == 2
    assert state[0] == 8 * state[1]
    theory = kvgauge.size(loaded("Qwen/Qwen3.5-35B-A3B"), context=32_768, sequences=8).cache
    assert state[0] == 8 * theory.fixed_bytes_per_sequence
    keys = theory.total_bytes - state[0]
    assert cache[0] > cache[1] > cache[2] > keys // 2


def test_a_load_that_outgrows_everything_says_what_the_most_gpus_lack():
    step = path("deepseek-ai/DeepSeek-V3", gpu="L4:8", sequences=4)["pipeline"]
    assert re.fullmatch(r"TP8 DCP8: \d+\.\d GiB of 20\.\d GiB on each GPU", step.because[0].message)
    across = path("meta-llama/Llama-3.1-405B-Instruct", gpu="H100", context=32_768, sequences=8)["pipeline"]
    assert across.answer.message.startswith("yes: 2 machines")
    assert across.because[0].message.startswith("TP8 PP2: ")


def test_every_note_of_the_decision_has_its_chinese():
    for engine in ENGINES:
        for step in path(gpu="RTX 4090", context=32_768, sequences=8, engine=engine).values():
            for note in (step.question, step.answer, *step.because):
                assert note.code in zh.NOTES, note.code
