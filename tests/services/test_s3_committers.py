"""On S3 a table has one committer, and who it is stands in the table (M8)."""

from __future__ import annotations

import pytest

from deltaworks.engines.commit_protocol import committer_of, require_stream
from deltaworks.errors import GuardError
from tests.services.lakes import Lake
from tests.streams.tables import SCHEMA, batch


def streamed(lake: Lake) -> None:
    with lake.open().stream("events", writer_id="w", schema=SCHEMA) as sink:
        sink.write(batch(1))
        sink.commit_epoch(1)


@pytest.mark.spark
@pytest.mark.usefixtures("jvm")
def test_a_pipeline_does_not_write_what_a_stream_commits_to(lake: Lake) -> None:
    streamed(lake)
    lake.put("in/a.csv", "id\n2\n")
    lake.pipeline(
        "p",
        f'extract: {{type: csv, path: "{lake.at("in")}"}}\n'
        "load: {type: delta, table: events, mode: append, merge_schema: true}\n",
    )
    told = lake.fail("p")
    assert told.code == 5
    assert "is committed to by delta-rs, and on S3 Spark would not see those commits" in told.stderr
    assert len(lake.rows("events")) == 1
    lake.pipeline(
        "own",
        f'extract: {{type: csv, path: "{lake.at("in")}"}}\nload: {{type: delta, table: own}}\n',
    )
    lake.run("own")
    with pytest.raises(GuardError, match="is committed to by Spark"):
        lake.open().stream("own", writer_id="w")
    back = lake.cli("table", "restore", "events", "--version", "0", "--apply")
    assert back.code == 0, back.stderr
    stores = lake.open().config.stores
    assert committer_of(lake.at("wh/events"), stores) == "delta-rs"  # it was restored by its own
    assert committer_of(lake.at("wh/own"), stores) == "spark"


def test_the_property_of_a_table_hands_it_over_and_dynamodb_lets_both_write(lake: Lake) -> None:
    from deltalake import DeltaTable

    streamed(lake)
    place = lake.at("wh/events")
    table = DeltaTable(place, storage_options=lake.options())
    table.alter.set_table_properties({"deltaworks.commits": "spark"}, raise_if_not_exists=False)
    assert committer_of(place, lake.open().config.stores) == "spark"
    with pytest.raises(GuardError, match="is committed to by Spark"):
        streamed(lake)
    table = DeltaTable(place, storage_options=lake.options())
    require_stream(place, table, {**lake.options(), "AWS_S3_LOCKING_PROVIDER": "dynamodb"})
    require_stream("/tmp/here", table, {})
    table.alter.set_table_properties({"deltaworks.commits": "delta-rs"}, raise_if_not_exists=False)
    assert committer_of(place, lake.open().config.stores) == "delta-rs"
    endpoint = f"endpoint: '{lake.server.endpoint}', path_style: true"
    lake.settle(f"{endpoint}, log: {{store: dynamodb}}")
    assert committer_of(place, lake.open().config.stores) is None
    assert committer_of(lake.at("wh/none"), lake.open().config.stores) is None


def test_files_on_s3_are_streamed_each_once_and_told_by_epoch(lake: Lake) -> None:
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    def put(name: str, *ids: int) -> None:
        out = io.BytesIO()
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), out)
        lake.put(f"in/{name}.parquet", out.getvalue())

    lake.pipeline(
        "p",
        f'extract: {{type: parquet, path: "{lake.at("in")}", incremental: true}}\n'
        "load: {type: delta, table: t, mode: append}\n",
    )
    put("a", 1, 2)
    project = lake.open()
    assert project.stream_files("p", writer_id="w").files == 1
    put("b", 3)
    assert project.stream_files("p", writer_id="w").files == 1
    assert project.stream_files("p", writer_id="w").files == 0
    assert [row["id"] for row in lake.rows("t")] == [1, 2, 3]
    assert [record.epoch for record in project.epochs("t")] == [1, 2]
    put("b", 4)
    with pytest.raises(GuardError, match="has changed since the stream read it"):
        project.stream_files("p", writer_id="w")
