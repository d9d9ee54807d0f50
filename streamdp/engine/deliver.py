"""Releases out: what the outbox owes, at least once, in order for each sink."""

from __future__ import annotations

from collections.abc import Mapping

from streamdp.engine.protocols import Store
from streamdp.errors import StreamdpError
from streamdp.types import Delivery, Log, Sink


def deliver(store: Store, sinks: Mapping[str, Sink], now: int, log: Log) -> list[StreamdpError]:
    """Try every delivery that is due; a sink that fails holds up its own later ones alone.

    A sink that is no longer configured keeps its debts until it is configured again.

    Returns:
        Why sinks failed, one error a sink.
    """
    delivered: list[Delivery] = []
    failed: dict[str, Delivery] = {}
    errors: list[StreamdpError] = []
    for delivery, release in store.due_deliveries(now, sinks.keys()):
        if delivery.sink in failed:
            continue
        about = {"job": release.job, "batch": release.batch, "release": release.id}
        try:
            sinks[delivery.sink].deliver(release)
        except StreamdpError as error:
            failed[delivery.sink] = delivery
            errors.append(error)
            log("sink.failed", **about, sink=delivery.sink, code=error.code)
        else:
            delivered.append(delivery)
            log("release.delivered", **about, sink=delivery.sink)
    if delivered or failed:
        store.confirm(delivered, failed.values(), now)
    return errors
