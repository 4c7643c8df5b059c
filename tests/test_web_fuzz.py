"""The API against its own description: whatever is sent, the answer is one that the description allows."""

from __future__ import annotations

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import positive_data_acceptance

import strategies
from gguf_files import gguf
from kvgauge.web.app import create_app
from kvgauge.web.learning import LEARNING
from kvgauge.web.openapi import openapi
from web_support import OFFLINE, answer, client

HOST = {"Host": "127.0.0.1"}
SCHEMA = schemathesis.openapi.from_asgi("/api/v1/openapi.json", create_app(OFFLINE), headers=HOST)
WEB = client()
#: What the description says of each address.
STATUSES = {
    (path, method): {int(status) for status in operation["responses"]}
    for path, operations in openapi()["paths"].items()
    for method, operation in operations.items()
}


# Values of no meaning, made from the description: most are refused, and nothing is a fault of the server.


def fuzzing(max_examples: int) -> settings:
    phases = [Phase.explicit, Phase.generate]
    return settings(max_examples=max_examples, phases=phases, suppress_health_check=list(HealthCheck))


def check_case(case) -> None:
    # What fits the description may still have no meaning: a model that nobody knows, ranks that do not divide.
    case.call_and_validate(headers=HOST, excluded_checks=[positive_data_acceptance], timeout=120)


@SCHEMA.exclude(path_regex="/learn/").parametrize()
@fuzzing(12)
def test_answers_are_those_described(case):
    check_case(case)


# Values that mean something, in every combination.

words = st.sampled_from
texts = st.text(max_size=12)
dtypes = words(["auto", "fp8", "bf16", "q8_0", "nvfp4", "fp8_ds_mla", "int4", "x", "", "FP8_E4M3"])
counts = words([-1, 0, 1, 2, 3, 7, 8, 64, 10**6, 10**18])
tokens = st.one_of(counts, words(["4k", "max", "1.5k", "0", "", "∞", "99999999999m", "-3"]))
sizes = words(["80GiB", "80", "1GB:2", "-1GiB", "0", "", "1e400", "81559MiB", "nan", 40 << 30])
models = st.one_of(
    words([
        "Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-V3.2", "openai/whisper-large-v3", "google/gemma-3-27b-it",
        "Qwen/Qwen3.5-35B-A3B", "openai/gpt-oss-120b", "no/such-model", "gguf:" + "0" * 32, "/etc/passwd", "",
    ]),
    strategies.attention(),
    strategies.latent(),
    st.dictionaries(texts, st.one_of(counts, texts, st.none()), max_size=4),
)  # fmt: skip
engines = words([
    "theory", "vllm", "sglang@0.5.9", "llama.cpp", "tensorrt-llm", "transformers", "vllm@0.6.0", "vllm@99", "x",
    "llama.cpp@b4000", "", "@",
])  # fmt: skip
arguments = words([
    "", "--max-model-len 4096", "-c 8192 -np 4", "--kv-cache-dtype fp8 --block-size 32", "-tp 3", "'", "--x",
    "cache=static max_cache_len=64", "--speculative-config '{\"num_speculative_tokens\": 2}'", "-c", "-1",
    "--mem-fraction-static 0.8", "--gpu-memory-utilization nan",
])  # fmt: skip
cards = words(["H100", "2x H100", "h200:8", "mi300x", "RTX 4090:0", "x", "", "H100:99999", "m4 max"])
LOAD = {
    "context": tokens, "max_model_len": tokens, "encoder_tokens": tokens, "image_tokens": tokens,
    "shared_prefix": tokens, "sequences": counts, "mtp": counts, "kv_dtype": dtypes, "k_dtype": dtypes,
    "v_dtype": dtypes, "state_dtype": dtypes, "index_dtype": dtypes, "tp": counts, "pp": counts, "dp": counts,
    "ep": counts, "dcp": counts, "engine": engines, "engine_args": arguments,
    "weights": words(["int4", "fp8", "q4_k_m", "x", "f16"]), "no_weights": st.booleans(),
    "overrides": st.dictionaries(words(["num_hidden_layers", "head_dim", "a.b", "", "torch_dtype"]), counts, max_size=2),
    "revision": words(["main", "v1", "../x"]), "lang": words(["en", "zh"]), "units": words(["gib", "gb", "bytes"]),
    "format": words(["json", "markdown"]),
}  # fmt: skip
CARD = {
    "gpu": cards, "memory": sizes, "reserve": sizes, "kv_memory": sizes, "num_gpus": counts,
    "utilization": words([0.9, "0.95", 2, -1, "x", 0]),
}  # fmt: skip


def some(options: dict[str, st.SearchStrategy]) -> st.SearchStrategy[dict]:
    """Up to five of the options."""
    names = st.lists(words(sorted(options)), max_size=5, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: options[name] for name in chosen}))


def check(path: str, method: str, response: object, name: str) -> None:
    """An answer that the description allows, of its schema."""
    assert response.status_code in STATUSES[path, method], response.text[:300]
    assert response.status_code < 500, response.text[:300]
    if response.status_code != 200:
        answer(response, "error", response.status_code)
    elif response.headers["content-type"] == "application/json":
        answer(response, name)
    else:
        assert response.headers["content-type"] == "text/markdown; charset=utf-8"
        assert response.text.endswith("\n")


@pytest.mark.parametrize(("name", "options"), [("size", LOAD), ("explain", LOAD), ("fit", LOAD | CARD)])
def test_loads_that_mean_something(name, options):
    @settings(max_examples=80, suppress_health_check=list(HealthCheck))
    @given(model=models, load=some(options))
    def asked(model, load):
        path, card = f"/api/v1/{name}", {"gpu": "H100:4"} if name == "fit" else {}
        check(path, "post", WEB.post(path, json={"model": model, **card, **load}), name)
        if isinstance(model, str):
            flat = {k: json.dumps(v) if isinstance(v, dict) else v for k, v in load.items()}
            check(path, "get", WEB.get(path, params={"model": model, **card, **flat}), name)

    asked()


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(chosen=st.lists(models, max_size=4), load=some(LOAD))
def test_comparisons(chosen, load):
    path = "/api/v1/compare"
    check(path, "post", WEB.post(path, json={"models": chosen, **load}), "compare")


#: Values that topics of ``learn`` run with; each takes a second at most.
TOPIC_VALUES = st.one_of(
    words(["8", "0", "-1", "x", "", "1k", "64x64", "16,32", "fp8", "1,2,3", "0.5", "nan", "hello"]),
    words([0, 1, 8, -1, 10**9, 10**18]), st.booleans(), st.none(), st.just({}), st.just([]),
)  # fmt: skip


@pytest.mark.parametrize("question", LEARNING, ids=lambda question: question.name)
def test_topics(question):
    @settings(max_examples=8, suppress_health_check=list(HealthCheck))
    @given(asked=some(dict.fromkeys((*question.keywords, "lang"), TOPIC_VALUES)))
    def run(asked):
        method = "post" if question.by_body else "get"
        response = WEB.post(question.path, json=asked) if question.by_body else WEB.get(question.path)
        check(question.path, method, response, question.name)

    run()


GGUF = gguf()


@settings(max_examples=150)
@given(
    cut=st.integers(0, len(GGUF)),
    changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=4),
    size=st.one_of(st.just(len(GGUF)), st.integers(-1, 1 << 60)),
)
@example(cut=len(GGUF), changes=[], size=len(GGUF))
def test_headers(cut, changes, size):
    data = bytearray(GGUF)
    for place, value in changes:
        data[place] = value
    headers = {"content-type": "application/octet-stream"}
    response = WEB.post("/api/v1/gguf", params={"size": size}, content=bytes(data[:cut]), headers=headers)
    check("/api/v1/gguf", "post", response, "gguf")


LINES = st.sampled_from([
    "GPU KV cache size: 514,944 tokens", "Available KV cache memory: 70.72 GiB", "Maximum concurrency for 32,768",
    "INFO LLM engine (v0.19.0) with config: model='Qwen/Qwen3-8B', tensor_parallel_size=2", "max_total_num_tokens=99",
    "llama_kv_cache: size = 512.00 MiB ( 4096 cells, 32 layers, 1/1 seqs)", "server_args=ServerArgs(model_path='a/b')",
    "vllm serve Qwen/Qwen3-8B --max-model-len nan", "# GPU blocks: 99999999999999999999", "\x1b[31m", "\0", "ÿ",
])  # fmt: skip


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(lines=st.lists(st.one_of(LINES, texts), max_size=8), load=some({"gpu": cards, **LOAD}))
def test_logs(lines, load):
    path = "/api/v1/verify"
    check(path, "post", WEB.post(path, json={"log": "\n".join(lines), **load}), "verify")


@settings(max_examples=60)
@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(words(["vllm serve", "a/b", "-tp", "'", "\\\n", "llama-server", "-m", "9"])).map(" ".join),
    )
)
def test_launch_lines(command):
    path = "/api/v1/parse-command"
    check(path, "post", WEB.post(path, json={"command": command}), "command")
