"""A release from its plan to its rows: what daemon, library, `plan` and `simulate` share.

Where a learned state cannot be used the release starts anew; it costs no more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamdp.types import (
    Batch,
    Charge,
    Charging,
    Entropy,
    Learned,
    Measurement,
    Measures,
    Outcome,
    Plan,
    Query,
    ReleaseKind,
    Statistic,
)

FAILURES = (ArithmeticError, LookupError, TypeError, ValueError)
"""Exceptions that a kind may raise over a state that it cannot use."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A release before anything is spent.

    Args:
        kind: What is published, and what it knows of other jobs.
        learned: As far as it is used.
        plan: From public facts.
        query: What is asked of the batch.
        charge: What it costs.
        restarted: Whether the learned state was of no use.
    """

    kind: ReleaseKind
    learned: Learned
    plan: Plan
    query: Query
    charge: Charge
    restarted: bool = False

    def measured(self, outcome: Outcome) -> tuple[Measurement, ...]:
        """The private draws behind an outcome, with the unit whose records were bounded."""
        if not isinstance(self.kind, Measures):
            return ()
        bound = self.query.bound
        unit = None if bound is None else (bound.column, bound.rows)
        return tuple(
            replace(each, terms=replace(each.terms, unit=unit))
            for each in self.kind.measured(self.plan, outcome)
        )


@dataclass(frozen=True, slots=True)
class Finished:
    """A release that was drawn.

    Args:
        outcome: As it was drawn.
        published: As it is published, with what follows from the next state.
        learned: What the next release of the job learns from.
        restarted: Whether nothing could be learned from it.
    """

    outcome: Outcome
    published: Outcome
    learned: Learned
    restarted: bool


def get_ready(kind: ReleaseKind, learned: Learned, batch: Batch, charging: Charging) -> Ready:
    """Plan a release under a learned state, or under none if that state does not fit.

    Privacy: reads no data; the charge follows from public facts and past releases.
    """
    try:
        plan, restarted = kind.plan(learned.state, batch), False
    except FAILURES:
        learned = replace(learned, state=kind.init())
        plan, restarted = kind.plan(learned.state, batch), True
    query = charging.bounded(plan.query, batch)
    return Ready(kind, learned, plan, query, charging.charge(plan), restarted)


def finish(ready: Ready, statistic: Statistic, entropy: Entropy) -> Finished:
    """Draw a release that is paid for, learn from it, and say what is published.

    Privacy: the statistic reaches `draw` alone; what follows has the outcome and no data.

    Args:
        ready: What was paid for.
        statistic: The answer to its query.
        entropy: Source of chance.
    """
    outcome, after, restarted = draw_and_learn(ready, statistic, entropy)
    return Finished(outcome, ready.kind.publish(after.state, outcome), after, restarted)


def draw_and_learn(
    ready: Ready, statistic: Statistic, entropy: Entropy
) -> tuple[Outcome, Learned, bool]:
    """Draw a release, and learn from it alone.

    Privacy: as `finish`.

    Returns:
        What was drawn, what the next release learns from, and whether nothing could be learned.
    """
    kind, learned, plan = ready.kind, ready.learned, ready.plan
    outcome = kind.draw(plan, statistic, entropy)
    try:
        state, restarted = kind.learn(learned.state, plan, outcome), False
    except FAILURES:
        state, restarted = kind.init(), True
    return outcome, Learned(learned.version + 1, learned.signature, state), restarted
