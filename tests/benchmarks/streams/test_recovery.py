"""Recovery is counted as it is defined."""

import numpy as np

from tests.benchmarks.streams.recovery import releases_to_recover


def test_it_counts_the_releases_until_the_error_is_stable() -> None:
    """Seven bad releases after the event, of two seeds; five of them and no event earlier."""
    course = np.full((40, 3), 0.1)
    course[20:27] = 1.0
    assert releases_to_recover([course, course], 20) == 7
    assert releases_to_recover([course, course], 0) == 0


def test_an_error_that_never_settles_has_no_number() -> None:
    """Until the last quarter begins it was always worse than there."""
    course = np.repeat(np.linspace(3.0, 1.0, 40), 2).reshape(40, 2)
    course[30:] = 0.5
    assert releases_to_recover([course], 20) is None
