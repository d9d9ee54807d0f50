"""The state of a job: one value that status, API, metrics and page read."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.privacy.filters import Item, Measure
from streamdp.reports.guarantee.prices import Purse, price_of_release, purse_of
from streamdp.reports.releases.suspicion import suspicions
from streamdp.reports.state.holds import Condition, Hold, holds
from streamdp.reports.state.status import DaemonState, Held
from streamdp.sections.schedules import next_times
from streamdp.store.ledger.cap_usage import held_by
from streamdp.store.ledger.ledger import passed_over
from streamdp.store.pulse import Pulse
from streamdp.store.reading.reports import Spent, job_report, standing

Form = Literal["text", "texts", "count", "time", "amount", "delta", "holds"]
"""What a value is: times are POSIX seconds, amounts nano units, delta is in units of 1e-18."""


def _shown(
    about: str, form: Form, *, gauge: str = "", counter: str = "", optional: bool = False
) -> Any:
    """A field that the API shows under its name, and metrics under the name given here."""
    return field(
        metadata={
            "about": about,
            "form": form,
            "gauge": gauge,
            "counter": counter,
            "optional": optional,
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One job: what the ledger knows of it, what holds it, and what its budget has room for.

    The API, its schema and the metrics of a job follow from the fields that say what they are
    about. An optional one is left out of an answer where it is None.

    Args:
        condition: What holds the job first, whether the daemon works or not. While the store
            cannot be written each job is `failing` that nothing else holds.
        held: Caps that have no room for its next release, and when each frees.
        price: Of one release.
    """

    job: str = _shown("Name of a job.", "text")
    source: str = _shown("Source whose batches it releases.", "text")
    state: str = _shown(
        "`active`; or what holds it: `paused`, `waits`, `exhausted`, `rests`, `failing`, `late`"
        " (it has missed a turn of its schedule) or `empty` (no batch has arrived); or `daemon`"
        " and the daemon's state, where nothing else holds it.",
        "text",
    )
    holds: tuple[Hold, ...] = _shown("All that holds it, since when and until when.", "holds")
    releases: int = _shown("Releases of a job.", "count", counter="releases")
    last_batch: str | None = _shown("Batch of its newest release.", "text")
    last_released_at: int | None = _shown(
        "When a job last released, 0 before.", "time", gauge="last_release_timestamp_seconds"
    )
    next_at: int | None = _shown(
        "When a job wakes next.", "time", gauge="next_due_timestamp_seconds"
    )
    epsilon: int | None = _shown(
        "Price of one release; none where it is paid in rho.", "amount", gauge="epsilon_of_release"
    )
    rho: int | None = _shown(
        "Price of one release that is paid in rho.",
        "amount",
        gauge="rho_of_release",
        optional=True,
    )
    delta: int | None = _shown(
        "Delta of one release; none where it has no such chance.",
        "delta",
        gauge="delta_of_release",
        optional=True,
    )
    measure: Measure = _shown("Measure in which it is charged: `epsilon` or `rho`.", "text")  # noqa: RUF009
    spent: int = _shown("Sum of its charges.", "amount")
    releases_left: int | None = _shown(
        "Releases the lifetime cap has room for.", "count", gauge="releases_left"
    )
    burnt: int = _shown("Charges without a release.", "count", counter="burnt")
    passed_over: int = _shown("Batches refused by the caps in force.", "count", gauge="passed_over")
    undelivered: int = _shown("Deliveries that sinks owe an answer.", "count")
    dead_letters: int = _shown("Deliveries that were given up.", "count")
    stands_to: str | None = _shown(
        "The last batch that its last release stands for, if a gate let it stand.", "text"
    )
    suspect: tuple[str, ...] = _shown("What is odd about its newest release.", "texts")
    condition: Condition
    held: Held
    price: Item


SHOWN = tuple(each for each in fields(JobView) if each.metadata)
"""Fields that say what they are about, in their order."""


def job_view(
    configuration: Configuration,
    database: Database,
    job: str,
    now: int,
    daemon: DaemonState,
    pulse: Pulse | None,
    *,
    purse: Purse | None = None,
    spent: Spent | None = None,
) -> JobView:
    """Where one job stands.

    Args:
        configuration: Of the job.
        database: The store.
        job: Its name.
        now: POSIX time.
        daemon: State of the daemon.
        pulse: Of the daemon that works.
        purse: Of its source, where it is known.
        spent: What it was charged, where that is known.
    """
    release, report = configuration.releases[job], job_report(database, job, spent)
    price = price_of_release(configuration, database, job)
    purse = purse or purse_of(database, release.source)
    held = held_by(database, release.source, price)
    found = holds(configuration, database, job, now, held, pulse)
    unwritable = pulse is not None and bool(pulse.store)
    condition = next((each.state for each in found), "failing" if unwritable else "active")
    newest = (
        list(standing(database, job, now).values())[-1:] if job in configuration.gated() else []
    )
    return JobView(
        job=job,
        source=release.source,
        state=condition if daemon == "running" or found else f"daemon {daemon}",
        holds=found,
        releases=report.releases,
        last_batch=report.last_batch,
        last_released_at=report.last_released_at,
        next_at=next(iter(next_times(release.schedule, now, 1)), None),
        epsilon=price.epsilon_nano,
        rho=price.rho_nano if price.epsilon_nano is None else None,
        delta=price.delta_atto or None,
        measure=report.measure,
        spent=report.spent_nano,
        releases_left=None if purse is None else purse.lasts(price),
        burnt=report.burnt,
        passed_over=len(passed_over(database, release.source, job)),
        undelivered=report.undelivered,
        dead_letters=report.dead_letters,
        stands_to=next((each.last for each in newest if each.of == report.last_batch), None),
        suspect=suspicions(configuration, database, job),
        condition=condition,
        held=held,
        price=price,
    )
