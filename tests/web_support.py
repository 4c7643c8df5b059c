"""A client of the application in this process, and what its answers are held against."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import jsonschema
from starlette.testclient import TestClient

from kvgauge.web.app import create_app
from kvgauge.web.settings import Limits, WebSettings
from test_schemas import schema

OFFLINE = WebSettings(offline=True)


def client(settings: WebSettings = OFFLINE, **headers: str) -> TestClient:
    """Return a client that behaves like a browser on this machine."""
    return TestClient(create_app(settings), base_url="http://127.0.0.1:8642", headers=headers)


@lru_cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema(name))


def answer(response: Any, name: str, status: int = 200) -> dict:
    """Return the object of an answer, which fits its schema."""
    assert response.status_code == status, response.text[:500]
    assert response.headers["content-type"] == "application/json"
    found = json.loads(response.content)
    _validator(name).validate(found)
    return found


def refusal(response: Any, status: int, code: str) -> dict:
    """Return the error of an answer."""
    found = answer(response, "error", status)["error"]
    assert found["code"] == code
    return found


__all__ = ["OFFLINE", "Limits", "WebSettings", "answer", "client", "refusal"]
