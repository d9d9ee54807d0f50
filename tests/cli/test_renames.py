"""What was renamed is recognised before it is paid for again, and can go on under its new name."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from streamdp import wiring
from streamdp.cli import cli
from streamdp.config import load
from streamdp.store.archive import latest_learned, learned_states
from streamdp.store.migrations import open_to_read
from streamdp.types import Batch
from tests.web.addresses import page_of

ORDERS = """
store: {path: streamdp.db}
privacy: {unit: order, caps: {batch: 2, lifetime: 100}}
sources:
  orders:
    path: orders/*.csv
    batches: files
    settle: 0s
    types: {amount: number}
releases:
  amounts:
    kind: quantiles
    source: orders
    column: amount
    quantiles: [0.5]
    resolution: 1
    bounds: [0, 1000]
    guess: {location: 100, scale: 50}
    expected_rows: 100
    epsilon: 0.5
"""
WHO = ["--operator", "Ada", "--reason", "the report calls it so"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eight files of orders that were released."""
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(ORDERS)
    Path("orders").mkdir()
    for day in range(1, 9):
        rows = "\n".join(str(50 + (7 * day * number) % 100) for number in range(100))
        Path(f"orders/2024-01-0{day}.csv").write_text(f"amount\n{rows}\n")
    assert said("run", "--once").exit_code == 0
    return tmp_path


def said(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def rewrite(old: str, new: str) -> None:
    path = Path("config.yaml")
    path.write_text(path.read_text().replace(old, new))


def spent() -> float:
    with sqlite3.connect("streamdp.db") as store:
        (total,) = store.execute("SELECT sum(epsilon_nano) FROM ledger").fetchone()
    return float(total / 1e9)


def rename() -> Result:
    return said("job", "amounts2", "--was", "amounts", *WHO)


def test_a_renamed_job_is_told_with_its_price(folder: Path) -> None:
    """Before anything is spent, with the command that keeps the past."""
    rewrite("amounts:", "amounts2:")
    told = said("plan").stderr
    assert (
        "new job amounts2 publishes batches already published as amounts: 8 batches, ε 4 again"
        in told
    )
    assert "streamdp job amounts2 --was amounts --operator" in told


def test_a_renamed_job_goes_on(folder: Path) -> None:
    """Nothing is paid again, what was learned is kept, the next batch alone is released."""
    before = spent()
    rewrite("amounts:", "amounts2:")
    assert rename().exit_code == 0
    assert "again" not in said("plan").stderr
    assert said("run", "--once").exit_code == 0
    assert spent() == before
    shutil.copy("orders/2024-01-08.csv", "orders/2024-01-09.csv")
    Path("orders/2024-01-09.csv").write_text("amount\n" + "80\n" * 100)
    assert said("run", "--once").exit_code == 0
    assert spent() == before + 0.5
    with sqlite3.connect("streamdp.db") as store:
        current = store.execute(
            "SELECT batch, sum(current) FROM v_releases GROUP BY batch, job"
        ).fetchall()
        versions = store.execute("SELECT job, version FROM learner ORDER BY version").fetchall()
        notes = store.execute("SELECT event FROM ledger WHERE purpose = 'note'").fetchall()
    assert len(current) == 9
    assert all(count == 1 for _, count in current)
    assert versions == [*(("amounts", each) for each in range(1, 9)), ("amounts2", 9)]
    renamed = [note for (text,) in notes if (note := json.loads(text))["what"] == "job renamed"]
    assert [note["operator"] for note in renamed] == ["Ada"]
    assert len(said("releases", "--json", "amounts2").stdout.splitlines()) == 9
    assert said("verify").exit_code == 0


def test_a_renamed_job_is_shown_with_its_past(folder: Path) -> None:
    """Its state, a report and a picture have what was released under the old name."""
    (before,) = map(json.loads, said("status", "--json").stdout.splitlines()[1:])
    rewrite("amounts:", "amounts2:")
    assert rename().exit_code == 0
    (state,) = map(json.loads, said("status", "--json").stdout.splitlines()[1:])
    assert (state["job"], state["releases"]) == ("amounts2", 8)
    assert state["spent"] == before["spent"] > 0
    assert state["last_batch"] == "2024-01-08.csv"
    for command, file in (("report", "past.md"), ("plot", "past.svg")):
        result = said(command, "amounts2", "--period", "all", "-o", file)
        assert result.exit_code == 0, result.stderr
    assert "2024-01-08" in Path("past.md").read_text()


def test_another_question_is_no_renamed_job(folder: Path) -> None:
    """A job of another column publishes something new: it is told, and no past is given to it."""
    rewrite("amounts:", "amounts2:")
    rewrite("column: amount", "column: {sql: amount + 1}")
    told = said("plan").stderr
    assert "8 batches, ε 4 again" in told
    assert "--was" not in told
    refused = rename()
    assert refused.exit_code != 0
    assert "another question" in str(refused.exception)


@pytest.mark.parametrize("released", [False, True])
def test_a_past_belongs_to_one_job(folder: Path, released: bool) -> None:
    """A name that is still configured, or a job with a past of its own, cannot take another's."""
    if released:
        rewrite("amounts:", "amounts2:")
        said("run", "--once")
    else:
        text = Path("config.yaml").read_text()
        job = text.partition("releases:\n")[2]
        Path("config.yaml").write_text(text + job.replace("amounts:", "amounts2:"))
    assert rename().exit_code != 0


def test_another_question_under_an_old_name_is_told(folder: Path) -> None:
    """What was learned does not fit it."""
    rewrite("quantiles: [0.5]", "quantiles: [0.5, 0.9]")
    assert "amounts asks another question than its 8 releases did" in said("plan").stderr


@pytest.mark.parametrize("command", [["validate"], ["plan"]])
def test_a_moved_project_is_refused_before_a_run(folder: Path, command: list[str]) -> None:
    """As `run` refuses it, with a hint that is a whole command."""
    elsewhere = folder.parent / f"{folder.name}-moved"
    folder.rename(elsewhere)
    found = said(*command, "--config", str(elsewhere / "config.yaml"))
    elsewhere.rename(folder)
    assert found.exit_code == 2 or "reads other data" in str(found.exception)
    assert "--moved --operator NAME --reason WHY" in str(found.exception)


def test_lost_files_are_a_failure(folder: Path) -> None:
    """Of a round and of a look at the source; nothing due is one only where that is asked for."""
    assert said("run", "--once").exit_code == 0
    assert said("run", "--once", "--require-release").exit_code == 4
    Path("orders").rename("order")
    found = said("run", "--once")
    assert found.exit_code == 1
    assert "orders had 8 batches, and finds no file now" in found.stderr
    assert said("doctor").exit_code == 1


GROUPED = """
store: {path: streamdp.db}
privacy: {unit: order, caps: {batch: 2, lifetime: 100}}
sources:
  orders: {path: orders/*.csv, batches: files, settle: 0s, types: {amount: number, total: number}}
releases:
  amounts:
    kind: quantiles
    source: orders
    column: amount
    where: amount >= 0
    by: country
    groups: [DE, FR]
    quantiles: [0.5]
    resolution: 1
    bounds: [0, 1000]
    expected_rows: 50
    epsilon: 0.5
  means:
    kind: statistics
    source: orders
    by: country
    groups: [DE, FR]
    epsilon: 0.5
    measures:
      orders: count
      spent: {mean: amount, resolution: 1, bounds: [0, 1000]}
"""
NEW = {
    "group": [("DE, FR", "Germany, FR")],
    "column": [
        ("amount\n", "total\n"),
        ("where: amount", "where: total"),
        ("n: amount", "n: total"),
    ],
    "by": [("by: country", "by: land")],
    "measure": [("spent:", "basket:")],
}
OPTIONS = {
    "group": ["--group", "DE=Germany"],
    "column": ["--column", "amount=total"],
    "by": ["--column", "country=land"],
    "measure": ["--measure", "spent=basket"],
}


@pytest.fixture
def grouped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three files of orders by country that were released."""
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(GROUPED)
    Path("orders").mkdir()
    for day in range(1, 4):
        orders(day, "amount,country", "DE")
    assert said("run", "--once").exit_code == 0
    return tmp_path


def orders(day: int, header: str, first: str) -> None:
    rows = "".join(f"{50 + number % 20},{first if number % 2 else 'FR'}\n" for number in range(100))
    Path(f"orders/2024-01-0{day}.csv").write_text(f"{header}\n{rows}")


def change(what: str) -> None:
    for old, new in NEW[what]:
        rewrite(old, new)


def states(job: str) -> list[object]:
    """What a job knows, as the next release reads it."""
    with closing(open_to_read(Path("streamdp.db"))) as database:
        learned = latest_learned(database, job)
    assert learned is not None
    return [learned.signature, learned.state]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("what", ["group", "column", "by", "measure"])
def test_new_names_are_told_and_kept(grouped: Path, what: str) -> None:
    """The sentence names the command; after it nothing is said, paid or learned again."""
    before, paid = states("means"), spent()
    change(what)
    told = said("plan").stderr
    jobs = ["means"] if what == "measure" else ["amounts", "means"]
    for job in jobs:
        assert f"streamdp job {job} {' '.join(OPTIONS[what])} --operator" in told
    assert told.count("nothing is paid again") == len(jobs)
    for job in jobs:
        done = said("job", job, *OPTIONS[what], *WHO)
        assert (done.exit_code, done.output) == (
            0,
            f"{job} goes on with what its 3 releases taught, in the new names\n",
        )
    assert "again" not in said("plan").stderr
    renamed = json.dumps(before)
    for old, new in {
        "group": [("DE", "Germany")],
        "column": [("amount", "total")],
        "by": [("country", "land")],
        "measure": [("spent", "basket")],
    }[what]:
        renamed = renamed.replace(old, new)
    assert states("means") == json.loads(renamed) != before
    header = {"column": "total,country", "by": "amount,land"}.get(what, "amount,country")
    orders(4, header, "Germany" if what == "group" else "DE")
    assert said("run", "--once").exit_code == 0
    assert spent() == paid + 1
    with closing(open_to_read(Path("streamdp.db"))) as database:
        (after, _), (earlier, _), *_ = learned_states(database, "means")
    assert (after.version, earlier.version) == (4, 3)
    assert after.signature == earlier.signature
    assert said("verify").exit_code == 0
    assert said("learned", "amounts").exit_code == 0


def test_what_was_learned_of_a_renamed_group_is_used(grouped: Path) -> None:
    """The next release starts from the old group's state: it has four batches behind it."""
    change("group")
    assert said("job", "amounts", *OPTIONS["group"], *WHO).exit_code == 0
    signature, state = states("amounts")
    assert isinstance(state, dict)
    assert sorted(state) == ['["FR"]', '["Germany"]']
    kind = wiring.release_kind(load(Path("config.yaml")), "amounts")
    assert signature == json.loads(json.dumps(kind.signature()))
    batch = Batch("orders", "orders/2024-01-04.csv")
    assert kind.plan(state, batch).event != kind.plan({}, batch).event


def test_names_that_are_no_rename_are_refused(grouped: Path) -> None:
    """A group that is still there or never was, a column that is not all that changed."""
    assert said("job", "amounts", "--group", "DE=FR", *WHO).exit_code != 0
    assert said("job", "amounts", *OPTIONS["column"], *WHO).exit_code != 0
    rewrite("DE, FR", "Germany, FR")
    assert said("job", "amounts", "--group", "IT=Germany", *WHO).exit_code != 0
    assert said("job", "amounts", *WHO).exit_code != 0
    assert said("job", "amounts", "--was", "old", *OPTIONS["group"], *WHO).exit_code != 0
    change("column")
    rewrite("quantiles: [0.5]", "quantiles: [0.9]")
    told = said("plan").stderr
    assert "streamdp job amounts" not in told
    refused = said("job", "amounts", *OPTIONS["column"], *OPTIONS["group"], *WHO)
    assert "differs from its releases by more than these names" in str(refused.exception)


def test_a_group_that_was_learned_anew_keeps_its_own_past(grouped: Path) -> None:
    """Two pasts are not put together."""
    change("group")
    orders(4, "amount,country", "Germany")
    assert said("run", "--once").exit_code == 0
    refused = said("job", "amounts", *OPTIONS["group"], *WHO)
    assert "has learned of group Germany already" in str(refused.exception)


def test_an_expression_or_condition_that_changed_is_no_rename(grouped: Path) -> None:
    """Another value in a condition asks of other records."""
    rewrite("where: amount >= 0", "where: country = 'DE'")
    told = said("plan").stderr
    assert "amounts asks another question than its 3 releases did" in told
    assert "streamdp job" not in told


def test_addresses_of_an_old_name_lead_to_the_new_one(folder: Path) -> None:
    """Of its page, with the question, and of its data; a name that no job had is nowhere."""
    rewrite("amounts:", "amounts2:")
    assert rename().exit_code == 0
    with page_of(folder / "config.yaml") as client:
        for old, new in (
            ("/jobs/amounts?last=7", "/jobs/amounts2?last=7"),
            ("/jobs/amounts/learned", "/jobs/amounts2/learned"),
            ("/api/v1/jobs/amounts/releases", "/api/v1/jobs/amounts2/releases"),
        ):
            found = client.get(old, follow_redirects=False)
            assert (found.status_code, found.headers["location"]) == (308, new)
            assert client.get(new).status_code == 200
        assert client.get("/jobs/amount").status_code == 404
