"""The topics of ``learn`` over HTTP: what the command answers, and nothing of the machine."""

from __future__ import annotations

import pytest

from kvgauge.cli.topics import TOPICS
from kvgauge.lab.activations import learn_activations
from web_support import answer, client

API = "/api/v1/learn"


@pytest.fixture(scope="module")
def web():
    return client()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_topics_are_listed_in_a_language(web, lang):
    found = answer(web.get(API, params={"lang": lang}), "learn")
    assert [row["name"] for row in found["topics"]] == list(TOPICS)
    assert any("\u4e00" <= sign <= "\u9fff" for row in found["topics"] for sign in row["summary"]) == (
        lang == "zh"
    )


def test_a_walk(web):
    pytest.importorskip("numpy")
    pytest.importorskip("tokenizers")
    found = answer(web.post(f"{API}/walk", json={"text": "今天", "new_tokens": 2}), "learn_walk")
    assert [token["text"] for token in found["tokens"]] == ["今", "天"]
    assert len(found["generation"]["steps"]) <= 2
    assert "drawn" not in found


def test_activations_are_those_of_the_command(web):
    asked = {"model": "Qwen/Qwen3-8B", "tokens": "4k", "drawn": True}
    found = answer(web.post(f"{API}/activations", json=asked), "learn_activations")
    assert found.pop("drawn").strip()
    assert found["groups"] == learn_activations("Qwen/Qwen3-8B", tokens="4k").to_dict()["groups"]


@pytest.mark.parametrize(
    ("address", "body", "status"),
    [
        ("walk", {"model": "some/folder"}, 400),
        ("walk", {"text": "今" * 3000}, 400),
        ("walk", {"new_tokens": 0}, 400),
        ("paged", {"pool": "1m"}, 400),
        ("paged", {"requests": 1000}, 400),
        ("activations", {}, 400),
        ("activations", {"model": "../etc/passwd"}, 400),
        ("activations", {"model": "Qwen/Qwen3-8B", "tokens": "many"}, 400),
        ("activations", {"model": "Qwen/Qwen3-8B", "dtype": "fp3"}, 400),
        ("nothing", {}, 404),
    ],
)
def test_refusals(web, address, body, status):
    response = web.post(f"{API}/{address}", json=body)
    assert response.status_code == status
    assert response.json()["schema"] == "kvgauge.error/1"


@pytest.mark.parametrize("name", [name for name, topic in TOPICS.items() if not topic.is_required])
def test_every_topic_is_answered(web, name):
    found = answer(web.post(f"{API}/{name}", json={"drawn": True, "lang": "zh"}), f"learn_{name}")
    assert found["drawn"].strip()
