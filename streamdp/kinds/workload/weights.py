"""Private multiplicative weights that remember past releases: one release, and what it teaches.

References:
    Hardt & Rothblum 2010; Hardt, Ligett & McSherry 2012 (the mechanism without a memory).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from streamdp.kinds.workload.design import Choose, Design, rounds_for
from streamdp.kinds.workload.hypotheses import UNIFORM, Fit, Fitting, Memory
from streamdp.kinds.workload.marginals import Workload
from streamdp.kinds.workload.refit import Measurement
from streamdp.kinds.workload.spread import schedule
from streamdp.mechanisms.quantile_tree.sharpness import Relation
from streamdp.privacy.events import choice
from streamdp.types import Entropy, IntArray, Json


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A release: what was measured, and the distribution that follows. Public.

    Args:
        measured: Noisy counts, in the order they were drawn.
        fit: What they and past releases say of the batch.
    """

    measured: tuple[Measurement, ...]
    fit: Fit


@dataclass(frozen=True, slots=True)
class PrivateWeights:
    """A mechanism for one workload.

    Args:
        workload: Domain and items.
        epsilon: Pure loss of a release for one record.
        expected_rows: Public guess of a batch's records.
        relation: Of neighbours.
        choose: Whether items are chosen by looking at the batch.
        rounds: Items measured a release; None for the public rule.
    """

    workload: Workload
    epsilon: Fraction
    expected_rows: int
    relation: Relation = "add-remove"
    choose: Choose = "private"
    rounds: int | None = None

    def design(self, memory: Memory) -> Design:
        """The draws of the next release: how many depends on whether past ones are of use."""
        return self._design(cold=memory.leading((0.0, 0.0, 0.0)) == UNIFORM)

    def event(self, drawn: Design) -> Json:
        """What one record pays, however many rounds past releases lead to.

        All designs cost the same epsilon but not the same rho: were the drawn one booked, a sum of
        rho would depend on releases, and would bound no adversary who can steer them.
        """
        designs = tuple(dict.fromkeys(self._design(cold=cold) for cold in (False, True)))
        if len(designs) == 1:
            return drawn.event()
        ways = [each.event() for each in designs]
        about = {name: ways[0][name] for name in ("mechanism", "choose")}
        return choice(ways, **about, drawn=designs.index(drawn))

    def _design(self, *, cold: bool) -> Design:
        rounds = self.rounds or rounds_for(
            self.epsilon, self.expected_rows, self.relation, len(self.workload.items), cold=cold
        )
        return Design(self.epsilon, rounds, self.relation, self.choose)

    def draw(
        self, design: Design, memory: Memory, counts: Sequence[IntArray], entropy: Entropy
    ) -> Drawn:
        """Choose and measure, refitting in between. Total: any counts take the same path.

        Args:
            design: As `design` returned for this memory.
            memory: What past releases say.
            counts: Of the cells of every item. Private.
            entropy: Source of chance.

        Privacy: pure epsilon for one record. Each round is a choice and a measurement
        (`Design.choice`, `Design.measure`) that depend on the batch through earlier rounds'
        outputs alone besides: adaptive composition of `Design.event`.
        """
        fitting, measured = Fitting(self.workload, memory), tuple[Measurement, ...]()
        fit = fitting.fit(measured)
        scheduled = self._schedule(design, memory, fit)
        for number in range(design.rounds):
            if scheduled:
                place = scheduled[number]
            else:
                place = design.choice(self.workload, counts, fit.distribution, entropy)
            measured = (*measured, design.measure(place, counts[place], entropy))
            fit = fitting.fit(measured)
        return Drawn(measured, fit)

    def _schedule(self, design: Design, memory: Memory, before: Fit) -> tuple[int, ...]:
        """Items that are chosen before the batch is read; none if they are chosen privately."""
        if design.choose == "private":
            return ()
        masses = [before.distribution.masses(item) for item in self.workload.items]
        return schedule(self.workload, memory.spread, masses, design.variance, design.rounds)
