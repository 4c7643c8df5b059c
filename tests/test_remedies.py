"""What ``fit`` suggests where a load does not fit: each change applied to the same call has the stated effect."""

from __future__ import annotations

import json
from functools import lru_cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kvgauge
from kvgauge.cli.app import execute
from kvgauge.errors import KvgaugeError
from kvgauge.published_weights import smaller_checkpoints
from kvgauge.remedies.words import ENDS, WHAT
from kvgauge.render.messages import zh
from test_schemas import validate

GIB = 1 << 30
MODELS = (
    "Qwen/Qwen3-8B", "Qwen/Qwen3-32B", "google/gemma-3-27b-it", "Qwen/Qwen3.5-35B-A3B", "openai/gpt-oss-20b",
    "deepseek-ai/DeepSeek-V3.2",
)  # fmt: skip
ENGINES = ("vllm@0.33.0", "vllm@0.19.0", "sglang", "trtllm", "llama.cpp")


@lru_cache(maxsize=64)
def loaded(name: str) -> kvgauge.Model:
    return kvgauge.load(name, offline=True)


def fitted(model: str, **words: object) -> kvgauge.FitResult:
    return kvgauge.fit(loaded(model), **words)


def applied(model: str, words: dict, change: dict) -> kvgauge.FitResult:
    """Return the answer of the same call with a suggestion's change."""
    keywords = {**words, **change}
    return fitted(keywords.pop("model", model), **keywords)


def check(model: str, words: dict, result: kvgauge.FitResult) -> None:
    """Every suggestion says what the same call with its change answers."""
    for found in result.suggestions:
        verdict = applied(model, words, found.change).verdict
        said = (found.fits, found.effect["required_bytes"], found.effect["available_bytes"])
        assert said == (verdict.fits, verdict.required_bytes, verdict.available_bytes), found.code
        assert found.effect["slack_bytes"] == verdict.slack_bytes
        helps = verdict.fits or verdict.slack_bytes > result.verdict.slack_bytes
        assert helps, found.code
        changed = applied(model, words, found.change)
        needs_file = "launch_needs_file" in {note.code for note in changed.notes}
        assert (found.launch.command if found.launch else None) == (
            changed.launch_command if verdict.fits and not needs_file else None
        ), found.code


@pytest.mark.parametrize(
    ("model", "engine", "flag"),
    [
        ("Qwen/Qwen3.5-35B-A3B", "vllm@0.33.0", "--no-enable-prefix-caching"),
        ("Qwen/Qwen3.5-35B-A3B", "sglang", "--disable-radix-cache"),
        ("nvidia/Nemotron-H-56B-Base-8K", "vllm@0.33.0", "--no-enable-prefix-caching"),
        ("Qwen/Qwen3.5-35B-A3B", "vllm@0.19.0", None),  # caches no prefixes of hybrids unless told to
        ("Qwen/Qwen3-8B", "vllm@0.33.0", None),  # keeps no states
    ],
)
def test_states_of_prompts_gone_by_are_left_out_where_that_helps(model, engine, flag):
    words = {"engine": engine, "gpu": "H200", "sequences": 1000, "context": 4096}
    found = [s for s in fitted(model, **words).suggestions if s.code == "no_prefix_caching"]
    assert [s.change["engine_args"] for s in found] == ([] if flag is None else [flag])


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(MODELS), st.sampled_from(ENGINES), st.sampled_from(["L4", "RTX 4090", "H100", "MI300X"]),
    st.sampled_from([1, 2]), st.integers(1, 40_000), st.integers(1, 64),
)  # fmt: skip
def test_every_suggestion_has_the_effect_that_it_states(model, engine, gpu, count, context, sequences):
    words = {"engine": engine, "gpu": f"{gpu}:{count}", "context": context, "sequences": sequences}
    try:
        result = fitted(model, **words)
    except KvgaugeError:
        return
    assert bool(result.suggestions) or result.verdict.fits
    check(model, words, result)


CASES = {
    "weights alone": ("Qwen/Qwen3-32B", {"gpu": "RTX 4090", "engine": "vllm"}),
    "a pool": ("Qwen/Qwen3-8B", {"kv_memory": "10GiB", "sequences": 16, "engine": "vllm"}),
    "memory without a name": ("Qwen/Qwen3-8B", {"memory": "16GiB", "engine": "vllm", "sequences": 4}),
    "cards counted apart": ("Qwen/Qwen3-32B", {"gpu": "L4", "num_gpus": 2, "engine": "vllm"}),
    "flags of its own": (
        "Qwen/Qwen3-8B",
        {"gpu": "RTX 4090", "sequences": 2, "engine": "vllm",
         "engine_args": "--max-model-len 40960 --max-num-batched-tokens=8192 -tp 1"},
    ),
    "experts": ("Qwen/Qwen3-30B-A3B", {"gpu": "RTX 4090", "engine": "llama.cpp"}),
    "a cache that is too large": ("Qwen/Qwen3-8B", {"gpu": "L4", "engine": "trtllm", "sequences": 16}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_suggestions_of_many_kinds_of_call(case):
    model, words = CASES[case]
    result = fitted(model, **words)
    assert not result.verdict.fits
    assert any(found.fits for found in result.suggestions)
    check(model, words, result)
    validate("fit", result.to_dict())


def test_no_line_is_said_to_do_what_stands_in_a_file():
    """trtllm-serve before 1.3 has no flag for the cache's dtype: its line alone would start as before."""
    words = {"engine": "trtllm@1.0.0", "gpu": "RTX 4090", "context": 32_768, "sequences": 2}
    result = fitted("Qwen/Qwen3-8B", **words)
    narrower = next(found for found in result.suggestions if found.code == "kv_dtype_fp8")
    assert narrower.fits
    assert narrower.launch is None


def codes(result: kvgauge.FitResult) -> list[str]:
    return [found.code for found in result.suggestions]


def test_the_order_is_cheapest_first():
    result = fitted("Qwen/Qwen3-32B", gpu="RTX 4090", engine="vllm")
    found = codes(result)
    order = ["larger_share", "kv_dtype_fp8", "eager", "published_quantisation", "own_quantisation",
             "more_ranks", "another_card", "weights_on_host"]  # fmt: skip
    assert [code for code in found if code in order] == order
    assert found[-1] == "together"


@pytest.mark.parametrize(
    ("engine", "args", "sequences", "context", "said"),
    [
        ("vllm", "--max-num-seqs 8", 64, 1024, "--max-num-seqs 64"),
        ("sglang", "--max-running-requests 8", 64, 1024, "--max-running-requests 64"),
        ("trtllm", "--max_batch_size 8", 64, 1024, "--max_batch_size 64"),
        ("vllm", "--max-model-len 4096", 2, 8192, "--max-model-len 8192"),
        ("llama.cpp", "-c 8192", 8, 8192, "-c 65536"),
    ],
)
def test_what_flags_refuse_no_memory_mends(engine, args, sequences, context, said):
    words = {
        "engine": engine,
        "engine_args": args,
        "gpu": "H100",
        "sequences": sequences,
        "context": context,
    }
    result = fitted("Qwen/Qwen3-8B", **words)
    assert (result.verdict.fits, result.verdict.limiting) == (False, "flag")
    first, *others = result.suggestions
    assert (first.code, said in first.note.message) == ("raise_limit", True)
    assert all(each.fits for each in result.suggestions)
    assert {each.code for each in others} <= {"fewer_sequences", "shorter_context"}
    check("Qwen/Qwen3-8B", words, result)
    # The longest context of so many sequences, and the most sequences of this context, are held to flags too.
    assert (result.max_context.count >= context) == (result.max_sequences.count >= sequences) is False
    for count, limit, keyword in (
        (result.max_context.count, result.max_context.limited_by, "context"),
        (result.max_sequences.count, result.max_sequences.limited_by, "sequences"),
    ):
        assert limit == "flag"
        assert count == 0 or fitted("Qwen/Qwen3-8B", **{**words, keyword: count}).verdict.fits


def test_what_is_too_big_and_by_how_much():
    def too_big(**words):
        return fitted("Qwen/Qwen3-32B", engine="vllm", **words).verdict

    weights = too_big(gpu="RTX 4090")
    assert weights.too_big == ("weights", weights.weights_bytes - weights.available_bytes)
    assert "weights alone" in weights.note.message
    cache = too_big(gpu="H100", sequences=64)
    assert cache.too_big == ("cache", -cache.slack_bytes)
    assert too_big(gpu="H200").too_big is None


def test_published_checkpoints_are_marked_apart_from_what_one_would_quantise():
    found = {each.code: each for each in fitted("Qwen/Qwen3-8B", gpu="RTX 4060", engine="vllm").suggestions}
    assert (
        found["published_quantisation"].change["model"].startswith(("Qwen/Qwen3-8B-", "RedHatAI/Qwen3-8B-"))
    )
    assert found["own_quantisation"].change == {"weights": "int4"}


def test_experts_layers_and_cache_on_the_host():
    result = fitted("Qwen/Qwen3-30B-A3B", gpu="RTX 4090", engine="llama.cpp")
    assert {"experts_on_host", "cache_on_host", "layers_on_host"} <= set(codes(result))
    found = {each.code: each for each in result.suggestions}
    one_less = found["experts_on_host"].effect["host_experts"] - 1
    words = {"gpu": "RTX 4090", "engine": "llama.cpp", "engine_args": f"--n-cpu-moe {one_less}"}
    assert not fitted("Qwen/Qwen3-30B-A3B", **words).verdict.fits
    one_more = found["layers_on_host"].effect["gpu_layers"] + 1
    assert not fitted("Qwen/Qwen3-30B-A3B", **{**words, "engine_args": f"-ngl {one_more}"}).verdict.fits


def test_weights_in_the_hosts_memory():
    def weights(args):
        return fitted("Qwen/Qwen3-32B", gpu="H100", engine="vllm", engine_args=args).devices[0].weight_bytes

    assert weights("") - weights("--cpu-offload-gb 10") == 10 * GIB
    assert weights("--cpu-offload-gb 1000") > 2 * GIB  # embedding and head stay


SHORT = {"gpu": "RTX 4090", "context": 32_768, "sequences": 8}


def test_the_line_that_is_shown_of_what_does_not_fit_is_one_that_fits(capsys):
    result = fitted("Qwen/Qwen3-8B", **SHORT)
    first = result.remedy
    assert not result.verdict.fits
    assert first.keeps_load
    assert first.code == "more_ranks"
    again = kvgauge.fit(command=first.launch.command, **{**SHORT, "gpu": first.change["gpu"]}, offline=True)
    assert again.verdict.fits
    assert "--tensor-parallel-size 4" in first.launch.command
    words = ["fit", "Qwen/Qwen3-8B", "--gpu", "RTX 4090", "--context", "32k", "--sequences", "8", "--offline"]
    for more, title in (
        ([], "Launch, changed so that it fits: --tp 4"),
        (["--markdown"], "changed so that it fits"),
    ):
        execute([*words, *more])
        text = capsys.readouterr().out
        assert title in text
        assert text.count("vllm serve") == 1
        assert "--tensor-parallel-size 4" in text
    execute([*words, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["launch_command"] == "vllm serve Qwen/Qwen3-8B --max-model-len 32768"
    assert {one["code"] for one in told["suggestions"] if one["launch_command"]} == {
        one["code"] for one in told["suggestions"] if one["fits"]
    }


def test_less_of_the_load_is_launched_only_where_nothing_else_fits():
    words = {**SHORT, "engine": "llama.cpp", "gpu": "M1 8GB", "context": 1024}
    result = fitted("Qwen/Qwen3-8B", **words)
    keeping = [each for each in result.suggestions if each.fits and each.keeps_load]
    assert result.remedy in (keeping or [each for each in result.suggestions if each.fits])


def test_what_fits_needs_no_remedy():
    assert not fitted("Qwen/Qwen3-8B", gpu="H100", engine="vllm").suggestions


def test_every_sentence_is_there_in_both_languages():
    assert {f"{code}_{end}" for code in WHAT for end in ENDS} <= set(zh.NOTES)


@pytest.mark.parametrize(
    ("model", "gpu"),
    [
        ("Qwen/Qwen3-32B", "RTX 4090"),
        ("Qwen/Qwen3-8B", "RTX 4060"),
        ("meta-llama/Llama-3.1-70B-Instruct", "L4"),
    ],
)
def test_the_published_checkpoint_is_the_best_of_all(model, gpu):
    """Those that weigh more than the GPU holds are not asked where a smaller one is; the answer is the same."""
    loaded = kvgauge.load(model)
    names = [found.raw.id for found in smaller_checkpoints(loaded, loaded.weighed.stored.num_bytes)]
    asked = [fitted(name, gpu=gpu, engine="vllm", suggestions=False).verdict for name in names]
    fits = [name for name, verdict in zip(names, asked, strict=True) if verdict.fits]
    least = max(zip(asked, names, strict=True), key=lambda pair: pair[0].slack_bytes)[1]
    found = {each.code: each for each in fitted(model, gpu=gpu, engine="vllm").suggestions}
    assert found["published_quantisation"].change["model"] == (fits[0] if fits else least)
