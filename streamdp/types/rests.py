"""How long a job rests after charges that were burnt."""

FIRST_REST, LONGEST_REST = 120, 6 * 3600
"""Seconds a job rests after its second burnt charge in a row; they double."""

LONGEST_AFTER_DEATHS = 3600
"""Seconds it rests at most where the process died: it need not have been its fault."""


def rest_after_deaths(deaths: int) -> int:
    """Seconds of rest after so many deaths of the process in a row, each with a charge of the job.

    >>> [rest_after_deaths(deaths) for deaths in (0, 1, 2, 3, 99)]
    [0, 0, 120, 240, 3600]
    """
    return min(rest_after(deaths), LONGEST_AFTER_DEATHS)


def rest_after(burns: int) -> int:
    """Seconds of rest after so many questions in a row that failed; none after one.

    >>> [rest_after(burns) for burns in (0, 1, 2, 3, 99)]
    [0, 0, 120, 240, 21600]
    """
    return 0 if burns < 2 else int(min(FIRST_REST * 2 ** min(burns - 2, 20), LONGEST_REST))
