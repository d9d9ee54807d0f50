"""A release kind of another package: how many records a batch has, with noise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from streamdp.config.base.releases import CheckContext, Problem, ReleaseSection
from streamdp.kinds.spec import BuildContext, KindSpec
from streamdp.kinds.study import Step, Stream
from streamdp.privacy.discrete_laplace import discrete_laplace
from streamdp.privacy.events import pure, sequence
from streamdp.types import (
    Batch,
    CellCounts,
    CellQuery,
    Column,
    Entropy,
    FloatArray,
    Grid,
    Json,
    Outcome,
    Plan,
    Query,
)


class NoisyCountSection(ReleaseSection):
    """The records of every batch whose column is a number."""

    published: ClassVar[frozenset[str]] = frozenset({"value"})
    kind: Literal["noisy-count"]
    column: str


@dataclass(frozen=True, slots=True)
class NoisyCount:
    """Discrete Laplace noise of scale sensitivity/epsilon."""

    column: str
    epsilon: Fraction
    where: str | None
    name: ClassVar[str] = "noisy-count"
    columns: ClassVar[tuple[Column, ...]] = (Column("value", "integer", "value", "records"),)

    def signature(self) -> Json:
        return {"column": self.column}

    def init(self) -> Json:
        return {"releases": 0}

    def plan(self, state: Json, batch: Batch) -> Plan:
        event = sequence([pure(self.epsilon)], mechanism="noisy-count", column=self.column)
        query = CellQuery(self.column, Grid(Fraction(1), 0, 0), where=self.where)
        return Plan(query, event, 1 / self.epsilon)

    def draw(self, plan: Plan, statistic: CellCounts, entropy: Entropy) -> Outcome:
        records = int(statistic.counts.sum())
        return Outcome(({"value": records + discrete_laplace(plan.mechanism, entropy)},))

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        return {"releases": state["releases"] + 1}

    def publish(self, state: Json, outcome: Outcome) -> Outcome:
        return outcome


def check(section: NoisyCountSection, context: CheckContext) -> Iterator[Problem]:
    if context.neighbours == "substitute":
        yield Problem(("kind",), "the number of records is public here", "count a condition")


def build(section: NoisyCountSection, context: BuildContext) -> NoisyCount:
    return NoisyCount(section.column, context.epsilon_of_record(section), section.where)


class Deviation:
    """Of the noise."""

    def expected(self, kind: NoisyCount) -> Mapping[str, float | None]:
        return {"deviation": round(2**0.5 / float(kind.epsilon), 3)}

    def epsilon_for(self, kind: NoisyCount, error: float) -> Fraction:
        return Fraction(2**0.5 / error).limit_denominator(1000)


class CountStudy:
    """On tables alone; the error is that of the count."""

    measure = "count error"
    streams: tuple[str, ...] = ()
    variants: tuple[str, ...] = ("plain",)

    def variant(self, section: NoisyCountSection, name: str, rows: int) -> NoisyCountSection:
        return section

    def on_stream(self, section: NoisyCountSection, stream: str) -> NoisyCountSection:
        return section

    def synthetic(
        self, section: NoisyCountSection, stream: str, seed: int, length: int | None
    ) -> Stream:
        raise NotImplementedError

    def question(self, kind: NoisyCount, batch: Batch) -> Query:
        return kind.plan(kind.init(), batch).query

    def numbers(self, section: NoisyCountSection) -> tuple[str, ...]:
        return (section.column,)

    def rows(self, statistic: CellCounts) -> int:
        return int(statistic.counts.sum())

    def simulated(self, kind: NoisyCount, stream: Stream) -> NoisyCount:
        return kind

    def taught(self, kind: NoisyCount) -> NoisyCount:
        return kind

    def truth(self, kind: NoisyCount, statistic: CellCounts) -> Outcome:
        return Outcome(({"value": self.rows(statistic)},))

    def errors(self, kind: NoisyCount, statistic: CellCounts, outcome: Outcome) -> FloatArray:
        return np.array([abs(float(outcome.rows[0]["value"] or 0) - self.rows(statistic))])

    def trace(self, kind: NoisyCount, steps: Iterable[Step]) -> None:
        return None


SPEC = KindSpec("noisy-count", NoisyCountSection, check, build, Deviation(), None, CountStudy)
