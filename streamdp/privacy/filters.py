"""Caps as filters: whether one more charge fits, for charges chosen adaptively.

A sum of pure losses, or of zero-concentrated ones, with a fixed cap is a valid filter whatever the
charges depend on (Rogers et al. 2016; Feldman & Zrnic 2021; Whitehouse et al. 2023), and so is
either beside a sum of deltas with a cap of its own. Amounts are integers of 1e-9, of delta 1e-18.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from streamdp.privacy.amounts import ATTO, NANO, UNBOUNDED

Measure = Literal["epsilon", "rho", "delta"]

LARGEST_CAP, LARGEST_PRICE = 10**6, 1000
"""The largest cap and price, in epsilon or rho. A charge of epsilon has epsilon²/2 of rho at most,
so all charges that such a cap admits add up to less than 2^63 nano units, in both measures."""


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `nano` in any stretch of one width.

    Args:
        nano: The most that may be spent, in units of its measure.
        measure: Pure loss, zero-concentrated loss, or the chance to lose more than either.
        batches: Any so many batches that follow each other; 1 is each batch alone.
        seconds: All batches that some stretch of so many seconds touches. With neither, it is the
            whole life of the source.
    """

    nano: int
    measure: Measure = "epsilon"
    batches: int | None = None
    seconds: int | None = None

    @property
    def lifetime(self) -> bool:
        """Whether it is over all batches, so that it never frees anything."""
        return self.batches is None and self.seconds is None

    @property
    def name(self) -> str:
        """Name of the limit in messages: lifetime, batch, 7-batch, 30d."""
        if self.seconds is not None:
            units = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
            unit, size = next((u, size) for u, size in units if self.seconds % size == 0)
            return f"{self.seconds // size}{unit}"
        if self.batches is None:
            return "lifetime"
        return "batch" if self.batches == 1 else f"{self.batches}-batch"

    @property
    def unit(self) -> int:
        """Units of its measure in an amount of one."""
        return ATTO if self.measure == "delta" else NANO

    def implied_by(self, other: Limit) -> bool:
        """Whether the other limit, kept, keeps this one: it is as wide or wider, and no higher."""
        if other.measure != self.measure or other.nano > self.nano:
            return False
        if other.lifetime:
            return True
        if self.batches is not None:
            return other.batches is not None and other.batches >= self.batches
        return (
            self.seconds is not None and other.seconds is not None and other.seconds >= self.seconds
        )


NO_DELTA_LIMIT = Limit(0, "delta")
"""Limit of caps that say nothing of delta."""


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that one record, or one unit that returns, may lose.

    Args:
        batch_nano: In all releases of one batch. A record belongs to one batch, so this bounds
            its loss for ever, if its unit never returns.
        lifetime_nano: In all releases of the source: the bound for units that return every batch.
        windows: Further limits, for units that return in some stretch, and all limits of delta.
        measure: Of the first two.
    """

    batch_nano: int
    lifetime_nano: int
    windows: tuple[Limit, ...] = ()
    measure: Measure = "epsilon"

    @property
    def limits(self) -> tuple[Limit, ...]:
        """All caps, the widest first."""
        lifetime = Limit(self.lifetime_nano, self.measure)
        return (lifetime, Limit(self.batch_nano, self.measure, batches=1), *self.windows)

    @property
    def deltas(self) -> tuple[Limit, ...]:
        """The limits of delta; without one over the lifetime no delta may be spent."""
        found = tuple(limit for limit in self.windows if limit.measure == "delta")
        return found if any(limit.lifetime for limit in found) else (NO_DELTA_LIMIT, *found)

    def limits_of(self, item: Item) -> tuple[Limit, ...]:
        """The limits that say something about a charge."""
        if not item.delta_atto:
            return tuple(limit for limit in self.limits if limit.measure != "delta")
        return (*self.deltas, *(limit for limit in self.limits if limit.measure != "delta"))

    def delta_within(self, stretch: Limit) -> int:
        """The most delta in a stretch as wide as a limit, by those that are as wide or wider."""
        return min(
            limit.nano
            for limit in self.deltas
            if Limit(limit.nano, "delta", stretch.batches, stretch.seconds).implied_by(limit)
        )

    def above(self, other: Caps) -> tuple[Limit, ...]:
        """The other's limits that these caps do not keep: where these allow more."""
        mine = (*self.limits, *self.deltas)
        theirs = dict.fromkeys((*other.limits, *other.deltas))
        return tuple(old for old in theirs if not any(map(old.implied_by, mine)))


@dataclass(frozen=True, slots=True)
class Place:
    """A batch among the batches of its source.

    Args:
        key: Its key.
        start: First second of its window; of a file, when it arrived.
        end: Second after its window; of a file, when it arrived.
    """

    key: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Item:
    """A charge as a batch bears it; in many batches it may be one, and counts once.

    Args:
        seq: Names the charge: its row in the ledger.
        epsilon_nano: Pure loss; None where there is none.
        rho_nano: Zero-concentrated loss.
        delta_atto: The chance to lose more, in units of 1e-18.
    """

    seq: int
    epsilon_nano: int | None
    rho_nano: int
    delta_atto: int = 0

    def amount(self, measure: Measure) -> int:
        """The loss in one measure; no cap has room for `UNBOUNDED`."""
        if measure == "delta":
            return self.delta_atto
        if measure == "rho":
            return self.rho_nano
        return UNBOUNDED if self.epsilon_nano is None else self.epsilon_nano


Borne = Mapping[str, Sequence[Item]]
"""Charges of each batch, by its key."""


def fullest(
    limit: Limit,
    near: Sequence[Place],
    borne: Borne,
    key: str | None = None,
    new: Item | None = None,
) -> int:
    """The most that is spent in a stretch of a limit's width.

    Args:
        limit: One that is not over the lifetime.
        near: Places in the order of their source.
        borne: What they bear.
        key: Only stretches that hold this batch; all that share one with it must be near.
        new: Added to what it bears; a charge that is in the stretch already adds nothing.
    """
    near = _in_order(limit, near)
    items = [[*borne.get(place.key, ())] for place in near]
    at = None
    if key is not None:
        at = next(index for index, place in enumerate(near) if place.key == key)
        items[at] += [new] if new else []
    most, total, first, last = 0, 0, 0, 0
    held: Counter[int] = Counter()
    for low, high in _stretches(limit, near):
        for entering in items[last:high]:
            total += sum(_enter(held, item, limit.measure) for item in entering)
        for leaving in items[first:low]:
            total -= sum(_leave(held, item, limit.measure) for item in leaving)
        first, last = low, high
        if at is None or low <= at < high:
            most = max(most, total)
    return most


def full_since(limit: Limit, near: Sequence[Place], borne: Borne, room: int) -> Place | None:
    """The last batch that must have left the stretch before the next batch finds some room.

    Args:
        limit: One that is not over the lifetime.
        near: The last places of the source, in order: all that share a stretch with the next.
        borne: What they bear.
        room: In the measure of the limit; at most the limit.

    Returns:
        None if the very next batch finds it.
    """
    held: Counter[int] = Counter()
    total = room
    for place in reversed(_in_order(limit, near)):
        total += sum(_enter(held, item, limit.measure) for item in borne.get(place.key, ()))
        if total > limit.nano:
            return place
    return None


def _in_order(limit: Limit, near: Sequence[Place]) -> Sequence[Place]:
    if limit.seconds is None:
        return near
    return sorted(near, key=lambda place: (place.end, place.start))


def _stretches(limit: Limit, near: Sequence[Place]) -> Iterator[tuple[int, int]]:
    """Index ranges of the widest stretches; both ends only rise.

    A stretch of time that slides touches a window from its last moment on, so the widest ones
    begin there: they hold every window that ends no earlier and starts less than so many seconds
    after that end. Days in a stretch of 30 days are 31.
    """
    if limit.batches is not None:
        for low in range(max(len(near) - limit.batches, 0) + 1):
            yield low, min(low + limit.batches, len(near))
        return
    starts = list(accumulate((place.start for place in reversed(near)), min))[::-1]
    high, width = 0, limit.seconds or 0
    for low, place in enumerate(near):
        high = max(high, low + 1)
        while high < len(near) and starts[high] < place.end + width:
            high += 1
        yield low, high


def _enter(held: Counter[int], item: Item, measure: Measure) -> int:
    held[item.seq] += 1
    return item.amount(measure) if held[item.seq] == 1 else 0


def _leave(held: Counter[int], item: Item, measure: Measure) -> int:
    held[item.seq] -= 1
    return item.amount(measure) if held[item.seq] == 0 else 0
