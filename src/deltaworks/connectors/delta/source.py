"""What all sources of one Delta table have in common: where it is, and its versions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from deltaworks.clock import parse_timestamp
from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.contracts.context import ProjectContext
from deltaworks.contracts.credentials import NeedsCredential
from deltaworks.contracts.source import Source
from deltaworks.engines.deltars.log.commits import commit_files, version_at
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.errors import DeltaworksError, GuardError, TableNotFound
from deltaworks.model.batch import VERSION, Bounds
from deltaworks.model.table_info import TableInfo
from deltaworks.model.table_ref import table_place_problems
from deltaworks.storage.paths import read_text

_ANEW = "reload everything with --full-refresh"


class TableSource(NeedsCredential, Source):
    """A Delta table, by name in the warehouse or by path."""

    table: str = ""
    """The table's name in the warehouse."""
    path: str = ""
    """The table's folder, instead of a name."""

    def place_problems(self) -> list[str]:
        """What is wrong with how the table is named."""
        return table_place_problems(table=self.table, path=self.path)

    def start_at(self, project_ctx: ProjectContext, point: str) -> Bounds | None:
        found = self.info(project_ctx)
        if point.isdecimal():
            read = int(point) - 1
        else:
            read = version_at(
                self.location(project_ctx), parse_timestamp(point), project_ctx.stores
            )
        if read < 0:
            return None
        return Bounds(kind=VERSION, identity=found.table_id, position={"version": read})

    def still_there(self, project_ctx: ProjectContext, bounds: Bounds) -> str:
        try:
            found = self.info(project_ctx, bounds.position["version"])
        except DeltaworksError as problem:
            return problem.message
        same = found.table_id == bounds.identity and not self._other_history(project_ctx, bounds)
        return "" if same else "it is another table now"

    def probe(self, project_ctx: ProjectContext) -> str:
        found = self.info(project_ctx)
        holds = DeltaRsEngine(project_ctx.stores).holds_rows(found.location)
        return f"version {found.version}, {'one row was read' if holds else 'no rows'}"

    def tables_read(self, project_ctx: ProjectContext) -> tuple[str, ...]:
        return (self.location(project_ctx),)

    def location(self, project_ctx: ProjectContext) -> str:
        """The table's folder."""
        return project_ctx.table(table=self.table, path=self.path).location

    def info(self, project_ctx: ProjectContext, version: int | None = None) -> TableInfo:
        """The table as it is, or was; an error when there is none."""
        return table_info(
            self.location(project_ctx),
            label=self.table or self.path,
            version=version,
            stores=project_ctx.stores,
        )

    def position(self, project_ctx: ProjectContext, version: int) -> dict[str, Any]:
        """A version of the table, with what tells it from the same version of another history."""
        tag = commit_tag(self.location(project_ctx), version, project_ctx.stores)
        return {"version": version, **({"commit": tag} if tag else {})}

    def _other_history(self, project_ctx: ProjectContext, read: Bounds) -> bool:
        """Whether the commit that was read last is another one now; not told once it is gone."""
        found = commit_tag(self.location(project_ctx), read.position["version"], project_ctx.stores)
        return bool(found) and read.position.get("commit", found) != found

    def last_read(self, project_ctx: ProjectContext, since: Bounds, found: TableInfo) -> int:
        """The version that was read last, of this very table; another one stops the run."""
        last, label = int(since.position["version"]), self.table or self.path
        if since.identity != found.table_id or self._other_history(project_ctx, since):
            raise GuardError(
                f'"{label}" is not the table that the last batch read: it was recreated, '
                "replaced or put back from a copy",
                hint=f"put the old table back, read all of this one by --from 0, or {_ANEW}",
            )
        if found.version < last:
            raise GuardError(
                f'"{label}" is at version {found.version}, though version {last} was read before',
                hint=f"it was recreated or set back; {_ANEW}",
            )
        return last

    def refuse_set_back(
        self, project_ctx: ProjectContext, last: int, latest: int, *, replaced: bool
    ) -> None:
        """Rows that were read and taken back may come again; a table replaced is another one."""
        label = self.table or self.path
        for version in range(last + 1, latest + 1):
            note = commit_info(self.location(project_ctx), version, project_ctx.stores)
            operation = str(note.get("operation", ""))
            target = str((note.get("operationParameters") or {}).get("version"))
            back = operation == "RESTORE" and not (target.isdecimal() and int(target) >= last)
            if back or (replaced and "REPLACE TABLE" in operation):
                what = "set back to before what was read" if back else "replaced"
                raise GuardError(
                    f'"{label}" was {what} (in version {version}), after version {last} was read',
                    hint=f"go on with what came after that by --from {version + 1}, or {_ANEW}",
                )

    def refuse_lost_history(self, project_ctx: ProjectContext, last: int, latest: int) -> None:
        """What happened since can only be told while every commit since is there."""
        kept = [
            file.version for file in commit_files(self.location(project_ctx), project_ctx.stores)
        ]
        if last < latest and kept and kept[0] > last + 1:
            raise GuardError(
                f'the log of "{self.table or self.path}" begins at version {kept[0]}, '
                f"and the last batch read version {last}",
                hint=f"its history was cleaned up; {_ANEW}",
            )


def commit_tag(location: str, version: int, stores: Stores = NO_STORES) -> str:
    """A hash of a commit, which never changes; empty once the log is cleaned up."""
    text = read_text(_commit_file(location, version), stores)
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()[:32]


def commit_info(location: str, version: int, stores: Stores = NO_STORES) -> Mapping[str, Any]:
    """What a commit says of itself; nothing where it does not."""
    for line in (read_text(_commit_file(location, version), stores) or "").split("\n"):
        if '"commitInfo"' in line and (note := json.loads(line).get("commitInfo")):
            return dict(note)
    return {}


def _commit_file(location: str, version: int) -> str:
    return f"{location}/_delta_log/{version:020d}.json"


def table_info(
    location: str, *, label: str, version: int | None = None, stores: Stores = NO_STORES
) -> TableInfo:
    """A table that must be there."""
    found = DeltaRsEngine(stores).info(location, version=version)
    if found is None:
        raise TableNotFound(
            f'"{label}" is not a Delta table',
            hint=f"looked in {location}; run the pipeline that makes it first",
        )
    return found
