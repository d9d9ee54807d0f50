"""The key `test` of a gate: the tests that a configuration may name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from streamdp.gates.sections.count_tests import CountTest, GrowthTest
from streamdp.gates.sections.custom_tests import CustomTest
from streamdp.gates.sections.quantile_tests import DriftTest, ThresholdTest
from streamdp.gates.sections.rule_tests import ErrorTest, FirstTest

Test = Annotated[
    DriftTest | ThresholdTest | GrowthTest | CountTest | ErrorTest | FirstTest | CustomTest,
    Field(discriminator="kind"),
]


TEST_KINDS = ("drift", "threshold", "growth", "count", "error", "first", "custom")
"""The values of `kind` of a test."""
