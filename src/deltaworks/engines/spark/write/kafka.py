"""Rows as messages for Kafka: a value, a key, headers, and an order among those with one key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from deltaworks.engines.spark.frames.columns import column, quoted, require_columns
from deltaworks.engines.spark.frames.row_counter import RowCounter
from deltaworks.engines.spark.session.conf import temporary_conf
from deltaworks.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BATCH_HEADER = "deltaworks.batch"
WRITER_HEADER = "deltaworks.writer"
_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}
_CHANGE, _VERSION = "_change_type", "_commit_version"
_PLACES = ("update_preimage", "delete", "insert", "update_postimage")
_COUNTED = {"spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text"}
"""Spark's older way to write, which it takes for Kafka by itself, tells nobody what passes."""
_SENT = {"kafka.acks": "all", "kafka.enable.idempotence": "true"}


@dataclass(frozen=True, kw_only=True)
class MessageShape:
    """How rows become messages."""

    value_format: Literal["json", "avro", "string", "raw"]
    keys: Sequence[str]
    headers: Sequence[str]
    order_by: Sequence[str]
    tombstone_where: str = ""

    def require(self, frame: DataFrame) -> None:
        """Raise when the rows lack what their messages are made of."""
        for option in ("keys", "headers", "order_by"):
            where = {"keys": "merge_keys", "headers": "header_columns"}.get(option, option)
            require_columns(frame, getattr(self, option), where=where, nested=False)
        if self.value_format not in ("string", "raw"):
            return
        wanted = "string" if self.value_format == "string" else "binary"
        kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
        if kinds.get("value") != wanted:
            raise InputError(
                f'"format: {self.value_format}" sends a column "value" of type {wanted}, '
                f"and the rows have {kinds.get('value', 'none')}",
                hint="make it in a select or derive step, or send JSON",
            )

    def messages(self, frame: DataFrame, told: Mapping[str, str]) -> DataFrame:
        """What is sent: key, value and headers; messages with one key in order."""
        rows = self._ordered(frame)
        value = self._value(rows)
        if self.tombstone_where:
            from pyspark.sql import functions as F

            gone = F.expr(f"coalesce(({self.tombstone_where}\n), false)")
            value = F.when(~gone, value)
        parts = [value.alias("value"), self._headers(rows, told).alias("headers")]
        if self.keys:
            parts.append(self._key(rows).alias("key"))
        return rows.select(*parts)

    def _ordered(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        order = [column(frame, name) for name in self.order_by]
        if not order and {_CHANGE, _VERSION} <= set(frame.columns):
            places = F.array_position(F.array(*map(F.lit, _PLACES)), F.col(_CHANGE))
            order = [F.col(_VERSION), places]
        if not (self.keys and order):
            return frame
        by_key = frame.repartition(*[column(frame, key) for key in self.keys])
        return by_key.sortWithinPartitions(*order)

    def _value(self, rows: DataFrame) -> Column:
        from pyspark.sql import functions as F

        if self.value_format in ("string", "raw"):
            return F.col("value")
        whole = F.struct(*[F.col(quoted(name)) for name in rows.columns])
        if self.value_format == "json":
            return F.to_json(whole, _TIMES)
        from pyspark.sql.avro.functions import to_avro

        return to_avro(whole)

    def _key(self, rows: DataFrame) -> Column:
        from pyspark.sql import functions as F

        named = [column(rows, key).alias(key) for key in self.keys]
        if len(named) == 1:
            return named[0].cast("string")
        return F.to_json(F.struct(*named), _TIMES)

    def _headers(self, rows: DataFrame, told: Mapping[str, str]) -> Column:
        from pyspark.sql import functions as F

        ours = {name: F.lit(text) for name, text in told.items()}
        texts = {**ours, **{name: column(rows, name).cast("string") for name in self.headers}}
        return F.array(
            *[
                F.struct(F.lit(name).alias("key"), text.cast("binary").alias("value"))
                for name, text in texts.items()
            ]
        )


def send(messages: DataFrame, *, topic: str, options: Mapping[str, str]) -> int | None:
    """Send messages, each acknowledged by all replicas; answers how many."""
    counter = RowCounter()
    told = {**options, **_SENT, "includeHeaders": "true", "topic": topic}
    writer = counter.watch(messages).write.format("kafka").options(**told).mode("append")
    with temporary_conf(messages.sparkSession, _COUNTED):
        writer.save()
    return counter.rows()
