"""Objects of a storage: one CSV or Parquet object a release, whole or not there."""

from __future__ import annotations

import tempfile
from typing import Literal

from pydantic import Field, field_validator

from streamdp.errors import SinkError, SourceError
from streamdp.objects.address import folder_of, parsed
from streamdp.objects.storage import listed, write
from streamdp.sinks.columns import columns
from streamdp.sinks.files import WRITERS, Form, file_name
from streamdp.sinks.section import SinkContext, SinkSection, Written
from streamdp.types import Release


class ObjectsSinkSection(SinkSection):
    """Objects of an S3-compatible storage, one a release: `ADDRESS/JOB/BATCH.ID.csv`."""

    kind: Literal["objects"] = Field(
        description="`objects`: one object a release, in an S3-compatible storage."
    )
    address: str = Field(
        description="`s3://BUCKET/FOLDER` above the objects. Credentials are those of the"
        " environment or the instance.",
        examples=["s3://published/streamdp"],
    )
    form: Literal["csv", "parquet"] = Field(
        default="parquet", description="`csv` or `parquet`: format of the objects. Default parquet."
    )

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        return folder_of(value)

    def sink(self, name: str, context: SinkContext) -> ObjectsSink:
        """The sink, under an address of its own."""
        return ObjectsSink(name, self.address, self.form)

    def written(self) -> Written:
        """The address, for objects of one form."""
        example = f"{self.address}/job/batch.{self.form}"
        return Written("address", f"{self.address}.{self.form}", example)


class ObjectsSink:
    """Writes one object a release, under the release's own key.

    A storage shows an object when it has all of it. The key holds the random id of the release, so
    what has this key is of an earlier attempt.

    Args:
        name: Of the sink.
        address: Above the objects; has one folder a job.
        form: Of the objects.
    """

    def __init__(self, name: str, address: str, form: Form) -> None:
        self.name = name
        self._address, self._form = address, form

    def deliver(self, release: Release) -> None:
        """Write one object.

        Raises:
            SinkError: The storage refused, or there is no room for the file.
        """
        target = parsed(f"{self._address}/{release.job}/{file_name(release, self._form)}")
        try:
            if listed(target):
                return
            with tempfile.TemporaryFile() as file:
                WRITERS[self._form](columns(release), file.fileno())
                file.seek(0)
                write(target, file)
        except SourceError as error:
            raise SinkError(
                f"sink {self.name} cannot write: {error.what}",
                where=error.where,
                hint="may this user list the bucket, and write and read its objects?",
                sink=self.name,
            ) from None
        except OSError as error:
            raise SinkError(
                f"sink {self.name} cannot write: {error.strerror}",
                where=tempfile.gettempdir(),
                hint="look at free space; TMPDIR names another folder",
                sink=self.name,
            ) from None
