"""The command that starts the engine for an answer of ``fit``, and what must be started before it.

The engines write their own lines; here the model gets the name that a shell needs, and ranks of more than one
machine are joined.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from kvgauge.architecture import Note
from kvgauge.data import read_data
from kvgauge.dtypes import display_dtype
from kvgauge.engine_models import is_loaded
from kvgauge.engines.flag_tables import flag_for, spellings
from kvgauge.engines.flag_words import dashed, split_words
from kvgauge.engines.releases import has_flag
from kvgauge.launch_flags import released_line
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from kvgauge.fit_asking import Posed
    from kvgauge.sources import RawModel

#: Stands for the address of the machine that the command runs on.
FIRST = "FIRST_MACHINE"
#: Where Ray, and SGLang's ranks, meet.
RAY_PORT, DIST_PORT = 6379, 20000
#: vLLM's flags that leave ranks, and replicas, to Ray, which knows all machines.
RAY_RANKS = ("--distributed-executor-backend", "ray")
RAY_REPLICAS = ("--data-parallel-backend", "ray")
_CONFIG = re.compile(r"(?P<folder>.+)/config\.json")


@dataclass(frozen=True, slots=True)
class LaunchStep:
    """A command and where it runs: on the ``first`` machine, the ``others``, or ``each``."""

    where: str
    command: str

    def to_dict(self) -> dict[str, str]:
        """Return the entry of ``launch_steps``."""
        return {"where": self.where, "command": self.command}


@dataclass(frozen=True, slots=True)
class Launch:
    """How an engine is started.

    Args:
        command: the engine's own.
        steps: every command in order where there are several machines; else empty.
    """

    command: str
    steps: tuple[LaunchStep, ...] = ()
    notes: tuple[Note, ...] = ()


@lru_cache(maxsize=1)
def gpus_per_machine() -> int:
    """Return how many GPUs a machine has where nobody says it."""
    return int(json.loads(read_data("serving_systems.json"))["gpus_per_machine"])


def launch_of(posed: Posed, pool_bytes: int) -> Launch:
    """Return the command for a question, with a pool of so many bytes on each rank."""
    prepared = posed.search.prepared
    if not is_loaded(prepared.notes) or (posed.weighed is not None and posed.weighed.elsewhere):
        return Launch("")
    word, notes = _model_word(posed)
    command = posed.asked.launch_command(word, pool_bytes)
    if not command:
        return Launch("")
    request = prepared.request
    if prepared.setup.kv_memory_bytes is not None and not prepared.engine.reads_gguf:
        command, pool_notes = _with_pool(posed, command, pool_bytes)
        notes = (*notes, *pool_notes)
    command, lacking = released_line(command, request.engine, request.engine_version)
    lines: int = getattr(posed.asked, "lines", 1)
    notes = (*notes, *lacking, *(_lines_note(lines) for _ in range(lines > 1)))
    ranks, most = request.parallelism.num_gpus // lines, gpus_per_machine()
    if ranks <= most:
        return Launch(command, (), notes)
    machines = -(-ranks // most)
    engine = prepared.request.engine
    if engine == "vllm":
        added = (*ray_flags(command, request.parallelism.data),)
        if RAY_REPLICAS[0] in added and has_flag(engine, RAY_REPLICAS[0], request.engine_version) is False:
            return Launch("", (), (*notes, _one_machine_note(request.engine_version or "")))
        command = " ".join((command, *added))
    return Launch(command, tuple(_steps(engine, command, machines)), (*notes, _machines_note(machines, most)))


def ray_flags(said: Container[str], replicas: int) -> Iterator[str]:
    """Yield what a line for several machines lacks: without the second flag all replicas start on one.

    Args:
        said: the line, or its words.
    """
    if RAY_RANKS[0] not in said:
        yield from RAY_RANKS
    if replicas > 1 and RAY_REPLICAS[0] not in said:
        yield from RAY_REPLICAS


def _steps(engine: str, command: str, machines: int) -> Iterator[LaunchStep]:
    """Yield what starts an engine on several machines; nothing where that is not known here."""
    if engine == "vllm":
        yield LaunchStep("first", f"ray start --head --port={RAY_PORT}")
        yield LaunchStep("others", f"ray start --address={FIRST}:{RAY_PORT}")
        yield LaunchStep("first", command)
    elif engine == "sglang":
        joined = f"--nnodes {machines} --node-rank NUMBER --dist-init-addr {FIRST}:{DIST_PORT}"
        yield LaunchStep("each", f"{command} {joined}")


def _one_machine_note(version: str) -> Note:
    flag = RAY_REPLICAS[0]
    text = (
        f"vllm {version} has no {flag}: it starts the replicas of a line on one machine, which these outgrow"
    )
    return Note("launch_on_one_machine", "warning", text, (("version", version), ("flag", flag)))


def _machines_note(machines: int, gpus: int) -> Note:
    text = f"the ranks lie on {machines} machines of {gpus} GPUs, all of which must be started"
    values = (("machines", str(machines)), ("gpus", str(gpus)))
    return Note("launch_machines", "info", text, values)


def _with_pool(posed: Posed, command: str, pool_bytes: int) -> tuple[str, tuple[Note, ...]]:
    """Return the command with a pool that was given, in the words that the version has for it."""
    request, pool = posed.search.prepared.request, posed.asked.pool(pool_bytes)
    engine, version = request.engine, request.engine_version
    has_parts = pool.swa_tokens is not None or pool.state_slots is not None
    counts = (
        ("kv_memory", posed.search.prepared.setup.kv_memory_bytes),
        ("pool_blocks", pool.num_blocks),
        ("pool_tokens", None if has_parts else pool.capacity_tokens),
    )
    said = {dashed(word)[0] for word in split_words(command)}
    for option, count in counts:
        if not said.isdisjoint(spellings(engine, option)):
            return command, ()
        flag = flag_for(engine, option, version)
        if flag is not None and count:
            return f"{command} {flag} {count}", ()
    option, count = counts[-1]
    if count and (flags := spellings(engine, option)):
        return f"{command} {flags[0]} {count}", ()  # in a file, where no version has it as a flag
    text = "no flag of the command states the pool that was given: the engine computes its own"
    return command, (Note("launch_pool_unsaid", "warning", text),)


def _lines_note(lines: int) -> Note:
    text = f"the command starts one of {lines} replicas: start it once for each, on GPUs of its own"
    return Note("launch_replicas", "info", text, (("count", str(lines)),))


def _model_word(posed: Posed) -> tuple[str, tuple[Note, ...]]:
    """Return the name of the model on the command line, and a note where it stands for a path."""
    raw, scheme = posed.question.model.raw, posed.question.scheme
    reads_gguf = posed.search.prepared.engine.reads_gguf
    if reads_gguf and raw.source == "gguf" and scheme is None:
        return raw.id, ()
    if not reads_gguf and scheme is None and (name := _loadable(raw)):
        return name, ()
    base = _base_name(raw)
    if reads_gguf:
        dtype = scheme or display_dtype(posed.search.prepared.model.architecture.model_dtype or "f16")
        word = f"{base}-{_file_word(dtype).upper()}.gguf"
    else:
        word = f"./{base}-{_file_word(scheme)}" if scheme else f"./{base}"
    text = f"{word} in the command stands for the path of that model"
    return word, (Note("launch_model_path", "info", text, (("word", word),)),)


def _loadable(raw: RawModel) -> str:
    """Return the name under which an engine loads a model: on a hub, or a folder; empty where it has none."""
    if raw.source in ("catalogue", "hub"):
        return raw.id
    if raw.source != "file":
        return ""
    found = _CONFIG.fullmatch(raw.id)
    return found["folder"] if found else "" if raw.id.endswith(".json") else raw.id


def _base_name(raw: RawModel) -> str:
    last = raw.id.rstrip("/").rpartition("/")[2].partition(":")[0]
    last = re.sub(r"(?:\.json|\.gguf)$", "", last)
    return re.sub(r"[^\w.+-]+", "-", last).strip("-") or "MODEL"


def _file_word(scheme: str) -> str:
    return re.sub(r"[^\w.]+", "-", scheme.partition(",")[0])


__all__ = [
    "DIST_PORT", "FIRST", "RAY_PORT", "Launch", "LaunchStep", "gpus_per_machine", "launch_of", "ray_flags",
]  # fmt: skip
