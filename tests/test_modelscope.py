"""Models of ModelScope, against a server on loopback that answers its API."""

from __future__ import annotations

import json

import pytest

import kvgauge
from hub_server import COMMIT, TOKEN, File, HubServer
from kvgauge.errors import (
    DamagedFileError,
    GatedModelError,
    InvalidRequestError,
    ModelNotFoundError,
    NetworkError,
    OfflineError,
)
from kvgauge.sources import load_raw
from kvgauge.sources.transport import Limits, Site
from test_hub import CONFIG, SIDE, gguf


@pytest.fixture
def server(monkeypatch):
    found = HubServer()
    found.add("org/tiny", {"config.json": CONFIG, "hf_quant_config.json": SIDE}, revisions={"v1": "a" * 40})
    found.add("org/plain", {"config.json": CONFIG})
    found.add("org/private", {"config.json": CONFIG}, access="private")
    found.add("org/gguf", {"q/m-Q4.gguf": File(gguf()), "README.md": b""})
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", found.url)
    monkeypatch.delenv("MODELSCOPE_API_TOKEN", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("kvgauge.sources.modelscope.Site", lambda *a: Site(*a, limits=Limits(0.4, 0.8)))
    yield found
    found.close()


def test_a_model_is_found(server):
    raw = load_raw("ms:org/tiny")
    assert (raw.id, raw.source, raw.revision) == ("ms:org/tiny", "hub", COMMIT)
    assert (raw.config, raw.quantization) == (CONFIG, SIDE)
    assert len(server.requests) == 3  # the list of files, and two of them
    answer = kvgauge.size("MS:org/plain", context=1024).to_dict()
    assert answer["model"]["id"] == "ms:org/plain"
    assert answer["model"]["source"] == "hub"


def test_names_revisions_and_addresses(server):
    assert load_raw("ms:org/tiny@v1").config == CONFIG
    assert load_raw("ms:org/tiny", revision="v1").config == CONFIG
    assert load_raw("https://www.modelscope.cn/models/org/plain/summary").id == "ms:org/plain"
    server.add("Qwen/Qwen3-8B", {"config.json": CONFIG})
    assert load_raw("ms:Qwen/Qwen3-8B").config == CONFIG  # ModelScope itself was asked for
    assert load_raw("https://www.modelscope.cn/models/Qwen/Qwen3-8B").source == "catalogue"


def test_a_gguf_by_its_header(server):
    raw = load_raw("ms:org/gguf:q/m-Q4.gguf")
    assert (raw.id, raw.source) == ("ms:org/gguf:q/m-Q4.gguf", "gguf")
    assert raw.config["general.architecture"] == "llama"


def test_the_endpoint_by_domain_alone(server, monkeypatch):
    monkeypatch.delenv("MODELSCOPE_ENDPOINT")
    monkeypatch.setenv("MODELSCOPE_DOMAIN", server.url)
    assert load_raw("ms:org/plain").config == CONFIG
    monkeypatch.setenv("MODELSCOPE_DOMAIN", server.url.removeprefix("http://"))
    with pytest.raises(NetworkError, match=r"MODELSCOPE_DOMAIN.*TLS"):
        load_raw("ms:org/plain")  # a domain means https
    for wrong in ("ftp://x", "https://me:geheim@x"):
        monkeypatch.setenv("MODELSCOPE_DOMAIN", wrong)
        with pytest.raises(InvalidRequestError, match="MODELSCOPE_DOMAIN") as caught:
            load_raw("ms:org/plain")
        assert "geheim" not in str(caught.value.to_dict())


def test_a_token(server, monkeypatch):
    with pytest.raises(GatedModelError) as caught:
        load_raw("ms:org/private")
    assert "MODELSCOPE_API_TOKEN" in caught.value.hint
    monkeypatch.setenv("MODELSCOPE_API_TOKEN", TOKEN)
    assert load_raw("ms:org/private").config == CONFIG


@pytest.mark.parametrize(
    ("name", "said", "hint"),
    [
        ("ms:org/unheard-of", "does not exist or is private", "MODELSCOPE_API_TOKEN"),
        ("ms:Qwen/Qwen3-8C", "does not exist", "did you mean Qwen/Qwen3-8B"),
        ("ms:org/tiny@nope", "has no revision nope", "leave it out"),
        ("ms:org/gguf", "holds no config.json", "try ms:org/gguf:q/m-Q4.gguf"),
        ("ms:org/gguf:x.gguf", "holds no x.gguf", "it holds q/m-Q4.gguf"),
    ],
)
def test_refusals(server, name, said, hint):
    with pytest.raises(ModelNotFoundError, match=said) as caught:
        load_raw(name)
    assert hint in caught.value.hint
    assert f"the mirror {server.url} (MODELSCOPE_ENDPOINT)" in caught.value.message


@pytest.mark.parametrize(
    ("path", "fault", "said"),
    [
        ("repo/files", "limited=7", "too many requests"),
        ("repo/files", "500", "server fails"),
        ("repo/files", "418", "answers 418"),
        ("repo/files", "portal", "as ModelScope does"),
        ("repo/files", "slow", "within 0.4 s"),
        ("repo/files", "drip", "in time"),
        ("FilePath=config", "cut", "ends after 1 of"),
        ("FilePath=config", "wrong-length", "ends after 2 of"),
        ("FilePath=config", "500", "server fails"),
        ("FilePath=config", "redirect=file:///x", "no web address"),
    ],
)
def test_network_failures(server, path, fault, said):
    server.faults[path] = fault
    with pytest.raises(NetworkError, match=said) as caught:
        load_raw("ms:org/plain")
    assert caught.value.exit_code == 5
    assert caught.value.hint


def test_a_file_that_is_no_config_is_damage_not_network(server):
    server.faults["FilePath=config"] = "huge"
    with pytest.raises(DamagedFileError, match="larger than 16 MiB"):
        load_raw("ms:org/plain")


@pytest.mark.parametrize(
    "listing",
    [
        {
            "Data": {
                "Files": [{"Path": "config.json", "Size": "x"}, 7, None],
                "LatestCommitter": {"Id": COMMIT},
            }
        },
        {
            "Data": {
                "Files": [{"Name": "config.json", "Size": len(json.dumps(CONFIG)), "Revision": 3}],
                "LatestCommitter": 3,
            }
        },
    ],
)
def test_odd_listings(server, monkeypatch, listing):
    from kvgauge.sources.transport import Answer

    ask = Site.ask

    def answer(self: Site, url: str, **options: object) -> Answer:
        found = ask(self, url, **options)
        return Answer(url, 200, {}, json.dumps(listing).encode()) if "repo/files" in url else found

    monkeypatch.setattr(Site, "ask", answer)
    if listing["Data"]["LatestCommitter"] == 3:
        assert load_raw("ms:org/plain").revision is None
    else:
        assert load_raw("ms:org/plain").revision == COMMIT


def test_offline(server):
    with pytest.raises(OfflineError, match="ms:org/tiny is not in the shipped catalogue"):
        load_raw("ms:org/tiny", offline=True)
    with pytest.raises(OfflineError) as caught:
        load_raw("ms:Qwen/Qwen3-8B", offline=True)
    assert "Qwen/Qwen3-8B" in caught.value.hint
    assert server.requests == []
