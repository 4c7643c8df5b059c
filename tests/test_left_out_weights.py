"""What an answer leaves out of its weights is said: towers of a GGUF, prediction of unknown shape."""

from __future__ import annotations

import pytest

import kvgauge


def codes(model: str, **asked: object) -> set[str]:
    return {note.code for note in kvgauge.size(model, **asked).notes}


@pytest.mark.parametrize("model", ["Qwen/Qwen2.5-VL-7B-Instruct", "google/gemma-4-E2B-it"])
def test_a_mix_of_a_model_with_towers_says_that_they_stay_in_a_file_of_their_own(model):
    whole = kvgauge.size(model, weights="bf16").weights
    mixed = kvgauge.size(model, weights="q4_k_m")
    said = next(note for note in mixed.notes if note.code == "weights_mmproj")
    towers = {"vision", "audio", "projector"}
    count = sum(part.num_parameters for part in whole.by_part if part.part.value in towers)
    assert f"{count:,}" in said.message
    assert not towers & {part.part.value for part in mixed.weights.by_part}


def test_a_model_of_text_alone_leaves_nothing_out():
    assert "weights_mmproj" not in codes("Qwen/Qwen3-8B", weights="q4_k_m")
    assert "weights_mmproj" not in codes("Qwen/Qwen2.5-VL-7B-Instruct", weights="int4")


@pytest.mark.parametrize(
    ("model", "is_known"), [("deepseek-ai/DeepSeek-V3", True), ("LGAI-EXAONE/EXAONE-4.5-33B", False)]
)
def test_prediction_whose_tensors_are_not_known_is_said_not_counted_as_nothing(model, is_known):
    weights = kvgauge.size(model, mtp=1).weights
    assert bool(weights.stored.mtp_families) is is_known
    assert ("mtp_weights_unknown" in codes(model, mtp=1)) is not is_known
    assert "mtp_weights_unknown" not in codes(model)
