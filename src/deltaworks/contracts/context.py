"""What a plug-in may know of the run it takes part in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from deltaworks.config.credentials.credential import Credential
from deltaworks.config.credentials.vault import Vault
from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.config.project import ProjectConfig
from deltaworks.model.commit import Txn
from deltaworks.model.table_ref import TableRef, absolute, named_table, table_at

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    WatchLeftOut = Callable[[DataFrame, Column], DataFrame]


@dataclass(frozen=True, kw_only=True)
class ProjectContext:
    """Where a project lives: the folder its paths start from, and its warehouse."""

    root: Path
    warehouse: str
    vault: Vault = field(default_factory=Vault, repr=False)
    stores: Stores = field(default=NO_STORES, repr=False)

    @staticmethod
    def of(config: ProjectConfig) -> ProjectContext:
        """The place that a project file describes."""
        return ProjectContext(
            root=config.root,
            warehouse=config.warehouse,
            vault=config.vault,
            stores=config.stores,
        )

    def credential(self, name: str) -> Credential:
        """The credential with a name; from here on its secrets are kept out of every text."""
        return self.vault.get(name)

    def path(self, path: str) -> str:
        """A path of the pipeline file, as engines need it."""
        return absolute(path, root=self.root)

    def table(self, *, table: str, path: str) -> TableRef:
        """The table a source or sink names, by name or by path."""
        if table:
            return named_table(table, warehouse=self.warehouse)
        return table_at(path, self.path(path))


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """One run: its site, its session and its time, which stays the same throughout."""

    project_ctx: ProjectContext
    spark: SparkSession
    run_id: str
    now: datetime
    step: str = ""
    """The step at work, where its rows may fail long after it was described."""
    watch_left_out: WatchLeftOut | None = field(default=None, repr=False, compare=False)
    """Counts rows of a frame where something is true, for a step that leaves them out next."""
    until_end: ExitStack = field(default_factory=ExitStack, repr=False, compare=False)
    """What must stay open while rows are read; closed by whoever started the engine."""
    pinned: Mapping[str, int] = field(default_factory=dict)
    """Versions at which checks look into tables, by location; the latest where none is pinned."""
    warn: Callable[[str], None] = field(default=lambda _: None, repr=False, compare=False)
    """Tells the user something, though the run goes on."""


def as_it_is(frame: DataFrame) -> DataFrame:
    """The frame itself: its rows are kept already, or nobody minds that they are read again."""
    return frame


def no_doubt() -> None:
    """Nothing to look at before a commit: what was read cannot be anything else by now."""


@dataclass(frozen=True, kw_only=True)
class BatchWrite:
    """What a sink must put into the very commit that holds the rows of a batch."""

    n: int
    txn: Txn
    user_metadata: str
    holds_rows: bool = False
    """Known to have rows, so that nobody needs to look."""
    replace: bool = False
    keep: Callable[[DataFrame], DataFrame] = field(default=as_it_is, repr=False, compare=False)
    """Has rows evaluated once, for a sink that goes over them more often than it hoped."""
    confirm: Callable[[], None] = field(default=no_doubt, repr=False, compare=False)
    """Raises when what was read is not what was planned; asked once all rows are read, right before
    the commit, by sinks that have a hand in it."""
