"""Runs: one charge for all batches that a gate ever tests.

`open` spends it over the lifetime and leaves it open, across restarts. Each batch must `join`
before it is tested: the run then counts in full against that batch, and once in every window that
holds a batch it joined. `close` ends it. Nothing is refunded.

Privacy: a run is ε-DP for one record more in each of any number of its batches, so a unit that is
in several of them loses ε once; whoever opens a run must have shown that of its mechanism.
Functions here run inside a transaction of their caller.
"""

from __future__ import annotations

from streamdp.database import Database
from streamdp.errors import IntegrityError
from streamdp.privacy.filters import Item
from streamdp.store.ledger.chain import append
from streamdp.store.ledger.charges import require_lifetime, require_own_source, require_room
from streamdp.store.ledger.ledger import SETTLES, caps_of, spend
from streamdp.types import Batch, Charge, Run


def open_run(database: Database, scope: str, job: str, charge: Charge, now: int) -> Run:
    """Spend a run's charge over the lifetime.

    Raises:
        BudgetExhaustedError: A cap refuses; nothing was written.
        IntegrityError: The job has an open run.
    """
    if open_run_of(database, job) is not None:
        raise IntegrityError(f"{job} has a run that is open")
    caps = caps_of(database, scope)
    item = Item(0, charge.epsilon_nano, charge.rho_nano, charge.delta_atto)
    require_lifetime(database, caps, scope, job, item)
    seq = spend(database, "open", scope, job, None, charge, caps, now)
    return Run(seq, scope, job, charge.epsilon_nano, charge.rho_nano, charge.delta_atto)


def join_run(database: Database, run: Run, batch: Batch, now: int) -> None:
    """Count a run against a batch before the batch is tested; a second time changes nothing.

    Raises:
        BudgetExhaustedError: The cap of the batch, or of a window that holds it, refuses; nothing
            was written.
        IntegrityError: The run is closed.
    """
    if open_run_of(database, run.job) != run:
        raise IntegrityError(f"row {run.seq} is no open run of {run.job}")
    require_own_source(run.scope, batch)
    joined = database.execute(
        "SELECT 1 FROM ledger WHERE reservation = ? AND purpose = 'join' AND batch = ?",
        [run.seq, batch.key],
    ).fetchone()
    if joined is None:
        item = Item(run.seq, run.epsilon_nano, run.rho_nano, run.delta_atto)
        require_room(database, caps_of(database, run.scope), run.job, batch, item, new=False)
        _note(database, run, "join", now, batch.key)


def close_run(database: Database, run: Run, now: int) -> None:
    """End a run: no batch can join it any more. Its charge stays spent.

    Raises:
        IntegrityError: It was closed before.
    """
    if open_run_of(database, run.job) != run:
        raise IntegrityError(f"row {run.seq} is no open run of {run.job}")
    _note(database, run, "close", now, None)


def open_run_of(database: Database, job: str) -> Run | None:
    """The run of a job that is open, if one is."""
    row = database.execute(
        "SELECT seq, scope, job, epsilon_nano, rho_nano, delta_atto FROM ledger r"  # noqa: S608
        " WHERE purpose = 'open' AND job = ? AND NOT EXISTS"
        f" (SELECT 1 FROM ledger c WHERE c.reservation = r.seq AND c.{SETTLES})",
        [job],
    ).fetchone()
    return Run(*row) if row else None


def _note(database: Database, run: Run, purpose: str, now: int, batch: str | None) -> None:
    append(
        database,
        at=now,
        purpose=purpose,
        scope=run.scope,
        job=run.job,
        batch=batch,
        reservation=run.seq,
        event={"type": "run"},
        caps=caps_of(database, run.scope),
    )
