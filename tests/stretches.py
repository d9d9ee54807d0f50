"""Every stretch of a cap's width, by its definition: no neighbours, no pointers."""

from fractions import Fraction

from streamdp.privacy.filters import Limit

HALF = Fraction(1, 2)


def stretches(limit: Limit, order: list[tuple[str, int, int]]) -> list[set[str]]:
    """Sets of keys; times are integers below 150, a moment may be between two of them."""
    keys = [key for key, _, _ in order]
    if limit.lifetime:
        return [set(keys)]
    if limit.batches is not None:
        found = [set(keys[low : low + limit.batches]) for low in range(len(keys))]
        return found or [set()]
    width = limit.seconds or 0
    moments = [moment * HALF for moment in range(-2 * width, 2 * 160)]
    return [
        {
            key
            for key, start, end in order
            if (start < t + width and t < end) or (start == end and t <= start < t + width)
        }
        for t in moments
    ]
