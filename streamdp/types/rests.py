"""How long a job rests after charges that were burnt."""

FIRST_REST, LONGEST_REST = 120, 6 * 3600
"""Seconds a job rests after its second burnt charge in a row; they double."""


def rest_after(burns: int) -> int:
    """Seconds of rest after so many burnt charges in a row; none after one.

    >>> [rest_after(burns) for burns in (0, 1, 2, 3, 99)]
    [0, 0, 120, 240, 21600]
    """
    return 0 if burns < 2 else int(min(FIRST_REST * 2 ** min(burns - 2, 20), LONGEST_REST))
