"""The words that llama.cpp's programs, Ollama and LM Studio are told their load with, as a table.

``parse`` turns a line of flags, or of variables and words with ``=``, into settings by name. Flags without
effect on memory are known by name and skipped (``data/llamacpp_flags.json``, from v0.5.0's ``common/arg.cpp``
and from ik_llama.cpp); a flag that is close to a known one is taken for a slip and refused, any other is left
alone, and ``flag_notes`` names it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from functools import lru_cache

from kvgauge.data import read_data
from kvgauge.engines.flag_words import refuse_slip
from kvgauge.errors import InvalidRequestError
from kvgauge.units import MAX_TOKENS

Value = int | str | bool | tuple[float, ...]

#: Setting -> (kind of value, spellings). Kinds: number; word; type; on and off, flags without a value;
#: flash, on, off or auto, and on where the value is left out; layers, a number, ``all`` or ``auto``; ratios;
#: joined, a word that adds to those before it.
SETTINGS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "context": ("number", ("-c", "--ctx-size", "LLAMA_ARG_CTX_SIZE", "n_ctx", "contextlength",
    "context_length")),
    "context_each": ("number", ("num_ctx", "OLLAMA_CONTEXT_LENGTH", "contextsize")),
    "slot_limit": ("number", ("--kv-unified-per-slot", "LLAMA_ARG_KV_UNIFIED_PER_SLOT")),
    "sequences": ("number", ("-np", "--parallel", "LLAMA_ARG_N_PARALLEL", "n_parallel", "n_seq_max",
                             "OLLAMA_NUM_PARALLEL", "num_parallel", "maxparallelpredictions")),
    "unified": ("on", ("-kvu", "--kv-unified", "LLAMA_ARG_KV_UNIFIED", "kv_unified", "useunifiedkvcache")),
    "split": ("off", ("-no-kvu", "--no-kv-unified")),
    "batch": ("number", ("-b", "--batch-size", "LLAMA_ARG_BATCH", "n_batch", "num_batch", "evalbatchsize")),
    "micro_batch": ("number", ("-ub", "--ubatch-size", "LLAMA_ARG_UBATCH", "n_ubatch")),
    "k_type": ("type", ("-ctk", "--cache-type-k", "LLAMA_ARG_CACHE_TYPE_K", "type_k",
                        "llamakcachequantizationtype")),
    "v_type": ("type", ("-ctv", "--cache-type-v", "LLAMA_ARG_CACHE_TYPE_V", "type_v",
                        "llamavcachequantizationtype")),
    "kv_type": ("type", ("OLLAMA_KV_CACHE_TYPE",)),
    "flash": ("flash", ("-fa", "--flash-attn", "LLAMA_ARG_FLASH_ATTN", "flash_attn", "flashattention",
                        "OLLAMA_FLASH_ATTENTION")),
    "full_windows": ("on", ("--swa-full", "LLAMA_ARG_SWA_FULL", "swa_full")),
    "gpu_layers": ("layers", ("-ngl", "--gpu-layers", "--n-gpu-layers", "LLAMA_ARG_N_GPU_LAYERS",
    "n_gpu_layers",
                              "num_gpu", "gpulayers")),
    "offload": ("on", ("-kvo", "--kv-offload", "LLAMA_ARG_KV_OFFLOAD", "offload_kqv", "offloadkvcachetogpu")),
    "no_offload": ("off", ("-nkvo", "--no-kv-offload")),
    "split_mode": ("word", ("-sm", "--split-mode", "LLAMA_ARG_SPLIT_MODE")),
    "tensor_split": ("ratios", ("-ts", "--tensor-split", "LLAMA_ARG_TENSOR_SPLIT", "tensorsplit")),
    "cpu_moe_layers": ("number", ("-ncmoe", "--n-cpu-moe", "LLAMA_ARG_N_CPU_MOE")),
    "tensor_overrides": ("joined", ("-ot", "--override-tensor", "LLAMA_ARG_OVERRIDE_TENSOR")),
    "no_op_offload": ("off", ("--no-op-offload", "-nopo")),
    "repacked": ("on", ("-rtr", "--run-time-repack")),
    "cpu_moe": ("on", ("-cmoe", "--cpu-moe", "LLAMA_ARG_CPU_MOE")),
    "outputs": ("number", ("--n-outputs-max", "n_outputs_max")),
    "rollback": ("number", ("--n-rs-seq", "n_rs_seq")),
    "draft_tokens": ("number", ("--spec-draft-n-max", "--draft", "--draft-n", "--draft-max",
                                "LLAMA_ARG_SPEC_DRAFT_N_MAX")),
    "draft_kinds": ("word", ("--spec-type", "LLAMA_ARG_SPEC_TYPE")),
    "mtp": ("on", ("--mtp",)),
    "draft_k_type": ("type", ("-ctkd", "--cache-type-k-draft", "--spec-draft-type-k",
                              "LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_K")),
    "draft_v_type": ("type", ("-ctvd", "--cache-type-v-draft", "--spec-draft-type-v",
                              "LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_V")),
    "cache_ram": ("number", ("-cram", "--cache-ram", "LLAMA_ARG_CACHE_RAM")),
    "checkpoints": ("number", ("-ctxcp", "--ctx-checkpoints", "--swa-checkpoints",
    "LLAMA_ARG_CTX_CHECKPOINTS")),
    "embedding": ("on", ("--embedding", "--embeddings", "--rerank", "--reranking")),
    "latents": ("number", ("-mla", "--mla-use")),
    "attention_mib": ("number", ("-amb", "--attention-max-batch")),
    "device": ("word", ("-dev", "--device")),
}  # fmt: skip

_SPELLINGS = {spelling: (name, kind) for name, (kind, all_) in SETTINGS.items() for spelling in all_}
_ASSIGNED = re.compile(r"[A-Za-z_][\w]*=.*", re.DOTALL)
_TRUE, _FALSE = {"1", "on", "true", "yes", "enabled"}, {"0", "off", "false", "no", "disabled"}
_NUMBER = re.compile(r"-?\d{1,13}")
_RATIO = re.compile(r"\d{1,6}(\.\d{1,6})?")
_PROGRAM = re.compile(r"[\w./\\-]*?(llama-[a-z-]+|ollama|lms|llama)(?:\.exe)?")


@lru_cache(maxsize=1)
def _quiet() -> Mapping[str, int]:
    """Return the flags without effect on memory, with the number of values that follow each."""
    raw = json.loads(read_data("llamacpp_flags.json"))
    return {name: int(count) for count, names in raw.items() for name in names}


def knows_elsewhere(flag: str, version: str | None) -> bool:
    """Whether a flag is a fork's, and the fork is asked for; its flags are in no release's table."""
    return (version or "").startswith("ik") and (flag in _SPELLINGS or flag in _quiet())


def parse(line: str) -> dict[str, Value]:
    """Return the settings that a line of flags and words states; the last of one name holds.

    Raises:
        InvalidRequestError: a flag that is close to a known one, an unknown variable, or a value that does
            not fit; names it.

    >>> parse("-c 32k -np 4 -fa on -ctk q8_0")
    {'context': 32768, 'sequences': 4, 'flash': 'on', 'k_type': 'q8_0'}
    """
    return dict(_parsed(line))


@lru_cache(maxsize=64)
def _parsed(line: str) -> Mapping[str, Value]:
    """Keep what the lines of one search state: each is asked for several times."""
    found: dict[str, Value] = {}
    tokens = iter(_tokens(line))
    for token in tokens:
        name, equals, value = token.partition("=")
        if token.startswith("-") and not _NUMBER.fullmatch(token):
            _flag(found, name, value if equals else None, tokens)
        elif equals and _ASSIGNED.fullmatch(token):
            _word(found, name, value)
        elif not found and _PROGRAM.fullmatch(token):
            found["program"] = _PROGRAM.fullmatch(token)[1]  # type: ignore[index]
        # anything else is a value of a flag that has none here, such as a model's path
    return found


class _Tokens(Iterator[str]):
    """Tokens with one step of looking ahead."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def __next__(self) -> str:
        if self._at >= len(self._tokens):
            raise StopIteration
        self._at += 1
        return self._tokens[self._at - 1]

    def peek(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None


def _tokens(line: str) -> _Tokens:
    try:
        return _Tokens(shlex.split(line))
    except ValueError as error:
        raise InvalidRequestError(f"--engine-args: {error}", field="engine-args") from None


def _flag(found: dict[str, Value], name: str, value: str | None, tokens: Iterator[str]) -> None:
    known = _SPELLINGS.get(name)
    assert isinstance(tokens, _Tokens)  # noqa: S101 - the caller makes them
    if known is None:
        count = _quiet().get(name)
        if count is None:
            refuse_slip(name, [*_SPELLINGS, *_quiet()], "llama.cpp")
        if count and value is None:
            next(tokens, None)
        return
    setting, kind = known
    if kind in ("on", "off"):
        found[setting] = True
        return
    ahead = tokens.peek()
    if value is None and kind == "flash" and (ahead is None or _flash(ahead) is None):
        found[setting] = "on"  # builds before v0.1 took the flag alone
        return
    if value is None:
        value = next(tokens, None)
    if value is None:
        raise InvalidRequestError(f"{name} needs a value", field="engine-args")
    if kind == "joined" and setting in found:
        value = f"{found[setting]},{value}"
    found[setting] = _read(name, kind, value)


def _word(found: dict[str, Value], name: str, value: str) -> None:
    known = _SPELLINGS.get(name) or _SPELLINGS.get(name.lower())
    if known is None:
        if name.startswith(("LLAMA_", "GGML_", "CUDA_", "OLLAMA_", "HIP_", "ROCR_")):
            return
        raise _unknown(name)
    setting, kind = known
    if name.startswith("OLLAMA_") or name in ("num_ctx", "num_parallel", "num_batch", "num_gpu"):
        found.setdefault("program", "ollama")
    elif "_" not in name:  # words of LM Studio
        found.setdefault("program", "lms")
    if kind in ("on", "off"):
        if value.lower() not in _TRUE | _FALSE:
            raise _bad(name, value, "on or off")
        found[setting] = value.lower() in _TRUE
        return
    found[setting] = _read(name, kind, value)


def _read(name: str, kind: str, value: str) -> Value:
    match kind:
        case "number":
            return _number(name, value)
        case "layers":
            return value if value in ("all", "auto") else _number(name, value)
        case "flash":
            state = _flash(value)
            if state is None:
                raise _bad(name, value, "on, off or auto")
            return state
        case "ratios":
            parts = [part for part in re.split(r"[,/]+", value) if part]
            if not parts or len(parts) > 16 or not all(_RATIO.fullmatch(part) for part in parts):
                raise _bad(name, value, "one number a GPU, such as 3,1")
            return tuple(float(part) for part in parts)
    return value.lower() if kind == "type" else value


def _flash(value: str) -> str | None:
    lowered = value.lower()
    return "on" if lowered in _TRUE else "off" if lowered in _FALSE else "auto" if lowered == "auto" else None


def _number(name: str, value: str) -> int:
    text, scale = value.lower(), 1
    if text[-1:] in ("k", "m"):
        text, scale = text[:-1], 1024 if text[-1] == "k" else 1 << 20
    if not _NUMBER.fullmatch(text) or abs(int(text) * scale) > MAX_TOKENS:
        raise _bad(name, value, "a whole number")
    return int(text) * scale


def _bad(name: str, value: str, wanted: str) -> InvalidRequestError:
    return InvalidRequestError(f"{name} {value!r}: expected {wanted}", field="engine-args")


def _unknown(name: str) -> InvalidRequestError:
    import difflib  # noqa: PLC0415 - only a mistyped flag needs it

    near = difflib.get_close_matches(name, [*_SPELLINGS, *_quiet()], n=1)
    hint = f"did you mean {near[0]}?" if near else "write the flags as for llama-server"
    return InvalidRequestError(f"llama.cpp has no flag {name!r}", hint=hint, field="engine-args")
