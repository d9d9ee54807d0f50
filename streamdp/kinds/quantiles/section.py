"""The section of a release of quantiles."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from streamdp.kinds.quantiles.prior_section import Guess, LearnerName, PriorSection
from streamdp.kinds.section import ReleaseSection
from streamdp.privacy.filters import Measure
from streamdp.sections.expressions import Derived
from streamdp.sections.section import Section
from streamdp.sections.values import PositiveRational, Rational
from streamdp.types import Row

MOST_CELLS = 2**46
"""Cells lie within plus or minus this, so that fine points stay exact integers of a float."""

UNBOUNDED_CELLS = 2**40
"""Range of cells of a column without bounds."""

NAMED_QUANTILES = {
    "median": [Fraction(1, 2)],
    "quartiles": [Fraction(i, 4) for i in range(1, 4)],
    "deciles": [Fraction(i, 10) for i in range(1, 10)],
}


class Mechanism(Section):
    """How the quantiles are drawn; `mechanism: auto` is the choice of a public table."""

    branching: Annotated[int, Field(ge=2, le=1000)] | Literal["auto"] = Field(
        default=2,
        description="Number of parts into which a node of the tree of quantiles cuts its region; or"
        " `auto`: of m quantiles e to the root of ln 2 times ln(m + 1), rounded up. Default 2.",
        examples=["auto"],
    )
    node: Literal["independent", "joint"] = Field(
        default="independent",
        description="Whether the cuts of a node are drawn one by one (`independent`) or together"
        " (`joint`). Default `independent`.",
    )
    restriction: Literal["conditional", "edge"] = Field(
        default="conditional",
        description="What becomes of the prior outside a node's region: it is cut off"
        " (`conditional`), or its mass goes to the region's ends (`edge`). Default"
        " `conditional`.",
    )
    level_power: int = Field(
        default=0,
        ge=0,
        le=10,
        description="Power p of the split of epsilon over levels: level l gets a share"
        " proportional to (l + 1)^-p. Default 0, equal shares.",
    )
    shapes: bool = Field(
        default=False,
        description="Add shapes to the prior in which quantiles move together; with `node: joint`."
        " Default false.",
    )

    @model_validator(mode="after")
    def _hangs_together(self) -> Mechanism:
        if self.shapes and self.node != "joint":
            raise ValueError("shapes need node: joint")
        if self.restriction == "edge" and self.node == "joint":
            raise ValueError("joint nodes are conditional: leave restriction out")
        return self

    def parts(self, quantiles: int) -> int:
        """Return into how many parts a node is cut: K of Khodak et al. 2023 where it is `auto`.

        Args:
            quantiles: Number m of quantiles.
        """
        if self.branching != "auto":
            return self.branching
        return math.ceil(math.exp(math.sqrt(math.log(2.0) * math.log(quantiles + 1.0))) - 1e-9)


PLENTY = 3000.0
"""Epsilon times records from which on quantiles are drawn: a draw errs by a thousandth of the ranks
at most, whatever is believed, and counts would rest on beliefs about what lies between cuts."""

FEW_BEYOND = 30
"""Epsilon times records beyond a quantile below which a draw of it may lie outside the batch."""


class QuantilesSection(ReleaseSection):
    """Quantiles of one column of every batch of one source."""

    published: ClassVar[frozenset[str]] = frozenset(
        {"quantile", "value", "lower", "upper", "smoothed", "smoothed_lower", "smoothed_upper"}
    )

    measures_of_price: ClassVar[frozenset[Measure]] = frozenset({"epsilon", "rho"})

    kind: Literal["quantiles"] = Field(description="`quantiles`: quantiles of a column.")
    column: Annotated[str, Field(min_length=1)] | Derived = Field(
        description="Column of numbers, or an SQL expression of one record.",
        examples=["air_time", {"sql": "price * pieces"}],
    )
    measured_in: str = Field(
        default="",
        max_length=40,
        description="Unit of the column's values in words, for axes, heads of tables and sentences."
        " Default: none is said.",
        examples=["minutes"],
    )
    quantiles: tuple[Rational, ...] = Field(
        description="Quantiles between 0 and 1, increasing; or `median`, `quartiles` or `deciles`.",
        examples=[[0.25, 0.5, 0.75], "deciles"],
    )
    resolution: PositiveRational = Field(
        description="Width of a cell, in the column's unit. Released values are multiples of it.",
        examples=[1],
    )
    bounds: tuple[Rational, Rational] | None = Field(
        default=None,
        description="Lowest and highest value, in the column's unit. Values outside count as the"
        " bound. Default: none, with a guess.",
        examples=[[0, 1000]],
    )
    guess: Guess | None = Field(
        default=None,
        description="Public guess of where values lie, in the column's unit. Default: none, with"
        " bounds.",
        examples=[{"location": 120, "scale": 60}],
    )
    mechanism: Literal["auto"] | Mechanism = Field(
        default="auto",
        description="How quantiles are drawn. Default: `auto`, chosen from epsilon, the number of"
        " quantiles and `expected_rows`.",
        examples=["auto"],
    )
    prior: PriorSection = Field(
        default=PriorSection(),
        description="What is assumed about a batch before it is released, and how that is learned"
        " from past releases.",
        examples=[{"features": ["weekday"]}],
    )

    @field_validator("quantiles", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        if isinstance(value, str):
            if value not in NAMED_QUANTILES:
                raise ValueError(f"write a list, or one of {', '.join(NAMED_QUANTILES)}")
            return NAMED_QUANTILES[value]
        return value

    @field_validator("quantiles")
    @classmethod
    def _in_order(cls, value: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        if not 1 <= len(value) <= 999:
            raise ValueError("there must be 1 to 999 quantiles")
        for index, quantile in enumerate(value):
            if 1 < quantile < 100:
                share = float(quantile / 100)
                raise ValueError(
                    f"a quantile is a share: write {share:g} instead of {float(quantile):g},"
                    " or deciles, quartiles, median"
                )
            if not 0 < quantile < 1:
                raise ValueError(f"number {index + 1} is not between 0 and 1")
        for index, (one, following) in enumerate(pairwise(value), start=2):
            if following <= one:
                raise ValueError(f"number {index} is not above the one before it")
        if math.lcm(*(quantile.denominator for quantile in value)) > 10_000:
            raise ValueError("the quantiles must be multiples of one fraction 1/d, d at most 10000")
        return value

    @model_validator(mode="after")
    def _bounds_and_guess(self) -> QuantilesSection:
        if self.bounds is None and self.guess is None:
            raise ValueError("give bounds or a guess: without either there is no prior")
        if self.bounds is not None and self.bounds[0] >= self.bounds[1]:
            raise ValueError("the lower bound must be below the upper")
        if isinstance(self.mechanism, Mechanism):
            parts = len(self.quantiles) + 1
            if self.mechanism.parts(len(self.quantiles)) > parts:
                raise ValueError(f"branching is at most {parts}, the number of quantiles plus one")
        if self.prior.learner == "mixture" and self.expected_rows is None:
            raise ValueError("the learner mixture needs expected_rows: it weighs noise by them")
        if self.learner() == "mixture" and self._joint():
            raise ValueError(
                "the learner mixture models independent nodes: leave mechanism on auto, or set"
                " prior.learner to none"
            )
        first, last = self.cells()
        if max(abs(first), abs(last)) > MOST_CELLS:
            raise ValueError(
                "a bound is more than 2^46 times the resolution: make the resolution coarser"
            )
        return self

    def bounds_of(self, row: Row) -> tuple[float, float] | None:
        """Return the bounds of the column, on its grid."""
        if self.bounds is None:
            return None
        low, high = self.cells()
        return float(low * self.resolution), float(high * self.resolution)

    def about_errors(self) -> str | None:
        """Meaning of `lower` and `upper`, or the reason why they are missing."""
        if self.expected_rows is None:
            return (
                "no lower and upper, for noise is in ranks: add expected_rows, about how many"
                " records a batch has"
            )
        if self.counts():
            return (
                "lower and upper are meant to hold the batch's own quantile 95 times in 100; of the"
                " first release they take it to have about the expected rows; later ones are"
                " computed from noisy counts and from how past batches lay, whose number of records"
                " is learned: they hold less often where a batch has below a fifth of the expected"
                f" rows{self._about_outermost('; in the first release ')}"
            )
        alone = ""
        if len(self.quantiles) == 1:
            alone = "; of a single quantile they take a batch to be as widely spread as the guess"
        return (
            "lower and upper hold the batch's own quantile 95 times in 100 if it has about the"
            " expected rows; with a tenth of them 2 or 3 times in 10, with ten times as many they"
            f" are wider than need be{alone}{self._about_outermost('; ')}"
        )

    def counts(self) -> bool:
        """Whether releases after the first count records, so that all quantiles follow.

        A single quantile is drawn each time: one draw has less noise than counts on both its sides.
        """
        auto, several = self.mechanism == "auto", len(self.quantiles) > 1
        noisy = float(self.price.loss_range) * (self.expected_rows or 0) < PLENTY
        learns = self.learner() in ("mixture", "online-gradient") and not self.auxiliary_share()
        asked = learns and self.prior.measure == "counts"
        return asked and auto and several and noisy

    def _about_outermost(self, before: str) -> str:
        """Why intervals of drawn quantiles with few records beyond them are wide."""
        information = float(self.price.loss_range) * (self.expected_rows or 0)
        few = [q for q in self.quantiles if information * min(q, 1 - q) < FEW_BEYOND]
        if not few:
            return ""
        named = ", ".join(f"{float(quantile):g}" for quantile in few)
        return (
            f"{before}epsilon times the records beyond {named} is below {FEW_BEYOND}, so a"
            " draw may lie outside the batch: the interval reaches to the next quantile that surely"
            " lies inside, or to the guess, and outwards by the heaviest of usual tails or by gaps"
            " that go on growing"
        )

    def believed(self) -> tuple[float, float]:
        """Place and spread of a batch: the guess, or the middle and a tenth of the bounds."""
        if self.guess is not None:
            return self.guess.location, self.guess.scale
        low, high = (float(bound) for bound in self.bounds or (0, 1))
        return (low + high) / 2.0, (high - low) / 10.0

    def column_name(self) -> str:
        """The column, or the expression in its place."""
        return self.column.sql if isinstance(self.column, Derived) else self.column

    def learner(self) -> LearnerName:
        """The configured learner, or the default."""
        if self.prior.learner is not None:
            return self.prior.learner
        if self._joint():
            return "none"
        return "mixture" if self.expected_rows else "last-release"

    def auxiliary_share(self) -> Fraction:
        """The part of epsilon that buys a gradient, of which only one learner makes use."""
        return (self.learner() == "online-gradient" and self.prior.private_gradient) or Fraction(0)

    def _joint(self) -> bool:
        return self.mechanism != "auto" and self.mechanism.node == "joint"

    def cells(self) -> tuple[int, int]:
        """First and last cell."""
        if self.bounds is None:
            return -UNBOUNDED_CELLS, UNBOUNDED_CELLS
        low, high = (math.floor(bound / self.resolution + Fraction(1, 2)) for bound in self.bounds)
        return low, high
