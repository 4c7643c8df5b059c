"""Read a remote file by ranges: a header of a file of any size, in few requests and bounded bytes."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from kvgauge.errors import NetworkError
from kvgauge.sources.transport import Answer, Site, whole_number

_CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})", re.ASCII)


@dataclass(frozen=True, slots=True)
class RangeLimits:
    """What reading one file may cost.

    Args:
        first_bytes: fetched when the file is opened; most headers end there.
        max_ahead_bytes: a later request fetches twice as much as the one before, at most this much.
        max_total_bytes: of all requests together, which is also what is kept in memory.
        max_requests: all requests together.
        total_s: seconds of all requests together.
    """

    first_bytes: int = 1 << 20
    max_ahead_bytes: int = 8 << 20
    max_total_bytes: int = 512 << 20
    max_requests: int = 200
    total_s: float = 120.0


def limits_for(file: str) -> RangeLimits:
    """Return the limits that fit a kind of file.

    A split model has hundreds of safetensors files with short headers; a GGUF begins with its tokenizer.
    """
    return RangeLimits(first_bytes=1 << 17) if file.endswith(".safetensors") else RangeLimits()


@dataclass(slots=True)
class RangeReader:
    """A remote file that is read by offset and length; what was fetched is not fetched again.

    ``size`` is the whole file's, in bytes. Every answer is held against the first one: the range that was
    asked for, the same size, the same etag. A redirect of the hub, to its storage, is followed once and kept.

    Raises:
        NetworkError: the file can't be had, changes while it is read, or costs more than the limits.
    """

    site: Site
    url: str
    name: str
    limits: RangeLimits = field(default_factory=RangeLimits)
    headers: Mapping[str, str] = field(default_factory=dict, init=False)
    size: int = field(default=0, init=False)
    num_requests: int = field(default=0, init=False)
    num_bytes: int = field(default=0, init=False)
    _parts: list[tuple[int, bytearray]] = field(default_factory=list, init=False, repr=False)
    _location: str = field(default="", init=False, repr=False)
    _etag: str | None = field(default=None, init=False)
    _ahead: int = field(default=0, init=False)
    _spent_s: float = field(default=0.0, init=False)

    def open(self) -> Answer:
        """Fetch the beginning; return the answer as it came where it is no 2xx, for the caller to explain."""
        self._ahead = self.limits.first_bytes
        answer = self._get(self.url, 0, self.limits.first_bytes)
        if answer.status not in (200, 206, 416):
            return answer
        self.headers, self._location = answer.headers, answer.url
        self._etag = answer.headers.get("etag")
        self.size = self._first_size(answer)
        linked = whole_number(answer.headers.get("x-linked-size"))
        if linked is not None and linked != self.size:
            raise self._wrong(f"it has {self.size} bytes, and the hub says {linked}")
        wanted = min(self.limits.first_bytes, self.size)
        if answer.status == 206 and self._range(answer)[:2] != (0, wanted - 1):
            raise self._wrong("the server answers another range than was asked for")
        self._keep(0, self._body(answer, wanted))
        return answer

    def read(self, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``; fewer where the file ends.

        Raises:
            NetworkError: see the class.
        """
        length = max(0, min(length, self.size - offset)) if offset >= 0 else 0
        if length == 0:
            return b""
        found = self._held(offset, length)
        if found is None:
            self._fetch(offset, length)
            found = self._held(offset, length)
        if found is None:
            raise self._wrong("its ranges do not fit together")
        return found

    def _held(self, offset: int, length: int) -> bytes | None:
        for start, data in self._parts:
            if start <= offset and offset + length <= start + len(data):
                return bytes(memoryview(data)[offset - start : offset - start + length])
        return None

    def _fetch(self, offset: int, length: int) -> None:
        """Fetch what is asked for and some more, from the end of what is held where that touches it."""
        start = next((s + len(d) for s, d in self._parts if s <= offset < s + len(d)), offset)
        self._ahead = min(self._ahead * 2, self.limits.max_ahead_bytes)
        wanted = min(max(offset + length - start, self._ahead), self.size - start)
        answer = self._get(self._location, start, wanted)
        if answer.status in (401, 403, 404, 410) and self._location != self.url:
            answer = self._get(self.url, start, wanted)  # the storage's address has run out
            self._location = answer.url
        self._check(answer, start, wanted)
        self._keep(start, self._body(answer, wanted))

    def _get(self, url: str, start: int, length: int) -> Answer:
        limits = self.limits
        if self.num_requests >= limits.max_requests or self.num_bytes + length > limits.max_total_bytes:
            raise self._wrong(
                f"its header takes more than {limits.max_requests} requests "
                f"or {limits.max_total_bytes >> 20} MiB"
            )
        left_s = limits.total_s - self._spent_s
        if left_s <= 0:
            raise self._wrong(f"its header takes more than {limits.total_s:g} s")
        self.num_requests += 1
        begin = time.monotonic()
        headers = {"Range": f"bytes={start}-{start + length - 1}"}
        answer = self.site.ask(url, headers=headers, max_bytes=length, within_s=left_s)
        self._spent_s += time.monotonic() - begin
        self.num_bytes += len(answer.body)
        return answer

    def _first_size(self, answer: Answer) -> int:
        """Return the file's size as its first answer tells it."""
        if answer.status == 416:
            return 0  # an empty file has no first byte
        size = answer.length if answer.status == 200 else self._range(answer)[2]
        if size is None:
            raise self._wrong("the server does not say how large it is")
        return size

    def _range(self, answer: Answer) -> tuple[int, int, int]:
        match = _CONTENT_RANGE.fullmatch(answer.headers.get("content-range", ""))
        if answer.status != 206 or match is None:
            raise self._wrong("the server does not answer ranges")
        start, last, size = (int(number) for number in match.groups())
        return start, last, size

    def _check(self, answer: Answer, start: int, length: int) -> None:
        """Hold a later answer against the range asked for and against the first answer."""
        if answer.status in (429, *range(500, 600)):
            raise self._wrong(f"the server answers {answer.status}")
        found = self._range(answer)
        etag = answer.headers.get("etag")
        if found[2] != self.size or (etag and self._etag and etag != self._etag):
            raise self._wrong("it changed while it was read")
        if found[:2] != (start, start + length - 1):
            raise self._wrong("the server answers another range than was asked for")

    def _body(self, answer: Answer, length: int) -> bytes:
        if answer.status == 416:
            return b""
        if len(answer.body) != length:
            raise self._wrong(f"the answer ends after {len(answer.body)} of {length} bytes")
        return answer.body

    def _keep(self, start: int, data: bytes) -> None:
        """Keep what was fetched, joined to what it continues."""
        for begin, held in self._parts:
            if begin + len(held) == start:
                held.extend(data)
                return
        self._parts.append((start, bytearray(data)))

    def _wrong(self, what: str) -> NetworkError:
        return self.site.failure(f"{self.name}: {what}", "try again")
