"""The next batch is expected where `ask --over next` says, on the page and in its pictures."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from streamdp.cli import cli
from streamdp.reports.charts.lines import fan
from streamdp.reports.releases.headline import rounded
from streamdp.reports.releases.series import Ahead, picture
from streamdp.types import Column, Release
from tests.crash.home import Home
from tests.web.addresses import page_of

CONFIG = """
store: {path: store.db}
privacy: {unit: flight, caps: {batch: 4, lifetime: 80}}
sources:
  flights:
    path: flights.csv
    types: {at: timestamp, airport: text, minutes: number}
    batches: {column: at, every: 1d, start: 2023-11-01, end: 2023-11-11}
releases:
  minutes:
    {kind: quantiles, source: flights, column: minutes, quantiles: quartiles, resolution: 1,
     bounds: [0, 1000], guess: {location: 150, scale: 60}, expected_rows: 300, epsilon: 1}
  airports:
    {kind: quantiles, source: flights, column: minutes, quantiles: quartiles, resolution: 1,
     bounds: [0, 1000], by: airport, groups: [AAA, BBB], expected_rows: 150, epsilon: 1}
  counts: {kind: statistics, source: flights, epsilon: 1, measures: {flights: count}}
log: {path: streamdp.log}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten days of three jobs."""
    folder = tmp_path_factory.mktemp("ahead")
    chance = np.random.default_rng(3)
    rows = ["at,airport,minutes"]
    for day in range(1, 11):
        for airport, minutes in zip(
            chance.choice(["AAA", "BBB"], 300), chance.normal(150, 40, 300), strict=True
        ):
            rows.append(f"2023-11-{day:02d}T12:00:00,{airport},{minutes:.0f}")
    (folder / "flights.csv").write_text("\n".join([*rows, ""]))
    (folder / "config.yaml").write_text(CONFIG)
    Home(folder, engine=True).live()
    return folder


@pytest.fixture(scope="module")
def page(home: Path) -> Iterator[TestClient]:
    with page_of(home / "config.yaml") as client:
        yield client


def expected(home: Path, job: str, *group: str) -> tuple[float, float]:
    """What `ask` says of the median of the next batch."""
    options = ["--over", "next", "--quantile", "0.5", "--csv", *group]
    said = CliRunner().invoke(cli, ["ask", job, "-c", str(home / "config.yaml"), *options])
    assert said.exit_code == 0, said.output
    (row,) = csv.DictReader(io.StringIO(said.stdout))
    return float(row["lower"]), float(row["upper"])


def test_the_page_says_what_ask_says(home: Path, page: TestClient) -> None:
    """Of the whole, and of each group; of counts, of rollups and of other stretches nothing."""

    def said(name: str, ends: tuple[float, float]) -> str:
        return f"{name} {rounded(ends[0], ends)} to {rounded(ends[1], ends)}"

    whole = html.unescape(page.get("/jobs/minutes").text)
    assert (
        f"The next batch is expected to have: {said('median', expected(home, 'minutes'))}." in whole
    )
    groups = html.unescape(page.get("/jobs/airports").text)
    for group in ("AAA", "BBB"):
        ends = expected(home, "airports", "--group", group)
        assert said(f"{group} · median", ends) in groups
    assert groups.count('class="ahead"') == 2 + 1, "a band in each chart, and the legend"
    for path in ("/jobs/counts", "/jobs/minutes?since=2023-11-02"):
        assert "ahead" not in page.get(path).text


COLUMNS = (
    Column("quantile", "number", "label"),
    Column("value", "number", "value"),
)


def test_the_band_lies_behind_the_last_batch_at_its_values() -> None:
    """By the labels of the axis; the axis ends with it, and the median's band alone is drawn."""
    releases = [
        Release(f"r{day}", "j", "s", str(day), day * 86_400, (day + 1) * 86_400, "any", 1, day,
                tuple({"quantile": q, "value": 100 * q + day} for q in (0.25, 0.5, 0.75)))
        for day in range(20)
    ]  # fmt: skip
    whole = picture(releases, COLUMNS)
    plain = fan(whole).svg("x")
    ahead = (Ahead("0.5", 20 * 86_400, 60.0, 40.0, 80.0),)
    drawn = fan(replace(whole, ahead=ahead)).svg("x")
    assert "ahead" not in plain
    (path,) = re.findall(r'class="ahead" d="M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)', drawn)
    left, low, right, high = map(float, path)
    ticks = {
        float(text): float(y)
        for y, text in re.findall(r'y="([\d.]+)" text-anchor="end">([\d.]+)<', drawn)
    }
    assert low == pytest.approx(ticks[40] - 4, abs=0.2)
    assert high == pytest.approx(ticks[80] - 4, abs=0.2)
    (line,) = re.findall(r'class="line" d="(M[^"]+)"', drawn)
    last = float(re.findall(r"[ML]?([\d.]+)[ ,]", line)[-1])
    assert last < left < right
    assert right - left > 10
    other = fan(replace(whole, ahead=(replace(ahead[0], key="0.25"),))).svg("x")
    assert 'class="ahead"' not in other
