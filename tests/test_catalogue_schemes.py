"""What the catalogue says of quantisation: names, blocks and the hub's element counts agree, or a note says so."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kvgauge.errors import FeatureUnsupportedError, KvgaugeError
from kvgauge.readers.hf.schemes import stored_weights
from kvgauge.readers.hf.weights import read_weights
from kvgauge.sources.catalogue import all_models, find_model, model_names
from kvgauge.stored_weights import StoredFamily, StoredWeights
from kvgauge.weights import Part
from support import ROOT, golden_lines

#: A word of a name -> what the scheme's label must hold.
WORDS = {
    "awq": "awq", "gptq": "gptq", "bnb": "bitsandbytes", "fp8": "fp8", "nvfp4": "nvfp4", "mxfp4": "mxfp4",
    "nf4": "nf4", "int4": "int4", "int8": "int8", "w4a16": "int4", "w8a8": "int8", "mlx": "mlx",
    "4bit": "4", "8bit": "8", "gguf": "",
}  # fmt: skip
_WORD = re.compile(rf"(?<![a-z])({'|'.join(WORDS)})(?![a-z0-9])")
HUB = golden_lines("hub_elements_llmfit_1.1.17.jsonl")
PLAIN = {"bf16", "f16", "f32"}


def named_words(name: str) -> list[str]:
    return _WORD.findall(name.lower())


def weighed(name: str) -> StoredWeights | None:
    raw = find_model(name)
    assert raw is not None, name
    weights = read_weights(raw.config)
    return weights and stored_weights(weights, raw.config, raw.quantization, "bf16")


def quantised_names() -> list[str]:
    return [name for name in model_names() if named_words(name)]


def test_a_name_that_tells_a_quantisation_is_not_priced_as_plain():
    assert len(quantised_names()) >= 300
    for name in quantised_names():
        try:
            weights = weighed(name)
        except FeatureUnsupportedError as error:
            assert "GGUF" in error.message, name
            continue
        except KvgaugeError:
            continue  # not counted at all, and the answer says why
        if weights is None:
            continue
        assert weights.scheme not in PLAIN, name
        assert any(one.format.name not in PLAIN for one in weights.families), name
        for word in named_words(name):
            assert WORDS[word] in weights.scheme, (name, weights.scheme)


def test_a_name_that_tells_16_bit_is_plain():
    names = [n for n in model_names() if re.search(r"-(BF16|unquantized)$", n, re.IGNORECASE)]
    assert len(names) >= 8
    for name in names:
        weights = weighed(name)
        assert weights is not None and weights.scheme in PLAIN, name


def test_repositories_that_keep_more_layers_say_so():
    """Their lists are in no alias: the bytes are a lower bound, and a warning says it."""
    names = [name for name in model_names() if name.endswith("-unsloth-bnb-4bit")]
    assert len(names) >= 60
    for name in names:
        weights = weighed(name)
        assert weights is not None
        assert ("kept_layers_assumed", "warning") in [(n.code, n.level) for n in weights.notes], name


def numbers(stored: StoredFamily) -> int:
    """Return how many scales stand beside the values; the words of bitsandbytes' own as well."""
    tiles = stored.format.tiles[:1]
    if not tiles or stored.family.tied_to:
        return 0
    shape = stored.family.shape
    slices = max(1, stored.family.num_experts) if stored.family.stacked else 1
    tile = tiles[0]
    count = tile.stored_bytes(shape[-2], shape[-1]) * 8 // tile.bits
    if stored.format.name == "nf4":  # bytes count twice there; second scales, two tables, a text
        count = 2 * count + shape[-2] * shape[-1] // (64 * 256) + 16 + 256 + 2 * 180
    return count * slices * stored.family.num_tensors


def off(name: str, elements: int) -> tuple[int, int]:
    """Return (elements that nothing explains, scales): a head or MTP may be in the files or not."""
    raw = find_model(name)
    assert raw is not None, name
    weights, stored = read_weights(raw.config), weighed(name)
    assert weights is not None and stored is not None
    tied = sum(f.num_tensors * f.shape[0] * f.shape[1] for f in weights.families if f.tied_to)
    mtp = sum(family.num_parameters for family in weights.mtp_families)
    scales, mtp_scales = sum(map(numbers, stored.families)), sum(map(numbers, stored.mtp_families))
    left = elements - weights.num_parameters - scales
    return min((left - a - b for a in (0, tied) for b in (0, mtp, mtp + mtp_scales)), key=abs), scales


@pytest.mark.parametrize("record", HUB, ids=lambda r: r["id"])
def test_values_and_scales_are_as_many_as_the_hub_counts(record):
    """Which layers are quantised, and in what groups, shows in the count of scales.

    ``besides``: buffers of routers and scales of a prediction module, which no rule here counts.
    """
    left, scales = off(record["id"], record["elements"])
    assert abs(left) <= max(record.get("besides", 0), scales // 1000), (left, scales)


def blocks() -> Iterator[tuple[str, dict[str, object]]]:
    for name in model_names():
        raw = find_model(name)
        assert raw is not None
        block = raw.config.get("quantization_config")
        if isinstance(block, dict):
            yield name, block


def test_a_group_size_that_only_the_name_tells_is_marked():
    counted = {record["id"] for record in HUB}
    published = {"zero_point", "desc_act", "_assumed"}  # fields of a file, or the mark
    for name, block in blocks():
        if block.get("quant_method") in ("awq", "gptq") and name not in counted:
            assert published & set(block), name


def test_towers_are_not_left_out_in_silence():
    """Every composite of the catalogue has the parts that its file describes."""
    for name in model_names():
        raw = find_model(name)
        assert raw is not None
        try:
            weights = read_weights(raw.config)
        except KvgaugeError:
            continue
        told = [part for part in ("vision_config", "audio_config") if raw.config.get(part)]
        if weights is not None and told:
            parts = set(weights.by_part)
            assert parts & {Part.VISION, Part.AUDIO, Part.PROJECTOR}, (name, told)


def test_rows_without_weights_stand_in_the_table_with_a_reason():
    text = (ROOT / "docs/parameters.md").read_text(encoding="utf-8")
    table = text[text.index("## Refused") : text.index("## Schemes")]
    stated = {
        name
        for line in table.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([^`]*)`", line)
    }
    lacking = set()
    for raw, _ in all_models():
        try:
            if read_weights(raw.config) is None:
                lacking.add(raw.id)
        except KvgaugeError:
            lacking.add(raw.id)
    assert lacking == {name for name in stated if "/" in name}
