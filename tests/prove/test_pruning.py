"""Many tables and batches, merged with ranges of keys and without: always the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tables.test_upsert_pruning import KEYS, both_ways, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.prove, pytest.mark.spark]

CONDITIONS: tuple[dict[str, str], ...] = (
    {},
    {"delete_condition": "source.v = 'gone'"},
    {"update_condition": "source.v > target.v"},
    {"not_matched_by_source": "delete"},
)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.sampled_from(sorted(KEYS)), rows, rows, st.sampled_from(CONDITIONS))
def test_ranges_of_keys_change_no_row(
    spark: SparkSession,
    kind: str,
    stands: dict[int, str],
    batch: dict[int, str],
    conditions: dict[str, str],
) -> None:
    both_ways(spark, kind, stands, batch, **conditions)
