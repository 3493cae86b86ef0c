"""What stands in for sources and sinks while a pipeline is tested: rows given, rows seen."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import PrivateAttr

from deltaworks.contracts.context import BatchWrite, ProjectContext, RunContext
from deltaworks.contracts.sink import Sink
from deltaworks.contracts.source import Source
from deltaworks.errors import InputError
from deltaworks.model.batch import UNBOUNDED, Bounds
from deltaworks.model.commit import CommitInfo, SinkState
from deltaworks.model.results import OutputPlan
from deltaworks.model.table_ref import TableRef
from deltaworks.pipeline.test_cases import Given

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Row = Mapping[str, Any]


class GivenSource(Source):
    """Gives the rows of a test."""

    rows_: tuple[dict[str, Any], ...]
    """The rows."""
    columns: str = ""
    """Their columns and types; guessed when left out."""

    def bounds(self, project_ctx: ProjectContext, since: Bounds | None) -> Bounds:
        return Bounds(kind=UNBOUNDED, identity="given")

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        from deltaworks.engines.spark.frames.columns import declared_columns
        from deltaworks.engines.spark.frames.json_rows import frame_of, guessed_columns

        if self.columns:
            columns = declared_columns(self.columns)
            _refuse_other_columns(self.rows_, columns)
        else:
            columns = guessed_columns(ctx.spark, self.rows_)
        return frame_of(ctx.spark, self.rows_, columns, strict=True)


class SeenSink(Sink):
    """Keeps what a step gives, for the test to look at."""

    _frames: list[tuple[StructType, list[dict[str, Any]]]] = PrivateAttr(default_factory=list)

    def target(self, project_ctx: ProjectContext) -> TableRef:
        return TableRef(self.name, f"{project_ctx.root}/seen/{self.name}")

    def state(self, project_ctx: ProjectContext, app_id: str) -> SinkState:
        return SinkState(identity="", exists=False)

    def write(self, ctx: RunContext, frame: DataFrame, batch: BatchWrite) -> CommitInfo:
        from deltaworks.engines.spark.frames.json_rows import plain_rows

        self._frames.append((frame.schema, plain_rows(frame)))
        return CommitInfo(committed=True)

    def plan(self, ctx: RunContext, frame: DataFrame) -> OutputPlan:
        return self.plan_offline(ctx.project_ctx)

    def seen(self) -> tuple[StructType, list[dict[str, Any]]] | None:
        """The columns and rows of the batch; None when none came."""
        return self._frames[-1] if self._frames else None


def stand_in(source: Source, given: Given, *, name: str, root: Path, folder: Path) -> Source:
    """A source that gives the rows of a test; a csv source reads them itself, from a file."""
    path = root / given.file if given.file else None
    if path is not None and not path.exists():
        raise InputError(f'the rows of source "{name}" are to be in "{path}", which does not exist')
    if source.plugin_type() != "csv":
        rows = given.rows if path is None else file_rows(path)
        return GivenSource(rows_=tuple(dict(row) for row in rows), columns=given.schema_)
    if path is None or path.suffix in (".json", ".jsonl"):
        rows = given.rows if path is None else file_rows(path)
        path = folder / f"{name}.csv"
        _write_csv(path, rows, source)
    return source.model_copy(update={"path": str(path), "incremental": False})


def file_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a CSV file with a header, of a JSON list, or of JSON lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix not in (".json", ".jsonl"):
        return [dict(row) for row in csv.DictReader(text.splitlines())]
    try:
        found = json.loads(text) if text.lstrip().startswith("[") else _json_lines(text)
    except ValueError as problem:
        raise InputError(f'"{path}" cannot be read: {problem}') from None
    if not all(isinstance(row, dict) for row in found):
        raise InputError(f'"{path}" must hold rows: a list of maps, or a map on each line')
    return list(found)


def _json_lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _write_csv(path: Path, rows: Sequence[Row], source: Source) -> None:
    """The file that a csv source would read these rows from."""
    names = _csv_columns(rows, source)
    null = str(getattr(source, "null_value", ""))
    path.parent.mkdir(parents=True, exist_ok=True)
    encoding = str(getattr(source, "encoding", "UTF-8"))
    with path.open("w", encoding=encoding, newline="") as handle:
        delimiter, quote = getattr(source, "delimiter", ","), getattr(source, "quote", '"')
        writer = csv.writer(handle, delimiter=delimiter, quotechar=quote, lineterminator="\n")
        if getattr(source, "header", True):
            writer.writerow(names)
        for row in rows:
            writer.writerow([_csv_cell(row.get(name), null) for name in names])


def _csv_columns(rows: Sequence[Row], source: Source) -> list[str]:
    from deltaworks.engines.spark.frames.columns import declared_columns

    declared = getattr(source, "schema_", None)
    if not declared:
        return list(dict.fromkeys(name for row in rows for name in row))
    columns = declared_columns(declared)
    _refuse_other_columns(rows, columns)
    return list(columns.fieldNames())


def _csv_cell(value: Any, null: str) -> str:
    if value is None:
        return null
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refuse_other_columns(rows: Sequence[Row], columns: StructType) -> None:
    from deltaworks.engines.spark.frames.columns import missing_column

    known = columns.fieldNames()
    for row in rows:
        for name in row:
            if name not in known:
                raise missing_column(name, known, where='"given"')
