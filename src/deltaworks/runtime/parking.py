"""Batches that could not be committed: kept as Parquet with a manifest, until they can be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltaworks.config.storage import NO_STORES, Stores
from deltaworks.contracts.context import RunContext, Site
from deltaworks.contracts.sink import Sink
from deltaworks.engines.locations import read_text, remove_folder, write_text
from deltaworks.errors import EXIT_ENGINE, CommitUnknown, DeltaworksError, EngineError, StorageError
from deltaworks.model.table_ref import OWN_FOLDER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class ParkingPlace:
    """The folder of one pipeline's parked batches."""

    folder: str
    stores: Stores = NO_STORES

    @staticmethod
    def of(site: Site, pipeline: str) -> ParkingPlace:
        """Where a pipeline parks."""
        return ParkingPlace(f"{site.warehouse}/{OWN_FOLDER}/parked/{pipeline}", site.stores)

    def park(self, frame: DataFrame, *, n: int, sink: str, manifest: Mapping[str, Any]) -> str:
        """Keep the rows of a batch for one sink; the manifest comes last and makes it whole."""
        place = f"{self.folder}/{n}-{sink.replace('/', '_')}"
        remove_folder(place, self.stores)
        frame.write.mode("error").parquet(f"{place}/rows")
        rows = frame.sparkSession.read.parquet(f"{place}/rows").count()
        text = json.dumps({**manifest, "batch": n, "sink": sink, "rows": rows}, indent=2)
        write_text(f"{place}/{_MANIFEST}", text + "\n", self.stores)
        return place


def parked_rows(ctx: RunContext, place: str) -> DataFrame:
    """The rows that were kept, all of them."""
    try:
        manifest = json.loads(read_text(f"{place}/{_MANIFEST}", ctx.site.stores) or "")
    except (OSError, ValueError) as problem:
        raise StorageError(
            f'the parked batch "{place}" cannot be read: its manifest is gone or broken',
            hint="put the folder back, or load everything anew with --full-refresh",
        ) from problem
    frame = ctx.spark.read.parquet(f"{place}/rows")
    found = frame.count()
    if found != manifest["rows"]:
        raise StorageError(
            f'the parked batch "{place}" has {found:,} rows of {manifest["rows"]:,}',
            hint="put the folder back, or load everything anew with --full-refresh",
        )
    return frame


def forget_parked(place: str, stores: Stores) -> None:
    """Remove a batch that has been loaded."""
    remove_folder(place, stores)


def may_park(sink: Sink, error: DeltaworksError) -> bool:
    """Whether the rows are right and only the commit could not be made."""
    is_engines = isinstance(error, EngineError) and error.exit_code == EXIT_ENGINE
    return sink.on_failure == "park" and is_engines and not isinstance(error, CommitUnknown)
