"""Which weeks, months or rolling ranges of a job are closed, from the windows of its releases.

Apart from what a closed period's rows are, which needs scipy: a job without rollups does not load
that.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from streamdp.answers.periods import Period, Step, every, rolling

ROLLING = "rolling "


@dataclass(frozen=True, slots=True)
class RollupTerms:
    """What a job rolls up.

    Args:
        steps: `week`, `month`, ..., or `rolling 28d`.
        zone: Whose weeks and months: that of the batches.
        partial: Whether a period counts as closed though batches of it are missing, once a batch
            behind its end was released.
        sinks: Names of the sinks that get them.
    """

    steps: tuple[str, ...]
    zone: str
    partial: bool
    sinks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Closed:
    """A period that is closed.

    Args:
        step: Of the terms.
        period: When.
        made_of: Digest of the releases of its batches: another one is another revision.
        missing: How many stretches of it were not released.
    """

    step: str
    period: Period
    made_of: str
    missing: int


Released = tuple[int, int, str]
"""First second of a batch, the second after its last, and the id of its release."""


def closed(terms: RollupTerms, released: Sequence[Released]) -> Iterator[Closed]:
    """The closed periods of each step, in order of time.

    Args:
        terms: Of the job.
        released: In order of time; batches do not overlap.
    """
    if not released:
        return
    starts, ends = [each[0] for each in released], [each[1] for each in released]
    if any(end > start for end, start in zip(ends, starts[1:], strict=False)):
        return
    sums = [0, *accumulate(int(each[2][:16], 16) for each in released)]
    breaks = [0, *accumulate(a != b for a, b in zip(ends, starts[1:], strict=False))]
    for step in terms.steps:
        for period in _periods(step, terms.zone, starts, ends):
            first, last = bisect_left(starts, period.since), bisect_left(starts, period.until)
            while last > first and ends[last - 1] > period.until:
                last -= 1
            if first == last:
                continue
            missing = breaks[last - 1] - breaks[first]
            missing += (starts[first] > period.since) + (ends[last - 1] < period.until)
            if missing and not (terms.partial and ends[-1] >= period.until):
                continue
            digest = f"{last - first}:{(sums[last] - sums[first]) % 2**64:016x}"
            yield Closed(step, period, digest, missing)


def _periods(step: str, zone: str, starts: list[int], ends: list[int]) -> Iterator[Period]:
    if step.startswith(ROLLING):
        days = int(step.removeprefix(ROLLING).removesuffix("d"))
        yield from rolling(days, ends, zone)
    else:
        yield from every(_STEPS[step], Period("", starts[0] - _YEAR, ends[-1] + _YEAR), zone)


_STEPS: dict[str, Step] = {step: step for step in ("day", "week", "month", "quarter", "year")}
_YEAR = 2 * 366 * 86_400


def identity(store: str, job: str, found: Closed) -> str:
    """The id of a rollup, in the form of one of a release: the same whenever it is made again."""
    text = json.dumps([store, job, found.step, found.period.name, found.made_of])
    return hashlib.sha256(text.encode()).hexdigest()[:24]
