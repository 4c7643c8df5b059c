"""``verify``: logs in the phrasings of every engine are read, predicted and explained; nothing in one breaks it."""

from __future__ import annotations

import io
import json
import random
import re
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvgauge
from kvgauge.cli.app import execute
from kvgauge.data import read_data
from kvgauge.errors import InvalidFieldError, InvalidRequestError, KvgaugeError, ModelNotFoundError
from kvgauge.render.messages import en, zh
from kvgauge.verification.facts import read_starts
from kvgauge.verification.launch import launch_facts
from kvgauge.verification.phrases import PHRASES, WANTED
from kvgauge.verification.streaming import MAX_LINE_BYTES, log_lines, plain
from kvgauge.verification.verifying import verify
from support import ROOT

LOGS = ROOT / "tests/logs"
#: Log -> what fills its gaps, and the figures that agree with the rules of its engine.
CASES: dict[str, tuple[dict[str, str], set[str]]] = {
    "vllm_0.6.4_v0": (
        {"gpu": "RTX 3090"},
        {"kv_bytes_per_token", "kv_tokens", "max_concurrency", "num_blocks", "weights"},
    ),
    "vllm_0.8.3_profile": (
        {},
        {"kv_bytes_per_token", "kv_tokens", "max_concurrency", "num_blocks", "weights"},
    ),
    "vllm_0.19.0_tp2": ({"gpu": "H100"}, {"kv_bytes_per_token", "kv_tokens", "max_concurrency", "weights"}),
    "vllm_0.10_refused": ({"gpu": "RTX 4090"}, {"kv_needed"}),
    "sglang_tp4": ({"gpu": "L4"}, {"kv_bytes_per_token", "kv_cache_mib", "pool"}),
    "llamacpp_qwen35moe": (
        {"model": "Qwen/Qwen3.5-35B-A3B"},
        {"kv_bytes_per_token", "kv_cache_mib", "state_mib"},
    ),
    "llamacpp_gemma4_windows": ({"model": "google/gemma-4-12B-it"}, {"kv_bytes_per_token", "kv_cache_mib"}),
    "llamacpp_breakdown": ({}, {"kv_bytes_per_token", "kv_cache_mib"}),
    "llamacpp_old": ({}, {"kv_bytes_per_token", "kv_cache_mib"}),
    "vllm_consumed": (
        {"gpu": "H100"},
        {"kv_bytes_per_token", "kv_tokens", "max_concurrency", "weights"},
    ),
    "ollama_planner": ({"model": "Qwen/Qwen3-8B"}, {"kv_bytes_per_token", "kv_cache_mib"}),
    "tensorrt_llm_docs": (
        {"model": "meta-llama/Llama-3.1-8B-Instruct"},
        {"kv_bytes_per_token", "kv_tokens", "num_blocks", "kv_cache_mib", "pool"},
    ),
}


def log(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "server.log"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("name", CASES)
def test_figures_of_each_log(name):
    options, exact = CASES[name]
    answer = verify(LOGS / f"{name}.log", **options).last
    assert {line.quantity for line in answer.lines if line.verdict == "agrees"} >= exact
    assert all(line.measured is not None for line in answer.lines)
    assert answer.engine["name"] in name.replace("_", "-") or name.startswith(("llamacpp", "ollama"))


def test_tokens_of_sglang_are_predicted_from_end_to_end():
    lines = {line.quantity: line for line in verify(LOGS / "sglang_tp4.log", gpu="L4").last.lines}
    tokens = lines["kv_tokens"]
    assert tokens.verdict == "in_range", tokens
    assert abs(tokens.predicted / tokens.measured - 1) < 0.02  # free memory, share and weights alone
    assert abs(lines["weights"].predicted / lines["weights"].measured - 1) < 0.003


@pytest.mark.parametrize("name", CASES)
def test_schema_in_both_languages(name, capsys):
    schema = json.loads(read_data("schemas/verify.json"))
    options, _ = CASES[name]
    flags = [word for key, value in options.items() for word in (f"--{key}", value)]
    for lang in ("en", "zh"):
        assert execute(["verify", str(LOGS / f"{name}.log"), *flags, "--json", "--lang", lang]) == 0
        answer = json.loads(capsys.readouterr().out)
        jsonschema.Draft202012Validator(schema).validate(answer)
        for one in answer["advice"]:
            assert lang == "en" or re.search("[\u4e00-\u9fff]", one["message"]), one


def test_the_public_name():
    assert kvgauge.verify is verify


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("columns", [40, 80, 120])
def test_text(lang, columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert execute(["verify", str(LOGS / "vllm_0.19.0_tp2.log"), "--gpu", "H100", "--lang", lang]) == 0
    text = capsys.readouterr().out
    assert "606,784" in text
    assert execute(["verify", str(LOGS / "vllm_0.10_refused.log"), "--lang", lang, "--markdown"]) == 0
    assert "| --- |" in capsys.readouterr().out


def test_memory_that_is_not_free_at_the_start():
    answer = verify(LOGS / "vllm_share_not_free.log").last
    assert [one["code"] for one in answer.failures] == ["share_not_free"]
    effects = {one.code: one.effect for one in answer.advice}
    assert effects["free_share"] == {"utilization": 0.76}


def test_a_plan_of_ollama_is_called_one():
    answer = verify(LOGS / "ollama_planner.log", model="Qwen/Qwen3-8B").last
    assert "verify_planned" in {note.code for note in answer.notes}


def test_memory_outside_torch_out_of_one_sum():
    starts = read_starts(log_lines(io.BytesIO((LOGS / "vllm_consumed.log").read_bytes()), WANTED))
    assert starts[0].record()["non_torch_gib"] == 0.33


def test_ranks_that_the_log_states_explain_nothing(tmp_path):
    lines = (
        "vLLM API server version 0.19.0\n"
        "$ vllm serve Qwen/Qwen3-8B --max-model-len 32768{}\n"
        "Available KV cache memory: 52.83 GiB\nGPU KV cache size: 769,376 tokens\n"
    )
    open_, stated = (verify(log(tmp_path, lines.format(flag))).last for flag in ("", " -tp 1"))
    assert any("agrees with" in line.because for line in open_.lines)
    assert not any("--tensor-parallel-size" in line.because for line in stated.lines)


def test_a_launch_line_beside_the_log(tmp_path):
    text = "vLLM API server version 0.19.0\nAvailable KV cache memory: 52.83 GiB\nGPU KV cache size: 384,688 tokens\n"
    answer = verify(log(tmp_path, text), command="vllm serve Qwen/Qwen3-8B --max-model-len 32768").last
    assert answer.engine["model"] == "Qwen/Qwen3-8B"
    assert "agrees" in {line.verdict for line in answer.lines}


def test_a_refusal_names_what_fits():
    answer = verify(LOGS / "vllm_0.10_refused.log", gpu="RTX 4090").last
    assert [one["code"] for one in answer.failures] == ["pool_too_small"]
    # The engine's own estimate in the same log.
    (shorter,) = (one for one in answer.advice if one.code == "shorter")
    assert shorter.effect["max_model_tokens"] == 27728


def test_a_refusal_names_the_share_of_the_card(tmp_path):
    text = (
        (LOGS / "vllm_0.10_refused.log")
        .read_text()
        .replace("quantization=None", "gpu_memory_utilization=0.80")
    )
    answer = verify(log(tmp_path, text), gpu="RTX 4090").last
    (share,) = (one for one in answer.advice if one.code == "share")
    assert 0.87 <= share.effect["utilization"] <= 0.89


def test_a_setting_that_the_log_hides_is_named(tmp_path):
    """vllm-088: fp8 KV is not in the excerpt; here of a dense model, whose tokens double."""
    text = (
        "INFO vLLM API server version 0.19.0\n"
        "engine (v0.19.0) with config: model='Qwen/Qwen3-8B', max_seq_len=40960, tensor_parallel_size=1\n"
        "INFO Available KV cache memory: 53.00 GiB\n"
        "INFO GPU KV cache size: 771,856 tokens\n"
    )
    answer = verify(log(tmp_path, text), gpu="H100").last
    assert {line.setting for line in answer.lines if line.quantity == "kv_tokens"} == {"--kv-cache-dtype fp8"}
    told = verify(log(tmp_path, text), gpu="H100", kv_dtype="fp8").last
    assert {line.verdict for line in told.lines if line.quantity == "kv_tokens"} == {"agrees"}


def test_options_win_over_the_log():
    answer = verify(LOGS / "vllm_0.19.0_tp2.log", tp=4, gpu="H100", engine_args="--max-model-len 4096").last
    words = str(answer.engine["engine_args"]).split()
    assert words.count("--tensor-parallel-size") == 1
    assert words[words.index("--tensor-parallel-size") + 1] == "4"
    assert words.count("--max-model-len") == 1
    other = verify(LOGS / "vllm_0.19.0_tp2.log", engine="vllm@0.33.0").last
    assert other.engine["version"] == "0.33.0"
    with pytest.raises(InvalidRequestError):
        verify(LOGS / "sglang_tp4.log", state_dtype="fp16")


def test_without_a_known_model_the_figures_are_listed(tmp_path):
    text = "INFO Available KV cache memory: 53.00 GiB\nINFO GPU KV cache size: 385,936 tokens\n"
    answer = verify(log(tmp_path, text)).last
    assert {line.verdict for line in answer.lines} == {"not_predicted"}
    assert [one.code for one in answer.advice] == ["name_model"]
    assert (
        verify(log(tmp_path, text), model="Qwen/Qwen3-8B", engine="vllm@0.19.0").last.lines[0].verdict
        == "agrees"
    )


def test_several_starts_in_one_log(tmp_path):
    first = (LOGS / "vllm_0.6.4_v0.log").read_text()
    second = (LOGS / "vllm_0.19.0_tp2.log").read_text()
    result = verify(log(tmp_path, first + "noise\n" + second), gpu="H100")
    assert [start.engine["model"] for start in result.starts] == [
        "meta-llama/Llama-3.1-8B-Instruct",
        "microsoft/phi-4",
    ]
    assert len(result.to_dict()["earlier"]) == 1


def test_advice_for_a_hybrid_that_does_not_start(tmp_path):
    text = (
        "vLLM API server version 0.24.0\n"
        "$ vllm serve Qwen/Qwen3.5-35B-A3B --kv-cache-dtype fp8 --max-model-len 262144 --max-num-seqs 1000\n"
        "Available KV cache memory: 3.40 GiB\n"
        "ValueError: max_num_seqs (1000) exceeds available Mamba cache blocks (300)\n"
    )
    answer = verify(log(tmp_path, text), gpu="RTX 3090").last
    assert [one["code"] for one in answer.failures] == ["sequences_exceed_blocks"]
    effects = {one.code: one.effect for one in answer.advice}
    assert effects["sequences"]["max_num_seqs"] > 0
    assert effects["token_line"]["blocks_of_one_token"] < effects["token_line"]["blocks_of_longest"]


def test_latents_are_replicated(tmp_path):
    text = (
        "vLLM API server version 0.24.0\n$ vllm serve deepseek-ai/DeepSeek-V2-Lite-Chat -tp 2 --max-model-len 8192\n"
        "Available KV cache memory: 13.40 GiB\n"
    )
    assert "replicated" in {one.code for one in verify(log(tmp_path, text), gpu="H100").last.advice}


def test_ranks_that_differ_are_said(tmp_path):
    text = (LOGS / "vllm_0.19.0_tp2.log").read_text().replace("57.89", "70.00")
    notes = verify(log(tmp_path, text), gpu="H100").last.notes
    assert [note.code for note in notes] == ["verify_ranks_differ"]


def test_a_log_without_known_lines(tmp_path, capsys):
    with pytest.raises(InvalidFieldError, match="no line"):
        verify(log(tmp_path, "hello\nworld\n"))
    assert execute(["verify", str(log(tmp_path, "x"))]) == 1
    assert "GPU KV cache size" in capsys.readouterr().err
    with pytest.raises(ModelNotFoundError):
        verify(tmp_path / "none.log")
    with pytest.raises(InvalidRequestError):
        verify(tmp_path)


def test_a_pipe(monkeypatch, capsys):
    data = (LOGS / "tensorrt_llm_docs.log").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert execute(["verify", "-", "--model", "meta-llama/Llama-3.1-8B-Instruct"]) == 0
    assert "519,680" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "engine", "facts"),
    [
        ("$ vllm serve Qwen/Qwen3-8B --max-model-len 32768 -tp 2", "vllm",
         {"model": "Qwen/Qwen3-8B", "args": {"--max-model-len": "32768", "-tp": "2"}}),
        ("python3 -m sglang.launch_server --model-path a/b --tp 4", "sglang", {"model": "a/b", "args": {"--tp": "4"}}),
        ("CUDA_VISIBLE_DEVICES=0 ./build/bin/llama-server -m x.gguf -c 8192 --port 80", "llama.cpp",
         {"model": "x.gguf", "args": {"-c": "8192"}}),
        ("engine (v0.9.2) with config: model='a/b', speculative_config=SpeculativeConfig(method='mtp', model='a/b', "
         "num_spec_tokens=3), max_seq_len=100", "vllm", None),
        ('time=2025-03-15T09:19:41.249Z level=INFO source=server.go:405 msg="starting llama server" '
         'cmd="/usr/bin/ollama runner --model /root/blobs/sha256-1 --ctx-size 8192 --parallel 4 --port 1"', "llama.cpp",
         {"model": "/root/blobs/sha256-1", "args": {"--ctx-size": "8192", "--parallel": "4"}}),
        ("nothing to see", None, None),
    ],
)  # fmt: skip
def test_how_an_engine_was_started(line, engine, facts):
    found = launch_facts(line)
    if engine is None:
        assert found is None
        return
    assert found is not None
    assert found[0] == engine
    if facts is not None:
        assert found[1] == facts
    else:
        assert found[1]["args"]["--speculative-config"] == '{"method": "mtp", "num_speculative_tokens": 3}'


def test_long_lines_and_long_logs_stay_bounded():
    line = (
        b"INFO GPU KV cache size: 1 tokens " + b"x" * (3 * MAX_LINE_BYTES) + b" GPU KV cache size: 2 tokens\n"
    )
    assert len(list(log_lines(io.BytesIO(line), WANTED))) == 1
    many = io.BytesIO(b"INFO nothing here\n" * 100_000 + b"INFO Available KV cache memory: 1.00 GiB\n")
    assert len(list(log_lines(many, WANTED))) == 1
    assert plain("a\x00\x1b]0;t\x07b") == "a b"


def test_every_phrase_is_in_the_words_that_lines_are_looked_at_for():
    """A phrase whose lines are skipped would never be read."""
    lines = [line for file in LOGS.glob("*.log") for line in file.read_bytes().splitlines()]
    kept = {plain(line.decode()) for line in lines if WANTED.search(line)}
    for line in lines:
        text = plain(line.decode())
        if any(phrase.says.search(text) for phrase in PHRASES) or launch_facts(text):
            assert text in kept, text


def test_texts_of_both_languages():
    codes = re.findall(r'"(verify_\w+)"', (ROOT / "src/kvgauge/verification/advising.py").read_text())
    codes += re.findall(r'Note\("(verify_\w+)"', (ROOT / "src/kvgauge/verification/verifying.py").read_text())
    assert len(set(codes)) >= 10
    assert set(codes) <= set(zh.NOTES)
    assert {key for key in en.MESSAGES if key.startswith(("verify", "verdict", "failure"))} <= set(
        zh.MESSAGES
    )


WORDS = st.sampled_from([
    "GPU KV cache size: ", "9" * 30, "-1", "0", "1e999", " tokens", " GiB", "\x1b[0m", "\r", "model='", "'", "{", "}",
    "KV Cache is allocated. #tokens: ", "Available KV cache memory: ", "size = 1.00 MiB ( 0 cells, 0 layers, 0/0 seqs)",
    "- kv 0: general.architecture str = llama", "- kv 1: llama.block_count u32 = 99999999999", "n_ctx = 0",
    "engine (v0.0.0) with config: ", "Qwen/Qwen3-8B", "tensor_parallel_size=0", "vllm serve ", "--max-model-len 0 ",
    "CUDA0 compute buffer size = 1.1.1 MiB", "CUDA out of memory. Tried to allocate 9.9.9 GiB", "\n", "\x00", "\udcff",
    "Allocated 1 GiB for max tokens in paged KV cache (0)", "K size: . GB, V size: . GB",
])  # fmt: skip


@given(st.lists(WORDS, max_size=30))
@settings(max_examples=200, deadline=None)
def test_any_words_give_an_answer_or_an_error(words):
    text = "".join(words).encode("utf-8", "surrogateescape")
    for start in read_starts(log_lines(io.BytesIO(text), WANTED)):
        json.dumps(start.record())


@pytest.mark.parametrize("seed", range(12))
def test_damaged_logs_give_an_answer_or_an_error(seed, tmp_path):
    shuffled = random.Random(seed)  # noqa: S311 - no secret
    lines = [line for file in sorted(LOGS.glob("*.log")) for line in file.read_text().splitlines()]
    chosen = shuffled.sample(lines, 12)
    text = "\n".join(re.sub(r"\d", lambda _: shuffled.choice("0123456789"), line) for line in chosen)
    try:
        result = verify(log(tmp_path, text), gpu="H100")
    except KvgaugeError:
        return
    json.dumps(result.to_dict(), allow_nan=False)
