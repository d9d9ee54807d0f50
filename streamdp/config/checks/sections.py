"""What must hold between sections of a configuration."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from streamdp.config.base.releases import CheckContext, Problem, ReleaseSection
from streamdp.config.base.yaml import Document, Path
from streamdp.config.checks.gates import check_gates, price_of_gates
from streamdp.config.checks.origins import check_sources
from streamdp.config.checks.outputs import check_outputs
from streamdp.config.model import Configuration
from streamdp.config.refusal import refuse, require_known
from streamdp.kinds.registry import find
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
        _check_unit(configuration, release, document, path)
        for problem in _problems(configuration, release):
            refuse(problem.what, document, (*path, *problem.path), problem.hint)
    check_gates(configuration, document)
    if configuration.alerts is not None:
        at: Path = ("alerts", "sink")
        require_known(configuration.alerts.sink, configuration.sinks, document, at)
    _check_caps(configuration, document)


def _problems(configuration: Configuration, release: ReleaseSection) -> Iterator[Problem]:
    """Of the condition, and what the kind finds in its own keys."""
    spec, privacy = find(release.kind), configuration.privacy
    context = CheckContext(
        dialect=configuration.sources[release.source].engine.kind,
        neighbours=privacy.neighbours,
        rows=privacy.unit.rows,
        paths={name: each.path for name, each in configuration.sources.items() if each.path},
    )
    if release.where is not None:
        found = context.problem_of(release.where, ("where",))
        yield from () if found is None else (found,)
    if spec is not None:
        yield from spec.check(release, context)


def _check_unit(
    configuration: Configuration, release: ReleaseSection, document: Document, path: Path
) -> None:
    """What a record gets of a unit's epsilon is enough, and groups hold for the relation."""
    rows = configuration.privacy.unit.rows
    if release.epsilon < LEAST_EPSILON * rows:
        refuse(
            f"each of a unit's {rows} records would get less than {float(LEAST_EPSILON):f}",
            document,
            (*path, "epsilon"),
            "raise it, or lower privacy.unit.rows",
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
