"""Messages of Kafka as rows: what is in their values, and where each message stood."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Literal

from deltaworks.contracts.plugin import REJECTED
from deltaworks.engines.spark.errors.row_notes import stop
from deltaworks.engines.spark.frames.columns import EXACT_TIMES, quoted
from deltaworks.engines.spark.frames.rejects import rejection
from deltaworks.engines.spark.read import json_records as json_rows
from deltaworks.engines.spark.read.json_fields import fields_of
from deltaworks.errors import InputError
from deltaworks.model.batch import Bounds
from deltaworks.storage.drift import FileDrift

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

Format = Literal["json", "avro", "string", "raw"]
VALUE = "__deltaworks_value"
PLACE = "__deltaworks_place"
CORRUPT = "__deltaworks_corrupt"
_RECORD = "__deltaworks_record"
_REST = "__deltaworks_rest"
_APART = "deltaworks.apart"
_BYTES = "base64:"
SET_ASIDE = "correct it, or set such messages aside with `on_error: quarantine`"
_NOT = {"avro": "not a record of `avro_schema`", "string": "not UTF-8 text", "raw": ""}
PARTS = ("key", "headers", "timestamp", "topic", "partition", "offset")
"""What is known of a message besides its value; the column of each has an underscore in front."""


def part_column(name: str) -> str:
    """The column that a part of a message gets."""
    return f"_{name}"


@dataclass(frozen=True, kw_only=True)
class MessageRows:
    """How messages are read and taken apart."""

    spark: SparkSession
    topic: str
    value_format: Format
    avro_schema: str = ""
    parts: Sequence[str] = ()
    text_key: bool = True

    def messages(
        self, bounds: Bounds, options: Mapping[str, str], *, tombstones: bool
    ) -> DataFrame:
        """The messages within the bounds: bytes of the value, the place, the parts asked for."""
        from pyspark.sql import functions as F

        reader = self.spark.read.format("kafka").options(**options)
        for end, option in (("start", "startingOffsets"), ("end", "endingOffsets")):
            reader = reader.option(option, json.dumps({self.topic: dict(bounds.position[end])}))
        told = {"subscribe": self.topic, "includeHeaders": "true", "failOnDataLoss": "true"}
        found = reader.options(**told).load()
        if not tombstones:
            found = found.filter(F.col("value").isNotNull())
        place = F.concat(
            F.lit("partition "),
            F.col("partition").cast("string"),
            F.lit(", offset "),
            F.col("offset").cast("string"),
        )
        return found.select(
            F.col("value").alias(VALUE),
            place.alias(PLACE),
            *[self._part(name).alias(part_column(name)) for name in self.parts],
        )

    def _part(self, name: str) -> Column:
        from pyspark.sql import functions as F

        if name == "key" and self.text_key:
            return as_text(F.col("key"))
        return F.col(name)

    def found_columns(self, messages: DataFrame) -> StructType:
        """The columns that the values themselves tell of."""
        from pyspark.sql import functions as F

        some = messages.filter(F.col(VALUE).isNotNull())
        return fields_of(some.select(as_text(F.col(VALUE))), {})

    def first_with(self, messages: DataFrame, field: str) -> FileDrift:
        """The place of a message that has a field; the topic when none is asked for."""
        from pyspark.sql import functions as F

        named = F.contains(as_text(F.col(VALUE)), F.lit(f'"{field.rsplit(".", maxsplit=1)[-1]}"'))
        rows = messages.filter(named).select(PLACE).head(1) if field else []
        place = "".join(f", {row[PLACE]}" for row in rows)
        return FileDrift(path=f'topic "{self.topic}"{place}', what="messages")

    def rows(self, messages: DataFrame, columns: StructType | None) -> DataFrame:
        """The values as columns, then the parts; `CORRUPT` is the text of one that does not fit."""
        from pyspark.sql import functions as F

        opened = {"json": self._json, "avro": self._avro}.get(self.value_format, self._plain)
        rows = opened(messages, columns)
        names = [name for name in rows.columns if name not in (VALUE, PLACE, CORRUPT)]
        parts = [part_column(name) for name in self.parts]
        for name in parts:
            if names.count(name) > 1:
                raise InputError(
                    f'the values of topic "{self.topic}" have a column "{name}" of their own',
                    hint=f'leave "{name.removeprefix("_")}" out of `message_columns`',
                )
        ordered = [*(name for name in names if name not in parts), *parts]
        return rows.select(*[F.col(quoted(name)) for name in (*ordered, PLACE, CORRUPT)])

    def _json(self, messages: DataFrame, columns: StructType | None) -> DataFrame:
        from pyspark.sql import functions as F

        assert columns is not None
        text = F.coalesce(as_text(F.col(VALUE)), F.lit("{}"))
        text = F.when(F.trim(text) == "", F.lit('""')).otherwise(text)  # no message is passed over
        frame = messages.withColumn(json_rows.TEXT, text).drop(VALUE)
        parsed = json_rows.parsed(frame, columns, {})
        return json_rows.records(parsed, columns, corrupt=CORRUPT)

    def _avro(self, messages: DataFrame, columns: StructType | None) -> DataFrame:
        from pyspark.sql import functions as F
        from pyspark.sql.avro.functions import from_avro

        fields, nothing = _avro_record(self.avro_schema)
        record = from_avro(F.col(VALUE), self.avro_schema, {"mode": "PERMISSIVE"})
        frame = messages.withColumn(_RECORD, record)
        # Spark makes a record of NULLs of what it cannot read, so that one is looked at twice
        found = [F.col(_RECORD).getField(name).isNotNull() for name in fields]
        wrong = F.col(VALUE).isNotNull() & ~reduce(or_, found)
        if nothing is not None:
            wrong &= F.col(VALUE) != F.lit(nothing)
        corrupt = F.when(wrong, _as_base64(F.col(VALUE)))
        others = [name for name in messages.columns if name != VALUE]
        return frame.select(
            f"{_RECORD}.*", *[F.col(quoted(name)) for name in others], corrupt.alias(CORRUPT)
        )

    def _plain(self, messages: DataFrame, columns: StructType | None) -> DataFrame:
        from pyspark.sql import functions as F

        value, corrupt = F.col(VALUE), F.lit(None).cast("string")
        if self.value_format == "string":
            text = value.cast("string")
            corrupt = F.when(~F.is_valid_utf8(text), _as_base64(F.col(VALUE)))
            value = F.when(F.is_valid_utf8(text), text)
        others = [F.col(quoted(name)) for name in messages.columns if name != VALUE]
        return messages.select(value.alias("value"), *others, corrupt.alias(CORRUPT))

    def strict(self, rows: DataFrame) -> DataFrame:
        """The rows; a message that does not fit stops the run."""
        from pyspark.sql import functions as F

        why, said = self._why(rows), F.lit(" cannot be read: ")
        message = F.concat(self._place(), said, why, F.lit(": "), F.col(CORRUPT))
        halt = stop(kind="record", step="", message=message, hint=SET_ASIDE)
        fits = F.when(F.col(CORRUPT).isNull(), F.lit(1) == 1).otherwise(halt)
        return rows.filter(fits).drop(CORRUPT, PLACE)

    def marked(self, rows: DataFrame) -> DataFrame:
        """The rows; those of messages that do not fit are refused with their text."""
        from pyspark.sql import functions as F

        raw, kept = F.col(CORRUPT), rows.drop(CORRUPT, PLACE)
        for name in self.parts:
            kept = kept.withMetadata(part_column(name), {_APART: True})
        rule = f"kafka: the value is {self.value_format} of the columns"
        reason = F.concat(self._place(), F.lit(": "), self._why(rows))
        mark = rejection(raw.isNotNull(), kept, rule=rule, reason=reason, raw=raw)
        return rows.select("*", mark.alias(REJECTED)).drop(CORRUPT, PLACE)

    def kept_messages(self, kept: DataFrame, columns: StructType) -> tuple[DataFrame, StructType]:
        """Quarantined messages, as `messages` gives them; and the columns of values."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        apart = StructType([field for field in columns.fields if _APART in field.metadata])
        own = StructType([field for field in columns.fields if _APART not in field.metadata])
        raw = F.col("raw")
        coded = F.unbase64(F.substr(raw, F.lit(len(_BYTES) + 1)))
        value = F.when(raw.startswith(_BYTES), coded).otherwise(raw.cast("binary"))
        rows = kept.select(
            value.alias(VALUE),
            F.lit("read once more").alias(PLACE),
            F.from_json("row", apart, EXACT_TIMES).alias(_REST),
        )
        return rows.select(VALUE, PLACE, f"{_REST}.*"), own

    def _why(self, rows: DataFrame) -> Column:
        """Why the value of a message does not fit."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        if self.value_format != "json":
            return F.lit(_NOT[self.value_format])
        apart = {PLACE, CORRUPT, *(part_column(name) for name in self.parts)}
        own = StructType([field for field in rows.schema.fields if field.name not in apart])
        return json_rows.misfit(CORRUPT, own)

    def _place(self) -> Column:
        from pyspark.sql import functions as F

        return F.concat(F.lit(f'the message at "{self.topic}" '), F.col(PLACE))


def _avro_record(schema: str) -> tuple[list[str], bytes | None]:
    """The fields of a record, and its bytes when all are NULL; None where one cannot be."""
    try:
        document = json.loads(schema)
        kinds = {field["name"]: field["type"] for field in document["fields"]}
    except (ValueError, KeyError, TypeError):
        raise InputError(
            "avro_schema is no record of Avro", hint='{"type": "record", "fields": [...]}'
        ) from None
    if not all(isinstance(kind, list) and "null" in kind for kind in kinds.values()):
        return list(kinds), None
    return list(kinds), bytes(2 * kind.index("null") for kind in kinds.values())


def as_text(value: Column) -> Column:
    """Bytes as text; those that are none are shown as base64, so that nothing is lost."""
    from pyspark.sql import functions as F

    text = value.cast("string")
    return F.when(F.is_valid_utf8(text), text).otherwise(_as_base64(value))


def _as_base64(value: Column) -> Column:
    from pyspark.sql import functions as F

    return F.concat(F.lit(_BYTES), F.base64(value))
