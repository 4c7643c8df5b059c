"""``size`` and ``plan --ndjson``: requests in, one JSON object a line, answers out in the same order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from kvgauge.cli.failures import as_known
from kvgauge.cli.output import OutputFailedError, Settings, write_error, write_json
from kvgauge.cli.requests import size_keywords
from kvgauge.errors import DamagedFileError, InvalidRequestError, KvgaugeError, ModelNotFoundError
from kvgauge.keywords import LINE, Kinds, checked
from kvgauge.render.answer_json import size_json
from kvgauge.sizing import size
from kvgauge.sources.json_text import parse_object

#: A line holds a request, and with it a whole config at most.
MAX_LINE_BYTES = 1 << 20
MAX_REQUESTS = 100_000

_EXAMPLE = 'for example: {"model": "Qwen/Qwen3-8B", "context": 32768}'


#: Answers a request: its keywords, the model among them.
Answer = Callable[[dict[str, Any]], Mapping[str, object]]


def run_batch(settings: Settings, values: dict[str, Any]) -> int:
    """Answer requests of ``size``; what a line leaves out, the options say. Exit code 1 where one failed."""
    refuse_beside(values, "why", "markdown")
    defaults = size_keywords(values)
    if values["model"] is not None:
        defaults["model"] = values["model"]

    def answer(request: dict[str, Any]) -> Mapping[str, object]:
        return size_json(size(request.pop("model", None), **request), settings.texts)

    return answer_lines(settings, values["ndjson"], defaults, LINE, answer)


def refuse_beside(values: Mapping[str, Any], *names: str) -> None:
    """Refuse options that do not go together with ``--ndjson``.

    Raises:
        InvalidRequestError: one of them is given.
    """
    for name in names:
        if values[name]:
            raise InvalidRequestError(
                f"--{name} and --ndjson do not go together", hint="leave one of them out", field=name
            )


def answer_lines(
    settings: Settings,
    name: str,
    defaults: Mapping[str, Any],
    keywords: Mapping[str, Kinds],
    answer: Answer,
) -> int:
    """Answer every line of a file, or of standard input (``-``); exit code 1 where one failed."""
    failed = False
    with _opened(name) as stream:
        for line in _lines(stream):
            try:
                found = answer(_request(line, defaults, keywords))
            except (KeyboardInterrupt, OutputFailedError):
                raise
            except Exception as error:
                write_error(as_known(error, settings.texts), settings)
                failed = True
            else:
                write_json(found, is_line=True)
    return 1 if failed else 0


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    """Open the requests: a file, or standard input."""
    if name == "-":
        yield sys.stdin.buffer
        return
    path = Path(name)
    if not path.is_file():
        raise ModelNotFoundError(f"there is no file {name[:120]}", hint="check the path", field="ndjson")
    try:
        stream = path.open("rb")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DamagedFileError(f"{name[:120]} can't be read: {reason}", field="ndjson") from None
    with stream:
        yield stream


def _lines(stream: BinaryIO) -> Iterator[bytes | KvgaugeError]:
    """Yield the lines that are not blank; a line that is too long, or one too many, as an error."""
    count = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        is_long = len(line) > MAX_LINE_BYTES
        while is_long and not line.endswith(b"\n") and (rest := stream.readline(MAX_LINE_BYTES)):
            line = rest
        if not is_long and not line.strip():
            continue
        count += 1
        if count > MAX_REQUESTS:
            yield InvalidRequestError(
                f"there are more than {MAX_REQUESTS:,} requests", hint="split the file", field="ndjson"
            )
            return
        yield _too_long() if is_long else line


def _too_long() -> KvgaugeError:
    text = f"a request is longer than {MAX_LINE_BYTES:,} bytes"
    return InvalidRequestError(text, hint="name a config file instead of its content", field="ndjson")


def _request(
    line: bytes | KvgaugeError, defaults: Mapping[str, Any], keywords: Mapping[str, Kinds]
) -> dict[str, Any]:
    if isinstance(line, KvgaugeError):
        raise line
    try:
        given = parse_object(line, "the request")
    except DamagedFileError as error:
        error.hint = _EXAMPLE
        raise
    request = {**defaults, **checked(given, keywords, _EXAMPLE)}
    if "model" not in request and "command" not in request:
        raise InvalidRequestError("MODEL is missing", hint=_EXAMPLE, field="model")
    return request
