"""The memory of gates: runs with their hidden thresholds, and the answer to each batch.

A run is charged when it is armed. Before a batch is read it joins the run and uses up one test,
in one transaction; its answer is written in a second one. Between the two the batch stands in
`asked`, so that what a crash interrupted is known.

Privacy: `hidden` (the noisy threshold) and `tests` leave this module for the gate's own draw
alone, and both are erased when the run ends. What may be seen is the answer, from its slot on:
its notices are held until `tell`, which follows the end of the slot, or until the next start.

A run is one charge for all batches that a gate ever tests. `open` spends it over the lifetime and
leaves it open, across restarts. Each batch must `join` before it is tested: the run then counts in
full against that batch, and once in every window that holds a batch it joined. `close` ends it.
Nothing is refunded.

Privacy: a run is ε-DP for one record more in each of any number of its batches, so a unit that is
in several of them loses ε once; whoever opens a run must have shown that of its mechanism.
Functions here run inside a transaction of their caller.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from streamdp.database import Database
from streamdp.errors import IntegrityError, StoreError
from streamdp.privacy.filters import Item
from streamdp.store import archive, outbox, problems, row_checksums
from streamdp.store.ledger.chain import append
from streamdp.store.ledger.charges import require_lifetime, require_own_source, require_room
from streamdp.store.ledger.ledger import SETTLES, caps_of, spend
from streamdp.types import Batch, Charge, GateRun, GateVerdict, Json, Run


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


class GateRuns:
    """Runs and answers of gates; each method that writes is one transaction.

    Args:
        connection: To the store, of the calling thread.
        transaction: Opens one that only the newest holder of the store may commit.
        erase: Overwrites what was deleted, outside of the database's file too.
    """

    def __init__(
        self,
        connection: Callable[[], Database],
        transaction: Callable[[], AbstractContextManager[None]],
        erase: Callable[[], None] = lambda: None,
    ) -> None:
        self._connection = connection
        self._transaction = transaction
        self._erase = erase
        self.holding: set[str] = set()
        """Ids of the notices of series that this process is amid."""

    @property
    def _database(self) -> Database:
        return self._connection()

    def open_run(self, gate: str) -> GateRun | None:
        """The run of a gate that is open, if one is."""
        row = self._database.execute(
            "SELECT r.run, l.scope, r.gate, l.epsilon_nano, l.rho_nano, l.delta_atto, r.terms,"
            " r.hidden,"
            " (SELECT count(*) FROM gate_answer a WHERE a.run = r.run), r.asked"
            " FROM gate_run r JOIN ledger l ON l.seq = r.run"
            " WHERE r.gate = ? AND r.ended IS NULL",
            [gate],
        ).fetchone()
        if row is None:
            return None
        *run, terms, hidden, answered, asked = row
        return GateRun(Run(*run), json.loads(terms), json.loads(hidden), answered, asked)

    def waits(self, gate: str) -> bool:
        """Whether a gate must be re-armed by a person."""
        (waiting,) = self._database.execute(
            "SELECT EXISTS (SELECT 1 FROM gate_run WHERE gate = ? AND waits)", [gate]
        ).fetchone()
        return bool(waiting)

    def losses_in_a_row(self, gate: str) -> tuple[int, int]:
        """Runs that were lost since the last answer, and when the gate last did something.

        Without lost runs the time is 0: it is asked at every round, and takes a pass over its rows.
        """
        row: tuple[int, int] = self._database.execute(
            "SELECT count(*), CASE WHEN count(*) > 0 THEN"
            " (SELECT coalesce(max(at), 0) FROM ledger WHERE job = :gate) ELSE 0 END"
            " FROM gate_run WHERE gate = :gate AND (ended = 'lost' OR asked NOT NULL)"
            " AND run > coalesce((SELECT max(run) FROM gate_answer WHERE gate = :gate), 0)",
            {"gate": gate},
        ).fetchone()
        return row

    def accepted(self, gate: str) -> int:
        """How often a gate has accepted."""
        (number,) = self._database.execute(
            "SELECT count(*) FROM gate_answer WHERE gate = ? AND accepted", [gate]
        ).fetchone()
        return int(number)

    def answers(self, gate: str, source: str) -> dict[str, bool]:
        """Keys of the batches a gate has answered for, and whether it accepted."""
        rows = self._database.execute(
            "SELECT batch, accepted FROM gate_answer WHERE gate = ? AND source = ?", [gate, source]
        )
        return {batch: bool(accepted) for batch, accepted in rows}

    def arm(
        self, scope: str, gate: str, charge: Charge, terms: Json, hidden: Json, now: int
    ) -> GateRun:
        """Charge a run and keep its noisy threshold.

        Raises:
            BudgetExhaustedError: A cap refuses; nothing was written.
        """
        with self._transaction():
            run = open_run(self._database, scope, gate, charge, now)
            self._database.execute(
                "INSERT INTO gate_run (run, gate, terms, hidden) VALUES (?, ?, ?, ?)",
                [run.seq, gate, json.dumps(terms), json.dumps(hidden)],
            )
            row_checksums.update(self._database, "gate_run", run=run.seq)
        return GateRun(run, terms, hidden, 0, None)

    def use_test(self, run: Run, batch: Batch, now: int) -> int:
        """Let a batch join the run and use up a test, before the batch is read.

        Returns:
            The number of the test, from 1; no two have the same.

        Raises:
            BudgetExhaustedError: A cap of the batch refuses; nothing was written.
        """
        with self._transaction():
            join_run(self._database, run, batch, now)
            used = self._database.execute(
                "UPDATE gate_run SET tests = tests + 1, asked = ?"
                " WHERE run = ? AND ended IS NULL AND asked IS NULL RETURNING tests",
                [batch.key, run.seq],
            ).fetchone()
            if used is None:
                raise StoreError(f"the last test of {run.job} has no end")
            row_checksums.update(self._database, "gate_run", run=run.seq)
        return int(used[0])

    def leave_out(self, run: Run) -> None:
        """Note that a test ended before its draw: it is used up, and there is no answer."""
        with self._transaction():
            _set(self._database, run, "asked = NULL")

    def answer(self, run: Run, answer: GateVerdict, now: int) -> None:
        """Write the answer of the test that is asked, with all that follows from it."""
        batch = answer.batch
        self.holding.update(notice.id for notice, _ in answer.notices)
        with self._transaction():
            self._database.execute(
                "INSERT INTO gate_answer (gate, batch, source, run, accepted, slot)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                [run.job, batch.key, batch.source, run.seq, answer.accepted, answer.slot],
            )
            about = {"gate": run.job, "batch": batch.key, "source": batch.source}
            row_checksums.update(self._database, "gate_answer", **about)
            _set(self._database, run, "asked = NULL")
            for notice, sinks in answer.notices:
                archive.add_notice(self._database, notice)
                outbox.hold(self._database, notice.id, sinks, now)
            for job in answer.holds:
                problems.add(self._database, job, now)
            if answer.accepted:
                _end(self._database, run, "accepted", answer.waits, now)
        if answer.accepted:
            self._erase()

    def tell(self, notices: Sequence[str], now: int) -> None:
        """Let sinks have the notices of answers whose slot is over, by their ids.

        Args:
            notices: Their ids.
            now: Since when they are due: a time that no duration has a part in.
        """
        if notices:
            with self._transaction():
                outbox.let_go(self._database, notices, now)
            self.holding.difference_update(notices)

    def end(self, run: Run, how: str, waits: bool, now: int) -> None:
        """End a run without an acceptance; one that has ended stays as it ended."""
        with self._transaction():
            if open_run_of(self._database, run.job) == run:
                _end(self._database, run, how, waits, now)
        self._erase()


def end_open_runs(database: Database, now: int) -> None:
    """End every run of a store that may not be the newest: it may have accepted since."""
    for (gate,) in database.execute("SELECT gate FROM gate_run WHERE ended IS NULL").fetchall():
        run = open_run_of(database, gate)
        if run is not None:
            _end(database, run, "lost", False, now)


def _end(database: Database, run: Run, how: str, waits: bool, now: int) -> None:
    """Close the run in the ledger and forget its threshold."""
    close_run(database, run, now)
    forgotten = "asked = NULL, hidden = NULL, tests = NULL"
    _set(database, run, f"{forgotten}, ended = ?, waits = ?", how, waits)


def _set(database: Database, run: Run, change: str, *values: str | int) -> None:
    """Change the row of a run."""
    database.execute(f"UPDATE gate_run SET {change} WHERE run = ?", [*values, run.seq])  # noqa: S608
    row_checksums.update(database, "gate_run", run=run.seq)


def rearm(database: Database, gate: str) -> bool:
    """Let a gate that waits be armed again; whether it waited. In a transaction of the caller."""
    changed = database.execute("UPDATE gate_run SET waits = 0 WHERE gate = ? AND waits", [gate])
    row_checksums.update(database, "gate_run", gate=gate)
    return changed.rowcount > 0
