"""How long a job rests after charges that were burnt."""

FIRST_REST, LONGEST_REST = 120, 6 * 3600
"""Seconds a job rests after its second burnt charge in a row; they double."""

LONGEST_AFTER_DEATHS = 3600
"""Seconds it rests at most where the process died: it need not have been its fault."""


CHANCE = 4
"""Deaths of one batch from which on it, and not chance, is taken for what kills."""


def rest_after_deaths(deaths: int, of_batch: int) -> int:
    """Seconds of rest after deaths of the process with charges of a job, and of its last batch.

    A batch that is killed by chance is soon released: one that has died often rests as one does
    whose question fails.

    >>> [rest_after_deaths(deaths, 1) for deaths in (0, 1, 2, 3, 99)]
    [0, 0, 120, 240, 3600]
    >>> [rest_after_deaths(1, of_batch) for of_batch in (1, 3, 4, 5, 10, 99)]
    [0, 0, 480, 960, 21600, 21600]
    """
    found = min(rest_after(deaths), LONGEST_AFTER_DEATHS)
    return found if of_batch < CHANCE else max(found, rest_after(of_batch))


def rest_after(burns: int) -> int:
    """Seconds of rest after so many questions in a row that failed; none after one.

    >>> [rest_after(burns) for burns in (0, 1, 2, 3, 99)]
    [0, 0, 120, 240, 21600]
    """
    return 0 if burns < 2 else int(min(FIRST_REST * 2 ** min(burns - 2, 20), LONGEST_REST))
