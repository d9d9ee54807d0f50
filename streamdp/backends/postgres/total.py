"""Expressions that no record can fail in PostgreSQL, which ends a query at the first overflow.

Arithmetic is made total by the types of columns alone, which are public:

* whole and decimal numbers are computed as `numeric`, which has room for all sums and products;
* floating numbers, decimals and times are null in arithmetic where they lie beyond public bounds
  (10^30; nearer to zero than 10^-30; outside of the years 1 to 9999), and powers of ten that bound
  each result are carried along: an expression whose result could leave the doubles is refused;
* comparisons, conditions and functions of texts fail on nothing.

Privacy: an expression is a total function of one record, or is refused by configuration and types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from streamdp.errors import SourceError

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Kind = Literal["exact", "double", "date", "moment", "span", "text", "other"]

_FAR = 30
"""Power of ten beyond which a number is null in arithmetic."""

_MOST = 290
"""Power of ten that a result may reach; doubles end at 308."""

_DIGITS = 17
"""Decimal digits of a double, and one: a difference of two is zero or not nearer to it than so."""

_YEARS = 4000
"""By which a time may be moved; from the year 1 on PostgreSQL has 4713 before."""

_COLUMNS: Mapping[str, tuple[Kind, int, int]] = {
    "smallint": ("exact", 0, 5),
    "integer": ("exact", 0, 10),
    "bigint": ("exact", 0, 19),
    "numeric": ("exact", -_FAR, _FAR),
    "real": ("double", -_FAR, _FAR),
    "double precision": ("double", -_FAR, _FAR),
    "date": ("date", 0, 0),
    "timestamp without time zone": ("moment", 0, 0),
    "timestamp with time zone": ("moment", 0, 0),
    "interval": ("span", 0, 0),
}

_TEXTS = ("text", "character varying", "character", "uuid", "boolean", "bytea")
"""Types that PostgreSQL has no arithmetic of."""

_WHOLE = ("smallint", "integer", "bigint")

_UNIT_YEARS = {"YEAR": 1.0, "QUARTER": 0.25, "MONTH": 1 / 12, "WEEK": 1 / 52, "DAY": 1 / 365}


@dataclass(frozen=True, slots=True)
class _Value:
    """What is known of a value by types alone.

    Args:
        kind: Its family.
        low: Power of ten that it is zero or at least as large as; of decimals a multiple of it.
        high: Power of ten that it is at most as large as.
        whole: Whether PostgreSQL has it as an integer, which overflows.
        raw: Whether the bounds do not hold yet.
        years: By which a time has been moved.
    """

    kind: Kind
    low: int = 0
    high: int = 0
    whole: bool = False
    raw: bool = False
    years: float = 0.0

    @property
    def is_number(self) -> bool:
        return self.kind in ("exact", "double")


_OTHER = _Value("other")

_CONSTANTS: Mapping[str, _Value] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), _Value("exact", 0, 19, whole=True)),
    "DECIMAL": _Value("exact", -_FAR, _FAR, raw=True),
    **dict.fromkeys(("FLOAT", "DOUBLE"), _Value("double", -_FAR, _FAR, raw=True)),
    "DATE": _Value("date", raw=True),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ"), _Value("moment", raw=True)),
}
"""Of the types that a constant may be cast to, by sqlglot's names."""

_PARTS = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "EPOCH")
_PARTS_OF_DATES = ("DOW", "ISODOW", "DOY", "WEEK", "ISOYEAR", "DECADE", "CENTURY", "MILLENNIUM")
"""Parts that PostgreSQL knows of every interval, and those of dates and timestamps."""

_Made = tuple["Expr", _Value]


def total(expression: str, kinds: Mapping[str, str]) -> str:
    """The expression in SQL that is null where it would fail.

    Args:
        expression: In PostgreSQL's dialect, such as `config.base.expressions` admits.
        kinds: Types of columns, by name; with the table before a dot where one is named.

    Raises:
        SourceError: It could fail on a record.

    >>> total('"a" * "b" > 1', {"a": "integer", "b": "integer"})
    'CAST("a" AS DECIMAL) * CAST("b" AS DECIMAL) > 1'
    """
    import sqlglot

    try:
        tree = sqlglot.parse_one(expression, read="postgres")
    except sqlglot.errors.SqlglotError:
        return expression  # the server refuses it by itself
    try:
        found, _ = _Walk(expression, kinds).of(tree)
    except _UnfitError:
        return expression
    return str(found.sql("postgres", identify=True, comments=False))


class _UnfitError(Exception):
    """There is no such column, or no such operator of its type: the server says so by itself."""


class _Walk:
    """Makes the nodes of one expression total, children first."""

    def __init__(self, text: str, kinds: Mapping[str, str]) -> None:
        from sqlglot import exp

        self._text, self._kinds = text, kinds
        self._rules: dict[type[Expr], Callable[[Expr], _Made]] = {
            exp.Column: self._column,
            exp.Literal: self._literal,
            exp.Paren: self._paren,
            exp.Add: self._sum,
            exp.Sub: self._sum,
            exp.Mul: self._product,
            exp.Div: self._quotient,
            exp.Mod: self._rest,
            exp.Neg: self._one,
            exp.Abs: self._one,
            exp.Floor: self._one,
            exp.Ceil: self._one,
            exp.Round: self._one,
            exp.Ln: self._real,
            exp.Sqrt: self._real,
            exp.Cast: self._cast,
            exp.Nullif: self._nullif,
            exp.Coalesce: self._chosen,
            exp.Greatest: self._chosen,
            exp.Least: self._chosen,
            exp.Case: self._case,
            exp.Extract: self._part,
            exp.TimestampTrunc: self._start,
            exp.Interval: self._interval,
        }
        compared = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ)
        self._rules |= dict.fromkeys(
            (*compared, exp.NullSafeNEQ, exp.Between, exp.In), self._compared
        )
        joined = (exp.And, exp.Or, exp.Not, exp.Is, exp.Like, exp.Lower, exp.Upper, exp.Trim)
        self._rules |= dict.fromkeys((*joined, exp.Length, exp.Substring), self._inside)

    def of(self, node: Expr) -> _Made:
        """The same node made total, and what is known of its value."""
        from sqlglot import exp

        rule = self._rules.get(type(node))
        if rule is not None:
            return rule(node)
        if node.find(exp.Column) is None:
            return node, _OTHER
        raise self._refusal(f"{node.key} is not known to be total here")

    def _refusal(self, why: str) -> SourceError:
        return SourceError(
            f"one record could make PostgreSQL fail at this expression: {why}",
            where=self._text,
            hint="compute fewer steps at a time, on numbers, or where records are written",
        )

    def _column(self, node: Expr) -> _Made:
        named = f"{node.text('table')}.{node.name}" if node.text("table") else node.name
        if named not in self._kinds:
            raise _UnfitError
        kind = self._kinds[named].partition("(")[0]
        if kind in _TEXTS:
            return node, _Value("text")
        if kind not in _COLUMNS:
            return node, _OTHER
        family, low, high = _COLUMNS[kind]
        return node, _Value(family, low, high, whole=kind in _WHOLE, raw=True)

    def _literal(self, node: Expr) -> _Made:
        if node.args.get("is_string"):
            return node, _OTHER
        number = Decimal(node.name)
        if not number:
            return node, _Value("exact", whole=True)
        exponent = int(number.as_tuple().exponent)
        return node, self._bounded(
            _Value("exact", min(exponent, 0), number.adjusted() + 1, whole=exponent >= 0)
        )

    def _paren(self, node: Expr) -> _Made:
        inside, value = self.of(node.this)
        node.set("this", inside)
        return node, value

    def _sum(self, node: Expr) -> _Made:
        (left, one), (right, other) = self.of(node.this), self.of(node.expression)
        if one.kind in ("date", "moment") or other.kind in ("date", "moment"):
            return self._moved(node, (left, one), (right, other))
        left, right, one, other = self._alike((left, one), (right, other))
        lost = _DIGITS if one.kind == "double" else 0
        value = _Value(one.kind, min(one.low, other.low) - lost, max(one.high, other.high) + 1)
        return type(node)(this=left, expression=right), self._bounded(value)

    def _moved(self, node: Expr, one: _Made, other: _Made) -> _Made:
        """A time and an interval, or the distance of two times."""
        from sqlglot import exp

        (left, first), (right, second) = self._guarded(*one), self._guarded(*other)
        made = type(node)(this=left, expression=right)
        times = ("date", "moment")
        if isinstance(node, exp.Sub) and first.kind in times and second.kind in times:
            days = first.kind == second.kind == "date"
            return made, _Value("exact", 0, 8, whole=True) if days else _Value("span")
        if first.kind in times and isinstance(right, exp.Interval):
            years = first.years + second.years
            if years > _YEARS:
                raise self._refusal("a time is moved too far")
            return made, _Value("moment", years=years)
        if "text" in (first.kind, second.kind):
            raise _UnfitError
        raise self._refusal("a time takes another time, or an interval such as INTERVAL 1 DAY")

    def _product(self, node: Expr) -> _Made:
        left, right, one, other = self._alike(self.of(node.this), self.of(node.expression))
        value = _Value(one.kind, one.low + other.low, one.high + other.high)
        return type(node)(this=left, expression=right), self._bounded(value)

    def _quotient(self, node: Expr) -> _Made:
        left, one = self._double(*self.of(node.this))
        right, other = self._double(*self._divisor(node.expression))
        node.set("this", left)
        node.set("expression", _unless_zero(right))
        value = _Value("double", one.low - other.high - 1, one.high - other.low + 1)
        return node, self._bounded(value)

    def _rest(self, node: Expr) -> _Made:
        left, right, one, other = self._alike(self.of(node.this), self._divisor(node.expression))
        if one.kind == "double":
            raise self._refusal("PostgreSQL has no rest of floating numbers")
        value = _Value(one.kind, min(one.low, other.low), other.high)
        return type(node)(this=left, expression=_unless_zero(right)), value

    def _divisor(self, node: Expr) -> _Made:
        """What would be null at zero, before that: it may become zero where it is rounded."""
        from sqlglot import exp

        inside = node.unnest()
        return self.of(inside.this if isinstance(inside, exp.Nullif) else node)

    def _one(self, node: Expr) -> _Made:
        """A function of one number that grows by one unit at most."""
        from sqlglot import exp

        inside, value = self.of(node.this)
        if isinstance(node, exp.Neg) and isinstance(inside, exp.Literal):
            return node, value
        digits = node.args.get("decimals")
        if digits is not None and not isinstance(digits, exp.Literal):
            raise self._refusal("round takes a literal number of digits")
        inside, value = self._number(inside, value)
        node.set("this", inside)
        return node, self._bounded(_Value(value.kind, min(value.low, 0), value.high + 1))

    def _real(self, node: Expr) -> _Made:
        from sqlglot import exp

        inside, value = self._double(*self.of(node.this))
        least = "x > 0" if isinstance(node, exp.Ln) else "x >= 0"
        node.set("this", _parsed(f"CASE WHEN {least} THEN x END", inside))
        return node, _Value("double", min(value.low, -_DIGITS), max(value.high, 3))

    def _cast(self, node: Expr) -> _Made:
        from sqlglot import exp

        if node.find(exp.Column) is None:
            return node, _CONSTANTS.get(node.args["to"].this.name, _OTHER)
        if not node.is_type("double"):
            raise self._refusal("a cast")
        return self._double(*self.of(node.this))

    def _nullif(self, node: Expr) -> _Made:
        inside, value = self.of(node.this)
        beside, other = self.of(node.expression)
        if {value.kind, other.kind} == {"exact", "double"} and not other.whole:
            (inside, value), (beside, _) = self._double(inside, value), self._double(beside, other)
        node.set("this", inside)
        node.set("expression", beside)
        return node, value

    def _chosen(self, node: Expr) -> _Made:
        made, value = self._united([self.of(each) for each in (node.this, *node.expressions)])
        node.set("this", made[0])
        node.set("expressions", made[1:])
        return node, value

    def _case(self, node: Expr) -> _Made:
        from sqlglot import exp

        asked = [each.this for each in node.args["ifs"]]
        if node.this is not None:
            asked = [exp.EQ(this=node.this.copy(), expression=each) for each in asked]
        conditions = [self.of(each)[0] for each in asked]
        default = node.args.get("default")
        results = [each.args["true"] for each in node.args["ifs"]] + [default] * bool(default)
        made, value = self._united([self.of(each) for each in results])
        ifs = [exp.If(this=c, true=each) for c, each in zip(conditions, made, strict=False)]
        return exp.Case(ifs=ifs, default=made[-1] if default else None), value

    def _part(self, node: Expr) -> _Made:
        inside, value = self._guarded(*self.of(node.expression))
        part = node.this.name.upper()
        if value.kind == "text":
            raise _UnfitError
        known = {"span": _PARTS, "other": ("HOUR", "MINUTE", "SECOND", "EPOCH")}
        if part not in known.get(value.kind, (*_PARTS, *_PARTS_OF_DATES)):
            raise self._refusal(f"PostgreSQL knows no {part.lower()} of this")
        if value.kind == "date":
            inside = _cast(inside, "timestamp")
        node.set("expression", inside)
        return node, _Value("exact", -6, 15 if value.kind != "span" else 20)

    def _start(self, node: Expr) -> _Made:
        inside, value = self._guarded(*self.of(node.this))
        part = node.text("unit").upper()
        if value.kind == "text":
            raise _UnfitError
        if value.kind not in ("date", "moment") or part not in (*_PARTS[:-1], *_PARTS_OF_DATES):
            raise self._refusal(f"PostgreSQL knows no beginning of a {part.lower()} of this")
        node.set("this", inside)
        return node, _Value("moment", years=value.years)

    def _interval(self, node: Expr) -> _Made:
        unit = node.text("unit").upper().removesuffix("S")
        try:
            number = abs(float(node.this.name))
        except ValueError:
            raise self._refusal("an interval takes one number and its unit") from None
        return node, _Value("span", years=number * _UNIT_YEARS.get(unit, 1 / 365))

    def _compared(self, node: Expr) -> _Made:
        """Numbers of two families are compared as doubles, which a decimal may leave."""
        keys = [key for key in ("this", "expression", "low", "high") if node.args.get(key)]
        listed = node.expressions
        made = [self.of(each) for each in (*(node.args[key] for key in keys), *listed)]
        if any(value.kind == "double" for _, value in made):
            made = [
                self._double(each, value)
                if value.kind == "exact" and not value.whole
                else (each, value)
                for each, value in made
            ]
        for key, (each, _) in zip(keys, made, strict=False):
            node.set(key, each)
        if listed:
            node.set("expressions", [each for each, _ in made[len(keys) :]])
        return node, _Value("text")

    def _inside(self, node: Expr) -> _Made:
        from sqlglot import exp

        for key, child in list(node.args.items()):
            if isinstance(child, exp.Expression):
                node.set(key, self.of(child)[0])
        whole = isinstance(node, exp.Length)
        return node, _Value("exact", 0, 10, whole=True) if whole else _Value("text")

    def _united(self, made: list[_Made]) -> tuple[list[Expr], _Value]:
        """Results of which one is chosen, as numbers of one family."""
        values = [value for _, value in made]
        numbers = [value for value in values if value.is_number]
        if any(value.kind == "double" for value in numbers):
            made = [
                self._double(each, value) if value.kind == "exact" else (each, value)
                for each, value in made
            ]
            values = [value for _, value in made]
            numbers = [value for value in values if value.is_number]
        if not numbers:
            kinds: set[Kind] = {value.kind for value in values} - {"other"}
            kind: Kind = "moment" if kinds == {"date", "moment"} else "other"
            kind = min(kinds) if len(kinds) == 1 else kind
            years = max(value.years for value in values)
            return [each for each, _ in made], _Value(kind, raw=True, years=years)
        return [each for each, _ in made], _Value(
            numbers[0].kind,
            min(value.low for value in numbers),
            max(value.high for value in numbers),
            whole=all(value.whole for value in numbers),
            raw=any(value.raw or not value.is_number for value in values),
        )

    def _alike(self, one: _Made, other: _Made) -> tuple[Expr, Expr, _Value, _Value]:
        """Two numbers, both decimal or both double."""
        (left, first), (right, second) = self._number(*one), self._number(*other)
        if first.kind != second.kind:
            (left, first), (right, second) = self._double(left, first), self._double(right, second)
        return left, right, first, second

    def _number(self, node: Expr, value: _Value) -> _Made:
        """A number within its bounds; whole ones as decimals, which do not overflow."""
        if value.kind == "text":
            raise _UnfitError
        if not value.is_number:
            raise self._refusal(f"{node.sql('postgres')} is no number")
        if value.whole:
            return _cast(node, "numeric"), replace(value, whole=False, raw=False)
        if not value.raw:
            return node, value
        if value.kind == "exact":
            node = _parsed(f"CASE WHEN abs(x) <= 1e{_FAR} THEN round(x, {_FAR}) END", node)
        else:
            node = _cast(node, "double precision")
            near = f"x = 0 OR abs(x) BETWEEN 1e-{_FAR} AND 1e{_FAR}"
            node = _parsed(f"CASE WHEN {near} THEN x END", node)
        return node, replace(value, raw=False)

    def _double(self, node: Expr, value: _Value) -> _Made:
        node, value = self._number(node, value)
        if value.kind == "exact":
            node, value = _cast(node, "double precision"), replace(value, kind="double")
        return node, self._bounded(value)

    def _guarded(self, node: Expr, value: _Value) -> _Made:
        """A time that PostgreSQL can compute with, else null."""
        if value.kind not in ("date", "moment") or not value.raw:
            return node, value
        within = "x >= DATE '0001-01-01' AND x < DATE '9999-12-31'"
        return _parsed(f"CASE WHEN {within} THEN x END", node), replace(value, raw=False)

    def _bounded(self, value: _Value) -> _Value:
        if value.low < -_MOST or value.high > _MOST:
            raise self._refusal("its numbers may leave the doubles")
        return value


def _unless_zero(node: Expr) -> Expr:
    from sqlglot import exp

    return exp.Nullif(this=node, expression=exp.Literal.number(0))


def _cast(node: Expr, kind: str) -> Expr:
    from sqlglot import exp

    return exp.Cast(this=node.copy(), to=exp.DataType.build(kind, dialect="postgres"))


def _parsed(text: str, node: Expr) -> Expr:
    """SQL with a node in the place of x."""
    import sqlglot
    from sqlglot import exp

    def put(each: Expr) -> Expr:
        return exp.Paren(this=node.copy()) if isinstance(each, exp.Column) else each

    return exp.Paren(this=sqlglot.parse_one(text, read="postgres").transform(put))
