"""Reports that are written by themselves: each period once, when it is over, and no other file."""

from __future__ import annotations

import re
import stat
from importlib.util import find_spec
from pathlib import Path

import pytest

from streamdp.config import Configuration
from streamdp.daemon.reports import write_due
from streamdp.daemon.runtime import Runtime, runtime
from streamdp.errors import ConfigurationError
from tests.crash.home import CONFIG, Home
from tests.worlds import EventLog, HandClock, ReplayedEntropy

REPORTED = f"{CONFIG}reports:\n  each: {{job: daily, period: day, path: told, form: [html, md]}}\n"

NAMES = sorted(
    f"daily-2023-11-{day}{form}" for day in (15, 16, 17) for form in ("-1.svg", ".html", ".md")
)

MORNING_AFTER = 1_700_287_200
"""2023-11-18 06:00: the last window is over, its day has just ended."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.furnish(tmp_path / "home", REPORTED)


def live(home: Home, log: EventLog, *, work: bool = True) -> None:
    """One round of the daemon."""
    configuration: Configuration = home.configuration()
    with runtime(configuration, ReplayedEntropy(), home.clock, log) as running:
        if work:
            running.runner.round([running.jobs["daily"]])
        watch(running, configuration, home.clock, log)


def watch(running: Runtime, of: Configuration, clock: HandClock, log: EventLog) -> None:
    running.watch(of, ReplayedEntropy("watch"), clock, log)


def written(home: Home) -> list[str]:
    folder = home.path / "told"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_each_period_that_is_over_has_a_report(home: Home) -> None:
    """The oldest first; a second round writes nothing; what is deleted last comes again."""
    log = EventLog()
    live(home, log)
    assert written(home) == NAMES
    assert log.names().count("report.written") == 3
    assert {stat.S_IMODE((home.path / "told" / name).stat().st_mode) for name in NAMES} == {0o600}
    before = {name: (home.path / "told" / name).stat().st_ino for name in NAMES}
    live(home, log, work=False)
    assert {name: (home.path / "told" / name).stat().st_ino for name in NAMES} == before
    (home.path / "told" / NAMES[-1]).unlink()
    live(home, log, work=False)
    assert written(home) == NAMES


def test_a_period_that_may_still_grow_has_none(home: Home) -> None:
    """Until a day after its end, unless a batch of a later one is released."""
    home.clock.seconds = MORNING_AFTER
    live(home, EventLog())
    assert written(home) == NAMES[:6]


def test_files_are_reported_where_they_were_released(home: Home) -> None:
    """They have no windows, and keys in no order of time; a file of a later month comes later."""
    path = home.path / "config.yaml"
    path.write_text(
        path.read_text().replace("job: daily, period: day", "job: parts, period: month")
    )
    for months, name in enumerate(("z", "0", "m")):
        home.clock.seconds += 28 * 86_400
        (home.path / "drops" / f"{name}.csv").write_text("x\n50\n")
        log = EventLog()
        configuration = home.configuration()
        with runtime(configuration, ReplayedEntropy(name), home.clock, log) as running:
            running.runner.round([running.jobs["parts"]])
            watch(running, configuration, home.clock, log)
        assert len(written(home)) == 3 * months
    assert written(home) == [
        f"parts-{month}-01{form}"
        for month in ("2024-01", "2024-02")
        for form in ("-1.svg", ".html", ".md")
    ]
    tables = [(home.path / "told" / name).read_text() for name in written(home)[2::3]]
    told = [re.findall(r"^\| (\w)\.csv", table, re.MULTILINE) for table in tables]
    assert [sorted(names) for names in told] == [["a", "b", "z"], ["0"]]


def test_periods_are_those_of_the_batches_clocks(home: Home) -> None:
    """A day that begins in Berlin is that day's report, though UTC still has the day before."""
    path = home.path / "config.yaml"
    start = "start: 2023-11-15"
    path.write_text(path.read_text().replace(start, f"timezone: Europe/Berlin, {start}"))
    live(home, EventLog())
    assert written(home) == NAMES
    assert "# daily: Wednesday 15 November 2023" in (home.path / "told" / NAMES[2]).read_text()


def test_batches_that_grow_lie_in_no_period(home: Home) -> None:
    """All begin with the first record: refused, with what to type."""
    path = home.path / "config.yaml"
    cut = "start: 2023-11-15, end: 2023-11-18"
    path.write_text(path.read_text().replace(cut, f"{cut}, growing: true"))
    with pytest.raises(ConfigurationError, match="none is of a period"):
        home.configuration()


def test_a_folder_that_cannot_be_written_is_told_once(home: Home) -> None:
    """The daemon goes on, says why, and writes once it can."""
    log = EventLog()
    (home.path / "told").write_text("a file")
    configuration = home.configuration()
    with runtime(configuration, ReplayedEntropy(), home.clock, log) as running:
        running.runner.round([running.jobs["daily"]])
        for _ in range(3):
            watch(running, configuration, home.clock, log)
        assert log.names().count("report.failed") == 1
        (home.path / "told").unlink()
        watch(running, configuration, home.clock, log)
    assert written(home) == NAMES
    assert (home.path / "told" / NAMES[1]).read_text().startswith("<!doctype html>")


def test_a_planted_link_is_not_followed(home: Home) -> None:
    """What stands at the name of an unfinished report is put away, not written through."""
    victim = home.path / "victim"
    victim.write_text("important")
    (home.path / "told").mkdir()
    (home.path / "told" / f".{NAMES[0]}.unfinished").symlink_to(victim)
    live(home, EventLog())
    assert victim.read_text() == "important"
    assert written(home) == NAMES


def test_an_unknown_job_is_refused(home: Home) -> None:
    """With the nearest name."""
    path = home.path / "config.yaml"
    path.write_text(path.read_text().replace("job: daily", "job: dayly"))
    with pytest.raises(ConfigurationError, match="daily"):
        home.configuration()


def test_two_reports_of_one_name_are_refused(home: Home) -> None:
    """A folder takes one period of a job."""
    path = home.path / "config.yaml"
    path.write_text(f"{path.read_text()}  other: {{job: daily, period: week, path: told}}\n")
    with pytest.raises(ConfigurationError, match=r"reports\.each"):
        home.configuration()


@pytest.mark.skipif(find_spec("weasyprint") is None, reason="the extra `pdf` is not installed")
def test_a_report_as_pdf(home: Home) -> None:
    """A PDF file, made without asking for any other."""
    path = home.path / "config.yaml"
    path.write_text(path.read_text().replace("[html, md]", "[pdf]"))
    live(home, EventLog())
    made = home.path / "told" / "daily-2023-11-15.pdf"
    assert made.read_bytes().startswith(b"%PDF-")


def test_nothing_is_written_without_the_section(home: Home) -> None:
    """No report is due where none is asked for."""
    failures: dict[str, str] = {}
    of = home.configuration().model_copy(update={"reports": {}})
    with runtime(of, ReplayedEntropy(), home.clock, EventLog()) as running:
        write_due(of, running.store.database, home.clock.now(), EventLog(), failures)
    assert written(home) == []
    assert failures == {}
