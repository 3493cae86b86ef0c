"""A table to load into."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.tables.loader import Loader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def loader(spark: SparkSession, tmp_path: Path) -> Loader:
    """One table of its own, in a session of its own."""
    return Loader(spark, tmp_path)
