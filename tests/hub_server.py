"""A hub on loopback: a real HTTP server that answers as the Hugging Face hub, its storage and ModelScope do.

``HubServer`` holds repositories and faults. A fault says what goes wrong with paths that hold its text:
``{"config.json": "slow"}``. Large files are stored by their beginning and a size: no test writes a terabyte.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_secretsecretsecret"  # noqa: S105 - of no account anywhere


@dataclass
class File:
    """A file's beginning and its size; the rest is zeros. Large ones are handed out by the storage."""

    data: bytes
    size: int = -1
    linked: bool = False

    def __post_init__(self) -> None:
        self.size = len(self.data) if self.size < 0 else self.size

    @property
    def etag(self) -> str:
        digest = hashlib.sha256(self.data) if self.linked else hashlib.sha1(self.data, usedforsecurity=False)
        return digest.hexdigest()

    def part(self, start: int, length: int) -> bytes:
        return self.data[start : start + length].ljust(length, b"\0")


@dataclass
class Repo:
    files: dict[str, File]
    revisions: dict[str, str] = field(default_factory=lambda: {"main": COMMIT})
    access: str = "public"  # or gated, private

    def commit(self, revision: str) -> str | None:
        return self.revisions.get(revision, revision if revision in self.revisions.values() else None)


class HubServer:
    """Two servers on two ports: the hub and its storage."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.faults: dict[str, str] = {}
        self.codes = True  # mirrors leave X-Error-Code out
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.sent_bytes = 0
        self._stop = threading.Event()
        self._hub = self._serve(_Hub)
        self._storage = self._serve(_Storage)

    def _serve(self, handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        server.hub = self
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._hub.server_port}"

    @property
    def storage_url(self) -> str:
        return f"http://127.0.0.1:{self._storage.server_port}"

    def add(self, name: str, files: dict[str, File | bytes | dict], **settings: object) -> Repo:
        made = {}
        for file, content in files.items():
            data = json.dumps(content).encode() if isinstance(content, dict) else content
            made[file] = data if isinstance(data, File) else File(data)
        self.repos[name] = Repo(made, **settings)
        return self.repos[name]

    def paths(self, method: str = "") -> list[str]:
        """Return the paths asked for, of one method or all."""
        return [path for verb, path, _ in self.requests if method in ("", verb)]

    def wait(self, seconds: float) -> None:
        self._stop.wait(seconds)

    def close(self) -> None:
        self._stop.set()
        for server in (self._hub, self._storage):
            server.shutdown()
            server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def hub(self) -> HubServer:
        return self.server.hub

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.hub.requests.append((self.command, self.path, headers))
        faults = [fault for text, fault in self.hub.faults.items() if text in unquote(self.path)]
        with suppress(BrokenPipeError, ConnectionResetError):
            for fault in faults:
                only, _, kind = fault.rpartition(" ")
                if only in ("", self.command) and self.break_as(kind):
                    return
            self.answer()

    def answer(self) -> None:
        raise NotImplementedError

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        if self.command != "HEAD":
            self.write(body)

    def write(self, data: bytes) -> None:
        self.wfile.write(data)
        self.hub.sent_bytes += len(data)

    def break_as(self, kind: str) -> bool:
        """Go wrong; False where the normal answer follows."""
        if kind.isdecimal():
            self.reply(int(kind), b"<html>hf_secretsecretsecret</html>")
            return True
        broken = getattr(self, f"fault_{kind.replace('-', '_').partition('=')[0]}")
        return bool(broken(kind.partition("=")[2]))

    def fault_limited(self, seconds: str) -> bool:
        self.reply(429, Retry_After=seconds)
        return True

    def fault_ratelimit(self, seconds: str) -> bool:
        self.reply(429, RateLimit=f'"api";r=0;t={seconds}')
        return True

    def fault_slow(self, _: str) -> bool:
        self.hub.wait(20)
        return True

    def fault_drip(self, _: str) -> bool:
        """Slow loris in the body: a byte now and then, for ever."""
        self.send_response(200)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        for _ in range(200):
            self.write(b" ")
            self.wfile.flush()
            self.hub.wait(0.1)
        return True

    def fault_drip_header(self, _: str) -> bool:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(200):
            self.wfile.write(b"X-%d: y\r\n" % number)
            self.wfile.flush()
            self.hub.wait(0.1)
        return True

    def fault_cut(self, _: str) -> bool:
        self.close_connection = True
        self.send_response(200)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", '"x1"')
        self.send_header("Content-Length", "500")
        self.end_headers()
        if self.command != "HEAD":
            self.write(b"{")
        return True

    def fault_reset(self, _: str) -> bool:
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        return True

    def fault_silent(self, _: str) -> bool:
        self.close_connection = True
        return True

    def fault_garbage(self, _: str) -> bool:
        self.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        self.close_connection = True
        return True

    def fault_wrong_length(self, _: str) -> bool:
        self.reply(200, b"{}", X_Repo_Commit=COMMIT, ETag='"x2"', X_Linked_Size="77")
        return True

    def fault_portal(self, _: str) -> bool:
        self.reply(200, b"<html>please log in</html>")
        return True

    def fault_huge(self, _: str) -> bool:
        """More than any config, without saying so beforehand."""
        self.send_response(200)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", '"x3"')
        self.end_headers()
        self.close_connection = True
        if self.command != "HEAD":
            for _ in range(40):
                self.write(b" " * (1 << 20))
        return True

    def fault_announced(self, _: str) -> bool:
        self.reply(200, b"{}", X_Repo_Commit=COMMIT, ETag='"x4"', Content_Length=str(1 << 60))
        return True

    def fault_bad_token(self, _: str) -> bool:
        self.reply(401, X_Error_Message="Invalid credentials in Authorization header")
        return True

    def fault_redirect(self, target: str) -> bool:
        self.reply(302, Location=target)
        return True

    def fault_loop(self, _: str) -> bool:
        self.reply(307, Location=self.path)
        return True

    def fault_relative(self, _: str) -> bool:
        """The hub sends on within itself first, as it does for small files."""
        if "cached=1" in self.path:
            return False
        self.reply(307, Location=f"{self.path}?cached=1")
        return True

    def send_file(self, file: File, **headers: str) -> None:
        """Answer with a file or the range of it that was asked for."""
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if match is None:
            self.reply(200, file.part(0, min(file.size, 1 << 22)), Content_Length=str(file.size), **headers)
            return
        start, last = int(match[1]), min(int(match[2]), file.size - 1)
        if start >= file.size:
            self.reply(416, Content_Range=f"bytes */{file.size}", **headers)
            return
        told = f"bytes {start}-{last}/{file.size}"
        self.reply(206, file.part(start, last - start + 1), Content_Range=told, **headers)


class _Storage(_Handler):
    """The storage behind the hub; it must never see a token."""

    def answer(self) -> None:
        if "Authorization" in self.headers or "Cookie" in self.headers:
            self.reply(400)
            return
        _, _, name, file = self.path.partition("?")[0].split("/", 3)
        found = self.hub.repos[name.replace("--", "/")].files[unquote(file)]
        self.send_file(found, ETag=f'"{found.etag}"', Accept_Ranges="bytes")

    def fault_no_ranges(self, _: str) -> bool:
        del self.headers["Range"]
        return False

    def fault_shifted(self, _: str) -> bool:
        start, last = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups()
        self.reply(206, b"x" * 10, Content_Range=f"bytes {int(start) + 1}-{int(start) + 10}/{int(last) + 99}")
        return True

    def fault_changed(self, _: str) -> bool:
        """Another version from the second range on."""
        if self.headers["Range"].startswith("bytes=0-"):
            return False
        start, last = (int(n) for n in re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
        self.reply(
            206, b"x" * (last - start + 1), Content_Range=f"bytes {start}-{last}/{last + 7}", ETag='"new"'
        )
        return True

    def fault_short(self, _: str) -> bool:
        start, last = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups()
        told = f"bytes {start}-{last}/{int(last) + 1000}"
        self.close_connection = True
        self.send_response(206)
        self.send_header("Content-Range", told)
        self.send_header("Content-Length", str(int(last) - int(start) + 1))
        self.end_headers()
        self.write(b"y")
        return True

    def fault_expired(self, _: str) -> bool:
        """Signed addresses run out: 403 unless it is the newest one."""
        if "fresh" in self.path and self.hub.requests[-2][1].startswith("/storage") is False:
            return False
        if self.headers["Range"].startswith("bytes=0-"):
            return False
        self.reply(403)
        return True


class _Hub(_Handler):
    """The hub: /ID/resolve/REV/FILE and /api/models/ID; ModelScope: /api/v1/models/ID/repo."""

    def answer(self) -> None:
        path = urlsplit(self.path).path
        if path.startswith("/api/v1/models/"):
            self.modelscope(path)
        elif path.startswith("/api/models/"):
            name, _, revision = path.removeprefix("/api/models/").partition("/revision/")
            self.listing(name, unquote(revision or "main"))
        elif "/resolve/" in path:
            name, _, rest = path[1:].partition("/resolve/")
            revision, _, file = rest.partition("/")
            self.resolve(name, unquote(revision), unquote(file))
        else:
            self.refuse(404)

    def refuse(self, status: int, code: str = "", **headers: str) -> None:
        told = {"X_Error_Code": code} if code and self.hub.codes else {}
        self.reply(status, f"{TOKEN} refused".encode(), **told, **headers)

    def repo(self, name: str) -> Repo | None:
        """Return a repository that the caller may see; answers for those that it may not."""
        repo = self.hub.repos.get(name)
        known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if repo is None or (repo.access == "private" and not known):
            self.refuse(404 if known or not self.hub.codes else 401, "RepoNotFound")
            return None
        if repo.access == "gated" and "api" not in self.path:
            self.refuse(403 if known else 401, "GatedRepo")
            return None
        return repo

    def listing(self, name: str, revision: str) -> None:
        repo = self.repo(name)
        if repo is None:
            return
        if repo.commit(revision) is None:
            self.refuse(404, "RevisionNotFound")
            return
        blobs = "blobs=true" in self.path
        siblings = [
            {"rfilename": file, **({"size": found.size} if blobs else {})}
            for file, found in repo.files.items()
        ]
        body = json.dumps({"id": name, "sha": repo.commit(revision), "siblings": siblings})
        self.reply(200, body.encode(), Content_Type="application/json")

    def resolve(self, name: str, revision: str, file: str) -> None:
        repo = self.repo(name)
        if repo is None:
            return
        commit = repo.commit(revision)
        if commit is None:
            self.refuse(404, "RevisionNotFound")
            return
        found = repo.files.get(file)
        if found is None:
            self.refuse(404, "EntryNotFound", X_Repo_Commit=commit)
            return
        told = {"X_Repo_Commit": commit}
        if found.linked:
            signed = f"{self.hub.storage_url}/storage/{name.replace('/', '--')}/{file}?Signature={time.time_ns()}-fresh"
            self.reply(
                302,
                b"found",
                Location=signed,
                X_Linked_Size=str(found.size),
                X_Linked_ETag=f'"{found.etag}"',
                **told,
            )
            return
        self.send_file(found, ETag=f'"{found.etag}"', **told)

    # -- ModelScope -------------------------------------------------------------------------------

    def modelscope(self, path: str) -> None:
        query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
        name, _, rest = path.removeprefix("/api/v1/models/").partition("/repo")
        repo = self.hub.repos.get(name)
        known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if repo is None or (repo.access != "public" and not known):
            self.reply(404 if repo is None else 403, b'{"Code": 10010205001, "Success": false}')
            return
        commit = COMMIT if query.get("Revision") == "master" else repo.commit(query.get("Revision", "main"))
        if rest == "/files":
            rows = [
                {
                    "Name": file.rpartition("/")[2],
                    "Path": file,
                    "Type": "blob",
                    "Size": found.size,
                    "Revision": COMMIT,
                }
                for file, found in repo.files.items()
            ]
            data = {"Files": rows, "LatestCommitter": {"Id": "", "ShortId": COMMIT[:8]}}
            if commit is None:
                data = {"Files": None, "LatestCommitter": None}
            self.reply(200, json.dumps({"Code": 200, "Success": True, "Data": data}).encode())
            return
        found = repo.files.get(query.get("FilePath", ""))
        if commit is None or found is None:
            self.reply(404, b'{"Code": 10990101007, "Success": false}')
            return
        self.send_file(found)
