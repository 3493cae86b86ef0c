"""Many tables and batches, committed by delta-rs where it may, and by Spark: the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.tables.two_writers import Case, cases, compared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.prove, pytest.mark.spark]


@settings(
    max_examples=150,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # shrinking takes for ever
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(cases())
def test_any_batch_leaves_the_same_table(spark: SparkSession, case: Case) -> None:
    compared(spark, case, "auto")
