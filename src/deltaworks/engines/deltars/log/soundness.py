"""Whether a log is sound: decided here, before any engine is asked.

Only what engines would read is looked at: the last checkpoint and the commits behind it. A commit
never changes, so that a process looks into each one once (`commit_facts.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltaworks.engines.deltars.errors import damaged, has_commit
from deltaworks.engines.deltars.log.commit_facts import CommitFacts, commit_facts
from deltaworks.engines.deltars.log.file_names import CheckpointFiles, LogNames, log_names
from deltaworks.engines.deltars.log.table_rules import Protocol, check_metadata, read_protocol
from deltaworks.errors import CommitConflict, DamagedCheckpoint

if TYPE_CHECKING:
    from deltaworks.engines.deltars.log.checkpoints import CheckpointFacts


@dataclass(frozen=True, kw_only=True)
class SoundLog:
    """A log that can be believed, as far as it is read for one version."""

    location: str
    oldest: int
    """The first version that can still be read: of the first checkpoint, or of all commits."""
    version: int
    checkpoint: int | None
    protocol: Protocol
    metadata: Mapping[str, Any]
    txns: Mapping[str, int]
    """The last transaction of each writer."""
    has_vectors: bool
    """Whether a file may have rows that are marked as deleted."""
    disputed: tuple[str, ...]
    """Compacted commits that say something else than the commits: engines read one or the other."""

    def has(self, version: int) -> bool:
        """Whether a version can be read."""
        return self.oldest <= version <= self.version


def sound_log(location: str, version: int | None = None) -> SoundLog | None:
    """The log of a table on this machine at a version; None when there is no log.

    Raises one error of ours when the log is damaged, cannot be read, or asks for what nobody here
    knows. A version that the log does not have is left to whoever asked for it.
    """
    names = log_names(location)
    if names is None:
        return None
    for odd in names.odd:
        raise damaged(location, f'"{odd}" is not named like a commit')
    if not names.commits and not names.checkpoints:
        return None
    _check_pointer(location, names)
    latest = _segment(location, names, None)
    if version is None or version >= latest.version or version < latest.oldest:
        return latest
    return _segment(location, names, version)


def _segment(location: str, names: LogNames, version: int | None) -> SoundLog:
    """What is read for one version: a checkpoint and the commits behind it."""
    start = names.checkpoint_for(version)
    facts = None if start is None else _checkpoint(location, start)
    first = -1 if start is None else start.version
    last = max((*names.commits, first)) if version is None else version
    tail = [one for one in names.commits if first < one <= last]
    _refuse_gaps(location, names, tail, first)
    commits = [_commit(location, names, one) for one in tail]
    said: list[CheckpointFacts | CommitFacts] = [*commits] if facts is None else [facts, *commits]
    protocol = _last(one.protocol for one in said)
    metadata = _last(one.metadata for one in said)
    known = read_protocol(location, protocol)
    first_checkpoint = min((one.version for one in names.checkpoints), default=0)
    check_metadata(location, metadata)
    return SoundLog(
        location=location,
        oldest=0 if 0 in names.commits else first_checkpoint,
        version=last,
        checkpoint=None if start is None else start.version,
        protocol=known,
        metadata=metadata or {},
        txns=dict(item for one in said for item in one.txns.items()),
        has_vectors=any(one.has_vectors for one in said),
        disputed=_disputed(location, names, tail),
    )


def _disputed(location: str, names: LogNames, tail: Sequence[int]) -> tuple[str, ...]:
    if not names.compacted:
        return ()
    from deltaworks.engines.deltars.log.compacted import disagreeing

    return disagreeing(location, names.compacted, tail)


def _last(said: Iterable[Mapping[str, Any] | None]) -> Mapping[str, Any] | None:
    """The newest action of a kind; None when there is none."""
    return next((one for one in reversed([*said]) if one is not None), None)


def _checkpoint(location: str, files: CheckpointFiles) -> CheckpointFacts:
    from deltaworks.engines.deltars.log.checkpoints import check_checkpoint

    return check_checkpoint(location, files)


def _check_pointer(location: str, names: LogNames) -> None:
    if os.path.lexists(f"{location}/_delta_log/_last_checkpoint"):
        from deltaworks.engines.deltars.log.checkpoints import check_pointer

        check_pointer(location, names)


def _refuse_gaps(location: str, names: LogNames, tail: Sequence[int], first: int) -> None:
    there, expected = set(tail), first + 1
    for version in range(expected, tail[-1] if tail else expected):
        if version in there or has_commit(location, version):
            continue
        if first < 0 and names.unfinished:  # all that came before would be in it
            torn = names.unfinished[-1]
            what = f"part {torn.parts_missing[0]} of checkpoint {torn.version} is missing"
            raise damaged(location, what, DamagedCheckpoint)
        raise damaged(location, f"commit {version} is missing")


def _commit(location: str, names: LogNames, version: int) -> CommitFacts:
    if what := names.no_files.get(version):
        raise damaged(location, f"commit {version} is {what}")
    path = Path(location) / "_delta_log" / f"{version:020d}.json"
    try:
        status = path.stat()
        facts = commit_facts(str(path), status.st_size, status.st_mtime_ns)
    except FileNotFoundError:  # cleaned up since the folder was listed: a checkpoint has it
        raise CommitConflict(f'another writer was faster in "{location}"') from None
    if facts.problem:
        raise damaged(location, facts.problem.format(f"commit {version}"))
    return facts
