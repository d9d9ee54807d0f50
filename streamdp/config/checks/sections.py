"""Check the sections of a configuration against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache

from streamdp.config.base.paths import file_ids, same_records
from streamdp.config.base.refusal import refuse, require_known
from streamdp.config.base.releases import (
    CheckContext,
    GroupsFrom,
    Problem,
    ReleaseSection,
    RowsFrom,
)
from streamdp.config.base.yaml import Document, Path
from streamdp.config.checks.gates import check_gates, price_of_gates
from streamdp.config.checks.outputs import check_outputs
from streamdp.config.model import Configuration
from streamdp.kinds.registry import find
from streamdp.kinds.spec import KindSpec
from streamdp.privacy.accountants import epsilon_of_rho
from streamdp.privacy.amounts import NANO, NO_DELTA, NO_PURE_LOSS, atto_up, number_text
from streamdp.privacy.filters import LARGEST_PRICE, NO_DELTA_LIMIT, Measure
from streamdp.privacy.price import LEAST
from streamdp.sources.section import NAMING
from streamdp.sources.windows import Windows

LARGEST_EPSILON = 20
DELTA = Fraction(1, 10**9)
"""At which a price in rho is compared with the largest epsilon."""
CAPS = ("batch", "lifetime")


def check(configuration: Configuration, document: Document) -> None:
    """Check references, sources, epsilons and priors.

    Raises:
        ConfigurationError: The first thing that does not hang together.
    """
    _check_sources(configuration, document)
    check_outputs(configuration, document)
    paths = {name: each.path for name, each in configuration.sources.items() if each.path}
    columns = {
        name: each.published | frozenset(each.by) for name, each in configuration.releases.items()
    }
    for name, release in configuration.releases.items():
        path: Path = ("releases", name)
        require_known(release.source, configuration.sources, document, (*path, "source"))
        for index, sink in enumerate(release.sinks):
            require_known(sink, configuration.sinks, document, (*path, "sinks", index))
        _check_rollups(configuration, release, document, path)
        _check_price(configuration, release, document, path)
        _check_unit(configuration, release, document, path)
        others = dict(columns)
        del others[name]
        for problem in _problems(configuration, release, paths, others):
            refuse(problem.what, document, (*path, *problem.path), problem.hint)
    check_gates(configuration, document)
    if configuration.alerts is not None:
        at: Path = ("alerts", "sink")
        require_known(configuration.alerts.sink, configuration.sinks, document, at)
    for name in configuration.reports:
        _check_report(configuration, name, document)
    _check_caps(configuration, document)


def _check_sources(configuration: Configuration, document: Document) -> None:
    """Refuse two names for the same records, which would be two budgets for one's data."""
    seen: dict[str, str] = {}
    ids = cache(file_ids)
    for name, source in configuration.sources.items():
        path: Path = ("sources", name)
        source.check(configuration.privacy.unit.column, document, path)
        place = source.compared_place()
        for known, other in seen.items():
            if same_records(place, known, ids):
                refuse(
                    f"this is the same data as source {other!r}, with a budget of its own",
                    document,
                    (*path, next(key for key in NAMING if getattr(source, key))),
                    f"give both releases the source {other!r}",
                )
        seen[place] = name


def _check_rollups(
    configuration: Configuration, release: ReleaseSection, document: Document, path: Path
) -> None:
    """Require windows that do not overlap, and sinks that there are."""
    if release.rollups is None:
        return
    at = (*path, "rollups")
    for index, sink in enumerate(release.rollups.sinks or ()):
        require_known(sink, configuration.sinks, document, (*at, "sinks", index))
    batches = configuration.sources[release.source].batches
    if not isinstance(batches, Windows):
        hint = "cut the source by time: `batches: {column: ..., every: 1d, start: ...}`"
        refuse("batches that are no windows of time have no periods", document, at, hint)
    if batches.growing:
        refuse(
            "growing batches overlap, so periods of them do not add up",
            document,
            at,
            "leave it out",
        )


def _check_report(configuration: Configuration, name: str, document: Document) -> None:
    """Require that the job of a report exists and has batches that lie in a period."""
    job, path = configuration.reports[name].job, ("reports", name, "job")
    require_known(job, configuration.releases, document, path)
    if configuration.source_section(job).is_growing():
        refuse(
            f"the batches of {job} grow: all begin with the first record, none is of a period",
            document,
            path,
            f"leave it out: `streamdp report {job} --period all` writes one of all releases",
        )


def _check_price(
    configuration: Configuration, release: ReleaseSection, document: Document, path: Path
) -> None:
    """Require that a price protects something and fits under the caps."""
    price, caps = release.price, configuration.privacy.caps.caps()
    epsilon: Fraction | int = price.amount
    if price.measure == "rho":
        epsilon = Fraction(epsilon_of_rho(price.nano, DELTA), NANO)
    if epsilon > LARGEST_EPSILON and not configuration.privacy.allow_large_epsilon:
        at = "" if price.measure == "epsilon" else f" at delta {float(DELTA):g}"
        refuse(
            f"an epsilon above {LARGEST_EPSILON}{at} protects next to nothing",
            document,
            (*path, price.measure),
            "lower it, or set privacy.allow_large_epsilon: true",
        )
    if price.amount > LARGEST_PRICE:
        refuse(
            f"a release costs {LARGEST_PRICE} at most",
            document,
            (*path, price.measure),
            "it is as good as exact long before: lower it",
        )
    if price.measure not in release.measures_of_price:
        refuse(
            f"releases of kind {release.kind} have no Gaussian noise, and are not paid in rho",
            document,
            (*path, "rho"),
            "give epsilon in place of rho; caps in rho admit it",
        )
    if price.delta and NO_DELTA_LIMIT in caps.deltas:
        refuse(
            "this release has a delta, and the caps have none",
            document,
            (*path, "delta"),
            NO_DELTA,
        )
    pure = [limit.name for limit in caps.limits if limit.measure == "epsilon"]
    if price.measure == "rho" and pure:
        refuse(
            f"this release is paid in rho, and the {pure[0]} cap is in pure epsilon",
            document,
            (*path, "rho"),
            NO_PURE_LOSS,
        )


def _problems(
    configuration: Configuration,
    release: ReleaseSection,
    paths: Mapping[str, str],
    columns: Mapping[str, frozenset[str]],
) -> Iterator[Problem]:
    """Problems of the condition, and those that the kind finds in its keys and other releases."""
    spec, privacy = find(release.kind), configuration.privacy
    context = CheckContext(
        dialect=configuration.sources[release.source].engine.dialect,
        neighbours=privacy.neighbours,
        rows=privacy.unit.rows,
        paths=paths,
        columns=columns,
    )
    if release.where is not None:
        found = context.problem_of(release.where, ("where",))
        yield from () if found is None else (found,)
    if spec is not None:
        yield from spec.check(release, context)
    if release.rows_from is not None and spec is not None:
        yield from _rows_problems(configuration, release, release.rows_from, spec)
    if release.asked_together > 1 and configuration.sources[release.source].is_growing():
        what = "growing batches all begin with the first record, so none follows another"
        yield Problem(("window",), what, "leave it out: each batch holds those before it")
    if release.groups_from is not None:
        yield from _groups_problems(configuration, release, release.groups_from)


def _groups_problems(
    configuration: Configuration, release: ReleaseSection, named: GroupsFrom
) -> Iterator[Problem]:
    """Require that groups come from a job that finds them among the same records."""
    other = configuration.releases.get(named.job)
    found = None if other is None else find(other.kind)
    if other is None or found is None or found.groups is None:
        what = f"{named.job!r} is no release that finds groups"
        yield Problem(("groups_from", "from"), what, "name a release of a kind that finds keys")
        return
    if (other.source, other.by) != (release.source, release.by):
        what = f"{named.job} finds other groups"
        hint = "let both be of the same source, with the same columns under by"
        yield Problem(("groups_from", "from"), what, hint)
    if release.gate is not None:
        what = "a gate looks at the first release of its job, which has no groups yet"
        yield Problem(("gate",), what, "leave it out, or list the groups")


def _rows_problems(
    configuration: Configuration, release: ReleaseSection, named: RowsFrom, spec: KindSpec
) -> Iterator[Problem]:
    """Require that a count used as expected rows counts the same records."""
    if not spec.expects_rows:
        what = f"releases of kind {release.kind} take no counts of others"
        yield Problem(("rows_from",), what, "leave it out: expected_rows says how many there are")
        return
    other = configuration.releases.get(named.job)
    found = None if other is None else find(other.kind)
    if other is None or found is None or found.rows is None:
        what = f"{named.job!r} is no release that counts records"
        yield Problem(("rows_from", "job"), what, "name a release of counts")
        return
    if found.rows(other, named.measure) is None:
        what = f"{named.measure!r} does not count all records of {named.job}"
        yield Problem(("rows_from", "measure"), what, "name a measure that is a plain count")
    if len({(each.source, each.where, each.by) for each in (release, other)}) != 1:
        what = f"{named.job} counts other records"
        hint = "count those of the same source with the same where and by"
        yield Problem(("rows_from", "job"), what, hint)


def _check_unit(
    configuration: Configuration, release: ReleaseSection, document: Document, path: Path
) -> None:
    """Refuse an epsilon that is too little for one record, and groups the relation excludes."""
    rows = configuration.privacy.unit.rows
    price = release.price
    if price.of_record(rows).amount < LEAST[price.measure]:
        refuse(
            f"each of a unit's {rows} records would get less than {float(LEAST[price.measure]):g}",
            document,
            (*path, price.measure),
            "raise it, or lower privacy.unit.rows",
        )
    if release.cut_by and configuration.privacy.neighbours == "substitute":
        refuse(
            "groups need neighbours: add-remove",
            document,
            (*path, "by"),
            "a record put in another's place may leave one group and enter another: it costs twice",
        )


def _check_caps(configuration: Configuration, document: Document) -> None:
    caps = configuration.privacy.caps.caps()
    if caps.batch_nano > caps.lifetime_nano:
        refuse(
            "the batch cap is above the lifetime cap",
            document,
            ("privacy", "caps", "batch"),
            "lower it, or raise the lifetime cap: each batch counts towards the lifetime",
        )
    for source in configuration.sources:
        for limit in caps.limits:
            cost = _cost_of_batch(configuration, source, limit.measure)
            if cost > limit.nano:
                about = "" if limit.measure == "epsilon" else f"{limit.measure} "
                of_delta = ("delta",) if limit.measure == "delta" else ()
                refuse(
                    f"the releases and gates of source {source!r} cost"
                    f" {about}{number_text(cost, limit.measure)} a batch, the {limit.name} cap is"
                    f" {number_text(limit.nano, limit.measure)}",
                    document,
                    ("privacy", "caps", *of_delta, limit.name if limit.name in CAPS else "windows"),
                    "raise the cap or lower an epsilon: some release could never be made",
                )


def _cost_of_batch(configuration: Configuration, source: str, measure: Measure) -> int:
    """Least price of all releases and gates of a source for a batch.

    In rho that is what has a price in rho: what other releases cost depends on their draws, and
    the ledger looks at it.
    """
    releases = [each for each in configuration.releases.values() if each.source == source]
    if measure == "delta":
        return sum(atto_up(each.price.delta) for each in releases)
    cost = sum(each.price.nano for each in releases if each.price.measure == measure)
    return cost + (price_of_gates(configuration, source) if measure == "epsilon" else 0)
