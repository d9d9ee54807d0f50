"""When the answers of tests are seen: at times that follow from their number and no duration.

A gate that is up to date has one test at a time, which takes a slot. A backlog is put to it in a
series: test i begins `PACE` of a slot after test i - 1, and all that follows from the series (log,
sinks, a release after a yes, work of others) waits until a whole slot after the begin that the last
test was due at. The store has the same times. So who looks on sees times that are a function of the
number of tests, which the answers show anyway. A test that takes longer than its pace begins the
next one late, which the slot at the end takes up; if that is not long enough, further whole slots
are waited for, as after a single test that takes longer than its slot.

A series ends with the first yes, with the turn of its gate, and with an error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from streamdp.types import Clock

PACE = Fraction(1, 20)
"""Share of a slot between the beginnings of two tests of a series."""


def seconds_of_series(slot: int, tests: int) -> int:
    """Return how long so many tests take in one series, in whole seconds."""
    return slot + math.ceil(slot * PACE * max(tests - 1, 0))


@dataclass(slots=True)
class Series:
    """Tests of one gate that follow each other without a slot between.

    Args:
        clock: Of the process.
        slot: Seconds that a single test takes to who looks on.
    """

    clock: Clock
    slot: int
    tests: int = field(default=0, init=False)
    _began: float = field(default=0.0, init=False)
    _at: int = field(default=0, init=False)

    def begin(self) -> int:
        """Wait for the begin of the next test and return it, in POSIX seconds."""
        self.tests += 1
        if self.tests == 1:
            self._began, self._at = self.clock.timer(), self.clock.now()
            return self._at
        due = float((self.tests - 1) * self.slot * PACE)
        early = self._began + due - self.clock.timer()
        if early > 0:
            self.clock.wait(early)
        return min(self._at + math.floor(due), self.clock.now())  # not ahead of a clock set back

    def seen_from(self) -> int:
        """Return when the answer of the test that began last may be seen, in POSIX seconds."""
        whole, _ = self._slots()
        return self._at + math.ceil(float(whole)) + 1

    def end(self) -> int:
        """Wait until all answers may be seen; return when the series began, in POSIX seconds."""
        whole, taken = self._slots()
        self.clock.wait(float(whole) - taken)
        return self._at

    def _slots(self) -> tuple[Fraction, float]:
        """Seconds from the first begin to the end, and those that are over."""
        paced, taken = (self.tests - 1) * self.slot * PACE, self.clock.timer() - self._began
        more = math.floor(max(taken - float(paced), 0.0) / self.slot) + 1
        return paced + more * self.slot, taken
