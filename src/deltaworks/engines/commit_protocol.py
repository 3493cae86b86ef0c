"""Who may commit to a table on S3: the engine that did so last, or the one it is set to.

delta-rs puts a commit only where none is. Spark looks first and puts then, which is safe from one
driver, and sees nothing of what comes in between. So the two never commit to one table there,
unless both go through the same table of DynamoDB. On this machine our lock keeps them apart, and
the other clouds refuse a second commit of one number by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from deltaworks.config.object_stores import Stores, store_place
from deltaworks.engines.deltars.log.actions import ENGINE
from deltaworks.engines.deltars.snapshot import TableSnapshot
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.errors import GuardError

if TYPE_CHECKING:
    from deltalake import DeltaTable

Committer = Literal["spark", "delta-rs"]
PROPERTY = "deltaworks.commits"
"""The table property that says who commits, where the last commit is not to decide it."""
_SHARED = "aws_s3_locking_provider"
_FIRST_ONLY = ("delta-rs", ENGINE)
"""Who puts a commit only where none is; our own commits of files are put so too."""
_NAMES = {"spark": "Spark", "delta-rs": "delta-rs"}


def committer_of(location: str, stores: Stores) -> Committer | None:
    """The only engine that may commit to a table; None when any may, or there is no table."""
    look = DeltaRsEngine(stores).look(location) if _has_one(location, stores) else None
    return None if look is None else _committer(look)


def _has_one(location: str, stores: Stores) -> bool:
    """Whether a table has one committer only."""
    access = stores.access(location)
    return access is not None and access.kind == "s3" and access.log.store != "dynamodb"


def _committer(look: TableSnapshot) -> Committer:
    said = look.properties.get(PROPERTY, "")
    if said in _NAMES:
        return "spark" if said == "spark" else "delta-rs"
    last = look.history(1)
    return "delta-rs" if any(one.engine.startswith(_FIRST_ONLY) for one in last) else "spark"


def require_committer(location: str, wanted: Committer, stores: Stores) -> None:
    """Raise when another engine commits to the table."""
    _refuse_other(location, wanted, committer_of(location, stores))


def require_committer_of(look: TableSnapshot | None, wanted: Committer, stores: Stores) -> None:
    """Raise when another engine commits to a table that was just looked at."""
    if look is not None and _has_one(look.location, stores):
        _refuse_other(look.location, wanted, _committer(look))


def require_stream(location: str, table: DeltaTable, options: Mapping[str, str]) -> None:
    """Raise when Spark commits to the table that a stream has opened."""
    place = store_place(location)
    shared = any(name.lower() == _SHARED for name in options)
    if place is not None and place[0] == "s3" and not shared:
        _refuse_other(location, "delta-rs", _committer(TableSnapshot.at(location, table)))


def _refuse_other(location: str, wanted: Committer, found: Committer | None) -> None:
    if found in (None, wanted):
        return
    other = "a stream" if found == "delta-rs" else "a pipeline"
    raise GuardError(
        f'"{location}" is committed to by {_NAMES[str(found)]}, and on S3 {_NAMES[wanted]} '
        "would not see those commits: one of two at the same time would be lost",
        hint=f"write it with {other}, or stop every other writer and set the table property "
        f'{PROPERTY} to "{wanted}"; with `log: {{store: dynamodb}}` in `storage` both may write',
    )
