"""Studies of kinds: simulations, where the truth of a batch is known."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from streamdp.learning.features import Feature
from streamdp.types import (
    Batch,
    CellCounts,
    CompoundAnswer,
    FloatArray,
    Json,
    Outcome,
    Plan,
    Query,
    ReleaseKind,
    TableCounts,
)

if TYPE_CHECKING:
    from streamdp.kinds.section import ReleaseSection

ORACLE = "oracle"
"""The variant that is shown the truth of all past batches: the floor."""


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Batches of a simulation.

    Args:
        name: As it is printed.
        batches: In order, keys differ.
        counts: The `Statistic` of each.
        features: Public numbers of each that no calendar tells, shape (batches, d); None if there
            are none.
        synthetic: Whether its days are made up.
    """

    name: str
    batches: tuple[Batch, ...]
    counts: tuple[Any, ...]
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


@dataclass(frozen=True, slots=True)
class ReplayedRelease:
    """One simulated release.

    Args:
        state: What was learned before it.
        plan: Made of that.
        outcome: What was drawn.
        truth: What a release without noise would be.
        errors: How far the release is from the batch, shape (m,).
    """

    state: Json
    plan: Plan
    outcome: Outcome
    truth: Outcome
    errors: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """One replay, seen from inside: some of the published values, as they were believed to be.

    Args:
        names: Of the values, shape (j,).
        truth: NaN for a batch without records, shape (batches, j).
        bands: Below which the prior of each has 5 %, 25 %, 75 % and 95 %, shape (batches, j, 4).
        weights: Of the parts of a mixture before each release, shape (batches, k); None without.
        weight_names: What the parts are called.
    """

    names: tuple[str, ...]
    truth: FloatArray
    bands: FloatArray
    weights: FloatArray | None
    weight_names: tuple[str, ...] = ()


class Study(ABC):
    """How a kind is simulated: on tables, and on synthetic streams where it makes some."""

    measure: str = "error"
    """Definition of the error, in words."""

    streams: tuple[str, ...] = ()
    """Names of synthetic streams."""

    variants: tuple[str, ...] = ("plain",)
    """Variants that are compared, such as learners; the first is the default."""

    def variant(self, section: Any, name: str, rows: int) -> ReleaseSection:
        """The section of a variant, or of `ORACLE`; `rows` are in a batch, if nothing says so."""
        return cast("ReleaseSection", section)

    def on_stream(self, section: Any, stream: str) -> ReleaseSection:
        """The section in the unit of a synthetic stream."""
        return cast("ReleaseSection", section)

    def synthetic(self, section: Any, stream: str, seed: int, length: int | None) -> Stream:
        """A synthetic stream, of its usual length if none is given."""
        raise NotImplementedError(f"{stream} is none of the streams: there are none")

    def question(self, kind: Any, batch: Batch) -> Query:
        """Question about each batch of a table: `Stream.counts` are the answers.

        That of a first release, for kinds whose releases all ask the same.
        """
        return cast("ReleaseKind", kind).plan(kind.init(), batch).query

    def numbers(self, section: Any) -> tuple[str, ...]:
        """Columns that hold numbers, which files of text do not say."""
        return ()

    def rows(self, statistic: Any) -> int:
        """How many records a statistic is of; 0 where it does not tell."""
        match statistic:
            case CellCounts(counts=counts):
                return int(counts.sum())
            case TableCounts(marginals=marginals):
                return int(marginals[0].sum())
            case CompoundAnswer(parts=parts):
                return max(map(self.rows, parts))
            case _:
                return 0

    def simulated(self, kind: Any, stream: Stream) -> ReleaseKind:
        """The kind as it is simulated on a stream, with the features that brings."""
        return cast("ReleaseKind", kind)

    def taught(self, kind: Any) -> ReleaseKind:
        """The oracle's kind, as it learns from outcomes without noise."""
        return cast("ReleaseKind", kind)

    @abstractmethod
    def truth(self, kind: Any, statistic: Any) -> Outcome:
        """The release without noise."""

    @abstractmethod
    def errors(self, kind: Any, statistic: Any, outcome: Outcome) -> FloatArray:
        """How far an outcome is from a batch, shape (m,); NaN where that has no meaning."""

    def parts(self, kind: Any) -> tuple[str, ...]:
        """Name of the part of a release that each error is of; empty where all are of one unit."""
        return ()

    def trace(self, kind: Any, steps: Iterable[ReplayedRelease]) -> Trace | None:
        """A replay from inside; None where there is nothing to see."""
        return None
