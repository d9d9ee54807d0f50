"""Dry run of charges, on a copy of ledger and batches in memory.

The copy is charged by the functions that charge the ledger, so a plan has no arithmetic of its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from streamdp.database import Database
from streamdp.errors import BudgetExhaustedError
from streamdp.privacy.filters import NO_DELTA_LIMIT, Caps
from streamdp.store.archive import add_batch
from streamdp.store.database import OwnedConnection, transaction
from streamdp.store.gates import close_run, join_run, open_run, open_run_of
from streamdp.store.ledger.ledger import caps_of, declaration_of, reserve, set_caps
from streamdp.store.migrations import migrate
from streamdp.types import Batch, Charge


def copy_of(database: Database | None) -> Database:
    """Ledger and batches of a store, or those of a new one."""
    memory = sqlite3.connect(":memory:", isolation_level=None, factory=OwnedConnection)
    copy = Database(memory, execute_plugins=False)
    migrate(copy, 0)
    if database is not None:
        known = "SELECT source, key, window_start, window_end, arrived_at FROM batch"
        with transaction(copy):
            _fill(copy, "batch", database.execute(known))
            _fill(copy, "ledger", _ledger_rows(database))
    return copy


def _ledger_rows(database: Database) -> sqlite3.Cursor:
    """Rows with the running sum of rho, which a store of an earlier schema lacks.

    Hashes of rows before are in those. Earlier schemas have hashes as text.
    """
    made = {"lifetime_rho_nano", "previous", "hash"}
    names = [name for name in database.table("ledger").columns_dict if name not in made]
    return database.execute(
        f"SELECT {', '.join(names)}, CAST(hash AS BLOB) AS hash,"  # noqa: S608
        " sum(rho_nano) OVER (PARTITION BY scope ORDER BY seq) AS lifetime_rho_nano"
        " FROM ledger ORDER BY seq"
    )


def _fill(copy: Database, table: str, rows: sqlite3.Cursor) -> None:
    """Insert rows as they come: there may be a hundred thousand."""
    names = [each[0] for each in rows.description]
    into = f"INSERT INTO {table} ({', '.join(names)})"
    copy.conn.executemany(f"{into} VALUES ({', '.join('?' * len(names))})", rows)


def add_batches(copy: Database, batches: Iterable[Batch], now: int) -> None:
    """Write batches that are there into the copy, without checksums, which nobody verifies."""
    rows = ((each.source, each.key, each.start, each.end, now) for each in batches)
    with transaction(copy):
        copy.conn.executemany(
            "INSERT OR IGNORE INTO batch (source, key, window_start, window_end, arrived_at)"
            " VALUES (?, ?, ?, ?, ?)",
            rows,
        )


def lower_caps(copy: Database, scope: str, caps: Caps, now: int) -> None:
    """Set the configured caps as a start does, but never above those in force."""
    if declaration_of(copy, scope) is not None:
        old = caps_of(copy, scope)
        if caps == old:
            return
        windows = tuple(dict.fromkeys((*caps.windows, *old.windows)))
        if NO_DELTA_LIMIT in (*caps.deltas, *old.deltas):
            windows = tuple(limit for limit in windows if limit.measure != "delta")
        if caps.measure != old.measure:
            caps = old
        batch = min(caps.batch_nano, old.batch_nano)
        caps = Caps(batch, min(caps.lifetime_nano, old.lifetime_nano), windows, old.measure)
    set_caps(copy, scope, caps, {"by": "plan"}, now)


def try_release(
    copy: Database, job: str, batch: Batch, charge: Charge, now: int
) -> BudgetExhaustedError | None:
    """Charge a release on the copy; the refusal, if a cap refuses it."""
    *others, own = batch.parts or (batch,)
    for each in (*others, own):
        add_batch(copy, each, None, now)
    try:
        reserve(copy, batch.source, job, own, charge, now, others)
    except BudgetExhaustedError as error:
        return error
    return None


def try_test(
    copy: Database, gate: str, batch: Batch, charge: Charge | None, now: int
) -> BudgetExhaustedError | None:
    """Let a batch join the open run of a gate, or, with a charge, a new one; or the refusal."""
    add_batch(copy, batch, None, now)
    run = open_run_of(copy, gate)
    try:
        if charge is not None:
            if run is not None:
                close_run(copy, run, now)
            run = open_run(copy, batch.source, gate, charge, now)
        if run is not None:
            join_run(copy, run, batch, now)
    except BudgetExhaustedError as error:
        return error
    return None
