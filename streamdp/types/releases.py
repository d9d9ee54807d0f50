"""Releases, from the plan to what the sinks receive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamdp.types.columns import Column
from streamdp.types.forms import Json, Row
from streamdp.types.queries import Query


@dataclass(frozen=True, slots=True)
class Plan:
    """A release before data is touched, from public facts alone.

    Args:
        query: What is asked of the batch, of all its records: who bounds units and cuts groups
            adds that.
        event: Of the draws, as they cost one record (`privacy.events`).
        mechanism: What `draw` needs.
        unit_event: Of draws whose price holds whatever a whole unit changes, in all groups
            together; None if there are none.
    """

    query: Query
    event: Json
    mechanism: Any
    unit_event: Json = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a draw.

    Args:
        rows: Published, as a table with the columns of the kind.
        auxiliary: What `learn`, `publish` and `measured` need beside the rows. It is paid for like
            them.
    """

    rows: tuple[Row, ...]
    auxiliary: Any = None


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
    """A committed release, as the archive holds it and the sinks receive it.

    Its `columns` say what its rows hold; releases from before they were kept have none.
    `epsilon_nano` is its pure loss; one that has none has its zero-concentrated loss in `rho_nano`.
    `delta_atto` is the chance to lose more, in units of 1e-18.
    """

    id: str
    job: str
    source: str
    batch: str
    window_start: int | None
    window_end: int | None
    kind: str
    epsilon_nano: int | None
    released_at: int
    rows: tuple[Row, ...]
    columns: tuple[Column, ...] = ()
    rho_nano: int | None = None
    delta_atto: int = 0


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
