"""Flags of llama-server and of others that launch llama.cpp, as one value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvgauge.engines.llamacpp import build_notes, plan, rules_for, settings_of
from kvgauge.engines.llamacpp.cells import context_sizes
from kvgauge.engines.llamacpp.flags import SETTINGS, parse
from kvgauge.engines.llamacpp.placement import layer_placement
from kvgauge.engines.llamacpp.settings import LlamaSettings
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError, KvgaugeError
from kvgauge.readers.gguf import read_metadata


def model(**keys):
    stated = {
        "block_count": 32, "attention.head_count": 32, "attention.head_count_kv": 8, "embedding_length": 4096,
        "attention.key_length": 128, "attention.value_length": 128, "context_length": 131072, **keys,
    }  # fmt: skip
    return read_metadata({"general.architecture": "llama", **{f"llama.{k}": v for k, v in stated.items()}})


def test_the_server_has_four_slots_on_one_cache():
    settings = settings_of("-c 32768")
    assert (settings.sequences, settings.unified, settings.context_tokens) == (4, True, 32768)
    assert settings.outputs == 4
    assert context_sizes(settings, None).cells == 32768


def test_slots_that_are_asked_for_divide_the_context():
    sizes = context_sizes(settings_of("-c 32768 -np 4"), None)
    assert (sizes.cells, sizes.streams, sizes.n_ctx) == (8192, 4, 32768)


@pytest.mark.parametrize(
    ("asked", "sequences", "cells", "streams", "total"),
    [(5000, 3, 1792, 3, 5376), (4096, 10, 512, 10, 5120), (1024, 3, 512, 3, 1536), (1024, 4, 256, 4, 1024)],
)
def test_rounding(asked, sequences, cells, streams, total):
    sizes = context_sizes(settings_of(f"-c {asked} -np {sequences}"), None)
    assert (sizes.cells, sizes.streams, sizes.n_ctx) == (cells, streams, total)


def test_a_load_becomes_flags():
    assert settings_of(context_tokens=4096, sequences=3).context_tokens == 3 * 4096
    one = settings_of(context_tokens=4096)
    assert (one.context_tokens, one.sequences, one.unified) == (4096, 4, True)
    told = settings_of("-np 2", context_tokens=4096)
    assert (told.context_tokens, told.sequences, told.unified) == (8192, 2, False)
    assert settings_of("-np 2 --kv-unified", context_tokens=4096).context_tokens == 8192


@pytest.mark.parametrize(
    ("window", "slots", "micro_batch", "cells"),
    [(1024, 4, 512, 4608), (1024, 4, 2048, 6144), (128, 1, 512, 768), (128, 1, 2048, 2304), (512, 1, 512, 1024),
     (1024, 1, 512, 1536), (2048, 1, 512, 2560), (128, 1, 4096, 4352), (128, 1, 8192, 8448)],
)  # fmt: skip
def test_window_cells_that_logs_show(window, slots, micro_batch, cells):
    settings = LlamaSettings(
        context_tokens=131072,
        sequences=slots,
        unified=True,
        batch_tokens=8192,
        micro_batch_tokens=micro_batch,
    )
    sizes = context_sizes(settings, None)
    assert sizes.window_cells(window, settings, shared=True) == cells


def test_words_of_ollama_and_lm_studio():
    ollama = settings_of(
        "num_ctx=8192 OLLAMA_NUM_PARALLEL=2 OLLAMA_KV_CACHE_TYPE=q8_0 OLLAMA_FLASH_ATTENTION=1"
    )
    assert (ollama.context_tokens, ollama.sequences, ollama.k_type, ollama.v_type, ollama.flash) == (
        16384, 2, "q8_0", "q8_0", "on",
    )  # fmt: skip
    studio = settings_of("contextLength=4096 flashAttention=true llamaKCacheQuantizationType=q4_0")
    assert (studio.context_tokens, studio.flash, studio.k_type, studio.sequences) == (4096, "on", "q4_0", 1)


def test_other_programs_have_one_sequence():
    assert settings_of("llama-cli -m model.gguf -c 4096").sequences == 1
    bench = settings_of("llama-bench -c 4096")
    assert (bench.sequences, bench.outputs) == (1, 0)


def test_drafts_add_rows_and_snapshots():
    settings = settings_of("-c 4096 --spec-type draft-mtp --spec-draft-n-max 2 -np 1")
    assert (settings.mtp, settings.rollback_tokens, settings.outputs) == (True, 2, 3)
    assert settings_of("-c 4096 -np 1", draft_tokens=1).rollback_tokens == 1


def test_flags_without_effect_are_skipped():
    line = (
        "llama-server -m a.gguf --host 0.0.0.0 --port 8080 -t 8 --jinja --temp 0.7 -c 4k -fa -ngl 99 --mlock"
    )
    assert parse(line) == {"program": "llama-server", "context": 4096, "flash": "on", "gpu_layers": 99}


@pytest.mark.parametrize(
    ("line", "hint"),
    [("--ctx-sze 4096", "--ctx-size"), ("-c", ""), ("-c four", ""), ("-fa=maybe", ""), ("-ts a,b", ""),
     ("-sm diagonal", ""), ("-ctk q9_9", ""), ("-b 0", ""), ("'", ""), ("n_ctxx=1", "n_ctx")],
)  # fmt: skip
def test_bad_flags_are_refused(line, hint):
    with pytest.raises(InvalidRequestError) as caught:
        settings_of(line)
    assert hint in caught.value.hint


def test_types_that_are_for_weights_only():
    with pytest.raises(FeatureUnsupportedError, match="q4_k"):
        settings_of("-ctk q4_K")


def test_too_many_sequences():
    with pytest.raises(FeatureUnsupportedError, match="256"):
        settings_of("-np 257")


@given(st.text(max_size=200))
def test_any_line_is_read_or_refused(line):
    try:
        settings_of(line, context_tokens=4096)
    except KvgaugeError as error:
        assert error.message


def test_spellings_are_of_one_setting():
    spellings = [s for _, all_ in SETTINGS.values() for s in all_]
    assert len(spellings) == len(set(spellings))


def test_layers_go_to_the_devices_from_the_end():
    places = layer_placement(settings_of("-c 4096 -ngl 10"), 32)
    assert [places.place(i) for i in (0, 22, 23, 31, 32)] == ["host", "host", "gpu:0", "gpu:0", "gpu:0"]
    split = layer_placement(settings_of("-c 4096 -ts 3,1"), 31)
    assert [split.place(i) for i in (0, 23, 24, 31)] == ["gpu:0", "gpu:0", "gpu:1", "gpu:1"]
    assert layer_placement(settings_of("-c 4096 -ngl 0"), 31).devices == ()


def test_caches_follow_their_layers():
    answer = plan(model(), settings_of("-c 4096 -np 1 -ngl 9"))
    sizes = {(a.name, a.place): a.layers for a in answer.allocations if a.kind == "cache"}
    assert sizes == {("kv.k", "host"): 24, ("kv.k", "gpu:0"): 8, ("kv.v", "host"): 24, ("kv.v", "gpu:0"): 8}
    away = plan(model(), settings_of("-c 4096 -np 1 -nkvo"))
    assert {a.place for a in away.allocations if a.kind == "cache"} == {"host"}


def test_a_context_that_nobody_states():
    keys = {
        "block_count": 2,
        "attention.head_count": 8,
        "attention.head_count_kv": 8,
        "embedding_length": 512,
    }
    bare = read_metadata({"general.architecture": "llama", **{f"llama.{k}": v for k, v in keys.items()}})
    with pytest.raises(InvalidRequestError, match="how long"):
        plan(bare, LlamaSettings())


# -- builds ---------------------------------------------------------------------------------------


def latent_model():
    keys = {
        "block_count": 61, "attention.head_count": 128, "attention.head_count_kv": 1, "embedding_length": 7168,
        "attention.kv_lora_rank": 512, "attention.key_length": 576, "attention.value_length": 512,
        "attention.key_length_mla": 192, "attention.value_length_mla": 128, "rope.dimension_count": 64,
    }  # fmt: skip
    return read_metadata(
        {"general.architecture": "deepseek2", **{f"deepseek2.{k}": v for k, v in keys.items()}}
    )


def test_latents_over_eighteen_months():
    per_token = {}
    for version in ("b4500", "b6500", "v0.5.0"):
        answer = plan(latent_model(), settings_of("-c 4096 -np 1 -fa on", build=rules_for(version)))
        per_token[version] = answer.total_bytes("cache") / 4096
    assert per_token["v0.5.0"] == 61 * 576 * 2
    assert per_token["b6500"] == 61 * (576 + 512) * 2
    assert per_token["b4500"] == 61 * 128 * (192 + 128) * 2  # 4.77 MiB a token


def test_older_builds_round_to_32_and_have_one_slot():
    settings = settings_of("-c 2000", build=rules_for("b5000"))
    assert settings.sequences == 1
    assert context_sizes(settings, None).n_ctx == 2016


def test_windows_before_the_pool():
    keys = {
        "block_count": 12, "attention.head_count": 8, "attention.head_count_kv": 4, "embedding_length": 2048,
        "attention.key_length": 256, "attention.value_length": 256, "attention.sliding_window": 512,
    }  # fmt: skip
    gemma = read_metadata({"general.architecture": "gemma3", **{f"gemma3.{k}": v for k, v in keys.items()}})
    old = plan(gemma, settings_of("-c 8192 -np 1", build=rules_for("2025-03")))
    new = plan(gemma, settings_of("-c 8192 -np 1"))
    assert {a.name for a in old.allocations if a.kind == "cache"} == {"kv.k", "kv.v"}
    assert (old.swa_cells, new.swa_cells) == (None, 1024)


def test_versions():
    assert rules_for("b9500").few_outputs
    assert build_notes("v0.6.0")[0].code == "engine_version_newer"
    assert build_notes("v0.5.0") == ()
    with pytest.raises(FeatureUnsupportedError):
        rules_for("b1000")
    with pytest.raises(InvalidRequestError):
        rules_for("latest")


def test_a_fork_that_unpacks_latents_is_bounded_by_its_flag():
    fork = rules_for("ik")
    told = settings_of("-fa on -mla 3 -amb 512", build=fork)
    assert (told.unpacks, told.attention_mib) == (True, 512)
    assert not settings_of("-fa on -mla 1", build=fork).unpacks
    assert not settings_of("-fa off -mla 2", build=fork).unpacks
