"""The JSON API: every address answers what the library answers, errors too."""

from __future__ import annotations

import json

import pytest

import kvgauge
from gguf_files import QWEN3
from kvgauge.cli.app import execute
from kvgauge.keywords import FIT, SIZE
from kvgauge.render.answer_json import fit_json, plan_json, size_json, verify_json
from kvgauge.render.messages import Texts
from support import ROOT, config_of
from web_support import Limits, WebSettings, answer, client, refusal

NAME = "Qwen/Qwen3-8B"
API = "/api/v1"


@pytest.fixture(scope="module")
def web():
    return client()


def plain(value: object) -> object:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_size_is_what_the_library_says(web, lang):
    load = {"context": "16k", "sequences": 3, "kv_dtype": "fp8", "tp": 2, "engine": "vllm@0.33.0"}
    expected = plain(size_json(kvgauge.size(NAME, **load), Texts(lang)))
    posted = web.post(f"{API}/size", json={"model": NAME, **load, "lang": lang})
    asked = web.get(f"{API}/size", params={"model": NAME, **load, "lang": lang})
    assert answer(posted, "size") == answer(asked, "size") == expected


def test_a_config_may_be_sent(web):
    config = config_of(NAME)
    found = answer(web.post(f"{API}/size", json={"model": config, "overrides": {"head_dim": 64}}), "size")
    assert found["model"]["source"] == "dict"
    assert found["model"]["overrides"] == {"head_dim": 64}
    assert found["cache"]["total_bytes"] == kvgauge.size(NAME).cache.total_bytes // 2


def test_gguf_metadata_may_be_sent(web):
    found = answer(web.post(f"{API}/size", json={"model": QWEN3}), "size")
    assert found == plain(size_json(kvgauge.size(QWEN3), Texts("en")))


def test_overrides_in_an_address(web):
    pairs = answer(
        web.get(f"{API}/size?model={NAME}&override=head_dim=64&override=num_hidden_layers=2"), "size"
    )
    whole = answer(
        web.get(f"{API}/size", params={"model": NAME, "overrides": '{"head_dim":64,"num_hidden_layers":2}'}),
        "size",
    )
    assert pairs == whole
    assert pairs["model"]["overrides"] == {"head_dim": 64, "num_hidden_layers": 2}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_explain(web, lang):
    found = answer(web.get(f"{API}/explain", params={"model": NAME, "lang": lang}), "explain")
    assert found == plain(kvgauge.explain(kvgauge.size(NAME), lang=lang).to_dict())


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_fit(web, lang):
    load = {"gpu": "2x H100", "context": "32k", "sequences": 8, "reserve": "2GiB"}
    expected = plain(fit_json(kvgauge.fit(NAME, **load), Texts(lang), "gb"))
    found = answer(web.post(f"{API}/fit", json={"model": NAME, **load, "lang": lang, "units": "gb"}), "fit")
    assert found == expected


def test_fit_without_what_would_help_is_the_same_answer(web):
    load = {"model": NAME, "gpu": "RTX 4090", "context": "32k", "sequences": 8}
    whole = answer(web.post(f"{API}/fit", json=load), "fit")
    short = answer(web.post(f"{API}/fit", json={**load, "suggestions": False}), "fit")
    assert whole["suggestions"]
    assert short == {**whole, "suggestions": []}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_plan(web, lang):
    load = {"gpu": "L40S", "context": "32k", "sequences": 8}
    expected = plain(plan_json(kvgauge.plan(NAME, **load), Texts(lang), "gib"))
    found = answer(web.post(f"{API}/plan", json={"model": NAME, **load, "lang": lang}), "plan")
    assert found == expected
    assert {step["answer_code"] for step in found["decision_path"]} >= {"yes", "no"}


def test_compare_answers_rows_and_errors(web):
    params = [("models", NAME), ("models", "no/such-model"), ("models", "Qwen/Qwen3-30B-A3B")]
    found = answer(web.get(f"{API}/compare", params=params), "compare")
    expected = kvgauge.compare([NAME, "Qwen/Qwen3-30B-A3B"]).to_dict()["rows"]
    assert [found["rows"][0], found["rows"][2]] == plain(expected)
    assert found["rows"][1]["error"]["code"] == "offline"
    assert found["rows"][1]["model"] == {"id": "no/such-model"}


def test_rows_that_cannot_be_sized_say_so_in_the_language(web):
    body = {"models": ["no/such-model", NAME], "engine": "vllm", "lang": "zh"}
    bad, sized = answer(web.post(f"{API}/compare", json=body), "compare")["rows"]
    assert "no/such-model" in bad["error"]["message"]
    assert "本地" in bad["error"]["message"]
    assert "请给出" in bad["error"]["hint"]
    alone = answer(web.post(f"{API}/size", json={"model": NAME, "engine": "vllm", "lang": "zh"}), "size")
    assert sized["notes"] == alone["notes"]
    assert sized["engine"] == alone["engine"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_verify_takes_the_text_of_a_log(web, lang):
    path = ROOT / "tests/logs/vllm_0.19.0_tp2.log"
    expected = plain(verify_json(kvgauge.verify(path, offline=True), Texts(lang)))
    text = path.read_text("utf-8")
    posted = web.post(f"{API}/verify", json={"log": text, "lang": lang})
    raw = web.post(f"{API}/verify?lang={lang}", content=text, headers={"content-type": "text/plain"})
    assert answer(posted, "verify") == answer(raw, "verify") == expected


def test_verify_takes_a_model_beside_the_log(web):
    text = (ROOT / "tests/logs/vllm_0.19.0_tp2.log").read_text("utf-8")
    found = answer(web.post(f"{API}/verify", json={"log": text, "model": NAME, "gpu": "H100"}), "verify")
    assert found["engine"]["model"] == NAME
    refusal(web.post(f"{API}/verify", json={"log": text, "model": "no/such"}), 404, "offline")


def test_lists(web):
    models = answer(web.get(f"{API}/models?filter=qwen3-8b"), "models")["models"]
    assert models[0]["bytes_per_sequence"] == 4831838208
    assert answer(web.get(f"{API}/gpus?filter=h100+nvl"), "gpus")["gpus"][0]["id"] == "h100-nvl-94gb"
    assert len(answer(web.get(f"{API}/gpus"), "gpus")["gpus"]) > 50
    assert "vllm" in [row["name"] for row in answer(web.get(f"{API}/engines"), "engines")["engines"]]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_options_name_every_keyword(web, lang):
    rows = answer(web.get(f"{API}/options?lang={lang}"), "options")["options"]
    offered = {row["name"]: row for row in rows}
    assert {*SIZE, *FIT} - set(offered) <= {"num_gpus", "suggestions"}
    assert "fp8_ds_mla" in offered["kv_dtype"]["words"]
    assert offered["gpu"]["questions"] == ["fit", "plan", "verify"]
    assert not {"gpu_file", "ndjson", "host"} & set(offered)


def test_search(web):
    found = answer(web.get(f"{API}/search?q=qwen3+8b&limit=3"), "search")
    assert found["models"][0] == {"id": NAME, "source": "catalogue"}
    assert found["more"] is True
    assert found["hub"] == "not_asked"
    assert answer(web.get(f"{API}/search?q=zzzz&hub=1"), "search")["hub"] == "offline"
    refusal(web.get(f"{API}/search?limit=0"), 400, "invalid_request")


@pytest.mark.parametrize(
    ("command", "engine", "model", "args"),
    [
        ("vllm serve a/b --tensor-parallel-size 2 --port 8000", "vllm", "a/b", "--tensor-parallel-size 2"),
        ("X=1 python -m sglang.launch_server --model-path a/b \\\n  --tp 2", "sglang", "a/b", "--tp 2"),
        ("docker run --gpus all vllm/vllm-openai:v0.9 --model a/b -tp 4", "vllm", "a/b", "-tp 4"),
        ("./llama-server -m /m/x.gguf -c 8192 -np 4", "llama.cpp", "/m/x.gguf", "-c 8192 -np 4"),
        ("trtllm-serve serve a/b --tp_size 2", "tensorrt-llm", "a/b", "--tp_size 2"),
    ],
)
def test_a_launch_line_is_taken_apart(web, command, engine, model, args):
    found = answer(web.post(f"{API}/parse-command", json={"command": command}), "command")
    assert (found["engine"], found["model"], found["engine_args"]) == (engine, model, args)


@pytest.mark.parametrize("command", ["rm -rf /", "", "vllm bench", "x" * 30_000])
def test_other_lines_are_refused(web, command):
    refusal(web.post(f"{API}/parse-command", json={"command": command}), 400, "invalid_request")


@pytest.mark.parametrize(
    ("query", "status", "code", "field"),
    [
        ("", 400, "invalid_request", "model"),
        ("model=", 400, "invalid_request", "model"),
        ("model=no/such-model", 404, "offline", "MODEL"),
        ("model=nonsense", 404, "model_not_found", "MODEL"),
        (f"model={NAME}&contxt=4", 400, "invalid_request", "contxt"),
        (f"model={NAME}&tp=x", 400, "invalid_request", "tp"),
        (f"model={NAME}&tp=1&tp=2", 400, "invalid_request", "tp"),
        (f"model={NAME}&context=-1", 400, "invalid_request", None),
        (f"model={NAME}&lang=fr", 400, "invalid_request", "lang"),
        (f"model={NAME}&units=kb", 400, "invalid_request", "units"),
        (f"model={NAME}&overrides=x", 400, "invalid_request", "overrides"),
        (f"model={NAME}&no_weights=perhaps", 400, "invalid_request", "no_weights"),
        (f"model={NAME}&mtp=1", 422, "feature_unsupported", "mtp"),
        (f"model={NAME}&override=num_hidden_layers=-3", 422, "invalid_field", None),
        (f"model={NAME}&engine=vllm@0.1", 422, "feature_unsupported", None),
        ("model=%FF%FE", 400, "invalid_request", None),
    ],
)
def test_refusals_of_an_address(web, query, status, code, field):
    found = refusal(web.get(f"{API}/size?{query}"), status, code)
    assert field is None or found["field"] == field
    assert found["message"]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"\xff", b'{"model": 3}', b'{"model": "-"}', b'{"a": 1, "a": 2}']
)
def test_refusals_of_a_body(web, body):
    response = web.post(f"{API}/size", content=body, headers={"content-type": "application/json"})
    refusal(response, 400, "invalid_request")


def test_errors_speak_the_language(web):
    english = refusal(web.get(f"{API}/size?model={NAME}&mtp=1"), 422, "feature_unsupported")
    chinese = refusal(web.get(f"{API}/size?model={NAME}&mtp=1&lang=zh"), 422, "feature_unsupported")
    assert english["field"] == chinese["field"]
    assert english["message"].isascii()
    assert not chinese["message"].isascii()


def test_the_server_has_a_language():
    settings = WebSettings(offline=True, lang="zh")
    found = refusal(client(settings).get(f"{API}/size?model={NAME}&mtp=1"), 422, "feature_unsupported")
    assert not found["message"].isascii()


def test_addresses_and_methods(web):
    refusal(web.get(f"{API}/nothing"), 404, "not_found")
    refusal(web.get("/missing.js"), 404, "not_found")
    refusal(web.put(f"{API}/size"), 405, "method_not_allowed")
    refusal(web.get(f"{API}/verify"), 405, "method_not_allowed")
    refusal(web.post("/"), 405, "method_not_allowed")
    assert web.head(f"{API}/engines").status_code == 200


def test_the_page_answers_every_view(web):
    page = web.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert web.get("/fit/anything").content == page.content
    again = web.get("/", headers={"if-none-match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert web.get("/", headers={"accept-encoding": "identity"}).content == page.content


def test_models_are_kept_and_do_not_mix(web):
    for _ in range(2):
        for layers in (2, 4):
            found = web.post(f"{API}/size", json={"model": NAME, "overrides": {"num_hidden_layers": layers}})
            assert answer(found, "size")["model"]["num_layers"] == layers
        assert answer(web.get(f"{API}/size?model={NAME}"), "size")["model"]["num_layers"] == 36


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    ("name", "words", "body"),
    [
        ("size", [NAME, "--context", "4k"], {"model": NAME, "context": "4k"}),
        ("explain", [NAME], {"model": NAME}),
        ("compare", [NAME, "openai/gpt-oss-20b"], {"models": [NAME, "openai/gpt-oss-20b"]}),
        ("fit", [NAME, "--gpu", "H100"], {"model": NAME, "gpu": "H100"}),
    ],
)
def test_markdown_is_that_of_the_command(web, capsys, name, words, body, lang):
    assert execute([name, *words, "--markdown", "--lang", lang]) == 0
    found = web.post(f"{API}/{name}", json={**body, "lang": lang, "format": "markdown"})
    assert found.headers["content-type"] == "text/markdown; charset=utf-8"
    assert found.text == capsys.readouterr().out


def test_too_many_models():
    settings = WebSettings(offline=True, limits=Limits(num_models=2))
    response = client(settings).post(f"{API}/compare", json={"models": [NAME] * 3})
    refusal(response, 400, "invalid_request")
