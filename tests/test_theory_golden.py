"""Theory bytes against published figures, an engine's own specs and an independent evaluation."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction

import pytest

import kvgauge
from support import config_of, golden_lines

GIB = 1 << 30

# The article's figures at 32,768 tokens, BF16, one sequence (chapters 2 and 3; the state is what it leaves out).
ARTICLE = [
    # model, bytes per token, growing GiB, state bytes, layers that cache
    ("Qwen/Qwen3-30B-A3B", 98_304, Fraction(3), 0, 48),
    ("zai-org/GLM-4.7-Flash", 54_144, Fraction(54_144 * 32_768, GIB), 0, 47),
    ("Qwen/Qwen3.5-35B-A3B", 20_480, Fraction(5, 8), 64_389_120, 10),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 6_144, Fraction(3, 16), 49_082_368, 6),
    ("Qwen/Qwen3-8B", 147_456, Fraction(9, 2), 0, 36),
]

# Golden vectors: bytes a token beyond windows, fixed bytes, {window: bytes a token inside}, T = 8,192, T = 131,072.
# Sources: the models' config files; checked rows: Qwen3-8B (vLLM 0.19.0 log), V4-Flash pages (vllm#54703), V3.2 and V4
# ratios (published claims), Qwen3.5-35B, gpt-oss-20b, Gemma-4-26B, Step-3.7 (aiconfigurator 0.12.0).
VECTORS = [
    ("Qwen/Qwen3-8B", {}, 147_456, 0, {}, 1_207_959_552, 19_327_352_832),
    ("Qwen/Qwen3-30B-A3B", {}, 98_304, 0, {}, 805_306_368, 12_884_901_888),
    ("meta-llama/Llama-3.1-70B-Instruct", {}, 327_680, 0, {}, 2_684_354_560, 42_949_672_960),
    ("zai-org/GLM-4.7-Flash", {}, 54_144, 0, {}, 443_547_648, 7_096_762_368),
    ("deepseek-ai/DeepSeek-V3", {}, 70_272, 0, {}, 575_668_224, 9_210_691_584),
    ("deepseek-ai/DeepSeek-V3.2", {"kv_dtype": "fp8_ds_mla"}, 48_068, 0, {}, 393_773_056, 6_300_368_896),
    ("zai-org/GLM-5.2", {"kv_dtype": "fp8_ds_mla"}, 53_940, 0, {}, 441_876_480, 7_070_023_680),
    ("Qwen/Qwen3.5-35B-A3B", {}, 20_480, 64_389_120, {}, 232_161_280, 2_748_743_680),
    ("Qwen/Qwen3.5-27B", {}, 65_536, 153_944_064, {}, 690_814_976, 8_743_878_656),
    ("Qwen/Qwen3.5-397B-A17B", {}, 30_720, 192_061_440, {}, 443_719_680, 4_218_593_280),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", {}, 6_144, 49_082_368, {}, 99_414_016, 854_388_736),
    ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8", {"kv_dtype": "bf16"}, 8_192, 170_229_760, {}, 237_338_624,
     1_243_971_584),
    ("nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", {}, 12_288, 407_961_600, {}, 508_624_896, 2_018_574_336),
    ("moonshotai/Kimi-K3", {}, 27_648, 449_372_160, {}, 675_864_576, 4_073_250_816),
    ("openai/gpt-oss-20b", {}, 24_576, 0, {128: 24_576}, 204_472_320, 3_224_371_200),
    ("openai/gpt-oss-120b", {}, 36_864, 0, {128: 36_864}, 306_708_480, 4_836_556_800),
    ("google/gemma-4-26B-A4B", {}, 20_480, 0, {1024: 204_800}, 377_487_360, 2_894_069_760),
    ("nvidia/Gemma-4-31B-IT-NVFP4", {"kv_dtype": "bf16"}, 81_920, 0, {1024: 819_200}, 1_509_949_440, 11_576_279_040),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", {}, 49_152, 0, {8192: 147_456}, 1_610_612_736, 7_650_410_496),
    ("XiaomiMiMo/MiMo-V2-Flash", {}, 23_040, 0, {128: 199_680}, 214_302_720, 3_045_457_920),
    ("stepfun-ai/Step-3.7-Flash", {}, 49_152, 0, {512: 135_168}, 471_859_200, 6_511_656_960),
    ("MiniMaxAI/MiniMax-M3", {}, 137_472, 0, {}, 1_126_170_624, 18_018_729_984),
    ("nvidia/Llama-3_3-Nemotron-Super-49B-v1", {}, 200_704, 0, {}, 1_644_167_168, 26_306_674_688),
    ("google/gemma-3n-E4B-it", {}, 8_192, 0, {512: 32_768}, 83_886_080, 1_090_519_040),
    ("deepseek-ai/DeepSeek-V4-Pro", {"kv_dtype": "fp8_ds_mla"}, Fraction("5511.4375"), 18_710_528, {128: 35_624},
     68_420_096, 745_665_536),
    ("deepseek-ai/DeepSeek-V4-Flash", {"kv_dtype": "fp8_ds_mla"}, Fraction("3850.25"), 12_206_080, {128: 25_112},
     46_961_664, 520_080_384),
    ("deepseek-ai/DeepSeek-V4-Flash", {"kv_dtype": "fp8_ds_mla", "index_dtype": "mxfp4"}, Fraction("3514.25"), 12_206_080,
     {128: 25_112}, 44_209_152, 476_040_192),
]  # fmt: skip

# What NVIDIA's own sizing tool (aiconfigurator-core 0.12.0) gets wrong: the right figures, per token and fixed.
CORRECTED = [
    ("nvidia/Nemotron-H-56B-Base-8K", 40 * 1024, 870),
    ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8", 8 * 1024, 162),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 6 * 1024, 47),
    ("nvidia/Llama-3_3-Nemotron-Super-49B-v1", 196 * 1024, 0),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 48 * 1024, 0),
    ("MiniMaxAI/MiniMax-M3", 137_472, 0),
]


def figures(result: kvgauge.SizeResult) -> tuple[Fraction, int, dict[int, int]]:
    """Return (slope beyond windows, fixed bytes, bytes a token inside each window) of one sequence."""
    windows: Counter[int] = Counter()
    for term in result.cache.terms:
        if term.to_tokens is not None:
            windows[term.to_tokens] += term.bytes_per_step
    slope = sum((t.slope_at(1 << 40) for t in result.cache.terms), Fraction(0))
    return slope, result.cache.fixed_bytes_per_sequence, dict(windows)


@pytest.mark.parametrize(("model", "per_token", "growing_gib", "state", "caching"), ARTICLE)
def test_article_at_32768_tokens(model, per_token, growing_gib, state, caching):
    result = kvgauge.size(model, context=32_768, kv_dtype="bf16")
    assert result.cache.growth_bytes_per_token == per_token
    assert result.cache.fixed_bytes_per_sequence == state
    assert result.cache.total_bytes - state == growing_gib * GIB
    kinds = Counter(layer.kind.value for layer in result.cache.layers)
    assert kinds["full"] + kinds["latent"] == caching


def test_article_qwen3_8b_at_other_contexts():
    assert kvgauge.size("Qwen/Qwen3-8B", context="1k").cache.total_bytes == 144 << 20
    assert kvgauge.size("Qwen/Qwen3-8B", context="128k").cache.total_bytes == 18 * GIB
    as_mha = kvgauge.size("Qwen/Qwen3-8B", context="32k", overrides={"num_key_value_heads": 32})
    assert as_mha.cache.total_bytes == 18 * GIB
    assert as_mha.cache.family == "mha"


def test_article_pool_of_the_vllm_log():
    # vLLM 0.19.0 on an H100 NVL logged 514,944 tokens in 70.72 GiB.
    assert 514_944 * kvgauge.size("Qwen/Qwen3-8B").cache.growth_bytes_per_token == 75_931_582_464


def test_nemotron_layers():
    kinds = Counter(
        layer.kind.value for layer in kvgauge.size("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16").cache.layers
    )
    assert kinds == {"recurrent": 23, "none": 23, "full": 6}


@pytest.mark.parametrize(("model", "options", "slope", "fixed", "windows", "at_8k", "at_128k"), VECTORS)
def test_golden_vectors(model, options, slope, fixed, windows, at_8k, at_128k):
    result = kvgauge.size(model, context=131_072, **options)
    assert figures(result) == (slope, fixed, windows)
    assert result.cache.bytes_at(8_192) == at_8k
    assert result.cache.total_bytes == at_128k


@pytest.mark.parametrize(("model", "slope", "fixed_mib"), CORRECTED)
def test_right_where_other_tools_err(model, slope, fixed_mib):
    got_slope, fixed, _ = figures(kvgauge.size(model, kv_dtype="bf16"))
    assert got_slope == slope
    assert round(fixed / (1 << 20)) == fixed_mib


def test_llama4_scout_cap_is_1152_mib():
    _, _, windows = figures(kvgauge.size("meta-llama/Llama-4-Scout-17B-16E-Instruct", kv_dtype="bf16"))
    assert sum(window * size for window, size in windows.items()) == 1152 << 20


def test_deepseek_v4_against_v32_needs_the_fp4_index():
    # "10 % of V3.2" and "13.7 x smaller" at a million tokens hold with the 68-byte index record only.
    options = {"context": 1_048_576, "kv_dtype": "fp8_ds_mla"}
    v32 = kvgauge.size("deepseek-ai/DeepSeek-V3.2", **options).cache.growth_bytes_per_token
    pro = kvgauge.size(
        "deepseek-ai/DeepSeek-V4-Pro", index_dtype="mxfp4", **options
    ).cache.growth_bytes_per_token
    flash = kvgauge.size(
        "deepseek-ai/DeepSeek-V4-Flash", index_dtype="mxfp4", **options
    ).cache.growth_bytes_per_token
    assert round(float(pro / v32), 3) == 0.105
    assert round(float(v32 / flash), 1) == 13.7


GOLDEN_MODELS = golden_lines("theory_models_2026-11.jsonl")


@pytest.mark.parametrize("record", [r for r in GOLDEN_MODELS if "draft" not in r], ids=lambda r: r["id"])
def test_catalogue_against_independent_evaluation(record):
    # Slope, fixed part and windows of every model, computed by a second implementation from the rules; 57 of them
    # also equal vLLM 0.33.0's own layer specs. Two-byte K, V and convolution.
    result = kvgauge.size(
        record["id"], kv_dtype="bf16", overrides={"torch_dtype": "bfloat16", "dtype": "bfloat16"}
    )
    slope, fixed, windows = figures(result)
    assert float(slope) == record["slope"]
    assert fixed == record["fixed"] + record["cross"] * result.cache.workload.encoder_tokens
    assert {str(window): size for window, size in windows.items()} == record["windows"]


def test_wide_configs_against_independent_evaluation(shared):
    by_id = {record["id"]: record for record in GOLDEN_MODELS}
    checked = 0
    for folder in ("real", "logs"):
        for path in sorted((shared / "data/configs" / folder).glob("*.json")):
            record = by_id.get(path.stem.replace("--", "/"))
            if record is None:
                continue
            config = json.loads(path.read_text(encoding="utf-8"))
            overrides = {"torch_dtype": "bfloat16", "dtype": "bfloat16"}
            result = kvgauge.size(config, kv_dtype="bf16", overrides=overrides, encoder_tokens=0)
            slope, fixed, windows = figures(result)
            expected = (record["slope"], record["fixed"], record["windows"])
            assert (float(slope), fixed, {str(w): s for w, s in windows.items()}) == expected, path.name
            checked += 1
    assert checked > 400


def test_prescribed_kv_dtype_is_honoured_and_said():
    result = kvgauge.size("nvidia/Gemma-4-31B-IT-NVFP4")
    assert result.to_dict()["request"]["k_dtype"] == "fp8"
    assert "kv_dtype_prescribed" in {note.code for note in result.notes}
    half = kvgauge.size("nvidia/Gemma-4-31B-IT-NVFP4", kv_dtype="bf16")
    assert half.cache.growth_bytes_per_token == 2 * result.cache.growth_bytes_per_token


def test_whisper_and_mllama_cross_attention():
    whisper = kvgauge.size("openai/whisper-large-v3", kv_dtype="bf16")
    assert whisper.cache.family == "encoder_decoder"
    assert whisper.cache.growth_bytes_per_token == 160 * 1024
    assert whisper.cache.fixed_bytes_per_sequence == 1500 * 160 * 1024
    vision = kvgauge.size("meta-llama/Llama-3.2-11B-Vision-Instruct", image_tokens=4 * 1601, kv_dtype="bf16")
    assert vision.cache.growth_bytes_per_token == 128 * 1024
    assert vision.cache.fixed_bytes_per_sequence == 4 * 1601 * 32 * 1024


def test_mtp_layers_of_the_target_kind():
    plain = kvgauge.size("zai-org/GLM-4.5").cache.growth_bytes_per_token
    assert kvgauge.size("zai-org/GLM-4.5", mtp=1).cache.growth_bytes_per_token == plain * 93 / 92
    nano = kvgauge.size("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8", kv_dtype="bf16", mtp=1)
    assert nano.cache.growth_bytes_per_token == 8_192 + 1_024
    with pytest.raises(kvgauge.KvgaugeError, match="multi-token-prediction"):
        kvgauge.size("Qwen/Qwen3-8B", mtp=1)


def test_encoder_has_no_cache_and_says_so():
    config = {"model_type": "bert", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12}
    result = kvgauge.size(config)
    assert result.cache.family == "none"
    assert result.cache.total_bytes == 0
    assert "no_cache" in {note.code for note in result.notes}
    decoder = kvgauge.size({**config, "is_decoder": True})
    assert decoder.cache.family == "mha"


def test_falcon_spellings():
    wide = config_of("tiiuae/falcon-40b")
    assert kvgauge.size(wide).cache.growth_bytes_per_token == 60 * 2 * 8 * 64 * 2
    small = {"model_type": "falcon", "num_hidden_layers": 32, "hidden_size": 4544, "num_attention_heads": 71,
             "multi_query": True, "torch_dtype": "bfloat16"}  # fmt: skip
    result = kvgauge.size(small)
    assert (result.cache.family, result.cache.growth_bytes_per_token) == ("mqa", 32 * 2 * 64 * 2)
