"""How a server is set up, and its limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvgauge.render.messages import Lang

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8642


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request, and all of them together, may take.

    Args:
        json_bytes: a JSON body; a pasted config is a few KiB to a few hundred.
        log_bytes: a start-up log.
        gguf_bytes: the beginning of a GGUF file; a header with a large vocabulary is some 20 MiB.
        body_s: until a body has arrived.
        answer_s: until an answer is computed.
        hub_s: until a hub has answered.
        num_waiting: requests that are being read or answered at once.
        num_models: models of one comparison.
        num_layers: of a model; no published one has a tenth of it.
        num_large: logs and beginnings of files that are taken in at once.
    """

    json_bytes: int = 4 << 20
    log_bytes: int = 32 << 20
    gguf_bytes: int = 128 << 20
    body_s: float = 30.0
    answer_s: float = 30.0
    hub_s: float = 30.0
    num_waiting: int = 128
    num_models: int = 16
    num_layers: int = 2000
    num_large: int = 4


@dataclass(frozen=True, slots=True)
class WebSettings:
    """How a server was started.

    Args:
        host: where it listens.
        offline: no hub is ever asked.
        lang: the language of those who name none.
    """

    host: str = DEFAULT_HOST
    offline: bool = False
    lang: Lang = "en"
    limits: Limits = field(default_factory=Limits)
