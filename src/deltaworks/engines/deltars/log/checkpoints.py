"""Whether a checkpoint tells the truth about the files it stands for.

Engines believe a checkpoint without looking at the commits before it, so one that lists fewer files
is a table with fewer rows. Its own footer counts the files it lists; what the writers of the log
said their number was stands beside it. A newer kind (v2) keeps its files in sidecars, under a name
of its own or the classic one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from deltaworks.engines.deltars.errors import damaged
from deltaworks.engines.deltars.log.commit_facts import action_problem, checked_action
from deltaworks.engines.deltars.log.file_names import CheckpointFiles, LogNames
from deltaworks.engines.deltars.text import read_json
from deltaworks.errors import DamagedCheckpoint, DamagedTable

if TYPE_CHECKING:
    import pyarrow.parquet as pq

Action = Mapping[str, Any]
_POINTER = "_last_checkpoint"
_SPOKEN = ("protocol", "metaData", "sidecar", "txn")
_PATH = "add.path"
_VECTOR = "add.deletionVector.storageType"


@dataclass(frozen=True)
class CheckpointFacts:
    """What a checkpoint says, or one file of it."""

    files: int = 0
    has_vectors: bool = False
    spoken: tuple[Action, ...] = ()
    """Its few actions that list no files."""

    @property
    def protocol(self) -> Action | None:
        """What a reader and a writer must know."""
        return self._one("protocol")

    @property
    def metadata(self) -> Action | None:
        """The table's columns and properties."""
        return self._one("metaData")

    def _one(self, kind: str) -> Action | None:
        return next((one[kind] for one in self.spoken if one.get(kind)), None)

    @property
    def txns(self) -> dict[str, int]:
        """The last transaction of each writer."""
        return {txn["appId"]: txn["version"] for one in self.spoken if (txn := one.get("txn"))}


def check_checkpoint(location: str, checkpoint: CheckpointFiles) -> CheckpointFacts:
    """What a checkpoint says; refused when it is torn, or lists another number of files."""
    version = checkpoint.version
    found = [_together(location, version, names) for names in checkpoint.sets]
    for facts in found:
        for said in _files_said(Path(location) / "_delta_log", version):
            if said != facts.files:
                what = f"checkpoint {version} lists {facts.files} files, and there were {said}"
                raise _wrong(location, what)
    return found[-1]


def checkpoint_parts(location: str, checkpoint: CheckpointFiles) -> list[Path]:
    """The files that list the table's files, sidecars too, of a checkpoint that is sound."""
    log = Path(location) / "_delta_log"
    parts = [log / name for name in checkpoint.sets[-1]]
    spoken = _together(location, checkpoint.version, checkpoint.sets[-1]).spoken
    return parts + [_sidecar_place(log, one["sidecar"]) for one in spoken if one.get("sidecar")]


def check_pointer(location: str, names: LogNames) -> None:
    """Refuse a `_last_checkpoint` that sends engines to a checkpoint that is not there."""
    found = json_file(Path(location) / "_delta_log" / _POINTER)
    version = found.get("version")
    if not isinstance(version, int) or version in {one.version for one in names.checkpoints}:
        return
    for torn in names.unfinished:
        if torn.version == version:
            part = torn.parts_missing[0]
            raise _wrong(location, f"part {part} of checkpoint {version} is missing")
    raise _wrong(location, f"{_POINTER} names checkpoint {version}, which is missing")


def _together(location: str, version: int, names: Sequence[str]) -> CheckpointFacts:
    log = Path(location) / "_delta_log"
    parts = [_part(location, log / name, f"checkpoint {version}") for name in names]
    spoken = tuple(action for part in parts for action in part.spoken)
    named = [one["sidecar"] for one in spoken if one.get("sidecar")]
    parts += [_sidecar(location, log, version, sidecar) for sidecar in named]
    return CheckpointFacts(
        files=sum(part.files for part in parts),
        has_vectors=any(part.has_vectors for part in parts),
        spoken=spoken,
    )


def _sidecar(location: str, log: Path, version: int, sidecar: Action) -> CheckpointFacts:
    place, size = _sidecar_place(log, sidecar), sidecar.get("sizeInBytes")
    what = f'sidecar "{place.name}" of checkpoint {version}'
    if place.is_file() and place.stat().st_size != size:
        raise _wrong(location, f"{what} is torn")
    return _part(location, place, what)


def _sidecar_place(log: Path, sidecar: Action) -> Path:
    name = str(sidecar.get("path"))
    return Path(unquote(urlparse(name).path)) if ":/" in name else log / "_sidecars" / name


def _part(location: str, path: Path, what: str) -> CheckpointFacts:
    if not path.is_file():
        raise _wrong(location, f"{what} is missing")
    status = path.stat()
    found = _facts(str(path), status.st_size, status.st_mtime_ns)
    if found is None:
        raise _wrong(location, f"{what} is torn")
    return found


@lru_cache(maxsize=256)
def _facts(path: str, size_bytes: int, modified_ns: int) -> CheckpointFacts | None:  # noqa: ARG001
    """What one file of a checkpoint says; None when it cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if path.endswith(".json"):
            return _facts_of_json(Path(path).read_bytes())
        with pq.ParquetFile(path) as file:
            return _facts_of_parquet(file)
    except (pa.ArrowException, OSError, ValueError):
        return None


def _facts_of_json(content: bytes) -> CheckpointFacts:
    found = [checked_action(line) for line in content.split(b"\n") if line.strip()]
    for problem in (problem for _, problem in found if problem):
        raise ValueError(problem)
    actions = [action for action, _ in found]
    adds = [action["add"] for action in actions if action.get("add")]
    return CheckpointFacts(
        files=len(adds),
        has_vectors=any(add.get("deletionVector") for add in adds),
        spoken=tuple(action for action in actions if any(action.get(kind) for kind in _SPOKEN)),
    )


def _facts_of_parquet(file: pq.ParquetFile) -> CheckpointFacts:
    return CheckpointFacts(
        files=_filled(file, _PATH),
        has_vectors=bool(_filled(file, _VECTOR)),
        spoken=tuple(
            {kind: body}
            for kind in _SPOKEN
            if kind in file.schema_arrow.names
            for body in _bodies(file, kind)
        ),
    )


def _bodies(file: pq.ParquetFile, kind: str) -> list[Action]:
    """The actions of one kind; nearly every row is of another."""
    found = file.read(columns=[kind])[kind].drop_null().to_pylist(maps_as_pydicts="lossy")
    bodies = [body for body in found if not isinstance(body, dict) or not _is_empty(body)]
    for problem in (problem for body in bodies if (problem := action_problem({kind: body}))):
        raise ValueError(problem)
    return bodies


def _is_empty(body: Action) -> bool:
    return all(value is None for value in body.values())


def _filled(file: pq.ParquetFile, column: str) -> int:
    """How many rows have a value in a column, by the footer where it tells."""
    import pyarrow.compute as pc

    footer = file.metadata
    names = [footer.schema.column(i).path for i in range(footer.num_columns)]
    if column not in names:
        return 0
    place = names.index(column)
    chunks = [footer.row_group(i).column(place) for i in range(footer.num_row_groups)]
    if all(chunk.is_stats_set and chunk.statistics.has_null_count for chunk in chunks):
        return sum(int(chunk.num_values - chunk.statistics.null_count) for chunk in chunks)
    inner = file.read(columns=[column])
    values = inner[column.partition(".")[0]].combine_chunks()
    for part in column.split(".")[1:]:
        values = pc.struct_field(values, part)
    return int(pc.count(values).as_py())


def _files_said(log: Path, version: int) -> list[int]:
    """The number of files that whoever wrote the log counted at a version."""
    checksum = json_file(log / f"{version:020d}.crc").get("numFiles")
    last = json_file(log / _POINTER)
    counted = last.get("numOfAddFiles") if last.get("version") == version else None
    return [said for said in (checksum, counted) if isinstance(said, int)]


def json_file(path: Path) -> dict[str, Any]:
    """What a small file of a log says; nothing when it is not there or cannot be read."""
    try:
        found = read_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _wrong(location: str, what: str) -> DamagedTable:
    return damaged(location, what, DamagedCheckpoint)
