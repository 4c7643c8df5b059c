"""Names on a hub, taken apart: ``org/name@revision``, ``org/name:file.gguf``, ``ms:org/name``, URLs."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

SiteName = Literal["hf", "ms"]

_MODELSCOPE_PREFIX = "ms:"
_DEFAULT_REVISIONS = frozenset({"main", "master"})
_HF_HOSTS = frozenset({"huggingface.co", "www.huggingface.co", "hf.co", "hf-mirror.com"})
_MS_HOSTS = frozenset({"modelscope.cn", "www.modelscope.cn", "modelscope.ai", "www.modelscope.ai"})
_URL = re.compile(
    r"(?:https?://(?P<host>[^/]+)|(?P<bare>hf\.co|huggingface\.co))/(?:models/)?(?P<id>[^/?#]+/[^/?#]+)"
    r"(?:/(?:tree|blob|resolve|raw|commit)/(?P<revision>[^/?#]+)(?:/(?P<file>[^?#]*))?)?(?:[/?#].*)?",
    re.ASCII,
)
_ID = re.compile(r"(?!.*(?:--|\.\.))[A-Za-z0-9_][\w.-]{0,95}/[\w.-]{1,96}", re.ASCII)
_REVISION = re.compile(r"(?!.*(?:\.\.|//|/\.|/$))[A-Za-z0-9_][\w./+-]{0,199}", re.ASCII)
_FILE = re.compile(r"(?!.*(?:\.\.|//|/\.|/$))[^\s/\\:*?\"<>|][^\\:*?\"<>|\0-\x1f]{0,399}")


@dataclass(frozen=True, slots=True)
class HubName:
    """What a name on the hub consists of.

    Args:
        site: ``hf``, or ``ms`` for ModelScope.
        shipped: whether the shipped catalogue may answer; ``ms:`` asks ModelScope itself.
    """

    id: str
    revision: str | None = None
    file: str | None = None
    site: SiteName = "hf"
    shipped: bool = True

    @classmethod
    def parse(cls, text: str, revision: str | None = None) -> HubName:
        """Take a name apart; the default branch counts as no revision.

        >>> HubName.parse("https://huggingface.co/Qwen/Qwen3-8B/tree/main").id
        'Qwen/Qwen3-8B'
        >>> HubName.parse("org/name@v1.0").revision, HubName.parse("org/name:x.gguf").file
        ('v1.0', 'x.gguf')
        """
        text = text.strip()
        match = _URL.fullmatch(text)
        if match:
            return cls._from_url(match, text, revision)
        if "://" in text:
            return cls(text, revision)
        from_modelscope = text.lower().startswith(_MODELSCOPE_PREFIX)
        if from_modelscope:
            text = text[len(_MODELSCOPE_PREFIX) :]
        name, _, file = text.partition(":")
        name, _, asked = name.partition("@")
        return cls(
            name.rstrip("/"),
            _known_default(asked or revision),
            file or None,
            "ms" if from_modelscope else "hf",
            not from_modelscope,
        )

    @classmethod
    def _from_url(cls, match: re.Match[str], text: str, revision: str | None) -> HubName:
        host = (match["host"] or match["bare"]).rpartition("@")[2].lower()
        site: SiteName | None = "hf" if host in _HF_HOSTS or host == _mirror_host() else None
        site = "ms" if host.partition(":")[0] in _MS_HOSTS else site
        if site is None:
            return cls(text, revision)
        asked = unquote(match["revision"]) if match["revision"] else revision
        file = unquote(match["file"] or "")
        return cls(match["id"], _known_default(asked), file if file.endswith(".gguf") else None, site)

    @property
    def shown(self) -> str:
        """The name as answers repeat it."""
        return f"{_MODELSCOPE_PREFIX}{self.id}" if self.site == "ms" else self.id

    @property
    def is_valid(self) -> bool:
        """Whether a hub could have it: nothing that climbs out of a folder or an address."""
        revision = self.revision is None or _REVISION.fullmatch(self.revision) is not None
        file = self.file is None or _FILE.fullmatch(self.file) is not None
        return revision and file and _ID.fullmatch(self.id) is not None


def _known_default(revision: str | None) -> str | None:
    return None if not revision or revision in _DEFAULT_REVISIONS else revision


def _mirror_host() -> str:
    """Return the host of ``HF_ENDPOINT``, with its port where it has one."""
    try:
        return urlsplit(os.environ.get("HF_ENDPOINT", "")).netloc.rpartition("@")[2].lower()
    except ValueError:
        return ""
