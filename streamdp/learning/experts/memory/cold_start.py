"""Belief before any release: from a guess, or from public rows of the same kind."""

from __future__ import annotations

import numpy as np

from streamdp.learning.experts.belief import density
from streamdp.learning.experts.facts import Facts
from streamdp.learning.experts.memory.levels import Levels, first_covariance
from streamdp.learning.experts.memory.own import first_own
from streamdp.learning.experts.memory.panel import Inputs, Panel
from streamdp.learning.public_fit import PublicFit
from streamdp.types import FloatArray

OPENING = 3
"""Releases of which all quantiles are drawn when a stream opens; not after public rows."""

PUBLIC_CERTAINTY = 16.0
"""Of first levels fitted to public rows: they are believed within a quarter."""


def first_panel(facts: Facts, public: PublicFit | None, inputs: Inputs) -> Panel:
    """State before any release, for these inputs."""
    values, gaps = _first_values(facts, public), first_log_gaps(facts, public)
    usual = density.Usual.of(facts.targets, gaps, facts.resolution)
    known = first_covariance(usual) / (PUBLIC_CERTAINTY if public else 1.0)
    groups = tuple(Levels.start(values, len(each), usual, known) for each in inputs)
    releases = OPENING if public else 0
    past: tuple[tuple[float, ...], ...] = ((),) * len(values)
    at = facts.guess[0]
    return Panel(releases, 0, gaps, first_own(), np.zeros(2), groups, past, at, strange=False)


def first_log_gaps(facts: Facts, public: PublicFit | None) -> FloatArray:
    """Gaps between quantiles (`density`) that a stream opens with.

    One quantile alone shows no gap, the scale of the guess must.
    """
    if len(facts.targets) == 1:
        return np.array([np.log(4.0 * density.GUESS_SPREAD * facts.guess[1])])
    return density.log_gaps(_first_values(facts, public), facts.resolution)


def _first_values(facts: Facts, public: PublicFit | None) -> FloatArray:
    """Where quantiles are believed to be, shape (m,)."""
    if public:
        return np.array(public.locations)
    (location, scale), targets = facts.guess, facts.targets
    return location + density.GUESS_SPREAD * scale * np.log(targets / (1.0 - targets))
