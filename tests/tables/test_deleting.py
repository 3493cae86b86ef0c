"""Rows that Spark deletes and puts back, with the reason in the commit."""

from __future__ import annotations

import pytest

from deltaworks.engines.spark.delta.restore import delete_rows, return_rows
from deltaworks.errors import DeltaworksError
from tests.tables.loader import Loader


def test_rows_that_spark_cannot_find_stay_and_it_says_why(loader: Loader) -> None:
    loader.upsert("(1, 'a'), (2, 'b') AS t(id, name)")
    with pytest.raises(DeltaworksError, match="nome"):
        delete_rows(loader.spark, str(loader.path), "nome = 'a'", note={"why": "test"})
    assert delete_rows(loader.spark, str(loader.path), "name = 'a'", note={"why": "test"}) == 1
    assert loader.rows() == [(2, "b")]


def test_rows_of_an_older_version_are_put_back_once(loader: Loader) -> None:
    loader.upsert("(1, 'a'), (2, 'b') AS t(id, name)")
    place = str(loader.path)
    delete_rows(loader.spark, place, "name = 'a'", note={"why": "test"})
    for _ in range(2):
        return_rows(loader.spark, place, "name = 'a'", version=0, key="once", note={"why": "test"})
    assert sorted(loader.rows()) == [(1, "a"), (2, "b")]
    with pytest.raises(DeltaworksError, match="nome"):
        return_rows(loader.spark, place, "nome = 'a'", version=0, key="twice", note={})
