"""vLLM: groups, blocks and pools against the plans of its own code; what it refuses; what its flags say."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvgauge.engines.vllm import Speculation, VllmSettings, plan
from kvgauge.engines.vllm.cache_spec import CacheSpec, SpecKind
from kvgauge.engines.vllm.devices import gpu_class, gpu_of_memory
from kvgauge.engines.vllm.flags import VALUES, parse_flags
from kvgauge.engines.vllm.packing import packed_groups, padded_groups
from kvgauge.engines.vllm.versions import known_versions, parse_version, rules_for
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError, KvgaugeError
from kvgauge.models import load
from support import golden_lines
from vllm_fieldlogs import CAUSES, RECORDS, candidates, records, replay
from vllm_records import (
    ORACLE,
    catalogue_architecture,
    facts_of,
    oracle_rows,
    settings_of,
    shared_architecture,
)

GIB = 1 << 30
GOLDEN = golden_lines("vllm_0.33_pools.jsonl")[1:]
FACTS = ("block_size", "bytes_per_block", "batch", "pools")
PLAIN = {
    "model_type": "llama", "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
    "head_dim": 64, "hidden_size": 512, "torch_dtype": "bfloat16", "max_position_embeddings": 4096,
}  # fmt: skip


def name_of(row):
    words = [row["model"], row["gpu"].split()[-1], f"tp{row['tp']}pp{row['pp']}", row["kv_dtype"]]
    return "-".join([*words, f"mtp{row['mtp_tokens']}", "" if row["prefix_caching"] else "no_caching"])


@pytest.mark.parametrize("row", GOLDEN, ids=name_of)
def test_plans_equal_the_engines_own(row):
    architecture = catalogue_architecture(row["model"])
    if row.get("refused"):
        with pytest.raises(FeatureUnsupportedError):
            plan(architecture, settings_of(row))
        return
    found = facts_of(plan(architecture, settings_of(row)), [pool[0] for pool in row["pools"]])
    assert {name: found[name] for name in FACTS} == {name: row[name] for name in FACTS}
    assert found["groups"] == [group[1:] for group in row["groups"]]


def test_golden_rows_cover_every_kind_of_group():
    kinds = {group[0] for row in GOLDEN for group in row.get("groups", ())}
    assert kinds == {"full", "sliding", "chunked", "latent", "recurrent"}
    assert sum("refused" in row for row in GOLDEN) == 11


@pytest.mark.skipif(not ORACLE.is_dir(), reason="the wider records are not here")
def test_every_record_of_an_engines_answer_is_equal():
    unequal = []
    count = 0
    for model, row, facts in oracle_rows():
        count += 1
        try:
            found = plan(shared_architecture(model), settings_of(row))
        except FeatureUnsupportedError:
            found = None
        ours = found and facts_of(found, [pool[0] for pool in facts["pools"]] if facts else [])
        if ours != facts:
            unequal.append((model, row))
    assert not unequal
    assert count > 500


@pytest.mark.skipif(not RECORDS.is_file(), reason="the wider records are not here")
def test_figures_of_start_up_logs_agree_or_have_a_cause():
    outcomes = [outcome for record in records() for outcome in replay(record)]
    odd = {outcome.record for outcome in outcomes if outcome.status != "exact"}
    assert odd == set(CAUSES)
    exact = Counter(outcome.hardness for outcome in outcomes if outcome.status == "exact")
    assert exact["hard"] >= 53
    assert exact["soft"] >= 133


@pytest.mark.skipif(not RECORDS.is_file(), reason="the wider records are not here")
def test_longest_requests_that_logs_suggest():
    rows = [row for row in records() if row["estimated_max_len"] and row["kv_available_gib"]]
    assert len(rows) >= 5
    for row in rows:
        settings = next(iter(candidates(row)))
        found = plan(shared_architecture(row["config_ref"].replace("/", "--", 1)), settings)
        low, high = (
            found.longest_that_fits(int((row["kv_available_gib"] + d) * GIB)) for d in (-0.005, 0.005)
        )
        assert low <= row["estimated_max_len"] <= high, row["id"]


# -- what the rules' text states, beyond the records ----------------------------------------------

H100 = VllmSettings(max_model_tokens=32768)


@pytest.mark.parametrize(("card", "tokens"), [("A100", 1351689), ("H100", 360847), ("B200", 182785)])
def test_compressed_caches_depend_on_the_batch(card, tokens):
    settings = replace(H100, gpu=gpu_class(card))
    found = plan(catalogue_architecture("deepseek-ai/DeepSeek-V4-Flash"), settings)
    assert found.pool_bytes_per_block == 1002240
    assert found.pool(70 * GIB).capacity_tokens == tokens


#: Version, model, flags, card, and blocks, tokens that start-up logs print (those of 2026-05 to 2026-09).
LOGS = (
    ("0.25.0", "deepseek-ai/DeepSeek-V4-Flash", "--max-model-len 131072 --kv-cache-dtype fp8 -tp 2",
     "RTX PRO 6000 Blackwell", 8008, 301529),
    ("0.25.0", "deepseek-ai/DeepSeek-V4-Flash", "--max-model-len 262144 --kv-cache-dtype fp8 -tp 2",
     "B200", 33134, 2175276),
    ("0.22.0", "deepseek-ai/DeepSeek-V4-Flash", "--max-model-len 256000 -tp 8", "H200", 38724, 2497693),
    ("0.28.0", "google/gemma-4-E4B-it", "--max-model-len 32768", "L4", 12708, 150167),
    ("0.28.0", "google/gemma-4-E4B-it", "--max-model-len 131072", "L4", 12708, 186796),
    ("0.26.0", "google/gemma-4-31B-it", "--max-model-len 16384", "B300", 74700, 217116),
    ("0.20.2", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "--max-model-len 262144", "GB10", 2861, 5769184),
    ("0.28.0", "Qwen/Qwen3.8-27B", "--max-model-len 131072", "L40S", 320, 241051),
    ("0.24.0", "nvidia/Qwen3.6-35B-A3B-NVFP4", "--max-model-len 131072 --kv-cache-dtype fp8 "
     "--enable-prefix-caching", "RTX 5090", 299, 567978),
)  # fmt: skip


@pytest.mark.parametrize(("version", "model", "flags", "card", "blocks", "tokens"), LOGS)
def test_tokens_that_logs_of_a_version_print(version, model, flags, card, blocks, tokens):
    settings = replace(parse_flags(flags), version=version, gpu=gpu_class(card), num_blocks_override=blocks)
    assert plan(load(model, offline=True).architecture, settings).pool(0).capacity_tokens == tokens


def test_blocks_of_compressed_caches_have_slots_by_page_before_groups_lay_over_one_another():
    sizes = [
        plan(catalogue_architecture("deepseek-ai/DeepSeek-V4-Flash"), replace(H100, version=version))
        .pool_bytes_per_block
        for version in ("0.20.2", "0.26.0", "0.27.0")
    ]  # fmt: skip
    # 22 slots of 37,440 B, 21 of 8,640 B, 20 of 1,728 B; earlier 22 of each size.
    assert sizes == [22 * (37440 + 8640 + 1728), 22 * 37440 + 21 * 8640 + 20 * 1728, 1002240]


@pytest.mark.parametrize(
    ("version", "model", "flags", "pool_gib", "blocks"),
    [("0.6.6", "meta-llama/Llama-3.2-11B-Vision-Instruct", "--max-model-len 65536 --max-num-seqs 128", 14.65, 6001),
     ("0.7.3", "deepseek-ai/DeepSeek-R1", "-tp 8 --max-model-len 128000", 21.43, 18418),
     ("0.7.2", "Qwen/Qwen2.5-Math-1.5B", "--max-model-len 4096", 33.37, 78115)],
)  # fmt: skip
def test_the_first_engine_keeps_cross_attention_in_its_blocks_and_aligns_latents(
    version, model, flags, pool_gib, blocks
):
    settings = replace(parse_flags(flags), version=version, gpu=gpu_class("H100"))
    found = plan(load(model, offline=True).architecture, settings)
    least, most = (
        found.pool(int((pool_gib + end) * GIB)).num_blocks for end in (-0.005, 0.005)
    )  # the log prints two decimals
    assert least <= blocks <= most
    assert most - least <= blocks * 0.001 + 1


def test_small_cards_with_much_memory_batch_less_from_when_their_version_says_so():
    model = load(PLAIN).architecture
    found = {
        (version, card): plan(model, VllmSettings(version=version, gpu=gpu_class(card))).schedule
        for version in ("0.32.0", "0.33.0")
        for card in ("A100", "GB10")
    }
    assert {key: value.batched_tokens for key, value in found.items()} == {
        ("0.32.0", "A100"): 2048, ("0.33.0", "A100"): 2048,
        ("0.32.0", "GB10"): 8192, ("0.33.0", "GB10"): 2048,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("word", "per_token"),
    [("bfloat16", 262144), ("fp8", 131072), ("int8_per_token_head", 135168), ("fp8_per_token_head", 135168),
     ("int4_per_token_head", 69632), ("turboquant_k8v4", 110464), ("turboquant_4bit_nc", 80704),
     ("turboquant_3bit_nc", 65344)],
)  # fmt: skip
def test_packed_formats(word, per_token):
    found = plan(catalogue_architecture("Qwen/Qwen3-32B"), replace(H100, kv_dtype=word))
    assert found.pool_bytes_per_block == per_token * found.block_size_tokens
    assert found.block_size_tokens == (32 if word.startswith("turboquant") else 16)


def _drafted(method, tokens):
    return Speculation(tokens, method)


@pytest.mark.parametrize(
    ("settings", "block"),
    [({}, 784), ({"tensor": 2}, 784), ({"kv_dtype": "fp8"}, 1568),
     ({"kv_dtype": "fp8", "speculation": _drafted("mtp", 3)}, 1600), ({"speculation": _drafted("dflash", 7)}, 832),
     ({"speculation": _drafted("dflash", 7), "state_dtype": "bf16"}, 448),
     ({"kv_dtype": "nvfp4", "speculation": _drafted("mtp", 3), "gpu": gpu_class("RTX 5090")}, 2848)],
)  # fmt: skip
def test_blocks_of_hybrids_as_logs_print_them(settings, block):
    given = replace(H100, version="0.29.0", gpu=gpu_class("RTX 3090"))
    found = plan(catalogue_architecture("Qwen/Qwen3.5-27B"), replace(given, **settings))
    assert found.block_size_tokens == block


def test_a_hybrid_with_more_sequences_than_blocks_does_not_start():
    model = catalogue_architecture("Qwen/Qwen3.5-27B")
    assert plan(model, H100).pool(20 * GIB).sequences_exceed_blocks
    assert not plan(model, replace(H100, enforce_eager=True)).pool(20 * GIB).sequences_exceed_blocks
    assert not plan(catalogue_architecture("Qwen/Qwen3-8B"), H100).pool(GIB).sequences_exceed_blocks


def test_windows_without_the_hybrid_manager_are_full():
    model = catalogue_architecture("openai/gpt-oss-20b")
    found = plan(model, replace(H100, hybrid_manager=False))
    assert [(g.kind, g.num_layers) for g in found.groups] == [("full", 24)]


def test_context_ranks_share_whole_contexts():
    model = catalogue_architecture("deepseek-ai/DeepSeek-V3")
    found = plan(model, replace(H100, tensor=8, decode_context=4))
    assert found.blocks_per_request == 32768 // 4 // 16
    assert found.pool(20 * GIB).capacity_tokens == pytest.approx(
        4 * plan(model, replace(H100, tensor=8)).pool(20 * GIB).capacity_tokens, rel=1e-6
    )
    with pytest.raises(FeatureUnsupportedError, match="decode-context"):
        plan(catalogue_architecture("openai/gpt-oss-20b"), replace(H100, tensor=8, decode_context=2))


def test_the_longest_request_that_fits_is_found():
    model = catalogue_architecture("Qwen/Qwen3-8B")
    found = plan(model, VllmSettings(max_model_tokens=0)).pool(2 * GIB)
    exact = plan(model, VllmSettings(max_model_tokens=found.max_model_tokens)).pool(2 * GIB)
    assert exact.admits
    assert exact.max_model_tokens == found.max_model_tokens == (2 * GIB // (147456 * 16) - 1) * 16
    assert not plan(model, VllmSettings(max_model_tokens=found.max_model_tokens + 1)).pool(2 * GIB).admits


def test_given_blocks_replace_the_budget():
    found = plan(catalogue_architecture("Qwen/Qwen3-8B"), replace(H100, num_blocks_override=1000)).pool(0)
    assert (found.num_blocks, found.capacity_tokens) == (1000, 16000)


def test_stages_count_their_own_layers():
    found = plan(catalogue_architecture("Qwen/Qwen3-8B"), replace(H100, pipeline=4))
    assert found.stages == ((9 * 65536,),) * 4
    assert found.pool_bytes_per_block == 36 * 65536


def test_encoder_decoders_are_charged_the_batch():
    model = load("openai/whisper-tiny", offline=True).architecture
    found = plan(model, VllmSettings(max_model_tokens=448, max_batched_tokens=2048))
    assert [(g.kind, g.blocks_per_request) for g in found.groups] == [("full", 28), ("cross", 128)]


# -- versions -------------------------------------------------------------------------------------


def test_versions_sort_with_their_builds():
    order = ["0.6.6.post1", "0.19.1", "0.20.0", "0.20.1rc1.dev16", "0.20.1rc1.dev91+gabc", "0.20.1", "v0.21"]
    assert sorted(order, key=parse_version) == order
    assert rules_for("0.99.1").tokens == rules_for(None).tokens


@pytest.mark.parametrize("text", ["", "latest", "0", "0.", "1.2.3.4", "0.33.0\n0.1", "9" * 90])
def test_odd_versions_are_refused(text):
    with pytest.raises(InvalidRequestError):
        parse_version(text)


def test_versions_before_the_known_are_refused():
    with pytest.raises(FeatureUnsupportedError, match=r"0\.6\.0"):
        rules_for("0.5.4")


def test_early_latents_and_groupings_are_not_guessed():
    with pytest.raises(FeatureUnsupportedError, match="latents"):
        plan(catalogue_architecture("deepseek-ai/DeepSeek-V3"), replace(H100, version="0.6.6"))
    with pytest.raises(FeatureUnsupportedError, match="groups"):
        plan(catalogue_architecture("deepseek-ai/DeepSeek-V4-Flash"), replace(H100, version="0.19.1"))


@pytest.mark.parametrize("version", known_versions())
@pytest.mark.parametrize("model", ["Qwen/Qwen3-8B", "openai/gpt-oss-20b", "google/gemma-3-27b-it"])
def test_every_version_plans(version, model):
    found = plan(catalogue_architecture(model), replace(H100, version=version)).pool(40 * GIB)
    assert found.num_blocks > 0
    assert found.capacity_tokens > 0


# -- flags ----------------------------------------------------------------------------------------


def test_flags_are_read_as_the_engine_reads_them():
    found = parse_flags(
        "vllm serve Qwen/Qwen3-8B --max-model-len=32k -tp2 --kv_cache_dtype fp8 --no-enable-prefix-caching "
        '--speculative-config \'{"method": "mtp", "num_speculative_tokens": 3}\' --port 80 --mamba-cache-mode align'
    )
    assert found == VllmSettings(
        tensor=2, kv_dtype="fp8", max_model_tokens=32000, prefix_caching=False,
        speculation=Speculation(3), state_cache_mode="align", ignored_flags=("--port",),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("32768", 32768), ("32K", 32768), ("25.6k", 25600), ("1M", 1 << 20), ("-1", 0), ("auto", 0)],
)
def test_lengths(text, tokens):
    assert parse_flags(f"--max-model-len {text}").max_model_tokens == tokens


@pytest.mark.parametrize(
    "args",
    ["-tp 2 -tp 4", "--enable-prefix-caching --no-enable-prefix-caching", "--max-model-len 1.5K", "--block-size 0",
     "--max-model-length 4096", "--tensor-parallel-size", "--speculative-config [1]", "--kv-cache-dtype q8_0",
     "--speculative-config '{\"method\": \"eagle\"}'", "--mamba-cache-mode some", "--gpu-memory-utilization 2", "'"],
)  # fmt: skip
def test_malformed_flags_are_refused(args):
    with pytest.raises(InvalidRequestError):
        parse_flags(args)


def test_flags_of_unknown_effect_are_refused():
    with pytest.raises(FeatureUnsupportedError, match="hf-overrides"):
        parse_flags("--hf-overrides '{}'")


@given(
    st.lists(st.sampled_from([*VALUES, "--enforce-eager", "1", "fp8", "x", "{}", "-1", "--no-x"]), max_size=8)
)
def test_any_words_are_read_or_refused(words):
    try:
        parse_flags(" ".join(words))
    except KvgaugeError as error:
        assert error.message


# -- cards, groups, hostile values ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "capability"),
    [("NVIDIA H100 80GB HBM3", (9, 0)), ("A100-SXM4-80GB", (8, 0)), ("2x RTX 4090", (8, 9)), ("RTX5090", (12, 0)),
     ("NVIDIA RTX PRO 6000 Blackwell", (12, 0)), ("NVIDIA L40S", (8, 9)), ("NVIDIA GB10", (12, 1)),
     ("GeForce RTX 2080 Ti", (7, 5)), ("RTX 2060 12GB", (7, 5)), ("RTX A5000", (8, 6)), ("RTX 3070", (8, 6))],
)  # fmt: skip
def test_cards(name, capability):
    assert gpu_class(name).capability == capability
    assert gpu_class("some card") is None


def test_the_card_sets_the_batch():
    model = load(PLAIN).architecture
    batches = [plan(model, VllmSettings(gpu=gpu_of_memory(gib * GIB))).schedule for gib in (24, 96, 180)]
    assert [(s.batched_tokens, s.sequences) for s in batches] == [(2048, 256), (8192, 1024), (16384, 1024)]


@given(
    st.lists(
        st.tuples(st.sampled_from([4, 8, 64]), st.integers(1, 3), st.integers(1, 40)), min_size=1, max_size=6
    )
)
def test_packed_groups_hold_every_layer_once(buckets):
    specs = [
        CacheSpec(0, SpecKind.SLIDING, block, page * 1000, 0, 128, (page,))
        for block, page, count in buckets
        for _ in range(count)
    ]
    groups = packed_groups(tuple(specs))
    assert sorted(map(repr, (s for group in groups for s in group))) == sorted(map(repr, specs))
    assert all(len({spec.block_tokens for spec in group}) == 1 for group in groups)
    whole = tuple(CacheSpec(0, SpecKind.LATENT, 256, page * 1000, 0, 0, (page,)) for page in (1, 2, 3))
    earlier = padded_groups((*specs, *whole))
    assert earlier[0] == whole
    assert sum(len(group) for group in earlier) == len(specs) + len(whole)
    assert {spec.page_bytes for group in earlier for spec in group} <= {1000, 2000, 3000}


@given(
    st.integers(1, 1 << 20), st.integers(0, 1 << 50), st.sampled_from(["auto", "fp8", "nvfp4", "fp8_ds_mla"]),
    st.integers(1, 64), st.sampled_from(known_versions()),
)  # fmt: skip
def test_pools_are_bounded_by_their_bytes(tokens, available, word, ranks, version):
    settings = VllmSettings(version=version, max_model_tokens=tokens, kv_dtype=word, tensor=ranks)
    try:
        found = plan(load(PLAIN).architecture, settings)
    except KvgaugeError:
        return
    pool = found.pool(available)
    assert pool.num_blocks * found.stage_bytes_per_block <= available
    assert pool.capacity_tokens >= 0
    json.dumps([group.to_dict() for group in found.groups])
