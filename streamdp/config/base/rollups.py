"""The key `rollups` of a release: periods whose numbers follow from its batches."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field, WithJsonSchema

from streamdp.config.base.section import Section

_STEPS = ("day", "week", "month", "quarter", "year")
_ROLLING = re.compile(r"rolling ([1-9]\d{0,2})d")


def _step(text: str) -> str:
    if text in _STEPS or _ROLLING.fullmatch(text):
        return text
    raise ValueError(f"a rollup is of a {', '.join(_STEPS)}, or `rolling 28d` in whole days")


RollupStep = Annotated[
    str,
    AfterValidator(_step),
    WithJsonSchema(
        {"type": "string", "pattern": rf"^({'|'.join(_STEPS)}|rolling [1-9][0-9]{{0,2}}d)$"}
    ),
]


class RollupsSection(Section):
    """Rows about whole periods, from the measurements of their batches: they cost nothing."""

    periods: tuple[RollupStep, ...] = Field(
        min_length=1,
        description="Periods by the clocks of the time zone of the source's batches: day, week"
        " (from Monday), month, quarter, year, or `rolling 28d`, which ends at each midnight.",
        examples=[["week", "month", "rolling 28d"]],
    )
    partial: bool = Field(
        default=False,
        strict=True,
        description="Roll up a period of which batches are missing, once a batch behind its end"
        " was released; the column `missing` tells. A batch that comes late makes a new revision."
        " Default false: such a period waits until all of its batches were released.",
    )
    sinks: tuple[str, ...] | None = Field(
        default=None,
        description="Names of the sinks that get the rows. Default: the sinks of the release.",
        examples=[["weekly"]],
    )


def listed(value: Any) -> Any:
    """A list of periods alone, as the section."""
    return {"periods": value} if isinstance(value, list | tuple) else value
