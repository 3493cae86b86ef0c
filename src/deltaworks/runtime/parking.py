"""Batches that could not be committed: kept as Parquet with a manifest, until they can be."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltaworks.contracts.sink import Sink
from deltaworks.errors import EXIT_ENGINE, CommitUnknown, DeltaworksError, EngineError, StorageError
from deltaworks.model.table_ref import OWN_FOLDER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class ParkingPlace:
    """The folder of one pipeline's parked batches."""

    folder: Path

    @staticmethod
    def of(warehouse: str, pipeline: str) -> ParkingPlace:
        """Where a pipeline parks."""
        return ParkingPlace(Path(warehouse) / OWN_FOLDER / "parked" / pipeline)

    def park(self, frame: DataFrame, *, n: int, sink: str, manifest: Mapping[str, Any]) -> str:
        """Keep the rows of a batch for one sink; the manifest comes last and makes it whole."""
        place = self.folder / f"{n}-{sink.replace(os.sep, '_')}"
        shutil.rmtree(place, ignore_errors=True)
        frame.write.mode("error").parquet(str(place / "rows"))
        rows = frame.sparkSession.read.parquet(str(place / "rows")).count()
        text = json.dumps({**manifest, "batch": n, "sink": sink, "rows": rows}, indent=2)
        path = place / _MANIFEST
        with path.open("w", encoding="utf-8") as handle:
            handle.write(text + "\n")
            handle.flush()
            os.fsync(handle.fileno())
        return str(place)


def parked_rows(spark: SparkSession, place: str) -> DataFrame:
    """The rows that were kept, all of them."""
    try:
        manifest = json.loads((Path(place) / _MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise StorageError(
            f'the parked batch "{place}" cannot be read: its manifest is gone or broken',
            hint="put the folder back, or load everything anew with --full-refresh",
        ) from problem
    frame = spark.read.parquet(str(Path(place) / "rows"))
    found = frame.count()
    if found != manifest["rows"]:
        raise StorageError(
            f'the parked batch "{place}" has {found:,} rows of {manifest["rows"]:,}',
            hint="put the folder back, or load everything anew with --full-refresh",
        )
    return frame


def forget_parked(place: str) -> None:
    """Remove a batch that has been loaded."""
    shutil.rmtree(place, ignore_errors=True)


def may_park(sink: Sink, error: DeltaworksError) -> bool:
    """Whether the rows are right and only the commit could not be made."""
    is_engines = isinstance(error, EngineError) and error.exit_code == EXIT_ENGINE
    return sink.on_failure == "park" and is_engines and not isinstance(error, CommitUnknown)
