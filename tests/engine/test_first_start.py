"""A first start over many files: the first of them are released before the last are looked at."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from streamdp.engine.ingest import AT_FIRST
from streamdp.engine.job import Job
from streamdp.privacy.filters import Caps
from streamdp.sources.files import FileSource
from streamdp.types import Batch
from tests.worlds import EPSILON_NANO, MemoryBackend, World

WIDE = Caps(99 * EPSILON_NANO, 9000 * EPSILON_NANO)


@dataclass(frozen=True)
class Looking(FileSource):
    """Notes which files were read."""

    looked: list[str] = field(default_factory=list)

    def content_digest(self, batch: Batch) -> bytes:
        self.looked.append(batch.key)
        return FileSource.content_digest(self, batch)


def many(folder: Path, files: int) -> tuple[World, Job, Looking]:
    data = folder / "data"
    data.mkdir()
    for number in range(files):
        (data / f"{number:05d}.csv").write_text(f"x\n{number}\n")
    world = World(folder, caps=WIDE)
    source = Looking("s", str(data / "*.csv"))
    backend = MemoryBackend({f"{number:05d}.csv": [50] for number in range(files)})
    return world, replace(world.job(), source=source, backend=backend), source


@pytest.mark.long
def test_the_first_files_are_released_before_the_last_are_looked_at(tmp_path: Path) -> None:
    """Two jobs and more than two looks: each file is released once by each, in order."""
    files = 2 * AT_FIRST + 30
    world, job, source = many(tmp_path, files)
    seen: list[int] = []
    real = world.sink.deliver

    def deliver(release: object) -> None:
        seen.append(len(set(source.looked)))
        real(release)  # type: ignore[arg-type]

    world.sink.deliver = deliver  # type: ignore[method-assign]
    other = replace(job, name="other")
    assert world.runner.round([job, other]).released == 2 * files
    assert seen[0] == AT_FIRST
    assert seen[-1] == files
    for name in ("job", "other"):
        mine = [release.batch for release in world.sink.taken if release.job == name]
        assert mine == [f"{number:05d}.csv" for number in range(files)]


def test_a_job_that_fails_is_not_tried_again_for_files_that_were_not_looked_at(
    tmp_path: Path,
) -> None:
    """One failure burns one charge; the next round goes on."""
    world, job, _ = many(tmp_path, AT_FIRST + 5)
    job.backend.fails = True  # type: ignore[attr-defined]
    world.runner.round([job])
    assert world.count("SELECT count(*) FROM ledger WHERE purpose = 'burn'") == 1
    job.backend.fails = False  # type: ignore[attr-defined]
    assert world.runner.round([job]).released == AT_FIRST + 5
