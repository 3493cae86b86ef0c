"""Change records as rows of a table: what happened to a key, and which change is the newest.

The rules are those of streams: a column says what happened, or Delta's change feed does, or
Debezium's envelope, with `before`, `after` and `op`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltaworks.engines.spark.errors.row_notes import stop
from deltaworks.engines.spark.frames.columns import column, quoted, require_columns
from deltaworks.errors import SchemaMismatch
from deltaworks.model.changes import (
    CHANGE_TYPE,
    COMMIT_VERSION,
    ENVELOPE,
    FEED,
    FEED_GOES,
    FEED_HINT,
    GOES,
    KNOWN,
    PASSED_OVER,
    STAYS,
    feed_problem,
    is_feed,
)
from deltaworks.model.write import DuplicatePolicy, Upsert

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

GONE = "__deltaworks_gone"
SEQUENCE = "__deltaworks_sequence"
_OFFSET = "_offset"
_OF_MESSAGES = ("_key", "_headers", "_timestamp", "_topic", "_partition", _OFFSET)
_WRAPPED = "payload"


@dataclass(frozen=True)
class Changes:
    """Records as rows, with whether each one's key goes and its place in time."""

    frame: DataFrame
    ordered_by: str
    """What people know the order by."""
    tie_hint: str

    def merge(self, keys: Sequence[str], *, newer: str) -> Upsert:
        """The merge that applies them; `newer` is a condition without which a row stays."""
        own = tuple(name for name in self.frame.columns if name not in (GONE, SEQUENCE))
        named = {key.lower() for key in keys}
        goes = f"source.{quoted(GONE)}"
        return Upsert(
            keys=tuple(keys),
            update_condition=newer,
            delete_condition=f"{goes} AND coalesce(({newer}\n), true)" if newer else goes,
            update_columns=tuple(name for name in own if name.lower() not in named) or own,
            insert_columns=own,
            duplicates=DuplicatePolicy(
                keep="newest", by=SEQUENCE, shown=self.ordered_by, tie_hint=self.tie_hint
            ),
        )


def opened_changes(frame: DataFrame, *, op_column: str, sequence_by: str) -> Changes:
    """The rows that the records are about; those that only tell what was before are left out."""
    from pyspark.sql import functions as F

    records = _unwrapped(frame)
    if is_feed(records.columns, op_column=op_column):
        return _feed(records, sequence_by)
    if op_column:
        require_columns(records, [op_column], where="op_column", nested=False)
        op = column(records, op_column)
        own = [name for name in records.columns if name.lower() != op_column.lower()]
        values = [F.col(quoted(name)) for name in own]
    elif is_envelope(records.schema):
        op, values = F.col("op"), _inside(records)
    else:
        raise SchemaMismatch(
            "the rows are no change records",
            hint="name the column that says what happened with `op_column`, "
            "or send Debezium's envelope: before, after, op",
        )
    place = _place(records, sequence_by)
    gone = _gone(op)
    opened = records.select(*values, gone.alias(GONE), place.alias(SEQUENCE))
    return Changes(
        opened.filter(F.col(GONE).isNotNull()),
        ordered_by=sequence_by or _OFFSET,
        tie_hint="choose a column for `sequence_by` that tells them apart",
    )


def _feed(records: DataFrame, sequence_by: str) -> Changes:
    """The records of a change feed, which has an order of its own and columns of its own."""
    from pyspark.sql import functions as F

    if problem := feed_problem(sequence_by):
        raise SchemaMismatch(problem, hint=FEED_HINT)
    values = [F.col(quoted(name)) for name in records.columns if name not in FEED]
    gone = _gone(F.col(CHANGE_TYPE), goes=FEED_GOES)
    stays = F.lower(CHANGE_TYPE).isin(*STAYS).cast("bigint")
    place = F.col(COMMIT_VERSION) * 2 + stays
    return Changes(
        records.select(*values, gone.alias(GONE), place.alias(SEQUENCE)),
        ordered_by=COMMIT_VERSION,
        tie_hint="name columns in `merge_keys` that no two rows of the source table share",
    )


def is_envelope(columns: StructType) -> bool:
    """Whether records come as Debezium sends them."""
    from pyspark.sql.types import StructType

    names = columns.fieldNames()
    return set(ENVELOPE) <= set(names) and isinstance(columns["after"].dataType, StructType)


def _unwrapped(frame: DataFrame) -> DataFrame:
    """Records that come with their schema beside them, without it."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    names = [name for name in frame.columns if name not in _OF_MESSAGES]
    if set(names) - {"schema", _WRAPPED} or _WRAPPED not in names:
        return frame
    if not isinstance(frame.schema[_WRAPPED].dataType, StructType):
        return frame
    apart = [F.col(name) for name in frame.columns if name in _OF_MESSAGES]
    return frame.select(f"{_WRAPPED}.*", *apart)


def _inside(records: DataFrame) -> list[Column]:
    """What was there before where a key goes, else what is there after; then where it stood."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    before = records.schema["before"].dataType
    old = before.fieldNames() if isinstance(before, StructType) else []
    after = records.schema["after"].dataType
    assert isinstance(after, StructType)
    deleted = F.lower("op").isin(*GOES)
    found = []
    for field in after.fields:
        value = F.col("after").getField(field.name)
        if field.name in old:
            was = F.col("before").getField(field.name).cast(field.dataType)
            value = F.when(deleted, was).otherwise(value)
        found.append(value.alias(field.name))
    return [*found, *(F.col(name) for name in records.columns if name in _OF_MESSAGES)]


def _gone(op: Column, *, goes: frozenset[str] = GOES) -> Column:
    """True where a key goes, false where it stays, NULL where the record says nothing of it."""
    from pyspark.sql import functions as F

    word = F.lower(op)
    said = F.coalesce(op.cast("string"), F.lit("NULL"))
    message = F.concat(F.lit("a change record says "), said)
    unknown = stop(kind="record", step="", message=message, hint=f"known are {', '.join(KNOWN)}")
    nothing = F.lit(None).cast("boolean")
    return (
        F.when(word.isin(*STAYS), F.lit(1) == 0)
        .when(word.isin(*goes), F.lit(1) == 1)
        .when(word.isin(*PASSED_OVER), nothing)
        .otherwise(unknown.cast("boolean"))
    )


def _place(records: DataFrame, sequence_by: str) -> Column:
    """What orders the changes of a key: the column that is named, then the offset."""
    from pyspark.sql import functions as F

    require_columns(records, [sequence_by] if sequence_by else [], where="sequence_by")
    named = [column(records, sequence_by)] if sequence_by else []
    offset = [F.col(_OFFSET)] if _OFFSET in records.columns else []
    if not (named or offset):
        raise SchemaMismatch(
            "nothing tells which of two changes is the newer one",
            hint="name a column with `sequence_by`, or let the kafka source give "
            "`message_columns: [offset]`",
        )
    places = [*named, *offset]
    together = F.struct(*[value.alias(f"p{n}") for n, value in enumerate(places)])
    return places[0] if len(places) == 1 else together
