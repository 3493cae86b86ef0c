"""Rows and changes go out to a real broker, and come in as changes, deletes included (P7, S4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.services.kafka_broker import Broker
from tests.workbench import Workbench

pytestmark = pytest.mark.spark

CSV = "extract: {type: csv, path: orders.csv, schema: 'id bigint, name string, amount double'}\n"


def sink(kafka: Broker, topic: str, **more: Any) -> str:
    """The section of a pipeline that sends to a topic."""
    entry = {"type": "kafka", "topic": topic, "servers": kafka.servers, **more}
    return f"load: {json.dumps(entry)}\n"


def source(kafka: Broker, topic: str, **more: Any) -> str:
    entry = {"type": "kafka", "topic": topic, "servers": kafka.servers, **more}
    return f"extract: {json.dumps(entry)}\n"


def values(kafka: Broker, topic: str) -> list[Any]:
    return [json.loads(message.value()) for message in kafka.received(topic)]


def test_rows_are_sent_with_key_headers_and_batch(bench: Workbench, kafka: Broker) -> None:
    topic = kafka.topic(partitions=2)
    bench.write("orders.csv", "id,name,amount\n1,ann,2.5\n2,,\n")
    more = {"merge_keys": ["id"], "header_columns": ["name"]}
    bench.pipeline("out", CSV + sink(kafka, topic, **more))
    done = bench.run("out")
    assert "at least once" in json.dumps(done)
    assert done["batches"][0]["outputs"][0]["rows_inserted"] == 2
    found = {message.key(): message for message in kafka.received(topic)}
    assert json.loads(found[b"1"].value()) == {"id": 1, "name": "ann", "amount": 2.5}
    assert json.loads(found[b"2"].value()) == {"id": 2, "name": None, "amount": None}
    headers = dict(found[b"1"].headers())
    assert (headers["deltaworks.batch"], headers["name"]) == (b"1", b"ann")
    assert dict(found[b"2"].headers())["name"] is None
    assert bench.run("out")["status"] == "skipped"
    planned = bench.cli("plan", "out", "--json")
    assert '"rows_to_insert": 2' in planned.stdout
    bench.pipeline("out", CSV + sink(kafka, topic, merge_keys=["id", "name"], order_by=["amount"]))
    bench.run("out", "--again")
    keys = {message.key() for message in kafka.received(topic)}
    assert keys == {b"1", b"2", b'{"id":1,"name":"ann"}', b'{"id":2,"name":null}'}


def test_a_sink_that_cannot_take_the_rows_says_so_before_it_sends(
    bench: Workbench, kafka: Broker
) -> None:
    topic = kafka.topic()
    bench.write("orders.csv", "id,name,amount\n1,ann,2.5\n")
    wrong = [
        (sink(kafka, topic, merge_keys=["idd"]), 'did you mean "id"?'),
        (sink(kafka, topic, format="string"), 'sends a column "value" of type string'),
        (sink(kafka, f"{topic}x"), f'did you mean "{topic}"?'),
    ]
    for load, message in wrong:
        bench.pipeline("out", CSV + load)
        assert message in bench.fail("out").stderr
    assert kafka.received(topic) == []


def test_a_feed_of_changes_goes_out_in_order_and_deletes_are_tombstones(
    bench: Workbench, kafka: Broker
) -> None:
    spark, place = bench.open().spark, bench.table("orders")
    spark.sql(
        f"CREATE TABLE delta.`{place}` (id bigint, name string) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    for statement in (
        f"INSERT INTO delta.`{place}` VALUES (1, 'a'), (2, 'b')",
        f"UPDATE delta.`{place}` SET name = 'c' WHERE id = 1",
        f"DELETE FROM delta.`{place}` WHERE id = 1",
    ):
        spark.sql(statement)
    topic = kafka.topic(partitions=2)
    feed = "extract: {type: delta_changes, table: orders, starting_version: 1}\n"
    gone = {"merge_keys": ["id"], "tombstone_where": "_change_type = 'delete'"}
    bench.pipeline("feed", feed + sink(kafka, topic, **gone))
    bench.run("feed")
    ones = [message for message in kafka.received(topic) if message.key() == b"1"]
    ones.sort(key=lambda message: message.offset())
    told = [message.value() and json.loads(message.value()) for message in ones]
    kinds = [change and change["_change_type"] for change in told]
    assert kinds == ["insert", "update_preimage", "update_postimage", None]
    assert [change["_commit_version"] for change in told if change] == [1, 2, 2]
    bytes_out = kafka.topic(partitions=1)
    spark.sql("SELECT X'00FF' AS value").write.format("delta").save(str(bench.table("bytes")))
    reading = "extract: {type: delta, table: bytes}\n"
    bench.pipeline("bytes", reading + sink(kafka, bytes_out, format="raw"))
    bench.run("bytes")
    assert [message.value() for message in kafka.received(bytes_out)] == [b"\x00\xff"]


def change(op: str, before: Any, after: Any, at: int) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "ts_ms": at, "source": {"db": "shop"}}


def test_debezium_is_applied_in_order_deletes_included(bench: Workbench, kafka: Broker) -> None:
    topic = kafka.topic(partitions=1)
    a1, a2, b1 = {"id": 1, "name": "a"}, {"id": 1, "name": "aa"}, {"id": 2, "name": "b"}
    kafka.send(
        topic,
        [change("c", None, a1, 1), change("c", None, b1, 2), change("u", a1, a2, 3)],
    )
    reading = source(kafka, topic, incremental=True, tombstones="drop", message_columns=["offset"])
    bench.pipeline(
        "orders",
        f"{reading}transform: [{{type: select, columns: [before, after, op, ts_ms, _offset]}}]\n"
        "load: {type: delta, table: orders, mode: changelog, merge_keys: [id]}\n",
    )
    first = bench.run("orders")["batches"][0]
    assert (first["rows_read"], first["rows_dropped"]) == (3, 1)
    assert [(row["id"], row["name"]) for row in bench.rows("orders")] == [(1, "aa"), (2, "b")]
    kafka.send(topic, [change("d", b1, None, 4), (b"2", None), change("u", a2, a1, 5)])
    bench.run("orders")
    assert [(row["id"], row["name"]) for row in bench.rows("orders")] == [(1, "a")]
    kafka.send(topic, [change("u", a2, a1, 6)])
    wrapped = {"schema": {"type": "struct"}, "payload": change("u", a1, a2, 7)}
    other = kafka.topic(partitions=1)
    kafka.send(other, [wrapped])
    reading = source(kafka, other, message_columns=["offset"])
    load = "load: {type: delta, table: other, mode: changelog, merge_keys: [id]}\n"
    bench.pipeline("other", reading + load)
    bench.run("other")
    assert [(row["id"], row["name"]) for row in bench.rows("other")] == [(1, "aa")]


def test_a_column_says_what_happened(bench: Workbench, kafka: Broker) -> None:
    topic = kafka.topic(partitions=1)
    columns = "id bigint, name string, kind string, at bigint"
    load = {
        "type": "delta",
        "table": "orders",
        "mode": "changelog",
        "merge_keys": ["id"],
        "op_column": "kind",
        "sequence_by": "at",
        "update_condition": "source.at > target.at",
    }
    reading = source(kafka, topic, incremental=True, schema=columns)
    bench.pipeline("orders", f"{reading}load: {json.dumps(load)}\n")

    def send(*records: tuple[int, str, str, int]) -> None:
        names = ("id", "name", "kind", "at")
        kafka.send(topic, [dict(zip(names, record, strict=True)) for record in records])

    send((1, "b", "update", 5), (1, "a", "insert", 4), (2, "x", "Insert", 1), (3, "y", "d", 1))
    planned = bench.cli("plan", "orders", "--json")
    assert planned.code == 0, planned.stderr
    bench.run("orders")
    assert [(row["id"], row["name"]) for row in bench.rows("orders")] == [(1, "b"), (2, "x")]
    send((1, "old", "delete", 3), (2, "x", "delete", 9), (2, "w", "update_preimage", 9))
    bench.run("orders")
    assert [(row["id"], row["name"]) for row in bench.rows("orders")] == [(1, "b")]
    assert "kind" not in bench.rows("orders")[0]
    send((7, "z", "upserted", 1))
    assert "a change record says upserted" in bench.fail("orders").stderr


def test_rows_that_are_no_changes_are_refused(bench: Workbench, kafka: Broker) -> None:
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [{"payload": "text"}])
    only = "load: {type: delta, table: orders, mode: changelog, merge_keys: [id]}\n"
    bench.pipeline("orders", source(kafka, topic) + only)
    assert "no change records" in bench.fail("orders").stderr
    bench.write("orders.csv", "id,name,amount\n1,ann,2.5\n")
    load = "load: {type: delta, table: orders, mode: changelog, merge_keys: [id]}\n"
    bench.pipeline("orders", CSV + load)
    assert "no change records" in bench.fail("orders").stderr
    named = load.replace("merge_keys", "op_column: name, merge_keys")
    bench.pipeline("orders", CSV + named)
    assert "which of two changes is the newer one" in bench.fail("orders").stderr
