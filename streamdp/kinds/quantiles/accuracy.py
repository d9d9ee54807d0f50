"""Expected rank error of quantiles, from public facts alone.

Simulated for a first release, as it would be drawn, so that what is learned since helps.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from streamdp.learning.learner import CountedPlan
from streamdp.mechanisms.quantile_tree.planning import accuracy
from streamdp.mechanisms.quantile_tree.planning.accuracy import STANDARD, Believed
from streamdp.mechanisms.quantile_tree.planning.bound import of_first_releases
from streamdp.mechanisms.quantile_tree.planning.choice import choose_tree
from streamdp.priors.joint import JointPrior
from streamdp.privacy.price import Price

if TYPE_CHECKING:
    from streamdp.kinds.quantiles.kind import Quantiles
    from streamdp.mechanisms.quantile_tree.tree import QuantileTree


NOWHERE = (STANDARD, Believed(0.5, 0.1))
"""Beliefs about batches where neither a guess nor bounds say where they lie."""


class RankError:
    """Rank error that 95 % of releases stay within."""

    def expected(self, kind: Quantiles) -> Mapping[str, float | None]:
        """Return the error that 95 % of releases stay within, in ranks and in the column's unit.

        None without expected rows. Where the first release is drawn, the paper's bound on the rank
        error stands beside it, and the loss U of the prior that it rests on.
        """
        if kind.expected_rows is None:
            return {"rank_error_95": None}
        rank = expected_rank_error(kind)
        row: dict[str, float | None] = {"rank_error_95": rank}
        if kind.believed_batch not in NOWHERE:
            row["value_error_95"] = value_error(kind, rank)
        if not isinstance(kind.learner.plan_release(kind.init()), CountedPlan):
            row["rank_error_bound_95"], row["prior_loss_nats"] = _bound(_first_release(kind, None))
        return row

    def simulates(self, kind: Quantiles) -> bool:
        """Return whether a first release can be simulated: with expected rows."""
        return kind.expected_rows is not None

    def key(self, kind: Quantiles) -> Hashable:
        """Return a key of the first release, whatever its column or source."""
        return _first_release(kind, None), kind.epsilon

    def price_for(self, kind: Quantiles, error: float) -> Price | None:
        """Price for one record with which 95 % of releases stay within; None if none was found."""
        if kind.expected_rows is None:
            return None

        def reached(epsilon: Fraction) -> float:
            return expected_rank_error(kind, epsilon)

        needed = accuracy.epsilon_needed(reached, kind.epsilon, error)
        return None if needed is None else Price.of_loss_range(needed, kind.measure)

    def prices_for(self, kind: Quantiles, error: float) -> Mapping[str, Price | None]:
        """Price for one record at which values are so near, in the unit of the column.

        Nothing where neither a guess nor bounds say how the column is spread.
        """
        if kind.expected_rows is None or kind.believed_batch in NOWHERE:
            return {}
        low, high = 0.0, 0.5
        if value_error(kind, high) <= error:
            low = high
        for _ in range(RANK_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if value_error(kind, middle) <= error else (low, middle)
        return {"value": self.price_for(kind, low) if low > 0.0 else None}


RANK_HALVINGS = 12
"""Halvings of the ranks from which an error of values is computed."""


def value_error(kind: Quantiles, rank: float) -> float:
    """Return the error of a value that is off by some ranks, in the unit of the column.

    Of plausible batches, as the guess places and spreads them; of the worst quantile. Real batches
    have other shapes: this tells sizes, not digits.
    """
    rows = min(kind.expected_rows or 1, PLAUSIBLE_ROWS)
    targets = np.array([float(quantile) for quantile in kind.quantiles])
    found = []
    for index in range(PLAUSIBLE):
        batch = kind.believed_batch.batch(index, rows)
        middle, low, high = (
            np.quantile(batch, np.clip(targets + step, 0.0, 1.0)) for step in (0.0, -rank, rank)
        )
        found.append(np.maximum(high - middle, middle - low))
    return float(f"{np.median(found, axis=0).max():.3g}")


PLAUSIBLE, PLAUSIBLE_ROWS = 15, 2000
"""Batches, and their records, by which ranks are told in the unit of the column."""


@dataclass(frozen=True, slots=True)
class FirstRelease:
    """Inputs of a rank error: jobs with equal ones have equal figures.

    Args:
        tree: The mechanism.
        prior: Of the release.
        described: Parameters of the prior, by which it is compared.
        rows: Expected in a batch.
        believed: Of the batches.
    """

    tree: QuantileTree
    prior: JointPrior = field(compare=False)
    described: str
    rows: int
    believed: Believed


def _first_release(kind: Quantiles, epsilon: Fraction | None) -> FirstRelease:
    tree, prior = kind.first_plan() if epsilon is None else _first_plan_at(kind, epsilon)
    described = json.dumps(prior.describe(), sort_keys=True)
    return FirstRelease(tree, prior, described, kind.expected_rows or 1, kind.believed_batch)


def expected_rank_error(kind: Quantiles, epsilon: Fraction | None = None) -> float:
    """Rank error of a first release at some epsilon; takes about as long as a hundred releases."""
    return _stays_under(_first_release(kind, epsilon))


@functools.lru_cache(maxsize=1024)
def _stays_under(first: FirstRelease) -> float:
    found = accuracy.stays_under(first.tree, first.prior, first.rows, first.believed)
    return round(found, 4)


@functools.lru_cache(maxsize=1024)
def _bound(first: FirstRelease) -> tuple[float, float]:
    error, loss = of_first_releases(first.tree, first.prior, first.rows, first.believed)
    return round(error, 4), round(loss, 2)


def _first_plan_at(kind: Quantiles, epsilon: Fraction) -> tuple[QuantileTree, JointPrior]:
    """Return tree and prior of a first release at another epsilon; a table may choose its form."""
    tree, prior = kind.first_plan()
    share, count = epsilon * (1 - kind.learner.gradient_share), len(kind.quantiles)
    now, then = (choose_tree(count, each, kind.expected_rows) for each in (tree.epsilon, share))
    chosen = tree == now.tree(tree.quantiles, tree.epsilon, tree.grid, tree.relation)
    if not chosen or (then.shapes and not prior.shapes):
        return replace(tree, epsilon=share), prior
    tree = then.tree(tree.quantiles, share, tree.grid, tree.relation)
    return tree, prior if then.shapes else JointPrior(prior.robust)
