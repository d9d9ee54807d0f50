"""The `Database` of sqlite-utils, imported without pandas; its questions are single statements."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from threading import get_ident
from types import ModuleType
from typing import Any


@dataclass(frozen=True, eq=False)
class _Absent(MetaPathFinder):
    """A finder to which a package is not installed, in the thread that made it."""

    package: str
    thread: int = field(default_factory=get_ident)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse the package; whatever else is asked for, others find."""
        if name == self.package and get_ident() == self.thread:
            raise ModuleNotFoundError(f"no {name} for this import", name=name)
        return None


@contextmanager
def _without(package: str) -> Iterator[None]:
    finder = _Absent(package)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


# Where pandas is installed, sqlite-utils imports it to know the type of a column of time stamps,
# which no store has. It would be most of the time that a command takes to start.
with _without("pandas"):
    from sqlite_utils.db import Database as SavingDatabase
    from sqlite_utils.db import NoTable


class Database(SavingDatabase):
    """A database that is asked by one statement, where sqlite-utils sets a savepoint about each."""

    def query(
        self, sql: str, params: Sequence[Any] | dict[str, Any] | None = None
    ) -> Generator[dict[str, Any], None, None]:
        """Return the rows of a SELECT, by the names of its columns."""
        cursor = self.conn.execute(sql, params or ())
        names = [each[0] for each in cursor.description]
        return (dict(zip(names, row, strict=True)) for row in cursor)


__all__ = ["Database", "NoTable"]
