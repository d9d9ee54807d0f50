"""The section of a release of experts."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from streamdp.config.releases import FACTS, ReleaseSection
from streamdp.config.section import Section
from streamdp.kinds.rules.section import Rules
from streamdp.kinds.selection.section import Sql

MOST_EXPERTS = 500
"""Their noise is followed in a covariance of this size."""

MOST_CELLS = 2_000
"""Of the table that rules are scored from."""


class RuleExperts(Section):
    """Rules that predict a label: each loses one for every record it is wrong about."""

    rules: Rules
    label: Sql = Field(description="SQL condition that the rules predict.")


class ActionExperts(Section):
    """Actions that lose by an expression over each record."""

    losses: dict[str, Sql] = Field(
        min_length=2, max_length=MOST_EXPERTS, description="SQL loss of each action, 0 to 1."
    )
    denominator: int = Field(default=1, ge=1, le=1000, description="Losses are rounded to 1/this.")


def _form(value: Any) -> str:
    actions = isinstance(value, ActionExperts) or (isinstance(value, dict) and "losses" in value)
    return "ActionExperts" if actions else "RuleExperts"


Named = Annotated[
    Annotated[RuleExperts, Tag("RuleExperts")] | Annotated[ActionExperts, Tag("ActionExperts")],
    Discriminator(_form),
]


class ExpertsSection(ReleaseSection):
    """Which expert to follow, learned online from the noisy losses of every batch."""

    published: ClassVar[frozenset[str]] = frozenset(
        {"action", "loss", "lower", "upper", "average_loss", "weight", "chosen", "regret_bound"}
    )

    kind: Literal["experts"]
    experts: Named = Field(description="Rules that predict a label, or actions that lose.")
    expected_rows: Annotated[int, Field(ge=1, le=10**10)] = Field(
        description="About how many records a batch has (with groups: each of them), a public"
        " number: losses are shares of it."
    )
    action: Literal["heaviest", "drawn"] = Field(
        default="heaviest", description="The action for the next batch: by weight, or drawn by it."
    )

    @model_validator(mode="after")
    def _rules_are_few(self) -> ExpertsSection:
        if not isinstance(self.experts, RuleExperts):
            return self
        rules = self.experts.rules
        if not 2 <= rules.count() <= MOST_EXPERTS:
            raise ValueError(f"there are {rules.count()} experts: give 2 to {MOST_EXPERTS}")
        grid = rules.grid("duckdb")
        if grid is None:
            raise ValueError(
                "experts are thresholds joined by AND, each with a parameter of its own:"
                " give other rules as losses"
            )
        cells = math.prod(size + 2 for size in grid.shape)
        if cells > MOST_CELLS:
            raise ValueError(f"the thresholds make {cells} cells, at most {MOST_CELLS} can be")
        taken = set(rules.parameters()) & (FACTS | self.published)
        if taken:
            raise ValueError(f"releases have a column {min(taken)}: rename the parameter")
        return self
