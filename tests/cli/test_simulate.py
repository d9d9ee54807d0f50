"""`streamdp simulate` as a person types it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from streamdp.cli import cli
from streamdp.cli.simulate import NOTE
from streamdp.config import load
from streamdp.errors import ConfigurationError, SourceError
from streamdp.kinds.quantiles.study import QuantilesStudy
from streamdp.kinds.spec import KINDS
from streamdp.kinds.statistics import spec as statistics
from streamdp.planning import comparison
from streamdp.types import CellCounts

DEMO = Path(__file__).parents[2] / "config.yaml"
ONE = ("--learners", "last-release", "--length", "8")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "config.yaml").write_text(DEMO.read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    return tmp_path


def typed(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["simulate", *arguments])


def rows(*arguments: str) -> list[dict[str, object]]:
    result = typed("--json", *arguments)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_production_table_is_refused_unless_its_truth_may_be_seen(home: Path) -> None:
    """The demonstration's own flights, by the source, by their path and by a link."""
    flights = DEMO.parent / "streamdp" / "demo" / "flights.parquet"
    (home / "copy.parquet").symlink_to(flights)
    for table in ((), ("--table", str(flights)), ("--table", "copy.parquet")):
        refused = typed(*ONE, *table)
        assert isinstance(refused.exception, ConfigurationError)
        assert "source flights" in str(refused.exception)
    assert len(rows(*ONE, "--truth-may-be-seen")) == 2


@pytest.mark.long
def test_rows_have_one_shape_and_say_what_they_are(home: Path) -> None:
    """A row for each learner and epsilon, the oracle among them; the same again by seed."""
    arguments = ("--stream", "iid", "--epsilons", "0.5,1", "--seeds", "2", *ONE)
    found = rows(*arguments)
    assert [(row["learner"], row["epsilon"]) for row in found] == [
        ("last-release", 0.5),
        ("last-release", 1.0),
        ("oracle", 0.5),
        ("oracle", 1.0),
    ]
    for row in found:
        assert list(row)[:5] == ["stream", "learner", "epsilon", "seeds", "batches"]
        assert (row["stream"], row["seeds"], row["batches"]) == ("iid", 2, 8)
        assert row["note"] == NOTE == "simulation: not private"
        for name in ("average_error", "largest_error", "late_average_error", "late_largest_error"):
            assert 0.0 <= float(str(row[name])) <= 1.0
        assert float(str(row["average_error"])) <= float(str(row["largest_error"]))
    assert rows(*arguments) == found
    header, *lines = typed(*arguments).stdout.splitlines()
    assert header.endswith("note")
    assert all(line.endswith(NOTE) for line in lines)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("stream", QuantilesStudy.streams)
def test_every_stream_can_be_replayed(home: Path, stream: str) -> None:
    """Three batches of each."""
    assert len(rows("--stream", stream, "--learners", "none", "--length", "3")) == 2


def test_another_table_is_cut_as_the_source_is(home: Path) -> None:
    """Days of a public file; a day without records counts for nothing."""
    lines = [f"2013-01-{1 + i % 4:02d},{100 + i}" for i in range(400)]
    (home / "public.csv").write_text("\n".join(["date,air_time", *lines]) + "\n")
    (row, _) = rows("--table", "public.csv", "--learners", "none", "--length", "6")
    assert row["batches"] == 6
    assert typed("--table", "public.csv", "--stream", "iid").exit_code == 2
    missing = typed("--table", "missing.csv", *ONE)
    assert isinstance(missing.exception, SourceError)


@pytest.mark.parametrize("table", ["table: rides", "query: SELECT date, air_time FROM rides"])
def test_a_table_stands_in_for_a_server_that_is_not_asked(
    home: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """A server's records are refused as files are, and a named table is read in their place."""
    monkeypatch.setenv("PG", "host=127.0.0.1 port=1 connect_timeout=1")
    path = home / "config.yaml"
    server = f'engine: {{kind: postgres, connection: "${{PG}}"}}\n    {table}'
    path.write_text(path.read_text().replace("path: demo:flights.parquet", server))
    assert isinstance(typed(*ONE).exception, ConfigurationError)
    (home / "public.csv").write_text("date,air_time\n2013-01-01,100\n")
    assert len(rows("--table", "public.csv", *ONE)) == 2


@pytest.fixture
def unstudied(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Statistics as a kind that brings no study."""
    spec = replace(statistics.SPEC, study=None)
    with monkeypatch.context() as patched:
        patched.setattr(statistics, "SPEC", spec)
        KINDS.forget()
        yield
    KINDS.forget()


@pytest.mark.usefixtures("unstudied")
@pytest.mark.parametrize("stream", [(), ("--stream", "iid"), ("--truth-may-be-seen",)])
def test_a_kind_without_a_study_is_refused_by_name(home: Path, stream: tuple[str, ...]) -> None:
    """Whatever is asked of it; kinds that can be simulated are named."""
    text = (home / "config.yaml").read_text()
    asked = "{kind: statistics, source: flights, epsilon: 0.1, measures: {rows: count}}"
    (home / "config.yaml").write_text(
        text.replace("\nreleases:\n", f"\nreleases:\n  rows: {asked}\n")
    )
    refused = typed("rows", *stream)
    assert isinstance(refused.exception, ConfigurationError)
    assert "of kind statistics cannot be simulated" in str(refused.exception)
    assert "that can be: quantiles, workload, selection, experts, keys;" in str(refused.exception)


def test_by_default_all_learners_that_the_release_admits(home: Path) -> None:
    """Experts need expected_rows, and are refused by name without them."""
    three = ("--truth-may-be-seen", "--length", "3")
    assert [row["learner"] for row in rows(*three)] == [*QuantilesStudy.variants, "oracle"]
    text = (home / "config.yaml").read_text()
    text = text.replace("    expected_rows: 900 ", "    # ").replace("learner: mixture", "")
    (home / "config.yaml").write_text(text)
    assert [row["learner"] for row in rows(*three)] == [*QuantilesStudy.variants[1:], "oracle"]
    refused = typed(*three, "--learners", "mixture")
    assert isinstance(refused.exception, ConfigurationError)
    assert "expected_rows" in str(refused.exception)


FOUND = """
store: {path: s.db}
privacy: {unit: trip, caps: {batch: 5, lifetime: 900, delta: {batch: 1e-8, lifetime: 1e-6}}}
sources:
  trips:
    path: secret.csv
    types: {at: timestamp, city: text, km: number}
    batches: {column: at, every: 1d, start: 2024-01-01, end: 2024-01-09}
releases:
  cities: {kind: keys, source: trips, by: city, epsilon: 1, delta: 1e-9, window: 2}
  sizes:
    {kind: statistics, source: trips, by: city, groups: {from: cities, most: 3}, epsilon: 1,
     measures: {n: count}}
  far:
    {kind: quantiles, source: trips, by: city, groups: {from: cities, most: 3}, epsilon: 1,
     column: km, quantiles: [0.5], resolution: 1, bounds: [0, 100]}
"""


def test_of_groups_that_are_found_one_is_replayed_from_where_it_is_known(home: Path) -> None:
    """Chur is there from the fourth day on, whose window ends with it: its stream has four days."""
    (home / "config.yaml").write_text(FOUND)
    held = [("Bern", 50), ("Chur", 40)]
    lines = [
        f"2024-01-{day:02d}T12:00:00,{city},{20 + day}"
        for day in range(1, 9)
        for city, n in held[: 1 + (day > 3)]
        for _ in range(n)
    ]
    (home / "public.csv").write_text("\n".join(["at,city,km", *lines]) + "\n")
    on = ("--table", "public.csv")
    for job in ("sizes", "far"):
        for city, batches in (("Bern", 6), ("Chur", 4)):
            found = rows(job, *on, "--group", city)
            assert {row["batches"] for row in found} == {batches}
            assert all(float(str(row["average_error"])) < 5 for row in found)
    configuration = load(home / "config.yaml")
    scene = comparison.Scene(table="public.csv", group="Chur")
    far = comparison.comparison(configuration, configuration.releases["far"], scene).stream(0)
    assert [batch.key for batch in far.batches] == [f"2024-01-0{day}" for day in range(5, 9)]
    for day, counts in zip(range(5, 9), far.counts, strict=True):
        assert counts.cells.tolist() == [20 + day]
        assert counts.counts.tolist() == [40]
    assert {row["batches"] for row in rows("cities", *on)} == {4}
    for group, said in ((), "Bern, Chur"), (("--group", "Genf"), "Bern, Chur"):
        refused = typed("sizes", *on, *group)
        assert said in str(refused.exception)
    early = typed("sizes", *on, "--length", "2")
    assert "cities finds no group" in str(early.exception)


def test_of_a_release_by_groups_one_is_replayed(home: Path) -> None:
    """Each group has its own truth; which one must be said."""
    lines = [
        f"2013-01-{1 + i % 3:02d},{v},{g}" for i in range(300) for g, v in (("a", 40), ("b", 90))
    ]
    (home / "public.csv").write_text("\n".join(["date,air_time,tail", *lines]) + "\n")
    text = (home / "config.yaml").read_text()
    by = "    by: tail\n    groups: [a, b]\n    epsilon: 0.1 "
    (home / "config.yaml").write_text(text.replace("    epsilon: 0.1 ", by))
    on = ("--table", "public.csv", "--learners", "none", "--length", "3")
    refused = typed(*on)
    assert isinstance(refused.exception, ConfigurationError)
    assert "a, b" in str(refused.exception)
    assert len(rows(*on, "--group", "b")) == 2
    configuration = load(home / "config.yaml")
    for group, cell in (("a", 40), ("b", 90)):
        scene = comparison.Scene(table="public.csv", group=group, length=3)
        section = configuration.releases["air_time"]
        for counts in comparison.comparison(configuration, section, scene).stream(0).counts:
            assert isinstance(counts, CellCounts)
            assert (counts.cells.tolist(), counts.counts.tolist()) == ([cell], [100])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--learners", "mixtur"), "did you mean 'mixture'"),
        (("--epsilons", "a"), "--epsilons"),
        (("--epsilons", "0"), "positive"),
        (("--stream", "weekly"), "seasonal"),
        (("nothing",), "there is no release"),
    ],
)
def test_mistakes_get_a_hint(home: Path, arguments: tuple[str, ...], said: str) -> None:
    """Exit 2 and what to do."""
    result = typed("--stream", "iid", "--length", "2", *arguments)
    assert said in result.output + str(result.exception)
    assert (result.exception.exit_code if isinstance(result.exception, ConfigurationError)
            else result.exit_code) == 2  # fmt: skip


def test_it_opens_no_store_writes_no_release_and_logs_nothing(home: Path) -> None:
    """Of the store its section alone is even imported; the folder stays as it was."""
    code = (
        "import sys, sqlite3\n"
        "def refuse(*_, **__): raise SystemExit('a database was opened')\n"
        "sqlite3.connect = refuse\n"
        "sys.argv[1:] = ['simulate', '--truth-may-be-seen', '--length', '3',"
        " '--learners', 'mixture']\n"
        "from streamdp.cli import cli\n"
        "cli(standalone_mode=False)\n"
        "loaded = {name for name in sys.modules if name.startswith('streamdp.store')}\n"
        "assert loaded <= {'streamdp.store', 'streamdp.store.section'}, loaded\n"
    )
    script = home / "script.py"
    script.write_text(
        "if __name__ == '__main__':\n" + "".join(f"    {x}\n" for x in code.splitlines())
    )
    before = sorted(path.name for path in home.iterdir())
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count(NOTE) == 2
    assert sorted(path.name for path in home.iterdir()) == before


@pytest.mark.long
def test_a_picture_is_drawn_and_a_missing_library_is_said_before_any_work(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A PNG of a learner that mixes and of one that does not; the pip line without matplotlib."""
    for learner in ("mixture", "none"):
        path = home / f"{learner}.png"
        arguments = ("--stream", "iid", "--length", "6", "--epsilons", "0.5,1")
        rows(*arguments, "--learners", learner, "--picture", str(path))
        assert path.read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused = typed("--stream", "iid", "--picture", "out.png", *ONE)
    assert isinstance(refused.exception, ConfigurationError)
    assert "pip install 'streamdp[plot]'" in str(refused.exception)


def test_measures_have_rows_of_their_own(home: Path) -> None:
    """Errors of counts and of means are not averaged into one number; it says what it does."""
    text = (home / "config.yaml").read_text().partition("releases:")[0]
    job = (
        "releases:\n  day: {kind: statistics, source: flights, epsilon: 0.3, measures:"
        " {flights: count, mean: {mean: air_time, resolution: 1, bounds: [0, 1000]}}}\n"
    )
    (home / "config.yaml").write_text(text + job)
    lines = [f"2013-01-{1 + i % 4:02d},{100 + i}" for i in range(400)]
    (home / "public.csv").write_text("\n".join(["date,air_time", *lines]) + "\n")
    found = typed("day", "--table", "public.csv", "--length", "4", "--json")
    assert found.exit_code == 0, found.exception
    shown = [json.loads(line) for line in found.stdout.splitlines()]
    of = {(row["learner"], row["of"]) for row in shown}
    assert len(of) == len(shown)
    assert {part for _, part in of} == {"flights", "mean"}
    assert "reading the batches" in found.stderr
