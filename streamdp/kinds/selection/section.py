"""The section of a release of a selection."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from streamdp.kinds.rules.section import MOST_CONDITIONS, Rules, names_of, refuse_column
from streamdp.kinds.section import FACTS, ReleaseSection
from streamdp.kinds.selection import scores
from streamdp.sections.dialects import Dialect
from streamdp.sections.expressions import OfOneRecord, expression
from streamdp.sections.section import Section
from streamdp.sections.values import PositiveRational, Rational
from streamdp.types import Grid

MOST_DENOMINATOR = 10_000


class Listed(Section):
    """Candidates one by one: a name and a condition on one record each."""

    conditions: dict[str, OfOneRecord] = Field(
        min_length=1,
        max_length=MOST_CONDITIONS,
        description="SQL condition on one record, for each candidate by its name.",
        examples=[{"late": "delay > 15", "long": "distance > 1000"}],
    )


class ErrorsScore(Section):
    """The candidate that agrees with a label most often."""

    errors: OfOneRecord = Field(
        description="SQL condition of one record: the label. The best candidate disagrees with it"
        " on the fewest records.",
        examples=["cancelled"],
    )


class ExcessScore(Section):
    """The candidate under which a label exceeds a rate by most records."""

    excess: OfOneRecord = Field(
        description="SQL condition of one record: the label that is counted among a candidate's"
        " records.",
        examples=["cancelled"],
    )
    over: PositiveRational = Field(
        description="Rate of the label that is no excess, between 0 and 1. The score is the"
        " label's count minus this rate times the candidate's records.",
        examples=[0.1],
    )

    @field_validator("over")
    @classmethod
    def _is_a_rate(cls, value: Fraction) -> Fraction:
        if value >= 1 or value.denominator > MOST_DENOMINATOR:
            raise ValueError(
                f"a rate is a fraction below 1, with denominator {MOST_DENOMINATOR} at most"
            )
        return value


class SumScore(Section):
    """The candidate whose records have the largest sum."""

    sum: OfOneRecord = Field(
        description="SQL number of one record; the best candidate's records have the largest sum.",
        examples=["amount"],
    )
    resolution: PositiveRational = Field(
        default=Fraction(1),
        description="Width to which each number is rounded, in its unit. Default 1.",
        examples=[1],
    )
    bounds: tuple[Rational, Rational] = Field(
        description="Lowest and highest number of one record, in its unit. Numbers outside count"
        " as the bound.",
        examples=[[0, 100]],
    )

    @model_validator(mode="after")
    def _bounds_are_apart(self) -> SumScore:
        if self.bounds[0] >= self.bounds[1]:
            raise ValueError("the lower bound must be below the upper")
        return self

    def grid(self) -> Grid:
        """Cells of the number."""
        low, high = (math.floor(bound / self.resolution + Fraction(1, 2)) for bound in self.bounds)
        return Grid(self.resolution, low, high)


def _candidates(value: Any) -> str:
    listed = isinstance(value, Listed) or (isinstance(value, dict) and "conditions" in value)
    return "Listed" if listed else "Rules"


_COUNT = "literal['count']"
"""Named as pydantic names a word, which no message repeats."""


def _score(value: Any) -> str:
    if isinstance(value, Section):
        return type(value).__name__
    if isinstance(value, dict):
        named = {"errors": "ErrorsScore", "excess": "ExcessScore"}
        return next((form for key, form in named.items() if key in value), "SumScore")
    return _COUNT


Among = Annotated[
    Annotated[Rules, Tag("Rules")] | Annotated[Listed, Tag("Listed")],
    Discriminator(_candidates),
    BeforeValidator(refuse_column),
]

ScoreBy = Annotated[
    Annotated[Literal["count"], Tag(_COUNT)]
    | Annotated[ErrorsScore, Tag("ErrorsScore")]
    | Annotated[ExcessScore, Tag("ExcessScore")]
    | Annotated[SumScore, Tag("SumScore")],
    Discriminator(_score),
]


class SelectionSection(ReleaseSection):
    """The best of a public list of candidates, chosen privately."""

    published: ClassVar[frozenset[str]] = frozenset({"place", "candidate", "shortfall"})

    kind: Literal["selection"] = Field(
        description="`selection`: the best of a public list of candidates."
    )
    among: Among = Field(
        description="Public candidates: a rule with parameters, or conditions by name.",
        examples=[
            {"sql": "delay >= {t}", "t": {"from": 0, "to": 60}},
            {"conditions": {"late": "delay > 15", "long": "distance > 1000"}},
        ],
    )
    score: ScoreBy = Field(
        default="count",
        description="What makes a candidate the best: `count` (most records), errors (fewest),"
        " excess (largest) or sum (largest). Default `count`.",
        examples=["count", {"errors": "cancelled"}],
    )
    mechanism: Literal["exponential", "permute-and-flip"] = Field(
        default="exponential",
        description="Mechanism of the choice: the exponential mechanism, whose steps are the same"
        " whatever the records are, or permute-and-flip, whose time depends on them. Default"
        " `exponential`.",
    )
    top: int = Field(
        default=1,
        ge=1,
        le=100,
        description="Number of candidates that are chosen. They share epsilon. Default 1.",
    )
    learner: Literal["choices", "none"] = Field(
        default="choices",
        description="Whether past choices are the prior of the next (`choices`) or not (`none`)."
        " Default `choices`.",
    )

    guess: str | dict[str, Rational] | None = Field(
        default=None,
        description="Public guess of the best candidate: a rule's parameters, or a condition's"
        " name. It and the rules near it begin with a larger prior. Default: no guess.",
        examples=[{"t": 15}, "late"],
    )

    def guessed(self) -> int | None:
        """Place of the guess among the candidates.

        Raises:
            ValueError: It is none of them.
        """
        if self.guess is None:
            return None
        if isinstance(self.among, Listed):
            candidates: list[object] = list(self.among.conditions)
            found: object = self.guess
        else:
            names, values = names_of(self.among.sql), self.among.values()
            candidates = list(itertools.product(*(values[name] for name in names)))
            given = self.guess if isinstance(self.guess, dict) else {}
            if set(given) != set(names):
                raise ValueError(f"guess a value of each parameter: {', '.join(names)}")
            found = tuple(given[name] for name in names)
        if found not in candidates:
            raise ValueError("the guess is none of the candidates")
        return candidates.index(found)

    @model_validator(mode="after")
    def _guess_is_a_candidate(self) -> SelectionSection:
        self.guessed()
        return self

    @model_validator(mode="after")
    def _candidates_suffice(self) -> SelectionSection:
        if self.count() <= self.top:
            raise ValueError(f"top: {self.top} of {self.count()} candidates leaves no choice")
        if isinstance(self.among, Rules):
            taken = set(self.among.parameters()) & (FACTS | self.published)
            if taken:
                raise ValueError(f"releases have a column {min(taken)}: rename the parameter")
        return self

    def count(self) -> int:
        """How many candidates there are."""
        return len(self.among.conditions) if isinstance(self.among, Listed) else self.among.count()

    def about_errors(self) -> str:
        """Level of `shortfall`, whatever the records are."""
        return (
            "shortfall holds at least 95 times in 100 for each choice, whatever the records and the"
            " prior are; it is a bound for the worst of them, and most choices fall less short"
        )

    def scored(self, dialect: Dialect) -> scores.Score:
        """The score, in the engine's dialect."""
        match self.score:
            case ErrorsScore(errors=label):
                return scores.Errors(expression(label, dialect))
            case ExcessScore(excess=label, over=rate):
                return scores.Excess(expression(label, dialect), rate)
            case SumScore(sum=number):
                return scores.Total(expression(number, dialect), self.score.grid())
            case _:
                return scores.CountScore()
