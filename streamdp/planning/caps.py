"""The part of `streamdp plan` that is about caps: which of them would refuse what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from streamdp.engine.runner import TURN, TURN_OF_A_GATE
from streamdp.planning.gates import tests_left
from streamdp.privacy.amounts import number_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from streamdp.config import Configuration
    from streamdp.database import Database
    from streamdp.errors import BudgetExhaustedError
    from streamdp.planning.prices import Prices
    from streamdp.types import Batch, Json


@dataclass(frozen=True, slots=True)
class Refused:
    """A batch that a cap would refuse to a job or a gate."""

    task: str
    batch: Batch
    error: BudgetExhaustedError

    @property
    def is_the_end(self) -> bool:
        """Whether the cap is over the lifetime."""
        return self.error.fields["cap"] == "lifetime"

    def row(self) -> dict[str, Json]:
        """The row that is shown."""
        left = self.error.fields["left_nano"]
        return {
            "scope": self.batch.source,
            "refused": self.task,
            "batch": self.batch.key,
            "cap": self.error.fields["cap"],
            "left": number_text(int(left or 0), str(self.error.fields["measure"])),
            "frees": self.error.fields["frees"],
        }


Listing = Callable[[str, int], "tuple[Batch, ...]"]
"""Batches of a source that are complete by some time."""


def listing(configuration: Configuration) -> Listing:
    """A listing that looks at each source once, however many jobs read it."""

    def batches(name: str, until: int) -> tuple[Batch, ...]:
        return tuple(configuration.sources[name].source(name).batches(until))

    return cache(batches)


def copy_with_caps(
    configuration: Configuration, database: Database | None, batches: Listing, now: int
) -> Database:
    """A copy to try charges on, under the caps that a start would set, with all that is there."""
    from streamdp.store.ledger.dry_run import add_batches, copy_of, lower_caps

    copy = copy_of(database)
    for name in configuration.sources:
        lower_caps(copy, name, configuration.caps_of(name), now)
        add_batches(copy, batches(name, now), now)
    return copy


def refusals(
    configuration: Configuration,
    prices: Prices,
    copy: Database,
    waiting: Mapping[str, Sequence[Batch]],
    opened: Mapping[str, int],
    now: int,
) -> Iterator[Refused]:
    """Charge the copy for all that waits, and tell what is refused.

    What is due goes first, in the turns that a round gives each task; then each window as it ends.
    A task that meets the end of the lifetime goes no further.

    Args:
        configuration: Of the tasks.
        prices: Of the tasks.
        copy: Of the store.
        waiting: Batches by release or gate, in order.
        opened: How many tests the open run of each gate has left.
        now: POSIX time.
    """
    from streamdp.store.ledger.dry_run import try_release, try_test

    ended: set[str] = set()
    for task, number, batch in _in_order(waiting, now, opened):
        if task in ended:
            continue
        charge = prices.charge(task, batch)
        if task in opened:
            over = number - opened[task]
            arms = over >= 0 and over % configuration.all_gates()[task].horizon == 0
            error = try_test(copy, task, batch, charge if arms else None, now)
        else:
            error = try_release(copy, task, batch, charge, now)
        if error is not None:
            refused = Refused(task, batch, error)
            ended |= {task} if refused.is_the_end else set()
            yield refused


def open_tests(configuration: Configuration, database: Database | None) -> dict[str, int]:
    """How many tests the open run of each gate has left."""
    return {
        name: tests_left(database, name, gate.horizon)
        for name, gate in configuration.all_gates().items()
    }


def _in_order(
    waiting: Mapping[str, Sequence[Batch]], now: int, gates: Collection[str]
) -> Iterator[tuple[str, int, Batch]]:
    turns = {task: TURN_OF_A_GATE if task in gates else TURN for task in waiting}
    found = [
        (max(batch.end or 0, now), number // turns[task], index, number, task, batch)
        for index, (task, batches) in enumerate(waiting.items())
        for number, batch in enumerate(batches)
    ]
    for _, _, _, number, task, batch in sorted(found, key=lambda each: each[:4]):
        yield task, number, batch
