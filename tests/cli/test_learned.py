"""What `streamdp learned` says is what the store holds and what the next release will do."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from streamdp import wiring
from streamdp.cli import cli
from streamdp.config import load
from streamdp.log import close
from streamdp.store.archive import learned_states, select_releases
from streamdp.store.migrations import open_to_read
from streamdp.types import Batch

HEAD = """
store: {path: store.db}
privacy: {unit: flight, caps: {batch: 20, lifetime: 200}}
sources:
  flights:
    path: demo:flights.parquet
    batches: {column: date, every: 1d, start: 2013-01-01, end: 2013-01-13}
sinks: {out: {kind: jsonl, path: out.jsonl}}
releases:
  air: {AIR, prior: {holidays: [2013-01-13]}}
  descent: {AIR, prior: {learner: online-gradient, features: [weekday, season]}}
  points: {AIR, prior: {learner: online-gradient, private_gradient: 1/4}}
  last: {AIR, prior: {learner: last-release}}
  parts: {AIR, by: carrier, groups: [UA, AA]}
"""
AIR = (
    "kind: quantiles, source: flights, column: air_time, quantiles: [0.25, 0.5, 0.9],"
    " resolution: 1, bounds: [0, 1000], expected_rows: 900, epsilon: 1, sinks: [out]"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Twelve days of five jobs, the last a Saturday."""
    home = tmp_path_factory.mktemp("learned")
    (home / "config.yaml").write_text(HEAD.replace("AIR", AIR))
    done = CliRunner().invoke(cli, ["run", "--once", "-c", str(home / "config.yaml")])
    assert done.exit_code == 0, done.output
    yield home
    close()


def said(home: Path, *words: str) -> dict[str, Any]:
    """What the command prints as JSON, its tables by title."""
    done = CliRunner().invoke(cli, ["learned", *words, "-c", str(home / "config.yaml"), "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.output)
    tables = {each["title"]: each["rows"] for each in found["tables"]}
    assert all(each["about"] and each["rows"] for each in found["tables"])
    return found | tables


@pytest.mark.long
def test_cuts_and_weights_are_those_of_the_next_release(home: Path) -> None:
    """The next batch is Sunday the 13th; its plan, made anew, has the same cuts."""
    found = said(home, "air")
    assert found["batch"] == "after 2013-01-12"
    assert found["releases"] == 12
    facts = {row["fact"]: row["value"] for row in found["How this batch is released"]}
    assert facts["batch"] == "Sunday 2013-01-13"
    configuration = load(home / "config.yaml")
    kind = wiring.release_kind(configuration, "air")
    (state, release), *_ = learned_states(open_to_read(home / "store.db"), "air")
    start = release.window_end
    assert start is not None
    batch = Batch("flights", "2013-01-13", start, start + 86_400)
    release_plan = kind.plan(state.state, batch).mechanism.release_plan
    cuts = found["Where the next cuts lie"]
    assert [row["cut at"] for row in cuts] == [float(cell) for cell in release_plan.next_cuts(())]
    beliefs = found["What is believed of this batch"]
    assert math.isclose(sum(row["weight"] for row in beliefs), 1.0, abs_tol=0.01)
    named = [name for name in cuts[0] if name not in ("share below", "cut at")]
    for row in cuts:
        alone = [row[name] for name in named]
        assert min(alone) - 25 <= row["cut at"] <= max(alone) + 25, row
    numbers = {row["number"] for row in found["What public numbers of this batch do"]}
    assert {"Sunday"} <= numbers
    assert found["The same batch on other weekdays"][0]["weekday"] == "Sunday"


def test_what_was_known_before_a_batch_stands_beside_its_release(home: Path) -> None:
    """The state is that of the day before, and values are those of the release."""
    found = said(home, "air", "2013-01-07")
    assert found["releases"] == 6
    rows = found["Prior of each quantile beside its release"]
    release = next(
        each
        for each in select_releases(open_to_read(home / "store.db"), "air")
        if each.batch == "2013-01-07"
    )
    assert [row["released"] for row in rows] == [row["value"] for row in release.rows]
    assert all(row["prior, tenth"] < row["prior, nine tenths"] for row in rows)
    first = said(home, "air", "2013-01-01")
    facts = {row["fact"]: row["value"] for row in first["How this batch is released"]}
    assert first["releases"] == 0
    assert facts["why"] == "nothing was released before"


@pytest.mark.parametrize("job", ["descent", "points"])
def test_weights_of_gradient_descent_put_the_priors_where_they_lie(home: Path, job: str) -> None:
    """A location is W/φ times the public numbers of the batch, in the unit of the column.

    The weekday is configured, and of the calendar as well: its whole effect is shown.
    """
    found = said(home, job)
    rows = found["Weights that gradient descent has learned"]
    numbers = found.get("What public numbers of this batch do", [])
    assert len({row["number"] for row in numbers}) == len(numbers)
    for row in rows:
        at = row["always"] + sum(row[each["number"]] * each["is"] for each in numbers)
        assert math.isclose(row["location"], at, rel_tol=1e-3)
        assert row["scale"] > 0.0
    assert [row["quantile"] for row in rows] == [0.25, 0.5, 0.9]
    if job == "descent":
        assert {"Tuesday", "season, sine"} <= set(rows[0])
        (sunday,) = [row["moves the median by"] for row in numbers if row["number"] == "Sunday"]
        days = {row["weekday"]: row for row in found["The same batch on other weekdays"]}
        moved = days["Sunday"]["gradient"] - days["Monday"]["gradient"]
        # Of four digits, medians above a hundred have one behind the point, an effect two.
        assert abs(sunday - moved) <= 2 * 0.05 + 0.005 + 1e-9


def test_the_release_before_stands_beside_what_was_foretold_of_it(home: Path) -> None:
    """What is foretold of a day now stood before it when it was released."""
    shown = said(home, "air")["What the release before showed"]
    before = said(home, "air", "2013-01-12")["Prior of each quantile beside its release"]
    now = said(home, "air")["Prior of each quantile"]
    assert [row["foretold"] for row in shown] == [row["prior, middle"] for row in before]
    assert [row["released"] for row in shown] == [row["released"] for row in before]
    assert [row["now"] for row in shown] == [row["prior, middle"] for row in now]
    assert all(row["lower"] <= row["released"] <= row["upper"] for row in shown)


@pytest.mark.parametrize("job", ["air", "descent", "points", "last"])
def test_no_fixed_prior_in_hindsight_is_better_than_the_best(home: Path, job: str) -> None:
    """Losses are finite, and regret is the sum of what the best fixed priors lost less."""
    rows = said(home, job)["Surrogate loss and regret by release"]
    assert len(rows) == 12
    lost = np.array([[row["loss"], row["best fixed"]] for row in rows])
    assert np.isfinite(lost).all()
    regret = np.cumsum(lost[:, 0] - lost[:, 1])
    assert np.allclose(regret, [row["regret"] for row in rows], rtol=2e-3, atol=0.1)
    assert regret[-1] > 0.0


def test_each_group_has_learned_for_itself(home: Path) -> None:
    """Both are shown when they are asked for, the first otherwise; another is refused."""
    one, other = said(home, "parts"), said(home, "parts", "--group", "AA")
    assert one["parts"] == ["UA", "AA"]
    assert (one["part"], other["part"]) == ("UA", "AA")
    assert one["Where the next cuts lie"] != other["Where the next cuts lie"]
    config = str(home / "config.yaml")
    refused = CliRunner().invoke(cli, ["learned", "air", "--group", "ZZ", "-c", config])
    assert "is not told by group" in str(refused.exception)
    refused = CliRunner().invoke(cli, ["learned", "parts", "--group", "ZZ", "-c", config])
    assert refused.exit_code == 1


def test_a_table_says_where_the_cuts_lie_and_why(home: Path) -> None:
    """A person reads which belief weighs most, and what it is."""
    text = CliRunner().invoke(cli, ["learned", "air", "-c", str(home / "config.yaml")]).output
    assert "Sunday 2013-01-13" in text
    assert "The heaviest, at " in text
    unknown = CliRunner().invoke(cli, ["learned", "air", "x", "-c", str(home / "config.yaml")])
    assert unknown.exit_code == 1
