"""The beginning of a GGUF file that a page sends, until its header is whole.

A page sends the first bytes of a file and its size; where the header goes on behind them, the answer says how
many bytes are needed, and the page sends more from the start again. Nothing is kept until it is whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kvgauge.errors import InvalidRequestError
from kvgauge.models import Model
from kvgauge.readers import read_architecture
from kvgauge.sources import RawModel
from kvgauge.sources.gguf import MAGIC, GgufHeader, read_header
from kvgauge.web.failures import TooLargeError
from kvgauge.web.library import SENT
from kvgauge.web.telling import Told, told

if TYPE_CHECKING:
    from kvgauge.web.desk import Desk

Json = dict[str, object]

MAX_FILE_BYTES = 1 << 50
MAX_NAME = 200
_TENSOR_BYTES = 600


class MoreNeededError(Exception):
    """The header goes on behind what was sent."""

    def __init__(self, num_bytes: int) -> None:
        super().__init__(num_bytes)
        self.num_bytes = num_bytes


class Beginning:
    """The first bytes of a file of a known size; see ``sources.gguf.ByteRanges``."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data, self.size = data, size

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes that were sent.

        Raises:
            MoreNeededError: they were not.
        """
        if offset + length > len(self._data):
            raise MoreNeededError(offset + length)
        return self._data[offset : offset + length]


async def answer_gguf(desk: Desk, data: bytes, size: int, name: str) -> Told:
    """Answer with the model of a header, or with how much of the file is needed."""
    return await desk.slow(lambda: told(_answer(desk, data, size, name)))


def _answer(desk: Desk, data: bytes, size: int, name: str) -> Json:
    if not len(data) <= size <= MAX_FILE_BYTES:
        raise InvalidRequestError(
            f"{len(data)} bytes were sent of a file of {size}",
            hint="size is that of the whole file",
            field="size",
        )
    shown = name.strip()[:MAX_NAME] or "model.gguf"
    known = size if data.startswith(MAGIC[: len(data)]) else len(data)  # what is no GGUF is refused at once
    try:
        header = read_header(Beginning(data, known), shown)
    except MoreNeededError as more:
        most = desk.settings.limits.gguf_bytes
        if more.num_bytes > most:
            raise TooLargeError(
                f"the header needs {more.num_bytes} bytes, and {most} are taken",
                hint="kvgauge size FILE reads it on your machine",
                field="body",
            ) from None
        return {**_state(len(data), more.num_bytes), "model": None}
    model = _model(header, shown)
    key = SENT + hashlib.sha256(data[: header.data_offset]).hexdigest()[:32]
    desk.library.keep_sent(key, model, header.data_offset + _TENSOR_BYTES * len(header.tensors))
    return {**_state(len(data), 0), "model": {**model.to_dict(), "name": key}}


def _state(have: int, need: int) -> Json:
    state = "incomplete" if need else "complete"
    return {"schema": "kvgauge.gguf/1", "state": state, "have_bytes": have, "need_bytes": need or None}


def _model(header: GgufHeader, shown: str) -> Model:
    """Return the model of a header; of one file of many, what the metadata alone says."""
    count = header.metadata.get("split.count", 1)
    tensors = header.tensors if count in (0, 1) else ()
    metadata: Mapping[str, object] = header.metadata
    raw = RawModel(shown, "gguf", metadata, tensors=tensors)
    shapes = {tensor.name: tensor.shape for tensor in tensors}
    return Model(raw, read_architecture(metadata, None, shapes))
