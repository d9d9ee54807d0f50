"""The ledger: append-only rows (`ledger.chain`); every charge is written before data is touched.

A charge is spent when its `reserve` row is written. The reservation is settled by one `commit` or
`burn` row of amount 0: nothing is refunded. `cap` rows say what a scope may spend from then on;
`open`, `join` and `close` rows are a gate's runs (`store.gates`), `refuse` rows what a cap refused.

What a budget means, and its caps, are bound at first use and never loosened by an edit (`bind`).

A batch that a cap has refused is tried once under the caps in force. Charges are never taken back,
so the stretches that hold a batch stay as full as they were: no time that passes makes room for it.
A row `refuse` remembers that; a later row `cap` ends its word.

Functions that write run inside a transaction of their caller.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from streamdp.database import Database
from streamdp.errors import ConfigurationError, IntegrityError
from streamdp.privacy.amounts import number_text
from streamdp.privacy.filters import Caps, Item, Limit, Place, fullest
from streamdp.store.ledger import chain
from streamdp.store.ledger.chain import append
from streamdp.store.ledger.charges import (
    ASSUMED,
    CUT_OFF,
    all_places,
    borne_by,
    frees,
    last_places,
    lifetime_spent,
    require_own_source,
    require_room,
    unplaced,
)
from streamdp.types import Batch, Charge, Json, Reservation

WHOLE_STORE = "*"
"""Scope of rows that concern all scopes; no source has this name."""

SETTLES = "purpose IN ('commit', 'burn', 'close')"
"""Condition of the rows that end a charge, in the words of their index, which SQLite uses then."""


def reserve(
    database: Database,
    scope: str,
    job: str,
    batch: Batch,
    charge: Charge,
    now: int,
    others: Sequence[Batch] = (),
) -> Reservation:
    """Spend a charge if every cap admits it.

    Args:
        database: The store.
        scope: Whose budget.
        job: Who spends it.
        batch: Whose records are read.
        charge: The price.
        now: POSIX time.
        others: Batches that are read in the same question. The charge counts in full against each
            of them, and once over the lifetime and in every stretch that holds some of them.

    Privacy: one draw on the records of all these batches together is a loss of the charge to each
    record and to each unit, once, in however many of them it is.

    Raises:
        BudgetExhaustedError: A cap refuses; nothing was written.
    """
    caps = caps_of(database, scope)
    require_own_source(scope, batch)
    item = Item(0, charge.epsilon_nano, charge.rho_nano, charge.delta_atto)
    require_room(database, caps, job, batch, item, new=True)
    for other in others:
        require_own_source(scope, other)
        require_room(database, caps, job, other, item, new=False)
    seq = spend(database, "reserve", scope, job, batch.key, charge, caps, now, repeats=True)
    for other in others:
        _join(database, seq, other, job, {"type": "window"}, now)
    return Reservation(seq, scope, job, batch.key)


def spend(
    database: Database,
    purpose: str,
    scope: str,
    job: str,
    batch: str | None,
    charge: Charge,
    caps: Caps,
    now: int,
    *,
    repeats: bool = False,
) -> int:
    """Write the row of a charge that the caps admit, and return its number.

    One that may repeat the job's charge before is stored short.
    """
    return chain.append(
        database,
        at=now,
        purpose=purpose,
        scope=scope,
        job=job,
        batch=batch,
        epsilon_nano=charge.epsilon_nano,
        rho_nano=charge.rho_nano,
        delta_atto=charge.delta_atto,
        event=charge.event,
        caps=caps,
        repeats=repeats,
    )


_DIED: Json = {"died": True}


def settle(
    database: Database,
    reservation: Reservation,
    now: int,
    release_id: str | None = None,
    seal: str | None = None,
    *,
    died: bool = False,
) -> None:
    """Close a reservation: as committed if there is a release, as burnt if there is none.

    The seal is `archive.seal_of` the release: it brings the archive under the ledger's chain. A
    charge that is burnt as its process died says so: it need not have been the job's fault.
    """
    chain.append(
        database,
        at=now,
        purpose="commit" if release_id else "burn",
        scope=reservation.scope,
        job=reservation.job,
        batch=reservation.batch,
        reservation=reservation.seq,
        event={"type": "settled"} | ({"seal": seal} if seal else {}) | (_DIED if died else {}),
        release_id=release_id,
        caps=caps_of(database, reservation.scope),
    )


def open_reservations(database: Database) -> tuple[Reservation, ...]:
    """Charges neither committed nor burnt, as of a process that died."""
    rows = database.query(
        "SELECT seq, scope, job, batch FROM ledger r"  # noqa: S608
        " WHERE purpose = 'reserve' AND NOT EXISTS"
        f" (SELECT 1 FROM ledger s WHERE s.reservation = r.seq AND s.{SETTLES}) ORDER BY seq"
    )
    return tuple(Reservation(**row) for row in rows)


def set_caps(database: Database, scope: str, caps: Caps, about: Json, now: int) -> None:
    """Write what a scope may spend from now on; `about` says who and why."""
    windows = [asdict(limit) for limit in caps.windows]
    measure = {} if caps.measure == "epsilon" else {"measure": caps.measure}
    chain.append(
        database,
        at=now,
        purpose="cap",
        scope=scope,
        event={"type": "cap", **about, **measure, **({"windows": windows} if windows else {})},
        caps=caps,
    )


def note(database: Database, about: Json, now: int) -> None:
    """Write down what a person decided about the store as a whole."""
    chain.append(
        database,
        at=now,
        purpose="note",
        scope=WHOLE_STORE,
        event={"type": "note", **about},
        caps=Caps(0, 0),
    )


def notes(database: Database) -> list[Json]:
    """Decisions about the store as a whole, oldest first."""
    rows = database.execute("SELECT event FROM ledger WHERE purpose = 'note' ORDER BY seq")
    return [json.loads(event) for (event,) in rows]


def assume_spent(
    database: Database, reservation: Reservation, charge: Charge, about: Json, now: int
) -> int:
    """Charge and burn an assumed spending, whatever the caps; return the row of the charge."""
    scope, batch = reservation.scope, reservation.batch
    known = replace(charge, event={**charge.event, **about})
    caps = caps_of(database, scope)
    seq = spend(database, "reserve", scope, reservation.job, batch, known, caps, now)
    settle(database, replace(reservation, seq=seq), now)
    return seq


def assume_joined(database: Database, seq: int, batch: Batch, job: str, now: int) -> None:
    """Count an assumed charge against one more batch: once in each stretch, as a run."""
    _join(database, seq, batch, job, {"type": "run"}, now)


def _join(database: Database, seq: int, batch: Batch, job: str, event: Json, now: int) -> None:
    """Count a charge against one more batch."""
    chain.append(
        database,
        at=now,
        purpose="join",
        scope=batch.source,
        job=job,
        batch=batch.key,
        reservation=seq,
        event=event,
        caps=caps_of(database, batch.source),
    )


def burns_in_a_row(database: Database, scope: str, job: str) -> tuple[int, int]:
    """Questions of a job that failed since its last release, and when the last did (or 0)."""
    row: tuple[int, int] = database.execute(
        "SELECT count(*), coalesce(max(at), 0) FROM ledger WHERE +scope = :scope"
        " AND job = :job AND purpose = 'burn' AND event ->> 'died' IS NULL AND seq > coalesce("
        " (SELECT max(seq) FROM ledger WHERE job = :job AND purpose = 'commit'), 0)",
        {"scope": scope, "job": job},
    ).fetchone()
    return row


def deaths_in_a_row(database: Database, scope: str, job: str) -> tuple[int, int, int]:
    """Deaths of the process that burnt a charge of a job since its last release.

    They are counted from the last death on that burnt charges of other jobs alone: what killed it
    then was not this job. A charge that was cut off names no job; it counts for all of its scope.
    Deaths of one batch are counted whatever died in between: one that is killed by chance is soon
    released, and one that kills never is.

    Returns:
        How many in a row, how many of the batch that died last, and when that was (or 0).
    """
    row: tuple[int, int, int] = database.execute(
        "WITH died AS MATERIALIZED (SELECT seq, at, batch FROM ledger WHERE +scope = :scope"
        "  AND job IN (:job, :cut_off) AND purpose = 'burn'"
        "  AND (event ->> 'died' OR job = :cut_off) AND seq > coalesce("
        "  (SELECT max(seq) FROM ledger WHERE job = :job AND purpose = 'commit'), 0)),"
        " elsewhere AS (SELECT max(o.at) AS at FROM ledger o WHERE o.purpose = 'burn'"
        "  AND o.event ->> 'died' AND o.job != :job AND o.at >= (SELECT min(at) FROM died)"
        "  AND o.at NOT IN (SELECT at FROM died))"
        " SELECT (SELECT count(*) FROM died WHERE at > coalesce((SELECT at FROM elsewhere), -1)),"
        " (SELECT count(*) FROM died WHERE batch ="
        "   (SELECT batch FROM died ORDER BY seq DESC LIMIT 1)),"
        " (SELECT coalesce(max(at), 0) FROM died)",
        {"scope": scope, "job": job, "cut_off": CUT_OFF},
    ).fetchone()
    return row


def charges_after(database: Database, seq: int) -> list[tuple[Any, ...]]:
    """Every charge behind a row.

    Number, hash, scope, batch, epsilon, rho, whether it is a run's (1) or one that counts against
    several batches (2), the window of the batch, and delta.
    """
    return database.execute(
        "SELECT l.seq, lower(hex(l.hash)), l.scope, coalesce(l.batch, ''),"
        " coalesce(r.epsilon_nano, l.epsilon_nano), coalesce(r.rho_nano, l.rho_nano),"
        " CASE WHEN l.purpose != 'join' THEN 0 WHEN r.purpose = 'open' THEN 1 ELSE 2 END,"
        " b.window_start, b.window_end, coalesce(r.delta_atto, l.delta_atto)"
        " FROM ledger l LEFT JOIN ledger r ON l.purpose = 'join' AND r.seq = l.reservation"
        " LEFT JOIN batch b ON b.source = l.scope AND b.key = l.batch"
        " WHERE l.seq > ? AND l.purpose IN ('reserve', 'open', 'join') ORDER BY l.seq",
        [seq],
    ).fetchall()


def spent_by_scope(database: Database) -> Counter[tuple[str, str]]:
    """Lifetime spending of every scope that has spent anything, added up anew.

    By scope and measure: of pure loss, of the other, of delta, and the number of charges without
    the first.
    """
    rows = database.execute(
        "SELECT scope, coalesce(sum(epsilon_nano), 0), sum(rho_nano), sum(delta_atto),"
        " count(*) - count(epsilon_nano) FROM ledger GROUP BY scope"
    )
    sums = {
        (scope, measure): amount
        for scope, *amounts in rows
        for measure, amount in zip(("epsilon", "rho", "delta", "without"), amounts, strict=True)
        if amount
    }
    return Counter(sums)


def declaration_of(database: Database, scope: str) -> Json | None:
    """Terms of a scope, by its first row and by later ones that added to it.

    None for a new scope.
    """
    rows = database.execute(
        "SELECT event FROM ledger WHERE +scope = ? AND purpose = 'cap' AND job IS NULL"
        " ORDER BY seq DESC",
        [scope],
    )
    said: dict[str, Json] = {}
    for (event,) in rows:
        said |= json.loads(event)
    return said or None


def caps_of(database: Database, scope: str) -> Caps:
    """The caps in force: those of the last row that set some.

    Such rows have no job, by which an index finds them whatever was charged since.

    Raises:
        IntegrityError: The scope was never declared.
    """
    row = database.execute(
        "SELECT batch_cap_nano, lifetime_cap_nano, event FROM ledger"
        " WHERE +scope = ? AND purpose = 'cap' AND job IS NULL ORDER BY seq DESC LIMIT 1",
        [scope],
    ).fetchone()
    if row is None:
        raise IntegrityError(f"the ledger has no caps for {scope}", scope=scope)
    said = json.loads(row[2])
    windows = tuple(Limit(**window) for window in said.get("windows", ()))
    return Caps(row[0], row[1], windows, said.get("measure", "epsilon"))


Terms = tuple[Caps, Mapping[str, str]]
"""Caps, and what a scope is bound to besides: unit, neighbours, and how growing batches grow."""


BATCHES = {"growth"}
"""Terms that only some sources have: how their batches are cut."""


def bind(database: Database, scope: str, terms: Terms, now: int) -> bool:
    """Bind one scope to its terms; whether its caps fell.

    Raises:
        ConfigurationError: The configuration says other than the ledger, or asks for more.
    """
    caps, about = terms
    declared = declaration_of(database, scope)
    if declared is None:
        set_caps(database, scope, caps, {**about, "by": "first use"}, now)
        return False
    _refuse_other_meaning(scope, about, declared)
    in_force = caps_of(database, scope)
    _refuse_higher_caps(scope, caps, in_force)
    if caps != in_force or not about.keys() <= declared.keys():
        set_caps(database, scope, caps, {**about, "by": "configuration"}, now)
    return caps != in_force


def _refuse_other_meaning(scope: str, wanted: Mapping[str, str], declared: Json) -> None:
    for name in (*wanted, *BATCHES & declared.keys() - wanted.keys()):
        said = wanted.get(name, "none")
        if declared.get(name, said) != said:
            raise ConfigurationError(
                f"the ledger of {scope} was opened with {name} {declared[name]!r},"
                f" the configuration says {said!r}",
                where=f"sources.{scope}" if name in BATCHES else "privacy",
                hint="what was spent was spent in those terms: keep them, or begin a new store",
            )


def _refuse_higher_caps(scope: str, caps: Caps, in_force: Caps) -> None:
    for limit in caps.above(in_force):
        raise ConfigurationError(
            f"the configuration allows {scope} more than the ledger's {limit.name} cap of"
            f" {number_text(limit.nano, limit.measure)} {limit.measure}",
            where="privacy.caps",
            hint="a cap is not raised or dropped by an edit: `streamdp cap` writes it into the"
            " ledger, with your name and reason",
        )


def pass_over(database: Database, scope: str, job: str, batch: str, cap: str, now: int) -> None:
    """Remember that a cap has refused a batch to a job or a gate."""
    append(
        database,
        at=now,
        purpose="refuse",
        scope=scope,
        job=job,
        batch=batch,
        event={"type": "refused", "cap": cap},
        caps=caps_of(database, scope),
    )


def passed_over(database: Database, scope: str, job: str) -> frozenset[tuple[str, str]]:
    """A job or gate, and keys of the batches that were refused to it since the caps were set.

    One that was insisted on, and then found room, is no longer among them.

    Args:
        database: The store.
        scope: Whose caps.
        job: Or gate.
    """
    rows = database.execute(
        "SELECT job, batch FROM ledger r WHERE job = :job AND +scope = :scope"
        " AND purpose = 'refuse' AND seq >"
        " (SELECT max(seq) FROM ledger WHERE +scope = :scope AND job IS NULL AND purpose = 'cap')"
        " AND NOT EXISTS (SELECT 1 FROM ledger c WHERE c.scope = r.scope AND c.batch = r.batch"
        " AND c.purpose IN ('reserve', 'join') AND c.job = r.job AND c.seq > r.seq)",
        {"scope": scope, "job": job},
    )
    return frozenset((task, batch) for task, batch in rows)


def refused_since(database: Database, scope: str, job: str) -> int | None:
    """When caps began to refuse a job after its last charge; None if they do not."""
    (since,) = database.execute(
        "SELECT min(at) FROM ledger WHERE scope = :scope AND job = :job AND purpose = 'refuse'"
        " AND seq > coalesce((SELECT max(seq) FROM ledger WHERE job = :job"
        "   AND purpose IN ('reserve', 'open')), 0)",
        {"scope": scope, "job": job},
    ).fetchone()
    return None if since is None else int(since)


@dataclass(frozen=True, slots=True)
class Room:
    """One cap; amounts in units of its measure.

    Args:
        limit: The cap.
        fullest_nano: The most that any stretch of its width has ever held.
        left_nano: What it has room for in the next batch.
        frees: When the next batch finds room for the price that was asked for.
    """

    limit: Limit
    fullest_nano: int
    left_nano: int
    frees: str


def rooms(database: Database, scope: str, price: Item) -> tuple[Room, ...]:
    """Every cap in force.

    Args:
        database: The store.
        scope: One that was declared.
        price: Of all releases of a batch together.
    """
    places = all_places(database, scope)
    borne = borne_by(database, scope, places)
    found = []
    for limit in caps_of(database, scope).limits:
        left, when = _next(database, limit, scope, price)
        if limit.lifetime:
            most = lifetime_spent(database, scope, limit)
        else:
            most = fullest(limit, places, borne)
        found.append(Room(limit, most, left, when))
    return tuple(found)


def most_within(database: Database, scope: str, widths: Sequence[Limit]) -> list[int]:
    """The most that any batch, or any so many in a row, have ever been charged together.

    Args:
        database: The store.
        scope: One that was declared.
        widths: Limits over batches. Charges whose batch is not written down are in each stretch of
            several.
    """
    places = all_places(database, scope)
    keys = database.execute(
        "SELECT DISTINCT batch FROM ledger WHERE job IN (?, ?) AND +scope = ? AND batch != ''",
        [ASSUMED, CUT_OFF, scope],
    )
    known = {place.key for place in places}
    unknown = [Place(key, 0, 0) for (key,) in keys if key not in known]
    borne = borne_by(database, scope, [*places, *unknown])
    found = []
    for limit in widths:
        alone = fullest(replace(limit, batches=1), unknown, borne)
        lost = sum(each.amount(limit.measure) for each in unplaced(database, limit, scope))
        found.append(max(fullest(limit, places, borne) + lost, alone))
    return found


def held_by(database: Database, scope: str, price: Item) -> tuple[tuple[str, str], ...]:
    """Caps that have no room for a price in the next batch, and when each frees.

    Args:
        database: The store.
        scope: One that was declared, or has spent nothing yet.
        price: Of a release; of a gate's run, under its row in the ledger if it is open.
    """
    if declaration_of(database, scope) is None:
        return ()
    found = (
        (limit, _next(database, limit, scope, price)[1])
        for limit in caps_of(database, scope).limits_of(price)
        if not (limit.lifetime and price.seq)
    )
    return tuple((limit.name, when) for limit, when in found if when != "now")


def _next(database: Database, limit: Limit, scope: str, price: Item) -> tuple[int, str]:
    """Room of a cap in the next batch, and the time when it has room for a price."""
    cost = price.amount(limit.measure)
    if limit.lifetime:
        left = max(limit.nano - lifetime_spent(database, scope, limit), 0)
        return left, "now" if cost <= left else "never"
    near = last_places(database, limit, scope)
    borne = borne_by(database, scope, near)
    held = {item for place in near for item in borne.get(place.key, ())}
    held.update(unplaced(database, limit, scope))
    used = sum(item.amount(limit.measure) for item in held if item.seq != price.seq)
    left = max(limit.nano - used, 0)
    return left, "now" if cost <= left else frees(database, limit, scope, cost, near)
