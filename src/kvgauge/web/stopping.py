"""Work in a thread that can be told to stop, where nobody waits for it any more.

The exception is raised between two instructions of the thread, as a signal's would be in the main thread;
work that is inside one long call of C is left when that call returns. Python has no other way to do it.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Overdue(BaseException):
    """Nobody waits for this work any more."""


class Stoppable:
    """One piece of work, run once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None

    def run(self, work: Callable[[], T]) -> T:
        """Return what ``work`` returns, in this thread.

        Raises:
            Overdue: it was told to stop.
        """
        with self._lock:
            self._thread = threading.get_ident()
        try:
            return work()
        finally:
            with self._lock:
                _raise_in(self._thread, None)  # told at the very end: not to meet the thread's next work
                self._thread = None

    def stop(self) -> bool:
        """Leave the work, if it is running, and return whether it is.

        Where the thread is collecting garbage, the exception is lost in it: ask again a while later.
        """
        with self._lock:
            if self._thread is not None:
                _raise_in(self._thread, Overdue)
            return self._thread is not None


def _raise_in(thread: int | None, error: type[BaseException] | None) -> None:
    if thread is not None:
        raised = None if error is None else ctypes.py_object(error)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)


def say_nothing_where_it_is_lost() -> None:
    """Keep quiet about an exception of ours that the collector of garbage met, from now on."""
    before = sys.unraisablehook
    if isinstance(before, _Quiet):
        return
    sys.unraisablehook = _Quiet(before)


class _Quiet:
    """What is told of exceptions that nobody can catch, without ours."""

    def __init__(self, before: Callable[[sys.UnraisableHookArgs], object]) -> None:
        self._before = before

    def __call__(self, lost: sys.UnraisableHookArgs) -> None:
        """Tell of one."""
        if lost.exc_type is not Overdue:
            self._before(lost)


__all__ = ["Overdue", "Stoppable", "say_nothing_where_it_is_lost"]
