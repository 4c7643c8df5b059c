"""What is started: one engine with its flags, on so many machines. Facts of a plan, no file format."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kvgauge.data import read_data
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError, one_line
from kvgauge.launching import gpus_per_machine as usual_gpus

if TYPE_CHECKING:
    from kvgauge.fit_result import FitResult

#: Longest name of a Kubernetes object that leaves room for the suffixes of its pods.
MAX_NAME = 40


@lru_cache(maxsize=1)
def systems_table() -> dict[str, Any]:
    """Return the facts of the systems: files, images, ports, resource names."""
    table: dict[str, Any] = json.loads(read_data("serving_systems.json"))
    return table


@dataclass(frozen=True, slots=True)
class Job:
    """One engine on machines of equal GPUs.

    Args:
        words: the launch command, flag by flag.
        gpus_per_machine: used on each machine.
        num_machines: of one copy of the engine.
        resource: name of a GPU in Kubernetes.
        on_hub: the command loads the model by its name on a hub, not from a folder.
    """

    model: str
    engine: str
    version: str
    words: tuple[str, ...]
    tensor: int
    pipeline: int
    data: int
    gpus_per_machine: int
    num_machines: int
    resource: str
    on_hub: bool = True

    @property
    def name(self) -> str:
        """A name that Kubernetes takes: lower case, digits and dashes.

        >>> Job("Qwen/Qwen3.5-35B-A3B", "vllm", "0.33.0", (), 1, 1, 1, 1, 1, "nvidia.com/gpu").name
        'qwen3-5-35b-a3b'
        """
        last = self.model.rstrip("/").rsplit("/", 1)[-1].lower()
        name = re.sub(r"[^a-z0-9]+", "-", last).strip("-")[:MAX_NAME].strip("-")
        return name if name[:1].isalpha() else f"model-{name}".strip("-")

    @property
    def num_gpus(self) -> int:
        """GPUs of one copy of the engine."""
        return self.gpus_per_machine * self.num_machines

    @property
    def port(self) -> int:
        """Where the engine answers by default."""
        return int(systems_table()["port"][self.engine])

    @property
    def image(self) -> str:
        """The engine's published image of this version."""
        return str(systems_table()["image"][self.engine]).format(version=self.version)

    @property
    def title(self) -> str:
        """What runs where, in one line for a comment."""
        machines = "1 machine" if self.num_machines == 1 else f"{self.num_machines} machines"
        gpus = f"{self.gpus_per_machine} GPU{'s' if self.gpus_per_machine > 1 else ''}"
        return one_line(f"{self.model} with {self.engine} {self.version} on {machines} of {gpus}")

    @property
    def launch(self) -> str:
        """The launch command as one line of a shell."""
        return shlex.join(self.words)


def job_of(result: FitResult, *, gpus_per_machine: int | None = None, vendor: str = "NVIDIA") -> Job:
    """Return the job of an answer of ``fit``.

    Args:
        gpus_per_machine: None: as many as the table says, or all where they are fewer.
        vendor: of the card, for the name of its resource.

    Raises:
        InvalidRequestError: the count is no count, or machines would be left part empty.
        FeatureUnsupportedError: there is no launch command, or no system for this engine.
    """
    request = result.request
    if not result.launch_command or request.engine not in systems_table()["port"]:
        known = ", ".join(sorted(systems_table()["port"]))
        raise FeatureUnsupportedError(
            f"no files can be written for {request.engine}",
            hint=f"--engine is one of {known}",
            field="engine",
        )
    spread = request.parallelism
    most = usual_gpus() if gpus_per_machine is None else gpus_per_machine
    if isinstance(most, bool) or not 1 <= most <= 1024:
        raise InvalidRequestError(
            f"{most!r} is no count of GPUs of a machine", hint="1 to 1024", field="gpus_per_machine"
        )
    per_machine = min(most, spread.num_gpus)
    machines = -(-spread.num_gpus // per_machine)
    if spread.num_gpus % per_machine:
        raise InvalidRequestError(
            f"{spread.num_gpus} GPUs do not fill machines of {per_machine}",
            hint="a count of GPUs that machines share evenly, or another --gpus-per-machine",
            field="gpus_per_machine",
        )
    raw, words = result.model.raw, _words(result)
    return Job(
        raw.id, request.engine, request.engine_version or "", words,
        spread.tensor, spread.pipeline, spread.data, per_machine, machines,
        systems_table()["resources"].get(vendor, systems_table()["resources"]["NVIDIA"]),
        raw.source in ("catalogue", "hub") and raw.id in words,
    )  # fmt: skip


def _words(result: FitResult) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(result.launch_command))
    except ValueError as error:
        raise FeatureUnsupportedError(f"the launch command can't be split: {error}", field="engine") from None
