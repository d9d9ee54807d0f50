"""The release kind `selection`: problems that no single key shows."""

from __future__ import annotations

from collections.abc import Iterator

from streamdp.config.base.expressions import expression
from streamdp.config.base.releases import CheckContext, Problem
from streamdp.kinds.rules.parse import conditions
from streamdp.kinds.rules.section import MOST_CONDITIONS, Rules
from streamdp.kinds.selection.section import SelectionSection, SumScore


def check(section: SelectionSection, context: CheckContext) -> Iterator[Problem]:
    """Yields expressions that the engine cannot read, and sums over too many rules."""
    try:
        section.scored(context.dialect)
        if isinstance(section.among, Rules):
            next(conditions(section.among.sql, section.among.values(), context.dialect))
        else:
            for sql in section.among.conditions.values():
                expression(sql, context.dialect)
    except ValueError as error:
        yield Problem(("among",), str(error), "write what the engine can do")
    if isinstance(section.score, SumScore) and section.count() > MOST_CONDITIONS:
        yield Problem(
            ("score",),
            f"a sum is asked once for each of {section.count()} candidates",
            f"have at most {MOST_CONDITIONS}, or a score that is a count",
        )
