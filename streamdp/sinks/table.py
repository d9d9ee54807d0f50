"""A table in the SQLite store: one line for each row of a release."""

from __future__ import annotations

import sqlite3

from sqlite_utils import Database
from sqlite_utils.db import NoTable

from streamdp.errors import SinkError
from streamdp.sinks.record import flat
from streamdp.types import Release


class TableSink:
    """Upserts on (release_id, row), so a second delivery changes nothing.

    Args:
        name: Of the sink.
        database: Connection of the calling thread, in autocommit.
        table: Made by the first release.
    """

    def __init__(self, name: str, database: Database, table: str) -> None:
        self.name = name
        self._database = database
        self._table = table

    def deliver(self, release: Release) -> None:
        """Write the lines in one transaction.

        Raises:
            SinkError: SQLite refused.
        """
        lines = [{"row": index, **line} for index, line in enumerate(flat(release))]
        try:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.table(self._table).upsert_all(
                lines,
                pk=("release_id", "row"),
                strict=True,
                alter=True,
                columns={"epsilon": float},
            )
            self._database.execute("COMMIT")
        except (sqlite3.Error, NoTable) as error:
            self._database.conn.rollback()
            raise SinkError(
                f"sink {self.name} cannot write: {error}",
                where=f"table {self._table} of the store",
                hint="give the sink a table that nothing else writes to",
                sink=self.name,
            ) from None
        except BaseException:
            self._database.conn.rollback()
            raise
