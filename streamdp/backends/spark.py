"""Spark, for records that outgrow one machine: its section, its SQL, and the questions to it.

Types are simple strings of `pyspark.sql.types`. Expressions are such as no record can fail
(`backends.sql.total`), in Spark, which fails at times beyond what it can count. Outside of ANSI
mode Spark's whole numbers overflow in silence, so they are computed as decimals of 38 digits, or as
doubles beyond; these fail on nothing.

Privacy: an expression is a total function of one record, or is refused by configuration and types.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import unquote, urlsplit

import numpy as np
from pydantic import Field

from streamdp.backends.limits import NO_LIMITS, Limits
from streamdp.backends.section import EngineSection, Location, Start
from streamdp.backends.sql.dialect import SEPARATOR, Role, SqlDialect
from streamdp.backends.sql.engine import TypedBackend
from streamdp.backends.sql.relation import Relation
from streamdp.backends.sql.total import DOUBLE, Made, TotalExpression, Value, integers
from streamdp.errors import SourceError, require_extra
from streamdp.files import identity_of, nearest, resolve
from streamdp.objects import SCHEMES, identity, is_address
from streamdp.sections.dialects import Dialect
from streamdp.sections.document import Document, Path, refuse
from streamdp.types import Backend, Batch, File, IntArray, Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from sqlglot.expressions import Expr


class SparkEngine(EngineSection):
    """Spark: a table of its catalog, or Parquet files."""

    dialect: ClassVar[Dialect] = "spark"

    kind: Literal["spark"] = Field(
        description="`spark`: Apache Spark, for tables of its catalog and Parquet files."
    )
    master: str = Field(
        default="local[*]",
        min_length=1,
        description="URL of the Spark master. Default: `local[*]`, this machine.",
        examples=["spark://host:7077"],
    )

    def check(self, location: Location, document: Document, path: Path) -> None:
        """Refuse objects, tables in folders, files that are no Parquet, and a path and a table."""
        if location.relation is not None:
            if location.path:
                self.refuse_location(document, path)
            return
        if is_address(location.path):
            refuse(
                "objects are read by the embedded engine",
                document,
                (*path, "engine"),
                "leave it out, or name a table of Spark's catalog in place of the path",
            )
        if location.format == "delta" or location.format == "iceberg":
            refuse(
                f"spark reads {location.format.capitalize()} tables of its catalog",
                document,
                (*path, "engine"),
                "name the table in place of the path",
            )
        if location.format != "parquet" or "`" in location.path:
            refuse("spark reads Parquet files", document, (*path, "path"), "or name a table")

    def backend(self, location: Location, start: Start | None = None) -> Backend:
        """Spark over a table of its catalog, or over files."""
        require_extra("pyspark", "spark", "sources.engine")
        from streamdp.backends.sql.relation import Relation

        files = location.path if location.relation is None else ""
        table = location.relation or Relation()
        return SparkBackend(self.master, table, location.time_column, self.limits(), files)


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


SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
}
"""Settings of every question, whatever the cluster's defaults are.

UTC, null for what fails on a record, no names of the shell in texts, backslashes as escapes, names
that are no patterns, no file left out, and no old date nor one in text that ends the question.
"""

QUIET = {
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Settings that silence the engine: its log would quote rows, its progress tell durations."""

LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark's own, which write to the error stream."""

VIEW = "streamdp_batch_records"
"""Name of the view of all files of a batch."""

FARTHEST = (2**63 - 1) // 1000
"""The last millisecond that has microseconds."""

_MAGIC = re.compile(r"[*?{}\[\],\\]")
"""Letters that Hadoop would read as a pattern."""

_MILLIS = re.compile(r"^  \w+ int64 (.+) \(TIMESTAMP\(MILLIS,", re.MULTILINE)
"""Columns of a schema, as Parquet's own library writes it out."""

MANY_FILES = 1000
"""Files of a table from which on its folders are known, and not each file."""

_TEXT_FORMS = {"CSVFileFormat": "CSV", "JsonFileFormat": "JSON", "XmlFileFormat": "XML"}
"""Forms of text, by the names of Spark's classes."""

GROUP = "streamdp"
"""Name under which jobs are found to be cancelled."""


@dataclass(slots=True)
class SparkBackend(TypedBackend):
    """Asks Spark, which returns one row an occupied cell.

    Args:
        master: URL of the cluster, or `local[*]` for this machine.
        relation: Table, or query.
        time_column: Column whose UTC value puts a record in a window.
        limits: Time of a question, and memory of the driver where it starts here.
        pattern: Path or glob of Parquet files in place of a relation.
    """

    master: str
    relation: Relation
    time_column: str | None = None
    limits: Limits = NO_LIMITS
    pattern: str = ""
    _session: SparkSession | None = field(default=None, init=False, repr=False)
    _columns: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    _millis: dict[str, frozenset[str]] = field(default_factory=dict, init=False, repr=False)

    @contextmanager
    def session(self) -> Iterator[None]:
        """Start Spark if it does not run."""
        reasons: tuple[type[Exception], ...] = (*self.failures(), OSError, RuntimeError)
        try:
            self._connect()
        except reasons:
            raise SourceError(
                "Spark cannot be started",
                hint="is there a Java 17 or later, and is the master's URL right?",
            ) from None
        yield

    def dialect(self) -> SparkDialect:
        """Spark's SQL."""
        return SparkDialect(self._columns)

    def table(self, query: Query, batch: Batch) -> str:
        """The relation, or a view of all files of the batch."""
        if not self.pattern:
            return self.relation_sql(self.relation)
        files = batch.files or resolve(self.pattern)
        if not files:
            raise SourceError("there is no file", where=self.pattern, hint=nearest(self.pattern))
        for file in files:
            if os.path.basename(file.path).startswith(("_", ".")):
                raise SourceError(
                    "Spark leaves out files whose names begin so", where=file.path, hint="rename it"
                )
        return self.relation_sql(Relation(query=self._view(files)))

    def _view(self, files: Sequence[File]) -> str:
        """All records of Parquet files; a time in milliseconds that has no microseconds is null.

        Spark itself would end the question at such a time, so they are read as integers.
        """
        from streamdp.backends.duckdb.arrow import millisecond_columns

        paths = [_MAGIC.sub(r"\\\g<0>", file.path) for file in files]
        reader = self._connect().read.option("mergeSchema", "true")
        schema = reader.parquet(*paths).schema
        millis = millisecond_columns([file.path for file in files])
        kinds = {each.name: each.dataType.simpleString() for each in schema.fields}
        raw = ", ".join(
            f"{self.dialect().name(name)} {'BIGINT' if name in millis else kind}"
            for name, kind in kinds.items()
        )
        reader.schema(raw).parquet(*paths).createOrReplaceTempView(VIEW)
        columns = (self._read(name, kind, millis) for name, kind in kinds.items())
        return f"SELECT {', '.join(columns)} FROM {VIEW}"

    def _read(self, column: str, kind: str, millis: Collection[str]) -> str:
        name = self.dialect().name(column)
        if column not in millis:
            return name
        near = f"{name} BETWEEN {-FARTHEST} AND {FARTHEST}"
        return (
            f"CAST(timestamp_micros(CASE WHEN {near} THEN {name} * 1000 END) AS {kind}) AS {name}"
        )

    def look_further(self, query: Query, batch: Batch, columns: Mapping[str, str]) -> None:
        """Refuse views and files in which one record may fail the question or reach another.

        Views may keep the ANSI mode. Spark ends a question at a line of CSV of more fields than an
        option says, makes several records of a line of JSON that is a list, and ends a question at
        a time in milliseconds that has no microseconds.
        """
        if self.pattern or self.relation.query:
            return
        table = self._connect().table(self.relation.bare(self.dialect()))
        plan = table._jdf.queryExecution().analyzed()
        stored = set(readers(plan))
        for reader in sorted(stored & _TEXT_FORMS.keys()):
            raise SourceError(
                f"the table is stored as {_TEXT_FORMS[reader]}, of which Spark does not read each"
                " line as one record",
                where=self.place(batch),
                hint="write it as Parquet, or read CSV and JSON lines by their path, with the"
                " embedded engine",
                source=batch.source,
            )
        kinds = (column.dataType.simpleString() for column in table.schema.fields)
        if any(kind in INSTANTS for kind in kinds) and any("Parquet" in each for each in stored):
            self._require_microseconds(table.inputFiles(), batch)
        for view in ansi_views(plan):
            raise SourceError(
                f"the view {view} was made in ANSI mode, in which one record may fail it",
                where=self.place(batch),
                hint="make it anew after SET spark.sql.ansi.enabled = false, or read its table with"
                " a query",
                source=batch.source,
            )

    def _require_microseconds(self, addresses: Sequence[str], batch: Batch) -> None:
        """Refuse Parquet files with times in milliseconds, by their footers.

        They are read once each, and none where there are more than MANY_FILES.
        """
        for address in addresses if len(addresses) <= MANY_FILES else ():
            if address not in self._millis:
                self._millis[address] = self._in_milliseconds(address)
            for name in sorted(self._millis[address]):
                raise SourceError(
                    f"column {name!r} of a file of this table is in milliseconds, of which one"
                    " that has no microseconds would end the question",
                    where=address,
                    hint="write it in microseconds, or read the files by their path",
                    source=batch.source,
                )

    def _in_milliseconds(self, address: str) -> frozenset[str]:
        """Columns of a Parquet file with times in milliseconds, as Spark's storage reads it."""
        session = self._connect()
        java: Any = session.sparkContext._jvm
        path = java.org.apache.hadoop.fs.Path(java.java.net.URI(address))
        conf = session.sparkContext._jsc.hadoopConfiguration()
        file = java.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(path, conf)
        reader = java.org.apache.parquet.hadoop.ParquetFileReader.open(file)
        try:
            schema = reader.getFileMetaData().getSchema().toString()
        finally:
            reader.close()
        return frozenset(_MILLIS.findall(schema))

    def collated(self, columns: Mapping[str, str]) -> list[str]:
        """Columns whose type names a collation."""
        return [name for name, kind in columns.items() if " collate " in kind.lower()]

    def origins(self, batch: Batch) -> tuple[str, ...]:
        """A table as the catalog calls it, whatever the case, and the files it reads.

        The files tell a view, another table of the same place and a new name. Files of a path are
        known by the batch.

        Raises:
            SourceError: The catalog cannot be asked.
        """
        if self.pattern or self.relation.query:
            return ()
        with self.session(), self._redacted(batch, "could not be asked", self.opening_hint):
            found = self._connect().catalog.getTable(self.relation.table)
            stored = self._connect().table(self.relation.bare(self.dialect())).inputFiles()
        name = ".".join((found.catalog or "", *(found.namespace or ()), found.name))
        return (f"spark:{name.lower()}", *stored_at(stored))

    def place(self, batch: Batch) -> str:
        """The table or the files."""
        return self.pattern or self.relation.table

    def describe(self, select: str) -> dict[str, str]:
        """Names and types; Spark plans and does not run."""
        schema = self._connect().sql(select).schema
        return {column.name: column.dataType.simpleString() for column in schema.fields}

    def run(self, statement: str) -> IntArray:
        """The rows of the answer, as integers."""
        asked = self._asking(statement)
        rows = asked.collect()
        found = np.array([tuple(row) for row in rows], dtype=np.int64)
        return found.reshape(-1, len(asked.columns))

    def fetched(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a SELECT."""
        return [tuple(row) for row in self._asking(statement).collect()]

    def _asking(self, statement: str) -> DataFrame:
        """A SELECT, which can be cancelled."""
        session = self._connect()
        session.sparkContext.setJobGroup(GROUP, GROUP, interruptOnCancel=True)
        return session.sql(statement)

    def interrupt(self) -> None:
        """Cancel the jobs of this process in the cluster."""
        if self._session is not None:
            self._session.sparkContext.cancelJobGroup(GROUP)

    def failures(self) -> tuple[type[Exception], ...]:
        """Exceptions of PySpark and of Java."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        return (PySparkException, Py4JError)

    def _connect(self) -> SparkSession:
        if self._session is None:
            from pyspark.sql import SparkSession

            builder = SparkSession.builder.master(self.master).appName("streamdp")
            settings = SETTINGS | QUIET
            if self.limits.memory is not None:
                settings["spark.driver.memory"] = str(self.limits.memory)
            for name, value in settings.items():
                builder = builder.config(name, value)
            self._session = builder.getOrCreate()
            _silence()
        return self._session


def _silence() -> None:
    """Switch off loggers of PySpark that write errors with the values at which they arose."""
    from pyspark.logger import PySparkLogger

    for name in LOGGERS:
        PySparkLogger.getLogger(name).disabled = True


def ansi_views(plan: Any) -> Iterator[str]:
    """Names of the views in a plan of Spark that are computed in ANSI mode, as is its default.

    Args:
        plan: Analyzed, of Java.
    """
    if plan.nodeName() == "View" and not plan.isTempView():
        kept = plan.desc().viewSQLConfigs().get("spark.sql.ansi.enabled")
        was_default = plan.desc().createVersion().startswith(("2.", "3."))
        if (kept.get() if kept.isDefined() else str(not was_default)).lower() != "false":
            yield str(plan.desc().identifier().table())
    for number in range(plan.children().size()):
        yield from ansi_views(plan.children().apply(number))


def readers(plan: Any) -> Iterator[str]:
    """Names of the classes by which Spark reads the files of a plan.

    Args:
        plan: Analyzed, of Java.
    """
    if plan.getClass().getSimpleName() == "LogicalRelation":
        relation = plan.relation()
        if relation.getClass().getSimpleName() == "HadoopFsRelation":
            yield relation.fileFormat().getClass().getSimpleName()
    for number in range(plan.children().size()):
        yield from readers(plan.children().apply(number))


def stored_at(addresses: Sequence[str]) -> Iterator[str]:
    """Identities of the files of a table: like other files and objects, by their address beside."""
    if len(addresses) > MANY_FILES:
        addresses = sorted({address.rpartition("/")[0] for address in addresses})
    for address in addresses:
        local = urlsplit(address)
        path = os.path.realpath(unquote(local.path))
        if local.scheme == "file" and os.path.exists(path):
            yield identity_of(path, os.stat(path))
        else:
            yield f"spark:{address}"
            if local.scheme in SCHEMES:
                yield identity(local.netloc, unquote(local.path).lstrip("/"))
