"""Reports in words: changes are those of `ask`, counts claim no chance, and who may see it."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from streamdp.answers.regression import BatchHistory, Scales
from streamdp.cli import cli
from streamdp.config import Configuration, load
from streamdp.log import close
from streamdp.reports.plain import guessed_right
from streamdp.reports.releases import changes
from streamdp.reports.releases.changes import (
    Comparison,
    Interval,
    Moved,
    PeriodRow,
    averages,
)
from streamdp.reports.releases.digest import Digest, digest
from streamdp.reports.releases.sentences import amounts, change_said, range_said
from streamdp.reports.releases.series import Labels, picture
from streamdp.reports.releases.summary import CHANCES, GLOSSARY, Point, about_changes, summary
from streamdp.store.database import connect_to_read
from streamdp.types import Column, Json, Release
from streamdp.web.pages import _from_0_on
from streamdp.web.report import as_html, as_markdown, changes_grid, sheets, written
from streamdp.web.tables import Cell, columns
from streamdp.wiring import release_kind
from tests.benchmarks.large_store import furnish
from tests.web.addresses import page_of

DEMO = Path(__file__).parents[2] / "config.yaml"
MORE = """
  traffic:
    kind: statistics
    source: flights
    by: [origin]
    groups: [JFK, LGA, EWR]
    epsilon: 0.1
    measures:
      flights: count
      late: {count: {sql: arrival_delay > 30}}
  delays:
    kind: statistics
    source: flights
    epsilon: 2
    measures:
      delay: {mean: arrival_delay, resolution: 1, bounds: [-60, 300], measured_in: minutes}
      spread: {variance: arrival_delay, resolution: 1, bounds: [-60, 300]}
  destinations:
    kind: keys
    source: flights
    by: dest
    epsilon: 1
    delta: 1e-9
    at_least: 5
  busiest:
    kind: selection
    source: flights
    among: {conditions: {ATL: "dest = 'ATL'", BOS: "dest = 'BOS'"}}
    score: count
    expected_rows: 900
    epsilon: 0.1
"""
CAPS = "batch: 4\n    delta: {batch: 1e-9, lifetime: 1e-7}"
UNIT = "minutes"
WEEK, DAY = 1_358_121_600, 86_400
"""Monday 14 January 2013; the last batch is of the Saturday after."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with nineteen days of deciles, counts by groups, keys and choices, released."""
    folder = tmp_path_factory.mktemp("told")
    text = DEMO.read_text().replace("end: 2014-01-01", "end: 2013-01-20")
    text = re.sub(r"^ +measured_in:.*\n", "", text, flags=re.MULTILINE)
    text = text.replace("    resolution: 1 ", f"    measured_in: {UNIT}\n    resolution: 1 ")
    text = (
        text.replace("batch: 0.3 ", f"{CAPS} ")
        .replace("lifetime: 60 ", "lifetime: 100 ")
        .replace("\nsinks:", f"{MORE}\nsinks:")
    )
    (folder / "config.yaml").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(cli, ["run", "--once"], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        close()
        yield folder


@pytest.fixture
def configuration(home: Path, monkeypatch: pytest.MonkeyPatch) -> Configuration:
    monkeypatch.chdir(home)
    return load(home / "config.yaml")


def told(of: Configuration, job: str, period: str = "week", at: int | None = WEEK) -> Digest:
    with closing(connect_to_read(of.store.path)) as store:
        columns = release_kind(of, job).columns
        return digest(of, store, job, period, at, 2_000_000_000, columns)  # type: ignore[arg-type]


def compared(of: Configuration, job: str, period: str = "week", at: int = WEEK) -> Comparison:
    found = told(of, job, period, at).compared
    assert found is not None
    return found


def row(found: Comparison, **labels: str | None) -> PeriodRow:
    (one,) = [r for r in found.rows if all(r.labels[n] == text for n, text in labels.items())]
    return one


def asked(*words: str) -> list[Json]:
    result = CliRunner().invoke(cli, ["ask", *words, "--json"], catch_exceptions=False)
    return [json.loads(line) for line in result.stdout.splitlines()]


def sentence(name: str, found: Json, unit: str = UNIT) -> str:
    """What a report says of a comparison, from the numbers of `ask`."""
    change, lower, upper, differ, rose = (
        found[each] for each in ("change", "lower", "upper", "records_differ", "process_rose")
    )
    return change_said(name, change, lower, upper, unit, differ, rose)


@pytest.mark.long
def test_changes_of_quantiles_are_those_of_ask(configuration: Configuration) -> None:
    """To the last digit, of each quantile and of all deciles, and in the same words."""
    found = told(configuration, "air_time")
    assert found.compared is not None
    for quantile in ("0.3", "0.5", "0.7"):
        one, both = asked(
            "air_time", "--compare", "2013-W02", "2013-W03", "--quantile", quantile, "--partial"
        )
        moved = row(found.compared, quantile=quantile).moved
        for each, said in ((moved, one), (found.compared.all_deciles[""], both)):
            assert each is not None
            assert each.by == (said["change"], said["lower"], said["upper"])
            assert (each.differ, each.rose) == (said["records_differ"], said["process_rose"])
        if quantile == "0.5":
            assert one["said"] == sentence("quantile 0.5", one)
            assert f"{sentence('median', one)}." in found.words.changed
            assert f"{sentence('all deciles together', both)}." in found.words.changed


def test_a_change_of_counts_is_that_of_totals_and_claims_no_chance(
    configuration: Configuration,
) -> None:
    """Noises of the two periods are independent; no probability stands beside them."""
    found = told(configuration, "traffic", at=WEEK - 7 * DAY)
    week = compared(configuration, "traffic", at=WEEK)
    now, then = (
        asked("traffic", "--total", "flights", "--group", "JFK", "--over", each, "--partial")[0]
        for each in ("2013-W03", "2013-W02")
    )
    assert (week.batches, week.batches_before, week.per_batch) == (6, 7, True)
    jfk = row(week, origin="JFK", measure="flights").moved
    assert jfk is not None
    by, low, high = jfk.by
    assert by == pytest.approx(now["value"] / 6 - then["value"] / 7)
    halves = [(each["upper"] - each["lower"]) / 2 for each in (now, then)]
    assert (high - low) / 2 == pytest.approx(math.hypot(halves[0] / 6, halves[1] / 7))
    assert (jfk.differ, jfk.rose) == (None, None)
    assert "means of a day" in told(configuration, "traffic").words.about_changes
    for words in (found.words, told(configuration, "traffic").words):
        said = " ".join((words.headline, *words.changed))
        assert "in 100" not in said
        assert "not measured" in words.about_changes


def test_groups_that_fell_are_named_by_their_intervals(configuration: Configuration) -> None:
    """Each group once: above nought, below it, or neither."""
    found = told(configuration, "traffic")
    assert found.compared is not None
    first = next(each for each in found.words.changed if each.startswith("Flights. Of 3 groups"))
    rose, fell, *rest = first.split(": ", 1)[1].rstrip(".").split("; ")
    for name in ("JFK", "LGA", "EWR"):
        moved = row(found.compared, origin=name, measure="flights").moved
        assert moved is not None
        assert (name in rose) == (moved.by[1] > 0)
        assert (name in fell) == (moved.by[2] < 0)
        assert (name in " ".join(rest)) == (moved.by[1] <= 0 <= moved.by[2])
    assert found.compared.headline is not None
    assert found.compared.headline.labels["origin"] is None
    assert "of the 3 groups" in found.words.headline
    assert "The 3 groups together are not all records" in found.words.about_changes


def test_a_clear_change_of_any_measure_is_said_before_those_that_are_not(
    configuration: Configuration,
) -> None:
    """Of the second measure as of the first: none that the table has is missing in words."""
    found = told(configuration, "traffic")
    assert found.compared is not None
    rows, late = found.compared.rows, row(found.compared, origin="LGA", measure="late")
    assert late.moved is not None
    known = [
        replace(each, moved=Moved((-9.0, -12.0, -6.0) if each is late else (1.0, -30.0, 32.0)))
        for each in rows
    ]
    case = replace(found.compared, rows=tuple(known))
    with closing(connect_to_read(configuration.store.path)) as store:
        about = found.releases, found.picture, case, ""
        said = summary(configuration, store, "traffic", *about).changed
    assert said[1] == "Late. Of 3 groups: none rose; LGA fell; JFK, EWR without a clear change."
    assert said[3].startswith(f"{found.compared.called(late)} fell by 9")
    assert not any("looked at by itself" in each for each in said[3:])


def test_a_report_is_of_the_last_whole_period(configuration: Configuration) -> None:
    """As the page is; what is asked for and is not whole says so; without a whole one, the last."""
    by_itself = told(configuration, "traffic", at=None)
    assert by_itself.words.title == "the week of Monday 7 January 2013"
    text = as_markdown(by_itself, 0, [])
    assert "days)" not in text.split("## Batches")[0]
    assert by_itself.words.about_batches.startswith("Here and in charts stands smoothed, which")
    assert by_itself.words.about_batches in text
    assert by_itself.words.about_batches in as_html(by_itself, 0)
    asked_for = told(configuration, "traffic")
    assert asked_for.words.title == "the week of Monday 14 January 2013 (6 of 7 days)"
    text = as_markdown(asked_for, 0, [])
    assert "## The week of Monday 14 January 2013 (6 of 7 days) in records" in text
    assert "| row | 14 to 20 January 2013, 6 of 7 days |" in text
    assert "The whole week" not in text
    month = told(configuration, "traffic", "month", None)
    assert month.words.title == "January 2013 (19 of 31 days)"
    day = told(configuration, "traffic", "day", None)
    assert day.words.title == "Saturday 19 January 2013"


def test_a_report_says_until_when_the_budget_lasts(configuration: Configuration) -> None:
    """With the date of the page; the command for the rest stands as one, in each format."""
    found = told(configuration, "traffic")
    assert re.search(r"the rest is enough for [\d,]+ more batch", found.words.cost)
    with page_of(configuration.store.path.with_name("config.yaml")) as client:
        page = client.get("/budget").text
    (lasts,) = re.findall("enough for .*", found.words.cost)
    assert lasts.rstrip(".") in page
    assert "<code>streamdp statement</code>" in as_html(found, 0)
    assert "`" not in as_html(found, 0)
    text = as_markdown(found, 0, [])
    assert " `streamdp statement` " in text
    assert "\\(" not in text


def test_a_month_of_nine_groups_is_six_sheets_at_most(configuration: Configuration) -> None:
    """All groups have a picture; the table of batches has those rows that are like the headline."""
    pytest.importorskip("weasyprint", reason="the extra pdf is not installed")
    found = told(configuration, "air_time", "month", None)
    assert found.compared is not None
    columns = (
        Column("carrier", "text", "label"),
        *(each for each in found.picture.columns if each.role != "flag"),
    )
    groups, quantiles = "ABCDEFGHI", (0.1, 0.5, 0.9)
    releases = [
        Release(
            f"r{day}",
            "air_time",
            "flights",
            f"2013-03-{day + 1:02d}",
            1_362_096_000 + DAY * day,
            1_362_096_000 + DAY * (day + 1),
            "quantiles",
            1,
            0,
            tuple(
                {"carrier": g, "quantile": q, "value": 100 * q, "lower": 90 * q, "upper": 110 * q}
                for g in groups
                for q in quantiles
            ),
        )
        for day in range(31)
    ]
    whole = picture(releases, columns)
    one = found.compared.rows[0]
    rows = [
        replace(one, labels={"carrier": g, "quantile": f"{q:g}"}, name=f"{g} · {q:g}")
        for g in groups
        for q in quantiles
    ]
    compared = replace(found.compared, rows=tuple(rows), headline=rows[1])
    month = replace(found, picture=whole, compared=compared)
    assert len(sheets(month, 0).pages) <= 6
    text = as_html(month, 0, paper=True)
    assert text.count('<svg class="chart"') == 9
    (head,) = re.findall(r'aria-label="Batches: ([^"]*)"', text)
    assert head.split(", ") == [f"{g} · median" for g in groups]
    assert (
        "9 of 27 rows of a release; <code>streamdp releases air_time --csv</code> has all" in text
    )


def test_a_week_of_many_counts_fills_its_sheets(configuration: Configuration) -> None:
    """Two dozen small charts lie three beside each other, from the first sheet on."""
    pytest.importorskip("weasyprint", reason="the extra pdf is not installed")
    found = told(configuration, "destinations", "week", None)
    kept = [each for each in found.picture.columns if each.role != "label"]
    columns = (Column("dest", "text", "label"), *kept)
    names = [f"<{letter}>" for letter in "ABCDEFGHIJKLMNOPQRSTUVWX"]
    releases = [
        Release(
            f"r{day}",
            "destinations",
            "flights",
            f"2013-03-{day + 1:02d}",
            1_362_096_000 + DAY * day,
            1_362_096_000 + DAY * (day + 1),
            "keys",
            1,
            0,
            tuple({"dest": g, "count": 60, "lower": 59, "upper": 61} for g in names),
        )
        for day in range(7)
    ]
    week = replace(found, picture=picture(releases, columns))
    text = as_html(week, 0, paper=True)
    assert text.count('<svg class="chart"') == 24
    assert len(sheets(week, 0).pages) <= 4


def test_counts_are_shown_from_0_on_and_sums_are_not(configuration: Configuration) -> None:
    """What noise took below 0, and an end below 0; the change and the value are as they were."""
    found = compared(configuration, "traffic")
    jfk = row(found, origin="JFK", measure="late")
    assert jfk.never_negative
    assert jfk.moved is not None
    cases = {
        (-27.0, -60.0, 6.0): Cell("0", "0 to 6"),
        (20.0, -10.0, 50.0): Cell("20", "0 to 50"),
        (-90.0, -120.0, -60.0): Cell("0", "noise took it below 0"),
        (90.0, 60.0, 120.0): Cell("90", "60 to 120"),
    }
    for value, cell in cases.items():
        one = replace(jfk, value=value)
        _, ((_, shown, change, *_),) = changes_grid(replace(found, rows=(one,)), "")
        assert shown == cell
        assert change.value.lstrip("+") == amounts(*jfk.moved.by)[0]
        note = "what noise took below is shown as 0" in about_changes(replace(found, rows=(one,)))
        assert note == (min(value) < 0)
        _, ((_, total, *_),) = changes_grid(
            replace(found, rows=(replace(one, never_negative=False),)), ""
        )
        assert total == Cell(amounts(*value)[0], " to ".join(amounts(*value)[1:]))


def test_counts_alone_are_shown_from_0_on_in_rollups(configuration: Configuration) -> None:
    """Neither quantiles nor means, which may be negative."""
    with closing(connect_to_read(configuration.store.path)) as store:

        def measured(job: str, newest: Release) -> changes.Kept:
            return lambda: changes.around_last(configuration, store, job, newest)

        view: Any = SimpleNamespace(database=store, measured=measured)
        for job, expected in (("traffic", {True}), ("air_time", {False}), ("delays", {False})):
            of = told(configuration, job)
            found = _from_0_on(view, job, of.releases[-1], columns(of.picture))
            assert {each.never_negative for each in found} == expected


def test_a_headline_is_usual_only_within_earlier_periods(configuration: Configuration) -> None:
    """Above or below all of them where the interval is; nothing where there are too few."""
    found = told(configuration, "air_time", "day", WEEK + 4 * DAY)
    base = found.compared
    assert base is not None
    assert base.headline is not None
    value, low, high = base.headline.value
    assert len(base.earlier) == 8
    with closing(connect_to_read(configuration.store.path)) as store:
        for past, word in (
            ([low - 1] * 3, "above all"),
            ([high + 1] * 3, "below all"),
            ([low - 1, value, high + 1], "usual"),
            ([high] * 3, "by no more than noise"),
            ([low] * 3, "by no more than noise"),
            ([low - 1] * 2, ""),
        ):
            case = replace(base, earlier=tuple(past))
            about = found.releases, found.picture, case, ""
            said = summary(configuration, store, "air_time", *about).headline
            assert (word in said) if word else not re.search("above|below|usual", said)


def test_variances_of_periods_are_means_of_those_of_their_days(
    configuration: Configuration,
) -> None:
    """With the means of the ends; a change reaches from the least to the most that it can be."""
    now, before = (told(configuration, "delays", at=WEEK - days * DAY) for days in (0, 7))
    mean, low, high = (
        [
            fmean(float(release.rows[1][name]) for release in each.releases)  # type: ignore[arg-type]
            for each in (now, before)
        ]
        for name in ("value", "lower", "upper")
    )
    assert now.compared is not None
    found = row(now.compared, measure="spread")
    assert found.value == pytest.approx((mean[0], low[0], high[0]))
    assert found.moved is not None
    assert found.moved.by == pytest.approx((mean[0] - mean[1], low[0] - high[1], high[0] - low[1]))
    assert found.pooled == "mean of batches"
    name = "spread · variance, mean of 6 days"
    assert f"{found.moved.said(name, '')}." in now.words.changed
    assert "averaged over the days" in now.words.about_changes


def test_means_of_periods_are_those_of_ask(configuration: Configuration) -> None:
    """Of all records of the days together; noises of two periods are independent."""
    found = told(configuration, "delays")
    assert found.compared is not None
    mean = row(found.compared, measure="delay")
    now, then = (
        asked("delays", "--mean", "delay", "--over", each, "--partial")[0]
        for each in ("2013-W03", "2013-W02")
    )
    assert mean.value == (now["value"], now["lower"], now["upper"])
    assert mean.moved is not None
    assert mean.moved.by[0] == pytest.approx(now["value"] - then["value"])
    assert mean.pooled == "mean"
    assert mean.unit == "minutes"
    assert "delay · mean" in found.words.headline
    assert f"{mean.moved.said('delay · mean', 'minutes')}." in found.words.changed
    assert "those of sums and means" in found.words.about_changes


def test_releases_are_read_where_their_values_are_averaged(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of counts alone reads none of them again."""
    monkeypatch.chdir(home)
    read: list[int] = []

    def counted(releases: Sequence[Release], columns: Sequence[Column]) -> dict[Labels, Interval]:
        read.append(len(releases))
        return averages(releases, columns)

    monkeypatch.setattr(changes, "averages", counted)
    with page_of(home / "config.yaml") as client:
        assert "beside the week before: " in client.get("/jobs/traffic").text
        assert read == []
        page = client.get("/jobs/delays").text
    assert read == [7, 6]
    for name in ("delay · mean", "spread · variance, mean of 7 days"):
        assert f'<th scope="row">{name}' in page


def test_choices_and_keys_are_compared_by_their_names(configuration: Configuration) -> None:
    """How often each was chosen in both weeks; which keys were found in one of them alone."""
    now, before = (told(configuration, "busiest", at=WEEK - days * DAY) for days in (0, 7))
    cells = [Counter(each.picture.series[0].cells) for each in (now, before)]
    assert now.compared is not None
    assert {name: rest for name, *rest in now.compared.chosen} == {
        name: [each[name] for each in cells] for name in cells[0] | cells[1]
    }
    name, often, then = now.compared.chosen[0]
    said = f"{name} was chosen in {often} of 6 days, and in {then} of 7 in the week before."
    assert said in now.words.changed
    for days in (7, 0):
        now, before = (
            told(configuration, "destinations", at=WEEK - each * DAY) for each in (days, days + 7)
        )
        keys = [{str(r["dest"]) for e in each.releases for r in e.rows} for each in (now, before)]
        assert now.compared is not None
        assert set(now.compared.came) == keys[0] - keys[1]
        assert set(now.compared.went) == keys[1] - keys[0]
        words = " ".join(now.words.changed)
        assert ("Found now, and not in the week before: " in words) == bool(keys[0] - keys[1])
        assert ("Found in the week before, and not now: " in words) == bool(keys[1] - keys[0])


def test_what_does_not_add_up_is_said_to(configuration: Configuration) -> None:
    """Choices have a headline of what was chosen, and keys say which are new."""
    chosen, keys = (told(configuration, job) for job in ("busiest", "destinations"))
    assert re.search(
        "that was chosen most often is (ATL|BOS) in [3-6] of 6 batches", chosen.words.headline
    )
    assert "Choices are drawn with noise" in chosen.words.about_changes
    assert "A key is found where its noisy count is large" in keys.words.about_changes
    first = told(configuration, "destinations", at=WEEK - 14 * DAY)
    assert "ATL" in next(each for each in first.words.changed if each.startswith("Found now: "))


def texts(points: Iterable[Point]) -> str:
    return " ".join(each.text for each in points)


def test_who_may_see_a_report_is_said_exactly(configuration: Configuration) -> None:
    """The bound is that of the releases' own prices; found texts and names are not protected."""
    found = told(configuration, "air_time")
    said = texts(found.words.showing)
    one, six = guessed_right(100_000_000), guessed_right(600_000_000)
    assert f"at most {one} times in 100 by one release (epsilon 0.1), and by every" in said
    assert f"{six} times by all 6 of this period (ε 0.6), if it is in every batch" in said
    assert "come on top" in said
    assert [name for name, text in found.sheet["how private"].items() if text == "0.1"] == [
        "epsilon of one release"
    ]
    assert "Found in the data" not in said
    keys = texts(told(configuration, "destinations").words.showing)
    assert "Found in the data: texts of dest" in keys
    assert "δ 6e-9" in keys
    with closing(connect_to_read(configuration.store.path)) as store:
        about = found.picture, None
        some = summary(configuration, store, "air_time", found.releases, *about, ", one in 2")
        assert "by all" not in texts(some.showing)
        two = summary(configuration, store, "air_time", found.releases[:2], *about, "")
        assert "times by both of this period" in texts(two.showing)
        in_rho = [replace(each, epsilon_nano=None, rho_nano=10**7) for each in found.releases]
        other = texts(summary(configuration, store, "air_time", in_rho, *about, "").showing)
        assert "times in 100" not in other
        assert "price in ρ" in other


def test_the_page_says_the_change_of_the_last_whole_week(
    home: Path, configuration: Configuration
) -> None:
    """As `ask` does; of counts without a chance, of what does not add up nothing."""
    (one, _) = asked("air_time", "--compare", "2013-W01", "2013-W02", "--partial")
    with page_of(home / "config.yaml") as client:
        pages = {job: client.get(f"/jobs/{job}").text for job in configuration.releases}
        overview = client.get("/").text
    start = "The week of Monday 7 January 2013 beside the week before: "
    assert f"<p>{start}{sentence('median', one)}.</p>" in pages["air_time"]
    week = row(compared(configuration, "air_time", at=WEEK - 7 * DAY), quantile="0.5")
    value, low, high = amounts(*week.value)
    assert f'{value}<span class="range">{low} to {high}</span>' in pages["air_time"]
    for word, said in CHANCES:
        assert (
            f"<strong>{word.capitalize()}</strong>: of a change alone: {said}."
            in (pages["air_time"])
        )
        assert said not in pages["traffic"]
        assert (word, said) in GLOSSARY
    for job in ("air_time", "traffic"):
        assert '<a class="sure" href="#sure">19 in 20 sure</a>' in pages[job]
        assert re.search(r"19 of 20 ranges like \S+ to \S+ .*are meant to hold what", pages[job])
    assert f"19 in 20 sure: {range_said(0.95)}" in overview
    drawn = {job: "what was released</li>" in page for job, page in pages.items()}
    assert drawn["traffic"]
    assert not drawn["air_time"], "bands have no dots"
    (counts,) = re.findall(f"<p>{start}(.*?)</p>", pages["traffic"])
    assert "flights" in counts
    assert "chance" not in counts
    found = compared(configuration, "traffic", at=WEEK - 7 * DAY)
    _, table = changes_grid(found, "records")
    cells = {line[0].value: line[2] for line in table}
    ways = {1: "rose", -1: "fell", 0: "without a clear change"}
    for measure in ("flights", "late"):
        (said,) = re.findall(rf"{measure}: (.*?)(?:\.|$)", counts)
        for each in found.rows:
            if each.labels["origin"] and each.labels["measure"] == measure and each.moved:
                way = ways[each.moved.direction]
                assert re.search(rf"\b{each.labels['origin']}\b[^;]* {way}", said), each
                by = cells[found.called(each)]
                assert f'{by.value}<span class="range">{by.interval}</span>' in pages["traffic"]
                assert float(by.value) == pytest.approx(each.moved.by[0], abs=0.5)
    for job in ("destinations", "busiest"):
        assert start not in pages[job]


def test_the_page_fits_what_was_measured_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change since the week before and what is expected next go by the same releases."""
    monkeypatch.chdir(home)
    fits: list[int] = []
    fitted = BatchHistory.fitted

    def counted(self: BatchHistory) -> Scales:
        fits.append(len(self.at))
        return fitted(self)

    monkeypatch.setattr(BatchHistory, "fitted", counted)
    with page_of(home / "config.yaml") as client:
        page = client.get("/jobs/air_time").text
        assert "The next batch is expected to have: " in page
        assert "beside the week before: " in page
        assert len(fits) == 1
        client.get("/jobs/air_time?last=7")
        assert len(fits) == 1


def test_releases_without_measurements_have_a_page_and_a_report(tmp_path: Path) -> None:
    """Those from before they were kept: nothing is compared, and the reason is said."""
    config = load(furnish(tmp_path, 400))
    with page_of(tmp_path / "config.yaml") as client:
        page = client.get("/jobs/air_time")
    assert page.status_code == 200
    assert "beside the day before" not in page.text
    found = told(config, "air_time", at=1_357_603_200)
    assert "no release of air_time has measurements" in found.words.about_changes
    assert found.words.headline


def test_the_newest_is_compared_with_releases_that_are_not_shown(tmp_path: Path) -> None:
    """A page of the last two says of them what the page of all says."""
    with page_of(furnish(tmp_path, 60)) as client:
        whole, last, earlier = (
            client.get(f"/jobs/air_time?{query}").text
            for query in ("", "since=2013-01-03T10:00:00Z", "until=2013-01-03T01:00:00Z&last=7")
        )
    rows = r'<th scope="row">[^<]*%</th>.*?</tr>|<th scope="row">median</th>.*?</tr>'
    words = r"as usual|(?:above|below) all of the last 8 \(.*?\)"
    said = [re.findall(words, " ".join(re.findall(rows, part))) for part in (whole, last, earlier)]
    assert len(said[0]) == 5
    assert said[1] == said[0]
    assert len(said[2]) == 5


def test_the_last_seven_are_seven_rows(tmp_path: Path) -> None:
    """And lead to the seven before them; a longer stretch to fifty."""
    with page_of(furnish(tmp_path, 60)) as client:

        def batches(query: str) -> tuple[list[str], str]:
            page = client.get(f"/jobs/air_time?{query}").text
            table = page[page.index('id="releases-heading"') :]
            links = re.findall(r'<a href="/releases/[^"]+">([^<]+)</a>', table)
            (earlier,) = re.findall(r'<a href="\?([^"]+)#releases-heading" rel="next"', table)
            return links, earlier.replace("&amp;", "&")

        whole, _ = batches("last=365")
        seven, earlier = batches("last=7")
        assert len(whole) == 50
        assert seven == whole[:7]
        assert batches(earlier)[0] == whole[7:14]


def test_pictures_lie_beside_markdown(configuration: Configuration, tmp_path: Path) -> None:
    """Each is well-formed, named in the text, and written before it; nothing is embedded."""
    target = tmp_path / "a report.md"
    for job in ("air_time", "traffic", "busiest"):
        files = written(told(configuration, job), 0, "md", target)
        *beside, last = files
        assert last == target
        text = files[last].decode()
        assert "base64" not in text
        assert beside
        for each in beside:
            assert f"]({each.name.replace(' ', '%20')})" in text
            assert ElementTree.fromstring(files[each]).tag.endswith("svg")  # noqa: S314


def test_tables_have_every_row_with_its_interval(configuration: Configuration) -> None:
    """Batches in their order, and the numbers of the comparison as the words round them."""
    found = told(configuration, "air_time")
    text = written(found, 0, "md", Path("x.md"))[Path("x.md")].decode().replace("\\", "")
    days = re.findall(r"^\| (2013-01-\d\d) \|", text, re.MULTILINE)
    assert days == [f"2013-01-{day}" for day in range(14, 20)]
    assert found.compared is not None
    for each in found.compared.rows:
        value, low, high = amounts(*each.value)
        assert f"| {each.name} | {value} ({low} to {high}) |" in text
    median = row(found.compared, quantile="0.5")
    assert median.moved is not None
    assert change_said("median", *median.moved.by, UNIT, median.moved.differ) in text
    assert median.moved.said("median", UNIT) in text
