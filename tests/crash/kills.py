"""The kill matrix: SIGKILL at every statement and every write, then a restart and the invariants.

One life from an empty folder to five delivered releases holds every step there is: the schema is
made, batches are ingested, charges reserved, releases committed and delivered to a table and a
file. Each of its points is tried in a folder of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.crash import tracer
from tests.crash.home import BATCHES, EPSILON_NANO, Facts, Home, folder
from tests.crash.tracer import Point
from tests.worlds import ReplayedEntropy


@dataclass(frozen=True, slots=True)
class Matrix:
    """What a sweep did: the points it killed at and every violation, each with its point."""

    points: int
    violations: tuple[str, ...]


def first_life(template: Home) -> tuple[Point, ...]:
    """Every point of a life that nobody kills."""
    with folder() as place:
        home = template.copy(place / "whole")
        life = tracer.live(lambda: home.live(ReplayedEntropy("first")))
        assert life.status == 0, "the life to be cut short ends well"
        assert home.broken() == [], "and leaves nothing to do"
    return tuple(life.points())


def sweep(points: Sequence[Point], template: Home) -> Matrix:
    """Kill at each point, restart, and look."""
    found: list[str] = []
    for point in points:
        with folder() as place:
            home = template.copy(place / "home")
            found += [f"{point}: {wrong}" for wrong in _violations(home, point, place)]
    return Matrix(len(points), tuple(found))


def _violations(home: Home, point: Point, place: Path) -> Iterator[str]:
    """Kill one life at a point, let a second one do the rest, and compare."""
    if not tracer.live(lambda: home.live(ReplayedEntropy("first")), point).killed:
        yield "the process outlived its point"
        return
    before, lines = home.copy(place / "left").facts(), home.published()
    ending = tracer.live(lambda: home.live(ReplayedEntropy("second")))
    if ending.status != 0:
        yield f"the restart failed with {ending.status}"
        return
    yield from home.broken()
    yield from lost(before, home.facts())
    if not lines.items() <= home.published().items():
        yield "a line that was published is gone or changed"
    yield from _accounts(home.facts())


def lost(before: Facts, after: Facts) -> Iterator[str]:
    """What was once committed and is no longer there byte for byte."""
    for table, rows in before.items():
        if not set(rows) <= set(after[table]):
            yield f"a committed row of {table} is gone or changed"


def _accounts(facts: Facts) -> Iterator[str]:
    """One death burns one charge at most, and what is spent is what the ledger's rows say."""
    rows = facts["ledger"]
    reserved = [row for row in rows if "reserve" in row]
    burnt = sum("burn" in row for row in rows)
    if burnt > 1:
        yield f"one death burnt {burnt} charges"
    if len(reserved) != BATCHES + burnt:
        yield "a charge has neither a release nor a death"
    if sum(row.count(EPSILON_NANO) > 0 for row in reserved) != len(reserved):
        yield "a charge is not the price of its release"
