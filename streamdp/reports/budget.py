"""What a batch costs, what is spent and left of every source, and for how long it lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.errors import ConfigurationError
from streamdp.privacy.amounts import NANO, UNBOUNDED, exact, nano_up
from streamdp.privacy.events import pure, rho_of
from streamdp.privacy.filters import Item, Limit, Measure
from streamdp.reports.releases.sentences import day_of
from streamdp.store.ledger.chain import spent_of
from streamdp.store.ledger.charges import borne_by, last_places
from streamdp.store.ledger.ledger import Room, caps_of, declaration_of, rooms
from streamdp.store.reading.places import moment_of_key
from streamdp.store.reading.reports import ScopeReport, Taken, last_rho, scope_reports, taken_by
from streamdp.types import Json

RECENT = 30
"""Batches whose charges are the pace."""

LAST_MOMENT = 4_102_444_800
"""The year 2100: a budget that lasts longer has no end worth naming."""

ANOTHER, LIFETIME = "another", "lifetime"
"""What may be asked of a source: the price of a job more, and another cap."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Prices and caps other than those in force.

    Args:
        prices: Of jobs and gates, in the measure each is paid in; 0 for none of them.
        another: Price of one more job of a source, in epsilon.
        lifetimes: Caps over the lifetime of sources, in their measures.
    """

    prices: Mapping[str, Fraction] = field(default_factory=dict)
    another: Mapping[str, Fraction] = field(default_factory=dict)
    lifetimes: Mapping[str, Fraction] = field(default_factory=dict)

    def is_about(self, configuration: Configuration, scope: str) -> bool:
        """Whether any of it is of one source."""
        gates = set(configuration.gates_of(scope))
        of_tasks = (
            name in gates
            or (name in configuration.releases and configuration.releases[name].source == scope)
            for name in self.prices
        )
        return scope in self.another or scope in self.lifetimes or any(of_tasks)


NOTHING_ELSE = WhatIf()


def questions(configuration: Configuration) -> list[str]:
    """What may be asked about: each job and gate, one more job and the cap of each source."""
    tasks = [*configuration.releases, *configuration.all_gates()]
    of_sources = [
        f"{name}.{what}" for name in configuration.sources for what in (ANOTHER, LIFETIME)
    ]
    return tasks + [name for name in of_sources if name not in tasks]


def what_if(configuration: Configuration, asked: Mapping[str, str]) -> WhatIf:
    """Other prices and caps, as a person wrote them.

    Args:
        configuration: Whose.
        asked: Amounts by the names in `questions`.

    Raises:
        ConfigurationError: A name that is none of them, or an amount that cannot be spent.
    """
    names = questions(configuration)
    found: dict[str, dict[str, Fraction]] = {"": {}, ANOTHER: {}, LIFETIME: {}}
    for name, text in asked.items():
        if name not in names:
            raise ConfigurationError(
                f"{name} is neither a job, a gate, nor SOURCE.another or SOURCE.lifetime",
                hint=f"there are: {', '.join(names)}",
            )
        hint = "give a number, as 0.1"
        try:
            amount = exact(text)
        except ValueError as error:
            raise ConfigurationError(f"{name}: {error}", hint=hint) from None
        if not 0 <= amount <= 10**9:
            raise ConfigurationError(f"{name}: {text} is not between 0 and 1e9", hint=hint)
        source, _, what = name.rpartition(".")
        is_task = name in configuration.releases or name in configuration.all_gates()
        found["" if is_task else what][name if is_task else source] = amount
    return WhatIf(found[""], found[ANOTHER], found[LIFETIME])


@dataclass(frozen=True, slots=True)
class Lasts:
    """How long a budget lasts at one price of a batch.

    Args:
        price: Of all releases and gates of a batch; None for the pace.
        batches: How many more the lifetime caps have room for; None at no price.
        until: Where the last of them lies, in POSIX seconds; None where batches are no windows
            and have no dates in their keys, or lie beyond `LAST_MOMENT`.
        refused_by: Names of caps that do not admit so much with every batch, if it goes on so.
        ends: Where the source ends, if that is before `until`.
    """

    price: Item | None
    batches: int | None
    until: int | None
    refused_by: tuple[str, ...] = ()
    ends: int | None = None


def prices_of_batch(
    configuration: Configuration, database: Database, scope: str, other: WhatIf = NOTHING_ELSE
) -> dict[str, Item]:
    """Price of each release and gate of a source for one batch; a gate may cost a run with each."""
    found = {}
    for name, job in configuration.releases.items():
        if job.source == scope:
            found[name] = price_of_release(configuration, database, name)
            if name in other.prices:
                found[name] = _item(other.prices[name], job.price.measure, found[name])
    for name in configuration.gates_of(scope):
        found[name] = price_of_run(configuration, database, name)
        if name in other.prices:
            found[name] = _item(other.prices[name], "epsilon", found[name])
    if other.another.get(scope):
        found[ANOTHER] = _item(other.another[scope], "epsilon", Item(0, 0, 0))
    return found


def _item(amount: Fraction, measure: Measure, was: Item) -> Item:
    """A price in both measures; of one in epsilon, the most rho that any draw of it loses."""
    if not amount:
        return Item(0, 0, 0)
    if measure == "rho":
        return replace(was, rho_nano=nano_up(amount))
    if was.epsilon_nano == nano_up(amount):
        return was
    return Item(0, nano_up(amount), nano_up(rho_of(pure(amount))), was.delta_atto)


def sum_of(items: Iterable[Item]) -> Item:
    """Several charges as one; without a pure loss where one has none."""
    items = list(items)
    known = [each.epsilon_nano for each in items if each.epsilon_nano is not None]
    epsilon = sum(known) if len(known) == len(items) else None
    rho, delta = sum(each.rho_nano for each in items), sum(each.delta_atto for each in items)
    return Item(0, epsilon, rho, delta)


@dataclass(frozen=True, slots=True)
class BatchClock:
    """Where the batches of a source lie.

    Args:
        last: Where the last that was charged begins; None where that is not known.
        every: Seconds from one to the next.
        charged: What each of the last batches bears together, in the measure of the caps, a run
            of a gate once; and how many they are.
        ends: Where the source ends; None where batches come for ever.
    """

    last: int | None
    every: int
    charged: int
    number: int
    ends: int | None = None

    def ends_before(self, more: int | None) -> int | None:
        """Where the source ends, if the batch that is so many behind the last never comes."""
        found = self.place_of(more)
        never = self.ends is not None and found is not None and found >= self.ends
        return self.ends if never else None

    def place_of(self, more: int | None) -> int | None:
        """Where the batch lies that is so many behind the last."""
        if more is None or self.last is None:
            return None
        found = self.last + more * self.every
        return found if found < LAST_MOMENT else None


def clock(
    database: Database, scope: str, measure: Measure, every: int | None, ends: int | None = None
) -> BatchClock:
    """Where the last batches of a source lie, and what they were charged."""
    near = last_places(database, Limit(0, measure, batches=2 * RECENT + 1), scope)
    borne = borne_by(database, scope, near)
    charged_at = [at for at, place in enumerate(near) if borne.get(place.key)]
    near = near[: charged_at[-1] + 1][-RECENT:] if charged_at else []
    items = {item for place in near for item in borne.get(place.key, ())}
    charged = sum(item.amount(measure) for item in items)
    if every is None:
        dated = [at for place in near if (at := moment_of_key(place.key)) is not None]
        known = len(dated) == len(near) > 1 and dated == sorted(dated)
        apart = (dated[-1] - dated[0]) // (len(dated) - 1) if known else 0
        return BatchClock(dated[-1] if apart else None, apart, charged, len(near))
    # Batches that grow all begin as one: they lie at their ends.
    last = near[-1].end - every if near else None
    return BatchClock(last, every, charged, len(near), ends)


def lasts(price: Item, found: Sequence[Room], at: BatchClock, measure: Measure, cap: int) -> Lasts:
    """How long the lifetime caps last if every batch costs as much.

    Args:
        price: Of a batch.
        found: Every cap.
        at: Where batches lie.
        measure: Of the caps on batch and lifetime.
        cap: Over the lifetime, in nano units, in the place of the one in force.
    """
    batches = []
    for room in found:
        cost = price.amount(room.limit.measure)
        if room.limit.lifetime and cost:
            most = cap if room.limit.measure == measure else room.limit.nano
            batches.append(max(most - room.fullest_nano, 0) // cost)
    number = min(batches, default=None)
    refused = _refused(price, found, at.every)
    return Lasts(price, number, at.place_of(number), refused, at.ends_before(number))


def _refused(price: Item, found: Sequence[Room], every: int) -> tuple[str, ...]:
    """Caps over batches and windows that are below so many batches of a price."""
    refused = []
    for room in found:
        limit = room.limit
        if limit.lifetime:
            continue
        times = limit.batches or (1 + -(-(limit.seconds or 0) // every) if every else 1)
        if price.amount(limit.measure) * times > limit.nano:
            refused.append(f"{limit.name} cap of {limit.measure}")
    return tuple(refused)


def at_pace(left_nano: int, at: BatchClock) -> Lasts | None:
    """How long a budget lasts if batches go on to be charged as the last ones were."""
    if not at.charged or at.charged >= UNBOUNDED:
        return None
    number = left_nano * at.number // at.charged
    return Lasts(None, number, at.place_of(number), ends=at.ends_before(number))


def cap_of(other: WhatIf, scope: str, now: int) -> int:
    """The lifetime cap that is asked about, in nano units."""
    asked = other.lifetimes.get(scope)
    return now if asked is None else int(asked * NANO)


def in_words(found: Lasts) -> str:
    """Say in words how long the budget lasts.

    >>> in_words(Lasts(None, 3, 1_357_171_200)), in_words(Lasts(None, 0, None))
    ('enough for 3 more batches, up to that of 2013-01-03', 'enough for no more batches')
    """
    if found.batches is None:
        return "for ever: nothing is charged"
    if not found.batches:
        return "enough for no more batches"
    more = f"enough for {found.batches:,} more batch{'' if found.batches == 1 else 'es'}"
    if found.until is None:
        return more
    ends = f"; the source ends before that, at {day_of(found.ends)}" if found.ends else ""
    return f"{more}, up to that of {day_of(found.until)}{ends}"


@dataclass(frozen=True, slots=True)
class Purse:
    """Spent part of a source's caps over the lifetime, in units of their measures."""

    source: str
    measure: Measure
    spent_nano: int
    cap_nano: int
    spent_delta_atto: int = 0
    cap_delta_atto: int = 0

    def lasts(self, price: Item) -> int | None:
        """Return for how many more charges there is room; None where they cost nothing."""
        left = (
            (self.cap_nano - self.spent_nano, price.amount(self.measure)),
            (self.cap_delta_atto - self.spent_delta_atto, price.delta_atto),
        )
        return min((max(room, 0) // each for room, each in left if each), default=None)


def price_of_release(configuration: Configuration, database: Database, job: str) -> Item:
    """Price of one release; for one in epsilon, rho is the last release's (0 before the first)."""
    return configuration.releases[job].price.item(last_rho(database, job))


def price_of_run(configuration: Configuration, database: Database, gate: str) -> Item:
    """Price of a run that is still to be armed."""
    epsilon = configuration.all_gates()[gate].epsilon
    return Item(0, nano_up(epsilon), last_rho(database, gate))


def purse_of(database: Database, source: str) -> Purse | None:
    """Spent part of a source's caps over the lifetime; None where the ledger does not know it."""
    if declaration_of(database, source) is None:
        return None
    caps = caps_of(database, source)
    spent = spent_of(database, source, caps.measure)
    most = min(limit.nano for limit in caps.deltas if limit.lifetime)
    delta = spent_of(database, source, "delta")
    return Purse(source, caps.measure, spent, caps.lifetime_nano, delta, most)


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of one source; amounts in nano units of the measure of its caps.

    Args:
        report: What the ledger has booked.
        worst_nano: The most that one record has lost.
        rooms: Every cap: that over the lifetime, that of a batch, and those over windows.
        clock: Where its batches lie.
        now: For how long it lasts at the prices of the configuration.
        pace: For how long it lasts if batches cost what the last ones did; None if they cost
            nothing.
        takers: What each job and gate takes: its price for a batch, if it is configured, and what
            it was charged.
    """

    report: ScopeReport
    worst_nano: int
    rooms: tuple[Room, ...]
    clock: BatchClock
    now: Lasts
    pace: Lasts | None
    takers: tuple[tuple[str, Item | None, Taken], ...]

    @property
    def left_nano(self) -> int:
        """Remaining budget under the lifetime cap."""
        return max(self.report.lifetime_cap_nano - self.report.lifetime_spent_nano, 0)

    @property
    def fits_next_nano(self) -> int:
        """The largest price that the next batch has room for."""
        measure = self.report.measure
        return min(room.left_nano for room in self.rooms if room.limit.measure == measure)

    @property
    def batches_left(self) -> int | None:
        """How many more batches the lifetime caps have room for; None at no price."""
        return self.now.batches

    @property
    def windows(self) -> tuple[Room, ...]:
        """Caps over windows, and those of delta."""
        return self.rooms[2:]


def budgets(
    configuration: Configuration, database: Database, scope: str | None = None
) -> list[Budget]:
    """Every budget that the ledger knows, or that of one source."""
    return [_budget(configuration, database, each) for each in scope_reports(database, scope)]


def _budget(configuration: Configuration, database: Database, report: ScopeReport) -> Budget:
    """A record of a growing source is in all batches from its own on."""
    scope, measure = report.scope, report.measure
    prices = prices_of_batch(configuration, database, scope)
    price = sum_of(prices.values())
    found = rooms(database, scope, price)
    source = configuration.sources.get(scope)
    growing = source is not None and source.is_growing()
    every, end = (None, None) if source is None else (source.every(), source.end())
    at = clock(database, scope, measure, every, end)
    taken = taken_by(database, scope, measure)
    names = dict.fromkeys((*prices, *taken))
    return Budget(
        report=report,
        worst_nano=report.lifetime_spent_nano if growing else report.worst_batch_nano,
        rooms=found,
        clock=at,
        now=lasts(price, found, at, measure, report.lifetime_cap_nano),
        pace=at_pace(max(report.lifetime_cap_nano - report.lifetime_spent_nano, 0), at),
        takers=tuple((name, prices.get(name), taken.get(name, Taken(0, 0))) for name in names),
    )


def budgets_if(
    configuration: Configuration, database: Database, found: Sequence[Budget], other: WhatIf
) -> dict[str, Lasts]:
    """Return how long each budget that is asked about would last, by its source.

    Args:
        configuration: With the prices in force.
        database: The store.
        found: The budgets.
        other: Other prices, or other caps over the lifetime.
    """
    then = {}
    for each in found:
        report = each.report
        if other.is_about(configuration, report.scope):
            price = sum_of(prices_of_batch(configuration, database, report.scope, other).values())
            cap = cap_of(other, report.scope, report.lifetime_cap_nano)
            then[report.scope] = lasts(price, each.rooms, each.clock, report.measure, cap)
    return then


Amounts = Callable[[int], Json]
"""How an amount in nano units is written as JSON."""

Moments = Callable[[int | None], Json]
"""How the place of a batch is written as JSON."""


def ends_of(budget: Budget, moment: Moments) -> dict[str, Json]:
    """Return how long a budget lasts at the configuration's prices and at its pace, as JSON."""
    pace = budget.pace
    return {
        "batches_left": budget.batches_left,
        "until": moment(budget.now.until),
        "batches_left_at_pace": None if pace is None else pace.batches,
        "until_at_pace": None if pace is None else moment(pace.until),
    }


def jobs_of(budget: Budget, amount: Amounts) -> list[dict[str, Json]]:
    """What each job and gate takes, as JSON: its price for a batch, its charges, their number."""
    measure = budget.report.measure
    return [
        {
            "job": name,
            "price": None if price is None else amount(price.amount(measure)),
            "spent": amount(taken.nano),
            "charges": taken.charges,
        }
        for name, price, taken in budget.takers
    ]


def then_of(budget: Budget, then: Lasts, amount: Amounts, moment: Moments) -> dict[str, Json]:
    """Return how long a budget would last at other prices, as JSON."""
    price = then.price
    return {
        "price_of_batch": amount(0 if price is None else price.amount(budget.report.measure)),
        "batches_left": then.batches,
        "until": moment(then.until),
        "refused_by": list(then.refused_by),
    }
