"""Release kind `quantiles`: sorted private quantiles of one column of a batch."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from streamdp.learning.last_release import LastRelease
from streamdp.mechanisms.tree import QuantileTree
from streamdp.privacy.amounts import nano_up
from streamdp.privacy.events import epsilon_of, rho_of
from streamdp.types import (
    Batch,
    CellCounts,
    Charge,
    Entropy,
    Grid,
    Json,
    Outcome,
    Plan,
    Prior,
    Query,
)


@dataclass(frozen=True, slots=True)
class QuantilePlan:
    """What `draw` needs, fixed before data is touched."""

    tree: QuantileTree
    priors: tuple[Prior, ...]


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Quantiles of a column, drawn by the quantile tree under learned priors.

    Args:
        column: Name of the column.
        quantiles: Targets, exact, strictly increasing, in (0, 1).
        epsilon: Price of one release.
        grid: Public cells.
        learner: What makes priors of past releases.
    """

    column: str
    quantiles: tuple[Fraction, ...]
    epsilon: Fraction
    grid: Grid
    learner: LastRelease

    name: ClassVar[str] = "quantiles"

    def signature(self) -> Json:
        """Column, targets and learner: a state learned for others would mislead."""
        targets = [str(quantile) for quantile in self.quantiles]
        return {"column": self.column, "quantiles": targets, **self.learner.describe()}

    def init(self) -> Json:
        """The learner's first state."""
        return self.learner.init()

    def plan(self, state: Json, batch: Batch) -> Plan:
        """Priors from the state; question and charge from the configuration."""
        tree = QuantileTree(self.quantiles, self.epsilon, self.grid)
        priors = self.learner.priors(state, len(self.quantiles))
        described = json.dumps([prior.describe() for prior in priors], sort_keys=True)
        event = tree.event() | {"prior": hashlib.sha256(described.encode()).hexdigest()}
        charge = Charge(event, nano_up(epsilon_of(event)), nano_up(rho_of(event)))
        return Plan(Query(self.column, self.grid), charge, QuantilePlan(tree, priors))

    def draw(self, plan: Plan, statistic: CellCounts, entropy: Entropy) -> Outcome:
        """One row a quantile.

        Privacy: add/remove of one record, pure epsilon; `QuantileTree.draw` has the argument.
        Values are points of the public grid.
        """
        mechanism: QuantilePlan = plan.mechanism
        cells = mechanism.tree.draw(statistic, mechanism.priors, entropy)
        rows = zip(self.quantiles, cells, strict=True)
        return Outcome(
            tuple({"quantile": float(q), "value": self.grid.value(cell)} for q, cell in rows)
        )

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """Tell the learner what was released."""
        return self.learner.learn(state, tuple(float(row["value"] or 0) for row in outcome.rows))
