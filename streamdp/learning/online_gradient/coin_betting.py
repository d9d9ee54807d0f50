"""Coin betting (COCOB): no step size; each coordinate bets the reward it has won so far.

Parameters and gradients are arrays of one shape; states are JSON-ready dictionaries.

References:
    Orabona & Tommasi 2017, algorithm 2.
"""

from __future__ import annotations

import numpy as np

from streamdp.types import FloatArray, Json

CAUTION = 100.0
"""α: first bets are at most a fraction 1/α of what was won."""


def start(shape: tuple[int, ...]) -> Json:
    """First state for parameters of a shape."""
    zeros = np.zeros(shape).tolist()
    names = ("lengths", "sum", "reward", "moved")
    return {"largest": np.full(shape, 1e-8).tolist()} | dict.fromkeys(names, zeros)


def step(gradient: FloatArray, state: Json, at: FloatArray) -> tuple[FloatArray, Json]:
    """Parameters and state after one more gradient."""
    moved = np.array(state["moved"])
    largest = np.maximum(state["largest"], np.abs(gradient))
    lengths = state["lengths"] + np.abs(gradient)
    total = state["sum"] - gradient
    reward = np.maximum(state["reward"] - gradient * moved, 0.0)
    bet = total / (largest * np.maximum(lengths + largest, CAUTION * largest))
    new = bet * (largest + reward)
    parts = {"largest": largest, "lengths": lengths, "sum": total, "reward": reward, "moved": new}
    return at - moved + new, {name: part.tolist() for name, part in parts.items()}
