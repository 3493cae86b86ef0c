"""Steps applied to a few rows, without a pipeline around them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.contracts.registry import find_plugin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PEOPLE = "SELECT * FROM VALUES (1, 'ann', 2.5D), (2, 'bob', null), (3, 'bob', 1D) AS t(id, name, n)"

ORDERS = """
SELECT * FROM VALUES
  (1, 'ann', 2.50BD, named_struct('city', 'Ghent', 'geo', named_struct('lat', 1.5D, 'lon', 2D)),
   array(named_struct('sku', 'a', 'n', 1), named_struct('sku', 'b', 'n', 2)),
   map('size', 'L'), 10, 'é1', timestamp'2026-01-01 00:00:00'),
  (2, null, null, named_struct('city', null, 'geo', null),
   array(), map(), 20, 'é2', timestamp'2026-01-02 00:00:00'),
  (3, 'bob', 1.25BD, null, null, null, null, null, null)
AS t(id, name, amount, address, lines, tags, `unit.price`, `größe ü`, at)
"""


def step(type_name: str, **options: Any) -> Any:
    plugin = find_plugin("transform", type_name)
    assert plugin is not None
    return plugin.model_validate(options)


class Bench:
    """Applies steps to the people above."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark = spark
        now = datetime(2026, 1, 1, tzinfo=UTC)
        self.context = RunContext(
            project_ctx=ProjectContext(root=root, warehouse=str(root)),
            spark=spark,
            run_id="r",
            now=now,
        )

    def frame(
        self, source: str = PEOPLE, others: dict[str, str] | None = None, /, **step_: Any
    ) -> DataFrame:
        named = {name: self.spark.sql(text) for name, text in (others or {}).items()}
        made = step(step_.pop("type"), **step_)
        assert made.problems() == ()
        result: DataFrame = made.apply(self.context, self.spark.sql(source), named)
        return result

    def rows(self, *arguments: Any, **step_: Any) -> list[tuple[Any, ...]]:
        collected = self.frame(*arguments, **step_).collect()
        return sorted((tuple(row) for row in collected), key=repr)


def by_id(bench: Bench, columns: str = "*", /, **options: Any) -> list[tuple[Any, ...]]:
    """Rows of the orders after a step, as text expressions, in order."""
    frame = bench.frame(ORDERS, **options)
    return [tuple(row) for row in frame.orderBy("id").selectExpr(*columns.split("|")).collect()]
