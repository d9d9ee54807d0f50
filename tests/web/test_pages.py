"""Every page and answer: that it is there, what it says, and what it must not."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from starlette.testclient import TestClient

from streamdp.cli.web import kind_of
from streamdp.config import load
from streamdp.config.model import Web
from streamdp.reports.budget import budgets, in_words
from streamdp.reports.plain import NOT_PROMISED, in_plain_words
from streamdp.reports.releases.changes import PeriodRow
from streamdp.store.archive import select_releases
from streamdp.store.database import PRIVATE, connect
from streamdp.store.migrations import migrate
from streamdp.store.pulse import Pulse, PulseFile
from streamdp.store.reading.browse import WindowRange, newest_releases, sampled_releases
from streamdp.text import printable
from streamdp.types import Row
from streamdp.web.app import application
from streamdp.web.charts import _of_all, _rows_of_rollup
from streamdp.web.downloads import csv_text
from streamdp.web.forms import render, templates
from streamdp.web.pages import _rows_said
from streamdp.web.reader import Reader
from tests.web.addresses import HOST, addresses
from tests.web.conftest import HOSTILE, release_id


def test_every_address_answers(client: TestClient) -> None:
    """Pages, data and files: each is there, and says what it is."""
    for address in addresses(client):
        answer = client.get(address)
        assert answer.status_code == (503 if address == "/readyz" else 200), address
        assert answer.headers["content-type"], address
        for table in re.findall(r"<table>.*?</table>", answer.text, re.DOTALL):
            cells = [len(re.findall(r"<t[hd]\b", row)) for row in table.split("<tr>")[1:]]
            assert len(set(cells)) == 1, (address, cells)
    assert client.get("/healthz").text == "alive\n"


def test_hostile_names_are_text(client: TestClient) -> None:
    """A batch or a group may be called anything: pages show it, and do nothing else with it."""
    whole = client.get("/jobs/parts?last=all").text + client.get("/log?level=debug").text
    whole += client.get(f"/releases/{_release_of_groups(client)}").text
    for name in HOSTILE:
        assert html.escape(name) in whole.replace("&#39;", "&#x27;").replace("&#34;", "&quot;")
    for danger in ("<img src=x", "<svg onload", "<script>", "49${49}"):
        assert danger not in whole


def _release_of_groups(client: TestClient) -> str:
    found = client.get("/api/v1/jobs/parts/releases").json()["items"]
    return next(str(each["release_id"]) for each in found if "group" in each["rows"][0])


def test_the_job_page_draws_series_gates_and_carried_stretches(client: TestClient) -> None:
    """Without scripts there is a picture: lines, the gate's yes, and where a release stood."""
    page = client.get("/jobs/daily?last=all").text
    assert '<svg class="chart"' in page
    assert 'class="mark yes"' in page
    numbers = client.get("/api/v1/jobs/daily/series?last=all").json()
    assert [each["what"] for each in numbers["events"]] == ["yes"]
    assert [each["batch"] for each in numbers["carried"]] == ["2023-11-15", "2023-11-17"]
    assert all(each["from"] < each["to"] for each in numbers["carried"])
    assert numbers["batches"] == ["2023-11-15", "2023-11-17"]
    assert len(numbers["series"]) == 1


def test_a_rollup_of_no_group_is_named_as_that_of_all_of_them() -> None:
    """As a row without a name it would pass for the total of all records."""
    one: Row = {"step": "week", "revision": 1, "airport": "JFK", "value": 3.0, "missing": 0}
    rows = one, {**one, "airport": "LGA"}, {**one, "airport": None}
    found = _rows_of_rollup(rows, ("airport",), _of_all(rows, ("airport",)))
    assert found[0] == {"airport": "JFK", "value": 3.0, "missing": 0}
    assert [each["airport"] for each in found] == ["JFK", "LGA", "2 groups together"]
    assert "airport" not in _rows_of_rollup(({"value": 3.0},), (), "")[0]


def test_rows_of_a_table_are_counted_as_the_sentence_above_counts_them() -> None:
    """Those of all groups together are not among the other rows that may be unusual."""
    one = PeriodRow({"airport": "JFK", "cell": None}, "", (0.0, 0.0, 0.0), "", "sum", None)
    both = replace(one, labels={"airport": None, "cell": None})
    assert _rows_said([both, one, one], ("airport",)) == (
        "Each of 2 rows, and 1 of all groups together"
    )
    assert _rows_said([one, one], ("airport",)) == _rows_said([one, one], ()) == "Each of 2 rows"


def test_overview_and_budget_say_one_end_of_a_budget(client: TestClient, reader: Reader) -> None:
    """For each source: as many batches, up to the same one."""
    overview, budget = client.get("/").text, client.get("/budget").text
    said = dict(re.findall(r"Budget of (\S+), if all its jobs go on: (.*?)\.", overview))
    sections = dict(re.findall(r'<h2 id="scope-\d+">(\S+)</h2>(.*?)</section>', budget, re.DOTALL))
    assert said
    for source, words in said.items():
        assert f"<strong>{words}</strong>" in sections[source]
    with reader.look() as view:
        ends = {each.report.scope: each.now for each in budgets(view.configuration, view.database)}
    assert {name: in_words(ends[name]) for name in said} == said


@pytest.mark.parametrize(
    ("pid", "ago", "state"), [(1, 5, "running"), (1, 3600, "dead"), (None, 5, "stopped")]
)
def test_no_job_is_active_while_the_daemon_is_not(
    home: Path, tmp_path: Path, pid: int | None, ago: int, state: str
) -> None:
    """That it does not run is said before all else, and no job is said to wake."""
    shutil.copytree(home, tmp_path / "home")
    config = tmp_path / "home" / "config.yaml"
    loaded = load(config)
    now = 2_000_000_000
    with closing(sqlite3.connect(loaded.store.path)) as store:
        store.execute("UPDATE instance SET pid = ?, heartbeat_at = ?", [pid, now - ago])
        store.commit()
    web = application(Reader(config, loaded, kind_of, lambda: now), Web())
    with TestClient(web, base_url=HOST) as browser:
        overview, job = browser.get("/").text, browser.get("/jobs/daily").text
        listed = browser.get("/api/v1/status").json()["jobs"]
    assert f">{state}</span> <span" in overview
    alive = state == "running"
    assert (">active</span>" in overview) == (">active</span>" in job) == alive
    assert ("wakes next <time" in job) == alive
    states = {each["job"]: each["state"] for each in listed}
    assert states["daily"] == ("active" if alive else f"daemon {state}")
    assert ("No warning." in overview) <= alive
    first = re.search(r'<p class="alert (\w+)".*?</p>', overview, re.DOTALL)
    told = {"running": "", "dead": "gives no sign of life", "stopped": "The daemon does not run."}
    assert alive or (first is not None and told[state] in first[0])


def test_overview_job_and_api_agree_that_a_job_is_late(home: Path, tmp_path: Path) -> None:
    """All read one value, which is made with what the daemon says of its turns."""
    shutil.copytree(home, tmp_path / "home")
    config = tmp_path / "home" / "config.yaml"
    loaded = load(config)
    now = 2_000_000_000
    with closing(sqlite3.connect(loaded.store.path)) as store:
        store.execute("UPDATE instance SET pid = 1, heartbeat_at = ?", [now - 5])
        store.commit()
    file = PulseFile(loaded.store.path)
    file.write(Pulse(now - 5, 1, late={"daily": now - 90}))
    file.close()
    web = application(Reader(config, loaded, kind_of, lambda: now), Web())
    with TestClient(web, base_url=HOST) as browser:
        pages = [browser.get("/").text, browser.get("/jobs/daily").text]
        listed = browser.get("/api/v1/status").json()["jobs"]
        measured = browser.get("/metrics").text
        schema = browser.get("/api/v1/openapi.json").json()["components"]["schemas"]["Job"]
    for page in pages:
        assert ">late</span>" in page
        assert "late: it has missed a turn of its schedule: its turn has not come" in page
    assert {each["job"]: each["state"] for each in listed}["daily"] == "late"
    assert 'streamdp_jobs{state="late"} 1.0' in measured
    for job in listed:
        assert set(schema["required"]) <= job.keys() <= schema["properties"].keys()


@pytest.mark.parametrize(("number", "shown"), [(10, 10), (16, 16), (40, 16)])
def test_the_menu_leads_to_every_job(number: int, shown: int) -> None:
    """Of very many to the first, and to the list of all."""
    names = [f"job_{at}" for at in range(number)]
    text = render("verification.html", checks=[], here="/", now=0, jobs=names, stale="")
    assert re.findall(r'href="/jobs/(.*?)"', text) == names[:shown]
    assert ("all 40 jobs" in text) == (number > shown)


def test_the_log_page_says_how_to_keep_a_log(home: Path) -> None:
    """Where there is none: what it would be, and the line that makes one."""
    loaded = load(home / "config.yaml")
    none = loaded.model_copy(update={"log": loaded.log.model_copy(update={"path": None})})
    web = application(Reader(home / "config.yaml", none, kind_of), Web())
    with TestClient(web, base_url=HOST) as browser:
        text = browser.get("/log").text
    assert "<code>log: {path: streamdp.log}</code>" in text
    assert "with no place for records" in text


def test_pages_of_the_api_join(client: TestClient) -> None:
    """Followed to its end, a list has everything once."""
    seen: list[int] = []
    address = "/api/v1/ledger?limit=4"
    while address:
        answer = client.get(address).json()
        seen += [row["seq"] for row in answer["items"]]
        address = answer["next"]
    assert seen == list(range(len(seen), 0, -1))
    ids: list[str] = []
    address = "/api/v1/jobs/parts/releases?limit=3"
    while address:
        answer = client.get(address).json()
        ids += [each["release_id"] for each in answer["items"]]
        address = answer["next"]
    assert len(set(ids)) == len(ids) == 2 + len(HOSTILE)


def test_an_answer_that_is_known_is_not_sent_again(client: TestClient) -> None:
    """The tag of an answer brings 304, until the answer is another."""
    for address in ("/api/v1/ledger", "/jobs/daily?last=all", "/static/page.css"):
        first = client.get(address)
        again = client.get(address, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b""), address
    other = client.get("/api/v1/ledger", headers={"If-None-Match": '"other"'})
    assert other.status_code == 200


def test_files_hold_what_was_released(client: TestClient, tmp_path: Path) -> None:
    """CSV, JSON and Parquet have the same lines."""
    whole = client.get("/jobs/daily/releases.json").json()
    values = [row["value"] for release in whole for row in release["rows"]]
    parquet = tmp_path / "a.parquet"
    parquet.write_bytes(client.get("/jobs/daily/releases.parquet").content)
    with duckdb.connect() as engine:
        query = f"SELECT value FROM '{parquet}' ORDER BY window_start"
        found = engine.execute(query).fetchall()
    assert [value for (value,) in found] == values
    lines = list(csv.DictReader(io.StringIO(client.get("/jobs/daily/releases.csv").text)))
    assert [float(line["value"]) for line in lines] == values
    empty = client.get("/jobs/daily/releases.parquet?since=2030-01-01")
    assert empty.status_code == 200


def test_a_spreadsheet_computes_no_cell_of_a_download() -> None:
    """Texts that would be formulas stand behind an apostrophe; numbers and other texts stay."""
    names = ["=1+1", "+cmd|'/c calc'!A0", "-a", "@sum(a1)", "\t=1+1", "\r=1", "\n=1", "-1.5", "a=1"]
    lines = list(csv.reader(io.StringIO(csv_text([{"batch": name, "n": -2} for name in names]))))
    assert [batch for batch, _ in lines[1:]] == [
        *(f"'{printable(name)}" for name in names[:7]),
        *names[7:],
    ]
    assert {number for _, number in lines[1:]} == {"-2"}


def test_the_store_is_read_only_and_private_columns_are_shut(reader: Reader) -> None:
    """The connection of a page can neither write nor read what is private."""
    with reader.look() as view:
        for table, column in sorted(PRIVATE):
            with pytest.raises(sqlite3.DatabaseError, match="prohibited"):
                view.database.execute(f"SELECT {column} FROM {table}")
    writes = ("DELETE FROM pause", "PRAGMA query_only=OFF", "ATTACH ':memory:' AS other")
    with reader.look() as view:
        for statement in writes:
            with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
                view.database.execute(statement)


def test_thresholds_of_gates_are_nowhere(client: TestClient, home: Path) -> None:
    """What a gate keeps to itself is in no page, and neither are keys."""
    with closing(sqlite3.connect(home / "store.db")) as store:
        hidden = [text for (text,) in store.execute("SELECT hidden FROM gate_run") if text]
        (key,) = store.execute("SELECT digest_key FROM instance").fetchone()
        digests = [digest for (digest,) in store.execute("SELECT digest FROM batch") if digest]
    numbers = [str(number) for text in hidden for number in _numbers(json.loads(text))]
    assert numbers
    whole = "\n".join(client.get(address).text for address in addresses(client))
    for secret in (
        *hidden,
        *(n for n in numbers if len(n) > 5),
        key.hex(),
        *map(bytes.hex, digests),
    ):
        assert secret not in whole


def _numbers(content: object) -> list[int | float]:
    if isinstance(content, dict):
        return [number for each in content.values() for number in _numbers(each)]
    if isinstance(content, list):
        return [number for each in content for number in _numbers(each)]
    return [content] if isinstance(content, int | float) else []


def test_times_of_the_log_and_ledger_are_to_the_minute(client: TestClient) -> None:
    """No line tells how long work took."""
    lines = client.get("/api/v1/log?level=debug").json()["items"]
    rows = client.get("/api/v1/ledger").json()["items"]
    moments = [line["time"] for line in lines] + [row["at"] for row in rows]
    assert moments
    assert all(len(moment) == len("2023-11-15T12:00Z") for moment in moments)


def test_a_release_keeps_its_address(client: TestClient) -> None:
    """The page of a release has its rows, its claim and its row of the ledger."""
    page = client.get(f"/releases/{release_id(client)}").text
    for text in (
        "pure differential privacy",
        "add-remove",
        "2023-11-17",
        "ledger, charged",
        "ledger, published",
    ):
        assert text in page


def test_the_api_describes_itself(client: TestClient) -> None:
    """Each path of the description answers, and no other is under the API."""
    described = client.get("/api/v1/openapi.json").json()
    assert described["openapi"].startswith("3.")
    for path, about in described["paths"].items():
        address = path.replace("{job}", "daily").replace("{release}", release_id(client))
        assert client.get(address).status_code == 200, path
        for parameter in about["get"]["parameters"]:
            if parameter["in"] == "query" and "enum" in parameter["schema"]:
                value = parameter["schema"]["enum"][0]
                answer = client.get(address, params={parameter["name"]: value})
                assert answer.status_code == 200, (path, parameter["name"])


def test_a_configuration_that_cannot_be_used_leaves_the_page(
    reader: Reader, client: TestClient, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    """The page goes on by the one before, and says so."""
    text = (home / "config.yaml").read_text()
    monkeypatch.setattr("streamdp.web.reader.LOOK_AGAIN", -1.0)
    try:
        (home / "config.yaml").write_text("nonsense: [")
        assert "cannot be used" in client.get("/").text
    finally:
        (home / "config.yaml").write_text(text)
    assert "cannot be used" not in client.get("/").text


def test_batches_without_windows_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """In files, pages and their next ones, and in stretches, whatever the order of arrival was."""
    database = connect(tmp_path / "store.db")
    migrate(database, 0)
    with closing(database.conn):
        database.execute("PRAGMA foreign_keys=OFF")
        for at, key in enumerate(("part-10", "part-9", "part-11", "b 2013-02-01", "a 2013-02-02")):
            source = "days" if "2013" in key else "parts"
            database.execute(
                "INSERT INTO batch (source, key, arrived_at) VALUES (?, ?, ?)", [source, key, at]
            )
            database.execute(
                "INSERT INTO release (id, job, source, batch, kind, epsilon_nano, reservation,"
                " released_at, version, rows) VALUES (?, ?, ?, ?, 'any', 1, ?, ?, '', '[]')",
                [f"r{at}", source, source, key, at, 1_700_000_000 + at],
            )

        def keys(job: str, **asked: Any) -> list[str]:
            return [each.batch for each in newest_releases(database, job, 9, **asked)]

        assert keys("parts") == ["part-11", "part-10", "part-9"]
        assert keys("parts", before="r0") == ["part-9"]
        assert sampled_releases(database, "parts", 9)[0][0].batch == "part-9"
        assert select_releases(database, "parts")[0].batch == "part-9"
        assert keys("days") == ["a 2013-02-02", "b 2013-02-01"]
        assert keys("days", stretch=WindowRange(1_359_763_200, None)) == ["a 2013-02-02"]
        first = [each.batch for each in select_releases(database)][:2]
        assert first == ["b 2013-02-01", "a 2013-02-02"]


def test_the_statement_begins_in_plain_words(client: TestClient) -> None:
    """Its figures are those of the exact part below, which is folded until it is asked for."""
    text = client.get("/statement").text
    plain = html.unescape(text.partition('id="plain"')[2].partition("</section>")[0])
    whole = client.get("/api/v1/statement").json()
    for each in whole["in_plain_words"]:
        assert each["text"] in plain
    for source in whole["sources"]:
        assert source["unit"] in plain
        for row in source["how_much"]:
            assert f"{row['one_that_is_in']} (epsilon {row['epsilon_at_most']})" in plain
        caps = {each["over"]: each["cap"] for each in source["caps"]}
        rows = {each["one_that_is_in"]: each for each in source["how_much"]}
        for over in ("one batch", "all batches, for ever"):
            assert rows[over]["epsilon_at_most"] == caps[over]
        life = rows["all batches, for ever"]["epsilon_so_far"]
        assert life == source["spent_for_life"]["epsilon"]
    assert "Not promised" in plain
    folds = len(whole["sources"]) + len(whole["jobs"]) + 1
    assert text.count('<details class="fold">') == folds
    unfolded = client.get("/statement?unfolded=yes").text
    assert unfolded.count('<details class="fold" open>') == folds


def test_five_questions_are_answered_one_click_from_the_overview(client: TestClient) -> None:
    """Last week, what stands out, how sure, the cost, and whether it may be shown."""
    overview, job = client.get("/").text, "daily"
    last = f"/jobs/{job}?last=7#releases-heading"
    sure, show, cost = f"/jobs/{job}#sure", f"/jobs/{job}#show", f"/budget?job={job}#ledger"
    assert {f"/jobs/{job}", last, sure, show, cost} <= set(re.findall(r'href="([^"]+)"', overview))
    sheet = html.unescape(client.get(f"/jobs/{job}/sheet").text)
    assert '<h2 id="show">May I show it?</h2>' in sheet
    assert "<strong>Not promised</strong>: " + NOT_PROMISED in sheet
    (bound,) = re.findall(
        r"right (at most \d+ times in 100 by one release .*? by the caps\))", sheet
    )
    page, statement = (
        html.unescape(client.get(each).text) for each in (f"/jobs/{job}", "/statement")
    )
    assert bound in page
    assert '<h2 id="sure">How sure is it?</h2>' in page
    assert '<h2 id="show">May I show it?</h2>' in page
    assert "<strong>No range</strong>: this job publishes none" in page
    assert bound.partition(", and by ")[2] in statement
    assert '<a href="/statement">the statement</a> has the sum' in sheet
    assert "streamdp statement" not in sheet
    assert "costs no more privacy" in page
    assert "costs no more privacy" in sheet
    budget = client.get(cost).text
    assert f"<td>{job}</td>" in budget
    assert "What each job takes" in budget


def test_the_statement_of_a_source_without_releases_is_a_page(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so, in plain words and below."""
    whole = client.get("/api/v1/statement").json()
    fresh = {"source": "fresh", "spent": "nothing: no batch was released"}
    sources = [fresh, *whole["sources"]]
    said = whole | {"sources": sources, "in_plain_words": in_plain_words(sources)}
    monkeypatch.setattr("streamdp.web.pages.statement_of", lambda view: said)
    answer = client.get("/statement")
    assert answer.status_code == 200
    assert "of fresh nothing was released." in answer.text


def test_what_is_known_is_of_one_configuration_and_state(reader: Reader) -> None:
    """A price that was edited is on every page at once, though the ledger did not move."""
    with reader.look() as view:
        assert view.once("number", lambda: 1) == 1
        assert view.once("number", lambda: 2) == 1
        assert view.known("number", "another state", lambda: 3) == 3
        assert view.known("number", "another state", lambda: 4) == 3
    reader.configuration = reader.configuration.model_copy()
    with reader.look() as view:
        assert view.known("number", "another state", lambda: 5) == 5


def test_control_signs_of_names_are_written_out() -> None:
    """A name of a file may ring a bell or turn its own direction round."""
    page = templates().from_string("{{ name }}").render(name="a\x07\u202e<b>\n")
    assert page == "a\\x07\\u202e&lt;b&gt;\n"
