"""Each file is one file and pays from one budget, whatever it is called and whenever it comes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from streamdp.cli import cli
from streamdp.config import load
from streamdp.errors import StreamdpError
from streamdp.files import file_at, resolve
from streamdp.log import close
from streamdp.sources.section import SourceSection, same_data
from streamdp.store.database import connect_to_read
from streamdp.store.ledger import source_binding
from streamdp.store.problems import problems
from streamdp.store.sqlite import SqliteStore

CONFIGURATION = """\
store: {path: s.db}
privacy: {unit: trip, caps: {batch: 1, lifetime: 100}}
sources:
{SOURCES}
releases:
{RELEASES}
log: {path: log.jsonl}
sinks:
  kept: {kind: jsonl, path: out.jsonl}
"""
RELEASE = """\
  of_{NAME}:
    {kind: quantiles, source: {NAME}, column: x, quantiles: median, resolution: 1,
     bounds: [0, 100], epsilon: 0.5, sinks: [kept]}
"""
FILES = "batches: files, settle: 0s"
PARTS = "batches: {partition: day, marker: 'done-{key}'}"
WINDOWS = "batches: {column: t, every: 1d, start: 2024-01-01, end: 2024-01-02}"


def configured(folder: Path, **sources: str) -> Path:
    text = CONFIGURATION.replace(
        "{SOURCES}", "\n".join(f"  {name}: {{{said}}}" for name, said in sources.items())
    ).replace("{RELEASES}", "".join(RELEASE.replace("{NAME}", name) for name in sources))
    (folder / "config.yaml").write_text(text)
    return folder / "config.yaml"


def require_refused(folder: Path, wrong: Mapping[str, str]) -> None:
    """Each source is refused as a configuration, with an error that says what it is mapped to."""
    for source, said in wrong.items():
        with pytest.raises(StreamdpError, match=said):
            load(configured(folder, s=source))


def part(path: Path, value: int = 50) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    select = f"SELECT TIMESTAMP '2024-01-01 05:00' AS t, {value} AS x"
    duckdb.execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")
    return path


def ran(folder: Path, *words: str) -> str:
    result = CliRunner().invoke(cli, [*(words or ("run", "--once")), "-c", f"{folder}/config.yaml"])
    close()
    return result.output + (str(result.exception) if result.exception else "")


def released(folder: Path) -> list[tuple[str, str]]:
    rows = connect_to_read(folder / "s.db").execute("SELECT job, batch FROM release ORDER BY 1, 2")
    return [(job, batch) for job, batch in rows]


def reasons(folder: Path) -> list[str]:
    return [each.code for each in problems(connect_to_read(folder / "s.db"))]


def link_of_a_link(folder: Path) -> None:
    os.symlink("d1.parquet", folder / "b.txt")
    os.symlink("b.txt", folder / "c.parquet")


def part_of_a_folder(folder: Path, file: Path) -> None:
    folder.mkdir()
    os.link(file, folder / file.name)


SECOND_NAMES: dict[str, Callable[[Path], object]] = {
    "a rename": lambda d: os.rename(d / "d1.parquet", d / "d2.parquet"),
    "a link": lambda d: os.symlink("d1.parquet", d / "latest.parquet"),
    "a hard link": lambda d: os.link(d / "d1.parquet", d / "a.parquet"),
    "a link of a link": link_of_a_link,
    "another folder": lambda d: part_of_a_folder(d / "sub", d / "d1.parquet"),
    "a linked folder": lambda d: os.symlink(".", d / "again"),
}


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", SECOND_NAMES)
def test_a_second_name_of_a_file_is_no_second_batch(tmp_path: Path, name: str) -> None:
    """After its release, and from the first run on; the reason is told once and kept."""
    for first in (True, False):
        home = tmp_path / str(first)
        part(home / "in" / "d1.parquet")
        configured(home, s=f"path: 'in/**/*.parquet', {FILES}")
        if first:
            ran(home)
        SECOND_NAMES[name](home / "in")
        ran(home)
        ran(home)
        assert len(released(home)) == 1, name
        log = (home / "log.jsonl").read_text()
        if name != "a rename" or first:
            assert "same-file" in reasons(home)
            assert log.count("batch.refused") == reasons(home).count("same-file")
            assert "is the file that arrived as" in ran(home, "status")


def test_a_link_is_counted_once_in_a_window(tmp_path: Path) -> None:
    """Links and hard links of a pattern, hidden ones too, add no records."""
    file = part(tmp_path / "in" / "a.parquet")
    for link in ("latest.parquet", ".hidden.parquet", "b.parquet"):
        os.link(file, tmp_path / "in" / link)
    os.symlink("a.parquet", tmp_path / "in" / "c.parquet")
    assert len(resolve(f"{tmp_path}/in/*.parquet")) == 1
    configured(tmp_path, s=f"path: 'in/*.parquet', {WINDOWS}")
    ran(tmp_path)
    assert released(tmp_path) == [("of_s", "2024-01-01")]


def test_a_linked_partition_is_no_second_batch(tmp_path: Path) -> None:
    """`day=latest` beside the day it points to; a part linked into another day is refused too."""
    part(tmp_path / "in/day=1/a.parquet")
    part(tmp_path / "in/day=2/b.parquet")
    for key in ("1", "2", "latest"):
        (tmp_path / f"done-{key}").touch()
    os.symlink("day=2", tmp_path / "in/day=latest")
    configured(tmp_path, s=f"path: 'in/day=*/*.parquet', {PARTS}")
    ran(tmp_path)
    assert released(tmp_path) == [("of_s", "1"), ("of_s", "2")]
    (tmp_path / "in/day=3").mkdir()
    os.link(tmp_path / "in/day=1/a.parquet", tmp_path / "in/day=3/z.parquet")
    (tmp_path / "done-3").touch()
    ran(tmp_path)
    assert released(tmp_path) == [("of_s", "1"), ("of_s", "2")]
    assert reasons(tmp_path) == ["same-file", "same-file"]


@pytest.mark.parametrize(
    ("one", "other"), [(FILES, FILES), (WINDOWS, WINDOWS), (FILES, WINDOWS), (WINDOWS, FILES)]
)
def test_a_late_file_of_two_patterns_is_refused_at_the_next_start(
    tmp_path: Path, one: str, other: str
) -> None:
    """`a*` and `*b` overlap from the day on which `ab` comes."""
    part(tmp_path / "in" / "ac.parquet", 40)
    part(tmp_path / "in" / "cb.parquet", 60)
    said = {"a": f"path: 'in/a*.parquet', {one}", "b": f"path: 'in/*b.parquet', {other}"}
    configured(tmp_path, **said)
    load(tmp_path / "config.yaml")
    part(tmp_path / "in" / "ab.parquet")
    assert "this is the same data" in ran(tmp_path)


def test_a_late_file_is_refused_while_the_daemon_runs(tmp_path: Path) -> None:
    """Both sources are at work when it comes; it is paid from one budget and told of the other."""
    from streamdp import wiring
    from streamdp.engine.job import EngineContext
    from streamdp.engine.runner import Runner
    from streamdp.store.sqlite import SqliteStore
    from tests.worlds import EventLog, HandClock, ListSink, ReplayedEntropy

    part(tmp_path / "in" / "ac.parquet", 40)
    part(tmp_path / "in" / "cb.parquet", 60)
    configured(tmp_path, a=f"path: 'in/a*.parquet', {FILES}", b=f"path: 'in/*b.parquet', {FILES}")
    configuration, clock = load(tmp_path / "config.yaml"), HandClock()
    store, log, sink = (
        SqliteStore.open(tmp_path / "s.db", clock.now()),
        EventLog(),
        ListSink("kept"),
    )
    wiring.declare(configuration, store, clock.now(), log)
    runner = Runner(EngineContext(store, ReplayedEntropy(), clock, log), {"kept": sink})
    jobs = list(wiring.jobs(configuration).values())
    runner.round(jobs)
    part(tmp_path / "in" / "ab.parquet")
    for _ in range(3):
        outcomes = runner.round(jobs)
    took = [(each.job, each.batch) for each in sink.taken]
    assert took == [("of_a", "ac.parquet"), ("of_b", "cb.parquet"), ("of_a", "ab.parquet")]
    assert "whose budget is that of a" in outcomes.errors[0].what
    assert log.names().count("batch.unreadable") == 1
    store.close()


def test_a_retargeted_link_is_another_file(tmp_path: Path) -> None:
    """Under its old key it is refused: what arrived under it was something else."""
    part(tmp_path / "one.parquet", 40)
    part(tmp_path / "two.parquet", 60)
    (tmp_path / "in").mkdir()
    os.symlink("../one.parquet", tmp_path / "in" / "latest.parquet")
    configured(tmp_path, s=f"path: 'in/*.parquet', {FILES}")
    ran(tmp_path)
    (tmp_path / "in" / "latest.parquet").unlink()
    os.symlink("../two.parquet", tmp_path / "in" / "latest.parquet")
    ran(tmp_path)
    assert released(tmp_path) == [("of_s", "latest.parquet")]
    assert reasons(tmp_path) == ["batch-altered"]


def test_an_inode_that_is_used_again_is_another_file(tmp_path: Path) -> None:
    """A file that is deleted and one that is made in its place differ by their birth."""
    known = set()
    for _ in range(20):
        (tmp_path / "f").write_text("x")
        file = file_at(str(tmp_path / "f"))
        assert file is not None
        known.add(file.id)
        (tmp_path / "f").unlink()
    assert len(known) == 20


def test_a_grown_file_is_told_of_as_long_as_it_is_seen(tmp_path: Path) -> None:
    """Rows that come after the release are in none: said in status, once in the log."""
    file = tmp_path / "in" / "d.csv"
    file.parent.mkdir()
    file.write_text("x\n1\n")
    configured(tmp_path, s=f"path: 'in/*.csv', types: {{x: number}}, {FILES}")
    ran(tmp_path)
    os.utime(file, (1, 1))
    ran(tmp_path)
    assert reasons(tmp_path) == []
    file.write_text("x\n1\n2\n")
    for _ in range(3):
        ran(tmp_path)
    assert reasons(tmp_path) == ["batch-altered"]
    assert (tmp_path / "log.jsonl").read_text().count("batch.altered") == 1
    assert "batch-altered" in ran(tmp_path, "status")
    assert released(tmp_path) == [("of_s", "d.csv")]


def test_a_file_that_is_being_written_waits(tmp_path: Path) -> None:
    """By default it is left alone for a minute first; doctor says that it waits."""
    part(tmp_path / "in" / "a.parquet")
    configured(tmp_path, s="path: 'in/*.parquet', batches: files")
    ran(tmp_path)
    assert released(tmp_path) == []
    assert "not left alone for 60 s" in ran(tmp_path, "doctor")
    os.utime(tmp_path / "in" / "a.parquet", (1, 1))
    ran(tmp_path)
    assert released(tmp_path) == [("of_s", "a.parquet")]


@pytest.mark.parametrize("cut", [FILES, WINDOWS])
def test_a_path_that_finds_nothing_is_told(tmp_path: Path, cut: str) -> None:
    """With the folder that does exist, by doctor and by status, as long as it lasts."""
    (tmp_path / "in").mkdir()
    configured(tmp_path, s=f"path: 'in/2024/*.parquet', {cut}")
    ran(tmp_path)
    for command in ("doctor", "status"):
        shown = "".join(ran(tmp_path, command, "--json").split("\n"))
        assert f"the folder {tmp_path}/in is there" in shown, command


def test_what_cannot_be_read_is_told_once_with_its_reason(tmp_path: Path) -> None:
    """In the log once a change, in status and doctor for as long as it lasts."""
    part(tmp_path / "in" / "a.parquet")
    configured(tmp_path, s=f"path: 'in/*.parquet', {FILES}")
    text = (tmp_path / "config.yaml").read_text().replace("column: x", "column: y")
    (tmp_path / "config.yaml").write_text(text)
    for _ in range(3):
        ran(tmp_path)
    assert (tmp_path / "log.jsonl").read_text().count("batch.unreadable") == 1
    for command in ("doctor", "status"):
        assert "has no column 'y'" in ran(tmp_path, command, "--json")
    (tmp_path / "config.yaml").write_text(text.replace("column: y", "column: x"))
    ran(tmp_path)
    assert reasons(tmp_path) == []


def test_a_text_column_is_no_number_unless_it_is_declared(tmp_path: Path) -> None:
    """`country` of a CSV: refused before the charge, by the header and the declaration alone."""
    (tmp_path / "d.csv").write_text("country,x\nFR,1\n")
    configured(tmp_path, s=f"path: '*.csv', types: {{x: number}}, {FILES}")
    path = tmp_path / "config.yaml"
    path.write_text(path.read_text().replace("column: x", "column: country"))
    assert "wanted is a number" in ran(tmp_path, "doctor", "--json")
    ran(tmp_path)
    assert released(tmp_path) == []
    spent = connect_to_read(tmp_path / "s.db").execute(
        "SELECT count(*) FROM ledger WHERE purpose = 'reserve'"
    )
    assert spent.fetchone() == (0,)


def test_a_move_says_what_it_costs(tmp_path: Path) -> None:
    """Another time column puts paid records into other batches: the operator reads that."""
    part(tmp_path / "a.parquet")
    configured(tmp_path, s=f"path: a.parquet, {WINDOWS}")
    ran(tmp_path)
    path = tmp_path / "config.yaml"
    path.write_text(path.read_text().replace("column: t,", "column: u,"))
    words = ("source", "s", "--moved", "--operator", "me", "--reason", "r")
    assert "may cost its cap once more" in ran(tmp_path, *words)


def test_a_copied_source_is_other_data(tmp_path: Path) -> None:
    """What the README says of copies: no name, link or rename opens a budget, a copy does."""
    part(tmp_path / "in" / "a.parquet")
    shutil.copy(tmp_path / "in" / "a.parquet", tmp_path / "in" / "b.parquet")
    configured(tmp_path, s=f"path: 'in/*.parquet', {FILES}")
    ran(tmp_path)
    assert len(released(tmp_path)) == 2


def test_origins_of_a_source_that_never_spent_are_free(tmp_path: Path) -> None:
    """A source that is renamed before its first release takes its files along."""
    part(tmp_path / "in" / "a.parquet")
    configured(tmp_path, s="path: 'in/*.parquet', " + WINDOWS.replace("2024-01-02", "2099-01-01"))
    text = (tmp_path / "config.yaml").read_text().replace("2024-01-01", "2098-01-01")
    (tmp_path / "config.yaml").write_text(text)
    ran(tmp_path)
    configured(tmp_path, fresh=f"path: 'in/*.parquet', {WINDOWS}")
    ran(tmp_path)
    assert released(tmp_path) == [("of_fresh", "2024-01-01")]
    file = file_at(str(tmp_path / "in" / "a.parquet"))
    assert file is not None
    owners = source_binding.belongings(connect_to_read(tmp_path / "s.db"), [file.id])
    assert owners[file.id].scope == "fresh"


@pytest.mark.parametrize("path", ["in\\\\*.parquet", ".\\\\in\\\\a.parquet"])
def test_a_backslash_is_no_separator(tmp_path: Path, path: str) -> None:
    """Refused at its line: engines that take it for a slash would open a second budget."""
    configured(tmp_path, s=f'path: "{path}", {FILES}')
    with pytest.raises(StreamdpError, match="backslash is no separator"):
        load(tmp_path / "config.yaml")


@pytest.mark.parametrize("later", ["timestamp", "'%d-%m-%y %H:%M%z'"])
def test_a_time_that_is_read_otherwise_is_another_cut(tmp_path: Path, later: str) -> None:
    """One text is the first of January as a date and the second as a time: it would count twice."""
    (tmp_path / "d.csv").write_text("t,x\n2024-01-01 23:00-05,50\n")
    said = f"path: d.csv, {WINDOWS[:-1]}, lateness: 0s}}"
    configured(tmp_path, s=f"{said}, types: {{t: date, x: number}}")
    ran(tmp_path)
    assert released(tmp_path) == [("of_s", "2024-01-01")]
    moved = said.replace("2024-01-02", "2024-01-03")
    configured(tmp_path, s=f"{moved}, types: {{t: {later}, x: number}}")
    assert "reads other data than before" in ran(tmp_path)
    assert released(tmp_path) == [("of_s", "2024-01-01")]
    configured(tmp_path, s=f"{moved}, types: {{t: date, x: number}}")
    ran(tmp_path)
    assert len(released(tmp_path)) == 2


def test_windows_of_another_length_are_another_cut(tmp_path: Path) -> None:
    """Two that begin together do not grow by that: their records would pay from two caps."""
    (tmp_path / "d.csv").write_text("t,x\n2024-01-01 05:00,50\n")
    said = "path: d.csv, types: {t: timestamp, x: number}, batches: {column: t, start: 2024-01-01,"
    configured(tmp_path, s=f"{said} every: 1d, end: 2024-01-02}}")
    ran(tmp_path)
    assert released(tmp_path) == [("of_s", "2024-01-01")]
    configured(tmp_path, s=f"{said} every: 36h, end: '2024-01-02T12:00:00'}}")
    assert "was cut into other batches before" in ran(tmp_path)
    assert released(tmp_path) == [("of_s", "2024-01-01")]


def test_days_of_another_time_zone_are_another_cut(tmp_path: Path) -> None:
    """A date lies in windows by the clocks of the zone: behind the last moment is not behind it."""
    (tmp_path / "d.csv").write_text("t,x\n2024-01-03,50\n")
    said = "path: d.csv, types: {t: date, x: number}, batches: {column: t, every: 1d,"
    morning = "start: '2024-01-02T03:00:00', end: '2024-01-03T03:00:00'}"
    configured(tmp_path, s=f"{said} {morning}")
    ran(tmp_path)
    before = released(tmp_path)
    assert len(before) == 1
    york = "start: 2024-01-03, end: 2024-01-04, timezone: America/New_York}"
    configured(tmp_path, s=f"{said} {york}")
    assert "days of another time zone" in ran(tmp_path)
    assert released(tmp_path) == before
    why = ["--moved", "--operator", "me", "--reason", "the zone was wrong"]
    assert "may cost its cap once more" in ran(tmp_path, "source", "s", *why)


@pytest.mark.parametrize(
    ("first", "later"),
    [("csv", "jsonl"), ("csv, quoted_newlines: true", "csv")],
)
def test_records_in_another_format_are_another_cut(tmp_path: Path, first: str, later: str) -> None:
    """One line may be a record of two formats, of which each has another time."""
    lines = (
        '{"t":"2024-01-02","z":"x,2024-01-01,5"}\n' * 20 if first == "csv" else "a,b,2024-01-01,5\n"
    )
    (tmp_path / "d.csv").write_text("a,b,t,x\n" + lines)
    said = "path: d.csv, types: {t: timestamp, x: number}, batches: {column: t, every: 1d,"
    end = "start: 2024-01-01, end:"
    configured(tmp_path, s=f"{said} {end} 2024-01-02}}, format: {first}")
    out = ran(tmp_path)
    assert released(tmp_path) == [("of_s", "2024-01-01")], out
    configured(tmp_path, s=f"{said} {end} 2024-01-03}}, format: {later}")
    assert "records in another format" in ran(tmp_path)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_a_source_of_an_earlier_version_goes_on_as_it_is_read_now(
    tmp_path: Path, zone: str
) -> None:
    """Its claim lacks zone and format; both are written down at the first use, and bind then."""
    path = str(tmp_path / "d.csv")
    section = {
        "path": path,
        "types": {"t": "date"},
        "batches": {"column": "t", "every": "1d", "start": "2024-01-01", "timezone": zone},
    }
    now = SourceSection.model_validate(section).identity()
    old = {name: each for name, each in now.items() if name != "read"}
    other = SourceSection.model_validate(
        section | {"batches": section["batches"] | {"timezone": "Asia/Tokyo"}}  # type: ignore[operator]
    ).identity()
    store = SqliteStore.open(tmp_path / "s.db", 1, tmp_path / "s.anchor")
    store.declare({}, 1, {"s": old}, same_data)
    store.declare({}, 2, {"s": now}, same_data)
    assert source_binding.claims_of(store.database) == {"s": [old, now]}
    assert source_binding.require_same(store.database, {"s": now}, same_data) == []
    with pytest.raises(StreamdpError, match="another time zone"):
        store.declare({}, 3, {"s": other}, same_data)
    store.close()
