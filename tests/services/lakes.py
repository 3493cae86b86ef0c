"""Projects whose warehouse is a bucket of the S3 server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from deltaworks.config.credentials.credential import parse_credential
from deltaworks.config.credentials.memory import MemoryVault
from tests.services.s3_server import ACCESS_KEY, SECRET_KEY, S3Server
from tests.workbench import Workbench

BUCKET = "lake"
QUICK = "delta_rs: {max_retries: '1', retry_timeout: 2s, connect_timeout: 2s, timeout: 5s}"


class Lake(Workbench):
    """A project in a corner of one bucket, which the server has room for."""

    def __init__(
        self, root: Path, server: S3Server, *, bucket: str = BUCKET, storage: str = ""
    ) -> None:
        self.server = server
        self.bucket = bucket
        self.corner = f"{bucket}/{root.name}"
        super().__init__(root)
        server.files().create_dir(bucket)
        self.settle(storage or f"endpoint: '{server.endpoint}', path_style: true")
        self.keep("lake", access_key=ACCESS_KEY, secret_key=SECRET_KEY, region="us-east-1")

    def settle(self, storage: str, *, warehouse: str = "", credential: str = "lake") -> None:
        """Write the project file."""
        self.write(
            "deltaworks.yaml",
            f"project: {self.root.name}\nwarehouse: {warehouse or self.at('wh')}\n"
            "credentials: {backend: memory}\nlocks: {wait_seconds: 1}\nstorage:\n"
            f"  s3://{self.bucket}: {{credential: {credential}, {storage}}}\n",
        )

    def keep(self, name: str, **record: str) -> None:
        """Put a credential into the project's vault."""
        MemoryVault(self.root.name).put(name, parse_credential(record, name=name))

    def at(self, name: str) -> str:
        """The address of something in this corner."""
        return f"s3://{self.corner}/{name}"

    def put(self, name: str, content: str | bytes) -> str:
        """Put an object there; its address."""
        data = content.encode() if isinstance(content, str) else content
        with self.server.files().open_output_stream(f"{self.corner}/{name}") as handle:
            handle.write(data)
        return self.at(name)

    def text(self, name: str) -> str:
        """What an object there says."""
        with self.server.files().open_input_stream(f"{self.corner}/{name}") as handle:
            return str(handle.read().decode())

    def names(self, folder: str) -> list[str]:
        """All objects below a folder, by their paths in it."""
        from pyarrow.fs import FileSelector, FileType

        base = f"{self.corner}/{folder}"
        selector = FileSelector(base, recursive=True, allow_not_found=True)
        found = self.server.files().get_file_info(selector)
        return sorted(info.path[len(base) + 1 :] for info in found if info.type == FileType.File)

    def options(self) -> dict[str, str]:
        """How delta-rs reaches the bucket, without the code under test."""
        return {
            "AWS_ENDPOINT_URL": self.server.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "aws_conditional_put": "etag",
        }

    def rows(self, name: str) -> list[dict[str, Any]]:
        import pyarrow as pa
        from deltalake import DeltaTable, QueryBuilder

        address = name if "://" in name else self.at(f"wh/{name}")
        table = DeltaTable(address, storage_options=self.options())
        found = QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()
        return sorted(pa.table(found).to_pylist(), key=lambda row: json.dumps(row, default=str))
