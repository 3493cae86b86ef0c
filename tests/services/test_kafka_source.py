"""Messages of a real broker become rows: each once, in ranges that the ledger knows (P8)."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaworks.config.cache import cache_dir
from deltaworks.contracts.plugin import Example
from deltaworks.engines.spark.jars.connectors import CONNECTOR_JARS
from deltaworks.engines.spark.jars.resolve import jar_files
from deltaworks.engines.spark.session.connect import add_jars
from deltaworks.sources.kafka import KafkaSource
from tests.conformance import test_sources
from tests.conformance.examples import COLUMNS as CELLS
from tests.conformance.examples import WRITERS, Cells
from tests.services.kafka_broker import PASSWORD, USER, Broker
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COLUMNS = "id bigint, name string, amount double"
INTO_ORDERS = "load: {type: delta, table: orders}\n"


def source(kafka: Broker, topic: str, **more: Any) -> str:
    """The section of a pipeline that reads a topic."""
    entry = {"type": "kafka", "topic": topic, "servers": kafka.servers, **more}
    return f"extract: {json.dumps(entry)}\n"


def order(n: int, **more: Any) -> dict[str, Any]:
    return {"id": n, "name": f"n{n}", "amount": n / 2, **more}


def ids(bench: Workbench, table: str = "orders") -> list[int]:
    return sorted(row["id"] for row in bench.rows(table))


def test_each_batch_reads_on_where_the_last_one_ended(bench: Workbench, kafka: Broker) -> None:
    topic = kafka.topic(partitions=2)
    reading = source(kafka, topic, incremental=True, schema=COLUMNS)
    bench.pipeline("orders", reading + INTO_ORDERS)
    nothing = bench.run("orders")
    assert (nothing["status"], bench.version("orders")) == ("skipped", None)
    assert "nothing to read yet" in json.dumps(nothing)
    kafka.send(topic, [order(n) for n in range(10)])
    first = bench.run("orders")
    assert first["batches"][0]["rows_read"] == 10
    kafka.send(topic, [order(n) for n in range(10, 14)])
    bench.run("orders")
    assert ids(bench) == list(range(14))
    assert bench.run("orders")["status"] == "skipped"
    assert bench.version("orders") == 1


def test_a_run_makes_as_many_batches_as_it_takes(bench: Workbench, kafka: Broker) -> None:
    topic = kafka.topic(partitions=2)
    kafka.send(topic, [order(n) for n in range(7)])
    more = {"incremental": True, "schema": COLUMNS, "max_offsets_per_batch": 3}
    bench.pipeline("orders", source(kafka, topic, **more) + INTO_ORDERS)
    done = bench.run("orders")
    assert [batch["rows_read"] for batch in done["batches"]] == [3, 3, 1]
    assert ids(bench) == list(range(7))


def test_every_type_comes_back_as_it_was_sent(bench: Workbench, kafka: Broker) -> None:
    topic = kafka.topic()
    columns = (
        "id bigint, price decimal(20,4), flag boolean, day date, at timestamp, "
        "local timestamp_ntz, bytes binary, tags array<string>, more map<string,int>, "
        "place struct<zip: int, city: string>, small tinyint, ratio double, gone string"
    )
    row = (
        "SELECT bigint(9007199254740993) AS id, 12345678901234.5678 AS price, true AS flag, "
        "date'1969-12-31' AS day, timestamp'2026-01-31 12:00:00.123456Z' AS at, "
        "timestamp_ntz'2026-01-31 12:00:00.000001' AS local, X'00FF' AS bytes, "
        "array('a', NULL) AS tags, map('k', 1) AS more, "
        "named_struct('zip', 1012, 'city', 'Ámsterdam \"x\"') AS place, tinyint(-1) AS small, "
        "double(0.1) AS ratio, string(NULL) AS gone"
    )
    bench.open().spark.sql(row).write.format("delta").save(str(bench.table("kinds")))
    sink = {"type": "kafka", "topic": topic, "servers": kafka.servers}
    bench.pipeline("out", f"extract: {{type: delta, table: kinds}}\nload: {json.dumps(sink)}\n")
    bench.run("out")
    back = source(kafka, topic, schema=columns.replace("decimal(20,4)", "decimal(18,4)"))
    bench.pipeline("back", f"{back}load: {{type: delta, table: back}}\n")
    bench.run("back")
    assert bench.rows("back") == bench.rows("kinds")


def test_parts_of_a_message_are_columns(bench: Workbench, kafka: Broker) -> None:
    topic = kafka.topic(partitions=1)
    before = datetime.now(UTC)
    kafka.send(topic, [(b"k1", order(1)), (b"\xff", order(2)), ("k3", None)])
    parts = ["key", "headers", "timestamp", "topic", "partition", "offset"]
    reading = source(kafka, topic, schema=COLUMNS, message_columns=parts)
    bench.pipeline("orders", reading + INTO_ORDERS)
    bench.run("orders")
    rows = sorted(bench.rows("orders"), key=lambda row: int(row["_offset"]))
    assert [row["_key"] for row in rows] == ["k1", "base64:/w==", "k3"]
    assert [row["id"] for row in rows] == [1, 2, None]
    assert {row["_topic"] for row in rows} == {topic}
    assert {row["_partition"] for row in rows} == {0}
    assert [row["_offset"] for row in rows] == [0, 1, 2]
    assert rows[0]["_headers"] == [{"key": "from", "value": b"test"}]
    assert abs((rows[0]["_timestamp"] - before).total_seconds()) < 60


def test_text_and_bytes_are_read_as_they_are(bench: Workbench, kafka: Broker) -> None:
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [(b"\x00\xff", b"plain"), b"\xff\x00", None])
    raw = source(kafka, topic, format="raw", message_columns=["key"], key_format="raw")
    bench.pipeline("raw", f"{raw}load: {{type: delta, table: raw}}\n")
    bench.run("raw")
    found = {(row["_key"], row["value"]) for row in bench.rows("raw")}
    assert found == {(b"\x00\xff", b"plain"), (None, b"\xff\x00"), (None, None)}
    text = source(kafka, topic, format="string", tombstones="drop", on_error="quarantine")
    bench.pipeline("text", f"{text}load: {{type: delta, table: text}}\n")
    assert bench.run("text")["batches"][0]["rows_quarantined"] == 1
    assert [row["value"] for row in bench.rows("text")] == ["plain"]
    assert bench.rows("text__quarantine")[0]["raw"] == "base64:/wA="


def test_avro_is_read_by_its_schema(bench: Workbench, kafka: Broker) -> None:
    topic = kafka.topic(partitions=1)
    bench.open().spark.sql("SELECT 1L AS id, 'ann' AS name").write.format("delta").save(
        str(bench.table("people"))
    )
    sink = {"type": "kafka", "topic": topic, "servers": kafka.servers, "format": "avro"}
    bench.pipeline("out", f"extract: {{type: delta, table: people}}\nload: {json.dumps(sink)}\n")
    bench.run("out")
    kafka.send(topic, [b"\x99", b"\x02\x02"])
    fields = [
        {"name": "id", "type": ["long", "null"]},
        {"name": "name", "type": ["string", "null"]},
    ]
    schema = {"type": "record", "name": "topLevelRecord", "fields": fields}
    bench.write("person.avsc", json.dumps(schema))
    reading = source(kafka, topic, format="avro", avro_schema="person.avsc", on_error="quarantine")
    bench.pipeline("people", f"{reading}load: {{type: delta, table: read}}\n")
    assert bench.run("people")["batches"][0]["rows_quarantined"] == 1
    assert {row["id"]: row["name"] for row in bench.rows("read")} == {1: "ann", None: None}
    bench.write("person.avsc", '"string"')
    assert "no record of Avro" in bench.fail("people", "--again").stderr
    (bench.root / "person.avsc").unlink()
    assert "person.avsc" in bench.fail("people", "--again").stderr


def test_a_bad_message_stops_the_run_or_is_set_aside_with_its_offset(
    bench: Workbench, kafka: Broker
) -> None:
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [order(1), b'{"id": "two"}', b"", b"{} {}", b'[{"id": 6}, {"id": 7}]'])
    bench.pipeline("strict", source(kafka, topic, schema=COLUMNS) + INTO_ORDERS)
    failed = bench.fail("strict")
    assert failed.code == 1
    assert f'the message at "{topic}" partition 0, offset 1 cannot be read' in failed.stderr
    assert "on_error: quarantine" in failed.stderr
    more = {"schema": COLUMNS, "on_error": "quarantine", "message_columns": ["offset"]}
    bench.pipeline("orders", source(kafka, topic, **more) + INTO_ORDERS)
    done = bench.run("orders")["batches"][0]
    assert (done["rows_read"], done["rows_quarantined"]) == (6, 3)
    assert ids(bench) == [1, 6, 7]
    set_aside = {row["raw"]: row["reason"] for row in bench.rows("orders__quarantine")}
    place = f'the message at "{topic}" partition 0, offset'
    assert set_aside['{"id": "two"}'] == f'{place} 1: column "id": "two" is not bigint'
    assert set_aside["{} {}"] == f"{place} 3: the record does not fit the columns"


def test_fields_outside_the_schema_are_not_dropped(bench: Workbench, kafka: Broker) -> None:
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [{"id": 1}, {"id": 2, "s": {"n": 1, "m": "x"}}, {"id": "x", "more": 1}])
    more: dict[str, Any] = {"schema": "id bigint, s struct<n: int>", "on_error": "quarantine"}
    bench.pipeline("orders", source(kafka, topic, **more) + INTO_ORDERS)
    said = bench.fail("orders").stderr
    assert f'topic "{topic}", partition 0, offset 2: the columns are not those of the sch' in said
    assert '+ "more" (not in the schema)' in said
    assert '+ "s.m" (not in the schema)' in said
    lacks = {"schema": "id bigint, gone int", "missing_columns": "refuse"}
    bench.pipeline("lacks", source(kafka, topic, **lacks, unknown_columns="ignore") + INTO_ORDERS)
    said = bench.fail("lacks").stderr
    assert '- "gone" (not in the messages)' in said
    assert "correct the messages" in said
    bench.pipeline("orders", source(kafka, topic, **more, unknown_columns="warn") + INTO_ORDERS)
    told = json.dumps(bench.run("orders"))
    assert 'columns \\"more\\", \\"s.m\\" left out: not in the schema' in told
    text = {**more, "schema": "id string, s struct<n: int>"}
    bench.pipeline("orders", source(kafka, topic, **text) + INTO_ORDERS)
    refused = bench.cli("quarantine", "replay", "orders")
    assert refused.code == 1
    assert "rows in quarantine: the columns are not those of the schema:" in refused.stderr
    assert '+ "more" (not in the schema)' in refused.stderr
    kept = source(kafka, topic, **text, unknown_columns="keep")
    bench.pipeline("kept", f"{kept}load: {{type: delta, table: kept}}\n")
    bench.run("kept")
    assert bench.rows("kept") == [
        {"id": "1", "s": None, "more": None},
        {"id": "2", "s": {"n": 1, "m": "x"}, "more": None},
        {"id": "x", "s": None, "more": 1},
    ]


def test_columns_are_found_or_taken_from_a_table(bench: Workbench, kafka: Broker) -> None:
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [{"id": 1, "at": "2026-01-31T12:00:00Z"}])
    reading = source(kafka, topic, incremental=True, schema_of="orders")
    grows = "load: {type: delta, table: orders, merge_schema: true}\n"
    bench.pipeline("orders", reading + INTO_ORDERS)
    bench.run("orders")
    assert bench.rows("orders") == [{"at": "2026-01-31T12:00:00Z", "id": 1}]
    kafka.send(topic, [{"id": 2, "note": "new"}])
    drifted = bench.fail("orders")
    assert (drifted.code, '"note"' in drifted.stderr) == (1, True)
    bench.pipeline("orders", reading + grows)
    bench.run("orders")
    assert {"at": None, "id": 2, "note": "new"} in bench.rows("orders")
    kafka.send(topic, [{"id": "three"}])
    assert "offset 2 cannot be read" in bench.fail("orders").stderr
    other = kafka.topic(partitions=1)
    bench.pipeline("other", source(kafka, other) + INTO_ORDERS)
    assert "hold no record" in bench.fail("other").stderr
    kafka.send(other, [{"id": 1, "_offset": 7}])
    bench.pipeline("other", source(kafka, other, message_columns=["offset"]) + INTO_ORDERS)
    assert 'have a column "_offset" of their own' in bench.fail("other").stderr


def test_a_range_may_be_named_by_offsets_or_by_moments(bench: Workbench, kafka: Broker) -> None:
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [order(n) for n in range(3)])
    between = {"starting_offsets": {"0": 1}, "ending_offsets": {"0": 2}}
    bench.pipeline("some", source(kafka, topic, schema=COLUMNS, **between) + INTO_ORDERS)
    bench.run("some")
    assert ids(bench) == [1]
    moment = datetime.now(UTC).isoformat()
    kafka.send(topic, [order(3)])
    later = source(kafka, topic, schema=COLUMNS, starting_timestamp=moment)
    bench.pipeline("later", f"{later}load: {{type: delta, table: later}}\n")
    bench.run("later")
    assert ids(bench, "later") == [3]
    earlier = source(kafka, topic, schema=COLUMNS, ending_timestamp=moment)
    bench.pipeline("earlier", f"{earlier}load: {{type: delta, table: earlier}}\n")
    bench.run("earlier")
    assert ids(bench, "earlier") == [0, 1, 2]


def test_a_password_over_tls_is_seen_nowhere(
    bench: Workbench, kafka: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [order(1)])
    record = {
        "host": "127.0.0.1",
        "port": kafka.ports[1],
        "user": USER,
        "password": PASSWORD,
        "options": {"ssl.ca.location": str(kafka.ca_file)},
    }
    monkeypatch.setenv("DELTAWORKS_CREDENTIAL__BROKER", json.dumps(record))
    entry = {"type": "kafka", "topic": topic, "credential": "broker", "schema": COLUMNS}
    out = {"type": "kafka", "topic": topic, "credential": "broker", "name": "back"}
    loads = [{"type": "delta", "table": "orders"}, out]
    bench.pipeline("orders", f"extract: {json.dumps(entry)}\nload: {json.dumps(loads)}\n")
    done = bench.cli("run", "orders", "--debug")
    planned = bench.cli("plan", "orders", "--json")
    assert (done.code, planned.code, ids(bench)) == (0, 0, [1]), done.stderr + planned.stderr
    assert len(kafka.received(topic)) == 2
    told = done.stdout + done.stderr + planned.stdout + planned.stderr
    books = [path for path in (bench.root / "warehouse").rglob("*") if path.is_file()]
    for spelling in (PASSWORD, json.dumps(PASSWORD)[1:-1]):
        assert spelling not in told
        assert not [path for path in books if spelling.encode() in path.read_bytes()]
    wrong = json.dumps({**record, "password": "not-the-right-one"})
    monkeypatch.setenv("DELTAWORKS_CREDENTIAL__BROKER", wrong)
    refused = bench.fail("orders")
    assert (refused.code, "refuses the login" in refused.stderr) == (4, True)
    assert "not-the-right-one" not in refused.stderr


def test_it_does_what_every_source_does(
    kafka: Broker, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_jars(spark, jar_files(CONNECTOR_JARS["kafka"], cache=cache_dir(os.environ)))

    def sent(_: Path, options: Example, rows: Sequence[Cells]) -> None:
        kafka.send(options["topic"], [dict(zip(CELLS, row, strict=True)) for row in rows])

    monkeypatch.setitem(WRITERS, "kafka", sent)
    for promise in (
        test_sources.test_reading_looks_at_metadata_only_until_rows_are_asked_for,
        test_sources.test_nulls_are_read_as_nulls,
        test_sources.test_no_rows_are_an_empty_frame_with_its_columns,
    ):
        example = {**KafkaSource.example, "servers": kafka.servers, "topic": kafka.topic()}
        monkeypatch.setattr(KafkaSource, "example", example)
        promise("kafka", spark, tmp_path)
