"""Loss between streams that are several steps apart (`mechanisms/PRIVACY.md`, the claim)."""

from __future__ import annotations

from collections.abc import Iterable

from streamdp.privacy.filters import Measure


def loss_of_steps(batches: Iterable[tuple[int, int]], measure: Measure) -> int:
    """The most that is lost between two streams: Σ steps·ε, or Σ steps²·ρ.

    Steps in one batch follow each other on the same draws, which is group privacy. Draws on
    different batches lose their own, which is composition.

    Args:
        batches: Of each batch that differs, how many steps, and what one step may lose there.
        measure: Of these losses.

    >>> loss_of_steps([(1, 5), (1, 5)], "rho"), loss_of_steps([(2, 5)], "rho")
    (10, 20)
    >>> loss_of_steps([(1, 5), (1, 5)], "epsilon"), loss_of_steps([(2, 5)], "epsilon")
    (10, 10)
    """
    power = 2 if measure == "rho" else 1
    return sum(steps**power * loss for steps, loss in batches)
