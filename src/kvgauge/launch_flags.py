"""A launch line as a version of the engine takes it: flags that it lacks are out, and a note says so."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from kvgauge.architecture import Note
from kvgauge.engines.flag_tables import flag_rows
from kvgauge.engines.releases import flag_span, has_flag

#: Short flags -> the long ones that came before them.
_LONGER = {"-hf": "--hf-repo"}


def released_line(command: str, engine: str, version: str | None) -> tuple[str, tuple[Note, ...]]:
    """Return a line without the flags of the tables that a version lacks, and what that leaves unsaid.

    >>> line, notes = released_line("vllm serve a/b --kv-cache-memory-bytes 8 --port 80", "vllm", "0.9.2")
    >>> line, notes[0].code
    ('vllm serve a/b --port 80', 'launch_flag_later')
    """
    fields = _file_fields(engine)
    ours = {row.flag for row in flag_rows(engine)}
    kept: list[str] = []
    lacking: list[str] = []
    in_file: dict[str, str] = {}
    for own in _groups(shlex.split(command)):
        longer = _LONGER.get(own[0], "") if engine == "llama.cpp" else ""
        is_new = bool(longer) and has_flag(engine, own[0], version) is False
        words = [longer, *own[1:]] if is_new else own
        name = words[0].partition("=")[0]
        field = fields.get(name.lstrip("-").replace("-", "_").rpartition(".")[2])
        is_dotted = not name.startswith("-") and "=" in words[0]
        if field and (is_dotted or has_flag(engine, name, version) is False):
            in_file[field] = words[0].partition("=")[2] or (words[1] if len(words) > 1 else "true")
        elif name in ours and has_flag(engine, name, version) is False:
            lacking.append(name)
        else:
            kept += words
    notes = (*_lacking_notes(engine, version, lacking), *_file_notes(engine, version, in_file))
    is_changed = bool(notes) or any(flag in kept for flag in _LONGER.values())
    return shlex.join(kept) if is_changed else command, notes


def _groups(words: list[str]) -> Iterator[list[str]]:
    """Yield each flag with its values; words before the first flag, and words with ``=``, one by one."""
    group: list[str] = []
    for word in words:
        if group and not word.startswith("-") and not ("=" in word and "." in word.partition("=")[0]):
            group.append(word)
            continue
        if group:
            yield group
        group = [word] if word.startswith("-") else []
        if not group:
            yield [word]
    if group:
        yield group


def _file_fields(engine: str) -> Mapping[str, str]:
    if engine != "tensorrt-llm":
        return {}
    from kvgauge.engines.tensorrt_llm.flags import FILE_FIELDS  # noqa: PLC0415 - one engine is loaded

    return FILE_FIELDS


def _lacking_notes(engine: str, version: str | None, flags: list[str]) -> Iterator[Note]:
    for flag in flags:
        span = flag_span(engine, flag)
        values: tuple[tuple[str, str], ...]
        values = (("engine", engine), ("version", version or ""), ("flag", flag))
        text = f"{engine} {version} has no {flag}: the command leaves it out"
        if span is None or not span.since:
            yield Note("launch_flag_lacking", "warning", text, values)
        else:
            text = f"{text}; {span.since} and later have it"
            values = (*values, ("since", span.since))
            yield Note("launch_flag_later", "warning", text, values)


def _file_notes(engine: str, version: str | None, fields: Mapping[str, str]) -> Iterator[Note]:
    """Say what must stand in a file of settings, as one line of YAML."""
    if not fields:
        return
    tree: dict[str, dict[str, str] | str] = {}
    for path, value in fields.items():
        head, dot, tail = path.partition(".")
        if dot:
            inner = tree.setdefault(head, {})
            assert isinstance(inner, dict)  # noqa: S101 - no field is both a value and a mapping
            inner[tail] = value
        else:
            tree[head] = value
    if isinstance(drafting := tree.get("speculative_config"), dict):
        tree["speculative_config"] = {"decoding_type": "MTP", **drafting}
    yaml = _yaml({k: _yaml(v) if isinstance(v, dict) else v for k, v in tree.items()})
    flag = "--config" if has_flag(engine, "--config", version) else "--extra_llm_api_options"
    text = f"no flag of trtllm-serve {version} says the rest: add {flag} FILE, a file with {yaml}"
    values = (("version", version or ""), ("flag", flag), ("yaml", yaml))
    yield Note("launch_needs_file", "warning", text, values)


def _yaml(fields: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name}: {value}" for name, value in fields.items()) + "}"


__all__ = ["released_line"]
