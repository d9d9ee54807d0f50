"""The learner after one release: its panel, and what is believed of the batch."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamdp.learning.experts.belief import density
from streamdp.learning.experts.belief.belief import LOG_TRAPEZOID, Belief, observe_all
from streamdp.learning.experts.drawing.ways import Way
from streamdp.learning.experts.memory.cold_start import first_log_gaps
from streamdp.learning.experts.memory.lost import lost_after
from streamdp.learning.experts.memory.other_groups import Profile
from streamdp.learning.experts.memory.panel import FORGET, LOST, REMEMBERED, SURE, Panel
from streamdp.learning.experts.plans import Plans
from streamdp.learning.experts.publishing import inferred
from streamdp.learning.experts.publishing.error_bars import error_bars
from streamdp.learning.public_fit import PublicFit
from streamdp.types import FloatArray, Json

NEWEST = 0.1
"""Least weight of a new release in what inferred quantiles would have missed."""


@dataclass(frozen=True, slots=True)
class Update:
    """One release, and how it is read: in the way that it was drawn in.

    Args:
        plans: All ways there are.
        public: What public rows say.
        way: How it was drawn.
        values: Of all quantiles; only those measured are looked at.
    """

    plans: Plans
    public: PublicFit | None
    way: Way
    values: tuple[float, ...]

    def state(self) -> Json | None:
        """The state after the release; None if it ceased to be finite."""
        way, facts = self.way, self.plans.facts
        belief, point, gaps = self._read()
        if not belief.finite():
            return None
        learned = self._panel(belief, gaps)
        if not learned.finite():
            return None
        each = density.densities(facts.targets, learned.log_gaps)
        drawn = {j: self.values[j] for j in way.targets}
        lower, upper = error_bars(facts, way, belief, each, drawn)
        lower, upper = np.minimum(lower, point), np.maximum(upper, point)
        smoothed = {"point": point, "lower": lower, "upper": upper}
        return learned.to_json() | {name: each.tolist() for name, each in smoothed.items()}

    def profile(self) -> Profile:
        """The batch as this release shows it, for other groups."""
        belief, point, gaps = self._read()
        facts = self.plans.facts
        return Profile.of(facts.rows, belief, point, density.densities(facts.targets, gaps))

    def _read(self) -> tuple[Belief, FloatArray, FloatArray]:
        """Belief after the release, its point of all quantiles, and the usual gaps."""
        way, known, releases = self.way, np.array(self.values), self.way.panel.releases
        if way.reading is None:
            gaps = self._gaps(known, releases + 1)
            each = density.densities(self.plans.facts.targets, gaps)
            assert self.plans.broad is not None  # noqa: S101
            noise = self.plans.broad.noise_of_values(each)
            belief = observe_all(way.seen.belief, known, noise)
            return belief, belief.point(), gaps
        released = {j: self.values[j] for j in way.targets}
        belief = way.reading.after(released)
        point = inferred.believed(self.plans.facts, way, belief, released)
        return belief, point, self._gaps(known if way.whole else belief.point(), releases + 3)

    def _panel(self, belief: Belief, gaps: FloatArray) -> Panel:
        way, panel, facts = self.way, self.way.panel, self.plans.facts
        root = way.tree.nodes()[0].targets
        first = way.targets[root[len(root) // 2]]
        anchor = first, self.values[first]
        learned = panel.learned(way.seen, belief, gaps, anchor, facts)
        learned = replace(learned, lost=self._lost())
        if learned.releases == 0:
            beginning = first_log_gaps(facts, self.public)
            afresh = panel.lost >= LOST or panel.left(way.seen, belief) > SURE
            learned = learned.opened(beginning, anchor, facts, afresh=afresh)
        if panel.releases and self.plans.shows_all(way):
            learned = replace(learned, missed=self._missed())
        if way.reading is None:
            return replace(learned, own=panel.own, information=panel.information)
        return replace(learned, past=self._past(), turns=panel.turns + (not way.whole))

    def _lost(self) -> float:
        """The probability that draws find nothing, this release included.

        Of draws in turn the first alone is looked at: where it goes astray, so do all after it.
        """
        way, before = self.way, self.way.seen.belief
        if self.plans.sure or way.point is None:
            return way.panel.lost
        if way.reading is not None:
            root = way.reading.draws[0].target
            seen = way.reading.after({root: self.values[root]})
            gained = seen.log_total() - before.log_total() - LOG_TRAPEZOID
            return lost_after(way.panel.lost, gained)
        assert self.plans.broad is not None  # noqa: S101
        values, each = np.array(self.values), way.usual.density
        noise = self.plans.broad.noise_of_values(each)
        gained = observe_all(before, values, noise).log_total() - before.log_total()
        gained += float(np.linalg.slogdet(noise)[1]) / 2.0
        return lost_after(
            way.panel.lost, gained - self.plans.broad.log_reach(way.prior, values, each)
        )

    def _missed(self) -> float:
        """The running mean of what turns would have missed, this release included."""
        way, panel = self.way, self.way.panel
        turn = self.plans.turn(panel)
        reading = self.plans.reading(turn, panel, way.usual, way.seen.belief)
        rate = max(1.0 / panel.releases, NEWEST)
        missed = inferred.missed(self.plans.facts, way, reading, np.array(self.values))
        return (1.0 - rate) * panel.missed + rate * missed

    def _past(self) -> tuple[tuple[float, ...], ...]:
        """Exact past values, with those just measured."""
        return tuple(
            (*past, self.values[j])[-REMEMBERED:] if j in self.way.targets else past
            for j, past in enumerate(self.way.panel.past)
        )

    def _gaps(self, values: FloatArray, releases: int) -> FloatArray:
        before, rate = self.way.panel.log_gaps, max(1.0 / releases, FORGET)
        if len(values) == 1:
            return before
        new = density.log_gaps(values, self.plans.facts.resolution)
        return np.asarray((1.0 - rate) * before + rate * new)
