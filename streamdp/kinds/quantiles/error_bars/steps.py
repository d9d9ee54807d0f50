"""The step of a column that is coarser than its grid, as far as released values show it.

Whole numbers on a grid of hundredths have all records at every hundredth cell. An independent draw
finds such cells where many records are; chance alone hardly draws several multiples of one step.
Where it would not, values lie on the step, and ends of intervals are rounded to it as to cells.
Joint draws fall on public points, which have steps of their own: they show nothing.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.types import IntArray

CHANCE = 1e-3
"""Most that the probability of so many multiples may be, had the column no step."""


def step_of(cells: IntArray) -> int:
    """Cells between values that records have, 1 unless released cells show more.

    The least probable step is taken, of all that divide two of the cells.
    """
    distinct = np.unique(cells[cells != 0])
    found, least = 1, math.log(CHANCE)
    if len(distinct) < 3:
        return found
    divisors = np.unique(np.gcd.outer(distinct, distinct)[np.triu_indices(len(distinct), 1)])
    for step in divisors[divisors > 1].tolist():
        count = int((distinct % step == 0).sum())
        ways = math.comb(len(distinct), count) * len(divisors)
        chance = math.log(ways) - count * math.log(step)
        if count > 2 and chance < least:
            found, least = step, chance
    return found
