"""One thread of linear algebra while an answer is computed; whoever calls keeps as many as before.

Matrices of answers have some hundred rows: several threads wait for each other longer than they
compute. A command says so before NumPy is loaded; in a notebook NumPy is loaded already, and the
threads are those of all that is computed there.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_PLACES = (("numpy", "numpy.libs"), ("numpy", "numpy/.dylibs"), ("scipy", "scipy.libs"))
_NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads")

_lock = threading.Lock()
_before: list[int] = []
_inside = 0


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread; as a decorator too. Blocks of several threads end with the last.

    Of the OpenBLAS that wheels of NumPy and SciPy bring; others are left as they are.
    """
    global _inside, _before  # noqa: PLW0603
    with _lock:
        _inside += 1
        if _inside == 1:
            _before = [get() for get, _ in libraries()]
            for _, set_ in libraries():
                set_(1)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                for (_, set_), threads in zip(libraries(), _before, strict=True):
                    set_(threads)


@cache
def libraries() -> tuple[tuple[Callable[[], int], Callable[[int], None]], ...]:
    """How to ask each OpenBLAS that is loaded for its number of threads, and how to set it."""
    import numpy as np  # noqa: F401
    import scipy.linalg  # noqa: F401

    found = []
    for package, folder in _PLACES:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            continue
        for path in sorted((Path(spec.origin).parents[1] / folder).glob("libscipy_openblas*")):
            try:
                library = ctypes.CDLL(str(path), mode=getattr(os, "RTLD_NOLOAD", 0))
            except OSError:
                continue
            for name in _NAMES:
                get, set_ = (getattr(library, name.format(each), None) for each in ("get", "set"))
                if get is not None and set_ is not None:
                    found.append((get, set_))
    return tuple(found)
