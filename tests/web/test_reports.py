"""Reports and pictures: one file each, with what was released and nothing else."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner, Result

from streamdp.cli import cli
from streamdp.config import load
from streamdp.errors import ConfigurationError
from streamdp.reports.charts.frame import HEIGHT
from streamdp.reports.charts.lines import lines
from streamdp.reports.charts.panels import chart, over_time
from streamdp.reports.releases.digest import digest
from streamdp.reports.releases.headline import (
    NOTHING_SAID,
    headline,
    is_unusual,
    rounded,
    unusual_by_chance,
    usual_of,
)
from streamdp.reports.releases.sentences import day_of, period_of
from streamdp.reports.releases.series import columns_of, picture
from streamdp.store.database import connect_to_read
from streamdp.store.reading.browse import WindowRange
from streamdp.store.reading.places import moment_of_key
from streamdp.types import HARDLY_ANY, Column, Release, Row
from streamdp.web.forms import measured
from streamdp.web.report import as_markdown
from streamdp.web.tables import Order, columns, crossed, newest, standing_out
from streamdp.wiring import release_kind
from tests.web.conftest import HOSTILE


def write(home: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, [*words, "-c", str(home / "config.yaml")])


def release(batch: int, rows: Sequence[Row]) -> Release:
    day = batch * 86_400
    return Release(f"r{batch}", "j", "s", str(batch), day, day + 1, "any", 1, day, tuple(rows))


def test_a_report_is_one_file(home: Path, tmp_path: Path) -> None:
    """It holds its chart, asks for nothing else, and hostile names in it are text."""
    file = tmp_path / "report.html"
    for job in ("daily", "parts"):
        result = write(home, "report", job, "--period", "all", "-o", str(file))
        assert result.exit_code == 0, result.output
        text = file.read_text()
        assert '<svg class="chart"' in text
        assert not re.findall(r'(?:src|href)="(?!data:|#)', text)
        assert "<script" not in text
        for danger in ("<img", "<svg onload"):
            assert danger not in text
    assert html.escape(HOSTILE[0]) in text


def test_batches_that_grow_stand_where_they_end() -> None:
    """All begin with the first record: their ends tell them apart, in the order of time."""
    grown = [
        replace(release(0, [{"value": 1}]), id=str(end), window_end=end) for end in (900, 300, 600)
    ]
    assert picture(grown).times == (300, 600, 900)
    assert picture(grown[:1]).times == (0,)


def keyed(*keys: str) -> list[Release]:
    """Releases of batches without windows, that were made in the order of their keys given."""
    return [
        replace(release(0, [{"value": at}]), id=f"r{at}", batch=key, window_start=None,
                window_end=None, released_at=1_700_000_000 + at)
        for at, key in enumerate(keys)
    ]  # fmt: skip


def test_a_batch_without_a_window_lies_where_its_key_says() -> None:
    """By its date, else by its number; in the order of keys, not of arrivals."""
    days = ("2013-01-20.csv", "2013-01-21.csv", "2013-01-18.csv", "2013-01-19.csv")
    found = picture(keyed(*days))
    assert found.axis == "time"
    assert found.batches == tuple(sorted(days))
    assert found.times[0] == 1_358_467_200
    assert {after - before for before, after in pairwise(found.times)} == {86_400}
    assert "date" in found.said
    numbered = picture(keyed("part-10", "part-9", "part-101"))
    assert (numbered.axis, numbered.times) == ("number", (9, 10, 101))
    svg = chart(numbered, title="t")
    assert ">2013<" not in svg
    assert ">20<" in svg


@pytest.mark.parametrize(
    ("key", "day"),
    [
        ("2013-03-09", "2013-03-09"),
        ("20130309", "2013-03-09"),
        ("x_2013_03_09_b2.csv", "2013-03-09"),
        ("2013/03/09", "2013-03-09"),
        ("2013-03", "2013-03-01"),
        ("2013-W10", "2013-03-04"),
        ("2013-03-09T00:00", "2013-03-09"),
        ("2013-02-30", None),
        ("120130309", None),
        ("part-7", None),
        ("2013", None),
    ],
)
def test_a_date_in_a_key_is_read(key: str, day: str | None) -> None:
    """Year first; nothing that is no day, and no part of a longer number."""
    found = moment_of_key(key)
    assert day == (None if found is None else day_of(found))


def test_batches_without_date_or_number_are_categories() -> None:
    """They are named along the axis, one after the other as they arrived; no time is drawn."""
    found = picture(keyed("last", "first", "middle"))
    assert (found.axis, found.times) == ("order", (0, 1, 2))
    assert found.batches == ("last", "first", "middle")
    svg = chart(found, title="t")
    for name in found.batches:
        assert f">{name}<" in svg
    assert ">Nov<" not in svg


def test_a_name_in_markdown_commands_no_terminal(home: Path, tmp_path: Path) -> None:
    """Control characters and those that turn the order of letters are written out."""
    config = load(home / "config.yaml")
    with closing(connect_to_read(config.store.path)) as store:
        found = digest(
            config, store, "parts", "all", None, 0, release_kind(config, "parts").columns
        )
    batches = ("\x1b[31mred.csv\r", "\u202etxt.csv", *found.picture.batches[2:])
    named = replace(found, picture=replace(found.picture, batches=batches))
    text = as_markdown(named, 0, [])
    assert "\\x1b" in text
    assert text.replace("\n", "").isprintable()


def test_hostile_names_in_markdown_are_text(home: Path, tmp_path: Path) -> None:
    """They are neither links nor HTML, and name no file."""
    file = tmp_path / "report.md"
    assert write(home, "report", "parts", "--period", "all", "-o", str(file)).exit_code == 0
    text = file.read_text()
    assert "<img" not in text
    assert "<svg" not in text
    assert sorted(each.name for each in tmp_path.iterdir()) == ["report-1.svg", "report.md"]


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_a_picture_is_a_file(home: Path, tmp_path: Path, ending: str) -> None:
    """Each form begins as it should."""
    file = tmp_path / f"picture.{ending}"
    result = write(home, "plot", "daily", "--period", "year", "-o", str(file))
    assert result.exit_code == 0, result.output
    start = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}[ending]
    assert file.read_bytes().startswith(start)


def test_what_cannot_be_written_is_said(home: Path, tmp_path: Path) -> None:
    """Another ending, a period without releases."""
    result = write(home, "report", "daily", "-o", str(tmp_path / "a.doc"))
    assert ".html, .pdf or .md, not .doc" in str(result.exception)
    assert isinstance(result.exception, ConfigurationError)
    result = write(home, "plot", "daily", "-o", str(tmp_path / "a.doc"))
    assert isinstance(result.exception, ConfigurationError)
    result = write(home, "plot", "daily", "--at", "2030-01-01", "-o", str(tmp_path / "a.svg"))
    assert "nothing in that month" in str(result.exception)


def test_periods_are_of_the_calendar() -> None:
    """Ends of months, quarters and years; weeks begin on Monday."""
    moment = 1_703_980_800  # 2023-12-31
    assert period_of(moment, "month") == WindowRange(1_701_388_800, 1_704_067_200)
    assert period_of(moment, "quarter") == WindowRange(1_696_118_400, 1_704_067_200)
    assert period_of(moment, "year") == WindowRange(1_672_531_200, 1_704_067_200)
    assert period_of(moment, "week") == WindowRange(1_703_462_400, 1_704_067_200)
    assert period_of(moment, "all") == WindowRange()


def test_series_follow_from_roles_whatever_columns_are_called() -> None:
    """Labels name a series; an estimate is the better line; ends belong to what they are about."""
    declared = (
        Column("where", "text", "label"),
        Column("drawn", "number", "value", "minutes"),
        Column("guess", "number", "estimate"),
        Column("from", "number", "lower", about="guess"),
        Column("to", "number", "upper", about="guess"),
    )
    rows: list[Row] = [
        {"where": name, "drawn": 1, "guess": 2.0, "from": 1.5, "to": 2.5} for name in "ab"
    ]
    found = picture([release(2, rows[:1]), release(1, rows)], declared)
    assert [each.name for each in found.series] == ["a", "b"]
    assert (found.unit, found.labels) == ("minutes", ("where",))
    first, second = found.series
    assert (first.raw.values, first.best.values) == ((1.0, 1.0), (2.0, 2.0))
    assert (first.best.lower, first.best.upper) == ((1.5, 1.5), (2.5, 2.5))
    assert second.best.values == (2.0, None)
    assert chart(found, title="t").count('class="band"') == 2


def test_columns_that_nobody_declares_are_told_from_rows() -> None:
    """Of a job that is gone, or as it was configured before: what precedes the value is a label."""
    found = columns_of([release(1, [{"group": "a", "value": 1, "more": 2.0}])], ())
    assert [(each.name, each.role) for each in found] == [
        ("group", "label"),
        ("value", "value"),
        ("more", "estimate"),
    ]


def test_an_outlier_does_not_press_a_chart_flat() -> None:
    """Where there is a better line, the outermost hundredth of what was drawn is left out."""
    declared = (Column("value", "number", "value"), Column("smooth", "number", "estimate"))
    releases = [release(day, [{"value": 10 + day % 5, "smooth": 12.0}]) for day in range(200)]
    releases.append(release(300, [{"value": 1e9, "smooth": 12.0}]))
    found = picture(releases, declared)
    assert found.reach() == (10.0, 14.0)
    assert found.beyond() == 1


def test_an_interval_that_goes_on_to_the_bounds_does_not_press_a_chart_flat() -> None:
    """It is cut at the frame; intervals that are wide on every day are shown whole."""
    declared = (
        Column("value", "number", "value"),
        Column("lower", "number", "lower", about="value"),
        Column("upper", "number", "upper", about="value"),
    )

    def reach(*upper: float) -> tuple[float, float]:
        rows: list[Row] = [
            {"value": 10 + day % 5, "lower": 8, "upper": each} for day, each in enumerate(upper)
        ]
        found = picture([release(day, [row]) for day, row in enumerate(rows)], declared)
        svg = chart(found, title="t")
        heights = [float(each) for each in re.findall(r"[ML][\d.]+ (-?[\d.]+)", svg)]
        assert all(0 <= each <= HEIGHT for each in heights)
        return found.reach()

    assert reach(*[16] * 9, 1e6) == (8.0, 14.0 + 3 * 8.0)
    assert reach(*[100] * 10) == (8.0, 100.0)


def test_many_series_are_a_map() -> None:
    """A row for each with its name; a cell for each value, those of like size in one path."""
    rows: list[Row] = [{"cell": str(number), "value": number} for number in range(40)]
    svg = over_time(picture([release(1, rows), release(2, rows)], ())).svg("t")
    assert sum(path.count("h") for path in re.findall(r'class="cell"[^>]* d="([^"]+)"', svg)) == 80
    for number in range(40):
        assert f">{number}<" in svg
    ElementTree.fromstring(svg)  # noqa: S314


def test_cells_of_two_labels_are_a_table_of_one_part_at_a_time() -> None:
    """The first label divides many series; a part whose others are two is a grid of them."""
    declared = tuple(Column(name, "text", "label") for name in ("answer", "origin", "carrier"))
    declared += (Column("value", "number", "value", "records"),)
    rows: list[Row] = [
        {"answer": "both", "origin": o, "carrier": c, "value": 1} for o in "abcde" for c in "uvwxy"
    ]
    rows += [{"answer": "one", "origin": o, "carrier": None, "value": 2} for o in "abcde"]
    found = picture([release(1, rows)], declared)
    assert found.parts() == ("both", "one")
    both = crossed(found.part("both"), Order())
    assert both is not None
    assert (both.down, both.across, len(both.rows)) == ("origin", tuple("uvwxy"), 5)
    assert all(cell.value == "1" for _, row in both.rows for cell, _ in row)
    assert crossed(found.part("one"), Order()) is None
    assert next(each.name for each in found.part("one").series) == "one · a"


def test_charts_of_little_are_charts() -> None:
    """No release, one, one without numbers, all the same."""
    some: list[list[Row]] = [[], [{"value": 1}], [{"value": None}], [{"value": "text"}]]
    for rows in some:
        releases = [release(number, rows) for number in range(len(rows) * 3)]
        svg = chart(picture(releases, ()), title="t")
        assert bool(svg) == (rows == [{"value": 1}])
        if svg:
            ElementTree.fromstring(svg)  # noqa: S314


def test_a_row_is_shown_by_an_estimate_that_it_has() -> None:
    """A mean is never nonnegative, so its line is smoothed; one with an interval comes first."""
    columns = (
        *(Column("measure", "text", "label"), Column("cell", "text", "label")),
        *(Column("value", "number", "value"), Column("nonnegative", "number", "estimate")),
        Column("smoothed", "number", "estimate"),
    )
    ends = (Column("low", "number", "lower", about="smoothed"),)
    wide = (*columns, *ends, Column("high", "number", "upper", about="smoothed"))
    rows: list[Row] = [
        {"measure": name, "cell": "", "value": -1, "nonnegative": whole, "smoothed": smoothed}
        for name, whole, smoothed in (("flights", 0, 2), ("delay", None, -2), ("bare", None, None))
    ]
    for declared, best in ((columns, "nonnegative"), (wide, "smoothed")):
        given: list[Row] = [{**row, "low": None, "high": None} for row in rows]
        found = picture([release(1, given if declared is wide else rows)], declared).series
        assert [each.name for each in found] == ["flights", "delay", "bare"]
        assert [each.best.column for each in found] == [best, "smoothed", "value"]


BARS = (
    Column("cell", "text", "label"),
    Column("value", "number", "value", "minutes"),
    Column("lower", "number", "lower", about="value"),
    Column("upper", "number", "upper", about="value"),
)


def told(cells: Sequence[str], *values: float) -> list[Release]:
    """A release a day, of rows that all have the value of the day, give or take two."""
    return [
        release(day, [{"cell": c, "value": v, "lower": v - 2, "upper": v + 2} for c in cells])
        for day, v in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("cells", "chosen"),
    [
        (["< 1", "1 to < 2", "(null)"], "1 to < 2"),
        (["0.1", "0.5", "0.9"], "0.5"),
        (["(other)", "> 5"], "(other)"),
    ],
)
def test_a_headline_is_no_edge_and_no_null(cells: list[str], chosen: str) -> None:
    """A median comes first; edges stand only where nothing else does."""
    found = headline(picture(told(cells, 5.0), BARS))
    assert found is not None
    assert found.name == chosen


def test_a_headline_has_the_digits_of_the_table_below() -> None:
    """Those of all rows that measure the same; more where it would be nought."""
    narrow, wide = told("a", 0.7), told("b", 40.0)
    ends: Row = {"lower": 20.0, "upper": 60.0}
    rows = narrow[0].rows + tuple({**row, **ends} for row in wide[0].rows)
    for value, said, in_table in ((0.7, "1", "1"), (0.2, "0.2", "0")):
        first = {**rows[0], "value": value}
        both = picture([replace(narrow[0], rows=(first, rows[1]))], BARS)
        found = headline(both, {"cell": "a"})
        assert found is not None
        assert found.value == said
        assert [each.cells()[0].value for each in columns(both)] == [in_table, "40"]
    alone = headline(picture(narrow, BARS), {"cell": "a"})
    assert alone is not None
    assert alone.value == "0.7"


def test_a_headline_is_compared_with_the_same_weekday() -> None:
    """Mondays are compared with Mondays, whatever Tuesdays are."""
    weeks = [10.0, *[99.0] * 6] * 4
    usual = headline(picture(told("a", *weeks, 10.3), BARS))
    assert usual is not None
    assert (usual.value, usual.unit, usual.interval) == ("10.3", "minutes", "8.3 to 12.3")
    assert usual.usual == "usual for a Thursday"
    high = headline(picture(told("a", *weeks, 99.0), BARS))
    assert high is not None
    assert high.usual == "above all of the last 4 Thursdays (10.0 to 10.0)"
    assert headline(picture([], BARS)) is None


def test_days_of_a_time_zone_are_compared_with_the_same_weekday() -> None:
    """They begin before midnight of UTC, and an hour off where clocks have changed."""
    weeks = [10.0, *[99.0] * 6] * 4
    begins = [-7200 + (3600 if at > 10 else 0) for at in range(len(weeks) + 1)]
    days = [
        replace(each, window_start=(each.window_start or 0) + begin)
        for each, begin in zip(told("a", *weeks, 10.3), begins, strict=True)
    ]
    found = headline(picture(days, BARS))
    assert found is not None
    assert found.usual == "usual for a Thursday"
    half = [replace(each, window_start=43_200 * at) for at, each in enumerate(days)]
    often = headline(picture(half, BARS))
    assert often is not None
    assert often.usual == "as usual"


def test_a_batch_of_hardly_any_records_is_compared_with_nothing() -> None:
    """Its wide interval meets everything; nor are others compared with it."""
    bars = (*BARS, Column("flag", "text", "flag"))
    days = told("a", *[10.0] * 40)
    empty: Row = {"value": 500.0, "lower": 0.0, "upper": 1000.0, "flag": HARDLY_ANY}
    odd = [replace(each, rows=tuple({**row, **empty} for row in each.rows)) for each in days]
    found = headline(picture([*days[:-1], odd[-1]], bars))
    assert found is not None
    assert found.usual == NOTHING_SAID
    before = headline(picture([*days[:32], odd[32], *days[33:]], bars))
    assert before is not None
    assert before.usual.startswith("usual for")
    past = [odd[at] if at % 7 == 39 % 7 else each for at, each in enumerate(days[:-1])]
    alone = headline(picture([*past, days[-1]], bars))
    assert alone is not None
    assert alone.usual == ""


def test_rows_that_stand_out_are_named() -> None:
    """Those below all of the same before, and those above; no others."""
    days = told("abc", *[10.0] * 40)
    values = (("a", 10.0), ("b", 3.0), ("c", 90.0))
    rows: list[Row] = [{"cell": c, "value": v, "lower": v - 2, "upper": v + 2} for c, v in values]
    found = newest(picture([*days[:-1], replace(days[-1], rows=tuple(rows))], BARS), Order())
    assert standing_out(found) == [
        "b below all of the last 5 Mondays",
        "c above all of the last 5 Mondays",
    ]
    assert standing_out(newest(picture(days, BARS), Order())) == []


def test_the_overview_says_how_many_other_rows_are_unusual() -> None:
    """Of those that stand out on the page of the job, one by one, whichever row is the headline."""
    days = told("abc", *[10.0] * 40)
    values = (("a", 10.0), ("b", 3.0), ("c", 90.0))
    rows: list[Row] = [{"cell": c, "value": v, "lower": v - 2, "upper": v + 2} for c, v in values]
    last = picture([*days[:-1], replace(days[-1], rows=tuple(rows))], BARS)
    expected = {
        "a": "2 of 2 other rows are unusual: b below all before, c above all before",
        "b": "1 of 2 other rows is unusual: c above all before",
    }
    chance = "; by chance 1 or fewer would be"
    for cell, others in expected.items():
        found = headline(last, {"cell": cell})
        assert found is not None
        assert (found.name, found.others) == (cell, others + chance)
    calm = headline(picture(days, BARS))
    assert calm is not None
    assert calm.others == "none of 2 other rows is unusual"
    young = headline(picture(days[:3], BARS))
    assert young is not None
    assert young.others == ""


@pytest.mark.parametrize("rows", [9, 40])
def test_how_many_rows_look_unusual_by_chance_is_bounded(rows: int) -> None:
    """Of streams without any change no more look unusual on average than is said."""
    chance = np.random.default_rng(3)
    often, said = [], []
    for _ in range(30):
        noise = chance.normal(0, 1, (9, rows))
        found = picture(
            [
                release(7 * day, [{"cell": str(c), "value": 100 + x} for c, x in enumerate(day_)])
                for day, day_ in enumerate(noise.tolist())
            ],
            (Column("cell", "text", "label"), Column("value", "number", "value")),
        )
        often.append(sum(map(is_unusual, usual_of(found).values())))
        said.append(unusual_by_chance(found, found.series))
    assert set(said) == {math.ceil(rows * 2 / 9)}
    assert 0.7 * said[0] < np.mean(often) < said[0] + 0.5


def test_numbers_have_the_digits_that_intervals_support() -> None:
    """Two digits of the width; without an interval three of the number."""
    assert rounded(978.732, (961.2, 997.1)) == "979"
    assert rounded(188.87, (0.0, 1000.0)) == "200"
    assert rounded(-24.03, (-26.0, -22.0)) == "-24.0"
    assert rounded(4255.04) == "4,255"
    assert rounded(0.0) == "0"


MEASURES = (
    *(Column(name, "text", "label") for name in ("group", "measure", "statistic", "cell")),
    Column("value", "number", "value"),
)


def test_each_measure_has_a_panel_with_its_own_axis() -> None:
    """Counts press means flat no more; groups share the panel, and are named at their ends."""
    releases = []
    for day in range(4):
        rows: list[Row] = [
            {"group": g, "measure": m, "statistic": s, "cell": "", "value": v + day}
            for g in "ab"
            for m, s, v in (("flights", "count", 9000), ("air_time", "mean", 150))
        ]
        releases.append(release(day, rows))
    found = picture(releases, MEASURES)
    assert list(found.panels()) == ["flights · count", "air_time · mean"]
    root = ElementTree.fromstring(chart(found, title="t"))  # noqa: S314
    panels = [each for each in root if each.tag.endswith("}g")]
    ticks = [[t.text for t in each if t.get("class") == "tick"] for each in panels]
    assert "9,000" in ticks[0]
    assert {"9,000", "0"}.isdisjoint(ticks[1])
    for each in panels:
        names = [t for t in each if str(t.get("class")).startswith("name ")]
        assert sorted(str(t.text) for t in names) == ["a", "b"]
        first, second = sorted(float(str(t.get("y"))) for t in names)
        assert second - first >= 12


def test_names_of_lines_that_end_together_lie_apart() -> None:
    """However many end in one point, at the top or at the bottom of the chart."""
    for value in (0.0, 100.0):
        rows: list[Row] = [{"cell": f"c{at}", "value": value} for at in range(12)]
        rows += [{"cell": "low", "value": 0.0}, {"cell": "high", "value": 100.0}]
        svg = lines(picture([release(1, rows), release(2, rows)], BARS[:2])).svg("t")
        names = re.findall(r'class="name [^"]+" x="(\d+)" y="([\d.]+)"', svg)
        heights = [float(y) for _, y in names]
        ends = [float(x) for x in re.findall(r"[ML]([\d.]+) [\d.]+", svg)]
        assert all(float(x) > max(ends) for x, _ in names)
        assert len(heights) == 14
        assert all(before - after >= 12 for before, after in pairwise(heights))
        assert all(0 < each < HEIGHT for each in heights)


def test_a_flagged_batch_is_marked_with_its_reason() -> None:
    """In the chart at its value, and beside the value in tables."""
    columns = (*BARS, Column("flag", "text", "flag"))
    rows: list[Row] = [
        {"cell": "a", "value": 5, "lower": 4, "upper": 6, "flag": flag}
        for flag in (None, "hardly <any> records")
    ]
    found = picture([release(day, [row]) for day, row in enumerate(rows)], columns)
    svg = chart(found, title="t")
    assert svg.count('class="flagged"') == 1
    assert "<title>1: hardly &lt;any&gt; records</title>" in svg
    (series,) = found.series
    assert "badge" not in measured(series, 0)
    assert "hardly &lt;any&gt; records" in measured(series, 1)
    assert "4.0 to 6.0" in measured(series, 1)
