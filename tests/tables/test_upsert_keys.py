"""P3: a batch with NULL or repeated keys is refused with samples, or the file says who wins."""

from __future__ import annotations

import pytest

from deltaworks.engines.spark.delta.merge import winners
from deltaworks.errors import BatchKeyError, SpecError
from tests.tables.loader import Loader
from tests.workbench import Workbench

MANY = 2**62
WAYS = {"sorted": (MANY, 0), "asked first": (-1, MANY), "asked and sorted": (-1, 0)}
"""The size up to which a batch is sorted at once, and how many repeated keys count as few."""
NEWEST = {"duplicates": {"keep": "newest", "by": "ts"}}
OLDEST = {"duplicates": {"keep": "oldest", "by": "ts"}}


@pytest.fixture(params=list(WAYS.values()), ids=list(WAYS))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the ways in which the rows that win are found."""
    small, few = request.param
    monkeypatch.setattr(winners, "SMALL_BYTES", small)
    monkeypatch.setattr(winners, "_FEW_KEYS", few)


def test_upsert_refuses_null_keys_and_shows_them(loader: Loader) -> None:
    rows = "(1, 'a', 'x'), (2, null, 'y'), (3, null, 'z') AS t(id, k, v)"
    with pytest.raises(BatchKeyError, match=r'2 rows have NULL in merge key "id", "k"') as caught:
        loader.upsert(rows, merge_keys=["id", "k"])
    assert '{"id":2,"k":null,"v":"y"}' in str(caught.value.context["samples"])
    assert "not_null" in caught.value.hint
    assert not loader.path.exists()


@pytest.mark.usefixtures("way")
def test_null_keys_are_refused_even_when_duplicates_may_win(loader: Loader) -> None:
    with pytest.raises(BatchKeyError, match="1 row has NULL"):
        loader.upsert("(null, 1), (1, 1) AS t(id, ts)", **NEWEST)


def test_upsert_refuses_duplicate_keys_and_shows_them(loader: Loader) -> None:
    rows = "(1, 'a'), (1, 'b'), (2, 'c') AS t(id, v)"
    with pytest.raises(
        BatchKeyError, match=r"1 merge key .*more than once: \{\"id\":1\}"
    ) as caught:
        loader.upsert(rows)
    assert "duplicates: {keep: newest" in caught.value.hint
    assert not loader.path.exists()


@pytest.mark.usefixtures("way")
def test_the_newest_or_the_oldest_row_wins(loader: Loader) -> None:
    rows = "(1, 'a', 1), (1, 'b', 3), (1, 'c', 2), (2, 'd', null), (2, 'e', 0) AS t(id, v, ts)"
    info = loader.upsert(rows, **NEWEST)
    assert loader.rows() == [(1, "b", 3), (2, "e", 0)]
    assert info.rows_dropped == {"duplicates": 3}
    planned = loader.plan(rows, mode="upsert", merge_keys="id", **OLDEST)
    assert (planned.rows_to_update, planned.rows_unchanged, planned.rows_to_drop) == (1, 1, 3)
    loader.upsert(rows, **OLDEST)
    assert loader.rows() == [(1, "a", 1), (2, "e", 0)]


@pytest.mark.usefixtures("way")
def test_rows_without_repeated_keys_all_win(loader: Loader) -> None:
    info = loader.upsert("(1, 'a', 1), (2, 'b', null) AS t(id, v, ts)", **NEWEST)
    assert (info.rows_inserted, info.rows_dropped) == (2, {})
    assert loader.rows() == [(1, "a", 1), (2, "b", None)]


@pytest.mark.usefixtures("way")
def test_keys_of_several_columns_win_together(loader: Loader) -> None:
    rows = (
        "(1, 'x', 'a', 1), (1, 'x', 'b', 2), (1, 'y', 'c', 1), (2, 'x', 'd', 1) AS t(ID, k, v, ts)"
    )
    info = loader.upsert(rows, merge_keys=["id", "K"], **NEWEST)
    assert info.rows_dropped == {"duplicates": 1}
    assert loader.rows() == [(1, "x", "b", 2), (1, "y", "c", 1), (2, "x", "d", 1)]


def test_three_rows_tie_when_two_of_them_are_equal(loader: Loader) -> None:
    rows = "(1, 'a', 5), (1, 'a', 5), (1, 'b', 5), (1, 'c', 4) AS t(id, v, ts)"
    with pytest.raises(BatchKeyError, match='1 merge key "id" have different rows'):
        loader.upsert(rows, **NEWEST)
    assert loader.upsert(rows, **OLDEST).rows_dropped == {"duplicates": 3}


@pytest.mark.usefixtures("way")
def test_rows_equal_in_all_columns_collapse(loader: Loader) -> None:
    rows = (
        "SELECT 1 AS id, 5 AS ts, map('k', array(1, null)) AS m UNION ALL "
        "SELECT 1, 5, map('k', array(1, null))"
    )
    info = loader.upsert(rows, **NEWEST)
    assert (info.rows_inserted, info.rows_dropped) == (1, {"duplicates": 1})


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("'x', null", "null, 'x'"),
        ("array('x', null), 1", "array(null, 'x'), 1"),
        ("named_struct('p', 1, 'q', null), 1", "named_struct('p', null, 'q', 1), 1"),
        (
            "map('k', timestamp'2026-01-01 00:00:00.000001'), 1",
            "map('k', timestamp'2026-01-01 00:00:00.000002'), 1",
        ),
    ],
    ids=["null", "array", "struct", "map"],
)
def test_a_tie_between_different_rows_is_refused(loader: Loader, one: str, other: str) -> None:
    rows = f"SELECT 1 AS id, 5 AS ts, t.* FROM VALUES ({one}), ({other}) AS t(a, b)"
    with pytest.raises(BatchKeyError, match='different rows with the same "ts"') as caught:
        loader.upsert(rows, **NEWEST)
    assert '{"id":1}' in caught.value.message


@pytest.mark.parametrize(
    ("options", "column"),
    [
        ({"merge_keys": ["idd"]}, "idd"),
        ({"merge_keys": ["s.x"]}, "s.x"),
        ({"update_columns": ["vv"]}, "vv"),
        ({"insert_columns": ["vv"]}, "vv"),
        ({"duplicates": {"keep": "newest", "by": "tss"}}, "tss"),
    ],
)
def test_a_column_the_batch_does_not_have_is_named(
    loader: Loader, options: dict[str, object], column: str
) -> None:
    rows = "SELECT 1 AS id, 'a' AS v, 5 AS ts, named_struct('x', 1) AS s"
    with pytest.raises(SpecError, match=f'names column "{column}"'):
        loader.upsert(rows, **options)


def test_a_refused_batch_leaves_the_table_at_its_version(bench: Workbench) -> None:
    bench.write("in.csv", "id,v\n1,a\n")
    bench.pipeline(
        "p",
        "extract: {type: csv, path: in.csv}\n"
        "load: {type: delta, table: t, mode: upsert, merge_keys: id}\n",
    )
    bench.run("p")
    for rows, words in (("1,b\n1,c\n", "more than once"), (",b\n", "NULL in merge key")):
        bench.write("in.csv", f"id,v\n{rows}")
        failed = bench.fail("p")
        assert (failed.code, bench.version("t")) == (1, 0)
        assert words in failed.stderr


def test_a_day_that_the_old_calendar_leaves_out_is_found_again(loader: Loader) -> None:
    rows = "(DATE'1582-10-10', '{}') AS t(id, v)"
    loader.upsert(rows.format("a"), writer="spark")
    loader.upsert(rows.format("b"), writer="spark")
    assert [row[1] for row in loader.rows()] == ["b"]
