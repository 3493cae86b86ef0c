"""Mode scd2: every version of a row, with the time it holds, in one commit per batch."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deltaworks.contracts.context import BatchWrite
from deltaworks.errors import BatchKeyError, GuardError, SchemaMismatch, SpecError
from deltaworks.model.commit import CommitInfo, Txn
from tests.tables.loader import Loader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCD2: dict[str, Any] = {"mode": "scd2", "merge_keys": "id", "sequence_by": "ts"}
VERSIONS = "SELECT id, v, valid_from, valid_to, is_current FROM THIS ORDER BY id, valid_from"


def load(loader: Loader, rows: str | DataFrame, **options: Any) -> CommitInfo:
    if isinstance(rows, str) and not rows.startswith("SELECT"):
        rows = f"SELECT * FROM VALUES {rows} AS t(id, v, ts)"
    return loader.load(rows, **{**SCD2, **options})


def versions(loader: Loader) -> list[tuple[Any, ...]]:
    """`(id, value, from, to)`; the current one ends with None."""
    rows = [tuple(row) for row in loader.sql(VERSIONS)]
    assert all(row[4] == (row[3] is None) for row in rows)
    return [row[:4] for row in rows]


def _day(moment: datetime | None) -> str | None:
    return f"{moment:%Y-%m-%d}" if moment else None


def counts(info: CommitInfo) -> tuple[int | None, ...]:
    return info.rows_inserted, info.rows_updated, info.rows_deleted, info.rows_unchanged


def test_a_change_closes_the_old_version_and_opens_a_new_one(loader: Loader) -> None:
    first = load(loader, "(1, 'a', 10), (2, 'x', 10)")
    assert counts(first) == (2, 0, 0, 0)
    second = load(loader, "(1, 'b', 20), (2, 'x', 20), (3, 'n', 20)")
    assert counts(second) == (2, 1, 0, 1)
    assert versions(loader) == [
        (1, "a", 10, 20),
        (1, "b", 20, None),
        (2, "x", 10, None),
        (3, "n", 20, None),
    ]
    assert loader.version() == 1  # one commit each
    assert len({row[0] for row in loader.sql("SELECT row_hash FROM THIS")}) == 4


def test_what_changes_nothing_makes_no_commit(loader: Loader) -> None:
    load(loader, "(1, 'a', 10)")
    again = load(loader, "(1, 'a', 10), (1, 'a', 15), (1, 'a', 15)")
    assert (again.committed, counts(again)) == (False, (0, 0, 0, 3))
    assert loader.version() == 0


LATE: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("'m', 15", [("a", 10, 15), ("m", 15, 20), ("b", 20, None)]),
    ("'m', 5", [("m", 5, 10), ("a", 10, 20), ("b", 20, None)]),
    ("'a', 15", [("a", 10, 20), ("b", 20, None)]),
    ("'b', 15", [("a", 10, 15), ("b", 15, None)]),
    ("'c', 20", [("a", 10, 20), ("c", 20, None)]),
    ("'b', 10", [("b", 10, None)]),
    ("NULL, 15", [("a", 10, 15), (None, 15, 20), ("b", 20, None)]),
]


def test_a_row_that_arrives_late_finds_its_place(loader: Loader) -> None:
    load(loader, ", ".join(f"({i}, 'a', 10), ({i}, 'b', 20)" for i in range(len(LATE))))
    late = ", ".join(f"({i}, {row})" for i, (row, _) in enumerate(LATE))
    planned = loader.plan(f"SELECT * FROM VALUES {late} AS t(id, v, ts)", **SCD2)
    info = load(loader, late)
    found = versions(loader)
    for i, (_, expected) in enumerate(LATE):
        assert [row[1:] for row in found if row[0] == i] == expected
    assert (planned.rows_to_insert, planned.rows_to_update, planned.rows_to_delete) == (
        info.rows_inserted,
        info.rows_updated,
        info.rows_deleted,
    )
    assert planned.rows_unchanged == info.rows_unchanged == 1


def test_only_tracked_columns_make_versions(loader: Loader) -> None:
    load(loader, "SELECT 1 AS id, 'a' AS v, 'seen' AS note, 10 AS ts", track_columns="v")
    info = load(loader, "SELECT 1 AS id, 'a' AS v, 'again' AS note, 20 AS ts", track_columns="v")
    assert not info.committed
    load(loader, "SELECT 1 AS id, 'b' AS v, 'new' AS note, 30 AS ts", track_columns="v")
    assert versions(loader) == [(1, "a", 10, 30), (1, "b", 30, None)]


def test_a_new_column_makes_versions_only_where_it_has_values(loader: Loader) -> None:
    load(loader, "(1, 'a', 10), (2, 'b', 10)")
    wider = "SELECT * FROM VALUES (1, 'a', 20, NULL), (2, 'b', 20, 'x') AS t(id, v, ts, extra)"
    load(loader, wider, merge_schema=True)
    assert versions(loader) == [(1, "a", 10, None), (2, "b", 10, 20), (2, "b", 20, None)]
    with pytest.raises(SchemaMismatch, match="more"):
        load(loader, "SELECT 1 AS id, 'a' AS v, 30 AS ts, 1 AS more")


def test_without_a_column_that_dates_the_rows_the_clock_does(loader: Loader) -> None:
    options = {"sequence_by": ""}
    load(loader, "(1, 'a', 1)", **options)
    loader.context = replace(loader.context, now=datetime(2026, 1, 2, tzinfo=UTC))
    load(loader, "(1, 'b', 1)", **options)
    first, second = (f"2026-01-0{day}" for day in (1, 2))
    found = [(row[1], *map(_day, row[2:])) for row in versions(loader)]
    assert found == [("a", first, second), ("b", second, None)]
    loader.context = replace(loader.context, now=datetime(2025, 12, 31, tzinfo=UTC))
    with pytest.raises(GuardError, match="clock"):
        load(loader, "(1, 'c', 1)", **options)
    assert loader.version() == 1


@pytest.mark.parametrize(
    ("rows", "options", "error", "words"),
    [
        ("(NULL, 'a', 1)", {}, BatchKeyError, 'NULL in merge key "id"'),
        ("(1, 'a', CAST(NULL AS INT))", {}, BatchKeyError, 'NULL in sequence_by "ts"'),
        ("(1, 'a', 1), (1, 'b', 1)", {}, BatchKeyError, "different rows"),
        ("(1, 'a', 1)", {"sequence_by": "tz"}, SpecError, "tz"),
        ("(1, 'a', 1)", {"merge_keys": "ids"}, SpecError, "ids"),
        ("(1, 'a', 1)", {"track_columns": "w"}, SpecError, "w"),
    ],
)
def test_rows_that_cannot_be_placed_are_refused(
    loader: Loader, rows: str, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        load(loader, rows, **options)
    assert not loader.path.exists()


def test_a_key_without_anything_else_has_one_version(loader: Loader) -> None:
    load(loader, "SELECT 1 AS id, 10 AS ts")
    assert not load(loader, "SELECT 1 AS id, 20 AS ts").committed


def test_names_and_tables_that_do_not_fit_are_refused(loader: Loader) -> None:
    with pytest.raises(SpecError, match="valid_to"):
        load(loader, "SELECT 1 AS id, 'a' AS v, 1 AS ts, 2 AS valid_to")
    loader.load("SELECT 1 AS id, 'a' AS v, 1 AS ts")
    with pytest.raises(SchemaMismatch, match="keeps no history"):
        load(loader, "(1, 'b', 2)")


def test_loaded_anew_the_table_holds_only_the_new_timelines(loader: Loader) -> None:
    load(loader, "(1, 'a', 10), (2, 'x', 10)")
    sink = loader.sink(**SCD2)
    write = BatchWrite(n=9, txn=Txn("anew", 9), user_metadata="{}", replace=True)
    frame = loader.spark.sql("SELECT * FROM VALUES (1, 'b', 20), (1, 'c', 30) AS t(id, v, ts)")
    sink.write(loader.context, frame, write)
    assert versions(loader) == [(1, "b", 20, 30), (1, "c", 30, None)]


Timeline = dict[int, dict[int, str]]
batches = st.lists(
    st.dictionaries(
        st.tuples(st.integers(0, 2), st.integers(0, 9)), st.sampled_from("ab"), max_size=6
    ),
    min_size=3,
    max_size=3,
)


def placed(stands: Timeline, batch: dict[tuple[int, int], str]) -> Timeline:
    """The same by hand: put each row at its moment, then leave out what repeats."""
    for (key, moment), value in batch.items():
        stands.setdefault(key, {})[moment] = value
    for line in stands.values():
        before = None
        for moment in sorted(line):
            if line[moment] == before:
                del line[moment]
            else:
                before = line[moment]
    return stands


def drawn(model: Timeline) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for key, line in sorted(model.items()):
        moments = sorted(line)
        ends = [*moments[1:], None]
        found.extend((key, line[a], a, b) for a, b in zip(moments, ends, strict=True))
    return found


@settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(batches)
def test_any_order_of_arrival_ends_as_the_model_says(
    spark: SparkSession, history: list[dict[tuple[int, int], str]]
) -> None:
    with TemporaryDirectory() as folder:
        loader, model = Loader(spark, Path(folder)), dict[int, dict[int, str]]()
        for batch in history:
            rows = [(key, value, moment) for (key, moment), value in batch.items()]
            load(loader, spark.createDataFrame(rows, "id int, v string, ts int"))
            model = placed(model, batch)
            assert (versions(loader) if loader.path.exists() else []) == drawn(model)
