"""Replay a stream through a release kind, and measure each release against the truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.mechanisms.exact import exact_quantiles
from streamdp.simulation.stream import Stream
from streamdp.simulation.truth import rank_errors
from streamdp.types import CellCounts, Entropy, FloatArray, IntArray, Json, Outcome, Plan


@dataclass(frozen=True, slots=True)
class Step:
    """One simulated release.

    Args:
        state: What was learned before it.
        plan: Made of that.
        outcome: What was drawn.
        truth: The cells that should have been drawn, shape (m,).
        errors: Rank errors, shape (m,).
    """

    state: Json
    plan: Plan
    outcome: Outcome
    truth: IntArray
    errors: FloatArray


def replay(
    kind: Quantiles, stream: Stream, entropy: Entropy, shown: Quantiles | None = None
) -> Iterator[Step]:
    """Each batch through the kind's own plan, draw and learn, as the engine calls them.

    Args:
        kind: What is simulated.
        stream: The batches.
        entropy: Chance; seeded, since nothing here is released.
        shown: Learns the true quantiles of every past batch instead of `kind` learning its own
            releases: the oracle, which no learning from private releases can beat by knowing the
            past better.
    """
    taught = None if shown is None else replace(shown, opening=None)
    state = (taught or kind).init()
    for batch, counts in zip(stream.batches, stream.counts, strict=True):
        plan = kind.plan(state, batch)
        outcome = kind.draw(plan, counts, entropy)
        truth = exact_quantiles(counts, kind.quantiles)
        errors = rank_errors(counts, kind.quantiles, _cells(kind, outcome))
        yield Step(state, plan, outcome, truth, errors)
        if taught is None:
            state = kind.learn(state, plan, outcome)
        else:
            state = taught.learn(state, taught.plan(state, batch), _true_outcome(kind, counts))


def errors_of(steps: Iterator[Step]) -> FloatArray:
    """Rank errors of every release, shape (batches, m)."""
    return np.array([step.errors for step in steps])


def _cells(kind: Quantiles, outcome: Outcome) -> IntArray:
    width = float(kind.grid.resolution)
    return np.array([round(float(row["value"] or 0) / width) for row in outcome.rows])


def _true_outcome(kind: Quantiles, counts: CellCounts) -> Outcome:
    cells = exact_quantiles(counts, kind.quantiles).tolist()
    return Outcome(
        tuple(
            {"quantile": float(q), "value": kind.grid.value(cell)}
            for q, cell in zip(kind.quantiles, cells, strict=True)
        )
    )
