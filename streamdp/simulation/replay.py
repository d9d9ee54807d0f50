"""Replay a stream through a release kind, and measure each release against the truth."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamdp.kinds.study import Step, Stream, Study
from streamdp.types import Entropy, FloatArray, ReleaseKind


def replay(
    study: Study,
    kind: ReleaseKind,
    stream: Stream,
    entropy: Entropy,
    shown: ReleaseKind | None = None,
) -> Iterator[Step]:
    """Run each batch through the kind's plan, draw and learn, as the engine does.

    Args:
        study: Knows the truth of a batch.
        kind: What is simulated.
        stream: The batches.
        entropy: Chance; seeded, since nothing here is released.
        shown: Learns the truth of every past batch instead of `kind` learning its own releases:
            the oracle, which knows past values exactly, and nothing else of past batches.
    """
    taught = None if shown is None else study.taught(shown)
    state = (taught or kind).init()
    for batch, counts in zip(stream.batches, stream.counts, strict=True):
        plan = kind.plan(state, batch)
        outcome = kind.draw(plan, counts, entropy)
        truth = study.truth(kind, counts)
        yield Step(state, plan, outcome, truth, study.errors(kind, counts, outcome))
        if taught is None:
            state = kind.learn(state, plan, outcome)
        else:
            state = taught.learn(state, taught.plan(state, batch), truth)


def errors_of(steps: Iterator[Step]) -> FloatArray:
    """Errors of every release, shape (batches, m)."""
    return np.array([step.errors for step in steps])
