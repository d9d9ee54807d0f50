"""MariaDB's SQL for the one question; types are those of `types.kind_of`.

Its expressions are such as no record can fail (`backends.sql.total`) in MariaDB, whose numbers
overflow. Decimals have 65 digits, 38 of them behind the point: numbers whose sum or product has no
room there are computed as doubles. Times that are none are null by themselves, as are quotients by
zero.

Operands are refused where MariaDB would convert one in silence. It subtracts 2024-01-01 00:00:00
from another time as the number 20240101000000, and reads a text beside a number as the digits that
it begins with. Other engines refuse that or mean something else. So the server is asked for the
type of each operand before anything is spent.

Privacy: an expression is a total function of one record, or is refused by configuration and types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from streamdp.backends.sql.dialect import Role, SqlDialect, quoted
from streamdp.backends.sql.total import (
    DOUBLE,
    OTHER,
    PARTS,
    Made,
    TotalExpression,
    Value,
    integers,
)
from streamdp.errors import SourceError

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


WHOLE = ("tinyint", "smallint", "mediumint", "int", "bigint", "year")
REAL = ("decimal", "float", "double")
INSTANTS = ("datetime", "timestamp")
NUMBERS = (*WHOLE, *REAL, "date", *INSTANTS)

COLLATION = "utf8mb4_nopad_bin"
"""Texts are compared by all of their bytes; others leave out case, accents or blanks at the end."""

LOSSLESS = ("latin1", "utf8mb3", "utf8mb4")
"""Character sets that have no two texts of one UTF-8."""

LONGEST_UNIT = 2048
"""Bytes; a longer text or one without a length would be sorted by its first bytes alone."""

_WHOLE = Value("exact", 0, 20, whole=True)


class MariaDBExpression(TotalExpression):
    """Makes an expression total.

    MariaDB reads a text beside a number as one and finds columns in any case, so nothing is left to
    its own refusals.

    >>> MariaDBExpression.rewrite("`a` * `b` > 1", {"a": "int", "b": "bigint"})
    'CAST(`a` AS DECIMAL(10, 0)) * CAST(`b` AS DECIMAL(20, 0)) > 1'
    """

    engine = "MariaDB"
    dialect = "mysql"
    truth = Value("exact", 0, 1, whole=True)
    double_type = "double"
    digits, scale = 65, 38
    folds_names = True

    types: ClassVar[Mapping[str, Value]] = {
        **integers(tinyint=3, smallint=5, mediumint=8, int=10, bigint=20, year=4),
        **dict.fromkeys(("float", "double"), DOUBLE),
        "date": Value("date"),
        **dict.fromkeys(INSTANTS, Value("moment")),
        **dict.fromkeys(("varchar", "text", "varbinary", "blob"), Value("text")),
    }

    constants: ClassVar[Mapping[str, Value]] = {
        **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), _WHOLE),
        **dict.fromkeys(("FLOAT", "DOUBLE"), DOUBLE),
        "DATE": Value("date"),
        **dict.fromkeys(("DATETIME", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ"), Value("moment")),
    }
    """Types that a constant may be cast to, by sqlglot's names."""

    def rules(self) -> dict[type[Expr], Callable[[Expr], Made]]:
        from sqlglot import exp

        parts = (exp.TimestampDiff, exp.DayOfWeek, exp.DayOfYear, exp.Week, exp.Anonymous)
        found = super().rules() | dict.fromkeys(parts, self._counted)
        times = (exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.TimeToStr)
        return found | dict.fromkeys(times, self._read)

    def moved(self, node: Expr, one: Made, other: Made) -> Made:
        from sqlglot import exp

        if not isinstance(other[0], exp.Interval):
            raise self.refusal("a time takes an interval such as INTERVAL 1 DAY")
        return type(node)(this=one[0], expression=other[0]), Value("moment")

    def cast(self, node: Expr) -> Made:
        from sqlglot import exp

        if node.find(exp.Column) is None:
            return node, self.constants.get(node.args["to"].this.name, OTHER)
        if node.is_type("double"):
            return self.double(*self.of(node.this))
        if not isinstance(node.this, exp.TimeToStr):  # the beginning of a month, day or hour
            raise self.refusal("a cast")
        node.set("this", self.of(node.this)[0])
        return node, Value("moment")

    def part(self, node: Expr) -> Made:
        if node.this.name.upper() not in PARTS:
            raise self.refusal(f"MariaDB knows no {node.this.name.lower()} of a time")
        node.set("expression", self.of(node.expression)[0])
        return node, Value("exact", 0, 4, whole=True)

    def _counted(self, node: Expr) -> Made:
        """Numbers that functions make of a time: microseconds, or days and weeks."""
        from sqlglot import exp

        if node.find(exp.Column) is None:
            return node, OTHER
        if isinstance(node, exp.Anonymous):
            if node.name.upper() != "WEEKDAY":
                raise self.refusal(f"{node.name.lower()} is not known to be total here")
            node.set("expressions", [self.of(each)[0] for each in node.expressions])
        else:
            node.set("this", self.of(node.this)[0])
        return node, Value("exact", 0, 19, whole=True)

    def _read(self, node: Expr) -> Made:
        """A time that stands in a function of times."""
        inside, value = self.of(node.this)
        if value.kind == "text":
            raise self.refusal(f"{inside.sql(self.dialect)} is no time")
        node.set("this", inside)
        return node, Value("moment")

    def interval(self, node: Expr) -> Made:
        node.set("this", self.of(node.this)[0])
        return node, Value("span")


class MariaDBDialect(SqlDialect):
    """See `SqlDialect`."""

    roles: ClassVar[Mapping[Role, tuple[str, ...]]] = {
        "value": (*NUMBERS, "time"),
        "unit": (*NUMBERS, "varchar", "varbinary"),
        "group": (*WHOLE, "date", "varchar", "text"),
        "listed": (*WHOLE, "date", "varchar", "text"),
        "time": ("date", *INSTANTS),
    }
    whole_types, real_types, instant_types = WHOLE, REAL, INSTANTS
    interval_type, binary_type = "time", "varbinary"
    text, quote = "CHAR", "`"
    whole = small = "SIGNED"
    nulls_first = ""  # they come first by themselves
    grouping_sets = False
    total = MariaDBExpression

    def takes(self, role: Role, kind: str) -> bool:
        """Whether a type can play a part; a text that bounds units has a greatest length."""
        length = re.match(r"var\w+\((\d+)", kind)
        too_long = role == "unit" and length is not None and int(length[1]) > LONGEST_UNIT
        return not too_long and super().takes(role, kind)

    def literal(self, value: str) -> str:
        return quoted(value.replace("\\", "\\\\"), "'")

    def rows(self, rows: Sequence[Sequence[str]], name: str, columns: Sequence[str]) -> str:
        """Literal rows by WITH, as MariaDB takes no names behind a derived table."""
        listed = ", ".join(f"({', '.join(row)})" for row in rows)
        names = ", ".join(columns)
        return f"(WITH {name}({names}) AS (VALUES {listed}) SELECT * FROM {name}) AS {name}"

    def as_text(self, value: str, kind: str) -> str:
        return _utf8(value if re.match("varchar|text", kind) else f"CAST({value} AS CHAR)")

    def short(self, text: str, longest: int) -> str:
        """The bytes of a text, whose sort knows how many there are, with a length to index."""
        return f"CAST(CAST({text} AS CHAR({longest})) AS BINARY)"

    def blob(self, key: str) -> str:
        return key

    def text_table(self, columns: Sequence[Sequence[str]], name: str) -> str:
        """Texts by JSON; each column is as wide as the longest text needs."""
        rows = json.dumps(list(zip(*columns, strict=True)), ensure_ascii=False)
        wide = [max((len(text) for text in texts), default=1) for texts in columns]
        read = ", ".join(f"g{i} VARCHAR({n}) PATH '$[{i}]'" for i, n in enumerate(wide))
        shown = ", ".join(f"CAST(g{i} AS BINARY) AS g{i}" for i in range(len(columns)))
        table = f"JSON_TABLE({self.literal(rows)}, '$[*]' COLUMNS({read})) AS listed"
        return f"(SELECT {shown} FROM {table}) AS {name}"

    def micros(self, value: str) -> str:
        return f"timestampdiff(MICROSECOND, TIMESTAMP '1970-01-01 00:00:00', {value})"

    def days(self, value: str) -> str:
        return f"datediff({value}, DATE '1970-01-01')"

    def interval_micros(self, value: str) -> str:
        return f"TIME_TO_SEC({value}) * 1000000"

    def unit(self, column: str, kind: str) -> str:
        """A unit; a text as its bytes, whose sort knows how many there are.

        Privacy: keys by which texts are sorted are filled up with zeros, so `A` and `A` before a
        byte of zero would be sorted as one and counted as many.
        """
        name = self.name(column)
        return f"CAST({name} AS BINARY)" if kind.startswith("varchar") else name

    def bytewise(self, column: str) -> str:
        return _utf8(self.name(column))

    def stored(self, column: str, charset: str | None) -> str:
        """A text column as UTF-8 that no two texts share, compared byte by byte.

        Character sets other than UTF-8 have letters that Unicode lacks, and all of these would
        become one `?`. A text that does not come back from UTF-8 as it was is written as U+10FFFF,
        which no such set has, and its bytes as the letters that latin1 has for them.

        Privacy: two units are two texts, so records of one push out none of the other.
        """
        if charset is None or charset in LOSSLESS:
            return self.bytewise(column)
        name = self.name(column)
        text = f"CONVERT({name} USING utf8mb4)"
        same = f"CAST(CONVERT({text} USING {charset}) AS BINARY) = CAST({name} AS BINARY)"
        spelt = f"CONVERT(CONVERT(CAST({name} AS BINARY) USING latin1) USING utf8mb4)"
        lost = f"CONCAT(CONVERT(X'F48FBFBF' USING utf8mb4), {spelt})"
        return _utf8(f"CASE WHEN {same} THEN {text} ELSE {lost} END")

    def start(self, text: str) -> str:
        return f"CAST(conv(substr(md5({text}), 1, 4), 16, 10) AS SIGNED)"


def _utf8(text: str) -> str:
    """A text in UTF-8, compared by its bytes."""
    return f"CONVERT({text} USING utf8mb4) COLLATE {COLLATION}"


_MOMENT = "date or timestamp"

_FAMILIES = {
    "number": (
        *("tinyint", "smallint", "mediumint", "int", "bigint", "year"),
        *("decimal", "float", "double"),
    ),
    "text": ("varchar", "text"),
    _MOMENT: ("date", "datetime", "timestamp"),
}


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of an operator.

    Args:
        sql: Of the operand.
        operator: Number of the operator in which it stands.
        wanted: What the operator takes; None for whatever stands beside it.
        literal: Whether it is a literal text, which may stand for a time.
    """

    sql: str
    operator: int
    wanted: str | None
    literal: bool


def operands(texts: Iterable[str]) -> list[Operand]:
    """Operands of all operators of some expressions in MariaDB's dialect, but intervals."""
    from sqlglot import exp

    found: list[Operand] = []
    for number, node in enumerate(_nodes(texts)):
        parts, wanted = _taken(node)
        for part in parts:
            is_text = isinstance(part, exp.Literal) and part.is_string
            found.append(Operand(part.sql("mysql"), number, wanted, is_text))
    return found


def _taken(node: Expr) -> tuple[list[Expr], str | None]:
    """Operands of a node that is an operator, and the type that it takes."""
    from sqlglot import exp

    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod):
        if isinstance(node.expression, exp.Interval):
            return [node.this], _MOMENT
        return [node.this, node.expression], "number"
    if isinstance(node, exp.Neg | exp.Abs | exp.Round | exp.Floor | exp.Ceil | exp.Ln | exp.Sqrt):
        return [node.this], "number"
    if isinstance(node, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.NullSafeEQ):
        return [node.this, node.expression], None
    if isinstance(node, exp.Between):
        return [node.this, node.args["low"], node.args["high"]], None
    if isinstance(node, exp.In):
        return [node.this, *node.expressions], None
    if isinstance(node, exp.Extract):
        return [node.expression], _MOMENT
    times = (exp.TimestampDiff, exp.TimeToStr, exp.DayOfWeek, exp.DayOfYear, exp.Week)
    if isinstance(node, times):
        return [node.this], _MOMENT
    if isinstance(node, exp.Anonymous) and node.name.upper() == "WEEKDAY":
        return node.expressions, _MOMENT
    return [], None


def _nodes(texts: Iterable[str]) -> Iterator[Expr]:
    import sqlglot

    for text in texts:
        with suppress(sqlglot.errors.SqlglotError):  # the server refuses it by itself
            yield from sqlglot.parse_one(text, read="mysql").walk()


def require_alike(found: Sequence[Operand], kinds: Sequence[str], source: str) -> None:
    """Refuse operands of other types than their operator takes, or than stand beside them.

    Args:
        found: Operands.
        kinds: Types of the same.
        source: Name of the source.

    Raises:
        SourceError: There is one.
    """
    beside: dict[int, str] = {}
    for operand, kind in zip(found, kinds, strict=True):
        family = _family(kind)
        if family == "null":
            continue
        expected = operand.wanted or beside.setdefault(operand.operator, family)
        if operand.literal and expected == _MOMENT:
            continue
        if family != expected:
            raise SourceError(
                f"an expression for source {source} needs a {expected} where MariaDB has {kind}",
                where=operand.sql,
                hint="seconds of a time are extract(epoch FROM it); cast a text in a view",
                source=source,
            )


def _family(kind: str) -> str:
    head = kind.partition("(")[0]
    return next((name for name, kinds in _FAMILIES.items() if head in kinds), head)
