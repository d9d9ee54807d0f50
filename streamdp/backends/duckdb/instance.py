"""DuckDB in memory, shared by all that is read within the same limits.

An instance has threads and memory of its own, some five megabytes; another connection to it takes a
tenth of that. Each backend has its own connection: views are temporary, so they belong to it alone.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from streamdp.backends.limits import NO_LIMITS, Limits

if TYPE_CHECKING:
    import duckdb

SPILL_NOTHING: dict[str, str | bool | int | float | list[str]] = {
    "temp_directory": "",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
"""Settings: all in memory, nothing spilled to disk, nothing fetched from the network."""

OPTIMIZERS = frozenset({"unused_columns", "filter_pushdown"})
"""Optimizers that stay on: columns nobody names are not read, nor row groups of other windows.

They move whole conditions, and leave TRY around what stood in it. All others are off, those of
later versions too: `common_subexpressions` computes what an expression repeats before its TRY,
`in_clause` makes a join of a list within it, `expression_rewriter` casts the constants of a
comparison to the type of its column, where they may not fit, and `statistics_propagation` replaces
conditions by what the least and the largest value of many records say.
"""

ARRAY_BITS = 17
"""Groups are counted in an array up to so many bits: a SMALLINT and null, of any values. An array
of that size takes a millisecond to make, so questions have such groups where records are many
(`CellQuery.rows`)."""


class Instance:
    """One DuckDB, started when it is first needed; belongs to one thread.

    Args:
        limits: Memory and threads of all its connections together: questions follow each other.
    """

    def __init__(self, limits: Limits = NO_LIMITS) -> None:
        self._limits = limits
        self._first: duckdb.DuckDBPyConnection | None = None
        self._doubted = False

    def connection(self, before: duckdb.DuckDBPyConnection | None) -> duckdb.DuckDBPyConnection:
        """The connection from before, or a new one if there is none or it works no more.

        After an internal error DuckDB refuses all further questions to an instance. What is asked
        next finds a new one, so one batch that an engine fails at holds up no others. Until a
        question has failed nobody looks.
        """
        if before is not None and self._good(before):
            return before
        if self._first is None or not self._good(self._first):
            self._first = self._start()
        connection = self._first.cursor()
        connection.execute("SET enable_progress_bar = false")
        return connection

    def doubt(self) -> None:
        """Look at each connection before it is used from now on: a question has failed."""
        self._doubted = True

    def _good(self, connection: duckdb.DuckDBPyConnection) -> bool:
        return not self._doubted or _works(connection)

    def close(self) -> None:
        """End it once its other connections are closed; a later question starts it anew."""
        if self._first is not None:
            self._first.close()
            self._first = None

    def _start(self) -> duckdb.DuckDBPyConnection:
        import duckdb

        settings = SPILL_NOTHING | {"perfect_ht_threshold": ARRAY_BITS}
        if self._limits.memory is not None:
            settings["memory_limit"] = f"{self._limits.memory}B"
        if self._limits.threads is not None:
            settings["threads"] = self._limits.threads
        started = duckdb.connect(config=settings)
        started.execute("SET GLOBAL TimeZone = 'UTC'")
        known = started.execute("SELECT name FROM duckdb_optimizers()").fetchall()
        off = ",".join(name for (name,) in known if name not in OPTIMIZERS)
        started.execute(f"SET GLOBAL disabled_optimizers = '{off}'")
        return started


_KEPT = threading.local()


def kept() -> Instance:
    """The instance of this thread, kept: to start one takes longer than most questions.

    A forked process has its own. Threads of an instance do not survive a fork, so the one from
    before it is never touched again.
    """
    by_process: dict[int, Instance] = _KEPT.__dict__.setdefault("by_process", {})
    return by_process.setdefault(os.getpid(), Instance())


def _works(connection: duckdb.DuckDBPyConnection) -> bool:
    import duckdb

    try:
        connection.execute("SELECT 1").fetchall()
    except duckdb.Error:
        return False
    return True
