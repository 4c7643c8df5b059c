"""ModelScope: ``ms:org/name``, through its public HTTP API.

``/api/v1/models/{id}/repo/files`` lists a revision, ``/api/v1/models/{id}/repo?FilePath=`` hands out a file.
An unknown revision is answered with an empty list. The endpoint is ``MODELSCOPE_ENDPOINT``, or
``MODELSCOPE_DOMAIN`` without its scheme; a token, if any, is ``MODELSCOPE_API_TOKEN``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode, urlsplit

from kvgauge.errors import (
    DamagedFileError,
    GatedModelError,
    InvalidRequestError,
    KvgaugeError,
    ModelNotFoundError,
)
from kvgauge.sources import RawModel
from kvgauge.sources.catalogue import did_you_mean
from kvgauge.sources.failures import address_of
from kvgauge.sources.hub import download
from kvgauge.sources.hub_cache import CONFIG_FILE, QUANT_FILE, is_commit
from kvgauge.sources.json_text import MAX_CONFIG_BYTES, parse_object
from kvgauge.sources.names import HubName
from kvgauge.sources.ranges import RangeLimits, RangeReader, limits_for
from kvgauge.sources.refusals import busy, no_config, no_file, no_revision
from kvgauge.sources.transport import Answer, Site
from kvgauge.sources.weight_files import Files

DEFAULT_ENDPOINT = "https://www.modelscope.cn"
DEFAULT_REVISION = "master"


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of one revision, name to size in bytes (None where it is not told), and its commit."""

    files: Mapping[str, int | None]
    commit: str | None


@dataclass(frozen=True, slots=True)
class ModelScope:
    """One repository on ModelScope."""

    site: Site
    name: HubName

    def fetched(self) -> RawModel:
        """Return the repository's config.

        Raises:
            ModelNotFoundError, GatedModelError: ModelScope refuses. NetworkError: it does not answer.
            DamagedFileError: the file is not a config.
        """
        listing = self._listing()
        if CONFIG_FILE not in listing.files:
            raise no_config(self.name, list(listing.files), self.site.shown)
        config = self._parsed(listing, CONFIG_FILE)
        side = self._parsed(listing, QUANT_FILE) if QUANT_FILE in listing.files else None
        provenance = urlsplit(self.site.endpoint).hostname or ""
        if listing.commit:
            provenance += f", commit {listing.commit[:12]}"
        return RawModel(self.name.shown, "hub", config, listing.commit, side, provenance=provenance)

    def open(self, file: str, limits: RangeLimits | None = None) -> RangeReader:
        """Open a file for reading by ranges.

        Raises:
            ModelNotFoundError, GatedModelError: ModelScope refuses. NetworkError: it does not answer ranges.
        """
        reader = RangeReader(self.site, self._url(file), file, limits or limits_for(file))
        answer = reader.open()
        if answer.status in (200, 206, 416):
            return reader
        listing = self._listing()
        if file in listing.files:
            raise self._refusal(answer)
        raise no_file(self.name, file, [f for f in listing.files if f.endswith(".gguf")], self.site.shown)

    def files(self) -> Files:
        """Return the files of the repository and their bytes.

        Raises:
            KvgaugeError: ``model_not_found``, ``gated``, ``network``.
        """
        return Files(self._listing().files)

    @property
    def _revision(self) -> str:
        return self.name.revision or DEFAULT_REVISION

    def _url(self, file: str) -> str:
        query = urlencode({"Revision": self._revision, "FilePath": file})
        return f"{self.site.endpoint}/api/v1/models/{quote(self.name.id)}/repo?{query}"

    def _parsed(self, listing: Listing, file: str) -> dict[str, object]:
        data = download(self.site, self._url(file), file, listing.files[file])
        return parse_object(data, f"{self.name.id}/{file}")

    def _listing(self) -> Listing:
        found = self._files(self._revision)
        if isinstance(found, Listing):
            return found
        if self.name.revision is not None and isinstance(self._files(DEFAULT_REVISION), Listing):
            raise no_revision(self.name, self.site.shown)
        raise found

    def _files(self, revision: str) -> Listing | KvgaugeError:
        """Return the files of a revision, or why there are none."""
        query = urlencode({"Revision": revision, "Recursive": "true"})
        url = f"{self.site.endpoint}/api/v1/models/{quote(self.name.id)}/repo/files?{query}"
        answer = self.site.ask(url, max_bytes=MAX_CONFIG_BYTES + 1)
        if answer.status != 200 or answer.cut_off:
            return self._refusal(answer)
        try:
            data = parse_object(answer.body, "the list of files").get("Data")
        except DamagedFileError:
            return self.site.failure("it does not answer as ModelScope does")
        rows = data.get("Files") if isinstance(data, dict) else None
        if not isinstance(data, dict) or not isinstance(rows, list):
            return self._missing()
        return _read_listing(data, rows)

    def _refusal(self, answer: Answer) -> KvgaugeError:
        if answer.status in (401, 403):
            page = f"{address_of(self.site.endpoint)}/models/{self.name.id}"
            return GatedModelError(
                f"{self.site.shown} does not hand out {self.name.shown}",
                hint=f"ask for access at {page} and set MODELSCOPE_API_TOKEN",
                field="MODEL",
            )
        if answer.status == 404:
            return self._missing()
        problem = busy(self.site, answer)
        return problem or self.site.failure(f"the server answers {answer.status}")

    def _missing(self) -> ModelNotFoundError:
        what, step = "does not exist", "give a config.json"
        if not self.site.secrets:
            what, step = f"{what} or is private", f"if it is private, set MODELSCOPE_API_TOKEN; or {step}"
        return ModelNotFoundError(
            f"{self.name.shown} {what} ({self.site.shown})",
            hint=f"{did_you_mean(self.name.id)}{step}",
            field="MODEL",
        )


def _read_listing(data: Mapping[str, object], rows: list[object]) -> Listing:
    blobs = [row for row in rows if isinstance(row, dict) and row.get("Type") != "tree"]
    files: dict[str, int | None] = {}
    for row in blobs:
        size = row.get("Size")
        files[str(row.get("Path") or row.get("Name"))] = size if type(size) is int and size >= 0 else None
    latest = data.get("LatestCommitter")
    said = latest if isinstance(latest, dict) else {}
    commit = str(said.get("Id") or said.get("Revision") or "")
    short = str(said.get("ShortId") or "")
    if not is_commit(commit) and len(short) >= 7:
        revisions = {str(row.get("Revision")) for row in blobs}
        commit = next((full for full in sorted(revisions) if full.startswith(short)), "")
    return Listing(files, commit if is_commit(commit) else None)


def connect(name: HubName) -> ModelScope:
    """Return the repository.

    Raises:
        InvalidRequestError: the endpoint is no address.
    """
    variable = next((v for v in ("MODELSCOPE_ENDPOINT", "MODELSCOPE_DOMAIN") if os.environ.get(v)), "")
    endpoint = os.environ.get(variable, "") or DEFAULT_ENDPOINT
    endpoint = (endpoint if "://" in endpoint else f"https://{endpoint}").rstrip("/")
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise InvalidRequestError(
            f"{variable} is no plain web address", hint=f"for example {DEFAULT_ENDPOINT}", field=variable
        )
    token = os.environ.get("MODELSCOPE_API_TOKEN", "").strip()
    secrets = {"Authorization": f"Bearer {token}", "Cookie": f"m_session_id={token}"} if token else {}
    return ModelScope(Site("modelscope.cn", endpoint, variable, secrets), name)
