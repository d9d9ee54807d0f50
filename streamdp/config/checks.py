"""What must hold between sections of a configuration."""

from __future__ import annotations

import os
from collections.abc import Iterable
from fractions import Fraction

from streamdp.config.expressions import expression
from streamdp.config.formats import file_format
from streamdp.config.gate_checks import check_gates, price_of_gates
from streamdp.config.model import Configuration
from streamdp.config.origins import check_sources
from streamdp.config.outputs import check_outputs
from streamdp.config.paths import overlap
from streamdp.config.priors import Family, MixtureOf
from streamdp.config.refusal import refuse, require_known
from streamdp.config.releases import Derived, Release
from streamdp.config.yaml import Document, Path
from streamdp.privacy.amounts import epsilon_text, nano_up

LARGEST_EPSILON = 20
LEAST_EPSILON = Fraction(1, 10**6)
"""Of one record in one release."""
CAPS = ("batch", "lifetime")


def check(configuration: Configuration, document: Document) -> None:
    """Check references, sources, epsilons and priors.

    Raises:
        ConfigurationError: The first thing that does not hang together.
    """
    check_sources(configuration, document)
    check_outputs(configuration, document)
    for name, release in configuration.releases.items():
        path: Path = ("releases", name)
        require_known(release.source, configuration.sources, document, (*path, "source"))
        for index, sink in enumerate(release.sinks):
            require_known(sink, configuration.sinks, document, (*path, "sinks", index))
        if release.epsilon > LARGEST_EPSILON and not configuration.privacy.allow_large_epsilon:
            refuse(
                f"an epsilon above {LARGEST_EPSILON} protects next to nothing",
                document,
                (*path, "epsilon"),
                "lower it, or set privacy.allow_large_epsilon: true",
            )
        _check_expressions(configuration, release, document, path)
        _check_unit(configuration, release, document, path)
        _check_prior(release, document, path)
        _check_public(configuration, release, document, path)
    check_gates(configuration, document)
    _check_caps(configuration, document)


def _check_expressions(
    configuration: Configuration, release: Release, document: Document, path: Path
) -> None:
    """What is total in DuckDB may fail on a record in another engine."""
    dialect = configuration.sources[release.source].engine.kind
    derived = isinstance(release.column, Derived)
    texts = {"column": release.column_name() if derived else None, "where": release.where}
    for key, text in texts.items():
        try:
            if text is not None:
                expression(text, dialect)
        except ValueError as error:
            refuse(str(error), document, (*path, key), "or leave it out")


def _check_unit(
    configuration: Configuration, release: Release, document: Document, path: Path
) -> None:
    """What a record gets of a unit's epsilon is enough, and groups hold for the relation."""
    rows, share = configuration.privacy.unit.rows, release.gradient_share()
    bought = release.epsilon * share
    if release.epsilon - bought < LEAST_EPSILON * rows or 0 < bought < LEAST_EPSILON * rows:
        refuse(
            f"each of a unit's {rows} records would get less than {float(LEAST_EPSILON):f}",
            document,
            (*path, "epsilon"),
            "raise it, or lower privacy.unit.rows"
            + (" or prior.private_gradient" if share else ""),
        )
    if release.by and configuration.privacy.neighbours == "substitute":
        refuse(
            "groups need neighbours: add-remove",
            document,
            (*path, "by"),
            "a record put in another's place may leave one group and enter another: it costs twice",
        )


def _check_caps(configuration: Configuration, document: Document) -> None:
    caps = configuration.privacy.caps
    if caps.batch > caps.lifetime:
        refuse(
            "the batch cap is above the lifetime cap",
            document,
            ("privacy", "caps", "batch"),
            "what one batch may cost is part of what all may cost",
        )
    for source in configuration.sources:
        prices = [r.epsilon for r in configuration.releases.values() if r.source == source]
        price = sum(map(nano_up, prices)) + price_of_gates(configuration, source)
        for limit in caps.caps().limits:
            if limit.measure == "epsilon" and price > limit.nano:
                refuse(
                    f"the releases and gates of source {source!r} cost {epsilon_text(price)}"
                    f" a batch, the {limit.name} cap is {epsilon_text(limit.nano)}",
                    document,
                    ("privacy", "caps", limit.name if limit.name in CAPS else "windows"),
                    "raise the cap or lower an epsilon: some release could never be made",
                )


def _check_public(
    configuration: Configuration, release: Release, document: Document, path: Path
) -> None:
    """A prior made of a source's own records would be a release without a price."""
    for key, named in (("public", release.prior.public), ("table", release.prior.table)):
        if named is None:
            continue
        place = (*path, "prior", key, "path")
        for name, source in configuration.sources.items():
            if source.path and overlap(os.path.realpath(named.path), os.path.realpath(source.path)):
                refuse(
                    f"source {name!r} reads this file: its records are not public",
                    document,
                    place,
                    "name a table that anyone may see",
                )
        format = named.format or file_format(str(named.path))
        if format is None:
            refuse(
                "the format is not to be told from this name",
                document,
                place,
                "add format: parquet, csv or jsonl",
            )
        if key == "table" and format == "arrow":
            refuse(
                "this table is not read from Arrow files",
                document,
                place,
                "write it as parquet, csv or jsonl",
            )
    if release.prior.public is not None and release.expected_rows is None:
        refuse(
            "public rows are fitted to batches of the expected size",
            document,
            (*path, "prior", "public"),
            "add expected_rows: about how many records a batch has",
        )


def _check_prior(release: Release, document: Document, path: Path) -> None:
    """The robust prior must believe in every cell: an impossible cell would be a leak."""
    if release.prior.private_gradient is not None and not release.gradient_share():
        refuse(
            f"the learner {release.learner()} learns from releases and buys no gradient",
            document,
            (*path, "prior", "private_gradient"),
            "leave it out, which is free and more accurate, or set learner: online-gradient",
        )
    place = (*path, "prior", "robust")
    robust = release.prior.robust
    if isinstance(robust, str) and robust != "uniform" and release.guess is None:
        refuse(f"{robust} needs a guess", document, place, "add guess: {location: , scale: }")
    if robust == "uniform" and release.bounds is None:
        refuse("uniform needs bounds", document, place, "add bounds: [lower, upper]")
    if robust == "half-cauchy" and release.guess is not None and not _starts(release):
        refuse(
            "a half-cauchy says that nothing lies below its location, but the bounds do",
            document,
            place,
            "set the lower bound to guess.location, or use cauchy",
        )
    members: Iterable[Family] = ()
    if isinstance(robust, Family):
        members = (robust,)
    elif isinstance(robust, MixtureOf):
        members = robust.mixture
    if members and not any(_covers(member, release) for member in members):
        refuse(
            "this prior gives some cell within the bounds no weight",
            document,
            place,
            "add a cauchy to the mixture, or a uniform as wide as the bounds",
        )


def _starts(release: Release) -> bool:
    """Whether the lowest cell reaches above the location of a half-cauchy."""
    if release.bounds is None or release.guess is None:
        return False
    return float(release.bounds[0] + release.resolution / 2) > release.guess.location


def _covers(family: Family, release: Release) -> bool:
    if family.family in ("cauchy", "laplace"):
        return True
    if release.bounds is None:
        return False
    low, high = (float(bound) for bound in release.bounds)
    if family.family == "half-cauchy":
        return family.location is not None and family.location <= low
    return (
        family.lower is not None
        and family.upper is not None
        and family.lower <= low
        and high <= family.upper
    )
