"""The shipped catalogue: every row reads, every name resolves, nothing personal is in it."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from importlib import resources
from pathlib import Path

import pytest

import kvgauge
from kvgauge.errors import ModelNotFoundError
from kvgauge.readers.hf import read_config
from kvgauge.sources import load_raw
from kvgauge.sources.catalogue import all_models, find_model, model_names, near_names, patched
from kvgauge.sources.compact import compact_names, expand_names

TOOLS = Path(__file__).parents[1] / "tools"
DATA = resources.files("kvgauge.data")


def _tool(name: str):
    """Import a script of tools/, which is no package."""
    sys.path.insert(0, str(TOOLS))
    try:
        spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(TOOLS))


@pytest.fixture(scope="module")
def reduction():
    return _tool("reduction")


@pytest.fixture(scope="module")
def catalogue(reduction):
    return _tool("catalogue")


def _texts(value: object):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value


def test_the_tool_finds_nothing_wrong(catalogue):
    assert catalogue.problems() == []


def test_every_name_resolves():
    for name in model_names():
        raw = find_model(name)
        assert raw is not None, name
        assert raw.id == name
        assert raw.config, name


def test_every_row_reads_without_being_inferred_by_surprise():
    inferred = set()
    for raw, _ in all_models():
        architecture = read_config(raw.config, raw.quantization)
        assert architecture.layers, raw.id
        if any(note.code == "inferred" for note in architecture.notes):
            inferred.add(raw.id)
    assert len(inferred) <= 3, inferred


def test_rows_and_aliases_add_up():
    rows = list(all_models())
    aliases = [alias for _, names in rows for alias in names]
    assert len(rows) >= 400
    assert len(aliases) >= 600
    assert sorted((*aliases, *(raw.id for raw, _ in rows)), key=str.lower) == list(model_names())


def test_offsets_cover_the_file_without_a_gap():
    names = json.loads(DATA.joinpath("names.json").read_text("utf-8"))
    data = DATA.joinpath("models.jsonl").read_bytes()
    end = 0
    for name, (start, length) in names["models"].items():
        assert start == end
        assert json.loads(data[start : start + length])["id"] == name
        end = start + length
    assert end == len(data)


def test_no_row_holds_a_path_an_address_or_a_token_id():
    for raw, _ in all_models():
        for text in _texts(dict(raw.config)):
            assert not re.search(r"://|^[/~]|@|:\\|_name_or_path|token_id", text), (raw.id, text)
            assert len(text) <= 512, raw.id


def test_a_shipped_row_says_where_it_comes_from():
    for raw, _ in all_models():
        source, _, date = raw.provenance.rpartition(", ")
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", date), raw.id
        assert 3 <= len(source) <= 160, raw.id
        assert "/home" not in source, raw.id


def test_the_article_names_are_there():
    for name in (
        "Qwen/Qwen3-8B",
        "Qwen/Qwen3-30B-A3B",
        "Qwen/Qwen3-0.6B",
        "Qwen/Qwen3.5-9B",
        "Qwen/Qwen3.5-35B-A3B",
        "zai-org/GLM-4.7-Flash",
        "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
        "deepseek-ai/DeepSeek-V4-Flash",
        "google/gemma-3n-E4B-it",
        "huggyllama/llama-7b",
        "meta-llama/Meta-Llama-3-8B",
        "tiiuae/falcon-7b",
    ):
        assert find_model(name) is not None, name


def test_figures_of_the_catalogue():
    def gib(name: str, **load: object) -> float:
        return kvgauge.size(name, context=32768, kv_dtype="bf16", **load).cache.total_bytes / 2**30

    assert gib("Qwen/Qwen3-8B") == 4.5
    assert gib("Qwen/Qwen3-30B-A3B") == 3.0
    assert gib("tiiuae/falcon-7b") == 32768 * 32 * 2 * 64 * 2 / 2**30  # one KV head
    assert gib("Qwen/Qwen3-8B-AWQ") == gib("Qwen/Qwen3-8B-FP8") == 4.5


def test_any_case_and_urls():
    for text in (
        "qwen/QWEN3-8b",
        " Qwen/Qwen3-8B ",
        "Qwen/Qwen3-8B@main",
        "https://huggingface.co/Qwen/Qwen3-8B",
        "https://huggingface.co/Qwen/Qwen3-8B/",
        "https://huggingface.co/Qwen/Qwen3-8B/blob/main/config.json",
        "https://huggingface.co/Qwen/Qwen3-8B/tree/main?show=all",
        "huggingface.co/Qwen/Qwen3-8B",
        "hf.co/Qwen/Qwen3-8B",
        "https://modelscope.cn/models/Qwen/Qwen3-8B",
    ):
        raw = load_raw(text)
        assert (raw.id, raw.source) == ("Qwen/Qwen3-8B", "catalogue")


@pytest.mark.parametrize(
    "text",
    [
        "Qwen/Qwen3-8B@v1.0",
        "https://huggingface.co/Qwen/Qwen3-8B/tree/refs-pr-1",
        "Qwen/Qwen3-8B:Qwen3-8B-Q4_K_M.gguf",
    ],
)
def test_what_only_the_hub_has_is_not_served_from_the_catalogue(text: str):
    with pytest.raises(ModelNotFoundError, match="hub") as caught:
        load_raw(text)
    assert "leave it out" in caught.value.hint
    assert caught.value.exit_code == 4


def test_the_revision_argument_counts_too():
    with pytest.raises(ModelNotFoundError):
        load_raw("Qwen/Qwen3-8B", revision="abc123")
    assert load_raw("Qwen/Qwen3-8B", revision="main").source == "catalogue"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("Qwen/Qwen3-8C", "Qwen/Qwen3-8B"),
        ("Qwen/Qwen3-9B", "Qwen/Qwen3-8B"),
        ("Qwen/Qwen38B", "Qwen/Qwen3-8B"),
        ("Qwen3-8B", "Qwen/Qwen3-8B"),
        ("Qwen/qwen3_8b", "Qwen/Qwen3-8B"),
        ("someone/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("qwen3-8", "Qwen/Qwen3-8B"),
        ("meta-llama/Lama-3.1-8B", "meta-llama/Llama-3.1-8B"),
    ],
)
def test_did_you_mean(typed: str, meant: str):
    assert meant in near_names(typed)
    with pytest.raises(ModelNotFoundError, match="not in the shipped catalogue") as caught:
        load_raw(typed)
    assert meant in caught.value.hint


def test_nothing_is_suggested_for_something_else():
    assert near_names("zzz/unheard-of-model") == []
    with pytest.raises(ModelNotFoundError) as caught:
        load_raw("zzz/unheard-of-model")
    assert "config.json" in caught.value.hint
    assert "did you mean" not in caught.value.hint


def test_a_patch_changes_and_removes_fields():
    row = {"config": {"a": 1, "quantization_config": {"quant_method": "fp8"}}, "quantization": {"x": 1}}
    config, quantization = patched(row, {"quantization_config": None, "b": 2, "hf_quant_config": None})
    assert (config, quantization) == ({"a": 1, "b": 2}, None)
    assert patched(row, {}) == (row["config"], row["quantization"])


def test_aliases_keep_the_prescription_of_their_own_build():
    """A plain build found through a quantised row must not inherit its KV format."""
    assert kvgauge.load("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8").architecture.prescribed_kv_dtype
    plain = kvgauge.load("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16").architecture
    assert plain.prescribed_kv_dtype is None


def test_compact_names_survive():
    names = [f"model.layers.{i}.mlp.experts.{e}.w{k}" for i in range(3, 9) for e in range(4) for k in (1, 2)]
    names += ["lm_head", "model.layers.61.*", "re:.*gate$", "a.007.b", "model.layers.5.attn"]
    compact = compact_names(names)
    assert len(compact) <= 7
    assert sorted(expand_names(compact)) == sorted(names)
    assert compact_names(expand_names(compact)) == compact


FULL = {
    "_name_or_path": "/home/someone/models/x",
    "architectures": ["Qwen3ForCausalLM"],
    "auto_map": {"AutoConfig": "configuration_x.X"},
    "bos_token_id": 1,
    "bad_words_ids": None,
    "model_type": "qwen3",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "initializer_range": 0.02,
    "tie_word_embeddings": True,
    "time_step_limit": [0.0, float("inf")],
    "quantization_config": {
        "quant_method": "fp8",
        "dataset": "somewhere/set",
        "modules_to_not_convert": [f"model.layers.{i}.mlp.gate" for i in range(2)],
    },
}


def test_reduction_keeps_facts_and_drops_the_rest(reduction):
    reduced = reduction.reduce_config(FULL)
    assert set(reduced) == set(FULL) - {
        "_name_or_path", "auto_map", "bos_token_id", "bad_words_ids", "time_step_limit"
    }  # fmt: skip
    assert reduced["quantization_config"]["modules_to_not_convert"] == ["model.layers.{0-1}.mlp.gate"]
    assert "dataset" not in reduced["quantization_config"]
    assert reduction.reduce_config(reduced) == reduced


def test_add_alias_and_check_in_a_copy(catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("models.jsonl", "names.json", "quantised.jsonl"):
        (tmp_path / name).write_bytes(b"{}" if name == "names.json" else b"")
    aliases = tmp_path / "aliases.tsv"
    aliases.write_text("# names\n")
    config = tmp_path / "config.json"
    config.write_text(json.dumps(FULL))
    (tmp_path / "hf_quant_config.json").write_text('{"quantization": {"kv_cache_quant_algo": "FP8"}}')
    monkeypatch.setattr(catalogue, "DATA", tmp_path)
    monkeypatch.setattr(catalogue, "ALIASES", aliases)

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["catalogue.py", *arguments])
        return catalogue.main()

    assert run("add", str(config), "--id", "org/name", "--source", "its authors", "--date", "2026-01-02") == 0
    assert run("alias", "org/name-BF16", "org/name", "--patch", '{"hf_quant_config": null}') == 0
    assert run("check") == 0
    assert run("add", str(config), "--id", "no-organisation") == 1
    assert run("alias", "org/other", "org/missing") == 1
    assert run("check") == 0  # a refused alias leaves no trace
    aliases.write_text("# names\n")
    assert run("check") == 1
    assert run("names") == 0
    assert run("check") == 0
    assert run("remove", "org/name") == 0
    assert run("remove", "org/name") == 1
