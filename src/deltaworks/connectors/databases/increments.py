"""Increments of a table by a column that grows: which rows are new since the last one.

Rows that have the very watermark an increment ends with may get company later. So the ledger keeps
digests of them, and the next increment reads those that it does not know: by their key where rows
are only added, by the whole row where they are found again, so that one that changed is read again.
Where they are too many, a sum of the digests tells whether there are others now, and where rows
cannot be told apart (a query, a view) their number does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deltaworks.connectors.databases.dialect import Column, Connection, Dialect, Place
from deltaworks.contracts.duration import duration
from deltaworks.errors import GuardError, InputError, SpecError

NUMBER = re.compile(r"-?\d+(\.\d+)?")
_NUMBERS = (
    *("smallint", "integer", "bigint", "numeric", "real", "double precision"),
    *("tinyint", "mediumint", "int", "decimal", "float", "double"),
)
_MAX_TIES = 1_000
_MAX_DIGESTED = 100_000
"""Beyond this the watermarks of an increment are compared later, not its whole rows."""
_IDENTITIES = ("key", "row")
_ENDLESS = ("nan", "infinity", "-infinity")


@dataclass(frozen=True, kw_only=True)
class Increments:
    """What is read a part at a time, and by which column."""

    server: Dialect
    relation: str
    where: str
    column: Column
    identities: Mapping[str, tuple[Column, ...]]
    """By what rows are told apart: `row`, all columns, and `key`, those of a unique key."""
    unique: bool = False
    """Whether no two rows have the same watermark."""
    overlap: str = ""
    allow_future: bool = False

    @staticmethod
    def identities_of(
        server: Dialect, connection: Connection, place: Place | None, columns: tuple[Column, ...]
    ) -> dict[str, tuple[Column, ...]]:
        """By what the rows of a table are told apart; of anything else they are not."""
        if place is None or not server.is_table(connection, place):
            return {}
        keys = server.unique_keys(connection, place)
        named = {column.name: column for column in columns}
        key = tuple(named[name] for name in keys[0]) if keys else ()
        return {"row": columns, **({"key": key} if key else {})}

    @property
    def _name(self) -> str:
        return self.server.quoted(self.column.name)

    def next(self, connection: Connection, read: Mapping[str, Any] | None) -> dict[str, Any]:
        """The position of the increment after one that was read; the first one without any."""
        last = None if read is None else read["until"]
        self._refuse_unordered(connection)
        if last is not None:
            self._refuse_endless(connection, last)
        told = {} if last is None else self._told_apart(connection, last, read or {})
        newer = self._lower({"since": last, **told}) or "1 = 1"
        highest = self.server.as_text(f"max({self._name})")
        until = self._one(connection, highest, newer)
        if until is not None:
            self._refuse_future(connection, newer)
        position = {"until": until or last, "since": last, **told}
        if position["until"] is not None and not self.unique:
            position["ties"] = self._ties(connection, position["until"])
        rows = self.count(connection, position)
        return {**position, "rows": rows, **self._digest(connection, position, rows)}

    def count(self, connection: Connection, position: Mapping[str, Any]) -> int:
        """How many rows an increment holds now."""
        return int(self._one(connection, "count(*)", self.range(position)))

    def range(self, position: Mapping[str, Any]) -> str:
        """The condition for the rows of an increment; at its end only those that were there."""
        until = position["until"]
        if until is None:
            return "1 = 0"
        end, each = self._literal(until), position.get("ties", {}).get("each", {})
        upper = f"{self._name} <= {end}"
        by = next((by for by in _IDENTITIES if by in each and by in self.identities), "")
        if by:
            upper = f"({self._name} < {end} OR ({self._at(end)} AND {self._among(each[by], by)}))"
        lower = self._lower(position)
        return f"{lower} AND {upper}" if lower else upper

    def why_others(self, connection: Connection, position: Mapping[str, Any]) -> str:
        """Why the rows of an increment are not what they were; empty when they are."""
        found, until = self.count(connection, position), position["until"]
        rows = position.get("rows", found)  # ledgers of old versions do not have it
        if rows != found:
            return f"{rows:,} rows were to be read up to {until}, now it is {found:,}"
        digest = position.get("digest")
        if digest and self._digest(connection, position, rows)["digest"] != digest:
            return f"the {rows:,} rows up to {until} are not what they were"
        return ""

    def why_other_ties(self, connection: Connection, position: Mapping[str, Any]) -> str:
        """Why rows may have come at the end of an increment that is read; empty when none did."""
        if position["ties"] == self._ties(connection, position["until"]):
            return ""
        return f'rows have come or changed at "{self.column.name}" {position["until"]}'

    def _one(self, connection: Connection, what: str, condition: str) -> Any:
        return self._rows(connection, what, condition)[0][0]

    def _rows(self, connection: Connection, what: str, condition: str) -> list[tuple[Any, ...]]:
        where = f"({self.where}) AND " if self.where else ""
        return connection.rows(f"SELECT {what} FROM {self.relation} WHERE {where}({condition})")

    def _at(self, literal: str) -> str:
        return f"{self._name} = {literal}"

    def _among(self, digests: Sequence[str], by: str, *, inside: bool = True) -> str:
        """The condition for rows with some digests, or without them."""
        if not digests:
            return "1 = 0" if inside else "1 = 1"
        listed = ", ".join(self.server.literal(digest) for digest in digests)
        digest = self.server.digest(self.identities[by])
        return f"{digest} {'IN' if inside else 'NOT IN'} ({listed})"

    def _lower(self, position: Mapping[str, Any]) -> str:
        """The condition for rows after the last increment; empty when there was none."""
        last = position.get("since")
        if last is None:
            return ""
        start = self._literal(last)
        if self.overlap:
            return f"{self._name} > {self._earlier(start)}"
        if position.get("repeats"):
            return f"{self._name} >= {start}"
        if known := position.get("known"):
            others = self._among(known["each"], known["by"], inside=False)
            return f"({self._name} > {start} OR ({self._at(start)} AND {others}))"
        return f"{self._name} > {start}"

    def _earlier(self, literal: str) -> str:
        if self.column.kind in _NUMBERS:
            return f"({literal} - {self.overlap})"
        if NUMBER.fullmatch(self.overlap):
            raise SpecError(
                f'"overlap" of "{self.column.name}" must be a length of time, not {self.overlap}',
                hint="such as 15m",
            )
        seconds = int(duration(self.overlap).total_seconds())
        return self.server.earlier(literal, self.column, seconds)

    def _literal(self, text: str) -> str:
        number = self.column.kind in _NUMBERS and NUMBER.fullmatch(text)
        return text if number else self.server.literal(text)

    def _ties(self, connection: Connection, point: str) -> dict[str, Any]:
        """The rows at one watermark: their number, and what tells them apart from others."""
        at = self._at(self._literal(point))
        digests = {by: self.server.digest(of) for by, of in self.identities.items()}
        sums = [self.server.digest_sum(digest) for digest in digests.values()]
        rows, *found = self._rows(connection, ", ".join(["count(*)", *sums]), at)[0]
        ties: dict[str, Any] = {"rows": int(rows)}
        if digests:
            ties["sums"] = {by: str(one) for by, one in zip(digests, found, strict=True)}
        if digests and rows <= _MAX_TIES:
            listed = self._rows(connection, ", ".join(digests.values()), at)
            columns = zip(*listed, strict=True) if listed else ([] for _ in digests)
            ties["each"] = {by: sorted(one) for by, one in zip(digests, columns, strict=True)}
        return ties

    def _told_apart(
        self, connection: Connection, last: str, read: Mapping[str, Any]
    ) -> dict[str, Any]:
        """How rows that have the last watermark are told from those that were read."""
        before = read.get("ties")
        if before is None or self.unique or self.overlap:
            return {}
        now, adds = self._ties(connection, last), read.get("adds", True)
        by = "key" if adds and "key" in self.identities else "row"
        sums = (before.get("sums", {}).get(by), now.get("sums", {}).get(by))
        if now["rows"] == before["rows"] and sums[0] == sums[1]:
            return {}
        known = before.get("each", {}).get(by)
        if known is None or by not in self.identities:
            fewer = sums == (None, None) and now["rows"] <= before["rows"]
            return {} if fewer else {"repeats": before["rows"]}
        again = f"{self._at(self._literal(last))} AND {self._among(known, by)}"
        if int(self._one(connection, "count(*)", again)) > len(known):  # one more of equal rows
            return {"repeats": before["rows"]}
        return {"known": {"by": by, "each": known}}

    def _digest(
        self, connection: Connection, position: Mapping[str, Any], rows: int
    ) -> dict[str, str]:
        if not rows:
            return {}
        of = self.identities.get("row") if rows <= _MAX_DIGESTED else None
        total = self.server.digest_sum(self.server.digest(of or (self.column,)))
        return {"digest": str(self._one(connection, total, self.range(position)))}

    def _refuse_unordered(self, connection: Connection) -> None:
        """Rows that no increment would have, or after which none would have any."""
        name, endless = self.column.name, self.server.endless(self.column)
        missing = int(self._one(connection, "count(*)", f"{self._name} IS NULL"))
        if missing:
            raise InputError(
                f'{missing:,} rows have no "{name}", so that no increment would have them',
                hint=f'fill it, or leave such rows out: where: "{name} IS NOT NULL"',
            )
        if endless and (odd := int(self._one(connection, "count(*)", endless))):
            raise InputError(
                f'{odd:,} rows have a "{name}" that is infinite or not a number, '
                "and no increment could come after them",
                hint=f"correct them, or leave them out: where: 'NOT ({endless})'",
            )

    def _refuse_endless(self, connection: Connection, last: str) -> None:
        """A position that nothing will ever come after."""
        ahead = self.server.ahead(self._literal(last), self.column)
        endless = last.lower() in _ENDLESS
        if endless or (ahead and not self.allow_future and connection.one(f"SELECT {ahead}")):
            raise GuardError(
                f'the last batch ended at "{self.column.name}" {last}, '
                "and rows that change now come before that",
                hint="go on from a point by --from, correct such rows, or reload everything with "
                "--full-refresh",
            )

    def _refuse_future(self, connection: Connection, newer: str) -> None:
        """Rows of the far future would end the increments until then."""
        ahead = self.server.ahead(self._name, self.column)
        if not ahead or self.allow_future:
            return
        rows = int(self._one(connection, "count(*)", f"({newer}) AND {ahead}"))
        if rows:
            raise InputError(
                f'{rows:,} rows have a "{self.column.name}" in the future, '
                "and rows that change until then would never be read",
                hint=f"correct them, leave them out (where: 'NOT ({ahead})'), "
                "or say `allow_future: true`",
            )
