"""The default learner: measure few quantiles, know all.

Before a release experts make a belief over all quantiles together; a few are drawn with the whole
of epsilon, in turn, and the others follow from them. After it, every draw is weighed by the law of
its own noise (`noise`), so that an uninformative release teaches nothing. How a batch is drawn
depends on past releases alone, and costs the same epsilon whichever way it is.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from streamdp.learning.experts import density
from streamdp.learning.experts.beginning import OPENING, Beginning
from streamdp.learning.experts.belief import Belief, observe_all
from streamdp.learning.experts.filling import Filling
from streamdp.learning.experts.forecast import Usual
from streamdp.learning.experts.panel import (
    FORGET,
    REMEMBERED,
    Inputs,
    Panel,
    Seen,
)
from streamdp.learning.experts.prior_scale import PriorRule
from streamdp.learning.experts.sequential import Reading, sequential_prior
from streamdp.learning.experts.trust import drift_names, drift_shares
from streamdp.learning.experts.ways import BroadShapes, Drawn, Turn, Way, turns
from streamdp.learning.learner import Features, Observation, Smoothed
from streamdp.learning.public import PublicFit
from streamdp.mechanisms.quantile_tree.noisy_gradient import Slope
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import REACH
from streamdp.types import FloatArray, Json, Prior

VERSION = 5
"""Of the form of the state."""

CAUTION = 1.3
"""Error of drawing all from learned priors, in units of what is foretold: each of them may be
wrong. Broad shapes rest on nothing that was learned."""

NEWEST = 0.1
"""Least weight of a new release in what inferred quantiles would have missed."""

MOST_CALENDAR = 12
"""Quantiles up to which experts know the calendar: their states grow with the square."""


@dataclass(frozen=True, slots=True)
class ExpertMixture:
    """Mixture of experts: how a batch is drawn, and all its quantiles, from past releases.

    Args:
        tree: Over all quantiles.
        robust: Prior that holds when the past misleads.
        robust_weight: λ in (0, 1]: never more than (1/c)·ln(1/λ) worse than `robust`.
        guess: Location and spread of the column, before any release.
        expected_rows: Public guess of the number of rows of a batch; sets the noise law.
        public: What public rows of the same kind say, before any release.
        few: Whether a few quantiles may be measured, and the others inferred.
        broad: How batches are drawn of which nothing is known.
    """

    tree: QuantileTree
    robust: Prior
    robust_weight: float
    guess: tuple[float, float]
    expected_rows: int
    public: PublicFit | None = None
    few: bool = False
    broad: BroadShapes | None = None
    infers: ClassVar[bool] = True
    share: ClassVar[Fraction] = Fraction(0)
    turns: tuple[Turn, ...] = field(init=False, repr=False, compare=False)
    whole: Turn = field(init=False, repr=False, compare=False)
    targets: FloatArray = field(init=False, repr=False, compare=False)
    filling: Filling = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        every = tuple(range(len(self.tree.quantiles)))
        whole = Turn.of(self.tree, every, self.expected_rows)
        in_turn = turns(self.tree, self.expected_rows) if self.few else (whole,)
        object.__setattr__(self, "whole", whole)
        object.__setattr__(self, "turns", in_turn)
        targets = np.array([float(q) for q in self.tree.quantiles])
        object.__setattr__(self, "targets", targets)
        filling = Filling(targets, self.tree.grid, self.expected_rows, self.guess)
        object.__setattr__(self, "filling", filling)

    def describe(self) -> Json:
        """Public parameters a state depends on."""
        return {"learner": "expert-mixture", "version": VERSION, "guess": list(self.guess)}

    def init(self) -> Json:
        """Nothing released yet."""
        return {}

    def trees(self) -> tuple[QuantileTree, ...]:
        """Of all ways a batch may be drawn, the turns first; all cost the same epsilon."""
        each = tuple(turn.tree for turn in self.turns)
        whole = () if self.turns == (self.whole,) else (self.tree,)
        return (*each, *whole, *(() if self.broad is None else (self.broad.tree,)))

    def way(self, state: Json, features: Features = (), calendar: Features = ()) -> Way:
        """How the next batch is drawn, from releases and public facts alone.

        Args:
            state: What was learned before.
            features: Configured public numbers of the batch.
            calendar: Where its window lies in the week, the day or the year.
        """
        inputs = self._inputs(features, calendar)
        panel = self._panel(state, inputs)
        usual = panel.usual(self.targets, self._resolution())
        seen = panel.forecast(inputs, usual)
        number = panel.turns % len(self.turns)
        turn, drawn = self.turns[number], self._best(panel, seen, usual)
        if drawn == "broad":
            panel, drawn = self._centred(state, panel)
        if drawn == "broad":
            assert self.broad is not None  # noqa: S101
            shapes, every = self.broad.shifted(panel.centre - self.guess[0]), self.whole.targets
            last = len(self.trees()) - 1
            noise = dict(enumerate(np.sqrt(np.diag(self.broad.noise)).tolist()))
            return Way(last, self.broad.tree, shapes, every, noise, panel, usual, seen)
        if drawn == "all":
            number, turn = self.trees().index(self.whole.tree), self.whole
        reading = self._reading(turn, panel, usual, seen.belief)
        prior = sequential_prior(reading, turn.targets)
        noise = turn.noise()
        return Way(number, turn.tree, prior, turn.targets, noise, panel, usual, seen, reading)

    def priors(self, state: Json, count: int, features: Features = ()) -> JointPrior:
        """Priors of all quantiles, were all drawn."""
        panel = self._panel(state, self._inputs(features, ()))
        usual = panel.usual(self.targets, self._resolution())
        belief = panel.forecast(self._inputs(features, ()), usual).belief
        reading = self._reading(self.whole, panel, usual, belief)
        return sequential_prior(reading, self.whole.targets)

    def values(self, way: Way, drawn: tuple[int, ...]) -> tuple[int, ...]:
        """Cells of all quantiles: those drawn as they are, the others as they follow from them."""
        return self.filling.cells(way, drawn)

    def inferred(
        self, way: Way, drawn: tuple[int, ...], known: tuple[int, ...]
    ) -> dict[int, tuple[float, float]]:
        """Intervals that hold about 95 % of the quantiles that were not drawn, by index."""
        return self.filling.intervals(way, drawn, known)

    def slope(self, state: Json, count: int, features: Features = ()) -> Slope | None:
        """It buys no gradient."""
        return None

    def observe(self, state: Json, seen: Observation) -> Json:
        """The state after one more release, from the way that it was drawn in."""
        return self.learn(seen.way, seen.values)

    def learn(self, way: Way, values: tuple[float, ...]) -> Json:
        """The state after one more release; starts anew if it ceased to be finite.

        Args:
            way: How it was drawn.
            values: Of all quantiles; only those measured are looked at.
        """
        panel, known = way.panel, np.array(values)
        if way.reading is None:
            belief, gaps = self._read_broad(way, known)
            point = belief.point()
        else:
            released = {j: values[j] for j in way.targets}
            belief = way.reading.after(released)
            point = self.filling.believed(way, belief, released)
            told = known if way.whole else belief.point()
            gaps = self._gaps(panel, told, panel.releases + 3)
        if not belief.finite():
            return self.init()
        root = way.tree.nodes()[0].targets
        first = way.targets[root[len(root) // 2]]
        anchor, resolution = (first, values[first]), self._resolution()
        learned = panel.learned(way.seen, belief, gaps, anchor, self.targets, resolution)
        if learned.releases == 0:
            learned = learned.opened(self._beginning().log_gaps(), anchor, self.targets, resolution)
        if panel.releases and self._draws_all(way):
            learned = replace(learned, missed=self._missed(way, known))
        if way.reading is None:
            learned = replace(learned, own=panel.own, information=panel.information)
        else:
            past = _remembered(panel, way, values)
            learned = replace(learned, past=past, turns=panel.turns + (not way.whole))
        if not learned.finite():
            return self.init()
        usual = learned.usual(self.targets, resolution)
        lower, upper = self.filling.error_bars(way, belief, usual.density)
        lower, upper = np.minimum(lower, point), np.maximum(upper, point)
        smoothed = {"point": point, "lower": lower, "upper": upper}
        return learned.to_json() | {name: each.tolist() for name, each in smoothed.items()}

    def smoothed(self, state: Json) -> tuple[Smoothed, ...]:
        """Belief about each quantile of the last batch, after its release.

        Returns:
            Points and the intervals that hold the quantile with about 95 %, non-decreasing over
            the quantiles; nothing before the first release. From releases alone, so free.
        """
        if not state:
            return ()
        each = zip(state["point"], state["lower"], state["upper"], strict=True)
        return tuple(itertools.starmap(Smoothed, each))

    def weights(self, state: Json) -> dict[str, float]:
        """Of the experts of each drift."""
        return dict(zip(drift_names(), drift_shares(state).tolist(), strict=True))

    def expecting(self, rows: int) -> ExpertMixture:
        """The same trees, read by the noise law of so many records."""
        broad = None if self.broad is None else replace(self.broad, rows=rows)
        return replace(self, expected_rows=rows, broad=broad)

    def drawing_all(self) -> ExpertMixture:
        """The same experts, with every quantile drawn each time."""
        return replace(self, few=False, broad=None)

    def _best(self, panel: Panel, seen: Seen, usual: Usual) -> Drawn:
        """How to draw: all under broad shapes while nothing is known, then what errs least."""
        if len(self.trees()) == 1:
            return "all"
        if panel.releases < OPENING:
            return "broad" if self.broad else "all"
        belief, each = seen.steady(), usual.density
        misfit = self.filling.law(panel.log_gaps, each).variance
        told = belief, each, misfit, panel.missed
        errors: dict[Drawn, float] = {
            "few": float(np.mean([turn.error(*told) for turn in self.turns])),
            "all": CAUTION * self.whole.error(*told),
        }
        if self.broad is not None and not self.broad.fills():
            errors["broad"] = self.broad.error()
        return min(errors, key=errors.__getitem__)

    def _centred(self, state: Json, panel: Panel) -> tuple[Panel, Drawn]:
        """Where broad shapes would lie, and whether to draw under them.

        Shapes that hold nothing release some quantile out of their reach: of a stream that has just
        opened, priors with their robust part then find the batch.
        """
        if not state:
            return panel, "broad"
        point, reach = np.array(state["point"]), REACH * self.guess[1]
        if panel.releases == 0 or np.abs(point - panel.centre).max() < reach:
            return panel, "broad"
        if panel.releases < OPENING:
            return panel, "all"
        return replace(panel, centre=float(point[len(point) // 2])), "broad"

    def _draws_all(self, way: Way) -> bool:
        """Whether every quantile was drawn, none filled in by a shape, where a turn could be."""
        if len(self.turns) == 1 or not way.whole:
            return False
        return way.reading is not None or not (self.broad and self.broad.fills())

    def _missed(self, way: Way, known: FloatArray) -> float:
        """The running mean of what turns would have missed, this release included."""
        turn = self.turns[way.panel.turns % len(self.turns)]
        reading = self._reading(turn, way.panel, way.usual, way.seen.belief)
        rate = max(1.0 / way.panel.releases, NEWEST)
        missed = self.filling.missed(way, reading, known)
        return (1.0 - rate) * way.panel.missed + rate * missed

    def _reading(self, turn: Turn, panel: Panel, usual: Usual, belief: Belief) -> Reading:
        return Reading(turn.draws, self._rule(panel), usual.density, self._limits(), belief)

    def _read_broad(self, way: Way, values: FloatArray) -> tuple[Belief, FloatArray]:
        """The belief after a release under broad shapes, and the usual gaps."""
        assert self.broad is not None  # noqa: S101
        gaps = self._gaps(way.panel, values, way.panel.releases + 1)
        each = density.densities(self.targets, gaps)
        noise = self.broad.noise / each[:, None] / each
        return observe_all(way.seen.belief, values, noise), gaps

    def _gaps(self, panel: Panel, values: FloatArray, releases: int) -> FloatArray:
        if len(self.targets) == 1:
            return panel.log_gaps
        rate = max(1.0 / releases, FORGET)
        new = density.log_gaps(values, self._resolution())
        return np.asarray((1.0 - rate) * panel.log_gaps + rate * new)

    def _rule(self, panel: Panel) -> PriorRule:
        return PriorRule(
            self.robust,
            self.robust_weight,
            self.guess,
            self._resolution(),
            panel.releases,
            panel.past,
        )

    def _inputs(self, features: Features, calendar: Features) -> Inputs:
        calendar = calendar if len(self.targets) <= MOST_CALENDAR else ()
        told = [each for each in (calendar, features) if each]
        told = told[:1] if calendar == features else told
        return tuple(np.array([1.0, *each]) for each in ((), *told))

    def _panel(self, state: Json, inputs: Inputs) -> Panel:
        """State, for these inputs."""
        resolution = self._resolution()
        if state:
            panel = Panel.from_json(state)
            return panel.told(inputs, panel.usual(self.targets, resolution))
        return self._beginning().panel(inputs)

    def _beginning(self) -> Beginning:
        return Beginning(self.targets, self.guess, self.public, self._resolution())

    def _limits(self) -> tuple[float, float]:
        grid, half = self.tree.grid, self.tree.grid.resolution / 2
        lower, upper = grid.lower * grid.resolution - half, grid.upper * grid.resolution + half
        return float(lower), float(upper)

    def _resolution(self) -> float:
        return float(self.tree.grid.resolution)


def _remembered(panel: Panel, way: Way, values: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    """Exact past values, with those just measured."""
    return tuple(
        (*past, values[j])[-REMEMBERED:] if j in way.targets else past
        for j, past in enumerate(panel.past)
    )
