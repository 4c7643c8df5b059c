"""An option as the words of ``kvgauge fit``: what is typed to get the same answer."""

from __future__ import annotations

import json
from collections.abc import Mapping


def fit_words(
    device: Mapping[str, str],
    count: int,
    ranks: Mapping[str, int],
    keywords: Mapping[str, object],
    overrides: Mapping[str, object],
) -> tuple[str, ...]:
    """Return the options after the model.

    Args:
        device: keywords that name it.
        ranks: by option; those of 1 are left out where there are others.
        keywords: the rest, as they were given.

    >>> fit_words({"gpu": "L4"}, 2, {"tp": 2, "pp": 1}, {"context": "32k"}, {})
    ('--gpu', 'L4:2', '--tp', '2', '--context', '32k')
    """
    words: list[str] = []
    for name in ("gpu", "memory", "gpu_file"):
        if name in device:
            value = device[name]
            is_counted = name == "gpu" or (name == "memory" and "gpu" not in device)
            words += [_flag(name), f"{value}:{count}" if is_counted else value]
    several = {axis: number for axis, number in ranks.items() if number > 1}
    for axis, number in (several or {"tp": 1}).items():
        words += [_flag(axis), str(number)]
    for name, told in keywords.items():
        words += [_flag(name)] if told is True else [_flag(name), str(told)]
    for name, changed in overrides.items():
        words += ["--override", f"{name}={json.dumps(changed)}"]
    return tuple(words)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


__all__ = ["fit_words"]
