"""Charts that kinds bring: shares, choices, and lines of a column of their own."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from streamdp.reports.charts.own import MOST_LAYERS, own_charts
from streamdp.types import Column, Release, Row
from tests.web.conftest import HOSTILE
from tests.web.test_reports import release

WEIGHED = (
    Column("expert", "text", "label"),
    Column("loss", "number", "value"),
    Column("weight", "number", "estimate", chart="shares"),
    Column("regret", "number", "error", chart="lines"),
)
CHOSEN = (
    Column("place", "integer", "label"),
    Column("candidate", "text", "value", chart="choices"),
)


def weighed(day: int, weights: dict[str, float]) -> Release:
    rows: list[Row] = [
        {"expert": name, "loss": 0.5, "weight": weight, "regret": 1 / (day + 1)}
        for name, weight in weights.items()
    ]
    return release(day, rows)


def test_weights_are_stacked_and_fill_the_chart() -> None:
    """A layer for each expert; the uppermost ends where the chart does."""
    found = own_charts("j", [weighed(d, {"a": 0.25, "b": 0.75}) for d in range(3)], WEIGHED)
    assert [each.title for each in found] == ["weight: shares of the whole", "regret"]
    shares = found[0].svg
    ElementTree.fromstring(shares)  # noqa: S314
    layers = re.findall(r'class="layer" d="M([^Z]+)Z"', shares)
    heights = [[float(point.split()[1]) for point in layer.split("L")] for layer in layers]
    assert len(heights) == 2
    assert heights[0][3:] == [312.0] * 3
    assert heights[1][3:] == heights[0][2::-1]
    assert heights[1][:3] == [10.0] * 3
    assert [name for _, name in found[0].legend] == ["b", "a"]


def test_experts_that_nobody_could_tell_apart_share_a_layer() -> None:
    """The heaviest have one each; all others are one, and so are weights too small to be seen."""
    weights = {str(number): 1.0 for number in range(30)}
    (shares, _) = own_charts("j", [weighed(0, weights), weighed(1, weights)], WEIGHED)
    assert [name for _, name in shares.legend][-1] == f"{30 - MOST_LAYERS + 1} others"
    (shares, _) = own_charts("j", [weighed(0, {"a": 1.0, "b": 0.001})], WEIGHED)
    assert [name for _, name in shares.legend] == ["a", "1 others"]


def test_what_all_rows_say_is_one_line() -> None:
    """A regret that stands in every row is drawn once."""
    found = own_charts("j", [weighed(d, {"a": 0.5, "b": 0.5}) for d in range(3)], WEIGHED)
    assert found[1].svg.count('class="line"') == 1


def test_each_choice_is_a_dot_in_the_row_of_its_candidate() -> None:
    """Names of candidates are text, whatever they say."""
    batches = [release(d, [{"place": 1, "candidate": HOSTILE[d % 2]}]) for d in range(6)]
    (found,) = own_charts("j", batches, CHOSEN)
    root = ElementTree.fromstring(found.svg)  # noqa: S314
    dots = [each for each in root.iter() if each.get("class") == "choice"]
    heights = {str(each.get("d")).split()[1] for each in dots}
    assert (len(dots), len(heights)) == (6, 2)
    assert "<img" not in found.svg


def test_choices_of_one_part_are_those_of_its_rows() -> None:
    """Each place chose another candidate: its chart names that one alone."""
    rows: list[Row] = [{"place": place, "candidate": f"choice {place}"} for place in (1, 2)]
    (found,) = own_charts("j", [release(d, rows) for d in range(3)], CHOSEN, "2")
    assert found.svg.count('class="choice"') == 3
    assert "choice 1" not in found.svg


def test_candidates_beyond_the_rows_share_the_last() -> None:
    """Those chosen most often keep a row of their own."""
    often = [release(d, [{"place": 1, "candidate": "often"}]) for d in range(5)]
    rare = [release(9 + d, [{"place": 1, "candidate": f"rare {d}"}]) for d in range(40)]
    (found,) = own_charts("j", [*often, *rare], CHOSEN)
    assert ">often<" in found.svg
    assert ">others<" in found.svg


def test_a_parameter_of_many_values_is_a_line() -> None:
    """Of a grid of candidates: fine parameters as lines, coarse ones as rows."""
    columns = (
        Column("place", "integer", "label"),
        Column("minutes", "number", "value", chart="choices"),
        Column("hour", "number", "value", chart="choices"),
    )
    batches = [release(d, [{"place": 1, "minutes": d, "hour": d % 3}]) for d in range(60)]
    found = own_charts("j", batches, columns)
    assert [each.title for each in found] == ["minutes", "what was chosen"]


def test_what_was_not_released_makes_no_chart() -> None:
    """No release, no weights, weights of nothing."""
    assert own_charts("j", [], WEIGHED) == []
    assert [e.title for e in own_charts("j", [weighed(0, {"a": 0.0})], WEIGHED)] == ["regret"]
