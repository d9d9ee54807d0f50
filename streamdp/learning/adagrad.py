"""AdaGrad with forgetting: each coordinate steps by its own recent gradients.

References:
    Duchi, Hazan & Singer 2011 (diagonal AdaGrad); Tieleman & Hinton 2012 (squares that are
    forgotten, so that steps do not vanish on a stream that moves).
"""

from __future__ import annotations

import numpy as np

from streamdp.types import FloatArray

RATE = 0.5
"""Length of the first step, in the unit of a standardised coordinate."""

KEEP = 0.98
"""Part of the sum of squares that a further gradient leaves: fifty releases are remembered."""


def step(
    gradient: FloatArray, squares: FloatArray, at: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return parameters and sums of squared gradients after one more gradient; all of one shape."""
    squares = KEEP * squares + gradient**2
    return at - RATE * gradient / np.sqrt(squares + 1e-12), squares
