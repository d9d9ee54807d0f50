"""Online optimisers as pairs of pure functions: `init` makes a state, `update` one step.

Parameters and gradients are arrays of one shape; states are JSON-ready dictionaries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamdp.types import FloatArray, Json


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An online optimiser.

    Args:
        init: First state for parameters of a shape.
        update: (gradient, state, parameters) to (parameters, state).
    """

    init: Callable[[tuple[int, ...]], Json]
    update: Callable[[FloatArray, Json, FloatArray], tuple[FloatArray, Json]]


def gradient_descent(diameter: float, gradient_bound: float) -> Optimizer:
    """Steps of D/(G·√t): regret at most 1.5·D·G·√T against the best fixed parameter.

    Args:
        diameter: D of the set the parameters are projected on by the caller.
        gradient_bound: G; longer gradients are cut to it.

    References:
        Zinkevich 2003.
    """

    def init(shape: tuple[int, ...]) -> Json:
        return {"step": 0}

    def update(gradient: FloatArray, state: Json, at: FloatArray) -> tuple[FloatArray, Json]:
        step = int(state["step"]) + 1
        cut = min(1.0, gradient_bound / max(float(np.linalg.norm(gradient)), 1e-300))
        rate = diameter / (gradient_bound * step**0.5)
        return at - rate * cut * gradient, {"step": step}

    return Optimizer(init, update)


def coin_betting(alpha: float = 100.0) -> Optimizer:
    """COCOB: no step size; each coordinate bets the reward it has won so far.

    Args:
        alpha: Caps the first bets at a fraction 1/α of what was won.

    References:
        Orabona & Tommasi 2017, algorithm 2.
    """

    def init(shape: tuple[int, ...]) -> Json:
        zeros = np.zeros(shape)
        start = {"largest": zeros + 1e-8, "lengths": zeros, "sum": zeros, "reward": zeros}
        return {name: part.tolist() for name, part in start.items()} | {"moved": zeros.tolist()}

    def update(gradient: FloatArray, state: Json, at: FloatArray) -> tuple[FloatArray, Json]:
        moved = np.array(state["moved"])
        largest = np.maximum(state["largest"], np.abs(gradient))
        lengths = state["lengths"] + np.abs(gradient)
        total = state["sum"] - gradient
        reward = np.maximum(state["reward"] - gradient * moved, 0.0)
        bet = total / (largest * np.maximum(lengths + largest, alpha * largest))
        new = bet * (largest + reward)
        parts = {
            "largest": largest,
            "lengths": lengths,
            "sum": total,
            "reward": reward,
            "moved": new,
        }
        return at - moved + new, {name: part.tolist() for name, part in parts.items()}

    return Optimizer(init, update)
