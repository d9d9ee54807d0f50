"""Who releases a stream: learners, each with the paper's sharpness and with ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from streamdp.learning.experts import ExpertMixture
from streamdp.learning.gradient import OnlineGradient
from streamdp.learning.last_release import LastRelease
from streamdp.learning.optimizers import coin_betting
from streamdp.mechanisms.grains import GRAINS
from streamdp.mechanisms.sharpness import Level
from streamdp.mechanisms.tree import QuantileTree
from streamdp.priors.families import Cauchy
from streamdp.priors.joint import JointPrior
from streamdp.types import Json, Prior
from tests.benchmarks.streams.sequences import DECILES, Stream

Features = tuple[float, ...]
Priors = tuple[Prior, ...] | JointPrior


class Learner(Protocol):
    """Priors from past releases; what the replay needs."""

    def init(self) -> Json: ...

    def priors(self, state: Json, count: int, features: Features = ()) -> Priors: ...

    def learn(self, state: Json, values: tuple[float, ...], features: Features = ()) -> Json: ...


class TextbookLevel(Level):
    """Half the budget, whatever the target: what the exponential mechanism is quoted with."""

    def sharpness(self, targets: tuple[Fraction, ...]) -> Fraction:
        return self.budget / 2


class CoupledTree(QuantileTree):
    """Each level is drawn from priors that know what the levels above have released."""

    def _updated(self, prior: JointPrior, points: dict[int, int]) -> JointPrior:
        width = float(self.grid.resolution)
        return prior.given({j: point // GRAINS * width for j, point in points.items()}, width)


class TextbookTree(CoupledTree):
    """The same tree with textbook sharpness."""

    def levels(self) -> tuple[Level, ...]:
        ours = QuantileTree.levels(self)
        return tuple(TextbookLevel(e.budget, e.nodes, e.kind, e.relation) for e in ours)


@dataclass(frozen=True, slots=True)
class Static:
    """The robust prior for ever."""

    robust: Prior

    def init(self) -> Json:
        return None

    def priors(self, state: Json, count: int, features: Features = ()) -> tuple[Prior, ...]:
        return (self.robust,) * count

    def learn(self, state: Json, values: tuple[float, ...], features: Features = ()) -> Json:
        return None


@dataclass(frozen=True, slots=True)
class Unfeatured:
    """Last release + robust prior, 0.1 of it; knows no features."""

    inner: LastRelease

    def init(self) -> Json:
        return self.inner.init()

    def priors(self, state: Json, count: int, features: Features = ()) -> tuple[Prior, ...]:
        return self.inner.priors(state, count)

    def learn(self, state: Json, values: tuple[float, ...], features: Features = ()) -> Json:
        return self.inner.learn(state, values)


def trees(stream: Stream, epsilon: Fraction) -> dict[str, QuantileTree]:
    """The tree with each sharpness."""
    return {
        "textbook": TextbookTree(DECILES, epsilon, stream.grid),
        "ours": CoupledTree(DECILES, epsilon, stream.grid),
    }


def static(stream: Stream, tree: QuantileTree) -> Learner:
    """Cauchy at the guess."""
    return Static(Cauchy(*stream.guess))


def last_release(stream: Stream, tree: QuantileTree) -> Learner:
    """Last release + robust, λ = 0.1."""
    resolution = float(stream.grid.resolution)
    return Unfeatured(LastRelease(Cauchy(*stream.guess), 0.1, stream.guess[1], resolution))


def paper(stream: Stream, tree: QuantileTree) -> Learner:
    """The paper's best: COCOB on the proxy loss, λ = 0.1, φ at most 1/0.01 guessed scales."""
    half = float(stream.grid.resolution) / 2
    narrowest = max(half, 0.01 * stream.guess[1])
    return OnlineGradient(Cauchy(*stream.guess), 0.1, stream.guess, coin_betting(), half, narrowest)


def experts(stream: Stream, tree: QuantileTree) -> ExpertMixture:
    """The default learner."""
    return ExpertMixture(tree, Cauchy(*stream.guess), 0.05, stream.guess, stream.rows)


CONTENDERS: dict[str, Callable[[Stream, QuantileTree], Learner]] = {
    "static": static,
    "last-release": last_release,
    "paper-cocob": paper,
    "experts": experts,
}
