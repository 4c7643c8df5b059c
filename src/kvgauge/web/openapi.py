"""The description of the API (OpenAPI 3.1), put together from the schemas that ship and from the keywords."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from kvgauge._version import __version__
from kvgauge.data import read_data

if TYPE_CHECKING:
    from kvgauge.keywords import Kinds
    from kvgauge.web.answers import Question

Json = dict[str, object]

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array"}
_REFUSALS = {
    "400": "The request is malformed or contradicts itself.",
    "403": "The request comes from another site, or the hub does not hand the model out.",
    "404": "No source knows the model.",
    "408": "The body did not arrive in time.",
    "413": "The body is too large.",
    "415": "The body is of another type.",
    "422": "The model can't be sized: unknown architecture, missing or impossible field, damaged file, or a "
    "feature that the engine lacks.",
    "502": "The hub does not answer.",
    "503": "Too much is going on; try again.",
}


@lru_cache(maxsize=1)
def openapi() -> Json:
    """Return the description."""
    from kvgauge.web.answers import QUESTIONS  # noqa: PLC0415 - they name this module's types
    from kvgauge.web.choosing import OPTIONS  # noqa: PLC0415
    from kvgauge.web.learning import LEARNING  # noqa: PLC0415

    questions = (*QUESTIONS, OPTIONS, *LEARNING)
    paths: Json = {question.path: _operations(question) for question in questions}
    paths["/api/v1/gguf"] = _gguf()
    schemas: Json = {}
    for name in (*(question.name for question in questions), "gguf", "error"):
        schemas |= components(name)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kvgauge",
            "version": __version__,
            "description": "What a language model costs in memory before it is served.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": schemas},
    }


def components(name: str) -> Json:
    """Return a shipped schema as components: itself, and each of its definitions as ``NAME.DEFINITION``."""
    schema: Json = json.loads(read_data(f"schemas/{name}.json"))
    inner = schema.pop("$defs", {})
    for word in ("$id", "$schema"):
        schema.pop(word, None)
    parts = {name: schema}
    if isinstance(inner, dict):
        parts |= {f"{name}.{key}": value for key, value in inner.items()}
    return {key: _moved(part, name) for key, part in parts.items()}


def _moved(value: object, name: str) -> object:
    """Return a schema with its references to where the definitions now are."""
    if isinstance(value, list):
        return [_moved(each, name) for each in value]
    if not isinstance(value, dict):
        return value
    moved = {key: _moved(each, name) for key, each in value.items()}
    target = moved.get("$ref")
    if isinstance(target, str) and target.startswith("#/$defs/"):
        moved["$ref"] = f"#/components/schemas/{name}.{target.removeprefix('#/$defs/')}"
    return moved


def _operations(question: Question) -> Json:
    found: Json = {}
    if question.by_query:
        found["get"] = {
            "operationId": f"{question.name}_by_query",
            "summary": _summary(question.name),
            "parameters": _parameters(question),
            "responses": _responses(question.name, as_text=question.as_text),
        }
    if question.by_body:
        found["post"] = {
            "operationId": question.name,
            "summary": _summary(question.name),
            "requestBody": {"required": True, "content": {"application/json": {"schema": _body(question)}}},
            "responses": _responses(question.name, as_text=question.as_text),
        }
    return found


def _summary(name: str) -> str:
    from kvgauge.render.messages import Texts  # noqa: PLC0415

    return Texts("en").find(f"help.verb.{name}", name)


def _described(name: str, kinds: Kinds) -> Json:
    from kvgauge.render.messages import Texts  # noqa: PLC0415

    words = {"overrides": "override"}
    text = Texts("en").find(f"help.option.{words.get(name, name)}", "")
    return {**_schema(kinds), **({"description": text} if text else {})}


def _schema(kinds: Kinds) -> Json:
    types = [_TYPES[kind] for kind in kinds]
    return {"type": types[0] if len(types) == 1 else types}


def _speech(question: Question) -> Mapping[str, Json]:
    from kvgauge.web.asking import SPEECH  # noqa: PLC0415 - it names this module's types

    return {
        name: {"type": "string", "enum": list(words)}
        for name, words in SPEECH.items()
        if name != "format" or question.as_text
    }


def _parameters(question: Question) -> list[Json]:
    rows: list[Json] = []
    for name, kinds in question.keywords.items():
        schema = _described(name, tuple(kind for kind in kinds if kind is not dict or len(kinds) == 1))
        row: Json = {"name": name, "in": "query", "required": name in question.required, "schema": schema}
        if name == "models":
            row["schema"] = {"type": "array", "items": {"type": "string"}, "minItems": 1}
            row |= {"style": "form", "explode": True}
        elif kinds == (dict,):
            row["content"] = {"application/json": {"schema": row.pop("schema")}}
        rows.append(row)
    rows += [{"name": name, "in": "query", "schema": schema} for name, schema in _speech(question).items()]
    return rows


def _or_null(schema: Json) -> Json:
    """Return a schema that null fits too: it stands for the default."""
    return {"anyOf": [schema, {"type": "null"}]}


def _body(question: Question) -> Json:
    properties: Json = {
        name: _described(name, kinds) if name in question.required else _or_null(_described(name, kinds))
        for name, kinds in question.keywords.items()
    }
    if "models" in question.keywords:
        item = {"type": ["string", "object"]}
        properties["models"] = {"type": "array", "items": item, "minItems": 1}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(question.required),
        "properties": {
            **properties,
            **{name: _or_null(schema) for name, schema in _speech(question).items()},
        },
    }


def _responses(name: str, *, as_text: bool = False) -> Json:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/error"}}}
    content: Json = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    if as_text:
        content["text/markdown"] = {"schema": {"type": "string"}}
    found: Json = {"200": {"description": "The answer.", "content": content}}
    return found | {status: {"description": text, "content": error} for status, text in _REFUSALS.items()}


def _gguf() -> Json:
    whole = {"type": "integer", "minimum": 0}
    post = {
        "operationId": "gguf",
        "summary": "Read the header of a GGUF file from its first bytes; says how many are needed.",
        "parameters": [
            {"name": "size", "in": "query", "required": True, "schema": whole},
            {"name": "name", "in": "query", "required": False, "schema": {"type": "string"}},
        ],
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        },
        "responses": _responses("gguf"),
    }
    return {"post": post}
