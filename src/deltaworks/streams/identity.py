"""Who writes a stream, and how far it got: all of it is in the table's own transactions.

A writer is known by the table's own id and its writer id, however the table is spelled and
whichever project opens it. Earlier versions also put the project's ledger and the table's spelling
into the name; what such a name reached counts until the writer commits under its own.

A writer keeps its last epoch under a name that ends in its generation. The generation is the
version of the last commit that set the table back; a restore does not take transactions back, so
the epochs after it need a new name. To find restores, every epoch also notes the version it saw.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace

from deltaworks.engines.deltars.write.epoch_table import EpochTable
from deltaworks.errors import ConfigError, GuardError, VersionNotFound
from deltaworks.model.commit import Txn

_BEGINS = "deltaworks-stream"
_MARK_BYTES = 7
_WRITER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-]{0,63}")


@dataclass(frozen=True, kw_only=True)
class Writer:
    """One writer of one table."""

    table_id: str
    writer_id: str
    stream: str
    """How the table is called, for people; it is no part of who writes."""
    earlier: tuple[str, ...] = ()
    """Names that earlier versions gave this writer, where the table knows it by them."""

    @property
    def name(self) -> str:
        """What its transactions begin with; no other writer has it."""
        return f"{_BEGINS}:{self.table_id}:{self.writer_id}"

    def is_called(self, name: str) -> bool:
        """Whether this is its name, today or in an earlier version."""
        return name.startswith(_BEGINS) and name.endswith(f":{self.table_id}:{self.writer_id}")

    def epochs(self, generation: int) -> str:
        """The transaction that holds the last epoch of a generation."""
        return f"{self.name}:{generation}"

    @property
    def generations(self) -> str:
        """The transaction that holds the generation."""
        return f"{self.name}:generation"

    @property
    def plans(self) -> str:
        """The transaction that tells which plan of a book the last epoch was made by."""
        return f"{self.name}:plan"

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
    looked: int | None = None
    """The version up to which the writer had looked for restores, under whatever name."""
    recorded: int | None = None
    """What the table holds for the epoch, which right after a restore is nothing."""
    plan: int | None = None
    """The mark of the plan that the epoch was made by; None where it had none."""

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


def writer_of(table: EpochTable, writer_id: str, *, stream: str) -> Writer:
    """The writer of a table with this id, with its names of earlier versions if they matter yet."""
    writer = Writer(table_id=table.table_id, writer_id=writer_id, stream=stream)
    mark = table.transaction(writer.seen)
    if mark is not None and not table.restores(mark):
        return writer
    return replace(writer, earlier=tuple(sorted(_earlier_names(table, writer))))


def _earlier_names(table: EpochTable, writer: Writer) -> set[str]:
    """The names of this writer that transactions of earlier versions begin with."""
    names = {app_id.rpartition(":")[0] for app_id in table.transactions(_BEGINS)}
    return {name for name in names - {writer.name} if writer.is_called(name)}


def position_of(writer: Writer, table: EpochTable) -> Position:
    """How far a writer got, as a table's handle knows it; restores since then count."""
    here = _recorded(writer, table)
    if here.epoch is None:
        return here
    restores = table.restores(here.looked or 0)
    if not restores:
        return here
    last = restores[-1]
    earlier = position_of(writer, _as_it_was(table, last.to))
    return replace(
        here, generation=last.version, epoch=earlier.epoch, plan=earlier.plan, recorded=None
    )


def _recorded(writer: Writer, table: EpochTable) -> Position:
    """What the transactions say, those of the name of today before those of an earlier one."""
    mark = table.transaction(writer.seen)
    if mark is not None:
        here = _told_by(writer.name, table)
        return replace(here, mark=mark, recorded=here.epoch)
    found = [_told_by(name, table) for name in writer.earlier]
    known = [position for position in found if position.looked is not None]
    if len({(position.generation, position.epoch) for position in known}) > 1:
        raise GuardError(
            f'"{table.location}" has epochs of "{writer.writer_id}" that were written under '
            f"{len(known)} spellings of its name, and they end differently",
            hint="go on under another writer id, from the first epoch the table lacks",
        )
    nothing = Position(generation=0, epoch=None, seen=table.version)
    return max(known, key=lambda position: position.looked or 0, default=nothing)


def _told_by(name: str, table: EpochTable) -> Position:
    generation = table.transaction(f"{name}:generation") or 0
    return Position(
        generation=generation,
        epoch=table.transaction(f"{name}:{generation}"),
        seen=table.version,
        looked=table.transaction(f"{name}:seen"),
        plan=table.transaction(f"{name}:plan"),
    )


def _as_it_was(table: EpochTable, version: int | None) -> EpochTable:
    try:
        if version is not None:
            return table.reopened(version)
    except VersionNotFound:
        pass
    raise GuardError(
        f'"{table.location}" was set back, and it cannot be determined which epochs it still has',
        hint="go on under another writer id, from the first epoch the table lacks",
    )


def plan_mark(text: str) -> int:
    """A number that tells a plan from others, by its words; a transaction can hold it."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:_MARK_BYTES])


def transactions(
    writer: Writer, at: Position, epoch: int | None, *, seen: int, plan: int | None = None
) -> tuple[Txn, ...]:
    """What an epoch's commit records, the epoch itself first; None for a writer without any."""
    found = [] if epoch is None else [Txn(writer.epochs(at.generation), epoch)]
    found.append(Txn(writer.seen, seen))
    if plan is not None:
        found.append(Txn(writer.plans, plan))
    if at.generation:
        found.append(Txn(writer.generations, at.generation))
    return tuple(found)


def fence(writer: Writer, at: Position, *, seen: int) -> tuple[Txn, ...]:
    """What stops other sessions of this writer, under whichever name, and moves nothing on."""
    own = transactions(writer, at, at.epoch, seen=seen)
    return (*own, *(Txn(f"{name}:seen", seen) for name in writer.earlier))
