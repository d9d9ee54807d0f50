"""Messages about a configuration: plain words, the nearest key of the section, what to write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamdp.config import load
from streamdp.errors import ConfigurationError
from streamdp.sections.values import _mode, _size
from tests.config.test_faults import GOOD

FOREIGN = (
    *("Input should", "valid ", "instance of", "pydantic", "Field required", "Extra inputs"),
    *("Value error", "Unable to", "discriminator", "Section", "Experts", "Score", "literal["),
)
"""Words of pydantic, and names of classes that it puts into places."""

KINDS = """
counts:
  kind: statistics
  by: origin
  groups: [JFK, LGA]
  expected_rows: 900
  group_rows: {JFK: 300}
  measures:
    flights: count
    late: {count: {sql: delay > 30}, weight: 2}
    delays: {histogram: delay, cuts: [0, 15], nulls: cell, adds_up_to: flights}
    carriers: {histogram: {sql: carrier}, values: [UA], other: true}
    length: {mean: length, resolution: 1, bounds: [0, 9], guess: {location: 5, scale: 1}}
tables:
  kind: workload
  dimensions:
    carrier: {values: [AA], nulls: cell}
    length: {column: air_time, cuts: [60, 120]}
    half: {sql: delay / 2, cuts: [0]}
    day: {column: at, part: weekday}
  marginals: [[carrier, length]]
  predicates: {long: length >= 60}
  expected_rows: 900
  choose: public
  measured: 3
  raw: true
rule:
  kind: selection
  among: {sql: "delay >= {m} AND hour >= {h}", m: {from: 0, to: 80, step: 40}, h: {values: [4]}}
  score: {errors: late}
  mechanism: permute-and-flip
  top: 2
  learner: none
named:
  kind: selection
  among: {conditions: {late: delay > 15, far: miles > 9}}
  score: {sum: amount, resolution: 1, bounds: [0, 9]}
excess:
  kind: selection
  among: {conditions: {late: delay > 15, far: miles > 9}}
  score: {excess: late, over: 0.1}
alarm:
  kind: experts
  experts: {rules: {sql: "delay >= {m}", m: {from: 0, to: 9}}, label: late}
  expected_rows: 900
  action: drawn
actions:
  kind: experts
  experts: {losses: {wait: delay / 60, leave: "0.5"}, denominator: 10}
  expected_rows: 900
"""
"""Releases of all kinds but quantiles, less source and epsilon."""


def with_release(section: dict[str, Any]) -> dict[str, Any]:
    good = yaml.safe_load(GOOD)
    good["releases"] = {"job": {"source": "flights", "epsilon": 0.1} | section}
    return dict(good)


def refused(folder: Path, text: str) -> str:
    (folder / "c.yaml").write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load(folder / "c.yaml", {})
    return str(caught.value)


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ("privacy:\n", "privacy:\n  delta: 1e-6\n", "here are known: allow_large_epsilon, caps"),
        ("privacy:\n", "privacy:\n  neighbors: add-remove\n", "did you mean 'neighbours'?"),
        ("every: 1d", "size: 2d", "the length of a window is called every: every: 2d"),
        ("batches:", "types: {x: float}\n    batches:", "this must be number, decimal-comma, time"),
        (
            "batches:",
            "types: {x: '%d.%m'}\n    batches:",
            "how times are written: '%d.%m.%Y %H:%M'",
        ),
        ("store:", "stoer: 5\nstore:", "did you mean 'store'?"),
        (
            "{column: date, every: 1d, start: 2013-01-01}",
            "daily",
            "by time: {column: at, every: 1d",
        ),
        ("    column: air_time", "    column:", "column: this key has no value"),
        ("    column: air_time", "   column: air_time", "keys of one section begin in one column"),
        ("    column: air_time", "\tcolumn: air_time", "indent with spaces"),
        ('{cron: "0 6 * * *"}', "daily", "such as schedule: {cron: 0 6 * * *}"),
        ("0 6 * * *", "0 25 * * *", "the hour '25' is not understood: 0 to 23, *, lists,"),
        ("0 6 * * *", "0 6 * * someday", "the weekday 'someday' is not understood: 0 to 7"),
        ("bounds: [0, 1000]", "bounds: [0, 10]", "guess.location: this lies outside of the bounds"),
        ("resolution: 1", "resolution: 5000", "one value alone is a multiple of it"),
        ("  air_time:", "  air time:", "a name begins with a letter and goes on with letters"),
    ],
)
def test_what_failed_a_user_says_what_to_write(
    tmp_path: Path, was: str, becomes: str, says: str
) -> None:
    assert was in GOOD
    assert says in refused(tmp_path, GOOD.replace(was, becomes, 1))


def test_groups_of_a_job_are_placed_where_they_are_written(tmp_path: Path) -> None:
    """`groups: {from: JOB}` has the place and the name of its keys."""
    said = refused(
        tmp_path,
        GOOD.replace(
            "    column: air_time",
            "    by: x\n    groups: {from: y, most: 5}\n    column: air_time",
        ),
    )
    assert "releases.air_time.groups.from: 'y' is no release that finds groups" in said
    assert f"c.yaml:{GOOD[: GOOD.index('    column: air_time')].count(chr(10)) + 2}:14 " in said


def test_quantiles_in_percent(tmp_path: Path) -> None:
    """A list of percents is told as shares."""
    found = yaml.safe_load(GOOD)
    next(iter(found["releases"].values()))["quantiles"] = [10, 50, 90]
    assert "write 0.1 instead of 10, or deciles" in refused(tmp_path, yaml.safe_dump(found))


@pytest.mark.parametrize("section", ["sources", "releases", "sinks"])
def test_an_entry_without_a_name_is_told_so(tmp_path: Path, section: str) -> None:
    """One message, where the first of its keys stands, and not one for each key."""
    found = yaml.safe_load(GOOD)
    entry = next(iter(found.get(section, {"file": {"kind": "csv", "path": "out"}}).values()))
    said = refused(tmp_path, yaml.safe_dump(found | {section: entry}))
    assert f"{section} have names, and their keys below" in said
    assert "problems" not in said


def test_an_unknown_key_of_a_kind_is_told_the_keys_of_that_kind(tmp_path: Path) -> None:
    """And not those of all kinds together."""
    section = yaml.safe_load(KINDS)["counts"] | {"quantiles": "deciles"}
    said = refused(tmp_path, yaml.safe_dump(with_release(section)))
    assert "measures" in said
    assert "marginals" not in said


ODD: tuple[Any, ...] = (None, 5, -1, 1.5, True, "x", "", [], [1], {}, {"a": 1})


@pytest.mark.long
def test_no_message_is_in_the_words_of_the_code(tmp_path: Path) -> None:
    """Every value of a good configuration put in the wrong: no raw text, no traceback."""
    said = []
    for path in _paths(yaml.safe_load(GOOD)):
        for odd in ODD:
            bad = yaml.safe_load(GOOD)
            _put(bad, path, odd)
            (tmp_path / "c.yaml").write_text(yaml.safe_dump(bad))
            try:
                load(tmp_path / "c.yaml", {})
            except ConfigurationError as error:
                said.append(str(error))
    assert len(said) > 100
    assert [text for text in said if any(word in text for word in FOREIGN)] == []


@pytest.mark.thinned(7)
@pytest.mark.parametrize("name", yaml.safe_load(KINDS))
def test_no_message_about_a_kind_is_in_the_words_of_the_code(tmp_path: Path, name: str) -> None:
    """Every value of a good release put in the wrong: its own place, no raw text, no traceback."""
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(with_release(yaml.safe_load(KINDS)[name])))
    load(tmp_path / "c.yaml", {})
    said = []
    for path in _paths(yaml.safe_load(KINDS)[name]):
        for odd in (None, 5, "x", [1], {"a": 1}):
            section = yaml.safe_load(KINDS)[name]
            _put(section, path, odd)
            (tmp_path / "c.yaml").write_text(yaml.safe_dump(with_release(section)))
            try:
                load(tmp_path / "c.yaml", {})
            except ConfigurationError as error:
                said.append(str(error))
    assert len(said) > 15
    assert [text for text in said if any(word in text for word in FOREIGN)] == []
    assert [text for text in said if "releases.job" not in text] == []


@pytest.mark.parametrize(
    ("name", "path", "odd", "says"),
    [
        ("counts", "measures.late.weight", "x", "this must be a whole number"),
        ("counts", "measures.length.resolution", [1], "this must be a number"),
        ("counts", "measures.length.guess.scale", 0, "this must be more than 0"),
        ("counts", "measures.delays.nulls", "y", "this must be 'cell', 'other' or 'drop'"),
        ("rule", "score.errors", 5, "this must be a text"),
        ("rule", "among.m.step", 0, "this must be more than 0"),
        ("named", "score.sum", 5, "this must be a text"),
        ("excess", "score.over", 0, "this must be more than 0"),
        ("named", "score", "most", "this must be 'count'"),
        ("tables", "dimensions.day.part", "y", "this must be 'hour', 'weekday' or 'month'"),
        ("alarm", "experts.label", 5, "this must be a text"),
        ("actions", "experts.denominator", 0, "this must be 1 or more"),
    ],
)
def test_a_message_names_the_key_as_it_is_written(
    tmp_path: Path, name: str, path: str, odd: Any, says: str
) -> None:
    """Measure, score and expert by their own names, at their own line."""
    section = yaml.safe_load(KINDS)[name]
    _put(section, tuple(path.split(".")), odd)
    said = refused(tmp_path, yaml.safe_dump(with_release(section)))
    assert f"releases.job.{path}: {says}" in said


def test_sizes_and_modes_are_read_as_they_are_written() -> None:
    assert _size("10 KB") == _size("10kB") == _size("10 kb") == 10_000
    assert (_mode("0644"), _mode("640"), _mode(600)) == (0o644, 0o640, 0o600)
    for bad in ("0044", "0888", "rw", "07777"):
        with pytest.raises(ValueError, match="octal"):
            _mode(bad)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield (*path, key)
            yield from _paths(child, (*path, key))


def _put(value: Any, path: tuple[Any, ...], odd: Any) -> None:
    for part in path[:-1]:
        value = value[part]
    value[path[-1]] = odd
