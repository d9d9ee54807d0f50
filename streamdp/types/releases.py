"""Releases, from the plan to what the sinks receive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamdp.types.charges import Charge
from streamdp.types.forms import Json, Row
from streamdp.types.questions import Query


@dataclass(frozen=True, slots=True)
class Plan:
    """A release before data is touched: the question, the cost, and how to draw the answer."""

    query: Query
    charge: Charge
    mechanism: Any


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was drawn.

    Args:
        rows: Published, as a table with one set of columns.
        told: Private numbers with their noise that only the learner is told, in place of the rows;
            paid for like them.
    """

    rows: tuple[Row, ...]
    told: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Learned:
    """A learner's state as it is stored.

    Args:
        version: 1 after the first release of a job, and one more after each.
        signature: Public parameters of the kind that the state was learned under.
        state: What `ReleaseKind.learn` returned.
    """

    version: int
    signature: Json
    state: Json


@dataclass(frozen=True, slots=True)
class Release:
    """A committed release, as the archive holds it and the sinks receive it."""

    id: str
    job: str
    source: str
    batch: str
    window_start: int | None
    window_end: int | None
    kind: str
    epsilon_nano: int
    released_at: int
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Delivery:
    """A release that one sink has not confirmed."""

    release_id: str
    sink: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Failure:
    """A delivery that failed.

    Args:
        delivery: Which.
        reason: Why, in public words.
        dead: Whether it waits for a person from now on.
    """

    delivery: Delivery
    reason: str
    dead: bool
