"""Models that Ollama has pulled to this machine, by name: a manifest names the blob, the blob is a GGUF.

Layout: ``MODELS/manifests/HOST/NAMESPACE/NAME/TAG`` and ``MODELS/blobs/sha256-HEX``; MODELS is
``OLLAMA_MODELS``, else ``~/.ollama/models``. Source: github.com/ollama/ollama ``types/model/name.go``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kvgauge.errors import DamagedFileError
from kvgauge.sources import RawModel
from kvgauge.sources.json_text import parse_object

_HOST, _NAMESPACE, _TAG = "registry.ollama.ai", "library", "latest"
_MODEL_LAYER = "application/vnd.ollama.image.model"
_MAX_MANIFEST_BYTES = 1 << 20
_MAX_LAYERS = 256

_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})", re.ASCII)


@dataclass(frozen=True, slots=True)
class OllamaName:
    """``host/namespace/name:tag`` with what Ollama fills in."""

    host: str
    namespace: str
    name: str
    tag: str

    @classmethod
    def parse(cls, text: str) -> OllamaName | None:
        """Take a name apart; None where it is not one. No part may leave its folder.

        >>> OllamaName.parse("llama3.2:3b")
        OllamaName(host='registry.ollama.ai', namespace='library', name='llama3.2', tag='3b')
        """
        path, _, tag = text.strip().partition(":")
        parts = [*path.split("/"), tag or _TAG]
        if not 2 <= len(parts) <= 4 or not all(_WORD.fullmatch(part) for part in parts):
            return None
        if len(parts) == 3 and not tag:
            return None  # org/name without a tag is a name on the hub
        return cls(*[_HOST, _NAMESPACE][: 4 - len(parts)], *parts)


def models_folder() -> Path:
    """Return where Ollama keeps its models."""
    stated = os.environ.get("OLLAMA_MODELS")
    return Path(stated) if stated else Path("~/.ollama/models").expanduser()


def find_ollama(text: str) -> RawModel | None:
    """Return a pulled model by name, or None where there is none of that name.

    Raises:
        DamagedFileError: the manifest or its blob is damaged.
    """
    name = OllamaName.parse(text)
    if name is None or text.lower().endswith((".gguf", ".json", ".safetensors")):
        return None
    try:
        folder = models_folder()
        manifest = folder / "manifests" / name.host / name.namespace / name.name / name.tag
        if not manifest.is_file():
            return None
        with manifest.open("rb") as stream:
            data = stream.read(_MAX_MANIFEST_BYTES + 1)
    except (OSError, RuntimeError, ValueError):
        return None
    if len(data) > _MAX_MANIFEST_BYTES:
        raise _damaged(text, "has a manifest of more than 1 MiB")
    digest, size = _model_layer(parse_object(data, f"the manifest of {text}"), text)
    return _read_blob(folder / "blobs" / f"sha256-{digest}", size, text)


def _model_layer(manifest: Mapping[str, object], text: str) -> tuple[str, object]:
    """Return (hex digest, stated size) of the layer that is the language model."""
    layers = manifest.get("layers")
    if not isinstance(layers, list) or len(layers) > _MAX_LAYERS:
        raise _damaged(text, "has a manifest without a list of layers")
    found = [row for row in layers if isinstance(row, Mapping) and row.get("mediaType") == _MODEL_LAYER]
    if len(found) != 1:
        raise _damaged(text, f"has {len(found)} model layers in its manifest; one GGUF can be read")
    match = _DIGEST.fullmatch(str(found[0].get("digest")))
    if match is None:
        raise _damaged(text, "has a digest in its manifest that is not sha256 in hex")
    return match[1], found[0].get("size")


def _read_blob(blob: Path, size: object, text: str) -> RawModel:
    from kvgauge.sources.gguf_local import read_gguf  # noqa: PLC0415

    try:
        actual = blob.stat().st_size
    except OSError:
        raise _damaged(text, f"lacks its blob {blob.name}") from None
    if isinstance(size, int) and size != actual:
        raise _damaged(text, f"has {actual} bytes in its blob, {size} in its manifest")
    return read_gguf(blob, text, "pulled by Ollama")


def _damaged(text: str, what: str) -> DamagedFileError:
    return DamagedFileError(f"{text} {what}", hint=f"pull it again: ollama pull {text}", field="MODEL")
