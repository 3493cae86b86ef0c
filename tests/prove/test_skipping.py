"""Spark finds by any filter what is there, over many types, values and ways to write (S2)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.streams.skipping import CONDITION, FILES, WAYS, Files, condition, differences, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.prove
@pytest.mark.spark
@pytest.mark.parametrize("way", sorted(WAYS))
def test_no_value_is_hidden(spark: SparkSession, way: str) -> None:
    @settings(
        max_examples=60,
        deadline=None,
        phases=[Phase.generate],  # to shrink would take Spark hours
        suppress_health_check=list(HealthCheck),
    )
    @given(files=FILES, asked=st.lists(CONDITION, min_size=60, max_size=60))
    def holds(files: Files, asked: list[tuple[str, str, int]]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            every = written(Path(folder), files, way)
            conditions = [condition(*one, every) for one in asked]
            assert differences(spark, Path(folder), conditions) == []

    holds()
