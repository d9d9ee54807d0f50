"""The section of a release of quantiles, and its prior: guess, families, public rows, learner."""

from __future__ import annotations

import math
from datetime import date
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from streamdp.kinds.section import ColumnBounds, MeasuredIn, ReleaseSection
from streamdp.privacy.filters import Measure
from streamdp.sections.expressions import Derived
from streamdp.sections.section import Section
from streamdp.sections.values import Finite, PositiveRational, Rational
from streamdp.types import Format, Row

LearnerName = Literal["mixture", "online-gradient", "last-release", "none"]


class Guess(Section):
    """Public knowledge of the column, from no look at it."""

    location: Finite = Field(
        description="Approximate centre of the values, in the column's unit.", examples=[120]
    )
    scale: Finite = Field(
        gt=0,
        description="Approximate spread of the values, in the column's unit; above 0.",
        examples=[60],
    )


class Family(Section):
    """One distribution, in the unit of the column."""

    family: Literal["uniform", "cauchy", "half-cauchy", "laplace"] = Field(
        description="Family of the distribution. `uniform` takes lower and upper; the others take"
        " location and scale."
    )
    location: Finite | None = Field(
        default=None,
        description="Centre of the distribution, in the column's unit; of `half-cauchy`, its lower"
        " end.",
        examples=[120],
    )
    scale: Finite | None = Field(
        default=None,
        gt=0,
        description="Scale of the distribution, in the column's unit; above 0.",
        examples=[60],
    )
    lower: Finite | None = Field(
        default=None,
        description="Lower end of a uniform distribution, in the column's unit.",
        examples=[0],
    )
    upper: Finite | None = Field(
        default=None,
        description="Upper end of a uniform distribution, in the column's unit.",
        examples=[1000],
    )
    weight: Finite = Field(
        default=1.0, gt=0, description="Relative weight in a mixture. Default 1."
    )

    @model_validator(mode="after")
    def _has_its_parameters(self) -> Family:
        wanted = ("lower", "upper") if self.family == "uniform" else ("location", "scale")
        others = {"location", "scale", "lower", "upper"} - set(wanted)
        if any(getattr(self, name) is None for name in wanted):
            raise ValueError(f"{self.family} needs {wanted[0]} and {wanted[1]}")
        if any(getattr(self, name) is not None for name in others):
            raise ValueError(f"{self.family} takes {wanted[0]} and {wanted[1]} only")
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            raise ValueError("lower must be below upper")
        return self


class MixtureOf(Section):
    """Several distributions with weights."""

    mixture: tuple[Family, ...] = Field(
        min_length=1,
        description="Distributions, each with a weight.",
        examples=[
            [
                {"family": "cauchy", "location": 0, "scale": 1, "weight": 3},
                {"family": "uniform", "lower": 0, "upper": 9},
            ]
        ],
    )


FamilyName = Literal["uniform", "cauchy", "half-cauchy", "laplace"]


class PublicRows(Section):
    """Public rows of the same kind: what is believed before the first release."""

    path: Path = Field(
        description="File of public rows, relative to the configuration.",
        examples=["last_year.csv"],
    )
    format: Format | None = Field(
        default=None, description="Format of the file. Default: from the ending of its name."
    )
    column: str | None = Field(
        default=None,
        min_length=1,
        description="Column of the public rows. Default: that of the release.",
        examples=["air_time"],
    )
    tabulate: bool = Field(
        default=False,
        strict=True,
        description="Let the robust prior follow the distribution of the public rows too. Default"
        " false.",
    )


class PublicTable(Section):
    """A table with public facts of each batch, which its quantiles may depend on."""

    path: Path = Field(
        description="File of the public table, relative to the configuration.",
        examples=["weather.csv"],
    )
    format: Format | None = Field(
        default=None, description="Format of the file. Default: from the ending of its name."
    )
    key: str = Field(
        min_length=1, description="Column that holds the keys of batches.", examples=["day"]
    )
    columns: tuple[str, ...] = Field(
        min_length=1,
        description="Columns of numbers that the quantiles may depend on.",
        examples=[["temperature"]],
    )


class PriorSection(Section):
    """The prior of each release, and its learner."""

    learner: LearnerName | None = Field(
        default=None,
        description="What is learned from past releases. Default: `mixture` if"
        " `expected_rows` is given, else `last-release`; `none` with joint nodes.",
    )
    measure: Literal["counts", "quantiles"] = Field(
        default="counts",
        description="What the learners `mixture` and `online-gradient` measure after the first"
        " release: noisy counts of"
        " records between cuts, from which all quantiles follow (`counts`), or every quantile"
        " in a draw of its own (`quantiles`), which errs more. One quantile alone is drawn either"
        " way, as all are with a configured `mechanism`. Default `counts`.",
    )
    features: tuple[Literal["weekday", "month", "season", "hour", "trend"], ...] = Field(
        default=(),
        description="Public facts of a batch's window that its quantiles may depend on. Default:"
        " none.",
        examples=[["weekday", "season"]],
    )
    holidays: tuple[date, ...] = Field(
        default=(),
        description="Dates whose batches differ from others, as do those of the days beside them."
        " Default: none.",
        examples=[["2026-12-25"]],
    )
    table: PublicTable | None = Field(
        default=None,
        description="Public table of facts about batches, joined on their keys. Default: none.",
        examples=[{"path": "weather.csv", "key": "day", "columns": ["temperature"]}],
    )
    public: PublicRows | None = Field(
        default=None,
        description="Public rows to which the first priors are fitted. They must not be a source's"
        " own rows. Default: none.",
        examples=[{"path": "last_year.csv"}],
    )
    smoothed: bool = Field(
        default=True,
        description="Publish the column `smoothed` with its interval: an estimate from all"
        " releases so far. It costs no privacy. Default true.",
    )
    robust: FamilyName | Family | MixtureOf | None = Field(
        default=None,
        description="Prior of a first release, and of drawn quantiles whose past misleads: a family"
        " or a mixture. Default: `cauchy` if there is a guess, else `uniform` within the bounds.",
        examples=["cauchy", {"family": "laplace", "location": 120, "scale": 60}],
    )
    robust_weight: float = Field(
        default=0.05,
        ge=0.01,
        le=1.0,
        description="Weight of the robust prior beside the learned one where quantiles are drawn,"
        " from 0.01 to 1. Default 0.05.",
    )
    loss: Literal["sum", "log-sum-exp"] = Field(
        default="sum",
        description="Loss of a release for the learner `online-gradient`: the sum of the"
        " surrogates U of all quantiles, or ln Σ exp U, which the worst ones lead. Default `sum`.",
    )
    steps: Literal["newton", "adagrad", "coin-betting"] = Field(
        default="newton",
        description="Rule by which the learner `online-gradient` steps: online Newton steps that"
        " forget, AdaGrad that forgets, or coin betting (COCOB). Default `newton`.",
    )
    private_gradient: PositiveRational | None = Field(
        default=None,
        description="Share of epsilon, below 1, that buys noisy gradients at the batch's own"
        " quantiles for the learner `online-gradient`. It is less accurate than the"
        " default. Default: none, free gradients at released values.",
        examples=[0.1],
    )

    @field_validator("learner", mode="before")
    @classmethod
    def _renamed(cls, value: object) -> object:
        """Accept the name that the learner `mixture` had before."""
        return "mixture" if value == "experts" else value

    @field_validator("private_gradient")
    @classmethod
    def _leaves_something(cls, value: Fraction | None) -> Fraction | None:
        if value is not None and value >= 1:
            raise ValueError("this is a share of epsilon, below 1: the rest buys the release")
        return value


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
    measured_in: MeasuredIn = ""
    quantiles: tuple[Rational, ...] = Field(
        description="Quantiles between 0 and 1, increasing; or `median`, `quartiles` or `deciles`.",
        examples=[[0.25, 0.5, 0.75], "deciles"],
    )
    resolution: PositiveRational = Field(
        description="Width of a cell, in the column's unit. Released values are multiples of it.",
        examples=[1],
    )
    bounds: ColumnBounds = None
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
            " are wider than need be; of an empty batch they are as narrow as of any, for no draw"
            f" shows that it is empty: a count of kind statistics does"
            f"{alone}{self._about_outermost('; ')}"
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
