"""The data sheet of a job, for the public: what, how often, how accurate, how private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.privacy.amounts import epsilon_text
from streamdp.privacy.price import Price
from streamdp.reports.releases.series import columns_of
from streamdp.sections.schedules import Schedule
from streamdp.store.ledger.privacy_guarantee import claim_of, parameters_over_time
from streamdp.store.reading.browse import count_releases, newest_releases
from streamdp.types import Column, Json, Release

WORDS = {
    "label": "names the row",
    "value": "what was published, noise included",
    "origin": "the batch of a row that was found; or of its value, measured: drawn by itself;"
    " inferred: computed from noisy counts and past releases",
    "estimate": "what this and earlier releases say together",
    "lower": "lower end of an interval",
    "upper": "upper end of an interval",
    "error": "what error to expect",
    "batch": "of the batch or group: of its records that have what is asked for, a value for a"
    " quantile; the same in each of its rows",
    "flag": "a warning that follows from releases alone",
    "state": "what became of the row",
}
_UNITS = ((604_800, "week"), (86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def data_sheet(
    configuration: Configuration, database: Database, job: str, declared: Sequence[Column]
) -> dict[str, Json]:
    """Headings, and under each what there is to say: facts, and rows of a table."""
    release = configuration.releases[job]
    last = next(iter(newest_releases(database, job, 1)), None)
    columns = () if last is None else columns_of([last], declared)
    asked = parameters_over_time(database, job)
    facts = {} if not asked else {**asked[-1]}
    for inner in ("since_batch", "ledger_row", "mechanism", "relation", "cells"):
        facts.pop(inner, None)
    return {
        "what": {
            "statistic": release.kind,
            **{name: _said(value) for name, value in facts.items()},
        },
        "how often": {
            "schedule": often(release.schedule),
            "releases so far": count_releases(database, job),
            **({} if last is None else {"last batch": last.batch}),
        },
        "how accurate": _accuracy(last, columns),
        "how private": _private(
            release.price, {} if last is None else claim_of(database, last.id) or {}
        ),
        "columns": _columns(columns),
    }


def _private(price: Price, claim: Mapping[str, Json]) -> dict[str, Json]:
    """The price of a release and the claim of the last; a price that both say is said once."""
    of_one = epsilon_text(price.nano)
    rest = {name: said for name, said in claim.items() if (name, said) != (price.measure, of_one)}
    return {f"{price.measure} of one release": of_one, **rest}


def often(schedule: Schedule) -> str:
    """When a job wakes, in words."""
    if schedule.cron is not None:
        return f"cron {schedule.cron} (UTC)"
    if schedule.on is not None:
        return "as soon as a batch is there"
    seconds = schedule.every or 0
    size, name = next(each for each in _UNITS if seconds % each[0] == 0)
    count = seconds // size
    return f"every {name}" if count == 1 else f"every {count} {name}s"


def _accuracy(last: Release | None, columns: Sequence[Column]) -> dict[str, Json]:
    """Published errors of the last release, by column."""
    if last is None:
        return {"known": "with the first release"}
    found = {}
    for column in columns:
        values = [row.get(column.name) for row in last.rows]
        numbers = [float(value) for value in values if isinstance(value, int | float)]
        if column.role == "error" and numbers:
            same = min(numbers) == max(numbers)
            of = f"{min(numbers):g}" if same else f"{min(numbers):g} to {max(numbers):g}"
            often = "" if column.level is None else f", {column.level:.0%} of the time"
            found[column.name.replace("_", " ")] = f"{of} {column.unit}".strip() + often
        elif column.role == "upper" and column.level is not None:
            found[f"interval around {column.about}"] = (
                f"meant to hold it {column.level:.0%} of the time"
            )
    return found or {"known": "no error is published with this job"}


def _columns(columns: Sequence[Column]) -> list[Json]:
    return [
        {"column": each.name, "meaning": WORDS[each.role], "around": each.about, "unit": each.unit}
        for each in columns
    ]


def _said(value: Json) -> Json:
    return ", ".join(map(str, value)) if isinstance(value, list) else value
