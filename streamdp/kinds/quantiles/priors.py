"""The first priors of a configured release: its guess, its robust prior, its public rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from streamdp.errors import ConfigurationError
from streamdp.kinds.quantiles.section import Family, FamilyName, MixtureOf, QuantilesSection
from streamdp.sections.expressions import Derived, expression
from streamdp.types import CellQuery, Grid, Prior

if TYPE_CHECKING:
    from streamdp.kinds.spec import PublicData
    from streamdp.learning.online_gradient.public_fit import PublicFit
    from streamdp.priors.joint import Shapes
    from streamdp.priors.public import PublicSample

TABULATED_WEIGHT = 0.8
"""Share of the tabulated law in the robust prior; the rest holds where no public row lies."""


def shapes(section: QuantilesSection) -> Shapes:
    """Joint prior of the quantiles, from the guess, or from the bounds."""
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


def public_rows(section: QuantilesSection, grid: Grid, data: PublicData) -> PublicSample | None:
    """The public rows of the column, rounded as records are."""
    public = section.prior.public
    if public is None:
        return None
    import numpy as np

    from streamdp.priors.public import PublicSample

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
    return PublicSample(np.asarray(rows.cells * resolution), rows.counts, resolution)


def fit(section: QuantilesSection, public: PublicSample) -> PublicFit:
    """Fit public rows with fixed chance, so that every start has the same priors."""
    import numpy as np

    from streamdp.learning.online_gradient.public_fit import fit_public
    from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy

    targets = np.array([float(quantile) for quantile in section.quantiles])
    rows, chance = section.expected_rows or 1, PublicEntropy("public rows")
    return fit_public(public, targets, rows, chance)


def robust_prior(section: QuantilesSection, public: PublicSample | None) -> Prior:
    """The prior that holds when the past misleads: as configured, and as public rows lie."""
    configured = _configured_prior(section)
    if public is None or section.prior.public is None or not section.prior.public.tabulate:
        return configured
    from streamdp.priors.public import tabulated
    from streamdp.priors.shapes import Mixture

    shares = (TABULATED_WEIGHT, 1.0 - TABULATED_WEIGHT)
    return Mixture(shares, (tabulated(public), configured))


def _configured_prior(section: QuantilesSection) -> Prior:
    match section.prior.robust:
        case MixtureOf(mixture=members):
            from streamdp.priors.shapes import Mixture

            weights = tuple(member.weight for member in members)
            return Mixture(weights, tuple(_family(member) for member in members))
        case Family() as family:
            return _family(family)
        case None:
            return _family(_named(section, "cauchy" if section.guess else "uniform"))
        case name:
            return _family(_named(section, name))


def _named(section: QuantilesSection, name: FamilyName) -> Family:
    """A family at the guess, or over the bounds."""
    if name == "uniform":
        first, last = section.cells()
        half = section.resolution / 2
        lower, upper = (float(cell * section.resolution) for cell in (first, last))
        return Family(family=name, lower=lower - float(half), upper=upper + float(half))
    assert section.guess is not None, "checked when the configuration was loaded"  # noqa: S101
    return Family(family=name, location=section.guess.location, scale=section.guess.scale)


def _family(section: Family) -> Prior:
    from streamdp.priors import shapes

    location, scale = float(section.location or 0), float(section.scale or 1)
    match section.family:
        case "uniform":
            return shapes.Uniform(float(section.lower or 0), float(section.upper or 0))
        case "cauchy":
            return shapes.Cauchy(location, scale)
        case "half-cauchy":
            return shapes.HalfCauchy(location, scale)
        case "laplace":
            return shapes.Laplace(location, scale)
        case _:
            assert_never(section.family)
