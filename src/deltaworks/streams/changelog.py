"""Change records as rows: what happened to a key, and which change of a key is the newest.

Records come with a column that says what happened, as Delta's change feed, or as Debezium's
envelope with `before`, `after` and `op`. All become the table's columns, and one that says whether
the row goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deltaworks.engines.deltars.write.dedupe import key_columns
from deltaworks.errors import BatchKeyError, InputError, SchemaMismatch
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

if TYPE_CHECKING:
    import pyarrow as pa

GONE = "__deltaworks_gone"
SEQUENCE = "__deltaworks_sequence"


def is_envelope(schema: pa.Schema) -> bool:
    """Whether rows come as Debezium sends them."""
    import pyarrow.types as kinds

    found = [schema.get_field_index(name) for name in ENVELOPE]
    return -1 not in found and kinds.is_struct(schema.field("after").type)


def changes(rows: pa.Table, *, op_column: str, sequence_by: str) -> pa.Table:
    """The records as rows, each with whether its key goes and, if asked for, its place in time."""
    import pyarrow.compute as pc

    if is_feed(rows.column_names, op_column=op_column):
        return _feed(rows, sequence_by)
    if op_column:
        _need(rows, op_column, "the column that says what happened")
        gone, payload = _gone(rows.column(op_column)), rows.drop_columns([op_column])
    elif is_envelope(rows.schema):
        gone = _gone(rows.column("op"))
        payload = _opened(rows, gone)
    else:
        raise SchemaMismatch(
            "the rows are no change records",
            hint="name the column that says what happened with op_column, "
            "or send Debezium's envelope: before, after, op",
        )
    payload = payload.append_column(GONE, gone)
    if sequence_by and sequence_by not in payload.column_names:
        _need(rows, sequence_by, "the column that orders changes")
        payload = payload.append_column(SEQUENCE, rows.column(sequence_by))
    return payload.filter(pc.is_valid(gone))


def _feed(rows: pa.Table, sequence_by: str) -> pa.Table:
    """The records of a change feed, which has an order of its own and columns of its own."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if problem := feed_problem(sequence_by):
        raise SchemaMismatch(problem, hint=FEED_HINT)
    gone = _gone(rows.column(CHANGE_TYPE), goes=FEED_GOES)
    version = rows.column(COMMIT_VERSION).cast(pa.int64())
    place = pc.add(pc.multiply(version, 2), pc.cast(pc.invert(gone), pa.int64()))
    own = rows.drop_columns([name for name in FEED if name in rows.column_names])
    return own.append_column(GONE, gone).append_column(SEQUENCE, place)


def _need(rows: pa.Table, name: str, what: str) -> None:
    if name not in rows.column_names:
        raise SchemaMismatch(
            f'the rows lack "{name}", {what}', hint=f"they have {', '.join(rows.column_names)}"
        )


def _gone(op: pa.ChunkedArray, *, goes: frozenset[str] = GOES) -> pa.Array:
    """True where a key goes, false where it stays, NULL where the record says nothing."""
    import pyarrow as pa

    meaning: dict[Any, bool | None] = dict.fromkeys(STAYS, False)
    meaning |= dict.fromkeys(PASSED_OVER)
    meaning |= dict.fromkeys(goes, True)
    found = []
    for value in op.to_pylist():
        word = value.lower() if isinstance(value, str) else value
        if word not in meaning:
            raise InputError(
                f"a change record says {value!r}",
                hint=f"known are {', '.join(KNOWN)}",
            )
        found.append(meaning[word])
    return pa.array(found, pa.bool_())


def _opened(rows: pa.Table, gone: pa.Array) -> pa.Table:
    """The inside of envelopes: what was there before where a key goes, else what is there after."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    deleted = pc.fill_null(gone, False)  # noqa: FBT003 - Arrow takes it by place
    after, before = rows.column("after"), rows.column("before")
    names = [field.name for field in after.type]
    new = dict(zip(names, after.flatten(), strict=True))
    old: dict[str, Any] = {}
    if kinds.is_struct(before.type):
        old = dict(zip([field.name for field in before.type], before.flatten(), strict=True))
    columns = {
        name: pc.if_else(deleted, old[name], new[name]) if name in old else new[name]
        for name in names
    }
    return pa.table(columns)


def refuse_null_keys(rows: pa.Table, keys: Sequence[str]) -> None:
    """A row without its key can be neither found nor told apart."""
    for key in keys:
        if missing := rows.column(key).null_count:
            raise BatchKeyError(
                f'key "{key}" is NULL in {missing} of {rows.num_rows} rows',
                hint="leave such rows out",
            )


def newest(rows: pa.Table, keys: Sequence[str], *, sequence: str) -> pa.Table:
    """The last row of each key: by its place in time where there is one, then by arrival."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if sequence:
        places = pa.table(
            {
                "known": pc.is_valid(rows.column(sequence)),  # without a place is before all others
                "sequence": rows.column(sequence),
                "arrived": pa.array(range(rows.num_rows), pa.int64()),
            }
        )
        order = [(name, "ascending") for name in places.column_names]
        rows = rows.take(pc.sort_indices(places, sort_keys=order))
    keyed = key_columns(rows, keys)
    names = keyed.column_names
    keyed = keyed.append_column("place", pa.array(range(rows.num_rows), pa.int64()))
    last = keyed.group_by(names).aggregate([("place", "max")]).column("place_max")
    return rows.take(last.combine_chunks())
