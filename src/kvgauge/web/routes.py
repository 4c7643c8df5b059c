"""The addresses: read a request within its limits, ask, answer as JSON; errors are answers too."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from kvgauge.errors import InvalidRequestError, KvgaugeError
from kvgauge.web.answers import PREFIX, QUESTIONS, Question
from kvgauge.web.asking import Speech, of_body, of_query, request_keywords, speech_of
from kvgauge.web.assets import Assets
from kvgauge.web.choosing import OPTIONS
from kvgauge.web.desk import Desk
from kvgauge.web.failures import (
    BusyError,
    InternalError,
    MediaTypeError,
    MethodError,
    NoSuchAddressError,
    SlowBodyError,
    TooLargeError,
    error_json,
    status_of,
)
from kvgauge.web.guard import API
from kvgauge.web.learning import LEARNING
from kvgauge.web.openapi import openapi
from kvgauge.web.sent import answer_gguf
from kvgauge.web.telling import Told, as_json, told

#: Answers hold what a person asks; nobody in between keeps them.
_FRESH = {"Cache-Control": "no-store"}
#: Bodies up to this size are parsed at once.
_LARGE_BYTES = 64 << 10
_LOG = logging.getLogger("kvgauge.web")

Json = dict[str, object]
Handler = Callable[[Request], Awaitable[Response]]


def sent(answer: Told, status: int = 200) -> Response:
    """Return an answer as it is sent."""
    headers = {**_FRESH, "Retry-After": "1"} if status == 503 else _FRESH
    return Response(answer.body, status, headers, answer.media_type)


def error_response(error: KvgaugeError, speech: Speech) -> Response:
    """Return an error as an answer."""
    return sent(told(error_json(error, speech.texts)), status_of(error))


def report(error: Exception) -> None:
    """Say to whoever runs the server that a request failed; where, with ``KVGAUGE_DEBUG``."""
    where = error if os.environ.get("KVGAUGE_DEBUG") else None
    _LOG.error("a request failed: %s", type(error).__name__, exc_info=where)


def as_known(error: Exception) -> KvgaugeError:
    """Return any exception as an error of ours."""
    if isinstance(error, KvgaugeError):
        return error
    if isinstance(error, TimeoutError):
        return BusyError("the answer takes too long", hint="ask for less at once")
    if isinstance(error, MemoryError | RecursionError):
        return InternalError("the request is more than this server can hold", hint="ask for less at once")
    report(error)
    return InternalError(
        f"something went wrong here ({type(error).__name__})", hint="please report what you asked for"
    )


async def read_body(request: Request, max_bytes: int, seconds: float) -> bytes:
    """Return the body of a request.

    Raises:
        TooLargeError, SlowBodyError: it is too large, or too slow.
    """
    told = request.headers.get("content-length", "")
    too_large = TooLargeError(
        f"the body is larger than {max_bytes >> 20} MiB", hint="send less at once", field="body"
    )
    if told.isdecimal() and int(told[:18]) > max_bytes:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                body += part
                if len(body) > max_bytes:
                    raise too_large
    except TimeoutError:
        raise SlowBodyError(
            f"the body did not arrive within {seconds:g} s", hint="send it again", field="body"
        ) from None
    return bytes(body)


async def unless_left(request: Request, answer: Awaitable[Told]) -> Told:
    """Return an answer; where whoever asked is gone before, work that waits for a thread is dropped.

    A page asks anew at each move of a slider, and leaves what it asked before.

    Raises:
        ClientDisconnect: nobody waits any more.
    """

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    answering, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(left())
    try:
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            raise ClientDisconnect
        return answering.result()
    finally:
        answering.cancel()
        leaving.cancel()


def media_type(request: Request) -> str:
    """Return the type of a request's body."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


class Routes:
    """The addresses of one server."""

    def __init__(self, desk: Desk, assets: Assets) -> None:
        self._desk, self._assets = desk, assets
        self._num_large = 0
        self._openapi = Told(as_json(openapi()))

    def all(self) -> list[Route]:
        """Return the routes."""
        questions = [
            Route(question.path, self._answering(question), methods=_methods(question))
            for question in (*QUESTIONS, OPTIONS, *LEARNING)
        ]
        return [
            *questions,
            Route(f"{PREFIX}/gguf", self._safely(self._gguf), methods=["POST"]),
            Route(f"{PREFIX}/openapi.json", self._safely(self._description), methods=["GET"]),
        ]

    def _speech(self, request: Request, given: Json | None = None) -> Speech:
        try:
            spoken = dict(parse_qsl(request.url.query, max_num_fields=100)) if given is None else given
        except ValueError:
            spoken = {}
        return speech_of(spoken, self._desk.settings)

    def _safely(self, answer: Handler) -> Handler:
        async def answering(request: Request) -> Response:
            try:
                return await answer(request)
            except ClientDisconnect:
                return Response(status_code=499)
            except Exception as error:
                return error_response(as_known(error), self._speech(request))

        return answering

    def _answering(self, question: Question) -> Handler:
        async def answering(request: Request) -> Response:
            given: Json | None = None
            try:
                with self._one_of_few() if "log" in question.keywords else nullcontext():
                    given = await self._given(request, question)
                    speech = self._speech(request, given)
                    keywords = request_keywords(given, question.keywords)
                    answer = question.answer(self._desk, keywords, speech)
                    return sent(await (answer if question.at_once else unless_left(request, answer)))
            except ClientDisconnect:
                return Response(status_code=499)
            except Exception as error:
                return error_response(as_known(error), self._speech(request, given))

        return answering

    async def _given(self, request: Request, question: Question) -> Json:
        """Return what a request holds: its address, or its body; a log may be the body as it is."""
        query = request.scope["query_string"]
        if request.method != "POST":
            return of_query(query, question.keywords)
        limits = self._desk.settings.limits
        kind = media_type(request)
        takes_log = "log" in question.keywords
        most = limits.log_bytes if takes_log else limits.json_bytes
        if kind == "application/json":
            body = await read_body(request, most, limits.body_s)
            given = of_body(body) if len(body) <= _LARGE_BYTES else await self._of_large(body)
            return {**of_query(query, question.keywords), **given}
        if kind == "text/plain" and takes_log:
            found = of_query(query, question.keywords)
            found["log"] = (await read_body(request, most, limits.body_s)).decode("utf-8", "replace")
            return found
        raise MediaTypeError(
            "the body is of another type", hint="send it as application/json", field="Content-Type"
        )

    async def _of_large(self, body: bytes) -> Json:
        """Parse a body that takes a while."""
        return await self._desk.pools.slow.run(lambda: of_body(body), self._desk.settings.limits.answer_s)

    async def _gguf(self, request: Request) -> Response:
        if media_type(request) != "application/octet-stream":
            raise MediaTypeError(
                "the body is of another type",
                hint="send the file's beginning as application/octet-stream",
                field="Content-Type",
            )
        given = of_query(request.scope["query_string"], {"size": (int,), "name": (str,)})
        size = given.get("size")
        if not isinstance(size, int):
            raise InvalidRequestError(
                "size is to be a whole number", hint="give the bytes of the whole file", field="size"
            )
        limits = self._desk.settings.limits
        with self._one_of_few():
            data = await read_body(request, limits.gguf_bytes, limits.body_s)
            return sent(await answer_gguf(self._desk, data, size, str(given.get("name", ""))))

    @contextmanager
    def _one_of_few(self) -> Iterator[None]:
        """Hold one of the places for large bodies, which are kept in memory until they are answered.

        Raises:
            BusyError: all are taken.
        """
        if self._num_large >= self._desk.settings.limits.num_large:
            raise BusyError("too many requests wait for an answer", hint="try again in a second")
        self._num_large += 1
        try:
            yield
        finally:
            self._num_large -= 1

    async def _description(self, request: Request) -> Response:
        del request
        return sent(self._openapi)

    async def elsewhere(self, request: Request) -> Response:
        """Answer at every other address: a file of the page, the page itself, or that there is nothing."""
        return await self._safely(self._page)(request)

    async def _page(self, request: Request) -> Response:
        path = request.url.path
        if path.startswith(API):
            raise NoSuchAddressError(
                f"there is nothing at {path[:120]}", hint=f"{PREFIX}/openapi.json lists what there is"
            )
        asset = self._assets.find(path)
        if asset is None:
            raise NoSuchAddressError(f"there is nothing at {path[:120]}", hint="the page is at /")
        if request.method not in ("GET", "HEAD"):
            allowed = ", ".join(("GET", "HEAD"))
            raise MethodError(f"{request.method[:20]} is not taken here", hint=f"use {allowed}")
        headers = {"ETag": asset.etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == asset.etag:
            return Response(status_code=304, headers=headers)
        if asset.zipped is not None and "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return Response(asset.zipped, headers=headers, media_type=asset.media_type)
        return Response(asset.data, headers=headers, media_type=asset.media_type)


def _methods(question: Question) -> list[str]:
    return [*(["GET"] if question.by_query else []), *(["POST"] if question.by_body else [])]


__all__ = ["Routes", "error_response"]
