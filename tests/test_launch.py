"""The launch command parses back to the same plan, fits its version, and whole lines are understood."""

from __future__ import annotations

import shlex
from functools import lru_cache

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import kvgauge
from kvgauge.engine_models import NOT_LOADED
from kvgauge.engines.releases import has_flag
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError, KvgaugeError
from kvgauge.launch_lines import read_launch_line

GIB = 1 << 30
MODELS = (
    "Qwen/Qwen3-8B", "google/gemma-3-27b-it", "Qwen/Qwen3.5-35B-A3B", "openai/gpt-oss-20b",
    "deepseek-ai/DeepSeek-V3.2",
)  # fmt: skip
ENGINES = (
    "vllm@0.33.0", "vllm@0.19.0", "vllm@0.11.0", "sglang", "sglang@0.5.10", "trtllm", "llama.cpp",
    "llama.cpp@b7000",
)  # fmt: skip


@lru_cache(maxsize=64)
def loaded(name: str) -> kvgauge.Model:
    return kvgauge.load(name, offline=True)


def plan_of(result: kvgauge.FitResult) -> dict[str, object]:
    """Return what must not change when the launch command is read back."""
    verdict = result.verdict
    is_told = result.request.engine == "llama.cpp"  # its pool is what -c says, once -c is there
    return {
        "pool": result.details if is_told else result.pool.to_dict(),
        "needed": (verdict.required_bytes, verdict.available_bytes, verdict.status),
        "devices": [(d.weight_bytes, d.pool_bytes) for d in result.devices],
        "dtypes": result.dtypes,
        "spread": result.request.parallelism,
    }


LOADS = st.fixed_dictionaries({
    "gpu": st.sampled_from(["H100:1", "H100:2", "H200:8", "RTX 4090:2"]),
    "context": st.integers(1, 40_000),
    "sequences": st.integers(1, 400),
    "kv_dtype": st.sampled_from([None, "auto", "fp8", "q8_0"]),
    "utilization": st.sampled_from([None, "0.85"]),
})  # fmt: skip


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)  # fmt: skip
@given(st.sampled_from(MODELS), st.sampled_from(ENGINES), LOADS)
def test_the_launch_command_parses_back_to_the_same_plan(model, engine, words):
    try:
        told = kvgauge.fit(loaded(model), engine=engine, **words)
    except KvgaugeError:
        return
    if not told.launch_command:
        assert {note.code for note in told.notes} & NOT_LOADED
        return
    load = {name: words[name] for name in ("gpu", "context", "sequences")}
    again = kvgauge.fit(loaded(model), command=told.launch_command, engine=engine, **load)
    if "sequences_exceed_blocks" in {note.code for note in told.notes}:
        return  # the command lowers the sequences, so that the engine starts at all
    assert plan_of(again) == plan_of(told), told.launch_command
    words_now, words_then = (shlex.split(each.launch_command) for each in (again, told))
    assert sorted(words_now) == sorted(words_then)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(MODELS), st.sampled_from([*ENGINES, "vllm@0.8.5", "vllm@0.6.6", "sglang@0.4.6"]), LOADS
)
def test_no_flag_is_written_that_the_version_lacks(model, engine, words):
    try:
        told = kvgauge.fit(loaded(model), engine=engine, **words)
    except KvgaugeError:
        return
    name, version = told.request.engine, told.request.engine_version
    for word in shlex.split(told.launch_command)[3:]:
        assert not word.startswith("-") or has_flag(name, word, version) is not False, word


def test_flags_that_a_version_lacks_are_refused():
    with pytest.raises(FeatureUnsupportedError, match=r"vllm 0\.10\.1 has no --decode-context") as caught:
        kvgauge.size(loaded("deepseek-ai/DeepSeek-V3.2"), engine="vllm@0.10.1", tp=8, dcp=8)
    assert "0.10.2 and later" in caught.value.hint
    with pytest.raises(FeatureUnsupportedError, match="no --kv-cache-memory-bytes"):
        kvgauge.fit(loaded(MODELS[0]), engine="vllm@0.9.2", engine_args="--kv-cache-memory-bytes 8G")
    with pytest.raises(FeatureUnsupportedError, match="no --speculative-model"):
        kvgauge.size(
            loaded(MODELS[0]), engine="vllm",
            engine_args="--speculative-model eagle --num-speculative-tokens 2",
        )  # fmt: skip


LINES = {
    "vllm serve Qwen/Qwen3-8B -tp 2": ("vllm", "Qwen/Qwen3-8B", "-tp 2"),
    "VLLM_USE_V1=1 CUDA_VISIBLE_DEVICES=0,1 vllm serve Qwen/Qwen3-8B": ("vllm", "Qwen/Qwen3-8B", ""),
    "python3 -m vllm.entrypoints.openai.api_server --model=a/b --port 80": ("vllm", "a/b", "--port 80"),
    "vllm serve a/b \\\n  --max-model-len 32768 \\\n  --enforce-eager": (
        "vllm", "a/b", "--max-model-len 32768 --enforce-eager",
    ),
    "docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.11.0 --model a/b": ("vllm@0.11.0", "a/b", ""),
    "ray start --head --port=6379\nvllm serve a/b -pp 2": ("vllm", "a/b", "-pp 2"),
    "cd /srv && source env/bin/activate; vllm serve a/b | tee log": ("vllm", "a/b", ""),
    "docker run lmsysorg/sglang:v0.5.4 python3 -m sglang.launch_server --model-path a/b --tp 2": (
        "sglang@0.5.4", "a/b", "--tp 2",
    ),
    "trtllm-serve serve a/b --tp_size 4": ("tensorrt-llm", "a/b", "--tp_size 4"),
    "./build/bin/llama-server -m m.gguf -c 4096": ("llama.cpp", "m.gguf", "-c 4096"),
    "LLAMA_ARG_CTX_SIZE=8192 llama-server -hf o/r --hf-file f.gguf": (
        "llama.cpp", "o/r:f.gguf", "LLAMA_ARG_CTX_SIZE=8192",
    ),
}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_lines_as_people_write_them(line):
    found = read_launch_line(line)
    assert (found.engine_name, found.model, found.args) == LINES[line]


@pytest.mark.parametrize("line", ["", "ls -l", "vllm bench", "vllm serve 'open", "a\x00b", "vllm serve\\"])
def test_lines_that_start_nothing(line):
    with pytest.raises(InvalidRequestError):
        kvgauge.size(command=line)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    try:
        read_launch_line(f"vllm serve {text}")
    except InvalidRequestError:
        return


def test_a_line_names_engine_model_and_flags():
    line = "vllm serve Qwen/Qwen3-8B --kv-cache-dtype fp8 --max-model-len 16384"
    told = kvgauge.size(command=line, offline=True)
    assert (told.request.engine, told.request.workload.context_tokens) == ("vllm", 16384)
    assert told.cache.demand.dtypes.k == "fp8_e4m3"
    older = kvgauge.size(command=line, engine="vllm@0.19.0", offline=True)
    assert older.request.engine_version == "0.19.0"
    with pytest.raises(InvalidRequestError, match="starts vllm"):
        kvgauge.size(command=line, engine="sglang")
    with pytest.raises(InvalidRequestError, match="MODEL is missing"):
        kvgauge.size()
    rows = kvgauge.compare(["Qwen/Qwen3-8B", "google/gemma-3-27b-it"], command=line, offline=True).rows
    assert [row.result.request.engine for row in rows] == ["vllm", "vllm"]


def test_ranks_of_several_machines_are_joined_by_ray():
    told = kvgauge.fit(loaded("deepseek-ai/DeepSeek-V3.2"), engine="vllm", gpu="H100:16", tp=8, pp=2)
    assert told.launch_command.endswith("--distributed-executor-backend ray")
    assert [step.where for step in told.launch.steps] == ["first", "others", "first"]
    assert told.launch.steps[0].command == "ray start --head --port=6379"
    again = kvgauge.fit(
        loaded("deepseek-ai/DeepSeek-V3.2"), command=told.launch_command, gpu="H100:16", context=32768
    )
    assert plan_of(again) == plan_of(told)
    sglang = kvgauge.fit(loaded("deepseek-ai/DeepSeek-V3.2"), engine="sglang", gpu="H100:16", tp=16)
    assert "--nnodes 2 --node-rank NUMBER" in sglang.launch.steps[0].command
    assert not kvgauge.fit(loaded(MODELS[0]), engine="vllm", gpu="H100:2").launch.steps


def test_models_without_a_name_that_an_engine_takes():
    def line(**words):
        result = kvgauge.fit(loaded(MODELS[0]), gpu="H100", **words)
        return result.launch_command, {note.code for note in result.notes}

    assert line(engine="vllm")[0].startswith("vllm serve Qwen/Qwen3-8B ")
    command, codes = line(engine="vllm", weights="int4")
    assert command.startswith("vllm serve ./Qwen3-8B-int4 ")
    assert "launch_model_path" in codes
    assert line(engine="llama.cpp", weights="q4_k_m")[0].startswith("llama-server -m Qwen3-8B-Q4_K_M.gguf ")
    assert line(engine="llama.cpp")[0].startswith("llama-server -m Qwen3-8B-BF16.gguf ")
    own = {"-m x.gguf": "-m x.gguf", "-hf a/b": "-hf a/b"}
    for args, shown in own.items():
        command = line(engine="llama.cpp", engine_args=args)[0]
        assert shown in command
        assert command.count(".gguf") == args.count(".gguf")


@pytest.mark.parametrize(
    "engine", ["vllm@0.7.3", "vllm@0.10.2", "vllm@0.19.0", "vllm", "sglang", "sglang@0.4.6"]
)
@pytest.mark.parametrize("model", ["Qwen/Qwen2.5-7B-Instruct", "deepseek-ai/DeepSeek-V2-Lite"])
def test_a_pool_that_is_given_stands_in_the_command(model, engine):
    words = {"gpu": "H100", "context": 32_768, "engine": engine}
    given = kvgauge.fit(loaded(model), kv_memory=7 * GIB + 12_345, **words)
    again = kvgauge.fit(command=given.launch_command, **words)
    assert again.pool.num_blocks == given.pool.num_blocks
    assert again.pool.capacity_tokens == given.pool.capacity_tokens
    assert again.max_sequences.count == given.max_sequences.count


def test_a_command_that_can_not_state_the_pool_says_so():
    for model in ("openai/gpt-oss-20b", "Qwen/Qwen3.5-35B-A3B"):
        result = kvgauge.fit(loaded(model), gpu="H100", kv_memory=7 * GIB, engine="sglang")
        assert "launch_pool_unsaid" in {note.code for note in result.notes}
    result = kvgauge.fit(loaded("Qwen/Qwen3-8B"), gpu="H100", kv_memory=7 * GIB, engine="trtllm")
    note = next(note for note in result.notes if note.code == "launch_needs_file")
    assert f"max_tokens: {result.pool.capacity_tokens}" in note.message


def test_replicas_that_know_nothing_of_each_other_are_started_one_by_one():
    result = kvgauge.fit(loaded("Qwen/Qwen3-8B"), gpu="H100:8", tp=2, dp=4, engine="trtllm")
    assert dict(next(note for note in result.notes if note.code == "launch_replicas").values) == {
        "count": "4"
    }
    one = kvgauge.fit(command=result.launch_command, engine="trtllm", gpu="H100:2")
    assert one.pool == result.pool
    shared = kvgauge.fit(loaded("Qwen/Qwen3-30B-A3B"), gpu="H100:4", dp=4, ep=4, engine="trtllm")
    assert "launch_replicas" not in {note.code for note in shared.notes}
    with pytest.raises(FeatureUnsupportedError, match="share experts only"):
        kvgauge.fit(loaded("Qwen/Qwen3-30B-A3B"), gpu="H100:4", tp=2, dp=2, ep=4, engine="trtllm")
