"""Files of a job: all or none, and none over another."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kvgauge.emit.jobs import systems_table
from kvgauge.emit.kubernetes import inference_service, leader_worker_set, to_yaml
from kvgauge.emit.shell import ray_script, rpc_script, sglang_script
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError

if TYPE_CHECKING:
    from kvgauge.emit.jobs import Job

#: Systems that take Kubernetes objects.
_KUBERNETES = frozenset({"leaderworkerset", "kserve"})


class Emitted(NamedTuple):
    """A file that was written."""

    system: str
    path: Path


_KSERVE_COMMENT = "KServe's runtime image brings its own vLLM: the plan holds for the version named above."
_KSERVE_VOLUME = "The model is read from a volume of this name, under hf/."

#: What a list of systems is written with, and hardly a folder.
_WORDS = re.compile(r"[a-z,-]+")

_RENDERERS: Mapping[str, Callable[[Job], str]] = {
    "ray": ray_script,
    "sglang": sglang_script,
    "llama-rpc": rpc_script,
    "leaderworkerset": lambda job: to_yaml(leader_worker_set(job), job.title),
    "kserve": lambda job: to_yaml(
        inference_service(job),
        "\n".join([job.title, _KSERVE_COMMENT, *_volume_comment(job)]),
    ),
}


def _volume_comment(job: Job) -> Iterator[str]:
    if job.num_machines > 1 or not job.on_hub:
        yield _KSERVE_VOLUME


def systems_of(engine: str) -> tuple[str, ...]:
    """Return the systems that start an engine.

    >>> systems_of("sglang")
    ('sglang', 'leaderworkerset')
    """
    return tuple(name for name, row in systems_table()["systems"].items() if engine in row["engines"])


def render_files(job: Job, systems: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the text of each file by its name; where no system is named, of all that can start the job.

    Raises:
        KvgaugeError: a named system is not known, or does not start this engine or this job.
    """
    known = systems_of(job.engine)
    for name in systems:
        if name not in known:
            raise InvalidRequestError(
                f"{name} does not start {job.engine}", hint=f"one of {', '.join(known)}", field="emit"
            )
    table = systems_table()["systems"]
    if systems:
        return {table[name]["file"]: _RENDERERS[name](job) for name in systems}
    return {table[name]["file"]: text for name in known if (text := _if_possible(name, job)) is not None}


def _if_possible(name: str, job: Job) -> str | None:
    try:
        return _RENDERERS[name](job)
    except FeatureUnsupportedError:
        return None


def parse_target(text: str, own: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Return (systems, folder) of ``FOLDER``, ``SYSTEM=FOLDER`` or ``SYSTEM,SYSTEM=FOLDER``.

    Args:
        own: systems of the engine, of which ``kubernetes`` means those that take objects, ``all`` all.

    Raises:
        InvalidRequestError: no folder is named, or a system that is not known.

    >>> parse_target("kubernetes=out", ("ray", "kserve")), parse_target("out/qwen", ())
    ((('kserve',), 'out'), ((), 'out/qwen'))
    """
    words, equals, folder = text.partition("=")
    if not text.strip():
        raise InvalidRequestError("--emit names no folder", hint="--emit FOLDER", field="emit")
    if text.startswith("-"):
        raise InvalidRequestError(
            f"--emit {text} names an option, no folder", hint=f"a folder of such a name is written ./{text}",
            field="emit",
        )  # fmt: skip
    names = [name.strip() for name in words.split(",")]
    known = {*systems_table()["systems"], "kubernetes", "all"}
    if equals and not set(names) <= known and re.fullmatch(_WORDS, words):
        wrong = next(name for name in names if name not in known)
        raise InvalidRequestError(
            f"--emit knows no system {wrong or words}",
            hint=f"one of {', '.join(own)}; a folder of such a name is written ./{text}",
            field="emit",
        )
    if not equals or not set(names) <= known:
        if not equals and text in known:
            raise InvalidRequestError(
                f"--emit {text} names no folder", hint=f"--emit {text}=FOLDER", field="emit"
            )
        return (), text
    if not folder:
        raise InvalidRequestError("--emit names no folder", hint=f"--emit {words}=FOLDER", field="emit")
    chosen = dict.fromkeys(one for name in names for one in _meant(name, own))
    return tuple(chosen), folder


def _meant(name: str, own: tuple[str, ...]) -> tuple[str, ...]:
    if name == "all":
        return own
    if name == "kubernetes":
        return tuple(one for one in own if one in _KUBERNETES)
    return (name,)


def emit(job: Job, target: str) -> tuple[Emitted, ...]:
    """Write the files of a job and return where they are.

    Raises:
        InvalidRequestError: the target is malformed, a file is there already, or can't be written.
    """
    systems, folder = parse_target(target, systems_of(job.engine))
    files = render_files(job, systems)
    place = Path(folder)
    taken = next((name for name in files if (place / name).exists()), None)
    if taken is not None:
        raise InvalidRequestError(
            f"{place / taken} is there already", hint="name another folder, or remove it", field="emit"
        )
    by_file = {row["file"]: name for name, row in systems_table()["systems"].items()}
    try:
        place.mkdir(parents=True, exist_ok=True)
        _write_all({place / name: text for name, text in files.items()})
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidRequestError(
            f"can't write to {folder}: {reason}", hint="name a folder of yours", field="emit"
        ) from None
    return tuple(Emitted(by_file[name], place / name) for name in files)


def _write_all(files: Mapping[Path, str]) -> None:
    """Write all files or none; a file that appeared meanwhile is not written over. Scripts may be run."""
    written: list[Path] = []
    try:
        for path, text in files.items():
            mode = 0o777 if path.suffix == ".sh" else 0o666  # less the umask
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            written.append(path)
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
