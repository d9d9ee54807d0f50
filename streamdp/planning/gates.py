"""The part of `streamdp plan` that is about gates: what they cost at least and at most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.privacy.amounts import epsilon_text, nano_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamdp.config import Configuration
    from streamdp.database import Database
    from streamdp.types import Batch, Json


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
    from streamdp.store.reading.gate_reports import answered_batches

    section = configuration.all_gates()[gate]
    name = configuration.source_of(section)
    done: frozenset[str] = frozenset()
    if database is not None:
        done = answered_batches(database, gate)
        for job in section.release[:1]:
            done |= released_batches(database, job, name)
    return [batch for batch in batches if batch.key not in done]
