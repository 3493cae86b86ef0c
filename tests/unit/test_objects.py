"""Object stores without a store: how their client is set up, and what its errors say."""

from __future__ import annotations

import json
import sys
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest
from obstore.store import GCSStore, MemoryStore

from deltaworks.config.object_stores import StorageSettings, Stores
from deltaworks.errors import MissingDependencyError, StorageError
from deltaworks.model.table_ref import absolute
from deltaworks.storage import objects as client
from deltaworks.storage import paths as locations
from deltaworks.storage.folder_manifest import counted, is_landed, short_name
from deltaworks.storage.locks.owner import fate, read_owner, shown_owner
from deltaworks.storage.object_errors import reaching, unreachable
from deltaworks.storage.objects import Bucket

KEY = {"private_key": "x", "private_key_id": "1", "client_email": "a@b", "disable_oauth": True}
AZURE = "abfss://lake@shop.dfs.core.windows.net/x"


@pytest.mark.parametrize(
    ("location", "environ", "kind"),
    [
        (AZURE, {"AZURE_STORAGE_ACCOUNT_KEY": "YWJj"}, "AzureStore"),
        (AZURE, {"AZURE_CLIENT_ID": "a", "AZURE_CLIENT_SECRET": "b", "AZURE_TENANT_ID": "c"}, "A"),
        ("gs://lake/x", {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(KEY)}, "GCSStore"),
        ("gs://lake/x", {}, "GCSStore"),
        ("s3://lake/x", {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}, "S3Store"),
    ],
)
def test_every_kind_of_store_has_a_client(
    location: str, environ: dict[str, str], kind: str
) -> None:
    bucket = Bucket(location, Stores(environ=environ))
    assert type(bucket._store).__name__.startswith(kind)
    assert bucket._key(location) == "x"


def test_times_and_retries_of_delta_rs_hold_for_files_too() -> None:
    words = {"timeout": "500ms", "connect_timeout": "2s", "max_retries": "1", "retry_timeout": "3s"}
    log = {"store": "dynamodb", "endpoint": "http://there"}
    settings = StorageSettings(endpoint="http://here", delta_rs=words, log=log)  # type: ignore[arg-type]
    bucket = Bucket("s3://timed/x", Stores({"s3://timed": settings}))
    store = bucket._store
    assert store.client_options == {  # type: ignore[union-attr]
        "timeout": "500ms",
        "connect_timeout": "2s",
        "allow_http": "true",
    }
    retries = store.retry_config  # type: ignore[union-attr]
    assert retries is not None
    assert (retries["max_retries"], retries["retry_timeout"]) == (1, timedelta(seconds=3))


@pytest.mark.parametrize("location", ["gs://lake/x", AZURE], ids=["google", "azure"])
def test_every_kind_of_store_replaces_only_what_was_read(location: str) -> None:
    """Google knows an object by its generation, which is looked up by the tag."""
    bucket = Bucket(location, Stores(environ={"AZURE_STORAGE_ACCOUNT_KEY": "YWJj"}))
    bucket._store = MemoryStore()
    assert bucket.replace(location, b"0", tag="none") is None
    first = bucket.create(location, b"1")
    assert first is not None
    second = bucket.replace(location, b"2", tag=first)
    assert second not in (None, first)
    assert bucket.replace(location, b"3", tag=first) is None
    assert bucket.read(location) == (b"2", second)


class Google(BaseHTTPRequestHandler):
    """A server that knows one object, of generation 7, and keeps what a put had to find."""

    conditions: ClassVar[list[str | None]] = []

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.conditions.append(self.headers["x-goog-if-generation-match"])
        self._answer(tag='"new"', generation="8", length="0")

    def do_HEAD(self) -> None:
        self._answer(tag='"old"', generation="7", length="1")

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _answer(self, *, tag: str, generation: str, length: str) -> None:
        self.send_response(200)
        told = {"ETag": tag, "x-goog-generation": generation, "Content-Length": length}
        for name, value in {**told, "Last-Modified": "Wed, 18 Nov 2026 01:00:00 GMT"}.items():
            self.send_header(name, value)
        self.end_headers()


def test_google_is_told_the_generation() -> None:
    with HTTPServer(("127.0.0.1", 0), Google) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        key = json.dumps({**KEY, "gcs_base_url": f"http://127.0.0.1:{server.server_port}"})
        bucket = Bucket("gs://lake/x", Stores())
        bucket._store = GCSStore(
            "lake", config={"service_account_key": key}, client_options={"allow_http": True}
        )
        assert bucket.replace("gs://lake/x", b"1", tag='"old"') == '"new"'
        assert bucket.replace("gs://lake/x", b"1", tag='"older"') is None
        server.shutdown()
    assert Google.conditions == ["7"]


def test_lengths_of_time_are_read_as_delta_rs_takes_them() -> None:
    assert client._span("500ms") == timedelta(milliseconds=500)
    assert client._span("2s") == timedelta(seconds=2)


def test_a_missing_client_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    client._client.cache_clear()
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(MissingDependencyError, match="obstore") as caught:
        Bucket("s3://lake/x", Stores())
    assert "deltaworks[cloud]" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<Error><Code>NoSuchBucket</Code>", "the bucket does not exist"),
        ("tcp connect error: Connection refused (os error 111)", "nothing listens there"),
        ("dns error: failed to lookup", "its address is not known"),
        ("source: TimedOut", "it does not answer in time"),
        ("HTTP error: error sending request", "it cannot be reached"),
        ("<Error><Code>SlowDown</Code>", "the store is busy"),
        ("<Error><Code>Odd</Code>", "Odd"),
        ("\n  something else\nand more", "something else"),
        ("", "unknown error"),
    ],
)
def test_a_store_says_why_it_cannot_be_used(text: str, said: str) -> None:
    assert said in unreachable("s3://lake/x", text).message


def test_a_bucket_that_is_gone_is_no_missing_file() -> None:
    with pytest.raises(FileNotFoundError), reaching("s3://lake/x"):
        raise FileNotFoundError("404 Not Found")
    with pytest.raises(StorageError, match="the bucket does not exist"), reaching("s3://lake/x"):
        raise FileNotFoundError("<Code>NoSuchBucket</Code>")


def test_one_place_has_one_spelling(tmp_path: object) -> None:
    for text in ("s3a://lake//orders/", "s3n://lake/orders", "s3://lake/orders"):
        assert absolute(text, root=tmp_path) == "s3://lake/orders"  # type: ignore[arg-type]


def test_folders_around_a_file_go_up_to_its_bucket() -> None:
    assert locations.folders_around("s3://lake/a/b.csv") == ("s3://lake/a", "s3://lake")
    assert locations.folders_around("/a/b/c.csv") == ("/a/b", "/a")
    assert locations.fixed_part("s3://lake/a/*/b.csv") == "s3://lake/a"
    assert locations.fixed_part("s3://lake/a") == "s3://lake/a"
    assert locations.folders_in("/no/such/folder") == ()


def test_a_manifest_tells_which_batches_landed_and_which_were_replaced() -> None:
    manifest = {"writers": {"w": 4, "v": 2}, "gone": {short_name("w"): 3, short_name("v"): 2}}
    landed = {"s3://lake/out": counted(manifest)}

    def stands(writer: str, n: int) -> bool:
        return is_landed(f"s3://lake/out/a/batch{n:08d}-{short_name(writer)}-x.csv", landed)

    assert [stands("w", n) for n in (3, 4, 5)] == [False, True, False]
    assert not stands("v", 2)
    assert not stands("unknown", 1)
    assert is_landed("s3://lake/out/other.csv", landed)
    assert is_landed("s3://lake/elsewhere/batch00000001-00000000-x.csv", landed)


def test_who_signed_nothing_readable_is_nobody() -> None:
    assert read_owner("no json") == read_owner("[1]") == read_owner("") == {}
    assert shown_owner({}) == "process ? on this machine"
    assert fate({"host": "elsewhere"}) == "unknown"
