"""The command lines that make a quantisation: auto-round, llm-compressor, llama-quantize.

Each tool is told to leave alone what the scheme keeps at 16 bit, in its own syntax and by the module names of
this model. Their rules of matching, as of auto-round 0.16, compressed-tensors 0.20 and llama.cpp v0.5.0:

- auto-round: an entry of ``--ignore_layers`` matches where it is part of a name; with ``^ $ | ( )`` or ``.*``
  in it, it is a regular expression that is searched, dots standing for themselves.
- llm-compressor: ``re:`` and a regular expression that the name must begin with, else the name itself.
- llama-quantize: a regular expression that is searched in the lower-cased tensor name; the first one counts.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator

from kvgauge.module_patterns import LAYER, Module, ModulePattern, cover
from kvgauge.values import dataclass
from kvgauge.weight_schemes import Scheme, scheme_table
from kvgauge.weights import ModelWeights, Part, TensorFamily
from kvgauge.what_if import is_linear, is_quantised, kept_dtype

_TOWERS = frozenset({Part.VISION, Part.AUDIO, Part.PROJECTOR})
_TABLES = frozenset({Part.EMBEDDING, Part.PER_LAYER_EMBEDDING})
_PRESET_GROUP = 128


@dataclass(frozen=True, slots=True)
class Command:
    """What to run.

    Args:
        tool: ``auto-round``, ``llm-compressor`` or ``llama-quantize``.
        language: ``sh`` or ``python``.
        text: the command line or the script.
        ignore: what it is told to keep, in the tool's syntax.
        is_nearest: the tool has no such format; this is the one of its own that comes near.
        differs: parts that the tool leaves at 16 bit although the scheme quantises them.
        unnamed: kept modules that the tool's files name in a way that is not known.
    """

    tool: str
    language: str
    text: str
    ignore: tuple[str, ...] = ()
    is_nearest: bool = False
    differs: tuple[Part, ...] = ()
    unnamed: tuple[str, ...] = ()


def quantiser_commands(
    model_id: str, weights: ModelWeights, scheme: Scheme, model_dtype: str = "bf16"
) -> tuple[Command, ...]:
    """Return the commands of the tools that can write this scheme; none for a plain dtype."""
    if scheme.is_plain:
        return ()
    row = scheme_table()["schemes"].get(scheme.word, {})
    commands = []
    if "auto_round" in row:
        commands.append(_auto_round(model_id, weights, scheme, model_dtype))
    if "llm_compressor" in row:
        commands.append(_llm_compressor(model_id, weights, scheme, model_dtype))
    if scheme.is_ggml or "llama_quantize" in row:
        commands.append(_llama_quantize(model_id, weights, scheme, model_dtype))
    return tuple(commands)


def kept_and_quantised(
    weights: ModelWeights, scheme: Scheme, model_dtype: str
) -> tuple[list[Module], list[Module]]:
    """Return the Linear modules that a scheme keeps at 16 bit, and those that it quantises."""
    kept: list[Module] = []
    quantised: list[Module] = []
    for family in _linear_families(weights):
        chosen = quantised if _is_quantised(family, scheme, model_dtype) else kept
        chosen.extend(modules_of(family))
    return kept, quantised


def modules_of(family: TensorFamily) -> Iterator[Module]:
    """Yield the modules of a family; stacked experts as the Linear modules that quantisers make of them."""
    name = family.name.removesuffix(".weight")
    head, _, module = name.rpartition(".")
    unfused = scheme_table()["unfused"]
    if family.stacked and module in unfused:
        for own in unfused[module]:
            yield Module(f"{head}.{{expert}}.{own}", family.layers)
    else:
        yield Module(name, family.layers)


def _linear_families(weights: ModelWeights) -> Iterator[TensorFamily]:
    return (family for family in (*weights.families, *weights.mtp_families) if is_linear(family))


def _is_quantised(family: TensorFamily, scheme: Scheme, model_dtype: str) -> bool:
    """Whether a module is quantised; a mix decides by its own rules on whatever is not kept."""
    return family.part not in scheme.keep if scheme.is_ggml else is_quantised(family, scheme, model_dtype)


def _parts(weights: ModelWeights) -> frozenset[Part]:
    return frozenset(family.part for family in (*weights.families, *weights.mtp_families))


def _differs(weights: ModelWeights, scheme: Scheme, left_alone: frozenset[Part]) -> tuple[Part, ...]:
    present = _parts(weights)
    return tuple(part for part in Part if part in left_alone and part in present and part not in scheme.keep)


def _short_name(model_id: str) -> str:
    name = re.split(r"[/\\:@]", model_id.rstrip("/\\"))[-1]
    return re.sub(r"[^\w.-]", "_", name, flags=re.ASCII).lstrip("-") or "model"


def _output(model_id: str, scheme: Scheme) -> str:
    return f"{_short_name(model_id)}-{re.sub(r'[^a-z0-9]+', '-', scheme.text)}"


# auto-round


def _auto_round(model_id: str, weights: ModelWeights, scheme: Scheme, model_dtype: str) -> Command:
    row = scheme_table()["schemes"][scheme.word]
    patterns = cover(*kept_and_quantised(weights, scheme, model_dtype))
    ignore = tuple(_auto_round_pattern(pattern) for pattern in patterns)
    words = [
        "auto-round",
        "--model",
        model_id,
        "--scheme",
        row["auto_round"]["scheme"].format(bits=scheme.value_bits),
    ]
    if "group" in row["options"]:
        words += ["--group_size", str(scheme.group or -1)]
    if not scheme.symmetric:
        words.append("--asym")
    if ignore:
        words += ["--ignore_layers", ",".join(ignore)]
    present = _parts(weights)
    if Part.LM_HEAD in present - scheme.keep:
        words.append("--quant_lm_head")
    if (_TOWERS & present) - scheme.keep:
        words.append("--quant_nontext_module")
    words += ["--format", row["auto_round"]["format"], "--output_dir", _output(model_id, scheme)]
    return Command("auto-round", "sh", shlex.join(words), ignore, differs=_differs(weights, scheme, _TABLES))


def _auto_round_pattern(pattern: ModulePattern) -> str:
    end = "$" if pattern.is_end else ""
    if not pattern.before:
        return f"{pattern.text}{end}"
    return f"{pattern.before}.{_numbers(pattern.layers)}.{pattern.text}{end}"


def _numbers(layers: tuple[int, ...]) -> str:
    if not layers:
        return r"\d+"
    return str(layers[0]) if len(layers) == 1 else f"({'|'.join(map(str, layers))})"


# llm-compressor

_SCRIPT = """\
from llmcompressor import oneshot
from llmcompressor.modifiers.{package} import {modifier}
{imports}
{load}
recipe = {modifier}(
    {scheme},
    ignore=[
{ignore}
    ],
)
oneshot(model=model, tokenizer=MODEL, recipe=recipe, {calibration}output_dir={output})
"""
_PACKAGES = {"GPTQModifier": "gptq", "QuantizationModifier": "quantization"}
_CALIBRATION = 'dataset="open_platypus", max_seq_length=2048, num_calibration_samples=512, '
_MIXTURE = "from llmcompressor.modeling.moe.linearize import load_quantizable_moe\n"
_ARGUMENTS = "from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme\n"


def _llm_compressor(model_id: str, weights: ModelWeights, scheme: Scheme, model_dtype: str) -> Command:
    row = scheme_table()["schemes"][scheme.word]["llm_compressor"]
    patterns = cover(*kept_and_quantised(weights, scheme, model_dtype))
    ignore = tuple(_llm_compressor_pattern(pattern) for pattern in patterns)
    arguments, imports = _recipe(row["preset"], scheme)
    modifier = row["modifier"]
    auto = "AutoModelForImageTextToText" if Part.VISION in _parts(weights) else "AutoModelForCausalLM"
    imports += f"from transformers import {auto}\n"
    load = f'model = {auto}.from_pretrained(MODEL, dtype="auto")\n'
    if Part.EXPERTS in _parts(weights):
        imports = _MIXTURE + imports
        load = f"with load_quantizable_moe({auto}):\n    {load}"
    calibrates = modifier == "GPTQModifier" or row.get("calibrates", False)
    text = _SCRIPT.format(
        package=_PACKAGES[modifier],
        modifier=modifier,
        imports=imports,
        load=f"MODEL = {_quoted(model_id)}\n{load}",
        scheme=arguments,
        ignore="\n".join(f"        {_quoted(pattern)}," for pattern in ignore),
        calibration=_CALIBRATION if calibrates else "",
        output=_quoted(_output(model_id, scheme)),
    )
    return Command("llm-compressor", "python", text, ignore, differs=_differs(weights, scheme, _TABLES))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _recipe(preset: str, scheme: Scheme) -> tuple[str, str]:
    """Return the scheme's arguments and their imports; presets have groups of 128 and no zero points."""
    name = preset.format(bits=scheme.value_bits)
    is_grouped = "{bits}" in preset
    if not is_grouped or (scheme.group == _PRESET_GROUP and scheme.symmetric):
        return f'targets="Linear", scheme="{name}"', ""
    strategy = f'strategy="group", group_size={scheme.group}' if scheme.group else 'strategy="channel"'
    bits = f'num_bits={scheme.value_bits}, type="int"'
    weights = f"QuantizationArgs({bits}, {strategy}, symmetric={scheme.symmetric})"
    group = f'QuantizationScheme(targets=["Linear"], weights={weights})'
    return f'config_groups={{"group_0": {group}}}', _ARGUMENTS


def _llm_compressor_pattern(pattern: ModulePattern) -> str:
    end = "$" if pattern.is_end else ".*"
    text = pattern.text.replace(".", r"\.")
    if not pattern.before:
        return f"re:.*{text}{end}"
    before = pattern.before.replace(".", r"\.")
    return rf"re:.*{before}\.{_numbers(pattern.layers)}\.{text}{end}"


# llama-quantize


def _llama_quantize(model_id: str, weights: ModelWeights, scheme: Scheme, model_dtype: str) -> Command:
    mix = scheme.word if scheme.is_ggml else scheme_table()["schemes"][scheme.word]["llama_quantize"]
    dtype = kept_dtype(model_dtype)
    kept, quantised, unnamed = _gguf_modules(weights, scheme, model_dtype)
    ignore = tuple(_gguf_pattern(pattern) for pattern in cover(kept, quantised))
    words = ["llama-quantize"]
    if mix in scheme_table()["needs_imatrix"]:
        words += ["--imatrix", "imatrix.gguf"]
    present = _parts(weights)
    if _TABLES & present & scheme.keep:
        words += ["--token-embedding-type", dtype]
    if Part.LM_HEAD in present & scheme.keep:
        words += ["--output-tensor-type", dtype]
    for pattern in ignore:
        words += ["--tensor-type", f"{pattern}={dtype}"]
    name = _short_name(model_id)
    words += [f"{name}-{dtype.upper()}.gguf", f"{name}-{mix.upper()}.gguf", mix.upper()]
    left_alone = frozenset({Part.ROUTER, *_TOWERS})
    differs = () if scheme.is_ggml else _differs(weights, scheme, left_alone)
    return Command("llama-quantize", "sh", shlex.join(words), ignore, not scheme.is_ggml, differs, unnamed)


def _gguf_modules(
    weights: ModelWeights, scheme: Scheme, model_dtype: str
) -> tuple[list[Module], list[Module], tuple[str, ...]]:
    """Return kept and quantised tensors by their GGUF names, and the kept ones whose name is not known.

    The towers are in a file of their own; tables and head have options; routers are never quantised.
    """
    kept: list[Module] = []
    quantised: list[Module] = []
    unnamed: list[str] = []
    never = scheme_table()["gguf_never_quantised"]
    depth = 1 + max(
        (max(f.layers) for f in weights.families if f.layers and f.part not in _TOWERS), default=-1
    )
    for family in _linear_families(weights):
        if family.part in _TOWERS or family.part in (Part.LM_HEAD, Part.EMBEDDING):
            continue
        is_kept = not _is_quantised(family, scheme, model_dtype)
        for module in modules_of(family):
            names = _gguf_names(module, family.part, depth)
            if is_kept and not names:
                unnamed.append(module.name)
            for named in names:
                if named.name.rpartition(f"{LAYER}.")[2] not in never:
                    (kept if is_kept else quantised).append(named)
    return kept, quantised, tuple(unnamed)


def _gguf_names(module: Module, part: Part, depth: int) -> list[Module]:
    """Return the tensors that a module becomes; a module of its own for prediction follows the last block."""
    if part is Part.MTP and "mtp" in module.name:
        own = tuple(depth + layer for layer in module.layers) or (depth,)
        module = module._replace(layers=own)
    components = [c for c in module.name.split(".") if not c.startswith("{")]
    table = scheme_table()["gguf"]
    for length in (3, 2, 1):
        names = table.get(".".join(components[-length:])) if length <= len(components) else None
        if names:
            block = f"blk.{LAYER}." if module.layers else ""
            return [Module(f"{block}{name}", module.layers) for name in names]
    return []


def _gguf_pattern(pattern: ModulePattern) -> str:
    text = pattern.text.replace(".", r"\.")
    end = r"\.weight$" if pattern.is_end else ""
    if not pattern.before:
        return f"{text}{end}"
    return rf"{pattern.before}\.{_numbers(pattern.layers)}\.{text}{end}"
