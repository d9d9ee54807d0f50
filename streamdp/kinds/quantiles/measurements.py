"""Measurements of a release of quantiles: noisy counts, or drawn cells and a bought gradient.

From what was drawn and from public facts alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from streamdp.learning.features import calendar
from streamdp.learning.learner import CountedPlan, DrawnPlan, Observation, ReleasePlan
from streamdp.mechanisms.histograms import Histogram, Histograms
from streamdp.mechanisms.noise import law_of
from streamdp.mechanisms.quantile_tree.noisy_gradient import UNITS
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.privacy.price import Price
from streamdp.types import Batch, Grid, Json, Measurement, MeasurementTerms, Outcome, Plan

if TYPE_CHECKING:
    from streamdp.kinds.quantiles.kind import QuantilePlan, Quantiles

DIGEST = 16
"""Letters of a prior's digest."""


def question(kind: Quantiles) -> Json:
    """The column, its cells, and which records count."""
    grid = [str(kind.grid.resolution), kind.grid.lower, kind.grid.upper]
    about = {"column": kind.column, "grid": grid}
    return about | ({} if kind.where is None else {"where": kind.where})


def measured(kind: Quantiles, planned: Plan, outcome: Outcome) -> tuple[Measurement, ...]:
    """The counts of every stage; or the drawn cells, and the gradient bought beside them.

    The prior of drawn cells is that which earlier measurements teach: its digest is kept, which is
    the start of that in the ledger.
    """
    plan: QuantilePlan = planned.mechanism
    asked, release_plan = question(kind), plan.release_plan
    if isinstance(release_plan, CountedPlan):
        stages = zip(release_plan.histograms.shares, outcome.auxiliary, strict=True)
        return tuple(
            Measurement(
                MeasurementTerms(
                    "counts",
                    asked,
                    stage=stage,
                    noise=law_of(release_plan.histograms.noise(stage)),
                    share=share,
                    relation=kind.relation,
                ),
                histogram.cuts,
                histogram.counts,
            )
            for stage, (share, histogram) in enumerate(stages)
        )
    values = Measurement(
        MeasurementTerms(
            "values",
            asked,
            share=1 - kind.learner.gradient_share,
            relation=kind.relation,
            targets=release_plan.tree.quantiles,
            mechanism=_parameters(release_plan.tree),
        ),
        tuple(_cell(float(row["value"] or 0), kind.grid) for row in outcome.rows),
        given={"prior": planned.event["prior"][:DIGEST]},
    )
    return (values, *_bought(kind, plan, outcome, asked))


def _bought(
    kind: Quantiles, plan: QuantilePlan, outcome: Outcome, asked: Json
) -> Iterator[Measurement]:
    """The noisy gradient, in whole units."""
    if plan.gradient is None:
        return
    terms = MeasurementTerms(
        "gradient",
        asked,
        part="gradient",
        noise=law_of(plan.gradient.noise),
        share=kind.learner.gradient_share,
        relation=kind.relation,
        targets=kind.quantiles,
    )
    yield Measurement(terms, numbers=tuple(round(each * UNITS) for each in outcome.auxiliary))


def replayed(
    kind: Quantiles,
    state: Json,
    batch: Batch,
    measurements: Sequence[Measurement],
    shown: tuple[Any, ...],
) -> tuple[Json, tuple[Any, ...]]:
    """The state after a release that was measured so, and its evidence for groups after it.

    Targets and price may have been others. Counts teach any learner that plans releases. Drawn
    values teach one that does not if they are those of its own targets. What teaches nothing has no
    state.

    Args:
        kind: That learns.
        state: Before the release.
        batch: That was released.
        measurements: Of it.
        shown: Evidence of groups of the batch that were released before.
    """
    asked = question(kind)
    found = [each for each in measurements if each.terms.question == asked]
    if not found:
        return None, ()
    features = kind.features(batch) if kind.features else ()
    planned = kind.learner.plan_release(state, features, calendar(batch))
    if planned is not None and shown:
        planned = kind.learner.with_other_groups(planned, shown)
    seen = _seen(kind, planned, features, found)
    if seen is None:
        return None, ()
    evidence: tuple[Any, ...] = ()
    if planned is not None and kind.expected_rows is not None:
        evidence = kind.learner.evidence_for_groups(seen)
    return kind.learner.observe(state, seen), evidence


def _seen(
    kind: Quantiles,
    planned: ReleasePlan | None,
    features: tuple[float, ...],
    found: list[Measurement],
) -> Observation | None:
    """Rebuild the learner's observation from measurements; None if they do not fit it."""
    form = found[0].terms.form
    if form == "counts" and planned is not None:
        stages = tuple(Histogram(each.cells, each.numbers) for each in found)
        release_plan = CountedPlan(
            planned.number, planned.basis, _histograms(kind, found), lambda _: ()
        )
        read = kind.learner.read(release_plan, stages)
        values = tuple(kind.grid.value(value) for value, _, _ in read.cells)
        return Observation(values, features, release_plan, counted=stages)
    terms = found[0].terms
    if form != "values" or (planned is None and terms.targets != kind.quantiles):
        return None
    values = tuple(kind.grid.value(cell) for cell in found[0].cells)
    if planned is not None:
        tree = _tree(kind, terms)
        drawn = DrawnPlan(0, planned.basis, tree, kind.learner.priors_of(planned))
        return Observation(values, features, drawn)
    if not kind.learner.gradient_share:
        return Observation(values, features)
    bought = [each.numbers for each in found if each.terms.form == "gradient"]
    if not bought:
        return None
    return Observation(values, features, gradient=tuple(unit / UNITS for unit in bought[0]))


def _histograms(kind: Quantiles, found: Sequence[Measurement]) -> Histograms:
    """The mechanism that counted."""
    first = found[0].terms
    assert first.noise is not None, "counts have noise"  # noqa: S101
    price = Price(first.noise.amount / first.share, first.noise.measure)
    shares = tuple(each.terms.share for each in found)
    return Histograms(price, kind.grid, shares, first.relation)


def _parameters(tree: QuantileTree) -> Json:
    """Return the parameters of a tree that its targets, grid and relation leave open."""
    about = {"spread": True} if tree.spread else {}
    return about | {
        "epsilon": str(tree.epsilon),
        "branching": tree.branching,
        "node": tree.node,
        "restriction": tree.restriction,
        "level_power": str(tree.level_power),
        "log_bump_mass": tree.log_bump_mass,
    }


def _tree(kind: Quantiles, terms: MeasurementTerms) -> QuantileTree:
    """The tree that drew."""
    about = terms.mechanism
    return QuantileTree(
        terms.targets,
        Fraction(about["epsilon"]),
        kind.grid,
        about["branching"],
        about["node"],
        terms.relation,
        about["restriction"],
        Fraction(about["level_power"]),
        about["log_bump_mass"],
        about.get("spread", False),
    )


def _cell(value: float, grid: Grid) -> int:
    """The cell whose number was published; the nearest integer, since a number is 53 bits wide."""
    return round(Fraction(value) / grid.resolution)
