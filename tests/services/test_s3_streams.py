"""Streams into tables on a real S3 server (S1, S3)."""

from __future__ import annotations

import signal
import threading
import time
import zlib

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from deltaworks.config.credentials.credential import parse_credential
from deltaworks.config.credentials.memory import MemoryVault
from deltaworks.errors import DeltaworksError, GuardError, StorageError
from deltaworks.model.epochs import Limits
from deltaworks.model.events import Event, Warned
from deltaworks.model.table_ref import TableRef
from deltaworks.streams.maintenance import MaintenancePlan
from deltaworks.streams.opening import NewTable, StreamOptions, open_stream
from tests.services.buckets import Bucket
from tests.services.s3_server import ACCESS_KEY, SECRET_KEY, S3Server
from tests.streams.tables import SCHEMA, batch
from tests.workbench import Workbench

IMPATIENT = {
    "timeout": "500ms",
    "connect_timeout": "500ms",
    "max_retries": "0",
    "retry_timeout": "500ms",
}


@pytest.fixture
def bucket(s3: S3Server, request: pytest.FixtureRequest) -> Bucket:
    return Bucket(s3, f"{zlib.crc32(request.node.name.encode())}")


def test_epochs_land_once_and_are_known_after_a_restart(bucket: Bucket) -> None:
    with bucket.opened(upkeep=MaintenancePlan(checkpoint_every=3, compact_files=3)) as sink:
        for n in range(8):
            sink.write(batch(n))
            sink.commit_epoch(n)
    with bucket.opened() as sink:
        assert sink.last_committed_epoch == 7
        sink.write(batch(7))
        assert sink.commit_epoch(7).skipped
    assert bucket.ids() == list(range(8))


def test_a_projects_stream_reaches_its_bucket_by_a_credential(
    bucket: Bucket, desk: Workbench
) -> None:
    desk.write(
        "deltaworks.yaml",
        "project: streams\nwarehouse: w\ncredentials: {backend: memory}\nstorage:\n"
        f"  s3://streams: {{credential: lake, endpoint: '{bucket.options['AWS_ENDPOINT_URL']}',"
        " path_style: true}\n",
    )
    keys = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY, "region": "us-east-1"}
    MemoryVault("streams").put("lake", parse_credential(keys, name="lake"))
    with desk.open().stream(bucket.location, writer_id="w", schema=SCHEMA) as sink:
        sink.write(batch(1))
        assert sink.commit_epoch(1).version == 1
    assert bucket.ids() == [1]
    (record,) = desk.open().epochs(bucket.location)
    assert (record.writer_id, record.epoch, record.version) == ("w", 1, 1)


def test_keyed_epochs_land_there_too(bucket: Bucket) -> None:
    with bucket.opened(mode="upsert", keys=["id"]) as sink:
        for n in range(2):
            sink.write(batch(1, 2, s=f"epoch {n}"))
            sink.commit_epoch(n)
    assert bucket.ids() == [1, 2]


def test_four_writers_make_one_table_and_lose_nothing(bucket: Bucket) -> None:
    def stream(i: int) -> None:
        with bucket.opened(f"w{i}") as sink:
            for n in range(5):
                sink.write(batch(10 * i + n))
                sink.commit_epoch(n)

    threads = [threading.Thread(target=stream, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bucket.ids() == sorted(10 * i + n for i in range(4) for n in range(5))


def test_whoever_takes_a_name_over_cleans_up_and_fences_the_one_before(bucket: Bucket) -> None:
    with bucket.opened() as sink:
        sink.write(batch(1))
        sink.commit_epoch(1)
    before = bucket.opened()
    before.write(batch(2))
    bucket.put("stream.w.0123.0.parquet")
    bucket.put("stream.other.0123.0.parquet")
    with bucket.opened() as sink:
        assert "stream.w.0123.0.parquet" not in bucket.names()
        assert "stream.other.0123.0.parquet" in bucket.names()
        with pytest.raises(GuardError, match="another process writes"):
            before.commit_epoch(2)
        sink.write(batch(2))
        sink.commit_epoch(2)
    before.close()
    assert bucket.ids() == [1, 2]


def test_a_server_that_is_not_there_is_a_short_error_without_the_secret(s3: S3Server) -> None:
    bucket = Bucket(s3, "away")
    bucket.options["AWS_ENDPOINT_URL"] = "http://127.0.0.1:9"
    bucket.options["max_retries"] = "0"
    with pytest.raises(DeltaworksError) as caught:
        bucket.opened()
    assert SECRET_KEY not in str(caught.value)


def test_an_outage_is_an_error_after_a_while_and_costs_no_row(bucket: Bucket, s3: S3Server) -> None:
    bucket.options.update(IMPATIENT)
    with bucket.opened(limits=Limits(retry_seconds=1.2)) as sink:
        sink.write(batch(1))
        sink.commit_epoch(1)
        s3.process.send_signal(signal.SIGSTOP)
        try:
            sink.write(batch(2))
            with pytest.raises(StorageError, match="cannot be used"):
                sink.commit_epoch(2)
        finally:
            s3.process.send_signal(signal.SIGCONT)
        assert sink.commit_epoch(2).rows == 1
    assert bucket.ids() == [1, 2]


def test_an_outage_is_waited_out(bucket: Bucket, s3: S3Server) -> None:
    bucket.options.update(IMPATIENT)
    with bucket.opened(limits=Limits(retry_seconds=60)) as sink:
        sink.write(batch(1))
        sink.commit_epoch(1)
        s3.process.send_signal(signal.SIGSTOP)
        back = threading.Timer(2, s3.process.send_signal, [signal.SIGCONT])
        back.start()
        try:
            for n in (2, 3):
                sink.write(batch(n))
                assert sink.commit_epoch(n).rows == 1
        finally:
            s3.process.send_signal(signal.SIGCONT)
            back.join()
        assert sink.last_committed_epoch == 3
    assert bucket.ids() == [1, 2, 3]


def test_history_is_filled_in_beside_the_live_stream(bucket: Bucket) -> None:
    with bucket.opened("live") as live, bucket.opened("backfill-2025") as backfill:
        for n in range(3):
            live.write(batch(n))
            live.commit_epoch(100 + n)
            backfill.write(batch(1000 + n))
            backfill.commit_epoch(n)
    assert bucket.ids() == [0, 1, 2, 1000, 1001, 1002]


def test_a_writer_that_cleans_up_after_a_restore_knows_its_epochs(bucket: Bucket) -> None:
    with bucket.opened() as sink:
        for n in range(1, 6):
            sink.write(batch(n))
            sink.commit_epoch(n)
    bucket.put("stream.w.0123.0.parquet")  # of a session that was killed
    DeltaTable(bucket.location, storage_options=bucket.options).restore(3)
    for _ in range(2):
        with bucket.opened() as sink:
            assert sink.last_committed_epoch == 3
    assert "stream.w.0123.0.parquet" not in bucket.names()
    with bucket.opened() as sink:
        for n in range(2, 7):
            sink.write(batch(n))
            assert sink.commit_epoch(n).skipped == (n <= 3)
    assert bucket.ids() == [1, 2, 3, 4, 5, 6]


def test_a_writer_that_was_set_back_to_before_its_first_epoch_cleans_up_too(bucket: Bucket) -> None:
    with bucket.opened() as sink:
        sink.commit_epoch(1)
    bucket.put("stream.w.0123.0.parquet")
    DeltaTable(bucket.location, storage_options=bucket.options).restore(0)
    for _ in range(2):
        with bucket.opened() as sink:
            assert sink.last_committed_epoch is None


def test_a_second_session_stops_the_first_however_the_table_is_spelled(bucket: Bucket) -> None:
    options = StreamOptions(
        writer_id="w", storage_options=bucket.options, limits=Limits(flush_rows=1)
    )
    new = NewTable(schema=SCHEMA)
    first = open_stream(TableRef("ev", bucket.location), options, new_table=new)
    first.write(batch(1))
    first.commit_epoch(1)
    first.write(batch(2))
    while first.buffered_bytes:  # its file is stored, its epoch still open
        time.sleep(0.01)
    with open_stream(TableRef(bucket.location, bucket.location), options) as second:
        assert second.last_committed_epoch == 1
        with pytest.raises(GuardError, match="another process writes"):
            first.commit_epoch(2)
        assert first.close() == 1
        second.write(batch(2))
        second.commit_epoch(2)
    assert bucket.ids() == [1, 2]


def test_a_late_overwrite_in_a_bucket_replaces_what_it_saw(bucket: Bucket) -> None:
    joins = MaintenancePlan(checkpoint_every=6, compact_files=2)
    with bucket.opened(upkeep=joins) as sink:
        for n in range(1, 6):
            sink.write(batch(n))
            sink.commit_epoch(n)
        looked = DeltaTable(bucket.location, storage_options=bucket.options)
        sink.write(batch(6))
        sink.commit_epoch(6)
    write_deltalake(looked, pa.table({"id": [100], "s": ["x"]}), mode="overwrite")
    assert bucket.ids() != [6, 100]
    heard: list[Event] = []
    options = StreamOptions(writer_id="w", upkeep=joins, storage_options=bucket.options)
    ref = TableRef("t", bucket.location)
    open_stream(ref, options, tell=heard.append).close()
    (warned,) = (event for event in heard if isinstance(event, Warned))
    assert "did not see that files had been joined" in warned.message
    assert bucket.ids() == [6, 100]
    with bucket.opened(upkeep=joins) as sink:
        assert sink.last_committed_epoch == 6
        sink.write(batch(7))
        sink.commit_epoch(7)
    assert bucket.ids() == [6, 7, 100]


def test_a_table_made_anew_in_a_bucket_stops_an_open_stream(bucket: Bucket, s3: S3Server) -> None:
    with bucket.opened() as sink:
        for n in (1, 2):
            sink.write(batch(n))
            sink.commit_epoch(n)
        s3.files().delete_dir(f"{bucket.name}/t")
        with bucket.opened("other") as other:
            for n in range(4):
                other.write(batch(100 + n))
                other.commit_epoch(n)
        sink.write(batch(3))
        with pytest.raises(GuardError, match="dropped and recreated"):
            sink.commit_epoch(3)
    assert bucket.ids() == [100, 101, 102, 103]
