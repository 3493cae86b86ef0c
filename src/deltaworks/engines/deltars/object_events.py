"""Events on an object store: a file and a commit for each, and nothing asked that is known.

What a process has once read of such a table it keeps, files too: they never change. One listing
tells whether the rest still holds (`engines/deltars/object_log.py`). A commit is made after the
last one that its writer has read, and every one that came in between is looked at.
"""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from deltaworks.engines.deltars.arrow import arrow_table
from deltaworks.engines.deltars.errors import damaged, translated
from deltaworks.engines.deltars.log_tail import commit_info, txn_action
from deltaworks.engines.deltars.object_log import Action, Commit, ObjectLog
from deltaworks.engines.deltars.statistics import file_statistics
from deltaworks.errors import CommitConflict, EngineError
from deltaworks.model.commit import Txn

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

Ends = Mapping[str, tuple[str, str]]
"""The smallest and the greatest text of columns, where they are known."""
_CHECKPOINT_EVERY = 20
_RETRIES = 100
_AT_ONCE = 16
_MOST_KEPT = 1024
_KNOWN: dict[object, Book] = {}
"""The tables that this process has read, as they were then."""
_FILES: dict[object, pa.Table] = {}
"""The files that it has read or written."""


@dataclass(frozen=True, kw_only=True)
class Book:
    """One version of an event table: its files, each with the statistics that the log has."""

    table_id: str
    version: int
    tag: str
    files: Mapping[str, Ends]

    def after(self, commits: Sequence[Commit]) -> Book | None:
        """The table some commits later; None when they are not only about files."""
        files = dict(self.files)
        for commit in commits:
            if not commit.is_made_of("commitInfo", "txn", "add", "remove"):
                return None
            for gone in commit.actions_of("remove"):
                files.pop(gone["path"], None)
            for added in commit.actions_of("add"):
                files[added["path"]] = _text_ends(added)
        if not commits:
            return self
        return replace(self, files=files, version=commits[-1].version, tag=commits[-1].tag)


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
        self._seen: Book | None = None
        self._folds: int | None = None

    def look(self) -> Book | None:
        """The table as it is now; None when there is none."""
        self._seen = self._followed() or self._opened(self._open_or_none())
        return self._seen

    def seen(self) -> Book:
        """The table as it was last looked at; it is made when there is none."""
        if self._seen is None and self.look() is None:
            self._seen = self._opened(self._open_or_create())
        assert self._seen is not None
        if self._folds is None:
            self._folds = self._seen.version // _CHECKPOINT_EVERY
        return self._seen

    def rows(self, equals: Mapping[str, str]) -> pa.Table | None:
        """The rows of all files that may hold what is asked for; None when there are none."""
        import pyarrow as pa

        book = self.look()
        names = (
            [name for name, known in book.files.items() if _may_hold(known, equals)] if book else []
        )
        return pa.concat_tables(self._read(names)) if names else None

    def append(self, rows: pa.Table, txn: Txn | None) -> None:
        """Add rows after what was last looked at; a second writer with this txn fails."""
        book, added = self.seen(), self._put(rows, is_new=True)
        txns = [] if txn is None else [txn_action(txn)]
        actions = [commit_info("WRITE", {"mode": "Append"}, ""), *txns, added]
        self._commit(book, actions, app_id=None if txn is None else txn.app_id)

    def join(self, most_files: int) -> None:
        """Make one file of all when there are many, unless somebody else does; fold the log."""
        import pyarrow as pa

        self._fold_some_time()
        if len(self.seen().files) <= most_files:
            return
        book = self.look()
        if book is None or len(book.files) <= most_files:
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

    def _followed(self) -> Book | None:
        """What is known of the table and still holds, with what came since."""
        known = _KNOWN.get(self._key)
        commits = None if known is None else self._log.since(known.version, known.tag)
        found = None if known is None or commits is None else known.after(commits)
        return None if found is None else self._kept(found)

    def _opened(self, table: DeltaTable | None) -> Book | None:
        """The table as delta-rs reads it."""
        if table is None:
            return None
        with translated(self.location):
            version, table_id = table.version(), str(table.metadata().id)
            adds = arrow_table(table.get_add_actions(flatten=True))
        last, files = self._log.read(version), _files_of(adds)
        tag = "" if last is None else last.tag
        return self._kept(Book(table_id=table_id, version=version, tag=tag, files=files))

    def _kept(self, book: Book) -> Book:
        _keep(_KNOWN, self._key, book)
        return book

    def _commit(
        self,
        book: Book,
        actions: Sequence[Action],
        *,
        app_id: str | None = None,
        needs: frozenset[str] = frozenset(),
    ) -> None:
        """Make the next commit after what others add meanwhile."""
        for _ in range(_RETRIES):
            made = self._make(book.version + 1, actions)
            later = book.after([made])
            if later is None or (made.actions != tuple(actions) and _clash(made, app_id, needs)):
                break
            book = later
            if made.actions == tuple(actions):
                self._seen = self._kept(book)
                return
        raise CommitConflict(f'another writer was faster in "{self.location}"')

    def _make(self, version: int, actions: Sequence[Action]) -> Commit:
        """The commit of a version: ours, or what somebody else has put there.

        Ours may be there although the put says it was not: its answer was lost, and it was tried
        once more.
        """
        tag = self._log.put(version, actions)
        if tag is not None:
            return Commit(version=version, tag=tag, actions=tuple(actions))
        found = self._log.read(version)
        if found is None:
            raise damaged(self.location, f"commit {version} cannot be read")
        return found

    def _put(self, rows: pa.Table, *, is_new: bool) -> Action:
        """A file for rows, and what the log is to say of it."""
        import pyarrow.parquet as pq

        name, content = f"part-{uuid4()}.parquet", io.BytesIO()
        pq.write_table(rows, content, compression="snappy")
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
    if len(kept) >= _MOST_KEPT:
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
