"""What is believed before each release: guesses, families, public rows, and how it learns."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from streamdp.config.section import Section
from streamdp.config.values import Finite, PositiveRational
from streamdp.types import Format


class Guess(Section):
    """What is known of the column without looking at it."""

    location: Finite = Field(description="About where values lie.")
    scale: Finite = Field(gt=0, description="About how far they spread.")


class Family(Section):
    """One distribution, in the unit of the column."""

    family: Literal["uniform", "cauchy", "half-cauchy", "laplace"]
    location: Finite | None = None
    scale: Finite | None = Field(default=None, gt=0)
    lower: Finite | None = None
    upper: Finite | None = None
    weight: Finite = Field(default=1.0, gt=0, description="In a mixture.")

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

    mixture: tuple[Family, ...] = Field(min_length=1)


FamilyName = Literal["uniform", "cauchy", "half-cauchy", "laplace"]


class PublicRows(Section):
    """Public rows of the same kind: what is believed before the first release."""

    path: Path = Field(description="File, relative to the configuration.")
    format: Format | None = Field(default=None, description="By default, what its name says.")
    column: str | None = Field(
        default=None, min_length=1, description="By default the column of the release."
    )
    tabulate: bool = Field(
        default=False,
        strict=True,
        description="Let the robust prior follow the law of the public rows, for ever.",
    )


class PublicTable(Section):
    """A table with public facts of each batch, which its quantiles may depend on."""

    path: Path = Field(description="File, relative to the configuration.")
    format: Format | None = Field(default=None, description="By default, what its name says.")
    key: str = Field(min_length=1, description="Column with the keys of batches.")
    columns: tuple[str, ...] = Field(min_length=1, description="Columns of numbers.")


class PriorSection(Section):
    """What is believed before each release, and how it learns."""

    learner: Literal["experts", "online-gradient", "last-release", "none"] | None = Field(
        default=None,
        description="By default experts if expected_rows is given, else last-release; none with"
        " joint nodes.",
    )
    measure: Literal["few", "all"] = Field(
        default="few",
        description="Whether experts may measure a few quantiles with the whole of epsilon, in"
        " turn, and infer the others; a row says which it is.",
    )
    features: tuple[Literal["weekday", "month", "season", "hour", "trend"], ...] = Field(
        default=(), description="Public facts of a window that its quantiles may depend on."
    )
    holidays: tuple[date, ...] = Field(
        default=(), description="Days that differ, and so do those beside them."
    )
    table: PublicTable | None = Field(
        default=None, description="Columns of a public table, joined on the batch's key."
    )
    public: PublicRows | None = Field(
        default=None, description="Fit the first priors to public rows; never to a source's."
    )
    smoothed: bool = Field(
        default=True, description="Publish what all releases together say, in columns of its own."
    )
    robust: FamilyName | Family | MixtureOf | None = Field(
        default=None,
        description="Holds when the past misleads. By default cauchy if there is a guess, else"
        " uniform within the bounds.",
    )
    robust_weight: float = Field(default=0.05, ge=0.01, le=1.0)
    private_gradient: PositiveRational | None = Field(
        default=None,
        description="Share of epsilon that buys the learner online-gradient noisy gradients at the"
        " batches' own quantiles, in place of those at releases, which are free. It is less"
        " accurate than leaving it out.",
    )

    @field_validator("private_gradient")
    @classmethod
    def _leaves_something(cls, value: Fraction | None) -> Fraction | None:
        if value is not None and value >= 1:
            raise ValueError("this is a share of epsilon, below 1: the rest buys the release")
        return value
