"""Batches that could not be committed: kept as Parquet with a manifest, until they can be."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.contracts.context import ProjectContext, RunContext, no_doubt
from deltaworks.contracts.sink import Sink
from deltaworks.errors import EXIT_ENGINE, CommitUnknown, DeltaworksError, EngineError, StorageError
from deltaworks.model.table_ref import OWN_FOLDER, is_url
from deltaworks.storage.durability import fsync_tree
from deltaworks.storage.paths import read_text, remove_folder, write_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deltaworks.runtime.ledger.state import LedgerState, SinkEntry

_MANIFEST = "manifest.json"
_PARKED = f"/{OWN_FOLDER}/parked/"


@dataclass(frozen=True)
class ParkingPlace:
    """The folder of one pipeline's parked batches."""

    folder: str
    stores: Stores = NO_STORES

    @staticmethod
    def of(project_ctx: ProjectContext, pipeline: str) -> ParkingPlace:
        """Where a pipeline parks."""
        return ParkingPlace(f"{project_ctx.warehouse}{_PARKED}{pipeline}", project_ctx.stores)

    def park(
        self,
        frame: DataFrame,
        *,
        n: int,
        sink: str,
        manifest: Mapping[str, Any],
        confirm: Callable[[], None] = no_doubt,
    ) -> tuple[str, int]:
        """Keep the rows of a batch for one sink; the manifest comes last and makes it whole.

        Answers the folder, and how many rows it keeps.
        """
        place = f"{self.folder}/{folder_name(n, sink)}"
        remove_folder(place, self.stores)
        frame.write.mode("error").parquet(f"{place}/rows")
        rows = frame.sparkSession.read.parquet(f"{place}/rows").count()
        confirm()
        if not is_url(place):
            fsync_tree(f"{place}/rows")
        text = json.dumps({**manifest, "batch": n, "sink": sink, "rows": rows}, indent=2)
        write_text(f"{place}/{_MANIFEST}", text + "\n", self.stores)
        return place, rows


def folder_name(n: int, sink: str) -> str:
    """A name that no other sink of the batch has, not even where case does not count."""
    readable = re.sub(r"[^a-z0-9_.-]", "_", sink)
    apart = "" if readable == sink else f"-{hashlib.sha256(sink.encode()).hexdigest()[:12]}"
    return f"{n}-{readable}{apart}"


def parked_here(state: LedgerState, warehouse: str) -> LedgerState:
    """The state with the folders that parked batches have in a warehouse that may have moved."""

    def here(sink: SinkEntry) -> SinkEntry:
        _, mark, rest = sink.parked.rpartition(_PARKED)
        return replace(sink, parked=f"{warehouse}{_PARKED}{rest}") if mark else sink

    batches = (replace(one, sinks=tuple(map(here, one.sinks))) for one in state.batches)
    return replace(state, batches=tuple(batches))


def parked_rows(ctx: RunContext, place: str) -> DataFrame:
    """The rows that were kept, all of them."""
    try:
        manifest = json.loads(read_text(f"{place}/{_MANIFEST}", ctx.project_ctx.stores) or "")
    except (OSError, ValueError) as problem:
        raise StorageError(
            f'the parked batch "{place}" cannot be read: its manifest is gone or broken',
            hint="put the folder back, or reload everything with --full-refresh",
        ) from problem
    frame = ctx.spark.read.parquet(f"{place}/rows")
    found = frame.count()
    if found != manifest["rows"]:
        raise StorageError(
            f'the parked batch "{place}" has {found:,} rows of {manifest["rows"]:,}',
            hint="put the folder back, or reload everything with --full-refresh",
        )
    return frame


def forget_parked(place: str, stores: Stores) -> None:
    """Remove a batch that has been loaded."""
    remove_folder(place, stores)


def may_park(sink: Sink, error: DeltaworksError) -> bool:
    """Whether the rows are right and only the commit could not be made."""
    is_engines = isinstance(error, EngineError) and error.exit_code == EXIT_ENGINE
    return sink.on_failure == "park" and is_engines and not isinstance(error, CommitUnknown)
