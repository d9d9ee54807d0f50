"""Charts say what tables say: every point, band and cell lies at the number of its table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from streamdp.reports.charts.frame import WIDE
from streamdp.reports.charts.lines import breaks, fan, lines, steps
from streamdp.reports.charts.panels import SHADES, over_time, panels
from streamdp.reports.releases.headline import headline, rounded
from streamdp.reports.releases.series import Picture, picture
from streamdp.store.database import connect_to_read
from streamdp.store.reading.browse import spending
from streamdp.store.reading.reports import scope_reports
from streamdp.types import Column, Row
from streamdp.types.releases import HARDLY_ANY
from streamdp.web.tables import BELOW, Cell, Order, columns, crossed, newest, places
from tests.web.test_reports import release

ENDS = (
    Column("value", "number", "value", "minutes"),
    Column("lower", "number", "lower", about="value"),
    Column("upper", "number", "upper", about="value"),
    Column("flag", "text", "flag"),
)
QUANTILES = (Column("group", "text", "label"), Column("quantile", "number", "label"), *ENDS)
MEASURED = (
    *(Column(name, "text", "label") for name in ("carrier", "measure", "statistic", "cell")),
    *ENDS,
)

Points = list[tuple[float, float]]


def row(value: float, day: int, **labels: str | float) -> Row:
    moved = value + 3 * (day * 7 % 5)
    return {**labels, "value": moved, "lower": moved - 2, "upper": moved + 2.5, "flag": None}


def quantiles(days: Sequence[int], groups: str = "a", shares: Sequence[float] = ()) -> Picture:
    of = shares or (0.1, 0.25, 0.5, 0.75, 0.9)
    return picture(
        [
            release(d, [row(100 * q + ord(g), d, group=g, quantile=q) for g in groups for q in of])
            for d in days
        ],
        QUANTILES,
    )


def measured(carriers: Sequence[str], cells: Sequence[str], days: int = 6) -> Picture:
    """Flights of each carrier, and a histogram of all."""
    return picture(
        [
            release(
                d,
                [
                    row(50 * at, d, carrier=name, measure="flights", statistic="count", cell="")
                    for at, name in enumerate(carriers)
                ]
                + [
                    row(9 * at, d, carrier="", measure="delays", statistic="count", cell=name)
                    for at, name in enumerate(cells)
                ],
            )
            for d in range(days)
        ],
        MEASURED,
    )


def numbers_of(line: Sequence[float | None]) -> list[float]:
    return [value for value in line if value is not None]


def drawn(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)  # noqa: S314


def paths_of(root: ElementTree.Element, kind: str) -> Iterator[str]:
    return (each.get("d", "") for each in root.iter() if each.get("class") == kind)


def paths(root: ElementTree.Element, kind: str) -> Iterator[Points]:
    """Pixels of all paths of a kind."""
    for each in root.iter():
        if each.get("class") == kind:
            found = re.findall(r"(-?[\d.]+) (-?[\d.]+)", each.get("d", ""))
            yield [(float(x), float(y)) for x, y in found]


def scale(root: ElementTree.Element) -> tuple[float, float]:
    """Value at pixel 0 and value of a pixel, by the labels of the axis."""
    ticks = [
        (float(each.get("y", "")) - 4, float((each.text or "").replace(",", "")))
        for each in root.iter()
        if each.get("text-anchor") == "end"
    ]
    (y1, v1), (y2, v2) = ticks[0], ticks[-1]
    step = (v2 - v1) / (y2 - y1)
    return v1 - y1 * step, step


def values(root: ElementTree.Element, points: Points) -> list[float]:
    zero, step = scale(root)
    return [zero + y * step for _, y in points]


@pytest.mark.long
def test_points_of_a_line_lie_at_the_numbers_of_the_table() -> None:
    """And so do both ends of its band, within a pixel."""
    found = quantiles(range(9), shares=(0.5,))
    root = drawn(lines(found).svg("t"))
    (column,) = columns(found)
    (line,), (band,) = paths(root, "line"), paths(root, "band")
    within = 1.5 * abs(scale(root)[1])
    assert values(root, line) == pytest.approx(column.line.values, abs=within)
    lower, upper = column.line.lower or (), column.line.upper or ()
    assert values(root, band) == pytest.approx([*upper, *reversed(lower)], abs=within)
    said = [float(cell.value) for cell in column.cells()]
    assert said == pytest.approx(column.line.values, abs=0.51)
    assert values(root, [(x, y + 5) for x, y in line]) != pytest.approx(said, abs=within)


def test_a_fan_has_the_quantiles_of_the_table() -> None:
    """Each band runs between two of them that belong together; the line is the median."""
    found = quantiles(range(9))
    root = drawn(fan(found).svg("t"))
    table = {each.name: each.line.values for each in columns(found)}
    within = 1.5 * abs(scale(root)[1])
    outer, inner, _ = paths(root, "band")
    for band, (low, high) in ((outer, ("a · 0.1", "a · 0.9")), (inner, ("a · 0.25", "a · 0.75"))):
        wanted = [*table[high], *reversed(table[low])]
        assert values(root, band) == pytest.approx(wanted, abs=within)
    (median,) = paths(root, "line")
    assert values(root, median) == pytest.approx(table["a · 0.5"], abs=within)


def test_a_map_is_as_dark_as_the_table_is_large() -> None:
    """A cell for each number, at its row and batch, with the shade of its size."""
    found = measured("ab", [f"c{at}" for at in range(6)]).panels()["delays · count"]
    chart = over_time(found)
    root = drawn(chart.svg("t"))
    assert chart.rows is not None
    numbers = [numbers_of(each.line.values) for each in columns(found)]
    known = [value for line in numbers for value in line]
    seen, at = {}, chart.across.scale
    for each in root.iter():
        if each.get("class") == "cell":
            for x, y, wide in re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)", each.get("d", "")):
                place = (float(x) + float(wide) / 2 - at.start) / (at.end - at.start)
                batch = round(place * (len(found.times) - 1))
                line = int((float(y) - chart.rows[0]) // chart.rows[1])
                seen[line, batch] = float(each.get("stroke-opacity", ""))
    assert len(seen) == len(known) == 36
    for place_of_row, of_row in enumerate(numbers):
        for column, value in enumerate(of_row):
            wanted = (value - min(known)) / (max(known) - min(known))
            assert seen[place_of_row, column] == pytest.approx(wanted, abs=0.6 / SHADES + 0.04)
    least, most = [e.text for e in root.iter() if e.get("class") == "tick" and e.get("y") == "12"]
    assert (least, most) == (rounded(min(known)), f"{rounded(max(known))} minutes")
    assert len([e for e in root.iter() if e.get("class") == "cell key"]) == SHADES


@pytest.mark.parametrize("most", [300, 3])
def test_the_budget_is_drawn_by_batches_and_loses_no_sum(home: Path, most: int) -> None:
    """A backfill charges all at once: batches lie at their windows, and each sum is in the ledger.

    Of batches without dates rows of the ledger stand in their place.
    """
    with closing(connect_to_read(home / "store.db")) as store:
        for report in scope_reports(store):
            found = spending(store, report.scope, most)
            assert found is not None
            charges = store.execute(
                "SELECT l.seq, l.batch, b.window_start, l.epsilon_nano FROM ledger l"
                " LEFT JOIN batch b ON b.source = l.scope AND b.key = l.batch"
                " WHERE l.scope = ? AND l.purpose = 'reserve'",
                [report.scope],
            ).fetchall()
            dated = all(window is not None for _, _, window, _ in charges)
            assert found.dated == dated
            firsts: dict[str, int] = {}
            for seq, batch, *_ in charges:
                firsts.setdefault(batch, seq)
            for place, spent in found.points[1:]:
                until = sum(
                    price
                    for _, batch, window, price in charges
                    if (window if dated else firsts[batch]) <= place
                )
                assert spent == until + found.points[0][1]
            assert found.points[-1][1] == report.lifetime_spent_nano
            assert len(found.points) <= 2 * most + 2
            points = [(place, spent / 1e9) for place, spent in found.points]
            root = drawn(steps(points, found.cap / 1e9, dated=dated, title="t"))
            line = re.findall(r"V([\d.]+)", next(paths_of(root, "line")))
            sums = values(root, [(0.0, float(y)) for y in line])
            within = 1.5 * abs(scale(root)[1])
            assert sums == pytest.approx([spent for _, spent in points[1:]], abs=within)


def test_bars_have_the_numbers_of_the_newest_release() -> None:
    """Sorted by what the address says, searched by text; bars are as long as their numbers."""
    (flights, delays) = newest(measured("abc", "xyzw"), Order("-value"))
    assert [each.title for each in (flights, delays)] == ["flights · count", "delays · count"]
    assert [bar.labels for bar in flights.bars] == [("c",), ("b",), ("a",)]
    for part in (flights, delays):
        for one, other in pairwise(part.bars):
            ratio = (one.at - part.zero) * other.number
            assert ratio == pytest.approx((other.at - part.zero) * one.number)
            assert one.low <= one.at <= one.high
    (only,) = newest(measured("abc", "xyzw"), Order("", "Y"))[1].bars
    assert only.labels == ("y",)


def test_a_table_of_two_labels_has_each_number_once() -> None:
    found = quantiles(range(3), groups="ab")
    both = crossed(found, Order())
    assert both is not None
    assert both.across == ("10 %", "25 %", "median", "75 %", "90 %")
    newest_values = {each.name: each.best.values[-1] for each in found.series}
    cells = [float(cell.value) for _, line in both.rows for cell, _ in line]
    assert cells == pytest.approx(list(newest_values.values()), abs=0.51)


def test_forms_follow_from_labels() -> None:
    """Groups of quantiles are fans on one scale, cells a map, groups small multiples."""
    (groups,) = panels("j", quantiles(range(5), groups="ab"))
    assert [each.name for each in groups.charts] == ["a", "b"]
    assert all('class="band"' in each.sizes["small"] for each in groups.charts)
    axes = {tuple(scale(drawn(each.sizes["small"]))) for each in groups.charts}
    assert len(axes) == 1
    (alone,) = panels("j", quantiles(range(5)))
    assert set(alone.charts[0].sizes) == {"wide", "small"}
    flights, delays = panels("j", measured("abcd", "vwxyz"))
    assert [each.name for each in flights.charts] == list("abcd")
    assert 'class="cell"' in delays.charts[0].sizes["small"]
    for each in (*flights.charts, *delays.charts):
        assert each.rows


def test_a_count_of_a_period_is_shown_from_0_on() -> None:
    """As the table of changes shows it; a sum that may be negative, and batches, as they are."""
    days = [-9.0, 27.0, 40.0]
    found = picture(
        [
            release(d, [{"value": v, "lower": v - 29, "upper": v + (5 if v < 0 else 29)}])
            for d, v in enumerate(days)
        ],
        ENDS,
    )
    (one,) = columns(found)
    counted = replace(one, never_negative=True)
    assert one.cells()[1:] == [Cell("27", "-2 to 56"), Cell("40", "11 to 69")]
    assert counted.cells() == [Cell("0", BELOW), Cell("27", "0 to 56"), Cell("40", "11 to 69")]
    assert one.cells()[0] == Cell("-9", "-38 to -4")


def test_all_groups_together_have_a_scale_of_their_own() -> None:
    """They press no group flat; what the lines are is said."""
    whole = measured([*"abcd", "all four"], "vwxyz")
    of_all = frozenset(each.name for each in whole.series if "all four" in each.labels)
    flights, _ = panels("j", replace(whole, together=of_all))
    assert flights.about.startswith("Groups on one scale, all together on another. The line is")
    *axes, last = [tuple(scale(drawn(each.sizes["small"]))) for each in flights.charts]
    assert len({*axes}) == 1
    assert last != axes[0]
    apart, _ = panels("j", measured("abcd", "vwxyz"))
    assert apart.about.startswith("All on one scale. ")


def test_a_line_that_follows_from_releases_says_so() -> None:
    """What charts draw is named as the legend and the table name it."""
    columns = (Column("group", "text", "label"), *ENDS, Column("smoothed", "number", "estimate"))
    found = picture(
        [release(d, [{**row(5, d, group="a"), "smoothed": 4.0}]) for d in range(4)], columns
    )
    (panel,) = panels("j", found)
    assert panel.about.startswith("The line is the value smoothed")


def test_a_batch_that_is_missing_is_a_gap() -> None:
    """Where batches are regular; where they never are, no line is broken."""
    assert breaks([0, 1, 2, 3, 5, 6, 7]) == {3}
    assert breaks([0, 1, 4, 9, 10, 30]) == frozenset()
    days = [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]
    found = quantiles(days, shares=(0.5,))
    assert [len(each) for each in paths(drawn(lines(found).svg("t")), "line")] == [5, 5]
    assert [len(each) for each in paths(drawn(fan(quantiles(days)).svg("t")), "line")] == [5, 5]


def test_a_batch_of_hardly_any_records_draws_no_line() -> None:
    """It is marked with the reason, and does not stretch the axis; the table has its number."""
    rows = [row(5, day, cell="a") for day in range(6)]
    rows[3] = {"cell": "a", "value": 900, "lower": 0, "upper": 1000, "flag": HARDLY_ANY}
    rows += [row(5, day, cell="a") for day in (6, 7)]
    found = picture(
        [release(day, [each]) for day, each in enumerate(rows)],
        (Column("cell", "text", "label"), *ENDS),
    )
    assert found.reach()[1] < 100
    root = drawn(lines(found).svg("t"))
    assert [len(each) for each in paths(root, "line")] == [3, 4]
    assert [each.get("class") for each in root.iter()].count("flagged") == 1
    (column,) = columns(found)
    assert (column.cells()[3].value, column.cells()[3].flag) == ("900.0", HARDLY_ANY)


def test_names_lie_beside_lines_in_the_frame() -> None:
    """Right of the last point, and the longest ends before the chart does."""
    found = measured(("a", "a very long name of a carrier", "c"), ()).only
    root = drawn(lines(found([f"{n} · flights · count" for n in ("a", "c")])).svg("t"))
    names = [each for each in root.iter() if str(each.get("class")).startswith("name")]
    ends = [x for line in paths(root, "line") for x, _ in line]
    assert all(float(each.get("x", "")) > max(ends) for each in names)
    assert all(float(each.get("x", "")) + 7 * len(each.text or "") < WIDE.wide for each in names)


def test_rows_of_a_table_are_in_the_order_of_the_address() -> None:
    """By the value of a column or by batch, either way; those without a value are last."""
    found = quantiles(range(5), shares=(0.5,))
    values_of = found.series[0].best.values
    assert places(found, Order()) == [4, 3, 2, 1, 0]
    assert places(found, Order("batch")) == [0, 1, 2, 3, 4]
    name = found.series[0].name
    assert [values_of[at] for at in places(found, Order(name))] == sorted(
        each for each in values_of if each is not None
    )
    assert places(found, Order("", "3")) == [3]
    assert places(found, Order("no such column")) == [4, 3, 2, 1, 0]


def test_a_headline_is_the_largest_of_what_comes_first_or_what_was_chosen() -> None:
    """Of groups that count alike the largest; a configuration may name another row."""
    found = measured("abc", "xyz")
    said = headline(found)
    assert said is not None
    assert said.name == "c · flights"
    chosen = headline(found, {"carrier": "a"})
    assert chosen is not None
    assert chosen.name == "a · flights"


def test_a_headline_says_its_unit_once() -> None:
    """A count of bounded records has its unit in its name; a letter of the name is no unit."""
    found = measured("ab", "xyz")
    for unit, said in (("flights", ""), ("planes", "planes"), ("s", "s"), ("", "")):
        columns = [
            replace(each, unit=unit) if each.role == "value" else each for each in found.columns
        ]
        told = headline(replace(found, columns=tuple(columns)))
        assert told is not None
        assert (told.name, told.unit) == ("b · flights", said)
