"""Release kind `workload`: consistent answers to many counting queries over public axes.

Lessons follow from learned states alone; measurements, the noisy counts of the cells of each
measured item, from what was drawn and from public facts alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from streamdp import types
from streamdp.kinds.axes import labels
from streamdp.kinds.workload import answers
from streamdp.kinds.workload.answers import RECORD
from streamdp.kinds.workload.design import Design, fitted_variance
from streamdp.kinds.workload.fitting import distribution
from streamdp.kinds.workload.fitting.hypotheses import BIAS, HypothesisState, from_json, to_json
from streamdp.kinds.workload.weights import DrawnWorkload, PrivateWeights
from streamdp.mechanisms.noise import law_of, noise_of
from streamdp.types import (
    Batch,
    Column,
    Dimension,
    Entropy,
    History,
    IntArray,
    Json,
    Lesson,
    Measurement,
    MeasurementTerms,
    Outcome,
    Plan,
    Row,
    TableCounts,
    TableQuery,
)

Publish = Literal["answers", "records", "both"]


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """Input of `draw`, fixed before data is touched."""

    design: Design
    memory: HypothesisState


@dataclass(frozen=True, slots=True)
class WorkloadRelease:
    """Marginals and predicates of a public domain, by private multiplicative weights.

    Args:
        dimensions: The axes.
        names: Of the items of the workload.
        mechanism: How they are drawn and learned.
        where: SQL condition; records of which it is not true do not count.
        raw: Whether to publish the noisy counts beside the answers.
        published: Answers, synthetic records, or both.
        learns: Whether releases learn from earlier ones.
        counted: What an answer is a number of.
    """

    dimensions: tuple[Dimension, ...]
    names: tuple[str, ...]
    mechanism: PrivateWeights
    where: str | None = None
    raw: bool = False
    published: Publish = "answers"
    learns: bool = True
    counted: str = "records"

    name: ClassVar[str] = "workload"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The answer's name, the cells of its axes, and its value between two ends."""
        alone = self.published == "records"
        return answers.columns(self.dimensions, self.raw, alone, self._online, self.counted)

    def signature(self) -> Json:
        """Axes and items: what was learned of others would mislead."""
        axes = [self.axis(place) for place in range(len(self.dimensions))]
        items = [
            [name, list(item.axes), None if item.labels is None else item.labels.tolist()]
            for name, item in zip(self.names, self.mechanism.workload.items, strict=True)
        ]
        digest = hashlib.sha256(json.dumps([axes, items]).encode()).hexdigest()
        return {"workload": digest, "where": self.where}

    def axis(self, place: int) -> Json:
        """Name, source and cells of an axis."""
        axis = self.dimensions[place]
        return [axis.name, axis.sql, list(labels(axis)), axis.nulls, *_clock(axis)]

    def init(self) -> Json:
        """The uniform distribution over the expected rows."""
        return to_json(HypothesisState.empty(self.mechanism.workload, self.mechanism.expected_rows))

    def query(self) -> TableQuery:
        """All marginals that the items are counted from, in one scan."""
        return TableQuery(self.dimensions, self._marginals(), self.where)

    def plan(self, state: Json, batch: Batch) -> Plan:
        """The question, and the rounds of the release."""
        mechanism = self.mechanism
        memory = from_json(state, mechanism.workload)
        if not self.learns:
            memory = HypothesisState.cold(mechanism.workload, mechanism.expected_rows)
        design = self.mechanism.design(memory)
        prior = hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
        return Plan(
            self.query(),
            {**self.mechanism.event(design), "prior": prior},
            WorkloadPlan(design, memory),
        )

    def draw(self, plan: Plan, statistic: TableCounts, entropy: Entropy) -> Outcome:
        """Choose, measure and fit.

        Privacy: `PrivateWeights.draw` alone sees the statistic; answers and synthetic records
        follow from what it returns.
        """
        known: WorkloadPlan = plan.mechanism
        counts = self.counts(statistic)
        drawn = self.mechanism.draw(known.design, known.memory, counts, entropy)
        usual = known.memory.total if known.memory.releases else None
        return Outcome(self._rows(drawn, entropy, usual), drawn)

    def counts(self, statistic: TableCounts) -> list[IntArray]:
        """Exact counts of the items. Private."""
        tables = dict(zip(self._marginals(), statistic.marginals, strict=True))
        return [item.counts(tables[item.axes]) for item in self.mechanism.workload.items]

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """State after a release; the same state if the kind does not learn."""
        if not self.learns:
            return state
        known: WorkloadPlan = plan.mechanism
        drawn: DrawnWorkload = outcome.auxiliary
        return to_json(known.memory.after(drawn.fit))

    def measured(self, plan: Plan, outcome: Outcome) -> tuple[types.Measurement, ...]:
        """Return the noisy counts of each measured item, in the order of the rounds.

        Privacy: which items are measured are outputs of the choices or the tests, and their counts
        those of `Design.measure`. Scores and the noise of tests are no output.
        """
        return tuple(measured(self, outcome.auxiliary))

    def replayed(
        self, state: Json, batch: Batch, measurements: tuple[types.Measurement, ...]
    ) -> Json:
        """Return the state after a release that was measured so; None if it teaches nothing."""
        return replayed(self, state, measurements) if self.learns else None

    def lessons(self, history: History) -> Sequence[Lesson]:
        """Return what past releases taught, from releases and learned states alone."""
        return tuple(lessons(self, history))

    def publish(self, state: Json, outcome: Outcome) -> Outcome:
        """The answers as they were drawn."""
        return Outcome(outcome.rows)

    def cell_name(self, cell: int) -> str:
        """Name of a cell of the first item."""
        item = self.mechanism.workload.items[0]
        if item.labels is not None:
            return self.names[0] if cell else f"not {self.names[0]}"
        places = np.unravel_index(cell, item.shape)
        return ", ".join(
            labels(self.dimensions[axis])[int(place)]
            for axis, place in zip(item.axes, places, strict=True)
        )

    def _rows(self, drawn: DrawnWorkload, entropy: Entropy, usual: float | None) -> tuple[Row, ...]:
        found = tuple[Row, ...]()
        if self.published != "records":
            found = answers.rows(
                self.mechanism.workload,
                self.names,
                self.dimensions,
                drawn,
                self.raw,
                self._online,
                usual,
            )
        if self.published == "answers":
            return found
        most = max(answers.FEW_RECORDS, answers.TIMES_EXPECTED * self.mechanism.expected_rows)
        made = answers.records(self.dimensions, drawn.fit.distribution, entropy, most)
        return made if not found else (*found, *({"answer": RECORD, **each} for each in made))

    @property
    def _online(self) -> bool:
        return self.mechanism.choose == "online"

    def _marginals(self) -> tuple[tuple[int, ...], ...]:
        """Axes of all items, each once."""
        return tuple(dict.fromkeys(item.axes for item in self.mechanism.workload.items))


def _clock(axis: Dimension) -> list[str]:
    """What tells parts of times from each other, and those of one zone from those of another."""
    return [] if axis.clock is None else [axis.clock.part, axis.clock.zone]


MEANINGS = (
    ("uniform", "nothing repeats: all cells of an axis are alike"),
    ("slow", "the running average of past releases"),
    ("last", "the release before"),
)


def lessons(kind: WorkloadRelease, history: History) -> Iterator[Lesson]:
    """Return what past releases taught a workload."""
    memory = from_json(history.state, kind.mechanism.workload)
    if not kind.learns or not memory.releases:
        return
    ahead = [each + bias for each, bias in zip(memory.evidence, BIAS.tolist(), strict=True)]
    leading = memory.leading()
    yield Lesson(
        "What the next batch is taken to be like",
        "Each noisy count that is released is a test of all three. Evidence is in nats behind the"
        " best, with a head start of the running average. The leader is what answers start from;"
        " the first counts of a batch may overrule it.",
        tuple(
            {
                "hypothesis": name,
                "evidence": round(nats - max(ahead), 3),
                "leads": "yes" if place == leading else "",
                "meaning": meaning,
            }
            for place, ((name, meaning), nats) in enumerate(zip(MEANINGS, ahead, strict=True))
        ),
    )
    shares = memory.concentration.of_items(kind.mechanism.workload).tolist()
    yield Lesson(
        "How concentrated the items are",
        "0 where the records of an item are spread evenly, more where few cells hold most: what is"
        " concentrated is measured first.",
        tuple(
            {"item": name, "concentration": float(f"{share:.4g}")}
            for name, share in zip(kind.names, shares, strict=True)
        ),
    )
    yield Lesson(
        "How many records the next batch is expected to have",
        "The running average of the totals that releases showed.",
        ({"records": round(memory.total, 1), "releases": memory.releases},),
    )


def measured(kind: WorkloadRelease, drawn: DrawnWorkload) -> Iterator[Measurement]:
    """The counts of each item that was measured; one may be measured twice."""
    mechanism = kind.mechanism
    for number, each in enumerate(drawn.measured):
        assert each.noise is not None, "what is drawn has noise"  # noqa: S101
        law = law_of(each.noise)
        terms = MeasurementTerms(
            "table",
            _question(kind, each.place),
            part=kind.names[each.place],
            stage=number,
            noise=law,
            share=law.amount / mechanism.amount,
            relation=mechanism.relation,
        )
        yield Measurement(terms, numbers=tuple(map(int, each.values.tolist())))


def replayed(kind: WorkloadRelease, state: Json, measurements: Sequence[Measurement]) -> Json:
    """The state after a release, from items that are still there; None if none is."""
    workload = kind.mechanism.workload
    found = []
    for each in measurements:
        place = kind.names.index(each.terms.part) if each.terms.part in kind.names else None
        if place is None or each.terms.question != _question(kind, place):
            continue
        assert each.terms.noise is not None, "counts have noise"  # noqa: S101
        noise = noise_of(each.terms.noise)
        values = np.array(each.numbers, dtype=np.float64)
        found.append(distribution.NoisyMarginal(place, values, fitted_variance(noise), noise))
    if not found:
        return None
    memory = from_json(state, workload)
    return to_json(memory.after(kind.mechanism.fitting(memory).fit(tuple(found))))


def _question(kind: WorkloadRelease, place: int) -> Json:
    """The axes of an item, the cells that it is a partition of, and which records count."""
    item = kind.mechanism.workload.items[place]
    about: Json = {"axes": [kind.axis(axis) for axis in item.axes]}
    about |= {} if item.labels is None else {"cells": item.labels.tolist()}
    return about | ({} if kind.where is None else {"where": kind.where})
