"""The schema is what the steps make: nothing was changed, nothing is gone."""

from __future__ import annotations

from sqlite_utils import Database

from streamdp.errors import IntegrityError
from streamdp.store.migrations import STEPS, VERSIONS, apply


def require_schema(database: Database) -> None:
    """Compare the schema with the one that the steps make.

    Raises:
        IntegrityError: A table, index or trigger was changed or removed.
    """
    wanted = Database(memory=True, execute_plugins=False)
    wanted.execute(VERSIONS)
    for statements in STEPS:
        apply(wanted, statements)
    if not _schema(wanted) <= _schema(database):
        raise IntegrityError(
            "the schema of the store was altered",
            hint="restore the store from a backup; what was spent since must be assumed spent",
        )


def _schema(database: Database) -> set[tuple[str, ...]]:
    """Kind, name, table and text of all there is, however SQLite quotes and breaks its lines."""
    rows = database.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master")
    return {(*row[:3], " ".join(str(row[3]).replace('"', "").split())) for row in rows}
