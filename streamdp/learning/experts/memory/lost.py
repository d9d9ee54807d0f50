"""Whether draws find the batches at all, from releases alone.

A draw that finds no record falls as its prior does, whatever is believed. So releases decide by
Bayes' rule: draws that find the batch repeat what the releases before them showed, and draws that
find nothing repeat the prior. If nothing is found the expected likelihood ratio is at most one, so
chance alone seldom says that something was (Ville 1939).
"""

from __future__ import annotations

import math

FIRST_LOST = 0.01
"""Probability that draws find nothing, before any release: the guess is somebody's knowledge."""

SURPRISE = 0.1
"""Probability that a batch that is found lies anywhere, whatever is believed."""

CHANGE = 0.001
"""Probability that from one release to the next batches are lost, or found."""

MOST = 500.0
"""Largest logarithm of a likelihood ratio that is told from infinity."""


def lost_after(lost: float, evidence: float) -> float:
    """The probability after one more release.

    Args:
        lost: Before it.
        evidence: ln of how much likelier the release is, by what is believed, than if its draws
            fell as their priors do.
    """
    ratio = (1.0 - SURPRISE) * math.exp(min(evidence, MOST)) + SURPRISE
    after = lost / (lost + (1.0 - lost) * ratio)
    return CHANGE + (1.0 - 2.0 * CHANGE) * after
