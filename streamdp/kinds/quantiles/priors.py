"""What is believed of a configured release, and who learns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.config.base.expressions import expression
from streamdp.errors import ConfigurationError
from streamdp.kinds.quantiles.prior_section import Family, MixtureOf
from streamdp.kinds.quantiles.section import Derived, QuantilesSection
from streamdp.types import CellQuery, Grid, Prior

if TYPE_CHECKING:
    from streamdp.kinds.spec import PublicData
    from streamdp.learning.experts.mixture import ExpertMixture
    from streamdp.learning.learner import Learner
    from streamdp.learning.public import PublicFit
    from streamdp.mechanisms.quantile_tree.tree import QuantileTree
    from streamdp.priors.joint import Shapes
    from streamdp.priors.public import PublicRows

COCOB_NARROWEST = 0.01
"""Least scale of the online-gradient prior, in guessed scales, as in the paper's experiments."""

TABULATED_WEIGHT = 0.8
"""Share of the tabulated law in the robust prior; the rest holds where no public row lies."""


def learner(
    section: QuantilesSection, tree: QuantileTree, data: PublicData
) -> Learner | ExpertMixture:
    """The configured learner, with public rows behind its first priors if there are any.

    Raises:
        ConfigurationError: The public rows hold no number.
        SourceError: They cannot be read.
    """
    public = _public_rows(section, tree.grid, data)
    robust, guess = _robust_prior(section, public), guess_of(section)
    fitted = None if public is None else _fit(section, public)
    weight, resolution = section.prior.robust_weight, float(section.resolution)
    name = section.learner()
    if name == "experts":
        return _experts(section, tree, robust, fitted)
    if name == "online-gradient":
        from streamdp.learning.gradient import OnlineGradient
        from streamdp.learning.optimizers import coin_betting

        half = resolution / 2.0
        narrowest = max(half, COCOB_NARROWEST * guess[1])
        about = (robust, weight, guess, coin_betting(), half, narrowest)
        if share := section.auxiliary_share():
            from streamdp.learning.private_gradient import PrivateGradient

            return PrivateGradient(*about, first=fitted, share=share)
        return OnlineGradient(*about, first=fitted)
    first = (robust,) * len(section.quantiles)
    if fitted is not None:
        first = fitted.priors(robust, weight, resolution)
    if name == "none":
        from streamdp.learning.fixed import Fixed

        return Fixed(first)
    from streamdp.learning.last_release import LastRelease

    return LastRelease(robust, weight, guess[1], resolution, first)


def _experts(
    section: QuantilesSection, tree: QuantileTree, robust: Prior, public: PublicFit | None
) -> ExpertMixture:
    """Experts that measure few quantiles, unless the mechanism is configured or rows are unknown.

    While nothing is known they draw as `learner: none` does, where that is jointly.
    """
    from streamdp.learning.experts.mixture import ExpertMixture
    from streamdp.learning.experts.ways import BroadShapes
    from streamdp.mechanisms.quantile_tree.choice import choose_tree

    rows, auto = section.expected_rows or 1, section.mechanism == "auto"
    form, broad = choose_tree(len(section.quantiles), tree.epsilon, section.expected_rows), None
    if auto and form.node == "joint":
        like = form.tree(section.quantiles, tree.epsilon, tree.grid, tree.relation)
        groups = shapes(section) if form.shapes else ()
        prior = form.prior((robust,) * len(section.quantiles), groups)
        broad = BroadShapes(like, prior, rows)
    return ExpertMixture(
        tree,
        robust,
        section.prior.robust_weight,
        guess_of(section),
        rows,
        public,
        few=auto and section.expected_rows is not None and section.prior.measure == "few",
        broad=broad,
    )


def shapes(section: QuantilesSection) -> tuple[Shapes, ...]:
    """What is believed of the quantiles together, from the guess, or from the bounds."""
    from streamdp.priors.shapes import shapes_from_bounds, shapes_from_guess

    if section.guess is not None:
        return shapes_from_guess(section.quantiles, section.guess.location, section.guess.scale)
    first, last = (float(cell * section.resolution) for cell in section.cells())
    return shapes_from_bounds(section.quantiles, first, last, float(section.resolution))


def guess_of(section: QuantilesSection) -> tuple[float, float]:
    """Location and spread before any release; bounds alone say the middle and a quarter."""
    if section.guess is not None:
        return section.guess.location, section.guess.scale
    first, last = section.cells()
    width = float((last - first + 1) * section.resolution)
    return float((first + last) * section.resolution) / 2.0, width / 4.0


def _public_rows(section: QuantilesSection, grid: Grid, data: PublicData) -> PublicRows | None:
    """The public rows of the column, rounded as records are."""
    public = section.prior.public
    if public is None:
        return None
    import numpy as np

    from streamdp.priors.public import PublicRows

    path, name = str(public.path), public.column or section.column_name()
    derived = public.column is None and isinstance(section.column, Derived)
    query = CellQuery(name, grid, expression(name) if derived else None)
    rows = data.counts(path, public.format, query)
    if not len(rows.cells):
        raise ConfigurationError(
            f"column {name!r} of the public rows holds no number",
            where=path,
            hint="name another column in prior.public.column, or leave prior.public out",
        )
    resolution = float(grid.resolution)
    return PublicRows(np.asarray(rows.cells * resolution), rows.counts, resolution)


def _fit(section: QuantilesSection, public: PublicRows) -> PublicFit:
    """Fitted with chance that anyone can repeat, so that every start believes the same."""
    import numpy as np

    from streamdp.learning.public import fit_public
    from streamdp.mechanisms.quantile_tree.simulation import PublicEntropy

    targets = np.array([float(quantile) for quantile in section.quantiles])
    rows, chance = section.expected_rows or 1, PublicEntropy("public rows")
    return fit_public(public, targets, rows, chance)


def _robust_prior(section: QuantilesSection, public: PublicRows | None) -> Prior:
    """The prior that holds when the past misleads: as configured, and as public rows lie."""
    configured = _configured_prior(section)
    if public is None or section.prior.public is None or not section.prior.public.tabulate:
        return configured
    from streamdp.priors.mixture import Mixture
    from streamdp.priors.tabulated import tabulated

    shares = (TABULATED_WEIGHT, 1.0 - TABULATED_WEIGHT)
    return Mixture(shares, (tabulated(public), configured))


def _configured_prior(section: QuantilesSection) -> Prior:
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
