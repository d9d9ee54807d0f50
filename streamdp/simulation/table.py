"""A table whose truth may be seen, as a stream: cut and counted as production cuts and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from streamdp.errors import SourceError
from streamdp.kinds.study import Stream
from streamdp.types import Backend, Batch, Query


def table_stream(
    name: str,
    batches: Iterable[Batch],
    backend: Backend,
    query: Callable[[Batch], Query],
    group: int = 0,
) -> Stream:
    """All batches of a table, each with its exact answer.

    Args:
        name: Of its source.
        batches: In order.
        backend: Reads them.
        query: The question of each.
        group: Which of the question's groups is meant.

    Privacy: none. Every record is counted without noise; `permission` decides whether it may be.

    Raises:
        SourceError: There are no batches, or the table cannot be read.
    """
    taken = tuple(batches)
    if not taken:
        raise SourceError(
            f"the table has no batches that source {name} would see",
            hint="look at the source's start, end and lateness, or at the path",
        )
    backend.check(query(taken[0]), taken[0])
    asked = [query(each) for each in taken]
    answers = [backend.answer(*each) for each in zip(asked, taken, strict=True)]
    counts = tuple(each[group] for each in answers) if asked[0].by else tuple(answers)
    return Stream(name, taken, counts)
