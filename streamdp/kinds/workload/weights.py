"""Private multiplicative weights that remember past releases: one release, and what it teaches.

References:
    Hardt & Rothblum 2010; Hardt, Ligett & McSherry 2012 (the mechanism without a memory).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from streamdp.kinds.workload.design import Choose, Design, rounds_for
from streamdp.kinds.workload.fitting.hypotheses import UNIFORM, Fit, Fitting, Memory
from streamdp.kinds.workload.fitting.marginals import Workload
from streamdp.kinds.workload.fitting.refit import Measurement
from streamdp.kinds.workload.fitting.spread import schedule
from streamdp.kinds.workload.online import Gate, Passed
from streamdp.mechanisms.quantile_tree.sharpness import Relation
from streamdp.privacy.events import choice
from streamdp.privacy.filters import Measure
from streamdp.types import Entropy, IntArray, Json


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A release: what was measured, and the distribution that follows. Public.

    Args:
        measured: Noisy counts, in the order they were drawn.
        fit: What they and past releases say of the batch.
        passed: With `online`, the items that were tested and found right, by their place.
    """

    measured: tuple[Measurement, ...]
    fit: Fit
    passed: Mapping[int, Passed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PrivateWeights:
    """A mechanism for one workload.

    Args:
        workload: Domain and items.
        amount: Price of a release for one record, in `loss`.
        expected_rows: Public guess of a batch's records.
        relation: Of neighbours.
        choose: How the items that are measured are chosen.
        rounds: Items measured a release; None for the public rule.
        tolerance: Records by which a count may be off, for `online`.
        loss: The measure of the price.
    """

    workload: Workload
    amount: Fraction
    expected_rows: int
    relation: Relation = "add-remove"
    choose: Choose = "private"
    rounds: int | None = None
    tolerance: int = 1
    loss: Measure = "epsilon"

    def design(self, memory: Memory) -> Design:
        """The draws of the next release: how many depends on whether past ones are of use."""
        return self._design(cold=memory.leading((0.0, 0.0, 0.0)) == UNIFORM)

    def event(self, drawn: Design) -> Json:
        """Event of one record, however many rounds past releases lead to.

        At a price in epsilon all designs cost the same of it but not the same rho: were the drawn
        one booked, a sum of rho would depend on releases, and would bound no adversary who can
        steer them. At a price in rho all cost the same rho.
        """
        designs = tuple(dict.fromkeys(self._design(cold=cold) for cold in (False, True)))
        if len(designs) == 1:
            return drawn.event()
        ways = [each.event() for each in designs]
        about = {name: ways[0][name] for name in ("mechanism", "choose")}
        return choice(ways, **about, drawn=designs.index(drawn))

    def _design(self, *, cold: bool) -> Design:
        """Of tests the number is always the same: it makes their margin."""
        cold = cold and self.choose != "online"
        rounds = self.rounds or rounds_for(
            self.amount,
            self.expected_rows,
            self.relation,
            len(self.workload.items),
            cold=cold,
            loss=self.loss,
        )
        return Design(self.amount, rounds, self.relation, self.choose, self.tolerance, self.loss)

    def gate(self) -> Gate:
        """The tests of a release."""
        return self._design(cold=False).gate(len(self.workload.items))

    def draw(
        self, design: Design, memory: Memory, counts: Sequence[IntArray], entropy: Entropy
    ) -> Drawn:
        """Choose and measure, refitting in between. Total: any counts take the same path.

        Args:
            design: As `design` returned for this memory.
            memory: What past releases say.
            counts: Of the cells of every item. Private.
            entropy: Source of chance.

        Privacy: `amount` for one record. Each round is a choice, or a run of tests, and a
        measurement (`Design.choice`, `Gate.is_off`, `Design.measure`) that depend on the batch
        through earlier rounds' outputs alone besides: adaptive composition of `Design.event`.
        """
        fitting = Fitting(self.workload, memory)
        before = Drawn((), fitting.fit(()))
        if design.choose == "online":
            before = self._tested(design, fitting, counts, before, entropy)
        drawn = before
        scheduled = self._schedule(design, memory, before)
        for number in range(design.rounds - len(before.measured)):
            if scheduled:
                place = scheduled[number]
            else:
                place = design.choice(self.workload, counts, drawn.fit.distribution, entropy)
            drawn = _measured(design, fitting, drawn, place, counts, entropy)
        return drawn

    def _tested(
        self,
        design: Design,
        fitting: Fitting,
        counts: Sequence[IntArray],
        drawn: Drawn,
        entropy: Entropy,
    ) -> Drawn:
        """Test the items in turn; measure those that are off while measurements are left."""
        gate = design.gate(len(self.workload.items))
        run = gate.arm(entropy)
        for place, item in enumerate(self.workload.items):
            while gate.is_off(run, item, counts[place], drawn.fit.distribution, entropy):
                drawn = _measured(design, fitting, drawn, place, counts, entropy)
                if len(drawn.measured) == design.rounds:
                    return drawn
                run = gate.arm(entropy)
            passed = Passed(drawn.fit.distribution.masses(item), gate.bound)
            drawn = replace(drawn, passed={**drawn.passed, place: passed})
        return drawn

    def _schedule(self, design: Design, memory: Memory, before: Drawn) -> tuple[int, ...]:
        """Items that are chosen without the batch; none if they are chosen privately."""
        if design.choose == "private":
            return ()
        masses = [before.fit.distribution.masses(item) for item in self.workload.items]
        rounds = design.rounds - len(before.measured)
        return schedule(self.workload, memory.spread, masses, design.noise.variance, rounds)


def _measured(
    design: Design,
    fitting: Fitting,
    drawn: Drawn,
    place: int,
    counts: Sequence[IntArray],
    entropy: Entropy,
) -> Drawn:
    """One more measurement, and the fit to all."""
    measured = (*drawn.measured, design.measure(place, counts[place], entropy))
    return replace(drawn, measured=measured, fit=fitting.fit(measured))
