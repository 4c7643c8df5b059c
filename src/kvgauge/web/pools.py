"""Threads for work that must not hold up the others: few, with a queue that ends.

The standard pool waits for its threads when the program ends, and a thread may be waiting for a hub; these
are left behind.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from kvgauge.web.failures import BusyError

T = TypeVar("T")

_Job = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop]


class Pool:
    """A few threads and the work that waits for them.

    Args:
        num_threads: started when there is work for the first time.
        num_queued: more work than that is refused.
    """

    def __init__(self, name: str, num_threads: int, num_queued: int) -> None:
        self._name, self._num_threads = name, num_threads
        self._jobs: queue.Queue[_Job] = queue.Queue(num_queued)
        self._started = False

    async def run(self, work: Callable[[], T], seconds: float) -> T:
        """Return what ``work`` returns.

        Raises:
            BusyError: too much waits already.
            TimeoutError: it takes longer; the thread goes on, nobody listens.
        """
        self._start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        try:
            self._jobs.put_nowait((work, future, loop))
        except queue.Full:
            raise BusyError("too many requests wait for an answer", hint="try again in a second") from None
        return await asyncio.wait_for(future, seconds)

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        for number in range(self._num_threads):
            threading.Thread(target=self._work, name=f"{self._name}-{number}", daemon=True).start()

    def _work(self) -> None:
        while True:
            work, future, loop = self._jobs.get()
            if future.cancelled():
                continue
            try:
                result, error = work(), None
            except Exception as raised:
                result, error = None, raised
            try:
                loop.call_soon_threadsafe(_settle, future, result, error)
            except RuntimeError:  # the loop is closed: the server has stopped
                return
            del work, future, result, error


def _settle(future: asyncio.Future[Any], result: object, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


class Pools:
    """The threads of one server.

    Attributes:
        quick: answers of models that are at hand.
        slow: logs, headers and lists, which take longer.
        hub: waits for hubs, and nothing else.
    """

    def __init__(self) -> None:
        self.quick = Pool("kvgauge-quick", 2, 256)
        self.slow = Pool("kvgauge-slow", 2, 32)
        self.hub = Pool("kvgauge-hub", 8, 64)
