"""`streamdp plan`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import config_option, json_option, load_configuration
from streamdp.cli.output import Form, print_rows
from streamdp.cli.plan_gates import gate_row, least_nano, unanswered
from streamdp.privacy.amounts import epsilon_text, nano_up

DAY = 86_400

if TYPE_CHECKING:
    from sqlite_utils import Database

    from streamdp.config import Configuration
    from streamdp.types import Batch, Json


@click.command()
@click.option("--days", type=click.IntRange(min=1), default=30, show_default=True)
@click.option(
    "--rank-error",
    "wanted",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Also show the epsilon with which 95 % of releases stay within this share of ranks.",
)
@config_option
@json_option
def plan(days: int, wanted: float | None, config_path: Path, as_json: bool) -> None:
    """Show what will be spent in the next days, and when a cap is reached; touches no data.

    Counts the windows that are due already and those that will end. Batches that are files come
    when they come: only those already there are counted.

    Where a release has expected_rows, `rank error 95` is the share of ranks that 95 % of first
    releases stay within, simulated from the prior; later ones have learned.
    """
    configuration = load_configuration(config_path)
    database = _store(configuration)
    now = int(time.time())
    waiting = {
        name: _windows(configuration, database, name, now + days * DAY)
        for name in configuration.releases
        if name not in configuration.gated()
    }
    form: Form = "json" if as_json else "table"
    print_rows(
        [
            _job_row(configuration, name, found, len(_windows(configuration, database, name, now)))
            | _accuracy(configuration, name, wanted)
            for name, found in waiting.items()
        ],
        form,
        f"releases of the next {days} days",
    )
    gates = configuration.all_gates()
    if gates:
        ends = now + days * DAY
        rows = [gate_row(configuration, database, name, ends) for name in gates]
        print_rows(rows, form, f"gates in the next {days} days")
    scopes = {configuration.releases[name].source for name in waiting}
    scopes |= {configuration.source_of(gate) for gate in gates.values()}
    print_rows(
        [
            _budget_row(configuration, database, scope, waiting, now + days * DAY)
            for scope in sorted(scopes)
        ],
        form,
        "budget",
    )


def _store(configuration: Configuration) -> Database | None:
    from streamdp.store.database import connect_to_read

    path = configuration.store.path
    return connect_to_read(path) if path.exists() else None


def _windows(
    configuration: Configuration, database: Database | None, job: str, until: int
) -> list[Batch]:
    """Windows that are complete by some time and are not released."""
    from streamdp import wiring
    from streamdp.store.archive import released_batches

    name = configuration.releases[job].source
    done = released_batches(database, job, name) if database else frozenset()
    source = wiring.source(name, configuration.sources[name])
    return [batch for batch in source.batches(until) if batch.key not in done]


def _job_row(
    configuration: Configuration, job: str, windows: list[Batch], due: int
) -> dict[str, Json]:
    release = configuration.releases[job]
    price = nano_up(release.epsilon)
    return {
        "job": job,
        "protects": str(configuration.privacy.unit),
        "due_now": due,
        "later": len(windows) - due,
        "first": windows[0].key if windows else None,
        "last": windows[-1].key if windows else None,
        "epsilon_each": epsilon_text(price),
        "epsilon_in_all": epsilon_text(price * len(windows)),
    }


def _accuracy(configuration: Configuration, job: str, wanted: float | None) -> dict[str, Json]:
    """What accuracy to expect, and the epsilon for a wanted one; simulated, a few seconds."""
    from streamdp import wiring

    kind = wiring.release_kind(configuration, job)
    row: dict[str, Json] = {"rank_error_95": kind.rank_error()}
    if wanted is not None:
        needed = kind.epsilon_needed(wanted)
        row[f"epsilon_for_{wanted:g}"] = None if needed is None else f"{float(needed):g}"
    return row


def _budget_row(
    configuration: Configuration,
    database: Database | None,
    scope: str,
    waiting: dict[str, list[Batch]],
    until: int,
) -> dict[str, Json]:
    """Spent, planned and left of one scope, and the window at which the lifetime cap ends it.

    Of gates what they cost at least is planned: what they let through is not to be known.
    """
    from streamdp.store.ledger import caps_of, declaration_of, spent_of

    cap = nano_up(configuration.privacy.caps.lifetime)
    if database and declaration_of(database, scope) is not None:
        cap = min(cap, caps_of(database, scope).lifetime_nano)
    spent = spent_of(database, scope, "").lifetime_nano if database else 0
    charges = [
        (batch.start or 0, batch.key, nano_up(configuration.releases[job].epsilon))
        for job, batches in waiting.items()
        if configuration.releases[job].source == scope
        for batch in batches
    ]
    for name, gate in configuration.all_gates().items():
        windows = unanswered(configuration, database, name, until)
        if configuration.source_of(gate) == scope and windows:
            first = windows[0]
            least = least_nano(configuration, name, len(windows))
            charges.append((first.start or 0, first.key, least))
    charges.sort()
    total, ends_at = spent, None
    for _, key, price in charges:
        total += price
        if total > cap and ends_at is None:
            ends_at = key
    return {
        "scope": scope,
        "spent": epsilon_text(spent),
        "planned": epsilon_text(total - spent),
        "lifetime_cap": epsilon_text(cap),
        "left_after": epsilon_text(max(cap - total, 0)),
        "cap_reached_at": ends_at or "not reached",
    }
