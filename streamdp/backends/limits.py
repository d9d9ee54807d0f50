"""Limits of one question, fixed in the configuration: so known before a charge is spent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
def ended_after(seconds: int | None, stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` from another thread, until it is heard, when the body takes longer.

    Args:
        seconds: None for no limit.
        stop: Makes the engine end what it does with an error.
    """
    if seconds is None:
        yield
        return
    done = Event()

    def watch() -> None:
        pause: float = seconds
        while not done.wait(pause):
            stop()
            pause = AGAIN

    Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()
