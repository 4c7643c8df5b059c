"""Logs written from the shipped records, in each engine's phrasing: ``verify`` answers what ``accuracy`` does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kvgauge.data import read_data
from kvgauge.errors import KvgaugeError
from kvgauge.replay.models import ModelFinder
from kvgauge.replay.outcomes import BY_RULE
from kvgauge.replay.records import Record, engine_family
from kvgauge.replay.replaying import outcomes
from kvgauge.verification.verifying import verify

ROWS = [json.loads(line) for line in read_data("evidence.jsonl").splitlines()]
PREFIXES = (
    "INFO 11-14 03:22:01 [x.py:1] ",
    "\x1b[36m(EngineCore_DP0 pid=77)\x1b[0m INFO 11-14 03:22:01 ",
    "",
)
NOISE = ("Loading safetensors checkpoint shards: 100% Completed | 4/4", '127.0.0.1 - "GET /health" 200', "")


def vllm_lines(row: dict[str, Any]) -> Iterator[str]:
    version = row.get("engine_version") or row.get("engine_version_by_date")
    if version:
        yield f"vLLM API server version {version}"
    yield f"Command: vllm serve {row['config_ref']} {row.get('engine_args', '')}"
    if "weights_gib" in row:
        yield f"Model loading took {row['weights_gib']} GiB and 3.1 seconds"
    if "kv_available_gib" in row:
        yield f"Available KV cache memory: {row['kv_available_gib']} GiB"
    if "gpu_blocks" in row:
        yield f"# cuda blocks: {row['gpu_blocks']}, # CPU blocks: 2048"
    if "kv_needed_gib" in row:
        yield (
            f"ValueError: To serve at least one request with the models's max seq len ({length(row)}), "
            f"({row['kv_needed_gib']} GiB KV cache is needed, which is larger than the available KV cache memory "
            f"({row.get('kv_available_gib', 0.01)} GiB). Based on the available memory, ..."
        )
    if "kv_tokens" in row:
        yield f"GPU KV cache size: {row['kv_tokens']:,} tokens"
    if "max_concurrency" in row:
        yield f"Maximum concurrency for {length(row):,} tokens per request: {row['max_concurrency']}x"


def length(row: dict[str, Any]) -> int:
    words = row.get("engine_args", "").split()
    return int(words[words.index("--max-model-len") + 1]) if "--max-model-len" in words else 0


def sglang_lines(row: dict[str, Any]) -> Iterator[str]:
    yield f"+ python3 -m sglang.launch_server --model-path {row['config_ref']} {row.get('engine_args', '')}"
    if "avail_mem_before_load_gb" in row:
        yield f"Load weight begin. avail mem={row['avail_mem_before_load_gb']} GB"
    if "avail_mem_after_load_gb" in row:
        yield f"Load weight end. type=X, dtype=torch.bfloat16, avail mem={row['avail_mem_after_load_gb']} GB"
    if "k_gb" in row:
        yield (
            f"KV Cache is allocated. #tokens: {row['tokens']}, K size: {row['k_gb']} GB, V size: {row['v_gb']} GB"
        )
    if "kv_gb" in row:
        yield f"KV Cache is allocated. #tokens: {row['tokens']}, KV size: {row['kv_gb']} GB"
    if "ssm_gb" in row:
        yield (
            f"Mamba Cache is allocated. max_mamba_cache_size: {row['mamba_cache_size']}, "
            f"conv_state size: {row.get('conv_gb', 0)}GB, ssm_state size: {row['ssm_gb']}GB"
        )


def llama_lines(row: dict[str, Any]) -> Iterator[str]:
    args = row.get("engine_args", "").split()
    streams, seqs = row.get("n_stream", 1), row.get("n_seq_max", 1)
    if "cells" in row:
        yield f"llama_context: n_ctx         = {row['cells'] * streams}"
    if "-ub" in args:
        yield f"llama_context: n_ubatch      = {args[args.index('-ub') + 1]}"
    parts = ""
    if "k_type" in row and "v_type" in row:
        halves = row.get("k_mib", 0.0), row.get("v_mib", 0.0)
        parts = f", K ({row['k_type']}): {halves[0]:8.2f} MiB, V ({row['v_type']}): {halves[1]:8.2f} MiB"
    if "kv_mib" in row:
        yield "llama_kv_cache_iswa: creating non-SWA KV cache, size = 1 cells"
        yield (
            f"llama_kv_cache: size = {row['kv_mib']:7.2f} MiB ({row['cells']:6d} cells, "
            f"{row.get('kv_layers', 1):3d} layers, {seqs:2d}/{streams} seqs){parts}"
        )
    if "swa_kv_mib" in row:
        yield "llama_kv_cache_iswa: creating     SWA KV cache, size = 1 cells"
        yield f"llama_kv_cache: size = {row['swa_kv_mib']:7.2f} MiB (  1 cells, 1 layers, {seqs:2d}/{streams} seqs){parts}"
    if "rs_mib" in row:
        yield (
            f"llama_memory_recurrent: size = {row['rs_mib']:7.2f} MiB (     1 cells,  64 layers, "
            f" {row.get('rs_seqs', 1)} seqs), R (f32):    1.00 MiB, S (f32):    1.00 MiB"
        )


def trtllm_lines(row: dict[str, Any]) -> Iterator[str]:
    if "tokens_per_block" in row:
        yield f"[TensorRT-LLM][INFO] Number of tokens per block: {row['tokens_per_block']}."
    if "blocks" in row:
        yield f"[TensorRT-LLM][INFO] Number of blocks in KV cache primary pool: {row['blocks']}"
    if "tokens" in row:
        yield (
            f"[TensorRT-LLM][INFO] [MemUsageChange] Allocated {row['kv_gib']} GiB for max tokens in paged KV cache "
            f"({row['tokens']})."
        )


WRITERS = {"vllm": vllm_lines, "sglang": sglang_lines, "llama.cpp": llama_lines, "tensorrt-llm": trtllm_lines}


def cases() -> list[dict[str, Any]]:
    """Records whose log says all that they do: a model, and no fact of the fields that no line shows."""
    found = []
    for row in ROWS:
        family = engine_family(row["engine"])
        is_mixed = row["engine"].startswith(("ik", "llama.cpp fork")) or "extra" in row
        hidden = "number of gpus" in str(row.get("assumed")).lower() or "fp8" in str(row.get("assumed"))
        # Groups of ranks that only the number of cards tells; a type that a thread is not sure of.
        hidden |= "--dp-size" in row.get("engine_args", "") or "?" in row.get("v_type", "")
        known = family in WRITERS and "config_ref" in row and ("cells" in row or family != "llama.cpp")
        if known and not is_mixed and not hidden and set(row["usable_for"]) & BY_RULE:
            found.append(row)
    return found


@pytest.mark.parametrize("row", cases(), ids=lambda row: row["id"])
def test_a_log_of_a_record_answers_as_its_replay(row, tmp_path: Path):
    family = engine_family(row["engine"])
    lines = list(WRITERS[family](row))
    text = "".join(
        f"{NOISE[n % 3]}\n{PREFIXES[n % 3] if family == 'vllm' and n != 1 else ''}{line}\n"
        for n, line in enumerate(lines)
    )
    file = tmp_path / "server.log"
    file.write_text(text, encoding="utf-8")
    replayed = {e.quantity: e for e in outcomes([Record(row)], ModelFinder()) if e.by_rule}
    exact = {name for name, each in replayed.items() if each.status == "exact"}
    version = row.get("engine_version") or row.get("engine_version_by_date") or row.get("date")
    told: dict[str, Any] = {"model": row["config_ref"]}
    if family == "llama.cpp" and version:
        found = [
            word for word in version.split() if word[:2] == "20" or (word[0] == "b" and word[1:2].isdigit())
        ]
        told["engine"] = (
            f"llama.cpp@{(found[0].partition('-')[0] if found[0][0] == 'b' else found[0])}" if found else None
        )
    if family == "tensorrt-llm":
        told["engine_args"] = row.get("engine_args", "")
        told["engine"] = f"tensorrt-llm@{row['engine_version']}" if "engine_version" in row else None
    if family == "llama.cpp" and "--swa-full" in row.get("engine_args", ""):
        told["engine_args"] = "--swa-full"
    if row.get("gpu"):
        told["gpu"] = row["gpu"]
    try:
        answer = verify(file, **told).last
    except KvgaugeError as error:
        assert not exact, error
        return
    agreeing = {line.quantity for line in answer.lines if line.verdict == "agrees"}
    assert exact <= agreeing, (exact - agreeing, answer.engine, [line.to_dict() for line in answer.lines])
