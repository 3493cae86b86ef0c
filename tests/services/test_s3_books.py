"""Our books on S3: what they promise, and how little they ask of the store."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

from deltaworks.config.object_stores import Stores
from deltaworks.engines.deltars.event_table import on_objects as object_events
from deltaworks.engines.deltars.event_table.table import EventTable, event_schema
from deltaworks.engines.deltars.snapshot import TableSnapshot
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.errors import CommitConflict, DamagedTable
from deltaworks.model.commit import Txn
from deltaworks.runtime.batch.attempt import Attempt
from deltaworks.runtime.ledger.table import Ledger
from deltaworks.runtime.quarantine.table import Choice, Quarantine, Returning
from deltaworks.storage.locks import lease
from deltaworks.storage.locks import lease_claim as claim
from deltaworks.storage.locks.file_lock import lock_of, locked
from deltaworks.storage.objects import Bucket
from deltaworks.storage.paths import remove_folder
from tests.services.lakes import Lake
from tests.services.paper_spark import PaperSpark
from tests.services.proxy import Proxy, proxy_before

SCHEMA = event_schema([("name", "text"), ("n", "number"), ("at", "time")])


@pytest.fixture
def proxy(lake: Lake) -> Iterator[Proxy]:
    with proxy_before(lake.server.port) as started:
        lake.settle(f"endpoint: '{started.endpoint}', path_style: true")
        yield started


def book(lake: Lake, stores: Stores) -> EventTable:
    return EventTable(lake.at("book"), SCHEMA, stores=stores)


def event(n: int, name: str = "a") -> dict[str, Any]:
    return {"name": name, "n": n, "at": None}


def forget() -> None:
    """Know as little as a new process."""
    object_events._KNOWN.clear()
    object_events._FILES.clear()


def numbers(table: EventTable, **equals: str) -> list[int]:
    return sorted(row["n"] for row in table.read(**equals))


def test_a_second_driver_with_one_transaction_fails(lake: Lake, stores: Stores) -> None:
    one, two = book(lake, stores), book(lake, stores)
    one.append(event(1), txn=Txn("p", 1))
    assert numbers(two) == [1]
    one.append(event(2), txn=Txn("p", 2))
    assert numbers(book(lake, stores)) == [1, 2]  # who looks meanwhile changes nothing for others
    with pytest.raises(CommitConflict):
        two.append(event(3), txn=Txn("p", 2))
    two.append(event(4), txn=Txn("q", 1))
    forget()
    assert numbers(one) == numbers(book(lake, stores)) == [1, 2, 4]


def test_a_second_driver_fails_also_in_a_book_that_was_not_there(
    lake: Lake, stores: Stores
) -> None:
    one, two = book(lake, stores), book(lake, stores)
    assert (one.read(), two.read()) == ([], [])
    one.append(event(1), txn=Txn("p", 1))
    with pytest.raises(CommitConflict):
        two.append(event(2), txn=Txn("p", 1))
    assert numbers(one) == [1]


def test_who_joins_files_does_not_look_away_from_a_second_driver(
    lake: Lake, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltaworks.engines.deltars.event_table.table._MAX_FILES", 2)
    one, two = book(lake, stores), book(lake, stores)
    for n in range(3):
        one.append(event(n), txn=Txn("p", n))
    assert numbers(two) == [0, 1, 2]
    two.append(event(3), txn=Txn("p", 3))
    one.compact()
    with pytest.raises(CommitConflict):
        one.append(event(4), txn=Txn("p", 3))
    assert numbers(one) == [0, 1, 2, 3]


def test_a_long_run_finds_its_place_behind_all_that_others_wrote(
    lake: Lake, stores: Stores, proxy: Proxy
) -> None:
    mine = book(lake, lake.open().config.stores)
    mine.append(event(0), txn=Txn("p", 1))
    theirs = book(lake, stores)
    for n in range(1, 121):
        theirs.append(event(n), txn=Txn("q", n))
    proxy.asked()
    mine.append(event(121), txn=Txn("p", 2))
    puts = [one for one in proxy.asked() if one.startswith("PUT") and one.endswith(".json")]
    assert len(puts) == 2  # one that came too late, and one that did not
    assert numbers(theirs) == [*range(122)]


def test_what_was_seen_long_ago_is_looked_up_before_a_commit(lake: Lake, proxy: Proxy) -> None:
    table = book(lake, lake.open().config.stores)
    table.append(event(1))
    objects = table._objects
    assert objects is not None
    objects._seen = replace(objects.seen(), proven=0.0)
    proxy.asked()
    table.append(event(2))
    assert [one.split()[0] for one in proxy.asked()] == ["PUT", "GET", "PUT"]
    assert numbers(table) == [1, 2]


def test_delta_rs_and_our_own_commits_see_each_other(lake: Lake, stores: Stores) -> None:
    ours = book(lake, stores)
    ours.append(event(1), txn=Txn("p", 1))
    theirs = DeltaTable(lake.at("book"), storage_options=lake.options())
    assert theirs.transaction_version("p") == 1
    ours.append(event(2), txn=Txn("p", 2))
    same = CommitProperties(app_transactions=[Transaction("p", 2)], max_commit_retries=15)
    data = theirs.to_pyarrow_table()
    with pytest.raises(CommitFailedError):
        write_deltalake(theirs, data, mode="append", commit_properties=same)
    write_deltalake(theirs, data, mode="append")
    assert numbers(ours) == [1, 1, 2]
    assert sorted(row["n"] for row in lake.rows(lake.at("book"))) == [1, 1, 2]


def test_an_event_whose_answer_is_lost_is_there_once(lake: Lake, proxy: Proxy) -> None:
    table = book(lake, lake.open().config.stores)
    table.append(event(1), txn=Txn("p", 1))
    proxy.lose_answer(r"00000000000000000002\.json")
    table.append(event(2), txn=Txn("p", 2))
    assert proxy.struck().endswith("00000000000000000002.json")
    table.append(event(3), txn=Txn("p", 3))
    forget()
    assert numbers(table) == [1, 2, 3]


def test_a_book_that_was_made_anew_is_not_taken_for_the_one_that_is_known(
    lake: Lake, stores: Stores
) -> None:
    table = book(lake, stores)
    table.append(event(1))
    known = table.table_id
    remove_folder(lake.at("book"), stores)
    assert book(lake, stores).read() == []
    other = book(lake, stores)
    other.append(event(7))
    assert (numbers(table), table.table_id != known) == ([7], True)


def test_a_file_that_is_gone_is_told_and_not_passed_over(lake: Lake, stores: Stores) -> None:
    table = book(lake, stores)
    table.append(event(1))
    (name,) = [name for name in lake.names("book") if name.startswith("part-")]
    Bucket(lake.at("book"), stores).delete([lake.at(f"book/{name}")])
    forget()
    with pytest.raises(DamagedTable, match="is gone"):
        table.read()


def test_two_who_join_the_files_of_one_book_double_no_event(
    lake: Lake, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltaworks.engines.deltars.event_table.table._MAX_FILES", 3)
    first, second = book(lake, stores), book(lake, stores)
    for n in range(5):
        first.append(event(n))
    looked = object_events.ObjectEvents.look
    before = second._objects.look()  # type: ignore[union-attr]
    first.compact()
    monkeypatch.setattr(object_events.ObjectEvents, "look", lambda _: before)
    second.compact()  # from what stood there before the other one
    monkeypatch.setattr(object_events.ObjectEvents, "look", looked)
    second.append(event(5))
    for table in (first, second):
        assert numbers(table) == [0, 1, 2, 3, 4, 5]
    forget()
    assert numbers(first) == [0, 1, 2, 3, 4, 5]
    assert [row["n"] for row in lake.rows(lake.at("book"))] == [0, 1, 2, 3, 4, 5]


def test_commits_are_folded_and_what_follows_a_fold_is_read(lake: Lake, stores: Stores) -> None:
    table, before = book(lake, stores), set(threading.enumerate())
    for n in range(41):
        table.append(event(n, name="ab"[n % 2]), txn=Txn("p", n))
        table.compact()
    for thread in set(threading.enumerate()) - before:
        thread.join()
    folded = [name for name in lake.names("book/_delta_log") if "checkpoint.parquet" in name]
    assert len(folded) == 2, folded
    forget()
    assert numbers(table, name="b") == list(range(1, 41, 2))
    assert numbers(table) == list(range(41))


def test_an_event_is_a_file_and_a_commit_and_nothing_else(lake: Lake, proxy: Proxy) -> None:
    stores = lake.open().config.stores
    table = book(lake, stores)
    for n in range(3):
        table.append(event(n, name="ab"[n % 2]))
    proxy.asked()
    table.append(event(3))
    assert [one.split()[0] for one in proxy.asked()] == ["PUT", "PUT"]
    assert len(book(lake, stores).read()) == 4
    assert len(proxy.asked()) == 1  # the listing that proves what is known
    EventTable(lake.at("book"), SCHEMA, stores=lake.open().config.stores).append(event(4))
    assert len(proxy.asked()) == 3
    forget()
    proxy.asked()
    assert numbers(book(lake, stores), name="b") == [1]
    parts = [one for one in proxy.asked() if "part-" in one]
    assert len(parts) == 1  # the files of others are not read


def look(lake: Lake, stores: Stores) -> TableSnapshot | None:
    return DeltaRsEngine(stores).look(lake.at("t"))


def add(lake: Lake, *ids: int, **words: Any) -> None:
    rows = pa.table({"id": pa.array(ids, pa.int64())})
    write_deltalake(lake.at("t"), rows, storage_options=lake.options(), **words)


def test_a_look_that_was_kept_tells_what_delta_rs_would(lake: Lake, stores: Stores) -> None:
    app = {"commit_properties": CommitProperties(app_transactions=[Transaction("w", 7)])}
    ways: list[dict[str, Any]] = [
        {"mode": "append"},
        {"mode": "append", **app},
        {"mode": "overwrite"},
        {"mode": "append", "schema_mode": "merge"},
    ]
    assert look(lake, stores) is None
    assert look(lake, stores) is None
    for number, way in enumerate(ways):
        add(lake, *range(number + 1), **way)
        kept = look(lake, stores)
        assert kept is not None
        kept.transaction("w")
        opened = DeltaRsEngine(stores).open(lake.at("t"))
        fresh = TableSnapshot.at(lake.at("t"), opened)
        assert kept.info() == fresh.info()
        assert kept.transaction("w") == fresh.transaction("w")
        assert kept.history() == fresh.history()
        assert kept.history(2) == fresh.history(2)
        assert kept.history(after=0) == fresh.history(after=0)
        assert [one.engine for one in kept.history(1)] == [one.engine for one in fresh.history(1)]


def test_a_table_that_is_deleted_or_made_anew_is_not_taken_for_the_one_that_is_known(
    lake: Lake, stores: Stores
) -> None:
    add(lake, 1)
    known = look(lake, stores)
    assert known is not None
    assert look(lake, stores) is known
    remove_folder(lake.at("t"), stores)
    assert look(lake, stores) is None
    add(lake, 1)
    anew = look(lake, stores)
    assert anew is not None
    assert (anew.version, anew.table_id == known.table_id) == (0, False)
    assert known.info().rows == 1  # what was seen is not looked up in another table
    with pytest.raises(CommitConflict, match="recreated"):
        known.transaction("w")


def test_what_nobody_changed_is_looked_at_by_one_request(lake: Lake, proxy: Proxy) -> None:
    stores = lake.open().config.stores
    add(lake, 1)
    first = look(lake, stores)
    assert first is not None
    first.info()
    first.transaction("w")
    proxy.asked()
    again = look(lake, stores)
    assert again is not None
    assert (again.info().rows, again.transaction("w"), len(again.history())) == (1, None, 1)
    assert len(proxy.asked()) == 1
    add(lake, 2, 3, mode="append")
    later = look(lake, stores)
    assert later is not None
    assert (later.info().rows, later.transaction("w"), len(later.history())) == (3, None, 2)
    assert len(proxy.asked()) == 2  # the listing, and the commit that is new


def test_the_jvm_stands_in_the_lock_before_anything_is_committed(lake: Lake, proxy: Proxy) -> None:
    stores = lake.open().config.stores
    place = lock_of(lake.at("wh/t"))
    with locked([place], wait_seconds=0, notify=lambda _: None, stores=stores) as locks:
        proxy.slow_down(0.2)
        locks.name_jvm(4711, 5.0)  # waits for nobody
        locks.require()
        signed = json.loads(Bucket(lake.at("wh"), stores).read(str(place))[0])  # type: ignore[index]
        assert signed["jvm"] == [4711, 5.0]
        proxy.slow_down(0)
    assert lake.names("wh") == [".t.lock"]


@pytest.mark.parametrize("at", ["the next beat", "the commit"])
def test_a_run_that_was_overtaken_commits_nothing_and_gives_nothing_up(
    lake: Lake, stores: Stores, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """The batch is the next one's by now, and what it has put into quarantine too."""
    PaperSpark(lake).install(monkeypatch)
    if at == "the commit":
        monkeypatch.setattr(claim, "RECENT_SHARE", 0.0)  # as if the last renewal were long ago
    else:
        monkeypatch.setattr(lease, "_BEAT_SECONDS", 0.1)
    lake.write("in/a.csv", "id\n1\n")
    lake.pipeline(
        "p",
        "extract: {type: csv, path: in, schema: 'id long'}\n"
        "load: {type: delta, table: t, mode: append}\n",
    )
    cleared = list[object]()
    monkeypatch.setattr(Quarantine, "clear", lambda *_: cleared.append("cleared"))

    def overtaken(attempt: Attempt, _: object) -> None:
        lake.put("wh/.t.lock", json.dumps({"host": "elsewhere", "pid": 1, "token": "other"}))
        while at == "the next beat" and not attempt.place.halt.asked:
            time.sleep(0.05)

    monkeypatch.setattr(Attempt, "_judge", overtaken)
    result = lake.open().run("p")
    said = "was taken over" if at == "the commit" else "another driver has taken over its locks"
    assert said in str(result.error)
    assert [name for name in lake.names("wh/t") if name.endswith(".json")] == []
    assert cleared == []
    (ledger,) = Ledger.everyone(lake.at("wh"), stores)
    assert ledger.state().unfinished is not None


MAX_REQUESTS = 29  # a look at the quarantine among them, for slices of lost batches
"""Of a run with one table that stands, its books and its locks; raise it only for a reason.

Each lock takes a look, a put, the JVM's name and a put to let go: its object stays, so that nobody
can remove another one's, and is looked at before it is replaced."""
MAX_FIRST_REQUESTS = 37
"""The same when the run makes its table."""


def test_a_run_asks_little_of_the_store_however_many_there_were(
    lake: Lake, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    PaperSpark(lake).install(monkeypatch)
    lake.write("in/a.csv", "id\n1\n")
    for name in ("p", "q"):
        lake.pipeline(
            name,
            "extract: {type: csv, path: in, schema: 'id long'}\n"
            f"load: {{type: delta, table: {name}, mode: append}}\n",
        )
    project = lake.open()

    def requests_of(name: str) -> int:
        proxy.asked()
        result = project.run(name, again=True)
        assert result.status == "succeeded", result.error
        return len(proxy.asked())

    requests_of("p")
    assert requests_of("q") <= MAX_FIRST_REQUESTS
    counts = [requests_of("p") for _ in range(5)]
    assert max(counts) <= MAX_REQUESTS
    assert len(project.runs()) == 7
    assert {run.status for run in project.runs()} == {"succeeded"}
    assert DeltaTable(lake.at("wh/p"), storage_options=lake.options()).version() == 5


def test_a_quarantine_that_delta_rs_wrote_is_cleared_and_refilled_in_its_bucket(
    lake: Lake, stores: Stores
) -> None:
    """Rows are taken out and put back with the project's own keys, which no environment has."""
    quarantine = Quarantine.of(lake.at("wh"), project="shop", pipeline="p", stores=stores)
    names = ("project", "pipeline", "stage", "rule", "row")
    data = pa.table({name: ["shop", "shop"] for name in names})
    data = data.set_column(1, "pipeline", pa.array(["p", "other"]))
    data = data.append_column("batch", pa.array([1, 1])).append_column("n", pa.array([1, 2]))
    options = lake.options()
    write_deltalake(quarantine.location, data, storage_options=options)
    assert quarantine.discard(Choice(batch=1), note={"why": "test"}) == 1
    assert [row["n"] for row in lake.rows(quarantine.location)] == [2]
    back = Returning(0, quarantine._mine)
    for _ in range(2):
        quarantine._return(back, key="k", note={"why": "test"})
    assert sorted(row["n"] for row in lake.rows(quarantine.location)) == [1, 2]
