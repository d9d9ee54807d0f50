"""Expressions that no record can fail, for engines that end a query at the first overflow.

Arithmetic is made total by the types of columns alone, which are public:

* whole numbers are computed as decimals, which have room for their sums and products;
* floating numbers are null in arithmetic beyond 10^30, and nearer to zero than 10^-30;
* times are null in it outside of the years 1 to 9999, and moved by a bounded length;
* powers of ten that bound each result are carried along, and an expression whose result could leave
  the doubles is refused;
* comparisons, conditions and functions of texts fail on nothing.

An engine says what its types are, how far its decimals reach, and what it makes of times.

Privacy: an expression is a total function of one record, or is refused by configuration and types.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from math import inf
from typing import TYPE_CHECKING, ClassVar, Literal

from streamdp.errors import MissingColumnError, SourceError

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Kind = Literal["exact", "double", "date", "moment", "span", "text", "other"]

FAR = 30
"""Power of ten beyond which a number is null in arithmetic."""

MOST = 290
"""Power of ten that a result may reach; doubles end at 308."""

DIGITS = 17
"""Decimal digits of a double, and one: a difference of two is zero or not nearer to it than so."""

YEARS = 4000
"""Years by which a time may be moved; engines reach from 4713 before to 290,000 after year 1."""

_UNIT_YEARS = {"YEAR": 1.0, "QUARTER": 0.25, "MONTH": 1 / 12, "WEEK": 1 / 52, "DAY": 1 / 365}

PARTS = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
"""Parts of a time that all engines know."""


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a value by types alone.

    Args:
        kind: Its family.
        low: Power of ten that it is zero or at least as large as; of decimals a multiple of it.
        high: Power of ten that it is at most as large as.
        whole: Whether the engine has it as an integer, which overflows.
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
        """Whether it is decimal or double."""
        return self.kind in ("exact", "double")


OTHER = Value("other")
DOUBLE = Value("double", -FAR, FAR, raw=True)

Made = tuple["Expr", Value]


def integers(**digits: int) -> dict[str, Value]:
    """Types of whole numbers, which overflow, by the digits that they may have."""
    return {kind: Value("exact", 0, most, whole=True, raw=True) for kind, most in digits.items()}


class UnfitError(Exception):
    """There is no such column, or no such operator of its type: the server says so by itself."""


class TotalExpression(ABC):
    """Makes the nodes of one expression total, children first."""

    engine: ClassVar[str]
    """Name of the engine."""

    dialect: ClassVar[str]
    """Name of its dialect in sqlglot."""

    types: ClassVar[Mapping[str, Value]]
    """What types of the engine describe, by their families; `decimal` by its digits."""

    truth: ClassVar[Value]
    """A truth value, as far as types alone tell."""

    double_type: ClassVar[str] = "double precision"
    """Name of the doubles."""

    digits: ClassVar[float] = inf
    """Digits of the longest decimal."""

    scale: ClassVar[float] = inf
    """Digits that may stand behind the point of a decimal."""

    rest_of_doubles: ClassVar[bool] = True
    """Whether `%` takes floating numbers."""

    counts_days: ClassVar[bool] = False
    """Whether the distance of two dates is a whole number."""

    folds_names: ClassVar[bool] = False
    """Whether columns are found in any case."""

    def __init__(self, text: str, kinds: Mapping[str, str]) -> None:
        if self.folds_names:
            kinds = {name.lower(): kind for name, kind in kinds.items()}
        self._text, self._kinds = text, kinds
        self._rules = self.rules()

    @classmethod
    def rewrite(cls, text: str, kinds: Mapping[str, str]) -> str:
        """The expression in SQL that is null where it would fail.

        Args:
            text: Expression in the engine's dialect, such as `sections.expressions` admits.
            kinds: Types of columns, by name; with the table before a dot where one is named.

        Raises:
            SourceError: It could fail on a record, or names a column that is not there.
        """
        import sqlglot

        try:
            tree = sqlglot.parse_one(text, read=cls.dialect)
        except sqlglot.errors.SqlglotError:
            return text  # the server refuses it by itself
        try:
            found, _ = cls(text, kinds).of(tree)
        except UnfitError:
            return text
        return str(found.sql(cls.dialect, identify=True, comments=False))

    def rules(self) -> dict[type[Expr], Callable[[Expr], Made]]:
        """The method that makes each class of nodes total."""
        from sqlglot import exp

        found: dict[type[Expr], Callable[[Expr], Made]] = {
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
            exp.Cast: self.cast,
            exp.Nullif: self._nullif,
            exp.Coalesce: self._chosen,
            exp.Greatest: self._chosen,
            exp.Least: self._chosen,
            exp.Case: self._case,
            exp.Extract: self.part,
            exp.Interval: self.interval,
        }
        compared = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ)
        found |= dict.fromkeys((*compared, exp.NullSafeNEQ, exp.Between, exp.In), self.comparison)
        found |= dict.fromkeys((exp.And, exp.Or, exp.Not, exp.Is, exp.Like), self._inside)
        texts = (exp.Lower, exp.Upper, exp.Trim, exp.Length, exp.Substring)
        return found | dict.fromkeys(texts, self._inside)

    def type_of(self, kind: str) -> Value:
        """The value that a type of the engine describes."""
        name, _, said = kind.partition("(")
        if name != "decimal":
            return self.types.get(name, OTHER)
        precision, scale = map(int, said.rstrip(")").split(","))
        return Value("exact", -scale, precision - scale)

    def fits(self, value: Value) -> bool:
        """Whether the engine's decimals hold all values within these bounds exactly."""
        return value.high - value.low <= self.digits and -value.low <= self.scale

    def as_decimal(self, node: Expr, value: Value) -> Made:
        """A whole number, or a decimal whose bounds do not hold yet, as a decimal within them."""
        digits, scale = max(value.high - value.low, 1), -value.low
        made = self.as_type(node, f"decimal({digits}, {scale})")
        return made, replace(value, whole=False, raw=False)

    @abstractmethod
    def cast(self, node: Expr) -> Made:
        """A cast."""

    @abstractmethod
    def part(self, node: Expr) -> Made:
        """A part of a time."""

    def comparison(self, node: Expr) -> Made:
        """A comparison, also with a list."""
        keys = [key for key in ("this", "expression", "low", "high") if node.args.get(key)]
        parts = [*(node.args[key] for key in keys), *node.expressions]
        made = [each for each, _ in self.compared([self.of(part) for part in parts])]
        for key, each in zip(keys, made, strict=False):
            node.set(key, each)
        if node.expressions:
            node.set("expressions", made[len(keys) :])
        return node, self.truth

    def compared(self, made: list[Made]) -> list[Made]:
        """What is compared, of types that the engine compares without failing."""
        return made

    def of(self, node: Expr) -> Made:
        """A node made total, and what is known of its value."""
        from sqlglot import exp

        rule = self._rules.get(type(node))
        if rule is not None:
            return rule(node)
        if node.find(exp.Column) is None:
            return node, OTHER
        raise self.refusal(f"{node.key} is not known to be total here")

    def refusal(self, why: str) -> SourceError:
        """The error of an expression that cannot be made total."""
        return SourceError(
            f"one record could make {self.engine} fail at this expression: {why}",
            where=self._text,
            hint="compute fewer steps at a time, on numbers, or where records are written",
        )

    def unfit(self, node: Expr, value: Value) -> Exception:
        """The error of an operand that is no number."""
        return self.refusal(f"{node.sql(self.dialect)} is no number")

    def kind_of(self, name: str) -> str:
        """The type of a column.

        Raises:
            UnfitError: There is no such column.
            MissingColumnError: The same where the engine might find another one.
        """
        found = self._kinds.get(name.lower() if self.folds_names else name)
        if found is None and self.folds_names:
            raise MissingColumnError(
                f"there is no column {name!r}",
                where=self._text,
                hint="look at the names of the table's columns",
            )
        if found is None:
            raise UnfitError
        return found

    def _column(self, node: Expr) -> Made:
        named = f"{node.text('table')}.{node.name}" if node.text("table") else node.name
        return node, self.type_of(self.kind_of(named))

    def _literal(self, node: Expr) -> Made:
        if node.args.get("is_string"):
            return node, OTHER
        number = Decimal(node.name)
        if not number:
            return node, Value("exact", whole=True)
        exponent = int(number.as_tuple().exponent)
        value = Value("exact", min(exponent, 0), number.adjusted() + 1, whole=exponent >= 0)
        self.bounded(value)
        if self.fits(value):
            return node, value
        return self.as_double(node), replace(value, kind="double", whole=False)

    def _paren(self, node: Expr) -> Made:
        inside, value = self.of(node.this)
        node.set("this", inside)
        return node, value

    def _sum(self, node: Expr) -> Made:
        one, other = self.of(node.this), self.of(node.expression)
        if {one[1].kind, other[1].kind} & {"date", "moment"}:
            return self.moved(node, one, other)

        def result(one: Value, other: Value) -> Value:
            lost = DIGITS if one.kind == "double" else 0
            low, high = min(one.low, other.low) - lost, max(one.high, other.high) + 1
            return Value(one.kind, low, high)

        return self._computed(node, one, other, result)

    def _product(self, node: Expr) -> Made:
        def result(one: Value, other: Value) -> Value:
            return Value(one.kind, one.low + other.low, one.high + other.high)

        return self._computed(node, self.of(node.this), self.of(node.expression), result)

    def _computed(
        self, node: Expr, one: Made, other: Made, result: Callable[[Value, Value], Value]
    ) -> Made:
        """An operator of two numbers, as decimals where these hold its result."""
        left, right, first, second = self.alike(one, other)
        value = result(first, second)
        if value.kind == "exact" and not self.fits(value):
            (left, first), (right, second) = self.double(left, first), self.double(right, second)
            value = result(first, second)
        return type(node)(this=left, expression=right), self.bounded(value)

    def _quotient(self, node: Expr) -> Made:
        left, one = self.double(*self.of(node.this))
        right, other = self.double(*self._divisor(node.expression))
        node.set("this", left)
        node.set("expression", unless_zero(right))
        value = Value("double", one.low - other.high - 1, one.high - other.low + 1)
        return node, self.bounded(value)

    def _rest(self, node: Expr) -> Made:
        def result(one: Value, other: Value) -> Value:
            if one.kind == "double" and not self.rest_of_doubles:
                raise self.refusal(f"{self.engine} has no rest of floating numbers")
            lost = DIGITS if one.kind == "double" else 0
            low, high = min(one.low, other.low) - lost, min(one.high, other.high)
            return Value(one.kind, low, high)

        made, value = self._computed(
            node, self.of(node.this), self._divisor(node.expression), result
        )
        made.set("expression", unless_zero(made.expression))
        return made, value

    def _divisor(self, node: Expr) -> Made:
        """The divisor without its NULLIF, which is put around it again after it was rounded."""
        from sqlglot import exp

        inside = node.unnest()
        return self.of(inside.this if isinstance(inside, exp.Nullif) else node)

    def _one(self, node: Expr) -> Made:
        """A function of one number that grows by one unit at most."""
        from sqlglot import exp

        inside, value = self.of(node.this)
        if isinstance(node, exp.Neg) and isinstance(inside, exp.Literal):
            return node, value
        digits = node.args.get("decimals")
        if digits is not None and not isinstance(digits, exp.Literal):
            raise self.refusal("round takes a literal number of digits")
        inside, value = self.number(inside, value)
        made = Value(value.kind, min(value.low, 0), value.high + 1)
        if made.kind == "exact" and not self.fits(made):
            inside, value = self.double(inside, value)
            made = replace(made, kind="double")
        node.set("this", inside)
        return node, self.bounded(made)

    def _real(self, node: Expr) -> Made:
        from sqlglot import exp

        inside, value = self.double(*self.of(node.this))
        least = "x > 0" if isinstance(node, exp.Ln) else "x >= 0"
        node.set("this", self.parsed(f"CASE WHEN {least} THEN x END", inside))
        return node, Value("double", min(value.low, -DIGITS), max(value.high, 3))

    def _nullif(self, node: Expr) -> Made:
        inside, value = self.of(node.this)
        beside, other = self.of(node.expression)
        if {value.kind, other.kind} == {"exact", "double"} and not other.whole:
            (inside, value), (beside, _) = self.double(inside, value), self.double(beside, other)
        node.set("this", inside)
        node.set("expression", beside)
        return node, value

    def _chosen(self, node: Expr) -> Made:
        made, value = self._united([self.of(each) for each in (node.this, *node.expressions)])
        node.set("this", made[0])
        node.set("expressions", made[1:])
        return node, value

    def _case(self, node: Expr) -> Made:
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

    def _inside(self, node: Expr) -> Made:
        """A node that fails on no value by itself, over parts that are made total."""
        from sqlglot import exp

        for key, child in list(node.args.items()):
            if isinstance(child, exp.Expression):
                node.set(key, self.of(child)[0])
        if isinstance(node, exp.Length):
            return node, Value("exact", 0, 10, whole=True)
        texts = isinstance(node, exp.Lower | exp.Upper | exp.Trim | exp.Substring)
        return node, Value("text") if texts else self.truth

    def _united(self, made: list[Made]) -> tuple[list[Expr], Value]:
        """Results of which one is chosen, as numbers of one family."""
        numbers = [value for _, value in made if value.is_number]
        if {value.kind for _, value in made} >= {"date", "moment"}:
            made = [self.guarded(*each) for each in made]
        if numbers:
            value = _around(numbers)
            if {each.kind for each in numbers} != {"exact"} or not self.fits(value):
                made = [
                    self.double(each, value) if value.kind == "exact" else (each, value)
                    for each, value in made
                ]
                value = _around([each for _, each in made if each.is_number])
            values = [each for _, each in made]
            raw = any(each.raw or not each.is_number for each in values)
            whole = all(each.whole for each in numbers) and value.kind == "exact"
            return [each for each, _ in made], replace(value, whole=whole, raw=raw)
        values = [value for _, value in made]
        kinds: set[Kind] = {value.kind for value in values} - {"other"}
        kind: Kind = "moment" if kinds == {"date", "moment"} else "other"
        kind = min(kinds) if len(kinds) == 1 else kind
        years = max(value.years for value in values)
        return [each for each, _ in made], Value(kind, raw=True, years=years)

    def moved(self, node: Expr, one: Made, other: Made) -> Made:
        """A time and an interval, or the distance of two times."""
        from sqlglot import exp

        (left, first), (right, second) = self.guarded(*one), self.guarded(*other)
        made = type(node)(this=left, expression=right)
        times = ("date", "moment")
        if isinstance(node, exp.Sub) and first.kind in times and second.kind in times:
            days = self.counts_days and first.kind == second.kind == "date"
            return made, Value("exact", 0, 8, whole=True) if days else Value("span")
        if first.kind in times and isinstance(right, exp.Interval):
            years = first.years + second.years
            if years > YEARS:
                raise self.refusal("a time is moved too far")
            return made, Value("moment", years=years)
        raise self.unfit(right, second if first.kind in times else first)

    def interval(self, node: Expr) -> Made:
        """An interval of a literal length."""
        unit = node.text("unit").upper().removesuffix("S")
        try:
            number = abs(float(node.this.name))
        except ValueError:
            raise self.refusal("an interval takes one number and its unit") from None
        return node, Value("span", years=number * _UNIT_YEARS.get(unit, 1 / 365))

    def guarded(self, node: Expr, value: Value) -> Made:
        """A time that the engine can compute with, else null."""
        if value.kind not in ("date", "moment") or not value.raw:
            return node, value
        within = "x >= DATE '0001-01-01' AND x < DATE '9999-12-31'"
        return self.parsed(f"CASE WHEN {within} THEN x END", node), replace(value, raw=False)

    def alike(self, one: Made, other: Made) -> tuple[Expr, Expr, Value, Value]:
        """Two numbers, both decimal or both double."""
        (left, first), (right, second) = self.number(*one), self.number(*other)
        if first.kind != second.kind:
            (left, first), (right, second) = self.double(left, first), self.double(right, second)
        return left, right, first, second

    def number(self, node: Expr, value: Value) -> Made:
        """A number within its bounds; whole ones as decimals, which do not overflow."""
        if not value.is_number:
            raise self.unfit(node, value)
        if value.whole or (value.raw and value.kind == "exact"):
            return self.as_decimal(node, value)
        if not value.raw:
            return node, value
        node = self.as_double(node)
        near = f"x = 0 OR abs(x) BETWEEN 1e-{FAR} AND 1e{FAR}"
        return self.parsed(f"CASE WHEN {near} THEN x END", node), replace(value, raw=False)

    def double(self, node: Expr, value: Value) -> Made:
        """A number as a double within its bounds."""
        node, value = self.number(node, value)
        if value.kind == "exact":
            node, value = self.as_double(node), replace(value, kind="double")
        return node, self.bounded(value)

    def bounded(self, value: Value) -> Value:
        """The value, where its bounds are within those of doubles."""
        if value.low < -MOST or value.high > MOST:
            raise self.refusal("its numbers may leave the doubles")
        return value

    def as_double(self, node: Expr) -> Expr:
        """A number cast to a double."""
        return self.as_type(node, self.double_type)

    def as_type(self, node: Expr, kind: str) -> Expr:
        """A cast to a type of the engine."""
        from sqlglot import exp

        return exp.Cast(this=node.copy(), to=exp.DataType.build(kind, dialect=self.dialect))

    def parsed(self, text: str, node: Expr) -> Expr:
        """SQL with a node in the place of x."""
        import sqlglot
        from sqlglot import exp

        def put(each: Expr) -> Expr:
            return exp.Paren(this=node.copy()) if isinstance(each, exp.Column) else each

        return exp.Paren(this=sqlglot.parse_one(text, read=self.dialect).transform(put))


def _around(values: list[Value]) -> Value:
    """Bounds that hold for each of some numbers."""
    low, high = min(each.low for each in values), max(each.high for each in values)
    kind: Kind = "double" if any(each.kind == "double" for each in values) else "exact"
    return Value(kind, low, high)


def unless_zero(node: Expr) -> Expr:
    """A divisor that is null where it is zero."""
    from sqlglot import exp

    return exp.Nullif(this=node, expression=exp.Literal.number(0))
