"""The guarantee of a source in plain words, for the person who decides: as exact as its tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from streamdp.database import Database
from streamdp.privacy.accountants import epsilon_of_rho
from streamdp.privacy.amounts import ATTO, NANO, UNBOUNDED, delta_text, epsilon_text
from streamdp.privacy.filters import Caps, Limit
from streamdp.store.ledger.ledger import most_within
from streamdp.types import Json

WEEK = 7 * 86_400

SAYS_LITTLE = ">99"
"""Where a guess may be right more than 99 times in 100."""

NOT_PROMISED = (
    "that a person is protected beyond that unit, who has more records or several names;"
    " that what is true of everybody stays hidden, which a release may tell of people who took no"
    " part; that nobody learns that a batch exists, or what the configuration says; protection"
    " from whoever reads the source, or runs this program and can raise the caps (the ledger keeps"
    " each change). A record that is replaced, or moves to another batch, counts as two that come"
    " or go, or as more if it is one of several. Sources count apart: who is in several loses what"
    " each of them costs."
)


@dataclass(frozen=True, slots=True)
class BatchStretch:
    """What one unit may lose in some batches that follow each other.

    Args:
        over: The batches, in words.
        limit: As wide as they are.
        epsilon: At most, by the caps, in nano units; in rho's place what it is at a delta.
        delta: The chance that goes with it, in units of 1e-18.
        so_far: The most that one in such batches has lost; None where there is no such figure.
    """

    over: str
    limit: Limit
    epsilon: int
    delta: int
    so_far: int | None

    def row(self) -> dict[str, Json]:
        """The row of a table."""
        return {
            "one_that_is_in": self.over,
            **({} if self.so_far is None else {"epsilon_so_far": epsilon_text(self.so_far)}),
            **row_of(self.epsilon, self.delta),
        }


def guessed_right(epsilon: int, delta: int = 0) -> str:
    """How often of 100 a guess is right at most, between two things that are as likely.

    Of two laws that are (epsilon, delta)-close a guess which of them spoke, of each as often, is
    right in a share of (e^epsilon + delta) / (1 + e^epsilon) at most, whatever it goes by (Kairouz,
    Oh & Viswanath 2015, theorem 2.1). Rounded up to a
    whole number.

    >>> guessed_right(0), guessed_right(300_000_000), guessed_right(60 * 10**9)
    ('50', '58', '>99')
    """
    if epsilon >= UNBOUNDED:
        return SAYS_LITTLE
    wrong = (1 - delta / ATTO) / (1 + math.exp(min(epsilon / NANO, 700)))
    right = math.ceil(100 * (1 - wrong) - 1e-9)
    return str(right) if right <= 99 else SAYS_LITTLE


def stretches(
    database: Database,
    scope: str,
    caps: Caps,
    every: int | None,
    spent: int | None,
    at: Fraction,
    *,
    growing: bool,
) -> list[BatchStretch]:
    """One batch, the batches of a week, and all: what one in each of them loses at most.

    Args:
        database: The store.
        scope: The source.
        caps: In force.
        every: Seconds of a window; None where batches are none.
        spent: Pure loss over the lifetime; None where a charge has none.
        at: The delta of figures where caps are in rho.
        growing: Whether a record is in all batches from its own on, so that one batch is all.
    """
    some = [] if growing else _some(every)
    lost: list[int] | list[None] = [None] * len(some)
    if spent is not None:
        lost = most_within(database, scope, [limit for _, limit in some])
    found = [
        _stretch(over, limit, caps, every, so_far, at)
        for (over, limit), so_far in zip(some, lost, strict=True)
    ]
    return [*found, for_ever(caps, spent, at)]


def for_ever(caps: Caps, spent: int | None, at: Fraction) -> BatchStretch:
    """What one in all batches of a source loses at most.

    Args:
        caps: In force.
        spent: Pure loss over the lifetime; None where a charge has none, or nobody asks.
        at: The delta of figures where caps are in rho.
    """
    return _stretch("all batches, for ever", Limit(0), caps, None, spent, at)


def _some(every: int | None) -> list[tuple[str, Limit]]:
    """One batch, and as many as a week has, where it is known to have several."""
    several = 0 if every is None else math.ceil(WEEK / every)
    one = [("one batch", Limit(0, batches=1))]
    if several < 2:
        return one
    return [*one, (f"each of {several} batches in a row, a week", Limit(0, batches=several))]


def _stretch(
    over: str, limit: Limit, caps: Caps, every: int | None, so_far: int | None, at: Fraction
) -> BatchStretch:
    most = _allowed(limit, [each for each in caps.limits if each.measure == caps.measure], every)
    delta = _allowed(limit, caps.deltas, every)
    if caps.measure == "rho":
        rest = at - Fraction(delta, ATTO)
        most = epsilon_of_rho(most, rest) if rest > 0 else UNBOUNDED
        delta = math.ceil(at * ATTO)
    return BatchStretch(over, limit, most, delta, so_far)


def _allowed(stretch: Limit, limits: list[Limit] | tuple[Limit, ...], every: int | None) -> int:
    """The most that caps of one measure admit in a stretch: of each, as often as it fits.

    A cap over a stretch of time holds all batches of a shorter one; of others that are narrower
    it says nothing here.
    """
    number = stretch.batches
    found = []
    for limit in limits:
        if limit.lifetime:
            found.append(limit.nano)
        elif number is not None and limit.batches is not None:
            found.append(limit.nano * math.ceil(number / limit.batches))
        elif number == 1 or (number and every and (limit.seconds or 0) >= number * every):
            found.append(limit.nano)
    return min(found)


def in_plain_words(sources: Sequence[dict[str, Json]]) -> list[dict[str, str]]:
    """Who is protected, from what, how much, what is not promised: of statements of sources.

    >>> fresh = {"source": "visits", "spent": "nothing: no batch was released"}
    >>> [each["text"] for each in in_plain_words([fresh])]
    ['of visits nothing was released.']
    """
    found = []
    for source in sources:
        if "how_much" not in source:
            said = f"of {source['source']} nothing was released."
            found.append({"title": "Nothing yet", "text": said})
    begun = [source for source in sources if "how_much" in source]
    alike: dict[tuple[str, str], list[dict[str, Json]]] = {}
    for source in begun:
        alike.setdefault((source["unit"], source["neighbours"]), []).append(source)
    for (unit, neighbours), own in alike.items():
        names = " and in ".join(str(each["source"]) for each in own)
        found.append({"title": "Who is protected", "text": f"each {unit}, in {names}."})
        found.append({"title": "From what", "text": _from(neighbours)})
        found += [
            {"title": f"How much in {each['source']}", "text": _how_much(each)} for each in own
        ]
    assumed = [str(each["assumes"]) for each in begun if "assumes" in each]
    more = "".join(f" It is assumed {each}." for each in dict.fromkeys(assumed))
    return [*found, {"title": "Not promised", "text": NOT_PROMISED + more}] if begun else found


def one_and_all(one: Mapping[str, Json], life: Mapping[str, Json], source: str) -> str:
    """How often a guess is right at most, by one release and by all of a source, in one sentence.

    >>> one = {"guessed_right_of_100": "53", "epsilon_at_most": "0.1"}
    >>> one_and_all(one, one | {"guessed_right_of_100": "82"}, "visits").split(", and ")[1]
    'by every release of visits together, for ever, at most 82 times (epsilon 0.1 by the caps)'

    Args:
        one: Epsilon, delta and guesses of one release, as in the rows of `how_much`.
        life: The same of all batches of its source.
        source: Which.
    """
    often = times(str(life["guessed_right_of_100"]))
    if life["guessed_right_of_100"] == SAYS_LITTLE:
        often += ", so that the caps promise little of all together"
    return (
        f"{times(str(one['guessed_right_of_100']))} in 100 by one release ({_price(one)}), and by"
        f" every release of {source} together, for ever, {often} ({_price(life)} by the caps)"
    )


def times(right: str) -> str:
    """How often a guess is right, of 100, from the figure of `guessed_right`.

    >>> times("58"), times(SAYS_LITTLE)
    ('at most 58 times', 'more than 99 times')
    """
    return "more than 99 times" if right == SAYS_LITTLE else f"at most {right} times"


def row_of(epsilon: int, delta: int) -> dict[str, Json]:
    """Epsilon and delta of one release, and what a guess is worth by it."""
    return {
        "epsilon_at_most": epsilon_text(epsilon),
        **({"delta_at_most": delta_text(delta)} if delta else {}),
        "guessed_right_of_100": guessed_right(epsilon, delta),
    }


def _price(row: Mapping[str, Json]) -> str:
    delta = f", delta {row['delta_at_most']}" if "delta_at_most" in row else ""
    return f"epsilon {row['epsilon_at_most']}{delta}"


def _from(neighbours: str) -> str:
    exchanged = neighbours == "substitute"
    what = "is that one, or another in its place" if exchanged else "is among the data, or not"
    return (
        "from whoever sees all that is published, now and later, knows all other records, and"
        f" wants to tell whether one {what}. Who guesses, and finds both as likely, is right 50"
        " times in 100 without releases. With them the caps keep such guesses below a bound."
    )


def _how_much(source: dict[str, Json]) -> str:
    """What a guess may be worth of one in some batches, and what was lost so far."""
    rows = source["how_much"]
    life, lost = rows[-1], source["spent_for_life"]
    if "epsilon_so_far" not in life:
        so_far = f"epsilon {lost['epsilon_at_delta']} at delta {lost['delta']}, of one in all"
        so_far += f" batches, assuming {lost['assumes']}"
    else:
        so_far = ", ".join(str(row["epsilon_so_far"]) for row in rows)
        so_far = f"epsilon {so_far}" + (", in this order" if len(rows) > 1 else "")
        if "delta_of_releases" in lost:
            so_far += f"; of delta {lost['delta_of_releases']} in all"
    one, first = source.get("dearest_release"), ""
    if one is not None:
        said = one_and_all(one, life, source["source"])
        dear = f"of its jobs, as they are configured, {one['job']} is the dearest"
        first = f"a guess about one is right {said}; {dear}. By caps, "
    bets = _bets(rows)
    return f"{first}right guesses in 100, at most: {bets}. So far one has lost at most {so_far}."


def _bets(rows: Sequence[dict[str, Json]]) -> str:
    """How often a guess about one in some batches is right at most, where caps say much of it."""
    some = [
        f"{row['guessed_right_of_100']} about one in {_who(row)}"
        for row in rows
        if row["guessed_right_of_100"] != SAYS_LITTLE
    ]
    little = [_who(row) for row in rows if row["guessed_right_of_100"] == SAYS_LITTLE]
    if little:
        some.append(f"more than 99, which promises little, about one in {', in '.join(little)}")
    return "; ".join(some)


def _who(row: dict[str, Json]) -> str:
    return f"{row['one_that_is_in']} ({_price(row)})"
