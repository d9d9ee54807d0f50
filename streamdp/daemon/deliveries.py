"""Deliveries: a thread a sink, so that one that does not answer delays nothing but itself.

What is owed stands in the outbox. Each thread hands over what its sink is owed, in order; the time
between attempts is that of the outbox.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from streamdp.engine.deliver import deliver
from streamdp.errors import StreamdpError

if TYPE_CHECKING:
    from streamdp.store.sqlite import SqliteStore
    from streamdp.types import Clock, Log, Sink

AT_ONCE = 10
"""Deliveries between two notes of what was taken: a crash repeats no more of them."""

LOOK_AGAIN = 2.0
"""Seconds after which a sink that failed is looked at again."""

IDLE = 15.0
"""Seconds after which one that is owed nothing is looked at again."""


class Deliveries:
    """Hands releases over.

    Args:
        store: With the outbox.
        clock: Source of time.
        log: What was done.
    """

    def __init__(self, store: SqliteStore, clock: Clock, log: Log) -> None:
        self._store, self._clock, self._log = store, clock, log
        self._sinks: Callable[[], Mapping[str, Sink]] = dict
        self._bells: dict[str, Event] = {}
        self._resting: set[str] = set()
        self._guard, self._over = Lock(), False

    def adopt(self, names: set[str], sinks: Callable[[], Mapping[str, Sink]], log: Log) -> None:
        """Deliver to these sinks from now on.

        Args:
            names: Of all sinks.
            sinks: Makes them, in the thread that uses one.
            log: What is done.
        """
        with self._guard:
            self._sinks, self._log = sinks, log
            for name in names - self._bells.keys():
                self._bells[name] = Event()
                Thread(target=self._work, args=[name], name=f"sink {name}", daemon=True).start()
            for name in self._bells.keys() - names:
                self._bells.pop(name).set()
        self.ring()

    def ring(self) -> None:
        """Something may be owed."""
        with self._guard:
            self._resting.clear()
            for bell in self._bells.values():
                bell.set()

    def is_idle(self) -> bool:
        """Whether no sink has anything left that it takes now."""
        with self._guard:
            return self._resting >= self._bells.keys()

    def end(self) -> None:
        """Begin no more deliveries."""
        self._over = True
        self.ring()

    def _work(self, name: str) -> None:
        """The body of a sink's thread."""
        made: tuple[object, Sink] | None = None
        bell = self._bells.get(name)
        while bell is not None and not self._over and self._bells.get(name) is bell:
            bell.clear()
            factory = self._sinks
            if made is None or made[0] is not factory:
                found = factory().get(name)
                made = None if found is None else (factory, found)
            pause = IDLE if made is None else self._deliver(made[1])
            if pause:
                with self._guard:
                    if not bell.is_set():
                        self._resting.add(name)
                bell.wait(pause)
        self._store.leave()

    def _deliver(self, sink: Sink) -> float:
        """Deliver some; return the seconds after which to look again."""
        sinks, now = {sink.name: sink}, self._clock.now()
        try:
            taken, errors = deliver(self._store, sinks, now, self._log, AT_ONCE)
        except StreamdpError:  # the store's: the daemon's own thread tells it
            return LOOK_AGAIN
        if errors:
            return LOOK_AGAIN
        return 0.0 if taken == AT_ONCE else IDLE
