"""Histograms with noise on public cuts; where the next cuts lie may follow from those before.

Cuts t_1 < ... < t_k divide the grid into k + 1 bins: bin i holds the records with
t_(i-1) < x <= t_i, the last those with x > t_k. A stage s publishes

    count_i + z_i,   z_i independent noise at the price share_s·price

(`mechanisms.noise`: discrete Laplace for epsilon, discrete Gaussian for rho). The cuts of a stage
are a function of the noisy counts of the stages before it. How many stages there are, and the share
of each, is fixed before data is touched, and with them the price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from streamdp.mechanisms.noise import Noise, noise_at
from streamdp.mechanisms.quantile_tree.sharpness import Relation
from streamdp.privacy import events
from streamdp.privacy.price import Price
from streamdp.types import CellCounts, Entropy, Grid, Json

WHOLE = (Fraction(1),)
"""Shares of a plan of one stage, which has the whole price."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Noisy counts between cuts.

    Args:
        cuts: Cells, strictly increasing, shape (k,); a bin ends with its cut.
        counts: Noisy, so that some may be negative, shape (k + 1,).
    """

    cuts: tuple[int, ...]
    counts: tuple[int, ...]


NextCuts = Callable[[tuple[Histogram, ...]], Iterable[int]]
"""The cuts of the next stage, from the stages so far: none before the first. A stage may have any
number of cuts, none too."""


@dataclass(frozen=True, slots=True)
class Histograms:
    """Histograms of one batch in stages: how the price is split, and the noise of each count.

    Args:
        price: Of all stages together, for one record.
        grid: Public cells.
        shares: Of the price, one a stage; positive, with sum 1.
        relation: Neighbours.

    Raises:
        ValueError: The shares are not positive, or do not add up to 1.
    """

    price: Price
    grid: Grid
    shares: tuple[Fraction, ...] = WHOLE
    relation: Relation = "add-remove"

    def __post_init__(self) -> None:
        if sum(self.shares) != 1 or min(self.shares) <= 0:
            raise ValueError("the shares of stages must be positive and add up to 1")

    def noise(self, stage: int) -> Noise:
        """Return the noise of each count of a stage."""
        return self.noise_at(self.shares[stage])

    def noise_at(self, share: Fraction) -> Noise:
        """Return the noise of each count at a share of the price.

        One record more changes one count by one, one that moves changes two.
        """
        changed = 2 if self.relation == "substitute" else 1
        return noise_at(self.price.share(share), changed, changed)

    def event(self) -> Json:
        """Return the event of one record: the stages one after the other.

        Where a record moves between two counts, the noise of each is a draw of half the epsilon.
        """
        draws: list[Json] = []
        for share in self.shares:
            price = self.price.share(share)
            if price.measure == "rho":
                draws.append(events.zero_concentrated(price.amount))
            elif self.relation == "substitute":
                draws += [events.pure(price.amount / 2)] * 2
            else:
                draws.append(events.pure(price.amount))
        return events.sequence(
            draws,
            mechanism="histograms",
            noise="discrete-gaussian" if self.price.measure == "rho" else "discrete-laplace",
            stages=[str(share) for share in self.shares],
            relation=self.relation,
        )

    def draw(
        self, statistic: CellCounts, next_cuts: NextCuts, entropy: Entropy
    ) -> tuple[Histogram, ...]:
        """Draw one histogram a stage.

        Args:
            statistic: The batch. Private.
            next_cuts: Reads the stages before and public facts alone. What it returns is put in
                order, without what occurs twice, and moved into the grid (`within`), so the cuts
                that count are those of the result. Where it fails, those of the stage before stay.
            entropy: Source of chance.

        Privacy: `relation` of one record. Bins are a partition of the grid, so that one record more
        changes one count of a stage by one, and one that moves changes two counts by one. A stage
        costs share·price (`AdditiveNoise.draw`, `GaussianNoise.draw`) whatever its cuts are; these
        follow from stages that are drawn already, so the prices add up: pure epsilon, or rho.
        """
        drawn: tuple[Histogram, ...] = ()
        for stage in range(len(self.shares)):
            cuts = self._cuts(next_cuts, drawn)
            counts = self.noise(stage).draw(exact_counts(statistic, cuts), entropy)
            drawn += (Histogram(cuts, counts),)
        return drawn

    def _cuts(self, next_cuts: NextCuts, drawn: tuple[Histogram, ...]) -> tuple[int, ...]:
        """Return the cuts of the next stage; it never fails after the first one.

        A failure would end the release by counts that nobody sees, and a retry pays anew.
        """
        try:
            return within(self.grid, next_cuts(drawn))
        except Exception:
            if not drawn:
                raise
            return drawn[-1].cuts


def within(grid: Grid, cuts: Iterable[int]) -> tuple[int, ...]:
    """Return cuts strictly increasing and in the grid, but for its last cell: nothing is above it.

    >>> within(Grid(Fraction(1), 0, 9), (7, 3, 3, -5, 12))
    (0, 3, 7, 8)
    """
    if grid.lower == grid.upper:
        return ()
    return tuple(sorted({min(max(int(cut), grid.lower), grid.upper - 1) for cut in cuts}))


def exact_counts(statistic: CellCounts, cuts: tuple[int, ...]) -> list[int]:
    """Count the records in each of the k + 1 bins. Private; never fails."""
    inner = np.searchsorted(statistic.cells, np.asarray(cuts, dtype=np.int64), side="right")
    ends = (0, *inner.tolist(), len(statistic.cells))
    return [int(statistic.counts[low:high].sum()) for low, high in pairwise(ends)]
