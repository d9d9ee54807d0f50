"""Rules with parameters as the configuration gives them.

A rule with parameters is read as a grid of thresholds where it is one, else as a list of
conditions.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict, Field, field_validator, model_validator

from streamdp.kinds.rules.rules import (
    Feature,
    Halfspaces,
    Operator,
    RuleComparison,
    RuleGrid,
    Value,
)
from streamdp.sections.dialects import Dialect
from streamdp.sections.expressions import OfOneRecord, checked, expression, parsed
from streamdp.sections.section import Section
from streamdp.sections.values import PositiveRational, Rational

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
        RuleComparison(checked(value.copy(), dialect), operator, name, values[name])
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


def _only_where(fixed: list[Expr], threshold: RuleComparison, dialect: Dialect) -> RuleComparison:
    """The threshold with a null where a condition without parameters does not hold."""
    holds = " AND ".join(f"({checked(part.copy(), dialect)})" for part in fixed)
    sql = f"CASE WHEN {holds} THEN {threshold.sql} END"
    return RuleComparison(sql, threshold.operator, threshold.parameter, threshold.values)


def _number(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"({value.numerator} / {value.denominator})"


MOST_VALUES = 10_000
"""Most values of one parameter."""

MOST_CANDIDATES = 100_000
"""Most candidates of a grid of thresholds, which is scored from one table."""

MOST_CONDITIONS = 500
"""Most conditions of other rules, which take a sum each."""


class Parameter(Section):
    """Public values of a parameter of a rule: evenly spaced, or a list."""

    start: Rational | None = Field(
        default=None, alias="from", description="First value.", examples=[0]
    )
    to: Rational | None = Field(default=None, description="Last value, included.", examples=[60])
    step: PositiveRational = Field(
        default=Fraction(1),
        description="Distance from one value to the next. Default 1.",
        examples=[5],
    )
    values: tuple[Rational, ...] = Field(
        default=(),
        description="List of values, in place of from, to and step.",
        examples=[[0, 15, 60]],
    )

    @model_validator(mode="after")
    def _one_form(self) -> Parameter:
        if bool(self.values) == (self.start is not None or self.to is not None):
            raise ValueError("give either from and to, or values")
        if not self.values and (self.start is None or self.to is None or self.to < self.start):
            raise ValueError("give from and to, with to at least from")
        if not 1 <= self.count() <= MOST_VALUES:
            raise ValueError(f"a parameter has at most {MOST_VALUES} values")
        if len(set(self.values)) < len(self.values):
            raise ValueError("a value is listed twice")
        return self

    def count(self) -> int:
        """How many values there are."""
        if self.start is None or self.to is None:
            return len(self.values)
        return math.floor((self.to - self.start) / self.step) + 1

    def listed(self) -> tuple[Fraction, ...]:
        """The values, increasing."""
        if self.start is None:
            return tuple(sorted(self.values))
        return tuple(self.start + place * self.step for place in range(self.count()))


class Rules(Section):
    """A condition on one record with parameters in braces, and the values of each parameter.

    A conjunction of comparisons of an expression with one parameter each is a grid of thresholds:
    all its rules are scored from one table of counts. NaN and infinities meet no threshold.
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Parameter]

    sql: str = Field(
        description="SQL condition of one record, with parameters in braces. The values of each"
        " parameter stand beside it under its name.",
        examples=["delay >= {t} AND hour >= {a}"],
    )

    @field_validator("sql")
    @classmethod
    def _is_an_expression(cls, value: str) -> str:
        names = names_of(value)
        if not names:
            raise ValueError("the rule has no parameter: write one in braces, as in delay >= {t}")
        next(conditions(value, {name: (Fraction(0),) for name in names}, "duckdb"))
        return value

    @model_validator(mode="after")
    def _parameters_fit(self) -> Rules:
        named, given = set(names_of(self.sql)), set(self.parameters())
        if missing := sorted(named - given):
            raise ValueError(
                f"give the values of {missing[0]}, as in {missing[0]}: {{from: 0, to: 9}}"
            )
        if unused := sorted(given - named):
            raise ValueError(f"the rule has no parameter {{{unused[0]}}}")
        if self.count() > MOST_CANDIDATES:
            raise ValueError(
                f"there are {self.count()} candidates, at most {MOST_CANDIDATES} can be"
            )
        if self.grid("duckdb") is None and self.count() > MOST_CONDITIONS:
            raise ValueError(
                f"there are {self.count()} candidates: a rule that is no conjunction of thresholds,"
                f" each with a parameter of its own, may have {MOST_CONDITIONS}"
            )
        return self

    def parameters(self) -> dict[str, Parameter]:
        """Each parameter by its name."""
        return dict(self.__pydantic_extra__ or {})

    def values(self) -> dict[str, tuple[Fraction, ...]]:
        """Values of each parameter."""
        return {name: each.listed() for name, each in self.parameters().items()}

    def count(self) -> int:
        """How many rules there are."""
        return math.prod(each.count() for each in self.parameters().values())

    def grid(self, dialect: Dialect) -> RuleGrid | None:
        """The rules as a grid of thresholds; None if they are none."""
        return grid_of(self.sql, self.values(), dialect)


class FeatureSection(Parameter):
    """A number of each record, the public values it counts as, and its weights."""

    sql: OfOneRecord | None = Field(
        default=None,
        description="SQL number of one record. Default: the column of the feature's name.",
        examples=["arrival_delay - departure_delay"],
    )
    weights: tuple[Rational, ...] = Field(
        default=(Fraction(1),),
        min_length=1,
        max_length=MOST_VALUES,
        description="Weights that the feature may have. Default 1.",
        examples=[[0, 1, 2]],
    )

    @field_validator("weights")
    @classmethod
    def _weights_differ(cls, value: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        if len(set(value)) < len(value):
            raise ValueError("a weight is listed twice")
        return tuple(sorted(value))


class HalfspaceSection(Section):
    """Rules that compare a weighted sum of features with a threshold."""

    features: dict[
        Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$")], FeatureSection
    ] = Field(
        min_length=1,
        description="Features by name. Each counts as the largest of its values that is not above"
        " it, or as the first.",
        examples=[{"delay": {"from": 0, "to": 60, "step": 5}, "hour": {"from": 4, "to": 23}}],
    )
    at_least: Parameter = Field(
        description="Thresholds that the weighted sum of the features may be compared with.",
        examples=[{"from": 0, "to": 60, "step": 5}],
    )

    def made(self, dialect: Dialect) -> Halfspaces:
        """The halfspaces, in the engine's dialect."""
        features = (
            Feature(name, expression(each.sql or f'"{name}"', dialect), each.listed(), each.weights)
            for name, each in self.features.items()
        )
        return Halfspaces(tuple(features), self.at_least.listed())


def refuse_column(value: Any) -> Any:
    """Point to conditions, and to the kind that releases all values of a column at one price.

    Raises:
        ValueError: The candidates are values of a column.
    """
    found = _values_of_column(value)
    if found is None:
        return value
    column, listed = found
    texts = listed if all(isinstance(each, str | int) for each in listed) else ()
    named = {str(each): f"{column} = {_literal(each)}" for each in texts}
    named = named or {"web": f"{column} = 'web'", "app": f"{column} = 'app'"}
    shown = ", ".join(f'{_key(name)}: "{sql}"' for name, sql in list(named.items())[:3])
    more = ", …" if len(named) > 3 else ""
    raise ValueError(
        f"values of a column are named conditions here: among: {{conditions: {{{shown}{more}}}}}."
        " To count records, `kind: statistics` with a histogram releases the counts of all values"
        " at the price of one, and the largest is chosen afterwards for nothing"
    )


def _values_of_column(value: Any) -> tuple[str, tuple[Any, ...]] | None:
    """Column and values where candidates were given so: `{column: c, values: […]}`, `{c: […]}`."""
    if not isinstance(value, dict) or "sql" in value or "conditions" in value:
        return None
    if isinstance(value.get("column"), str):
        listed = value.get("values")
        return value["column"], tuple(listed) if isinstance(listed, list) else ()
    lists = [(key, each) for key, each in value.items() if isinstance(each, list)]
    if len(value) == len(lists) == 1:
        return str(lists[0][0]), tuple(lists[0][1])
    return None


def _literal(value: str | int) -> str:
    """A value as SQL writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _key(name: str) -> str:
    """A name as a key of YAML: in quotes unless it is a plain word."""
    plain = name.isidentifier() and name.lower() not in ("true", "false", "yes", "no", "on", "off")
    return name if plain else "'" + name.replace("'", "''") + "'"
