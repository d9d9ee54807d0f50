"""Values that pass to and from a gate: its run, its past, its answer."""

from __future__ import annotations

from dataclasses import dataclass

from streamdp.types.batches import Batch
from streamdp.types.charges import Run
from streamdp.types.forms import Json, Row
from streamdp.types.releases import Release


@dataclass(frozen=True, slots=True, repr=False)
class GateRun:
    """The open run of a gate.

    Private: `hidden` never leaves the engine, and its repr shows nothing.

    Args:
        run: Its charge.
        terms: What its noise was drawn for.
        hidden: The noisy threshold.
        answered: How many tests had an answer.
        asked: Key of the batch whose test has no end, or None.
    """

    run: Run
    terms: Json
    hidden: Json
    answered: int
    asked: str | None

    def __repr__(self) -> str:
        return "GateRun(<private>)"


@dataclass(frozen=True, slots=True)
class Past:
    """Earlier answers and releases that a gate may use; all public.

    Args:
        accepted: How often it has accepted.
        rows: The last release of its first job, or nothing.
    """

    accepted: int
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a gate about one batch, and its consequences.

    Args:
        batch: The batch.
        accepted: Whether it is yes.
        slot: When it may be seen (POSIX seconds).
        notices: What is owed to which sinks.
        holds: Jobs that are paused.
        waits: Whether a person must re-arm the gate.
    """

    batch: Batch
    accepted: bool
    slot: int
    notices: tuple[tuple[Release, tuple[str, ...]], ...]
    holds: tuple[str, ...]
    waits: bool
