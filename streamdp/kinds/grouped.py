"""A release kind for each of several public groups of a batch, from one scan and at one price."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from streamdp.kinds.charging import Group, disjoint
from streamdp.types import (
    Batch,
    Column,
    Entropy,
    ExpectsRows,
    History,
    Json,
    Measurement,
    Measures,
    Neighbours,
    Outcome,
    Plan,
    Query,
    ReadsReleases,
    ReleaseKind,
    Row,
    Rows,
    SharesGroups,
    Step,
    SumQuery,
    Sums,
    jobs_read,
    with_groups,
)


@dataclass(frozen=True, slots=True)
class GroupDraw:
    """The draw of one group, and how it was planned once the groups before it were drawn."""

    plan: Plan
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Grouped:
    """One kind for each public group, each with a learner state of its own.

    Groups are drawn one after the other, those of most expected rows first. Of kinds that share, a
    group is planned anew by what the releases of the groups before it show.

    Args:
        of: What is released of each group.
        by: Columns whose texts say which group a record is in.
        groups: The public groups, distinct; records of others do not count.
        neighbours: Relation that `of` is private for.
        own: What is released of groups that are expected to have other numbers of rows: the same
            question at the same price.

    Privacy: add/remove of one unit, pure epsilon. Let D have the unit's records r_1 … r_j, j ≤ k,
    and D' none of them, and let D_i = D without r_1 … r_i. Each record is in one group at most, so
    D_(i-1) and D_i differ in one record of one group g. The order of the groups is public. A draw
    reads the records of its own group, and of others what was drawn of them before it. Given that,
    the draw of a group other than g has the same law on both, and that of g, which costs the same
    whatever it was told, differs by a factor of e^(epsilon/k) at most. The law of all draws is the
    product of these, so it differs by no more; over the steps from D to D' it does by at most
    e^(j·epsilon/k) ≤ e^epsilon, however the records lie in groups: the engine bounds them over the
    whole batch. In the ledger: `group` of k over `parallel` of the distinct draws (groups may be
    drawn in several ways), so rho is that of the worst; the digest of priors is of those before any
    group is drawn. Under `substitute` a record could leave one group and enter another, two steps
    in place of one, so that relation is refused.

    Raises:
        ValueError: The relation is not add-remove.
    """

    of: ReleaseKind
    by: tuple[str, ...]
    groups: tuple[Group, ...]
    neighbours: Neighbours = "add-remove"
    own: Mapping[Group, ReleaseKind] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.neighbours != "add-remove":
            raise ValueError("groups need add-remove neighbours")

    @property
    def name(self) -> str:
        """The kind that is released of each group."""
        return self.of.name

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the group, then those of the kind but for any of the same name."""
        others = (column for column in self.of.columns if column.name not in self.by)
        return (*(Column(name, "text", "label") for name in self.by), *others)

    def expecting(self, rows: Rows) -> Grouped:
        """Return the kind in which each named group has so many records."""
        own = dict(self.own)
        for group in (group for group in self.groups if group in rows):
            one = cast("ExpectsRows", self._of(group))
            own[group] = one.expecting({(): rows[group]})
        return replace(self, own=own)

    @property
    def jobs(self) -> tuple[str, ...]:
        """Jobs whose releases the kind reads; none of most kinds."""
        return jobs_read(self.of)

    def informed(self, past: Mapping[str, tuple[Row, ...]]) -> ReleaseKind:
        """The kind for one batch: each group is told the rows of its own, and those of no group."""
        if not self.jobs:
            return self
        own = {}
        for group in self.groups:
            told = {job: rows_of(rows, self.by, group) for job, rows in past.items()}
            own[group] = cast("ReadsReleases", self._of(group)).informed(told)
        return replace(self, own=own)

    def signature(self) -> Json:
        """Return one group's signature and the columns; the list of groups may grow."""
        return {**self.of.signature(), "by": list(self.by)}

    def init(self) -> Json:
        """No state of any group."""
        return {}

    def plan(self, state: Json, batch: Batch) -> Plan:
        """One question for all groups, and the price of one of them.

        Privacy: the event of draws on a whole unit is that of any one group: it holds for all
        groups together.
        """
        plans = tuple(
            self._of(group).plan(self._state_of(state, group), batch) for group in self.groups
        )
        query = with_groups(_together(plans), self.by, self.groups)
        event = disjoint([plan.event for plan in plans], self.by)
        return Plan(query, event, plans, plans[0].unit_event)

    def draw(self, plan: Plan, statistic: Sequence[Any], entropy: Entropy) -> Outcome:
        """The rows of each group in turn, with its columns in front.

        Privacy: a group whose question is its own is drawn from its answer to that one alone. What
        a group is told of others is what was drawn of them.
        """
        answers = tuple(_answers(plan.mechanism, statistic))
        drawn: dict[int, GroupDraw] = {}
        shown: tuple[Any, ...] = ()
        for index in self._order():
            one, inner = self._of(self.groups[index]), plan.mechanism[index]
            if not isinstance(one, SharesGroups):
                drawn[index] = GroupDraw(inner, one.draw(inner, answers[index], entropy))
                continue
            inner = one.told(inner, shown)
            outcome = one.draw(inner, answers[index], entropy)
            drawn[index], shown = GroupDraw(inner, outcome), (*shown, *one.shown(inner, outcome))
        each = tuple(drawn[index] for index in range(len(self.groups)))
        return Outcome(self._rows(one.outcome for one in each), each)

    def _order(self) -> list[int]:
        """Groups of most expected rows first, else as they are listed; public."""

        def rows(index: int) -> int:
            one = self._of(self.groups[index])
            return (one.expected_rows or 0) if isinstance(one, SharesGroups) else 0

        return sorted(range(len(self.groups)), key=rows, reverse=True)

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """Tell each group's learner what was released of it; others keep what they know."""
        learned = dict(state)
        for group, drawn in zip(self.groups, outcome.auxiliary, strict=True):
            before = self._state_of(state, group)
            learned[_key(group)] = self._of(group).learn(before, drawn.plan, drawn.outcome)
        return learned

    def measured(self, plan: Plan, outcome: Outcome) -> tuple[Measurement, ...]:
        """Return what was measured of each group, group after group."""
        found: list[Measurement] = []
        for group, drawn in zip(self.groups, outcome.auxiliary, strict=True):
            one = self._of(group)
            if isinstance(one, Measures):
                measured = one.measured(drawn.plan, drawn.outcome)
                found += [of_group(each, self.by, group) for each in measured]
        return tuple(found)

    def replayed(self, state: Json, batch: Batch, measurements: tuple[Measurement, ...]) -> Json:
        """Return the state after a release that was measured so.

        Groups that it did not have keep what they know. Each is told what was drawn of those
        before it, as when they were drawn. None if it teaches no group.
        """
        learned, shown = dict[str, Json](), tuple[Any, ...]()
        for index in self._order():
            group = self.groups[index]
            one, before = self._of(group), self._state_of(state, group)
            own = tuple(
                of_none(each)
                for each in measurements
                if each.terms.group == group and each.terms.question.get("by") == list(self.by)
            )
            if not own or not isinstance(one, Measures):
                continue
            if isinstance(one, SharesGroups):
                after, evidence = one.replayed_beside(before, batch, own, shown)
                shown = (*shown, *evidence)
            else:
                after = one.replayed(before, batch, own)
            if after is not None:
                learned[_key(group)] = after
        return {**state, **learned} if learned else None

    def publish(self, state: Json, outcome: Outcome) -> Outcome:
        """Rows of each group, with its labels."""
        return Outcome(
            self._rows(
                self._of(group).publish(self._state_of(state, group), drawn.outcome)
                for group, drawn in zip(self.groups, outcome.auxiliary, strict=True)
            )
        )

    def parts(self) -> tuple[str, ...]:
        """Return the names of the groups."""
        return tuple(", ".join(group) for group in self.groups)

    def part(self, name: str, history: History) -> tuple[object, History]:
        """Return the kind of one group, and the history of that group alone."""
        group = self.groups[self.parts().index(name)]
        steps = tuple(
            Step(
                step.batch,
                self._state_of(step.before, group),
                rows_of(step.rows, self.by, group),
            )
            for step in history.steps
        )
        rows = rows_of(history.rows, self.by, group)
        state = self._state_of(history.state, group)
        return self._of(group), History(steps, state, history.batch, rows)

    def _rows(self, outcomes: Iterable[Outcome]) -> tuple[Row, ...]:
        rows: list[Row] = []
        for group, outcome in zip(self.groups, outcomes, strict=True):
            about = dict(zip(self.by, group, strict=True))
            rows += [{**about, **row, **about} for row in outcome.rows]
        return tuple(rows)

    def _state_of(self, state: Json, group: Group) -> Json:
        return state.get(_key(group)) or self._of(group).init()

    def _of(self, group: Group) -> ReleaseKind:
        return self.own.get(group, self.of)


def rows_of(rows: Sequence[Row], by: tuple[str, ...], group: Group) -> tuple[Row, ...]:
    """The rows of a release that are of a group, or that do not say of which they are."""
    values = tuple(zip(by, group, strict=True))
    return tuple(row for row in rows if all(row.get(name, text) == text for name, text in values))


def of_group(measured: Measurement, by: tuple[str, ...], group: Group) -> Measurement:
    """A measurement, of a group."""
    question = {**measured.terms.question, "by": list(by)}
    return replace(measured, terms=replace(measured.terms, question=question, group=group))


def of_none(measured: Measurement) -> Measurement:
    """A measurement of a group, as the kind of that group knows it."""
    question = {name: said for name, said in measured.terms.question.items() if name != "by"}
    return replace(measured, terms=replace(measured.terms, question=question, group=()))


def _together(plans: Sequence[Plan]) -> Query:
    """One question for all groups; of groups with sums of their own, the sums of all."""
    asked = tuple(dict.fromkeys(plan.query for plan in plans))
    sums = [query for query in asked if isinstance(query, SumQuery)]
    if len(asked) < 2 or len(sums) < len(asked):
        return asked[0]
    return replace(sums[0], terms=tuple(term for query in sums for term in query.terms))


def _answers(plans: Sequence[Plan], statistic: Sequence[Any]) -> Iterator[Any]:
    """The answer to each group's own question, off that to all of them together."""
    starts: dict[SumQuery, int] = {}
    end = 0
    for plan, answer in zip(plans, statistic, strict=True):
        if not isinstance(plan.query, SumQuery):
            yield answer
            continue
        size = len(plan.query.terms)
        if plan.query not in starts:
            starts[plan.query], end = end, end + size
        start = starts[plan.query]
        yield Sums(answer.values[start : start + size])


def _key(group: Group) -> str:
    return json.dumps(group)
