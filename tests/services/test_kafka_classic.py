"""Classic files between Kafka and Delta run as they are (P13)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.services.kafka_broker import Broker
from tests.workbench import Workbench

pytestmark = pytest.mark.spark


def run(bench: Workbench, name: str, document: dict[str, Any]) -> Any:
    path = bench.write(f"pipelines/{name}.json", json.dumps({"pipelineId": name, **document}))
    answered = bench.cli("run", str(path), "--json", "--quiet")
    assert answered.code == 0, answered.stdout + answered.stderr
    return answered.json


def order(n: int, at: str, **more: Any) -> dict[str, Any]:
    return {"order_id": n, "amount": n, "updated_at": at, "deleted": False, **more}


def test_a_topic_is_upserted_and_its_changes_go_out_again(bench: Workbench, kafka: Broker) -> None:
    topic, out = kafka.topic(partitions=2), kafka.topic(partitions=1)
    brokers = {"kafka.bootstrap.servers": kafka.servers}
    upsert = {
        "extract": {
            "sourceType": "Kafka",
            "connectionParams": {
                **brokers,
                "kafka.security.protocol": "PLAINTEXT",
                "topic": topic,
            },
        },
        "load": {
            "sinkType": "DeltaLake",
            "connectionParams": {
                "path": "lake/orders",
                "mergeKeys": "order_id",
                "updateCondition": "source.updated_at > target.updated_at",
                "deleteCondition": "source.deleted = true",
                "mergeSchema": "true",
                "enableChangeDataFeed": "true",
            },
        },
        "writeMode": "Upsert",
    }
    first = [(b"1", order(1, "2026-01-01")), (b"1", order(1, "2026-01-02", amount=9))]
    kafka.send(topic, [*first, (b"2", order(2, "2026-01-01")), (b"3", order(3, "2026-01-01"))])
    assert run(bench, "in", upsert)["batches"][0]["rows_read"] == 4
    gone = order(2, "2026-01-03", deleted=True)
    kafka.send(topic, [(b"1", order(1, "2025-12-31", amount=0)), (b"2", gone)])
    run(bench, "in", upsert)
    assert run(bench, "in", upsert)["status"] == "skipped"
    rows = bench.open().spark.read.format("delta").load(str(bench.root / "lake/orders"))
    found = sorted((row["order_id"], row["amount"]) for row in rows.collect())
    assert found == [(1, 9), (3, 3)]
    feed = {
        "extract": {
            "sourceType": "DeltaLake",
            "connectionParams": {
                "path": "lake/orders",
                "readChangeFeed": "true",
                "startingVersion": "0",
                "endingVersion": "1",
            },
        },
        "load": {"sinkType": "Kafka", "connectionParams": {**brokers, "topic": out}},
        "writeMode": "Append",
    }
    run(bench, "out", feed)
    told = [json.loads(message.value()) for message in kafka.received(out)]
    assert sorted((one["_change_type"], one["order_id"]) for one in told) == [
        ("delete", 2),
        ("insert", 1),
        ("insert", 2),
        ("insert", 3),
    ]
    assert {one["_commit_version"] for one in told} == {0, 1}
    assert all(one["_commit_timestamp"] for one in told)
