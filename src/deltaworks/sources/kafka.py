"""Read messages of Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from deltaworks.clock import parse_timestamp
from deltaworks.connectors.kafka.offsets import (
    identity_of,
    offset_bounds,
    offsets_in,
    refuse_lost,
    same_name,
    within,
)
from deltaworks.connectors.kafka.options import KafkaTopic
from deltaworks.connectors.kafka.topics import Offsets, TopicReader
from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.contracts.expression import SchemaText
from deltaworks.contracts.plugin import Example, Names
from deltaworks.contracts.source import Source
from deltaworks.contracts.timestamp import Moment
from deltaworks.errors import DeltaworksError, GuardError, InputError, StorageError
from deltaworks.model.batch import Bounds
from deltaworks.storage.listing import MissingColumns, UnknownColumns
from deltaworks.suggest import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from deltaworks.engines.spark.read.kafka import MessageRows

_UNTOLD = "UnknownReason"
_DRIFTS = ("unknown_columns", "missing_columns")
_PARTS = ("key", "headers", "timestamp", "topic", "partition", "offset")


class KafkaSource(KafkaTopic, Source):
    """Messages of a topic between offsets, which are fixed before anything is read."""

    example: ClassVar[Example] = {
        "topic": "orders",
        "servers": "broker:9092",
        "schema": "id bigint, name string, amount double",
    }

    format: Literal["json", "avro", "string", "raw"] = "json"
    """What a value is: a record of JSON or Avro, or a text or bytes, which become `value`."""
    schema_: SchemaText | None = Field(default=None, alias="schema")
    """Columns and types of JSON values, such as `id bigint, amount double`; found when left out."""
    unknown_columns: UnknownColumns = "refuse"
    """Fields that JSON values have and `schema` lacks: stop, leave them out, or read them too."""
    missing_columns: MissingColumns = "fill"
    """Columns of `schema` that no value of the batch has: stop, or read NULL."""
    schema_of: str = ""
    """A table, by name or path, whose types the values' columns have; others are found."""
    avro_schema: str = ""
    """The schema of Avro values: a file of the project, or the JSON itself."""
    message_columns: Names = ()
    """Of key, headers, timestamp, topic, partition, offset: columns `_key` and so on."""
    key_format: Literal["string", "raw"] = "string"
    """Whether `_key` is text or bytes."""
    tombstones: Literal["keep", "drop"] = "keep"
    """Whether a message without a value is a row of NULLs, or left out."""
    on_error: Literal["fail", "quarantine"] = "fail"
    """What happens to a message whose value does not fit."""
    incremental: bool = False
    """Read on where the last batch ended."""
    starting_offsets: Literal["earliest", "latest"] | dict[int, int] = "earliest"
    """Where reading begins: at either end, or at an offset for each partition."""
    starting_timestamp: Moment | None = None
    """The timestamp from which messages are read, such as `2026-01-31T12:00:00Z`."""
    ending_offsets: Literal["latest"] | dict[int, int] = "latest"
    """Where reading ends, that offset not included."""
    ending_timestamp: Moment | None = None
    """The timestamp before which messages are read."""
    max_offsets_per_batch: int | None = Field(default=None, ge=1)
    """How much one batch reads at most; a run makes as many as it takes."""
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    """Whether messages of transactions that were aborted or are open are left out."""

    def problems(self) -> tuple[str, ...]:
        found = [*super().problems(), *self._range_problems()]
        unknown = [name for name in self.message_columns if name not in _PARTS]
        found.extend(f'a message has no "{name}"; {did_you_mean(name, _PARTS)}' for name in unknown)
        if (self.format == "avro") != bool(self.avro_schema):
            found.append('"format: avro" and "avro_schema" belong together')
        if self.format != "json" and (self.schema_ is not None or self.schema_of):
            found.append(f'"schema" and "schema_of" are for JSON, not for "{self.format}"')
        if self.schema_ is not None and self.schema_of:
            found.append('"schema" and "schema_of" exclude each other')
        drifts = [name for name in _DRIFTS if name in self.model_fields_set]
        if self.schema_ is None:
            found.extend(f'"{name}" needs "schema", which names the columns' for name in drifts)
        return tuple(found)

    def _range_problems(self) -> list[str]:
        found = []
        if self.starting_timestamp is not None and self.starting_offsets != "earliest":
            found.append('"starting_offsets" and "starting_timestamp" exclude each other')
        if self.ending_timestamp is not None and self.ending_offsets != "latest":
            found.append('"ending_offsets" and "ending_timestamp" exclude each other')
        ends = self.ending_offsets != "latest" or self.ending_timestamp is not None
        if self.incremental and ends:
            found.append('"incremental" reads up to the end; leave the "ending_..." out')
        if self.max_offsets_per_batch is not None and not self.incremental:
            found.append('"max_offsets_per_batch" needs "incremental: true"')
        return found

    def reads_increments(self) -> bool:
        return self.incremental

    def finds_columns(self) -> bool:
        return self.format == "json" and (self.schema_ is None or self.unknown_columns == "keep")

    def bounds(self, project_ctx: ProjectContext, since: Bounds | None) -> Bounds:
        reader = self.reader(project_ctx, self.isolation)
        info = reader.info()
        identity = identity_of(self.topic, info)
        earliest, latest = reader.earliest(info.partitions), reader.latest(info.partitions)
        end = self._end(reader, earliest, latest)
        if since is None or not same_name(since.identity, self.topic):
            start = self._start(reader, earliest, latest)
            self._refuse_backwards(start, end)
            first: Offsets = start
        else:
            self._refuse_other(since, identity)
            start = {**earliest, **offsets_in(since, "end")}
            refuse_lost(self.topic, start, earliest, latest)
            first = offsets_in(since, "first")
        most = self.max_offsets_per_batch
        return offset_bounds(identity, start, end, first=first, most=most)

    def _refuse_other(self, since: Bounds, identity: str) -> None:
        if since.identity != identity:
            raise GuardError(
                f'topic "{self.topic}" was recreated, or is that of another cluster, '
                "since the last batch read it",
                hint="read the new one from its beginning by --from earliest, "
                "or reload everything with --full-refresh",
            )

    def _start(self, reader: TopicReader, earliest: Offsets, latest: Offsets) -> dict[int, int]:
        if self.starting_timestamp is not None:
            return reader.at(earliest, parse_timestamp(self.starting_timestamp))
        if isinstance(self.starting_offsets, dict):
            return within(self.topic, self.starting_offsets, earliest, latest)
        return dict(latest if self.starting_offsets == "latest" else earliest)

    def _end(self, reader: TopicReader, earliest: Offsets, latest: Offsets) -> dict[int, int]:
        if self.ending_timestamp is not None:
            return reader.at(earliest, parse_timestamp(self.ending_timestamp))
        if isinstance(self.ending_offsets, dict):
            return within(self.topic, self.ending_offsets, earliest, latest)
        return dict(latest)

    def _refuse_backwards(self, start: Offsets, end: Offsets) -> None:
        for part, offset in start.items():
            if offset > end[part]:
                raise InputError(
                    f'topic "{self.topic}": the start of partition {part} lies after its end',
                    hint=f"the start is offset {offset:,}, the end {end[part]:,}",
                )

    def start_at(self, project_ctx: ProjectContext, point: str) -> Bounds | None:
        reader = self.reader(project_ctx, self.isolation)
        info = reader.info()
        if point == "earliest":
            start = reader.earliest(info.partitions)
        elif point == "latest":
            start = reader.latest(info.partitions)
        else:
            start = reader.at(info.partitions, parse_timestamp(point))
        identity = identity_of(self.topic, info)
        return offset_bounds(identity, start, start, first=start, most=None)

    def still_there(self, project_ctx: ProjectContext, bounds: Bounds) -> str:
        reader = self.reader(project_ctx, self.isolation)
        try:
            info = reader.info()
        except InputError as problem:  # no topic; a cluster that is silent is no answer
            return problem.message
        if identity_of(self.topic, info) != bounds.identity:
            return f'topic "{self.topic}" is another one now'
        earliest = reader.earliest(info.partitions)
        start, end = offsets_in(bounds, "start"), offsets_in(bounds, "end")
        for part, offset in start.items():
            if offset < end[part] and offset < earliest[part]:
                return f'offset {offset:,} of topic "{self.topic}" has expired'
        return ""

    def why_not_streamed(self) -> str:
        only_spark = ("format", "schema_", *_DRIFTS, "message_columns", "on_error", "tombstones")
        fields = type(self).model_fields
        odd = (name for name in only_spark if getattr(self, name) != fields[name].default)
        return next(odd, "").rstrip("_")

    def arrow_batches(
        self, project_ctx: ProjectContext, bounds: Bounds, columns: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        from deltaworks.connectors.kafka.consumer import arrow_rows, consumed

        reader = self.reader(project_ctx, self.isolation)
        for part in consumed(reader, offsets_in(bounds, "start"), offsets_in(bounds, "end")):
            yield from arrow_rows(part, columns, topic=self.topic).to_batches()

    def _rows(self, ctx: RunContext) -> MessageRows:
        from deltaworks.engines.spark.read.kafka import MessageRows

        return MessageRows(
            spark=ctx.spark,
            topic=self.topic,
            value_format=self.format,
            avro_schema=self._avro(ctx.project_ctx),
            parts=self.message_columns,
            text_key=self.key_format == "string",
        )

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        rows = self._rows(ctx)
        options = {
            **self.access(ctx.project_ctx).for_spark(),
            "kafka.isolation.level": self.isolation,
            "kafkaConsumer.pollTimeoutMs": str(self.wait_ms),
        }
        messages = rows.messages(bounds, options, tombstones=self.tombstones == "keep")
        found = rows.rows(messages, self._columns(ctx, rows, messages))
        return rows.strict(found) if self.on_error == "fail" else rows.marked(found)

    def explain_failure(
        self, ctx: RunContext, bounds: Bounds, error: DeltaworksError
    ) -> DeltaworksError:
        """A Spark that got the connector while it ran cannot tell why a task of its failed."""
        if _UNTOLD not in error.message:
            return error
        try:
            self.reader(ctx.project_ctx, self.isolation).info()
        except StorageError as silent:
            return silent
        return error

    def reread(self, ctx: RunContext, kept: DataFrame, columns: StructType) -> DataFrame:
        from deltaworks.engines.spark.frames.columns import declared_columns
        from deltaworks.engines.spark.read.json_fields import kept_columns

        rows = self._rows(ctx)
        messages, own = rows.kept_messages(kept, columns)
        if self.schema_ is not None:
            declared, unknown = declared_columns(self.schema_), self.unknown_columns
            texts = kept.select("raw")
            own = kept_columns(texts, own, declared, unknown, options={}, warn=ctx.warn)
        return rows.marked(rows.rows(messages, own))

    def _columns(
        self, ctx: RunContext, rows: MessageRows, messages: DataFrame
    ) -> StructType | None:
        if self.format != "json":
            return None
        if self.schema_ is not None:
            return self._compared(ctx, rows, messages)
        found = rows.found_columns(messages)
        columns = self._as_table(ctx.project_ctx, found) if self.schema_of else found
        if not columns.fields:
            raise InputError(
                f'the messages of topic "{self.topic}" hold no record that would tell its columns',
                hint="name them: schema: id bigint, amount double",
            )
        return columns

    def _compared(self, ctx: RunContext, rows: MessageRows, messages: DataFrame) -> StructType:
        """The columns of `schema`, and others if they are kept; all values are read for that."""
        from deltaworks.engines.spark.frames.columns import declared_columns
        from deltaworks.engines.spark.read.json_fields import judge_fields, with_others
        from deltaworks.storage.drift import Drift

        declared = declared_columns(self.schema_ or "")
        if self.unknown_columns == "ignore" and self.missing_columns == "fill":
            return declared
        found = rows.found_columns(messages)
        drift = Drift(unknown=self.unknown_columns, missing=self.missing_columns)
        if found.fields:
            first = partial(rows.first_with, messages)
            judge_fields(declared, found, drift, ctx.warn, first=first)
        return with_others(declared, found) if self.unknown_columns == "keep" else declared

    def _as_table(self, project_ctx: ProjectContext, found: StructType) -> StructType:
        """The table's columns, then those that only the values have; all found ones without it."""
        from pyspark.sql.types import StructField, StructType

        from deltaworks.engines.deltars.tables import DeltaRsEngine
        from deltaworks.engines.spark.frames.audit_columns import BATCH, RUN_ID

        is_path = "/" in self.schema_of
        table, path = ("", self.schema_of) if is_path else (self.schema_of, "")
        info = DeltaRsEngine(project_ctx.stores).info(
            project_ctx.table(table=table, path=path).location
        )
        if info is None:
            return found
        its = StructType.fromJson(json.loads(info.schema.document)).fields
        apart = {RUN_ID, BATCH, *(f"_{name}" for name in self.message_columns)}
        known = [StructField(f.name, f.dataType) for f in its if f.name not in apart]
        named = {field.name.lower() for field in known}
        return StructType([*known, *(f for f in found.fields if f.name.lower() not in named)])

    def _avro(self, project_ctx: ProjectContext) -> str:
        text = self.avro_schema.strip()
        if not text or text.startswith(("{", "[", '"')):
            return text
        try:
            return Path(project_ctx.path(text)).read_text(encoding="utf-8")
        except OSError as problem:
            raise InputError(
                f'avro_schema: file "{text}" cannot be read: {problem.strerror}',
                hint="name a file of the project, or write the schema itself",
            ) from None
