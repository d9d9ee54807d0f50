"""Forms of stored data: arrays survive to the bit, in the form of today and of versions before."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from streamdp.types import FloatArray, Json
from streamdp.types.forms import packed, rounded, unpacked

ARRAYS = {
    "one": np.array([0.0, -0.0, 1 / 3, -1e300, 5e-324]),
    "two": np.arange(6.0).reshape(2, 3),
    "none": np.empty((0, 2)),
}


@pytest.mark.parametrize("names", [(), ("one",), ("none",), ("two", "none", "one")])
def test_arrays_survive_json_to_the_bit(names: tuple[str, ...]) -> None:
    """Wherever they stand between plain data."""
    state: Json = {"a": [1, "x"], "b": {name: ARRAYS[name] for name in names}, "c": None}
    found = unpacked(json.loads(json.dumps(packed(state))))
    assert found == state | {"b": found["b"]}
    assert list(found["b"]) == list(names)
    for name in names:
        assert found["b"][name].shape == ARRAYS[name].shape
        assert found["b"][name].tobytes() == ARRAYS[name].tobytes()


def older(array: FloatArray) -> Json:
    """The form in which versions before stored an array."""
    numbers = base64.b64encode(np.ascontiguousarray(array, dtype="<f8").tobytes()).decode("ascii")
    return {"shape": list(array.shape), "kind": "<f8", "numbers": numbers}


def test_arrays_of_older_states_are_read() -> None:
    """Each with its own numbers."""
    found = unpacked({"a": 1, "b": {name: older(each) for name, each in ARRAYS.items()}})
    assert found["a"] == 1
    for name, each in ARRAYS.items():
        assert np.array_equal(found["b"][name], each)


def test_rounded_numbers_are_near_and_short() -> None:
    """Within half of the last digit, whatever their size; rounding twice changes nothing."""
    numbers = np.array([0.0, 1.0, 1 / 3, -1e-200, 123456.789])
    found = rounded(numbers, 8)
    assert found == pytest.approx(numbers, rel=2.0**-8)
    assert np.array_equal(rounded(found, 8), found)
    assert np.array_equal(found * 2.0**-9, rounded(numbers * 2.0**-9, 8))
