"""Commands as a person types them."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click import unstyle
from click.testing import CliRunner, Result

from streamdp.cli import COMMANDS, ONE_THREAD, cli, main
from streamdp.cli.output import print_rows
from streamdp.errors import StreamdpError
from streamdp.log import close
from streamdp.mechanisms.quantile_tree.planning import accuracy
from streamdp.text import iso
from tests.children import program

DEMO = Path(__file__).parents[2] / "config.yaml"


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The same as a process: with its exit code and without anything caught."""
    return program(main, *arguments)


def typed(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(cli, arguments, input=answer)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the demonstration of ten days, nothing released."""
    text = DEMO.read_text().replace("end: 2014-01-01", "end: 2013-01-11")
    (tmp_path / "config.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    close()


@pytest.fixture(autouse=True)
def few_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    """`plan` simulates a tenth of what it does: these tests are of what it says."""
    monkeypatch.setattr(accuracy, "REPEATS", 8)


@pytest.fixture
def released(home: Path) -> Path:
    """The same after a run."""
    result = typed("run", "--once")
    assert result.exit_code == 0, result.output
    return home


def test_every_command_has_help() -> None:
    """Each name of the table is a command whose help says what it does."""
    for name in COMMANDS:
        result = typed(name, "--help")
        assert result.exit_code == 0, name
        assert "Usage" in result.output


def test_help_lists_commands_and_exit_codes() -> None:
    """Help names every command and every exit code."""
    output = typed("--help").output
    assert all(name in output for name in COMMANDS)
    assert "Exit codes" in output


def test_help_imports_nothing_heavy() -> None:
    """Help must come at once: no numpy, duckdb, pydantic, rich or scheduler."""
    code = (
        "import sys; sys.argv = ['streamdp', '--help']\n"
        "from streamdp.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'duckdb', 'pydantic', 'rich', 'apscheduler', 'structlog', 'yaml'}\n"
        "sys.exit(str(heavy & sys.modules.keys()) if heavy & sys.modules.keys() else 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted on Linux")
def test_linear_algebra_has_one_thread() -> None:
    """However many cores there are: none of its own beside the main thread; a setting is kept."""
    code = (
        "import os, sys; sys.argv = ['streamdp', '--help']\n"
        "from streamdp.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "import numpy; numpy.ones((200, 200)) @ numpy.ones((200, 200))\n"
        "print(len(os.listdir('/proc/self/task')), os.environ['MKL_NUM_THREADS'])"
    )
    plain = {name: text for name, text in os.environ.items() if name not in ONE_THREAD}
    for settings, threads, kept in (
        ({}, 1, "1"),
        ({ONE_THREAD[0]: "2", ONE_THREAD[1]: "3"}, 2, "3"),
    ):
        ran = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=plain | settings
        )
        at_most = min(threads, os.cpu_count() or 1)
        assert ran.stdout.split()[-2:] == [str(at_most), kept], ran.stderr


def test_a_mistyped_command_gets_a_hint() -> None:
    """The nearest name is offered."""
    result = typed("relaeses")
    assert result.exit_code == 2
    assert "releases" in result.output


@pytest.mark.parametrize("demo", [True, False])
def test_init_writes_what_can_be_loaded_and_overwrites_nothing(tmp_path: Path, demo: bool) -> None:
    """The demonstration is valid as it is; the start is once its capitals are names."""
    options = ["--demo"] if demo else []
    assert typed("init", str(tmp_path / "new"), *options).exit_code == 0
    path = tmp_path / "new" / "config.yaml"
    path.write_text(path.read_text().replace("expected_rows: ROWS", "expected_rows: 400"))
    checked = typed("validate", "-c", str(path))
    assert checked.exit_code == 0
    assert ("PERSON is a placeholder" in checked.stderr) is not demo
    assert ("ROWS is a placeholder" in checked.stderr) is False
    again = typed("init", str(tmp_path / "new"), *options)
    assert isinstance(again.exception, StreamdpError)


def test_a_start_asks_for_expected_rows(tmp_path: Path) -> None:
    """Error bars follow from them, so the configuration to start from is refused without."""
    typed("init", str(tmp_path / "new"))
    refused = typed("validate", "-c", str(tmp_path / "new" / "config.yaml"))
    assert isinstance(refused.exception, StreamdpError)
    assert "expected_rows" in str(refused.exception)
    assert "ROWS is a placeholder" in refused.stderr


def test_a_path_that_finds_nothing_is_told_the_nearest_folder(home: Path) -> None:
    """`doctor` and, once there is a store, `status` name the folder that was meant."""
    (home / "sales").mkdir()
    path = home / "config.yaml"
    path.write_text(path.read_text().replace("demo:flights.parquet", "sale/*.parquet"))
    for command in ("doctor", "run --once", "status"):
        found = typed(*command.split())
        if command != "run --once":
            assert f"did you mean {home / 'sales'}?" in found.output


def test_validate_shows_times(home: Path) -> None:
    """Five future times of the one job."""
    (row,) = [json.loads(line) for line in typed("validate", "--json").stdout.splitlines()]
    assert [row[f"wake_{index}"][11:] for index in range(1, 6)] == ["07:00:00Z"] * 5


def test_doctor_finds_a_missing_source(home: Path) -> None:
    """Exit 0 where all is well, 1 and the reason where the file is gone."""
    assert typed("doctor").exit_code == 0
    path = home / "config.yaml"
    path.write_text(path.read_text().replace("demo:flights.parquet", "gone.parquet"))
    result = typed("doctor")
    assert result.exit_code == 1
    assert "there is no file" in result.output
    assert f"the folder {home} is there" in result.output


def test_doctor_finds_a_missing_column_of_units(home: Path) -> None:
    """It is a column of every question, as `run` asks it."""
    path = home / "config.yaml"
    path.write_text(re.sub("unit: flight.*", "unit: {name: plane, column: tail}", path.read_text()))
    result = typed("doctor")
    assert result.exit_code == 1
    assert "has no column 'tail'; it has: air_time" in result.output


def test_plan_says_what_run_then_spends(home: Path) -> None:
    """Ten days at 0.1 before the run, nothing after it; data and store are not touched."""
    job, budget = [json.loads(line) for line in typed("plan", "--json").stdout.splitlines()]
    assert (job["due_now"], job["epsilon_in_all"]) == (10, 1)
    assert budget["planned"] == 1
    assert not (home / "streamdp.db").exists()
    typed("run", "--once")
    job, budget = [json.loads(line) for line in typed("plan", "--json").stdout.splitlines()]
    assert (job["due_now"], budget["spent"]) == (0, 1)


def test_plan_says_what_accuracy_to_expect(home: Path) -> None:
    """A rank error from public facts, and an epsilon for a smaller one, which is larger."""
    result = typed("plan", "--rank-error", "0.1", "--json")
    job = json.loads(result.stdout.splitlines()[0])
    assert 0.1 < job["rank_error_95"] < 0.5
    needed, *_ = job["epsilon_for_0.1"].split(", above the batch cap")
    assert 0.1 < float(needed) < 2


def test_plan_says_when_the_cap_is_reached(home: Path) -> None:
    """With room for four of ten days it names the fifth, and the run stops there with code 3."""
    path = home / "config.yaml"
    path.write_text(path.read_text().replace("lifetime: 60", "lifetime: 0.45"))
    *_, budget = [json.loads(line) for line in typed("plan", "--json").stdout.splitlines()]
    assert (budget["cap_reached_at"], budget["planned"]) == ("2013-01-05", 0.4)
    result = typed("run", "--once")
    assert result.exit_code == 3
    assert "4 released" in result.output
    assert "lifetime cap" in result.output


def test_a_terminal_has_a_line_a_release(
    released: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The job above; intervals where there is room for those of all values."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for width, bars in ((80, 0), (400, 9)):
        monkeypatch.setenv("COLUMNS", str(width))
        cli(["releases"], standalone_mode=False)
        job, _, names, _, *lines = unstyle(capsys.readouterr().out).splitlines()
        assert job.split() == ["air_time,", "in", "minutes", "epsilon:", "0.1"]
        assert names.split()[:3] == ["batch", "0.1", "0.2"]
        for day, line in enumerate(lines[:10], start=1):
            assert (line.split()[0], line.count("[")) == (f"2013-01-{day:02d}", bars)
    monkeypatch.setenv("COLUMNS", "40")
    cli(["releases"], standalone_mode=False)
    lines = unstyle(capsys.readouterr().out).splitlines()
    assert sum(line.split()[:1] == ["0.1"] and "[" in line for line in lines) == 10


def test_releases_in_every_form(released: Path) -> None:
    """Table, JSON and CSV agree; since, until and last choose."""
    rows = [json.loads(line) for line in typed("releases", "--json").stdout.splitlines()]
    assert [row["batch"] for row in rows] == [f"2013-01-{day:02d}" for day in range(1, 11)]
    for row in rows:
        values = [each["value"] for each in row["rows"]]
        assert len(values) == 9
        assert values == sorted(values)
        assert (row["type"], row["epsilon"], row["epsilon_exact"]) == ("release", 0.1, "0.1")
        assert row["window_start"] == f"{row['batch']}T00:00:00Z"
    lines = list(csv.DictReader(io.StringIO(typed("releases", "--csv").stdout)))
    assert [(row["release_id"], row["value"]) for row in lines] == [
        (row["release_id"], str(each["value"])) for row in rows for each in row["rows"]
    ]
    file = (released / "releases.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in file] == rows
    shown = json.loads(typed("show", "air_time", "2013-01-01", "--json").stdout)
    assert rows[0].items() <= shown.items()
    some = typed("releases", "air_time", "--since", "2013-01-03", "--until", "2013-01-06", "--json")
    assert len(some.stdout.splitlines()) == 3
    assert len(typed("releases", "--last", "2").stdout.splitlines()) == 3


def test_show_and_release_of_a_released_batch(released: Path) -> None:
    """A batch has one release; asking again shows the same and spends nothing."""
    first = typed("show", "air_time", "2013-01-05", "--json").stdout
    assert typed("release", "air_time", "--batch", "2013-01-05").exit_code == 0
    assert typed("show", "air_time", "2013-01-05", "--json").stdout == first
    budget = json.loads(typed("budget", "--json").stdout)
    assert budget["lifetime"] == 1
    assert int(budget["batches_left"]) == round((budget["lifetime_cap"] - 1) / 0.1)
    missing = typed("show", "air_time", "2014-01-05")
    assert isinstance(missing.exception, StreamdpError)


def test_release_of_one_batch(home: Path) -> None:
    """Only the named batch is released."""
    assert typed("release", "air_time", "--batch", "2013-01-05").exit_code == 0
    rows = [json.loads(line) for line in typed("releases", "--json").stdout.splitlines()]
    assert [row["batch"] for row in rows] == ["2013-01-05"]


def test_a_batch_that_is_not_due_is_told_why(released: Path) -> None:
    """Released before is fine and says so; a name that no batch has is an error."""
    before = typed("release", "air_time", "--batch", "2013-01-05")
    assert before.exit_code == 0
    assert "released before" in before.output
    unknown = typed("release", "air_time", "--batch", "2013-99-99")
    assert isinstance(unknown.exception, StreamdpError)
    assert "2013-99-99" in str(unknown.exception)


def test_backfill_refuses_what_makes_no_sense(home: Path) -> None:
    """An end before the start, and files, which have no times."""
    backwards = typed("backfill", "air_time", "--from", "2013-01-05", "--to", "2013-01-02")
    assert backwards.exit_code == 2
    text = (home / "config.yaml").read_text()
    start, end = text.index("    batches:  "), text.index("releases:\n")
    (home / "config.yaml").write_text(f"{text[:start]}    batches: files\n\n{text[end:]}")
    files = typed("backfill", "air_time", "--from", "2013-01-01", "--to", "2013-01-02")
    assert isinstance(files.exception, StreamdpError)
    assert "files" in str(files.exception)


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    "options",
    [
        ("flights", "--reason", "r"),
        ("flights", "--reason", "r", "--batch", "100"),
        ("flihgts", "--reason", "r", "--batch", "1"),
    ],
)
def test_cap_refuses_what_makes_no_sense(released: Path, options: tuple[str, ...]) -> None:
    """No change, a batch above the lifetime, a name that is none: exit 2, no row written."""
    ran = process("cap", *options, "--yes")
    assert ran.returncode == 2, ran.stderr
    rows = [json.loads(line) for line in typed("budget", "--ledger", "--json").stdout.splitlines()]
    assert [row["purpose"] for row in rows].count("cap") == 1


def test_a_report_into_a_folder_that_is_not_there_names_it(released: Path) -> None:
    """And not the file that it would be written to first."""
    said = process("report", "air_time", "-o", "nowhere/report.md").stderr
    assert "there is no folder nowhere" in said
    assert ".report.md" not in said


def test_a_budget_says_that_its_source_ends_first(released: Path) -> None:
    """By the configuration, after ten days of caps for many more."""
    assert "; the source ends before that, at 2013-01-11" in typed("budget").stdout


def test_a_daemon_that_stopped_gave_its_last_sign_with_its_last_release(released: Path) -> None:
    """It beats no more while it ends."""
    with closing(sqlite3.connect(released / "streamdp.db")) as store, store:
        store.execute("UPDATE instance SET heartbeat_at = heartbeat_at - 600")
        (last,) = store.execute("SELECT max(released_at) FROM release").fetchone()
    assert f"stopped, last sign of life {iso(last)}" in typed("status").stdout


def test_status_says_that_the_next_run_is_refused(home: Path) -> None:
    """A store that every run refuses is not just stopped: the reason is shown."""
    typed("run", "--once")
    assert typed("status").exit_code == 0
    job = json.loads(typed("status", "--json").stdout.splitlines()[1])
    assert (job["state"], "daemon stopped" in typed("status").stdout) == ("daemon stopped", True)
    (anchor,) = home.glob("*.anchor")
    kept = anchor.read_bytes()
    anchor.unlink()
    found = typed("status")
    assert (found.exit_code, found.output.splitlines()[0][:24]) == (6, "the next run is refused:")
    rows = [json.loads(line) for line in typed("status", "--json").stdout.splitlines()]
    assert [row["code"] for row in rows if row["type"] == "refusal"] == ["integrity"]
    anchor.write_bytes(kept)
    assert typed("status").exit_code == 0


def test_doctor_looks_anew_at_what_the_last_run_could_not_read(home: Path) -> None:
    """A source that was mended since is well, though no run has been there to find out."""
    config = home / "config.yaml"
    text = config.read_text()
    config.write_text(text.replace("column: air_time", "column: airtime"))
    assert typed("run", "--once").exit_code == 1
    assert typed("doctor").exit_code == 1
    assert typed("status").exit_code == 1, "a script sees it too"
    config.write_text(text)
    assert typed("doctor").exit_code == 0
    typed("run", "--once")
    assert typed("status").exit_code == 0


def test_status_says_that_a_budget_is_used_up(home: Path) -> None:
    """A job whose next release does not fit is exhausted, not active."""
    path = home / "config.yaml"
    path.write_text(path.read_text().replace("lifetime: 60", "lifetime: 0.45"))
    typed("run", "--once")
    row = json.loads(typed("status", "--json").stdout.splitlines()[1])
    assert (row["state"], row["held_by"]) == ("exhausted", "lifetime cap: never")
    assert typed("status").exit_code == 3


@pytest.mark.parametrize(
    ("window", "frees", "held"),
    [
        (
            "batches: 20, epsilon: 0.75",
            "20-batch cap: 20 batches after 2013-01-01",
            ("20-batch cap, which frees 20 batches after 2013-01-01", None),
        ),
        (
            "time: 20d, epsilon: 0.75",
            "20d cap: from 2013-01-22T00:00:00Z on",
            ("20d cap", "2013-01-22T00:00:00Z"),
        ),
    ],
)
def test_a_window_holds_a_job_back(
    home: Path, window: str, frees: str, held: tuple[str, str | None]
) -> None:
    """What `plan` foretells is what `run` refuses, and `status` says until when."""
    path = home / "config.yaml"
    windows = f"lifetime: 60\n    windows: [{{{window}}}]"
    path.write_text(path.read_text().replace("lifetime: 60", windows))
    ran = typed("plan", "--json")
    _, *refused, budget = [json.loads(line) for line in ran.stdout.splitlines()]
    days = ["2013-01-08", "2013-01-09", "2013-01-10"]
    assert (ran.exit_code, [row["batch"] for row in refused]) == (3, days)
    assert {f"{row['cap']} cap: {row['frees']}" for row in refused} == {frees}
    assert (budget["planned"], budget["cap_reached_at"]) == (0.7, "not reached")
    assert "7 released, 3 refused" in typed("run", "--once").output
    row = json.loads(typed("status", "--json").stdout.splitlines()[1])
    assert (row["state"], row["held_by"], row["passed_over"]) == ("waits", frees, 3)
    (hold,) = row["holds"]
    assert (hold["reason"], hold["until"]) == held
    ran = typed("plan", "--json")
    assert (ran.exit_code, json.loads(ran.stdout.splitlines()[0])["due_now"]) == (0, 0)


def test_a_narrow_terminal_cuts_no_value(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A key that is wider than its column is broken, not replaced by dots."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "50")
    print_rows([{f"column {name}": "2013-01-01" for name in "abcdef"}], "table")
    shown = unstyle(capsys.readouterr().out)
    assert "\u2026" not in shown
    assert sum(map(str.isdigit, shown)) == 6 * 8


def test_a_sink_that_fails_is_an_exit_code(home: Path) -> None:
    """The releases are kept and the sink named; the exit code is that of a failure."""
    path = home / "config.yaml"
    path.write_text(path.read_text().replace("releases.jsonl", "gone/releases.jsonl"))
    result = typed("run", "--once")
    assert result.exit_code == 1
    assert "10 released" in result.output
    assert result.output.count("sink file") == 1


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("content", "code"),
    [(b"", 1), (b"no database" * 500, 6), (None, 6)],
    ids=["empty", "no database", "none"],
)
def test_a_store_that_is_none_is_one_message(
    released: Path, content: bytes | None, code: int
) -> None:
    """Empty, foreign, or damaged in the middle: no traceback from any command that reads it."""
    path = released / "streamdp.db"
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\x5a" * (len(whole) - 8192) if content is None else content)
    for command in (["status"], ["budget", "--ledger"]):
        ran = process(*command)
        assert "Traceback" not in ran.stderr, command
        assert ran.returncode == code, (command, ran.stderr)


def test_a_folder_that_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    """A file where a folder should be, as an unwritable folder: its name, no traceback."""
    (tmp_path / "file").write_text("")
    ran = process("init", str(tmp_path / "file" / "new"))
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    assert "file" in ran.stderr


def test_backfill_asks_and_says_the_cost(home: Path) -> None:
    """No is no; yes releases the stretch once, and a second time there is nothing to do."""
    stretch = ("backfill", "air_time", "--from", "2013-01-02", "--to", "2013-01-05")
    refused = typed(*stretch, answer="n\n")
    assert refused.exit_code == 1
    assert "= 0.3 in all" in refused.output
    assert typed(*stretch, answer="y\n").exit_code == 0
    again = typed(*stretch)
    assert "streamdp show air_time 2013-01-03" in again.output
    assert "3 already released, 0 to release" in again.output
    assert json.loads(typed("budget", "--json").stdout)["lifetime"] == 0.3


def test_pause_and_resume(home: Path) -> None:
    """A paused job releases nothing until it is resumed."""
    assert typed("pause", "air_time").exit_code == 0
    output = typed("run", "--once").output
    assert "0 released" in output
    assert "streamdp resume air_time" in output
    assert json.loads(typed("status", "--json").stdout.splitlines()[1])["state"] == "paused"
    assert typed("resume", "air_time").exit_code == 0
    assert "10 released" in typed("run", "--once").output


def test_an_unknown_job_gets_a_hint(home: Path) -> None:
    """The nearest job is offered."""
    result = typed("pause", "air_tiem")
    assert isinstance(result.exception, StreamdpError)
    assert "air_time" in str(result.exception)


def test_a_cap_is_raised_by_a_person_only(released: Path) -> None:
    """An edit that raises a cap is refused; `cap` writes name and reason, then the edit holds."""
    path = released / "config.yaml"
    path.write_text(path.read_text().replace("lifetime: 60", "lifetime: 70"))
    result = typed("run", "--once")
    assert isinstance(result.exception, StreamdpError)
    assert result.exception.exit_code == 2
    assert typed("cap", "flights", "--lifetime", "70", "--reason", "test", "--yes").exit_code == 0
    assert typed("run", "--once").exit_code == 0
    rows = [json.loads(line) for line in typed("budget", "--ledger", "--json").stdout.splitlines()]
    assert rows[-1]["purpose"] == "cap"
    assert rows[-1]["lifetime_cap"] == 70


def test_a_window_refuses_and_renews(home: Path) -> None:
    """Six days of seven fit; the seventh is passed over and the eighth released, as budget says."""
    path = home / "config.yaml"
    windows = "lifetime: 60\n    windows: [{batches: 7, epsilon: 0.6}]"
    path.write_text(path.read_text().replace("lifetime: 60", windows))
    result = typed("run", "--once")
    assert result.exit_code == 3
    assert "9 released, 1 refused" in result.output
    rows = [json.loads(line) for line in typed("releases", "--json").stdout.splitlines()]
    assert "2013-01-07" not in [row["batch"] for row in rows]
    total, window = [json.loads(line) for line in typed("budget", "--json").stdout.splitlines()]
    assert (total["lifetime"], total["fits_next"]) == (0.9, 0.1)
    assert (window["fullest"], window["has_room"]) == (0.6, "now")
    (refused,) = typed("logs", "--level", "warning", "--json").stdout.splitlines()
    assert json.loads(refused)["frees"] == "7 batches after 2013-01-01"
    assert process("run", "--once").returncode == 0
    assert process("release", "air_time", "--batch", "2013-01-07").returncode == 3


def test_a_window_is_widened_by_a_person_only(released: Path) -> None:
    """An edit may add a window, not raise or drop one; `cap` takes over what the file says."""
    path = released / "config.yaml"
    plain = path.read_text()
    for amount, code in (("5", 0), ("6", 2), ("4", 0)):
        window = f"lifetime: 60\n    windows: [{{time: 30d, epsilon: {amount}}}]"
        path.write_text(plain.replace("lifetime: 60", window))
        assert process("run", "--once").returncode == code
    path.write_text(plain)
    assert process("run", "--once").returncode == 2
    assert "30d" in typed("cap", "flights", "--reason", "test", "--yes").output
    assert process("run", "--once").returncode == 0


def test_old_events_are_priced_again(released: Path) -> None:
    """A charge booked below what its event costs is shown, with exit 1; a true ledger has none."""
    ran = process("budget", "--recompute", "--json")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "10 charges read again, 0 differ" in ran.stderr
    raw = sqlite3.connect(released / "streamdp.db")
    raw.execute("DROP TRIGGER ledger_keeps_values")
    (seq,) = raw.execute("SELECT min(seq) FROM ledger WHERE purpose = 'reserve'").fetchone()
    raw.execute("UPDATE ledger SET rho_nano = rho_nano + 1 WHERE seq = ?", [seq])
    raw.commit()
    ran = process("budget", "--recompute", "--json")
    (row,) = [json.loads(line) for line in ran.stdout.splitlines()]
    assert (ran.returncode, row["rho"] > row["rho_now"]) == (0, True)  # booked more than is proven
    raw.execute("UPDATE ledger SET epsilon_nano = 1 WHERE seq = ?", [seq])
    raw.commit()
    ran = process("budget", "--recompute", "--json")
    (row,) = [json.loads(line) for line in ran.stdout.splitlines()]
    assert (ran.returncode, row["epsilon_exact"], row["epsilon_now"]) == (1, "0.000000001", 0.1)
    raw.execute("""UPDATE ledger SET event = '{"type": "future"}' WHERE seq = ?""", [seq])
    raw.commit()
    raw.close()
    assert process("budget", "--recompute").returncode == 6


def test_the_statement_says_what_was_promised(released: Path) -> None:
    """Unit, neighbours, caps and grid; an edited resolution is told with the batch it began at."""
    first = json.loads(typed("statement", "--json").stdout)
    (source,) = first["sources"]
    assert (source["unit"], source["neighbours"]) == ("flight", "add-remove")
    assert "counts" not in source
    assert [cap["worst_so_far"] for cap in source["caps"]] == ["1", "0.1"]
    steps = [(each["steps"], each["epsilon_at_most"]) for each in source["differences"]]
    assert steps == [(1, "0.3"), (2, "0.6"), (2, "0.6")]  # more or less, replaced, moved
    assert float(source["spent_for_life"]["epsilon_at_delta"]) <= 1
    assert source["spent_for_life"]["to_quote"].startswith("epsilon 1 at delta 0")
    path = released / "config.yaml"
    text = path.read_text().replace("end: 2013-01-11", "end: 2013-01-13")
    path.write_text(re.sub("resolution: 1 .*", "resolution: 2", text))
    assert typed("run", "--once").exit_code == 0
    (job,) = json.loads(typed("statement", "air_time", "--json").stdout)["jobs"]
    changes = [(each["since_batch"], each["resolution"]) for each in job["asked_over_time"]]
    assert changes == [("2013-01-01", "1"), ("2013-01-11", "2")]
    page = typed("statement").stdout
    assert all(line in page for line in ("# Privacy statement", "- unit: flight", "not protected"))


def test_the_statement_says_what_a_bound_leaves_out(released: Path) -> None:
    """Where a unit counts with some of its records, numbers are of those."""
    path = released / "config.yaml"
    unit = "{name: plane, column: tail_number, rows: 2}"
    text = path.read_text().replace("store: {path: streamdp.db", "store: {path: planes.db")
    text = text.replace("path: streamdp.db ", "path: planes.db ")
    path.write_text(re.sub("unit: flight.*", f"unit: {unit}", text))
    ran = typed("run", "--once")
    assert ran.exit_code == 0, ran.output
    (source,) = json.loads(typed("statement", "--json").stdout)["sources"]
    assert source["unit"] == "plane: at most 2 records of one tail_number"
    steps = [(each["steps"], each["epsilon_at_most"]) for each in source["differences"]]
    assert steps == [(1, "0.3"), (2, "0.6"), (4, "1.2"), (4, "1.2")]  # ..., of another unit, moved
    assert "left out of every count" in source["counts"]
    assert "intervals hold numbers of what is left" in typed("statement").stdout


def test_a_release_carries_its_claim(released: Path) -> None:
    """Unit, neighbours, epsilon and the caps that held when it was made."""
    shown = json.loads(typed("show", "air_time", "2013-01-05", "--json").stdout)
    claim = shown["claim"]
    assert (claim["unit"], claim["neighbours"]) == ("flight", "add-remove")
    assert (claim["epsilon"], claim["batch_cap"], claim["lifetime_cap"]) == ("0.1", "0.3", "60")


def test_plan_knows_the_caps_of_the_ledger(released: Path) -> None:
    """A cap that a person lowered counts, whatever the file still says."""
    typed("cap", "flights", "--lifetime", "1.5", "--reason", "test", "--yes")
    *_, budget = [json.loads(line) for line in typed("plan", "--json").stdout.splitlines()]
    assert budget["lifetime_cap"] == 1.5


def test_logs_before_a_first_run_say_what_writes_them(home: Path) -> None:
    """A file that is not there yet is an error with a hint, not an empty log."""
    refused = typed("logs").exception
    assert isinstance(refused, StreamdpError)
    assert refused.what == "there is no log yet"


def test_logs_are_filtered(released: Path) -> None:
    """By level, job and batch; only names and amounts are in them."""
    lines = typed("logs", "--batch", "2013-01-03", "--json").stdout.splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["release.committed"]
    assert typed("logs", "--level", "error").stdout == ""


def test_a_shell_offers_jobs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is configured, from the file that was named; nothing if it cannot be read."""
    for words, offered in (("streamdp show ", "plain,air_time"), ("streamdp pause -c no ", "")):
        monkeypatch.setenv("_STREAMDP_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
        code = "import sys; sys.argv = ['streamdp']; from streamdp.cli import main; main()"
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert ran.stdout.strip() == offered


def test_schema_version_and_completion(home: Path) -> None:
    """Each prints what it says."""
    assert json.loads(typed("schema").stdout)["title"] == "streamdp configuration"
    assert json.loads(typed("version", "--json").stdout.splitlines()[0])["what"] == "streamdp"
    for shell in ("bash", "zsh", "fish"):
        assert "_STREAMDP_COMPLETE" in typed("completion", shell).stdout


def test_errors_are_one_message_and_an_exit_code(home: Path) -> None:
    """As a process: no traceback, the place in the file, code 2."""
    path = home / "config.yaml"
    path.write_text(path.read_text().replace("epsilon: 0.1", "epsilom: 0.1"))
    ran = subprocess.run(
        [sys.executable, "-m", "streamdp", "run", "--once"], capture_output=True, text=True
    )
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr
    assert "config.yaml:" in ran.stderr
    assert "epsilon" in ran.stderr
    assert not (home / "streamdp.db").exists()


def test_outbox_shows_and_revives_dead_letters(released: Path) -> None:
    """What a sink gave up on is listed, counted in status, and owed again on demand."""
    from streamdp.store.database import connect

    assert "everything is delivered" in typed("outbox").output
    database = connect(released / "streamdp.db")
    database.execute(
        "UPDATE outbox SET delivered_at = NULL, dead_at = 7 WHERE seq ="
        " (SELECT max(seq) FROM outbox)"
    )
    (line,) = [json.loads(text) for text in typed("outbox", "--json").output.splitlines()]
    assert line["state"] == "dead letter"
    status = [json.loads(text) for text in typed("status", "--json").output.splitlines()]
    assert status[1]["dead_letters"] == status[1]["undelivered"] == 1
    assert isinstance(typed("outbox", "--retry", "nothing").exception, StreamdpError)
    assert "1 will be tried again" in typed("outbox", "--retry", line["id"]).output
    assert json.loads(typed("outbox", "--json").output)["state"] == "waiting"


def test_without_expected_rows_every_output_says_what_is_missing(home: Path) -> None:
    """Plan, releases and statement, once each; with them the statement says what intervals hold."""
    path = home / "config.yaml"
    text = path.read_text()
    (line,) = [line for line in text.splitlines() if "expected_rows" in line]
    assert "95 times in 100" in typed("run", "--once").output + typed("statement").output
    assert "add expected_rows" not in typed("releases").output
    path.write_text(text.replace(line + "\n", "").replace("learner: mixture", "learner: none"))
    for command in ("plan", "statement"):
        assert "add expected_rows" in " ".join(typed(command, "--json").output.split())
