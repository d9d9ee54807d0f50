"""Release kind `quantiles`: sorted private quantiles of one column of a batch, and their rows."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from streamdp.kinds.quantiles.error_bars.intervals import LEVEL, intervals, is_noisy
from streamdp.kinds.quantiles.measurements import measured, replayed
from streamdp.learning.features import Feature, calendar
from streamdp.learning.learner import (
    CountedPlan,
    DrawnPlan,
    Features,
    Learner,
    Observation,
    Reading,
    ReleasePlan,
    Smoothed,
)
from streamdp.mechanisms.histograms import Histogram, Histograms
from streamdp.mechanisms.quantile_tree.exponential import Restriction
from streamdp.mechanisms.quantile_tree.noisy_gradient import NoisyGradient
from streamdp.mechanisms.quantile_tree.planning.accuracy import STANDARD, Believed
from streamdp.mechanisms.quantile_tree.planning.choice import CANDIDATES, TreeChoice
from streamdp.mechanisms.quantile_tree.sharpness import Relation
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior, Shapes
from streamdp.privacy.events import choice
from streamdp.privacy.filters import Measure
from streamdp.types import (
    HARDLY_ANY,
    Batch,
    CellCounts,
    CellQuery,
    Column,
    Entropy,
    Grid,
    History,
    Json,
    Lesson,
    Measurement,
    Outcome,
    Plan,
    Row,
    Rows,
)


@dataclass(frozen=True, slots=True)
class QuantilePlan:
    """Input of `draw`, fixed before data is touched.

    Args:
        release_plan: How the batch is released.
        by_learner: Whether the learner planned that.
        features: Public numbers of the batch.
        gradient: Bought beside it.
    """

    release_plan: ReleasePlan
    by_learner: bool
    features: Features
    gradient: NoisyGradient | None


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Quantiles of a column: drawn by the quantile tree, or computed from noisy counts.

    Args:
        column: Name of the column.
        quantiles: Targets, exact, strictly increasing, in (0, 1).
        epsilon: Price of one release for one record; if the price is in rho, the epsilon of a
            bounded-range draw with epsilon²/8 = rho.
        grid: Public cells.
        learner: Makes priors, or whole release plans, from past releases.
        form: Branching, node and budgets of the tree (`mechanisms.quantile_tree.planning.choice`).
        relation: Neighbours.
        restriction: Whether prior mass outside a node's region is dropped or moved to its ends.
        shapes: Beliefs about the quantiles together, for joint nodes (`priors.shapes`).
        expected_rows: Public number of records of a batch: without it noise in ranks says
            nothing of values, and no intervals are published.
        believed_batch: Location and spread of a batch as configured.
        features: Public numbers of a batch that the learner may use.
        feature_names: What they are called; others are another signature.
        smooth: Whether to publish what all releases together say, beside the release.
        expression: SQL over one record that takes the place of the column.
        where: SQL condition; records of which it is not true do not count.
        unit_rows: The most records of one unit that count; a bought gradient is priced by units.
        groups: Number of disjoint groups of the batch that are drawn alike, this one included.
        measure: Of the price.
        counted: What a number of records is a number of.
        unit: Of the values, in words.
    """

    column: str
    quantiles: tuple[Fraction, ...]
    epsilon: Fraction
    grid: Grid
    learner: Learner
    form: TreeChoice = CANDIDATES["binary"]
    relation: Relation = "add-remove"
    restriction: Restriction = "conditional"
    shapes: Shapes | None = None
    expected_rows: int | None = None
    believed_batch: Believed = STANDARD
    features: Feature | None = None
    feature_names: tuple[str, ...] = ()
    smooth: bool = True
    expression: str | None = None
    where: str | None = None
    unit_rows: int = 1
    groups: int = 1
    measure: Measure = "epsilon"
    counted: str = "records"
    unit: str = ""

    name: ClassVar[str] = "quantiles"

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of a row: quantile, value and its interval, smoothed value and its interval."""
        unit = self.unit
        columns = [Column("quantile", "number", "label"), Column("value", "number", "value", unit)]
        if self.learner.counts_records:
            columns.append(Column("origin", "text", "origin", about="value"))
        if self.expected_rows is not None:
            columns += [
                Column("lower", "number", "lower", unit, "value", LEVEL),
                Column("upper", "number", "upper", unit, "value", LEVEL),
            ]
        if self.smooth:
            columns += [
                Column("smoothed", "number", "estimate", unit, "value"),
                Column("smoothed_lower", "number", "lower", unit, "smoothed", 0.95),
                Column("smoothed_upper", "number", "upper", unit, "smoothed", 0.95),
            ]
        if self.counts_records:
            columns += [
                Column("records", "number", "batch", unit=self.counted),
                Column("records_lower", "number", "lower", about="records", level=0.95),
                Column("records_upper", "number", "upper", about="records", level=0.95),
                Column("flag", "text", "flag"),
            ]
        return tuple(columns)

    @property
    def counts_records(self) -> bool:
        """Whether counts show how many records a batch has; exchanged records do not change it."""
        counted = any(isinstance(each, Histograms) for each in self.learner.mechanisms())
        return counted and self.relation == "add-remove"

    def expecting(self, rows: Rows) -> Quantiles:
        """The kind for batches of so many records; tree and price stay."""
        count = rows.get(())
        if count is None:
            return self
        return replace(self, expected_rows=count, learner=self.learner.for_batch_size(count))

    def signature(self) -> Json:
        """Return question, targets and learner: a state learned for others would mislead."""
        targets = [str(quantile) for quantile in self.quantiles]
        about = {"column": self.column, "quantiles": targets, "features": list(self.feature_names)}
        about |= {} if self.where is None else {"where": self.where}
        return about | self.learner.describe()

    def init(self) -> Json:
        """The learner's first state."""
        return self.learner.init()

    def tree(self) -> QuantileTree:
        """The mechanism, at what is left of epsilon beside a gradient."""
        epsilon = self.epsilon * (1 - self.learner.gradient_share)
        tree = self.form.tree(self.quantiles, epsilon, self.grid, self.relation)
        return replace(tree, restriction=self.restriction)

    def query(self) -> CellQuery:
        """The question."""
        rows = self.expected_rows or 0
        return CellQuery(self.column, self.grid, self.expression, self.where, rows=rows)

    def believed(self, state: Json, features: Features = ()) -> JointPrior:
        """The prior of the next release: the learner's, and the shapes."""
        priors = self.learner.priors(state, len(self.quantiles), features)
        return self.form.prior(priors, self.shapes)

    def plan(self, state: Json, batch: Batch) -> Plan:
        """Prior from the state; question and price from the configuration.

        Privacy: tree or histograms cost epsilon for one record, `relation`. If a share of it buys a
        gradient, the tree has the rest of it, and a unit of k records can turn the gradients of
        min(k, groups) groups at most: together they cost it the share of k times epsilon, once.
        """
        features = self.features(batch) if self.features else ()
        planned = self.learner.plan_release(state, features, calendar(batch))
        release_plan = planned or DrawnPlan(0, None, self.tree(), self.believed(state, features))
        event = self._event(planned) | {
            "column": self.column,
            "resolution": str(self.grid.resolution),
            "cells": [self.grid.lower, self.grid.upper],
            "prior": _digest(release_plan),
        }
        gradient = self._gradient(state, features)
        mechanism = QuantilePlan(release_plan, planned is not None, features, gradient)
        return Plan(self.query(), event, mechanism, gradient and gradient.event())

    def _event(self, release_plan: ReleasePlan | None) -> Json:
        """Return the event of one record: the worst of all release plans.

        All plans cost the same epsilon but not the same rho: charging the plan that is taken would
        make the total rho depend on releases, and bound no adversary who can steer them.
        """
        mechanisms = self.learner.mechanisms()
        whole = _event_of(mechanisms[0] if release_plan else self.tree())
        if release_plan is None or len(mechanisms) == 1:
            return whole
        events = [_event_of(each) for each in mechanisms]
        about = {name: whole[name] for name in ("quantiles", "relation")}
        about["mechanism"] = " or ".join(dict.fromkeys(each["mechanism"] for each in events))
        return choice(events, **about, drawn=release_plan.number)

    def _gradient(self, state: Json, features: Features) -> NoisyGradient | None:
        """Noisy gradient of this part of the batch, for the learner."""
        slope = self.learner.slope(state, len(self.quantiles), features)
        if slope is None:
            return None
        epsilon = self.epsilon * self.unit_rows * self.learner.gradient_share
        turned = min(self.unit_rows, self.groups)
        return NoisyGradient(epsilon, self.quantiles, self.grid, slope, turned)

    def first_plan(self) -> tuple[QuantileTree, JointPrior]:
        """Return tree and prior of a first release."""
        release_plan = self.learner.plan_release(self.init())
        if isinstance(release_plan, DrawnPlan):
            return release_plan.tree, release_plan.prior
        return self.tree(), self.believed(self.init())

    def told(self, plan: Plan, shown: tuple[Any, ...]) -> Plan:
        """Plan the same batch again, given what its other groups have released.

        Privacy: the question, and the event up to its prior, are those of `plan`: all release
        plans cost one epsilon, and are booked as the worst of them.
        """
        mechanism: QuantilePlan = plan.mechanism
        if not mechanism.by_learner or not shown:
            return plan
        release_plan = self.learner.with_other_groups(mechanism.release_plan, shown)
        return replace(plan, mechanism=replace(mechanism, release_plan=release_plan))

    def shown(self, plan: Plan, outcome: Outcome) -> tuple[Any, ...]:
        """Evidence of a release for other groups of the same batch, from what was released alone.

        Without expected rows nobody knows how noisy it is: there is none.
        """
        if not plan.mechanism.by_learner or self.expected_rows is None:
            return ()
        return self.learner.evidence_for_groups(_observation(plan.mechanism, outcome))

    def draw(self, plan: Plan, statistic: CellCounts, entropy: Entropy) -> Outcome:
        """One row a quantile; with expected rows, each says where the true quantile lies.

        Privacy: `relation` of one record, pure epsilon; `QuantileTree.draw`, `Histograms.draw` and,
        of what only the learner is told, `NoisyGradient.draw` have the argument. Values are points
        of the public grid; they and their intervals follow from what was drawn or counted and from
        public facts.
        """
        mechanism: QuantilePlan = plan.mechanism
        release_plan, gradient = mechanism.release_plan, mechanism.gradient
        if isinstance(release_plan, CountedPlan):
            counted = release_plan.histograms.draw(statistic, release_plan.next_cuts, entropy)
            return Outcome(counted_rows(self, release_plan, counted), counted)
        cells = release_plan.tree.draw(statistic, release_plan.prior, entropy)
        return Outcome(
            _drawn_rows(self, release_plan, cells),
            None if gradient is None else gradient.draw(statistic, entropy),
        )

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """Tell the learner what was released, or what was bought for it."""
        return self.learner.observe(state, _observation(plan.mechanism, outcome))

    def measured(self, plan: Plan, outcome: Outcome) -> tuple[Measurement, ...]:
        """Return noisy counts of every stage, or drawn cells and what was bought beside them.

        Privacy: outputs of `Histograms.draw`, `QuantileTree.draw` and `NoisyGradient.draw`.
        """
        return measured(self, plan, outcome)

    def replayed(self, state: Json, batch: Batch, measurements: tuple[Measurement, ...]) -> Json:
        """Return the state after a release that was measured so; None if it teaches nothing."""
        return self.replayed_beside(state, batch, measurements, ())[0]

    def replayed_beside(
        self,
        state: Json,
        batch: Batch,
        measurements: tuple[Measurement, ...],
        shown: tuple[Any, ...],
    ) -> tuple[Json, tuple[Any, ...]]:
        """Return the state after a release, or None, and its evidence for later groups."""
        return replayed(self, state, batch, measurements, shown)

    def lessons(self, history: History) -> Sequence[Lesson]:
        """Return beliefs, cuts, priors, losses and regret, from releases and states alone."""
        from streamdp.kinds.quantiles.lessons import lessons

        return tuple(lessons(self, history))

    def publish(self, state: Json, outcome: Outcome) -> Outcome:
        """The release, and beside it what all releases so far say of the same quantiles.

        Args:
            state: After this release.
            outcome: What was drawn; stays as it is.
        """
        smoothed = self.learner.smoothed(state) if self.smooth else ()
        if not smoothed:
            return outcome
        pairs = zip(outcome.rows, smoothed, strict=True)
        return Outcome(tuple({**row, **smoothed_columns(self, row, each)} for row, each in pairs))


def _observation(mechanism: QuantilePlan, outcome: Outcome) -> Observation:
    """A release, as the learner is told of it."""
    values = tuple(float(row["value"] or 0) for row in outcome.rows)
    release_plan = mechanism.release_plan if mechanism.by_learner else None
    if isinstance(release_plan, CountedPlan):
        return Observation(values, mechanism.features, release_plan, counted=outcome.auxiliary)
    return Observation(values, mechanism.features, release_plan, outcome.auxiliary)


def _digest(release_plan: ReleasePlan) -> str:
    """Return the digest of the prior, or of the first cuts, for the ledger."""
    said = (
        release_plan.prior.describe()
        if isinstance(release_plan, DrawnPlan)
        else {"cuts": list(release_plan.next_cuts(()))}
    )
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


@functools.lru_cache(maxsize=256)
def _event_of(mechanism: QuantileTree | Histograms) -> Json:
    """Return the mechanism's event, which is written and never changed."""
    return mechanism.event()


def _drawn_rows(
    kind: Quantiles, release_plan: DrawnPlan, cells: tuple[int, ...]
) -> tuple[Row, ...]:
    """Rows of drawn quantiles, from their cells and public facts alone."""
    values = tuple(kind.grid.value(cell) for cell in cells)
    ends: list[Row] = [{} for _ in cells]
    if kind.expected_rows is not None:
        seen = Observation(values, release_plan=release_plan)
        about = kind.expected_rows, values, kind.believed_batch
        past = kind.learner.drawn_before(seen) if release_plan.basis else ()
        found = intervals(release_plan.tree, release_plan.prior, *about, past)
        ends = [{"lower": each.lower, "upper": each.upper} for each in found]
    return _rows(kind, values, "measured", ends)


def counted_rows(
    kind: Quantiles, release_plan: CountedPlan, counted: tuple[Histogram, ...]
) -> tuple[Row, ...]:
    """Rows of quantiles that follow from noisy counts, and from public facts alone."""
    read = kind.learner.read(release_plan, counted)
    values = tuple(kind.grid.value(value) for value, _, _ in read.cells)
    ends: list[Row] = [{} for _ in read.cells]
    if kind.expected_rows is not None:
        value = kind.grid.value
        ends = [{"lower": value(first), "upper": value(last)} for _, first, last in read.cells]
    return _rows(kind, values, "inferred", ends, read)


def _rows(
    kind: Quantiles,
    values: tuple[float, ...],
    origin: str,
    ends: list[Row],
    read: Reading | None = None,
) -> tuple[Row, ...]:
    said: Row = {"origin": origin} if kind.learner.counts_records else {}
    return tuple(
        {"quantile": float(quantile), "value": value, **said, **each, **_about_all(kind, read)}
        for quantile, value, each in zip(kind.quantiles, values, ends, strict=True)
    )


def _about_all(kind: Quantiles, read: Reading | None) -> Row:
    """How many records the batch has, which is the same in each of its rows."""
    if not kind.counts_records:
        return {}
    records = None if read is None else read.records
    names = "records", "records_lower", "records_upper"
    few = read is not None and read.hardly_any
    return dict(zip(names, records or (None,) * 3, strict=True)) | {
        "flag": HARDLY_ANY if few else None
    }


def smoothed_columns(kind: Quantiles, row: Row, each: Smoothed) -> Row:
    """Return the smoothed value and its interval, on the grid.

    Both intervals are about one quantile: where they have nothing in common, one misses, and
    that of the smoothed value reaches over both. It does so too where a single quantile is drawn so
    near the end of a batch that the mechanism often samples outside the data, since averaging does
    not help then. Else it is no wider than that of the release.
    """
    least, most = kind.grid.value(kind.grid.lower), kind.grid.value(kind.grid.upper)
    lower, upper = each.lower, each.upper
    if kind.expected_rows is not None:
        drawn = float(row["lower"] or 0), float(row["upper"] or 0)
        if lower > drawn[1] or upper < drawn[0] or _follows_the_prior(kind):
            lower, upper = min(lower, drawn[0]), max(upper, drawn[1])
        elif drawn[1] - drawn[0] < upper - lower:
            lower, upper = drawn
    return {
        "smoothed": each.point,
        "smoothed_lower": min(max(lower, least), each.point),
        "smoothed_upper": max(min(upper, most), each.point),
    }


def _follows_the_prior(kind: Quantiles) -> bool:
    """Whether a single quantile is drawn with so much noise that past draws do not show it."""
    if len(kind.quantiles) > 1 or kind.expected_rows is None:
        return False
    return is_noisy(kind.first_plan()[0], kind.expected_rows)
