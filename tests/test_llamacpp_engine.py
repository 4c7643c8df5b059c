"""llama.cpp in the commands: its own allocations to the byte, terms of one sequence, and what fits."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kvgauge
from gguf_files import write
from kvgauge.arithmetic import evaluate
from kvgauge.engines import parse_engine
from kvgauge.errors import (
    FeatureUnsupportedError,
    InvalidRequestError,
    KvgaugeError,
    UnknownArchitectureError,
)
from llamacpp_records import ORACLE, flags_of, lines, metadata_of, row_of, sub_caches
from support import config_of, golden_lines

GIB = 1 << 30
GOLDEN = {m["model"]: m for m in golden_lines("llamacpp_v0.5.0_plans.jsonl")}
MODELS = {name: metadata_of(m["architecture"], m["keys"]) for name, m in GOLDEN.items()}
QWEN3, GEMMA, SPARSE, V4, HYBRID = (
    MODELS[name]
    for name in ("qwen3-0.6b", "gemma-3-27b", "deepseek-v3.2", "deepseek-v4-flash-like", "qwen3.5-397b-a17b")
)


def sized(model: object, args: str = "", engine: str = "llama.cpp@v0.5.0", **load: object):
    return kvgauge.size(model, engine=engine, engine_args=args, no_weights=True, offline=True, **load)


def kept(result) -> dict[str, int]:
    """Return the bytes of every cache and state by name."""
    found: dict[str, int] = {}
    for part in result.allocations:
        if part["kind"] in ("cache", "state"):
            found[part["name"]] = found.get(part["name"], 0) + part["bytes"]
    return found


def check_sums(result) -> None:
    """The figures of one answer agree with each other."""
    cache = result.cache
    tokens = cache.workload.context_tokens
    assert sum(kept(result).values()) == cache.total_bytes == sum(layer.total_bytes for layer in cache.layers)
    assert cache.bytes_at(tokens) == cache.bytes_per_sequence
    assert dict(cache.curve)[tokens] == cache.bytes_per_sequence


# -- records ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GOLDEN)
def test_caches_and_states_to_the_byte(name):
    for row, wanted in GOLDEN[name]["runs"][::6]:
        if wanted is None:
            with pytest.raises(FeatureUnsupportedError):
                sized(MODELS[name], flags_of(row))
            continue
        result = sized(MODELS[name], flags_of(row))
        details = result.cache.demand.details
        assert [details["n_ctx"], details["n_ctx_seq"], result.cache.total_bytes] == wanted[:3], row
        assert result.request.workload.context_tokens == details["cells"]
        places = {p["place"] for p in result.allocations if p["kind"] in ("cache", "state")}
        assert places == {"gpu:0" if wanted[5] else "host"}
        check_sums(result)


@pytest.mark.skipif(not ORACLE.exists(), reason="the wide records are not beside the checkout")
def test_sub_caches_of_a_sample_of_all_records():
    models = {m["model"]: metadata_of(m["arch"], m["hparams"]) for m in lines("llamacpp_v0.5.0_models.jsonl")}
    counts = {"exact": 0, "refused": 0}
    for part, gpus in (("", 0), ("_offload", 1), ("_server", 1)):
        for record in lines(f"llamacpp_v0.5.0{part}.jsonl")[:: 7 if not part else 3]:
            flags, result = flags_of(row_of(record["job"], gpus)), record["result"]
            if not result["ok"]:
                with pytest.raises(FeatureUnsupportedError):
                    sized(models[record["model"]], flags)
                counts["refused"] += 1
                continue
            answer = sized(models[record["model"]], flags)
            own, listed = kept(answer), sub_caches(result)
            assert sum(own.values()) == sum(b["context"] for b in result["buffers"]), (record["model"], flags)
            assert own.keys() == listed.keys(), (record["model"], flags)
            # Printed with two digits, DeepSeek-V4's states in three parts.
            assert all(abs(own[name] / 2**20 - size) < 0.02 for name, size in listed.items()), own
            check_sums(answer)
            counts["exact"] += 1
    assert counts["exact"] > 1000
    assert counts["refused"] > 10


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("qwen3-0.6b", "kv.k kv.v"),
        ("kimi-k2", "kv.k"),
        ("gemma-3-27b", "kv.swa.k kv.swa.v kv.k kv.v"),
        ("deepseek-v3.2", "kv.k kv.indexer.k"),
        ("deepseek-v4-flash-like", "kv.swa.k kv.csa.k dsv4.state kv.lightning_indexer.k kv.hca.k"),
        ("qwen3.5-397b-a17b", "recurrent.r recurrent.s kv.k kv.v"),
    ],
)
def test_names_are_those_of_its_sub_caches(name, names):
    assert list(kept(sized(MODELS[name], context=4096))) == names.split()


# -- what it is told -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "load", "tokens", "sequences", "n_ctx", "slots"),
    [
        ("", {"context": 4096}, 4096, 1, 4096, 4),  # the server's own slots share one context
        ("", {"context": 4096, "sequences": 1}, 4096, 1, 4096, 1),
        ("", {"context": 4096, "sequences": 3}, 4096, 3, 12288, 3),
        ("", {"context": 5000, "sequences": 3}, 5000, 3, 15360, 3),
        ("-c 32768", {}, 32768, 1, 32768, 4),
        ("-c 32768 -np 4", {}, 8192, 4, 32768, 4),
        ("-c 32768", {"sequences": 4}, 8192, 4, 32768, 4),
        ("-c 32768 -np 4 -kvu", {}, 32768, 4, 32768, 4),
        ("-np 2", {"context": 4096, "sequences": 8}, 4096, 2, 8192, 2),
        ("-c 8192", {"context": 1000}, 1000, 1, 8192, 4),
        ("-c 0", {}, 40960, 1, 40960, 4),
        ("num_ctx=4096 num_parallel=2", {}, 4096, 2, 8192, 2),  # Ollama
        ("-no-kvu", {"context": 4096}, 4096, 1, 16384, 4),
    ],
)
def test_load_and_flags_make_a_context(args, load, tokens, sequences, n_ctx, slots):
    model = {**QWEN3, "qwen3.context_length": 40960}
    result = sized(model, args, **load)
    request, details = result.to_dict()["request"], result.cache.demand.details
    assert [request["context_tokens"], request["sequences"]] == [tokens, sequences]
    assert [details["n_ctx"], details["slots"]] == [n_ctx, slots]
    assert result.cache.total_bytes == n_ctx * 28 * 2 * 8 * 128 * 2
    check_sums(result)


def test_slots_of_older_builds_divide_the_context():
    result = sized(QWEN3, "-c 32768 -np 4", engine="llama.cpp@b5140")
    assert result.request.workload.context_tokens == 8192
    assert result.cache.total_bytes == 4 * result.cache.bytes_per_sequence == 32768 * 28 * 2 * 8 * 128 * 2


def test_flags_win_and_notes_say_so():
    codes = [note.code for note in sized(QWEN3, "-ctk q8_0", context=4096, k_dtype="f16").notes]
    assert "engine_flag_wins" in codes
    beyond = [note.code for note in sized(QWEN3, "-c 4096 -np 1", context=8192).notes]
    assert "context_beyond_reservation" in beyond
    assert "llamacpp_cells_shared" in [n.code for n in sized(QWEN3, "-c 4096 -np 2 -kvu").notes]
    assert "llamacpp_context_rounded" in [n.code for n in sized(QWEN3, context=1001, sequences=60).notes]


def test_types_and_places():
    result = sized(GEMMA, "-ctk q8_0 -ctv q4_0 -ngl 20", context=8192, sequences=1).to_dict()
    assert (result["request"]["k_dtype"], result["request"]["v_dtype"]) == ("q8_0", "q4_0")
    caches = [p for p in result["engine"]["allocations"] if p["kind"] == "cache"]
    assert {p["place"] for p in caches} == {"gpu:0", "host"}
    assert {p["grade"] for p in caches} == {"exact"}
    buffers = [p for p in result["engine"]["allocations"] if p["name"] == "compute"]
    assert all(p["low_bytes"] < p["bytes"] < p["high_bytes"] for p in buffers)
    assert {"cells", "swa_cells", "streams"} <= result["engine"]["details"].keys()


def test_devices_share_layers_out():
    result = sized(QWEN3, "-ts 3,1", context=8192)
    assert len(result.cache.per_rank_bytes) == 2
    assert sum(result.cache.per_rank_bytes) == result.cache.total_bytes
    by_place = {p["place"]: 0 for p in result.allocations}
    for part in result.allocations:
        by_place[part["place"]] += part["bytes"] if part["kind"] == "cache" else 0
    assert (by_place["gpu:0"], by_place["gpu:1"]) == result.cache.per_rank_bytes
    assert sized(QWEN3, tp=2, context=8192).to_dict()["request"]["pipeline_parallel"] == 2


def test_weights_lie_where_their_blocks_do():
    words = {"engine": "llama.cpp", "offline": True, "weights": "q4_k_m", "context": 4096}
    on_device, half = (kvgauge.size("Qwen/Qwen3-8B", engine_args=args, **words) for args in ("", "-ngl 18"))
    placed = [
        {p["place"]: p["bytes"] for p in result.allocations if p["name"] == "weights"}
        for result in (on_device, half)
    ]
    assert placed[0]["host"] < 0.1 * placed[0]["gpu:0"]
    assert placed[1]["gpu:0"] < 0.6 * placed[0]["gpu:0"]
    assert sum(placed[1].values()) == pytest.approx(sum(placed[0].values()), rel=1e-3)


def test_drafts_of_multi_token_prediction():
    config = config_of("zai-org/GLM-4.5-Air")
    plain, drafting = (sized(config, context=4096, **mtp) for mtp in ({}, {"mtp": 1}))
    assert drafting.cache.total_bytes > plain.cache.total_bytes
    assert "mtp.kv.k" in kept(drafting)
    check_sums(drafting)


@pytest.mark.parametrize("name", ["llama-server", "llamacpp", "LLAMA.CPP", "llama-cpp"])
def test_other_names(name):
    assert parse_engine(f"{name}@b7123") == ("llama.cpp", "b7123")


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "load", "error", "word"),
    [
        ("--ctx-sizes 4", {}, InvalidRequestError, "is not known to llama.cpp"),
        ("-c", {}, InvalidRequestError, "needs a value"),
        ("-c -5", {}, InvalidRequestError, "at least"),
        ("-ctv q8_0 -fa off", {}, FeatureUnsupportedError, "flash attention"),
        ("", {"kv_dtype": "fp8"}, FeatureUnsupportedError, "keeps no fp8"),
        ("", {"sequences": 300}, FeatureUnsupportedError, "at most 256"),
        ("", {"shared_prefix": 100}, FeatureUnsupportedError, "shares no prefix"),
        ("", {"dp": 2}, FeatureUnsupportedError, "no --dp"),
        ("", {"mtp": 1}, FeatureUnsupportedError, "multi-token"),
    ],
)
def test_what_it_does_not_do_is_refused(args, load, error, word):
    with pytest.raises(error, match=word):
        sized(QWEN3, args, **{"context": 4096, **load})


def test_a_config_without_a_conversion_is_named():
    with pytest.raises(UnknownArchitectureError, match="'opt' has no conversion"):
        sized({**config_of("facebook/opt-1.3b")})


def test_a_window_that_llama_cpp_ignores_is_said():
    result = sized(config_of("bigcode/starcoder2-7b"), context=16384)
    assert "gguf_window_unused" in [note.code for note in result.notes]
    assert result.cache.total_bytes > result.theory.total_bytes


def test_builds():
    latents = {
        e: set(kept(sized(SPARSE | {}, context=4096, engine=e))) for e in ("llama.cpp@b7000", "llama.cpp")
    }
    assert latents["llama.cpp@b7000"] - latents["llama.cpp"] == {"kv.v"}
    with pytest.raises(FeatureUnsupportedError, match="not known"):
        sized(QWEN3, engine="llama.cpp@b100")
    codes = [n.code for n in sized(QWEN3, engine="llama.cpp@v0.9.0", context=4096).notes]
    assert "engine_version_newer" in codes


# -- one sequence at every length, and every number opened ----------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.sampled_from(sorted(MODELS)),
    tokens=st.integers(1, 100_000),
    other=st.integers(1, 100_000),
    sequences=st.sampled_from([None, 1, 2, 3, 5]),
    args=st.sampled_from(["", "-kvu", "--swa-full", "-fa off", "-ctk q8_0 -ctv q8_0", "--n-rs-seq 3"]),
    engine=st.sampled_from(["llama.cpp", "llama.cpp@b2000", "llama.cpp@b5430", "llama.cpp@b6000"]),
)
def test_terms_hold_at_every_length(name, tokens, other, sequences, args, engine):
    load = {"args": args, "engine": engine, "sequences": sequences}
    try:
        result = sized(MODELS[name], context=tokens, **load)
        wanted = sized(MODELS[name], context=other, **load)
    except KvgaugeError:
        return
    assert result.cache.bytes_at(other) == wanted.cache.bytes_per_sequence
    check_sums(result)
    for step in kvgauge.explain(result).steps:
        assert evaluate(step.formula, step.symbols) == step.value_bytes, step
        for symbol, formula in step.definitions:
            assert evaluate(formula, step.symbols) == step.symbols[symbol]


# -- fit -------------------------------------------------------------------------------------------


def fitted(model: object, memory: int | str, args: str = "", **load: object):
    return kvgauge.fit(
        model, kv_memory=memory, engine="llama.cpp", engine_args=args, no_weights=True, offline=True, **load
    )


@pytest.mark.parametrize("model", [QWEN3, GEMMA, SPARSE, V4, HYBRID], ids=lambda m: m["general.architecture"])
@pytest.mark.parametrize("args", ["", "-kvu", "-ctk q8_0 -ctv q8_0 -ngl 20"])
def test_what_fits_fits_and_no_more(model, args):
    memory = 20 * GIB
    found = fitted(model, memory, args, context=8192, sequences=2)
    assert found.verdict.fits
    most, longest = found.max_sequences, found.max_context

    def needed(**load: object) -> int:
        return fitted(model, memory, args, **load).verdict.required_bytes

    if most.limited_by == "memory":
        assert needed(context=8192, sequences=most.count) <= memory
        assert needed(context=8192, sequences=most.count + 1) > memory
    else:
        assert (most.limited_by, most.count) == ("engine", 256)
    if longest.limited_by == "memory":
        assert needed(context=longest.count, sequences=2) <= memory
        assert needed(context=longest.count + 1, sequences=2) > memory


def test_fit_follows_flags():
    found = fitted(QWEN3, "10GiB", "-c 32768 -np 4")
    assert found.verdict.fits
    assert (found.max_sequences.count, found.max_sequences.limited_by) == (4, "flag")
    assert (found.max_context.count, found.max_context.limited_by) == (8192, "flag")
    assert found.launch_command.endswith("-c 32768 -np 4")
    crowded = fitted(QWEN3, "10GiB", "-c 8192", context=4096, sequences=3)
    assert (crowded.verdict.fits, crowded.verdict.limiting) == (False, "flag")
    small = fitted(QWEN3, "1GiB", context=32768, sequences=4)
    assert not small.verdict.fits
    assert small.max_context.count < 32768


def test_a_gguf_takes_llama_cpp_by_itself():
    found = kvgauge.fit({**QWEN3, "qwen3.context_length": 40960}, kv_memory="4GiB", no_weights=True)
    assert found.request.engine == "llama.cpp"
    assert found.pool.capacity_tokens == 37376  # 146 steps of 256 cells in 4 GiB
    assert found.launch_command.split()[0] == "llama-server"


def test_a_gguf_file_is_placed_tensor_by_tensor(tmp_path):
    path = write(tmp_path / "tiny.gguf")
    result = kvgauge.size(path, engine="llama.cpp", engine_args="-ngl 1", context=300)
    placed = {(p["name"], p["place"]): p["bytes"] for p in result.allocations}
    # The embedding (64 x 8) and both blocks stay on the host; the output is the one layer of -ngl 1, and its
    # matrix is the embedding again.
    assert placed["weights", "host"] == 2 * 64 * 8 + 2 * 2 * 64 * 32
    assert placed["weights", "gpu:0"] == 2 * 64 * 8
    assert placed["kv.k", "host"] == 2 * 512 * 2 * 16 * 2  # 300 tokens in 512 cells
    found = kvgauge.fit(path, kv_memory="1MiB")
    assert found.request.engine == "llama.cpp"
    assert found.pool.capacity_tokens == 4096  # 256 B a token; the model's limit
    assert found.devices[0].pool_bytes == found.verdict.required_bytes
