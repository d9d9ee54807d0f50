"""The learners that `prior.learner` names.

To add one: write a class that inherits `learning.learner.Learner` (its four methods without a body
are enough for one that makes priors alone), a function here that makes it, a line in `LEARNERS`,
and its name in `prior_section.LearnerName`. The tests of `tests/learning/test_contract.py` then
run on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from streamdp.kinds.quantiles.priors import fit, guess_of, public_rows, robust_prior, shapes

if TYPE_CHECKING:
    from streamdp.kinds.quantiles.section import LearnerName, QuantilesSection
    from streamdp.kinds.spec import PublicData
    from streamdp.learning.learner import Learner
    from streamdp.learning.online_gradient.public_fit import PublicFit
    from streamdp.mechanisms.quantile_tree.tree import QuantileTree
    from streamdp.types import Prior

COCOB_NARROWEST = 0.01
"""Least scale of the online-gradient prior, in guessed scales, as in the paper's experiments."""


@dataclass(frozen=True, slots=True)
class Basis:
    """Inputs of a learner's builder.

    Args:
        section: The configured release.
        tree: Over all quantiles, at what the learner leaves of epsilon.
        robust: Prior that holds when the past misleads.
        fitted: What public rows say before any release; None without.
    """

    section: QuantilesSection
    tree: QuantileTree
    robust: Prior
    fitted: PublicFit | None


@dataclass(frozen=True, slots=True)
class LearnerSpec:
    """A learner, as the configuration names it.

    Args:
        make: Makes it.
        keys: Keys of `prior` that it alone reads.
    """

    make: Callable[[Basis], Learner]
    keys: frozenset[str] = frozenset()


def learner(section: QuantilesSection, tree: QuantileTree, data: PublicData) -> Learner:
    """The configured learner, with public rows behind its first priors if there are any.

    Raises:
        ConfigurationError: The public rows hold no number.
        SourceError: They cannot be read.
    """
    public = public_rows(section, tree.grid, data)
    fitted = None if public is None else fit(section, public)
    basis = Basis(section, tree, robust_prior(section, public), fitted)
    return LEARNERS[section.learner()].make(basis)


def _mixture(basis: Basis) -> Learner:
    """Return the default learner; its first release is drawn as that of `learner: none`."""
    from streamdp.learning.mixture.mixture import BayesianMixture

    return BayesianMixture(*_counting(basis))


def _counting(basis: Basis) -> tuple[Any, ...]:
    """Arguments of a learner that counts after its first release."""
    from streamdp.learning.mixture.release_plan import PLANS
    from streamdp.mechanisms.histograms import Histograms
    from streamdp.mechanisms.quantile_tree.planning.choice import choose_tree
    from streamdp.priors.joint import JointPrior
    from streamdp.privacy.price import Price

    section, tree = basis.section, basis.tree
    quantiles, rows, auto = section.quantiles, section.expected_rows, section.mechanism == "auto"
    first = tree, JointPrior(_first(basis))
    if auto:
        form = choose_tree(len(quantiles), tree.epsilon, rows)
        like = form.tree(quantiles, tree.epsilon, tree.grid, tree.relation)
        first = like, form.prior(_first(basis), shapes(section) if form.shapes else None)
    plans = PLANS if section.counts() else ()
    price = Price.of_loss_range(tree.epsilon, section.price.measure)
    return (
        tree,
        basis.robust,
        section.prior.robust_weight,
        guess_of(section),
        rows or 1,
        first,
        tuple(Histograms(price, tree.grid, plan, tree.relation) for plan in plans),
        () if basis.fitted is None else _first(basis),
    )


def _online_gradient(basis: Basis) -> Learner:
    """Return the gradient learner: steps along gradients at releases, or along bought ones.

    Without expected rows nobody knows how noisy a release is: steps are then those of the paper, at
    released points.
    """
    section, guess = basis.section, guess_of(basis.section)
    if section.auxiliary_share() or section.expected_rows is None:
        from streamdp.learning.online_gradient.point_gradient import PointGradient, PrivateGradient

        half = float(section.resolution) / 2.0
        narrowest = max(half, COCOB_NARROWEST * guess[1])
        about = (basis.robust, section.prior.robust_weight, guess, half, narrowest)
        share = section.auxiliary_share()
        if share:
            return PrivateGradient(*about, first=basis.fitted, gradient_share=share)
        return PointGradient(*about, first=basis.fitted)
    from streamdp.learning.online_gradient.learner import OnlineGradient

    made = OnlineGradient(*_counting(basis))
    return replace(made, loss=section.prior.loss, steps=section.prior.steps)


def _last_release(basis: Basis) -> Learner:
    """A learner whose prior lies about the last release, as wide as releases have lately moved."""
    from streamdp.learning.learner import LastRelease

    weight, scale = basis.section.prior.robust_weight, guess_of(basis.section)[1]
    resolution = float(basis.section.resolution)
    return LastRelease(basis.robust, weight, scale, resolution, _first(basis))


def _none(basis: Basis) -> Learner:
    """Return the learner that keeps the first priors for ever."""
    from streamdp.learning.learner import Fixed

    return Fixed(_first(basis))


def _first(basis: Basis) -> tuple[Prior, ...]:
    """Return the priors before any release: of public rows, or the robust ones."""
    section = basis.section
    if basis.fitted is None:
        return (basis.robust,) * len(section.quantiles)
    weight = section.prior.robust_weight
    return basis.fitted.priors(basis.robust, weight, float(section.resolution))


LEARNERS: dict[LearnerName, LearnerSpec] = {
    "mixture": LearnerSpec(_mixture, frozenset({"measure"})),
    "online-gradient": LearnerSpec(
        _online_gradient, frozenset({"measure", "loss", "steps", "private_gradient"})
    ),
    "last-release": LearnerSpec(_last_release),
    "none": LearnerSpec(_none),
}
"""All learners by the name that the configuration gives them."""
