"""Messages read without a JVM, as Arrow rows of a table's columns."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from deltaworks.connectors.kafka.errors import translated
from deltaworks.connectors.kafka.topics import Offsets, TopicReader, kafka_package
from deltaworks.errors import InputError, StorageError, UnsupportedOperation

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE = 10_000
_POLL_SECONDS = 0.5
_AT_END = "_PARTITION_EOF"


def consumed(reader: TopicReader, start: Offsets, end: Offsets) -> Iterator[list[Any]]:
    """The messages between offsets, some thousands at a time."""
    kafka = kafka_package()
    settings = {
        **reader.access.for_librdkafka(),
        "group.id": "deltaworks",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "isolation.level": reader.isolation,
        "log_level": 0,
    }
    left = {part: end[part] for part, offset in start.items() if offset < end[part]}
    consumer = kafka.Consumer(settings)
    try:
        consumer.assign([kafka.TopicPartition(reader.topic, part, start[part]) for part in left])
        heard = time.monotonic()
        while left:
            found = consumer.consume(_AT_ONCE, timeout=_POLL_SECONDS)
            if kept := _within(reader, found, left):
                yield kept
            if found:
                heard = time.monotonic()
            elif time.monotonic() - heard > reader.wait_seconds:
                raise StorageError(
                    f"Kafka at {reader.access.servers} does not answer",
                    hint="see that the brokers are up, then run it again",
                )
    finally:
        consumer.close()


def _within(reader: TopicReader, found: Sequence[Any], left: dict[int, int]) -> list[Any]:
    """Those before their partition's end; a partition that has reached it is done with."""
    kept = []
    for message in found:
        part, fault = message.partition(), message.error()
        if fault is not None and fault.name() != _AT_END:
            raise translated(fault, servers=reader.access.servers, topic=reader.topic)
        if part in left and fault is None and message.offset() < left[part]:
            kept.append(message)
        if message.offset() >= left.get(part, 0) - (1 if fault is None else 0):
            left.pop(part, None)
    return kept


def arrow_rows(messages: Sequence[Any], columns: pa.Schema, *, topic: str) -> pa.Table:
    """JSON values as rows of these columns; what does not fit is told with its offset."""
    import pyarrow as pa
    import pyarrow.json as pj
    import pyarrow.types as kinds

    for field in columns:
        if kinds.is_map(field.type) or kinds.is_binary(field.type):
            raise UnsupportedOperation(
                f'a stream reads no column of type {field.type} from JSON: "{field.name}"',
                hint="use `deltaworks run`, which has Spark",
            )
    read = pa.schema([f.with_type(_read_as(f.type)).with_nullable(True) for f in columns])  # noqa: FBT003
    lines = b"\n".join((message.value() or b"{}").replace(b"\n", b" ") for message in messages)
    options = pj.ParseOptions(explicit_schema=read, unexpected_field_behavior="error")
    try:
        table = pj.read_json(io.BytesIO(lines), parse_options=options)
        return table.cast(pa.schema([f.with_nullable(True) for f in columns]))  # noqa: FBT003
    except pa.ArrowInvalid as problem:
        raise _misfit(messages, topic, str(problem)) from None


def _read_as(kind: pa.DataType) -> pa.DataType:
    """Arrow reads no dates in JSON, but makes them of text."""
    import pyarrow as pa
    import pyarrow.types as kinds

    return pa.string() if kinds.is_date(kind) else kind


def _misfit(messages: Sequence[Any], topic: str, said: str) -> InputError:
    for message in messages:
        try:
            json.loads(message.value() or b"{}")
        except ValueError:
            place = f"partition {message.partition()}, offset {message.offset()}"
            return InputError(
                f'the message at "{topic}" {place} is not JSON',
                hint="use `deltaworks run` with `on_error: quarantine` to get past it",
            )
    first, last = messages[0], messages[-1]
    return InputError(
        f'messages of "{topic}" do not fit the table (offsets {first.offset():,} to '
        f"{last.offset():,}): {said}",
        hint="use `deltaworks run`, which names the message and can set it aside",
    )
