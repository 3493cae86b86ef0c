"""delta-rs on a real S3 server, reached by what the project's `storage` resolves to (S6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaworks.config.credentials.credential import parse_credential
from deltaworks.config.credentials.memory import MemoryVault
from deltaworks.config.project import load_project
from deltaworks.engines.deltars.errors import translated
from deltaworks.errors import DeltaworksError
from deltaworks.storage.engine_options import delta_rs_options
from tests.services.s3_server import ACCESS_KEY, SECRET_KEY, S3Server


def options(tmp_path: Path, server: S3Server, location: str, **record: str) -> dict[str, str]:
    """The options for a location, its keys in the vault or, without a record, the environment."""
    name = tmp_path.name
    if record:
        MemoryVault(name).put("lake", parse_credential(record, name="lake"))
    chosen = "credential: lake, " if record else ""
    (tmp_path / "deltaworks.yaml").write_text(
        f"project: {name}\nwarehouse: w\ncredentials: {{backend: memory}}\nstorage:\n"
        f"  s3://lake: {{{chosen}endpoint: '{server.endpoint}', path_style: true}}\n"
    )
    environ = {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": "us-east-1",
    }
    access = load_project(tmp_path, environ=environ).store_access(location)
    assert access is not None
    return delta_rs_options(access)


@pytest.mark.parametrize("place", ["vault", "environment"])
def test_a_table_is_written_and_read_with_resolved_options(
    tmp_path: Path, s3: S3Server, place: str
) -> None:
    import pyarrow as pa
    from deltalake import DeltaTable, write_deltalake

    s3.files().create_dir("lake")
    location = f"s3://lake/{place}"
    keys = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY} if place == "vault" else {}
    found = options(tmp_path, s3, location, **keys)
    for batch in ([1, 2], [3]):
        write_deltalake(location, pa.table({"id": batch}), mode="append", storage_options=found)
    table = DeltaTable(location, storage_options=found)
    assert sorted(table.to_pyarrow_table().column("id").to_pylist()) == [1, 2, 3]
    assert table.version() == 1


def test_a_wrong_key_is_refused_without_being_shown(tmp_path: Path, s3: S3Server) -> None:
    from deltalake import DeltaTable

    wrong = "canary-wrong-secret"
    found = options(tmp_path, s3, "s3://lake/x", access_key=ACCESS_KEY, secret_key=wrong)
    with pytest.raises(DeltaworksError) as caught, translated("s3://lake/x"):
        DeltaTable("s3://lake/x", storage_options=found)
    assert "the secret key is wrong" in str(caught.value)
    assert wrong not in str(caught.value)
    assert ACCESS_KEY not in str(caught.value)
