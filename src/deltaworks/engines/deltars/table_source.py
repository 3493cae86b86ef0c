"""What all sources of one Delta table have in common: where it is, and its versions."""

from __future__ import annotations

from deltaworks.clock import parse_moment
from deltaworks.contracts.context import Site
from deltaworks.contracts.source import Source
from deltaworks.engines.deltars.engine import DeltaRsEngine
from deltaworks.engines.deltars.log import commit_files, version_at
from deltaworks.errors import DeltaworksError, GuardError, TableNotFound
from deltaworks.model.batch import VERSION, Bounds
from deltaworks.model.table_info import TableInfo
from deltaworks.model.table_ref import table_name_problem


class TableSource(Source):
    """A Delta table, by name in the warehouse or by path."""

    table: str = ""
    """The table's name in the warehouse."""
    path: str = ""
    """The table's folder, instead of a name."""

    def place_problems(self) -> list[str]:
        """What is wrong with how the table is named."""
        found = []
        if bool(self.table) == bool(self.path):
            found.append('say either "table" or "path"')
        if self.table and (problem := table_name_problem(self.table)):
            found.append(problem)
        return found

    def start_at(self, site: Site, point: str) -> Bounds | None:
        found = self.info(site)
        if point.isdecimal():
            read = int(point) - 1
        else:
            read = version_at(self.location(site), parse_moment(point))
        if read < 0:
            return None
        return Bounds(kind=VERSION, identity=found.table_id, position={"version": read})

    def still_there(self, site: Site, bounds: Bounds) -> str:
        try:
            found = self.info(site, bounds.position["version"])
        except DeltaworksError as problem:
            return problem.message
        return "" if found.table_id == bounds.identity else "it is another table now"

    def probe(self, site: Site) -> str:
        found = self.info(site)
        holds = DeltaRsEngine().holds_rows(found.location)
        return f"version {found.version}, {'one row was read' if holds else 'no rows'}"

    def tables_read(self, site: Site) -> tuple[str, ...]:
        return (self.location(site),)

    def location(self, site: Site) -> str:
        """The table's folder."""
        return site.table(table=self.table, path=self.path).location

    def info(self, site: Site, version: int | None = None) -> TableInfo:
        """The table as it is, or was; an error when there is none."""
        return table_info(self.location(site), label=self.table or self.path, version=version)

    def refuse_lost_history(self, site: Site, last: int, latest: int) -> None:
        """What happened since can only be told while every commit since is there."""
        choices = "load everything anew with --full-refresh"
        label = self.table or self.path
        if latest < last:
            raise GuardError(
                f'"{label}" is at version {latest}, though version {last} was read before',
                hint=f"it was made anew or set back; {choices}",
            )
        kept = [file.version for file in commit_files(self.location(site))]
        if last < latest and kept and kept[0] > last + 1:
            raise GuardError(
                f'the log of "{label}" begins at version {kept[0]}, '
                f"and the last batch read version {last}",
                hint=f"its history was cleaned up; {choices}",
            )


def table_info(location: str, *, label: str, version: int | None = None) -> TableInfo:
    """A table that must be there."""
    found = DeltaRsEngine().info(location, version=version)
    if found is None:
        raise TableNotFound(
            f'"{label}" is not a Delta table',
            hint=f"looked in {location}; run the pipeline that makes it first",
        )
    return found
