"""The section `alerts`: conditions that are reported, and by which sink."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

from pydantic import Field, field_validator

from streamdp.sections.section import Section
from streamdp.sections.values import PositiveDuration

AlertEvent = Literal[
    "stalled",
    "unreadable",
    "budget-low",
    "burnt",
    "dead-letter",
    "undelivered",
    "clock",
    "backup",
    "late",
    "store",
    "suspect",
    "changed",
    "resolved",
]
EVENTS: tuple[AlertEvent, ...] = (
    *("stalled", "unreadable", "budget-low", "burnt", "dead-letter", "undelivered", "clock"),
    *("backup", "late", "store", "suspect", "changed", "resolved"),
)


class Changed(Section):
    """When a quantile of the last seven batches counts as changed, from releases alone."""

    quantile: float = Field(
        default=0.5, gt=0, lt=1, description="Which quantile is watched. Default 0.5."
    )
    by: Fraction = Field(
        default=Fraction(1, 10),
        description="The least change that is told, as a percentage or a fraction of the value in"
        " the 28 batches before. Default 10%.",
        examples=["10%"],
    )
    sure: float = Field(
        default=0.99,
        gt=0.5,
        lt=1,
        description="The least probability that the process changed, and not the noise or days"
        " that differ anyway. Default 0.99.",
    )

    @field_validator("by", mode="before")
    @classmethod
    def _share(cls, value: Any) -> Fraction:
        return share_of(value)


class Alerts(Section):
    """Conditions that need an operator, each reported once when it begins and when it is over."""

    sink: str = Field(description="Name of the sink that gets the alerts.", examples=["pager"])
    on: tuple[AlertEvent, ...] = Field(
        default=EVENTS,
        min_length=1,
        description="Kinds of events: `stalled` (no batch for long), `unreadable` (a batch or a"
        " source cannot be read), `budget-low`, `burnt` (a charge without a release, even if its"
        " batch was released afterwards),"
        " `dead-letter`, `undelivered` (a sink has taken nothing for an hour, and is tried again),"
        " `clock`, `backup` (no copy of the store for twice as long as there"
        " should be), `late` (a job has missed a turn of its schedule: a question is slow or"
        " hangs), `store` (the store or its anchor cannot be written; sent past the outbox),"
        " `suspect` (the newest release of a job has hardly any records, a value at a bound, or a"
        " wide interval: from releases alone), `changed` (a quantile changed, as the key `changed`"
        " says; also from releases alone), `resolved` (a condition that was told is over, which its"
        " reason names; of `burnt` and `store` never). By default all.",
    )
    budget_below: Fraction = Field(
        default=Fraction(1, 10),
        description="Share of the lifetime cap below which the budget is low, as a percentage or a"
        " fraction. Default 10%.",
        examples=["10%"],
    )
    stalled_after: PositiveDuration = Field(
        default=2 * 86_400,
        description="Time after the last batch of a source at which it counts as stalled, as a"
        " duration; of windows, on top of their length. A job that is not paused must have woken"
        " since, and a source whose last window has come does not stall. Default 2d.",
        examples=["2d"],
    )

    changed: Changed | None = Field(
        default=None,
        description="When `changed` is told of a job whose releases count records between cuts."
        " Without it, never.",
        examples=[{"quantile": 0.5, "by": "10%", "sure": 0.99}],
    )

    @field_validator("budget_below", mode="before")
    @classmethod
    def _share(cls, value: Any) -> Fraction:
        return share_of(value)


def share_of(value: Any) -> Fraction:
    """A share that is written as a percentage or a fraction."""
    text = str(value).strip()
    try:
        share = Fraction(text.removesuffix("%").strip()) / (100 if text.endswith("%") else 1)
    except (ValueError, ZeroDivisionError):
        raise ValueError("a share is written 10% or 0.1") from None
    if not 0 < share < 1:
        raise ValueError("a share lies between 0% and 100%")
    return share
