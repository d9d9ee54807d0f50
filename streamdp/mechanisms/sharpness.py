"""How sharp a draw may be for its price.

A draw P(o) ∝ μ(o)·exp(-c·cost(o)) has a loss of range c·R over the outputs, where R is the range
over o of the change of the cost between neighbours. So c = epsilon/R.
"""

from __future__ import annotations

from fractions import Fraction

CHOICES_PER_DRAW = 12
"""Most choices one draw makes: a block, a level, and ten to find a point among 2^46 cells."""

RELATIVE_ERROR = Fraction(1, 2**38)
"""Of any weight: 2^-40 by `privacy.draws`, a relative 1e-12 by `log_mass`, and the rest below."""


def numerical_slack(draws: int) -> Fraction:
    """Part of a release's epsilon that pays for the rounding of weights.

    Weights of relative error η make a choice cost 4η more. Every draw of a release may see the
    record (its grains can be shared by all nodes), so the slack counts all of them: 1.6e-9 for
    nine quantiles.
    """
    return draws * CHOICES_PER_DRAW * 4 * RELATIVE_ERROR


def single_quantile_range(quantile: Fraction) -> Fraction:
    """R of |q·n - rank(o)| under add/remove neighbours: 2·max(q, 1 - q); the median has 1.

    Adding a record at t moves d = q·n - rank by +q left of t and by -(1 - q) right of it. |d| then
    changes by at most max(q, 1 - q) either way, and the exact q·n (no floor) is what gives this.
    """
    return 2 * max(quantile, 1 - quantile)


def level_budgets(epsilon: Fraction, levels: int, draws: int) -> tuple[Fraction, ...]:
    """Equal shares of epsilon for the levels of a tree, after the numerical slack."""
    return ((epsilon - numerical_slack(draws)) / levels,) * levels
