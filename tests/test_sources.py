"""Where configs come from: hostile files are refused in bounded time, published ones are accounted for."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvgauge.errors import (
    DamagedFileError,
    InvalidRequestError,
    KvgaugeError,
    ModelNotFoundError,
)
from kvgauge.readers.hf import read_config
from kvgauge.sources import RawModel, apply_overrides, load_raw
from kvgauge.sources.json_text import MAX_CONFIG_BYTES, MAX_DEPTH, parse_object
from kvgauge.sources.names import HubName
from support import ROOT, config_of

CONFIG = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
TEXT = json.dumps(CONFIG)
NAME = "config.json"


def _write(folder: Path, data: bytes, name: str = NAME) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


# -- what is read -----------------------------------------------------------------------------------


@pytest.mark.parametrize("as_text", [True, False])
def test_a_file_and_its_folder(tmp_path: Path, as_text: bool):
    path = _write(tmp_path, TEXT.encode())
    for place in (path, tmp_path):
        raw = load_raw(str(place) if as_text else place)
        assert raw == RawModel(str(place), "file", CONFIG)


def test_the_quantisation_file_beside_it(tmp_path: Path):
    _write(tmp_path, TEXT.encode())
    _write(tmp_path, b'{"quantization": {"kv_cache_quant_algo": "FP8"}}', "hf_quant_config.json")
    raw = load_raw(tmp_path)
    assert read_config(raw.config, raw.quantization).prescribed_kv_dtype == "fp8_e4m3"


def test_links_are_followed_where_the_link_stands(tmp_path: Path):
    """The hub's cache links each file of a snapshot to a blob: what lies beside the link counts."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    blobs.mkdir()
    snapshot.mkdir()
    (snapshot / NAME).symlink_to(_write(blobs, TEXT.encode(), "0a1b"))
    (snapshot / "hf_quant_config.json").symlink_to(_write(blobs, b'{"quantization": {}}', "2c3d"))
    assert load_raw(snapshot).quantization == {"quantization": {}}
    link = tmp_path / "link"
    link.symlink_to(snapshot)
    assert load_raw(link).config == CONFIG


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + TEXT.encode(),
        b"\r\n\t " + TEXT.encode() + b"\n\n",
        TEXT.replace(", ", ",\r\n").encode(),
        (TEXT[:-1] + ', "time_step_limit": [0.0, Infinity], "x": NaN, "y": -Infinity}').encode(),
        (TEXT[:-1] + ', "big": 1e999, "long": ' + "9" * 4000 + "}").encode(),
        (TEXT[:-1] + ', "deep": ' + "[" * 60 + "]" * 60 + "}").encode(),
        (TEXT[:-1] + ', "text": "[[[[{{{{\\"]]"}').encode(),
        (TEXT[:-1] + ', "text": "\\ud83d\\ude00 \\\\"}').encode(),
    ],
)
def test_unusual_but_sound(tmp_path: Path, data: bytes):
    raw = load_raw(_write(tmp_path, data))
    assert read_config(raw.config).num_layers == 2


def test_standard_input(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert load_raw("-") == RawModel("-", "stdin", CONFIG)
    for stdin in (None, io.TextIOWrapper(io.BytesIO(b""))):
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(DamagedFileError, match="standard input"):
            load_raw("-")


def test_a_dict_is_a_config():
    assert load_raw(CONFIG) == RawModel("config", "dict", CONFIG)
    metadata = {"general.architecture": "llama"}
    assert load_raw(metadata) == RawModel("metadata", "gguf", metadata)


def test_a_file_goes_before_a_name_of_the_catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "Qwen" / "Qwen3-8B"
    folder.mkdir(parents=True)
    _write(folder, TEXT.encode())
    assert load_raw("Qwen/Qwen3-8B").source == "file"


# -- what is refused --------------------------------------------------------------------------------

HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\t", "is empty"),
    "list": (b"[1, 2]", "a list, not an object"),
    "text": (b'"config"', "a text, not an object"),
    "number": (b"12", "a number, not an object"),
    "null": (b"null", "null, not an object"),
    "truth": (b"true", "a truth value, not an object"),
    "cut": (TEXT.encode()[:-5], "is not JSON"),
    "trailing": (TEXT.encode() + b"}", "is not JSON"),
    "comma": (b'{"a": 1,}', "is not JSON"),
    "python": (b"{'a': 1}", "is not JSON"),
    "html": (b"<!doctype html><html></html>", "is not JSON"),
    "bytes": (bytes(range(256)), "UTF-8"),
    "utf-16": (TEXT.encode("utf-16"), "UTF-8"),
    "latin-1": ('{"name": "é"}'.encode("latin-1"), "UTF-8"),
    "cut character": (b'{"a": "\xf0\x9f"}', "UTF-8"),
    "twice": (b'{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' twice"),
    "half a character": (b'{"model_type": "\\ud800"}', "surrogate"),
    "half a character in a list": (b'{"x": [["\\udfff"]]}', "surrogate"),
    "half a character as a key": (b'{"\\ud800": 1}', "surrogate"),
    "long integer": (b'{"a": ' + b"9" * 5000 + b"}", "too many digits"),
    "deep list": (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nests deeper"),
    "deep object": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nests deeper"),
    "deep and open": (b"[" * 100_000, "nests deeper"),
    "too large": (b'{"a": "' + b"x" * MAX_CONFIG_BYTES + b'"}', "larger than"),
    "control character": (b'{"a": "\n"}', "is not JSON"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(tmp_path: Path, name: str):
    data, said = HOSTILE[name]
    with pytest.raises(DamagedFileError, match=said) as caught:
        load_raw(_write(tmp_path, data))
    assert caught.value.hint
    assert len(caught.value.message) < 400 + len(str(tmp_path))


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": "' + b'\\"' * 4_000_000,  # an escaped quote at every second byte, and no end
        b'"' * 8_000_001,
        b"\\" * 8_000_000,
        b'{"a": [' + b"{}," * 2_000_000 + b"{}]}",
        b'{"a": "' + b"\\\\" * 4_000_000 + b'"}',
    ],
)
def test_large_files_take_seconds_at_most(data: bytes):
    start = time.process_time()
    with contextlib.suppress(DamagedFileError):
        parse_object(data, NAME)
    assert time.process_time() - start < 10


def test_a_side_file_is_checked_too(tmp_path: Path):
    _write(tmp_path, TEXT.encode())
    _write(tmp_path, b"{", "hf_quant_config.json")
    with pytest.raises(DamagedFileError, match="hf_quant_config"):
        load_raw(tmp_path)


@pytest.mark.parametrize(
    "name", ["missing.json", "missing/config.json", "./missing", "/missing/model", "~/missing.json"]
)
def test_missing_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ModelNotFoundError, match="there is no file") as caught:
        load_raw(name)
    assert caught.value.hint


def test_folders_without_a_config(tmp_path: Path):
    with pytest.raises(ModelNotFoundError, match="holds no config"):
        load_raw(tmp_path)
    (tmp_path / NAME).mkdir()
    with pytest.raises(DamagedFileError, match="not a regular file"):
        load_raw(tmp_path)


def test_pipes_and_broken_links(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(DamagedFileError, match="not a regular file"):
        load_raw(tmp_path / "pipe.json")
    (tmp_path / "broken.json").symlink_to(tmp_path / "gone")
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    for name in ("broken.json", "loop.json"):
        with pytest.raises(KvgaugeError) as caught:
            load_raw(tmp_path / name)
        assert caught.value.hint


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read everything"
)
def test_permissions(tmp_path: Path):
    path = _write(tmp_path, TEXT.encode())
    path.chmod(0)
    with pytest.raises(DamagedFileError, match="permission denied"):
        load_raw(path)


def test_a_read_error_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = _write(tmp_path, TEXT.encode())
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DamagedFileError, match="permission denied") as caught:
        load_raw(path)
    assert "permissions" in caught.value.hint


@pytest.mark.parametrize("model", ["", "  ", None, 3, b"x", []])
def test_nothing_named(model: object):
    with pytest.raises(InvalidRequestError):
        load_raw(model)


@given(st.text(max_size=60))
def test_any_text_is_found_or_refused(text: str):
    if text == "-":
        return
    try:
        raw = load_raw(text)
    except KvgaugeError as error:
        assert error.message
        assert error.hint
    else:
        assert raw.source in ("catalogue", "file")


@pytest.mark.parametrize(
    "name", ["a" * 5000, "a/" * 3000, "org/" + "x" * 300 + "@y", "a\0b", "\ud800/x", "https://x", "@", ":"]
)
def test_absurd_names(name: str):
    with pytest.raises(KvgaugeError) as caught:
        load_raw(name)
    assert len(caught.value.message) < 400


def test_names_taken_apart():
    assert HubName.parse("org/name@rev:file.gguf".replace("@rev", "")) == HubName(
        "org/name", None, "file.gguf"
    )
    assert HubName.parse("org/name@rev") == HubName("org/name", "rev")
    assert HubName.parse("org/name", "rev") == HubName("org/name", "rev")
    assert HubName.parse("https://hf.co/org/name/resolve/abc/config.json") == HubName("org/name", "abc")
    assert HubName.parse("https://hf.co/org/name/blob/main/q/x.gguf") == HubName("org/name", None, "q/x.gguf")
    assert HubName.parse("hf.co/org/name/tree/refs%2Fpr%2F1").revision == "refs/pr/1"
    assert HubName.parse("ms:org/name@v1:x.gguf") == HubName("org/name", "v1", "x.gguf", "ms", False)
    assert HubName.parse("https://modelscope.cn/models/org/name") == HubName("org/name", site="ms")
    assert HubName.parse("https://elsewhere.example/org/name").id == "https://elsewhere.example/org/name"


@pytest.mark.parametrize(
    "name",
    [
        "a/../b", "../a/b@c", "a/b@../../c", "a/b@/c", "a/b@c/", "a/b@-x", "a/b:../x.gguf", "a/b:/x.gguf", "a--b/c",
        "a/b:x/../y.gguf", "a/b:x.bin", "a/b:c:d.gguf", "a", "a/b/c", "a b/c", "a/b@x y", "https://evil.example/a/b",
        "http://huggingface.co.evil.example/a/b", "https://huggingface.co@evil.example/a/b", "ms:a", "ms:", "a/b@x\\y",
    ],
)  # fmt: skip
def test_names_that_no_hub_can_have_are_refused_before_anybody_is_asked(name: str, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr("kvgauge.sources.remote.cached_config", fail)
    monkeypatch.setattr("kvgauge.sources.remote.keeps_offline", fail)
    with pytest.raises(ModelNotFoundError) as caught:
        load_raw(name)
    assert caught.value.code == "model_not_found"
    assert caught.value.hint


# -- parsing never fails otherwise ------------------------------------------------------------------


@given(st.binary(max_size=2000))
def test_arbitrary_bytes(data: bytes):
    try:
        assert isinstance(parse_object(data, NAME), dict)
    except KvgaugeError as error:
        assert error.message
        assert error.hint


_FRAGMENTS = st.sampled_from(
    [
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b"\\",
        b":",
        b",",
        b'"a"',
        b"1",
        b"-",
        b"1e5",
        b"NaN",
        b"null",
        b" ",
        b"\\u",
        b"d800",
        b"\xff",
    ]
)


@given(st.lists(_FRAGMENTS, max_size=300).map(b"".join))
def test_arbitrary_json_fragments(data: bytes):
    try:
        assert isinstance(parse_object(data, NAME), dict)
    except DamagedFileError as error:
        assert error.hint


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
            ),
            max_leaves=20,
        ),
        max_size=6,
    )
)
def test_what_json_can_hold_comes_back(value: dict[str, object]):
    for ascii_only in (True, False):
        data = json.dumps(value, ensure_ascii=ascii_only).encode(errors="surrogatepass")
        try:
            parsed = parse_object(data, NAME)
        except DamagedFileError:
            assert any(0xD800 <= ord(c) <= 0xDFFF for c in json.dumps(value, ensure_ascii=False))
        else:
            assert _same(parsed, value)


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH])
def test_the_depth_limit_is_exact(depth: int):
    data = b'{"a": ' + b"[" * depth + b"]" * depth + b"}"
    if depth < MAX_DEPTH:
        parse_object(data, NAME)
    else:
        with pytest.raises(DamagedFileError, match="nests deeper"):
            parse_object(data, NAME)


# -- overrides --------------------------------------------------------------------------------------


def test_overrides_reach_nested_fields_and_leave_the_source_alone():
    config = {"text_config": {"num_hidden_layers": 2}, "x": None}
    raw = RawModel("m", "dict", config)
    changed = apply_overrides(raw, {"text_config.num_hidden_layers": 3, "x.y": 1, "new.deep.key": [1]})
    assert changed.config == {
        "text_config": {"num_hidden_layers": 3},
        "x": {"y": 1},
        "new": {"deep": {"key": [1]}},
    }
    assert config == {"text_config": {"num_hidden_layers": 2}, "x": None}
    assert changed.overrides == {"text_config.num_hidden_layers": 3, "x.y": 1, "new.deep.key": [1]}


@pytest.mark.parametrize("key", ["", ".", "a.", ".a", "a..b", ".".join("a" * 40), "number.x"])
def test_impossible_overrides(key: str):
    with pytest.raises(InvalidRequestError):
        apply_overrides(RawModel("m", "dict", {"number": 3}), {key: 1})


# -- every published file ---------------------------------------------------------------------------


def _refused_table() -> dict[str, str]:
    lines = (ROOT / "docs/refused_configs.md").read_text(encoding="utf-8").splitlines()
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")
    ]
    return {row[0].strip("`"): row[1].strip("`") for row in cells}


def test_every_published_config_is_read_or_refused_as_the_table_says(shared: Path):
    refused: dict[str, str] = {}
    for folder in ("real", "logs"):
        for path in sorted((shared / "data/configs" / folder).glob("*.json")):
            if path.name.endswith(".hf_quant_config.json"):
                parse_object(path.read_bytes(), path.name)
                continue
            try:
                raw = load_raw(path)
                architecture = read_config(raw.config, raw.quantization)
            except KvgaugeError as error:
                assert error.message
                assert error.hint, (path.name, error.message)
                refused[path.stem.replace("--", "/", 1)] = error.code
            else:
                assert architecture.layers, path.name
    assert refused == _refused_table()


def test_a_config_by_name_has_its_quantisation_by_name(tmp_path):
    """A folder that keeps many configs: ``org--name.json`` and ``org--name.hf_quant_config.json``."""
    config = config_of("Qwen/Qwen3-8B")
    (tmp_path / "a--b.json").write_text(json.dumps(config), encoding="utf-8")
    side = {
        "producer": {"name": "modelopt"},
        "quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]},
    }
    (tmp_path / "a--b.hf_quant_config.json").write_text(json.dumps(side), encoding="utf-8")
    assert load_raw(tmp_path / "a--b.json").quantization == side
    (tmp_path / "other.json").write_text(json.dumps(config), encoding="utf-8")
    assert load_raw(tmp_path / "other.json").quantization is None
