"""The most that may have been spent since a store was written, from schedules and caps alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from streamdp.errors import ConfigurationError
from streamdp.privacy.amounts import delta_text, epsilon_text, exact
from streamdp.privacy.events import charge_of, pure
from streamdp.privacy.filters import Caps, Limit
from streamdp.store.archive import known_batches, released_batches
from streamdp.store.ledger import chain
from streamdp.store.ledger.charges import all_places, borne_by, lifetime_spent
from streamdp.store.ledger.ledger import caps_of, declaration_of
from streamdp.store.reading.reports import answered_batches, refused_batches
from streamdp.store.reconcile import Bound, open_runs, scopes_of
from streamdp.types import Batch

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.database import Database


def bounds(
    configuration: Configuration,
    database: Database,
    until: int,
    stated: Mapping[str, int],
    *,
    kept: bool,
) -> dict[str, Bound]:
    """A bound for each source that is configured or has a budget in the ledger.

    A batch may have been paid for if a release or gate of the configuration was not done with it
    when the store was written. It has lost its cap at most, in releases and in questions that
    failed; besides, each gate may have armed a run that no batch has joined. No more was spent than
    the caps over the lifetime and over stretches admit: those of the ledger or of the
    configuration, where that is higher, as a cap may have been raised since.

    Args:
        configuration: That of the store that was lost.
        database: What is left of it.
        until: When it stopped (POSIX time): later windows were not released.
        stated: Bounds that a person knows, in nano units of the measure of the source's caps.
        kept: Whether no file or partition was taken away since: what is gone cannot be counted.
    """
    scopes = dict.fromkeys([*configuration.sources, *scopes_of(database)])
    return {
        scope: _bound(configuration, database, scope, until, stated.get(scope), kept)
        for scope in scopes
    }


def _bound(
    configuration: Configuration,
    database: Database,
    scope: str,
    until: int,
    stated: int | None,
    kept: bool,
) -> Bound:
    caps = _highest_caps(configuration, database, scope)
    batches = _possible(configuration, database, scope, until)
    places = all_places(database, scope)
    borne = borne_by(database, scope, places)
    room = []
    for batch in batches:
        spent = sum(item.amount(caps.measure) for item in borne.get(batch.key, ()))
        if spent < caps.batch_nano:
            room.append((batch, caps.batch_nano - spent))
    delta = _delta(configuration, database, caps, scope, len(room))
    if stated is not None:
        runs = open_runs(database)[scope] if room else 0
        why = "as you say"
        if runs and stated < sum(each for _, each in room):
            more = f"{epsilon_text(runs)} more for open runs of gates, which may have gone on"
            why = f"{why}, and {more}"
        return Bound(caps.measure, stated, tuple(room), True, why, delta)
    left = min(
        max(limit.nano - lifetime_spent(database, scope, limit), 0)
        for limit in caps.limits
        if limit.lifetime and limit.measure == caps.measure
    )
    why = ""
    if not _tasks(configuration, scope):
        why = "no release of the configuration reads it: all that its lifetime cap has left"
    elif not (kept or _has_windows(configuration, scope)):
        why = "all that its lifetime cap has left, as files or partitions may have been taken away"
    if why:
        return Bound(caps.measure, left, tuple(room), False, why, delta)
    in_batches = min([sum(each for _, each in room), *_over_stretches(caps, room)])
    most = in_batches + sum(_runs(configuration, caps, scope))
    why = f"{len(room)} batches may have been paid for, up to their cap"
    if most > left:
        why = f"{why}: all that its lifetime cap has left"
    return Bound(caps.measure, min(most, left), tuple(room), False, why, delta)


def _delta(
    configuration: Configuration, database: Database, caps: Caps, scope: str, batches: int
) -> int:
    """The most delta that may have been spent: what its caps have left, if some release has any."""
    readers = [each for each in configuration.releases.values() if each.source == scope]
    if readers and not any(each.price.delta for each in readers):
        return 0
    spent = chain.spent_of(database, scope, "delta")
    most = min(max(limit.nano - spent, 0) for limit in caps.deltas if limit.lifetime)
    of_batch = [limit.nano * batches for limit in caps.deltas if limit.batches == 1]
    return min([most, *of_batch])


def _highest_caps(configuration: Configuration, database: Database, scope: str) -> Caps:
    """Caps that were in force at some time, as far as ledger and configuration tell."""
    said = configuration.caps_of(scope) if scope in configuration.sources else None
    if declaration_of(database, scope) is None:
        assert said is not None  # noqa: S101  each scope is configured or in the ledger
        return said
    known = caps_of(database, scope)
    if said is None or said.measure != known.measure:
        return known
    both = {*said.windows} & {*known.windows}
    return Caps(
        max(said.batch_nano, known.batch_nano),
        max(said.lifetime_nano, known.lifetime_nano),
        (*_highest_deltas(said, known), *(limit for limit in both if limit.measure != "delta")),
        said.measure,
    )


def _highest_deltas(*caps: Caps) -> Iterator[Limit]:
    """The limits of delta over the lifetime and of a batch: the higher of two, where both are."""
    for batches in (None, 1):
        found = [
            [limit.nano for limit in each.deltas if limit.batches == batches and not limit.seconds]
            for each in caps
        ]
        if all(found):
            yield Limit(max(map(min, found)), "delta", batches)


def _possible(
    configuration: Configuration, database: Database, scope: str, until: int
) -> list[Batch]:
    """Batches that may have been paid for since: those that not all tasks were done with."""
    found = {
        key: Batch(scope, key, start, end)
        for key, (start, end) in known_batches(database, scope).items()
    }
    found |= {batch.key: batch for batch in _there(configuration, scope, until)}
    done = [{*keys} for keys in _done(configuration, database, scope)]
    if done:
        over = set.intersection(*done)
        found = {key: batch for key, batch in found.items() if key not in over}
    return list(found.values())


def _there(configuration: Configuration, scope: str, until: int) -> Iterable[Batch]:
    """Batches of the source until then; no marker needs to be there any more."""
    from streamdp.sources.windows import LakeSource, WindowSource

    if scope not in configuration.sources:
        return ()
    source = configuration.sources[scope].source(scope)
    if isinstance(source, LakeSource):
        source = source.windows
    if isinstance(source, WindowSource):
        source = replace(source, marker=None, pattern="")
    return source.batches(until)


def _has_windows(configuration: Configuration, scope: str) -> bool:
    from streamdp.sources.windows import Windows

    return isinstance(configuration.sources[scope].batches, Windows)


def _tasks(configuration: Configuration, scope: str) -> list[str]:
    """Releases and gates that read a source."""
    plain = [name for name, each in configuration.releases.items() if each.source == scope]
    gates = configuration.all_gates().items()
    return [*plain, *(name for name, gate in gates if configuration.source_of(gate) == scope)]


def _done(configuration: Configuration, database: Database, scope: str) -> Iterator[Iterable[str]]:
    """Batches that each task of a source was done with."""
    gates, gated = configuration.all_gates(), configuration.gated()
    for name in _tasks(configuration, scope):
        if name in gates:
            first = gates[name].release[:1]
            yield answered_batches(database, name).union(
                *(released_batches(database, job, scope) for job in first)
            )
        else:
            done = released_batches(database, name, scope)
            yield done | refused_batches(database, gated[name]) if name in gated else done


def _runs(configuration: Configuration, caps: Caps, scope: str) -> Iterator[int]:
    """What a run of each gate of a source costs."""
    for gate in configuration.all_gates().values():
        if configuration.source_of(gate) == scope:
            charge = charge_of(pure(exact(gate.epsilon)))
            yield charge.rho_nano if caps.measure == "rho" else charge.epsilon_nano or 0


def _over_stretches(caps: Caps, room: Sequence[tuple[Batch, int]]) -> Iterator[int]:
    """What each cap over stretches admits in all of the batches: so many stretches cover them."""
    windows = sorted(
        (batch.start, batch.end) for batch, _ in room if batch.start is not None and batch.end
    )
    if len(windows) < len(room):
        return  # files have no times of their own
    for limit in caps.windows:
        if limit.measure == caps.measure and not limit.lifetime:
            yield limit.nano * _covering(limit, windows)


def _covering(limit: Limit, windows: Sequence[tuple[int, int]]) -> int:
    """How many stretches of a limit cover some windows, in their order."""
    if limit.batches is not None:
        return len(windows)  # others may lie between any two of them
    count, reach = 0, None
    for start, end in windows:
        if reach is None or start >= reach:
            count, reach = count + 1, end + (limit.seconds or 0)
    return count


def stated(configuration: Configuration, database: Database, said: Iterable[str]) -> dict[str, int]:
    """Bounds as a person wrote them, NAME=AMOUNT, of sources or of jobs, by source.

    Amounts are in the measure of the source's caps, and those of one source add up.

    Raises:
        ConfigurationError: A name or an amount is none.
    """
    found: dict[str, int] = {}
    scopes = {*configuration.sources, *scopes_of(database)}
    for text in said:
        name, _, amount = text.rpartition("=")
        jobs = configuration.releases
        scope = name if name in scopes else jobs[name].source if name in jobs else None
        try:
            nano = -int(-exact(amount) * 10**9 // 1)
        except ValueError:
            nano = -1
        if scope is None or nano < 0:
            raise ConfigurationError(
                f"--spent {text} names no source or job, or no amount",
                hint=f"NAME=AMOUNT, as {next(iter(scopes), 'source')}=2.5; 0 where nothing was",
            )
        found[scope] = found.get(scope, 0) + nano
    return found


def rows(bounds: Mapping[str, Bound]) -> list[dict[str, str | int]]:
    """The bounds as a table."""
    return [
        {
            "source": scope,
            "charged": f"{epsilon_text(bound.nano)} {bound.measure}"
            + (f" and delta {delta_text(bound.delta_atto)}" if bound.delta_atto else ""),
            "batches": len(bound.room),
            "because": bound.why,
        }
        for scope, bound in bounds.items()
    ]
