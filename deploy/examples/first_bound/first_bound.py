"""A test of another package: the first bound of a column that leaves out few enough records.

Of several bounds, in their order, each is a private procedure: a noisy count of the records above
it, which says yes if they are at most a share of all. The gate accepts the first bound whose
procedure says yes often enough, for one price, however many bounds and days come before.
"""

from __future__ import annotations

import math
from fractions import Fraction

from streamdp.mechanisms.sparse_vector.thresholding import Chance
from streamdp.types import CellCounts, Grid, Json, Past, Row


class FirstBound:
    """Which bound is the first that at most a share of the records is above?

    Args:
        grid: Of the column.
        epsilon: Privacy loss of one count.
        bounds: In the column's unit, in the order in which they are tried.
        share: Of the records that may be above.
    """

    def __init__(self, grid: Grid, epsilon: Fraction, bounds: list[float], share: float) -> None:
        if not bounds or not 0 < share < 1:
            raise ValueError("give bounds, and a share between 0 and 1")
        self.share = Fraction(str(share))
        self.cells = [round(Fraction(bound) / grid.resolution) for bound in bounds]
        self.decay = math.exp(-float(epsilon))
        self.configurations: tuple[Row, ...] = tuple({"bound": float(each)} for each in bounds)

    def describe(self) -> Json:
        """Bounds and share, for the ledger."""
        bounds = [row["bound"] for row in self.configurations]
        return {"kind": "first bound", "bounds": bounds, "share": str(self.share)}

    def test(self, past: Past, statistic: CellCounts) -> tuple[Chance, ...]:
        """The chance that each count, with discrete Laplace noise, is at most the share.

        Privacy: a record moves share·n minus the records above by at most one, so its floor too;
        noise of scale 1/epsilon makes the answer epsilon-private. The chance is computed: noise of
        P(k) ∝ decay^|k| is at least -m with 1 - decay^(m + 1)/(1 + decay) for m >= 0, and is
        mirrored below. Neither of the two is a difference where it is small.
        """
        records = int(statistic.counts.sum())
        chances = []
        for cell in self.cells:
            above = int(statistic.counts[statistic.cells > cell].sum())
            room = math.floor(self.share * records - above)
            if room >= 0:
                no = self.decay ** (room + 1) / (1 + self.decay)
                chances.append(Chance(1 - no, no))
            else:
                yes = self.decay**-room / (1 + self.decay)
                chances.append(Chance(yes, 1 - yes))
        return tuple(chances)
