"""What past releases taught a release kind, in tables that a person reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from streamdp.types.batches import Batch
from streamdp.types.forms import Json, Row


@dataclass(frozen=True, slots=True)
class Step:
    """One release that a state was learned from.

    Args:
        batch: That was released.
        before: State before it.
        rows: Published.
    """

    batch: Batch
    before: Json
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class History:
    """Releases of a job up to one batch, and what was learned from them.

    Args:
        steps: The newest releases before the batch, in the order of their charges.
        state: What they taught.
        batch: Which is released next, or was.
        rows: Of its release; none if there is none yet.
    """

    steps: tuple[Step, ...]
    state: Json
    batch: Batch
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Lesson:
    """A table about what was learned.

    Args:
        title: Of the table.
        about: What its columns mean, in whole sentences.
        rows: Of it.
    """

    title: str
    about: str
    rows: tuple[Row, ...]


@runtime_checkable
class Explains(Protocol):
    """A release kind that can show what it has learned."""

    def lessons(self, history: History) -> Sequence[Lesson]:
        """Return what past releases taught, and how it shapes the release of a batch.

        From releases and learned states alone: post-processing, at no price.
        """
        ...


@runtime_checkable
class HasParts(Protocol):
    """A release kind that learns of each public part of a batch by itself."""

    def parts(self) -> tuple[str, ...]:
        """Return the names of the parts."""
        ...

    def part(self, name: str, history: History) -> tuple[object, History]:
        """Return the kind of one part, and its history as that kind knows it."""
        ...
