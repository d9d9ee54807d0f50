"""A release kind for each of several public groups of a batch, from one scan and at one price."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from streamdp.privacy.events import parallel
from streamdp.releases.quantiles import Quantiles
from streamdp.releases.unit_charge import charge_of_unit
from streamdp.types import Batch, CellCounts, Entropy, Json, Outcome, Plan, Row

Group = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grouped:
    """Quantiles of each public group, each with a learner state of its own.

    Args:
        of: What is released of each group; its `expected_rows` are those of one group.
        by: Columns whose texts say which group a record is in.
        groups: The public groups, distinct; records of others do not count.

    Privacy: add/remove of one unit, pure epsilon. Let D have the unit's records r_1 … r_j, j ≤ k,
    and D' none of them, and let D_i = D without r_1 … r_i. Each record is in one group at most, so
    D_(i-1) and D_i differ in one record of one group, and the draws of all other groups, which read
    their own records alone, have the same law on both. The ratio of the laws of all draws together
    is then that of one tree, at most e^(epsilon/k); over the steps from D to D' at most
    e^(j·epsilon/k) ≤ e^epsilon, however the records lie in groups: the engine bounds them over the
    whole batch. In the ledger: `group` of k over `parallel` of the distinct trees (groups may be
    drawn in several ways), so rho is that of the worst; bought gradients stand beside it
    (`Quantiles.plan`). Under `substitute` a record could leave one group and enter another, two
    steps in place of one, so that relation is refused.

    Raises:
        ValueError: The relation is not add-remove.
    """

    of: Quantiles
    by: tuple[str, ...]
    groups: tuple[Group, ...]

    def __post_init__(self) -> None:
        if self.of.relation != "add-remove":
            raise ValueError("groups need add-remove neighbours")

    @property
    def name(self) -> str:
        """The kind that is released of each group."""
        return self.of.name

    def signature(self) -> Json:
        """That of one group, and the columns; a list of groups may grow without forgetting."""
        return {**self.of.signature(), "by": list(self.by)}

    def init(self) -> Json:
        """No state of any group."""
        return {}

    def plan(self, state: Json, batch: Batch) -> Plan:
        """One question, and a plan for each group under what its own releases have shown."""
        count = len(self.groups)
        plans = tuple(
            self.of.plan(self._state_of(state, each), batch, count) for each in self.groups
        )
        priors = json.dumps([plan.mechanism.event["prior"] for plan in plans])
        about = {"prior": hashlib.sha256(priors.encode()).hexdigest()}
        event = parallel(_distinct(plans), by=list(self.by), groups=count, **about)
        query = replace(plans[0].query, by=self.by, groups=self.groups)
        gradient = plans[0].mechanism.gradient
        bought = gradient and gradient.event()
        return Plan(query, charge_of_unit(event, self.of.rows_of_unit(), bought), plans)

    def draw(self, plan: Plan, statistic: Sequence[CellCounts], entropy: Entropy) -> Outcome:
        """The rows of each group in turn, with its columns in front."""
        rows: list[Row] = []
        told: list[float] = []
        for group, inner, counts in zip(self.groups, plan.mechanism, statistic, strict=True):
            about = dict(zip(self.by, group, strict=True))
            drawn = self.of.draw(inner, counts, entropy)
            rows += [{**about, **row} for row in drawn.rows]
            told += drawn.told
        return Outcome(tuple(rows), tuple(told))

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """Tell each group's learner what was released of it; others keep what they know."""
        learned = dict(state)
        for group, inner, part in zip(
            self.groups, plan.mechanism, self._parts(outcome), strict=True
        ):
            learned[_key(group)] = self.of.learn(self._state_of(state, group), inner, part)
        return learned

    def report(self, state: Json, outcome: Outcome) -> Outcome:
        """What is published of each group."""
        rows: list[Row] = []
        for group, part in zip(self.groups, self._parts(outcome), strict=True):
            rows += self.of.report(self._state_of(state, group), part).rows
        return Outcome(tuple(rows))

    def rank_error(self) -> float | None:
        """As of one group."""
        return self.of.rank_error()

    def epsilon_needed(self, rank_error: float) -> Fraction | None:
        """As of one group: disjoint groups share one price."""
        return self.of.epsilon_needed(rank_error)

    def _state_of(self, state: Json, group: Group) -> Json:
        return state.get(_key(group)) or self.of.init()

    def _parts(self, outcome: Outcome) -> list[Outcome]:
        count = len(self.groups)
        rows, told = len(outcome.rows) // count, len(outcome.told) // count
        return [
            Outcome(
                outcome.rows[rows * number : rows * (number + 1)],
                outcome.told[told * number : told * (number + 1)],
            )
            for number in range(count)
        ]


def _distinct(plans: Sequence[Plan]) -> list[Json]:
    """The events of the groups without what tells their priors apart, each once."""
    found: list[Json] = []
    for plan in plans:
        whole = plan.mechanism.event.items()
        event = {name: each for name, each in whole if name not in ("prior", "drawn")}
        if event not in found:
            found.append(event)
    return found


def _key(group: Group) -> str:
    return json.dumps(group)
