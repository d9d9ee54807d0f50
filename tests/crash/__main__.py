"""The sweeps: points tried and violations found, which must be none.

python -m tests.crash [--json] [--quick] [--part I/N]

The whole takes about three quarters of an hour of a processor. `--part 1/2` and `--part 2/2` share
its cases between two processes: of each sweep the first takes every other case, the second the
rest. Of deaths in long lives, most of which the kill matrix goes through too, one in `STRIDE` is
tried; each row says how many cases there are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tests.benchmarks.report import Row, main
from tests.crash import (
    canaries,
    disks,
    every_kind,
    found,
    gated,
    hostile,
    kills,
    memory,
    pages,
    power,
    races,
    restores,
    rolled,
    twins,
    unfound,
    walks,
    windows,
)
from tests.crash.home import Home, folder
from tests.crash.tracer import INTEL, supported

T = TypeVar("T")

QUICK = 25
"""Points of a sweep under `--quick`, spread evenly."""

STRIDE = {
    "kills of a gate": 5,
    "kills of rollups": 5,
    "kills in every kind": 31,
    "kills of windows": 5,
    "kills of found groups": 11,
    "a full disk at every write": 3,
    "a full disk at every write of a gate": 5,
}
"""Of these sweeps one case in so many is tried; primes, so that all moments of a call occur."""


@dataclass(frozen=True, slots=True)
class Share:
    """Which cases of the sweeps a process tries.

    Args:
        quick: Whether few are enough.
        part: Number of this process, from 0 on.
        parts: How many processes share the cases.
    """

    quick: bool = False
    part: int = 0
    parts: int = 1

    def row(
        self,
        sweep: str,
        cases: Iterable[T],
        violations: Callable[[T], Iterable[str]],
        quick: int = QUICK,
    ) -> Row:
        """Try this share of the cases; what is found is told on standard error."""
        every = tuple(cases)
        mine = every[:: STRIDE.get(sweep, 1)]
        mine = (mine[:: max(1, len(mine) // quick)] if self.quick else mine)[
            self.part :: self.parts
        ]
        found = 0
        for case in mine:
            for wrong in violations(case):
                found += 1
                print(f"{sweep}: {wrong}", file=sys.stderr, flush=True)
        return {"sweep": sweep, "points": len(mine), "of": len(every), "violations": found}


def rows(share: Share) -> Iterator[Row]:
    """One row a sweep."""
    with folder() as place:
        template = Home.furnish(place / "template")
        if not supported():
            print("a child cannot be traced here: most sweeps are left out", file=sys.stderr)
        else:
            yield from _traced(template, share)
            yield from _damaged(template, share)
            yield from _of_every_kind(share)
            yield from _told(share)
            count, steps = (4, 20) if share.quick else (120, 40)
            walk = partial(walks.walk, length=steps)
            yield share.row(f"random walks of {steps} steps", range(count), walk, count)
        if memory.starver is not None:
            starved = partial(memory.violations, template)
            yield share.row("allocations that fail", memory.cases(300), starved)
        yield share.row("sinks at hostile places", hostile.cases(), hostile.violations)
        pasts = range(4 if share.quick else 40)
        yield share.row("copies put back, edited kinds", pasts, restores.trial, len(pasts))
        for locked in (True, False):
            name = f"pairs of daemons {'with' if locked else 'without'} the lock"
            pair = partial(_pair, template, locked)
            yield share.row(name, range(10 if share.quick else 100), pair)
    threads = 100 if share.quick else 1000
    yield share.row(f"{threads} threads at the last charge", [threads], races.last_unit)


def _pair(template: Home, locked: bool, number: int) -> list[str]:
    return [f"pair {number}: {wrong}" for wrong in races.pair(template, locked=locked)]


def _traced(template: Home, share: Share) -> Iterator[Row]:
    """Deaths and full disks at every call that the kernel sees."""
    life = kills.first_life(template)
    yield share.row("kill matrix", life.deaths(), partial(kills.violations, template))
    yield from _asked(share)
    yield from _of_windows(share)
    yield from _rolled(share)
    if INTEL:
        yield from _cut("power cuts", template, share)
        refused = partial(disks.refused, template)
        yield share.row("a full disk at every write", life.refusals(), refused)
    limits = disks.limits(template, step=4096)
    limited = partial(_apply, partial(disks.limited, template))
    yield share.row("a full disk at every size", limits, limited)


def _asked(share: Share) -> Iterator[Row]:
    """Deaths, power cuts and full disks in a life in which a gate is asked."""
    with folder() as place:
        home = gated.GatedHome.furnish(place / "template")
        life = kills.first_life(home)
        killed = partial(kills.violations, home, aftermath=gated.aftermath)
        yield share.row("kills of a gate", life.deaths(), killed)
        if INTEL:
            yield from _cut("power cuts of a gate", home, share)
            refused = partial(disks.refused, home)
            yield share.row("a full disk at every write of a gate", life.refusals(), refused)


def _of_windows(share: Share) -> Iterator[Row]:
    """Deaths in lives in which windows are paid for, and their keys are the groups of others."""
    with folder() as place:
        home = windows.WindowsHome.furnish(place / "template")
        life, killed = kills.first_life(home), partial(kills.violations, home)
        yield share.row("kills of windows", life.deaths(), killed)
        yield share.row("kills within charges of windows", windows.charging(life), killed)
    with folder() as place:
        counted = found.FoundHome.furnish(place / "template")
        life, killed = kills.first_life(counted), partial(kills.violations, counted)
        yield share.row("kills of found groups", life.deaths(), killed)


def _rolled(share: Share) -> Iterator[Row]:
    """Deaths in a life in which periods are rolled up."""
    with folder() as place:
        home = rolled.RolledHome.furnish(place / "template")
        deaths = kills.first_life(home).deaths()
        yield share.row("kills of rollups", deaths, partial(kills.violations, home))


def _cut(sweep: str, template: Home, share: Share) -> Iterator[Row]:
    """Power cuts of one life."""
    with power.life(template) as shadow:
        yield share.row(sweep, range(len(shadow.seen)), partial(power.violations, shadow))


def _of_every_kind(share: Share) -> Iterator[Row]:
    """Deaths and twins where each release kind is released in several forms."""
    with folder() as place:
        home = every_kind.EveryKind.furnish(place / "template")
        deaths = kills.first_life(home).deaths()
        yield share.row("kills in every kind", deaths, partial(kills.violations, home))
    pairs = tuple(twins.of_every_kind(2 if share.quick else 12))
    compared = partial(_apply, partial(twins.difference, config=every_kind.CONFIG))
    yield share.row("twins in every kind: pairs of runs", pairs, compared)
    with every_kind.public_outcomes():
        compared = partial(_apply, partial(twins.difference, config=every_kind.COSTLY))
        yield share.row("twins in every kind that release the same", pairs, compared)


def _damaged(template: Home, share: Share) -> Iterator[Row]:
    """Files that rot and files that are cut."""
    for stand in pages.stands(template):
        with folder() as place:
            home = template.copy(place / "home")
            for file in stand.files:
                stride = 61 if stand.crashed else 19
                cases = [each for each in pages.damages(stand, stride) if each.file == file]
                state = "after a crash" if stand.crashed else "at rest"
                name = f"{file} {state}: flipped, cut, gone"
                yield share.row(name, cases, partial(_judged, home, stand), 8 * QUICK)


def _judged(home: Home, stand: pages.Stand, damage: pages.Damage) -> Iterator[str]:
    yield from filter(None, [pages.verdict(home, stand, damage)])


def _told(share: Share) -> Iterator[Row]:
    """What can be seen from outside."""
    sizes: list[int] = []

    def marks(config: str) -> list[str]:
        size, found = canaries.scan(config)
        sizes.append(size)
        return found

    row = share.row("canaries: bytes searched", [canaries.OF_EVERY_KIND], marks)
    yield {**row, "points": sum(sizes), "of": sum(sizes)}
    pairs = twins.neighbours(4 if share.quick else 100)
    yield share.row("twins: pairs of runs", pairs, partial(_apply, twins.difference))
    unseen, seen = partial(_apply, unfound.below), partial(_apply, unfound.above)
    yield share.row("twins of keys of too few units", unfound.BELOW, unseen)
    yield share.row("twins of keys that coins are tossed for", unfound.FROM_THERE_ON, seen)


def _apply(violations: Callable[..., T], case: Sequence[object]) -> T:
    """A case that is several arguments."""
    return violations(*case)


def _part(text: str) -> Share:
    part, parts = map(int, text.split("/"))
    if not 1 <= part <= parts:
        raise ValueError(text)
    return Share(part=part - 1, parts=parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--part", type=_part, default=Share(), help="its share of cases: 1/2, 2/2")
    asked = parser.parse_known_args()[0].part
    main(
        "Sweeps of what can go wrong",
        lambda quick: rows(Share(quick, asked.part, asked.parts)),
        failed=lambda row: bool(row["violations"]),
        parser=parser,
    )
