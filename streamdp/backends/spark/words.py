"""Spark's words for the one question; types are simple strings of `pyspark.sql.types`.

Its expressions are such as no record can fail (`backends.sql.total`), in Spark, which fails at
times beyond what it can count. Outside of ANSI mode Spark's whole numbers overflow in silence, so
they are computed as decimals of 38 digits, or as doubles beyond; these fail on nothing.

Privacy: an expression is a total function of one record, or is refused by configuration and types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from streamdp.backends.sql.total import DOUBLE, OTHER, Made, Value, Walk
from streamdp.backends.sql.words import SEPARATOR, Role, Words, quoted

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


WHOLE = ("tinyint", "smallint", "int", "bigint")
FLOATING = ("float", "double")
TIMESTAMPS = ("timestamp", "timestamp_ntz")
NUMBERS = (*WHOLE, *FLOATING, "decimal", "date", *TIMESTAMPS, "interval day to second")
TEXTS = (*WHOLE, "boolean", "date", "string", "varchar", "char")
KINDS: dict[Role, tuple[str, ...]] = {
    "value": NUMBERS,
    "unit": (*NUMBERS[:-1], "boolean", "string", "varchar", "char", "binary"),
    "group": TEXTS,
    "listed": TEXTS,
    "time": ("date", *TIMESTAMPS),
}


def family(kind: str) -> str:
    """A type without its parameters.

    >>> family("decimal(9,2)")
    'decimal'
    """
    return kind.partition("(")[0]


@dataclass(frozen=True)
class SparkWords(Words):
    """See `words.Words`. The session is not in ANSI mode, and expressions are made total.

    Args:
        columns: Types of columns that expressions name.
    """

    columns: Mapping[str, str] = field(default_factory=dict)

    def tried(self, expression: str) -> str:
        return f"({total(expression, self.columns)})"

    def takes(self, role: Role, kind: str) -> bool:
        return family(kind) in KINDS[role]

    def name(self, column: str) -> str:
        return quoted(column, "`")

    def text(self, value: str) -> str:
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def as_text(self, value: str, kind: str) -> str:
        return f"CAST({value} AS STRING)"

    def blob(self, key: str) -> str:
        return f"CAST({key} AS BINARY)"

    def listed(self, columns: Sequence[Sequence[str]], name: str) -> str:
        split = ", ".join(
            f"split({self.text(SEPARATOR.join(texts))}, {self.text(SEPARATOR)})"
            for texts in columns
        )
        names = ", ".join(f"g{i}" for i in range(len(columns)))
        return f"(SELECT inline(arrays_zip({split})) AS ({names})) AS {name}"

    def number(self, value: str, kind: str) -> str:
        name = family(kind)
        if name in TIMESTAMPS:
            return f"(CAST({_micros(value)} AS DOUBLE) / {self.double(1e6)})"
        if name == "date":
            return f"(CAST(unix_date({value}) AS DOUBLE) * {self.double(86400.0)})"
        if name.startswith("interval"):
            return f"(CAST({_span(value)} AS DOUBLE) / {self.double(1e6)})"
        return f"CAST({value} AS DOUBLE)"

    def is_whole(self, kind: str) -> bool:
        return family(kind) in WHOLE

    def canonical(self, unit: str, kind: str) -> str:
        name = family(kind)
        if name in TIMESTAMPS:
            return f"CAST({_micros(unit)} AS STRING)"
        if name == "date":
            return f"CAST(unix_date({unit}) AS STRING)"
        if name in (*FLOATING, "decimal"):
            low, high = self.double(-1e15), self.double(1e15)
            whole = f"floor(greatest({low}, least({high}, {self.number(unit, kind)})))"
            return f"CAST(CAST({whole} AS BIGINT) AS STRING)"
        if name == "binary":
            return f"lower(hex({unit}))"
        return f"CAST({unit} AS STRING)"

    def bytewise(self, column: str) -> str:
        return f"{self.name(column)} COLLATE UTF8_BINARY"

    def unskipped(self, name: str) -> str:
        return f"CASE WHEN {name} IS NULL THEN NULL ELSE {name} END"

    def start(self, text: str) -> str:
        return f"CAST(conv(substr(md5(CAST({text} AS BINARY)), 1, 4), 16, 10) AS BIGINT)"


def _micros(value: str) -> str:
    """Microseconds of an instant; a timestamp without a zone is UTC, as the session is."""
    return f"unix_micros(CAST({value} AS TIMESTAMP))"


def _span(value: str) -> str:
    hours = f"CAST(extract(DAY FROM {value}) AS BIGINT) * 24 + extract(HOUR FROM {value})"
    minutes = f"({hours}) * 60 + extract(MINUTE FROM {value})"
    micros = f"CAST(extract(SECOND FROM {value}) * 1000000 AS BIGINT)"
    return f"(({minutes}) * 60000000 + {micros})"


_DIGITS = 38
"""Digits of a decimal."""

_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""Digits of whole numbers."""

_MOMENT = Value("moment", raw=True)

_COLUMNS: Mapping[str, Value] = {
    **{kind: Value("exact", 0, high, whole=True, raw=True) for kind, high in _WHOLE.items()},
    **dict.fromkeys(("float", "double"), DOUBLE),
    "date": Value("date", raw=True),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), _MOMENT),
    "interval day to second": Value("span"),
    **dict.fromkeys(("string", "varchar", "char", "binary", "boolean"), Value("text")),
}

_CASTS: Mapping[str, str] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), "bigint"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "double"),
    **dict.fromkeys(("VARCHAR", "TEXT", "BOOLEAN"), "string"),
    "DATE": "date",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ"), "timestamp"),
}
"""Types that a cast leads to, by sqlglot's names."""


def total(expression: str, kinds: Mapping[str, str]) -> str:
    """The expression in SQL that is null where it would fail.

    Args:
        expression: In Spark's dialect, such as `sections.expressions` admits.
        kinds: Types of columns, by name; with the table before a dot where one is named.

    Raises:
        SourceError: It could fail on a record, or names a column that is not there.

    >>> total("`a` * `b` > 1", {"a": "int", "b": "bigint"})
    'CAST(`a` AS DECIMAL(10, 0)) * CAST(`b` AS DECIMAL(19, 0)) > 1'
    """
    return _SparkWalk.total(expression, kinds)


class _SparkWalk(Walk):
    """Makes the nodes of one expression total."""

    engine = "Spark"
    dialect = "spark"
    truth = Value("text")
    folds_names = True

    def rules(self) -> dict[type[Expr], Callable[[Expr], Made]]:
        from sqlglot import exp

        starts = (exp.TimestampTrunc, exp.DateTrunc)
        return super().rules() | {exp.TryCast: self.cast} | dict.fromkeys(starts, self._start)

    def type_of(self, kind: str) -> Value:
        head, _, digits = kind.partition("(")
        if head != "decimal":
            return _COLUMNS.get(head, OTHER)
        precision, scale = map(int, digits.rstrip(")").split(","))
        return Value("exact", -scale, precision - scale)

    def fits(self, value: Value) -> bool:
        return value.high - value.low <= _DIGITS and -value.low <= _DIGITS

    def bounded(self, value: Value) -> Value:
        return value  # doubles become infinite and no more

    def number(self, node: Expr, value: Value) -> Made:
        if value.kind == "double":
            return node, replace(value, raw=False)
        return super().number(node, value)

    def as_decimal(self, node: Expr, value: Value) -> Made:
        digits, behind = max(value.high - value.low, 1), -value.low
        made = self.as_type(node, f"decimal({digits}, {behind})")
        return made, replace(value, whole=False, raw=False)

    def cast(self, node: Expr) -> Made:
        inside, _ = self.guarded(*self.of(node.this))
        node.set("this", inside)
        to = node.args["to"]
        if to.this.name == "DECIMAL":
            return node, self.type_of(to.sql(self.dialect).lower().replace(" ", ""))
        return node, self.type_of(_CASTS.get(to.this.name, ""))

    def part(self, node: Expr) -> Made:
        inside, _ = self.guarded(*self.of(node.expression))
        node.set("expression", inside)
        return node, Value("exact", -6, 10, raw=True)

    def _start(self, node: Expr) -> Made:
        """The beginning of the month, day or hour of a time."""
        inside, value = self.guarded(*self.of(node.this))
        node.set("this", inside)
        return node, Value("moment", years=value.years)

    def comparison(self, node: Expr) -> Made:
        """A comparison; a date beside another time becomes one."""
        keys = [key for key in ("this", "expression", "low", "high") if node.args.get(key)]
        made = [self.of(each) for each in (*(node.args[key] for key in keys), *node.expressions)]
        if len({value.kind for _, value in made}) > 1:
            made = [self.guarded(*each) for each in made]
        for key, (each, _) in zip(keys, made, strict=False):
            node.set(key, each)
        if node.expressions:
            node.set("expressions", [each for each, _ in made[len(keys) :]])
        return node, self.truth
