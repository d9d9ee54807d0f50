"""Plain words are exact: what a guess is worth at most, and what one in a week has lost."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from streamdp.privacy.filters import Caps, Limit
from streamdp.reports.plain import (
    NOT_PROMISED,
    SAYS_LITTLE,
    guessed_right,
    in_plain_words,
    row_of,
    stretches,
)
from streamdp.store.ledger import ledger
from streamdp.store.ledger.charges import ASSUMED
from streamdp.store.ledger.ledger import most_within
from streamdp.types import Reservation
from tests.store.kept import batch_spent
from tests.store.test_runs import DAY, charge, day, opened

NANO, ATTO = 10**9, 10**18
AT = Fraction(1, 10**9)


def best_guess(epsilon: float, delta: float) -> float:
    """How often of 100 the best guess is right about the worst pair there is, outcome by outcome.

    Randomised response, of which a share of delta says the truth outright: every (epsilon,
    delta)-close pair is a function of this one.
    """
    told = (1 - delta) / (1 + math.exp(epsilon))
    law = {"is": delta, "seems": (1 - delta) - told, "seems not": told, "is not": 0.0}
    other = dict(zip(law, reversed(law.values()), strict=True))
    assert sum(law.values()) == pytest.approx(1)
    return 100 * sum(max(law[said], other[said]) for said in law) / 2


@pytest.mark.parametrize("delta", [0.0, 1e-9, 0.01, 0.3])
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.1, 0.3, 1.0, 2.1, 4.0, 4.5])
def test_a_guess_is_worth_what_the_worst_law_allows_and_no_more(
    epsilon: float, delta: float
) -> None:
    """Never less than the best guess there is, and never a whole guess more."""
    said = guessed_right(round(epsilon * NANO), round(delta * ATTO))
    best = best_guess(epsilon, delta)
    if said == SAYS_LITTLE:
        assert best > 99
    else:
        assert best <= int(said) + 1e-6
        assert int(said) < best + 1


@pytest.mark.parametrize("seed", [1, 2])
def test_what_one_in_so_many_batches_has_lost_is_the_worst_stretch(
    tmp_path: Path, seed: int
) -> None:
    """Of all stretches in a row, added up charge by charge; a run counts once in each."""
    chance = np.random.default_rng(seed)
    store = opened(tmp_path, Caps(10_000, 10**9))
    for number in chance.choice(40, 12, replace=False):
        store.reserve("s", "job", day(int(number)), charge(int(chance.integers(1, 40))), 0)
    run = {int(number) for number in chance.choice(40, 5, replace=False)}
    opened_run = store.open_run("s", "gate", charge(25), 0)
    for number in sorted(run):
        store.join_run(opened_run, day(number), 0)
    alone = [batch_spent(store.database, day(n).key) - 25 * (n in run) for n in range(40)]
    widths = range(1, 10)
    worst = [
        max(
            sum(alone[at : at + width]) + 25 * bool(run & set(range(at, at + width)))
            for at in range(41 - width)
        )
        for width in widths
    ]
    limits = [Limit(0, batches=width) for width in widths]
    assert most_within(store.database, "s", limits) == worst
    lost = Reservation(0, "s", ASSUMED, "lost")
    with store.transaction():
        ledger.assume_spent(store.database, lost, charge(60), {"by": "me"}, 0)
    after = most_within(store.database, "s", limits)
    assert after == [max(worst[0], 60), *(each + 60 for each in worst[1:])]


def test_a_week_is_bounded_by_every_cap_that_holds_it(tmp_path: Path) -> None:
    """By seven batch caps, by a window of seven days, not by one of three, and by the lifetime."""
    cases = [
        ((), 10_000, [300, 2100, 10_000]),
        ((), 1000, [300, 1000, 1000]),
        ((Limit(900, seconds=7 * DAY),), 10_000, [300, 900, 10_000]),
        ((Limit(900, seconds=6 * DAY),), 10_000, [300, 2100, 10_000]),
        ((Limit(900, seconds=3 * DAY),), 10_000, [300, 2100, 10_000]),
        ((Limit(200, seconds=3 * DAY),), 10_000, [200, 2100, 10_000]),
        ((Limit(400, batches=3),), 10_000, [300, 1200, 10_000]),
    ]
    store = opened(tmp_path, Caps(300, 10_000))
    for windows, lifetime, said in cases:
        caps = Caps(300, lifetime, windows)
        found = stretches(store.database, "s", caps, DAY, 0, AT, growing=False)
        assert [each.epsilon for each in found] == said
        assert [each.so_far for each in found] == [0, 0, 0]
    weekly = stretches(store.database, "s", caps, 7 * DAY, 0, AT, growing=False)
    assert [each.over for each in weekly] == ["one batch", "all batches, for ever"]
    growing = stretches(store.database, "s", caps, DAY, 0, AT, growing=True)
    assert [(each.over, each.epsilon) for each in growing] == [("all batches, for ever", 10_000)]


def test_caps_in_rho_are_said_at_a_delta(tmp_path: Path) -> None:
    """In epsilon, beside the delta, which raises what a guess is worth; no sum of rho is said."""
    store = opened(tmp_path, Caps(300, 10_000))
    caps = Caps(NANO // 100, NANO // 2, (), "rho")
    found = stretches(store.database, "s", caps, DAY, None, Fraction(1, 1000), growing=False)
    rows = [each.row() for each in found]
    assert all(row["delta_at_most"] == "1e-3" for row in rows)
    assert all("epsilon_so_far" not in row for row in rows)
    rho = 0.07
    assert float(rows[1]["epsilon_at_most"]) <= rho + 2 * math.sqrt(rho * math.log(1000))
    assert float(rows[1]["epsilon_at_most"]) > float(rows[0]["epsilon_at_most"])


def test_words_say_each_figure_once_and_what_is_not_promised() -> None:
    """Sources of one unit are told together; each has a paragraph of its own about how much."""
    row = {"one_that_is_in": "one batch", "epsilon_so_far": "0.1", "epsilon_at_most": "0.3"}
    life = {"one_that_is_in": "all batches, for ever", "epsilon_so_far": "9"}
    source = {
        "unit": "visit",
        "neighbours": "add-remove",
        "how_much": [
            row | {"guessed_right_of_100": "58"},
            life | {"epsilon_at_most": "60", "guessed_right_of_100": SAYS_LITTLE},
        ],
        "spent_for_life": {"epsilon": "9", "delta": "1e-9"},
    }
    said = in_plain_words([source | {"source": "a"}, source | {"source": "b"}])
    titles = [each["title"] for each in said]
    assert titles == [
        *("Who is protected", "From what", "How much in a", "How much in b", "Not promised"),
    ]
    assert said[0]["text"] == "each visit, in a and in b."
    assert said[2]["text"] == (
        "right guesses in 100, at most: 58 about one in one batch (epsilon 0.3); more than 99,"
        " which promises little, about one in all batches, for ever (epsilon 60). So far one has"
        " lost at most epsilon 0.1, 9, in this order."
    )
    assert said[-1]["text"] == NOT_PROMISED
    dear = {"job": "hourly", **row_of(100_000_000, 0)}
    (told,) = [
        each["text"]
        for each in in_plain_words([source | {"source": "a", "dearest_release": dear}])
        if each["title"] == "How much in a"
    ]
    assert told.startswith(
        "a guess about one is right at most 53 times in 100 by one release (epsilon 0.1), and by"
        " every release of a together, for ever, more than 99 times, so that the caps promise"
        " little of all together"
        " (epsilon 60 by the caps); of its jobs, as they are configured, hourly is the"
        " dearest. By caps, right guesses"
    )
    exchanged = in_plain_words([source | {"source": "a", "neighbours": "substitute"}])
    assert "another in its place" in exchanged[1]["text"]
    assert exchanged[0]["text"] == "each visit, in a."
