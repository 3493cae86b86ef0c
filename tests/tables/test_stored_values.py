"""A batch is compared with what the table gives back, whatever the types and values."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from deltaworks.errors import BatchKeyError, UnsupportedOperation
from deltaworks.model.commit import CommitInfo
from tests.tables.loader import Loader

pytestmark = pytest.mark.spark


def counts(info: CommitInfo) -> tuple[int | None, ...]:
    return info.rows_inserted, info.rows_updated, info.rows_unchanged


def test_a_key_of_type_char_is_refused_by_run_and_plan(loader: Loader) -> None:
    """Delta stores it as it came, and Spark gives it back with spaces: no row found its match."""
    loader.path.parent.mkdir(parents=True)
    loader.sql("CREATE TABLE THIS (code CHAR(5), v STRING) USING delta")
    rows = "SELECT 'NL' AS code, 'new' AS v"
    asked = {"mode": "upsert", "merge_keys": "CODE"}
    with pytest.raises(UnsupportedOperation, match='"code" is of type CHAR'):
        loader.load(rows, **asked)
    with pytest.raises(UnsupportedOperation, match='"code" is of type CHAR'):
        loader.plan(rows, **asked)
    assert loader.version() == 0


def test_an_empty_text_that_makes_a_folder_is_null_and_so_no_key(loader: Loader) -> None:
    asked = {"partition_by": ["country"], "merge_keys": ["id", "country"]}
    rows = "SELECT 1L AS id, '' AS country, X'' AS b"
    for writer in ("spark", "auto"):
        with pytest.raises(BatchKeyError, match='NULL in merge key "id", "country"'):
            loader.upsert(rows, writer=writer, **asked)
    with pytest.raises(UnsupportedOperation, match="has a text that Spark stores otherwise"):
        loader.load(rows, writer="deltars", partition_by=["country"])


def test_variants_and_maps_are_compared_byte_by_byte(loader: Loader) -> None:
    def row(number: str, text: str) -> str:
        variant = f"parse_json('{{\"a\": {number}}}')"
        return (
            f"SELECT 1L AS id, {variant} AS v, named_struct('v', {variant}) AS s, "
            f"map('k', CAST(X'{text}' AS STRING)) AS m"
        )

    loader.upsert(row("1", "FF"))
    assert counts(loader.upsert(row("1", "FF"), writer="auto")) == (0, 0, 1)
    assert counts(loader.upsert(row("2", "FF"), writer="auto")) == (0, 1, 0)
    assert counts(loader.upsert(row("2", "FE"), writer="auto")) == (0, 1, 0)
    twice = f"{row('2', 'FE')} UNION ALL {row('2', 'FE')}"
    newest = {"keep": "newest", "by": "id"}
    assert counts(loader.upsert(twice, duplicates=newest)) == (0, 0, 1)


def test_text_that_is_not_utf8_makes_a_new_version_of_a_row(loader: Loader) -> None:
    history = {"mode": "scd2", "merge_keys": "id"}
    for day, text, versions in ((1, "FF", 1), (2, "FF", 1), (3, "FE", 2)):
        loader.context = replace(loader.context, now=datetime(2026, 1, day, tzinfo=UTC))
        loader.load(f"SELECT 1L AS id, CAST(X'{text}' AS STRING) AS t", **history)
        assert loader.frame().count() == versions


@pytest.mark.parametrize("writer", ["spark", "auto"])
def test_plan_and_run_count_a_row_once_that_meets_several(loader: Loader, writer: str) -> None:
    loader.load("(1, 'a'), (1, 'a'), (2, 'b') AS t(id, v)")
    rows = "(1, 'a'), (2, 'b'), (3, 'c') AS t(id, v)"
    planned = loader.plan(rows, mode="upsert", merge_keys="id", writer=writer)
    done = loader.upsert(rows, writer=writer)
    assert (planned.rows_to_insert, planned.rows_unchanged) == (1, 2)
    assert counts(done) == (1, 0, 2)
