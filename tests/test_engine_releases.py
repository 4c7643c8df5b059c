"""Flags by release, as the engines' own sources have them; what a version lacks is said, never written."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvgauge
from kvgauge.engines import releases
from kvgauge.engines.flag_notes import unknown_flags
from kvgauge.errors import FeatureUnsupportedError, KvgaugeError
from kvgauge.launch_flags import released_line

HERE = Path(__file__).parent
#: Read in the released files by searching their text: the last release without and the first with each flag.
GOLDEN = [
    json.loads(line)
    for line in (HERE / "golden" / "engine_flags_by_release_2026-11.jsonl").read_text("utf-8").splitlines()
]


@lru_cache(maxsize=8)
def loaded(name: str = "Qwen/Qwen3-8B") -> kvgauge.Model:
    return kvgauge.load(name, offline=True)


def notes_of(result) -> dict[str, str]:
    return {note.code: note.message for note in result.notes}


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: " ".join(map(str, row.values())))
def test_flags_and_words_by_release(row):
    if "value" in row:
        found = releases.takes_value(row["engine"], row["flag"], row["value"], row["version"])
    else:
        found = releases.has_flag(row["engine"], row["flag"], row["version"])
    assert found is row["has"]


def test_between_releases_that_disagree_it_is_not_known():
    assert releases.has_flag("vllm", "--data-parallel-size", "0.8.3rc1") is None
    assert releases.has_flag("llama.cpp", "--swa-full", "b5430") is None
    assert releases.has_flag("tensorrt-llm", "--kv_cache_dtype", "1.3.0rc9") is None
    assert releases.has_flag("tensorrt-llm", "--kv_cache_dtype", "1.2.1") is False
    assert releases.has_flag("vllm", "--kv-cache-dtype", "99.0") is True
    assert releases.has_flag("vllm", "--qqqq", "99.0") is None  # it may be new
    assert releases.has_flag("vllm", "--speculative-model", "99.0") is False
    assert (
        releases.has_flag("vllm", "--no-enable-prefix-caching", "0.33.0") is True
    )  # under the switch's name
    assert releases.has_flag("vllm", "--no-qqqq", "0.33.0") is False


def test_starts_of_names_count_where_one_flag_begins_so():
    assert releases.has_flag("sglang", "--pp", "0.5.3") is True
    assert releases.has_flag("sglang", "--pp", "0.5.23") is False  # two flags begin with it: argparse stops
    with pytest.raises(FeatureUnsupportedError, match=r"0\.5\.23 has no --pp$") as caught:
        kvgauge.size(loaded(), engine="sglang@0.5.23", engine_args="--pp 2")
    assert caught.value.hint == "--pp-size says it there"


@given(st.sampled_from(["vllm", "sglang", "llama.cpp", "tensorrt-llm", "theory"]), st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_line_has_unknown_flags_or_is_refused(engine, text):
    try:
        found = unknown_flags(engine, None, text)
    except KvgaugeError:
        return
    assert all(flag.startswith("-") for flag in found)


@pytest.mark.parametrize("engine", ["vllm@0.33.0", "sglang@0.5.23", "tensorrt-llm@1.4.0", "llama.cpp@v0.5.0"])
def test_unknown_flags_are_named_once_and_left_out(engine):
    plain = kvgauge.size(loaded(), engine=engine)
    told = kvgauge.size(loaded(), engine=engine, engine_args="--port 80 --qqqq-zzz 7 --qqqq-zzz 7")
    assert told.cache.total_bytes == plain.cache.total_bytes
    name, _, version = engine.partition("@")
    message = f"not known to {name} {version}, which would stop at it: --qqqq-zzz; left out of account"
    assert notes_of(told)["flags_unknown"] == message
    assert "flags_unknown" not in notes_of(plain)


def test_known_flags_are_not_named():
    lines = {
        "vllm": "-tp 2 -tp2 --no-enable-prefix-caching --max_model_len 4096 --compilation-config.mode 3 -O3",
        "sglang": "--tp 2 --mem-fraction-static 0.8 --trust-remote-code",
        "tensorrt-llm": "--tp 2 kv_cache_config.tokens_per_block=64 --backend pytorch --port 1",
        "llama.cpp": "-c 4096 --jinja -ngl 99 -b 2048 --temp 0.7",
    }
    for engine, line in lines.items():
        assert not unknown_flags(engine, None, line), engine
    assert not unknown_flags("llama.cpp", "ik", "-mla 2 -fmoe -rtr")
    assert unknown_flags("llama.cpp", "v0.5.0", "-mla 2 -fmoe") == ("-mla", "-fmoe")


def test_words_that_a_version_does_not_take():
    def word(engine, kv):
        return shlex.split(kvgauge.fit(loaded(), engine=engine, gpu="H100", kv_dtype=kv).launch_command)

    assert "fp4_e2m1" in word("sglang@0.5.10", "nvfp4")
    with pytest.raises(FeatureUnsupportedError, match="keeps no nvfp4 cache on H100"):
        word("sglang@0.5.23", "nvfp4")  # it asks for Blackwell, as the word before it did not
    blackwell = kvgauge.fit(loaded(), engine="sglang@0.5.23", gpu="B200", kv_dtype="nvfp4")
    assert "--kv-cache-dtype nvfp4" in blackwell.launch_command
    assert "--kv-cache-dtype" not in word("vllm@0.10.2", "bf16")  # the model's own: auto
    assert "bfloat16" in word("vllm@0.11.0", "bf16")
    with pytest.raises(FeatureUnsupportedError, match=r"of vllm 0\.18\.1 takes no nvfp4") as caught:
        word("vllm@0.18.1", "nvfp4")
    assert caught.value.hint == "0.20.0 and later have it"
    with pytest.raises(FeatureUnsupportedError, match=r"of sglang 0\.5\.3 takes no nvfp4"):
        word("sglang@0.5.3", "nvfp4")
    with pytest.raises(FeatureUnsupportedError, match="what vllm keeps in ultraquant_4bit is not known"):
        kvgauge.size(loaded(), engine="vllm", engine_args="--kv-cache-dtype ultraquant_4bit")
    with pytest.raises(FeatureUnsupportedError, match=r"--mamba-cache-mode of vllm 0\.32\.0 takes no all"):
        kvgauge.size(
            loaded("Qwen/Qwen3.5-35B-A3B"), engine="vllm@0.32.0", engine_args="--mamba-cache-mode all"
        )


def test_a_flag_that_the_version_lacks_is_left_out_and_said():
    line, notes = released_line("vllm serve a/b --kv-cache-memory-bytes 8 --port 80", "vllm", "0.9.2")
    assert line == "vllm serve a/b --port 80"
    assert [note.message for note in notes] == [
        "vllm 0.9.2 has no --kv-cache-memory-bytes: the command leaves it out; 0.10.2 and later have it"
    ]
    told = kvgauge.fit(loaded(), engine="vllm@0.9.2", kv_memory="10GiB")
    assert f"--num-gpu-blocks-override {told.pool.num_blocks}" in told.launch_command
    later = kvgauge.fit(loaded(), engine="vllm@0.10.2", kv_memory="10GiB")
    assert "--kv-cache-memory-bytes 10737418240" in later.launch_command
    assert "launch_flag_later" not in notes_of(later)


def test_what_trtllm_serve_has_no_flag_for_goes_into_its_file():
    told = kvgauge.fit(loaded(), engine="trtllm@1.2.1", gpu="H100", kv_dtype="fp8")
    assert "kv_cache_dtype" not in told.launch_command
    assert "{kv_cache_config: {dtype: fp8}}" in notes_of(told)["launch_needs_file"]
    newest = kvgauge.fit(loaded(), engine="trtllm@1.4.0", gpu="H100", kv_dtype="fp8")
    assert "--kv_cache_dtype fp8" in newest.launch_command
    assert "launch_needs_file" not in notes_of(newest)


def test_a_short_flag_is_written_out_where_it_was_not_yet():
    line = "llama-server -hf a/b --hf-file f.gguf -c 4096"
    assert released_line(line, "llama.cpp", "b4435") == (line.replace("-hf a", "--hf-repo a"), ())
    assert released_line(line, "llama.cpp", "b4529") == (line, ())


@pytest.mark.parametrize("vllm", ["0.8.5", "0.33.0"])
def test_replicas_over_machines_need_a_flag(vllm):
    told = kvgauge.fit(loaded(), engine=f"vllm@{vllm}", gpu="H100:16", tp=1, dp=16)
    assert bool(told.launch_command) is (vllm == "0.33.0")
    assert ("launch_on_one_machine" in notes_of(told)) is (vllm == "0.8.5")


def test_the_table_is_in_its_own_form():
    done = subprocess.run(
        [sys.executable, str(HERE.parent / "tools" / "engine_releases.py"), "check"], check=False
    )
    assert done.returncode == 0


def launched(model, engine, **words):
    result = kvgauge.fit(loaded(model), engine=engine, gpu="H100:1", **words)
    codes = {code for code in notes_of(result) if code.startswith("engine_model")}
    return bool(result.launch_command), codes


#: Read in the registries of the releases, and in the classes of Transformers 5.24.0.
MODELS = {
    ("Qwen/Qwen3-8B", "vllm@0.33.0"): (True, set()),
    ("openai/whisper-large-v3", "vllm@0.33.0"): (True, set()),
    ("google-t5/t5-base", "vllm@0.33.0"): (False, {"engine_model_unknown"}),
    ("jet-ai/Jet-Nemotron-2B", "vllm@0.33.0"): (False, {"engine_model_unknown"}),
    ("jet-ai/Jet-Nemotron-2B", "sglang@0.5.23"): (True, set()),
    ("Qwen/Qwen3.5-35B-A3B", "vllm@0.16.0"): (False, {"engine_model_later"}),
    ("Qwen/Qwen3.5-35B-A3B", "vllm@0.17.0"): (True, set()),
    ("meta-llama/Llama-3.2-11B-Vision-Instruct", "vllm@0.33.0"): (False, {"engine_model_dropped"}),
    ("rednote-hilab/dots.llm1.inst", "vllm@0.23.0"): (True, set()),
    ("rednote-hilab/dots.llm1.inst", "vllm@0.24.0"): (True, {"engine_model_fallback"}),
    ("apple/OpenELM-270M", "vllm@0.33.0"): (True, {"engine_model_plugin"}),
    ("tencent/Youtu-LLM-2B", "vllm@0.28.0"): (True, {"engine_model_fallback"}),
    ("tencent/Youtu-LLM-2B", "vllm@0.27.1"): (True, {"engine_model_plugin"}),  # latents, not yet
    ("allenai/Olmo-3-7B-Instruct", "tensorrt-llm@1.4.0"): (True, {"engine_model_plugin"}),
    ("allenai/Olmo-3-7B-Instruct", "tensorrt-llm@1.2.1"): (True, set()),  # that release was not read
    ("microsoft/Phi-3.5-vision-instruct", "llama.cpp@v0.5.0"): (True, {"engine_model_unconverted"}),
}


@pytest.mark.parametrize(("model", "engine"), list(MODELS))
def test_models_that_a_release_loads(model, engine):
    words = {"context": 512} if "t5" in model else {"context": 4096}
    assert launched(model, engine, **words) == MODELS[model, engine]


def test_plan_does_not_offer_what_the_engine_does_not_load():
    with pytest.raises(FeatureUnsupportedError, match="does not load T5ForConditionalGeneration") as caught:
        kvgauge.plan(loaded("google-t5/t5-base"), gpu="H100", context=512)
    assert caught.value.hint == "of the engines known here, these do: tensorrt-llm, llama.cpp"
    with pytest.raises(FeatureUnsupportedError, match=r"vllm 0\.16\.0 does not load Qwen3_5Moe"):
        kvgauge.plan(loaded("Qwen/Qwen3.5-35B-A3B"), engine="vllm@0.16.0", gpu="H100", context=4096)


def test_a_config_without_a_class_says_nothing():
    config = {k: v for k, v in loaded().raw.config.items() if k != "architectures"}
    for named in ({}, {"architectures": None}, {"architectures": [7, ""]}, {"architectures": "Qwen"}):
        result = kvgauge.size({**config, **named}, engine="vllm")
        assert not any(code.startswith("engine_model") for code in notes_of(result)), named
    for named in ("NewModel", "NewForCausalLM"):
        result = kvgauge.size({**config, "architectures": [named]}, engine="vllm@0.33.0")
        assert ("engine_model_plugin" in notes_of(result)) is named.endswith("ForCausalLM")
    newer = kvgauge.size({**config, "architectures": ["NewForCausalLM"]}, engine="vllm@0.40.0")
    assert "engine_model_plugin" not in notes_of(newer)


NVFP4, MXFP4, FP8 = "nvidia/Gemma-4-31B-IT-NVFP4", "openai/gpt-oss-20b", "Qwen/Qwen3-8B-FP8"


@pytest.mark.parametrize(
    ("model", "engine", "card", "hint"),
    [
        # get_min_capability of the methods in the releases: 10.0, 8.0, 7.5 in turn
        (NVFP4, "sglang@0.5.12", "H200", "0.5.13 and later run them there"),
        (NVFP4, "sglang@0.5.13", "H200", None),
        (NVFP4, "sglang@0.5.23", "A100 SXM4 80GB", None),
        (NVFP4, "sglang@0.5.12", "B200", None),
        (NVFP4, "vllm@0.33.0", "A100 SXM4 80GB", None),
        (FP8, "vllm@0.13.0", "T4", "0.14.0 and later run them there"),
        (FP8, "vllm@0.14.0", "T4", None),
        (FP8, "sglang@0.5.23", "T4", "other weights, or another card"),
        (MXFP4, "vllm@0.33.0", "T4", "other weights, or another card"),
        (MXFP4, "vllm@0.33.0", "A100 SXM4 80GB", None),
    ],
)
def test_weights_that_a_release_does_not_run_on_a_card(model, engine, card, hint):
    def fit():
        return kvgauge.fit(loaded(model), engine=engine, gpu=card, context=1024, kv_dtype="bf16")

    if hint is None:
        assert fit().verdict.required_bytes > 0
        return
    with pytest.raises(FeatureUnsupportedError, match="weights from compute capability") as caught:
        fit()
    assert caught.value.hint == hint


def test_plan_offers_no_card_that_the_weights_do_not_run_on():
    found = kvgauge.plan(loaded(NVFP4), engine="sglang@0.5.12", gpu="H200,B200", context=4096)
    assert {option.device.name for option in found.options if not option.fit.weights.what_if} == {"B200"}


@pytest.mark.parametrize(
    ("model", "engine", "since"),
    [
        ("openai/gpt-oss-120b", "vllm@0.8.5", "0.10.1.1"),
        ("Qwen/Qwen3-30B-A3B", "vllm@0.7.3", "0.8.4"),
        ("Qwen/Qwen3-8B", "llama.cpp@b4000", "b5415"),
    ],
)
def test_a_class_of_a_later_release_is_not_left_to_transformers(model, engine, since):
    result = kvgauge.fit(kvgauge.load(model, offline=True), engine=engine, gpu="H100:2", context=1024)
    told = {note.code: dict(note.values) for note in result.notes}
    assert told["engine_model_later"]["release"] == since
    assert not result.launch_command
