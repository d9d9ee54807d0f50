"""The section `alerts`: conditions that are reported, and by which sink."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

from pydantic import Field, field_validator

from streamdp.config.base.section import Section
from streamdp.config.base.values import PositiveDuration

AlertEvent = Literal[
    "stalled",
    "unreadable",
    "budget-low",
    "burnt",
    "dead-letter",
    "clock",
    "backup",
    "late",
    "store",
    "suspect",
]
EVENTS: tuple[AlertEvent, ...] = (
    *("stalled", "unreadable", "budget-low", "burnt", "dead-letter", "clock", "backup"),
    *("late", "store", "suspect"),
)


class Alerts(Section):
    """Conditions that need an operator, each reported once when it begins."""

    sink: str = Field(description="Name of the sink that gets the alerts.", examples=["pager"])
    on: tuple[AlertEvent, ...] = Field(
        default=EVENTS,
        min_length=1,
        description="Kinds of events: `stalled` (no batch for long), `unreadable` (a batch or a"
        " source cannot be read), `budget-low`, `burnt` (a charge without a release, even if its"
        " batch was released afterwards),"
        " `dead-letter`, `clock`, `backup` (no copy of the store for twice as long as there"
        " should be), `late` (a job has missed a turn of its schedule: a question is slow or"
        " hangs), `store` (the store or its anchor cannot be written; sent past the outbox),"
        " `suspect` (the newest release of a job has hardly any records, a value at a bound, or a"
        " wide interval: from releases alone). By"
        " default all.",
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

    @field_validator("budget_below", mode="before")
    @classmethod
    def _share(cls, value: Any) -> Fraction:
        text = str(value).strip()
        try:
            share = Fraction(text.removesuffix("%").strip()) / (100 if text.endswith("%") else 1)
        except (ValueError, ZeroDivisionError):
            raise ValueError("a share is written 10% or 0.1") from None
        if not 0 < share < 1:
            raise ValueError("a share lies between 0% and 100%")
        return share
