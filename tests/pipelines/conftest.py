"""What tests of steps share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pipelines.applying import Bench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def orders(spark: SparkSession, tmp_path: Path) -> Bench:
    return Bench(spark, tmp_path)
