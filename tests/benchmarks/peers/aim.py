"""AIM, as smartnoise-synth implements it, at a zero-concentrated price.

References:
    McKenna, Mullins, Sheldon & Miklau 2022.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import warnings
from collections.abc import Sequence

import numpy as np

from streamdp.types import FloatArray, IntArray


def missing() -> str | None:
    """Why it cannot run here; None if it can."""
    try:
        import snsynth.aim  # noqa: F401
    except ImportError as error:
        return f"pip install smartnoise-synth ({error})"
    return None


def marginals(
    table: IntArray, wanted: Sequence[tuple[int, ...]], rho: float, seed: int
) -> list[FloatArray]:
    """Its answers to some marginals, of its model itself and not of a sample.

    Args:
        table: Exact counts of a domain; it is told their sum.
        wanted: Axes of each marginal.
        rho: What it may cost.
        seed: Of its chance.
    """
    import pandas as pd
    from mbi import Dataset, Domain
    from snsynth.aim import AIMSynthesizer

    names = [f"c{axis}" for axis in range(table.ndim)]
    places = np.repeat(np.arange(table.size), table.reshape(-1))
    records = np.stack(np.unravel_index(places, table.shape), axis=1)
    np.random.seed(seed)
    mechanism = AIMSynthesizer()
    mechanism.rho = rho
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = Dataset(pd.DataFrame(records, columns=names), Domain(names, table.shape))
        mechanism.AIM(data, list(itertools.combinations(names, 2)))
    model = mechanism.synthesizer
    return [
        np.asarray(model.project(tuple(names[axis] for axis in axes)).datavector(), dtype=float)
        for axes in wanted
    ]
