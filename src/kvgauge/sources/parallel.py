"""The same work for many files at once: a few threads, one deadline, the first failure ends it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_threads(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    num_threads: int,
    within_s: float,
    progress: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """Return ``work`` of each item, in the order of items.

    The threads are daemons: an interrupt or a failure does not wait for requests under way.

    Args:
        num_threads: at most so many at once; 1 works in the calling thread.
        progress: called with (done, all) in the calling thread.

    Raises:
        TimeoutError: not done in time. Exception: the first that ``work`` raises.
    """
    end = time.monotonic() + within_s
    if num_threads <= 1 or len(items) <= 1:
        return _in_turn(work, items, end, progress)
    todo: queue.SimpleQueue[tuple[int, Item]] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[int, Result | None, BaseException | None]] = queue.SimpleQueue()
    for entry in enumerate(items):
        todo.put(entry)
    stop = threading.Event()
    for _ in range(min(num_threads, len(items))):
        threading.Thread(target=_run, args=(work, todo, done, stop), daemon=True).start()
    found: dict[int, Result] = {}
    try:
        while len(found) < len(items):
            index, result, error = _next(done, end)
            if error is not None:
                raise error
            found[index] = result  # type: ignore[assignment]
            if progress is not None:
                progress(len(found), len(items))
    finally:
        stop.set()
    return [found[index] for index in range(len(items))]


def _in_turn(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    end: float,
    progress: Callable[[int, int], None] | None,
) -> list[Result]:
    results: list[Result] = []
    for item in items:
        if time.monotonic() > end:
            raise TimeoutError
        results.append(work(item))
        if progress is not None:
            progress(len(results), len(items))
    return results


def _next(
    done: queue.SimpleQueue[tuple[int, Result | None, BaseException | None]], end: float
) -> tuple[int, Result | None, BaseException | None]:
    try:
        return done.get(timeout=max(end - time.monotonic(), 0.001))
    except queue.Empty:
        raise TimeoutError from None


def _run(
    work: Callable[[Item], Result],
    todo: queue.SimpleQueue[tuple[int, Item]],
    done: queue.SimpleQueue[tuple[int, Result | None, BaseException | None]],
    stop: threading.Event,
) -> None:
    while not stop.is_set():
        try:
            index, item = todo.get_nowait()
        except queue.Empty:
            return
        try:
            done.put((index, work(item), None))
        except BaseException as error:
            done.put((index, None, error))
            return
