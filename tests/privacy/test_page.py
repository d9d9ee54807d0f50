from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "streamdp/mechanisms/PRIVACY.md").read_text("utf-8")


def test_the_proof_points_at_tests_and_code_that_exist() -> None:
    """Every path and test named on the page is in the repository, every name in its module."""
    for path in re.findall(r"`(\w+/[\w/]+\.py)`", PAGE):
        assert (ROOT / path).exists() or (ROOT / "streamdp" / path).exists(), path
    tests = "".join(each.read_text("utf-8") for each in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", PAGE):
        assert f"def {name}(" in tests, name
    pattern = r"`(?:privacy\.|mechanisms\.)?(sharpness|exponential|joint|draws|events)\.(\w+)"
    for module, name in re.findall(pattern, PAGE):
        package = "privacy" if module in ("draws", "events") else "mechanisms/quantile_tree"
        text = (ROOT / "streamdp" / package / f"{module}.py").read_text("utf-8")
        assert re.search(rf"(def|class) {name}\b|^{name}\b", text, re.MULTILINE), name
