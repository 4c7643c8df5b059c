"""Threads of the server: work that takes too long is left, and its thread works on."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TypeVar

import pytest

from kvgauge.web.pools import Pool
from kvgauge.web.stopping import Overdue, Stoppable
from web_support import Limits, WebSettings, answer, client, refusal

API = "/api/v1"
T = TypeVar("T")


def endless() -> None:
    while True:
        try:
            sum(range(100))
        except Exception:  # noqa: S112 - such code is what is to be left all the same
            continue


def run(asking: Coroutine[None, None, T]) -> T:
    """Run in a thread of its own: in this one another loop may be running, a browser's."""
    with ThreadPoolExecutor(1) as other:
        return other.submit(asyncio.run, asking).result()


def test_work_that_takes_too_long_is_left():
    pool = Pool("test-endless", 1, 4)

    async def asking() -> int:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await pool.run(endless, 0.1)
        return await pool.run(lambda: 7, 10)

    assert run(asking()) == 7
    assert sum(thread.name.startswith("test-endless") for thread in threading.enumerate()) == 1


def test_work_that_only_waits_ends_by_itself():
    ended = threading.Event()
    pool = Pool("test-waiting", 1, 4, stops=False)

    def work() -> None:
        time.sleep(0.3)
        ended.set()

    async def asking() -> None:
        with pytest.raises(TimeoutError):
            await pool.run(work, 0.05)

    run(asking())
    assert ended.wait(10)


def test_told_to_stop_after_the_end_nothing_is_left():
    work = Stoppable()
    assert work.run(lambda: 3) == 3
    work.stop()
    assert Stoppable().run(lambda: sum(range(100_000))) == 4999950000


def test_told_to_stop_at_any_moment_the_next_work_is_whole():
    for pause_s in [number * 1e-5 for number in range(60)]:
        first = Stoppable()
        stopper = threading.Timer(pause_s, first.stop)
        stopper.start()
        with contextlib.suppress(Overdue):
            first.run(lambda: sum(range(2000)))
        stopper.join()
        assert Stoppable().run(lambda: sum(range(2000))) == 1999000


def test_a_topic_is_run_once_for_both_languages(monkeypatch):
    from kvgauge.web import learning

    runs = []
    really = learning.answer_topic
    monkeypatch.setattr(learning, "answer_topic", lambda *given: runs.append(1) or really(*given))
    with client() as web:
        asked = {"model": "Qwen/Qwen3-8B", "tokens": 4096}
        english = answer(
            web.post(f"{API}/learn/activations", json={**asked, "drawn": True}), "learn_activations"
        )
        chinese = answer(
            web.post(f"{API}/learn/activations", json={**asked, "drawn": True, "lang": "zh"}),
            "learn_activations",
        )
        assert len(runs) == 1
        assert english["drawn"] != chinese["drawn"]
        other = answer(
            web.post(f"{API}/learn/activations", json={**asked, "tokens": 8192}), "learn_activations"
        )
        assert len(runs) == 2
        assert other["groups"] != english["groups"]


def test_the_threads_of_a_server_are_free_after_answers_that_take_too_long(monkeypatch):
    from kvgauge.web import answers

    monkeypatch.setattr(answers, "fit", lambda *_, **__: endless())
    with client(WebSettings(offline=True, limits=Limits(answer_s=1.0))) as web:
        for _ in range(2):  # as many as there are threads
            asked = web.post(f"{API}/fit", json={"model": "Qwen/Qwen3-8B", "gpu": "H100"})
            refusal(asked, 503, "busy")
        answer(web.get(f"{API}/gpus?filter=nothing-is-called-so"), "gpus")


def test_other_exceptions_that_nobody_can_catch_are_told(monkeypatch):
    from kvgauge.web import stopping

    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    for _ in range(2):
        stopping.say_nothing_where_it_is_lost()
    for kind in (Overdue, ValueError):
        sys.unraisablehook(SimpleNamespace(exc_type=kind))
    assert [one.exc_type for one in told] == [ValueError]
