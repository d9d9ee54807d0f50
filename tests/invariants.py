"""What must hold of a store whatever happened to the processes that wrote it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from streamdp.database import Database
from streamdp.store import archive
from streamdp.store.database import connect_to_read
from streamdp.store.ledger import chain


def violations(path: Path, sinks: int | None = None) -> list[str]:
    """Names of the invariants a store breaks; none is wanted.

    Args:
        path: The store; no process works on it, and recovery has run.
        sinks: Number of sinks each release is owed to; None where that differs between jobs.
    """
    with closing(connect_to_read(path)) as database:
        return _violations(database, sinks)


def _violations(database: Database, sinks: int | None) -> list[str]:
    def number(sql: str) -> int:
        (value,) = database.execute(sql).fetchone()
        return int(value)

    chain.verify(database)
    archive.verify(database)
    releases = number("SELECT count(*) FROM release")
    committed = "FROM ledger WHERE purpose = 'commit'"
    reserved = number("SELECT count(*) FROM ledger WHERE purpose = 'reserve'")
    settled = number("SELECT count(*) FROM ledger WHERE purpose IN ('commit', 'burn')")
    twice = "SELECT count(*) FROM (SELECT 1 FROM release GROUP BY source, batch, job"
    over = (
        "SELECT count(*) FROM (SELECT 1 FROM ledger l WHERE purpose = 'reserve'"
        f" GROUP BY scope, batch HAVING {_in_measure('rho_nano', 'epsilon_nano', 'sum')} >"
        " (SELECT max(batch_cap_nano) FROM ledger))"
    )
    spent = _in_measure("lifetime_rho_nano", "lifetime_spent_nano")
    lifetime = f"purpose = 'reserve' AND {spent} > lifetime_cap_nano"
    cap_of_delta = (
        "SELECT max(w.value ->> 'nano') FROM ledger c, json_each(c.event, '$.windows') w"
        " WHERE c.purpose = 'cap' AND c.scope = l.scope AND w.value ->> 'measure' = 'delta'"
        " AND w.value ->> 'batches' IS NULL AND w.value ->> 'seconds' IS NULL"
    )
    above = f"purpose = 'reserve' AND lifetime_delta_atto > coalesce(({cap_of_delta}), 0)"
    unsummed = (
        "SELECT count(*) FROM (SELECT lifetime_delta_atto AS said, sum(delta_atto)"
        " OVER (PARTITION BY scope ORDER BY seq) AS added FROM ledger) WHERE said != added"
    )
    unpaid = (
        "SELECT count(*) FROM release r LEFT JOIN ledger l ON l.seq = r.reservation"
        " WHERE l.seq IS NULL OR l.epsilon_nano IS NOT r.epsilon_nano"
    )
    holds = {
        "committed charges = releases": number(f"SELECT count(*) {committed}") == releases,
        "learner versions = releases": number("SELECT count(*) FROM learner") == releases,
        "outbox rows = releases x sinks": sinks is None
        or number("SELECT count(*) FROM outbox") == releases * sinks,
        "no reservation is open": reserved == settled,
        "no batch is released twice": number(f"{twice} HAVING count(*) > 1)") == 0,
        "no batch is above its cap": number(over) == 0,
        "no scope is above its cap": number(f"SELECT count(*) FROM ledger l WHERE {lifetime}") == 0,
        "no scope is above its cap on delta": number(f"SELECT count(*) FROM ledger l WHERE {above}")
        == 0,
        "deltas add up": number(unsummed) == 0,
        "every release is paid for": number(unpaid) == 0,
    }
    return [name for name, held in holds.items() if not held]


def _in_measure(rho: str, epsilon: str, total: str = "") -> str:
    """SQL of an amount of ledger rows `l` in the measure of the caps of their scope.

    What has no pure loss is above every cap in epsilon.
    """
    in_rho = (
        "(SELECT event ->> 'measure' FROM ledger c WHERE c.scope = l.scope AND c.purpose = 'cap'"
        " ORDER BY c.seq DESC LIMIT 1) IS 'rho'"
    )
    return f"CASE WHEN {in_rho} THEN {total}({rho}) ELSE {total}(coalesce({epsilon}, 1 << 60)) END"


def gate_violations(path: Path, jobs: int) -> list[str]:
    """Names of the invariants of gates a store breaks; none is wanted.

    Args:
        path: The store; no process works on it.
        jobs: Number of jobs behind each gate.
    """
    database = connect_to_read(path)

    def number(sql: str) -> int:
        (value,) = database.execute(sql).fetchone()
        return int(value)

    unjoined = (
        "SELECT count(*) FROM gate_answer a WHERE NOT EXISTS (SELECT 1 FROM ledger l"
        " WHERE l.purpose = 'join' AND l.reservation = a.run AND l.batch = a.batch)"
    )
    open_runs = (
        "SELECT count(*) FROM ledger o WHERE purpose = 'open' AND NOT EXISTS"
        " (SELECT 1 FROM ledger c WHERE c.purpose = 'close' AND c.reservation = o.seq)"
    )
    after = (
        "SELECT count(*) FROM gate_answer y JOIN gate_answer a ON a.run = y.run"
        " WHERE y.accepted AND a.batch > y.batch"
    )
    ends = "SELECT count(*) FROM gate_run WHERE ended"
    yes = "SELECT count(*) FROM gate_answer WHERE accepted"
    no = "SELECT count(*) FROM gate_answer WHERE NOT accepted"
    told = "SELECT count(*) FROM notice WHERE kind"
    holds = {
        "every answer is of a batch that had joined its run": number(unjoined) == 0,
        "every run is in the ledger": number("SELECT count(*) FROM gate_run")
        == number("SELECT count(*) FROM ledger WHERE purpose = 'open'"),
        "an acceptance ends its run": number(f"{ends} = 'accepted'") == number(yes),
        "nothing is answered after it": number(after) == 0,
        "what is open in one table is in the other": number(f"{ends} IS NULL") == number(open_runs),
        "an ended run has no threshold": number(f"{ends} NOT NULL AND hidden NOT NULL") == 0,
        "every rejection let each job's release stand": number(f"{told} = 'standing'")
        == jobs * number(no),
        "every acceptance was told": number(f"{told} = 'gate'") == number(yes),
    }
    return [name for name, held in holds.items() if not held]
