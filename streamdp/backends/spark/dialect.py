"""Spark's SQL for the one question; types are simple strings of `pyspark.sql.types`.

Its expressions are such as no record can fail (`backends.sql.total`), in Spark, which fails at
times beyond what it can count. Outside of ANSI mode Spark's whole numbers overflow in silence, so
they are computed as decimals of 38 digits, or as doubles beyond; these fail on nothing.

Privacy: an expression is a total function of one record, or is refused by configuration and types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from streamdp.backends.sql.dialect import SEPARATOR, Role, SqlDialect
from streamdp.backends.sql.total import DOUBLE, Made, TotalExpression, Value, integers

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


WHOLE = ("tinyint", "smallint", "int", "bigint")
REAL = ("float", "double", "decimal")
INSTANTS = ("timestamp", "timestamp_ntz")
INTERVAL = "interval day to second"
COMPARED = (*WHOLE, *REAL, "date", *INSTANTS)
STRINGS = ("string", "varchar", "char")
TEXTS = (*WHOLE, "boolean", "date", *STRINGS)

LONGEST_DECIMAL = 1000
"""Letters of a text that is cast to a decimal; a longer one is null. Java takes time that grows
with the square of the digits: a million took 46 seconds."""


class SparkExpression(TotalExpression):
    """Makes an expression total.

    >>> SparkExpression.rewrite("`a` * `b` > 1", {"a": "int", "b": "bigint"})
    'CAST(`a` AS DECIMAL(10, 0)) * CAST(`b` AS DECIMAL(19, 0)) > 1'
    >>> SparkExpression.rewrite("CAST(`s` AS DECIMAL(9, 2))", {"s": "string"})
    'CAST((CASE WHEN LENGTH((`s`)) <= 1000 THEN (`s`) END) AS DECIMAL(9, 2))'
    """

    engine = "Spark"
    dialect = "spark"
    truth = Value("text")
    digits = scale = 38
    folds_names = True

    types: ClassVar[Mapping[str, Value]] = {
        **integers(tinyint=3, smallint=5, int=10, bigint=19),
        **dict.fromkeys(("float", "double"), DOUBLE),
        "date": Value("date", raw=True),
        **dict.fromkeys(INSTANTS, Value("moment", raw=True)),
        INTERVAL: Value("span"),
        **dict.fromkeys((*STRINGS, "binary", "boolean"), Value("text")),
    }

    casts: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), "bigint"),
        **dict.fromkeys(("FLOAT", "DOUBLE"), "double"),
        **dict.fromkeys(("VARCHAR", "TEXT", "BOOLEAN"), "string"),
        "DATE": "date",
        **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ"), "timestamp"),
    }
    """Types that a cast leads to, by sqlglot's names."""

    def rules(self) -> dict[type[Expr], Callable[[Expr], Made]]:
        from sqlglot import exp

        starts = (exp.TimestampTrunc, exp.DateTrunc)
        return super().rules() | {exp.TryCast: self.cast} | dict.fromkeys(starts, self.start)

    def bounded(self, value: Value) -> Value:
        return value  # doubles become infinite and no more

    def number(self, node: Expr, value: Value) -> Made:
        if value.kind == "double":
            return node, replace(value, raw=False)
        return super().number(node, value)

    def cast(self, node: Expr) -> Made:
        """A cast; a text that is too long for a decimal is null."""
        inside, value = self.guarded(*self.of(node.this))
        to = node.args["to"]
        if to.this.name == "DECIMAL" and value.kind == "text":
            inside = self.parsed(f"CASE WHEN length(x) <= {LONGEST_DECIMAL} THEN x END", inside)
        node.set("this", inside)
        if to.this.name == "DECIMAL":
            return node, self.type_of(to.sql(self.dialect).lower().replace(" ", ""))
        return node, self.type_of(self.casts.get(to.this.name, ""))

    def part(self, node: Expr) -> Made:
        inside, _ = self.guarded(*self.of(node.expression))
        node.set("expression", inside)
        return node, Value("exact", -6, 10, raw=True)

    def start(self, node: Expr) -> Made:
        """The beginning of the month, day or hour of a time."""
        inside, value = self.guarded(*self.of(node.this))
        node.set("this", inside)
        return node, Value("moment", years=value.years)

    def compared(self, made: list[Made]) -> list[Made]:
        """A date beside another time becomes one in a comparison."""
        if len({value.kind for _, value in made}) > 1:
            return [self.guarded(*each) for each in made]
        return made


class SparkDialect(SqlDialect):
    """See `SqlDialect`; the session is not in ANSI mode."""

    roles: ClassVar[Mapping[Role, tuple[str, ...]]] = {
        "value": (*COMPARED, INTERVAL),
        "unit": (*COMPARED, "boolean", *STRINGS, "binary"),
        "group": TEXTS,
        "listed": TEXTS,
        "time": ("date", *INSTANTS),
    }
    whole_types, real_types, instant_types = WHOLE, REAL, INSTANTS
    interval_type, binary_type = INTERVAL, "binary"
    text, quote, bytewise_collation = "STRING", "`", "UTF8_BINARY"
    total = SparkExpression

    def literal(self, value: str) -> str:
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def blob(self, key: str) -> str:
        return f"CAST({key} AS BINARY)"

    def text_table(self, columns: Sequence[Sequence[str]], name: str) -> str:
        split = ", ".join(
            f"split({self.literal(SEPARATOR.join(texts))}, {self.literal(SEPARATOR)})"
            for texts in columns
        )
        names = ", ".join(f"g{i}" for i in range(len(columns)))
        return f"(SELECT inline(arrays_zip({split})) AS ({names})) AS {name}"

    def micros(self, value: str) -> str:
        """Microseconds of an instant; a timestamp without a zone is UTC, as the session is."""
        return f"unix_micros(CAST({value} AS TIMESTAMP))"

    def days(self, value: str) -> str:
        return f"unix_date({value})"

    def interval_micros(self, value: str) -> str:
        hours = f"CAST(extract(DAY FROM {value}) AS BIGINT) * 24 + extract(HOUR FROM {value})"
        minutes = f"({hours}) * 60 + extract(MINUTE FROM {value})"
        micros = f"CAST(extract(SECOND FROM {value}) * 1000000 AS BIGINT)"
        return f"(({minutes}) * 60000000 + {micros})"

    def start(self, text: str) -> str:
        return f"CAST(conv(substr(md5(CAST({text} AS BINARY)), 1, 4), 16, 10) AS BIGINT)"
