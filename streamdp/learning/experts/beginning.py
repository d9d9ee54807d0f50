"""Belief before any release: from a guess, or from public rows of the same kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.learning.experts import density
from streamdp.learning.experts.forecast import Usual
from streamdp.learning.experts.levels import Levels
from streamdp.learning.experts.panel import FIRST_OWN, Inputs, Panel
from streamdp.learning.public import PublicFit
from streamdp.types import FloatArray

OPENING = 3
"""Releases of which all quantiles are drawn when a stream opens; not after public rows."""

PUBLIC_CERTAINTY = 16.0
"""Of first levels fitted to public rows: they are believed within a quarter."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """How a stream begins.

    Args:
        targets: Quantiles, shape (m,).
        guess: Location and spread of the column.
        public: What public rows say.
        resolution: Width of a cell.
    """

    targets: FloatArray
    guess: tuple[float, float]
    public: PublicFit | None
    resolution: float

    def panel(self, inputs: Inputs) -> Panel:
        """State before any release, for these inputs."""
        values, gaps = self.values(), self.log_gaps()
        each = density.densities(self.targets, gaps)
        basis = density.directions(each, gaps)
        usual = Usual(each, basis @ basis.T, self.resolution)
        certainty, releases = (PUBLIC_CERTAINTY, OPENING) if self.public else (1.0, 0)
        groups = tuple(Levels.start(values, len(each), usual, certainty) for each in inputs)
        past: tuple[tuple[float, ...], ...] = ((),) * len(values)
        at = self.guess[0]
        return Panel(releases, 0, gaps, FIRST_OWN**2, 0.0, groups, past, at, strange=False)

    def values(self) -> FloatArray:
        """Where quantiles are believed to be, shape (m,)."""
        if self.public:
            return np.array(self.public.locations)
        return density.guessed_quantiles(self.targets, *self.guess)

    def log_gaps(self) -> FloatArray:
        """Usual gaps between quantiles (`density`)."""
        return density.first_log_gaps(self.values(), self.guess[1], self.resolution)
