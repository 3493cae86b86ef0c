"""The five classic files end to end, on real servers; only addresses and moments are changed (P13).

What landed is looked up by clients that are not ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from deltaworks.config.credentials.credential import parse_credential
from deltaworks.config.credentials.memory import MemoryVault
from tests.services.kafka_broker import PASSWORD, USER, Broker
from tests.services.postgres_server import PostgresServer
from tests.services.s3_server import ACCESS_KEY, SECRET_KEY, S3Server
from tests.workbench import Workbench

pytestmark = pytest.mark.spark

FILES = Path(__file__).parents[1] / "pipelines" / "classic"
Change = Callable[[dict[str, Any]], None]


class Desk(Workbench):
    """A project with classic files and a vault of its own."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.settle()

    def settle(self, storage: str = "{}") -> None:
        self.write(
            "deltaworks.yaml",
            f"project: {self.root.name}\nwarehouse: ./warehouse\npipelines: pipelines/*.json\n"
            f"credentials: {{backend: memory}}\nstorage: {storage}\n",
        )

    def keep(self, name: str, **record: Any) -> None:
        MemoryVault(self.root.name).put(name, parse_credential(record, name=name))

    def run_file(self, name: str, change: Change = lambda _: None) -> Any:
        document = json.loads((FILES / f"{name}.json").read_text(encoding="utf-8"))
        change(document)
        self.write(f"pipelines/{name}.json", json.dumps(document))
        return self.run(document["pipelineId"])

    def found(self, place: str) -> list[dict[str, Any]]:
        rows = DeltaTable(str(self.root / place)).to_pyarrow_table().to_pylist()
        return sorted(rows, key=lambda row: json.dumps(row, default=str, sort_keys=True))


@pytest.fixture
def desk(jvm: object, tmp_path: Path) -> Desk:  # noqa: ARG001 - the JVM must be up
    return Desk(tmp_path)


def seed(desk: Desk, place: str, *batches: list[dict[str, Any]], feed: bool = False) -> None:
    configuration = {"delta.enableChangeDataFeed": "true"} if feed else None
    for rows in batches:
        write_deltalake(
            str(desk.root / place),
            pa.Table.from_pylist(rows),
            mode="append",
            configuration=configuration,
        )


def test_a_query_of_postgresql_is_appended_by_partition(
    desk: Desk, postgres: PostgresServer
) -> None:
    postgres.sql(
        "DROP TABLE IF EXISTS orders",
        "CREATE TABLE orders (id int, country text, amount float8, day date)",
        "INSERT INTO orders VALUES (1, 'NL', 5, '2026-01-02'), (2, 'DE', 7, '2026-01-03'), "
        "(3, 'NL', 9, '2025-12-31')",
    )
    known = postgres.record()
    desk.keep("shop-db", user=known["user"], password=known["password"])
    place = {name: str(known[name]) for name in ("host", "port", "database")}
    desk.run_file("postgres_append", lambda file: file["extract"].update(connectionParams=place))
    assert [(row["id"], row["country"]) for row in desk.found("lake/orders")] == [
        (1, "NL"),
        (2, "DE"),
    ]
    assert DeltaTable(str(desk.root / "lake/orders")).metadata().partition_columns == [
        "country",
        "day",
    ]


def test_a_query_of_postgresql_replaces_one_day(desk: Desk, postgres: PostgresServer) -> None:
    postgres.sql(
        "DROP TABLE IF EXISTS orders",
        "CREATE TABLE orders (id bigint, amount float8, day text)",
        "INSERT INTO orders VALUES (7, 70, '2026-01-01'), (8, 80, '2026-01-02')",
    )
    desk.keep("shop-db", **postgres.record())
    stands = [
        {"id": 1, "amount": 1.0, "day": "2026-01-01"},
        {"id": 2, "amount": 2.0, "day": "2026-01-02"},
    ]
    seed(desk, "warehouse/orders", stands)
    desk.run_file("postgres_replace")
    assert [(row["id"], row["day"]) for row in desk.found("warehouse/orders")] == [
        (2, "2026-01-02"),
        (7, "2026-01-01"),
    ]


def test_a_classic_file_merges_into_postgresql(desk: Desk, postgres: PostgresServer) -> None:
    postgres.sql("DROP TABLE IF EXISTS orders_back")
    desk.keep("shop-db", **postgres.record())
    seed(desk, "lake/orders", [{"id": 1}, {"id": 2}])
    document = {
        "pipelineId": "back",
        "extract": {"sourceType": "DeltaLake", "connectionParams": {"path": "lake/orders"}},
        "load": {
            "sinkType": "PostgreSQL",
            "connectionParams": {"table": "orders_back", "mergeKeys": '["id"]'},
            "credentialId": "shop-db",
        },
        "writeMode": "Upsert",
    }
    desk.write("pipelines/back.json", json.dumps(document))
    desk.run("back")
    assert postgres.sql("SELECT id FROM orders_back ORDER BY id") == [(1,), (2,)]


def test_a_topic_is_merged_over_an_encrypted_line(desk: Desk, kafka: Broker) -> None:
    topic = kafka.topic(partitions=1)
    orders = [
        {"order_id": n, "amount": n, "updated_at": "2026-01-01", "deleted": False} for n in (1, 2)
    ]
    newer = [{**orders[0], "amount": 9, "updated_at": "2026-01-02"}]
    gone = [{**orders[1], "updated_at": "2026-01-02", "deleted": True}]
    desk.keep("kafka", user=USER, password=PASSWORD)

    def change(file: dict[str, Any]) -> None:
        file["extract"]["connectionParams"] |= {
            "kafka.bootstrap.servers": kafka.secure_servers,
            "kafka.ssl.ca.location": str(kafka.ca_file),
            "topic": topic,
        }

    kafka.send(topic, orders)
    desk.run_file("kafka_upsert", change)
    kafka.send(topic, [*newer, *gone])
    desk.run_file("kafka_upsert", change)
    assert [(row["order_id"], row["amount"]) for row in desk.found("lake/orders")] == [(1, 9)]


def test_a_table_of_a_moment_is_summed_up_into_files_on_s3(desk: Desk, s3: S3Server) -> None:
    endpoint = f"endpoint: '{s3.endpoint}', path_style: true"
    desk.settle(f"{{s3://reports: {{credential: lake, {endpoint}}}}}")
    desk.keep("lake", access_key=ACCESS_KEY, secret_key=SECRET_KEY, region="us-east-1")
    s3.files().create_dir("reports")
    seed(desk, "lake/orders", [{"country": "NL", "amount": 2}, {"country": "NL", "amount": 3}])
    moment = datetime.now(UTC).isoformat()
    seed(desk, "lake/orders", [{"country": "DE", "amount": 100}])

    def change(file: dict[str, Any]) -> None:
        file["extract"]["connectionParams"]["timestampAsOf"] = moment
        file["load"]["path"] = f"s3a://reports/{desk.root.name}/revenue"

    for _ in range(2):  # what it replaces the second time is its own
        desk.run_file("delta_to_s3", change)
        seed(desk, "lake/orders", [{"country": "FR", "amount": 1}])
        found = pq.read_table(f"reports/{desk.root.name}/revenue", filesystem=s3.files())
        assert found.to_pylist() == [{"country": "NL", "revenue": 5, "orders": 2}]


def test_changes_between_two_versions_go_out_to_a_topic(desk: Desk, kafka: Broker) -> None:
    topic = kafka.topic(partitions=1)
    seed(desk, "lake/orders", *([{"id": n, "v": "a"}] for n in range(6)), feed=True)
    DeltaTable(str(desk.root / "lake/orders")).delete("id = 0")
    DeltaTable(str(desk.root / "lake/orders")).update({"v": "'b'"}, predicate="id = 1")
    seed(desk, "lake/orders", *([{"id": n, "v": "a"}] for n in range(8, 12)))
    desk.keep("kafka", user=USER, password=PASSWORD)

    def change(file: dict[str, Any]) -> None:
        file["load"]["connectionParams"] |= {
            "kafka.bootstrap.servers": kafka.secure_servers,
            "kafka.ssl.ca.location": str(kafka.ca_file),
            "topic": topic,
        }

    desk.run_file("changes_to_kafka", change)
    told = [json.loads(message.value()) for message in kafka.received(topic)]
    assert sorted((one["id"], one["_change_type"], one["v"]) for one in told) == [
        (0, "delete", "a"),
        (1, "update_postimage", "b"),
        (1, "update_preimage", "a"),
        (5, "insert", "a"),
        (8, "insert", "a"),
        (9, "insert", "a"),
        (10, "insert", "a"),
    ]
    assert {one["_commit_version"] for one in told} == set(range(5, 11))
    assert all(one["_commit_timestamp"] for one in told)
