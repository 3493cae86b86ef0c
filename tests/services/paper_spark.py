"""Runs whose Spark is only on paper: all that a run asks of its store, without a JVM.

What Spark would commit is put there by hand, with nothing but what a log needs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psutil

from deltaworks.contracts.context import RunContext
from deltaworks.engines.spark.delta.writer import TableWriter
from deltaworks.model.commit import CommitInfo
from deltaworks.model.schema import Schema
from deltaworks.runtime.batch.attempt import Attempt
from deltaworks.runtime.cancellation import CancellationToken
from deltaworks.runtime.evaluation.evaluator import Evaluation
from deltaworks.runtime.evaluation.frames import FrameCache, StepFrame
from tests.services.lakes import Lake

if TYPE_CHECKING:
    import pytest

_FIELD = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
_SCHEMA = json.dumps({"type": "struct", "fields": [_FIELD]})


@dataclass
class PaperSpark:
    """Makes the commits of a run, and knows how long that took."""

    lake: Lake
    seconds: float = 0.0
    versions: dict[str, int] = field(default_factory=dict)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Take the place of Spark until the test ends."""
        import deltaworks.engines.spark.delta.writer as writing

        me = psutil.Process()
        frame: Any = SimpleNamespace(columns=["id"], schema=SimpleNamespace(json=lambda: _SCHEMA))

        def engine(place: Any, run: Any, **_: Any) -> RunContext:
            spark: Any = SimpleNamespace()
            return RunContext(
                project_ctx=place.project_ctx, spark=spark, run_id=run.run_id, now=run.now
            )

        def make(
            attempt: Attempt, ctx: RunContext, landed: Mapping[str, CommitInfo]
        ) -> Mapping[str, CommitInfo]:
            steps = {
                load.inputs[0]: StepFrame(frame=frame, holds_rows=True)
                for load in attempt.plan.loads
            }
            walked = Evaluation(frames=steps)
            attempt._judge(walked)
            return attempt._land(walked, ctx, FrameCache(), landed)

        for name, stand_in in {
            "deltaworks.runtime.batch.lifecycle.start_engine": engine,
            "deltaworks.engines.spark.session.connect.held": nullcontext,
            "deltaworks.engines.spark.session.start.jvm_process": lambda _: (
                me.pid,
                me.create_time(),
            ),
            "deltaworks.runtime.batch.load.frame_schema": lambda _: SimpleNamespace(document=""),
        }.items():
            monkeypatch.setattr(name, stand_in)
        monkeypatch.setattr(CancellationToken, "take", lambda *_: None)
        monkeypatch.setattr(Attempt, "make", make)
        monkeypatch.setattr(writing, "fit", lambda rows, *_, **__: (rows, ()))
        monkeypatch.setattr(writing, "frame_schema", lambda _: Schema.from_json(_SCHEMA))
        monkeypatch.setattr(TableWriter, "_writer", lambda writer, _: _Paper(self, writer))
        monkeypatch.setattr(TableWriter, "_save", lambda _, paper: paper.save())

    def commit(self, writer: TableWriter) -> None:
        """One more commit with a file of three rows that is not there."""
        began = time.perf_counter()
        version = self.versions.get(writer.location, -1) + 1
        name = writer.location.removeprefix(f"s3://{self.lake.corner}/")
        lines = [*(_first() if version == 0 else ()), *_actions(writer)]
        text = "\n".join(json.dumps(line) for line in lines)
        self.lake.put(f"{name}/_delta_log/{version:020d}.json", text)
        self.versions[writer.location] = version
        self.seconds += time.perf_counter() - began


class _Paper:
    """A `DataFrameWriter` that takes every word."""

    def __init__(self, spark: PaperSpark, writer: TableWriter) -> None:
        self._spark = spark
        self._writer = writer

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self

    def save(self) -> None:
        self._spark.commit(self._writer)


def _first() -> list[dict[str, Any]]:
    metadata = {
        "id": str(uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": _SCHEMA,
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 0,
    }
    return [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]


def _actions(writer: TableWriter) -> list[dict[str, Any]]:
    txn, now_ms = writer.stamp.txn, int(time.time() * 1000)
    added = {
        "path": f"part-{uuid4()}.parquet",
        "partitionValues": {},
        "size": 1,
        "modificationTime": now_ms,
        "dataChange": True,
        "stats": json.dumps({"numRecords": 3}),
    }
    told = {
        "timestamp": now_ms,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append"},
        "operationMetrics": {"numFiles": "1", "numOutputRows": "3"},
        "engineInfo": "Apache-Spark/4.0.0 Delta-Lake/4.0.0",
        "userMetadata": writer.stamp.user_metadata,
    }
    return [
        {"txn": {"appId": txn.app_id, "version": txn.version, "lastUpdated": now_ms}},
        {"add": added},
        {"commitInfo": told},
    ]
