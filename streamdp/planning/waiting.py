"""The part of `streamdp plan` that is about batches: which wait for a release or an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamdp.planning.gates import unanswered

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.database import Database
    from streamdp.planning.caps import Listing
    from streamdp.types import Batch


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
    from streamdp.store.ledger.refusals import passed_over

    refused = passed_over(copy, batches[0].source, task) if batches else frozenset()
    return [batch for batch in batches if (task, batch.key) not in refused]
