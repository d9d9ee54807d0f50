"""What `streamdp plan` says of costs: prices, gates, which cap refuses what, which batches wait."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from streamdp.engine.runner import TURN, TURN_OF_A_GATE
from streamdp.privacy.amounts import epsilon_text, nano_up, number_text

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.database import Database
    from streamdp.errors import BudgetExhaustedError
    from streamdp.types import Batch, Charge, Json, ReleaseKind


class Prices:
    """Price of each task, and the kind of each release; both are made once.

    Args:
        configuration: Of the tasks.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._kinds: dict[str, ReleaseKind] = {}
        self._charges: dict[str, Charge] = {}

    def kind(self, release: str) -> ReleaseKind:
        """The kind of a release."""
        from streamdp import wiring

        if release not in self._kinds:
            self._kinds[release] = wiring.release_kind(self._configuration, release)
        return self._kinds[release]

    def charge(self, task: str, batch: Batch) -> Charge:
        """Price of a release, or of a run of a gate, in both measures; `batch` is any of it."""
        if task not in self._charges:
            self._charges[task] = self._charge(task, batch)
        return self._charges[task]

    def _charge(self, task: str, batch: Batch) -> Charge:
        from streamdp import wiring
        from streamdp.kinds.charging import UnitCharging

        if task in self._configuration.all_gates():
            return wiring.gate_kind(task, self._configuration).charge()
        kind = self.kind(task)
        plan = kind.plan(kind.init(), batch)
        return UnitCharging(self._configuration.privacy.unit.bound()).charge(plan)


def gate_row(
    configuration: Configuration, database: Database | None, gate: str, windows: Sequence[Batch]
) -> dict[str, Json]:
    """One gate over the windows that wait for its answer.

    At least it costs a run for every horizon of tests that its open run has none left for, at most
    a run and a release of each of its jobs for every window. `yes from` is by how many records a
    batch must be beyond the tolerance for the answer to be surely yes; within it, it is surely no.
    """
    from streamdp import wiring

    section = configuration.all_gates()[gate]
    kind = wiring.gate_kind(gate, configuration)
    run = nano_up(section.epsilon)
    left = tests_left(database, gate, section.horizon)
    runs = -(-max(len(windows) - left, 0) // section.horizon)
    sure = (
        None
        if section.is_drawn()
        else kind.records_to_be_sure(section.horizon * kind.configurations)
    )
    prices = [configuration.releases[job].price for job in section.release]
    releases = sum(price.nano for price in prices if price.measure == "epsilon")
    rho = sum(price.nano for price in prices if price.measure == "rho")
    return {
        "gate": gate,
        "windows": len(windows),
        "first": windows[0].key if windows else None,
        "last": windows[-1].key if windows else None,
        "epsilon_of_a_run": epsilon_text(run),
        "epsilon_at_least": epsilon_text(run * runs),
        "epsilon_at_most": epsilon_text((run + releases) * len(windows)),
        **({"and_rho_at_most": epsilon_text(rho * len(windows))} if rho else {}),
        "yes_from_records": sure,
    }


def tests_left(database: Database | None, gate: str, horizon: int) -> int:
    """How many tests the open run of a gate has left; 0 without one."""
    from contextlib import nullcontext

    from streamdp.store.gates import GateRuns

    run = None if database is None else GateRuns(lambda: database, nullcontext).open_run(gate)
    return 0 if run is None else max(horizon - run.answered, 0)


def unanswered(
    configuration: Configuration, database: Database | None, gate: str, batches: Sequence[Batch]
) -> list[Batch]:
    """Return the batches that were neither answered nor released unasked."""
    from streamdp.store.archive import released_batches
    from streamdp.store.reading.reports import answered_batches

    section = configuration.all_gates()[gate]
    name = configuration.source_of(section)
    done: frozenset[str] = frozenset()
    if database is not None:
        done = answered_batches(database, gate)
        for job in section.release[:1]:
            done |= released_batches(database, job, name)
    return [batch for batch in batches if batch.key not in done]


@dataclass(frozen=True, slots=True)
class RefusedBatch:
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
) -> Iterator[RefusedBatch]:
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
            refused = RefusedBatch(task, batch, error)
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


@dataclass(frozen=True, slots=True)
class Waiting:
    """Batches that a round would try, in order.

    Args:
        releases: By release; those behind a gate are left out.
        gates: By gate.
    """

    releases: dict[str, list[Batch]]
    gates: dict[str, list[Batch]]

    def by_task(self) -> dict[str, list[Batch]]:
        """Waiting batches of every release and gate."""
        return self.releases | self.gates


def waiting_until(
    configuration: Configuration,
    database: Database | None,
    copy: Database,
    batches: Listing,
    until: int,
) -> Waiting:
    """Batches complete by some time that were neither done nor refused by the caps in force.

    Args:
        configuration: Of the tasks.
        database: The store; None before there is one.
        copy: Of the store, with the caps in force.
        batches: Of the sources.
        until: POSIX time.
    """
    gated = configuration.gated()
    return Waiting(
        {
            name: _not_refused(copy, name, _unreleased(configuration, database, name, found))
            for name, section in configuration.releases.items()
            if name not in gated
            for found in [batches(section.source, until)]
        },
        {
            name: _not_refused(copy, name, unanswered(configuration, database, name, found))
            for name, gate in configuration.all_gates().items()
            for found in [batches(configuration.source_of(gate), until)]
        },
    )


def _unreleased(
    configuration: Configuration, database: Database | None, job: str, batches: tuple[Batch, ...]
) -> list[Batch]:
    from streamdp.store.archive import released_batches
    from streamdp.types import due_together

    name = configuration.releases[job].source
    done = released_batches(database, job, name) if database else frozenset()
    return due_together(batches, done, configuration.releases[job].asked_together)


def _not_refused(copy: Database, task: str, batches: list[Batch]) -> list[Batch]:
    from streamdp.store.ledger.ledger import passed_over

    refused = passed_over(copy, batches[0].source, task) if batches else frozenset()
    return [batch for batch in batches if (task, batch.key) not in refused]
