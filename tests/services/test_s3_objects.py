"""Objects, locks and our own books on a real S3 server, without a JVM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from deltaworks.config.object_stores import StorageSettings, Stores
from deltaworks.engines.spark.delta.first_load import tidied
from deltaworks.engines.spark.write.folder_objects import ObjectFolder
from deltaworks.errors import (
    CommitConflict,
    EngineError,
    GuardError,
    InputError,
    UnsupportedOperation,
)
from deltaworks.runtime.run_records import RunRecords
from deltaworks.storage import paths as locations
from deltaworks.storage.listing import changed_file, file_bounds
from deltaworks.storage.locks import lease
from deltaworks.storage.locks import lease_claim as claim
from deltaworks.storage.locks.file_lock import lock_of, locked
from deltaworks.storage.locks.owner import signature
from deltaworks.storage.objects import Bucket
from deltaworks.storage.table_path import claim as mark_begun
from deltaworks.storage.table_path import require_free
from tests.services.lakes import QUICK, Lake
from tests.services.proxy import proxy_before
from tests.services.s3_server import (
    ACCESS_KEY,
    READER_KEY,
    READER_SECRET,
    SECRET_KEY,
    WRITER_KEY,
    WRITER_SECRET,
)


def test_a_put_that_must_be_the_first_or_follow_what_was_read_loses_to_another(
    lake: Lake, stores: Stores
) -> None:
    bucket, address = Bucket(lake.at("x"), stores), lake.at("x")
    first = bucket.create(address, b"1")
    assert first
    assert bucket.create(address, b"2") is None
    second = bucket.replace(address, b"3", tag=first)
    assert second
    assert bucket.replace(address, b"4", tag=first) is None
    assert bucket.read(address) == (b"3", second)
    bucket.delete([address, lake.at("gone")])
    assert (bucket.read(address), bucket.look(address)) == (None, None)
    assert bucket.replace(address, b"5", tag=second) is None
    bucket.delete([])


def test_an_object_is_read_like_a_file(lake: Lake, stores: Stores) -> None:
    address = lake.put("long.txt", "0123456789" * 1000)
    with locations.open_bytes(address, stores) as handle:
        assert handle.read(3) == b"012"
        assert handle.seek(-2, os.SEEK_END) == 9998
        assert handle.read() == b"89"
        assert handle.seek(1) == 1
        assert handle.seek(2, os.SEEK_CUR) == 3
    with pytest.raises(FileNotFoundError):
        locations.open_bytes(lake.at("none"), stores)
    assert locations.read_text(lake.at("none"), stores) is None
    locations.write_text(lake.at("a/b.txt"), "hello", stores)
    assert locations.read_text(lake.at("a/b.txt"), stores) == "hello"
    assert locations.folders_in(lake.at("").rstrip("/"), stores) == ("a",)
    locations.remove_folder(lake.at("a"), stores)
    assert lake.names("a") == []


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("in", ["a.csv", "day=1/b.csv", "day=1/x/c.csv"]),
        ("in/a.csv", ["a.csv"]),
        ("in/*.csv", ["a.csv"]),
        ("in/**/*.csv", ["a.csv", "day=1/b.csv", "day=1/x/c.csv"]),
        ("in/day=*", ["day=1/b.csv", "day=1/x/c.csv"]),
        ("i[n]/day=?/b.csv", ["day=1/b.csv"]),
    ],
)
def test_files_are_found_as_in_a_folder_of_this_machine(
    lake: Lake, stores: Stores, tmp_path: Path, pattern: str, found: list[str]
) -> None:
    for name in ("a.csv", "day=1/b.csv", "day=1/x/c.csv", "_d.csv", ".e.csv"):
        lake.put(f"in/{name}", "id\n1\n")
        lake.write(f"in/{name}", "id\n1\n")
    start = len(lake.at("in/"))
    bounds = file_bounds(lake.at(pattern), written=pattern, stores=stores)
    assert [stamp.path[start:] for stamp in bounds.files] == found
    here = file_bounds(f"{tmp_path}/{pattern}", written=pattern)
    assert [stamp.path[len(f"{tmp_path}/in/") :] for stamp in here.files] == found


def test_a_file_that_changed_or_went_is_noticed(lake: Lake, stores: Stores) -> None:
    lake.put("in/a.csv", "id\n1\n")
    bounds = file_bounds(lake.at("in"), written="in", stores=stores)
    assert changed_file(bounds, stores) == ""
    lake.put("in/a.csv", "id\n2\n")  # of the same size, and maybe within the same second
    assert "has changed" in changed_file(bounds, stores)
    Bucket(lake.at("in"), stores).delete([lake.at("in/a.csv")])
    assert "is gone" in changed_file(bounds, stores)
    with pytest.raises(InputError, match="there is no file at"):
        file_bounds(lake.at("in"), written="in", stores=stores)
    with pytest.raises(InputError, match="no file matches"):
        file_bounds(lake.at("in/*.csv"), written="in/*.csv", stores=stores)
    with pytest.raises(UnsupportedOperation, match="hdfs"):
        file_bounds("hdfs://name/in", written="in", stores=stores)


def test_a_place_that_a_run_had_begun_to_fill_is_free_and_one_of_others_is_not(
    lake: Lake, stores: Stores
) -> None:
    require_free(lake.at("wh/t"), stores)
    mark_begun(lake.at("wh/t"), stores)
    lake.put("wh/t/part-0.parquet", "left")
    require_free(lake.at("wh/t"), stores)
    write_deltalake(lake.at("wh/t"), pa.table({"id": [1]}), storage_options=lake.options())
    assert lake.rows("t") == [{"id": 1}]
    with pytest.raises(GuardError, match="would lie around"):
        require_free(lake.at("wh"), stores)
    lake.put("theirs/x.csv", "id")
    with pytest.raises(InputError, match="is not a Delta table"):
        require_free(lake.at("theirs"), stores)


def test_the_lock_of_a_table_that_is_a_whole_bucket_is_not_in_its_way(lake: Lake) -> None:
    lake.server.files().create_dir(f"whole-{lake.root.name[:20].replace('_', '-')}0")
    bucket = f"s3://whole-{lake.root.name[:20].replace('_', '-')}0"
    stores = Stores({bucket: StorageSettings(**reached(lake))})  # type: ignore[arg-type]
    with locked([lock_of(bucket)], wait_seconds=0, notify=lambda _: None, stores=stores):
        require_free(bucket, stores)
    Bucket(bucket, stores).put(f"{bucket}/.x.csv.lock", b"{}")  # of something that never was
    require_free(bucket, stores)
    Bucket(bucket, stores).put(f"{bucket}/theirs.csv", b"id")
    with pytest.raises(InputError, match="is not a Delta table"):
        require_free(bucket, stores)


def reached(lake: Lake) -> dict[str, object]:
    """How the server is reached by who knows no project."""
    keys = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY, "region": "us-east-1"}
    return {"endpoint": lake.server.endpoint, "path_style": True, **keys}


def hold(lake: Lake, stores: Stores, *, wait_seconds: float = 0) -> object:
    place = lock_of(lake.at("wh/orders"))
    return locked([place], wait_seconds=wait_seconds, notify=lambda _: None, stores=stores)


def test_a_second_driver_is_refused_with_the_reason(lake: Lake, stores: Stores) -> None:
    with hold(lake, stores) as locks:  # type: ignore[attr-defined]
        locks.name_jvm(os.getpid(), 0.0)
        locks.require()
        with pytest.raises(GuardError, match="one driver at a time") as caught, hold(lake, stores):  # type: ignore[attr-defined]
            pass
        assert str(os.getpid()) in caught.value.message
    with hold(lake, stores):  # type: ignore[attr-defined]
        assert "free" not in signed(lake, stores)
    assert signed(lake, stores)["free"] is True  # it stays, for the fence of the next


def sign(lake: Lake, **owner: object) -> None:
    """Let somebody hold the lock: a driver that has ended, unless it is told otherwise."""
    told = {**signature(None), "pid": 2**22 + 1, "token": "other", "fence": 7, "at": time.time()}
    lake.put("wh/.orders.lock", json.dumps({**told, **owner}))


def signed(lake: Lake, stores: Stores) -> dict[str, object]:
    """Who holds the lock."""
    found = Bucket(lake.at("wh"), stores).read(str(lock_of(lake.at("wh/orders"))))
    assert found is not None
    return dict(json.loads(found[0]))


def test_what_a_dead_driver_of_this_machine_held_is_free_at_once(
    lake: Lake, stores: Stores
) -> None:
    sign(lake)
    with hold(lake, stores):  # type: ignore[attr-defined]
        assert signed(lake, stores)["fence"] == 8


def test_a_driver_elsewhere_holds_its_lock_as_long_as_it_is_renewed(
    lake: Lake, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim, "LEASE_SECONDS", 2.0)
    renewing = threading.Event()

    def renew() -> None:
        while not renewing.wait(0.2):
            sign(lake, namespace="of another container")

    sign(lake, namespace="of another container")
    renewer = threading.Thread(target=renew)
    renewer.start()
    with pytest.raises(GuardError, match="in use"), hold(lake, stores, wait_seconds=2.5):  # type: ignore[attr-defined]
        pass
    renewing.set()
    renewer.join()
    start = time.monotonic()
    with hold(lake, stores):  # type: ignore[attr-defined]
        assert time.monotonic() - start >= 2


SLEEPER = """
import json, sys
from deltaworks.config.object_stores import StorageSettings, Stores
from deltaworks.storage.locks.file_lock import locked
from deltaworks.storage.locks import lease, lease_claim as claim
from deltaworks.errors import GuardError
claim.LEASE_SECONDS, lease._BEAT_SECONDS = 2.0, 0.3
word = json.loads(sys.argv[1])
stores = Stores({word["bucket"]: StorageSettings(**word["storage"])})
with locked([word["lock"]], wait_seconds=0, notify=print, stores=stores) as locks:
    locks.require()
    print("held", flush=True)
    sys.stdin.readline()
    try:
        locks.require()
        print("may commit", flush=True)
    except GuardError as error:
        print(error.message, flush=True)
"""


def test_a_driver_that_was_stopped_and_overtaken_may_neither_commit_nor_let_go(
    lake: Lake, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim, "LEASE_SECONDS", 2.0)
    word = {
        "bucket": f"s3://{lake.bucket}",
        "storage": reached(lake),
        "lock": lock_of(lake.at("wh/orders")),
    }
    command = [sys.executable, "-c", SLEEPER, json.dumps(word)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as driver:
        assert driver.stdin is not None
        assert driver.stdout is not None
        assert driver.stdout.readline() == "held\n"
        driver.send_signal(signal.SIGSTOP)
        driver.stdin.write("go on\n")
        driver.stdin.flush()
        with hold(lake, stores, wait_seconds=30) as locks:  # type: ignore[attr-defined]
            mine = signed(lake, stores)
            assert mine["fence"] == 2
            driver.send_signal(signal.SIGCONT)
            assert "was taken over" in driver.stdout.readline()
            assert driver.wait(30) == 0
            assert signed(lake, stores)["token"] == mine["token"]
            locks.require()


def test_an_answer_that_is_lost_does_not_lose_the_lock(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client asks again by itself, and is told that the lock has changed: by itself."""
    monkeypatch.setattr(lease, "_BEAT_SECONDS", 0.2)
    with proxy_before(lake.server.port) as proxy:
        lake.settle(f"endpoint: '{proxy.endpoint}', path_style: true")
        stores = lake.open().config.stores
        proxy.lose_answer(r"\.orders\.lock")  # to the first put
        with hold(lake, stores) as locks:  # type: ignore[attr-defined]
            assert ".orders.lock" in proxy.struck()
            before = signed(lake, stores)
            proxy.lose_answer(r"\.orders\.lock")  # to a renewal
            assert ".orders.lock" in proxy.struck()
            time.sleep(0.5)
            locks.require()
            after = signed(lake, stores)
            assert before["token"] == after["token"]
            assert before["write"] != after["write"]
            proxy.lose_answer(r"\.orders\.lock")
        assert signed(lake, stores)["free"] is True


def test_books_that_several_make_at_once_are_one(lake: Lake, stores: Stores) -> None:
    def record(n: int) -> None:
        records = RunRecords(lake.at("books"), "shop", stores=stores)
        records.started(f"run-{n}", "orders", datetime.now(UTC))

    threads = [threading.Thread(target=record, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    runs = RunRecords(lake.at("books"), "shop", stores=stores).all()
    assert sorted(run.run_id for run in runs) == [f"run-{n}" for n in range(4)]


WRONG = {
    "key": ({"secret_key": "wrong-canary-key"}, "the secret key is wrong"),
    "who": ({"access_key": "nobody-knows-me"}, "the access key is not known there"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_key_is_told_as_such_and_never_shown(
    lake: Lake, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    changed, said = WRONG[name]
    keys = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY, "region": "us-east-1", **changed}
    lake.keep("lake", **keys)
    lake.pipeline(
        "p", f'extract: {{type: csv, path: "{lake.at("in")}"}}\nload: {{type: delta, table: t}}'
    )
    for command in (["run", "p"], ["runs", "list"], ["table", "show", "t"]):
        told = lake.cli(*command)
        assert told.code == 4, told.stderr
        assert said in told.stderr
        shown = told.stderr + told.stdout + capsys.readouterr().err
        assert not [value for value in keys.values() if value in shown and value != "us-east-1"]


def test_a_bucket_that_is_not_there_and_a_store_that_is_not_there_are_two_errors(
    lake: Lake,
) -> None:
    endpoint = f"endpoint: '{lake.server.endpoint}', path_style: true"
    lake.bucket = "no-such-bucket"
    lake.keep("lake", access_key=WRITER_KEY, secret_key=WRITER_SECRET, region="us-east-1")
    lake.settle(f"{endpoint}, {QUICK}", warehouse="s3://no-such-bucket/wh")
    lake.pipeline("p", "extract: {type: delta, table: a}\nload: {type: delta, table: t}")
    told = lake.cli("run", "p")
    assert (told.code, "the bucket does not exist" in told.stderr) == (4, True), told.stderr
    lake.settle(f"endpoint: 'http://127.0.0.1:9', {QUICK}", warehouse="s3://no-such-bucket/wh")
    told = lake.cli("run", "p")
    assert told.code == 4
    assert "nothing listens there" in told.stderr or "cannot be reached" in told.stderr


def test_who_may_only_read_is_told_so_and_nothing_is_written(lake: Lake) -> None:
    lake.put("in/a.csv", "id\n1\n")
    lake.keep("lake", access_key=READER_KEY, secret_key=READER_SECRET, region="us-east-1")
    lake.pipeline(
        "p", f'extract: {{type: csv, path: "{lake.at("in")}"}}\nload: {{type: delta, table: t}}'
    )
    told = lake.cli("run", "p")
    assert (told.code, "may not do that" in told.stderr) == (4, True), told.stderr
    assert lake.names("wh") == []


def test_a_store_that_never_answers_is_an_error_after_the_time_that_is_set(lake: Lake) -> None:
    with proxy_before(lake.server.port) as proxy:
        proxy.slow_down(30)
        lake.settle(
            f"endpoint: '{proxy.endpoint}', path_style: true, "
            "delta_rs: {max_retries: '0', timeout: 500ms, retry_timeout: 1s}"
        )
        began = time.monotonic()
        told = lake.cli("runs", "list")
        assert told.code == 4, told.stderr
        assert "does not answer in time" in told.stderr
        assert time.monotonic() - began < 20


def test_slow_answers_only_take_longer(lake: Lake, stores: Stores) -> None:
    with proxy_before(lake.server.port) as proxy:
        proxy.slow_down(0.05)
        lake.settle(f"endpoint: '{proxy.endpoint}', path_style: true")
        slow = lake.open().config.stores
        records = RunRecords(lake.at("slow"), "shop", stores=slow)
        records.started("run-1", "orders", datetime.now(UTC))
    assert len(RunRecords(lake.at("slow"), "shop", stores=stores).all()) == 1


@pytest.mark.parametrize("left", ["_deltaworks.lock", "below/.inner.lock"])
def test_a_lock_that_was_let_go_is_no_file_of_others(lake: Lake, stores: Stores, left: str) -> None:
    place = lake.at("with-lock")
    folder = ObjectFolder(place, stores, file_format="csv", options={})
    Bucket(place, stores).create(f"{place}/{left}", b"{}")
    folder.refuse_foreign(folder.manifest(), replace=True)
    Bucket(place, stores).create(f"{place}/theirs.csv", b"a,b")
    with pytest.raises(InputError, match="did not write"):
        folder.refuse_foreign(folder.manifest(), replace=True)


def test_a_first_load_that_fails_in_a_bucket_leaves_what_was_there(
    lake: Lake, stores: Stores
) -> None:
    place, bucket = lake.at("first"), Bucket(lake.at("first"), stores)
    old = (f"{place}/_delta_log/_begun", f"{place}/part-0.parquet", f"{place}/.inner.lock")
    for address in old[:2]:
        bucket.put(address, b"what a run that died left behind")

    def load(commit: bytes = b"") -> None:
        for name in ("part-1.parquet", "day=1/part-2.parquet", ".inner.lock"):
            bucket.put(f"{place}/{name}", b"new")
        if commit:
            bucket.put(f"{place}/_delta_log/{0:020d}.json", commit)
        raise EngineError("it did not work")

    with pytest.raises(EngineError), tidied(place, stores, before=require_free(place, stores)):
        load()
    assert {one.address for one in bucket.listed(place)} == set(old)
    with pytest.raises(EngineError), tidied(place, stores, before=require_free(place, stores)):
        load(b"{}")
    assert len(bucket.listed(place)) == len(old) + 3


def test_of_two_who_write_a_manifest_the_later_is_refused(lake: Lake, stores: Stores) -> None:
    first, second = (
        ObjectFolder(lake.at("out"), stores, file_format="csv", options={}) for _ in range(2)
    )
    first._put_manifest({"writers": {}})
    with pytest.raises(CommitConflict, match="another writer was faster"):
        second._put_manifest({"writers": {}})
