"""The options of every command, as a table.

``LOAD`` options are shared by size, compare and explain; ``OUTPUT`` options by all commands. ``LATER`` are
options of other commands: they are known, and refused with an error that names those.
"""

from __future__ import annotations

from kvgauge.cli.option_row import OptionRow
from kvgauge.cli.topics import COMMANDS as LEARN_COMMANDS
from kvgauge.cli.topics import OPTIONS as LEARN

LOAD = (
    OptionRow("context", ("--context",), "load", metavar="TOKENS"),
    OptionRow(
        "max_model_len", ("--max-model-len", "--context-length", "--ctx-size", "-c"), "load", metavar="TOKENS"
    ),
    OptionRow(
        "sequences",
        ("--sequences", "--batch-size", "--concurrency"),
        "load",
        "count",
        "N",
    ),
    OptionRow("encoder_tokens", ("--encoder-tokens",), "load", metavar="TOKENS"),
    OptionRow("image_tokens", ("--image-tokens",), "load", metavar="TOKENS"),
    OptionRow("shared_prefix", ("--shared-prefix",), "load", metavar="TOKENS"),
    OptionRow("mtp", ("--mtp",), "load", "count", "[N]"),
    OptionRow("kv_dtype", ("--kv-dtype", "--kv-cache-dtype"), "dtypes", metavar="DTYPE"),
    OptionRow("k_dtype", ("--k-dtype", "--cache-type-k", "-ctk"), "dtypes", metavar="DTYPE"),
    OptionRow("v_dtype", ("--v-dtype", "--cache-type-v", "-ctv"), "dtypes", metavar="DTYPE"),
    OptionRow("state_dtype", ("--state-dtype", "--mamba-ssm-cache-dtype"), "dtypes", metavar="DTYPE"),
    OptionRow("index_dtype", ("--index-dtype",), "dtypes", metavar="DTYPE"),
    OptionRow("weights", ("--weights",), "weights", metavar="SCHEME"),
    OptionRow("no_weights", ("--no-weights",), "weights", "flag"),
    OptionRow("tp", ("--tp", "--tensor-parallel-size", "--tp-size", "-tp"), "parallel", "count", "N"),
    OptionRow("pp", ("--pp", "--pipeline-parallel-size", "--pp-size", "-pp"), "parallel", "count", "N"),
    OptionRow("dp", ("--dp", "--data-parallel-size", "--dp-size", "-dp"), "parallel", "count", "N"),
    OptionRow("ep", ("--ep", "--expert-parallel-size", "--ep-size"), "parallel", "count", "N"),
    OptionRow("dcp", ("--dcp", "--decode-context-parallel-size", "-dcp"), "parallel", "count", "N"),
    OptionRow("engine", ("--engine",), "engine", metavar="NAME[@VERSION]"),
    OptionRow("engine_args", ("--engine-args",), "engine"),
    OptionRow("command", ("--command",), "engine", metavar="LINE"),
    OptionRow("override", ("--override",), "engine", "list", "KEY=VALUE"),
    OptionRow("revision", ("--revision",), "engine", metavar="NAME"),
    OptionRow("refresh", ("--refresh",), "engine", "flag"),
)

#: Options of ``fit`` beside the load.
FIT = (
    OptionRow("gpu", ("--gpu",), "device", metavar="NAME[:COUNT]"),
    OptionRow("memory", ("--memory",), "device", metavar="SIZE[:COUNT]"),
    OptionRow("gpu_file", ("--gpu-file",), "device", metavar="FILE"),
    OptionRow("kv_memory", ("--kv-memory",), "device", metavar="SIZE"),
    OptionRow("utilization", ("--utilization", "--gpu-memory-utilization"), "device", metavar="SHARE"),
    OptionRow("reserve", ("--reserve",), "device", metavar="SIZE"),
    OptionRow("check", ("--check",), "device", "flag"),
)

#: Options of ``plan`` beside those of ``fit``.
PLAN = (
    OptionRow("prompt_tokens", ("--prompt-tokens",), "load", metavar="TOKENS"),
    OptionRow("output_tokens", ("--output-tokens",), "load", metavar="TOKENS"),
    OptionRow("price_file", ("--price-file",), "device", metavar="FILE"),
    OptionRow("split", ("--split",), "split", metavar="KIND,..."),
    OptionRow("sram", ("--sram",), "split", metavar="NAME"),
    OptionRow("host_memory", ("--host-memory",), "split", metavar="SIZE"),
    OptionRow("network", ("--network",), "split", metavar="RATE"),
    OptionRow("emit", ("--emit",), "output", metavar="[SYSTEM=]FOLDER"),
    OptionRow("gpus_per_machine", ("--gpus-per-machine",), "output", "count", "N"),
    OptionRow("top", ("--top",), "output", "count", "N"),
)

#: Options of ``verify`` beside those of a load that a log may leave open.
VERIFY = (
    OptionRow("model", ("--model",), "engine", metavar="MODEL"),
    *(row for row in FIT if row.name in ("gpu", "utilization")),
    *(
        row for row in LOAD
        if row.name not in ("encoder_tokens", "image_tokens", "shared_prefix", "index_dtype",
                            "no_weights", "ep")
    ),
)  # fmt: skip

CONFIGS = OptionRow("configs", ("--configs",), "engine", metavar="FOLDER")

SERVE = (
    OptionRow("host", ("--host",), "serve", metavar="ADDRESS"),
    OptionRow("port", ("--port",), "serve", "count", "N"),
)

WHY = OptionRow("why", ("--why",), "output", "flag")
MARKDOWN = OptionRow("markdown", ("--markdown",), "output", "flag")
NDJSON = OptionRow("ndjson", ("--ndjson",), "output", metavar="FILE")

OUTPUT = (
    OptionRow("json", ("--json",), "output", "flag"),
    OptionRow("lang", ("--lang",), "output", choices=("en", "zh")),
    OptionRow("units", ("--units",), "output", choices=("gib", "gb", "bytes")),
    OptionRow("offline", ("--offline",), "output", "flag"),
    OptionRow("color", ("--color",), "output", choices=("auto", "always", "never")),
)

_LATER_VALUES = (
    "--gpu", "--gpu-file", "--memory", "--kv-memory", "--utilization", "--reserve",
    "--emit", "--price-file",
)  # fmt: skip

LATER = (
    *(OptionRow(flag.lstrip("-").replace("-", "_"), (flag,), "later") for flag in _LATER_VALUES),
    OptionRow("check", ("--check",), "later", "flag"),
)

#: Of those, the ones that ``fit`` does not have either.
_LATER_IN_FIT = tuple(row for row in LATER if row.name not in {own.name for own in FIT})

#: Options that topics alone have.
_OF_TOPICS = tuple(row for row in LEARN if row.name not in {VERIFY[0].name, *(own.name for own in LOAD)})
_LATER_IN_PLAN = tuple(row for row in _LATER_IN_FIT if row.name not in {own.name for own in PLAN})
_PLAN_FIT = tuple(row for row in FIT if row.name != "kv_memory")

ALL = (
    *LOAD, *FIT, *PLAN, VERIFY[0], CONFIGS, WHY, MARKDOWN, NDJSON, *SERVE, *OUTPUT, *_LATER_IN_PLAN,
    *_OF_TOPICS,
)  # fmt: skip

VERB_OPTIONS: dict[str, tuple[OptionRow, ...]] = {
    "size": (*LOAD, WHY, MARKDOWN, NDJSON, *OUTPUT, *LATER),
    "compare": (*LOAD, MARKDOWN, *OUTPUT, *LATER),
    "explain": (*LOAD, MARKDOWN, *OUTPUT, *LATER),
    "fit": (*FIT, *LOAD, MARKDOWN, *OUTPUT, *_LATER_IN_FIT),
    "plan": (*_PLAN_FIT, *PLAN, *LOAD, MARKDOWN, NDJSON, *OUTPUT, *_LATER_IN_PLAN),
    "verify": (*VERIFY, MARKDOWN, *OUTPUT),
    "accuracy": (CONFIGS, MARKDOWN, *OUTPUT),
    "models": (MARKDOWN, *OUTPUT),
    "gpus": (MARKDOWN, *OUTPUT),
    "engines": OUTPUT,
    "doctor": OUTPUT,
    "completion": OUTPUT,
    "learn": OUTPUT,
    **{command: (*topic.options, *OUTPUT) for command, topic in LEARN_COMMANDS.items()},
    "serve": (*SERVE, *OUTPUT),
}

BY_FLAG = {flag: row for row in ALL for flag in row.flags}

#: Every spelling that is followed by a value.
VALUE_FLAGS = frozenset(flag for flag, row in BY_FLAG.items() if row.takes_value)
