"""The Hugging Face hub: the local cache first, else the network.

``huggingface_hub`` says where the hub, its cache and the token are (``HF_ENDPOINT``, ``HF_HOME``,
``HF_HUB_CACHE``, ``HF_TOKEN``, ``HF_HUB_OFFLINE``, ...); ``sources.transport`` asks, within bounds. What was
fetched is kept in the hub's own cache.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from kvgauge.errors import DamagedFileError, InvalidRequestError
from kvgauge.sources import RawModel
from kvgauge.sources.failures import origin_of
from kvgauge.sources.hub_cache import (
    CONFIG_FILE,
    DEFAULT_REVISION,
    QUANT_FILE,
    HubCache,
    is_commit,
    read_small,
    this_cache,
)
from kvgauge.sources.json_text import MAX_CONFIG_BYTES, parse_object
from kvgauge.sources.names import HubName
from kvgauge.sources.ranges import RangeLimits, RangeReader, limits_for
from kvgauge.sources.refusals import Refusals, busy
from kvgauge.sources.safetensors import INDEX_FILE, SINGLE_FILE
from kvgauge.sources.transport import Answer, Limits, Site
from kvgauge.sources.weight_files import Files

DEFAULT_ENDPOINT = "https://huggingface.co"

#: Where a mirror may send on to, with the token.
_ORIGINS = frozenset({origin_of(DEFAULT_ENDPOINT), origin_of("https://hf.co")})


@dataclass(frozen=True, slots=True)
class Hub:
    """One repository on the hub, and the cache that keeps what is fetched."""

    site: Site
    cache: HubCache
    name: HubName

    @property
    def refusals(self) -> Refusals:
        """What explains the hub's refusals."""
        return Refusals(self.site, self.name)

    @property
    def revision(self) -> str:
        """The revision asked for."""
        return self.name.revision or DEFAULT_REVISION

    def fetched(self) -> RawModel:
        """Return what the hub holds.

        Raises:
            ModelNotFoundError, GatedModelError: the hub refuses. NetworkError: it does not answer.
            DamagedFileError: the file is not a config.
        """
        found = self._fetch(self.revision, CONFIG_FILE)
        if found is None:
            raise self.refusals.without_config()
        commit, config = found
        quantization = self._fetch(commit, QUANT_FILE)
        raw = self._raw(commit, config, quantization[1] if quantization else None)
        self.cache.point(self.revision, commit)
        return raw

    def open(self, file: str, limits: RangeLimits | None = None) -> RangeReader:
        """Open a file of the repository for reading by ranges.

        Raises:
            ModelNotFoundError, GatedModelError: the hub refuses. NetworkError: it does not answer ranges.
        """
        reader = RangeReader(self.site, self._url(self.revision, file), file, limits or limits_for(file))
        answer = reader.open()
        if answer.status not in (200, 206, 416):
            raise self.refusals.of(answer, file) or self.refusals.without_file(file)
        return reader

    def files(self) -> Files:
        """Return the files of the repository and their bytes; of a mirror that has no list, the usual names.

        Raises:
            NetworkError: the hub is busy.
        """
        listed = self.refusals.listing(self.revision, "?blobs=true")
        if listed:
            return Files(listed)
        usual = (INDEX_FILE, SINGLE_FILE)
        heads = {file: self.site.ask(self._url(self.revision, file), method="HEAD") for file in usual}
        found = next((file for file in usual if heads[file].status < 400), None)
        return Files({} if found is None else {found: None}, is_complete=False)

    def _raw(self, commit: str, config: bytes, quantization: bytes | None) -> RawModel:
        parsed = parse_object(config, f"{self.name.id}/{CONFIG_FILE}")
        side = None if quantization is None else parse_object(quantization, f"{self.name.id}/{QUANT_FILE}")
        host = urlsplit(self.site.endpoint).hostname or ""
        provenance = f"{host}, commit {commit[:12]}"
        return RawModel(self.name.id, "hub", parsed, commit, side, provenance=provenance)

    def _url(self, revision: str, file: str) -> str:
        return f"{self.site.endpoint}/{self.name.id}/resolve/{quote(revision, safe='')}/{quote(file)}"

    def _fetch(self, revision: str, file: str) -> tuple[str, bytes] | None:
        """Return (commit, content) of a file, or None where the repository does not have it."""
        url = self._url(revision, file)
        head = self.site.ask(url, method="HEAD")
        commit = head.headers.get("x-repo-commit")
        if head.status >= 400:
            refusal = self.refusals.of(head, file)
            if refusal is not None:
                raise refusal
            if is_commit(commit):
                self.cache.mark_missing(str(commit), file)
            return None
        if commit is None or not is_commit(commit):
            raise self.site.failure("it does not answer as a hub does (no commit)", _NO_HUB)
        etag = (head.headers.get("x-linked-etag") or head.headers.get("etag") or "").removeprefix("W/")
        data = self._content(url, head, commit, file, etag.strip('"'))
        return commit, data

    def _content(self, url: str, head: Answer, commit: str, file: str, etag: str) -> bytes:
        if self.cache.has_blob(etag):
            path = self.cache.link(commit, file, etag)
            if path is not None:
                return read_small(path)
        linked = head.headers.get("x-linked-size")
        size = int(linked) if linked and linked.isdecimal() and len(linked) < 20 else head.length
        if head.status >= 300 and not linked:
            size = None  # the length is that of the redirect
        data = download(self.site, url, file, size)
        parse_object(data, f"{self.name.id}/{file}")  # nothing damaged is kept
        self.cache.store(commit, file, etag, data)
        return data


_NO_HUB = "check HF_ENDPOINT, the proxy, and whether the network wants a log-in"


def download(site: Site, url: str, file: str, size: int | None) -> bytes:
    """Return a small file; ``size`` is what was announced.

    Raises:
        DamagedFileError: too large.
        NetworkError: cut off, of another length, or an error of the server.
    """
    answer = None
    if size is None or size <= MAX_CONFIG_BYTES:
        answer = site.ask(url, max_bytes=MAX_CONFIG_BYTES + 1)
        if answer.status != 200:
            raise busy(site, answer) or site.failure(f"{file}: the server answers {answer.status}")
    if answer is None or len(answer.body) > MAX_CONFIG_BYTES or (answer.length or 0) > MAX_CONFIG_BYTES:
        raise DamagedFileError(
            f"{file} of {site.name} is larger than {MAX_CONFIG_BYTES >> 20} MiB",
            hint="a config.json is a few KiB; name another model or revision",
            field=file,
        )
    expected = answer.length if size is None else size
    if answer.cut_off or (expected is not None and len(answer.body) != expected):
        total = expected or answer.length
        raise site.failure(f"{file} ends after {len(answer.body)} of {total} bytes", "try again")
    return answer.body


def connect(name: HubName) -> Hub:
    """Return a repository as this machine's settings see it.

    Raises:
        InvalidRequestError: ``HF_ENDPOINT`` is no address.
    """
    from huggingface_hub import constants  # noqa: PLC0415 - only a name on the hub needs it

    return Hub(_site(constants.ENDPOINT or DEFAULT_ENDPOINT, _token()), this_cache(name.id), name)


def _site(endpoint: str, token: str) -> Site:
    endpoint = endpoint.rstrip("/")
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise InvalidRequestError(
            "HF_ENDPOINT is no plain web address",
            hint="for example HF_ENDPOINT=https://hf-mirror.com, or unset it",
            field="HF_ENDPOINT",
        )
    secrets = {"Authorization": f"Bearer {token}"} if token else {}
    variable = "" if endpoint == DEFAULT_ENDPOINT else "HF_ENDPOINT"
    return Site("huggingface.co", endpoint, variable, secrets, _ORIGINS, _limits())


def _limits() -> Limits:
    seconds = os.environ.get("HF_HUB_DOWNLOAD_TIMEOUT", "")
    if seconds.isdecimal() and 0 < int(seconds) < 3600:
        return Limits(step_s=float(seconds), total_s=6.0 * float(seconds))
    return Limits()


def _token() -> str:
    from huggingface_hub import constants, get_token  # noqa: PLC0415 - as above

    if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN:
        return ""
    try:
        return get_token() or ""
    except Exception:
        return ""  # a token that can't be had is none; what needs one says so
