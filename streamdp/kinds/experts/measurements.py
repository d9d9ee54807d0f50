"""Measurements of a release of experts: the noisy integers that losses follow from, and the level.

From what was drawn and from public facts alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from streamdp.kinds.experts.losses import LEVEL_SHARE, sensitivity
from streamdp.types import Json, Measurement, MeasurementTerms, NoiseLaw

if TYPE_CHECKING:
    from streamdp.kinds.experts.kind import DrawnLosses, Experts, Noise

CHANCE_BITS = 53
"""Bits of the public coin."""


def measured(kind: Experts, noise: Noise, drawn: DrawnLosses) -> Iterator[Measurement]:
    """The integers, with forecasts and coin beside them; then the level, if there is one."""
    asked = _question(kind)
    given: Json = {"coin": round(drawn.chance * 2**CHANCE_BITS)}
    if noise.forecasts:
        given |= {"forecasts": list(noise.forecasts)}
    share = Fraction(1) if drawn.level is None else 1 - LEVEL_SHARE
    size = sensitivity(kind.losses, kind.neighbours)
    law = NoiseLaw("epsilon", kind.epsilon * share, size)
    terms = MeasurementTerms("losses", asked, noise=law, share=share, relation=kind.neighbours)
    yield Measurement(terms, numbers=drawn.integers, given=given)
    if drawn.level is not None:
        yield Measurement(
            MeasurementTerms(
                "losses",
                asked,
                part="level",
                stage=1,
                noise=NoiseLaw("epsilon", kind.epsilon * LEVEL_SHARE),
                share=LEVEL_SHARE,
                relation=kind.neighbours,
            ),
            numbers=(drawn.level,),
        )


def drawn_of(kind: Experts, measurements: Sequence[Measurement]) -> DrawnLosses | None:
    """The draw that was measured so; None if it was of other experts."""
    from streamdp.kinds.experts.kind import DrawnLosses

    asked = _question(kind)
    found = {each.terms.part: each for each in measurements if each.terms.question == asked}
    if "" not in found:
        return None
    level = found["level"].numbers[0] if "level" in found else None
    return DrawnLosses(found[""].numbers, level, found[""].given["coin"] / 2**CHANCE_BITS)


def _question(kind: Experts) -> Json:
    """The experts, what they lose, and which records count.

    Forecasts change from batch to batch and stand beside the integers.
    """
    asked = kind.losses.query() if kind.forecasts is None else kind.forecasts
    experts = [list(row.values()) for row in kind.losses.rows()]
    about = {"experts": experts, "losses": repr(asked)}
    return about | ({} if kind.where is None else {"where": kind.where})
