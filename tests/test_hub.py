"""Models of the hub, against a server on loopback: the library in child processes as a user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

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
from kvgauge.sources.transport import Limits

CONFIG = {
    "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
    "torch_dtype": "bfloat16", "max_position_embeddings": 4096,
}  # fmt: skip
OTHER = "f" * 40
SIDE = {"quantization": {"kv_cache_quant_algo": "FP8"}}


@pytest.fixture
def server():
    found = HubServer()
    found.add(
        "org/tiny",
        {"config.json": CONFIG, "hf_quant_config.json": SIDE},
        revisions={"main": COMMIT, "v1": OTHER},
    )
    found.add("org/plain", {"config.json": CONFIG})
    found.add("org/gated", {"config.json": CONFIG}, access="gated")
    found.add("org/private", {"config.json": CONFIG}, access="private")
    found.add(
        "org/gguf", {"README.md": b"", "q/m-Q4.gguf": b"GGUF", "m-Q8.gguf": b"GGUF", "mmproj.gguf": b""}
    )
    found.add("org/lora", {"adapter_config.json": b"{}"})
    found.add("org/other", dict.fromkeys(("a.onnx", "b.onnx", "c.md", "d.md"), b""))
    found.add("org/none", {})
    yield found
    found.close()


@pytest.fixture
def hub(server, tmp_path, monkeypatch):
    """The hub's settings of this process: this server, an empty cache, no token."""
    from huggingface_hub import constants

    for name in ("HF_TOKEN", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "ENDPOINT", server.url)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr("kvgauge.sources.hub._limits", lambda: Limits(step_s=0.4, total_s=0.8))
    return server


@pytest.fixture
def logged_in(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)


# What is found


def test_a_model_is_fetched_once_and_then_at_hand(hub):
    raw = load_raw("org/tiny")
    assert (raw.id, raw.source, raw.revision) == ("org/tiny", "hub", COMMIT)
    assert (raw.config, raw.quantization) == (CONFIG, SIDE)
    assert "127.0.0.1" in raw.provenance
    assert len(hub.requests) == 4
    hub.requests.clear()
    again = load_raw("org/tiny")
    assert (again.config, again.quantization, again.revision) == (raw.config, raw.quantization, COMMIT)
    assert hub.requests == []
    assert load_raw("org/tiny", offline=True).revision == COMMIT


def test_the_answer_says_where_it_comes_from(hub):
    answer = kvgauge.size("org/tiny", context=1024).to_dict()
    assert answer["model"]["source"] == "hub"
    assert answer["model"]["revision"] == COMMIT
    assert (
        answer["cache"]["total_bytes"] == 1024 * 2 * 2 * 64
    )  # fp8, as the file beside the config prescribes


def test_the_hubs_own_library_understands_what_is_kept(hub, tmp_path):
    from huggingface_hub import _CACHED_NO_EXIST, hf_hub_download, scan_cache_dir, try_to_load_from_cache

    load_raw("org/tiny")
    load_raw("org/plain")
    cache = tmp_path / "hub"
    assert json.loads(Path(try_to_load_from_cache("org/tiny", "config.json", cache)).read_text()) == CONFIG
    assert try_to_load_from_cache("org/plain", "hf_quant_config.json", cache) is _CACHED_NO_EXIST
    assert hf_hub_download("org/tiny", "config.json", cache_dir=cache, local_files_only=True)
    found = scan_cache_dir(cache)
    assert not found.warnings
    assert {repo.repo_id for repo in found.repos} == {"org/tiny", "org/plain"}
    assert [revision.commit_hash for repo in found.repos for revision in repo.revisions] == [COMMIT, COMMIT]


def library_fetches(server: HubServer, cache: Path, repo: str, file: str) -> None:
    """Let the hub's own library fill a cache; it takes its address from the environment at import."""
    code = (
        f"from huggingface_hub import hf_hub_download as f; f({repo!r}, {file!r}, cache_dir={str(cache)!r})"
    )
    env = {**os.environ, "HF_ENDPOINT": server.url, "HF_HUB_OFFLINE": "0"}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, timeout=30)


def test_what_the_hubs_own_library_kept_is_understood(hub, tmp_path):
    library_fetches(hub, tmp_path / "hub", "org/tiny", "config.json")
    hub.requests.clear()
    assert load_raw("org/tiny").config == CONFIG
    assert hub.requests == []


def test_revisions(hub, monkeypatch):
    assert load_raw("org/tiny@v1").revision == OTHER
    assert load_raw("org/tiny", revision="v1").revision == OTHER
    assert load_raw(f"org/tiny@{OTHER}", offline=True).revision == OTHER
    assert kvgauge.load("org/tiny", revision=COMMIT).raw.revision == COMMIT
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    assert load_raw(f"{hub.url}/org/tiny/tree/v1").revision == OTHER
    assert load_raw("https://hf-mirror.com/org/tiny/blob/v1/config.json").revision == OTHER


def test_the_catalogue_goes_first_unless_asked_not_to(hub):
    hub.add("Qwen/Qwen3-8B", {"config.json": CONFIG}, revisions={"main": COMMIT, "v2": OTHER})
    assert load_raw("Qwen/Qwen3-8B").source == "catalogue"
    assert load_raw("Qwen/Qwen3-8B", revision="main").source == "catalogue"
    assert hub.requests == []
    assert load_raw("Qwen/Qwen3-8B@v2").revision == OTHER
    assert kvgauge.load("Qwen/Qwen3-8B", refresh=True).raw.revision == COMMIT


def test_refresh_sees_what_changed_and_fetches_only_that(hub):
    load_raw("org/plain")
    hub.repos["org/plain"].revisions["main"] = OTHER
    assert load_raw("org/plain").revision == COMMIT
    hub.requests.clear()
    assert load_raw("org/plain", refresh=True).revision == OTHER
    assert hub.paths("GET") == []  # the content is known by its etag
    assert load_raw("org/plain", offline=True).revision == OTHER


def test_small_files_may_be_sent_on_within_the_hub(hub):
    hub.faults["config.json"] = "relative"
    assert load_raw("org/plain").config == CONFIG


def test_a_large_config_in_the_storage(hub):
    hub.repos["org/plain"].files["config.json"].linked = True
    assert load_raw("org/plain").config == CONFIG
    hub.repos["org/plain"].files["config.json"] = File(b"{}", 17 << 20, linked=True)
    with pytest.raises(DamagedFileError, match="larger than 16 MiB"):
        load_raw("org/plain", refresh=True)


@pytest.mark.parametrize("fault", ["huge", "announced"])
def test_a_file_that_is_no_config_is_damage_not_network(hub, fault):
    hub.faults["org/tiny/resolve"] = fault
    with pytest.raises(DamagedFileError, match="larger than 16 MiB") as caught:
        load_raw("org/tiny")
    assert caught.value.exit_code == 1


def test_a_cache_that_can_not_be_written_is_no_error(hub, tmp_path):
    (tmp_path / "hub").write_text("a file where the cache should be")
    assert load_raw("org/tiny").config == CONFIG


def test_file_systems_without_links(hub, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr(Path, "symlink_to", refuse)
    load_raw("org/tiny")
    assert load_raw("org/tiny", offline=True).quantization == SIDE


@pytest.mark.parametrize("etag", ["../../../escape", "..", "", "a/b", "x" * 300, "a\\b", ".hidden"])
def test_hostile_etags_and_commits_touch_nothing_outside(hub, tmp_path, monkeypatch, etag):
    monkeypatch.setattr(File, "etag", property(lambda _: etag))
    assert load_raw("org/plain").config == CONFIG
    outside = [
        path for path in tmp_path.rglob("*") if path.is_file() and "models--org--plain" not in str(path)
    ]
    assert outside == []
    monkeypatch.setitem(hub.repos["org/plain"].revisions, "main", "../../x")
    with pytest.raises(NetworkError, match="as a hub does"):
        load_raw("org/plain", refresh=True)


def test_damaged_configs_are_told_and_not_kept(hub):
    hub.repos["org/plain"].files["config.json"] = File(b"<html>")
    with pytest.raises(kvgauge.KvgaugeError) as caught:
        load_raw("org/plain")
    assert caught.value.code == "damaged_file"
    with pytest.raises(OfflineError):
        load_raw("org/plain", offline=True)


def test_the_token_is_sent_to_the_hub(hub, logged_in):
    assert load_raw("org/private").config == CONFIG
    assert {headers.get("authorization") for _, _, headers in hub.requests} == {f"Bearer {TOKEN}"}


def test_the_token_file_counts_too(hub, tmp_path):
    (tmp_path / "token").write_text(TOKEN + "\n")
    assert load_raw("org/private").config == CONFIG


# What is refused


@pytest.mark.parametrize(
    ("name", "kind", "said", "hint"),
    [
        ("org/gated", GatedModelError, "gated", "accept its licence at {url}/org/gated, then log in"),
        ("org/private", ModelNotFoundError, "does not exist or is private", "if it is private, log in"),
        ("org/unheard-of", ModelNotFoundError, "does not exist or is private", "HF_TOKEN"),
        ("Qwen/Qwen3-8C", ModelNotFoundError, "does not exist", "did you mean Qwen/Qwen3-8B"),
        ("org/tiny@nope", ModelNotFoundError, "has no revision nope", "leave it out"),
        (
            "org/gguf",
            ModelNotFoundError,
            "holds no config.json",
            "try org/gguf:m-Q8.gguf or org/gguf:q/m-Q4.gguf",
        ),
        ("org/lora", ModelNotFoundError, "holds no config.json", "adapter"),
        ("org/other", ModelNotFoundError, "holds no config.json", "it holds a.onnx, b.onnx, c.md and 1 more"),
        ("org/none", ModelNotFoundError, "holds no config.json", "give the config.json"),
        ("org/gguf:x.gguf", ModelNotFoundError, "holds no x.gguf", "it holds m-Q8.gguf"),
        ("org/gated:x.gguf", GatedModelError, "gated", "accept"),
    ],
)
@pytest.mark.parametrize("codes", [True, False])
def test_refusals(hub, name, kind, said, hint, codes):
    """With the hub's own codes and, as mirrors send them, without."""
    hub.codes = codes
    if not codes and name.startswith("org/gated"):
        pytest.skip("without a code it can't be told from a private one")
    with pytest.raises(kind, match=said) as caught:
        load_raw(name)
    assert caught.value.exit_code == 4
    assert f"the mirror {hub.url} (HF_ENDPOINT)" in caught.value.message
    assert hint.format(url=hub.url) in caught.value.hint
    assert "secret" not in str(caught.value.to_dict())


def test_refusals_with_a_token(hub, logged_in):
    with pytest.raises(GatedModelError, match="gated") as caught:
        load_raw("org/gated")
    assert "no access yet" in caught.value.hint
    with pytest.raises(ModelNotFoundError) as missing:
        load_raw("org/unheard-of")
    assert "private" not in missing.value.message
    hub.faults["org/tiny"] = "bad-token"
    with pytest.raises(GatedModelError, match="does not accept the token") as refused:
        load_raw("org/tiny")
    hub.faults["org/tiny"] = "403"
    with pytest.raises(GatedModelError, match="does not let this token") as forbidden:
        load_raw("org/tiny")
    hub.faults["org/tiny"] = "451"
    with pytest.raises(ModelNotFoundError, match="disabled"):
        load_raw("org/tiny")
    for error in (caught, missing, refused, forbidden):
        assert TOKEN not in str(error.value.to_dict())


@pytest.mark.parametrize(
    ("fault", "said", "hint"),
    [
        ("limited=30", "too many requests", "in 30 s"),
        ("ratelimit=55", "too many requests", "in 55 s"),
        ("429", "too many requests", "later"),
        ("500", "server fails (500)", "try again"),
        ("503", "server fails (503)", "try again"),
        ("418", "answers 418", ""),
        ("slow", "within 0.4 s", "network"),
        ("GET slow", "within 0.4 s", "network"),
        ("GET drip", "in time", ""),
        ("drip-header", "in time", ""),
        ("reset", "cut the answer off", "again"),
        ("silent", "cut the answer off", "again"),
        ("garbage", "does not answer in HTTP", ""),
        ("cut", "ends after 1 of 500 bytes", "again"),
        ("wrong-length", "ends after 2 of 77 bytes", "again"),
        ("portal", "as a hub does", "HF_ENDPOINT"),
        ("loop", "redirects more than 5 times", ""),
        ("GET redirect=file:///etc/passwd", "no web address", ""),
        ("GET 404", "answers 404", ""),
    ],
)
def test_network_failures(hub, fault, said, hint):
    hub.faults["org/tiny/resolve"] = fault
    begin = time.monotonic()
    with pytest.raises(NetworkError) as caught:
        load_raw("org/tiny")
    assert time.monotonic() - begin < 4
    assert said in caught.value.message
    assert hint in caught.value.hint
    assert (caught.value.code, caught.value.exit_code) == ("network", 5)
    assert f"the mirror {hub.url} (HF_ENDPOINT)" in caught.value.message
    assert "secret" not in str(caught.value.to_dict())
    with pytest.raises(OfflineError):
        load_raw("org/tiny", offline=True)  # nothing of it was kept


def test_a_near_name_is_suggested_even_without_a_network(hub):
    hub.faults["Qwen"] = "500"
    with pytest.raises(NetworkError) as caught:
        load_raw("Qwen/Qwen3-8C")
    assert caught.value.hint.startswith("did you mean Qwen/Qwen3-8B? Else try again")
    with pytest.raises(NetworkError) as caught:
        load_raw("Qwen/Qwen3-8B", refresh=True)
    assert "did you mean" not in caught.value.hint


def test_a_redirect_of_someone_else_is_not_followed(hub):
    hub.repos["org/plain"].files["config.json"].linked = True
    hub.faults["storage"] = f"redirect={hub.url}/org/tiny/resolve/main/config.json"
    with pytest.raises(NetworkError, match="redirects elsewhere"):
        load_raw("org/plain")


def test_a_failure_of_the_file_beside_the_config_is_no_guess(hub):
    hub.faults["hf_quant_config"] = "500"
    with pytest.raises(NetworkError):
        load_raw("org/tiny")


@pytest.mark.parametrize(
    "endpoint", ["hf-mirror.com", "ftp://x", "http://", "https://me:geheim@mirror.example"]
)
def test_endpoints_that_are_none(hub, monkeypatch, endpoint):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    with pytest.raises(InvalidRequestError, match="HF_ENDPOINT") as caught:
        load_raw("org/tiny")
    assert "geheim" not in str(caught.value.to_dict())


def test_the_hub_itself_is_no_mirror(hub, monkeypatch):
    from huggingface_hub import constants

    from kvgauge.sources.hub import connect
    from kvgauge.sources.names import HubName

    monkeypatch.setattr(constants, "ENDPOINT", "https://huggingface.co")
    assert connect(HubName("org/x")).site.shown == "huggingface.co"


# Offline


@pytest.mark.parametrize(
    ("name", "said", "hint"),
    [
        ("org/unheard-of", "nor in the local hub cache, and --offline", "config.json"),
        ("Qwen/Qwen3-8C", "not in the shipped catalogue", "did you mean Qwen/Qwen3-8B"),
        ("Qwen/Qwen3-8B@v1", "revision v1 of Qwen/Qwen3-8B is on the hub only", "leave it out"),
        ("Qwen/Qwen3-8B:x.gguf", "the file x.gguf of Qwen/Qwen3-8B", "leave it out"),
    ],
)
def test_offline(hub, name, said, hint):
    with pytest.raises(OfflineError) as caught:
        load_raw(name, offline=True)
    assert (caught.value.code, caught.value.exit_code) == ("offline", 4)
    assert said in caught.value.message
    assert hint in caught.value.hint
    assert hub.requests == []


def test_contradictions(hub, tmp_path):
    with pytest.raises(InvalidRequestError, match="--refresh"):
        load_raw("org/tiny", refresh=True, offline=True)
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    with pytest.raises(InvalidRequestError, match="--revision v1"):
        load_raw(config, revision="v1")


# GGUF on the hub


def gguf(num_tokens: int = 2000) -> bytes:
    """A small GGUF: a header of some size, then a little data."""
    import struct

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    words = b"".join(text(f"word{n}") for n in range(num_tokens))
    pairs = [
        text("general.architecture") + struct.pack("<I", 8) + text("llama"),
        text("llama.block_count") + struct.pack("<II", 4, 2),
        text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, num_tokens) + words,
    ]
    tensor = text("output_norm.weight") + struct.pack("<IQIQ", 1, 64, 0, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(pairs)) + b"".join(pairs) + tensor
    return head.ljust(-(-len(head) // 32) * 32, b"\0") + bytes(256)


def test_a_gguf_is_read_by_its_header(hub):
    data = gguf()
    hub.repos["org/gguf"].files["q/m-Q4.gguf"] = File(data, linked=True)
    raw = load_raw("org/gguf:q/m-Q4.gguf")
    assert (raw.id, raw.source, raw.revision) == ("org/gguf:q/m-Q4.gguf", "gguf", COMMIT)
    assert raw.config["llama.block_count"] == 2
    assert len(raw.tensors) == 1
    assert len(hub.requests) == 2  # the hub, and its storage
    assert load_raw(
        f"{hub.url.replace('http://', 'https://hf.co/x')}:" if False else "org/gguf:q/m-Q4.gguf"
    ).tensors


def test_a_cached_gguf_needs_no_network(hub, tmp_path):
    hub.repos["org/gguf"].files["m-Q8.gguf"] = File(gguf())
    library_fetches(hub, tmp_path / "hub", "org/gguf", "m-Q8.gguf")
    raw = load_raw("org/gguf:m-Q8.gguf", offline=True)
    assert (raw.source, raw.revision) == ("gguf", COMMIT)


# The command


def command(
    *arguments: str, server: HubServer, home: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    env = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("KVGAUGE_", "HF_")) and "proxy" not in k.lower()
    }
    env |= {
        "HF_ENDPOINT": server.url,
        "HF_HOME": str(home),
        "PYTHONIOENCODING": "utf-8",
        "LC_ALL": "C.UTF-8",
    } | variables
    call = [sys.executable, "-c", "from kvgauge.cli import main; main()", *arguments]
    return subprocess.run(call, check=False, env=env, capture_output=True, encoding="utf-8", timeout=30)


def test_the_command_line(server, tmp_path):
    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return command(*arguments, server=server, home=tmp_path, **variables)

    done = run("org/tiny", "--revision", "v1", "--json")
    assert json.loads(done.stdout)["model"]["revision"] == OTHER, done.stderr
    assert "hub (127.0.0.1, commit" in run("org/tiny").stdout
    assert "模型库（local cache" in run("org/tiny", "--lang", "zh", HF_HUB_OFFLINE="1").stdout
    assert run("org/private", HF_TOKEN=TOKEN).returncode == 0
    done = run("org/gated", HF_TOKEN=TOKEN, HF_DEBUG="1")
    assert (done.returncode, done.stdout) == (4, "")
    assert TOKEN not in done.stderr
    assert len(done.stderr.splitlines()) == 2
    done = run("org/unheard-of", "--offline", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (4, "offline")
    server.faults["org/plain"] = "slow"
    done = run("org/plain", "--json", HF_HUB_DOWNLOAD_TIMEOUT="1")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (5, "network")
    done = run("compare", "Qwen/Qwen3-8B", "org/unheard-of", "org/tiny", "--refresh", "--json")
    assert done.returncode == 1


def test_the_catalogue_and_the_cache_load_no_network(server, tmp_path):
    command("org/tiny", server=server, home=tmp_path)
    for name, heavy in [
        ("Qwen/Qwen3-8B", {"huggingface_hub", "ssl", "urllib.request"}),
        ("org/tiny", {"ssl", "urllib.request"}),
    ]:
        code = (
            "import sys; from kvgauge.cli.app import execute;"
            f"execute(['{name}', '--json']); print(sorted(set(sys.modules) & {heavy}), file=sys.stderr)"
        )
        env = {**os.environ, "HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, encoding="utf-8", check=True
        )
        assert done.stderr.strip() == "[]", name
        assert json.loads(done.stdout)["model"]["id"] == name
