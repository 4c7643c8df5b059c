"""A start of an engine as a record: what its log says, filled up with what the user says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from kvgauge.architecture import ModelArchitecture
from kvgauge.errors import InvalidRequestError, KvgaugeError
from kvgauge.models import Model, ModelLike, load
from kvgauge.replay.figures import Skip
from kvgauge.replay.models import ModelFinder
from kvgauge.replay.records import Record
from kvgauge.verification.facts import Start
from kvgauge.verification.launch import args_text

#: Options of a load -> the flag of each engine; an engine that lacks one refuses it.
_FLAGS: Mapping[str, Mapping[str, str]] = {
    "vllm": {
        "max_model_len": "--max-model-len", "sequences": "--max-num-seqs", "kv_dtype": "--kv-cache-dtype",
        "tp": "--tensor-parallel-size", "pp": "--pipeline-parallel-size", "dp": "--data-parallel-size",
        "dcp": "--decode-context-parallel-size", "state_dtype": "--mamba-ssm-cache-dtype",
        "utilization": "--gpu-memory-utilization",
    },
    "sglang": {
        "max_model_len": "--context-length", "sequences": "--max-running-requests",
        "kv_dtype": "--kv-cache-dtype",
        "tp": "--tp-size", "pp": "--pp-size", "dp": "--dp-size",
    },
    "tensorrt-llm": {
        "max_model_len": "--max_seq_len", "sequences": "--max_batch_size", "kv_dtype": "--kv_cache_dtype",
        "tp": "--tp_size", "pp": "--pp_size",
    },
    "llama.cpp": {
        "max_model_len": "-c", "sequences": "-np", "k_dtype": "-ctk", "v_dtype": "-ctv",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Told:
    """What the user says beside the log.

    Args:
        model: anything ``load`` accepts; None: the one that the log names.
        engine: name of the engine, empty for the one of the log; its version.
        args: the engine's own flags; they win over those of the log.
        gpu: name of the card.
        options: of the load, by their keywords.
        loading: keywords of ``load``.
    """

    model: ModelLike | None = None
    engine: str = ""
    version: str | None = None
    args: str = ""
    gpu: str | None = None
    weights: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    loading: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """A record to be replayed, its model, and why there is none."""

    record: Record
    finder: ModelFinder
    model: Model | None
    missing: KvgaugeError | None = None
    log_args: Mapping[str, str] = field(default_factory=dict)
    own_args: Mapping[str, str] = field(default_factory=dict)
    told_args: str = ""

    def with_flag(self, flag: str, value: str) -> str:
        """Return the flags with one more that the log leaves open."""
        words = {flag: value}
        if flag == "-ctk":
            words["-ctv"] = value
        return joined(self.log_args, {**self.own_args, **words}, self.told_args)


class OneModel(ModelFinder):
    """The finder of a log: whatever a record asks for is the one model."""

    def __init__(self, model: Model | None) -> None:
        super().__init__()
        self.one = model

    def model(self, record: Record) -> Model:
        """Return the model.

        Raises:
            Skip: it is not known.
        """
        del record
        if self.one is None:
            raise Skip("no_shape", "--model")
        return self.one

    def named(self, name: str) -> Model | None:
        """Return the model, whatever its name."""
        del name
        return self.one

    def build(self, name: str, scheme: str) -> Model | None:
        """Return none: a scheme is priced on the model itself."""
        del name, scheme
        return None

    def gguf(self, record: Record) -> ModelArchitecture:
        """Return its layers as llama.cpp has them, the printed metadata first."""
        printed = record.inner("gguf_metadata")
        if printed and self.one is None:
            return super().gguf(Record({"gguf_metadata": printed}))
        if self.one is None:
            raise Skip("no_shape", "--model")
        if self.one.raw.source == "gguf":
            return self.one.architecture
        return super().gguf(Record({**record.fields, "config_ref": "-"}))

    def any_model(self, record: Record) -> Model:
        """Return the model."""
        return self.model(record)


def ask(start: Start, told: Told) -> Asked:
    """Return what to replay for a start.

    Raises:
        InvalidRequestError: an option that the engine lacks.
        KvgaugeError: the model that the user names is not found or not understood.
    """
    fields = start.record()
    engine = told.engine or start.engine
    fields["engine"] = engine
    if told.version:
        fields["engine_version"] = told.version
    elif engine == "llama.cpp" and "era" in fields:
        fields.setdefault("engine_version", fields["era"])
    if told.gpu:
        fields["gpu"] = told.gpu
    if told.weights:
        fields["quantization"] = fields["quant"] = told.weights
    fields["id"] = "log"
    log_args, own_args = _args(start, fields, engine), _options(told, engine)
    fields["engine_args"] = joined(log_args, own_args, told.args)
    model, missing = _model(fields, told)
    if model is not None:
        fields.setdefault("config_ref", model.raw.id)
    return Asked(Record(fields), OneModel(model), model, missing, log_args, own_args, told.args)


def _args(start: Start, fields: Mapping[str, object], engine: str) -> dict[str, str]:
    """Return the flags of the log that rules know; of llama.cpp, what its context prints of itself."""
    args = {flag: value for flag, value in start.args.items() if flag in known_flags(engine)}
    if engine == "vllm":
        for name, flag in (
            ("max_model_len", "--max-model-len"), ("max_num_batched_tokens", "--max-num-batched-tokens"),
            ("gpu_memory_utilization", "--gpu-memory-utilization"),
        ):  # fmt: skip
            if fields.get(name):
                args.setdefault(flag, str(fields[name]))
        # Blocks of the plan follow the printed ones; what overrides them is no setting of the layout.
        args.pop("--num-gpu-blocks-override", None)
    if engine == "llama.cpp":
        args |= _llama_args(fields)
        for flag, own in (("-c", "--ctx-size"), ("-np", "--parallel")):
            # Ollama's own engine prints no context: its runner's command does.
            if flag not in args and (told := start.args.get(own) or start.args.get(flag)):
                args[flag] = told
    return args


def known_flags(engine: str) -> frozenset[str]:
    """Return the flags of an engine that touch its memory; a log may show any others."""
    if engine == "vllm":
        from kvgauge.engines.vllm.flags import SWITCHES, VALUES  # noqa: PLC0415 - one engine is loaded

        opposite = {"--no-" + flag[2:] for flag in SWITCHES if flag.startswith("--")}
        return frozenset((*VALUES, *SWITCHES, *opposite, "--speculative-config"))
    if engine == "sglang":
        from kvgauge.engines.sglang.flags import DRAFTING, SWITCHES, VALUES  # noqa: PLC0415

        return frozenset((*VALUES, *DRAFTING, *SWITCHES))
    if engine == "tensorrt-llm":
        from kvgauge.engines.tensorrt_llm.flags import VALUES  # noqa: PLC0415

        return frozenset(form for name in VALUES for form in (f"--{name}", f"--{name.replace('_', '-')}"))
    return _LLAMA_FLAGS


#: Flags of llama.cpp whose effect its context does not print.
_LLAMA_FLAGS = frozenset({
    "--swa-full", "-nkvo", "--no-kv-offload", "-ts", "--tensor-split", "-sm", "--split-mode", "-ncmoe",
    "--n-cpu-moe",
    "-cmoe", "--cpu-moe", "--spec-draft-n-max", "--draft-max", "--draft", "--mtp", "--spec-type", "-mla",
    "--mla-use",
})  # fmt: skip
#: How each engine is told of tensor-parallel ranks.
RANK_FLAGS = frozenset({
    "-tp", "--tp", "--tp-size", "--tp_size", "--tensor-parallel-size", "--tensor_parallel_size",
})  # fmt: skip
#: Spellings of one setting: what the user says goes before what the log shows.
_ALIKE = (
    {"-tp", "--tp", "--tp-size", "--tp_size", "--tensor-parallel-size", "--tensor_parallel_size"},
    {"-pp", "--pp", "--pp-size", "--pp_size", "--pipeline-parallel-size", "--pipeline_parallel_size"},
    {"-dp", "--dp", "--dp-size", "--data-parallel-size"},
    {"-dcp", "--dcp", "--decode-context-parallel-size"},
    {"--max-model-len", "--context-length", "--max_seq_len", "-c", "--ctx-size"},
    {"-np", "--parallel"}, {"-b", "--batch-size"}, {"-ub", "--ubatch-size"}, {"-fa", "--flash-attn"},
    {"-ctk", "--cache-type-k"}, {"-ctv", "--cache-type-v"}, {"-ngl", "--gpu-layers", "--n-gpu-layers"},
    {"--enable-prefix-caching", "--no-enable-prefix-caching"},
    {"--enable-chunked-prefill", "--no-enable-chunked-prefill"},
)  # fmt: skip


def joined(log: Mapping[str, str], options: Mapping[str, str], told: str) -> str:
    """Return one line of flags: those that the user gives, and of the log those that they leave open."""
    own = {word.partition("=")[0] for word in told.split() if word.startswith("-")}
    given = {flag: value for flag, value in options.items() if not _said(flag, own)}
    kept = {flag: value for flag, value in log.items() if not _said(flag, own | set(given))}
    return " ".join(filter(None, (args_text(kept), args_text(given), told)))


def _said(flag: str, others: set[str]) -> bool:
    return flag in others or any(flag in group and group & others for group in _ALIKE)


def _llama_args(fields: Mapping[str, object]) -> dict[str, str]:
    """Return flags from what a context prints of itself, which holds whatever the command said."""
    streams = fields.get("n_stream")
    seqs = fields.get("n_seq_max")
    cells, context = fields.get("cells"), fields.get("n_ctx")
    total = context or (cells * streams if isinstance(cells, int) and isinstance(streams, int) else cells)
    args = {"-c": str(total)} if total else {}
    if seqs:
        args["-np"] = str(seqs)
        if (streams == 1 and seqs != 1) or str(fields.get("kv_unified")) == "true":
            args["--kv-unified"] = ""
    flash = {"0": "off", "1": "on", "disabled": "off", "enabled": "on", "auto": "auto"}.get(
        str(fields.get("flash_attn"))
    )
    for flag, value in (
        ("-b", fields.get("n_batch")), ("-ub", fields.get("n_ubatch")), ("-fa", flash), ("-ngl",
        fields.get("ngl")),
        ("-ctk", fields.get("k_type")), ("-ctv", fields.get("v_type")),
    ):  # fmt: skip
        if value is not None:
            args[flag] = str(value)
    return args


def _options(told: Told, engine: str) -> dict[str, str]:
    flags = _FLAGS.get(engine, {})
    words: dict[str, str] = {}
    for name, value in told.options.items():
        option = "max_model_len" if name == "context" else name
        if option == "kv_dtype" and engine == "llama.cpp":
            words |= {"-ctk": str(value), "-ctv": str(value)}
        elif option == "mtp" and engine == "vllm":
            words["--speculative-config"] = json.dumps({"method": "mtp", "num_speculative_tokens": value})
        elif option in flags:
            words[flags[option]] = str(value)
        else:
            shown = "--" + name.replace("_", "-")
            raise InvalidRequestError(
                f"verify does not take {shown} for a log of {engine or 'an unknown engine'}",
                hint="give the engine's own flags with --engine-args",
                field=name,
            )
    return words


def _model(fields: dict[str, object], told: Told) -> tuple[Model | None, KvgaugeError | None]:
    loading = dict(told.loading)
    if told.model is not None:
        return load(told.model, **loading), None  # type: ignore[arg-type]
    metadata = fields.get("gguf_metadata")
    missing: KvgaugeError | None = None
    local_files = told.loading.get("local_files") is not False
    for name in _names(fields):
        try:
            # The catalogue and the local caches: a name in a log is no reason to ask a hub.
            return load(name, offline=True, local_files=local_files), None
        except KvgaugeError as error:
            missing = missing or error
    if isinstance(metadata, dict) and metadata:
        try:
            return load(metadata, offline=True), None
        except KvgaugeError as error:
            missing = error
    return None, missing


def _names(fields: Mapping[str, object]) -> list[str]:
    """Return names that the model may be known by: as given, and the end of a path in a hub's cache."""
    name = fields.get("model")
    if not isinstance(name, str) or len(name) > 400:
        return []
    found = []
    cached = name.replace("\\", "/")
    if "models--" in cached:
        found.append(cached.partition("models--")[2].partition("/")[0].replace("--", "/", 1))
    if cached.count("/") == 1 and not cached.startswith(("/", ".")):
        found.append(cached)
    parts = PurePosixPath(cached).parts
    if cached.startswith("/") and len(parts) > 2:
        found.append("/".join(parts[-2:]))
    return found


__all__ = ["Asked", "OneModel", "Told", "ask"]
