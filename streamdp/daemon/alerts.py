"""Alerts: conditions that need an operator, each told once when it begins and when it is over."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

from streamdp.config import Configuration
from streamdp.config.model import Alerts, Changed
from streamdp.daemon.copies import place_of
from streamdp.database import Database
from streamdp.errors import ConfigurationError, StreamdpError
from streamdp.privacy.amounts import NANO, epsilon_text
from streamdp.reports.holds import clock_errors
from streamdp.reports.releases.suspicion import suspicions
from streamdp.sections.schedules import next_times
from streamdp.sources.section import Batches
from streamdp.sources.windows import Windows
from streamdp.store.clock_guard import known_at
from streamdp.store.ledger.chain import spent_of
from streamdp.store.ledger.ledger import caps_of, declaration_of
from streamdp.store.measurements import select_measurements
from streamdp.store.outbox import attempts_in
from streamdp.store.problems import (
    RESOLVED,
    Alert,
    BatchProblem,
    as_told,
    close_alert,
    open_alerts,
    paused_jobs,
    problems,
    tell_alert,
)
from streamdp.store.pulse import Pulse
from streamdp.store.reading.browse import newest_releases
from streamdp.store.reading.reports import arrivals, last_burnt, owed_rows, refusing_sinks
from streamdp.store.sqlite import SqliteStore
from streamdp.types import Entropy, Log, Release, Row

IDENTITY_BITS = 96

DAY = 86_400

OF_THE_SERVER = frozenset({"source-locked", "unreachable", "authentication"})
"""Codes of failures that meet each job of a source alike."""

AN_HOUR_OF_ATTEMPTS = attempts_in(3600)
"""Attempts of one delivery after which an hour has passed."""

STAYS = frozenset({"burnt"})
"""Events that nothing undoes: they are told as long as they are new, and no end of them is."""


def watch_over(
    configuration: Configuration,
    store: SqliteStore,
    entropy: Entropy,
    now: int,
    log: Log,
    pulse: Pulse | None = None,
) -> None:
    """Report conditions that began since the last look, and those that ended.

    Args:
        configuration: What is watched.
        store: Of the daemon.
        entropy: Source of the names of alerts.
        now: POSIX time.
        log: Of the daemon.
        pulse: What the daemon does now; None where none works.

    Raises:
        StoreError: It could not be written down; the next look tells it.
    """
    section = configuration.alerts
    if section is None:
        return
    known = open_alerts(store.database)
    wanted = one_a_subject(conditions(configuration, store.database, now, section, pulse, known))
    new = [alert for alert in wanted if alert not in known]
    over = known - set(wanted)
    if not new and not over:
        return
    ends = _ends(over, wanted, section)
    with store.transaction():
        for alert in over:
            close_alert(store.database, alert, now)
        for alert in (*ends, *new):
            identity = f"{entropy.bits(IDENTITY_BITS):024x}"
            tell_alert(store.database, alert, identity, (section.sink,), now)
    for alert in (*ends, *new):
        log("alert", alert=alert.event, job=alert.about, batch=alert.batch, reason=alert.reason)


MOST_REASONS = 8
"""Reasons that one alert names."""


def one_a_subject(alerts: Iterable[Alert]) -> list[Alert]:
    """One alert for all reasons of a subject, as groups of a job that changed, or jobs by a clock.

    An open alert is known by its subject: of several one would be kept, and the others told anew at
    each look.
    """
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for alert in alerts:
        reasons.setdefault(alert.subject, []).append(alert.reason)
    found = []
    for subject, said in reasons.items():
        named = "; ".join(said[:MOST_REASONS])
        more = len(said) - MOST_REASONS
        found.append(Alert(*subject, f"{named}; and {more} more" if more > 0 else named))
    return found


def _ends(over: Collection[Alert], wanted: Collection[Alert], section: Alerts) -> list[Alert]:
    """Alerts of conditions that are over; none where one goes on for another reason."""
    if RESOLVED not in section.on:
        return []
    go_on = {each.subject for each in wanted}
    return [
        Alert(RESOLVED, each.about, each.batch, f"{each.event}: {each.reason}")
        for each in sorted(over, key=lambda each: each.subject)
        if each.event in section.on and each.event not in STAYS and each.subject not in go_on
    ]


def conditions(
    configuration: Configuration,
    database: Database,
    now: int,
    section: Alerts,
    pulse: Pulse | None = None,
    told: Collection[Alert] = (),
) -> Iterator[Alert]:
    """Conditions that need an operator now, of the configured kinds.

    Args:
        configuration: What is watched.
        database: The store.
        now: POSIX time.
        section: Which kinds.
        pulse: What the daemon does now; None where none works.
        told: Conditions that were told and still held at the last look.
    """
    found: dict[str, Iterator[Alert]] = {
        "stalled": _stalled(configuration, database, now, section.stalled_after),
        "unreadable": _unreadable(configuration, database),
        "budget-low": _low(configuration, database, section),
        "burnt": _burnt(configuration, database, now),
        "dead-letter": _dead(database),
        "undelivered": _undelivered(database, section.sink, told),
        "suspect": _suspect(configuration, database),
        "changed": iter(())
        if section.changed is None
        else changes(configuration, database, section.changed),
        "clock": _clock(configuration, database, now),
        "backup": _backup(configuration, database, now, pulse),
        "late": iter(()) if pulse is None else late_alerts(configuration, pulse, told),
        "store": iter(()),  # the daemon sends it past the outbox, which the store holds
        RESOLVED: iter(()),  # no condition, but the end of one
    }
    for event in section.on:
        yield from found[event]


def _stalled(
    configuration: Configuration, database: Database, now: int, longest: int
) -> Iterator[Alert]:
    """Sources that brought nothing for long, though a job has woken since to look."""
    tasks, paused = configuration.tasks(), paused_jobs(database)
    for name, source in configuration.sources.items():
        readers = [each for each in tasks if configuration.source_of_task(each) == name]
        quiet_at = _quiet_at(database, name, source.batches, longest)
        if quiet_at is not None and any(
            next(iter(next_times(configuration.schedule_of(each), quiet_at, 1)), now) < now
            for each in readers
            if each not in paused
        ):
            yield Alert("stalled", name, "", f"no new batch of {name} for {_span(longest)} or more")


def _quiet_at(database: Database, name: str, batches: Batches, longest: int) -> int | None:
    """When a source has been quiet for long; None if its last window has come, or it is unknown."""
    came_at, last_end, declared_at = arrivals(database, name)
    known_since = declared_at if came_at is None else came_at
    if known_since is None or not isinstance(batches, Windows):
        return None if known_since is None else int(known_since) + longest
    end = batches.end
    if end is not None and last_end is not None and last_end + batches.every > end:
        return None
    first = batches.start + batches.lateness
    return int(max(known_since, first)) + batches.every + longest


def _span(seconds: int) -> str:
    """A duration in its largest whole unit.

    >>> _span(2 * 86_400), _span(5400)
    ('2d', '90m')
    """
    units = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
    return next(f"{seconds // size}{unit}" for unit, size in units.items() if seconds % size == 0)


def _unreadable(configuration: Configuration, database: Database) -> Iterator[Alert]:
    """Batches and sources that cannot be read; a server that keeps out all jobs is told once."""
    tasks = configuration.tasks()
    of_servers: dict[str, BatchProblem] = {}
    for problem in problems(database):
        if problem.code in OF_THE_SERVER and not problem.batch and problem.about in tasks:
            source = configuration.source_of_task(problem.about)
            known = of_servers.setdefault(source, problem)
            of_servers[source] = min(known, problem, key=lambda each: each.since)
        else:
            yield Alert("unreadable", problem.about, problem.batch, problem.reason)
    for source, problem in of_servers.items():
        yield Alert("unreadable", f"source {source}", "", problem.reason)


def _low(configuration: Configuration, database: Database, section: Alerts) -> Iterator[Alert]:
    for scope in configuration.sources:
        if declaration_of(database, scope) is None:
            continue
        caps = caps_of(database, scope)
        left = max(caps.lifetime_nano - spent_of(database, scope, caps.measure), 0)
        if left < section.budget_below * caps.lifetime_nano:
            share = f"{float(100 * section.budget_below):g} %"
            unit = "" if caps.measure == "epsilon" else f"{caps.measure} "
            of = f"of the lifetime cap of {unit}{epsilon_text(caps.lifetime_nano)}"
            yield Alert("budget-low", scope, "", f"less than {share} {of} is left")


def _burnt(configuration: Configuration, database: Database, now: int) -> Iterator[Alert]:
    """The last burnt charge of each job: for a day, and for as long as no release followed.

    After a crash the next round burns the charge and releases the batch before anyone looks.
    """
    for job in configuration.releases:
        row = last_burnt(database, job, now - DAY)
        if row is not None:
            pure, rho = row.epsilon_nano, row.rho_nano
            spent = f"rho {rho / NANO:g}" if pure is None else f"epsilon {pure / NANO:g}"
            yield Alert("burnt", job, row.batch, f"{spent} was spent without a release")


def _suspect(configuration: Configuration, database: Database) -> Iterator[Alert]:
    """Jobs whose newest release is odd, from releases alone."""
    for job in configuration.releases:
        reasons = suspicions(configuration, database, job)
        if reasons:
            batch = newest_releases(database, job, 1)[0].batch
            yield Alert("suspect", job, batch, "; ".join(reasons))


def _dead(database: Database) -> Iterator[Alert]:
    for sink in sorted({str(row["sink"]) for row in owed_rows(database) if row["dead_at"]}):
        yield Alert("dead-letter", sink, "", "`streamdp outbox` lists what was not delivered")


def _undelivered(database: Database, pager: str, told: Collection[Alert]) -> Iterator[Alert]:
    """Sinks that have refused one delivery for an hour; what tells of it cannot tell of itself.

    One that is told is not told anew because it refuses for another reason by now.
    """
    refusing = refusing_sinks(database, AN_HOUR_OF_ATTEMPTS, pager)
    for sink, reason in sorted(refusing.items()):
        why = f"{reason}; it has taken nothing for an hour, and is tried again"
        yield as_told(Alert("undelivered", sink, "", why), told)


def _clock(configuration: Configuration, database: Database, now: int) -> Iterator[Alert]:
    longest_step = configuration.store.max_clock_step
    known = known_at(database)
    for error in clock_errors(configuration, database, now, configuration.tasks()):
        yield Alert("clock", "store", "", error.line)
    if known is not None and now - known > longest_step:
        why = "the clock is far ahead, nothing is sealed: set it, or `streamdp run --accept-clock`"
        yield Alert("clock", "store", "", why)


def store_alert(reason: str) -> Alert:
    """The alert of a store that cannot be written."""
    return Alert("store", "store", "", reason)


def as_release(alert: Alert, entropy: Entropy, now: int) -> Release:
    """An alert in the form in which sinks take releases, as the outbox would hand it over."""
    row: Row = {"event": alert.event, "about": alert.about, "reason": alert.reason}
    return Release(
        id=f"{entropy.bits(IDENTITY_BITS):024x}",
        job=alert.about,
        source="",
        batch=alert.batch,
        window_start=None,
        window_end=None,
        kind="alert",
        epsilon_nano=0,
        released_at=now,
        rows=(row,),
    )


def _backup(
    configuration: Configuration, database: Database, now: int, pulse: Pulse | None
) -> Iterator[Alert]:
    """A condition if the newest backup is old: it is renewed when due, so renewing failed.

    A daemon knows its newest one, and does not wait for a storage that does not answer.
    """
    section = configuration.backup
    if section is None:
        return
    newest = None if pulse is None else pulse.backup_at
    if pulse is None:
        with suppress(StreamdpError):  # a storage that does not answer takes no copy either
            newest = place_of(section, configuration.store.path).newest(database)
    elif newest is None and not pulse.backup:
        return
    if newest is None or now - newest > 2 * section.every:
        yield Alert("backup", "store", "", "there is no new copy of the store: the log says why")


READ = 100
"""Batches that are read: those compared, and those that tell how much days differ anyway."""

_known: dict[tuple[str, Changed], tuple[str, tuple[Alert, ...]]] = {}
"""The newest release of each job and what was found of it; a look a second costs nothing so."""


def changes(configuration: Configuration, database: Database, section: Changed) -> Iterator[Alert]:
    """Jobs of which a quantile changed in the last batches; a reason for each group.

    Privacy: from measurements of releases, which are published: post-processing.
    """
    for job in configuration.releases:
        newest = next(iter(newest_releases(database, job, 1)), None)
        if newest is None or newest.window_start is None:
            continue
        key = job, section
        if _known.get(key, ("",))[0] != newest.id:
            since = newest.window_start - READ * ((newest.window_end or 0) - newest.window_start)
            _known[key] = newest.id, tuple(_found(database, job, since, section))
        yield from _known[key][1]


def _found(database: Database, job: str, since: int, section: Changed) -> Iterator[Alert]:
    from streamdp.answers.changes import changed_lately
    from streamdp.answers.job import Measured

    measured = Measured(job, select_measurements(database, job, since))
    if not any(each.measurements for each in measured.releases):
        return
    for group in measured.groups:
        try:
            of = measured.distribution(group)
        except ConfigurationError:  # what is drawn and not counted cannot be watched so
            continue
        options = section.quantile, float(section.by), section.sure
        turned = changed_lately(of.history, of.scales, *options)
        if turned:
            verb = "rose" if turned > 0 else "fell"
            named = f" of {' '.join(group)}" if group else ""
            yield Alert(
                *("changed", job, ""),
                f"the quantile {section.quantile:g}{named} {verb} by"
                f" {float(100 * section.by):g} % or more in the last batches",
            )


def late_alerts(
    configuration: Configuration, pulse: Pulse, told: Collection[Alert] = ()
) -> Iterator[Alert]:
    """An alert for each job that is late against its own schedule.

    One that is told is not told anew because another job's question is under way by now, unless
    that question hangs.
    """
    for job in pulse.late:
        source = configuration.source_of_task(job)
        hangs = any(each.source == source and each.state == "hung" for each in pulse.asking)
        reason = pulse.why_late(job, source)
        alert = Alert("late", job, "", f"{reason}; it has missed a turn of its schedule")
        yield alert if hangs else as_told(alert, told)
