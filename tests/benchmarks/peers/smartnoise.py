"""MWEM and MST, as smartnoise-synth implements them.

References:
    Hardt, Ligett & McSherry 2012; McKenna, Miklau & Sheldon 2021.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from streamdp.types import FloatArray, IntArray

SAMPLE = 50
"""Synthetic records of MST for each record: its model is asked through them."""

ITERATIONS = 2
"""Queries that MWEM measures; its own rule is 30 for a thousand records, and far worse."""


def missing() -> str | None:
    """Why they cannot run here; None if they can."""
    try:
        import snsynth.mst
        import snsynth.mwem  # noqa: F401
    except ImportError as error:
        return f"pip install smartnoise-synth ({error})"
    return None


def mwem(
    table: IntArray, wanted: Sequence[tuple[int, ...]], epsilon: float, seed: int
) -> list[FloatArray]:
    """Answers of MWEM's histogram to some marginals.

    Args:
        table: Exact counts of a domain; it is told their sum, and the least and largest value.
        wanted: Axes of each marginal.
        epsilon: What it may cost.
        seed: Of its chance.
    """
    from snsynth.mwem import MWEMSynthesizer

    class Given(MWEMSynthesizer):  # type: ignore[misc]
        """Records are codes already."""

        def _get_train_data(self, data: IntArray, **_: object) -> IntArray:
            return data

    records = _records(table)
    with _quietly(seed):
        mechanism = Given(epsilon, iterations=ITERATIONS, marginal_width=2)
        mechanism.fit(records)
    (found, *_), *_ = mechanism.synthetic_histograms
    whole = np.zeros(table.shape)
    least = records.min(axis=0)
    whole[tuple(slice(low, low + size) for low, size in zip(least, found.shape, strict=True))] = (
        found
    )
    return _marginals(whole * len(records) / max(whole.sum(), 1e-9), wanted)


def mst(
    table: IntArray, wanted: Sequence[tuple[int, ...]], rho: float, seed: int
) -> list[FloatArray]:
    """Answers of many synthetic records of MST to some marginals.

    Args:
        table: Exact counts of a domain; it is told their sum.
        wanted: Axes of each marginal.
        rho: What it may cost.
        seed: Of its chance.
    """
    import pandas as pd
    from mbi import Dataset, Domain
    from snsynth.mst import mst as module

    names = [f"c{axis}" for axis in range(table.ndim)]
    records = _records(table)
    with _quietly(seed), _priced(module, rho):
        mechanism = module.MSTSynthesizer()
        frame = pd.DataFrame(records, columns=names)
        mechanism.MST(Dataset(frame, Domain(names, table.shape)), 0.0, 0.0)
        made = mechanism.synthesizer.synthetic_data(rows=SAMPLE * len(records))
        whole = mechanism.undo_compress_fn(made).df[names].to_numpy()
    cells = np.ravel_multi_index(tuple(whole.T), table.shape)
    counts = np.bincount(cells, minlength=table.size).reshape(table.shape)
    return _marginals(counts / SAMPLE, wanted)


def _records(table: IntArray) -> IntArray:
    places = np.repeat(np.arange(table.size), table.reshape(-1))
    return np.stack(np.unravel_index(places, table.shape), axis=1)


def _marginals(whole: FloatArray, wanted: Sequence[tuple[int, ...]]) -> list[FloatArray]:
    axes = range(whole.ndim)
    return [
        whole.sum(axis=tuple(axis for axis in axes if axis not in kept)).reshape(-1)
        for kept in wanted
    ]


@contextlib.contextmanager
def _quietly(seed: int) -> Iterator[None]:
    np.random.seed(seed)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _priced(module: object, rho: float) -> Iterator[None]:
    """MST converts (epsilon, delta) to the price that it spends: it is told that price."""
    from unittest.mock import patch

    with patch.object(module, "cdp_rho", lambda epsilon, delta: rho):
        yield
