"""A pasted launch line as a request: which engine, which model, which of its flags touch memory."""

from __future__ import annotations

import re

from kvgauge.errors import InvalidRequestError
from kvgauge.verification.asking import known_flags
from kvgauge.verification.launch import args_text, launch_facts

MAX_COMMAND = 20_000

#: Programs that start an engine, wherever in a line they stand.
_PROGRAM = re.compile(
    r"(?<!\S)(?:vllm serve|vllm\.entrypoints\.\S{1,60}|sglang\.launch_server|trtllm-serve|"
    r"(?:[\w./-]{0,120}/)?llama-(?:server|cli))(?!\S)"
)
#: Images of which the words behind them are flags of an engine -> the program that they start.
_IMAGE = re.compile(r"(?<!\S)(?:[\w.:-]{1,60}/)?vllm/vllm-openai(?::[\w.-]{1,60})?(?!\S)")
_IMAGE_PROGRAM = "vllm serve"


def read_command(text: str) -> dict[str, object]:
    """Return the ``kvgauge.command/1`` object of a launch line; nothing is run.

    Raises:
        InvalidRequestError: it starts no engine that is known.

    >>> read_command("vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2 --port 80")["engine_args"]
    '--tensor-parallel-size 2'
    """
    if len(text) > MAX_COMMAND:
        raise InvalidRequestError(
            f"the command is longer than {MAX_COMMAND} characters",
            hint="give the line alone",
            field="command",
        )
    line = " ".join(re.sub(r"\\\s*\n", " ", text).split())
    found = _PROGRAM.search(line)
    image = None if found is not None else _IMAGE.search(line)
    rest = line[found.start() :] if found is not None else ""
    if image is not None:
        rest = f"{_IMAGE_PROGRAM} {line[image.end() :]}"
    facts = launch_facts(rest) if rest else None
    if facts is None:
        raise InvalidRequestError(
            "the command starts no engine that is known",
            hint="vllm serve, sglang.launch_server, trtllm-serve and llama-server are known",
            field="command",
        )
    return _object(*facts)


def _object(engine: str, facts: dict[str, object]) -> dict[str, object]:
    args = facts.get("args")
    given = {str(name): str(value) for name, value in args.items()} if isinstance(args, dict) else {}
    read = _memory_flags(engine)
    used = {name: value for name, value in given.items() if name in read}
    model = facts.get("model")
    return {
        "schema": "kvgauge.command/1",
        "engine": engine,
        "model": model if isinstance(model, str) else None,
        "engine_args": args_text(used),
        "ignored": sorted(name for name in given if name not in read),
    }


def _memory_flags(engine: str) -> frozenset[str]:
    """Return the flags of an engine that its rules read."""
    if engine != "llama.cpp":
        return known_flags(engine)
    from kvgauge.engines.llamacpp.flags import SETTINGS  # noqa: PLC0415 - one engine is loaded

    return frozenset(word for _, words in SETTINGS.values() for word in words)
