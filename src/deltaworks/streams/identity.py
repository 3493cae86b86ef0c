"""Who writes a stream, and how far it got: all of it is in the table's own transactions.

A writer keeps its last epoch under a name that ends in its generation. The generation is the
version of the last commit that set the table back; a restore does not take transactions back, so
the epochs after it need a new name. To find restores, every epoch also notes the version it saw.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from deltaworks.engines.deltars.epochs import EpochTable
from deltaworks.errors import ConfigError, GuardError, VersionNotFound
from deltaworks.model.commit import Txn

_WRITER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-]{0,63}")


@dataclass(frozen=True, kw_only=True)
class Writer:
    """One writer of one stream into one table."""

    ledger: str
    stream: str
    table_id: str
    writer_id: str

    @property
    def name(self) -> str:
        """What its transactions begin with; no other writer has it."""
        parts = (self.ledger, self.stream, self.table_id, self.writer_id)
        return ":".join(("deltaworks-stream", *parts))

    def epochs(self, generation: int) -> str:
        """The transaction that holds the last epoch of a generation."""
        return f"{self.name}:{generation}"

    @property
    def generations(self) -> str:
        """The transaction that holds the generation."""
        return f"{self.name}:generation"

    @property
    def seen(self) -> str:
        """The transaction that holds the version up to which restores were looked for."""
        return f"{self.name}:seen"


@dataclass(frozen=True, kw_only=True)
class Position:
    """How far a writer got."""

    generation: int
    epoch: int | None
    seen: int
    """The version up to which this is known."""
    mark: int | None = None
    """What the table holds for that; another writer under this name would change it."""
    recorded: int | None = None
    """What the table holds for the epoch, which right after a restore is nothing."""

    def has(self, epoch: int) -> bool:
        """Whether an epoch has landed."""
        return self.epoch is not None and epoch <= self.epoch


def refuse_writer_id(writer_id: str) -> None:
    """Refuse a name that could not be told apart in file names."""
    if not _WRITER_ID.fullmatch(writer_id):
        raise ConfigError(
            f'"{writer_id}" is not a writer id',
            hint='use up to 64 letters, digits, "_" and "-", beginning with a letter or digit',
        )


def position_of(writer: Writer, table: EpochTable) -> Position:
    """How far a writer got, as a table's handle knows it; restores since then count."""
    generation = table.transaction(writer.generations) or 0
    mark = table.transaction(writer.seen)
    epoch = table.transaction(writer.epochs(generation))
    here = Position(
        generation=generation, epoch=epoch, seen=table.version, mark=mark, recorded=epoch
    )
    restores = () if epoch is None else table.restores(mark or 0)
    if not restores:
        return here
    last = restores[-1]
    earlier = position_of(writer, _as_it_was(table, last.to))
    return replace(here, generation=last.version, epoch=earlier.epoch, recorded=None)


def _as_it_was(table: EpochTable, version: int | None) -> EpochTable:
    try:
        if version is not None:
            return table.reopened(version)
    except VersionNotFound:
        pass
    raise GuardError(
        f'"{table.location}" was set back, and it cannot be told which epochs it still has',
        hint="go on under another writer id, from the first epoch the table lacks",
    )


def transactions(writer: Writer, at: Position, epoch: int, *, seen: int) -> tuple[Txn, ...]:
    """What an epoch's commit records, the epoch itself first."""
    found = [Txn(writer.epochs(at.generation), epoch), Txn(writer.seen, seen)]
    if at.generation:
        found.append(Txn(writer.generations, at.generation))
    return tuple(found)
