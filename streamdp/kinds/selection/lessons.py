"""What a selection has learned: which candidates past choices speak for.

From learned states alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from streamdp.types import History, Lesson

if TYPE_CHECKING:
    from streamdp.kinds.selection.kind import Selection

MOST = 20
"""Candidates that are shown."""


def lessons(kind: Selection, history: History) -> Iterator[Lesson]:
    """Return what past choices taught a selection."""
    scores = np.array(history.state["scores"])
    if not kind.informed:
        return
    prior = np.exp(kind.prior.log_prior(scores))
    lead = kind.prior.log_prior(scores) / float(kind.exponent)
    rows = tuple(
        {"rank": rank, **kind.candidates.row(place)}
        | {
            "prior chance": float(f"{prior[place]:.4g}"),
            "worth in score": float(f"{lead[place] - lead.max():.4g}"),
        }
        for rank, place in enumerate(np.argsort(-prior)[:MOST].tolist(), start=1)
    )
    yield Lesson(
        "Which candidates past choices speak for",
        "prior chance: of being chosen by a batch without records. worth in score: by so much a"
        " candidate is behind the likeliest before the batch is scored, in records or units of the"
        " sum; it costs nothing, and no candidate is ruled out.",
        rows,
    )
