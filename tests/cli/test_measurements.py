"""What releases have drawn is exported whole, and statement, show and plan say what it is."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

from streamdp.cli import cli
from streamdp.log import close
from streamdp.reports.releases.told import SAID
from streamdp.types import Json
from streamdp.types.measurements import Form

CONFIG = """
store: {path: store.db}
privacy: {unit: flight, caps: {batch: 20, lifetime: 200}}
sources:
  flights:
    path: demo:flights.parquet
    batches: {column: date, every: 1d, start: 2013-01-01, end: 2013-01-05}
releases:
  air: {kind: quantiles, source: flights, column: air_time, quantiles: [0.25, 0.5, 0.9],
        resolution: 1, bounds: [0, 1000], expected_rows: 900, epsilon: 1}
  sums: {kind: statistics, source: flights, by: carrier, groups: [UA, AA], epsilon: 1,
         measures: {flights: count, air: {sum: air_time, resolution: 1, bounds: [0, 500]}}}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Four days of two jobs."""
    home = tmp_path_factory.mktemp("measured")
    (home / "config.yaml").write_text(CONFIG)
    said(home, "run", "--once")
    yield home
    close()


def said(home: Path, *words: str) -> str:
    done = CliRunner().invoke(cli, [*words, "-c", str(home / "config.yaml")])
    assert done.exit_code == 0, done.output
    return done.output


def rows(home: Path, *words: str) -> list[dict[str, Json]]:
    return [
        json.loads(line)
        for line in said(home, "releases", *words, "--measurements", "--json").splitlines()
    ]


def test_all_that_was_drawn_is_exported(home: Path) -> None:
    """One object a measurement, in the order of batches; CSV has the lists as JSON."""
    counted = rows(home, "air", "--since", "2013-01-02")
    assert {row["form"] for row in counted} == {"counts"}
    assert {row["batch"] for row in counted} == {"2013-01-02", "2013-01-03", "2013-01-04"}
    assert all(len(row["numbers"]) == len(row["cells"]) + 1 for row in counted)
    assert counted[0]["question"] == {"column": "air_time", "grid": ["1", 0, 1000]}
    assert {row["question_digest"] for row in rows(home, "air")} == {counted[0]["question_digest"]}
    sums = rows(home, "sums", "--last", "1")
    assert [(row["part"], row["group"], row["form"]) for row in sums] == [
        ("flights", ["UA"], "table"),
        ("flights", ["AA"], "table"),
        *(("air", [group], form) for form in ("table", "sums") for group in ("UA", "AA")),
    ]
    assert set(sums[-1]["given"]) == {"centre", "reach", "unit"}
    text = said(home, "releases", "air", "--measurements", "--csv")
    lines = list(csv.DictReader(io.StringIO(text)))
    assert [json.loads(line["numbers"]) for line in lines] == [
        row["numbers"] for row in rows(home, "air")
    ]
    assert len(rows(home)) == len(rows(home, "air")) + len(rows(home, "sums"))


def test_a_release_is_shown_with_what_it_drew(home: Path) -> None:
    """As a list in JSON, in words in the table."""
    shown = json.loads(said(home, "show", "air", "2013-01-02", "--json"))
    exported = [row for row in rows(home, "air") if row["batch"] == "2013-01-02"]
    assert [each["numbers"] for each in shown["measurements"]] == [
        row["numbers"] for row in exported
    ]
    assert "noisy counts between cuts" in said(home, "show", "air", "2013-01-02")


def test_the_statement_says_that_they_are_published(home: Path) -> None:
    """And of each job what they are."""
    whole = json.loads(said(home, "statement", "--json"))
    assert "measurements: the outputs of the draws" in whole["published"]
    air, sums = (job["measurements"] for job in whole["jobs"])
    assert air == (
        "drawn values, with their mechanism, of 1 release; noisy counts between cuts, of 3 releases"
    )
    assert "noisy sums of clipped values, with their clips, of 4 releases" in sums


def test_plan_says_what_teaches_a_learner_that_begins(home: Path) -> None:
    """Of a list of quantiles that has changed."""
    text = CONFIG.replace("[0.25, 0.5, 0.9]", "[0.25, 0.5]")
    (home / "other.yaml").write_text(text)
    done = CliRunner().invoke(cli, ["plan", "-c", str(home / "other.yaml")])
    assert "but for what measurements of the same records teach it (4 releases have some)" in (
        done.stderr
    )


def test_every_form_has_words() -> None:
    """A statement says what is kept of each kind."""
    assert set(SAID) == set(get_args(Form))
