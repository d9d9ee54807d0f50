"""Questions that measurements answer: what is said, what is refused, and that nothing is spent."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

import streamdp
from streamdp.cli import cli
from streamdp.errors import ConfigurationError, StreamdpError
from streamdp.library.ask import asking
from streamdp.log import close
from streamdp.reports.releases.sentences import chances, in_100
from streamdp.store.database import connect_to_read
from streamdp.types import Json

DEMO = Path(__file__).parents[2] / "config.yaml"
STATISTICS = """
  traffic:
    kind: statistics
    source: flights
    by: [origin]
    groups: [JFK, LGA, EWR]
    epsilon: 4
    measures:
      flights: count
      minutes: {sum: air_time, resolution: 1, bounds: [0, 1000], measured_in: minutes}
      delays: {sum: arrival_delay, resolution: 1, bounds: [-60, 300]}
      planes: {mean: air_time, resolution: 1, bounds: [0, 1000]}
"""
WORKLOAD = """
  weekdays:
    kind: workload
    source: flights
    dimensions:
      origin: {values: [EWR, JFK, LGA]}
      day: {column: date, part: weekday}
    marginals: 2
    expected_rows: 850
    epsilon: 1
"""
RANGE = "2013-01-02..2013-01-10"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ten days of deciles, statistics and a workload, released."""
    folder = tmp_path_factory.mktemp("asked")
    text = DEMO.read_text().replace("end: 2014-01-01", "end: 2013-01-11")
    text = text.replace("batch: 0.3 ", "batch: 9 ")
    text = text.replace("\nsinks:", f"{STATISTICS}{WORKLOAD}\nsinks:")
    (folder / "config.yaml").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(cli, ["run", "--once"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    close()
    return folder


@pytest.fixture(autouse=True)
def there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)


def asked(*arguments: str) -> list[Json]:
    result = CliRunner().invoke(cli, ["ask", *arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def refused(*arguments: str) -> str:
    with pytest.raises(StreamdpError) as error:
        CliRunner().invoke(cli, ["ask", *arguments], catch_exceptions=False)
    return str(error.value)


def dump(home: Path) -> str:
    with closing(sqlite3.connect(home / "streamdp.db")) as store:
        return "\n".join(store.iterdump())


def test_answers_say_their_interval_and_spend_nothing(home: Path) -> None:
    """The store is the same to the last row."""
    before = dump(home)
    (median,) = asked("air_time", "--quantile", ".5", "--over", RANGE)
    assert abs(median["value"] - 138) < 30
    assert median["upper"] - median["lower"] < 60
    assert (median["batches"], median["spent"]) == (9, 0)
    days = asked("air_time", "--quantile", ".5", "--over", RANGE, "--every", "day")
    assert [each["period"] for each in days] == [f"2013-01-{day:02}" for day in range(2, 11)]
    (share,) = asked("air_time", "--above", "100", "--up-to", "200", "--over", RANGE)
    assert 0.25 < share["lower"] <= share["value"] <= share["upper"] < 0.6
    assert sum(
        each["value"] for each in asked("air_time", "--histogram", "5", "--over", RANGE)
    ) == (pytest.approx(1.0))
    (records,) = asked("air_time", "--records", "--over", RANGE)
    assert records["lower"] < records["value"] < records["upper"]
    assert abs(records["value"] - 7926) < 1200
    (coming,) = asked("air_time", "--quantile", ".5", "--over", "next")
    assert coming["lower"] < coming["value"] < coming["upper"]
    assert dump(home) == before


def test_statistics_add_up_over_days_and_groups() -> None:
    """Totals of all groups are the sum of the groups'; a mean is a quotient of totals."""
    (whole,) = asked("traffic", "--total", "flights", "--over", "2013-01-01..2013-01-10")
    parts = [
        asked("traffic", "--total", "flights", "--group", origin, "--over", "10d")[0]
        for origin in ("JFK", "LGA", "EWR")
    ]
    assert whole["value"] == sum(each["value"] for each in parts)
    assert abs(whole["value"] - 8832) < 2000
    assert asked("traffic", "--records", "--over", "10d")[0]["value"] == whole["value"]
    (of_a_day,) = asked("traffic", "--mean", "minutes", "--per", "flights", "--over", "2013-01-04")
    assert of_a_day["lower"] <= of_a_day["value"] <= of_a_day["upper"]


def test_a_mean_measure_has_a_mean_of_a_period() -> None:
    """That of all records, beside the sum over the count; by group too, and day by day."""
    (whole,) = asked("traffic", "--mean", "planes", "--over", RANGE)
    assert whole["lower"] < whole["value"] < whole["upper"]
    assert abs(whole["value"] - 154) < 20
    groups = [
        asked("traffic", "--mean", "planes", "--group", origin, "--over", RANGE)[0]["value"]
        for origin in ("JFK", "LGA", "EWR")
    ]
    assert min(groups) < whole["value"] < max(groups)
    days = asked("traffic", "--mean", "planes", "--over", RANGE, "--every", "day")
    assert len(days) > 5
    assert min(each["value"] for each in days) < whole["value"] < max(e["value"] for e in days)
    assert "is no mean" in refused("traffic", "--mean", "minutes", "--over", RANGE)


def test_answers_say_the_unit_of_their_values(home: Path) -> None:
    """That of the column or of the measure; a share has none, but what it is above has."""
    for words, unit, question in (
        (("air_time", "--quantile", ".5"), "minutes", "quantile 0.5"),
        (("air_time", "--above", "100"), "", "share above 100 minutes"),
        (("air_time", "--records"), "records", "records with a value of air_time"),
        (("traffic", "--records"), "records", "records of the 3 groups"),
        (("traffic", "--records", "--group", "JFK"), "records", "records"),
        (("traffic", "--total", "flights"), "records", "total flights of the 3 groups"),
        (("traffic", "--total", "minutes", "--group", "JFK"), "minutes", "total minutes"),
        (
            ("traffic", "--mean", "minutes", "--per", "flights"),
            "minutes",
            "mean minutes of flights of the 3 groups",
        ),
        (
            ("traffic", "--mean", "flights", "--per", "flights", "--group", "LGA"),
            "",
            "mean flights of flights",
        ),
    ):
        first = asked(*words, "--over", RANGE)[0]
        assert (first["unit"], first["question"]) == (unit, question)
    for each in asked("air_time", "--histogram", "3", "--over", RANGE):
        assert each["unit"] == ""
        assert each["question"].endswith(" minutes")
    (one, both) = asked("air_time", "--compare", "2013-01-03..2013-01-06", "2013-01-07..2013-01-10")
    assert one["unit"] == both["unit"] == "minutes"
    assert " minutes " in one["said"]
    with closing(connect_to_read(home / "streamdp.db")) as store:
        measured = asking(store, "traffic", "UTC").measured
    for part, adds_up, never_negative in (
        ("flights", True, True),
        ("minutes", True, True),
        ("delays", True, False),
        ("planes", False, False),
    ):
        assert measured.adds_up(part) == adds_up
        assert measured.is_never_negative(part) == never_negative


def test_a_comparison_says_why_it_differs_from_answers() -> None:
    """To a person, and not to a program."""
    for form, told in ((), True), (("--json",), False):
        arguments = ["ask", "air_time", "--compare", "2013-01-05", "2013-01-06", *form]
        result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
        assert ("judged by its own counts" in result.stderr) == told


def test_changes_are_said_in_words() -> None:
    """A row for the quantile and one for all deciles."""
    one, both = asked("air_time", "--compare", "2013-01-03..2013-01-06", "2013-01-07..2013-01-10")
    assert one["change"] == one["after"] - one["before"]
    assert one["lower"] <= one["change"] <= one["upper"]
    assert 0 <= both["process_rose"] <= 1
    assert both["process_changed"] <= both["records_differ"]
    for each in (one, both):
        sure = each["records_differ"] >= 0.95
        rose, fell = sure and each["lower"] > 0, sure and each["upper"] < 0
        assert (" rose by " in each["said"], " fell by " in each["said"]) == (rose, fell)
        if rose or fell:
            assert each["said"].endswith(chances(each["records_differ"], each["process_rose"]))
        else:
            chance = in_100(each["records_differ"])
            assert f"chance that the records changed {chance} in 100" in each["said"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--quantile", ".5", "--over", "2013-01"), "is not released as a whole"),
        (("--quantile", ".5", "--over", "2012"), "has no release of 2012"),
        (("--quantile", ".5", "--over", "10d"), "no counts of the question"),
        (("--quantile", ".9999", "--over", RANGE), "beyond what was counted"),
        (("--above", "900", "--over", RANGE), "beyond what was counted"),
        (("--quantile", "1.5", "--over", RANGE), "lies between 0 and 1"),
        (("--quantile", ".5", "--every", "day", "--partial"), "2013-01-01: of 1 releases"),
        (("--above", "inf"), "inf is none"),
        (("--above", "nan", "--up-to", "9"), "nan is none"),
        (("--above", "1e308"), "1e+308 lies beyond what was counted"),
        (("--histogram", "0"), "1 to 200 bins"),
        (("--histogram", "1000000000"), "1 to 200 bins"),
        (("--quantile", ".5", "--over", "soon"), "is no period"),
        (("--quantile", ".5", "--over", RANGE, "--group", "JFK"), "has no groups"),
        (("--compare", RANGE, "2013-01-09"), "have batches in common"),
        (("--compare", "2013-01-02", "2013-01-09", "--quantile", "0"), "lies between 0 and 1"),
        (("--records", "--over", "next"), "only quantiles are forecast"),
        (("--total", "flights", "--over", RANGE), "ask for the number of records with --records"),
    ],
)
def test_what_was_not_measured_is_refused(arguments: tuple[str, ...], why: str) -> None:
    """With the reason."""
    assert why in refused("air_time", *arguments)


def test_what_does_not_add_up_is_refused() -> None:
    """A mean of days is no mean of a period."""
    assert "do not add up" in refused("traffic", "--total", "planes", "--over", "10d")
    assert "no counts between cuts" in refused("traffic", "--quantile", ".5", "--over", "10d")


def test_a_group_that_is_not_there_is_named() -> None:
    """And not taken for a missing measure."""
    assert "no group 'SFO'" in refused("traffic", "--total", "flights", "--group", "SFO")


def test_records_of_a_workload_are_asked_for_by_a_part_of_their_time() -> None:
    """On Mondays and Tuesdays, three of the ten days."""
    (part,) = asked("weekdays", "--records", "--where", "day < 3")
    (whole,) = asked("weekdays", "--records")
    assert part["lower"] < 2674 < part["upper"] < whole["lower"] < 8832 < whole["upper"]


def test_parts_of_a_period_are_answered_when_asked_for() -> None:
    """Of the nine days that were counted."""
    (found,) = asked("air_time", "--quantile", ".5", "--over", "2013-01", "--partial")
    assert found["batches"] == 9


def test_all_leaves_out_what_was_drawn_and_says_so() -> None:
    """The first day has no counts: over all it is left out, and a period that holds it is not."""
    for question in (
        ("--quantile", ".5"),
        ("--above", "100"),
        ("--records",),
        ("--histogram", "3"),
    ):
        found = asked("air_time", *question)
        assert {(each["batches"], each["left_out"]) for each in found} == {(9, 1)}
    (whole,) = asked("air_time", "--quantile", ".5")
    (range_,) = asked("air_time", "--quantile", ".5", "--over", RANGE)
    assert range_["left_out"] == 0
    assert [whole[name] for name in ("value", "lower", "upper")] == [
        range_[name] for name in ("value", "lower", "upper")
    ]


@pytest.mark.parametrize("words", [("--total", "flights"), ("2013-01-02", "count where a = 1")])
def test_a_question_without_an_answer_is_no_mistake_of_the_configuration(
    words: tuple[str, str],
) -> None:
    with pytest.raises(ConfigurationError) as error:
        CliRunner().invoke(cli, ["ask", "air_time", *words], catch_exceptions=False)
    assert (error.value.code, error.value.exit_code) == ("question", 2)


def test_answers_are_csv_and_pictures(tmp_path: Path) -> None:
    """A picture is SVG that parses, with every answer in it."""
    to = tmp_path / "answer.svg"
    arguments = ["ask", "air_time", "--quantile", ".5", "--over", RANGE, "--every", "day"]
    result = CliRunner().invoke(cli, [*arguments, "--csv", "-o", str(to)], catch_exceptions=False)
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == 9
    assert all(float(row["lower"]) <= float(row["upper"]) for row in rows)
    found = ElementTree.parse(to).getroot()  # noqa: S314
    assert "".join(found.itertext()).count("quantile 0.5") >= 9


def test_a_picture_says_what_it_shows(tmp_path: Path) -> None:
    """The period once, the axis from 0 on, what a bar is; no label is wider than its side."""
    to = tmp_path / "bins.svg"
    arguments = ["ask", "air_time", "--histogram", "8", "--over", RANGE, "-o", str(to)]
    CliRunner().invoke(cli, arguments, catch_exceptions=False)
    texts = [
        each.text or ""
        for each in ElementTree.parse(to).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314
    ]
    assert [RANGE in each for each in texts].count(True) == 1
    assert {"share of the records", "0 %", "tick: the answer, bar: its 95 % interval"} <= set(texts)
    labels = [each for each in texts if each.startswith("share above")]
    assert labels
    assert all(len(each) <= 40 for each in labels)


def test_a_notebook_asks_the_same(home: Path) -> None:
    """Reading only what it is about changes no answer."""
    with streamdp.open(home / "streamdp.db") as store:
        whole = store.ask("air_time").quantile(0.3, "2013-01-05").rows
        part = store.ask("air_time", about=("2013-01-05",)).quantile(0.3, "2013-01-05").rows
        assert whole == part
        with pytest.raises(ConfigurationError, match="up to"):
            store.ask("air_time").share(above=3, up_to=2)
        step: Any = "fortnight"
        with pytest.raises(ConfigurationError, match="every fortnight is no period"):
            store.ask("air_time").records(every=step)
        with pytest.raises(StreamdpError, match="no releases"):
            store.ask("nobody")
