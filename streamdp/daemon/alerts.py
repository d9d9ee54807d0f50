"""Alerts: conditions that need an operator, each reported once when it begins."""

from __future__ import annotations

from collections.abc import Iterator

from sqlite_utils import Database

from streamdp.config import Configuration
from streamdp.config.sections.alerts import Alerts
from streamdp.daemon.places import place_of
from streamdp.errors import StreamdpError
from streamdp.privacy.amounts import NANO, epsilon_text
from streamdp.store.problems import problems
from streamdp.store.reading import watch
from streamdp.store.reading.reports import owed_rows, scope_reports
from streamdp.store.reading.watch import Alert
from streamdp.store.sqlite import SqliteStore
from streamdp.types import Entropy, Log

IDENTITY_BITS = 96

TOLERANCE = 60
"""Seconds that a clock may be behind untold."""


def watch_over(
    configuration: Configuration, store: SqliteStore, entropy: Entropy, now: int, log: Log
) -> None:
    """Report conditions that began since the last look, and close those that ended.

    Raises:
        StoreError: It could not be written down; the next look tells it.
    """
    section = configuration.alerts
    if section is None:
        return
    wanted = list(conditions(configuration, store.database, now, section))
    known = watch.open_alerts(store.database)
    new = [alert for alert in wanted if alert not in known]
    if not new and known <= set(wanted):
        return
    with store.transaction():
        for alert in known - set(wanted):
            watch.close(store.database, alert, now)
        for alert in new:
            identity = f"{entropy.bits(IDENTITY_BITS):024x}"
            watch.tell(store.database, alert, identity, (section.sink,), now)
    for alert in new:
        log("alert", alert=alert.event, job=alert.about, batch=alert.batch, reason=alert.reason)


def conditions(
    configuration: Configuration, database: Database, now: int, section: Alerts
) -> Iterator[Alert]:
    """Conditions that need an operator now, of the configured kinds."""
    found = {
        "stalled": _stalled(configuration, database, now, section.stalled_after),
        "unreadable": _unreadable(database),
        "budget-low": _low(database, section),
        "burnt": _burnt(configuration, database),
        "dead-letter": _dead(database),
        "clock": _clock(database, now, configuration.store.max_clock_step),
        "backup": _backup(configuration, database, now),
    }
    for event in section.on:
        yield from found[event]


def _stalled(
    configuration: Configuration, database: Database, now: int, longest: int
) -> Iterator[Alert]:
    for name in configuration.sources:
        (last,) = database.execute(
            "SELECT max(arrived_at) FROM batch WHERE source = ?", [name]
        ).fetchone()
        if last is not None and now - last > longest:
            yield Alert("stalled", name, "", f"no batch of {name} has come since its last")


def _unreadable(database: Database) -> Iterator[Alert]:
    for problem in problems(database):
        yield Alert("unreadable", problem.about, problem.batch, problem.reason)


def _low(database: Database, section: Alerts) -> Iterator[Alert]:
    for report in scope_reports(database):
        left = max(report.lifetime_cap_nano - report.lifetime_spent_nano, 0)
        if left < section.budget_below * report.lifetime_cap_nano:
            share = f"{float(100 * section.budget_below):g} %"
            unit = "" if report.measure == "epsilon" else f"{report.measure} "
            of = f"of the lifetime cap of {unit}{epsilon_text(report.lifetime_cap_nano)}"
            yield Alert("budget-low", report.scope, "", f"less than {share} {of} is left")


def _burnt(configuration: Configuration, database: Database) -> Iterator[Alert]:
    """Burnt charges behind the last release of each job."""
    for job in configuration.releases:
        row = database.execute(
            "SELECT batch, epsilon_nano, rho_nano FROM ledger"
            " WHERE job = :job AND purpose = 'reserve'"
            " AND seq = (SELECT max(reservation) FROM ledger WHERE job = :job AND purpose = 'burn')"
            " AND seq > coalesce((SELECT max(reservation) FROM ledger WHERE job = :job"
            "   AND purpose = 'commit'), 0)",
            {"job": job},
        ).fetchone()
        if row is not None:
            spent = f"rho {row[2] / NANO:g}" if row[1] is None else f"epsilon {row[1] / NANO:g}"
            yield Alert("burnt", job, row[0], f"{spent} was spent without a release")


def _dead(database: Database) -> Iterator[Alert]:
    for sink in sorted({str(row["sink"]) for row in owed_rows(database) if row["dead_at"]}):
        yield Alert("dead-letter", sink, "", "`streamdp outbox` lists what was not delivered")


def _clock(database: Database, now: int, longest_step: int) -> Iterator[Alert]:
    (known,) = database.execute("SELECT known_at FROM instance").fetchone()
    if known is not None and known - now > TOLERANCE:
        yield Alert("clock", "store", "", "the clock is behind the last time the store knew")
    if known is not None and now - known > longest_step:
        why = "the clock is far ahead, nothing is sealed: set it, or `streamdp run --accept-clock`"
        yield Alert("clock", "store", "", why)


def _backup(configuration: Configuration, database: Database, now: int) -> Iterator[Alert]:
    """A condition if the newest backup is old: it is renewed when due, so renewing failed."""
    section = configuration.backup
    if section is None:
        return
    try:
        newest = place_of(section, configuration.store.path).newest(database)
    except StreamdpError:  # a storage that does not answer takes no copy either
        newest = None
    if newest is None or now - newest > 2 * section.every:
        yield Alert("backup", "store", "", "there is no new copy of the store: the log says why")
