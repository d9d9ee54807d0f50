"""Limits of one question, fixed in the configuration: so known before a charge is spent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread

AGAIN = 1.0
"""Seconds between calls to stop: an engine that has not begun yet has nothing to stop."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a question; None leaves one to the engine.

    Args:
        memory: Bytes.
        seconds: From asking to the answer.
        threads: Of an engine that runs in this process.
    """

    memory: int | None = None
    seconds: int | None = None
    threads: int | None = None


NO_LIMITS = Limits()


@contextmanager
def ended_after(seconds: float | None, stop: Callable[[], object]) -> Iterator[Event]:
    """Call `stop` from another thread, until it is heard, when the body takes longer.

    Args:
        seconds: None for no limit.
        stop: Makes the engine end what it does with an error.

    Yields:
        An event that is set once the body has taken longer.
    """
    late, done = Event(), Event()
    if seconds is None:
        yield late
        return

    def watch() -> None:
        pause = seconds
        while not done.wait(pause):
            late.set()
            with suppress(Exception):  # of a library whose connection ends at this moment
                stop()
            pause = AGAIN

    Thread(target=watch, daemon=True).start()
    try:
        yield late
    finally:
        done.set()
