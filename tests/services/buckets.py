"""Tables of streams on the S3 server."""

from __future__ import annotations

from typing import Any

from deltalake import DeltaTable

from deltaworks.streams.opening import NewTable, StreamKwargs, stream_into
from deltaworks.streams.sink import EpochSink
from tests.services.s3_server import ACCESS_KEY, SECRET_KEY, S3Server
from tests.streams.tables import QUICK, SCHEMA


class Bucket:
    """A table in a corner of one bucket: the server has room for a few buckets only."""

    def __init__(self, server: S3Server, name: str) -> None:
        self._server = server
        self.name = f"streams/{name}"
        self.location = f"s3://{self.name}/t"
        server.files().create_dir("streams")
        self.options = {
            "AWS_ENDPOINT_URL": server.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "aws_conditional_put": "etag",
        }

    def opened(self, writer_id: str = "w", **words: Any) -> EpochSink[Any]:
        given: StreamKwargs = {"limits": QUICK, "storage_options": self.options, **words}  # type: ignore[typeddict-item]
        new = NewTable(schema=SCHEMA)
        return stream_into(self.location, writer_id=writer_id, new_table=new, **given)

    def ids(self) -> list[int]:
        table = DeltaTable(self.location, storage_options=self.options)
        return sorted(table.to_pyarrow_table().column("id").to_pylist())

    def put(self, name: str) -> None:
        with self._server.files().open_output_stream(f"{self.name}/t/{name}") as handle:
            handle.write(b"left")

    def names(self) -> list[str]:
        from pyarrow.fs import FileSelector

        found = self._server.files().get_file_info(FileSelector(f"{self.name}/t"))
        return sorted(info.base_name for info in found)
