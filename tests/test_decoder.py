"""The decoder: its logits against those of Transformers, its cache against ``size``, what it refuses to load."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvgauge
from kvgauge.errors import KvgaugeError
from kvgauge.lab.decoder import attention_scores, rms_norm, silu, softmax, weighted_values
from kvgauge.lab.folder import open_folder, save_folder
from kvgauge.lab.generate import Sampling, complete, generate
from kvgauge.lab.rope import Rope, read_rope, turn
from lab_models import CONFIGS, PROMPT, TOKENS, golden, ids, make, tensors
from support import ROOT

SHIPPED = ROOT / "src/kvgauge/data/lab_model"
NAMES = list(CONFIGS)


@pytest.fixture
def shipped():
    from kvgauge.lab.shipped import shipped_folder

    return shipped_folder()


# Against Transformers


@pytest.mark.parametrize("name", NAMES)
def test_logits_are_those_of_transformers(tmp_path, name):
    decoder = make(tmp_path, name).decoder
    expected, asked = golden()[name], ids()
    assert np.abs(decoder.forward(asked) - expected).max() < 1e-4
    assert np.abs(decoder.forward(asked[:1]) - expected[:1]).max() < 1e-4
    assert np.abs(decoder.forward(asked, last_only=True) - expected[:, -1:]).max() < 1e-4


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("chunks", [[1] * TOKENS, [PROMPT, 1, 1, 1, 1, 1], [2, 3, 4], [TOKENS]], ids=str)
def test_the_cache_changes_no_logit(tmp_path, name, chunks):
    decoder = make(tmp_path, name).decoder
    cache, asked, parts, place = decoder.new_cache(), ids(), [], 0
    for count in chunks:
        parts.append(decoder.forward(asked[:, place : place + count], cache))
        place += count
    assert np.abs(np.concatenate(parts, axis=1) - golden()[name]).max() < 1e-4
    assert cache.num_tokens == cache.rows_written == TOKENS


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tokens", [1, 2, 9, 33])
def test_the_cache_takes_what_size_says(tmp_path, name, tokens):
    folder = make(tmp_path, name)
    cache = folder.decoder.new_cache()
    folder.decoder.forward(ids(2, tokens), cache)
    answer = kvgauge.size(folder.model, context=tokens, sequences=2, kv_dtype="fp32")
    assert cache.num_bytes == answer.cache.total_bytes


def test_cached_keys_and_values_stay(tmp_path):
    decoder = make(tmp_path, "qwen3_gqa").decoder
    cache = decoder.new_cache()
    decoder.forward(ids(1, 5), cache)
    before = [(layer.keys.copy(), layer.values.copy()) for layer in cache.layers]
    decoder.forward(ids(1, 8)[:, 5:], cache)
    again = decoder.new_cache()
    decoder.forward(ids(1, 8), again)
    for (keys, values), layer, other in zip(before, cache.layers, again.layers, strict=True):
        assert np.array_equal(keys, layer.keys[:, :, :5])
        assert np.array_equal(values, layer.values[:, :, :5])
        assert np.abs(layer.keys - other.keys).max() < 1e-5
        assert np.abs(layer.values - other.values).max() < 1e-5


# The parts


def test_softmax_of_the_article():
    assert np.round(softmax(np.array([0.3, 0.8, 0.7, 0.5])) * 100).tolist() == [19, 31, 28, 23]


@given(st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=20))
def test_softmax_adds_up_and_keeps_the_order(scores):
    shares = softmax(np.array(scores, np.float32))
    assert abs(shares.sum() - 1) < 1e-5
    assert shares[int(np.argmax(scores))] == shares.max()
    assert np.isfinite(silu(np.array(scores, np.float32))).all()


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 400))
def test_turned_products_depend_on_the_distance_alone(first, second, shift):
    rope, width = Rope(), 16
    q, k = (np.sin(np.arange(width) * n + n).astype(np.float32)[None] for n in (1.0, 2.0))

    def product(m: int, n: int) -> float:
        return float((turn(q, rope.turns(m, 1, width)) @ turn(k, rope.turns(n, 1, width)).T)[0, 0])

    assert abs(product(first, second) - product(first + shift, second + shift)) < 1e-3


def test_no_token_sees_a_later_one(tmp_path):
    decoder = make(tmp_path, "llama_gqa").decoder
    one, other = ids(1, 8), ids(1, 8).copy()
    other[:, 5:] = (other[:, 5:] + 7) % 23
    assert np.array_equal(decoder.forward(one)[:, :5], decoder.forward(other)[:, :5])


def test_groups_share_their_keys():
    q, kv = (np.sin(np.arange(2 * n * 5 * 4) + 1).astype(np.float32).reshape(2, n, 5, 4) for n in (6, 2))
    repeated = np.repeat(kv, 3, axis=1)
    scores = attention_scores(q, kv)
    assert np.allclose(scores, attention_scores(q, repeated), atol=1e-6)
    shares = softmax(scores)
    assert np.allclose(weighted_values(shares, kv), weighted_values(shares, repeated), atol=1e-6)
    normed = rms_norm(q, np.ones(4, np.float32), 0.0)
    assert np.allclose(np.square(normed).mean(-1), 1, atol=1e-5)


# Choosing


def test_sampling_is_seeded(shipped):
    said = {seed: complete(shipped, "今天", 30, Sampling(1.5, seed)) for seed in (1, 2, 3, 4)}
    assert said == {seed: complete(shipped, "今天", 30, Sampling(1.5, seed)) for seed in (1, 2, 3, 4)}
    assert len(set(said.values())) > 1
    assert complete(shipped, "今天天气", 30, Sampling(0.01, 5)) == "真好！\n"
    for wrong in (Sampling(-1), Sampling(101), Sampling(float("nan")), Sampling(1, -1), Sampling(1, 1 << 64)):
        with pytest.raises(KvgaugeError):
            wrong.chooser()


def test_with_and_without_a_cache_say_the_same(shipped):
    asked = shipped.encode("The cache")
    plain = [step.chosen for step in generate(shipped.decoder, asked, 40)]
    cached = generate(shipped.decoder, asked, 40, cache=shipped.decoder.new_cache())
    assert [step.chosen for step in cached] == plain
    assert shipped.word(plain[-1]) == "\n"


# The model that ships


def test_what_ships_is_small_and_says_what_it_was_taught(shipped):
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 1_000_000
    assert complete(shipped, "今天天气", 40) == "真好！\n"
    assert complete(shipped, "The weather today", 40) == " is lovely!\n"
    sentences = [
        line.split("\t")[1] for line in (ROOT / "tools/lab_text.tsv").read_text(encoding="utf-8").splitlines()
    ]
    assert set("".join(sentences)) | {"\n", "<unk>"} == set(shipped.tokenizer.get_vocab())


# Loading


@pytest.mark.parametrize("word", ["F32", "F16", "BF16", "F64"])
def test_dtypes_are_widened(tmp_path, word):
    config = CONFIGS["llama_gqa"]
    plain = tensors(config)
    stored = {"F32": np.float32, "F16": np.float16, "F64": np.float64, "BF16": np.float32}[word]
    data = {name: array.astype(stored) for name, array in plain.items()}
    if word == "BF16":
        data = {name: (array.view(np.uint32) >> 16).astype(np.uint16) for name, array in data.items()}
    write_weights(tmp_path, config, {name: (word, array) for name, array in data.items()})
    loaded = open_folder(tmp_path).decoder
    if word == "BF16":
        cut = {k: (v.astype(np.uint32) << 16).view(np.float32) for k, v in data.items()}
    else:
        cut = {k: v.astype(np.float32) for k, v in data.items()}
    assert loaded.embedding.dtype == np.float32
    assert np.array_equal(loaded.embedding, cut["model.embed_tokens.weight"])
    assert np.array_equal(loaded.layers[1].down.weight, cut["model.layers.1.mlp.down_proj.weight"])


def write_weights(folder, config, rows, file="model.safetensors"):
    """Write a safetensors file by hand: name -> (dtype word, array)."""
    header, data = {}, b""
    for name, (word, array) in rows.items():
        piece = array.tobytes()
        header[name] = {
            "dtype": word, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(piece)],
        }  # fmt: skip
        data += piece
    text = json.dumps(header).encode()
    folder.mkdir(exist_ok=True)
    (folder / file).write_bytes(struct.pack("<Q", len(text)) + text + data)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def test_shards_are_joined(tmp_path):
    name = "qwen3_gqa"
    rows = {key: ("F32", array) for key, array in tensors(CONFIGS[name]).items()}
    files = [f"model-0000{n}-of-00003.safetensors" for n in (1, 2, 3)]
    parts = [dict(list(rows.items())[n::3]) for n in range(3)]
    for file, part in zip(files, parts, strict=True):
        write_weights(tmp_path, CONFIGS[name], part, file)
    index = {"weight_map": {key: file for file, part in zip(files, parts, strict=True) for key in part}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    assert np.abs(open_folder(tmp_path).decoder.forward(ids()) - golden()[name]).max() < 1e-4
    (tmp_path / files[1]).unlink()
    with pytest.raises(KvgaugeError, match="weight files are missing"):
        _ = open_folder(tmp_path).decoder


CHANGES = {
    "other architecture": {"model_type": "gpt2"},
    "no type": {"model_type": None},
    "windows": {"use_sliding_window": True},
    "quantised": {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}},
    "other activation": {"hidden_act": "gelu"},
    "no layers": {"num_hidden_layers": None},
    "negative": {"num_hidden_layers": -1},
    "huge": {"num_hidden_layers": 10**9},
    "more layers": {"num_hidden_layers": 3},
    "heads": {"num_key_value_heads": 3},
    "odd width": {"head_dim": 7},
    "another width": {"head_dim": 6},
    "another vocabulary": {"vocab_size": 24},
    "rope": {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
    "rope number": {"rope_theta": "x"},
    "rope text": {"rope_scaling": "yarn"},
    "rope order": {"rope_scaling": {"rope_type": "llama3", "low_freq_factor": 4, "high_freq_factor": 1}},
    "epsilon": {"rms_norm_eps": "small"},
}


@pytest.mark.parametrize("what", CHANGES)
def test_folders_that_do_not_run_are_refused(tmp_path, what):
    config = CONFIGS["llama_gqa"]
    save_folder(tmp_path, {**config, **CHANGES[what]}, tensors(config))
    with pytest.raises(KvgaugeError) as raised:
        _ = open_folder(tmp_path).decoder
    assert raised.value.exit_code in (1, 2, 4)
    assert raised.value.message


def test_folders_without_weights(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["llama_gqa"]), encoding="utf-8")
    with pytest.raises(KvgaugeError, match="holds no safetensors"):
        _ = open_folder(tmp_path).decoder
    with pytest.raises(KvgaugeError, match="is no folder"):
        open_folder(tmp_path / "nowhere")
    write_weights(tmp_path, None, {"x": ("I8", np.zeros(3, np.int8))})
    with pytest.raises(KvgaugeError, match=r"lack model\.embed_tokens"):
        _ = open_folder(tmp_path).decoder
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(KvgaugeError, match="is no tokenizer"):
        open_folder(tmp_path).encode("x")


def test_weights_in_eight_bit_are_refused(tmp_path):
    rows = {name: ("F32", array) for name, array in tensors(CONFIGS["llama_gqa"]).items()}
    norm = rows["model.norm.weight"][1]
    rows["model.norm.weight"] = ("F8_E4M3", norm.astype(np.uint8))
    write_weights(tmp_path, CONFIGS["llama_gqa"], rows)
    with pytest.raises(KvgaugeError, match="stored as F8_E4M3"):
        _ = open_folder(tmp_path).decoder


@given(st.binary(max_size=64), st.integers(0, 400))
def test_damaged_weights_never_crash(tmp_path_factory, noise, place):
    folder = tmp_path_factory.mktemp("x")
    save_folder(folder, CONFIGS["llama_gqa"], tensors(CONFIGS["llama_gqa"]))
    file = folder / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[place : place + len(noise)] = noise
    file.write_bytes(data[: len(data) - len(noise) // 2])
    try:
        _ = open_folder(folder).decoder
    except KvgaugeError as error:
        assert error.message


@given(
    st.dictionaries(
        st.sampled_from(["rope_type", "type", "factor", "rope_theta", "low_freq_factor", "high_freq_factor"]),
        st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=5)),
    )
)
def test_any_rope_is_read_or_refused(said):
    try:
        rope = read_rope({"rope_scaling": said, "rope_theta": 1e4})
    except KvgaugeError:
        return
    assert np.isfinite(rope.frequencies(8)).all()
