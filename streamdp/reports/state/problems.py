"""Problems of sources now: those that the store remembers, and paths that find nothing."""

from __future__ import annotations

from collections.abc import Iterator

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.files import nearest, resolve
from streamdp.objects.address import is_address
from streamdp.sources.windows import Windows
from streamdp.store.problems import BatchProblem, problems


def wrong_now(configuration: Configuration, database: Database | None) -> Iterator[BatchProblem]:
    """Problems of configured sources, jobs and gates, in public words.

    Args:
        configuration: Whose names count.
        database: The store; None where there is none yet.
    """
    yield from unfound(configuration)
    known = {*configuration.releases, *configuration.all_gates()}
    known |= {f"source {name}" for name in configuration.sources}
    for problem in problems(database) if database is not None else ():
        if problem.about in known:
            yield problem


def unfound(configuration: Configuration) -> Iterator[BatchProblem]:
    """Paths that find no file; a storage is not asked for objects."""
    for name, source in configuration.sources.items():
        files = source.path and source.table_name() is None and not source.is_lake()
        files = files and not is_address(source.path)
        if files and not resolve(source.path):
            waits = "" if isinstance(source.batches, Windows) else " yet"
            yield BatchProblem(
                f"source {name}",
                "",
                "no-file",
                f"{source.path} finds no file{waits}: {nearest(source.path)}",
                0,
            )
