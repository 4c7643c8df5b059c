"""``kvgauge serve`` as a process: where it listens, how it ends, and who is kept waiting."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from hub_server import HubServer
from kvgauge.cli.app import execute
from test_schemas import validate

START = "import sys; from kvgauge.cli import main; sys.exit(main())"


@contextmanager
def serving(*words: str, start: str = START, **env: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server of its own process, and its address."""
    command = [sys.executable, "-c", start, "serve", "--port", "0", "--json", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, encoding="utf-8", env={**os.environ, **env}
    ) as process:
        try:
            told = json.loads(process.stdout.readline())
            validate("serve", told)
            yield process, told["url"]
        finally:
            process.kill()


def get(url: str) -> dict:
    with urllib.request.urlopen(url, timeout=60) as response:  # noqa: S310 - on loopback
        return json.load(response)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_and_what_is_being_answered_is_answered(number, code):
    with serving("--offline") as (process, url):
        assert get(f"{url}api/v1/size?model=Qwen/Qwen3-8B")["cache"]["total_bytes"] == 4831838208
        found = []
        asking = threading.Thread(target=lambda: found.append(get(f"{url}api/v1/models?filter=q")))
        asking.start()
        time.sleep(0.2)
        process.send_signal(number)
        assert process.wait(20) == code
        asking.join(20)
        assert len(found[0]["models"]) > 100
        assert process.stderr.read() == ""
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((urlsplit(url).hostname, urlsplit(url).port))


def test_a_hub_that_does_not_answer_does_not_keep_it():
    hub = HubServer()
    hub.faults["org/slow"] = "slow"
    settings = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "NO_PROXY": "*"}
    with serving(**settings) as (process, url):
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname, parts.port)) as client:
            client.sendall(
                f"GET /api/v1/size?model=org/slow HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode()
            )
            deadline = time.monotonic() + 20
            while not hub.requests and time.monotonic() < deadline:
                time.sleep(0.05)
            assert hub.requests
            process.terminate()
            assert process.wait(15) == 0
    hub.close()


@pytest.mark.parametrize(
    "beginning", [b"", b"GET / HTTP/1.1\r\nHost: 127", b"POST /api/v1/size HTTP/1.1\r\nHost: "]
)
def test_who_says_nothing_is_not_waited_for(beginning):
    start = START.replace("sys.exit", "import kvgauge.web.serving as s; s._HEAD_S = 0.5; sys.exit")
    with serving("--offline", start=start) as (_, url):
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname, parts.port), timeout=20) as client:
            client.sendall(beginning)
            assert client.recv(100) == b""
        used = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
        used.connect()
        before = used.sock
        for _ in range(2):  # a connection that is used stays open
            used.request("GET", "/api/v1/engines")
            assert json.load(used.getresponse())["engines"]
            assert used.sock is before
            time.sleep(0.7)
        used.close()


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"nonsense\r\n\r\n", 400, "invalid_request"),
        (b"GET / HTTP/9.9\r\nConnection: close\r\n\r\n", 403, "forbidden"),
        (b"\x16\x03\x01\x02", 400, "invalid_request"),
        (b"GET /" + b"x" * 70_000, 400, "invalid_request"),
    ],
)
def test_what_is_no_http_ends_the_connection_alone(data, status, code):
    with serving("--offline") as (process, url):
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname, parts.port), timeout=20) as client:
            client.sendall(data + b"\r\n\r\n")
            head, _, body = client.makefile("rb").read().partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 %d" % status)
            assert b"nosniff" in head
            refused = json.loads(body)
            validate("error", refused)
            assert refused["error"]["code"] == code
        assert get(f"{url}api/v1/engines")["engines"]
        process.terminate()
        assert process.wait(15) == 0
        assert process.stderr.read() == ""


def test_one_connection_too_many_is_told_so_and_closed():
    start = f"import kvgauge.web.serving as serving; serving._MAX_CONNECTIONS = 2; {START}"
    with serving("--offline", "--lang", "zh", start=start) as (_, url):
        parts = urlsplit(url)
        place = (parts.hostname, parts.port)
        with socket.create_connection(place), socket.create_connection(place) as last:
            third = http.client.HTTPConnection(*place, timeout=20)
            third.request("GET", "/api/v1/engines")
            response = third.getresponse()
            assert (response.status, response.headers["retry-after"]) == (503, "1")
            refused = json.load(response)
            validate("error", refused)
            assert refused["error"] == {
                "code": "busy", "message": "等待回答的请求过多", "hint": "请稍后重试", "field": None,
            }  # fmt: skip
            assert response.isclosed()
            assert third.sock is None  # the server has said that it closes
            last.close()
            time.sleep(0.3)
            assert get(f"{url}api/v1/engines")["engines"]


def test_what_is_taken_is_said(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert execute(["serve", "--port", str(port)]) == 2
    assert f"can't listen on 127.0.0.1 port {port}: something else listens there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "field"),
    [(["--port", "70000"], "port"), (["--port", "-1"], "port"), (["--host", "192.0.2.1"], "host"),
     (["--host", "a..b"], "host")],
)  # fmt: skip
def test_where_it_can_not_listen(words, field, capsys):
    assert execute(["serve", "--json", *words]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["field"]) == ("invalid_request", field)


def test_it_says_that_it_is_open():
    with serving("--offline", "--host", "0.0.0.0") as (process, url):  # noqa: S104 - to see the warning
        port = urlsplit(url).port
        assert get(f"http://127.0.0.1:{port}/api/v1/engines")["engines"]
        process.terminate()
        assert process.wait(15) == 0
        assert "whoever reaches this machine can ask" in process.stderr.read()


def test_without_the_extra_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr("kvgauge.cli.serve.find_spec", lambda name: None)
    assert execute(["serve", "--json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "missing_extra"
    assert "kvgauge[web]" in error["hint"]


def test_what_nobody_waits_for_is_not_computed():
    slow = "import time, kvgauge.web.answers as a; real = a.fit; done = []"
    spy = "a.fit = lambda *x, **y: (time.sleep(0.5), print('computed', flush=True), real(*x, **y))[2]"
    with serving("--offline", start=START.replace("sys.exit", f"{slow}; {spy}; sys.exit")) as (process, url):
        parts = urlsplit(url)
        request = (
            f"GET /api/v1/fit?model=Qwen/Qwen3-8B&gpu=H100 HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode()
        )
        get(f"{url}api/v1/fit?model=Qwen/Qwen3-8B&gpu=H100")  # after the answers that it gives itself
        for _ in range(12):
            with socket.create_connection((parts.hostname, parts.port)) as client:
                client.sendall(request)
                time.sleep(0.03)
        get(f"{url}api/v1/fit?model=Qwen/Qwen3-8B&gpu=H100")
        process.terminate()
        assert process.wait(15) == 0
        assert process.stdout.read().count("computed") <= 2 + 1 + 4


def test_large_bodies_are_few_at_once():
    with serving("--offline") as (_, url):
        parts = urlsplit(url)
        place, kind = (parts.hostname, parts.port), "application/octet-stream"
        head = f"POST /api/v1/gguf?size=9 HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: {kind}\r\n"
        held = [socket.create_connection(place) for _ in range(4)]
        for client in held:
            client.sendall(f"{head}Content-Length: 9\r\n\r\nGG".encode())
        time.sleep(0.5)
        assert status_of(place, kind) == 503
        held[0].close()
        deadline = time.monotonic() + 20
        while status_of(place, kind) == 503 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert status_of(place, kind) == 200
        for client in held:
            client.close()


def status_of(place: tuple[str, int], kind: str) -> int:
    """Send the beginning of a file; return what is said."""
    client = http.client.HTTPConnection(*place, timeout=20)
    client.request("POST", "/api/v1/gguf?size=5000", b"GGUF", {"Content-Type": kind})
    status = client.getresponse().status
    client.close()
    return status
