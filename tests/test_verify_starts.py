"""``verify``: starts that are told apart, builds told by their words, failures with what lacks and what fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kvgauge.cli.app import execute
from kvgauge.data import read_data
from kvgauge.render.messages import en, zh
from kvgauge.verification.phrases import FAILED, FAILURES
from kvgauge.verification.verifying import verify

REFUSED = """\
INFO 08-04 12:00:00 [api_server.py:1755] vLLM API server version 0.10.1
INFO 08-04 12:00:00 [utils.py:326] non-default args: {'model': 'Qwen/Qwen3-32B', 'max_model_len': 131072}
INFO 08-04 12:01:00 [gpu_model_runner.py:1892] Model loading took 61.03 GiB and 12.1 seconds
INFO 08-04 12:02:00 [gpu_worker.py:276] Available KV cache memory: 12.10 GiB
ValueError: To serve at least one request with the models's max seq len (131072), (32.00 GiB KV cache is \
needed, which is larger than the available KV cache memory (12.10 GiB). Based on the available memory, the \
estimated maximum model length is 49552.
"""
OTHER = """\
INFO vLLM API server version 0.19.1
INFO non-default args: {'model': 'Qwen/Qwen3-8B', 'max_model_len': 32768}
INFO Model loading took 15.27 GiB memory and 3.2 seconds
"""
NO_ROOM = """\
INFO vLLM API server version 0.11.1
INFO non-default args: {'model': 'meta-llama/Llama-3.1-70B-Instruct', 'tensor_parallel_size': 2}
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has a total capacity of \
39.39 GiB of which 512.19 MiB is free.
"""
#: An 8B model under Ollama of January 2025; its buffers are those of a record.
OLD_LLAMA = """\
llama_model_loader: - kv   0:                       general.architecture str              = llama
llama_model_loader: - kv   2:                               general.name str              = Llama 3.1 8B
llama_model_loader: - kv   9:                          llama.block_count u32              = 32
llama_model_loader: - kv  10:                       llama.context_length u32              = 131072
llama_model_loader: - kv  11:                     llama.embedding_length u32              = 4096
llama_model_loader: - kv  12:                  llama.feed_forward_length u32              = 14336
llama_model_loader: - kv  13:                 llama.attention.head_count u32              = 32
llama_model_loader: - kv  14:              llama.attention.head_count_kv u32              = 8
llama_model_loader: - kv  18:                           llama.vocab_size u32              = 128256
llm_load_tensors: offloaded 33/33 layers to GPU
llama_new_context_with_model: n_seq_max     = 4
llama_new_context_with_model: n_ctx         = 8192
llama_new_context_with_model: n_batch       = 2048
llama_new_context_with_model: n_ubatch      = 512
llama_new_context_with_model: flash_attn    = 0
llama_kv_cache_init: kv_size = 8192, offload = 1, type_k = 'f16', type_v = 'f16', n_layer = 32, can_shift = 1
llama_kv_cache_init:      CUDA0 KV buffer size =  1024.00 MiB
llama_new_context_with_model: KV self size  = 1024.00 MiB, K (f16):  512.00 MiB, V (f16):  512.00 MiB
llama_new_context_with_model:      CUDA0 compute buffer size =   560.00 MiB
"""


@pytest.fixture
def read(tmp_path: Path):
    def read(text: str, encoding: str = "utf-8", **options: str):
        file = tmp_path / "server.log"
        file.write_text(text, encoding=encoding)
        return verify(file, **options)

    return read


def advice(answer) -> dict[str, str]:
    return {one.code: one.note.message for one in answer.advice}


def test_every_failure_is_in_the_schema_and_has_words():
    schema = json.loads(read_data("schemas/verify.json"))
    codes = {code for code, _ in FAILURES}
    for starts in (schema, schema["properties"]["earlier"]["items"]):
        assert set(starts["properties"]["failures"]["items"]["properties"]["code"]["enum"]) == codes
    assert codes == set(FAILED)
    for code in codes:
        assert f"failure_{code}" in en.MESSAGES
        assert f"failure_{code}" in zh.MESSAGES


def test_the_version_line_belongs_to_the_start_that_follows(read):
    first, last = read(OTHER + REFUSED).starts
    assert (first.engine["version"], last.engine["version"]) == ("0.19.1", "0.10.1")
    assert "--max-model-len 49552 is" in advice(last)["shorter"]


def test_a_refused_length_says_what_lacks_without_a_card(read):
    assert advice(read(REFUSED).last)["lacks"] == "19.90 GiB more of pool are needed"


def test_an_allocation_that_failed_says_what_lacks_and_what_fits(read):
    found = advice(read(NO_ROOM).last)
    assert found["predicted"].startswith("the weights alone take 65.7 GiB")
    assert found["more_ranks"].startswith("--tp 8")
    assert "fp8" not in found  # what does not make it fit is not named


def test_without_a_card_it_is_asked_for(read):
    text = OTHER + "ValueError: No available memory for the cache blocks.\n"
    assert "--gpu NAME" in advice(read(text).last)["name_card"]
    assert "predicted" in advice(read(text, gpu="RTX 4080").last)


def test_the_blocks_of_a_refusal_hold(read):
    text = (
        "INFO vLLM API server version 0.29.0\nINFO non-default args: {'model': 'Qwen/Qwen3.5-27B'}\n"
        "INFO Available KV cache memory: 14.2 GiB\n"
        "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (270).\n"
    )
    assert advice(read(text).last)["sequences"].startswith("--max-num-seqs 270")


def test_words_of_an_old_build_tell_its_rules(read):
    answer = read(OLD_LLAMA).last
    verdicts = {line.quantity: line.verdict for line in answer.lines}
    assert verdicts == {"kv_bytes_per_token": "agrees", "kv_cache_mib": "agrees", "compute": "in_range"}
    assert [note.code for note in answer.notes] == ["verify_llama_era"]


@pytest.mark.parametrize("line", [
    "ggml_vulkan: Device memory allocation of size 5368709120 failed.",
    "ggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory",
    "llama_init_from_model: failed to initialize the context: failed to allocate compute pp buffers",
])  # fmt: skip
def test_refusals_of_other_devices(read, line):
    assert [one["code"] for one in read(f"{OLD_LLAMA}{line}\n").last.failures] == ["out_of_memory"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_what_a_shell_of_windows_writes(read, encoding):
    assert len(read(REFUSED.replace("\n", "\r\n"), encoding).last.lines) == 3


@pytest.mark.parametrize("columns", ["80", "50"])
def test_the_difference_is_shown_at_any_width(tmp_path, columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    file = tmp_path / "server.log"
    file.write_text(OLD_LLAMA, encoding="utf-8")
    assert execute(["verify", str(file), "--lang", "en"]) == 0
    assert "+0.72 %" in capsys.readouterr().out
