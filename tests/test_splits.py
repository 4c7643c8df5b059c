"""Other ways to divide serving: every figure against arithmetic of its own, and what can't be asked."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvgauge
from kvgauge.data import read_data
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.splits import KINDS, splits
from kvgauge.splits.figures import figure
from kvgauge.splits.links import network_of

QWEN3_8B = "Qwen/Qwen3-8B"
TOKEN_BYTES = 147_456  # 36 layers, K and V of 8 heads of 128 values in two bytes


def only(model, kind, **options):
    (split,) = splits(model, [kind], **options).splits
    return split


def assumed(split, code):
    return next(a.value for a in split.assumptions if a.code == code)


def test_a_prefix_is_kept_once():
    split = only(QWEN3_8B, "prefix", context=32768, sequences=8, shared_prefix=8192)
    assert split["apart_bytes"] == 8 * 32768 * TOKEN_BYTES
    assert split["together_bytes"] == (8192 + 8 * (32768 - 8192)) * TOKEN_BYTES
    assert split["saved_bytes"] == 7 * 8192 * TOKEN_BYTES
    assert split["sequences_in_same_bytes"] == 1 + 7 * 32768 // (32768 - 8192)


@given(st.integers(1, 32768), st.integers(2, 40))
def test_as_many_sequences_as_said_fit_with_a_prefix(prefix, sequences):
    split = only(QWEN3_8B, "prefix", context=32768, sequences=sequences, shared_prefix=prefix)
    more = split["sequences_in_same_bytes"]
    if prefix == 32768:
        return
    for count, fits in ((more, True), (more + 1, False)):
        kept = kvgauge.size(QWEN3_8B, context=32768, sequences=count, shared_prefix=prefix, no_weights=True)
        assert (kept.cache.total_bytes <= split["apart_bytes"]) is fits


def test_states_are_not_shared():
    split = only("Qwen/Qwen3.5-35B-A3B", "prefix", context=32768, sequences=4, shared_prefix=8192)
    assert split["saved_bytes"] == 3 * 8192 * 20_480  # ten layers of full attention; no state
    assert [a.code for a in split.assumptions] == ["state_not_shared"]


def test_what_a_host_holds_and_gives_back():
    split = only(QWEN3_8B, "offload", gpu="H100", context=32768, host_memory="1TiB")
    assert split["sequence_bytes"] == split["rank_bytes"] == 32768 * TOKEN_BYTES
    assert split["host_sequences"] == 2**40 // (32768 * TOKEN_BYTES) == 227
    pcie_5 = 32e9 * 16 * 128 / 130 / 8
    assert float(split["restore_seconds"]) == pytest.approx(32768 * TOKEN_BYTES / pcie_5, rel=1e-9)
    assert split["disk_seconds"] == 4 * split["restore_seconds"]  # a quarter of the lanes
    tables = 2 * 151_936 * 4096  # looked up, or for the last token alone
    computed = 2 * (8_190_735_360 - tables) * 32768 / float(assumed(split, "compute_rate"))
    assert float(split["compute_seconds"]) == pytest.approx(computed)


def test_ranks_bring_back_their_own_part_over_their_own_link():
    one, four = (only(QWEN3_8B, "offload", gpu="H100", context=32768, tp=tp) for tp in (1, 4))
    assert four["restore_seconds"] * 4 == one["restore_seconds"]
    assert four["sequence_bytes"] == one["sequence_bytes"]
    latent = only("deepseek-ai/DeepSeek-V3.2", "offload", gpu="H200", context=32768, tp=8)
    assert latent["sequence_bytes"] == 8 * latent["rank_bytes"]  # latent rows are on every rank


def test_prefill_sends_the_prompt_alone():
    options = {"context": 32768, "sequences": 8, "gpu": "H100", "network": "400g"}
    split = only(QWEN3_8B, "disaggregated", prompt=30720, **options)
    assert split["prompt_rank_bytes"] == 30720 * TOKEN_BYTES
    assert split["transfer_seconds"] == Fraction(30720 * TOKEN_BYTES, 50 * 10**9)
    assert split["requests_per_second"] * split["transfer_seconds"] == 1
    weights = kvgauge.size(QWEN3_8B).weights.total_bytes
    assert split["prefill_rank_bytes"] == weights + 30720 * TOKEN_BYTES
    assert split["decode_rank_bytes"] == weights + 8 * 32768 * TOKEN_BYTES


def test_an_engines_own_rows_are_sent():
    split = only("deepseek-ai/DeepSeek-V3.2", "disaggregated", context=32768, engine="vllm@0.33.0",
                 kv_dtype="fp8_ds_mla", gpu="H200")  # fmt: skip
    assert split["prompt_rank_bytes"] == 32768 * 61 * (656 + 132)


def test_a_trillion_parameters_at_8_bit_need_eight_racks():
    split = only("moonshotai/Kimi-K2-Instruct", "sram", context=8192)
    assert split["weight_bytes"] > 10**12
    assert split["racks_for_weights"] == -(-split["weight_bytes"] // (128 * 10**9)) >= 8
    assert split["racks_for_all"] >= split["racks_for_weights"]


def test_attention_and_experts_apart():
    split = only("moonshotai/Kimi-K2-Instruct", "attention-ffn", context=131072, sequences=64)
    whole = kvgauge.size("moonshotai/Kimi-K2-Instruct", context=131072, sequences=64)
    assert split["ffn_weight_bytes"] + split["attention_weight_bytes"] == whole.weights.total_bytes
    assert split["racks"] == -(-split["ffn_weight_bytes"] // (128 * 10**9)) == 8
    assert split["cache_bytes"] == whole.cache.total_bytes
    assert split["link_bytes_per_step"] == 2 * 7168 * 2 * 61 * 64
    assert split.binds == "attention_seconds"
    room = 306_952_722_711 - split["attention_weight_bytes"]  # of a Rubin
    assert split["gpus"] == -(-64 // (room // whole.cache.bytes_per_sequence))


def test_experts_touched_grow_from_one_token_to_all():
    one, many = (
        only("Qwen/Qwen3-30B-A3B", "attention-ffn", context=4096, sequences=count) for count in (1, 4096)
    )
    experts = 48 * 128 * 3 * 2048 * 768 * 2
    routers = one["ffn_weight_bytes"] - experts
    assert one["touched_bytes"] == pytest.approx(experts * 8 / 128 + routers, abs=2)
    assert many["touched_bytes"] == pytest.approx(many["ffn_weight_bytes"], rel=1e-9)


def test_a_step_is_its_parts():
    split = only("Qwen/Qwen3-30B-A3B", "attention-ffn", context=4096, sequences=16)
    ffn = max(split["ffn_seconds"], split["ffn_compute_seconds"])
    assert split["step_seconds"] == split["attention_seconds"] + split["link_seconds"] + ffn


@pytest.mark.parametrize(
    ("kind", "options", "field"),
    [
        ("nonsense", {}, "split"),
        ("prefix", {}, "shared_prefix"),
        ("offload", {}, "gpu"),
        ("disaggregated", {"network": "fast"}, "network"),
        ("disaggregated", {"network": "0g"}, "network"),
        ("disaggregated", {"prompt": 65536, "context": 32768}, "prompt"),
        ("sram", {"sram": "H100"}, "sram"),
        ("sram", {"no_weights": True}, "no_weights"),
    ],
)
def test_what_is_missing_is_said(kind, options, field):
    with pytest.raises(InvalidRequestError) as caught:
        splits(QWEN3_8B, [kind], **options)
    assert caught.value.field == field


def test_what_a_row_lacks_is_said():
    with pytest.raises(FeatureUnsupportedError, match="PCIe generation of Groq 3 LPX rack is not known"):
        splits(QWEN3_8B, ["offload"], gpu="Groq 3 LPX rack")
    with pytest.raises(FeatureUnsupportedError, match="exceed one"):
        splits("moonshotai/Kimi-K2-Instruct", ["attention-ffn"], gpu="RTX 3070", context=131072)


def test_every_answer_is_json_and_its_codes_are_in_the_table():
    answer = splits("Qwen/Qwen3-30B-A3B", KINDS, gpu="H100", context=4096, sequences=2, shared_prefix=64)
    for row in answer.to_dict():
        for found in row["figures"]:
            assert figure(found["code"], 1).formula == found["formula"]
    assert {split.kind for split in answer.splits} == set(KINDS)


def test_codes_are_used():
    """A row of the table that no split answers is a row too many."""
    import json

    answers = [
        splits("Qwen/Qwen3-30B-A3B", KINDS, gpu="H100", context=4096, sequences=2, shared_prefix=64,
               host_memory="1GiB"),
    ]  # fmt: skip
    used = {found.code for answer in answers for split in answer.splits for found in split.figures}
    ways = {a.code for answer in answers for split in answer.splits for a in split.assumptions}
    table = json.loads(read_data("splits.json"))
    assert used == set(table["figures"])
    assert set(table["ways"]) <= ways


@given(st.text(max_size=12))
def test_a_network_is_a_rate_or_refused(text):
    try:
        found = network_of(text)
    except InvalidRequestError:
        return
    assert found.rate > 0


def test_splits_of_a_plan_have_the_formats_of_its_first_option():
    plan = kvgauge.plan(
        "Qwen/Qwen3-32B", gpu="H100:4", prompt_tokens=30_720, output_tokens=2048, sequences=16, top=1,
        split="disaggregated", offline=True,
    )  # fmt: skip
    first, (split,) = plan.options[0], plan.splits.splits
    assert first.formats.kv == "fp8"
    per_rank = 30_720 * 64 * 2 * 8 * 128 // first.parallelism.tensor  # a byte a value
    assert split["prompt_rank_bytes"] == per_rank
    assert split["decode_rank_bytes"] < first.device.memory_bytes
