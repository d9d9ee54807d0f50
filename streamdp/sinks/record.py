"""A release as sinks write it: one record, or one flat line for each of its rows."""

from __future__ import annotations

from datetime import UTC, datetime

from streamdp.privacy.amounts import epsilon_text
from streamdp.types import Json, Release


def record(release: Release) -> dict[str, Json]:
    """The release as one JSON object."""
    return {
        "release_id": release.id,
        "job": release.job,
        "batch": release.batch,
        "window_start": iso(release.window_start),
        "window_end": iso(release.window_end),
        "kind": release.kind,
        "epsilon": epsilon_text(release.epsilon_nano),
        "released_at": iso(release.released_at),
        "rows": [dict(row) for row in release.rows],
    }


def flat(release: Release) -> list[dict[str, Json]]:
    """One line a row, each with the facts of the release in front."""
    whole = record(release)
    del whole["rows"]
    return [{**whole, **row} for row in release.rows]


def iso(seconds: int | None) -> str | None:
    """POSIX seconds as ISO 8601 in UTC.

    >>> iso(1_356_998_400)
    '2013-01-01T00:00:00Z'
    """
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
