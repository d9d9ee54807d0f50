"""Filters, derived columns, units and groups: from the configuration to what DuckDB is asked."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import cast

import pytest

from streamdp import wiring
from streamdp.config import load
from streamdp.engine.job import Job
from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.grouped import Grouped
from streamdp.kinds.quantiles.accuracy import expected_rank_error
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.privacy.events import epsilon_of, pure, sequence
from streamdp.types import CellQuery, Grid, Json, Plan, UnitBound
from tests.worlds import ReplayedEntropy

DEMO = (Path(__file__).parents[2] / "config.yaml").read_text()
NEW_YORK = "    by: origin\n    groups: [JFK, LGA, EWR]\n"


def job_of(folder: Path, *edits: tuple[str, str]) -> Job:
    text = DEMO
    for old, new in (("learner: mixture", "learner: last-release"), *edits):
        assert old in text, old
        text = text.replace(old, new)
    (folder / "config.yaml").write_text(text)
    return wiring.jobs(load(folder / "config.yaml"))["air_time"]


def with_line(line: str) -> tuple[str, str]:
    return "    quantiles: deciles", f"{line}    quantiles: deciles"


def first_day(job: Job, state: Json = None) -> tuple[list[Json], Json, Json]:
    """Rows, next state and event of the release of one day, with forced chance."""
    batch = next(iter(job.source.batches(2_000_000_000)))
    state = job.kind.init() if state is None else state
    plan = job.kind.plan(state, batch)
    query = job.charging.bounded(plan.query, batch)
    job.backend.check(query, batch)
    outcome = job.kind.draw(plan, job.backend.answer(query, batch), ReplayedEntropy())
    learned = json.loads(json.dumps(job.kind.learn(state, plan, outcome)))
    rows = [dict(row) for row in job.kind.publish(learned, outcome).rows]
    return rows, learned, job.charging.charge(plan).event


def test_the_first_group_is_drawn_as_its_records_alone_are(tmp_path: Path) -> None:
    """With the same chance JFK of a grouped release is the release of what a filter leaves."""
    grouped, _, event = first_day(job_of(tmp_path, with_line(NEW_YORK)))
    alone, _, _ = first_day(job_of(tmp_path, with_line("    where: origin = 'JFK'\n")))
    assert len(grouped) == 27
    assert [row["value"] for row in grouped[:9]] == [row["value"] for row in alone]
    assert [row["origin"] for row in grouped[::9]] == ["JFK", "LGA", "EWR"]
    assert epsilon_of(event) == Fraction(1, 10)


def test_groups_learn_apart_and_a_new_group_forgets_no_other(tmp_path: Path) -> None:
    """Each group has its own state; one more in the list begins anew, the others go on."""
    job = job_of(tmp_path, with_line(NEW_YORK))
    _, state, _ = first_day(job)
    assert len(state) == 3
    more = job_of(tmp_path, with_line(NEW_YORK.replace("EWR]", "EWR, XYZ]")))
    assert more.kind.signature() == job.kind.signature()
    rows, following, _ = first_day(more, state)
    assert len(rows) == 36
    assert {name for name in following if name not in state} == {'["XYZ"]'}


def test_groups_of_several_columns(tmp_path: Path) -> None:
    """Each row says the values of all columns, whole numbers as text."""
    groups = "    by: [origin, carrier]\n    groups: [[JFK, B6], [LGA, DL]]\n"
    rows, _, _ = first_day(job_of(tmp_path, with_line(groups)))
    assert [(row["origin"], row["carrier"]) for row in rows[::9]] == [("JFK", "B6"), ("LGA", "DL")]


def test_a_derived_column_is_drawn_and_is_another_signature(tmp_path: Path) -> None:
    """The column moved by 100 is the column by 100 lower bounds; its learner begins anew."""
    moved = ("    column: air_time\n", "    column: {sql: air_time + 100}\n")
    bounds = ("bounds: [0, 1000]", "bounds: [100, 1100]")
    guess = ("location: 120", "location: 220")
    plain, derived = job_of(tmp_path), job_of(tmp_path, moved, bounds, guess)
    values, others = ([row["value"] for row in first_day(job)[0]] for job in (plain, derived))
    assert others == [value + 100 for value in values]
    assert plain.kind.signature() != derived.kind.signature()


def test_a_unit_with_rows_is_bounded_and_charged_as_a_group(tmp_path: Path) -> None:
    """At most two flights of a plane count; the event says the size, the price stays."""
    unit = ("unit: flight ", "unit: {name: plane, column: tail_number, rows: 2} ")
    job = job_of(tmp_path, unit)
    batch = next(iter(job.source.batches(2_000_000_000)))
    plan = job.kind.plan(job.kind.init(), batch)
    charge = job.charging.charge(plan)
    assert charge.event["type"] == "group"
    assert charge.event["size"] == 2
    assert charge.epsilon_nano == 10**8
    bounded = job.backend.answer(job.charging.bounded(plan.query, batch), batch).counts.sum()
    whole = job_of(tmp_path)
    all_rows = whole.backend.answer(whole.kind.plan(whole.kind.init(), batch).query, batch)
    assert 0 < bounded < all_rows.counts.sum()


def test_more_rows_of_a_unit_make_it_less_accurate(tmp_path: Path) -> None:
    """The accuracy to expect follows from the part of epsilon that one record has."""
    unit = ("unit: flight ", "unit: {name: plane, column: tail_number, rows: 4} ")
    whole = expected_rank_error(quantiles_of(tmp_path))
    split = expected_rank_error(quantiles_of(tmp_path, unit))
    assert split > 1.2 * whole


def quantiles_of(folder: Path, *edits: tuple[str, str]) -> Quantiles:
    kind = job_of(folder, *edits).kind
    assert isinstance(kind, Quantiles)
    return kind


def test_an_unknown_column_in_a_filter_is_found_before_anything_is_spent(tmp_path: Path) -> None:
    """The check of the source names it."""
    job = job_of(tmp_path, with_line("    where: orign = 'JFK'\n"))
    batch = next(iter(job.source.batches(2_000_000_000)))
    plan = job.kind.plan(job.kind.init(), batch)
    with pytest.raises(Exception, match="orign"):
        job.backend.check(plan.query, batch)


def test_grouped_is_the_kind_of_its_groups(tmp_path: Path) -> None:
    """Sinks and archive see releases of kind quantiles."""
    kind = cast(Grouped, job_of(tmp_path, with_line(NEW_YORK)).kind)
    assert kind.name == "quantiles"
    assert [column.name for column in kind.columns[:3]] == ["origin", "quantile", "value"]


def test_groups_have_rows_of_their_own(tmp_path: Path) -> None:
    """A tenth of the rows, wider intervals; the values are those of the same draws."""
    rows = "    group_rows: {LGA: 30}\n"
    plain, _, event = first_day(job_of(tmp_path, with_line(NEW_YORK)))
    own, _, same = first_day(job_of(tmp_path, with_line(NEW_YORK + rows)))
    assert event == same

    def width(rows: list[Json], group: str) -> float:
        return float(sum(row["upper"] - row["lower"] for row in rows if row["origin"] == group))

    assert width(own, "LGA") > 1.2 * width(plain, "LGA")
    assert width(own, "JFK") == width(plain, "JFK")


@pytest.mark.parametrize(
    ("line", "wrong"), [("{XYZ: 30}", "no group of this release"), ("{LGA: 0}", "group_rows")]
)
def test_rows_of_no_group_are_refused(tmp_path: Path, line: str, wrong: str) -> None:
    """A name that is not listed, a number that is none."""
    with pytest.raises(Exception, match=wrong):
        job_of(tmp_path, with_line(NEW_YORK + f"    group_rows: {line}\n"))


def test_a_column_of_the_kind_gives_way_to_the_group(tmp_path: Path) -> None:
    """`origin` says which quantiles were measured, unless groups are of a column of that name."""
    experts = (with_line(NEW_YORK), ("learner: last-release", "learner: mixture"))
    job = job_of(tmp_path, *experts)
    rows, _, _ = first_day(job)
    assert [row["origin"] for row in rows[::9]] == ["JFK", "LGA", "EWR"]
    assert [column.name for column in job.kind.columns].count("origin") == 1


def test_what_is_drawn_once_a_unit_is_paid_once_beside_what_each_record_costs() -> None:
    """With three records of a unit: three times the record's price and once the unit's."""
    plan = Plan(
        CellQuery("x", Grid(Fraction(1), 0, 9)),
        sequence([pure(Fraction(1, 5))], mechanism="m"),
        None,
        pure(Fraction(1, 10)),
    )
    paid = {
        rows: UnitCharging(None if rows == 1 else UnitBound("who", rows)).charge(plan).epsilon_nano
        for rows in (1, 3)
    }
    assert paid == {1: 300_000_000, 3: 700_000_000}
