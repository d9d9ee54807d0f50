"""The section of a release of experts."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from streamdp.kinds.rules.rules import Halfspaces, RuleGrid
from streamdp.kinds.rules.section import HalfspaceSection, Rules
from streamdp.kinds.section import FACTS, ReleaseSection
from streamdp.sections.dialects import Dialect
from streamdp.sections.expressions import OfOneRecord, expression
from streamdp.sections.section import Section

MOST_EXPERTS = 500
"""Their noise is followed in a covariance of this size."""

MOST_CELLS = 2_000
"""Most cells of the table that rules are scored from."""


class RuleExperts(Section):
    """Rules that predict a label: each loses one for every record it is wrong about."""

    rules: Rules = Field(
        description="Rule with parameters; each choice of their values is an expert.",
        examples=[{"sql": "delay >= {t}", "t": {"from": 0, "to": 60}}],
    )
    label: OfOneRecord = Field(
        description="SQL condition of one record that the rules predict. A wrong prediction loses"
        " 1.",
        examples=["cancelled"],
    )


class HalfspaceExperts(Section):
    """Halfspaces that predict a label: each loses one for every record it is wrong about."""

    halfspaces: HalfspaceSection = Field(
        description="Weighted sums of features compared with a threshold; each choice of weights"
        " and threshold is an expert.",
        examples=[
            {
                "features": {
                    "delay": {"from": 0, "to": 60, "step": 10},
                    "hour": {"from": 0, "to": 23, "weights": [0, 1, 2]},
                },
                "at_least": {"from": 0, "to": 60, "step": 10},
            }
        ],
    )
    label: OfOneRecord = Field(
        description="SQL condition of one record that the halfspaces predict. A wrong prediction"
        " loses 1.",
        examples=["cancelled"],
    )


class ActionExperts(Section):
    """Actions that lose by an expression over each record."""

    losses: dict[str, OfOneRecord] = Field(
        min_length=2,
        max_length=MOST_EXPERTS,
        description="SQL expression for the loss of one record, 0 to 1, for each action by its"
        " name.",
        examples=[{"wait": "delay / 60", "leave": "0.5"}],
    )
    denominator: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="Losses are rounded to multiples of 1/denominator, 1 to 1000. Default 1:"
        " losses are 0 or 1.",
    )


class ForecastSection(Section):
    """A number that a job releases: the forecast is that of its newest release before a batch."""

    job: str = Field(description="Name of the release whose numbers are the forecast.")
    row: dict[str, str | float] = Field(
        default={},
        description="Which row of it: what columns of the row hold. Default: its first row.",
        examples=[{"quantile": 0.5}],
    )
    column: str = Field(
        default="value",
        description="Column of the number. Default `value`.",
        examples=["smoothed"],
    )


class ForecastExperts(Section):
    """Forecasts that other releases make, judged on each batch by a loss of its records."""

    forecasts: dict[str, ForecastSection] = Field(
        min_length=2,
        max_length=MOST_EXPERTS,
        description="Number of another release, for each forecast by its name.",
        examples=[
            {
                "yesterday": {"job": "times", "row": {"quantile": 0.5}},
                "all_days": {"job": "times", "row": {"quantile": 0.5}, "column": "smoothed"},
            }
        ],
    )
    loss: str = Field(
        description="SQL expression for the loss of one record, 0 to 1, with {value} in place of"
        " the forecast. Losses outside count as 0 or 1.",
        examples=["abs(air_time - {value}) / 100"],
    )
    denominator: int = Field(
        default=100,
        ge=1,
        le=1000,
        description="Losses are rounded to multiples of 1/denominator, 1 to 1000. Default 100.",
    )

    @field_validator("loss")
    @classmethod
    def _names_the_forecast(cls, value: str) -> str:
        if "{value}" not in value:
            raise ValueError("write {value} for the forecast, as in abs(x - {value}) / 100")
        expression(quoted_forecast(value))
        return value


def quoted_forecast(loss: str) -> str:
    """A loss with a column in place of the forecast, as SQL is read."""
    return loss.replace("{value}", '"{value}"')


FORMS = {
    "losses": "ActionExperts",
    "forecasts": "ForecastExperts",
    "halfspaces": "HalfspaceExperts",
}


def _form(value: Any) -> str:
    if isinstance(value, Section):
        return type(value).__name__
    named = (FORMS[key] for key in FORMS if isinstance(value, dict) and key in value)
    return next(named, "RuleExperts")


Named = Annotated[
    Annotated[RuleExperts, Tag("RuleExperts")]
    | Annotated[HalfspaceExperts, Tag("HalfspaceExperts")]
    | Annotated[ActionExperts, Tag("ActionExperts")]
    | Annotated[ForecastExperts, Tag("ForecastExperts")],
    Discriminator(_form),
]


class ExpertsSection(ReleaseSection):
    """Which expert to follow, learned online from the noisy losses of every batch."""

    published: ClassVar[frozenset[str]] = frozenset(
        {"action", "forecast", "loss", "lower", "upper"}
        | {"average_loss", "weight", "chosen", "regret_bound"}
    )

    kind: Literal["experts"] = Field(
        description="`experts`: which rule or action to follow, learned from the losses of every"
        " batch."
    )
    experts: Named = Field(
        description="The experts: rules or halfspaces that predict a label, actions with losses, or"
        " forecasts that other releases make.",
        examples=[
            {"rules": {"sql": "delay >= {t}", "t": {"from": 0, "to": 60}}, "label": "cancelled"}
        ],
    )
    expected_rows: Annotated[int, Field(ge=1, le=10**10)] = Field(
        description="Approximate number of records of a batch, or of each group: a public number,"
        " not one counted from the data. Losses are released as shares of it.",
        examples=[1000],
    )
    action: Literal["heaviest", "drawn", "average"] = Field(
        default="heaviest",
        description="How the action for the next batch is chosen: the one with the largest weight"
        " (`heaviest`), at random by weight (`drawn`), or of rules the one whose parameters are"
        " nearest to the average of all by weight (`average`). Default `heaviest`.",
    )

    def about_errors(self) -> str:
        """Meaning of losses and their ends, and the effect of wrong expected rows."""
        return (
            "loss, lower and upper are per expected record: lower and upper hold that 95 times in"
            " 100 whatever a batch has; where it has other than the expected rows they are no"
            " shares of its own records; weights and choices of actions stay the same, those of"
            " rules may change"
        )

    @model_validator(mode="after")
    def _rules_are_few(self) -> ExpertsSection:
        grid = self.grid("duckdb")
        if grid is None:
            if self.action == "average":
                raise ValueError("action: average needs rules, whose parameters have an average")
            return self
        count = math.prod(grid.shape)
        if not 2 <= count <= MOST_EXPERTS:
            raise ValueError(f"there are {count} experts: give 2 to {MOST_EXPERTS}")
        cells = math.prod(dimension.size for dimension in grid.query().dimensions)
        if cells > MOST_CELLS:
            raise ValueError(
                f"there are {cells} cells of the parameters: give {MOST_CELLS} at most"
            )
        taken = {name for name, _ in grid.parameters} & (FACTS | self.published | set(self.by))
        if taken:
            raise ValueError(f"releases have a column {min(taken)}: rename the parameter")
        return self

    def grid(self, dialect: Dialect) -> RuleGrid | Halfspaces | None:
        """The rules that are experts, in the engine's dialect; None if the experts are no rules.

        Raises:
            ValueError: They are no thresholds.
        """
        match self.experts:
            case HalfspaceExperts(halfspaces=halfspaces):
                return halfspaces.made(dialect)
            case RuleExperts(rules=rules):
                grid = rules.grid(dialect)
                if grid is None:
                    raise ValueError(
                        "experts are thresholds joined by AND, each with a parameter of its own:"
                        " give other rules as losses, or as halfspaces"
                    )
                return grid
            case _:
                return None
