"""Private multiplicative weights that remember past releases: one release, and what it teaches.

References:
    Hardt & Rothblum 2010; Hardt, Ligett & McSherry 2012 (the mechanism without a memory).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from streamdp.kinds.workload.design import Choose, Design, DesignTests, Passed, rounds_for
from streamdp.kinds.workload.fitting.distribution import NoisyMarginal, Workload
from streamdp.kinds.workload.fitting.fitted import Fitting
from streamdp.kinds.workload.fitting.hypotheses import UNIFORM, Fit, HypothesisState
from streamdp.mechanisms.quantile_tree.sharpness import Relation
from streamdp.privacy.events import choice
from streamdp.privacy.filters import Measure
from streamdp.types import Entropy, IntArray, Json

FEWER, MORE = 1, 4
"""Rounds below and above the usual ones that a release may have where no value repeats."""

BETTER = 0.015
"""Share by which another number must be expected to be better than the usual one."""

LOOKING = 3
"""Of so many releases of one round that could be blind one looks: what is off today and what is
least known are seldom the same item. Chosen on random domains."""


@dataclass(frozen=True, slots=True, eq=False)
class DrawnWorkload:
    """A release: what was measured, and the distribution that follows. Public.

    Args:
        measured: Noisy counts, in the order they were drawn.
        fit: What they and past releases say of the batch.
        passed: With `online`, the items that were tested and found right, by their place.
    """

    measured: tuple[NoisyMarginal, ...]
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

    def design(self, memory: HypothesisState) -> Design:
        """The draws of the next release: how many depends on what past ones foretell."""
        if memory.leading() != UNIFORM:
            return self._design(cold=False, looking=_is_looking(memory))
        usual, errors = self._design(cold=True), memory.expected_errors(self.workload)
        if errors is None:
            return usual

        def foretold(each: Design) -> float:
            error = errors.average(each.rounds, each.round(each.course().price).variance)
            return error if each.rounds == usual.rounds else error * (1.0 + BETTER)

        return min(self._cold_designs(), key=foretold)

    def event(self, drawn: Design) -> Json:
        """Event of one record, however many rounds past releases lead to.

        At a price in epsilon all designs cost the same of it but not the same rho: were the drawn
        one booked, a sum of rho would depend on releases, and would bound no adversary who can
        steer them. At a price in rho all cost the same rho.
        """
        warm = [self._design(cold=False, looking=looking) for looking in (False, True)]
        every = *warm, self._design(cold=True), *self._cold_designs()
        designs = tuple(dict.fromkeys(every))
        if len(designs) == 1:
            return drawn.event()
        ways = [each.event() for each in designs]
        about = {name: ways[0][name] for name in ("mechanism", "choose")}
        return choice(ways, **about, drawn=designs.index(drawn))

    def _cold_designs(self) -> tuple[Design, ...]:
        """Return the designs of a release with no learned hypothesis; past releases choose one."""
        cold = self._design(cold=True)
        if not self._looks or self.rounds:
            return (cold,)
        usual = self._design(cold=False).rounds
        fewest, most = max(usual - FEWER, 1), min(usual + MORE, len(self.workload.items))
        return tuple(replace(cold, rounds=rounds) for rounds in range(fewest, most + 1))

    def _design(self, *, cold: bool, looking: bool = False) -> Design:
        """The design of a release; the number of tests is fixed, since it makes their margin."""
        if not self._looks or self.rounds or cold:
            rounds = self.rounds or self._rounds(cold=cold and self.choose != "online")
            turned = 0
        else:
            rounds = self._rounds(turning=True)
            turned = self._rounds(cold=True) if rounds > 1 else 0
        looks = None
        if self.choose == "auto" and not cold:
            looks = 0 if self._is_blind and not (looking and rounds == 1) else 1
        return Design(
            self.amount,
            rounds,
            self.relation,
            self.choose,
            self.tolerance,
            self.loss,
            turned,
            looks,
        )

    @property
    def _looks(self) -> bool:
        """Whether rounds may choose by a look at the batch."""
        return self.choose in ("auto", "private")

    @property
    def _is_blind(self) -> bool:
        """Whether all rounds of `auto` choose without the batch where the past foretells it."""
        if self.choose != "auto":
            return False
        rounds = self.rounds or self._rounds(turning=True)
        design = Design(self.amount, rounds, self.relation, "public", loss=self.loss)
        return design.is_good(self.workload, self.expected_rows)

    def _rounds(self, *, cold: bool = False, turning: bool = False) -> int:
        items = len(self.workload.items)
        return rounds_for(
            self.amount,
            self.expected_rows,
            self.relation,
            items,
            cold=cold,
            turning=turning,
            loss=self.loss,
        )

    def gate(self) -> DesignTests:
        """The tests of a release."""
        return self._design(cold=False).gate(len(self.workload.items))

    def fitting(self, memory: HypothesisState) -> Fitting:
        """Fits batches around a memory, as releases do."""
        warm = self._design(cold=False, looking=_is_looking(memory))
        return Fitting(self.workload, memory, self.choose == "public" or warm.looks == 0)

    def draw(
        self, design: Design, memory: HypothesisState, counts: Sequence[IntArray], entropy: Entropy
    ) -> DrawnWorkload:
        """Choose and measure, refitting in between. Total: any counts take the same path.

        Args:
            design: As `design` returned for this memory.
            memory: What past releases say.
            counts: Of the cells of every item. Private.
            entropy: Source of chance.

        Privacy: `amount` for one record. Each round is a choice, or a run of tests, and a
        measurement (`Design.choice`, `DesignTests.is_off`, `Design.measure`) that depend on the
        batch through earlier rounds' outputs alone besides: adaptive composition of `Design.event`.
        The price of a round, and whether it looks at the batch or is a measurement alone, may
        follow from them too, and all rounds cost `amount` whichever way they go: a sum of prices
        that is bounded on every way is a valid filter.
        """
        fitting = self.fitting(memory)
        before = DrawnWorkload((), fitting.fit(()))
        if self._looks:
            return self._chosen(design, fitting, counts, before, entropy)
        if design.choose == "online":
            before = self._tested(design, fitting, counts, before, entropy)
        drawn = before
        for place in fitting.schedule(
            before.fit, before.measured, design.variance, design.rounds - len(before.measured)
        ):
            drawn = _measured(design, fitting, drawn, place, counts, entropy)
        return drawn

    def _chosen(
        self,
        design: Design,
        fitting: Fitting,
        counts: Sequence[IntArray],
        drawn: DrawnWorkload,
        entropy: Entropy,
    ) -> DrawnWorkload:
        """Round after round; there may be more of them once the uniform hypothesis leads."""
        course = design.course()
        while course.rounds:
            each = design.round(course.price, course.blind)
            foretold = None
            if course.blind:
                (place,) = fitting.schedule(drawn.fit, drawn.measured, each.variance, 1)
            else:
                if drawn.fit.hypothesis == UNIFORM:
                    foretold = fitting.gains(drawn.measured, each.variance)
                place = each.choice(
                    self.workload, counts, drawn.fit.distribution, entropy, foretold
                )
            drawn = _measured(each, fitting, drawn, place, counts, entropy)
            course = course.after(turn=drawn.fit.hypothesis == UNIFORM)
        return drawn

    def _tested(
        self,
        design: Design,
        fitting: Fitting,
        counts: Sequence[IntArray],
        drawn: DrawnWorkload,
        entropy: Entropy,
    ) -> DrawnWorkload:
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


def _is_looking(memory: HypothesisState) -> bool:
    """Whether the next release looks at the batch, if it has one round that could be blind."""
    return memory.releases % LOOKING == 0


def _measured(
    design: Design,
    fitting: Fitting,
    drawn: DrawnWorkload,
    place: int,
    counts: Sequence[IntArray],
    entropy: Entropy,
) -> DrawnWorkload:
    """One more measurement, and the fit to all."""
    measured = (*drawn.measured, design.measure(place, counts[place], entropy))
    return replace(drawn, measured=measured, fit=fitting.fit(measured))
