"""A full disk, at every page of the store, at every size of a file, and at every single write.

At a reservation nothing is charged, at a commit the charge is burnt, at a delivery the outbox keeps
the release; when space returns the daemon goes on by itself.
"""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

from tests.crash import tracer
from tests.crash.home import Home, folder
from tests.crash.kills import aftermath
from tests.crash.tracer import FOREIGN, Point

ROUNDS = 4
"""Rounds of a life whose disk was full for a moment."""

Limit = Callable[[int], None]


def refused(template: Home, point: Point) -> list[str]:
    """Let a write fail, alone or with all that follow; alone it must not end the daemon's work."""
    with folder() as place:
        home = template.copy(place / "home")
        life = tracer.live(lambda: home.live(rounds=ROUNDS), point)
        wrong = ["a foreign exception"] if life.status == FOREIGN else []
        if point.moment == "full once" and life.status == 0:
            wrong += [f"space is back, and not: {each}" for each in home.broken()]
        return [f"{point}: {each}" for each in (*wrong, *aftermath(home, place))]


def limited(template: Home, limit: Limit, amount: int) -> list[str]:
    """Let a life end at a limit, and another go on without it."""
    with folder() as place:
        home = template.copy(place / "home")

        def work() -> None:
            limit(amount)
            home.live(rounds=2)

        life = tracer.live(work)
        wrong = ["a foreign exception"] if life.status == FOREIGN else []
        name = f"{limit.__name__} {amount}"
        return [f"{name}: {each}" for each in (*wrong, *aftermath(home, place))]


def pages_at_most(number: int) -> None:
    """SQLite finds the disk full when the store has so many pages."""
    connect = sqlite3.connect

    def limiting(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **named)
        connection.execute(f"PRAGMA max_page_count = {number}")
        return connection

    sqlite3.connect = limiting  # type: ignore[assignment]


def bytes_at_most(number: int) -> None:
    """No file can grow beyond so many bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (number, number))


def limits(template: Home, step: int) -> Iterator[tuple[Limit, int]]:
    """Every page count of the store, and every size of its largest file in steps."""
    with folder() as place:
        home = template.copy(place / "home")
        sizes: list[int] = []
        tracer.live(home.live)
        pages = home.store.stat().st_size // 4096
        sizes = [path.stat().st_size for path in home.path.rglob("*") if path.is_file()]
    yield from ((pages_at_most, number) for number in range(1, pages + 1))
    yield from ((bytes_at_most, number) for number in range(0, max(sizes) + step, step))
