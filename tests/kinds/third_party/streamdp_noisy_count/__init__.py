"""A release kind of another package: how many records of a batch have a number in a column."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from streamdp.kinds.additive import AdditiveAccuracy, AdditiveKind, AdditiveStudy
from streamdp.kinds.section import CheckContext, Problem, ReleaseSection
from streamdp.kinds.spec import BuildContext, KindSpec
from streamdp.types import CellCounts, CellQuery, Column, Grid, Query, Row


class NoisyCountSection(ReleaseSection):
    published: ClassVar[frozenset[str]] = frozenset({"value"})
    measures_of_price = frozenset({"epsilon", "rho"})
    kind: Literal["noisy-count"]
    column: str


@dataclass(frozen=True, slots=True)
class NoisyCount(AdditiveKind):
    column: str
    where: str | None

    name = "noisy-count"
    columns = (Column("value", "integer", "value", "records"),)
    sensitivity = 1  # one record more is one more in the only cell

    def question(self) -> Query:
        return CellQuery(self.column, Grid(Fraction(1), 0, 0), where=self.where)

    def integers(self, statistic: CellCounts) -> Sequence[int]:
        return [int(statistic.counts.sum())]

    def rows(self, integers: Sequence[int]) -> tuple[Row, ...]:
        return ({"value": integers[0]},)


def check(section: NoisyCountSection, context: CheckContext) -> Iterator[Problem]:
    if context.neighbours == "substitute":
        yield Problem(("kind",), "the number of records is public here", "count a condition")


def build(section: NoisyCountSection, context: BuildContext) -> NoisyCount:
    return NoisyCount(context.price_of_record(section), section.column, section.where)


SPEC = KindSpec(
    "noisy-count", NoisyCountSection, check, build, AdditiveAccuracy(), study=AdditiveStudy
)
