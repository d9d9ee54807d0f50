"""Chance of the tests: what a test draws of the operating system's entropy follows from its name.

A test that noise could fail either fails for everyone or for nobody. Programs that are started by
their name, and do not come from a fork of the tests, draw as they do for a user.
"""

from __future__ import annotations

import hashlib
import itertools
import os

from streamdp.privacy.draws import OperatingSystemEntropy


class Settled:
    """Bits that follow from a seed; a fork has a seed of its own."""

    def __init__(self) -> None:
        self.begin("")

    def begin(self, seed: str) -> None:
        """Draw what belongs to a seed from now on."""
        self.seed, self.requests, self.forks = seed, itertools.count(), itertools.count()
        self.child = ""

    def bits(self, count: int) -> int:
        """The next bits, in the place of the operating system's."""
        size = (count + 7) // 8
        drawn = hashlib.shake_128(f"{self.seed}/{next(self.requests)}".encode()).digest(size)
        return int.from_bytes(drawn, "big") >> (8 * size - count)

    def settle(self) -> None:
        """Give bits to this process and to all that it forks."""
        OperatingSystemEntropy.bits = self.bits  # type: ignore[method-assign,assignment]
        os.register_at_fork(before=self._name_child, after_in_child=self._be_child)

    def _name_child(self) -> None:
        self.child = f"{self.seed}/child {next(self.forks)}"

    def _be_child(self) -> None:
        self.begin(self.child)


settled = Settled()
