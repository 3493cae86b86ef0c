"""Send rows to Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from deltaworks.connectors.kafka.options import KafkaTopic
from deltaworks.contracts.context import BatchWrite, ProjectContext, RunContext
from deltaworks.contracts.expression import SqlExpression
from deltaworks.contracts.plugin import Example, Names
from deltaworks.contracts.sink import Sink
from deltaworks.model.commit import CommitInfo, SinkState
from deltaworks.model.results import OutputPlan
from deltaworks.model.table_ref import TableRef

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deltaworks.engines.spark.write.kafka import MessageShape

_AT_LEAST_ONCE = "at least once: a batch that is cut off is sent again"


class KafkaSink(KafkaTopic, Sink):
    """Messages of a topic, one for each row, with the batch in a header; at least once."""

    example: ClassVar[Example] = {
        "topic": "orders",
        "servers": "broker:9092",
        "merge_keys": ["id"],
    }
    tracks_batches: ClassVar[bool] = False

    format: Literal["json", "avro", "string", "raw"] = "json"
    """What a value is: the row as JSON or Avro, or its column `value` as text or bytes."""
    merge_keys: Names = ()
    """Columns that make the key: one as its text, several as JSON; no key when left out."""
    header_columns: Names = ()
    """Columns that are sent as headers too."""
    order_by: Names = ()
    """Columns by which messages with one key are sent; the version for a feed of changes."""
    tombstone_where: SqlExpression | None = None
    """Rows of which only the key is sent, such as `_change_type = 'delete'`."""

    def problems(self) -> tuple[str, ...]:
        found = list(super().problems())
        if self.order_by and not self.merge_keys:
            found.append('"order_by" orders messages with one key: say "merge_keys"')
        if self.tombstone_where and not self.merge_keys:
            found.append('"tombstone_where" sends keys alone: say "merge_keys"')
        return tuple(found)

    def own_name(self) -> str:
        return self.topic

    def target(self, project_ctx: ProjectContext) -> TableRef:
        return TableRef(self.topic, f"kafka:{self.topic}")

    def state(self, project_ctx: ProjectContext, app_id: str) -> SinkState:
        return SinkState(identity=self.topic, exists=True)

    def is_append(self) -> bool:
        return True

    def adds_each_row(self) -> bool:
        return True

    def write(self, ctx: RunContext, frame: DataFrame, batch: BatchWrite) -> CommitInfo:
        from deltaworks.engines.spark.write.kafka import BATCH_HEADER, WRITER_HEADER, send

        self.verify(ctx, frame)
        told = {BATCH_HEADER: str(batch.n), WRITER_HEADER: batch.txn.app_id}
        messages = self._shape().messages(frame, told)
        options = {**self._patience(), **self.access(ctx.project_ctx).for_spark()}
        rows = send(messages, topic=self.topic, options=options)
        return CommitInfo(committed=True, rows_inserted=rows, note=_AT_LEAST_ONCE)

    def verify(self, ctx: RunContext, frame: DataFrame) -> None:
        self._shape().require(frame)
        self.reader(ctx.project_ctx).info()

    def plan(self, ctx: RunContext, frame: DataFrame) -> OutputPlan:
        self.verify(ctx, frame)
        return OutputPlan(
            sink=self.name or self.own_name(),
            path=self.topic,
            exists=True,
            rows_to_insert=frame.count(),
            note=_AT_LEAST_ONCE,
        )

    def _patience(self) -> dict[str, str]:
        """How long the producer waits for brokers; a request takes half of it at most."""
        whole, half = str(self.wait_ms), str(min(30_000, self.wait_ms // 2))
        return {
            "kafka.delivery.timeout.ms": whole,
            "kafka.max.block.ms": whole,
            "kafka.request.timeout.ms": half,
        }

    def _shape(self) -> MessageShape:
        from deltaworks.engines.spark.write.kafka import MessageShape

        return MessageShape(
            value_format=self.format,
            keys=self.merge_keys,
            headers=self.header_columns,
            order_by=self.order_by,
            tombstone_where=self.tombstone_where or "",
        )
