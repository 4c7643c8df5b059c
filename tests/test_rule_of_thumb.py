"""``W + K + 0.1 W``: the article's tables by its own method, to the corrected figures; and what cards lack."""

from __future__ import annotations

import pytest

import kvgauge
from kvgauge.cli.app import execute
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.units import MAX_TOKENS

GB = 10**9
BIG = "Qwen/Qwen3-8B"


def thumb(**words: object) -> kvgauge.FitResult:
    return kvgauge.fit(BIG, engine="theory", context=32768, offline=True, **words)


@pytest.mark.parametrize(("sequences", "gigabytes"), [(1, 22.9), (4, 37.3), (8, 56.7)])
def test_weights_cache_and_a_tenth(sequences, gigabytes):
    result = thumb(sequences=sequences, gpu="H100")
    assert round(result.verdict.required_bytes / GB, 1) == gigabytes
    assert "rule_of_thumb" in {note.code for note in result.notes}
    assert result.launch_command == ""


@pytest.mark.parametrize(("room", "tokens"), [("7GB", 47_472), ("18GB", 122_070)])
def test_tokens_of_a_room(room, tokens):
    """The corrected tables round; a token that does not fit whole is not promised."""
    result = thumb(kv_memory=room)
    growth = 147_456
    assert round(result.pool.bytes / growth) == tokens
    assert result.pool.capacity_tokens == result.pool.bytes // growth


@pytest.mark.parametrize("model", ["state-spaces/mamba-130m-hf", "mistralai/Mistral-7B-v0.1"])
def test_a_cache_that_has_stopped_growing_is_not_counted_in_tokens(model):
    result = kvgauge.fit(model, engine="theory", gpu="L4", context=MAX_TOKENS, offline=True)
    assert result.pool.capacity_tokens is None
    assert result.max_context.count > 0
    assert result.verdict.fits


def test_the_share_of_the_cache_at_128k():
    result = kvgauge.size(BIG, context=131_072, offline=True)
    cache, weights = result.cache.total_bytes, result.weights.total_bytes
    assert round(100 * cache / (cache + weights)) == 54


def test_the_engines_answer_beside_it():
    rule, engine = thumb(gpu="RTX 4090"), kvgauge.fit(BIG, engine="vllm", gpu="RTX 4090", context=32768)
    assert rule.verdict.required_bytes < engine.verdict.required_bytes
    assert rule.pool.capacity_tokens > engine.pool.capacity_tokens


def test_ranks_of_the_rule():
    one, two = thumb(gpu="H100"), thumb(gpu="H100:2")
    assert two.verdict.required_bytes * 2 == pytest.approx(one.verdict.required_bytes, rel=1e-3)
    with pytest.raises(FeatureUnsupportedError, match="rule of thumb knows no --pp"):
        thumb(gpu="H100:2", pp=2)


def test_what_cards_lack():
    def codes(gpu, **words):
        result = kvgauge.fit(BIG, engine="vllm@0.29.0", gpu=gpu, offline=True, **words)
        return {note.code for note in result.notes}

    assert "card_lacks_bf16" in codes("V100 32GB")
    assert "card_lacks_bf16" not in codes("V100 32GB", engine_args="--dtype half")
    assert "card_lacks_bf16" not in codes("A100")
    assert "card_lacks_fp8" in codes("A100", kv_dtype="fp8")
    assert not codes("H100", kv_dtype="fp8") & {"card_lacks_bf16", "card_lacks_fp8"}


def test_compare_shows_what_each_gpu_holds():
    rows = kvgauge.compare([BIG, "Qwen/Qwen3-32B"], tp=4, offline=True).rows
    first = rows[0].result
    assert rows[0].rank_bytes == first.cache.per_rank_bytes[0] + first.weights.per_rank_bytes[0]


@pytest.mark.parametrize(
    ("lang", "holds", "log"), [("en", "The pool holds", "In the log"), ("zh", "池容量", "日志")]
)
def test_a_rule_prints_no_log(lang, holds, log, capsys):
    execute(["fit", BIG, "--engine", "theory", "--gpu", "RTX 4090", "--lang", lang, "--offline"])
    text = capsys.readouterr().out
    assert holds in text
    assert log not in text
    execute(["fit", BIG, "--engine", "vllm", "--gpu", "RTX 4090", "--lang", lang, "--offline"])
    assert log in capsys.readouterr().out
