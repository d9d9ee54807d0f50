"""Spark: a table or query of its catalog, or files it reads, for those who outgrow one machine."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import numpy as np

from streamdp.backends.limits import NO_LIMITS, Limits
from streamdp.backends.spark.dialect import INSTANTS, SparkDialect
from streamdp.backends.sql.engine import TypedBackend
from streamdp.backends.sql.relation import Relation
from streamdp.errors import SourceError
from streamdp.files import identity_of, nearest, resolve
from streamdp.objects.address import SCHEMES, identity
from streamdp.types import Batch, File, IntArray, Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
