"""What a hub's refusal means, and the step to take."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from kvgauge.errors import (
    DamagedFileError,
    GatedModelError,
    KvgaugeError,
    ModelNotFoundError,
    NetworkError,
)
from kvgauge.sources.catalogue import did_you_mean
from kvgauge.sources.failures import address_of
from kvgauge.sources.json_text import MAX_CONFIG_BYTES, parse_object
from kvgauge.sources.names import HubName
from kvgauge.sources.transport import Answer, Site

_RATE_LIMIT = re.compile(r";\s*t\s*=\s*(\d{1,6})", re.ASCII)
_LOG_IN = "log in with 'hf auth login' or set HF_TOKEN"
_MAX_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Refusals:
    """Explains what the hub says about one repository."""

    site: Site
    name: HubName

    def of(self, answer: Answer, file: str) -> KvgaugeError | None:
        """Return the error that an answer of 400 or more means; None where just the file is missing."""
        code = answer.headers.get("x-error-code", "")
        if code == "EntryNotFound":
            return None
        told = self._told_by_code(code)
        if told is not None:
            return told
        told_by_status: dict[int, Callable[[], KvgaugeError | None]] = {
            401: lambda: self._unauthorized(answer),
            403: self._forbidden,
            404: self._told_by_listing,
            451: self._disabled,
        }
        if answer.status in told_by_status:
            return told_by_status[answer.status]()
        return busy(self.site, answer) or self.site.failure(f"{file}: the server answers {answer.status}")

    def _told_by_code(self, code: str) -> KvgaugeError | None:
        """Return what the hub says in so many words, or None where it says nothing of use."""
        told: dict[str, Callable[[], KvgaugeError]] = {
            "GatedRepo": self._gated,
            "RevisionNotFound": self._without_revision,
            "RepoNotFound": self._missing,
            "DisabledRepo": self._disabled,
        }
        return told[code]() if code in told else None

    def without_config(self) -> KvgaugeError:
        """Return the error of a repository that holds no config.json: says what it does hold."""
        files = self._files(self.name.revision or "main")
        return no_config(self.name, files or (), self.site.shown)

    def without_file(self, file: str) -> KvgaugeError:
        """Return the error of a file that the repository does not hold."""
        files = [name for name in self._files(self.name.revision or "main") or () if name.endswith(".gguf")]
        return no_file(self.name, file, files, self.site.shown)

    def _gated(self) -> GatedModelError:
        page = f"{address_of(self.site.endpoint)}/{self.name.id}"
        step = "the account of this token has no access yet" if self.site.secrets else f"then {_LOG_IN}"
        return GatedModelError(
            f"{self.name.id} is gated on {self.site.shown}",
            hint=f"accept its licence at {page}, {step}; or give its config.json",
            field="MODEL",
        )

    def _disabled(self) -> ModelNotFoundError:
        return self._not_found("is disabled by the hub", "give its config.json")

    def _forbidden(self) -> GatedModelError:
        return GatedModelError(
            f"{self.site.shown} does not let this token read {self.name.id}",
            hint="check what the token may read and what the organisation allows, or give its config.json",
            field="MODEL",
        )

    def _unauthorized(self, answer: Answer) -> KvgaugeError:
        """A 401 without a code: the hub hides what may be private, or does not accept the token."""
        refused = "credential" in answer.headers.get("x-error-message", "").lower()
        if self.site.secrets and refused:
            return GatedModelError(
                f"{self.site.shown} does not accept the token",
                hint="log in again with 'hf auth login', set a valid HF_TOKEN, or unset it",
                field="MODEL",
            )
        return self._missing()

    def _missing(self) -> ModelNotFoundError:
        what = "does not exist" if self.site.secrets else "does not exist or is private"
        step = "this token may not see it" if self.site.secrets else f"if it is private, {_LOG_IN}"
        return self._not_found(what, f"{step}; or give a config.json")

    def _not_found(self, what: str, step: str) -> ModelNotFoundError:
        hint = did_you_mean(self.name.id) + step
        return ModelNotFoundError(f"{self.name.id} {what} ({self.site.shown})", hint=hint, field="MODEL")

    def _without_revision(self) -> ModelNotFoundError:
        return no_revision(self.name, self.site.shown)

    def _told_by_listing(self) -> KvgaugeError | None:
        """A 404 without a code, as mirrors send it: ask for the list of files to tell what is missing."""
        if self._files(self.name.revision or "main") is not None:
            return None
        if self.name.revision is not None and self._files("main") is not None:
            return self._without_revision()
        return self._missing()

    def _files(self, revision: str) -> list[str] | None:
        """Return the names of the repository's files, or None where there is no such revision."""
        files = self.listing(revision)
        return None if files is None else list(files)

    def listing(self, revision: str, query: str = "") -> dict[str, int | None] | None:
        """Return the repository's files and, asked with ``?blobs=true``, their bytes; None: no such revision.

        Raises:
            NetworkError: the hub is busy or fails.
        """
        url = f"{self.site.endpoint}/api/models/{self.name.id}/revision/{quote(revision, safe='')}{query}"
        answer = self.site.ask(url, max_bytes=MAX_CONFIG_BYTES + 1)
        if answer.status != 200:
            problem = busy(self.site, answer)
            if problem is not None:
                raise problem
            return None
        try:
            siblings = parse_object(answer.body, "the list of files").get("siblings")
        except DamagedFileError:
            return {}
        rows = siblings if isinstance(siblings, list) else []
        named = [row for row in rows if isinstance(row, dict) and "rfilename" in row]
        return {str(row["rfilename"]): _size(row.get("size")) for row in named}


def _size(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def busy(site: Site, answer: Answer) -> NetworkError | None:
    """Return the error of a server that is busy or broken, else None."""
    if answer.status == 429:
        return site.failure("too many requests (429)", f"try again {_when(answer)}; a token raises the limit")
    if answer.status >= 500:
        return site.failure(f"the server fails ({answer.status})", f"try again {_when(answer)}")
    return None


def _when(answer: Answer) -> str:
    limit = _RATE_LIMIT.search(answer.headers.get("ratelimit", ""))
    after = answer.headers.get("retry-after", "").strip()
    seconds = after if after.isascii() and after.isdigit() and len(after) < 7 else limit[1] if limit else ""
    return f"in {int(seconds)} s" if seconds else "later"


def no_revision(name: HubName, where: str) -> ModelNotFoundError:
    """Return the error of a revision that a repository does not have."""
    return ModelNotFoundError(
        f"{name.shown} has no revision {(name.revision or '')[:60]} on {where}",
        hint="leave it out for the default branch, or look up its branches, tags and commits",
        field="revision",
    )


def no_config(name: HubName, files: Sequence[str], where: str) -> ModelNotFoundError:
    """Return the error of a repository without config.json."""
    ggufs = sorted(file for file in files if file.lower().endswith(".gguf") and "mmproj" not in file.lower())
    if ggufs:
        hint = f"it holds GGUF files: try {' or '.join(f'{name.shown}:{file}' for file in ggufs[:2])}"
    elif "adapter_config.json" in files:
        hint = "it holds an adapter: give the model that it was trained on"
    elif files:
        hint = f"it holds {_some(files)}; give the config.json of the model that it belongs to"
    else:
        hint = "give the config.json of the model that it belongs to"
    return ModelNotFoundError(f"{name.shown} holds no config.json on {where}", hint=hint, field="MODEL")


def no_file(name: HubName, file: str, files: Sequence[str], where: str) -> ModelNotFoundError:
    """Return the error of a file that a repository does not hold; ``files`` are those that could be meant."""
    hint = f"it holds {_some(files)}" if files else "look up its list of files"
    return ModelNotFoundError(f"{name.shown} holds no {file[:120]} on {where}", hint=hint, field="MODEL")


def _some(files: Iterable[str]) -> str:
    names = sorted(files)
    more = f" and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else ""
    return ", ".join(name[:80] for name in names[:_MAX_SHOWN]) + more
