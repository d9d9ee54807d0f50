"""Start a release anew where its learned state cannot be used; it costs no more."""

from __future__ import annotations

from dataclasses import replace

from streamdp.types import Batch, Json, Learned, Outcome, Plan, ReleaseKind

FAILURES = (ArithmeticError, LookupError, TypeError, ValueError)
"""Exceptions that a kind may raise over a state that it cannot use."""


def planned(kind: ReleaseKind, learned: Learned, batch: Batch) -> tuple[Learned, Plan, bool]:
    """A plan under a learned state, or under none if there can be no other.

    Returns:
        What was learned as far as it is used, the plan, and whether the state was of no use.
    """
    try:
        return learned, kind.plan(learned.state, batch), False
    except FAILURES:
        anew = replace(learned, state=kind.init())
        return anew, kind.plan(anew.state, batch), True


def following(kind: ReleaseKind, state: Json, plan: Plan, outcome: Outcome) -> tuple[Json, bool]:
    """The state after a release and False, or, if it cannot be learned from, a new one and True."""
    try:
        return kind.learn(state, plan, outcome), False
    except FAILURES:
        return kind.init(), True
