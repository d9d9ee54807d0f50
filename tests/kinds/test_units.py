"""What values are measured in is said of each measure, and changes nothing that is drawn."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from streamdp.cli import cli
from streamdp.reports.releases.told import told_rows
from streamdp.store.release_rows import columns_from
from streamdp.types import Column
from tests.crash.home import Home
from tests.web.addresses import page_of

CONFIG = """
store: {path: store.db}
privacy: {unit: flight, caps: {batch: 4, lifetime: 40}}
sources:
  flights:
    path: flights.csv
    types: {at: timestamp, minutes: number}
    batches: {column: at, every: 1d, start: 2023-11-01, end: 2023-11-04}
releases:
  middle:
    {kind: quantiles, source: flights, column: minutes, quantiles: [0.5], resolution: 1,
     bounds: [0, 500], expected_rows: 30, epsilon: 1, measured_in: minutes, rollups: [rolling 2d]}
  day:
    kind: statistics
    source: flights
    epsilon: 1
    measures:
      flights: count
      long: {histogram: minutes, cuts: [60, 120], measured_in: min}
      air: {mean: minutes, resolution: 1, bounds: [0, 500], measured_in: minutes}
      spread: {variance: minutes, resolution: 1, bounds: [0, 500], measured_in: minutes}
      money: {sum: minutes, resolution: 1, bounds: [0, 500]}
log: {path: streamdp.log}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days of two jobs."""
    folder = tmp_path_factory.mktemp("units")
    rows = [f"2023-11-0{day}T12:00:00,{10 * n}" for day in (1, 2, 3) for n in range(30)]
    (folder / "flights.csv").write_text("\n".join(["at,minutes", *rows, ""]))
    (folder / "config.yaml").write_text(CONFIG)
    Home(folder, engine=True).live()
    return folder


@pytest.fixture(scope="module")
def page(home: Path) -> Iterator[TestClient]:
    with page_of(home / "config.yaml") as client:
        yield client


def test_the_page_says_what_each_measure_is_in(page: TestClient) -> None:
    """In the sentence and the heads of quantiles; of each measure in the head of its panel."""
    overview = html.unescape(page.get("/").text)
    assert overview.count("</strong> minutes") == 1
    assert overview.count("</strong> records") == 1
    middle = html.unescape(page.get("/jobs/middle").text)
    assert 'Over time <span class="muted">in minutes' in middle
    assert (
        'Over time <span class="muted">in minutes' in page.get("/jobs/middle?per=rolling+2d").text
    )
    day = html.unescape(page.get("/jobs/day").text)
    for title in (
        *("flights · count, in records", "long · count, in records", "air · mean, in minutes"),
        *("spread · variance, in minutes²", "money · sum<"),
    ):
        assert title in day, title
    release = page.get("/api/v1/jobs/day/releases").json()["items"][0]["release_id"]
    whole = page.get(f"/releases/{release}").text
    assert whole.count('class="muted small">minutes<') == 1
    for cell in ("< 60 min", "60 to < 120 min", ">= 120 min"):
        assert cell in day, "in the chart, and beside the bar"
    assert "min min" not in day


def test_a_terminal_says_it_too(home: Path) -> None:
    """Beside each value where measures differ; JSON has it among the columns."""
    shown = CliRunner().invoke(
        cli, ["show", "day", "2023-11-02", "-c", f"{home}/config.yaml", "--json"]
    )
    rows = json.loads(shown.stdout)["rows"]
    units = (("flights", "records"), ("air", "minutes"))
    columns = (
        Column("measure", "text", "label"),
        Column("value", "number", "value", units=units),
    )
    told = {row["measure"]: row["unit"] for row in told_rows(rows, columns)[1]}
    cells = Column("cell", "text", "label", units=(("long", "min"),))
    said = [row["cell"] for row in told_rows(rows, (*columns, cells))[1] if row["cell"]]
    assert said == ["< 60 min", "60 to < 120 min", ">= 120 min"]
    assert told == {"flights": "records", "air": "minutes", "long": "", "spread": "", "money": ""}


def test_columns_are_written_as_they_are_read() -> None:
    """Units by measure too; a column without them is written as it always was."""
    plain = Column("value", "number", "value", "minutes")
    several = Column("value", "number", "value", units=(("a", "minutes"),))
    assert "units" not in plain.written()
    text = json.dumps([plain.written(), several.written()])
    assert columns_from(text) == (plain, several)
    assert (several.unit_of("a"), several.unit_of("b")) == ("minutes", "")
