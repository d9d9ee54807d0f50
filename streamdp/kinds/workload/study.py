"""How workloads are simulated: how many records each table misplaces, learned and from afresh.

Records of synthetic streams are independent, with the shares that plans foretell errors for
(`accuracy.shares`). Chance is seeded, so that a simulation can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace

import numpy as np

from streamdp.errors import ConfigurationError
from streamdp.kinds.study import ReplayedRelease, Stream, Study, Trace
from streamdp.kinds.workload.accuracy import shares
from streamdp.kinds.workload.build import dimensions, items
from streamdp.kinds.workload.fitting.distribution import MOST_CELLS, NoisyMarginal, Workload
from streamdp.kinds.workload.fitting.fitted import Fitting
from streamdp.kinds.workload.fitting.hypotheses import BIAS, from_json, to_json
from streamdp.kinds.workload.kind import WorkloadPlan, WorkloadRelease
from streamdp.kinds.workload.section import WorkloadSection
from streamdp.types import Batch, FloatArray, IntArray, Json, Outcome, Plan, TableCounts

NAMES = ("stable", "drifting", "shifted", "relabelled")

LENGTH = 60

DRIFT = 0.05
"""Steps of the logarithm of a cell's share, on each axis, from batch to batch."""


def tables(
    name: str, sizes: Sequence[int], rows: int, seed: int, length: int
) -> Iterator[IntArray]:
    """Exact tables of the batches of a stream.

    Args:
        name: One of `NAMES`.
        sizes: Of the axes.
        rows: Expected in a batch; there are Poisson(rows).
        seed: Of the chance; nothing that it draws is released.
        length: How many batches.
    """
    chance = np.random.default_rng([seed, 3])
    known = shares(sizes)
    for number in range(length):
        if name == "drifting":
            known = _drifted(known, chance)
        if name == "relabelled" or (name == "shifted" and number == length // 2):
            known = _relabelled(known, chance)
        counts = chance.multinomial(chance.poisson(rows), known.reshape(-1))
        yield counts.reshape(known.shape).astype(np.int64)


def _drifted(known: FloatArray, chance: np.random.Generator) -> FloatArray:
    for axis, size in enumerate(known.shape):
        shape = [size if place == axis else 1 for place in range(known.ndim)]
        known = known * np.exp(chance.normal(0.0, DRIFT, size)).reshape(shape)
    return np.asarray(known / known.sum())


def _relabelled(known: FloatArray, chance: np.random.Generator) -> FloatArray:
    for axis, size in enumerate(known.shape):
        known = np.take(known, chance.permutation(size), axis=axis)
    return known


FIRST = 946_857_600
"""2000-01-03, a Monday: when the first batch begins; each is a day."""

DAY = 86_400
SHOWN = 3
"""Cells of a trace."""

_QUARTERS = np.array([-1.645, -0.674, 0.674, 1.645])
"""Where a normal law has 5 %, 25 %, 75 % and 95 % below."""

_EXACT = 0.1
"""Variance with which the oracle is shown the truth."""


class WorkloadStudy(Study):
    """The sum of absolute errors over the cells of each table, over the records."""

    measure = "table error"
    streams: tuple[str, ...] = NAMES
    variants: tuple[str, ...] = ("hypotheses", "none")

    def variant(self, section: WorkloadSection, name: str, rows: int) -> WorkloadSection:
        """Return the section with a memory or without; the oracle has one."""
        return section.model_copy(update={"learner": "none" if name == "none" else "hypotheses"})

    def synthetic(
        self, section: WorkloadSection, stream: str, seed: int, length: int | None
    ) -> Stream:
        """The stream of a name in `NAMES`.

        Raises:
            ConfigurationError: The domain is too large for tables of it.
        """
        _, workload = items(section, dimensions(section))
        if workload.cells > MOST_CELLS:
            raise ConfigurationError(
                f"synthetic streams need a domain of at most {MOST_CELLS} cells, this one has"
                f" {workload.cells}",
                hint="simulate on a table",
            )
        count = length or LENGTH
        found = tables(stream, workload.sizes, section.expected_rows, seed, count)
        batches = tuple(
            Batch(stream, f"{day:05d}", FIRST + day * DAY, FIRST + (day + 1) * DAY)
            for day in range(count)
        )
        counts = tuple(_marginals(workload, table) for table in found)
        return Stream(stream, batches, counts, synthetic=True)

    def numbers(self, section: WorkloadSection) -> tuple[str, ...]:
        """Columns that are cut."""
        return tuple(
            each.column or name
            for name, each in section.dimensions.items()
            if each.cuts is not None and each.sql is None
        )

    def simulated(self, kind: WorkloadRelease, stream: Stream) -> WorkloadRelease:
        """Return the kind that publishes answers, whatever else it publishes."""
        return replace(kind, published="answers")

    def taught(self, kind: WorkloadRelease) -> WorkloadRelease:
        """Return the kind that fits the exact counts of every item."""
        return TaughtWorkload(**{each.name: getattr(kind, each.name) for each in fields(kind)})

    def truth(self, kind: WorkloadRelease, statistic: TableCounts) -> Outcome:
        """The exact counts of every item."""
        return Outcome((), kind.counts(statistic))

    def errors(self, kind: WorkloadRelease, statistic: TableCounts, outcome: Outcome) -> FloatArray:
        """Misplaced share of each item, shape (items,)."""
        rows, masses = self.rows(statistic), outcome.auxiliary.fit.distribution.masses
        missed = [
            float(np.abs(masses(item) - exact).sum())
            for item, exact in zip(
                kind.mechanism.workload.items, kind.counts(statistic), strict=True
            )
        ]
        return np.array(missed) / rows if rows else np.full(len(missed), np.nan)

    def parts(self, kind: WorkloadRelease) -> tuple[str, ...]:
        """The dimensions or the predicate of each item."""
        return tuple(name or "total" for name in kind.names)

    def trace(self, kind: WorkloadRelease, steps: Iterable[ReplayedRelease]) -> Trace:
        """The fullest cells of the first item, and which hypothesis is trusted."""
        workload, shown, names = kind.mechanism.workload, list[int](), tuple[str, ...]()
        truth, bands, weights = [], [], []
        for step in steps:
            counts: Sequence[IntArray] = step.truth.auxiliary
            if not shown:
                shown = np.argsort(-counts[0], kind="stable")[:SHOWN].tolist()
                names = tuple(kind.cell_name(cell) for cell in shown)
            known: WorkloadPlan = step.plan.mechanism
            odds = np.array(known.memory.evidence) + BIAS
            leading = known.memory.leading()
            masses = Fitting(workload, known.memory).prior_masses(leading, 0)
            deviations = np.sqrt(known.memory.spread.variances(workload, 0, masses))
            truth.append(counts[0][shown])
            bands.append([masses[cell] + _QUARTERS * deviations[cell] for cell in shown])
            weights.append(np.exp(odds - odds.max()) / np.exp(odds - odds.max()).sum())
        return Trace(
            names,
            np.array(truth, dtype=float),
            np.maximum(np.array(bands).reshape(-1, len(names), len(_QUARTERS)), 0.0),
            np.array(weights),
            ("uniform", "slow", "last"),
        )


class TaughtWorkload(WorkloadRelease):
    """Learns from exact counts: the oracle of a simulation."""

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """The best fit to the truth of a batch."""
        workload = self.mechanism.workload
        memory = from_json(state, workload)
        exact = tuple(
            NoisyMarginal(place, counts.astype(np.float64), _EXACT)
            for place, counts in enumerate(outcome.auxiliary)
        )
        return to_json(memory.after(self.mechanism.fitting(memory).fit(exact)))


def _marginals(workload: Workload, table: IntArray) -> TableCounts:
    """Marginals of a table, as an engine would answer the question of a release."""
    axes = dict.fromkeys(item.axes for item in workload.items)
    every = range(table.ndim)
    return TableCounts(
        tuple(table.sum(axis=tuple(a for a in every if a not in kept)) for kept in axes)
    )
