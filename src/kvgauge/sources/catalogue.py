"""The shipped catalogue: configs reduced to the fields that sizes follow from, one JSON line a model.

``data/models.jsonl`` holds the rows, ``data/names.json`` the byte range of each row and the aliases: another
name of a row, with the config fields that differ where any do. Asking for one model parses one row.
``data/quantised.jsonl`` holds the quantised checkpoints of each model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple, cast

from kvgauge.data import read_data, read_part, read_row
from kvgauge.sources import Json, RawModel

#: Key of an alias's patch that stands for the quantisation file beside the config.
SIDE_FILE = "hf_quant_config"


#: Shorter words are part of too many names.
_MIN_FILTER = 4


@lru_cache(maxsize=1)
def _names() -> Mapping[str, Mapping[str, object]]:
    text = read_data("names.json")
    names: Mapping[str, Mapping[str, object]] = json.loads(text)
    return names


@lru_cache(maxsize=1)
def _folded() -> Mapping[str, str]:
    names = _names()
    return {name.lower(): name for name in (*names["models"], *names["aliases"])}


def model_names() -> tuple[str, ...]:
    """Return every name in the catalogue, aliases included.

    >>> "Qwen/Qwen3-8B" in model_names()
    True
    """
    return tuple(sorted(_folded().values(), key=str.lower))


#: How names of quantised checkpoints end.
_QUANTISED = (
    r"[-_.](?:(?:unsloth-)?bnb-[48]bit|awq(?:-int4)?|gptq(?:-int[48])?|int[48]|fp8(?:-dynamic|-block|"
    r"-static-pertensor)?|nvfp4|mxfp4|quantized\.w\d{1,2}a\d{1,2}|w\d{1,2}a\d{1,2}(?:fp8)?|[48]bit)$"
)
#: How names of checkpoints end that are not quantised, beside ones that are.
_FULL = r"[-_.]bf16$"
#: A maker's name before the model's: Meta's moved models bear it in their old name, and in others' copies.
_MAKER = r"^meta-"


class Checkpoint(NamedTuple):
    """Another checkpoint of a model, and the bytes of its weights."""

    name: str
    num_bytes: int


def quantised_checkpoints(name: str) -> tuple[Checkpoint, ...]:
    """Return the quantised checkpoints of a model, whoever published them, but its own; largest first.

    Of a name that says 16 bit, the one that says nothing is another checkpoint too. ``data/quantised.jsonl``
    has the bytes, as ``weigh`` finds them; a checkpoint whose weights are not known is not in it.

    >>> quantised_checkpoints("Qwen/Qwen3-8B")[0].name
    'RedHatAI/Qwen3-8B-FP8-dynamic'
    >>> [found.name for found in quantised_checkpoints("meta-llama/Llama-3.1-405B-Instruct")]
    ['RedHatAI/Meta-Llama-3.1-405B-Instruct-FP8-dynamic']
    """
    found = cast("Mapping[str, int]", read_row("quantised.jsonl", plain_name(name)))
    own, is_full = name.lower(), is_full_name(name)
    return tuple(
        Checkpoint(other, size)
        for other, size in found.items()
        if other.lower() != own and (is_full or is_quantised_name(other))
    )


def plain_name(name: str) -> str:
    """Return a name without its publisher and without how it is stored, in small letters.

    >>> plain_name("RedHatAI/Qwen3-8B-FP8-dynamic"), plain_name("RedHatAI/Meta-Llama-3.1-405B-Instruct")
    ('qwen3-8b', 'llama-3.1-405b-instruct')
    """
    own = name.rpartition("/")[2].lower()
    return re.sub(_MAKER, "", re.sub(_QUANTISED, "", re.sub(_FULL, "", own)))


def is_quantised_name(name: str) -> bool:
    """Whether a name says how a checkpoint is quantised."""
    return re.search(_QUANTISED, name.lower()) is not None


def is_full_name(name: str) -> bool:
    """Whether a name says that a checkpoint is not quantised, which others of the model then are."""
    return re.search(_FULL, name.lower()) is not None


def find_model(name: str) -> RawModel | None:
    """Return the row of an ``org/name`` or an alias, in any case, or None.

    >>> find_model("qwen/qwen3-8b").id
    'Qwen/Qwen3-8B'
    """
    known = _folded().get(name.lower())
    if known is None:
        return None
    names = _names()
    row_id, patch = _target(names["aliases"].get(known, known))
    start, length = cast("tuple[int, int]", names["models"][row_id])
    return _raw(json.loads(read_part("models.jsonl", start, length)), known, patch)


def all_models() -> Iterator[tuple[RawModel, tuple[str, ...]]]:
    """Yield every row with its aliases."""
    by_row: dict[str, list[str]] = {}
    for alias, entry in _names()["aliases"].items():
        by_row.setdefault(_target(entry)[0], []).append(alias)
    text = read_data("models.jsonl")
    for line in text.splitlines():
        row = json.loads(line)
        yield _raw(row, row["id"], {}), tuple(sorted(by_row.get(row["id"], ()), key=str.lower))


def patched(row: Json, patch: Json) -> tuple[Json, Json | None]:
    """Return (config, quantisation file) of a row with an alias's patch applied; null removes a field.

    >>> patched({"config": {"a": 1, "b": 2}}, {"a": None, "b": 3})
    ({'b': 3}, None)
    """
    config = cast(Json, row["config"])
    quantization = cast("Json | None", row.get("quantization"))
    if not patch:
        return config, quantization
    changed = {key: value for key, value in patch.items() if key != SIDE_FILE}
    merged = {key: value for key, value in {**config, **changed}.items() if changed.get(key, key) is not None}
    return merged, cast("Json | None", patch.get(SIDE_FILE, quantization))


def near_names(name: str) -> list[str]:
    """Return up to two names that a mistyped one may have meant, nearest first.

    The same name under another organisation, or without one, comes before a misspelling.

    >>> near_names("Qwen3-8B")
    ['Qwen/Qwen3-8B']
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistyped name needs it

    wanted = _plain(name)
    plain = {_plain(known): known for known in reversed(model_names())}
    if wanted in plain:
        return [plain[wanted]]
    tail = wanted.rpartition("/")[2]
    same = [known for key, known in plain.items() if tail and key.rpartition("/")[2] == tail]
    if same:
        return sorted(same, key=lambda known: (known not in _names()["models"], known.lower()))[:2]
    near = get_close_matches(wanted, plain, n=2, cutoff=0.85)
    if not near and "/" not in wanted:
        tails = {key.rpartition("/")[2]: key for key in plain}
        near = [tails[match] for match in get_close_matches(wanted, tails, n=2, cutoff=0.85)]
    return [plain[key] for key in near]


def did_you_mean(name: str) -> str:
    """Return which name may have been meant, or what to ask the catalogue for, or ""; a step follows."""
    near = [known for known in near_names(name) if known.lower() != name.lower()]
    if near:
        return f"did you mean {' or '.join(near)}? Else "
    word = near_filter(name)
    return f"'kvgauge models {word}' lists names like it. Else " if word else ""


def near_filter(name: str) -> str:
    """Return a part of names that a short one may stand for, or "": what people call a family.

    >>> near_filter("llama3"), near_filter("gemma3"), near_filter("mistral-7b"), near_filter("llama3.1:8b")
    ('llama3', 'gemma-3', 'mistral-7b', 'llama-3.1')
    """
    plain = _plain(name).partition(":")[0]
    if "/" in plain or len(plain) < _MIN_FILTER:
        return ""
    spaced = re.sub(r"(?<=[a-z])(?=\d)", "-", plain, count=1)
    letters = re.match(r"[a-z]*", plain)
    known = [key.replace("_", "-") for key in _folded()]
    for word in (plain, spaced, letters[0] if letters else ""):
        if len(word) >= _MIN_FILTER and any(word in key for key in known):
            return word
    return ""


def _plain(name: str) -> str:
    """A name without what people write differently: case, blanks, hyphens and underscores."""
    return name[:200].lower().replace("_", "-").replace(" ", "-")


def _target(entry: object) -> tuple[str, Json]:
    """Return (id of the row, patch) of an alias."""
    if isinstance(entry, Mapping):
        return str(entry["id"]), cast(Json, entry.get("patch", {}))
    return str(entry), {}


def _raw(row: Json, name: str, patch: Json) -> RawModel:
    config, quantization = patched(row, patch)
    provenance = f"{row['source']}, {row['date']}"
    if name != row["id"]:
        provenance = f"as {row['id']}: {provenance}"
    return RawModel(name, "catalogue", config, quantization=quantization, provenance=provenance)
