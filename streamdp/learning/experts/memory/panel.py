"""All experts together: what they remember between releases, and how a release changes it.

Bayes weighs experts and widths by the evidence of each release; a share of the weight returns to
all, so that the best may change (fixed share, Herbster & Warmuth 1998). Experts differ in their
inputs: none, the calendar, the configured features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from streamdp.learning.experts.belief import density
from streamdp.learning.experts.belief.belief import Belief
from streamdp.learning.experts.belief.density import Usual
from streamdp.learning.experts.facts import Facts
from streamdp.learning.experts.memory.arrays import packed, unpacked
from streamdp.learning.experts.memory.forecast import Change, Seen
from streamdp.learning.experts.memory.levels import BESIDE_DRIFTS, DRIFTS, WIDTHS, Levels
from streamdp.learning.experts.memory.lost import FIRST_LOST
from streamdp.learning.experts.memory.other_groups import Others
from streamdp.learning.experts.memory.own import LEAST_OWN, MOST_OWN, own_covariances
from streamdp.types import FloatArray, Json

Inputs = tuple[FloatArray, ...]
"""Of each group of experts, a 1 first; the first group has nothing else."""

SHARE = 0.05
"""Weight that is spread over all experts and widths after each release."""

FORGET = 0.03
"""Least weight of a new release in moves and gaps."""

OWN_TRUST = 5.0
"""Releases that the first belief about own moves is worth."""

LOST = 0.5
"""Weight of the forgetful expert above which a stream has left all beliefs: it opens anew. And
probability above which draws are taken to find nothing."""

SURE = 0.9999
"""Weight of the forgetful expert above which what the others believe is of other batches: where
draws are noisy, chance alone exceeds `LOST` twice in a row."""

REMEMBERED = 20
"""Exact past values of each quantile that are kept."""


@dataclass(frozen=True, slots=True)
class Panel:
    """State of the learner.

    Args:
        releases: How many there were since the stream opened.
        turns: How many of them measured a turn's quantiles.
        log_gaps: Usual gaps between quantiles (`density`).
        own: Variance of either kind of a quantile's own move (`own`), in squared ranks, shape (2,).
        information: What `own` rests on, shape (2,).
        groups: Experts by their inputs.
        past: Exact values that were drawn of each quantile, the last ones; m tuples.
        centre: Around what broad shapes lie.
        strange: Whether the last release left all beliefs.
        missed: Variance that quantiles would have missed by, had a turn inferred them, in squared
            ranks: as releases showed that drew all.
        lost: Probability that draws do not find the batches (`lost`).
        beside: Experts on the distance from other groups; None if there never were any.
        others: What those groups showed of this batch; not remembered.
    """

    releases: int
    turns: int
    log_gaps: FloatArray
    own: FloatArray
    information: FloatArray
    groups: tuple[Levels, ...]
    past: tuple[tuple[float, ...], ...]
    centre: float
    strange: bool
    missed: float = 0.0
    lost: float = FIRST_LOST
    beside: Levels | None = None
    others: Others | None = None

    def to_json(self) -> Json:
        """Exact."""
        beside = {} if self.beside is None else {"beside": self.beside.to_json()}
        return beside | {
            "releases": self.releases,
            "turns": self.turns,
            "log_gaps": packed(self.log_gaps),
            "own": packed(self.own),
            "information": packed(self.information),
            "groups": [group.to_json() for group in self.groups],
            "past": [list(values) for values in self.past],
            "centre": self.centre,
            "strange": self.strange,
            "missed": self.missed,
            "lost": self.lost,
        }

    @classmethod
    def from_json(cls, state: Json) -> Self:
        """The inverse of `to_json`."""
        return cls(
            int(state["releases"]),
            int(state["turns"]),
            unpacked(state["log_gaps"]),
            unpacked(state["own"]),
            unpacked(state["information"]),
            tuple(Levels.from_json(group) for group in state["groups"]),
            tuple(tuple(values) for values in state["past"]),
            float(state["centre"]),
            bool(state["strange"]),
            float(state["missed"]),
            float(state["lost"]),
            Levels.from_json(state["beside"], BESIDE_DRIFTS) if "beside" in state else None,
        )

    def usual(self, facts: Facts) -> Usual:
        """How a batch usually looks."""
        return Usual.of(facts.targets, self.log_gaps, facts.resolution)

    def told(self, inputs: Inputs, facts: Facts) -> Panel:
        """The same with a group for each of the inputs: those of another size start anew."""
        kept = {group.coefficients.shape[2]: group for group in self.groups}
        sizes = [len(each) for each in inputs]
        if sizes == [group.coefficients.shape[2] for group in self.groups]:
            return self
        level = self.groups[0].coefficients[:, :, 0]
        best = level[int(np.exp(self.groups[0].log_weights).sum(axis=1).argmax())]
        usual = self.usual(facts)
        groups = tuple(kept.get(size) or Levels.start(best, size, usual) for size in sizes)
        return replace(self, groups=groups)

    def with_others(self, others: Others, facts: Facts) -> Panel:
        """The same for a batch of which other groups are drawn already.

        A group of which nothing was released has the others' gaps between quantiles.
        """
        known = replace(self, others=others)
        if self.releases == 0 and len(facts.targets) > 1:
            gaps = density.log_gaps(others.values, facts.resolution)
            known = replace(known, log_gaps=gaps)
        if self.beside is None:
            known = replace(known, beside=others.experts(known.usual(facts)))
        return known

    def heard(self) -> tuple[Levels, ...]:
        """Experts that forecast this batch: all, or all but those on other groups."""
        if self.beside is None or self.others is None:
            return self.groups
        return (*self.groups, self.beside)

    def forecast(self, inputs: Inputs, usual: Usual, targets: FloatArray) -> Seen:
        """Belief before a release."""
        size, own = len(targets), own_covariances(self.own, targets, usual)
        told = zip(self.groups, inputs, strict=True)
        forecasts = tuple(group.forecast(each, own) for group, each in told)
        if self.beside is not None and self.others is not None:
            distance = self.beside.forecast(np.ones(1), own)
            forecasts += (distance.moved(self.others.values, self.others.noise),)
        count = len(WIDTHS)
        return Seen(
            forecasts,
            Belief(
                np.concatenate([group.log_weights.ravel() for group in self.heard()]),
                np.concatenate([np.repeat(each.means, count, axis=0) for each in forecasts]),
                np.concatenate([each.spreads.reshape(-1, size, size) for each in forecasts]),
            ),
            slice(self.groups[0].log_weights.size - count, self.groups[0].log_weights.size),
        )

    def learned(
        self,
        seen: Seen,
        belief: Belief,
        log_gaps: FloatArray,
        anchor: tuple[int, float],
        facts: Facts,
    ) -> Panel:
        """The panel after one release.

        A stream that left all beliefs twice in a row opens anew; a strange day changes nothing.

        Args:
            seen: What it forecast.
            belief: What that became by the release.
            log_gaps: Usual gaps, this batch included.
            anchor: Index and value of the release's first draw, the one of least noise.
            facts: About the stream.
        """
        later = replace(self, log_gaps=log_gaps)
        usual, rate = later.usual(facts), max(1.0 / (self.releases + 4), FORGET)
        changes, weights = self._changes(seen, belief)
        own, information = self._own(changes, weights, facts.targets, usual.density)
        shared, places = _shared(weights), density.placed(log_gaps, *anchor)
        strange = float(weights[0][-1].sum()) > LOST
        opens = strange and (self.strange or self.releases == 0)
        groups = []
        for group, change, new in zip(self.heard(), changes, shared, strict=True):
            learned = group.learned(change, usual, rate).anchored(places, usual)
            groups.append(replace(learned, log_weights=np.log(new)))
        return replace(
            later,
            releases=0 if opens else self.releases + 1,
            strange=strange and not opens,
            own=own,
            information=information,
            groups=tuple(groups[: len(self.groups)]),
            beside=groups[-1] if len(groups) > len(self.groups) else self.beside,
        )

    def left(self, seen: Seen, belief: Belief) -> float:
        """The probability that a release lies where only the forgetful expert expects it.

        Args:
            seen: What was forecast.
            belief: What that became by the release.
        """
        return float(self._changes(seen, belief)[1][0][-1].sum())

    def opened(
        self, log_gaps: FloatArray, anchor: tuple[int, float], facts: Facts, *, afresh: bool
    ) -> Panel:
        """The panel of a stream that opens anew around its last release, with first gaps.

        Args:
            log_gaps: Of a stream that begins.
            anchor: A quantile of the last release, and its value.
            facts: Of the stream.
            afresh: Whether what experts without inputs believe is of other batches, or of draws
                that found nothing. Those with inputs may have learned why the stream moved.
        """
        opened = replace(self, log_gaps=log_gaps, centre=anchor[1], missed=0.0)
        usual, places = opened.usual(facts), density.placed(log_gaps, *anchor)
        if not afresh:
            groups = tuple(group.anchored(places, usual) for group in self.groups)
            return replace(opened, groups=groups)
        others = (
            replace(group, log_weights=np.zeros_like(group.log_weights))
            for group in self.groups[1:]
        )
        return replace(opened, groups=(Levels.start(places, 1, usual), *others))

    def drift_shares(self) -> FloatArray:
        """Weights of the experts of each drift, whatever their inputs, shape (k,)."""
        summed = np.zeros(len(DRIFTS))
        for group in self.groups:
            weights = np.exp(group.log_weights).sum(axis=1)
            summed[: len(weights)] += weights
        return np.asarray(summed / summed.sum())

    def finite(self) -> bool:
        """Whether no number overflowed."""
        return bool(np.isfinite(self.own).all()) and all(group.finite() for group in self.heard())

    def _changes(self, seen: Seen, belief: Belief) -> tuple[list[Change], list[FloatArray]]:
        """Change of each group's belief, and its weights of experts and widths; they sum to one."""
        ends = np.cumsum([group.log_weights.size for group in self.heard()])[:-1]
        size, count = belief.means.shape[1], len(WIDTHS)
        numbers = belief.means, belief.covariances, belief.log_weights, belief.weights()
        changes, weights = [], []
        for forecast, means, spreads, logs, each in zip(
            seen.forecasts, *(np.split(part, ends) for part in numbers), strict=True
        ):
            by_width, shape = logs.reshape(-1, count), (-1, count, size)
            within = np.exp(by_width - by_width.max(axis=1, keepdims=True))
            within /= within.sum(axis=1, keepdims=True)
            after = means.reshape(shape), spreads.reshape(*shape, size)
            changes.append(Change.of(forecast, *after, within))
            weights.append(each.reshape(-1, count))
        return changes, weights

    def _own(
        self,
        changes: list[Change],
        weights: list[FloatArray],
        targets: FloatArray,
        each: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Variances of own moves by a step of scoring: as large as the release said anything."""
        excess, gained = np.zeros(2), np.zeros(2)
        for change, weight in zip(changes, weights, strict=True):
            seen, removed = change.own(targets, each)
            excess += seen @ weight.sum(axis=1)
            gained += removed @ weight.sum(axis=1)
        information = (1.0 - FORGET) * self.information + gained
        own = self.own + excess / (information + OWN_TRUST)
        return np.clip(own, np.square(LEAST_OWN), MOST_OWN**2), information


def _shared(weights: list[FloatArray]) -> list[FloatArray]:
    """Fixed share: half of it to all, half to the widths of the same expert."""
    count = sum(each.size for each in weights)
    return [
        (1.0 - SHARE) * each
        + SHARE * (1.0 / count + each.sum(axis=1, keepdims=True) / each.shape[1]) / 2.0
        for each in weights
    ]
