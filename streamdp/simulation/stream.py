"""A stream whose truth is known: batches in order, what is public about them, and their records."""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamdp.learning.features import Feature
from streamdp.types import Batch, CellCounts, FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Batches of a simulation.

    Args:
        name: As it is printed.
        batches: In order, keys differ.
        counts: Cell counts of each.
        features: Public numbers of each that no calendar tells, shape (batches, d); None if there
            are none.
        synthetic: Whether its days are made up.
    """

    name: str
    batches: tuple[Batch, ...]
    counts: tuple[CellCounts, ...]
    features: FloatArray | None = None
    synthetic: bool = False

    def take(self, length: int) -> Stream:
        """The first `length` batches."""
        features = None if self.features is None else self.features[:length]
        head = self.batches[:length], self.counts[:length]
        return replace(self, batches=head[0], counts=head[1], features=features)

    def feature(self) -> Feature | None:
        """The public numbers of a batch as a learner is told them."""
        if self.features is None:
            return None
        rows = {
            batch.key: tuple(map(float, row))
            for batch, row in zip(self.batches, self.features, strict=True)
        }
        return lambda batch: rows[batch.key]
