"""How experts are simulated: what is followed loses more than the best expert of each batch."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from streamdp.kinds.experts.build import losses
from streamdp.kinds.experts.kind import DrawnLosses, Experts
from streamdp.kinds.experts.losses import RuleLosses
from streamdp.kinds.experts.section import ExpertsSection
from streamdp.kinds.rules import synthetic
from streamdp.kinds.study import Stream, Study
from streamdp.types import Batch, Entropy, FloatArray, Json, Outcome, Plan, Sums, TableCounts

Statistic = TableCounts | Sums


class ExpertsStudy(Study):
    """Losses per expected record of what was followed, above those of the batch's best."""

    measure = "excess loss"
    streams: tuple[str, ...] = synthetic.NAMES
    variants: tuple[str, ...] = ("experts",)

    def synthetic(
        self, section: ExpertsSection, stream: str, seed: int, length: int | None
    ) -> Stream:
        """The stream of a name in `NAMES`."""
        rows, days = section.expected_rows, length or synthetic.LENGTH
        made = losses(section, "duckdb")
        counts: tuple[Statistic, ...]
        if isinstance(made, RuleLosses):
            counts = tuple(synthetic.rule_tables(made.grid, stream, rows, seed, days))
        else:
            parts = synthetic.losses(made.count, stream, rows, seed, days)
            counts = synthetic.sums(parts, made.denominator)
        return Stream(stream, synthetic.batches(stream, days), counts, synthetic=True)

    def simulated(self, kind: Experts, stream: Stream) -> Experts:
        """The kind, which also says what was followed on each batch."""
        return Playing(**{each.name: getattr(kind, each.name) for each in fields(kind)})

    def truth(self, kind: Experts, statistic: Statistic) -> Outcome:
        """The losses of the batch."""
        rows = tuple({"loss": float(loss)} for loss in _losses(kind, statistic))
        return Outcome(rows, (DrawnLosses((), None, 0.5), None))

    def errors(self, kind: Experts, statistic: Statistic, outcome: Outcome) -> FloatArray:
        """Excess loss of what was followed, shape (1,)."""
        lost, (_, weights) = _losses(kind, statistic), outcome.auxiliary
        return np.array([weights @ lost - lost.min()])


class Playing(Experts):
    """Hands on, with what was drawn, the weights of what was followed on the batch."""

    def plan(self, state: Json, batch: Batch) -> Plan:
        """The plan of the kind, with the weights of what is followed."""
        plan = super().plan(state, batch)
        return Plan(plan.query, plan.event, (plan.mechanism, self._followed_weights(state)))

    def draw(self, plan: Plan, statistic: Statistic, entropy: Entropy) -> Outcome:
        """The draw of the kind, with these weights."""
        noise, weights = plan.mechanism
        drawn = super().draw(Plan(plan.query, plan.event, noise), statistic, entropy)
        return Outcome(drawn.rows, (drawn.auxiliary, weights))

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """The next state of the kind."""
        drawn, _ = outcome.auxiliary
        return super().learn(state, plan, Outcome(outcome.rows, drawn))

    def _followed_weights(self, state: Json) -> FloatArray:
        """All weight on what was followed; where actions are drawn, their chances."""
        weights = self.learner.weights(self.learner.restored(state["learner"]))
        if self.action == "drawn" or state.get("chosen") is None:
            return weights
        return np.asarray(np.eye(len(weights))[state["chosen"]])


def _losses(kind: Experts, statistic: Statistic) -> FloatArray:
    """Losses of each expert per expected record, shape (k,)."""
    level = kind.losses.level(statistic)
    start = 0.5 if level is None else level / kind.expected_rows
    numbers = np.array(kind.losses.integers(statistic), dtype=float)
    return np.asarray(start + kind.losses.matrix @ numbers / kind.expected_rows)
