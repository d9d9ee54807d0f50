"""Public facts of a stream: its quantiles, its grid, and what is guessed before any release."""

from __future__ import annotations

from dataclasses import dataclass

from streamdp.types import FloatArray, Grid, Prior


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """Public facts of a stream.

    Args:
        targets: Quantiles, increasing, shape (m,).
        grid: Public cells.
        rows: Expected number of records of a batch.
        guess: Location and spread of the column, before any release.
        robust: Prior that holds when the past misleads.
        robust_weight: λ in (0, 1].
    """

    targets: FloatArray
    grid: Grid
    rows: int
    guess: tuple[float, float]
    robust: Prior
    robust_weight: float

    @property
    def resolution(self) -> float:
        """Width of a cell."""
        return float(self.grid.resolution)

    @property
    def limits(self) -> tuple[float, float]:
        """Ends of the grid."""
        grid, half = self.grid, self.grid.resolution / 2
        lower, upper = grid.lower * grid.resolution - half, grid.upper * grid.resolution + half
        return float(lower), float(upper)
