"""The release kind `quantiles`: mechanism, learner, features and priors of a configured release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.config.releases import Family, MixtureOf
from streamdp.config.releases import Release as ReleaseSection
from streamdp.types import Grid, Prior

if TYPE_CHECKING:
    from streamdp.learning.features import Feature
    from streamdp.learning.learner import Learner
    from streamdp.mechanisms.choice import Choice
    from streamdp.mechanisms.sharpness import Relation
    from streamdp.mechanisms.tree import QuantileTree
    from streamdp.priors.joint import Shapes
    from streamdp.releases.quantiles import Quantiles

TREND_ORIGIN = 1_767_225_600
"""2026-01-01: where the feature `trend` is 0."""

COCOB_NARROWEST = 0.01
"""Least scale of the online-gradient prior, in guessed scales, as in the paper's experiments."""


def kind(section: ReleaseSection, neighbours: Relation) -> Quantiles:
    """The release kind with its mechanism and its learner."""
    from dataclasses import replace

    from streamdp.releases.quantiles import Quantiles

    form, chosen = _form(section), section.mechanism
    restriction = "conditional" if chosen == "auto" else chosen.restriction
    grid = Grid(section.resolution, *section.cells())
    tree = form.tree(section.quantiles, section.epsilon, grid, neighbours)
    return Quantiles(
        column=section.column,
        quantiles=section.quantiles,
        epsilon=section.epsilon,
        grid=grid,
        learner=learner(section, replace(tree, restriction=restriction)),
        form=form,
        relation=neighbours,
        restriction=restriction,
        shapes=shapes(section) if form.shapes else (),
        expected_rows=section.expected_rows,
        features=_feature(section),
        feature_names=_feature_names(section),
        smooth=section.prior.smoothed,
    )


def _form(section: ReleaseSection) -> Choice:
    """The form of the tree: the configured one, or that of the public table.

    The table was made for priors that do not learn. Where one learns it is the binary tree, which
    the learner of experts models: its error is a fourth of a joint node's there, and about that of
    the best form without learning on data that do not repeat (`tests.benchmarks.forms`).
    """
    from streamdp.mechanisms.choice import CANDIDATES, Choice, choose_tree

    chosen = section.mechanism
    if chosen != "auto":
        return Choice(chosen.branching, chosen.node, chosen.level_power, chosen.shapes)
    if section.learner() != "none":
        return CANDIDATES["binary"]
    return choose_tree(len(section.quantiles), section.epsilon, section.expected_rows)


def learner(section: ReleaseSection, tree: QuantileTree) -> Learner:
    """The configured learner; `none` is a last-release learner that trusts nothing."""
    robust, guess = _robust_prior(section), _guess(section)
    weight, resolution = section.prior.robust_weight, float(section.resolution)
    name = section.learner()
    if name == "experts":
        from streamdp.learning.experts import ExpertMixture

        return ExpertMixture(tree, robust, weight, guess, section.expected_rows or 1)
    if name == "online-gradient":
        from streamdp.learning.gradient import OnlineGradient
        from streamdp.learning.optimizers import coin_betting

        narrowest = max(resolution / 2.0, COCOB_NARROWEST * guess[1])
        return OnlineGradient(robust, weight, guess, coin_betting(), resolution / 2.0, narrowest)
    from streamdp.learning.last_release import LastRelease

    return LastRelease(robust, 1.0 if name == "none" else weight, guess[1], resolution)


def _feature(section: ReleaseSection) -> Feature | None:
    """All configured features of a batch in one tuple."""
    from streamdp.learning import features

    known = {
        "weekday": features.weekday,
        "month": features.month,
        "season": features.season,
        "hour": features.hour,
        "trend": features.trend(TREND_ORIGIN),
    }
    chosen = [known[name] for name in section.prior.features]
    if section.prior.holidays:
        chosen.append(features.holidays(frozenset(section.prior.holidays)))
    return features.together(tuple(chosen)) if chosen else None


def _feature_names(section: ReleaseSection) -> tuple[str, ...]:
    days = ("holidays",) if section.prior.holidays else ()
    return (*section.prior.features, *days)


def shapes(section: ReleaseSection) -> tuple[Shapes, ...]:
    """What is believed of the quantiles together, from the guess, or from the bounds."""
    from streamdp.priors.shapes import shapes_from_bounds, shapes_from_guess

    if section.guess is not None:
        return shapes_from_guess(section.quantiles, section.guess.location, section.guess.scale)
    first, last = (float(cell * section.resolution) for cell in section.cells())
    return shapes_from_bounds(section.quantiles, first, last, float(section.resolution))


def _guess(section: ReleaseSection) -> tuple[float, float]:
    """Location and spread before any release; bounds alone say the middle and a quarter."""
    if section.guess is not None:
        return section.guess.location, section.guess.scale
    first, last = section.cells()
    width = float((last - first + 1) * section.resolution)
    return float((first + last) * section.resolution) / 2.0, width / 4.0


def _robust_prior(section: ReleaseSection) -> Prior:
    """The prior that holds when the past misleads."""
    robust = section.prior.robust
    if isinstance(robust, MixtureOf):
        from streamdp.priors.mixture import Mixture

        weights = tuple(member.weight for member in robust.mixture)
        return Mixture(weights, tuple(_family(member) for member in robust.mixture))
    if isinstance(robust, Family):
        return _family(robust)
    name = robust or ("cauchy" if section.guess else "uniform")
    if name == "uniform":
        first, last = section.cells()
        half = section.resolution / 2
        lower, upper = (float(cell * section.resolution) for cell in (first, last))
        return _family(Family(family=name, lower=lower - float(half), upper=upper + float(half)))
    assert section.guess is not None, "checked when the configuration was loaded"  # noqa: S101
    return _family(Family(family=name, location=section.guess.location, scale=section.guess.scale))


def _family(section: Family) -> Prior:
    from streamdp.priors import families

    if section.family == "uniform":
        return families.Uniform(float(section.lower or 0), float(section.upper or 0))
    location, scale = float(section.location or 0), float(section.scale or 1)
    if section.family == "cauchy":
        return families.Cauchy(location, scale)
    if section.family == "half-cauchy":
        return families.HalfCauchy(location, scale)
    return families.Laplace(location, scale)
