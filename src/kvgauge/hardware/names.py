"""Devices by name: which row of the catalogue a text means, how many, and what else it may have been."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from kvgauge.architecture import Note
from kvgauge.data import read_data
from kvgauge.errors import InvalidRequestError
from kvgauge.hardware.accelerators import Accelerator, accelerator, of_memory
from kvgauge.hardware.words import MAX_NAME, NameWords, name_words
from kvgauge.units import format_bytes, parse_size

MAX_COUNT = 65_536

#: Ways to write a number of devices; what is no number at all is looked for behind a colon alone.
_COUNTED = (
    r"(?P<name>.+?)\s*:\s*(?P<count>[-+\d.,_eE]{0,40})",
    r"(?P<count>-?\d{1,20})\s*[x×*]\s*(?P<name>.+)",
    r"(?P<name>.+?)\s*[x×*]\s*(?P<count>-?\d{1,20})",
    r"(?P<count>\d{1,5})\s+(?P<name>.+)",
)  # fmt: skip
_SIZE = r"\d[\d.,]*\s*(?:[kmgt]i?b?|b)?"
_LIST_HINT = "'kvgauge gpus' lists what is known; --memory 80GiB takes any device by its memory"
_MAX_FORMS = 6


class NameRow(NamedTuple):
    """What tells a device by its name: a set of ``cores`` must be in it, ``words`` may."""

    id: str
    vendor: str
    cores: tuple[frozenset[str], ...]
    words: frozenset[str]

    def core_in(self, name: NameWords) -> frozenset[str] | None:
        """Return the largest core that a name holds; None for another device or another maker's."""
        if name.vendors and self.vendor not in name.vendors:
            return None
        held = [core for core in self.cores if core <= name.words]
        return max(held, key=len, default=None)


@lru_cache(maxsize=1)
def name_rows() -> tuple[NameRow, ...]:
    """Return the names of the catalogue; no row is read."""
    return tuple(
        NameRow(id_, vendor, tuple(map(frozenset, cores)), frozenset(words.split()))
        for id_, vendor, cores, words in json.loads(read_data("accelerator_names.json"))
    )


@lru_cache(maxsize=256)
def matches(text: str) -> tuple[str, ...]:
    """Return the ids that a name fits, the one that it stands for first.

    What stands in brackets is left out where nothing is known by all of the name.

    >>> matches("NVIDIA H100 80GB HBM3"), matches("H100")[0], matches("H100 with wings")
    (('h100-sxm5-80gb',), 'h100-sxm5-80gb', ())
    """
    found = _matches(name_words(text))
    if not found and "(" in text:
        found = _matches(name_words(re.sub(r"\([^()]*\)?", " ", text)))
    return found


def _matches(name: NameWords) -> tuple[str, ...]:
    if not name.words:
        return ()
    fitting = [(row, core) for row, core in _with_core(name) if name.words - core <= row.words]
    largest = max((len(core) for _, core in fitting), default=0)
    return tuple(row.id for row, core in fitting if len(core) == largest)


def _with_core(name: NameWords) -> Iterator[tuple[NameRow, frozenset[str]]]:
    for row in name_rows():
        core = row.core_in(name)
        if core is not None:
            yield row, core


def parse_gpu(text: str, extra: Sequence[Accelerator] = ()) -> tuple[Accelerator, int | None]:
    """Return the device that a text names, and how many, None where the text says no number.

    Understood are names as people, nvidia-smi, torch, rocm-smi and Metal write them, with or without the
    maker, and ``2x H100``, ``H100:8``, ``8 x h200``, ``RTX 3090 x2``. A name that several forms bear stands
    for the first of them in the catalogue: A100 and H100 for SXM with 80 GB, most for the smallest memory.
    ``local`` asks this machine. ``notes`` of the device say how the name was read.

    Args:
        extra: devices of the user's own, which go before the catalogue.

    Raises:
        InvalidRequestError: no such device, another form than there is, or an absurd number.

    >>> device, count = parse_gpu("8 x h200")
    >>> device.name, count
    ('H200 SXM', 8)
    """
    _check_text(text)
    if text.strip().lower() == "local":
        from kvgauge.hardware.local import local_gpu  # noqa: PLC0415 - asked for by name alone

        return local_gpu()
    if "," in text and (several := _several(text.strip()[:80], extra)) is not None:
        raise several
    for name, count in _readings(text):
        device = _find(name, extra)
        if device is not None:
            return device, None if count is None else _checked(count, text)
    raise _unknown(text, extra)


def _check_text(text: object) -> None:
    if not isinstance(text, str) or not text.strip():
        raise InvalidRequestError("the name of a device is empty", hint=_LIST_HINT, field="gpu")
    if len(text) > MAX_NAME:
        raise InvalidRequestError(
            f"the name of a device is longer than {MAX_NAME} characters", hint=_LIST_HINT, field="gpu"
        )


def _readings(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the ways to take a text apart: all of it a name, or a name and a number."""
    plain = text.strip()
    if not plain.endswith(":"):
        yield plain, None
    for pattern in _COUNTED:
        match = re.fullmatch(pattern, plain, re.IGNORECASE)
        if match:
            yield match["name"].strip(), match["count"]


def _checked(count: str, text: str, field: str = "gpu") -> int:
    shown = count or "''"
    if not re.fullmatch(r"\d{1,5}", count) or not 1 <= int(count) <= MAX_COUNT:
        raise InvalidRequestError(
            f"{text[:80]!r}: {shown} is no number of devices",
            hint=f"1 to {MAX_COUNT}",
            field=field,
        )
    return int(count)


def _find(name: str, extra: Sequence[Accelerator]) -> Accelerator | None:
    own = _own(name, extra)
    if own is not None:
        return own
    found = matches(name)
    return _noted(found, name) if found else None


def _own(name: str, extra: Sequence[Accelerator]) -> Accelerator | None:
    words = name_words(name).words
    for device in extra:
        known = (device.id, device.name, *device.aliases)
        if any(one.lower() == name.lower() or (words and name_words(one).words == words) for one in known):
            return device
    return None


def _noted(found: Sequence[str], name: str) -> Accelerator:
    """The first form, with notes on the others and on what limits its memory."""
    device = accelerator(found[0])
    notes: list[Note] = []
    if len(found) > 1:
        others = _listed(found[1:])
        shown = (("asked", name[:80]), ("name", device.name), ("others", others))
        message = f"{name[:80]} is read as {device.name}; other forms are {others}"
        notes.append(Note("gpu_form_assumed", "info", message, shown))
    if device.unified is not None and device.label_bytes is not None:
        sizes = (device.memory_bytes, device.label_bytes)
        part, whole = (format_bytes(size) for size in sizes)
        message = (
            f"{device.name}: a runtime is given {part} of the {whole} that the system shares; "
            "where the limit was moved, give --memory"
        )
        shown = (("name", device.name), ("part", part), ("whole", whole))
        notes.append(Note("gpu_memory_shared", "info", message, shown, sizes))
    return replace(device, notes=tuple(notes)) if notes else device


def _listed(ids: Sequence[str]) -> str:
    shown = ", ".join(accelerator(id_).name for id_ in ids[:_MAX_FORMS])
    more = len(ids) - _MAX_FORMS
    return f"{shown} and {more} more" if more > 0 else shown


def _unknown(text: str, extra: Sequence[Accelerator]) -> InvalidRequestError:
    """Return the error of a name that nothing is known by, with the nearest ones."""
    shown = text.strip()[:80]
    if re.fullmatch(_SIZE, shown, re.IGNORECASE):
        return InvalidRequestError(
            f"{shown!r} is a size, not a device", hint=f"--memory {shown} takes it", field="gpu"
        )
    if re.search(r"\b\dg\.\d{1,3}gb\b", shown, re.IGNORECASE):
        return InvalidRequestError(
            f"{shown!r} is a slice of a device", hint="--memory takes a slice by its own memory", field="gpu"
        )
    if (several := _several(shown, extra)) is not None:
        return several
    for name, _ in reversed(list(_readings(shown))):
        forms = [row.id for row, _ in _with_core(name_words(name))]
        if forms:
            return InvalidRequestError(
                f"no device of that family is called {shown!r}",
                hint=f"known are {_listed(forms)}",
                field="gpu",
            )
    near = near_names(shown, extra)
    hint = f"did you mean {' or '.join(near)}? Else {_LIST_HINT}" if near else _LIST_HINT
    return InvalidRequestError(f"no device is known by the name {shown!r}", hint=hint, field="gpu")


def _several(shown: str, extra: Sequence[Accelerator]) -> InvalidRequestError | None:
    """Return the error of a text that names several kinds of devices, or all; None where it does not."""
    if any(re.fullmatch(r"all(?:\s*:.*)?", part.strip(), re.IGNORECASE) for part in shown.split(",")):
        return InvalidRequestError(
            f"{shown!r} names no one device",
            hint="'kvgauge plan MODEL --gpu all' looks at all; no number, no other name beside it",
            field="gpu",
        )
    if not re.search(r"\S\s*[+;,]\s*\S", shown) or len(re.split(r"[+;,]", shown)) >= _MAX_FORMS:
        return None
    parts = [part for part in re.split(r"[+;,]", shown) if part.strip()]
    if not all(any(_find(name, extra) for name, _ in _readings(part)) for part in parts):
        return None
    return InvalidRequestError(
        f"{shown!r} names several kinds of devices", hint="give one kind at a time", field="gpu"
    )


def near_names(text: str, extra: Sequence[Accelerator] = ()) -> list[str]:
    """Return up to three names that a mistyped one may have meant, nearest first.

    >>> near_names("H10O"), near_names("RTX 6000")[0]
    (['H100 SXM5 80GB'], 'RTX 6000 Ada')
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistyped name needs it

    own = {device.name.lower(): device.name for device in extra}
    near = [own[key] for key in get_close_matches(text.lower()[:MAX_NAME], own, n=2, cutoff=0.7)]
    return (near + _near_in_catalogue(name_words(text)))[:3]


def _near_in_catalogue(name: NameWords) -> list[str]:
    """Those that share a telling word with the name, else those with a core that is written alike."""
    from difflib import get_close_matches  # noqa: PLC0415 - as above

    rows = name_rows()
    shared = [
        row.id for row in rows if any(len(word) > 2 for core in row.cores for word in core & name.words)
    ]
    if not shared:
        known: dict[str, str] = {}
        for row in rows:
            for core in row.cores:
                known.setdefault(" ".join(sorted(core)), row.id)
        near = get_close_matches(" ".join(sorted(name.words)), known, n=3, cutoff=0.7)
        shared = [known[key] for key in near]
    return [accelerator(id_).name for id_ in shared[:3]]


#: No device has less; a number without its unit is meant.
_LEAST_BYTES = 1 << 20


def parse_memory(text: str | int) -> tuple[Accelerator, int | None]:
    """Return a device of which the memory alone is known, and how many: ``80GiB``, ``95830MiB:2``.

    The size is what an engine sees as the total.

    Raises:
        InvalidRequestError: no size, none at all, or an absurd number.

    >>> device, count = parse_memory("80GiB:2")
    >>> device.memory_bytes >> 30, count
    (80, 2)
    """
    size: str | int = text
    count: str | None = None
    if isinstance(text, str):
        for pattern in _COUNTED[:3]:
            match = re.fullmatch(pattern, text.strip()[:MAX_NAME], re.IGNORECASE)
            if match and re.fullmatch(_SIZE, match["name"], re.IGNORECASE):
                size, count = match["name"], match["count"]
                break
    memory_bytes = parse_size(size, what="memory", rounds=True)
    if memory_bytes < _LEAST_BYTES:
        raise InvalidRequestError(
            f"memory of {memory_bytes} bytes holds nothing",
            hint="write it like 80GiB or 80GiB:2",
            field="memory",
        )
    return of_memory(memory_bytes), None if count is None else _checked(count, str(text), "memory")
