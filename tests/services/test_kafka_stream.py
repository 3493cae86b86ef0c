"""`deltaworks stream run` from a topic: epochs of offsets, without a JVM of ours (S3)."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from deltaworks.streams.sink import EpochSink
from tests.services.kafka_broker import Broker
from tests.workbench import Workbench

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("at", pa.timestamp("us", tz="UTC"))])


def ready(desk: Workbench, kafka: Broker, topic: str, load: str = "", **more: Any) -> None:
    """A table, and the pipeline that streams a topic into it."""
    if desk.version("events") is None:
        DeltaTable.create(str(desk.table("events")), schema=SCHEMA)
    entry = {"type": "kafka", "topic": topic, "servers": kafka.servers, **more}
    desk.pipeline(
        "p", f"extract: {json.dumps(entry)}\nload: {{type: delta, table: events{load}}}\n"
    )


def event(n: int) -> dict[str, Any]:
    return {"id": n, "day": "2026-01-31", "at": f"2026-01-31T12:00:{n % 60:02d}.5Z"}


def streamed(desk: Workbench) -> dict[str, Any]:
    answer = desk.cli("stream", "run", "p", "--json")
    assert answer.code == 0, answer.stdout
    return dict(answer.json)


def ids(desk: Workbench) -> list[int]:
    return sorted(row["id"] for row in desk.rows("events"))


def test_messages_become_epochs_of_so_many_offsets(desk: Workbench, kafka: Broker) -> None:
    topic = kafka.topic(partitions=2)
    ready(desk, kafka, topic, incremental=True, max_offsets_per_batch=4)
    assert streamed(desk)["epochs"] == []
    kafka.send(topic, [event(n) for n in range(10)])
    done = streamed(desk)
    assert len(kafka.received(topic)) == 10
    assert ids(desk) == list(range(10))
    assert ([one["epoch"] for one in done["epochs"]], done["rows"]) == ([1, 2, 3], 10)
    assert streamed(desk)["last_epoch"] == 3
    kafka.send(topic, [event(10)])
    assert streamed(desk)["last_epoch"] == 4
    assert ids(desk) == list(range(11))
    row = desk.rows("events")[0]
    assert (str(row["day"]), row["at"].microsecond) == ("2026-01-31", 500_000)


@pytest.mark.parametrize("before", [True, False])
def test_what_is_cut_off_goes_on_with_the_right_offset(
    desk: Workbench, kafka: Broker, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    topic = kafka.topic(partitions=1)
    ready(desk, kafka, topic, ", mode: upsert, merge_keys: [id]", incremental=True)
    kafka.send(topic, [event(1), event(2)])
    commit = EpochSink.commit_epoch

    def cut(self: EpochSink[Any], epoch: int) -> Any:
        if not before:
            commit(self, epoch)
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(EpochSink, "commit_epoch", cut)
        assert desk.cli("stream", "run", "p").code == 0
    kafka.send(topic, [event(3)])
    streamed(desk)
    assert ids(desk) == [1, 2, 3]


def test_what_a_stream_cannot_read_is_told_with_its_offset(desk: Workbench, kafka: Broker) -> None:
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [event(1), b"{no"])
    ready(desk, kafka, topic)
    told = desk.cli("stream", "run", "p")
    assert (told.code, "partition 0, offset 1 is not JSON" in told.stderr) == (1, True)
    other = kafka.topic(partitions=1)
    kafka.send(other, [{"id": 1, "more": 2}])
    ready(desk, kafka, other)
    assert "do not fit the table" in desk.cli("stream", "run", "p").stderr
    ready(desk, kafka, other, on_error="quarantine")
    assert 'does not know "on_error"' in desk.cli("stream", "run", "p").stderr
    assert ids(desk) == []
    DeltaTable.create(str(desk.table("maps")), schema=pa.schema([("m", pa.binary())]))
    entry = {"type": "kafka", "topic": other, "servers": kafka.servers}
    desk.pipeline("p", f"extract: {json.dumps(entry)}\nload: {{type: delta, table: maps}}\n")
    assert "reads no column of type binary" in desk.cli("stream", "run", "p").stderr
