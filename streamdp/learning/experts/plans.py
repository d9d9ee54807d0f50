"""Choice of the way that the next batch is drawn in, from releases and public facts alone.

All ways cost the same epsilon: a few quantiles in turn, all from learned priors, or all under broad
shapes. The one that is foretold to err least is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from streamdp.learning.experts.belief.belief import Belief
from streamdp.learning.experts.belief.density import Usual, densities, placed
from streamdp.learning.experts.drawing.sequential import Reading, sequential_prior
from streamdp.learning.experts.drawing.ways import BroadShapes, Drawn, Turn, Way, turns
from streamdp.learning.experts.facts import Facts
from streamdp.learning.experts.memory.cold_start import OPENING, first_log_gaps
from streamdp.learning.experts.memory.forecast import Seen
from streamdp.learning.experts.memory.other_groups import with_others
from streamdp.learning.experts.memory.panel import LOST, Inputs, Panel
from streamdp.learning.experts.publishing.smooth_law import SmoothLaw
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.families import Cauchy
from streamdp.priors.shapes import REACH
from streamdp.types import FloatArray

CAUTION = 1.3
"""Error of drawing all from learned priors, in units of what is foretold: each of them may be
wrong. Broad shapes rest on nothing that was learned."""

FAR_OFF = 1e4
"""Guessed spreads that a guess is hardly ever wrong by."""


@dataclass(frozen=True, slots=True)
class Plans:
    """All ways that a batch may be drawn in, and the choice among them.

    Args:
        facts: About the stream.
        whole: All quantiles from learned priors.
        turns: A few quantiles each; `whole` alone if none may be inferred.
        broad: How batches are drawn of which nothing is known.
        sure: Whether it is sure to find a batch, were the guess wrong by `FAR_OFF`.
    """

    facts: Facts
    whole: Turn
    turns: tuple[Turn, ...]
    broad: BroadShapes | None
    sure: bool = field(init=False)

    def __post_init__(self) -> None:
        facts, broad = self.facts, self.broad
        gaps = first_log_gaps(facts, None)
        far = placed(gaps, 0, facts.guess[0] + FAR_OFF * facts.guess[1])
        each = densities(facts.targets, gaps)
        sure = broad is None or broad.power() > -broad.log_reach(broad.prior, far, each)
        object.__setattr__(self, "sure", sure)

    @classmethod
    def of(cls, facts: Facts, tree: QuantileTree, broad: BroadShapes | None, *, few: bool) -> Plans:
        """The plans of a tree over all quantiles; some are inferred if `few`."""
        rows = facts.rows
        whole = Turn.of(tree, tuple(range(len(tree.quantiles))), rows)
        return cls(facts, whole, turns(tree, rows) if few else (whole,), broad)

    def trees(self) -> tuple[QuantileTree, ...]:
        """Of all ways, the turns first."""
        each = tuple(turn.tree for turn in self.turns)
        whole = () if self.turns == (self.whole,) else (self.whole.tree,)
        return (*each, *whole, *(() if self.broad is None else (self.broad.tree,)))

    def turn(self, panel: Panel) -> Turn:
        """The quantiles whose turn it is."""
        return self.turns[panel.turns % len(self.turns)]

    def way(self, panel: Panel, inputs: Inputs, point: FloatArray | None) -> Way:
        """Plan how the next batch is drawn.

        Args:
            panel: What was remembered.
            inputs: Public numbers of the batch.
            point: What is believed of the last batch; None before any release.
        """
        usual = panel.usual(self.facts)
        seen = panel.forecast(inputs, usual, self.facts.targets)
        drawn = self.best(panel, seen, usual)
        if drawn == "broad" and point is not None:
            panel, drawn = self._centred(panel, point)
        if drawn == "broad":
            return self._broad(panel, inputs, point, usual, seen)
        turn = self.whole if drawn == "all" else self.turn(panel)
        reading = self.reading(turn, panel, usual, seen.belief)
        prior, number = sequential_prior(reading, turn.targets), self.trees().index(turn.tree)
        about = turn.noise(), panel, inputs, point, usual, seen
        return Way(number, turn.tree, prior, turn.targets, *about, reading)

    def reading(self, turn: Turn, panel: Panel, usual: Usual, belief: Belief) -> Reading:
        """How a turn is drawn and read."""
        facts, known = self.facts, (panel.releases, panel.past)
        return Reading(facts, turn.draws, usual.density, belief, *known)

    def best(self, panel: Panel, seen: Seen, usual: Usual) -> Drawn:
        """How to draw: all under broad shapes while nothing is known, then what errs least.

        Broad shapes lie near the guess; where they find nothing, learned priors go on, whose robust
        part lies hundreds of guessed spreads about it.
        """
        if len(self.trees()) == 1:
            return "all"
        finds = self.broad is not None and panel.lost < LOST
        if panel.releases < OPENING:
            return "broad" if finds else "all"
        misfit = SmoothLaw.of(self.facts.targets, panel.log_gaps, usual.density).variance
        told = seen.steady(), usual.density, misfit, panel.missed
        errors: dict[Drawn, float] = {
            "few": float(np.mean([turn.error(*told) for turn in self.turns])),
            "all": CAUTION * self.whole.error(*told),
        }
        span = float(np.exp(panel.log_gaps[-1]))
        if self.broad and finds and self.broad.covers(span) and not self.broad.fills():
            errors["broad"] = self.broad.error()
        return min(errors, key=errors.__getitem__)

    def shows_all(self, way: Way) -> bool:
        """Whether every quantile was drawn, none filled in by a shape, where a turn could be."""
        if len(self.turns) == 1 or not way.whole:
            return False
        return way.reading is not None or not (self.broad and self.broad.fills())

    def _broad(
        self, panel: Panel, inputs: Inputs, point: FloatArray | None, usual: Usual, seen: Seen
    ) -> Way:
        assert self.broad is not None  # noqa: S101
        broad, last = self.broad, len(self.trees()) - 1
        location, scale = self.facts.guess
        prior = broad.shifted(panel.centre - location, Cauchy(panel.centre, scale))
        if panel.others is not None and panel.releases < OPENING:
            prior = with_others(prior, panel.others)
        noise = dict(enumerate(np.sqrt(np.diag(broad.noise)).tolist()))
        about = noise, panel, inputs, point, usual, seen
        return Way(last, broad.tree, prior, self.whole.targets, *about)

    def _centred(self, panel: Panel, point: FloatArray) -> tuple[Panel, Drawn]:
        """Where broad shapes would lie, and whether to draw under them.

        Shapes that hold nothing release some quantile out of their reach: of a stream that has just
        opened, priors with their robust part then find the batch.
        """
        reach = REACH * self.facts.guess[1]
        if panel.releases == 0 or np.abs(point - panel.centre).max() < reach:
            return panel, "broad"
        if panel.releases < OPENING:
            return panel, "all"
        return replace(panel, centre=float(point[len(point) // 2])), "broad"
