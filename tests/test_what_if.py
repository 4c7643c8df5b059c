"""A quantisation that the checkpoint does not have: its bytes by hand, what it keeps, who can make it."""

from __future__ import annotations

import json
import re
import shlex
from functools import lru_cache

import gguf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError, KvgaugeError
from kvgauge.module_patterns import Module, ModulePattern, cover
from kvgauge.quantiser_commands import kept_and_quantised, modules_of, quantiser_commands
from kvgauge.readers.hf.weights import read_weights
from kvgauge.render.messages.errors_zh import chinese
from kvgauge.stored_weights import StoredFamily, StoredWeights
from kvgauge.texts import LANGUAGES, Words
from kvgauge.weight_formats import WeightFormat, plain
from kvgauge.weight_schemes import default_keep, parse_scheme, scheme_table, scheme_words
from kvgauge.weights import ModelWeights, Part, TensorFamily
from kvgauge.what_if import is_linear, reweigh, sensitivity, with_kept
from support import config_of, golden_lines

MODELS = (
    "Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B", "Qwen/Qwen3.5-35B-A3B", "openai/gpt-oss-120b",
    "deepseek-ai/DeepSeek-V3.2", "ai21labs/Jamba-v0.1", "google/gemma-3-27b-it", "LiquidAI/LFM2-1.2B",
)  # fmt: skip
EVERY = tuple(record["id"] for record in golden_lines("parameters_transformers_5.24.0.jsonl"))
MATRIX = (12288, 4096)
VALUES = 12288 * 4096


@lru_cache
def weights_of(model: str) -> ModelWeights:
    weights = read_weights(config_of(model))
    assert weights is not None, model
    return weights


def bytes_of(model: str, word: str, dtype: str = "bf16") -> int:
    return reweigh(weights_of(model), parse_scheme(word), dtype).num_bytes


def advice_of(model: str, word: str) -> dict[Part, object]:
    return {row.part: row for row in sensitivity(weights_of(model), parse_scheme(word), "bf16")}


# bytes


@pytest.mark.parametrize(
    ("word", "size"),
    [
        # values, then scales, zero points and what a tensor has once; 4096 / 128 = 32 groups a row
        ("int4", VALUES // 2 + 12288 * 32 * 2),
        ("int4,group=64", VALUES // 2 + 12288 * 64 * 2),
        ("int4,group=channel", VALUES // 2 + 12288 * 2),
        ("int4,sym=false", VALUES // 2 + 12288 * 32 * 2 + 12288 * 32 // 2),
        ("int4,scales=fp32", VALUES // 2 + 12288 * 32 * 4),
        ("int4,bits=3", 12288 * (4096 * 3 // 32) * 4 + 12288 * 32 * 2),
        ("w4a16", VALUES // 2 + 12288 * 32 * 2 + 16),  # weight_shape: two int64
        ("w8a16", VALUES + 12288 * 32 * 2 + 16),
        ("gptq", VALUES // 2 + 12288 * 32 * 2 + 12288 * 32 // 2 + 4096 * 4),  # g_idx: int32 an input
        ("awq", VALUES // 2 + 12288 * 32 * 2 + 12288 * 32 // 2),
        ("hqq", VALUES // 2 + 2 * VALUES // 64 * 2),  # scale and zero of 64 values, 16 bit each
        ("int8", VALUES + 12288 * 2),
        ("fp8", VALUES + 12288 * 2),
        ("fp8,scales=fp32", VALUES + 12288 * 4),
        ("fp8_block", VALUES + 96 * 32 * 4),
        ("nvfp4", VALUES // 2 + VALUES // 16 + 8),  # two fp32 numbers a tensor
        ("nvfp4a16", VALUES // 2 + VALUES // 16 + 4),
        ("mxfp4", VALUES // 2 + VALUES // 32),
        ("mxfp8", VALUES + VALUES // 32),
        # absmax in 8 bit for 64 values, an fp32 for 256 of them, tables of 16 and 256 fp32
        ("nf4", VALUES // 2 + VALUES // 64 + VALUES // 64 // 256 * 4 + 16 * 4 + 256 * 4),
        ("nf4,double=false", VALUES // 2 + VALUES // 64 * 4 + 16 * 4),
        ("bnb_int8", VALUES + 12288 * 4 + 1),
        ("fp16", VALUES * 2),
        ("fp32", VALUES * 4),
    ],
)
def test_one_matrix_by_hand(word, size):
    family = TensorFamily("model.layers.{layer}.mlp.up_proj.weight", MATRIX, Part.MLP, layers=(0,))
    assert reweigh(ModelWeights((family,)), parse_scheme(word), "bf16").num_bytes == size


def test_qwen3_8b_in_int4_is_6_1_gb():
    # Linear: 36 x (2 x 4096^2 + 2 x 1024 x 4096 + 3 x 12288 x 4096); the rest, embedding and head most of it
    linear = 36 * (2 * 4096**2 + 2 * 1024 * 4096 + 3 * VALUES)
    rest = 8_190_735_360 - linear
    total = bytes_of("Qwen/Qwen3-8B", "int4")
    assert total == linear // 2 + linear // 128 * 2 + rest * 2 == 6_071_347_200
    assert round(total / 1e9, 1) == 6.1


def test_a_mixture_in_int4():
    # Qwen3-30B-A3B: attention 48 x (2 x 4096 x 2048 + 2 x 512 x 2048), experts 48 x 128 x 3 x 768 x 2048
    linear = 48 * (2 * 4096 * 2048 + 2 * 512 * 2048) + 48 * 128 * 3 * 768 * 2048
    total = bytes_of("Qwen/Qwen3-30B-A3B", "int4")
    assert total == linear * 33 // 64 + (30_532_122_624 - linear) * 2 == 16_685_887_488


def test_gpt_oss_in_mxfp4_is_its_own_checkpoint():
    # Its config leaves attention, router, embedding and head alone: 65,248,815,744 bytes on the hub.
    word = "mxfp4,keep=default+attention"
    stored = reweigh(weights_of("openai/gpt-oss-120b"), parse_scheme(word), "bf16")
    experts = [s for s in stored.families if s.family.part is Part.EXPERTS and len(s.family.shape) == 2]
    blocks, scales = 36 * 128 * 3 * 2880 * 90 * 16, 36 * 128 * 3 * 2880 * 90
    assert sum(s.num_bytes for s in experts) == blocks + scales
    assert stored.num_bytes == 65_248_815_744


def test_linear_attention_and_shared_experts_are_kept():
    rows = advice_of("Qwen/Qwen3.5-35B-A3B", "int4")
    kept = {part for part, row in rows.items() if row.is_kept}
    assert kept == set(rows) - {Part.ATTENTION, Part.EXPERTS}
    linear = rows[Part.LINEAR_ATTENTION]
    # in_proj_qkv, z, b, a and out_proj of 30 layers: 2 bytes a value against 33 / 64
    values = 30 * 2048 * (8192 + 4096 + 32 + 32 + 4096)
    assert linear.keeping_costs_bytes == values * 2 - values * 33 // 64
    assert linear.bytes_now == linear.num_bytes == linear.kept_bytes


def test_advice_has_a_source_and_words_in_both_languages():
    assert {Part(row["part"]) for row in scheme_table()["parts"]} == set(Part)
    assert {row["source"] for row in scheme_table()["parts"]} == set(scheme_table()["sources"])
    for lang in LANGUAGES:
        words = Words(lang)
        for part in Part:
            assert words.title("weights_advice", part.value)
            assert words.text("weights_advice", part.value)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("word", ["int4", "gptq,keep=none", "fp8", "nf4,keep=default-vision"])
def test_rows_add_up(model, word):
    scheme = parse_scheme(word)
    stored = reweigh(weights_of(model), scheme, "bf16")
    rows = sensitivity(weights_of(model), scheme, "bf16")
    assert sum(row.num_bytes for row in rows) == stored.num_bytes + stored.mtp_bytes
    weights = weights_of(model)
    total = weights.num_parameters + weights.num_mtp_parameters
    assert sum(row.num_parameters for row in rows) == total
    assert sum(row.bytes_now for row in rows) == total * 2
    for row in rows:
        assert row.quantised_bytes <= row.num_bytes <= row.kept_bytes
        assert row.num_bytes == (row.kept_bytes if row.is_kept else row.quantised_bytes)


@given(
    st.sampled_from(MODELS),
    st.sampled_from([word for word in scheme_table()["schemes"] if word not in ("bf16", "fp16", "fp32")]),
    st.sets(st.sampled_from(list(Part))),
    st.sampled_from(list(Part)),
)
@settings(deadline=None, max_examples=60)
def test_keeping_more_never_shrinks(model, word, kept, more):
    few = "+".join(["none", *(part.value for part in kept)])
    assert bytes_of(model, f"{word},keep={few}") <= bytes_of(model, f"{word},keep={few}+{more.value}")


@pytest.mark.parametrize("word", ["int4", "w4a16", "gptq", "nvfp4", "fp8_block", "nf4"])
@pytest.mark.parametrize("model", EVERY)
def test_every_model_has_an_answer(model, word):
    stored = reweigh(weights_of(model), parse_scheme(word), "bf16")
    weights = weights_of(model)
    assert 0 < stored.num_bytes <= weights.num_parameters * 2
    assert sum(s.family.num_parameters for s in stored.families) == weights.num_parameters


def test_plain_dtypes_hold_everything():
    weights = weights_of("Qwen/Qwen3-8B")
    assert bytes_of("Qwen/Qwen3-8B", "bf16") == weights.num_parameters * 2
    assert bytes_of("Qwen/Qwen3-8B", "fp32") == weights.num_parameters * 4
    assert sensitivity(weights, parse_scheme("bf16"), "bf16") == ()
    assert quantiser_commands("Qwen/Qwen3-8B", weights, parse_scheme("fp16")) == ()


def test_kept_means_16_bit_whatever_the_model_is_stored_in():
    assert bytes_of("Qwen/Qwen3-8B", "int4", "f32") == bytes_of("Qwen/Qwen3-8B", "int4", "bf16")
    row = sensitivity(weights_of("Qwen/Qwen3-8B"), parse_scheme("int4"), "f32")[0]
    assert row.bytes_now == 2 * row.kept_bytes


def test_small_and_odd_matrices_stay():
    """A gate of one output is no block of a packer; auto-round leaves it alone too."""
    weights = weights_of("Qwen/Qwen3.5-35B-A3B")
    stored = reweigh(weights, parse_scheme("int4,keep=none"), "bf16")
    gate = next(s for s in stored.families if s.family.name.endswith("shared_expert_gate.weight"))
    assert gate.format == plain("bf16")


def test_notes():
    def codes(word: str, model: str = "Qwen/Qwen3-8B") -> list[str]:
        return [note.code for note in reweigh(weights_of(model), parse_scheme(word), "bf16").notes]

    assert codes("int4") == ["weights_what_if", "reasoning_4bit"]
    assert codes("fp8") == codes("bf16") == ["weights_what_if"]
    assert codes("int4", "openai/gpt-oss-120b")[1] == "weights_group_ragged"  # 2880 = 22.5 x 128
    assert codes("mxfp4", "openai/gpt-oss-120b") == ["weights_what_if", "reasoning_4bit"]


# words


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("INT4", "int4"),
        ("fp8-dynamic", "fp8"),
        ("half", "fp16"),
        ("bnb-4bit", "nf4"),
        ("Q4_K", "q4_k_m"),
        ("w8a8", "int8"),
    ],
)
def test_other_spellings(word, name):
    assert parse_scheme(word).word == name


def test_what_is_kept_can_be_said():
    default = default_keep()
    assert parse_scheme("int4").keep == parse_scheme("int4,keep=default").keep == default
    assert parse_scheme("int4,keep=none").keep == frozenset()
    assert parse_scheme("int4,keep=embeddings+head").keep == {Part.EMBEDDING, Part.LM_HEAD}
    assert parse_scheme("int4,keep=default+mlp-shared").keep == (default | {Part.MLP}) - {Part.SHARED_EXPERTS}
    assert parse_scheme("int4, group = 64 , sym=off").text == "int4,group=64,sym=off"
    assert default == set(Part) - {Part.ATTENTION, Part.MLP, Part.EXPERTS}


@pytest.mark.parametrize(
    ("word", "message", "hint"),
    [
        ("intt4", "'intt4' is no quantisation", "did you mean int4?"),
        ("", "'' is no quantisation", "one of: bf16"),
        ("q4_k_x", "'q4_k_x' is no quantisation", "did you mean q4_k"),
        ("UD-Q4_K_XL", "ud-q4_k_xl has no rule", "give the file itself"),
        ("int4,grup=3", "int4 has no option 'grup'", "did you mean group?"),
        ("awq,sym=true", "awq has no option 'sym'", "awq takes group, keep"),
        ("bf16,keep=mlp", "bf16 has no option 'keep'", "bf16 takes no option"),
        ("q4_k_m,group=64", "q4_k_m has no option 'group'", "q4_k_m takes keep"),
        ("int4,group=7", "group=7 is not possible", "a multiple of 8"),
        ("int4,group=99999999999999999999", "group=999", "a multiple of 8"),
        ("hqq,group=channel", "group=channel is not possible", "a multiple of 8"),
        ("gptq,bits=9", "bits=9 is not possible", "2 to 8"),
        ("fp8,scales=fp4", "scales=fp4 is not possible", "one of: fp16"),
        ("nf4,double=maybe", "double=maybe is not possible", "one of: true"),
        ("int4,keep=embeddings,head", "'head' is no option of int4", "keep=embedding+lm_head"),
        ("int4,keep=", "'keep=' is no option of int4", "NAME=VALUE"),
        ("int4,keep=atention", "'atention' is no part", "did you mean attention?"),
        ("int4,keep=mlp+none", "'none' is no part", "did you mean none?"),
        ("int4,group=64,group=32", "group is given twice", "once"),
        ("int4," * 99, "--weights is too long", "for example int4"),
    ],
)
def test_refused_words(word, message, hint):
    with pytest.raises(InvalidRequestError) as refusal:
        parse_scheme(word)
    assert message in refusal.value.message
    assert hint in refusal.value.hint
    assert refusal.value.field == "weights"
    for text in (refusal.value.message, refusal.value.hint):
        assert re.search("[一-鿿]", chinese(text)), text


@given(
    st.text(max_size=40)
    | st.lists(
        st.sampled_from(["int4", "q8_0", ",", "=", "keep", "group", "+", "-", "mlp", "none", "8", "٣"])
    ).map("".join)
)
def test_any_text_is_a_scheme_or_refused(word):
    try:
        scheme = parse_scheme(word)
    except KvgaugeError:
        return
    assert parse_scheme(scheme.text) == scheme


def test_every_word_parses():
    for word in scheme_words():
        scheme = parse_scheme(word)
        assert scheme.is_ggml == (scheme.format is None)
        assert scheme.value_bits > 0
    for alias, word in scheme_table()["aliases"].items():
        assert word in scheme_words(), alias


# mixes of llama.cpp, priced elsewhere


def test_a_mix_is_priced_by_its_own_rules_and_may_keep_parts():
    head = TensorFamily("output.weight", (1024, 256), Part.LM_HEAD)
    norm = TensorFamily("output_norm.weight", (256,), Part.NORM)
    q6_k = WeightFormat("q6_k", 6, row_block=256, row_block_bytes=210)
    mixed = StoredWeights((StoredFamily(head, q6_k), StoredFamily(norm, plain("f32"))), scheme="q4_k_m")
    weights = ModelWeights((head, norm))
    assert reweigh(weights, parse_scheme("q4_k_m"), "bf16", lambda _: mixed).num_bytes == 1024 * 210 + 1024
    kept = with_kept(mixed, parse_scheme("q4_k_m,keep=head+norm"), "bf16")
    assert kept.num_bytes == 1024 * 256 * 2 + 1024  # what the mix leaves in f32 stays
    with pytest.raises(FeatureUnsupportedError, match="q4_k_m"):
        reweigh(weights, parse_scheme("q4_k_m"), "bf16")


# commands: each tool's own rule of matching, on the modules of whole models


def named(modules: list[Module]) -> set[str]:
    """Return module names with numbers: every layer, two experts."""
    names: set[str] = set()
    for module in modules:
        for layer in module.layers or (0,):
            name = module.name.replace("{layer}", str(layer))
            names |= {name.replace("{expert}", str(expert)) for expert in (0, 11)}
    return names


def auto_round_ignores(entry: str, names: set[str]) -> set[str]:
    """An entry as part of a name; the same as a regular expression where it has any of its signs."""
    found = {name for name in names if entry in name}
    if re.search(r"\.\*|[\^$|()\[\]?+]", entry):
        pattern = re.sub(r"\.(?!\*)", r"\\.", entry)
        found |= {name for name in names if re.search(pattern, name)}
    return found


def llm_compressor_ignores(entry: str, names: set[str]) -> set[str]:
    if entry.startswith("re:"):
        return {name for name in names if re.match(entry.removeprefix("re:"), name)}
    return names & {entry}


IGNORES = {"auto-round": auto_round_ignores, "llm-compressor": llm_compressor_ignores}


@pytest.mark.parametrize(
    "word", ["int4", "mxfp4,keep=default+attention-linear_attention", "int4,keep=none+mlp"]
)
@pytest.mark.parametrize("model", sorted({*EVERY, *MODELS}))
def test_commands_ignore_exactly_the_kept_modules(model, word):
    weights, scheme = weights_of(model), parse_scheme(word)
    kept, quantised = (named(modules) for modules in kept_and_quantised(weights, scheme, "bf16"))
    commands = [c for c in quantiser_commands(model, weights, scheme) if c.tool in IGNORES]
    assert [c.tool for c in commands] == list(IGNORES)
    for command in commands:
        names = kept | quantised
        ignored = set().union(*(IGNORES[command.tool](entry, names) for entry in command.ignore))
        assert ignored == kept, (command.tool, sorted(ignored ^ kept)[:5])
        assert all(entry in command.text.replace("\\\\", "\\") for entry in command.ignore)
        assert not any("," in entry or " " in entry for entry in command.ignore)


def test_what_is_linear():
    names = {
        f.name.rpartition("{layer}.")[2] for f in weights_of("Qwen/Qwen3.5-35B-A3B").families if is_linear(f)
    }
    assert {
        "linear_attn.out_proj.weight",
        "mlp.gate.weight",
        "lm_head.weight",
        "mlp.experts.down_proj",
    } <= names
    assert (
        not {"model.embed_tokens.weight", "linear_attn.conv1d.weight", "model.visual.pos_embed.weight"}
        & names
    )
    assert not any("norm" in name for name in names)
    t5 = {f.name for f in weights_of("google-t5/t5-base").families if is_linear(f)}
    assert not any("relative_attention_bias" in name or name == "shared.weight" for name in t5)


def test_auto_round_line():
    weights = weights_of("Qwen/Qwen3.5-35B-A3B")
    command = quantiser_commands("Qwen/Qwen3.5-35B-A3B", weights, parse_scheme("int4,group=64,sym=false"))[0]
    assert shlex.split(command.text) == [
        "auto-round", "--model", "Qwen/Qwen3.5-35B-A3B", "--scheme", "W4A16", "--group_size", "64", "--asym",
        "--ignore_layers", "mtp,visual,lm_head,linear_attn,shared_expert,mlp.gate", "--format", "auto_round",
        "--output_dir", "Qwen3.5-35B-A3B-int4-group-64-sym-false",
    ]  # fmt: skip


def test_layers_are_named_where_names_alone_do_not_tell():
    """DeepSeek keeps multi-token prediction as one more layer of the same modules."""
    weights = weights_of("deepseek-ai/DeepSeek-V3.2")
    by_tool = {c.tool: c.ignore for c in quantiser_commands("x", weights, parse_scheme("int4"))}
    assert "layers.61." in by_tool["auto-round"]
    assert r"re:.*layers\.61\..*" in by_tool["llm-compressor"]
    assert r"blk\.61\." in by_tool["llama-quantize"]
    kept = [Module("a.layers.{layer}.m.in_proj", (0, 2)), Module("a.layers.{layer}.m.up", (0, 1, 2, 3))]
    others = [Module("a.layers.{layer}.m.in_proj", (1, 3)), Module("a.layers.{layer}.n.o", (0, 1, 2, 3))]
    assert cover(kept, others) == (
        ModulePattern("up"),
        ModulePattern("m.in_proj", True, "layers", (0, 2)),
    )


def test_parts_that_are_not_kept_are_asked_for():
    weights = weights_of("Qwen/Qwen3.5-35B-A3B")
    command = quantiser_commands("x", weights, parse_scheme("int4,keep=none"))[0]
    assert {"--quant_lm_head", "--quant_nontext_module"} <= set(shlex.split(command.text))
    assert command.differs == (Part.EMBEDDING,)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "word", ["int4", "int4,sym=false", "w4a16,bits=3", "int8", "fp8", "fp8_block", "nvfp4", "mxfp8"]
)
def test_scripts_are_python(model, word):
    scheme = parse_scheme(word)
    command = next(
        c for c in quantiser_commands(model, weights_of(model), scheme) if c.tool == "llm-compressor"
    )
    script = compile(command.text, "script", "exec")
    assert json.dumps(model) in command.text
    assert "oneshot" in script.co_names
    ignored = re.findall(r'^        "(.*)",$', command.text, re.MULTILINE)
    assert tuple(json.loads(f'"{entry}"') for entry in ignored) == command.ignore


@pytest.mark.parametrize("name", ["a b/$(x)", "x'; rm -rf y", "-rf", '"\n\\', "模型/甲"])
def test_odd_names_are_quoted(name):
    for command in quantiser_commands(name, weights_of("Qwen/Qwen3-8B"), parse_scheme("int4")):
        if command.language == "sh":
            words = shlex.split(command.text)
            assert command.tool == words[0]
            assert command.tool == "llama-quantize" or words[2] == name
        else:
            constants = compile(command.text, "script", "exec").co_consts
            assert name in constants


# llama-quantize: names in the file by gguf's own table

ARCHITECTURES = {
    "Qwen/Qwen3-8B": gguf.MODEL_ARCH.QWEN3,
    "Qwen/Qwen3-30B-A3B": gguf.MODEL_ARCH.QWEN3MOE,
    "Qwen/Qwen3.5-35B-A3B": gguf.MODEL_ARCH.QWEN35MOE,
    "deepseek-ai/DeepSeek-V3": gguf.MODEL_ARCH.DEEPSEEK2,
    "ai21labs/Jamba-v0.1": gguf.MODEL_ARCH.JAMBA,
    "LiquidAI/LFM2-1.2B": gguf.MODEL_ARCH.LFM2,
}
NEVER = re.compile(r"ffn_gate_inp\.weight|^token_embd\.|^output\.")


def gguf_names(model: str, families: list[TensorFamily]) -> set[str]:
    """Return the tensors that Linear modules become; experts are stacked, own prediction modules left out."""
    table = gguf.get_tensor_name_map(ARCHITECTURES[model], 200)
    names: set[str] = set()
    for family in families:
        for module in modules_of(family):
            plain_name = module.name.replace(".{expert}", "").removeprefix("language_model.")
            for layer in module.layers or (0,):
                found = table.get_name(plain_name.replace("{layer}", str(layer)))
                assert found or family.part in (Part.VISION, Part.PROJECTOR, Part.MTP), module.name
                names |= {f"{found}.weight"} if found else set()
    return {name for name in names if not NEVER.search(name)}


@pytest.mark.parametrize("word", ["q4_k_m,keep=default", "q4_k_m,keep=default+mlp-indexer", "q4_k_m"])
@pytest.mark.parametrize("model", sorted(ARCHITECTURES))
def test_llama_quantize_keeps_exactly_the_kept_tensors(model, word):
    weights, scheme = weights_of(model), parse_scheme(word)
    linear = [f for f in (*weights.families, *weights.mtp_families) if is_linear(f)]
    kept = gguf_names(model, [f for f in linear if f.part in scheme.keep])
    names = gguf_names(model, linear)
    (command,) = quantiser_commands(model, weights, scheme)
    assert not command.is_nearest
    assert not command.unnamed
    raised = {name for name in names if any(re.search(entry, name) for entry in command.ignore)}
    assert raised == kept
    words = shlex.split(command.text)
    assert words[-1] == "Q4_K_M"
    assert ("--output-tensor-type" in words) == (Part.LM_HEAD in scheme.keep)
    assert words.count("--tensor-type") == len(command.ignore)
    assert all(entry == entry.lower() for entry in command.ignore)


def test_prediction_modules_of_their_own_follow_the_last_block():
    weights = weights_of("Qwen/Qwen3.5-35B-A3B")
    (command,) = quantiser_commands("x", weights, parse_scheme("q8_0,keep=default"))
    assert r"blk\.40\." in command.ignore
    (command,) = quantiser_commands("x", weights, parse_scheme("iq2_xs"))
    assert command.text == "llama-quantize --imatrix imatrix.gguf x-BF16.gguf x-IQ2_XS.gguf IQ2_XS"
    (command,) = quantiser_commands("x", weights, parse_scheme("q8_0"))
    assert command.ignore == ()
    assert command.text == "llama-quantize x-BF16.gguf x-Q8_0.gguf Q8_0"


def test_a_scheme_that_llama_cpp_lacks_gets_the_nearest_mix():
    commands = quantiser_commands("Qwen/Qwen3-8B", weights_of("Qwen/Qwen3-8B"), parse_scheme("int4"))
    nearest = {c.tool: c.is_nearest for c in commands}
    assert nearest == {"auto-round": False, "llm-compressor": False, "llama-quantize": True}
    assert "--token-embedding-type bf16 --output-tensor-type bf16" in commands[-1].text
