"""SGLang: cells, pools and defaults against the plans of its own code; older versions; what its flags say."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvgauge.engines.sglang import SglangSettings, SglangSpeculation, plan
from kvgauge.engines.sglang.flags import DRAFTING, SWITCHES, VALUES, parse_flags
from kvgauge.engines.sglang.memory import static_bytes
from kvgauge.engines.sglang.versions import known_versions, parse_version, rules_for
from kvgauge.engines.vllm.devices import gpu_class, gpu_of_memory
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError, KvgaugeError
from kvgauge.models import load
from sglang_fieldlogs import CAUSES, RECORDS, records, replay
from sglang_records import ORACLE, facts_of, oracle_rows, settings_of
from support import golden_lines
from vllm_records import catalogue_architecture, shared_architecture

GIB = 1 << 30
GOLDEN = golden_lines("sglang_0.5.23_pools.jsonl")[1:]
H100 = SglangSettings(context_tokens=32768)
PLAIN = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2, "head_dim": 64, "hidden_size": 512, "torch_dtype": "bfloat16",
    "max_position_embeddings": 4096,
}  # fmt: skip


def name_of(row):
    return "-".join([row["model"], row["gpu"].split()[1], f"tp{row['tp']}", row["kv_dtype"]])


@pytest.mark.parametrize("row", GOLDEN, ids=name_of)
def test_plans_equal_the_engines_own(row):
    found = plan(catalogue_architecture(row["model"]), settings_of(row))
    facts = facts_of(found, [pool[0] for pool in row["pools"]])
    assert facts == {name: row[name] for name in facts}


def test_golden_rows_cover_every_design():
    designs = {(row["backend"], bool(row["state"]), bool(row["layers"])) for row in GOLDEN}
    assert {"dsv4", "dsa", "fa3", "triton", "trtllm_mha", "flashinfer"} <= {design[0] for design in designs}
    assert any(design[1] for design in designs)
    assert any(design[2] for design in designs)


@pytest.mark.skipif(not ORACLE.is_file(), reason="the wider records are not here")
def test_every_record_of_an_engines_answer_is_equal():
    unequal = []
    count = 0
    for model, row, facts in oracle_rows():
        count += 1
        found = plan(shared_architecture(model), settings_of(row))
        if facts_of(found, [pool[0] for pool in facts["pools"]]) != facts:
            unequal.append((model, row))
    assert not unequal
    assert count >= 400


@pytest.mark.skipif(not RECORDS.is_file(), reason="the wider records are not here")
def test_figures_of_start_up_logs_agree_or_have_a_cause():
    outcomes = [outcome for record in records() for outcome in replay(record)]
    assert {outcome.record for outcome in outcomes if outcome.status != "exact"} == set(CAUSES)
    exact = Counter(outcome.hardness for outcome in outcomes if outcome.status == "exact")
    assert exact["hard"] >= 10
    assert exact["soft"] >= 20


# -- what the rules state, beyond the records -----------------------------------------------------


@pytest.mark.parametrize(
    ("model", "word", "card", "cell"),
    [("deepseek-ai/DeepSeek-V3.2", "auto", "H100", 78324),
    ("deepseek-ai/DeepSeek-V3.2", "fp8_e4m3", "H100", 48068),
     ("deepseek-ai/DeepSeek-V3.2", "auto", "B200", 43188), ("zai-org/GLM-5", "fp8_e4m3", "H100", 61464),
     ("zai-org/GLM-5.2-FP8", "auto", "H100", 92628), ("deepseek-ai/DeepSeek-V3", "auto", "H100", 70272),
     ("Qwen/Qwen3-8B", "fp8_e5m2", "H100", 73728), ("Qwen/Qwen3-8B", "mxfp8", "H100", 76032),
     ("MiniMaxAI/MiniMax-M3", "auto", "H100", 60 * 2048 + 57 * 256)],
)  # fmt: skip
def test_bytes_of_a_token(model, word, card, cell):
    found = plan(catalogue_architecture(model), replace(H100, kv_dtype=word, gpu=gpu_class(card)))
    assert found.cell_bytes == cell


@pytest.mark.parametrize(
    ("model", "card", "args", "page"),
    [("Qwen/Qwen3-8B", "H100", "", 1), ("Qwen/Qwen3-8B", "B200", "", 64), ("Qwen/Qwen3-8B", "A100", "", 1),
     ("Qwen/Qwen3-8B", "B200", "--attention-backend fa4", 128),
     ("Qwen/Qwen3-8B", "H100", "--page-size 16", 16),
     ("deepseek-ai/DeepSeek-V3", "B200", "", 64),
     ("deepseek-ai/DeepSeek-V3", "H100", "--attention-backend flashmla", 64),
     ("Qwen/Qwen3.5-27B", "B200", "--speculative-algorithm NEXTN", 64),
     ("MiniMaxAI/MiniMax-M3", "H100", "", 128)],
)  # fmt: skip
def test_pages(model, card, args, page):
    settings = parse_flags(args, replace(H100, gpu=gpu_class(card)))
    assert plan(catalogue_architecture(model), settings).page_size_tokens == page


def test_a_told_state_pool_and_its_requests():
    model = catalogue_architecture("Qwen/Qwen3.5-27B")
    told = plan(model, parse_flags("--max-mamba-cache-size 360 --kv-cache-dtype fp8_e4m3", H100)).pool(
        70 * GIB
    )
    assert (told.state_slots, told.max_running_requests) == (360, 72)
    assert told.state_bytes == 361 * 153944064
    without = plan(model, parse_flags("--disable-radix-cache --max-running-requests 8", H100)).pool(40 * GIB)
    assert (without.state_slots, without.max_running_requests) == (8, 8)
    halved = plan(model, replace(H100, state_dtype="bf16"))
    assert halved.state.slot_bytes < 153944064 * 0.53


def test_drafting_layers_and_states():
    model = catalogue_architecture("Qwen/Qwen3.5-27B")
    drafted = plan(model, replace(H100, speculation=SglangSpeculation("NEXTN")))
    assert drafted.drafts == (3, 1, 4)
    assert drafted.cell_bytes == 65536 * 17 // 16
    pool = drafted.pool(40 * GIB)
    states = (pool.state_slots + 1 + 4 * (min(48, pool.state_slots // 5) + 1)) * 153944064
    assert states <= 40 * GIB * 0.9 / 1.9 < states + 2 * 153944064
    earlier = replace(H100, version="0.5.8", speculation=SglangSpeculation("NEXTN"))
    size = 153944064
    assert (
        plan(model, earlier).pool(80 * GIB).state_slots == int((80 * GIB - 48 * 4 * size) * 0.9 / 1.9) // size
    )
    sparse = catalogue_architecture("deepseek-ai/DeepSeek-V3.2")
    assert (
        plan(sparse, replace(H100, speculation=SglangSpeculation("EAGLE"))).cell_bytes == 78324 + 1152 + 132
    )


def test_windows_sized_by_requests():
    model = catalogue_architecture("openai/gpt-oss-20b")
    settings = parse_flags("--disable-radix-cache --max-running-requests 64", H100)
    pool = plan(model, settings).pool(20 * GIB)
    assert pool.swa_tokens == 64 * (128 + 128 + 1 + 1) + 2 * 8192 + 1
    assert pool.capacity_tokens == (20 * GIB - pool.swa_tokens * 12 * 2048) // (12 * 2048)
    full = plan(model, replace(H100, window_pools=False))
    assert (full.has_window_pool, full.cell_bytes) == (False, 24 * 2048)


def test_unlisted_windows_and_unkept_layers_are_paid_in_full():
    assert plan(catalogue_architecture("google/gemma-3-27b-it"), H100).pool(20 * GIB).swa_tokens is None
    squeezed = plan(catalogue_architecture("nvidia/Llama-3_3-Nemotron-Super-49B-v1"), H100)
    assert squeezed.cell_bytes == 80 * 4096


def test_stages_and_attention_groups():
    model = catalogue_architecture("Qwen/Qwen3-8B")
    assert [s.num_layers for s in plan(model, replace(H100, pipeline=5)).stages] == [7, 7, 7, 7, 8]
    assert plan(model, replace(H100, pipeline=4)).cell_bytes == 9 * 4096
    grouped = parse_flags("--tp 8 --dp-size 4 --enable-dp-attention", H100)
    found = plan(model, grouped)
    assert found.cell_bytes == 36 * 4096 // 2
    assert found.memory.chunk_tokens == 2048
    assert parse_flags("--tp 8 --attn-dp-size 4", H100) == grouped
    with pytest.raises(FeatureUnsupportedError, match="dp-size"):
        parse_flags("--tp 8 --dp-size 3 --enable-dp-attention")


def test_told_tokens_and_requests_are_limits():
    model = catalogue_architecture("Qwen/Qwen3-8B")
    pool = plan(model, parse_flags("--max-total-tokens 5000 --max-running-requests 10", H100)).pool(20 * GIB)
    assert (pool.capacity_tokens, pool.max_running_requests) == (5000, 10)
    assert plan(model, H100).pool(20 * GIB).max_running_requests == 2275


def test_memory_left_by_the_fraction():
    left = static_bytes(int(6.09 * GIB), int(21.63 * GIB), "0.85")
    assert left / GIB == pytest.approx(2.8455)
    assert static_bytes(GIB, 8 * GIB, 0.8) == 0
    told = plan(catalogue_architecture("Qwen/Qwen3.5-27B"), parse_flags("--mem-fraction-static 0.5", H100))
    assert told.budget_bytes(6 * GIB, 8 * GIB) == 2 * GIB - (100 << 20)


@pytest.mark.parametrize(
    ("model", "args", "mib"),
    [("Qwen/Qwen3.5-27B", "", 100), ("Qwen/Qwen3.5-27B", "--mm-feature-transport cuda_ipc", 1124),
     ("Qwen/Qwen3.5-27B", "--language-only", 0), ("Qwen/Qwen3-VL-8B-Instruct", "", 1024),
     ("Qwen/Qwen3-VL-8B-Instruct", "--max-running-requests 512", 3072), ("Qwen/Qwen3-8B", "", 0)],
)  # fmt: skip
def test_memory_held_back_for_images(model, args, mib):
    assert (
        plan(catalogue_architecture(model), parse_flags(args, H100)).memory.image_reserve_bytes == mib << 20
    )


def test_too_little_memory_does_not_start():
    assert plan(catalogue_architecture("Qwen/Qwen3-8B"), H100).pool(0).limited_by == "tokens"
    assert plan(catalogue_architecture("Qwen/Qwen3.5-27B"), H100).pool(GIB // 4).limited_by == "state"
    assert plan(catalogue_architecture("openai/gpt-oss-20b"), H100).pool(1 << 22).limited_by == "window"


def test_encoder_decoders_and_unknown_recurrences_are_refused():
    with pytest.raises(FeatureUnsupportedError, match="encoder-decoder"):
        plan(load("openai/whisper-tiny", offline=True).architecture, H100)
    with pytest.raises(FeatureUnsupportedError, match="recurrent"):
        plan(catalogue_architecture("MiniMaxAI/MiniMax-M1-80k"), H100)
    with pytest.raises(FeatureUnsupportedError, match="attention heads"):
        plan(catalogue_architecture("Qwen/Qwen3-8B"), replace(H100, tensor=3))


def test_what_is_assumed_is_said():
    latent = load({**PLAIN, "kv_lora_rank": 64, "qk_rope_head_dim": 16, "architectures": ["NewForCausalLM"]})
    assert plan(latent.architecture, H100).assumed == ("latent",)
    model = catalogue_architecture("Qwen/Qwen3-8B")
    drafted = replace(H100, kv_dtype="nvfp4", speculation=SglangSpeculation("EAGLE3", model="a/b"))
    assert plan(model, drafted).assumed == ("drafter_layers", "nvfp4_workspace")


# -- versions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "card", "tensor", "fraction"),
    [("0.4.3", "L4", 4, 0.85), ("0.4.6.post4", "H100", 1, 0.88), ("0.4.9", "H100", 8, 0.8305),
     ("0.5.2", "H200", 8, 0.886), ("0.5.4", "H100", 1, 0.835), ("0.5.10", "H100", 1, 0.83),
     ("0.5.23", "B200", 1, 0.854)],
)  # fmt: skip
def test_fractions_by_version(version, card, tensor, fraction):
    settings = replace(H100, version=version, gpu=gpu_class(card), tensor=tensor)
    found = plan(catalogue_architecture("Qwen/Qwen3-8B"), settings)
    assert found.mem_fraction_static == pytest.approx(fraction, abs=0.0006)


def test_sparse_rows_by_version():
    model = catalogue_architecture("deepseek-ai/DeepSeek-V3.2")
    rows = {}
    for version in ("0.5.3", "0.5.4", "0.5.10", "0.5.23"):
        found = plan(model, replace(H100, version=version, gpu=gpu_class("B200")))
        rows[version] = (found.cell_bytes, found.printed_bytes_per_token, found.kv_bytes(1, None))
    assert rows == {
        "0.5.3": (61 * 576, 61 * 656, 61 * 788),
        "0.5.4": (61 * 708, 61 * 788, 61 * 788),
        "0.5.10": (61 * 708,) * 3,
        "0.5.23": (61 * 708,) * 3,
    }


def test_versions_are_bounded_below():
    assert parse_version("0.5.9") < parse_version("0.5.10") < parse_version("v0.5.23.post1+abc")
    assert replace(rules_for("0.9.1"), version="") == replace(rules_for(None), version="")
    with pytest.raises(FeatureUnsupportedError, match=r"0\.4\.3"):
        rules_for("0.3.6")
    with pytest.raises(InvalidRequestError):
        parse_version("latest")
    with pytest.raises(FeatureUnsupportedError, match="compressed"):
        plan(catalogue_architecture("deepseek-ai/DeepSeek-V4-Flash"), replace(H100, version="0.5.9"))


@pytest.mark.parametrize("version", known_versions())
@pytest.mark.parametrize("model", ["Qwen/Qwen3-8B", "openai/gpt-oss-20b", "google/gemma-3-27b-it"])
def test_every_version_plans(version, model):
    pool = plan(catalogue_architecture(model), replace(H100, version=version)).pool(40 * GIB)
    assert pool.capacity_tokens > 0
    assert pool.kv_bytes <= 40 * GIB


# -- flags ----------------------------------------------------------------------------------------


def test_flags_are_read_as_the_engine_reads_them():
    found = parse_flags(
        "sglang serve --model Qwen/Qwen3-8B --tp=2 --kv_cache_dtype fp8_e4m3 --port 80 "
        "--mem-fraction-static 0.8 --cuda-graph-bs 1 2 64 --disable-cuda-graph --speculative-algo eagle"
    )
    assert found == SglangSettings(
        tensor=2, kv_dtype="fp8_e4m3", mem_fraction="0.8", graph_max_batch=64, decode_graphs=False,
        prefill_graphs=False, speculation=SglangSpeculation("EAGLE"), ignored_flags=("--model", "--port"),
    )  # fmt: skip


@pytest.mark.parametrize(("text", "tokens"), [("32768", 32768), ("32Ki", 32768), ("25.6k", 25600)])
def test_lengths(text, tokens):
    assert parse_flags(f"--context-length {text}").context_tokens == tokens


@pytest.mark.parametrize(
    "args",
    ["--tp 2 --tp-size 4", "--context-length 1.5Ki", "--page-size 0", "--mem-fraction-static 1.2", "'",
     "--context-lenght 4096", "--tp-size", "--kv-cache-dtype q8_0", "--speculative-algorithm magic",
     "--swa-full-tokens-ratio 0", "--disaggregation-mode some", "--chunked-prefill-size x"],
)  # fmt: skip
def test_malformed_flags_are_refused(args):
    with pytest.raises(InvalidRequestError):
        parse_flags(args)


def test_flags_of_unknown_effect_are_refused():
    with pytest.raises(FeatureUnsupportedError, match="dcp-size"):
        parse_flags("--dcp-size 2")


@given(st.lists(st.sampled_from([*VALUES, *DRAFTING, *SWITCHES, "1", "fp8", "x", "-1", "0.5"]), max_size=8))
def test_any_words_are_read_or_refused(words):
    try:
        parse_flags(" ".join(words))
    except KvgaugeError as error:
        assert error.message


@given(
    st.integers(1, 1 << 20), st.integers(0, 1 << 50), st.sampled_from(["auto", "fp8_e4m3", "nvfp4", "mxfp8"]),
    st.sampled_from([1, 2, 4, 8]), st.sampled_from(known_versions()), st.integers(1, 300),
)  # fmt: skip
def test_pools_are_bounded_by_their_bytes(tokens, available, word, ranks, version, gib):
    settings = SglangSettings(
        version=version, context_tokens=tokens, kv_dtype=word, tensor=ranks, gpu=gpu_of_memory(gib * GIB)
    )
    try:
        pool = plan(load(PLAIN).architecture, settings).pool(available)
    except KvgaugeError:
        return
    assert pool.kv_bytes <= available
    assert pool.capacity_tokens >= 0
    assert pool.max_running_requests >= 0
