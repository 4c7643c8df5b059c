"""What this release knows: models, accelerators and engines, as the objects of the JSON contract."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from kvgauge.data import read_data
from kvgauge.engines.index import ENGINES

if TYPE_CHECKING:
    from kvgauge.hardware import Accelerator


def find_models(asked: str) -> list[str]:
    """Return the names of the catalogue that hold a filter, in any case; all for an empty one.

    >>> find_models("qwen3-8b")[:1]
    ['Qwen/Qwen3-8B']
    """
    from kvgauge.sources.catalogue import model_names  # noqa: PLC0415 - engines need no names

    return [name for name in model_names() if asked.lower() in name.lower()]


@lru_cache(maxsize=2048)
def describe_model(name: str) -> dict[str, object]:
    """Return the row of a model: what it is, and what one sequence of the default context keeps."""
    from kvgauge.errors import KvgaugeError  # noqa: PLC0415
    from kvgauge.sizing import size  # noqa: PLC0415
    from kvgauge.units import json_number  # noqa: PLC0415

    try:
        result = size(name, offline=True, no_weights=True)
    except KvgaugeError as error:
        return {"id": name, "error": {"code": error.code, "message": error.message}}
    architecture, cache = result.model.architecture, result.cache
    return {
        "id": name,
        "model_type": architecture.model_type,
        "family": cache.family,
        "num_layers": architecture.num_layers,
        "context_limit_tokens": architecture.context_limit_tokens,
        "context_tokens": result.request.workload.context_tokens,
        "bytes_per_sequence": cache.bytes_per_sequence,
        "fixed_bytes_per_sequence": cache.fixed_bytes_per_sequence,
        "growth_bytes_per_token": json_number(cache.growth_bytes_per_token),
        "source": result.model.raw.provenance,
    }


def models_answer(asked: str = "") -> dict[str, object]:
    """Return the ``kvgauge.models/1`` object of the models that hold a filter."""
    return {"schema": "kvgauge.models/1", "models": [describe_model(name) for name in find_models(asked)]}


class EngineRule(NamedTuple):
    """What an engine does from a version on, and where that is known from.

    Args:
        texts: the sentence by language.
    """

    since: str
    texts: dict[str, str]
    source: str


@lru_cache(maxsize=1)
def _engine_rules() -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = json.loads(read_data("engine_rules.json"))
    return found


def rules_of(engine: str) -> tuple[EngineRule, ...]:
    """Return the rules of an engine, oldest first; none of theory, which has no version.

    >>> rules_of("vllm")[1].since
    '0.7.0'
    """
    rows = _engine_rules()[engine]
    return tuple(EngineRule(r["since"], {k: r[k] for k in ("en", "zh")}, r["source"]) for r in rows)


def engines_answer() -> dict[str, object]:
    """Return the ``kvgauge.engines/1`` object."""
    rows = [
        {
            "name": engine.name,
            "versions": list(engine.versions),
            "newest_version": engine.versions[-1] if engine.versions else None,
            "summary": engine.summary,
            "source": engine.source,
            "rules": [
                {"since": rule.since, "rule": rule.texts["en"], "source": rule.source}
                for rule in rules_of(engine.name)
            ],
        }
        for engine in ENGINES.values()
    ]
    return {"schema": "kvgauge.engines/1", "engines": rows}


def find_gpus(asked: str) -> Sequence[Accelerator]:
    """Return the devices that hold every word of a filter, else those that it names; all for an empty one.

    >>> [device.id for device in find_gpus("h200 nvl")]
    ['h200-nvl-141gb']
    """
    from kvgauge.hardware import accelerator, all_accelerators, matches  # noqa: PLC0415

    words = asked.lower().split()
    found = [device for device in all_accelerators() if all(word in _searched(device) for word in words)]
    return found or [accelerator(name) for name in matches(asked)]


def _searched(device: Accelerator) -> str:
    """What a filter is looked for in."""
    parts = (device.id, device.name, *device.aliases, device.vendor, device.kind, device.architecture or "")
    return "\n".join(parts).lower()


def gpus_answer(asked: str = "") -> dict[str, object]:
    """Return the ``kvgauge.gpus/1`` object of the devices that a filter finds."""
    return {"schema": "kvgauge.gpus/1", "gpus": [device.to_dict() for device in find_gpus(asked)]}
