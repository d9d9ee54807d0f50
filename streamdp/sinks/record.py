"""A release as sinks write it: one record, or one flat line for each of its rows."""

from __future__ import annotations

from streamdp.privacy.amounts import ATTO, NANO, delta_text, epsilon_text
from streamdp.text import iso
from streamdp.types import Json, Release

NOTICES = {"gate": "acceptance", "standing": "standing", "alert": "alert", "rollup": "rollup"}
"""Types of what is no release, by its kind."""


def record(release: Release) -> dict[str, Json]:
    """The release as one JSON object; `type` tells rollups, notices and alerts: they are free."""
    return {
        "type": NOTICES.get(release.kind, "release"),
        "release_id": release.id,
        "job": release.job,
        "batch": release.batch,
        "window_start": iso(release.window_start),
        "window_end": iso(release.window_end),
        "kind": release.kind,
        **_cost(release),
        "released_at": iso(release.released_at),
        "rows": [dict(row) for row in release.rows],
    }


def _cost(release: Release) -> dict[str, Json]:
    """Pure loss; of a release that has none, the zero-concentrated one beside; delta, if any."""
    atto, rho = release.delta_atto, release.rho_nano or 0
    delta = {"delta": atto / ATTO, "delta_exact": delta_text(atto)} if atto else {}
    if release.epsilon_nano is not None:
        exact = epsilon_text(release.epsilon_nano)
        return {"epsilon": release.epsilon_nano / NANO, "epsilon_exact": exact, **delta}
    return {
        "epsilon": None,
        "epsilon_exact": None,
        "rho": rho / NANO,
        "rho_exact": epsilon_text(rho),
        **delta,
    }


def flat(release: Release) -> list[dict[str, Json]]:
    """One line a row, each with the facts of the release in front."""
    whole = record(release)
    del whole["rows"], whole["type"]
    return [{**whole, **row} for row in release.rows]
