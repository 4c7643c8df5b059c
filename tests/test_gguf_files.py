"""GGUF files by the ways that lead to them: path, folder, split set, Ollama's store, metadata; in Python and CLI."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

import kvgauge
from gguf_files import QWEN3, TENSORS, gguf, split_set, write
from kvgauge.cli.app import execute
from kvgauge.errors import (
    DamagedFileError,
    InvalidFieldError,
    InvalidRequestError,
    MissingFieldError,
    ModelNotFoundError,
    UnknownArchitectureError,
)
from kvgauge.sources.gguf_split import SplitName
from kvgauge.sources.ollama import find_ollama

#: 2 layers x (K and V) x 2 heads x 16 x 2 bytes x 100 tokens.
BYTES = 2 * 2 * 2 * 16 * 2 * 100


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = execute(arguments)
    done = capsys.readouterr()
    return code, done.out, done.err


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    code, out, err = run(capsys, "size", *arguments, "--context", "100", "--json")
    assert code == 0, err or out
    return json.loads(out)


def test_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = write(tmp_path / "model.gguf")
    found = answer(capsys, str(path))
    assert found["cache"]["total_bytes"] == BYTES
    assert found["model"] == {
        "id": str(path),
        "revision": None,
        "source": "gguf",
        "model_type": "qwen3",
        "architecture": "",
        "num_layers": 2,
        "context_limit_tokens": 4096,
        "overrides": {},
    }
    assert found["request"]["k_dtype"] == "fp16"
    assert [note["code"] for note in found["notes"]] == ["gguf_kv_dtype"]
    assert kvgauge.size(path, context=100).cache.total_bytes == BYTES


@pytest.mark.parametrize("name", ["MODEL.GGUF", "sha256-0123", "model.bin"])
def test_the_magic_tells_a_gguf_of_another_name(tmp_path: Path, name: str):
    assert kvgauge.size(write(tmp_path / name), context=100).cache.total_bytes == BYTES


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_text_says_that_it_is_a_gguf(tmp_path, capsys, lang):
    path = write(tmp_path / "model.gguf")
    code, out, err = run(capsys, "size", str(path), "--context", "100", "--lang", lang)
    assert code == 0
    assert "GGUF" in out
    assert "f16" in err


def test_a_dtype_that_was_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = str(write(tmp_path / "model.gguf"))
    assert answer(capsys, path, "--kv-dtype", "q8_0")["cache"]["total_bytes"] == BYTES * 34 // 64


def test_explain_names_the_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = str(write(tmp_path / "model.gguf"))
    code, out, _ = run(capsys, "explain", path, "--context", "100", "--json")
    assert code == 0
    step = json.loads(out)["steps"][0]
    assert step["value_bytes"] == BYTES
    assert step["symbol_paths"]["L"] == "qwen3.block_count"
    assert step["symbol_paths"]["H_kv"] == "qwen3.attention.head_count_kv"
    assert step["symbol_paths"]["D"] == "qwen3.attention.key_length"
    assert {"path": "qwen3.attention.key_length", "value": 16} in step["fields"]
    assert run(capsys, "explain", path)[0] == 0


@pytest.mark.parametrize(
    ("override", "layers"),
    [("qwen3.block_count=5", 5), ("qwen3.nextn_predict_layers=1", 1)],
)
def test_overrides_take_whole_keys(tmp_path, capsys, override, layers):
    path = str(write(tmp_path / "model.gguf"))
    found = answer(capsys, path, "--override", override)
    assert found["model"]["num_layers"] == layers
    assert found["model"]["overrides"] == {override.split("=")[0]: int(override.split("=")[1])}


def test_a_folder_of_one_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write(tmp_path / "model.gguf")
    write(tmp_path / "mmproj-model-f16.gguf", {"general.architecture": "clip"}, ())
    found = answer(capsys, str(tmp_path))
    assert (found["model"]["id"], found["cache"]["total_bytes"]) == (str(tmp_path), BYTES)
    (tmp_path / "config.json").write_text(
        json.dumps(
            {"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 8, "num_attention_heads": 1}
        )
    )
    assert answer(capsys, str(tmp_path))["model"]["source"] == "file"


def test_a_folder_of_several_models(tmp_path: Path):
    write(tmp_path / "model-q4.gguf")
    write(tmp_path / "model-q8.gguf")
    with pytest.raises(InvalidRequestError, match=r"model-q4\.gguf, model-q8\.gguf"):
        kvgauge.load(tmp_path)


def test_a_folder_of_a_projector(tmp_path: Path):
    path = write(tmp_path / "mmproj.gguf", {"general.architecture": "clip"}, ())
    with pytest.raises(ModelNotFoundError, match="projector"):
        kvgauge.load(tmp_path)
    with pytest.raises(UnknownArchitectureError, match="projector"):
        kvgauge.load(path)


# -- split sets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_split_set_is_read_whole(tmp_path, capsys, number):
    paths = split_set(tmp_path)
    assert answer(capsys, str(paths[number]))["cache"]["total_bytes"] == BYTES
    model = kvgauge.load(paths[number])
    assert [t.name for t in model.raw.tensors] == [name for name, _ in TENSORS]
    assert kvgauge.load(tmp_path).architecture == model.architecture


def test_a_split_set_behind_links(tmp_path: Path):
    """As the hub's cache keeps it: names of links, contents elsewhere."""
    (tmp_path / "blobs").mkdir()
    for index, path in enumerate(split_set(tmp_path)):
        path.rename(tmp_path / "blobs" / str(index))
        path.symlink_to(tmp_path / "blobs" / str(index))
    assert len(kvgauge.load(tmp_path / "model-00001-of-00003.gguf").raw.tensors) == 3


def test_a_missing_file_of_a_set_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    first, second, _ = split_set(tmp_path)
    second.unlink()
    with pytest.raises(DamagedFileError, match=r"model-00002-of-00003\.gguf is missing"):
        kvgauge.load(first)
    assert run(capsys, "size", str(first))[0] == 1


def test_sets_that_contradict_themselves(tmp_path: Path):
    first, second, third = split_set(tmp_path)
    second.write_bytes(third.read_bytes())
    with pytest.raises(DamagedFileError, match="00002-of-00003"):
        kvgauge.load(first)
    second.write_bytes(first.read_bytes())
    with pytest.raises(DamagedFileError, match="00002-of-00003"):
        kvgauge.load(first)
    lone = tmp_path / "lone.gguf"
    first.rename(lone)
    with pytest.raises(DamagedFileError, match="one of 3"):
        kvgauge.load(lone)
    with pytest.raises(DamagedFileError, match="says 2"):
        kvgauge.load(write(tmp_path / "x-00001-of-00002.gguf"))


def test_a_tensor_in_two_files_of_a_set(tmp_path: Path):
    first, second, _ = split_set(tmp_path)
    own = {"split.no": 1, "split.count": 3}
    second.write_bytes(gguf(own, TENSORS[:1]))
    with pytest.raises(DamagedFileError, match="same tensor"):
        kvgauge.load(first)


@pytest.mark.parametrize(
    "values",
    [{"split.count": 1 << 31}, {"split.count": "../../etc"}, {"split.count": -1}, {"split.count": [3]}],
)
def test_split_counts_out_of_reason(tmp_path, values):
    with pytest.raises(DamagedFileError):
        kvgauge.load(write(tmp_path / "model.gguf", {**QWEN3, **values}))


@pytest.mark.parametrize("name", ["m-00000-of-00002.gguf", "m-00003-of-00002.gguf", "m-00001-of-99999.gguf"])
def test_split_names_out_of_reason(tmp_path, name):
    with pytest.raises(DamagedFileError):
        kvgauge.load(write(tmp_path / name))


@pytest.mark.parametrize(
    "name", ["../m-00001-of-00002.gguf", "a/b-00001-of-00002.gguf", "a\\b-00001-of-00002.gguf"]
)
def test_split_names_stay_in_their_folder(name):
    assert SplitName.parse(name) is None


def test_links_in_a_circle(tmp_path: Path):
    (tmp_path / "a.gguf").symlink_to(tmp_path / "b.gguf")
    (tmp_path / "b.gguf").symlink_to(tmp_path / "a.gguf")
    with pytest.raises((DamagedFileError, ModelNotFoundError)):
        kvgauge.load(tmp_path / "a.gguf")
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(DamagedFileError, match="not a regular file"):
        kvgauge.load(tmp_path / "pipe.gguf")


# -- Ollama ---------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ollama's folder of models, empty."""
    folder = tmp_path / "models"
    (folder / "blobs").mkdir(parents=True)
    monkeypatch.setenv("OLLAMA_MODELS", str(folder))
    return folder


def pull(store: Path, name: str = "registry.ollama.ai/library/tiny/latest", **layer: object) -> Path:
    """Put a model into the store as ``ollama pull`` does; return its blob."""
    data = gguf()
    digest = hashlib.sha256(data).hexdigest()
    blob = store / "blobs" / f"sha256-{digest}"
    blob.write_bytes(data)
    entry = {
        "mediaType": "application/vnd.ollama.image.model",
        "digest": f"sha256:{digest}",
        "size": len(data),
    }
    other = {"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:" + "0" * 64, "size": 1}
    manifest = store / "manifests" / name
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": [other, {**entry, **layer}]}))
    return blob


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ("tiny", "registry.ollama.ai/library/tiny/latest"),
        ("tiny:3b-q4_K_M", "registry.ollama.ai/library/tiny/3b-q4_K_M"),
        ("user/tiny:v1", "registry.ollama.ai/user/tiny/v1"),
        ("hf.co/org/tiny:Q4_K_M", "hf.co/org/tiny/Q4_K_M"),
    ],
)
def test_ollama_names(store, capsys, asked, kept):
    pull(store, kept)
    found = answer(capsys, asked)
    assert (found["model"]["id"], found["model"]["source"]) == (asked, "gguf")
    assert found["cache"]["total_bytes"] == BYTES


@pytest.mark.parametrize(
    "name",
    ["tiny:absent", "absent", "../tiny", "tiny:../../x", "library/../tiny:latest", "a/b/c/d:e", "tiny:latest:x",
     ".:..", "", ":", "/", "tiny:" + "x" * 5000, "tiny:\0", "org/tiny", "org/tiny:model.gguf"],
)  # fmt: skip
def test_names_that_ollama_does_not_have(store, name):
    pull(store)
    assert find_ollama(name) is None


@pytest.mark.parametrize(
    "layer",
    [{"digest": "sha256:../../../../etc/passwd"}, {"digest": "sha256:" + "A" * 64}, {"digest": "md5:" + "0" * 32},
     {"digest": None}, {"digest": "sha256:" + "0" * 64}, {"size": 7}, {"mediaType": "application/x"}],
)  # fmt: skip
def test_hostile_manifests(store, layer):
    pull(store, **layer)
    with pytest.raises(DamagedFileError, match="tiny"):
        kvgauge.load("tiny")


def test_damaged_manifests_and_blobs(store):
    blob = pull(store)
    manifest = store / "manifests/registry.ollama.ai/library/tiny/latest"
    good = manifest.read_text()
    for bad in ("", "{", "[]", "{}", '{"layers": 5}', '{"layers": []}', "[" * 100_000, "x" * (2 << 20)):
        manifest.write_text(bad)
        with pytest.raises(DamagedFileError):
            kvgauge.load("tiny")
    manifest.write_text(good)
    blob.write_bytes(b"GGUF" + bytes(blob.stat().st_size - 4))
    with pytest.raises(DamagedFileError, match="sha256-"):
        kvgauge.load("tiny")
    blob.unlink()
    with pytest.raises(DamagedFileError, match="lacks its blob"):
        kvgauge.load("tiny")


def test_the_catalogue_does_not_ask_ollama(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OLLAMA_MODELS", "/nonexistent")
    assert kvgauge.load("Qwen/Qwen3-8B").raw.source == "catalogue"
    monkeypatch.delenv("OLLAMA_MODELS")
    monkeypatch.setenv("HOME", "/nonexistent")
    assert find_ollama("tiny") is None


# -- metadata -------------------------------------------------------------------------------------


def without(*names: str) -> dict:
    return {key: value for key, value in QWEN3.items() if key.removeprefix("qwen3.") not in names}


def test_metadata_is_a_model():
    model = kvgauge.load(QWEN3)
    assert (model.raw.id, model.raw.source) == ("Tiny Qwen3", "gguf")
    assert kvgauge.size(QWEN3, context=100).cache.total_bytes == BYTES
    changed = kvgauge.load(model, overrides={"qwen3.block_count": 3})
    assert changed.architecture.num_layers == 3


@pytest.mark.parametrize(
    "name", ["block_count", "attention.head_count_kv", "attention.key_length", "attention.value_length"]
)
def test_a_missing_key_is_named(name):
    with pytest.raises(MissingFieldError) as caught:
        kvgauge.load(without(name))
    assert caught.value.field == f"qwen3.{name}"
    assert f"--override qwen3.{name}" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("block_count", 0), ("block_count", -1), ("block_count", 1 << 40), ("block_count", "two"),
        ("block_count", True), ("block_count", {"type": "number", "length": 9}), ("block_count", 2.5),
        ("attention.head_count_kv", [2]), ("attention.head_count_kv", 3), ("attention.head_count_kv", [2, "x"]),
        ("attention.head_count_kv", [2] * 20_000), ("attention.head_count_kv", 0), ("attention.key_length", 0),
        ("nextn_predict_layers", 2), ("attention.shared_kv_layers", 2), ("attention.shared_kv_layers", -1),
    ],
)  # fmt: skip
def test_an_impossible_value_is_named(name, value):
    with pytest.raises((InvalidFieldError, UnknownArchitectureError)) as caught:
        kvgauge.load({**QWEN3, f"qwen3.{name}": value})
    assert caught.value.field.startswith("qwen3.attention" if "head_count" in name else f"qwen3.{name}")


@pytest.mark.parametrize("value", [None, "", 7, ["qwen3"]])
def test_an_architecture_that_is_no_text(value):
    with pytest.raises(InvalidFieldError, match=r"general\.architecture"):
        kvgauge.load({**QWEN3, "general.architecture": value})


def test_weights_that_contradict_the_metadata(tmp_path: Path):
    with pytest.raises(InvalidFieldError, match=r"blk\.0\.attn_k\.weight"):
        kvgauge.load(write(tmp_path / "model.gguf", {**QWEN3, "qwen3.attention.head_count_kv": 1}))
    heads = {**QWEN3, "qwen3.attention.head_count_kv": [2, 1]}
    with pytest.raises(InvalidFieldError, match=r"blk\.1\.attn_k\.weight"):
        kvgauge.load(write(tmp_path / "model.gguf", heads))


#: Metadata that lost a key, and the key that is asked for.
LOST = [
    ({"general.architecture": "llama", "llama.block_count": 40, "llama.embedding_length": 5120,
      "llama.attention.head_count": 32, "llama.attention.head_count_kv": 8, "llama.rope.dimension_count": 128},
     "llama.attention.key_length"),
    ({"general.architecture": "qwen2", "qwen2.block_count": 2, "qwen2.embedding_length": 64,
      "qwen2.attention.head_count": 4, "qwen2.attention.head_count_kv": 2, "qwen2.attention.key_length": 32},
     "qwen2.attention.value_length"),
    ({"general.architecture": "deepseek2", "deepseek2.block_count": 27, "deepseek2.attention.head_count": 16,
      "deepseek2.attention.head_count_kv": 1, "deepseek2.attention.kv_lora_rank": 512,
      "deepseek2.attention.key_length": 576, "deepseek2.attention.value_length": 512},
     "deepseek2.attention.key_length_mla"),
    ({"general.architecture": "gemma3", "gemma3.block_count": 2, "gemma3.attention.head_count": 4,
      "gemma3.attention.head_count_kv": 2, "gemma3.attention.key_length": 32,
      "gemma3.attention.value_length": 32}, "gemma3.attention.sliding_window"),
    ({"general.architecture": "falcon", "falcon.block_count": 2, "falcon.attention.head_count_kv": 1,
      "falcon.attention.key_length": 32, "falcon.attention.value_length": 32}, "falcon.attention.head_count"),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "field"), LOST, ids=[field for _, field in LOST])
def test_a_lost_key_that_would_change_the_answer_is_missed(keys, field):
    with pytest.raises(MissingFieldError) as caught:
        kvgauge.load(keys)
    assert caught.value.field == field


def renamed(name: str, **more: object) -> dict:
    keys = {key.replace("qwen3.", f"{name}."): value for key, value in QWEN3.items()}
    return {
        **keys,
        "general.architecture": name,
        **{f"{name}.{k}".replace("__", "."): v for k, v in more.items()},
    }


def test_an_unknown_architecture_is_read_by_its_keys():
    result = kvgauge.size(renamed("newarch"), context=100)
    assert result.cache.total_bytes == BYTES
    assert "inferred" in [note.code for note in result.notes]
    sliding = renamed(
        "newarch", attention__sliding_window=10, attention__sliding_window_pattern=[True, False]
    )
    assert kvgauge.size(sliding, context=100).cache.total_bytes == BYTES * 110 // 200
    hybrid = renamed(
        "newarch", attention__head_count_kv=[0, 2], ssm__conv_kernel=4, ssm__inner_size=64, ssm__state_size=16,
        ssm__time_step_rank=4, ssm__group_count=1,
    )  # fmt: skip
    assert kvgauge.size(hybrid, context=100).cache.fixed_bytes_per_sequence == 64 * 16 * 4 + 3 * (64 + 32) * 2


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"attention__sliding_window": 10}, "newarch.attention.sliding_window_pattern"),
        ({"attention__indexer__key_length": 8}, "newarch.attention.indexer.key_length"),
        ({"ssm__inner_size": 8}, "newarch.attention.recurrent_layers"),
        ({"attention__key_length_mla": 8}, "newarch.attention.value_length_mla"),
    ],
)
def test_an_unknown_architecture_is_not_guessed(more, field):
    with pytest.raises((MissingFieldError, UnknownArchitectureError)) as caught:
        kvgauge.load(renamed("newarch", **more))
    assert caught.value.field == field


@pytest.mark.parametrize("name", ["eagle3", "dflash", "gemma4-assistant", "clip"])
def test_what_is_no_model_of_its_own_is_refused(name):
    with pytest.raises(UnknownArchitectureError) as caught:
        kvgauge.load(renamed(name))
    assert caught.value.hint
    with pytest.raises(UnknownArchitectureError, match="adapter"):
        kvgauge.load({**QWEN3, "general.type": "adapter"})


@pytest.mark.parametrize("name", ["bert", "modern-bert", "t5encoder", "llada"])
def test_encoders_keep_nothing(name):
    result = kvgauge.size(renamed(name))
    assert (result.cache.total_bytes, result.cache.family) == (0, "none")


def test_a_window_that_llama_cpp_does_not_use():
    codes = [n.code for n in kvgauge.size(renamed("qwen2", attention__sliding_window=64)).notes]
    assert "gguf_window_unused" in codes
    assert "gguf_defaults" in [n.code for n in kvgauge.size(renamed("gemma2")).notes]
