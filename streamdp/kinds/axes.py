"""Names of the cells of a public axis, and conditions over them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streamdp.errors import ConfigurationError
from streamdp.sections.expressions import LONGEST, parsed
from streamdp.types import Dimension, IntArray, TimePart

if TYPE_CHECKING:
    import numpy.typing as npt
    from sqlglot.expressions import Expr

    Mask = npt.NDArray[np.bool_]

OTHER, NULL = "(other)", "(null)"


def labels(dimension: Dimension) -> tuple[str, ...]:
    """The cells of an axis as texts.

    >>> labels(Dimension("hour", cuts=(6, 12), nulls="cell"))
    ('< 6', '[6, 12)', '>= 12', '(null)')
    >>> from streamdp.types import TimePart
    >>> labels(Dimension("day", cuts=TimePart("weekday").cuts, clock=TimePart("weekday")))
    ('1', '2', '3', '4', '5', '6', '7')
    """
    if dimension.values is not None:
        listed = dimension.values
    elif dimension.clock is not None:
        listed = tuple(map(str, dimension.clock.numbers))
    else:
        cuts = [f"{cut:.15g}" for cut in dimension.cuts or ()]
        inner = tuple(f"[{low}, {high})" for low, high in itertools.pairwise(cuts))
        listed = (f"< {cuts[0]}", *inner, f">= {cuts[-1]}") if cuts else ("any",)
    others = (OTHER,) if dimension.other else ()
    nulls = (NULL,) if dimension.nulls == "cell" else ()
    return (*listed, *others, *nulls)


def described(
    name: str,
    cells: Sequence[str],
    nulls: str = "drop",
    part: str | None = None,
    zone: str = "UTC",
) -> Dimension:
    """The axis that has these cells, as far as conditions look at it.

    Values that are written like ranges are taken for ranges: `x < 6` is then the same cell.

    >>> described("hour", ["< 6", "[6, 12)", ">= 12", "(null)"], "cell").cuts
    (6.0, 12.0)
    >>> described("origin", ["EWR", "JFK", "(other)"], "other").values
    ('EWR', 'JFK')
    """
    clock = None if part is None else TimePart(part, zone)  # type: ignore[arg-type]
    nulls_: Literal["cell", "drop"] = "cell" if nulls == "cell" else "drop"
    listed = list(cells[: len(cells) - (nulls == "cell")])
    if clock is not None:
        return Dimension(name, cuts=clock.cuts, nulls=nulls_, clock=clock)
    if (cuts := _cuts(listed)) is not None:
        return Dimension(name, cuts=cuts, nulls=nulls_)
    other = bool(listed) and listed[-1] == OTHER
    values = tuple(listed[:-1] if other else listed)
    return Dimension(name, values=values, other=other, nulls=nulls_)


def _cuts(listed: Sequence[str]) -> tuple[float, ...] | None:
    """The cuts between cells that `labels` writes so; None if it writes others."""
    try:
        cuts = tuple(float(each.removeprefix("< ")) for each in listed[:1])
        cuts += tuple(float(each[1:-1].split(", ")[1]) for each in listed[1:-1])
        found = labels(Dimension("x", cuts=cuts))
    except (ValueError, IndexError, ConfigurationError):
        return None
    return cuts if list(found) == list(listed) else None


def condition(text: str, dimensions: Sequence[Dimension]) -> tuple[tuple[int, ...], IntArray]:
    """The cells in which a condition holds.

    Comparisons of an axis with constants, joined by AND, OR and NOT, with SQL's nulls. What a cell
    does not decide is refused: numbers are compared with `<` and `>=` at a cut.

    Args:
        text: SQL, in DuckDB's dialect.
        dimensions: The axes.

    Returns:
        The axes it looks at, and 1 for each of their cells in which it holds, else 0.

    Raises:
        ValueError: It is no such condition.
    """
    reader = _Reader(dimensions)
    true, _ = reader.read(parsed(text, LONGEST))
    axes = tuple(sorted(reader.axes))
    if not axes:
        raise ValueError("a condition compares at least one of the dimensions")
    shape = tuple(dimensions[axis].size for axis in axes)
    dropped = tuple(axis for axis in range(len(dimensions)) if axis not in axes)
    within = np.squeeze(true, axis=dropped) if true.ndim else true
    return axes, np.broadcast_to(within, shape).reshape(-1).astype(np.int64)


class _Reader:
    """Reads a tree as two masks over the domain: where it is true, and where it is false."""

    def __init__(self, dimensions: Sequence[Dimension]) -> None:
        self._dimensions = dimensions
        self._by_name = {each.name: axis for axis, each in enumerate(dimensions)}
        self.axes: set[int] = set()

    def read(self, tree: Expr) -> tuple[Mask, Mask]:
        """Masks of a condition."""
        kind = type(tree).__name__
        if kind == "Paren":
            return self.read(tree.this)
        if kind == "Not":
            true, false = self.read(tree.this)
            return false, true
        if kind in ("And", "Or"):
            (t1, f1), (t2, f2) = self.read(tree.this), self.read(tree.expression)
            return (t1 & t2, f1 | f2) if kind == "And" else (t1 | t2, f1 & f2)
        return self._comparison(kind, tree)

    def _comparison(self, kind: str, tree: Expr) -> tuple[Mask, Mask]:
        axis = self._axis(tree.this)
        dimension = self._dimensions[axis]
        if kind == "Is":
            if dimension.nulls != "cell":
                raise ValueError(f"{dimension.name} has no cell of nulls: say nulls: cell")
            holds = np.arange(dimension.size) == dimension.null_cell
            return self._masks(axis, holds, ~holds)
        if kind in ("EQ", "NEQ", "In"):
            given = tree.expressions if kind == "In" else [tree.expression]
            holds = self._listed(dimension, [str(_constant(each)) for each in given])
        elif kind in ("LT", "GTE"):
            holds = self._below(dimension, float(_constant(tree.expression)))
        else:
            raise ValueError("write =, <>, IN, <, >= and IS NULL, joined by AND, OR and NOT")
        null = dimension.null_cell if dimension.nulls == "cell" else None
        known = np.arange(dimension.size) != null
        true, false = holds & known, ~holds & known
        if kind in ("NEQ", "GTE"):
            true, false = false, true
        return self._masks(axis, true, false)

    def _axis(self, tree: Expr) -> int:
        if type(tree).__name__ != "Column" or tree.name not in self._by_name:
            names = ", ".join(self._by_name)
            raise ValueError(f"compare a dimension with constants: {names}")
        return self._by_name[tree.name]

    def _listed(self, dimension: Dimension, given: list[str]) -> Mask:
        if dimension.values is None and dimension.clock is None:
            raise ValueError(f"{dimension.name} has cuts: compare it with < and >= at a cut")
        known = labels(dimension)[: dimension.listed]
        if missing := [each for each in given if each not in known]:
            raise ValueError(f"{missing[0]!r} is not among the values of {dimension.name}")
        cells = [known.index(each) for each in given]
        return np.isin(np.arange(dimension.size), cells)

    def _below(self, dimension: Dimension, bound: float) -> Mask:
        if dimension.cuts is None or bound not in dimension.cuts:
            raise ValueError(f"{bound:g} is no cut of {dimension.name}: no cell ends there")
        return np.arange(dimension.size) <= dimension.cuts.index(bound)

    def _masks(self, axis: int, true: Mask, false: Mask) -> tuple[Mask, Mask]:
        self.axes.add(axis)
        shape = [size if place == axis else 1 for place, size in enumerate(self._sizes())]
        return true.reshape(shape), false.reshape(shape)

    def _sizes(self) -> list[int]:
        return [each.size for each in self._dimensions]


def _constant(tree: Expr) -> Any:
    """The value of a literal, negative ones included."""
    kind = type(tree).__name__
    if kind == "Literal":
        return tree.this
    if kind == "Neg" and type(tree.this).__name__ == "Literal":
        return f"-{tree.this.this}"
    raise ValueError("compare a dimension with a constant")
