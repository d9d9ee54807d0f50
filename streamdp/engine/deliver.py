"""Deliver what the outbox holds, at least once, in order for each sink."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from streamdp.engine.job import GivesUp
from streamdp.errors import RefusedError, SinkError, StreamdpError
from streamdp.types import Delivery, Failure, Log, Release, Sink

if TYPE_CHECKING:
    from streamdp.store.sqlite import SqliteStore


def deliver(
    store: SqliteStore, sinks: Mapping[str, Sink], now: int, log: Log, most: int | None = None
) -> tuple[int, list[StreamdpError]]:
    """Try deliveries that are due; a sink that fails holds up its own later ones alone.

    A sink that is no longer configured keeps its debts until it is configured again. One that
    gives up after some attempts leaves a dead letter, which holds up nothing.

    Args:
        store: With the outbox.
        sinks: By name.
        now: POSIX time.
        log: What was done.
        most: Try no more of them; by default all.

    Returns:
        How many were taken, and why sinks failed, one error a sink.
    """
    delivered: list[Delivery] = []
    failed: dict[str, Failure] = {}
    errors: list[StreamdpError] = []
    for delivery, release in store.due_deliveries(now, sinks.keys(), most):
        if delivery.sink in failed:
            continue
        about = {"job": release.job, "batch": release.batch, "release": release.id}
        sink = sinks[delivery.sink]
        error = _try(sink, release)
        if error is None:
            delivered.append(delivery)
            log("release.delivered", **about, sink=delivery.sink)
            continue
        failure = Failure(delivery, error.what, _is_last(sink, delivery, error))
        failed[delivery.sink] = failure
        errors.append(error)
        event = "sink.gave-up" if failure.dead else "sink.failed"
        log(event, **about, sink=delivery.sink, code=error.code, reason=error.what)
    if delivered or failed:
        store.confirm(delivered, failed.values(), now)
    return len(delivered), errors


def _try(sink: Sink, release: Release) -> SinkError | None:
    """Hand a release over; an error of any type is the sink's own, and ends no other work.

    Of a foreign exception the type alone is told: its text may quote what the sink has read.
    """
    try:
        sink.deliver(release)
    except SinkError as error:
        return error
    except Exception as error:  # noqa: BLE001
        return SinkError(f"sink {sink.name} failed: {type(error).__name__}", sink=sink.name)
    return None


def _is_last(sink: Sink, delivery: Delivery, error: SinkError) -> bool:
    """Whether a delivery is not tried again after this attempt."""
    gives_up = isinstance(sink, GivesUp) and delivery.attempts + 1 >= sink.attempts
    return gives_up or isinstance(error, RefusedError)
