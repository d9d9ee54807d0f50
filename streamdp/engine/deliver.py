"""Releases and notices out: what the outbox owes, at least once, in order for each sink."""

from __future__ import annotations

from collections.abc import Mapping

from streamdp.engine.protocols import GivesUp, Store
from streamdp.errors import StreamdpError
from streamdp.types import Delivery, Log, Sink


def deliver(store: Store, sinks: Mapping[str, Sink], now: int, log: Log) -> list[StreamdpError]:
    """Try every delivery that is due; a sink that fails holds up its own later ones alone.

    A sink that is no longer configured keeps its debts until it is configured again. One that
    gives up after some attempts leaves a dead letter, which holds up nothing.

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
            gone = _is_last(sinks[delivery.sink], delivery)
            event = "sink.gave-up" if gone else "sink.failed"
            log(event, **about, sink=delivery.sink, code=error.code)
        else:
            delivered.append(delivery)
            log("release.delivered", **about, sink=delivery.sink)
    if delivered or failed:
        dead = [each for each in failed.values() if _is_last(sinks[each.sink], each)]
        again = [each for each in failed.values() if each not in dead]
        store.confirm(delivered, again, dead, now)
    return errors


def _is_last(sink: Sink, delivery: Delivery) -> bool:
    """Whether a sink gives up after this attempt."""
    return isinstance(sink, GivesUp) and delivery.attempts + 1 >= sink.attempts
