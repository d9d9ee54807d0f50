"""MariaDB's words for the one question; types are those of `types.kind_of`.

Its expressions are such as no record can fail (`backends.sql.total`) in MariaDB, whose numbers
overflow. Decimals have 65 digits, 38 of them behind the point: numbers whose sum or product has no
room there are computed as doubles. Times that are none are null by themselves, as are quotients by
zero.

Privacy: an expression is a total function of one record, or is refused by configuration and types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from streamdp.backends.sql.total import DOUBLE, OTHER, PARTS, Made, Value, Walk
from streamdp.backends.sql.words import Role, Words, quoted

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


WHOLE = ("tinyint", "smallint", "mediumint", "int", "bigint", "year")
REAL = ("decimal", "float", "double")
MOMENTS = ("datetime", "timestamp")
NUMBERS = (*WHOLE, *REAL, "date", *MOMENTS)
KINDS: dict[Role, tuple[str, ...]] = {
    "value": (*NUMBERS, "time"),
    "unit": (*NUMBERS, "varchar", "varbinary"),
    "group": (*WHOLE, "date", "varchar"),
    "listed": (*WHOLE, "date", "varchar"),
    "time": ("date", *MOMENTS),
}

COLLATION = "utf8mb4_nopad_bin"
"""Texts are compared by all of their bytes; others leave out case, accents or blanks at the end."""

LOSSLESS = ("latin1", "utf8mb3", "utf8mb4")
"""Character sets that have no two texts of one UTF-8."""

LONGEST_UNIT = 2048
"""Bytes; a longer text or one without a length would be sorted by its first bytes alone."""


@dataclass(frozen=True)
class MariaDBWords(Words):
    """See `words.Words`. An expression that could fail on a record is made total, or refused.

    Args:
        columns: Types of columns that expressions name.
    """

    columns: Mapping[str, str] = field(default_factory=dict)

    whole = small = "SIGNED"
    nulls_first = ""  # they come first by themselves
    grouping_sets = False

    def takes(self, role: Role, kind: str) -> bool:
        family, _, length = kind.partition("(")
        if role == "unit" and family.startswith("var") and int(length[:-1]) > LONGEST_UNIT:
            return False
        return family in KINDS[role] or (family == "text" and role in ("group", "listed"))

    def tried(self, expression: str) -> str:
        return f"({total(expression, self.columns)})"

    def name(self, column: str) -> str:
        return quoted(column, "`")

    def text(self, value: str) -> str:
        return quoted(value.replace("\\", "\\\\"), "'")

    def rows(self, rows: Sequence[Sequence[str]], name: str, columns: Sequence[str]) -> str:
        """Literal rows by WITH, as MariaDB takes no names behind a derived table."""
        listed = ", ".join(f"({', '.join(row)})" for row in rows)
        names = ", ".join(columns)
        return f"(WITH {name}({names}) AS (VALUES {listed}) SELECT * FROM {name}) AS {name}"

    def as_text(self, value: str, kind: str) -> str:
        text = value if re.match("varchar|text", kind) else f"CAST({value} AS CHAR)"
        return _bytewise(text)

    def short(self, text: str, longest: int) -> str:
        """The bytes of a text, whose sort knows how many there are, with a length to index."""
        return f"CAST(CAST({text} AS CHAR({longest})) AS BINARY)"

    def blob(self, key: str) -> str:
        return key

    def listed(self, columns: Sequence[Sequence[str]], name: str) -> str:
        """Texts by JSON; each column is as wide as the longest text needs."""
        rows = json.dumps(list(zip(*columns, strict=True)), ensure_ascii=False)
        wide = [max((len(text) for text in texts), default=1) for texts in columns]
        read = ", ".join(f"g{i} VARCHAR({n}) PATH '$[{i}]'" for i, n in enumerate(wide))
        shown = ", ".join(f"CAST(g{i} AS BINARY) AS g{i}" for i in range(len(columns)))
        table = f"JSON_TABLE({self.text(rows)}, '$[*]' COLUMNS({read})) AS listed"
        return f"(SELECT {shown} FROM {table}) AS {name}"

    def number(self, value: str, kind: str) -> str:
        if kind in MOMENTS:
            return f"(CAST({_micros(value)} AS DOUBLE) / 1000000)"
        if kind == "date":
            return f"(CAST({_days(value)} AS DOUBLE) * 86400)"
        if kind == "time":
            return f"(CAST(TIME_TO_SEC({value}) * 1000000 AS DOUBLE) / 1000000)"
        return f"CAST({value} AS DOUBLE)"

    def is_whole(self, kind: str) -> bool:
        return kind in WHOLE

    def unit(self, column: str, kind: str) -> str:
        """A unit; a text as its bytes, whose sort knows how many there are.

        Privacy: keys by which texts are sorted are filled up with zeros, so `A` and `A` before a
        byte of zero would be sorted as one and counted as many.
        """
        name = self.name(column)
        return f"CAST({name} AS BINARY)" if kind.startswith("varchar") else name

    def canonical(self, unit: str, kind: str) -> str:
        if kind in MOMENTS:
            return f"CAST({_micros(unit)} AS CHAR)"
        if kind == "date":
            return f"CAST({_days(unit)} AS CHAR)"
        if kind.partition("(")[0] in REAL:
            whole = f"greatest(-1e15, least(1e15, {self.number(unit, kind)}))"
            return f"CAST(CAST(floor({whole}) AS SIGNED) AS CHAR)"
        if kind.startswith("varbinary"):
            return f"lower(hex({unit}))"
        return self.as_text(unit, kind)

    def bytewise(self, column: str) -> str:
        return _bytewise(self.name(column))

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
        return _bytewise(f"CASE WHEN {same} THEN {text} ELSE {lost} END")

    def start(self, text: str) -> str:
        return f"CAST(conv(substr(md5({text}), 1, 4), 16, 10) AS SIGNED)"


def _bytewise(text: str) -> str:
    return f"CONVERT({text} USING utf8mb4) COLLATE {COLLATION}"


def _micros(value: str) -> str:
    return f"timestampdiff(MICROSECOND, TIMESTAMP '1970-01-01 00:00:00', {value})"


def _days(value: str) -> str:
    return f"datediff({value}, DATE '1970-01-01')"


_DIGITS = 65
_BEHIND = 38
"""Digits of a decimal, and those of them that may stand behind its point."""

_WHOLE = {"tinyint": 3, "smallint": 5, "mediumint": 8, "int": 10, "bigint": 20, "year": 4}
"""Digits of whole numbers, with a sign or without."""

_COLUMNS: Mapping[str, Value] = {
    **{kind: Value("exact", 0, high, whole=True, raw=True) for kind, high in _WHOLE.items()},
    **dict.fromkeys(("float", "double"), DOUBLE),
    "date": Value("date"),
    **dict.fromkeys(("datetime", "timestamp"), Value("moment")),
    **dict.fromkeys(("varchar", "text", "varbinary", "blob"), Value("text")),
}

_CONSTANTS: Mapping[str, Value] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), Value("exact", 0, 20, whole=True)),
    **dict.fromkeys(("FLOAT", "DOUBLE"), DOUBLE),
    "DATE": Value("date"),
    **dict.fromkeys(("DATETIME", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ"), Value("moment")),
}
"""Types that a constant may be cast to, by sqlglot's names."""


def total(expression: str, kinds: Mapping[str, str]) -> str:
    """The expression in SQL that is null where it would fail.

    Args:
        expression: In MariaDB's dialect, such as `sections.expressions` admits.
        kinds: Types of columns, by name; with the table before a dot where one is named.

    Raises:
        SourceError: It could fail on a record, or names a column that is not there.

    >>> total("`a` * `b` > 1", {"a": "int", "b": "bigint"})
    'CAST(`a` AS DECIMAL(10, 0)) * CAST(`b` AS DECIMAL(20, 0)) > 1'
    """
    return _MariaDBWalk.total(expression, kinds)


class _MariaDBWalk(Walk):
    """Makes the nodes of one expression total.

    MariaDB reads a text beside a number as one and finds columns in any case, so nothing is left to
    its own refusals.
    """

    engine = "MariaDB"
    dialect = "mysql"
    truth = Value("exact", 0, 1, whole=True)
    folds_names = True

    def rules(self) -> dict[type[Expr], Callable[[Expr], Made]]:
        from sqlglot import exp

        parts = (exp.TimestampDiff, exp.DayOfWeek, exp.DayOfYear, exp.Week, exp.Anonymous)
        found = super().rules() | dict.fromkeys(parts, self._counted)
        times = (exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.TimeToStr)
        return found | dict.fromkeys(times, self._read)

    def type_of(self, kind: str) -> Value:
        head, _, digits = kind.partition("(")
        if head != "decimal":
            return _COLUMNS.get(head, OTHER)
        precision, scale = map(int, digits.rstrip(")").split(","))
        return Value("exact", -scale, precision - scale)

    def fits(self, value: Value) -> bool:
        return value.low >= -_BEHIND and value.high - value.low <= _DIGITS

    def as_decimal(self, node: Expr, value: Value) -> Made:
        digits, behind = max(value.high - value.low, 1), -value.low
        made = self.as_type(node, f"decimal({digits}, {behind})")
        return made, replace(value, whole=False, raw=False)

    def as_double(self, node: Expr) -> Expr:
        return self.as_type(node, "double")

    def moved(self, node: Expr, one: Made, other: Made) -> Made:
        from sqlglot import exp

        if not isinstance(other[0], exp.Interval):
            raise self.refusal("a time takes an interval such as INTERVAL 1 DAY")
        return type(node)(this=one[0], expression=other[0]), Value("moment")

    def cast(self, node: Expr) -> Made:
        from sqlglot import exp

        if node.find(exp.Column) is None:
            return node, _CONSTANTS.get(node.args["to"].this.name, OTHER)
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

    def comparison(self, node: Expr) -> Made:
        for key in ("this", "expression", "low", "high"):
            if node.args.get(key) is not None:
                node.set(key, self.of(node.args[key])[0])
        if node.expressions:
            node.set("expressions", [self.of(each)[0] for each in node.expressions])
        return node, self.truth
