"""Batches into one table through the Delta sink; what is there is read back by plain Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltaworks.contracts.context import BatchWrite, ProjectContext, RunContext
from deltaworks.model.commit import CommitInfo, Txn
from deltaworks.model.results import OutputPlan
from deltaworks.sinks.delta import DeltaSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

APP = "loader"


class Loader:
    """One table, and batches given to it as SQL."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark = spark
        self.path = root / "warehouse" / "t"
        self.place = f"delta.`{self.path}`"
        self.batch = 0
        self.context = RunContext(
            project_ctx=ProjectContext(root=root, warehouse=str(root / "warehouse")),
            spark=spark,
            run_id="run",
            now=datetime(2026, 1, 1, tzinfo=UTC),
        )

    def load(self, rows: str | DataFrame, **options: Any) -> CommitInfo:
        """Write a batch; `rows` is a query, or the part after SELECT * FROM VALUES."""
        self.batch += 1
        write = BatchWrite(
            n=self.batch,
            txn=Txn(APP, self.batch),
            user_metadata=json.dumps({"batch": self.batch}),
        )
        return self.sink(**options).write(self.context, self._frame(rows), write)

    def upsert(self, rows: str | DataFrame, **options: Any) -> CommitInfo:
        """Merge a batch by `id`, unless other keys are named."""
        return self.load(rows, **{"mode": "upsert", "merge_keys": "id", **options})

    def plan(self, rows: str | DataFrame, **options: Any) -> OutputPlan:
        """What `load` would do."""
        return self.sink(**options).plan(self.context, self._frame(rows))

    def sink(self, **options: Any) -> DeltaSink:
        made = DeltaSink.model_validate({"table": "t", "writer": "spark", **options})
        assert made.problems() == ()
        return made

    def _frame(self, rows: str | DataFrame) -> DataFrame:
        if not isinstance(rows, str):
            return rows
        query = (
            rows if rows.lstrip().upper().startswith("SELECT") else f"SELECT * FROM VALUES {rows}"
        )
        return self.spark.sql(query)

    def sql(self, text: str) -> list[Row]:
        """A statement about the table, which is called THIS in it."""
        return self.spark.sql(text.replace("THIS", self.place)).collect()

    def frame(self, version: int | None = None) -> DataFrame:
        reader = self.spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(
            str(self.path)
        )

    def rows(self, version: int | None = None) -> list[tuple[Any, ...]]:
        """All rows, sorted by their text."""
        return sorted((tuple(row) for row in self.frame(version).collect()), key=repr)

    def detail(self) -> Row:
        return self.sql("DESCRIBE DETAIL THIS")[0]

    def types(self) -> dict[str, str]:
        return dict(self.frame().dtypes)

    def version(self) -> int:
        return max(self.commits(), default=-1)

    def commits(self) -> dict[int, list[dict[str, Any]]]:
        """The actions of every commit file."""
        found = {}
        for path in sorted((self.path / "_delta_log").glob("*.json")):
            found[int(path.stem)] = [json.loads(line) for line in path.read_text().splitlines()]
        return found

    def files(self) -> set[str]:
        """Data files the table now names, by their relative paths."""
        names = {
            row[0] for row in self.frame().selectExpr("_metadata.file_path").distinct().collect()
        }
        return {name.rpartition("/warehouse/t/")[2] for name in names}
