"""Alerts: each condition is told once a change, through the outbox, in public words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamdp.config import Configuration, load
from streamdp.config.model import Alerts
from streamdp.daemon.alerts import conditions, watch_over
from streamdp.daemon.runtime import Runtime, runtime
from streamdp.errors import (
    AuthenticationError,
    ConfigurationError,
    SinkError,
    SourceError,
    SourceLockedError,
    TooSlowError,
    UnreachableError,
)
from streamdp.store.ledger.ledger import reserve
from streamdp.store.problems import Alert, open_alerts, pause_job, problems, tell_alert
from streamdp.store.verified_open import verify
from streamdp.types import Charge, Release
from streamdp.types.releases import LONGEST_REST
from tests.crash.home import CONFIG, Home
from tests.worlds import EventLog, HandClock, ReplayedEntropy

ALERTS = """
alerts: {sink: pager, on: [stalled, unreadable, budget-low, burnt, dead-letter, undelivered, clock],
         budget_below: 99.9%, stalled_after: 2d}
"""
CHARGE = Charge({"type": "pure", "epsilon": "1/10"}, 100_000_000, 1)
PAGED = CONFIG.replace("sinks:\n", "sinks:\n  pager: {kind: jsonl, path: pages.jsonl}\n") + ALERTS


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.furnish(tmp_path / "home", PAGED)


@pytest.fixture
def running(home: Home) -> Iterator[tuple[Runtime, Configuration, HandClock, EventLog]]:
    configuration, clock, log = home.configuration(), home.clock, EventLog()
    with runtime(configuration, ReplayedEntropy(), clock, log) as found:
        yield found, configuration, clock, log


Running = tuple[Runtime, Configuration, HandClock, EventLog]


def pages(home: Home) -> list[tuple[str, str, str]]:
    path = home.path / "pages.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    assert all((line["type"], line["epsilon"]) == ("alert", 0) for line in lines)
    rows = [(line["rows"][0], line["batch"]) for line in lines]
    return [(row["event"], row["about"], batch) for row, batch in rows]


def section(configuration: Configuration) -> Alerts:
    assert configuration.alerts is not None
    return configuration.alerts


def look(running: Running) -> None:
    found, configuration, clock, log = running
    watch_over(configuration, found.store, ReplayedEntropy(str(clock.seconds)), clock.now(), log)
    found.runner.round([])
    clock.seconds += 1


def test_each_condition_is_told_once_a_change(home: Home, running: Running) -> None:
    """A problem comes, stays, goes and comes again: two pages."""
    store = running[0].store
    for _ in range(2):
        error = SourceError("column x of source stream is not there")
        store.report_problem("daily", "2023-11-15", error, 0)
        for _ in range(3):
            look(running)
        store.settle_problem("daily", "2023-11-15")
        look(running)
    assert pages(home) == [("unreadable", "daily", "2023-11-15")] * 2
    told = [fields for name, fields in running[3].events if name == "alert"]
    assert [fields["reason"] for fields in told] == ["column x of source stream is not there"] * 2
    verify(store.database)


@pytest.mark.parametrize(
    ("on", "ends"),
    [("[unreadable, budget-low, resolved]", True), ("[unreadable, budget-low]", False)],
)
def test_the_end_of_a_condition_is_told_once(tmp_path: Path, on: str, ends: bool) -> None:
    """By an alert that names it; another reason is no end, and needs `resolved` to be told."""
    said = PAGED.replace(ALERTS, f"\nalerts: {{sink: pager, on: {on}}}\n")
    home, log = Home.furnish(tmp_path / "home", said), EventLog()
    configuration, clock = home.configuration(), home.clock
    with runtime(configuration, ReplayedEntropy(), clock, log) as found:
        running = found, configuration, clock, log
        for reason in ("column x is not there", "column y is not there"):
            found.store.report_problem("daily", "2023-11-15", SourceError(reason), clock.now())
            look(running)
        found.store.settle_problem("daily", "2023-11-15")
        for _ in range(3):
            look(running)
        verify(found.store.database)
    told = [("unreadable", "daily", "2023-11-15")] * 2
    assert pages(home) == told + [("resolved", "daily", "2023-11-15")] * ends
    last = json.loads((home.path / "pages.jsonl").read_text().splitlines()[-1])["rows"][0]
    assert last["reason"] == ("unreadable: " if ends else "") + "column y is not there"


def test_a_burnt_charge_and_what_is_watched_no_longer_are_never_resolved(
    home: Home, running: Running
) -> None:
    """What is spent stays spent, and nobody looks whether the other goes on."""
    found, configuration, clock, log = running
    burnt, read = Alert("burnt", "daily", "b", "spent"), Alert("unreadable", "daily", "c", "gone")
    watched = configuration.model_copy(
        update={
            "alerts": section(configuration).model_copy(
                update={"on": ("burnt", "clock", "resolved")}
            )
        }
    )
    with found.store.transaction():
        for number, alert in enumerate((burnt, read)):
            tell_alert(found.store.database, alert, f"{number:024x}", ("pager",), clock.now())
    watch_over(watched, found.store, ReplayedEntropy("ends"), clock.now(), log)
    assert [fields for name, fields in log.events if name == "alert"] == []
    assert open_alerts(found.store.database) == set()


def test_a_server_that_keeps_out_all_jobs_of_a_source_is_told_once(
    home: Home, running: Running
) -> None:
    """Whichever of them meets it next; a slow question or a column that is gone is a job's own."""
    found, _, clock, log = running
    path = home.path / "config.yaml"
    path.write_text(path.read_text().replace("source: drops", "source: stream"))
    configuration, jobs = home.configuration(), ("daily", "parts")
    for error in (
        SourceLockedError("a lock is held on it"),
        UnreachableError("it does not answer"),
        AuthenticationError("it does not admit us"),
    ):
        for job in jobs:
            found.store.report_problem(job, "", error, clock.now())
            watch_over(
                configuration, found.store, ReplayedEntropy(error.code + job), clock.now(), log
            )
        clock.seconds += 1
    told = [fields for name, fields in log.events if name == "alert"]
    assert [fields["job"] for fields in told] == ["source stream"] * 3
    for job in jobs:
        found.store.report_problem(job, "", TooSlowError("it took longer"), clock.now())
    watch_over(configuration, found.store, ReplayedEntropy("slow"), clock.now(), log)
    told = [fields for name, fields in log.events if name == "alert"]
    assert {fields["job"] for fields in told[3:]} == set(jobs)


def test_a_burnt_charge_a_low_budget_and_a_silent_source(home: Home, running: Running) -> None:
    """From the ledger and the clock alone."""
    found, _, clock, _ = running
    batch = next(iter(found.jobs["daily"].source.batches(clock.now())))
    found.store.add_batches([(batch, None)], clock.now())
    left = found.store.reserve("stream", "daily", batch, CHARGE, clock.now())
    found.store.burn(left, clock.now())
    look(running)
    assert set(pages(home)) == {("burnt", "daily", batch.key), ("budget-low", "stream", "")}
    clock.seconds += 3 * 86_400
    look(running)
    assert pages(home)[2:] == [("stalled", "drops", "")], "nothing has come of it since it is known"
    clock.seconds += 60
    look(running)
    look(running)
    assert pages(home)[3:] == [("stalled", "stream", "")], "its windows last a day themselves"


def test_a_charge_that_a_crash_burnt_is_told_though_its_batch_was_released(
    home: Home, running: Running
) -> None:
    """The round after a crash burns and releases before anyone looks; a day later it is over."""
    found, configuration, clock, _ = running
    batch = next(iter(found.jobs["daily"].source.batches(clock.now())))
    found.store.add_batches([(batch, None)], clock.now())
    with found.store.transaction():  # as another process did that died
        reserve(found.store.database, "stream", "daily", batch, CHARGE, clock.now())
    found.runner.round([found.jobs["daily"]])
    look(running)
    look(running)
    told = [page for page in pages(home) if page[0] == "burnt"]
    assert told == [("burnt", "daily", batch.key)]
    clock.seconds += 86_400
    open_now = conditions(configuration, found.store.database, clock.now(), section(configuration))
    assert "burnt" not in {each.event for each in open_now}


def test_a_source_that_has_ended_or_waits_for_its_schedule_is_not_stalled(tmp_path: Path) -> None:
    """Its last window has come; no job has woken since; all its jobs are paused."""
    weekly = PAGED.replace("sinks: [file]", "sinks: [file], schedule: {every: 4w}")
    home = Home.furnish(tmp_path / "home", weekly)
    home.live()
    configuration, clock = home.configuration(), home.clock
    with runtime(configuration, ReplayedEntropy(), clock, EventLog()) as found:
        database = found.store.database

        def stalled(days: int) -> set[str]:
            later = clock.now() + days * 86_400
            every = conditions(configuration, database, later, section(configuration))
            return {each.about for each in every if each.event == "stalled"}

        assert (stalled(3), stalled(60)) == (set(), {"drops"})
        pause_job(database, "parts", 0)
        assert stalled(60) == set()


def test_the_problem_of_a_file_that_is_taken_away_is_over(home: Home, running: Running) -> None:
    """And the same file, if it comes again, is a new one."""
    found, _, clock, _ = running
    bad = home.path / "drops" / "c.csv"
    for _ in range(2):
        bad.write_text("y\n1\n")
        for _ in range(2):
            found.runner.round([found.jobs["parts"]])
            look(running)
        bad.unlink()
        clock.seconds += LONGEST_REST
        found.runner.round([found.jobs["parts"]])
        assert problems(found.store.database) == ()
        look(running)
    told = [page for page in pages(home) if page[0] == "unreadable"]
    assert told == [("unreadable", "parts", "c.csv")] * 2


def test_a_dead_letter_pages_and_a_page_that_fails_is_retried(home: Home, running: Running) -> None:
    """An alert is owed like a release: a pager that is down gets it later."""

    class Down:
        name = "pager"

        def deliver(self, release: Release) -> None:
            raise SinkError("down")

    found, _, clock, _ = running
    real = found.runner.sinks
    found.runner.sinks = {**real, "pager": Down()}
    found.store.report_problem("daily", "b", SourceError("unreadable"), 0)
    look(running)
    assert pages(home) == []
    found.runner.sinks = real
    clock.seconds += 60
    look(running)
    assert pages(home) == [("unreadable", "daily", "b")]


def test_a_sink_that_takes_nothing_for_an_hour_pages(home: Home, running: Running) -> None:
    """Once, whatever it says the next time, and not before the hour is over."""
    found, _, clock, _ = running

    class Down:
        name = "file"

        def deliver(self, release: Release) -> None:
            raise SinkError(f"no answer at {clock.now()}")

    found.runner.sinks = {**found.runner.sinks, "file": Down()}
    found.runner.round([found.jobs["daily"]])
    began, after = clock.now(), list[int]()
    while clock.now() < began + 3 * 3600:
        clock.seconds += 60
        look(running)
        told = [each for each in pages(home) if each[0] == "undelivered"]
        after += [clock.now() - began] * (len(told) - len(after))
    assert told == [("undelivered", "file", "")]
    assert 3600 < after[0] < 2 * 3600


def test_a_clock_that_goes_back_pages(home: Home, running: Running) -> None:
    """And one that is right again pages no more."""
    running[0].store.beat(None, running[2].now())
    running[2].seconds -= 7200
    look(running)
    look(running)
    assert pages(home) == [("clock", "store", "")]


def test_jobs_that_stand_still_by_a_clock_that_was_ahead_page_once(
    home: Home, running: Running
) -> None:
    """The store and each job say why; it is one alert, however often somebody looks."""
    found, _, clock, _ = running
    found.runner.round(found.jobs.values())
    found.store.beat(None, clock.now())
    clock.seconds -= 30 * 86_400
    for _ in range(4):
        look(running)
    assert [each for each in pages(home) if each[0] == "clock"] == [("clock", "store", "")]


def test_groups_that_changed_page_once(
    home: Home, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One alert names them; another group is another alert, which names all."""
    groups = ["a", "b"]
    said = {each: Alert("changed", "daily", "", f"of {each}") for each in "abcdefghij"}
    monkeypatch.setattr("streamdp.daemon.alerts._clock", lambda *_: (said[each] for each in groups))
    for _ in range(3):
        look(running)
    assert pages(home) == [("changed", "daily", "")]
    groups += "cdefghij"
    for _ in range(3):
        look(running)
    told = [fields["reason"] for name, fields in running[3].events if name == "alert"]
    assert told == ["of a; of b", "of a; of b; of c; of d; of e; of f; of g; of h; and 2 more"]


@pytest.mark.parametrize(
    ("was", "becomes", "why"),
    [
        ("sink: pager", "sink: pagre", "did you mean 'pager'"),
        ("99.9%", "lots", "a share is written 10% or 0.1"),
        ("99.9%", "120%", "between 0% and 100%"),
        ("clock]", "clocks]", "clock"),
    ],
)
def test_a_bad_section_is_refused(home: Home, was: str, becomes: str, why: str) -> None:
    """With the nearest name, or what a share looks like."""
    (home.path / "config.yaml").write_text(PAGED.replace(was, becomes))
    with pytest.raises(ConfigurationError, match=why):
        load(home.path / "config.yaml")
