"""vLLM in the commands: what sequences set aside, and the pool that ``fit`` answers, against its own plans."""

from __future__ import annotations

import json
from functools import lru_cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kvgauge
from kvgauge.arithmetic import evaluate
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError, KvgaugeError
from support import golden_lines
from vllm_records import CONFIGS, LONGEST, ORACLE, SETUP_FAILURE

GIB = 1 << 30
GOLDEN = golden_lines("vllm_0.33_pools.jsonl")[1:]
BIG = "Qwen/Qwen3-8B"
MODELS = (
    BIG, "google/gemma-3-27b-it", "Qwen/Qwen3.5-35B-A3B", "deepseek-ai/DeepSeek-V4-Flash",
    "deepseek-ai/DeepSeek-V3.2", "openai/gpt-oss-20b", "nvidia/NVIDIA-Nemotron-Nano-9B-v2",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct", "openai/whisper-large-v3",
)  # fmt: skip


def keywords_of(row: dict) -> dict:
    """Return the keywords of ``fit`` for a golden row, or a record in its words."""
    words = {
        "engine": "vllm@0.33.0", "gpu": row["gpu"], "context": LONGEST, "tp": row["tp"], "pp": row["pp"],
        "kv_dtype": row["kv_dtype"], "mtp": row["mtp_tokens"], "no_weights": True,
    }  # fmt: skip
    return words | ({} if row["prefix_caching"] else {"engine_args": "--no-enable-prefix-caching"})


@pytest.mark.parametrize("row", GOLDEN[::5], ids=lambda row: f"{row['model']}-{row['gpu'].split()[-1]}")
def test_pools_equal_the_engines_own(row):
    words = keywords_of(row)
    if row.get("refused"):
        with pytest.raises(FeatureUnsupportedError):
            kvgauge.fit(row["model"], kv_memory="20GiB", offline=True, **words)
        return
    for gib, blocks, tokens, concurrency in row["pools"]:
        found = kvgauge.fit(row["model"], kv_memory=f"{gib}GiB", offline=True, **words).pool
        assert (found.num_blocks, found.capacity_tokens, found.max_concurrency) == (
            blocks,
            tokens,
            concurrency,
        )
        assert (found.block_size_tokens, found.bytes_per_block) == (row["block_size"], row["bytes_per_block"])
        assert found.blocks_per_request == sum(group[-1] for group in row["groups"])


@pytest.mark.skipif(not ORACLE.is_dir(), reason="the wider records are not here")
def test_every_record_through_the_public_call():
    unequal, count = [], 0
    for name in ("vllm_0.33.jsonl", "vllm_0.33_variants.jsonl"):
        for line in (ORACLE / name).read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if "ModelConfig" in record.get("error", "") or SETUP_FAILURE in record.get("error", ""):
                continue
            count += 1
            if _of_record(record) != _stated(record):
                unequal.append((record["model"], record["gpu"], record.get("variant")))
    assert not unequal
    assert count > 500


def _of_record(record: dict) -> list | None:
    variant = record.get("variant", "")
    row = {
        **record, "kv_dtype": record["kv_dtype_arg"], "prefix_caching": variant != "prefix caching off",
        "mtp_tokens": int(variant.split()[1]) if variant.startswith("MTP") else None,
    }  # fmt: skip
    folders = (CONFIGS / "real", CONFIGS / "logs")
    path = next(f for folder in folders if (f := folder / f"{record['model']}.json").is_file())
    side = path.with_name(f"{record['model']}.hf_quant_config.json")
    model = _with_side_file(path, side) if side.is_file() else path
    try:
        pools = [
            kvgauge.fit(model, kv_memory=int(gib) << 30, **keywords_of(row)).pool
            for gib in record.get("budgets_gib", {"20": None})
        ]
    except FeatureUnsupportedError:
        return None
    return [
        [p.block_size_tokens, p.bytes_per_block, p.blocks_per_request, p.num_blocks, p.capacity_tokens,
         p.max_concurrency]
        for p in pools
    ]  # fmt: skip


def _with_side_file(path, side):
    from kvgauge.models import Model, load
    from kvgauge.readers import read_architecture

    model = load(path)
    quantization = json.loads(side.read_text(encoding="utf-8"))
    return Model(model.raw, read_architecture(model.raw.config, quantization))


def _stated(record: dict) -> list | None:
    if "error" in record:
        return None
    return [
        [record["block_size"], record["pool_bytes_per_block"], record["blocks_per_request"], budget["num_blocks"],
         budget["kv_cache_size_tokens"], budget["max_concurrency"]]
        for budget in record["budgets_gib"].values()
    ]  # fmt: skip


# What sequences set aside


@lru_cache
def loaded(name: str) -> kvgauge.Model:
    return kvgauge.load(name, offline=True)


LOADS = st.fixed_dictionaries({
    "context": st.integers(1, 200_000),
    "sequences": st.integers(1, 9),
    "tp": st.sampled_from([1, 2, 4]),
    "pp": st.sampled_from([1, 1, 3]),
    "dp": st.sampled_from([1, 1, 2]),
    "kv_dtype": st.sampled_from(["auto", "auto", "fp8"]),
    "shared_prefix": st.sampled_from([0, 0, 1, 999, 4096]),
    "engine_args": st.sampled_from(["", "--no-enable-prefix-caching", "--block-size 64", "--enforce-eager"]),
})  # fmt: skip


def sized(model: str, load: dict, **more):
    load = {**load, "shared_prefix": min(load["shared_prefix"], load["context"])}
    return kvgauge.size(loaded(model), engine="vllm", no_weights=True, **load, **more)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.sampled_from(MODELS), LOADS)
def test_every_sum_agrees(model, load):
    try:
        result = sized(model, load)
    except KvgaugeError:
        return
    cache, demand = result.cache, result.cache.demand
    assert sum(layer.total_bytes for layer in cache.layers) == cache.total_bytes == sum(cache.group_bytes)
    assert cache.bytes_at(load["context"]) == cache.bytes_per_sequence
    parts = [part for part in result.allocations if part["name"] != "reserved"]
    assert sum(part["bytes"] for part in parts) == sum(cache.per_rank_bytes)
    assert all(part["bytes"] > 0 for part in result.allocations)
    block_bytes = max(sizes for part in demand.beside for sizes in part.stage_bytes)
    assert max(cache.per_rank_bytes) == demand.details["blocks"] * block_bytes
    if load["pp"] == load["tp"] == load["dp"] == 1 and not load["shared_prefix"]:
        assert cache.total_bytes == demand.details["blocks"] * demand.details["bytes_per_block"]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(MODELS), st.integers(1, 100_000), st.integers(1, 100_000))
def test_terms_hold_at_every_length(model, context, other):
    here, there = (kvgauge.size(loaded(model), engine="vllm", context=n, max_model_len=200_000, no_weights=True)
                   for n in (context, other))  # fmt: skip
    assert here.cache.bytes_at(other) == there.cache.bytes_per_sequence
    assert (other <= context) == (there.cache.bytes_per_sequence <= here.cache.bytes_per_sequence) or (
        there.cache.bytes_per_sequence == here.cache.bytes_per_sequence
    )


@pytest.mark.parametrize("context", [4096, 10_001, 131_072])
@pytest.mark.parametrize("model", [m for m in MODELS if "whisper" not in m])
def test_what_is_kept_is_theory_in_the_same_formats(model, context):
    result = kvgauge.size(loaded(model), engine="vllm", context=context, no_weights=True)
    names = {demand.group.name for demand in result.cache.demand.kept if demand.streams}
    kept = sum(part["bytes"] for part in result.allocations if part["name"] in names)
    assert kept == result.theory.total_bytes


def test_named_parts():
    gemma = kvgauge.size(loaded("google/gemma-3-27b-it"), engine="vllm", context=32768, no_weights=True)
    hybrid = kvgauge.size(loaded("Qwen/Qwen3.5-35B-A3B"), engine="vllm", context=32768, no_weights=True)
    assert {p["name"] for p in gemma.allocations} == {"full", "sliding", "in_flight", "padding", "reserved"}
    assert {p["name"] for p in hybrid.allocations} == {
        "full",
        "recurrent",
        "state_copies",
        "padding",
        "reserved",
    }
    padding = [layer for layer in gemma.cache.layers if layer.kind.value == "none"]
    assert len(padding) == 1
    assert hybrid.cache.demand.details["block_size_tokens"] == 1088


def test_formats_of_the_engine():
    result = kvgauge.size(loaded("deepseek-ai/DeepSeek-V3.2"), engine="vllm", kv_dtype="fp8", context=64)
    assert result.to_dict()["request"]["k_dtype"] == "fp8_ds_mla"
    assert result.cache.demand.details["kv_cache_dtype"] == "fp8_ds_mla"
    with pytest.raises(InvalidRequestError, match="one dtype"):
        kvgauge.size(loaded(BIG), engine="vllm", k_dtype="bf16", v_dtype="fp8")


def test_wide_checkpoints_are_loaded_in_16_bit():
    config = {**loaded(BIG).raw.config, "torch_dtype": "float32"}
    plain, theory = (kvgauge.size(config, engine=engine) for engine in ("vllm", "theory"))
    assert plain.weights.total_bytes == theory.weights.total_bytes == 4 * plain.weights.stored.num_parameters
    assert plain.weights.per_rank_bytes == (2 * plain.weights.stored.num_parameters,)
    assert plain.cache.growth_bytes_per_token == 147_456


def test_versions():
    assert kvgauge.size(loaded(BIG), engine="vllm").request.engine_version == "0.33.0"
    newer = kvgauge.size(loaded(BIG), engine="vllm@0.99")
    assert "engine_version_newer" in {note.code for note in newer.notes}
    assert newer.grade == "assumed"
    with pytest.raises(FeatureUnsupportedError, match=r"0\.6\.0"):
        kvgauge.size(loaded(BIG), engine="vllm@0.5")
    with pytest.raises(InvalidRequestError):
        kvgauge.size(loaded(BIG), engine="vllm@latest")


@pytest.mark.parametrize("version", ["0.6.6", "0.8.5", "0.11.0", "0.19.1", "0.24.0", "0.33.0"])
@pytest.mark.parametrize("model", MODELS)
def test_every_version_answers_or_refuses(model, version):
    try:
        result = kvgauge.size(loaded(model), engine=f"vllm@{version}", context=8192, no_weights=True)
    except FeatureUnsupportedError:
        return
    assert sum(layer.total_bytes for layer in result.cache.layers) == result.cache.total_bytes > 0


# Options and flags


def codes(result) -> list[str]:
    return [note.code for note in result.notes]


def test_flags_go_before_options():
    result = kvgauge.size(
        loaded(BIG), engine="vllm", tp=2, kv_dtype="bf16", engine_args="-tp 4 --kv-cache-dtype fp8"
    )
    assert result.request.parallelism.tensor == 4
    assert result.cache.demand.dtypes.k == "fp8_e4m3"
    assert codes(result) == ["engine_flag_wins", "engine_flag_wins"]
    agreed = kvgauge.size(
        loaded(BIG), engine="vllm", tp=4, context="4k", engine_args="-tp 4 --max-model-len 4096"
    )
    assert codes(agreed) == []


def test_flags_that_state_a_default_go_before_options_too():
    words = {"engine": "vllm", "no_weights": True, "tp": 2, "kv_dtype": "fp8", "mtp": None}
    result = kvgauge.size(loaded(BIG), engine_args="-tp 1 --kv-cache-dtype auto", **words)
    assert len(result.cache.per_rank_bytes) == 1
    assert result.cache.demand.dtypes.k == "bf16"
    assert codes(result) == ["engine_flag_wins", "engine_flag_wins"]
    fitted = kvgauge.fit(
        loaded(BIG), kv_memory="9GiB", engine_args="-tp 1 --max-num-seqs 4", **{**words, "engine": None}
    )
    assert fitted.launch_command.count("-tp 1") == 1
    assert "--tensor-parallel-size" not in fitted.launch_command
    assert (fitted.max_sequences.count, fitted.max_sequences.limited_by) == (3, "memory")


def test_a_share_of_the_card_does_nothing_to_a_given_pool():
    assert "option_without_effect" in codes(kvgauge.fit(loaded(BIG), kv_memory="9GiB", utilization=0.5))


def test_load_and_reservation():
    alone = kvgauge.size(loaded(BIG), engine="vllm", engine_args="--max-model-len 8192")
    assert alone.request.workload.context_tokens == 8192
    both = kvgauge.fit(loaded(BIG), engine="vllm", kv_memory="8GiB", context=1000, max_model_len=8192)
    assert both.request.workload.context_tokens == 1000
    assert both.pool.blocks_per_request == 512
    assert both.verdict.required_bytes == 513 * 2359296  # one longest request must have room
    beyond = kvgauge.fit(
        loaded(BIG), engine="vllm", kv_memory="8GiB", context=9000, engine_args="--max-model-len 8192"
    )
    assert "context_beyond_reservation" in codes(beyond)
    assert (beyond.verdict.fits, beyond.verdict.limiting) == (False, "flag")
    assert (beyond.max_context.count, beyond.max_context.limited_by) == (8192, "flag")


def test_drafting_flags_load_the_drafting_layers():
    flags = '--speculative-config \'{"method": "mtp", "num_speculative_tokens": 2}\''
    told = kvgauge.size(loaded("deepseek-ai/DeepSeek-V3"), engine="vllm", engine_args=flags, no_weights=True)
    asked = kvgauge.size(loaded("deepseek-ai/DeepSeek-V3"), engine="vllm", mtp=2, no_weights=True)
    assert told.cache.total_bytes == asked.cache.total_bytes
    assert told.request.workload.mtp == 2
    unknown = kvgauge.size(
        loaded(BIG), engine="vllm", no_weights=True,
        engine_args='--speculative-config \'{"method": "eagle3", "model": "x", "num_speculative_tokens": 2}\'',
    )  # fmt: skip
    assert "drafter_layers_assumed" in codes(unknown)


def test_prefixes_are_shared_by_whole_blocks_alone():
    load = {"engine": "vllm", "context": 1000, "sequences": 3, "no_weights": True}
    result = kvgauge.size(loaded(BIG), shared_prefix=100, **load)
    assert result.cache.demand.details["blocks"] == 3 * 63 - 2 * 6
    with pytest.raises(FeatureUnsupportedError, match="prefix"):
        kvgauge.size(loaded(BIG), shared_prefix=100, engine_args="--no-enable-prefix-caching", **load)


# The pool and what fits in it


def test_the_pool_of_the_source_article():
    result = kvgauge.fit(loaded(BIG), engine="vllm@0.19.0", context=32768, kv_memory="75931582464")
    assert (result.pool.num_blocks, result.pool.capacity_tokens) == (32_184, 514_944)
    assert result.verdict.fits
    assert result.devices[0].weight_bytes == result.weights.total_bytes


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(MODELS),
    st.integers(1, 120_000),
    st.integers(1, 6),
    st.integers(1 << 26, 1 << 35),
    st.sampled_from(["0.33.0", "0.21.0", "0.10.0"]),
)
def test_what_fits_is_the_most_that_fits(model, context, sequences, available, version):
    def asked(tokens, count):
        return kvgauge.fit(
            loaded(model), kv_memory=available, context=tokens, sequences=count, engine=f"vllm@{version}",
            no_weights=True,
        )  # fmt: skip

    try:
        result = asked(context, sequences)
    except FeatureUnsupportedError:
        return
    longest, widest = result.max_context, result.max_sequences
    if longest.count:
        assert asked(longest.count, sequences).verdict.fits
    if longest.limited_by == "memory":
        assert not asked(longest.count + 1, sequences).verdict.fits
    if widest.count:
        assert asked(context, widest.count).verdict.fits
    assert not asked(context, widest.count + 1).verdict.fits
    assert (
        result.verdict.fits
        == (context <= longest.count or longest.limited_by == "model")
        == (sequences <= widest.count)
        or not result.verdict.fits
    )


def test_verdicts_add_up():
    result = kvgauge.fit(loaded(BIG), engine="vllm", kv_memory="4GiB", context=32768, sequences=4)
    verdict = result.to_dict()["verdict"]
    assert verdict["slack_bytes"] == verdict["available_bytes"] - verdict["required_bytes"] < 0
    assert (verdict["status"], verdict["limiting"]) == ("does_not_fit", "memory")
    assert [s.code for s in result.suggestions][:2] == ["kv_dtype_fp8", "shorter_context"]
    assert result.max_context.count == (4 * GIB // 2359296 - 1) // 4 * 16
    assert (result.exit_code, kvgauge.fit(loaded(BIG), kv_memory=1, check=True).exit_code) == (0, 3)


def test_cards_are_tensor_ranks():
    result = kvgauge.fit(loaded(BIG), gpu="2x H100", kv_memory="8GiB", context=4096)
    assert result.request.parallelism.tensor == 2
    assert [device.rank for device in result.devices] == [0, 1]
    assert result.devices[0].memory_bytes > 79 * GIB
    assert result.launch_command == (
        "vllm serve Qwen/Qwen3-8B --max-model-len 4096 --tensor-parallel-size 2 --kv-cache-memory-bytes 8589934592"
    )
    with pytest.raises(InvalidRequestError, match="4 ranks"):
        kvgauge.fit(loaded(BIG), gpu="H100:2", tp=4, kv_memory="8GiB")
    with pytest.raises(FeatureUnsupportedError, match="attention heads"):
        kvgauge.fit(loaded(BIG), gpu="H100:3", kv_memory="8GiB")


def test_a_pool_or_a_device_is_needed():
    with pytest.raises(InvalidRequestError, match="device"):
        kvgauge.fit(loaded(BIG))
    assert kvgauge.fit(loaded(BIG), gpu="H100").pool.num_blocks > 20_000
    with pytest.raises(FeatureUnsupportedError, match="pool"):
        kvgauge.fit(loaded(BIG), engine="transformers", kv_memory="8GiB")
    told = kvgauge.fit(loaded(BIG), engine="vllm", engine_args="--kv-cache-memory-bytes 8G")
    assert told.pool.bytes == 8 * GIB
    given_blocks = kvgauge.fit(
        loaded(BIG), kv_memory=1, engine="vllm", engine_args="--num-gpu-blocks-override 9000"
    )
    assert given_blocks.pool.num_blocks == 9000
    assert given_blocks.verdict.fits


def test_hybrids_that_would_not_start():
    result = kvgauge.fit(loaded("Qwen/Qwen3.5-35B-A3B"), kv_memory="2GiB", engine="vllm")
    assert "sequences_exceed_blocks" in codes(result)
    assert result.suggestions[0].effect["max_num_seqs"] == result.pool.num_blocks
    assert f"--max-num-seqs {result.pool.num_blocks}" in result.launch_command


def test_fewer_sequences_than_a_hybrid_has_blocks_are_priced():
    """The line that vLLM starts with has a verdict of its own; before 0.20 it left out graphs and started."""
    words = {"gpu": "H100", "context": "128k"}
    result = kvgauge.fit(loaded("Qwen/Qwen3.5-35B-A3B"), engine="vllm@0.33.0", **words)
    first = result.suggestions[0]
    again = kvgauge.fit(loaded("Qwen/Qwen3.5-35B-A3B"), engine="vllm@0.33.0", **words, **first.change)
    assert (result.verdict.fits, first.code, first.fits) == (False, "lower_max_num_seqs", True)
    assert first.effect["slack_bytes"] == again.verdict.slack_bytes > 0
    assert first.launch is not None and first.launch.command == again.launch_command
    early = kvgauge.fit(loaded("Qwen/Qwen3.5-35B-A3B"), kv_memory="2GiB", engine="vllm@0.19.0")
    assert "sequences_exceed_blocks" not in codes(early)


def test_the_longest_request_may_be_the_engines_choice():
    result = kvgauge.fit(loaded(BIG), kv_memory="2GiB", engine="vllm", engine_args="--max-model-len auto")
    assert result.pool.blocks_per_request == 2 * GIB // 2359296 - 1
    assert "--max-model-len auto" in result.launch_command


# Explanations


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    "load",
    [
        {"context": 10_001},
        {"context": 5000, "sequences": 3, "shared_prefix": 999},
        {"context": 40_000, "sequences": 4, "tp": 2, "pp": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("model", MODELS)
def test_every_step_evaluates(model, load, lang):
    try:
        result = kvgauge.size(loaded(model), engine="vllm", no_weights=True, **load)
    except FeatureUnsupportedError:
        return
    steps = kvgauge.explain(result, lang=lang).steps
    for step in steps:
        assert evaluate(step.formula, step.symbols) == step.value_bytes, step
        for definition in step.definitions:
            assert evaluate(definition.formula, step.symbols) == step.symbols[definition.symbol], step
        assert step.title
        assert set(step.symbols) <= set(step.symbol_meanings)
    values = {step.id: step.value_bytes for step in steps}
    answer = result.to_dict()["cache"]
    assert values["total"] == answer["total_bytes"]
    assert values["fixed"] == answer["fixed_bytes_per_sequence"]
    assert values.get("per_rank", answer["per_rank_bytes"][0]) == max(answer["per_rank_bytes"])
    assert "blocks" in values


def test_what_is_deepest_in_a_pool_is_said():
    steps = {
        s.id: s for s in kvgauge.explain(loaded("Qwen/Qwen3.5-35B-A3B"), engine="vllm", context="32k").steps
    }
    assert steps["blocks"].symbols == {"N_b": 40, "S_b": 22282240}
    assert "30 layers (Recurrent state) with 9 blocks a request" in steps["blocks"].text
    assert "largest state" in steps["blocks"].text
    assert "pages a layer" in steps["group.recurrent"].text


def test_comparisons_hold_engines_too():
    rows = kvgauge.compare(["google/gemma-3-27b-it", BIG], engine="vllm", context="32k").rows
    assert [row.error for row in rows] == [None, None]
    assert rows[0].axes.engine > 1
