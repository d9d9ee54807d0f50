"""Typed questions: their cells, spans and what they refuse."""

from fractions import Fraction
from typing import Any

import pytest

from streamdp.errors import ConfigurationError
from streamdp.types import CompoundQuery, Dimension, Grid, SumQuery, TableQuery, Term


def test_cells_of_a_dimension() -> None:
    """Listed cells first, then `other`, then nulls."""
    listed = Dimension("d", values=("a", "b"), other=True, nulls="cell")
    assert (listed.listed, listed.size, listed.null_cell) == (2, 4, 3)
    folded = Dimension("d", values=("a", "b"), other=True, nulls="other")
    assert (folded.size, folded.null_cell) == (3, 2)
    cut = Dimension("d", cuts=(0.0, 1.0))
    assert (cut.size, cut.null_cell) == (3, None)
    assert TableQuery((listed, cut), ((), (1,), (0, 1))).shape((0, 1)) == (4, 3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"values": ("a",), "cuts": (1.0,)},
        {"values": ("a", "a")},
        {"values": ()},
        {"cuts": (1.0, 1.0)},
        {"cuts": (float("nan"),)},
        {"cuts": (1.0,), "other": True},
        {"values": ("a",), "nulls": "other"},
    ],
)
def test_refused_dimensions(options: dict[str, Any]) -> None:
    """Each would make cells ambiguous."""
    with pytest.raises(ConfigurationError):
        Dimension("d", **options)


@pytest.mark.parametrize("marginal", [(1, 0), (0, 0), (2,), (-1,)])
def test_refused_marginals(marginal: tuple[int, ...]) -> None:
    """Axes are named once and in order."""
    axes = (Dimension("d", values=("a",)), Dimension("e", values=("a",)))
    with pytest.raises(ConfigurationError):
        TableQuery(axes, (marginal,))


@pytest.mark.parametrize(
    ("lower", "upper", "centre", "square", "span"),
    [
        (-2, 5, 0, False, (-2, 5)),
        (-2, 5, 0, True, (0, 25)),
        (2, 5, 0, True, (4, 25)),
        (2, 5, 9, True, (16, 49)),
        (2, 5, 3, False, (-1, 2)),
    ],
)
def test_span_of_a_term(
    lower: int, upper: int, centre: int, square: bool, span: tuple[int, int]
) -> None:
    """By enumeration of the cells."""
    term = Term("x", Grid(Fraction(1), lower, upper), centre, square=square)
    added = [(cell - centre) ** (1 + square) for cell in range(lower, upper + 1)]
    assert term.span == span
    assert term.span[0] <= min(added)
    assert term.span[1] == max(added)
    assert term.size == max(map(abs, added))


def test_parts_of_one_question_share_their_records() -> None:
    """Another condition would be another scan."""
    sums = SumQuery((Term("x", Grid(Fraction(1), 0, 9)),), where="y = 1")
    with pytest.raises(ConfigurationError):
        CompoundQuery((TableQuery(()), sums))
    assert CompoundQuery((TableQuery((), where="y = 1"), sums)).where == "y = 1"


def test_a_group_is_listed_once() -> None:
    """Its records would count twice."""
    with pytest.raises(ConfigurationError):
        TableQuery((), by=("g",), groups=(("a",), ("a",)))
    with pytest.raises(ConfigurationError):
        SumQuery((), by=("g",), groups=(("a", "b"),))
