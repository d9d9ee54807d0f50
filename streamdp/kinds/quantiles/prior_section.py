"""Priors in the configuration: guesses, families, public rows, and the learner."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from streamdp.sections.section import Section
from streamdp.sections.values import Finite, PositiveRational
from streamdp.types import Format

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
