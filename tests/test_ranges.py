"""Reading remote files by ranges: few requests, bounded, and nothing that does not fit is accepted."""

from __future__ import annotations

import dataclasses
import time

import pytest

from hub_server import COMMIT, TOKEN, File, HubServer
from kvgauge.errors import NetworkError
from kvgauge.sources.failures import address_of
from kvgauge.sources.ranges import RangeLimits, RangeReader
from kvgauge.sources.transport import Limits, Site, whole_number

FAST = Limits(step_s=0.4, total_s=0.8)
DATA = bytes(range(256)) * 40_000  # 10.24 MB


@pytest.fixture
def server():
    found = HubServer()
    found.add(
        "org/big",
        {"big.gguf": File(DATA, linked=True), "small.gguf": File(b"abc", linked=True), "plain": b"xyz"},
    )
    yield found
    found.close()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def reader(server: HubServer, file: str = "big.gguf", limits: RangeLimits | None = None) -> RangeReader:
    site = Site(
        "huggingface.co", server.url, "HF_ENDPOINT", {"Authorization": f"Bearer {TOKEN}"}, limits=FAST
    )
    url = f"{server.url}/org/big/resolve/main/{file}"
    return RangeReader(site, url, file, limits or RangeLimits())


def opened(*args: object, **kwargs: object) -> RangeReader:
    made = reader(*args, **kwargs)
    assert made.open().status in (200, 206)
    return made


def test_what_is_read_is_what_is_there(server):
    found = opened(server, limits=RangeLimits(first_bytes=1000, max_ahead_bytes=4000))
    assert found.size == len(DATA)
    assert found.headers["x-repo-commit"] == COMMIT
    for offset, length in [
        (0, 8),
        (990, 20),
        (5000, 3000),
        (0, 12_000),
        (len(DATA) - 5, 5),
        (700, 0),
        (77, 1),
    ]:
        assert found.read(offset, length) == DATA[offset : offset + length], (offset, length)
    assert found.read(len(DATA) - 2, 10) == DATA[-2:]
    assert found.read(len(DATA), 1) == found.read(len(DATA) + 9, 1) == found.read(-1, 1) == b""


def test_a_header_costs_few_requests(server):
    found = opened(server)
    for offset in range(0, 1 << 20, 1 << 12):
        found.read(offset, 1 << 12)
    assert (found.num_requests, found.num_bytes) == (1, 1 << 20)
    assert len(server.requests) == 2  # the hub, and its storage
    for offset in range(0, 8 << 20, 1 << 16):
        found.read(offset, 1 << 16)
    assert found.num_requests == 4  # 1 + 2 + 4 MiB, then the rest
    assert len(server.requests) == 5  # the storage's address is kept


def test_the_token_stays_with_the_hub(server):
    opened(server).read(0, 10)
    seen = {path.split("/")[1]: headers.get("authorization") for _, path, headers in server.requests}
    assert seen == {"org": f"Bearer {TOKEN}", "storage": None}
    assert TOKEN not in repr(reader(server).site)


def test_small_and_empty_files(server):
    server.repos["org/big"].files["empty"] = File(b"", linked=True)
    assert opened(server, "small.gguf").read(0, 100) == b"abc"
    assert opened(server, "plain").read(1, 1) == b"y"
    found = reader(server, "empty")
    assert found.open().status == 416
    assert (found.size, found.read(0, 4)) == (0, b"")


def test_a_terabyte_costs_what_its_header_costs(server):
    server.repos["org/big"].files["huge"] = File(DATA, 1 << 40, linked=True)
    found = opened(server, "huge")
    assert found.size == 1 << 40
    assert found.read(1 << 39, 16) == bytes(16)
    assert server.sent_bytes < 4 << 20


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("no-ranges", "does not answer ranges"),
        ("changed", "changed while it was read"),
        ("500", "answers 500"),
        ("429", "answers 429"),
        ("404", "does not answer ranges"),
        ("silent", "cut the answer off"),
        ("reset", "cut the answer off"),
        ("garbage", "does not answer in HTTP"),
        ("slow", "within 0.4 s"),
        ("drip-header", "in time"),
        ("drip", "in time"),
        ("redirect=https://elsewhere.example/x", "redirects elsewhere"),
    ],
)
def test_faults_of_the_storage_in_a_later_range(server, fault, said):
    found = opened(server, limits=RangeLimits(first_bytes=100))
    server.faults["storage"] = fault
    begin = time.monotonic()
    with pytest.raises(NetworkError, match=said) as caught:
        found.read(5000, 10)
    assert time.monotonic() - begin < 3
    assert caught.value.exit_code == 5
    assert caught.value.hint
    assert TOKEN not in str(caught.value.to_dict())
    assert "Signature" not in str(caught.value.to_dict())


@pytest.mark.parametrize("fault", ["shifted", "short", "wrong-length", "slow", "drip", "drip-header", "loop"])
def test_faults_of_the_storage_in_the_first_range(server, fault):
    server.faults["storage"] = fault
    begin = time.monotonic()
    with pytest.raises(NetworkError):
        reader(server).open()
    assert time.monotonic() - begin < 3


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("redirect=file:///etc/passwd", "no web address"),
        ("redirect=ftp://x/y", "no web address"),
        ("loop", "more than 5 times"),
        ("302", "more than 5 times"),
    ],
)
def test_redirects_of_the_hub(server, fault, said):
    server.faults["org/big"] = fault
    with pytest.raises(NetworkError, match=said):
        reader(server).open()


def test_encryption_is_not_left():
    site = Site("huggingface.co", "https://hub.example")
    with pytest.raises(NetworkError, match="without encryption"):
        site._check_redirect("https://hub.example/x", "http://storage.example/x")


def test_another_file_than_the_hub_announced(server):
    server.repos["org/big"].files["big.gguf"].size -= 1
    server.faults["/org/big/resolve"] = f"redirect={server.storage_url}/storage/org--big/big.gguf"
    found = opened(server)
    assert found.size == len(DATA) - 1


def test_limits_of_requests_bytes_and_time(server):
    small = RangeLimits(first_bytes=100, max_ahead_bytes=100, max_requests=3)
    found = opened(server, limits=small)
    found.read(1000, 10)
    found.read(3000, 10)
    with pytest.raises(NetworkError, match="more than 3 requests"):
        found.read(9000, 10)
    found = opened(server, limits=dataclasses.replace(small, max_total_bytes=1 << 20))
    with pytest.raises(NetworkError, match="1 MiB"):
        found.read(1000, 2 << 20)
    found = opened(server, limits=dataclasses.replace(small, total_s=-1.0 + 1e9))
    found._spent_s = 2e9
    with pytest.raises(NetworkError, match="takes more than"):
        found.read(1000, 10)


def test_a_signed_address_that_ran_out_is_asked_for_again(server):
    found = opened(server, limits=RangeLimits(first_bytes=100))
    found._location = f"{server.storage_url}/gone"
    server.faults["/gone"] = "403"
    assert found.read(5000, 10) == DATA[5000:5010]


def test_nobody_listens():
    site = Site("huggingface.co", "http://127.0.0.1:9", "HF_ENDPOINT", limits=FAST)
    with pytest.raises(
        NetworkError, match=r"mirror http://127.0.0.1:9 \(HF_ENDPOINT\).*refuses the connection"
    ):
        site.ask("http://127.0.0.1:9/x")


@pytest.mark.parametrize(
    ("proxy", "said"),
    [
        ("socks5://127.0.0.1:1", "SOCKS"),
        ("http://user:geheim@127.0.0.1:9", "through the proxy http://127.0.0.1:9 refuses"),
    ],
)
def test_proxies_are_used_and_named_without_secrets(monkeypatch, proxy, said):
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.setenv("NO_PROXY", "")
    with pytest.raises(NetworkError, match=said) as caught:
        Site("huggingface.co", "http://hub.example", limits=FAST).ask("http://hub.example/x")
    assert "geheim" not in str(caught.value.to_dict())


def test_a_proxy_carries_the_request(server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", server.url)
    monkeypatch.setenv("NO_PROXY", "")
    answer = Site("huggingface.co", "http://hub.example", limits=FAST).ask("http://hub.example/x")
    assert answer.status == 404
    assert server.paths() == ["http://hub.example/x"]


def test_a_proxy_that_opens_no_tunnel(server, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", server.url)
    monkeypatch.setenv("NO_PROXY", "")
    with pytest.raises(NetworkError, match="not opened by the proxy"):
        Site("huggingface.co", "https://hub.example", limits=FAST).ask("https://hub.example/x")


def test_https_that_is_none(server):
    url = server.url.replace("http:", "https:")
    with pytest.raises(NetworkError, match="no TLS connection"):
        Site("huggingface.co", url, limits=FAST).ask(url)


def test_small_helpers():
    assert address_of("http://[::1") == "an address that is none"
    assert whole_number("9" * 30) is None
    assert whole_number("٣") is None
