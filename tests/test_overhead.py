"""What a GPU holds beside weights and pool: the evidence gives the constants, and the formulas behave."""

from __future__ import annotations

import json
from dataclasses import replace
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvgauge
from kvgauge.data import read_data
from kvgauge.engines.sglang.settings import SglangSettings
from kvgauge.engines.tensorrt_llm.settings import TrtllmSettings
from kvgauge.engines.vllm.devices import GpuClass, gpu_class
from kvgauge.engines.vllm.settings import VllmSettings
from kvgauge.estimate import Estimate, Running, estimate, pool_range
from kvgauge.overhead_accuracy import OTHER_POOLS, cross_validation, in_sample, summaries
from kvgauge.overhead_encoder import Encoder, encoder_of, image_item_tokens, image_token_bytes
from kvgauge.overhead_evidence import evidence
from kvgauge.overhead_fit import fit
from kvgauge.overhead_running import sglang_running, tensorrt_llm_running, vllm_running

GIB = 1 << 30
DENSE, EXPERTS, LATENT = "Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B", "deepseek-ai/DeepSeek-V3"
MODELS = (DENSE, EXPERTS, LATENT, "google/gemma-3-27b-it", "Qwen/Qwen3-Next-80B-A3B-Instruct")
H100 = Running("vllm", "0.19.0", 8192, 1024, 32768, graph_sizes=51, capability=(9, 0), linked=True)


def terms(name: str, running: Running) -> dict[str, Estimate]:
    model = kvgauge.load(name, offline=True)
    return {term.name: term for term in estimate(model.architecture, model.weighed.stored, running)}


def test_the_evidence_gives_the_shipped_constants():
    assert json.loads(read_data("overhead.json")) == json.loads(json.dumps(fit(evidence())))


def test_every_record_is_complete():
    for record in evidence():
        assert record.source, record.id
        assert record.fitted or record.quantity == "pool" or record.facts["note"], record.id
        if record.quantity in ("activation", "graphs", "graph_estimate", "pool"):
            assert record.widths is not None, record.id


def test_every_constant_says_how_many_records_it_has():
    def walk(node: object) -> None:
        if isinstance(node, dict):
            if {"bytes", "copies", "spread"} & set(node):
                assert isinstance(node["records"], int)
                assert node.get("grade") != "measured" or node["records"]
            for child in node.values():
                walk(child)
        elif isinstance(node, list):
            for child in node:
                walk(child)

    walk(json.loads(read_data("overhead.json")))


#: Whole requests of images in the first engine (2), an early latent attention's copies, a drafted step's
#: logits at an unstated number of sequences, and a runner that the version does not take by default.
UNEXPLAINED_PEAKS = {"issue-12126", "vllm-120", "log-46", "issue-24881", "log-01"}


def test_one_family_left_out(capsys):
    """Printed rather than held tightly: few records stand behind some terms."""
    rows = cross_validation()
    assert {row.record for row in rows} >= {r.id for r in evidence() if r.quantity == "activation"}
    with capsys.disabled():
        for total in summaries(rows):
            print(
                f"\n{total.engine} {total.quantity}: n {total.records}, median error "
                f"{total.median_error_fraction:.1%}, inside {total.within}",
                end="",
            )
    by_name = {(total.engine, total.quantity): total for total in summaries(rows)}
    peaks = by_name["vllm", "activation"]
    assert peaks.median_error_fraction < 0.02
    found = [row for row in rows if (row.engine, row.quantity) == ("vllm", "activation")]
    assert {row.record for row in found if not row.within} == UNEXPLAINED_PEAKS
    assert peaks.records >= 40


@pytest.mark.parametrize("rows", [cross_validation, in_sample], ids=["left out", "shipped"])
def test_pools_meet_their_goals(rows):
    """The 60-run set at hand and every log that prints all terms: the goals that docs/accuracy.md states."""
    pools = [row for row in rows() if row.engine == "vllm" and row.quantity == "pool"]
    assert len(pools) >= 34
    assert median(abs(row.error_fraction) for row in pools) < 0.02
    assert sum(row.within for row in pools) >= 0.9 * len(pools)
    assert median(row.high_bytes - row.low_bytes for row in pools) <= 2 * GIB
    assert not [row.record for row in pools if row.central_bytes - row.measured_bytes > GIB / 2]


def test_the_calibration_set_without_its_families():
    """Pools of the 60-run H100 set that are at hand, each with its model family unseen."""
    pools = [row for row in cross_validation() if row.quantity == "pool" and "0.19.0" in row.source]
    assert len(pools) == 10
    assert all(row.within and abs(row.error_fraction) < 0.02 for row in pools)
    assert all(row.central_bytes - row.measured_bytes < GIB / 2 for row in pools)


def test_pools_that_are_not_of_the_goals_are_counted_apart():
    others = {row.record for row in in_sample() if row.quantity == OTHER_POOLS}
    assert {"vllm-035", "vllm-109", "vllm-120", "vllm-452", "vllm-468", "vllm-484"} <= others
    assert all(r.facts["scope"] in ("set", "terms", "other") for r in evidence() if r.quantity == "pool")


@pytest.mark.parametrize(
    ("model", "ranks", "patch_values", "pass_values"),
    [
        ("Qwen/Qwen2.5-VL-72B-Instruct", 1, 3 * 2 * 14 * 14, 3 * 1280 + 3 * 3456),
        ("Qwen/Qwen2.5-VL-72B-Instruct", 4, 3 * 2 * 14 * 14, 3 * 1280 + 3 * 3456 // 4),
        ("Qwen/Qwen3.5-27B", 1, 3 * 2 * 16 * 16, 3 * 1152 + 2 * 4304),
        ("google/gemma-3-12b-it", 1, 3 * 14 * 14, 3 * 1152 + 2 * 4304),
        ("Qwen/Qwen3-8B", 1, None, None),
    ],
)
def test_widths_of_image_encoders(model, ranks, patch_values, pass_values):
    """By the fields of their configs: patch, hidden and intermediate sizes (gated in Qwen2.5-VL)."""
    stored = kvgauge.load(model, offline=True).weighed.stored
    found = encoder_of((item.family for item in stored.families), ranks)
    assert found == (None if patch_values is None else Encoder(patch_values, pass_values))


def test_a_small_batch_peaks_in_the_image_encoder_and_a_large_one_does_not():
    """65,536 patches of one image outweigh 256 rows of logits, 1,024 rows of them outweigh the patches."""
    model = kvgauge.load("Qwen/Qwen3-VL-8B-Instruct", offline=True)
    peaks = {}
    for tokens, sequences in ((2048, 256), (8192, 1024)):
        gpu = GpuClass("RTX 4090", (8, 9), 24 * GIB)
        settings = VllmSettings("0.19.0", gpu, max_model_tokens=8192, max_batched_tokens=tokens,
                                max_sequences=sequences)  # fmt: skip
        running = vllm_running(model.architecture, settings, model.raw.config)
        for blind in (False, True):
            run = replace(running, images=not blind)
            found = estimate(model.architecture, model.weighed.stored, run)
            peaks[sequences, blind] = next(e for e in found if e.name == "activations")
    assert "encoder" in peaks[256, False].because
    assert "logits" in peaks[1024, False].because
    assert peaks[256, False].grade == "assumed"
    assert all(peaks[n, True].central_bytes < peaks[n, False].central_bytes for n in (256, 1024))


def test_ranges_hold_what_they_were_fitted_on():
    rows = [row for row in in_sample() if row.fitted and row.quantity == "activation"]
    assert sum(row.within for row in rows) >= 0.9 * len(rows)


def test_the_article_s_case():
    """Qwen3-8B on an H100 NVL: a pool of 70.72 GiB at 0.95, of what the runtime sees and of nvidia-smi's total."""
    model = kvgauge.load(DENSE, offline=True)
    for total in (int(93.1 * GIB), 95830 << 20):
        gpu = GpuClass("H100 NVL", (9, 0), total)
        running = vllm_running(model.architecture, VllmSettings("0.19.0", gpu, max_model_tokens=32768))
        found = estimate(model.architecture, model.weighed.stored, running)
        low, central, high = pool_range(total, "0.95", int(15.268 * GIB), found)
        assert abs(central - 70.72 * GIB) < GIB / 2
        assert low <= central <= high


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(MODELS),
    st.sampled_from(("0.6.4", "0.11.0", "0.19.0", "0.21.0", "0.27.1", "0.33.0", None)),
    st.integers(1, 1 << 18),
    st.integers(1, 4096),
    st.sampled_from((1, 2, 4, 8)),
    st.integers(0, 83),
    st.sampled_from((None, (8, 0), (9, 0), (10, 0), (12, 0))),
    st.booleans(),
)
def test_properties(name, version, tokens, sequences, ranks, sizes, capability, linked):
    running = Running(
        "vllm", version, tokens, sequences, 32768,
        tensor=ranks, graph_sizes=sizes, capability=capability, linked=linked,
    )  # fmt: skip
    found = terms(name, running)
    for term in found.values():
        assert 0 <= term.low_bytes <= term.central_bytes <= term.high_bytes
        assert term.grade in ("exact", "measured", "assumed")
        assert term.because
        assert term.records or term.grade != "measured"
    peak = found["activations"]
    for more in (
        replace(running, batched_tokens=tokens + 512),
        replace(running, sequences=sequences + 64),
        replace(running, max_model_tokens=65536),
    ):
        wider = terms(name, more)["activations"]
        assert wider.central_bytes >= peak.central_bytes
        assert wider.high_bytes >= peak.high_bytes
    split = terms(name, replace(running, tensor=2 * ranks))["activations"]
    assert split.central_bytes <= peak.central_bytes


def test_eager_mode_captures_nothing():
    found = terms(DENSE, replace(H100, version="0.21.0", eager=True))
    assert "graphs" not in found
    assert "graph_estimate" not in found


def test_the_guess_of_graphs_comes_off_the_pool_from_0_21_on():
    before, after = terms(DENSE, H100), terms(DENSE, replace(H100, version="0.21.0"))
    assert "graph_estimate" not in before
    assert after["graph_estimate"].budgeted
    assert not after["graph_estimate"].held
    assert not after["graphs"].budgeted
    assert pool_range(80 * GIB, "0.9", GIB, after.values()) < pool_range(
        80 * GIB, "0.9", GIB, before.values()
    )


def test_the_second_runner_guesses_no_graphs_until_it_does():
    """Dense Qwen3 is served by it from 0.22 on, routed experts from 0.29 on, both but for an ngram drafter."""

    def names(model: str, version: str, **told: object) -> set[str]:
        return set(terms(model, replace(H100, version=version, **told)))

    assert "graph_estimate" in names(DENSE, "0.21.0")
    assert "graph_estimate" not in names(DENSE, "0.22.0") | names(DENSE, "0.28.0")
    assert "graph_estimate" in names(DENSE, "0.29.0") & names(EXPERTS, "0.28.0")
    assert "sampling_state" not in names(EXPERTS, "0.28.0")
    assert "sampling_state" in names(EXPERTS, "0.29.0")
    drafted = {"speculative_tokens": 3, "drafter": "ngram"}
    assert "graph_estimate" in names(DENSE, "0.26.0", **drafted)
    assert "graph_estimate" not in names(EXPERTS, "0.25.1", is_other_maker=True)
    assert "graph_estimate" in names(EXPERTS, "0.26.0", is_other_maker=True)
    forced = {"speculative_tokens": 8, "drafter": "dspark"}
    assert "graph_estimate" not in names(EXPERTS, "0.26.0", **forced)


def test_counts_of_words_come_off_the_pool_from_0_27_on():
    """A count of 4 bytes a word and sequence, and two bits (v1/worker/gpu/sample/penalties.py)."""
    before, after = (terms(DENSE, replace(H100, version=v))["sampling_state"] for v in ("0.26.0", "0.27.0"))
    assert after.central_bytes == 1024 * (151936 * 4 + 2 * 4748 * 4)
    assert not before.budgeted
    assert after.budgeted


def test_replicas_that_share_experts_see_the_tokens_of_all():
    alone, shared = (
        terms(EXPERTS, replace(H100, replicas=n, expert_parallel=n > 1))["activations"] for n in (1, 8)
    )
    assert shared.central_bytes > alone.central_bytes + GIB
    assert terms(DENSE, replace(H100, replicas=8))["activations"] == terms(DENSE, H100)["activations"]


def test_a_large_image_is_profiled_whole():
    name = "Qwen/Qwen2.5-VL-7B-Instruct"
    config = kvgauge.load(name, offline=True).raw.config
    small = replace(H100, batched_tokens=2048, image_token_bytes=image_token_bytes(config))
    large = replace(small, image_item_tokens=image_item_tokens(config))
    found = [terms(name, running)["activations"].central_bytes for running in (small, large)]
    assert found[1] - found[0] == (16384 - 2048) * (2 * 3584 + 28 * 28 * 2 * 12)


def test_no_weights_leave_out_what_depends_on_shapes():
    architecture = kvgauge.load(DENSE, offline=True).architecture
    assert [term.name for term in estimate(architecture, None, H100)] == ["non_torch", "context"]


def test_pixels_of_images_are_held_beside_their_tokens():
    vision = {"patch_size": 14, "pixel_shuffle_ratio": 0.5}
    assert image_token_bytes({"vision_config": vision}) == 28 * 28 * 12
    assert image_token_bytes({"model_type": "gemma3", "vision_config": {"image_size": 896}}) == 37632
    assert image_token_bytes({"vision_config": {"patch_size": 10**12}}) == 0
    assert image_token_bytes({"vision_config": 3}) == image_token_bytes({}) == 0
    name = "google/gemma-3-27b-it"
    without = terms(name, replace(H100, images=False))["activations"].central_bytes
    assert terms(name, replace(H100, image_token_bytes=37632))["activations"].central_bytes - without == (
        8192 * (37632 + 2 * 5376)
    )


def test_weights_that_may_be_off_widen_the_pool():
    found = tuple(terms(DENSE, H100).values())
    low, central, high = pool_range(80 * GIB, "0.9", 16 * GIB, found)
    lower, same, higher = pool_range(80 * GIB, "0.9", 16 * GIB, found, weights_off_bytes=GIB)
    assert lower < low < central == same < high < higher


def test_a_pool_is_never_below_nothing():
    assert pool_range(8 * GIB, "0.9", 16 * GIB, terms(DENSE, H100).values()) == (0, 0, 0)


def test_running_of_engines():
    model = kvgauge.load(DENSE, offline=True)
    card = gpu_class("H100")
    assert card is not None
    first = vllm_running(model.architecture, VllmSettings("0.6.4", card, max_model_tokens=20000))
    assert (first.batched_tokens, first.sequences, first.graph_sizes) == (20000, 256, 35)
    newest = vllm_running(model.architecture, VllmSettings(gpu=card, max_model_tokens=32768))
    assert (newest.batched_tokens, newest.sequences, newest.graph_sizes) == (8192, 1024, 51)
    assert newest.linked is True
    eager = vllm_running(model.architecture, VllmSettings(gpu=card, enforce_eager=True))
    assert eager.graph_sizes == 0
    served = sglang_running(model.architecture, SglangSettings(gpu=card))
    assert (served.batched_tokens, served.sequences) == (8192, 256)
    built = tensorrt_llm_running(model.architecture, TrtllmSettings())
    assert (built.batched_tokens, built.sequences) == (8192, 2048)
    for running in (served, built, replace(built, engine="llama.cpp")):
        found = terms(DENSE, running)
        assert found["context"].records
        assert all(term.low_bytes <= term.central_bytes <= term.high_bytes for term in found.values())
    assert terms(DENSE, replace(built, engine="theory")) == {}
