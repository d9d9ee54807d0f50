"""A file is one batch for ever: the same again is no other, and another is refused."""

from pathlib import Path

from tests.crash.home import BATCHES, Home


def test_a_file_that_comes_again_is_no_batch_and_another_is_refused(tmp_path: Path) -> None:
    """The same bytes again are the same batch; other bytes under a known key are refused."""
    home = Home.furnish(tmp_path / "home")
    assert home.live().released == BATCHES
    file = home.path / "drops" / "a.csv"
    file.write_bytes(file.read_bytes())
    assert home.live("second").released == 0
    fresh = home.path / "drops" / "c.csv"
    fresh.write_text("x\n1\n")
    (home.path / "config.yaml").write_text(
        (home.path / "config.yaml").read_text().replace("  parts:", "  again:")
    )
    file.write_text("x\n50\n60\n70\n")
    outcomes = home.live("third")
    assert [error.code for error in outcomes.errors] == ["batch-altered"]
    assert outcomes.released == 2
