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
from kvgauge.web.stopping import Overdue, Stoppable, say_nothing_where_it_is_lost

T = TypeVar("T")

#: Seconds until work that was told to stop and still runs is told again.
_AGAIN_S = 0.2

_Job = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop, Stoppable]


class Pool:
    """A few threads and the work that waits for them.

    Args:
        num_threads: started when there is work for the first time.
        num_queued: more work than that is refused.
        stops: work that takes too long is left; where it only waits for others, it ends by itself.
    """

    def __init__(self, name: str, num_threads: int, num_queued: int, *, stops: bool = True) -> None:
        self._name, self._num_threads, self._stops = name, num_threads, stops
        self._jobs: queue.Queue[_Job] = queue.Queue(num_queued)
        self._started = False

    async def run(self, work: Callable[[], T], seconds: float) -> T:
        """Return what ``work`` returns.

        Raises:
            BusyError: too much waits already.
            TimeoutError: it takes longer.
        """
        self._start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        running = Stoppable()
        try:
            self._jobs.put_nowait((work, future, loop, running))
        except queue.Full:
            raise BusyError("too many requests wait for an answer", hint="try again in a second") from None
        try:
            return await asyncio.wait_for(future, seconds)
        except TimeoutError:
            if self._stops:
                _stop(running, loop)
            raise

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        if self._stops:
            say_nothing_where_it_is_lost()
        for number in range(self._num_threads):
            threading.Thread(target=self._work, name=f"{self._name}-{number}", daemon=True).start()

    def _work(self) -> None:
        is_open = True
        while is_open:
            try:
                is_open = self._turn()
            except Overdue:
                continue

    def _turn(self) -> bool:
        """Do one piece of work; False once the server has stopped."""
        work, future, loop, running = self._jobs.get()
        if future.cancelled():
            return True
        result, error = None, None
        try:
            result = running.run(work)
        except Exception as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(_settle, future, result, error)
        except RuntimeError:  # the loop is closed
            return False
        return True


def _stop(running: Stoppable, loop: asyncio.AbstractEventLoop) -> None:
    if running.stop():
        loop.call_later(_AGAIN_S, _stop, running, loop)


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
        self.hub = Pool("kvgauge-hub", 8, 64, stops=False)
