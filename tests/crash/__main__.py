"""The sweeps: points tried and violations found, which must be none.

python -m tests.crash [--json] [--quick]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from tests.benchmarks.report import Row, main
from tests.crash import (
    canaries,
    disks,
    every_kind,
    gated,
    hostile,
    kills,
    pages,
    power,
    races,
    twins,
    walks,
)
from tests.crash.home import Home, folder
from tests.crash.tracer import INTEL, supported

T = TypeVar("T")

QUICK = 25
"""Points of a sweep under `--quick`, spread evenly."""


STRIDE = 17
"""Of the deaths in every kind one in so many is tried: each is a life with an engine."""


def rows(quick: bool) -> Iterator[Row]:
    """One row a sweep."""
    with folder() as place:
        template = Home.furnish(place / "template")
        if not supported():
            print("a child cannot be traced here: most sweeps are left out", file=sys.stderr)
        else:
            yield from _traced(template, quick=quick)
            yield from _damaged(template, quick=quick)
            yield from _of_every_kind(quick=quick)
            yield from _told(quick=quick)
            count, steps = (4, 20) if quick else (250, 40)
            found = (walks.walk(seed, steps) for seed in range(count))
            yield {**_row("random walks: steps", found), "points": count * steps}
        places = _some(tuple(hostile.cases()), quick=quick)
        yield _row("sinks at hostile places", map(hostile.violations, places))
        for locked in (True, False):
            race = [races.pair(template, locked=locked) for _ in range(10 if quick else 100)]
            yield _row(f"pairs of daemons {'with' if locked else 'without'} the lock", race)
    threads = 100 if quick else 1000
    alone = [list(races.last_unit(threads))]
    yield {**_row("threads at the last charge", alone), "points": threads}


def _traced(template: Home, *, quick: bool) -> Iterator[Row]:
    """Deaths and full disks at every call that the kernel sees."""
    life = kills.first_life(template)
    points = _some(tuple(life.deaths()), quick=quick)
    yield _row("kill matrix", (kills.violations(template, point) for point in points))
    yield from _asked(quick=quick)
    points = _some(tuple(life.refusals()), quick=quick)
    if INTEL:
        yield _row("power cuts", power.cuts(template, 4 if quick else 1))
        yield _row("a full disk at every write", (disks.refused(template, each) for each in points))
    limits = _some(tuple(disks.limits(template, step=4096)), quick=quick)
    yield _row("a full disk at every size", (disks.limited(template, *each) for each in limits))


def _asked(*, quick: bool) -> Iterator[Row]:
    """Deaths, power cuts and full disks in a life in which a gate is asked."""
    with folder() as place:
        home = gated.GatedHome.furnish(place / "template")
        life = kills.first_life(home)
        points = _some(tuple(life.deaths()), quick=quick)
        yield _row(
            "kills of a gate", (kills.violations(home, point, gated.aftermath) for point in points)
        )
        points = _some(tuple(life.refusals()), quick=quick)
        if INTEL:
            yield _row("power cuts of a gate", power.cuts(home, 4 if quick else 1))
            found = (disks.refused(home, point) for point in points)
            yield _row("a full disk at every write of a gate", found)


def _of_every_kind(*, quick: bool) -> Iterator[Row]:
    """Deaths and twins where each release kind is released in several forms."""
    with folder() as place:
        home = every_kind.EveryKind.furnish(place / "template")
        points = _some(tuple(kills.first_life(home).deaths())[::STRIDE], quick=quick)
        yield _row("kills in every kind", (kills.violations(home, point) for point in points))
    pairs = list(twins.of_every_kind(2 if quick else 20))
    found = (twins.difference(*pair, every_kind.CONFIG) for pair in pairs)
    yield _row("twins in every kind: pairs of runs", found)
    with every_kind.public_outcomes():
        found = (twins.difference(*pair, every_kind.COSTLY) for pair in pairs)
        yield _row("twins in every kind that release the same", found)


def _damaged(template: Home, *, quick: bool) -> Iterator[Row]:
    """Files that rot and files that are cut."""
    for stand in pages.stands(template):
        with folder() as place:
            home = template.copy(place / "home")
            for file in stand.files:
                stride = 61 if stand.crashed else 7
                cases = [each for each in pages.damages(stand, stride) if each.file == file]
                found = (
                    filter(None, [pages.verdict(home, stand, each)])
                    for each in _some(cases, quick=quick, factor=8)
                )
                state = "after a crash" if stand.crashed else "at rest"
                yield _row(f"{file} {state}: flipped, cut, gone", found)


def _told(*, quick: bool) -> Iterator[Row]:
    """What can be seen from outside."""
    size, found = canaries.scan(canaries.OF_EVERY_KIND)
    yield {**_row("canaries: bytes searched", [found]), "points": size}
    pairs = twins.neighbours(4 if quick else 100)
    yield _row("twins: pairs of runs", (twins.difference(*pair) for pair in pairs))


def _some(cases: Sequence[T], *, quick: bool, factor: int = 1) -> Sequence[T]:
    """All cases, or few of them."""
    return cases[:: max(1, len(cases) // (factor * QUICK))] if quick else cases


def _row(sweep: str, found: Iterable[Iterable[str]]) -> Row:
    """Run a sweep; what it finds is told on standard error."""
    points = violations = 0
    for each in found:
        points += 1
        for wrong in each:
            violations += 1
            print(f"{sweep}: {wrong}", file=sys.stderr)
    return {"sweep": sweep, "points": points, "violations": violations}


if __name__ == "__main__":
    main("Sweeps of what can go wrong", rows, failed=lambda row: bool(row["violations"]))
