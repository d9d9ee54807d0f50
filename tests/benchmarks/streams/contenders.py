"""Who releases a stream: learners, each with the paper's sharpness and with ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.kinds.study import ORACLE, Stream
from streamdp.learning.learner import Fixed, LastRelease, Learner
from streamdp.learning.mixture import release_plan
from streamdp.learning.mixture.mixture import BayesianMixture
from streamdp.learning.online_gradient.learner import OnlineGradient
from streamdp.learning.online_gradient.point_gradient import PointGradient
from streamdp.mechanisms.histograms import Histograms
from streamdp.mechanisms.quantile_tree.grains import exact_quantiles
from streamdp.mechanisms.quantile_tree.planning.choice import CANDIDATES, choose_tree
from streamdp.mechanisms.quantile_tree.sharpness import Level
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import Cauchy, shapes_from_guess
from streamdp.privacy.price import Price
from tests.benchmarks.streams.settings import Setting

OURS, TEXTBOOK = "ours", "textbook"

ROBUST = 0.1
"""λ of the paper's experiments."""


class TextbookLevel(Level):
    """Half the budget, whatever the target: what the exponential mechanism is quoted with."""

    def sharpness(self, targets: tuple[Fraction, ...]) -> Fraction:
        return self.budget / 2


class TextbookTree(QuantileTree):
    """The same tree with textbook sharpness."""

    def levels(self) -> tuple[Level, ...]:
        ours = QuantileTree.levels(self)
        return tuple(TextbookLevel(e.budget, e.nodes, e.kind, e.relation) for e in ours)


class TextbookQuantiles(Quantiles):
    """The release kind with that tree."""

    def tree(self) -> QuantileTree:
        return TextbookTree(self.quantiles, self.epsilon, self.grid)


def static(setting: Setting, tree: QuantileTree, stream: Stream, widths: float = 1.0) -> Learner:
    """Cauchy at the guess."""
    location, scale = setting.guess
    return Fixed((Cauchy(location, widths * scale),) * len(setting.quantiles))


def narrow(setting: Setting, tree: QuantileTree, stream: Stream) -> Learner:
    """The same of a quarter of the scale."""
    return static(setting, tree, stream, 0.25)


def wide(setting: Setting, tree: QuantileTree, stream: Stream) -> Learner:
    """The same of four times the scale."""
    return static(setting, tree, stream, 4.0)


def hindsight(setting: Setting, tree: QuantileTree, stream: Stream) -> Learner:
    """Cauchy of each quantile at its median over the whole stream, as wide as it deviates."""
    truth = np.array(
        [exact_quantiles(batch, setting.quantiles) for batch in stream.counts if len(batch.cells)]
    )
    values = truth * float(setting.grid.resolution)
    middles = np.median(values, axis=0)
    away = np.abs(values - middles).mean(axis=0).clip(float(setting.grid.resolution))
    return Fixed(tuple(Cauchy(*each) for each in zip(middles, away, strict=True)))


def last_release(setting: Setting, tree: QuantileTree, stream: Stream) -> Learner:
    """Last release + robust."""
    resolution = float(setting.grid.resolution)
    return LastRelease(Cauchy(*setting.guess), ROBUST, setting.guess[1], resolution)


def paper(setting: Setting, tree: QuantileTree, stream: Stream) -> Learner:
    """The paper's best: COCOB on the proxy loss, φ at most 1/0.01 guessed scales."""
    guess, half = setting.guess, float(setting.grid.resolution) / 2
    narrowest = max(half, 0.01 * guess[1])
    return PointGradient(Cauchy(*guess), ROBUST, guess, half, narrowest)


def first(setting: Setting, epsilon: Fraction) -> tuple[QuantileTree, JointPrior]:
    """How the default learner draws while it knows nothing."""
    quantiles = setting.quantiles
    form = choose_tree(len(quantiles), epsilon, setting.rows)
    assert form in CANDIDATES.values()
    shapes = shapes_from_guess(quantiles, *setting.guess) if form.shapes else None
    prior = form.prior((Cauchy(*setting.guess),) * len(quantiles), shapes)
    return form.tree(quantiles, epsilon, setting.grid), prior


def mixture(setting: Setting, tree: QuantileTree, stream: Stream) -> BayesianMixture:
    """The default learner; of the textbook's tree, or a single one, every quantile is drawn."""
    guess, robust = setting.guess, Cauchy(*setting.guess)
    about = tree, robust, 0.05, guess, setting.rows
    if isinstance(tree, TextbookTree):
        return BayesianMixture(*about, (tree, JointPrior((robust,) * len(setting.quantiles))))
    price, grid = Price(tree.epsilon), setting.grid
    counts = tuple(Histograms(price, grid, plan) for plan in release_plan.PLANS)
    plans = counts if len(setting.quantiles) > 1 else ()
    return BayesianMixture(*about, first(setting, tree.epsilon), plans)


def gradient(setting: Setting, tree: QuantileTree, stream: Stream) -> OnlineGradient:
    """Gradient descent on what counts show, as the product makes it."""
    known = mixture(setting, tree, stream)
    about = known.tree, known.robust, known.robust_weight, known.guess, known.expected_rows
    return OnlineGradient(*about, known.first, known.histograms)


def in_stages(number: int, setting: Setting, tree: QuantileTree, stream: Stream) -> BayesianMixture:
    """A single plan: counts in so many stages, always."""
    known = mixture(setting, tree, stream)
    return replace(known, histograms=known.histograms[number - 1 : number])


def every(setting: Setting, tree: QuantileTree, stream: Stream) -> BayesianMixture:
    """A single plan: all quantiles from learned priors, always."""
    return mixture(setting, tree, stream).without_counts()


Made = Learner | BayesianMixture

LEARNERS: dict[str, Callable[[Setting, QuantileTree, Stream], Made]] = {
    "mixture": mixture,
    "online-gradient": gradient,
    "one-stage": partial(in_stages, 1),
    "two-stages": partial(in_stages, 2),
    "three-stages": partial(in_stages, 3),
    "quantiles": every,
    "paper-cocob": paper,
    "last-release": last_release,
    "static": static,
    "static-narrow": narrow,
    "static-wide": wide,
    "static-hindsight": hindsight,
}

BOTH = ("mixture", "paper-cocob", "last-release", "static")
"""Measured with textbook sharpness too."""

LEARNING = BOTH[:3]
"""Can recover from an event."""

STATICS = ("static", "static-narrow", "static-wide", "static-hindsight")
"""The best of these is the best static prior: three guesses, and one that has seen the stream."""

NO_LEARNING = "no-learning"
"""What `learner: none` makes of `mechanism: auto`: another tree, mostly with joint nodes."""

PLANS = (
    "one-stage",
    "two-stages",
    "three-stages",
    "quantiles",
    "last-release",
    NO_LEARNING,
)
"""Single plans, which the default learner is to be as good as."""


def names(quick: bool) -> list[str]:
    """Who is measured, as `learner/sharpness`."""
    ours = [f"{name}/{OURS}" for name in (NO_LEARNING, *LEARNERS)]
    return ours + [f"{name}/{TEXTBOOK}" for name in (BOTH[-1:] if quick else BOTH)]


@dataclass(frozen=True, slots=True)
class Contenders:
    """The release kinds of one setting, by name."""

    setting: Setting

    def kind(self, name: str, epsilon: Fraction, stream: Stream) -> Quantiles:
        """A kind as the product makes it, or with textbook sharpness."""
        if name == f"{NO_LEARNING}/{OURS}":
            return self._unlearned(epsilon)
        learner, _, sharpness = name.partition("/")
        textbook = sharpness == TEXTBOOK
        quantiles = self.setting.quantiles
        tree = (TextbookTree if textbook else QuantileTree)(quantiles, epsilon, self.setting.grid)
        made = LEARNERS["mixture" if learner == ORACLE else learner](self.setting, tree, stream)
        kind = TextbookQuantiles if textbook else Quantiles
        features, grid = stream.feature(), self.setting.grid
        return kind("value", quantiles, epsilon, grid, made, features=features)

    def _unlearned(self, epsilon: Fraction) -> Quantiles:
        quantiles = self.setting.quantiles
        form = choose_tree(len(quantiles), epsilon, self.setting.rows)
        assert form in CANDIDATES.values()
        prior = Fixed((Cauchy(*self.setting.guess),) * len(quantiles))
        shapes = shapes_from_guess(quantiles, *self.setting.guess) if form.shapes else None
        grid = self.setting.grid
        return Quantiles("value", quantiles, epsilon, grid, prior, form=form, shapes=shapes)
