"""A public domain of categorical axes, and the partitions of it that are counted.

An item of a workload is a partition of the domain: a marginal (one cell for each combination of
its axes), or a predicate (two cells: where it holds, and where not). Every record is in exactly
one cell of every item.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamdp.types import FloatArray, IntArray

Axes = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """A partition of the domain that looks at some axes.

    Args:
        axes: Axes by their index, increasing.
        shape: Cells of each of them.
        labels: Cell of the partition of each cell of the axes, shape (prod(shape),); None for
            the marginal itself.
    """

    axes: Axes
    shape: tuple[int, ...]
    labels: IntArray | None = None

    @property
    def size(self) -> int:
        """Cells of the partition."""
        if self.labels is None:
            return math.prod(self.shape)
        return int(self.labels.max()) + 1

    def counts(self, marginal: IntArray) -> IntArray:
        """Exact counts of its cells, of a table of its axes."""
        flat = marginal.reshape(-1)
        if self.labels is None:
            return flat
        counts = np.zeros(self.size, dtype=np.int64)
        np.add.at(counts, self.labels, flat)
        return counts

    def masses(self, marginal: FloatArray) -> FloatArray:
        """Masses of its cells, of a table of its axes."""
        flat = marginal.reshape(-1)
        if self.labels is None:
            return flat
        return np.bincount(self.labels, weights=flat, minlength=self.size).astype(np.float64)

    def lift(self, values: FloatArray) -> FloatArray:
        """The value of the cell that each cell of the axes is in, shape `shape`."""
        spread = values if self.labels is None else values[self.labels]
        return spread.reshape(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """A domain and its items.

    Args:
        sizes: Cells of each axis.
        items: What is counted.
        unlisted: How many cells of each axis, its last, are for what is not listed; none if it is
            left out.
    """

    sizes: tuple[int, ...]
    items: tuple[Item, ...]
    unlisted: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.unlisted:
            object.__setattr__(self, "unlisted", (0,) * len(self.sizes))

    @property
    def cells(self) -> int:
        """Cells of the domain."""
        return math.prod(self.sizes)

    @property
    def answers(self) -> int:
        """Cells of all items together."""
        return sum(item.size for item in self.items)

    @property
    def largest(self) -> int:
        """Cells of the largest item."""
        return max(item.size for item in self.items)

    def listed(self, item: Item) -> tuple[int, ...]:
        """Cells that are listed, of each axis of an item; of a predicate all that it has."""
        if item.labels is not None:
            return (item.size,)
        return tuple(self.sizes[axis] - self.unlisted[axis] for axis in item.axes)

    def item(self, axes: Axes, labels: IntArray | None = None) -> Item:
        """An item over axes of this domain."""
        return Item(axes, tuple(self.sizes[axis] for axis in axes), labels)

    @classmethod
    def of(cls, sizes: Sequence[int], marginals: Sequence[Axes]) -> Workload:
        """The workload of some marginals."""
        bare = cls(tuple(sizes), ())
        return cls(bare.sizes, tuple(bare.item(axes) for axes in marginals))


def marginals_up_to(axes: int, most: int) -> tuple[Axes, ...]:
    """All sets of 1 to `most` axes, the smaller first.

    >>> marginals_up_to(3, 2)
    ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
    """
    sizes = range(1, most + 1)
    return tuple(each for size in sizes for each in itertools.combinations(range(axes), size))
