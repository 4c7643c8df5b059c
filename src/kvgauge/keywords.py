"""What a request in JSON may hold: the keywords of the public calls, and of which kind each value is.

One table for requests that come as lines and for those that come over HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping

from kvgauge.errors import InvalidRequestError

Kinds = tuple[type, ...]

_TEXT, _COUNT, _TOKENS, _FLAG, _OBJECT = (str,), (int,), (int, str), (bool,), (dict,)
_MODEL: Kinds = (str, dict)

#: Which model, and where from.
FINDING: Mapping[str, Kinds] = {"overrides": _OBJECT, "revision": _TEXT, "refresh": _FLAG, "offline": _FLAG}

_LOAD: Mapping[str, Kinds] = {
    "context": _TOKENS, "max_model_len": _TOKENS, "encoder_tokens": _TOKENS, "image_tokens": _TOKENS,
    "shared_prefix": _TOKENS,
    "sequences": _COUNT, "mtp": _COUNT,
    "kv_dtype": _TEXT, "k_dtype": _TEXT, "v_dtype": _TEXT, "state_dtype": _TEXT, "index_dtype": _TEXT,
    "tp": _COUNT, "pp": _COUNT, "dp": _COUNT, "ep": _COUNT, "dcp": _COUNT,
    "engine": _TEXT, "engine_args": _TEXT,
    "weights": _TEXT, "no_weights": _FLAG,
}  # fmt: skip

#: Keywords of ``kvgauge.size``, and of ``explain``.
SIZE: Mapping[str, Kinds] = {"model": _MODEL, **_LOAD, **FINDING}

#: The same in a line of a file, which may name a launch line; over HTTP a model is found in another way.
LINE: Mapping[str, Kinds] = {**SIZE, "command": _TEXT}

#: Keywords of ``kvgauge.compare``.
COMPARE: Mapping[str, Kinds] = {"models": (list,), **_LOAD, **FINDING}

#: Keywords of ``kvgauge.fit``; a file of devices is of whoever runs the program, not of who asks.
FIT: Mapping[str, Kinds] = {
    "model": _MODEL, "gpu": _TEXT, "num_gpus": _COUNT, "memory": _TOKENS, "reserve": _TOKENS,
    "kv_memory": _TOKENS, "utilization": (float, int, str), "suggestions": _FLAG, **_LOAD, **FINDING,
}  # fmt: skip

#: Keywords of ``kvgauge.plan``; files of devices and prices are of whoever runs the program too.
PLAN: Mapping[str, Kinds] = {
    "model": _MODEL, "gpu": _TEXT, "memory": _TOKENS, "reserve": _TOKENS, "utilization": (float, int, str),
    "prompt_tokens": _TOKENS, "output_tokens": _TOKENS, "top": _COUNT,
    "split": _TEXT, "sram": _TEXT, "host_memory": _TOKENS, "network": _TEXT,
    **_LOAD, **FINDING,
}  # fmt: skip

#: Keywords of ``kvgauge.verify`` beside the log.
VERIFY: Mapping[str, Kinds] = {
    "model": _MODEL, "gpu": _TEXT, "utilization": (float, int, str),
    **{name: kinds for name, kinds in _LOAD.items()
       if name not in ("encoder_tokens", "image_tokens", "shared_prefix", "index_dtype", "no_weights", "ep")},
    **FINDING,
}  # fmt: skip

#: Longest text of a keyword, in characters: flags of an engine are some hundred, and reading them takes time.
MAX_TEXT = 8192
#: Texts that whoever reads them bounds.
_BOUNDED_WHERE_READ = frozenset({"log", "command", "text"})
#: Fields of a config that one request may change.
MAX_OVERRIDES = 1000

_WORDS = {
    str: "text", int: "a whole number", float: "a number", bool: "true or false", dict: "an object",
    list: "a list",
}  # fmt: skip


def checked(
    request: Mapping[str, object], keywords: Mapping[str, Kinds] = SIZE, hint: str = ""
) -> dict[str, object]:
    """Return the keywords of a request; null is the default.

    Args:
        hint: the step to take where a value is of another kind.

    Raises:
        InvalidRequestError: a key that the call does not have, or a value of another kind.

    >>> checked({"context": "32k", "tp": None})
    {'context': '32k'}
    """
    given = {name: value for name, value in request.items() if value is not None}
    for name, value in given.items():
        kinds = keywords.get(name)
        if kinds is None:
            raise _unknown(name, keywords)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            shown = " or ".join(_WORDS[kind] for kind in kinds)
            raise InvalidRequestError(f"{name} is to be {shown}", hint=hint, field=name)
        _check_length(name, value)
    if given.get("model") == "-":
        raise InvalidRequestError(
            "a request can't name standard input",
            hint="write the config as the value of model",
            field="model",
        )
    return given


def _check_length(name: str, value: object) -> None:
    """Refuse what would take long to read.

    Raises:
        InvalidRequestError: a text is longer, or there are more overrides, than any request needs.
    """
    if isinstance(value, str) and len(value) > MAX_TEXT and name not in _BOUNDED_WHERE_READ:
        raise InvalidRequestError(
            f"{name} is longer than {MAX_TEXT} characters", hint="give a shorter one", field=name
        )
    if name == "overrides" and isinstance(value, Mapping) and len(value) > MAX_OVERRIDES:
        raise InvalidRequestError(
            f"there are more than {MAX_OVERRIDES} overrides", hint="send the changed config as model",
            field=name,
        )  # fmt: skip


def _unknown(name: str, keywords: Mapping[str, Kinds]) -> InvalidRequestError:
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistyped key needs it

    near = get_close_matches(name[:80].lower().replace("-", "_"), keywords, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}?" if near else f"one of: {', '.join(keywords)}"
    return InvalidRequestError(f"there is no keyword {name[:80]}", hint=hint, field=name)
