"""What the configuration of experts refuses, and what is foretold of what it takes."""

from pathlib import Path

import pytest

from streamdp.backends.duckdb.records import backend_of_records
from streamdp.config import load
from streamdp.errors import ConfigurationError, SourceError
from streamdp.kinds.experts.kind import Experts
from streamdp.kinds.experts.losses import Actions, RuleLosses
from streamdp.kinds.experts.spec import Regret
from streamdp.wiring import release_kind
from tests.kinds.experts.worlds import BATCH

HEAD = """
store: {path: store.db}
privacy: {unit: trip, caps: {batch: 1, lifetime: 10}}
sources:
  trips: {path: trips.parquet, batches: {column: at, every: 1d, start: 2024-01-01}}
releases:
  which: {kind: experts, source: trips, epsilon: 0.5, BODY}
"""
ROWS = "expected_rows: 100, "
RULES = 'experts: {rules: {sql: "x >= {t}", t: {from: 0, to: 9}}, label: late}'
ONE = "t: {from: 0, to: 9}"
MANY_CELLS = " AND ".join(f"x >= {{p{number}}}" for number in range(8))
PARAMETERS = ", ".join(f"p{number}: {{from: 0, to: 1}}" for number in range(8))
ACTIONS = "experts: {losses: {go: x, stay: 1 - x}, denominator: 10}"


def experts(folder: Path, body: str) -> Experts:
    path = folder / "config.yaml"
    path.write_text(HEAD.replace("BODY", body))
    kind = release_kind(load(path), "which")
    assert isinstance(kind, Experts)
    return kind


def test_rules_and_actions(tmp_path: Path) -> None:
    """Each names its experts in columns of its own."""
    rules, actions = (experts(tmp_path, ROWS + body) for body in (RULES, ACTIONS))
    assert isinstance(rules.losses, RuleLosses)
    assert isinstance(actions.losses, Actions)
    assert (rules.columns[0].name, actions.columns[0].name) == ("t", "action")
    assert rules.losses.count == 10


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (RULES, "expected_rows"),
        (ROWS + RULES.replace("to: 9", "to: 900"), "2 to 500"),
        (ROWS + RULES.replace("x >= {t}", MANY_CELLS).replace(ONE, PARAMETERS), "2000 at most"),
        (ROWS + RULES.replace("x >= {t}", "x = {t}"), "joined by AND"),
        (ROWS + "experts: {losses: {go: x}}", "losses"),
        (ROWS + "experts: {losses: {go: x, stay: count(*)}}", "reads other records"),
        (ROWS + "experts: {losses: {go: x, stay: 0.5}}", "must be a text"),
        (ROWS + RULES.replace("t}", "loss}").replace("t:", "loss:"), "rename"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, body: str, what: str) -> None:
    """With the reason, before anything is planned."""
    with pytest.raises(ConfigurationError) as refusal:
        experts(tmp_path, body)
    assert what in str(refusal.value)


def test_what_is_foretold_shrinks_with_epsilon(tmp_path: Path) -> None:
    """Half the interval of a loss at twice the price."""
    kind = experts(tmp_path, ROWS + RULES)
    error = Regret().expected(kind)["loss_error_95"]
    assert error is not None
    assert Regret().price_for(kind, error / 2).amount == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("loss", ["x > 3", "late", "CASE WHEN x > 3 THEN true ELSE false END"])
def test_a_condition_is_no_loss_and_the_error_says_what_to_write(tmp_path: Path, loss: str) -> None:
    """Engines subtract no truth values: the message is ours, before anything is charged."""
    kind = experts(tmp_path, ROWS + f"experts: {{losses: {{go: '{loss}', stay: '0.5'}}}}")
    backend = backend_of_records({"x": [1.0], "late": [True]}, "x")
    with pytest.raises(SourceError) as refusal:
        backend.check(kind.plan(kind.init(), BATCH).query, BATCH)
    assert "CASE WHEN … THEN 1 ELSE 0 END" in str(refusal.value.hint)
