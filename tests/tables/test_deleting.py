"""Rows that Spark deletes, with the reason in the commit."""

from __future__ import annotations

import pytest

from deltaworks.engines.spark.rows import delete_rows
from deltaworks.errors import DeltaworksError
from tests.tables.loader import Loader


def test_rows_that_spark_cannot_find_stay_and_it_says_why(loader: Loader) -> None:
    loader.upsert("(1, 'a'), (2, 'b') AS t(id, name)")
    with pytest.raises(DeltaworksError, match="nome"):
        delete_rows(loader.spark, str(loader.path), "nome = 'a'", note={"why": "test"})
    assert delete_rows(loader.spark, str(loader.path), "name = 'a'", note={"why": "test"}) == 1
    assert loader.rows() == [(2, "b")]
