"""The server keeps to itself what is its own: files, names, other sites; and it stays within its limits."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from gguf_files import QWEN3, gguf
from hub_server import HubServer
from kvgauge.sources import hub
from kvgauge.web.failures import without_paths
from kvgauge.web.guard import POLICY
from kvgauge.web.settings import Limits, WebSettings
from support import ROOT, config_of
from web_support import OFFLINE, answer, client, refusal

NAME = "Qwen/Qwen3-8B"
API = "/api/v1"
SIZE = f"{API}/size?model={NAME}"


@pytest.fixture(scope="module")
def web():
    return client()


# Hosts and sites


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8642", "localhost:9", "LOCALHOST", "[::1]:8642", "127.1.2.3"]
)
def test_it_answers_to_names_of_this_machine(web, host):
    assert web.get(SIZE, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8642", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "a@127.0.0.1",
     "127.0.0.1:x", "[::1", "x" * 300],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", SIZE])
def test_it_answers_to_no_other_name(web, host, path):
    refusal(web.get(path, headers={"Host": host}), 403, "forbidden")


def test_open_to_a_network_it_answers_to_addresses_and_its_own_name():
    opened = client(WebSettings("0.0.0.0", offline=True))  # noqa: S104 - nothing listens
    assert opened.get(SIZE, headers={"Host": "192.168.1.7:8642"}).status_code == 200
    refusal(opened.get(SIZE, headers={"Host": "rebound.example"}), 403, "forbidden")
    named = client(WebSettings("box.example", offline=True))
    assert named.get(SIZE, headers={"Host": "box.example:8642"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://127.0.0.1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_other_site_may_ask(web, headers, method):
    response = web.request(method, SIZE, headers=headers, json={"model": NAME} if method == "POST" else None)
    refusal(response, 403, "forbidden")


def test_its_own_page_may_ask(web):
    own = {"Origin": "http://127.0.0.1:8642", "Sec-Fetch-Site": "same-origin"}
    assert web.post(f"{API}/size", json={"model": NAME}, headers=own).status_code == 200
    assert web.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200  # a link leads here


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_form_of_another_site_is_no_request(web, kind):
    response = web.post(f"{API}/size", content=b'{"model": "a/b"}', headers={"content-type": kind})
    refusal(response, 415, "unsupported_media_type")


def test_nothing_is_allowed_to_others(web):
    response = web.options(SIZE, headers={"Origin": "http://127.0.0.1:8642"})
    assert response.status_code == 405
    assert not any(name.startswith("access-control") for name in response.headers)


@pytest.mark.parametrize("path", ["/", SIZE, "/missing.js", f"{API}/size"])
def test_every_answer_is_guarded(web, path):
    headers = web.get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "default-src 'none'" in POLICY
    assert "unsafe" not in POLICY


# Files of this machine

PATHS = [
    "/etc/passwd", "./config.json", "../x", "~/x", ".", "..", "-", "config.json", "folder", "folder/config.json",
    "org/model", "C:/x", "C:\\x", "\\\\host\\share", "file:///etc/passwd", "ms:../x/y", "ms:/etc/passwd",
    "org/model:../../x.gguf", "org/model:x.gguf", "link", "model.gguf", "pulled:latest", "pulled", " ./config.json",
    "org/model@../../x", "http://127.0.0.1:1/a/b", "https://evil.example/a/b", "/dev/zero", "/proc/self/environ",
]  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder full of models that nobody may read over the web."""
    monkeypatch.chdir(tmp_path)
    config = json.dumps({**config_of(NAME), "num_hidden_layers": 7})
    for folder in ("folder", "org/model"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "config.json").write_text(config)
    (tmp_path / "config.json").write_text(config)
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    (tmp_path / "model.gguf").write_bytes(gguf())
    ollama = tmp_path / "ollama"
    blob = gguf()
    tag = ollama / "manifests/registry.ollama.ai/library/pulled"
    tag.mkdir(parents=True)
    digest = "a" * 64
    layer = {
        "mediaType": "application/vnd.ollama.image.model",
        "digest": f"sha256:{digest}",
        "size": len(blob),
    }
    (tag / "latest").write_text(json.dumps({"layers": [layer]}))
    (ollama / "blobs").mkdir()
    (ollama / "blobs" / f"sha256-{digest}").write_bytes(blob)
    monkeypatch.setenv("OLLAMA_MODELS", str(ollama))
    return tmp_path


@pytest.mark.parametrize("name", PATHS)
def test_no_name_reads_a_file(web, here, name):
    for response in (
        web.post(f"{API}/size", json={"model": name}),
        web.get(f"{API}/fit", params={"model": name, "gpu": "H100"}),
        web.post(f"{API}/verify", json={"log": "x", "model": name}),
    ):
        assert response.status_code in (400, 404), response.text
        assert str(here) not in response.text
    rows = (
        answer(web.post(f"{API}/compare", json={"models": [NAME, name]}), "compare", 200)["rows"]
        if name != "-"
        else []
    )
    assert all("error" in row for row in rows[1:])


def test_a_path_is_refused_whether_it_is_there_or_not(web, here):
    there = web.post(f"{API}/size", json={"model": str(here / "config.json")})
    missing = web.post(f"{API}/size", json={"model": str(here / "nothing.json")})
    assert there.content == missing.content
    refusal(there, 400, "invalid_request")


@pytest.mark.parametrize("keyword", ["gpu_file", "price_file", "configs", "path", "log"])
def test_no_keyword_names_a_file(web, here, keyword):
    body = {"model": NAME, keyword: str(here / "config.json"), "gpu": "H100"}
    refusal(web.post(f"{API}/fit", json=body), 400, "invalid_request")


def test_a_name_in_a_log_reads_no_file(web, here):
    log = (ROOT / "tests/logs/vllm_0.19.0_tp2.log").read_text("utf-8")
    for name in ("org/model", "/a/org/model", f"{here}/org/model", "./org/model"):
        text = log.replace("microsoft/phi-4", name)
        found = answer(web.post(f"{API}/verify", json={"log": text}), "verify")
        assert found["engine"]["model"] is None


@pytest.mark.parametrize("keyword", ["model", "folder", "measure", "file"])
def test_no_topic_runs_a_folder(web, here, keyword):
    body = {keyword: str(here / "folder")}
    refusal(web.post(f"{API}/learn/walk", json=body), 400, "invalid_request")
    if keyword != "model":
        refusal(web.post(f"{API}/learn/activations", json={"model": NAME, **body}), 400, "invalid_request")
    config = {**config_of(NAME), "_name_or_path": str(here / "folder")}
    found = web.post(f"{API}/learn/activations", json={"model": config, "measure": True})
    refusal(found, 400, "invalid_request")


def test_the_page_has_no_other_files(web):
    for path in (
        "/../settings.py",
        "/..%2fsettings.py",
        "/static/../app.py",
        "/%2e%2e/app.py",
        "//etc/passwd",
        "/app.py",
    ):
        response = web.get(path)
        assert b"import" not in response.content
        assert response.status_code in (200, 404)  # the page itself, or nothing


def test_the_machines_own_devices_are_told_to_itself_alone():
    opened = client(WebSettings("0.0.0.0", offline=True), Host="10.0.0.1")  # noqa: S104 - nothing listens
    refusal(opened.get(f"{API}/fit?model={NAME}&gpu=local"), 400, "invalid_request")
    refusal(opened.post(f"{API}/verify", json={"log": "x", "gpu": " LOCAL"}), 400, "invalid_request")


def test_messages_hold_no_path():
    told = (
        "can't read /root/.cache/hub/models--a--b/config.json: C:\\Users\\me\\x.json and ~/.ollama/models/y"
    )
    assert without_paths(told) == "can't read config.json: x.json and y"
    for kept in ("https://huggingface.co/a/b/tree/main", "Qwen/Qwen3-8B", "N/A", "a / b", "and/or/else"):
        assert without_paths(kept) == kept


# Limits


def test_bodies_are_bounded():
    web = client(WebSettings(offline=True, limits=Limits(json_bytes=1000, log_bytes=2000, gguf_bytes=3000)))
    for path, size, kind in (
        ("size", 1000, "application/json"), ("verify", 2000, "text/plain"), ("gguf?size=9999999", 3000, "application/octet-stream"),
    ):  # fmt: skip
        headers = {"content-type": kind}
        too_large = web.post(f"{API}/{path}", content=b" " * (size + 1), headers=headers)
        refusal(too_large, 413, "too_large")
        in_pieces = web.post(f"{API}/{path}", content=iter([b" " * 600] * 6), headers=headers)
        refusal(in_pieces, 413, "too_large")
        assert web.post(f"{API}/{path}", content=b" " * size, headers=headers).status_code in (400, 422)


@pytest.mark.parametrize(
    ("question", "field", "value"),
    [
        ("size", "engine_args", "--flag value " * 1000),
        ("size", "kv_dtype", "x" * 10_000),
        ("size", "overrides", {f"field_{number}": 1 for number in range(1001)}),
        ("plan", "split", "x" * 10_000),
        ("fit", "memory", "1" * 10_000),
        ("verify", "engine_args", "--flag value " * 1000),
    ],
)
def test_values_that_take_long_to_read_are_refused(web, question, field, value):
    body = {"model": NAME, field: value, **({"log": "x"} if question == "verify" else {})}
    if question in ("size", "fit"):
        body["engine"] = "vllm"
    assert refusal(web.post(f"{API}/{question}", json=body), 400, "invalid_request")["field"] == field


def test_an_outsized_model_does_not_hold_up_the_others():
    kinds = ["sliding_attention", "full_attention", "full_attention"] * 660
    config = {
        "model_type": "gemma3_text", "num_hidden_layers": len(kinds), "layer_types": kinds, "hidden_size": 512,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64, "sliding_window": 128,
        "vocab_size": 1000, "intermediate_size": 128, "torch_dtype": "bfloat16",
    }  # fmt: skip
    body = {"model": config, "gpu": "H100:8", "engine": "llama.cpp"}
    settings = WebSettings(offline=True, limits=Limits(answer_s=0.6))
    with client(settings) as web, ThreadPoolExecutor(1) as other:
        asked = other.submit(web.post, f"{API}/fit", json=body)
        time.sleep(0.2)
        for _ in range(5):
            assert web.get(SIZE).status_code == 200
        refusal(asked.result(), 503, "busy")


def test_more_layers_than_any_model_has_are_refused(web):
    config = {**config_of(NAME), "num_hidden_layers": 9000}
    for name in ("size", "plan", "learn/pipeline"):
        refusal(web.post(f"{API}/{name}", json={"model": config}), 400, "invalid_request")
    rows = web.post(f"{API}/compare", json={"models": [config, NAME]}).json()["rows"]
    assert [("error" in row) for row in rows] == [True, False]


def test_a_log_that_takes_too_long_leaves_its_thread():
    lines = b"INFO vllm serve a/b --tensor-parallel-size 2\n" * 200_000
    settings = WebSettings(offline=True, limits=Limits(answer_s=0.5))
    headers = {"content-type": "text/plain"}
    with client(settings) as web:
        for _ in range(2):  # as many as there are threads
            refusal(web.post(f"{API}/verify", content=lines, headers=headers), 503, "busy")
        time.sleep(0.5)
        refusal(web.post(f"{API}/verify", content=b"nothing", headers=headers), 422, "invalid_field")


def test_too_many_at_once_are_told_so():
    web = client(WebSettings(offline=True, limits=Limits(num_waiting=0)))
    response = web.get(SIZE)
    refusal(response, 503, "busy")
    assert response.headers["retry-after"] == "1"


def test_a_long_address_is_refused(web):
    query = "&".join(f"x{number}=1" for number in range(500))
    refusal(web.get(f"{API}/size?{query}"), 400, "invalid_request")


# GGUF headers


def sent(web, data: bytes, size: int, **more: object):
    headers = {"content-type": "application/octet-stream"}
    return web.post(f"{API}/gguf", params={"size": size, **more}, content=data, headers=headers)


def test_a_header_arrives_in_slices(web):
    words = [f"word {number}" for number in range(30_000)]
    data = gguf({**QWEN3, "tokenizer.ggml.tokens": words, "tokenizer.ggml.merges": words * 3})
    assert len(data) > 1 << 20
    have, steps = 100, 0
    found = answer(sent(web, data[:have], len(data), name="tiny.gguf"), "gguf")
    while found["state"] == "incomplete":
        assert have < found["need_bytes"] <= len(data)
        have, steps = found["need_bytes"], steps + 1
        found = answer(sent(web, data[:have], len(data), name="tiny.gguf"), "gguf")
    assert 1 <= steps <= 4
    model = found["model"]
    assert model["id"] == "tiny.gguf"
    size = answer(web.get(f"{API}/size", params={"model": model["name"], "context": 1024}), "size")
    assert size["model"]["source"] == "gguf"
    assert size["cache"]["total_bytes"] == 2 * 1024 * 2 * (16 + 16) * 2
    assert size["weights"]["total_bytes"] > 0
    again = answer(web.get(f"{API}/fit", params={"model": model["name"], "gpu": "H100"}), "fit")
    assert again["request"]["engine"] == "llama.cpp"


def test_a_header_that_is_not_kept(web):
    refusal(web.get(f"{API}/size?model=gguf:{'0' * 32}"), 404, "model_not_found")


@pytest.mark.parametrize(
    ("data", "size", "status"),
    [
        (b"not a gguf at all....", 5000, 422),
        (b"GGUF" + b"\xff" * 60, 64, 422),
        (b"GGUF", 2, 400),
        (b"", -1, 400),
        (b"GGUF\x03\0\0\0" + b"\0" * 16, 24, 422),
    ],
)
def test_damaged_headers(web, data, size, status):
    assert sent(web, data, size).status_code == status


def test_size_of_the_file_is_needed(web):
    headers = {"content-type": "application/octet-stream"}
    refusal(web.post(f"{API}/gguf", content=b"GGUF", headers=headers), 400, "invalid_request")
    refusal(web.post(f"{API}/gguf?size=9", content=b"GGUF"), 415, "unsupported_media_type")


# Hubs


@pytest.fixture
def server(monkeypatch):
    """A hub on loopback, and settings that lead there."""
    server = HubServer()
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", server.url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    yield server
    server.close()


def test_a_model_of_a_hub(server):
    server.add("org/fetched", {"config.json": config_of(NAME)})
    web = client(WebSettings())
    found = answer(web.get(f"{API}/size?model=org/fetched"), "size")
    assert found["model"]["source"] == "hub"
    assert found["cache"]["total_bytes"] == 4831838208


def test_offline_asks_no_hub(server):
    server.add("org/unasked", {"config.json": config_of(NAME)})
    for web, query in ((client(OFFLINE), ""), (client(WebSettings()), "&offline=1")):
        refusal(web.get(f"{API}/size?model=org/unasked{query}"), 404, "offline")
    answer(client(OFFLINE).get(f"{API}/search?q=unasked&hub=1"), "search")
    refusal(client(OFFLINE).get(f"{API}/size?model={NAME}&refresh=1"), 400, "invalid_request")
    assert server.requests == []


def test_what_a_hub_refuses(server):
    server.add("org/locked", {"config.json": config_of(NAME)}, access="gated")
    web = client(WebSettings())
    refusal(web.get(f"{API}/size?model=org/locked"), 403, "gated")
    refusal(web.get(f"{API}/size?model=org/none"), 404, "model_not_found")
    server.faults["config.json"] = "500"
    refusal(web.get(f"{API}/size?model=org/broken"), 502, "network")


def test_a_slow_hub_blocks_nobody(server):
    server.faults["org/slow"] = "slow"
    with client(WebSettings(limits=Limits(hub_s=2.0))) as web, ThreadPoolExecutor(20) as others:
        asked = [others.submit(web.get, f"{API}/size?model=org/slow-{n}") for n in range(20)]
        time.sleep(0.3)
        start = time.monotonic()
        for _ in range(20):
            assert web.get(SIZE).status_code == 200
        assert time.monotonic() - start < 1.5
        assert not any(each.done() for each in asked)
        for each in asked:
            refusal(each.result(), 502, "network")


def test_those_who_ask_for_the_same_wait_for_one_answer(server):
    server.add("org/once", {"config.json": config_of(NAME)})
    with client(WebSettings()) as web, ThreadPoolExecutor(8) as others:
        asked = [others.submit(web.get, f"{API}/size?model=org/once") for _ in range(8)]
        assert all(each.result().status_code == 200 for each in asked)
    assert len([path for path in server.paths("HEAD") if path.endswith("/main/config.json")]) == 1


def test_the_hub_is_searched_where_it_is_asked_for(server, monkeypatch):
    rows = [{"id": "org/qwen3-made"}, {"id": "../x"}, {"id": 3}, "x", {"id": NAME}]
    monkeypatch.setattr(hub.Site, "ask", lambda *_, **__: hub.Answer("", 200, {}, json.dumps(rows).encode()))
    web = client(WebSettings())
    found = answer(web.get(f"{API}/search?q=qwen3-8b&hub=1&limit=50"), "search")
    assert found["hub"] == "asked"
    assert {"id": "org/qwen3-made", "source": "hub"} in found["models"]
    assert [row["id"] for row in found["models"]].count(NAME) == 1
    assert "../x" not in [row["id"] for row in found["models"]]


def test_a_search_that_fails_still_answers(server):
    server.faults["/api/models"] = "500"
    found = answer(client(WebSettings()).get(f"{API}/search?q=qwen3&hub=1&lang=zh&limit=50"), "search")
    assert found["models"]
    assert found["hub"] in ("failed", "asked")


def test_threads_are_few():
    before = threading.active_count()
    with client() as web, ThreadPoolExecutor(10) as others:
        asked = [
            others.submit(web.get, f"{API}/fit?model={NAME}&gpu=H100&context={n}") for n in range(1000, 1060)
        ]
        assert all(each.result().status_code == 200 for each in asked)
        assert threading.active_count() - before < 10 + 1 + 2 + 2 + 8 + 2
