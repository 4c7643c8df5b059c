"""What llama.cpp is told: the load and the flags of a launch as one value."""

from __future__ import annotations

from collections.abc import Mapping

from kvgauge.dtypes import canonical_dtype
from kvgauge.engines.llamacpp.builds import NEWEST, BuildRules
from kvgauge.engines.llamacpp.flags import Value, parse
from kvgauge.engines.tensor_overrides import Override, parse_overrides
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.values import dataclass

#: ``LLAMA_MAX_SEQ`` of ``src/llama-cparams.h``.
MAX_SEQUENCES = 256
DEFAULT_BATCH, DEFAULT_MICRO_BATCH = 2048, 512
#: Tokens drafted ahead unless told otherwise (``common/common.h``).
DEFAULT_DRAFT_TOKENS = 3

#: Types that ``-ctk`` and ``-ctv`` take (``common/arg.cpp``, ``kv_cache_types``).
CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")

#: Programs other than llama-server: sequences unless told, and whether logits are reserved for few rows.
_SINGLE = ("llama-cli", "llama-completion", "llama-run", "llama")
_LIBRARY = ("llama-bench", "llama-perplexity", "llama-simple", "llama-embedding", "ollama", "lms")


@dataclass(frozen=True, slots=True)
class LlamaSettings:
    """The settings of one context.

    Args:
        context_tokens: cells asked for over all sequences (``-c``); 0 is the model's own limit.
        sequences: slots that the context serves (``n_seq_max``).
        unified: they share one stream.
        flash: on, off or auto; auto is on, as every common device can run it.
        gpu_layers: layers on the devices, the output counts as one; None is all.
        num_gpus: devices; 0 is a build for the CPU alone.
        outputs: rows of logits that are reserved; 0 is the whole micro-batch.
        rollback_tokens: snapshots of a recurrent state beside its own (``n_rs_seq``).
        mtp: a second context with the layers of multi-token prediction.
        tensor_split: share of each device; empty is even.
        slot_tokens: tokens that one slot of a unified pool may use, or None.
        cache_ram_mib: ceiling of the server's prompt cache on the host; -1 none.
        checkpoints: states a slot that the server may keep on the host.
        latents: what is kept of a latent where a fork's flags say so; empty is the build's own.
        unpacks: the fork unpacks latents of the whole context, by parts of the heads.
        attention_mib: what a part may take; 0 is no bound.
        overrides: tensors that lie elsewhere than their layer.
        copies_weights: a device works on matrices of the host in a copy, where there are rows enough.
        host_matrix_bytes, host_output_bytes: the largest such matrix of a block, and that of the logits.
    """

    context_tokens: int = 0
    sequences: int = 1
    unified: bool = False
    batch_tokens: int = DEFAULT_BATCH
    micro_batch_tokens: int = DEFAULT_MICRO_BATCH
    k_type: str = "f16"
    v_type: str = "f16"
    flash: str = "auto"
    full_windows: bool = False
    offload_cache: bool = True
    gpu_layers: int | None = None
    num_gpus: int = 1
    outputs: int = 0
    rollback_tokens: int = 0
    mtp: bool = False
    draft_k_type: str = "f16"
    draft_v_type: str = "f16"
    tensor_split: tuple[float, ...] = ()
    split_mode: str = "layer"
    cpu_moe_layers: int = 0
    slot_tokens: int | None = None
    cache_ram_mib: int = 8192
    checkpoints: int = 32
    latents: str = ""
    unpacks: bool = False
    attention_mib: int = 0
    overrides: tuple[Override, ...] = ()
    copies_weights: bool = True
    host_matrix_bytes: int = 0
    host_output_bytes: int = 0
    build: BuildRules = NEWEST


def settings_of(
    args: str = "",
    *,
    context_tokens: int | None = None,
    sequences: int | None = None,
    k_type: str | None = None,
    v_type: str | None = None,
    draft_tokens: int | None = None,
    num_gpus: int = 1,
    build: BuildRules = NEWEST,
) -> LlamaSettings:
    """Return the settings that a load and a line of flags amount to; flags go before the load.

    Args:
        args: flags of llama-server or another program, or words of Ollama and LM Studio.
        context_tokens: tokens of one sequence; None leaves it to the flags or the model.
        sequences: None where nobody asked: then the server's own slots.
        k_type, v_type: dtype of the load, canonical; None is llama.cpp's own.
        draft_tokens: tokens that multi-token prediction drafts; None is off unless the flags say so.

    Raises:
        InvalidRequestError: a flag or value that llama.cpp does not take.

    >>> settings_of("-c 32768").sequences, settings_of(context_tokens=4096, sequences=3).context_tokens
    (4, 12288)
    """
    told = parse(args)
    program = str(told.get("program", "llama-server"))
    slots, unified, own = _slots(told, program, sequences, build)
    draft = _draft(told, draft_tokens)
    k, v = _types(told, k_type, v_type)
    layers = told.get("gpu_layers", "all")
    split = told.get("tensor_split", ())
    return LlamaSettings(
        context_tokens=_context(told, context_tokens, 1 if own else slots),
        sequences=slots,
        unified=unified,
        batch_tokens=_positive(told, "batch", DEFAULT_BATCH),
        micro_batch_tokens=_positive(told, "micro_batch", DEFAULT_MICRO_BATCH),
        k_type=k,
        v_type=v,
        flash=_flash(told, build),
        full_windows=bool(told.get("full_windows", False)),
        offload_cache=not told.get("no_offload", False) and bool(told.get("offload", True)),
        gpu_layers=layers if isinstance(layers, int) and layers >= 0 else None,
        num_gpus=_devices(told, num_gpus),
        outputs=_outputs(told, program, slots, draft, build),
        rollback_tokens=_positive(told, "rollback", draft if _rolls_back(told, draft_tokens) else 0, low=0),
        mtp=_mtp(told, draft_tokens),
        draft_k_type=_type(told, "draft_k_type", "f16"),
        draft_v_type=_type(told, "draft_v_type", "f16"),
        tensor_split=split if isinstance(split, tuple) else (),
        split_mode=_split_mode(told),
        cpu_moe_layers=1 << 20 if told.get("cpu_moe") else _positive(told, "cpu_moe_layers", 0, low=0),
        slot_tokens=_positive(told, "slot_limit", 0, low=0) or None,
        cache_ram_mib=_positive(told, "cache_ram", 8192, low=-1),
        checkpoints=_positive(told, "checkpoints", 32, low=0),
        latents=_latents(told),
        unpacks=build.fork and told.get("latents") in (2, 3) and _flash(told, build) == "on",
        attention_mib=_positive(told, "attention_mib", 0, low=0),
        overrides=_overrides(told),
        copies_weights=not (told.get("no_op_offload") or told.get("repacked")),
        build=build,
    )


def _slots(
    told: Mapping[str, Value], program: str, sequences: int | None, build: BuildRules
) -> tuple[int, bool, bool]:
    """Return (sequences, unified, by default).

    The server's own slots share one stream, others have one each.
    """
    asked = _positive(told, "sequences", 0, low=-1)
    joined = bool(told.get("unified", False)) and not told.get("split", False)
    if asked < 1 and sequences is None and program == "llama-server":
        shared = (build.unified or joined) and not told.get("split", False)
        return build.slots, shared, shared
    slots = asked if asked > 0 else sequences or 1
    if slots > MAX_SEQUENCES:
        raise FeatureUnsupportedError(
            f"llama.cpp serves at most {MAX_SEQUENCES} sequences, not {slots}",
            hint=f"at most -np {MAX_SEQUENCES}; more need a second server",
            field="sequences",
        )
    return slots, joined or not build.streams, False


def _context(told: Mapping[str, Value], context_tokens: int | None, slots: int) -> int:
    """Return cells over all slots: ``-c`` as it stands; else tokens of one sequence times ``slots``.

    The server's own slots share what is there, so they count once.
    """
    if "context" in told:
        return _positive(told, "context", 0, low=0)
    if "context_each" in told:
        return _positive(told, "context_each", 0, low=0) * slots
    if "slot_limit" in told and context_tokens is None:
        return _positive(told, "slot_limit", 0, low=0) * slots
    return (context_tokens or 0) * slots


def _positive(told: Mapping[str, Value], name: str, default: int, *, low: int = 1) -> int:
    value = told.get(name, default)
    number = value if isinstance(value, int) else default
    if name in told and number < low:
        raise InvalidRequestError(f"llama.cpp: {name} is {number}, at least {low}", field="engine-args")
    return number


def _types(told: Mapping[str, Value], k_type: str | None, v_type: str | None) -> tuple[str, str]:
    both = told.get("kv_type")
    k = told.get("k_type", both or k_type or "f16")
    v = told.get("v_type", both or v_type or "f16")
    return _cache_type("-ctk", str(k)), _cache_type("-ctv", str(v))


def _type(told: Mapping[str, Value], name: str, default: str) -> str:
    return _cache_type("-" + name, str(told.get(name, default)))


def _cache_type(flag: str, word: str) -> str:
    """Return a type in canonical words.

    Raises:
        FeatureUnsupportedError: llama.cpp keeps no cache in it.
    """
    name = canonical_dtype(word)
    if name not in CACHE_TYPES:
        raise FeatureUnsupportedError(
            f"llama.cpp keeps no {name} cache ({flag})",
            hint="one of " + ", ".join(CACHE_TYPES),
            field="kv_dtype",
        )
    return name


def _flash(told: Mapping[str, Value], build: BuildRules) -> str:
    """Builds before the automatic choice (2025-08) had it off."""
    return str(told.get("flash", "off" if build.slots == 1 else "auto"))


def _kinds(told: Mapping[str, Value]) -> tuple[str, ...]:
    return tuple(str(told.get("draft_kinds", "")).split(","))


def _mtp(told: Mapping[str, Value], draft_tokens: int | None) -> bool:
    return bool(draft_tokens) or bool(told.get("mtp")) or "draft-mtp" in _kinds(told)


def _rolls_back(told: Mapping[str, Value], draft_tokens: int | None) -> bool:
    """Whether drafts need snapshots of a state (``common_params_speculative::need_n_rs_seq``)."""
    wants = {"draft-mtp", "draft-eagle3", "draft-dflash", "draft-dspark"}
    return _mtp(told, draft_tokens) or bool(wants & set(_kinds(told))) or "draft_tokens" in told


def _draft(told: Mapping[str, Value], draft_tokens: int | None) -> int:
    drafts = _mtp(told, draft_tokens) or any(kind.startswith("draft-") for kind in _kinds(told))
    default = draft_tokens or (DEFAULT_DRAFT_TOKENS if drafts else 0)
    return _positive(told, "draft_tokens", default, low=0)


def _outputs(told: Mapping[str, Value], program: str, slots: int, draft: int, build: BuildRules) -> int:
    """Return rows of logits: the server asks for one a slot and drafted token (``server-context.cpp``)."""
    if "outputs" in told:
        return _positive(told, "outputs", 0, low=0)
    if program in _LIBRARY or told.get("embedding") or not build.few_outputs:
        return 0
    return slots * (1 + draft)


def _latents(told: Mapping[str, Value]) -> str:
    """Return what ``-mla`` of ik_llama.cpp keeps: heads; K and, without flash attention, V; K alone."""
    if "latents" not in told:
        return ""
    number = _positive(told, "latents", 0, low=0)
    without_v = number > 1 or told.get("flash") == "on"
    return "expanded" if number == 0 else "k" if without_v else "kv"


def _overrides(told: Mapping[str, Value]) -> tuple[Override, ...]:
    line = told.get("tensor_overrides")
    return parse_overrides(str(line)) if line else ()


def _devices(told: Mapping[str, Value], num_gpus: int) -> int:
    split = told.get("tensor_split", ())
    if told.get("device") == "none":
        return 0
    return max(num_gpus, len(split)) if isinstance(split, tuple) and num_gpus else num_gpus


def _split_mode(told: Mapping[str, Value]) -> str:
    mode = str(told.get("split_mode", "layer"))
    if mode not in ("none", "layer", "row", "tensor"):
        raise InvalidRequestError(f"-sm {mode!r}: expected none, layer, row or tensor", field="engine-args")
    return mode


__all__ = ["CACHE_TYPES", "MAX_SEQUENCES", "LlamaSettings", "settings_of"]
