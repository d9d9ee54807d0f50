"""The kill matrix: SIGKILL at every statement and every write, then a restart and the invariants.

One life from an empty folder to five delivered releases holds every step there is: the schema is
made, batches are ingested, charges reserved, releases committed and delivered to a table and a
file. Each of its points is tried in a folder of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from tests.crash import tracer
from tests.crash.home import Facts, Home, folder
from tests.crash.tracer import Life, Point

H = TypeVar("H", bound=Home)


def first_life(template: Home) -> Life:
    """A life that nobody cuts short."""
    with folder() as place:
        home = template.copy(place / "whole")
        life = tracer.live(home.live)
        assert life.status == 0, f"the life to be cut short ends with {life.status}: {life.trouble}"
        assert home.broken() == [], "and leaves nothing to do"
    return life


def aftermath(home: Home, place: Path) -> Iterator[str]:
    """Restart after one trouble, and compare what there is with what there was.

    Args:
        home: Where the trouble was.
        place: A folder for a copy.
    """
    before, lines = home.copy(place / "left").facts(), home.published()
    ending = tracer.live(lambda: home.live("second", rounds=2))
    if ending.status != 0:
        yield f"the restart failed with {ending.status}: {ending.trouble}"
        return
    yield from home.broken()
    after = home.facts()
    for table, rows in before.items():
        if not set(rows) <= set(after[table]):
            yield f"a committed row of {table} is gone or changed"
    if not lines.items() <= home.published().items():
        yield "a line that was published is gone or changed"
    yield from _accounts(after)


def violations(
    template: H, point: Point, aftermath: Callable[[H, Path], Iterator[str]] = aftermath
) -> list[str]:
    """Kill one life at a point, let a second one do the rest, and compare."""
    with folder() as place:
        home = template.copy(place / "home")
        life = tracer.live(home.live, point)
        if not life.killed:
            ended = f"{life.status}: {life.trouble}"
            return [f"{point}: the process outlived it and ended with {ended}"]
        return [f"{point}: {wrong}" for wrong in aftermath(home, place)]


def _accounts(facts: Facts) -> Iterator[str]:
    """One trouble burns one charge at most, and every charge has a release or a trouble."""
    rows = facts["ledger"]
    reserved, burnt = (sum(purpose in row for row in rows) for purpose in ("reserve", "burn"))
    if burnt > 1:
        yield f"one trouble burnt {burnt} charges"
    if reserved != len(facts["release"]) + burnt:
        yield "a charge has neither a release nor a trouble"
