"""delta-rs commits a batch only where Spark would leave the same table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.tables.two_writers import Case, cases, compared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LONG = "CAST(941718793740892.145 AS decimal(18,3))"
FRACTION = "TIMESTAMP'2026-01-01 00:00:00.123456Z'"


@pytest.mark.parametrize(
    ("case", "who"),
    [
        (
            Case(
                key="timestamp",
                extra="double",
                first=((FRACTION, "'a'", "0.0D"),),
                second=(
                    (FRACTION, "'b'", "-0.0D"),
                    ("TIMESTAMP'2026-02-01 00:00:00Z'", "'a'", "double('NaN')"),
                ),
            ),
            "deltars",
        ),
        (
            Case(
                key="decimal(18,3)",
                extra="varchar(4)",
                first=((LONG, "'a'", "'x'"),),
                second=((LONG, "'b'", "'x'"),),
            ),
            "spark",
        ),
        (
            Case(
                key="bigint",
                extra="string",
                folders="x",
                first=(("1L", "'a'", "''"), ("2L", "'a'", "'NL'")),
                second=(("1L", "'b'", "''"), ("3L", "'a'", "'__HIVE_DEFAULT_PARTITION__'")),
            ),
            "deltars",
        ),
        (
            Case(
                key="string",
                extra="int",
                first=(("'a'", "'a'", "1"), ("'b'", "'a'", "1")),
                second=(("'a'", "'a'", "1"), ("'b'", "'a'", "2")),
                options={"update_condition": r"source.v = '\u0061'"},
            ),
            "spark",
        ),
    ],
    ids=["fractions", "decimals", "folders", "escapes"],
)
def test_known_differences_are_none(spark: SparkSession, case: Case, who: str) -> None:
    assert compared(spark, case, "auto") == who


@settings(
    max_examples=2,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # shrinking takes for ever
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(cases())
def test_any_batch_leaves_the_same_table(spark: SparkSession, case: Case) -> None:
    """Many more: tests/prove/test_two_writers.py."""
    compared(spark, case, "auto")
