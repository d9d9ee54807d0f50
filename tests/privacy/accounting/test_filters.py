"""Caps over stretches, beside their definition; and what one cap says of another."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.privacy.filters import Borne, Caps, Item, Limit, Place, full_since, fullest
from tests.stretches import stretches

LIMITS = st.builds(Limit, st.integers(1, 100), batches=st.integers(1, 6)) | st.builds(
    Limit, st.integers(1, 100), seconds=st.integers(1, 25)
)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Place], Borne]:
    """Windows one after the other, or files by name; some charges, some in many batches."""
    if draw(st.booleans()):
        places, end = [], 0
        for name in range(draw(st.integers(1, 10))):
            start = end + draw(st.integers(0, 6))
            end = start + draw(st.integers(1, 8))
            places.append(Place(str(name), start, end))
    else:
        arrivals = draw(st.lists(st.integers(0, 60), min_size=1, max_size=10))
        places = [Place(str(name), at, at) for name, at in enumerate(arrivals)]
    borne: dict[str, list[Item]] = {}
    keys = [place.key for place in places]
    for seq in range(draw(st.integers(0, 6))):
        amount = draw(st.integers(1, 20))
        for key in draw(st.lists(st.sampled_from(keys), min_size=1, max_size=4, unique=True)):
            borne.setdefault(key, []).append(Item(seq, amount, 0))
    return places, borne


def total(borne: Borne, keys: set[str]) -> int:
    items = {item for key in keys for item in borne.get(key, ())}
    return sum(item.amount("epsilon") for item in items)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(worlds(), LIMITS, st.data())
def test_the_fullest_stretch_is_that_of_the_definition(
    world: tuple[list[Place], Borne], limit: Limit, data: st.DataObject
) -> None:
    """Over all stretches, over those that hold a batch, and with one charge more in it."""
    places, borne = world
    every = stretches(limit, [(place.key, place.start, place.end) for place in places])
    assert fullest(limit, places, borne) == max(total(borne, keys) for keys in every)
    key = data.draw(st.sampled_from([place.key for place in places]))
    holding = [keys for keys in every if key in keys]
    assert fullest(limit, places, borne, key) == max(total(borne, keys) for keys in holding)
    new = Item(data.draw(st.integers(0, 7)), 5, 0)
    known = [item for items in borne.values() for item in items if item.seq == new.seq]
    new = known[0] if known else new
    more = {**borne, key: [*borne.get(key, ()), new]}
    assert fullest(limit, places, borne, key, new) == max(total(more, keys) for keys in holding)


@settings(max_examples=200, deadline=None)
@given(worlds(), LIMITS, st.integers(1, 100))
def test_a_window_frees_when_it_says(
    world: tuple[list[Place], Borne], limit: Limit, cost: int
) -> None:
    """With the named batch gone, and all before it, the cost fits; while it is there it does not.

    A batch behind all others is `batches` places, or `seconds` after its end, behind the named.
    """
    if cost > limit.nano:
        return
    places, borne = world
    gone = full_since(limit, places, borne, cost)
    if limit.seconds is not None:
        places = sorted(places, key=lambda place: (place.end, place.start))
    index = -1 if gone is None else places.index(gone)
    after = {place.key for place in places[index + 1 :]}
    assert total(borne, after) + cost <= limit.nano
    if gone is not None:
        assert total(borne, after | {gone.key}) + cost > limit.nano


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        (Caps(3, 9), Caps(3, 9), True),
        (Caps(3, 9), Caps(2, 8), True),
        (Caps(3, 9), Caps(4, 9), False),
        (Caps(3, 9), Caps(3, 10), False),
        (Caps(3, 9), Caps(3, 9, (Limit(5, batches=7),)), True),
        (Caps(3, 9, (Limit(5, batches=7),)), Caps(3, 9), False),
        (Caps(3, 9, (Limit(5, batches=7),)), Caps(3, 5), True),
        (Caps(3, 9, (Limit(5, batches=7),)), Caps(3, 9, (Limit(5, batches=8),)), True),
        (Caps(3, 9, (Limit(5, batches=7),)), Caps(3, 9, (Limit(5, batches=6),)), False),
        (Caps(3, 9, (Limit(5, batches=7),)), Caps(3, 9, (Limit(5, "rho", batches=7),)), False),
        (Caps(3, 9, (Limit(5, seconds=7),)), Caps(3, 9, (Limit(4, seconds=9),)), True),
        (Caps(3, 9, (Limit(5, seconds=7),)), Caps(3, 9, (Limit(4, batches=9),)), False),
        (Caps(3, 9, (Limit(5, "rho"),)), Caps(3, 9, (Limit(6, "rho"),)), False),
    ],
)
def test_an_edit_may_only_lower(old: Caps, new: Caps, kept: bool) -> None:
    """Each old cap must follow from a new one that is as wide and no higher."""
    assert (new.above(old) == ()) is kept
