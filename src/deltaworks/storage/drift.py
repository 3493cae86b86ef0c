"""Columns of files that are not those a source expects: one policy for every format.

A source expects the columns of its `schema`; without one, every column that any file of the batch
has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from deltaworks.config.documents import shown_path
from deltaworks.errors import InputError
from deltaworks.storage.listing import MissingColumns, UnknownColumns

_MAX_SHOWN = 4
_FOR_UNKNOWN = (
    "add the column to `schema`, or say `unknown_columns: keep` to read it as well "
    "or `ignore` to leave it out"
)
_FOR_MISSING = "correct the {}, or say `missing_columns: fill` to read NULL"


@dataclass(frozen=True, kw_only=True)
class FileDrift:
    """How the columns of a file, or of several that are alike, differ from those expected."""

    path: str
    unknown: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    line: int = 0
    """Where the file says so; 0 when it is no line."""
    what: str = "file"
    """What has the columns: the file, or the messages of a topic."""

    @property
    def place(self) -> str:
        """The file and line, as people write them."""
        return f"{shown_path(self.path)}:{self.line}" if self.line else shown_path(self.path)

    def with_columns(self, unknown: tuple[str, ...], missing: tuple[str, ...]) -> FileDrift:
        """The same place with the columns that differ."""
        return replace(self, unknown=unknown, missing=missing)


@dataclass(frozen=True, kw_only=True)
class Drift:
    """What is done about columns that are unknown or missing."""

    unknown: UnknownColumns = "refuse"
    missing: MissingColumns = "refuse"

    def judge(
        self, found: Sequence[FileDrift], warn: Callable[[str], None], *, against: str = "schema"
    ) -> None:
        """Raise for the first file that the policy refuses; warn of those it lets pass."""
        for drift in found:
            unknown = drift.unknown if self.unknown == "refuse" else ()
            missing = drift.missing if self.missing == "refuse" else ()
            if unknown or missing:
                raise _refusal(drift, unknown, missing, against=against)
        for message in self._warnings(found, against):
            warn(message)

    def _warnings(self, found: Sequence[FileDrift], against: str) -> Iterator[str]:
        for drift in found:
            if drift.unknown and self.unknown == "warn":
                names = _named(drift.unknown)
                yield f"{drift.place}: {names} left out: not in the {against}"
            if drift.missing and self.missing == "warn":
                names = _named(drift.missing)
                yield f"{drift.place}: {names} read as NULL: not in the {drift.what}"


def refuse_twins(names: Sequence[str], place: str, *, hint: str) -> None:
    """Raise when a file has two columns of one name: nobody could tell them apart."""
    lower = [name.lower() for name in names]
    for name in names:
        if (times := lower.count(name.lower())) > 1:
            at = ", ".join(str(i) for i, other in enumerate(lower, 1) if other == name.lower())
            raise InputError(
                f'{place}: the header names column "{name}" {times} times (columns {at})',
                hint=hint,
            )


def _refusal(
    drift: FileDrift, unknown: Sequence[str], missing: Sequence[str], *, against: str
) -> InputError:
    lines = [f'  + "{name}" (not in the {against})' for name in unknown]
    lines += [f'  - "{name}" (not in the {drift.what})' for name in missing]
    shown = lines[:_MAX_SHOWN]
    if len(lines) > _MAX_SHOWN:
        shown = [*lines[: _MAX_SHOWN - 1], f"  (+{len(lines) - _MAX_SHOWN + 1} more)"]
    return InputError(
        f"{drift.place}: the columns are not those of the {against}:\n" + "\n".join(shown),
        hint=_FOR_UNKNOWN if unknown else _FOR_MISSING.format(drift.what),
    )


def _named(names: Sequence[str]) -> str:
    listed = ", ".join(f'"{name}"' for name in names[:_MAX_SHOWN])
    more = f" and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else ""
    return f"{'columns' if len(names) > 1 else 'column'} {listed}{more}"
