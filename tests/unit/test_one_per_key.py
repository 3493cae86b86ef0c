"""One row per key in memory: the same winners as a plain loop finds, or none at all."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaworks.engines.deltars.write import dedupe as module
from deltaworks.engines.deltars.write.dedupe import one_per_key
from deltaworks.model.write import DuplicatePolicy

NEWEST, OLDEST = DuplicatePolicy(keep="newest", by="ts"), DuplicatePolicy(keep="oldest", by="ts")
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string()), ("v", pa.string()), ("ts", pa.int32())])
ROWS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from("xy"),
        st.sampled_from("ab"),
        st.sampled_from([1, 2, None]),
    ),
    max_size=12,
)


def table(rows: list[tuple[Any, ...]], schema: pa.Schema = SCHEMA) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.table(
        [pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


def wins(rows: list[tuple[Any, ...]], keep: str) -> list[tuple[Any, ...]] | None:
    """The winners as one would write them down; None when different rows tie."""
    found = []
    for key in sorted({row[:2] for row in rows}):
        group = [row for row in rows if row[:2] == key]
        known = [row[3] for row in group if row[3] is not None]
        best = (max if keep == "newest" else min)(known) if known else None
        peers = {row for row in group if row[3] == best}
        if len(group) > 1 and len(peers) > 1:
            return None
        found.append(peers.pop())
    return found


@settings(deadline=None)
@given(ROWS, st.sampled_from(["newest", "oldest"]))
def test_the_winners_are_those_of_a_plain_loop(
    rows: list[tuple[Any, ...]], keep: Literal["newest", "oldest"]
) -> None:
    found = one_per_key(table(rows), ("id", "k"), DuplicatePolicy(keep=keep, by="TS"))
    got = None if found is None else sorted(tuple(row.values()) for row in found.to_pylist())
    assert got == wins(rows, keep)


def test_rows_without_repeated_keys_are_left_as_they_are() -> None:
    rows = table([(1, "x", "a", 1), (2, "x", "a", 1)])
    assert one_per_key(rows, ("id",), None) is rows


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        ([(None, "x", "a", 1)], NEWEST),
        ([(1, "x", "a", 1), (1, "y", "a", 2)], None),
        ([(1, "x", "a", 1), (1, "y", "a", 1)], NEWEST),
        ([(1, "x", "a", 1), (1, "y", "a", 2)], DuplicatePolicy(keep="newest", by="other")),
    ],
    ids=["null", "no rule", "tie", "no such column"],
)
def test_spark_judges_what_is_not_plain(
    rows: list[tuple[Any, ...]], rule: DuplicatePolicy | None
) -> None:
    assert one_per_key(table(rows), ("id",), rule) is None


def test_spark_judges_many_rows_and_numbers_that_order_differently(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    twice = table([(1, "x", "a", 1), (1, "x", "b", 2)])
    assert one_per_key(twice, ("id",), NEWEST) is not None
    floats = twice.set_column(3, "ts", twice.column("ts").cast(pa.float64()))
    assert one_per_key(floats, ("id",), NEWEST) is None
    monkeypatch.setattr(module, "_MAX_ROWS", 1)
    assert one_per_key(twice, ("id",), NEWEST) is None


def test_moments_beyond_pythons_are_compared() -> None:
    far = 400_000_000_000_000_000  # some twelve thousand years on
    schema = pa.schema(
        [("id", pa.date32()), ("at", pa.timestamp("us", "UTC")), ("ts", pa.timestamp("us"))]
    )
    day, moment = date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)
    rows = table([(day, moment, 1), (day, moment, 2)], schema)
    late = rows.set_column(2, "ts", pa.array([far, 1]).cast(pa.timestamp("us")))
    for rule, place in ((NEWEST, 0), (OLDEST, 1)):
        found = one_per_key(late, ("id",), rule)
        assert found is not None
        assert found.equals(late.slice(place, 1))
