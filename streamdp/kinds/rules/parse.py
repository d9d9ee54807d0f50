"""Reads a rule with parameters: a grid of thresholds where it is one, else a list of conditions."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from streamdp.kinds.rules.grid import Operator, RuleGrid, Threshold, Value
from streamdp.sections.dialects import Dialect
from streamdp.sections.expressions import checked, expression, parsed

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_PARAMETER = re.compile(r"\{(\w+)\}")
_LONGEST = 2000

_MIRRORED: Mapping[Operator, Operator] = {">=": "<=", ">": "<", "<=": ">=", "<": ">"}


def names_of(text: str) -> tuple[str, ...]:
    """Names of the parameters `{name}` of a rule, in the order in which they first appear."""
    return tuple(dict.fromkeys(_PARAMETER.findall(text)))


def grid_of(
    text: str, values: Mapping[str, tuple[Fraction, ...]], dialect: Dialect
) -> RuleGrid | None:
    """The rule as a grid of thresholds; None if it is no conjunction of them.

    Args:
        text: SQL with parameters in braces: `delay >= {t} AND hour >= {a}`.
        values: What each parameter may be, increasing.
        dialect: Of the engine.

    Raises:
        ValueError: It is no expression over one record.
    """
    fixed: list[Expr] = []
    compared: list[tuple[Expr, Operator, str]] = []
    for part in _conjuncts(_tree(text)):
        if not _parameters(part):
            fixed.append(part)
        elif (found := _comparison(part)) is not None:
            compared.append(found)
        else:
            return None
    names = [name for _, _, name in compared]
    if len(set(names)) < len(names) or not names:
        return None
    thresholds = [
        Threshold(checked(value.copy(), dialect), operator, name, values[name])
        for value, operator, name in compared
    ]
    if fixed:
        thresholds[0] = _only_where(fixed, thresholds[0], dialect)
    return RuleGrid(tuple(thresholds))


def conditions(
    text: str, values: Mapping[str, tuple[Fraction, ...]], dialect: Dialect
) -> Iterator[tuple[Value, str]]:
    """Each choice of parameters, with the condition it makes in the engine's dialect.

    Raises:
        ValueError: It is no expression over one record.
    """
    names = names_of(text)
    for chosen in itertools.product(*(values[name] for name in names)):
        said = dict(zip(names, chosen, strict=True))
        sql = _PARAMETER.sub(lambda found, said=said: _number(said[found[1]]), text)  # type: ignore[misc]
        numbers = tuple((name, float(value)) for name, value in said.items())
        yield numbers, expression(sql, dialect)


def _tree(text: str) -> Expr:
    """The rule with a quoted column in place of each parameter."""
    return parsed(_PARAMETER.sub(r'"{\1}"', text), _LONGEST)


def _conjuncts(tree: Expr) -> Iterator[Expr]:
    from sqlglot import exp

    tree = tree.unnest()
    if isinstance(tree, exp.And):
        yield from _conjuncts(tree.this)
        yield from _conjuncts(tree.expression)
    else:
        yield tree


def _parameters(tree: Expr) -> list[str]:
    from sqlglot import exp

    return [column.name for column in tree.find_all(exp.Column) if _is_parameter(column)]


def _is_parameter(tree: Expr) -> bool:
    from sqlglot import exp

    return isinstance(tree, exp.Column) and _PARAMETER.fullmatch(tree.name) is not None


def _comparison(tree: Expr) -> tuple[Expr, Operator, str] | None:
    """Expression, operator and parameter of a comparison with one bare parameter."""
    from sqlglot import exp

    operators: dict[type[Expr], Operator] = {
        exp.GTE: ">=",
        exp.GT: ">",
        exp.LTE: "<=",
        exp.LT: "<",
    }
    operator = operators.get(type(tree))
    if operator is None or len(_parameters(tree)) != 1:
        return None
    left, right = tree.this, tree.expression
    if _is_parameter(right):
        return left, operator, right.name[1:-1]
    if _is_parameter(left):
        return right, _MIRRORED[operator], left.name[1:-1]
    return None


def _only_where(fixed: list[Expr], threshold: Threshold, dialect: Dialect) -> Threshold:
    """The threshold with a null where a condition without parameters does not hold."""
    holds = " AND ".join(f"({checked(part.copy(), dialect)})" for part in fixed)
    sql = f"CASE WHEN {holds} THEN {threshold.sql} END"
    return Threshold(sql, threshold.operator, threshold.parameter, threshold.values)


def _number(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"({value.numerator} / {value.denominator})"
