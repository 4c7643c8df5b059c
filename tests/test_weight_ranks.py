"""Weights of each rank: against vLLM's own models, sums that hold for every split, refusals that name what can."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import kvgauge
from kvgauge.engines.vllm_weights import shard_policy
from kvgauge.errors import FeatureUnsupportedError, KvgaugeError
from kvgauge.readers.hf.schemes import stored_weights
from kvgauge.readers.hf.schemes.formats import fp8_blocks, nvfp4
from kvgauge.readers.hf.weights import read_weights
from kvgauge.render.messages.errors_zh import chinese
from kvgauge.sharding import THEORY, Cut, ShardPolicy, rank_tensor
from kvgauge.sources.catalogue import find_model
from kvgauge.stored_weights import StoredFamily, StoredWeights
from kvgauge.weight_formats import WeightFormat, plain
from kvgauge.weight_ranks import rank_bytes, rank_elements
from kvgauge.weights import Part, TensorFamily, WeightShard
from kvgauge.workload import Parallelism
from support import ROOT, SHARED, config_of, golden_lines

GOLDEN = golden_lines("weights_per_rank_vllm_0.33.jsonl")[1:]
ORACLE = SHARED / "data/oracle"
REAL = SHARED / "data/configs/real"
TOLERANCE = 0.001
CAPABILITIES = {"H100": (9, 0), "B200": (10, 0), "A100": (8, 0)}
DTYPES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}
VLLM = shard_policy()


def stored_of(
    config: dict[str, Any], side_file: Any, dtype: str, *, quantised: bool = True
) -> StoredWeights | None:
    """Return a config's weights; without its quantisation, in ``dtype``."""
    weights = read_weights(config)
    if weights is None:
        return None
    if quantised:
        return stored_weights(weights, config, side_file, dtype)
    form = plain(dtype)
    return StoredWeights(
        tuple(StoredFamily(family, form) for family in weights.families),
        tuple(StoredFamily(family, form) for family in weights.mtp_families),
    )


def catalogue_weights(model: str, *, quantised: bool = True) -> tuple[StoredWeights, int]:
    """Return a catalogue model's weights and its number of layers."""
    raw = find_model(model)
    architecture = kvgauge.load(model).architecture
    stored = stored_of(raw.config, raw.quantization, architecture.model_dtype, quantised=quantised)
    assert stored is not None
    return stored, architecture.num_layers


def policy_of(config: dict[str, Any], model_type: str, capability: tuple[int, int]) -> ShardPolicy:
    """Return vLLM's policy, from the words of a config."""
    text = config.get("text_config") or config
    names = ("mlp_hidden_act", "hidden_act", "hidden_activation")
    activation = next((text[name] for name in names if isinstance(text.get(name), str)), "silu")
    return shard_policy(model_type=model_type, compute_capability=capability, expert_activation=activation)


def off(found: int, expected: int) -> float:
    return abs(found - expected) / expected


@pytest.mark.parametrize("row", GOLDEN, ids=lambda r: f"{r['id']}-sm{r['compute_capability']}-pp{r['pp']}")
def test_is_what_the_engine_builds(row):
    stored, num_layers = catalogue_weights(row["id"], quantised=row["quantised"])
    major, minor = map(int, row["compute_capability"].split("."))
    model_type = kvgauge.load(row["id"]).architecture.model_type
    policy = policy_of(config_of(row["id"]), model_type, (major, minor))
    for tp, size in row["bytes"].items():
        layout = Parallelism(int(tp), row["pp"])
        assert off(rank_bytes(stored, layout, num_layers=num_layers, policy=policy)[-1], size) < TOLERANCE
        if elements := row.get("elements", {}).get(tp):
            found = rank_elements(stored, layout, num_layers=num_layers, policy=policy)[-1]
            assert off(found, elements) < TOLERANCE / 100


def excepted() -> set[str]:
    """Return the ids of the table in docs/weights_per_rank.md."""
    text = (ROOT / "docs/weights_per_rank.md").read_text(encoding="utf-8")
    return set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))


@pytest.mark.skipif(not ORACLE.exists(), reason="needs ../shared")
def test_every_shared_record_is_near_or_in_the_table():
    far, seen = set(), 0
    known: dict[tuple[str, bool], Any] = {}
    for name in ("vllm_0.33.jsonl", "vllm_0.33_variants.jsonl"):
        for line in (ORACLE / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if not row.get("param_bytes_per_rank"):
                continue
            seen += 1
            if _error(row, known) > TOLERANCE:
                far.add(row["model"].replace("--", "/"))
    assert seen > 500
    assert far == excepted()


def _error(row: dict[str, Any], known: dict[tuple[str, bool], Any]) -> float:
    key = (row["model"], row["quantization"] is not None)
    if key not in known:
        known[key] = _real(row)
    stored, num_layers, model_type, config = known[key]
    if stored is None:
        return 1.0
    gpu = next(value for name, value in CAPABILITIES.items() if name in row["gpu"])
    sizes = rank_bytes(
        stored,
        Parallelism(row["tp"], row["pp"]),
        num_layers=num_layers,
        policy=policy_of(config, model_type, gpu),
    )
    return off(sizes[-1], row["param_bytes_per_rank"])


def _real(row: dict[str, Any]) -> tuple[StoredWeights | None, int, str, dict[str, Any]]:
    config = json.loads((REAL / f"{row['model']}.json").read_text(encoding="utf-8"))
    side = REAL / f"{row['model']}.hf_quant_config.json"
    side_file = json.loads(side.read_text(encoding="utf-8")) if side.exists() else None
    quantised = row["quantization"] is not None
    try:
        stored = stored_of(config, side_file, DTYPES[row["model_dtype"]], quantised=quantised)
        architecture = kvgauge.load(config).architecture
    except KvgaugeError:
        return None, 0, "", config
    return stored, architecture.num_layers, architecture.model_type, config


SPLITS = (
    "Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B-FP8", "openai/gpt-oss-20b", "deepseek-ai/DeepSeek-V3.2",
    "Qwen/Qwen3.5-35B-A3B", "google/gemma-4-26B-A4B", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "microsoft/Phi-3-mini-4k-instruct", "tiiuae/falcon-7b", "ai21labs/Jamba-v0.1",
)  # fmt: skip
POWERS = st.sampled_from([1, 2, 4, 8, 16])


@pytest.mark.parametrize("model", SPLITS)
def test_one_rank_holds_the_model(model):
    stored, num_layers = catalogue_weights(model)
    assert rank_bytes(stored, Parallelism(), num_layers=num_layers) == (stored.num_bytes,)
    whole = rank_bytes(stored, Parallelism(), num_layers=num_layers, mtp=True)
    assert whole == (stored.num_bytes + stored.mtp_bytes,)


@given(st.sampled_from(SPLITS), POWERS, POWERS, POWERS, st.booleans())
@settings(max_examples=120, deadline=None)
def test_ranks_hold_everything_and_no_rank_more_than_all(model, tp, pp, ep, mtp):
    stored, num_layers = catalogue_weights(model)
    total = stored.num_bytes + (stored.mtp_bytes if mtp else 0)
    try:
        ranks = rank_bytes(stored, Parallelism(tp, pp, 1, ep), num_layers=num_layers, mtp=mtp)
        more = rank_bytes(stored, Parallelism(2 * tp, pp, 1, ep), num_layers=num_layers, mtp=mtp)
    except FeatureUnsupportedError as error:
        assert error.hint
        return
    assert len(ranks) == tp * pp
    assert sum(ranks) >= total
    assert max(ranks) <= total
    for stage in range(pp):
        assert max(more[2 * tp * stage : 2 * tp * (stage + 1)]) <= max(ranks[tp * stage : tp * (stage + 1)])


@pytest.mark.parametrize("model", SPLITS)
def test_stages_share_the_layers_out(model):
    stored, num_layers = catalogue_weights(model)
    stages = rank_bytes(stored, Parallelism(1, 4), num_layers=num_layers)
    tied = any(item.family.tied_to for item in stored.families if item.family.part is Part.LM_HEAD)
    embedding = sum(
        item.num_bytes
        for item in stored.families
        if item.family.part is Part.EMBEDDING and item.family.shard is WeightShard.VOCABULARY
    )
    assert sum(stages) == stored.num_bytes + (embedding if tied else 0)


def one(family: TensorFamily, form: WeightFormat | None = None) -> StoredWeights:
    return StoredWeights((StoredFamily(family, form or plain("bf16")),))


def experts(count: int) -> StoredWeights:
    family = TensorFamily(
        "model.layers.{layer}.experts.{expert}.up", (64, 32), Part.EXPERTS, WeightShard.COLUMN, (0,), count, 2
    )
    return one(family)


def test_expert_parallelism_holds_whole_experts_the_first_ranks_one_more():
    assert rank_bytes(experts(10), Parallelism(4, 1, 1, 4), num_layers=1) == (
        3 * 4096, 3 * 4096, 2 * 4096, 2 * 4096,
    )  # fmt: skip


def test_expert_parallelism_reaches_over_replicas():
    assert rank_bytes(experts(16), Parallelism(2, 1, 4, 8), num_layers=1) == (2 * 4096, 2 * 4096)
    assert rank_bytes(experts(16), Parallelism(2, 1, 4), num_layers=1) == (16 * 2048, 16 * 2048)


def test_fewer_expert_ranks_than_tensor_ranks_cut_each_expert():
    assert rank_bytes(experts(16), Parallelism(4, 1, 1, 2), num_layers=1) == (8 * 2048,) * 4


def test_sizes_that_a_hint_names_are_possible():
    """StarCoder2-15B has 48 heads over 4 KV heads: 32 and 64 ranks keep the KV heads whole, not the others."""
    for engine in ("vllm", "sglang"):
        with pytest.raises(FeatureUnsupportedError, match="4 KV heads can't be spread") as caught:
            kvgauge.size("bigcode/starcoder2-15b", context=64, engine=engine, tp=6)
        named = [int(number) for number in re.findall(r"\d+", caught.value.hint)]
        assert named == [1, 2, 4]
        for tp in named:
            kvgauge.size("bigcode/starcoder2-15b", context=64, engine=engine, tp=tp)


def test_an_impossible_expert_split_names_what_can():
    with pytest.raises(FeatureUnsupportedError, match="can't be spread") as caught:
        rank_bytes(experts(16), Parallelism(4, 1, 1, 3), num_layers=1)
    assert caught.value.hint == "--ep 2, 4 can"


def test_fused_projections_keep_key_value_heads_whole():
    config = config_of("microsoft/Phi-3-mini-4k-instruct") | {"num_key_value_heads": 8}
    weights = read_weights(config)
    fused = next(f for f in weights.families if f.name.endswith("qkv_proj.weight"))
    hidden, width = 3072, 96
    assert fused.shape == ((32 + 2 * 8) * width, hidden)
    shape, _ = rank_tensor(fused, plain("bf16"), Cut(16), THEORY)
    assert shape == ((2 + 2 * 1) * width, hidden)


def test_state_groups_are_copied_beyond_their_number():
    weights = read_weights(config_of("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"))
    joined = next(f for f in weights.families if f.name.endswith("in_proj.weight"))
    heads, width, groups, state = 64, 64, 8, 128
    assert joined.shape[0] == 2 * heads * width + 2 * groups * state + heads
    shape, _ = rank_tensor(joined, plain("bf16"), Cut(16), THEORY)
    assert shape[0] == (2 * heads * width + heads) // 16 + 2 * state


def test_the_vocabulary_is_padded_in_vllm_on_one_rank_too():
    family = TensorFamily("embed", (1001, 8), Part.EMBEDDING, WeightShard.VOCABULARY)
    assert rank_bytes(one(family), Parallelism(), num_layers=1) == (1001 * 16,)
    assert rank_bytes(one(family), Parallelism(2), num_layers=1) == (501 * 16,) * 2
    assert rank_bytes(one(family), Parallelism(), num_layers=1, policy=VLLM) == (1024 * 16,)
    with pytest.raises(FeatureUnsupportedError, match="1024 padded rows"):
        rank_bytes(one(family), Parallelism(3), num_layers=1, policy=VLLM)


def test_a_tower_that_ranks_do_not_divide_is_whole_or_refused():
    family = TensorFamily("tower", (3420, 8), Part.VISION, WeightShard.COLUMN)
    assert rank_bytes(one(family), Parallelism(8), num_layers=1) == (3420 * 16,) * 8
    with pytest.raises(FeatureUnsupportedError, match="3420 outputs"):
        rank_bytes(one(family), Parallelism(8), num_layers=1, policy=VLLM)


def test_scales_follow_the_cut():
    family = TensorFamily("down", (256, 768), Part.MLP, WeightShard.ROW, ())
    stored = one(family, fp8_blocks(128, 128))
    assert rank_bytes(stored, Parallelism(4), num_layers=1)[0] == 256 * 192 + 2 * 2 * 4
    with pytest.raises(FeatureUnsupportedError, match=r"192 of down .*128x128") as caught:
        rank_bytes(stored, Parallelism(4), num_layers=1, policy=VLLM)
    assert caught.value.hint == "--tp 1, 2, 3, 6 can"


def test_experts_in_blocks_get_smaller_blocks_in_vllm():
    family = TensorFamily("{expert}.down", (256, 768), Part.EXPERTS, WeightShard.ROW, (), 4, 1)
    stored = one(family, fp8_blocks(128, 128))
    size = rank_bytes(stored, Parallelism(4), num_layers=1, policy=VLLM)[0]
    assert size == 4 * (256 * 192 + 4 * 3 * 4)  # blocks of 64
    with pytest.raises(FeatureUnsupportedError, match="24 wide"):
        rank_bytes(stored, Parallelism(32), num_layers=1, policy=VLLM)


def test_groups_that_a_cut_leaves_unfilled():
    family = TensorFamily("{expert}.down", (64, 88), Part.EXPERTS, WeightShard.ROW, (), 1, 1)
    stored = one(family, nvfp4(input_scale=False))
    theory, vllm = (rank_bytes(stored, Parallelism(), num_layers=1, policy=p)[0] for p in (THEORY, VLLM))
    assert theory - vllm == 64


@pytest.mark.parametrize(
    ("tp", "model"), [(3, "Qwen/Qwen3-8B"), (7, "openai/gpt-oss-20b"), (3, "google/gemma-4-26B-A4B")]
)
def test_refusals_name_what_can(tp, model):
    stored, num_layers = catalogue_weights(model)
    with pytest.raises(FeatureUnsupportedError) as caught:
        rank_bytes(stored, Parallelism(tp), num_layers=num_layers, policy=VLLM)
    sizes = [int(word) for word in re.findall(r"\d+", caught.value.hint)]
    assert 2 in sizes
    assert tp not in sizes
    for text in (caught.value.message, caught.value.hint):
        assert re.search(r"[一-鿿]", chinese(text)), text
    for size in sizes:
        assert rank_bytes(stored, Parallelism(size), num_layers=num_layers, policy=VLLM)


def test_tensors_that_layers_share_are_on_every_stage():
    shared = TensorFamily("model.shared.q_proj.weight", (8, 4), Part.ATTENTION, WeightShard.COLUMN)
    own = TensorFamily("model.layers.{layer}.q_proj.weight", (8, 4), Part.ATTENTION, layers=(0, 1, 2))
    stored = StoredWeights(tuple(StoredFamily(family, plain("bf16")) for family in (shared, own)))
    assert rank_bytes(stored, Parallelism(1, 3), num_layers=3) == (128,) * 3


def test_a_total_alone_is_shared_evenly():
    family = TensorFamily("model.safetensors.index.json", (1001,), Part.OTHER)
    stored = StoredWeights((StoredFamily(family, plain("uint8")),), source="index")
    assert rank_bytes(stored, Parallelism(2, 2), num_layers=2) == (251,) * 4


def test_more_stages_than_layers_are_refused():
    with pytest.raises(FeatureUnsupportedError, match="exceeds the 1 layers"):
        rank_bytes(experts(2), Parallelism(1, 2), num_layers=1)


@given(st.integers(1, 4096), st.sampled_from([1, 2, 3, 8, 12]), st.sampled_from([1, 2, 4, 8, 16]))
def test_heads_are_whole_on_every_rank(width, units, ranks):
    assume(not units % ranks or not ranks % units)
    family = TensorFamily("k", (units * width, 8), Part.ATTENTION, WeightShard.KV_HEADS, shard_units=units)
    (rows, _), _ = rank_tensor(family, plain("bf16"), Cut(ranks), THEORY)
    assert rows % width == 0
    assert rows * ranks >= units * width
