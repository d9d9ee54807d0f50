"""Spark: a table or query of its catalog, or files it reads, for those who outgrow one machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from streamdp.backends.limits import NO_LIMITS, Limits, ended_after
from streamdp.backends.relation import Relation
from streamdp.backends.spark_words import SparkWords
from streamdp.backends.sql import SqlBackend
from streamdp.errors import SourceError
from streamdp.types import Batch, IntArray, Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.variable.substitute": "false",
}
"""Of every question: UTC, null for what fails on a record, and no names of the shell in texts."""

QUIET = {
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Of the engine: its log would quote rows, and its progress tell durations."""

GROUP = "streamdp"
"""By which jobs are found to be cancelled."""


@dataclass(slots=True)
class SparkBackend(SqlBackend):
    """Asks Spark; what comes back is one row an occupied cell.

    Args:
        master: URL of the cluster, or `local[*]` for this machine.
        relation: Table, or query; files are the query ``SELECT * FROM parquet.`path` ``.
        time_column: Column whose UTC value puts a record in a window.
        limits: Time of a question, and memory of the driver where it starts here.
    """

    master: str
    relation: Relation
    time_column: str | None = None
    limits: Limits = NO_LIMITS
    _session: SparkSession | None = field(default=None, init=False, repr=False)

    @contextmanager
    def session(self) -> Iterator[None]:
        """The engine, started if it does not run."""
        reasons: tuple[type[Exception], ...] = (*self.failures(), OSError, RuntimeError)
        try:
            self._connect()
        except reasons:
            raise SourceError(
                "Spark cannot be started",
                hint="is there a Java 17 or later, and is the master's URL right?",
            ) from None
        yield

    def words(self) -> SparkWords:
        """Spark's."""
        return SparkWords()

    def table(self, query: Query, batch: Batch) -> str:
        """The relation."""
        return self.relation.sql(self.words())

    def place(self, batch: Batch) -> str:
        """The table."""
        return self.relation.table

    def describe(self, select: str) -> dict[str, str]:
        """Names and types; Spark plans and does not run."""
        schema = self._connect().sql(select).schema
        return {column.name: column.dataType.simpleString() for column in schema.fields}

    def run(self, statement: str) -> IntArray:
        """Columns of integers."""
        session = self._connect()
        context = session.sparkContext
        context.setJobGroup(GROUP, GROUP, interruptOnCancel=True)
        with ended_after(self.limits.seconds, lambda: context.cancelJobGroup(GROUP)):
            asked = session.sql(statement)
            rows = asked.collect()
        found = np.array([tuple(row) for row in rows], dtype=np.int64)
        return found.reshape(-1, len(asked.columns))

    def moment(self, at: datetime) -> str:
        """A timestamp in UTC, the time zone of the session."""
        return f"TIMESTAMP '{at:%Y-%m-%d %H:%M:%S}'"

    def failures(self) -> tuple[type[Exception], ...]:
        """Python's side and Java's."""
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
        return self._session
