"""What every registered release kind promises, whatever it publishes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamdp import wiring
from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.spec import OWN
from streamdp.types import Json, Measurement, MeasurementTerms, Measures, ReleaseKind, Row
from tests.kinds.cases import (
    BODIES,
    CASES,
    GROUPS,
    PERSON,
    STATISTICS,
    charged,
    configured,
    first_batches,
)
from tests.worlds import ReplayedEntropy

TYPES: dict[str, tuple[type, ...]] = {"text": (str,), "number": (int, float), "integer": (int,)}

every = pytest.mark.parametrize(("name", "body"), CASES)


def test_every_kind_is_here() -> None:
    """One that is registered is held to what follows."""
    assert set(BODIES) == set(OWN)


@every
def test_the_price_is_the_configured_one_for_records_units_and_groups(
    tmp_path: Path, name: str, body: str
) -> None:
    """Fixed from public facts: the same for one record, for units of three, and for groups."""
    assert charged(configured(tmp_path, name, body)) == 500_000_000
    assert charged(configured(tmp_path, name, body, unit=PERSON)) == 500_000_000
    if name == "keys":
        return  # it finds its groups
    assert charged(configured(tmp_path, name, GROUPS + body)) == 500_000_000
    assert charged(configured(tmp_path, name, GROUPS + body, unit=PERSON)) == 500_000_000


@pytest.mark.thinned(2)
@every
@pytest.mark.parametrize("statistic", STATISTICS)
def test_releases_are_drawn_whatever_the_batch_learned_from_and_have_their_columns(
    tmp_path: Path, name: str, body: str, statistic: str
) -> None:
    """Three days of an empty, a uniform or a huge batch: rows as declared, states that are JSON.

    What is drawn stays as it is when it is published, and what it costs does not depend on what was
    learned.
    """
    configuration = configured(tmp_path, name, body)
    kind, entropy = wiring.release_kind(configuration, "it"), ReplayedEntropy()
    charging = UnitCharging(configuration.privacy.unit.bound())
    state, prices, labels = kind.init(), set(), set()
    for batch in first_batches(configuration, 3):
        plan = kind.plan(state, batch)
        prices.add(charging.charge(plan).epsilon_nano)
        outcome = kind.draw(plan, STATISTICS[statistic](plan.query), entropy)
        state = json.loads(json.dumps(kind.learn(state, plan, outcome)))
        published = kind.publish(state, outcome).rows
        assert [_drawn(kind, row) for row in published] == [_drawn(kind, r) for r in outcome.rows]
        for row in published:
            _require_columns(kind, row)
        labels.add(tuple(_labels(kind, row) for row in published))
    assert len(prices) == 1
    assert len(labels) == 1 or name in ("selection", "keys")


@pytest.mark.thinned(5)
@every
@pytest.mark.parametrize("groups", ["", GROUPS], ids=["", "groups"])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_draws_are_kept_and_teach_the_same_again(
    tmp_path: Path, name: str, body: str, groups: str, statistic: str
) -> None:
    """States that are learned from what is kept are those of the releases, to the last bit.

    Measurements survive JSON. Those of another question teach nothing.
    """
    if name == "keys" and groups:
        return  # it finds its groups
    configuration = configured(tmp_path, name, groups + body)
    kind, entropy = wiring.release_kind(configuration, "it"), ReplayedEntropy()
    other = wiring.release_kind(configured(tmp_path, name, f"where: y > 1, {groups}{body}"), "it")
    assert isinstance(kind, Measures)
    assert isinstance(other, Measures)
    state, again = kind.init(), kind.init()
    for batch in first_batches(configuration, 4):
        plan = kind.plan(state, batch)
        filled = STATISTICS[statistic](plan.query)
        answer = (filled,) * 3 if groups else filled
        outcome = kind.draw(plan, answer, entropy)
        kept = tuple(map(_stored, kind.measured(plan, outcome)))
        assert kept == kind.measured(plan, outcome)
        assert {each.terms.group for each in kept} == ({("u",), ("v",), ("w",)} if groups else {()})
        state = json.loads(json.dumps(kind.learn(state, plan, outcome)))
        assert other.replayed(other.init(), batch, kept) is None
        again = json.loads(json.dumps(kind.replayed(again, batch, kept)))
        assert again == state


def _stored(each: Measurement) -> Measurement:
    """A measurement as it comes back from the store."""
    said = json.loads(json.dumps([each.terms.to_json(), each.cells, each.numbers, each.given]))
    terms, cells, numbers, given = said
    return Measurement(MeasurementTerms.from_json(terms), tuple(cells), tuple(numbers), given)


def _require_columns(kind: ReleaseKind, row: Row) -> None:
    known = {column.name: column for column in kind.columns}
    assert set(row) <= set(known)
    for name, value in row.items():
        assert value is None or isinstance(value, TYPES[known[name].type]), (name, value)
    json.dumps(row, allow_nan=False)


def _drawn(kind: ReleaseKind, row: Row) -> Json:
    return {each.name: row.get(each.name) for each in kind.columns if each.role == "value"}


def _labels(kind: ReleaseKind, row: Row) -> Json:
    return tuple(row.get(each.name) for each in kind.columns if each.role == "label")


@every
def test_columns_name_what_they_are_about(tmp_path: Path, name: str, body: str) -> None:
    """Names differ, none hides a fact of every release, and ends of intervals have a middle."""
    kind = wiring.release_kind(configured(tmp_path, name, body), "it")
    names = [column.name for column in kind.columns]
    assert len(set(names)) == len(names)
    assert not set(names) & {"release_id", "row", "job", "batch", "kind", "epsilon", "released_at"}
    assert {column.about for column in kind.columns} <= {"", *names}
    assert any(column.role == "value" for column in kind.columns)


@every
def test_a_state_is_kept_at_another_epsilon_and_not_for_other_records(
    tmp_path: Path, name: str, body: str
) -> None:
    """The signature says what was learned about; the price is none of it."""
    one = wiring.release_kind(configured(tmp_path, name, body), "it").signature()
    cheaper = wiring.release_kind(configured(tmp_path, name, body, epsilon="0.25"), "it")
    other = wiring.release_kind(configured(tmp_path, name, f"where: y > 1, {body}"), "it")
    assert json.loads(json.dumps(one)) == one == cheaper.signature()
    assert other.signature() != one
