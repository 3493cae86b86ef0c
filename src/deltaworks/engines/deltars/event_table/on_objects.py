"""Events on an object store: a file and a commit for each, and nothing asked that is known.

A process caches what it has read of such a table; files never change. One listing shows whether
the cache is still valid (`engines/deltars/log/object_tail.py`). A commit follows the last one that
its writer has read; the writer reads every commit made in between first.
"""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from deltaworks.engines.deltars.errors import damaged, translated
from deltaworks.engines.deltars.log.actions import commit_info, txn_action
from deltaworks.engines.deltars.log.object_tail import Action, Commit, ObjectLog
from deltaworks.engines.deltars.schemas import arrow_table
from deltaworks.engines.deltars.write.statistics import file_statistics, write_parquet
from deltaworks.errors import CommitConflict, EngineError
from deltaworks.model.commit import Txn

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

Ends = Mapping[str, tuple[str, str]]
"""The smallest and the greatest text of columns, where they are known."""
_CHECKPOINT_EVERY = 20
_RETRIES = 100
_MAX_MEANWHILE = 10_000
_TRUSTED_S = 600.0
_AT_ONCE = 16
_MAX_KEPT = 1024
_KNOWN: dict[object, EventTableState] = {}
"""The tables that this process has read, as they were then."""
_FILES: dict[object, pa.Table] = {}
"""The files that it has read or written."""


@dataclass(frozen=True, kw_only=True)
class EventTableState:
    """One version of an event table: its files, each with the statistics that the log has."""

    table_id: str
    version: int
    tag: str
    files: Mapping[str, Ends]
    proven: float = field(default_factory=time.time)
    """When the store last said so."""

    @property
    def is_recent(self) -> bool:
        """Whether the commit after this one, if there was any, cannot have been cleaned up yet."""
        return 0 <= time.time() - self.proven <= _TRUSTED_S

    def after(self, commits: Sequence[Commit]) -> EventTableState | None:
        """The table some commits later; None when they are not only about files."""
        files = dict(self.files)
        for commit in commits:
            if not commit.is_made_of("commitInfo", "txn", "add", "remove"):
                return None
            for gone in commit.actions_of("remove"):
                files.pop(gone["path"], None)
            for added in commit.actions_of("add"):
                files[added["path"]] = _text_ends(added)
        now = replace(self, files=files, proven=time.time())
        return replace(now, version=commits[-1].version, tag=commits[-1].tag) if commits else now


class ObjectEvents:
    """The events of one table in a bucket."""

    def __init__(
        self,
        log: ObjectLog,
        *,
        open_or_create: Callable[[], DeltaTable],
        open_or_none: Callable[[], DeltaTable | None],
    ) -> None:
        self.location = log.location
        self._log = log
        self._bucket = log.bucket
        self._key = (log.location, log.bucket.reached)
        self._open_or_create = open_or_create
        self._open_or_none = open_or_none
        self._seen: EventTableState | None = None
        self._was_missing = False
        self._folds = 0

    def look(self) -> EventTableState | None:
        """The table as it is now; None when there is none."""
        return self._followed() or self._opened(self._open_or_none())

    def seen(self) -> EventTableState:
        """The table as it was last read or added to; it is made when there is none."""
        if self._seen is None:
            found = None if self._was_missing else self.look()
            self._see(self._made() if found is None else found)
        assert self._seen is not None
        return self._seen

    def _see(self, book: EventTableState | None) -> None:
        if self._seen is None and book is not None:
            self._folds = book.version // _CHECKPOINT_EVERY
        self._seen, self._was_missing = book, book is None

    def _made(self) -> EventTableState | None:
        """A new table; if somebody else made it, nothing of what they added was seen yet."""
        table = self._open_or_create()
        first = self._log.read(0) if self._was_missing else None
        if first is None:
            return self._opened(table)
        with translated(self.location):
            table_id = str(table.metadata().id)
        return EventTableState(table_id=table_id, version=0, tag=first.tag, files={})

    def rows(self, equals: Mapping[str, str]) -> pa.Table | None:
        """The rows of all files that may hold what is asked for; None when there are none."""
        import pyarrow as pa

        book = self.look()
        self._see(book)
        names = (
            [name for name, known in book.files.items() if _may_hold(known, equals)] if book else []
        )
        return pa.concat_tables(self._read(names)) if names else None

    def append(self, rows: pa.Table, txn: Txn | None) -> None:
        """Add rows after what was last looked at; a second writer with this txn fails."""
        book, added = self.seen(), self._put(rows, is_new=True)
        txns = [] if txn is None else [txn_action(txn)]
        actions = [commit_info("WRITE", {"mode": "Append"}, ""), *txns, added]
        self._see(self._commit(book, actions, app_id=None if txn is None else txn.app_id))

    def join(self, max_files: int) -> None:
        """Make one file of all when there are many, unless somebody else does; fold the log."""
        import pyarrow as pa

        self._fold_some_time()
        if len(self.seen().files) <= max_files:
            return
        book = self.look()
        if book is None or len(book.files) <= max_files:
            return
        rows = pa.concat_tables(self._read(tuple(book.files)))
        gone = [{"remove": _removed(name)} for name in book.files]
        actions = [commit_info("OPTIMIZE", {}, ""), *gone, self._put(rows, is_new=False)]
        with suppress(CommitConflict):
            self._commit(book, actions, needs=frozenset(book.files))

    def _fold_some_time(self) -> None:
        """Fold the log every so many commits; nobody waits for it but the end of the process."""
        folds = self.seen().version // _CHECKPOINT_EVERY
        if folds > (self._folds or 0):
            threading.Thread(target=self._fold).start()
        self._folds = folds

    def _fold(self) -> None:
        """Write a checkpoint, so that who opens the table next reads few commits."""
        with suppress(EngineError), translated(self.location):  # the event is in, with or without
            if (table := self._open_or_none()) is not None:
                table.create_checkpoint()
                table.cleanup_metadata()

    def _followed(self) -> EventTableState | None:
        """What is known of the table and still holds, with what came since."""
        known = _KNOWN.get(self._key)
        commits = None if known is None else self._log.since(known.version, known.tag)
        found = None if known is None or commits is None else known.after(commits)
        return None if found is None else self._kept(found)

    def _opened(self, table: DeltaTable | None) -> EventTableState | None:
        """The table as delta-rs reads it."""
        if table is None:
            return None
        with translated(self.location):
            version, table_id = table.version(), str(table.metadata().id)
            adds = arrow_table(table.get_add_actions(flatten=True))
        last, files = self._log.read(version), _files_of(adds)
        tag = "" if last is None else last.tag
        return self._kept(EventTableState(table_id=table_id, version=version, tag=tag, files=files))

    def _kept(self, book: EventTableState) -> EventTableState:
        _keep(_KNOWN, self._key, book)
        return book

    def _commit(
        self,
        book: EventTableState,
        actions: Sequence[Action],
        *,
        app_id: str | None = None,
        needs: frozenset[str] = frozenset(),
    ) -> EventTableState:
        """Make the next commit after all that others made since; the table with it.

        Ours may be among those: the answer to a put was lost, and it was tried once more.
        """
        mine, now = tuple(actions), book
        for _ in range(_RETRIES):
            commits = self._next(now, mine)
            later = None if commits is None else now.after(commits)
            if commits is None or later is None:
                break
            others = [commit for commit in commits if commit.actions != mine]
            if any(_clash(commit, app_id, needs) for commit in others):
                break
            if len(others) < len(commits):
                return self._kept(later)
            now = later
        raise CommitConflict(f'another writer was faster in "{self.location}"')

    def _next(self, book: EventTableState, actions: tuple[Action, ...]) -> Sequence[Commit] | None:
        """The commit after a book: this one, or else all that others have made since."""
        if book.is_recent:
            tag = self._log.put(book.version + 1, actions)
            if tag is not None:
                return (Commit(version=book.version + 1, tag=tag, actions=actions),)
        return self._log.since(book.version, book.tag, most=_MAX_MEANWHILE)

    def _put(self, rows: pa.Table, *, is_new: bool) -> Action:
        """A file for rows, and what the log is to say of it."""
        name, content = f"part-{uuid4()}.parquet", io.BytesIO()
        write_parquet(rows, content)
        self._bucket.put(f"{self.location}/{name}", content.getvalue())
        _keep(_FILES, (self._key, name), rows)
        return {
            "add": {
                "path": name,
                "partitionValues": {},
                "size": content.tell(),
                "modificationTime": int(time.time() * 1000),
                "dataChange": is_new,
                "stats": file_statistics(rows),
            }
        }

    def _read(self, names: Sequence[str]) -> list[pa.Table]:
        """Files by name; those that are not known yet several at a time."""
        found = {name: _FILES.get((self._key, name)) for name in names}
        unknown = [name for name, rows in found.items() if rows is None]
        if unknown:
            with ThreadPoolExecutor(min(len(unknown), _AT_ONCE)) as pool:
                found.update(zip(unknown, pool.map(self._file, unknown), strict=True))
        for name in unknown:
            _keep(_FILES, (self._key, name), found[name])
        return list(found.values())

    def _file(self, name: str) -> pa.Table:
        import pyarrow.parquet as pq

        found = self._bucket.read(f"{self.location}/{name}")
        if found is None:
            raise damaged(self.location, f"file {name} is gone")
        return pq.ParquetFile(io.BytesIO(found[0])).read()


def _keep(kept: dict[Any, Any], key: object, value: object) -> None:
    if len(kept) >= _MAX_KEPT:
        kept.clear()
    kept[key] = value


def _clash(commit: Commit, app_id: str | None, needs: frozenset[str]) -> bool:
    """Whether a commit of somebody else leaves no room for one of ours."""
    gone = {removed["path"] for removed in commit.actions_of("remove")}
    return app_id in commit.txns or bool(gone & needs)


def _removed(name: str) -> Action:
    return {"path": name, "deletionTimestamp": int(time.time() * 1000), "dataChange": False}


def _text_ends(add: Action) -> Ends:
    """The smallest and the greatest text of each column, as a commit has them."""
    stats = json.loads(add.get("stats") or "{}")
    least, most = stats.get("minValues", {}), stats.get("maxValues", {})
    return {n: (v, most[n]) for n, v in least.items() if isinstance(v, str) and n in most}


def _files_of(adds: pa.Table) -> dict[str, Ends]:
    """The same for all files, as delta-rs has them."""
    import pyarrow.types as kinds

    texts = [
        name.removeprefix("min.")
        for name in adds.column_names
        if name.startswith("min.") and f"max.{name.removeprefix('min.')}" in adds.column_names
        if kinds.is_string(adds.schema.field(name).type)
    ]
    columns = {
        name: list(
            zip(*(adds.column(f"{end}.{name}").to_pylist() for end in ("min", "max")), strict=True)
        )
        for name in texts
    }
    return {
        path: {name: ends[place] for name, ends in columns.items() if None not in ends[place]}
        for place, path in enumerate(adds.column("path").to_pylist())
    }


def _may_hold(ends: Ends, equals: Mapping[str, str]) -> bool:
    """Whether a file may hold a row with these values."""
    return all(
        ends[name][0] <= value <= ends[name][1] for name, value in equals.items() if name in ends
    )
