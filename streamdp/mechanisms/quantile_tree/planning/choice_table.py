"""Mean rank errors of the candidates of `choice`, as `calibrate` prints them."""

from __future__ import annotations

from dataclasses import dataclass

NAMES = (
    "binary",
    "joint",
    "joint, faint shapes",
    "joint, shapes",
    "tree of 6, shapes",
    "tree of 4, shapes",
)
"""Candidates, faster ones first: the columns of `_ERRORS`."""

MARGIN = 0.97
"""A later, slower candidate must err less than this share of the best before it."""

TIES = 0.005
"""Share of a batch by which joint draws must err less than the binary tree. The table is of batches
without ties, and a joint draw has few public points on a fine grid: it cannot cut equal records
there, and leaves them. Where noise is small, that would be nearly all of its error."""

_ERRORS = """
        1           10  0.22769  0.20212  0.20212  0.16208        -        -
        1           30  0.01617  0.02736  0.02736  0.02539        -        -
        1          100  0.00488  0.00788  0.00788  0.00684        -        -
        1          300  0.00173  0.00263  0.00263  0.00216        -        -
        1         1000   0.0007   0.0007   0.0007  0.00068        -        -
        1         3000  0.00017   0.0002   0.0002  0.00018        -        -
        1        10000      0.0    3e-05    3e-05    4e-05        -        -
        1       100000      0.0    1e-05    1e-05    1e-05        -        -
        3           10  0.39116  0.46966  0.46966  0.46949        -        -
        3           30  0.21395  0.20752  0.20752  0.17112        -        -
        3          100  0.03995  0.03368  0.03368  0.04013        -        -
        3          300  0.01233  0.01012  0.01003  0.01265        -        -
        3         1000  0.00326  0.00315  0.00315  0.00498        -        -
        3         3000   0.0011  0.00091  0.00091  0.00119        -        -
        3        10000  0.00025  0.00016  0.00016  0.00016        -        -
        3       100000      0.0    1e-05    1e-05    1e-05        -        -
        9           10  0.54383  0.56073  0.56073  0.55042  0.52548  0.56864
        9           30  0.43636  0.47552  0.47552  0.30618  0.23476  0.22189
        9          100  0.18444  0.18854  0.17463  0.11654  0.10116  0.09633
        9          300  0.05034  0.03039  0.02817  0.04214  0.05986  0.08466
        9         1000  0.01269  0.00863   0.0106  0.01271  0.05348  0.07791
        9         3000  0.00425  0.00292  0.00384  0.00811  0.02325   0.0561
        9        10000  0.00127  0.00087  0.00087  0.00149        -        -
        9       100000  0.00011  0.00045  0.00045  0.00045        -        -
       29           10  0.58061  0.62186  0.62186  0.62686  0.66223  0.67028
       29           30  0.49714   0.5842   0.5842  0.27407  0.23771  0.22129
       29          100  0.25557  0.48238  0.48238  0.15945  0.12742  0.11859
       29          300  0.08768  0.22833  0.16071  0.15412  0.07396  0.10159
       29         1000  0.02889  0.02436  0.02767  0.04924  0.06874  0.10364
       29         3000  0.00796   0.0062  0.01146  0.01146   0.0645  0.07958
       29        10000  0.00226  0.00216  0.00474  0.00803        -        -
       29       100000   0.0002   0.0014   0.0014   0.0014        -        -
       99           10  0.68853        -        -        -  0.58723  0.68389
       99           30  0.59051        -        -        -  0.25924  0.21749
       99          100  0.31425        -        -        -  0.12412  0.10524
       99          300  0.12519        -        -        -  0.07938  0.10831
       99         1000   0.0441        -        -        -  0.07477  0.10787
       99         3000  0.01596        -        -        -  0.07207  0.09708
       99        10000  0.00491        -        -        -        -        -
       99       100000  0.00046        -        -        -        -        -
"""
"""Number of quantiles, epsilon times rows, and the error of each candidate that was tried."""


@dataclass(frozen=True, slots=True)
class CandidateErrors:
    """Errors of candidates where quantiles and records are so many.

    Args:
        quantiles: Number of targets.
        epsilon_rows: Epsilon times the number of records.
        errors: Mean rank error of each candidate, in the order of `NAMES`.
    """

    quantiles: int
    epsilon_rows: int
    errors: dict[str, float]

    @property
    def choice(self) -> str:
        """The candidate that errs least, by a margin if it is slower or leaves ties."""
        best = "binary"
        for name, error in self.errors.items():
            if error < MARGIN * self.errors[best]:
                best = name
        gained = self.errors["binary"] - self.errors[best]
        return best if gained > TIES else "binary"

    def line(self) -> str:
        """The line of the table."""
        shown = [f"{self.errors.get(name, '-'):>7}" for name in NAMES]
        return "  ".join([f"{self.quantiles:>9} {self.epsilon_rows:>12}", *shown])


def _measured(line: str) -> CandidateErrors:
    quantiles, epsilon_rows, *errors = line.split()
    known = zip(NAMES, errors, strict=True)
    found = {name: float(error) for name, error in known if error != "-"}
    return CandidateErrors(int(quantiles), int(epsilon_rows), found)


TABLE = tuple(map(_measured, _ERRORS.strip().splitlines()))
