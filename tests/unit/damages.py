"""A catalogue of what can be wrong with a table's log: each entry damages one good table."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

Action = dict[str, Any]
LOG, DATA, CHECKPOINT, SHAPE, FUTURE = (
    "damaged_table",
    "damaged_data",
    "damaged_checkpoint",
    "unreadable_table",
    "unsupported_table",
)
ROWS = 5
ARABIC = [chr(0x660 + digit) for digit in range(10)]
PLAIN, POINTED = "plain", "pointed"
"""Five commits of one row each; the same with a checkpoint at version 3."""


@dataclass(frozen=True)
class Subject:
    """A table on disk, and how its log is edited by hand."""

    path: Path

    @property
    def log(self) -> Path:
        return self.path / "_delta_log"

    @property
    def last(self) -> int:
        return max(int(file.stem) for file in self.log.glob("0*.json"))

    def commit(self, version: int) -> Path:
        return self.log / f"{version:020d}.json"

    def checkpoint(self, version: int = 3) -> Path:
        return self.log / f"{version:020d}.checkpoint.parquet"

    def read(self, version: int) -> list[Action]:
        return [json.loads(line) for line in self.commit(version).read_text().splitlines() if line]

    def write(self, version: int, actions: list[Action]) -> None:
        lines = (json.dumps(action) for action in actions)
        self.commit(version).write_text("\n".join(lines) + "\n")

    def edit(self, version: int, change: Callable[[Action], Action | None]) -> None:
        """Change each action of a commit; None takes it out."""
        changed = (change(action) for action in self.read(version))
        self.write(version, [action for action in changed if action is not None])

    def within(self, kind: str, version: int = 0, **fields: Any) -> None:
        """Set fields of the actions of one kind; None takes a field out."""

        def changed(action: Action) -> Action:
            if kind in action:
                action[kind].update(fields)
                action[kind] = {k: v for k, v in action[kind].items() if v is not None}
            return action

        self.edit(version, changed)

    def without(self, kind: str, version: int = 0) -> None:
        self.edit(version, lambda action: None if kind in action else action)

    def schema(self, document: Any) -> None:
        self.within("metaData", schemaString=json.dumps(document))

    def field(self, **changes: Any) -> None:
        """Change the first column."""
        meta = next(a["metaData"] for a in self.read(0) if "metaData" in a)
        document = json.loads(meta["schemaString"])
        document["fields"][0].update(changes)
        self.schema(document)

    def protocol(self, reader: Any, writer: Any, **features: list[str]) -> None:
        def replaced(action: Action) -> Action:
            if "protocol" not in action:
                return action
            return {
                "protocol": {"minReaderVersion": reader, "minWriterVersion": writer, **features}
            }

        self.edit(0, replaced)

    def data(self, version: int) -> Path:
        add = next(a["add"] for a in self.read(version) if "add" in a)
        return self.path / str(add["path"])

    def append(self) -> None:
        write_deltalake(str(self.path), pa.table({"id": [99], "v": ["z"]}), mode="append")

    def point(self, text: str) -> None:
        (self.log / "_last_checkpoint").write_text(text)

    def recheckpoint(self, change: Callable[[list[Action]], list[Action]]) -> None:
        table = pq.read_table(self.checkpoint())
        rows = change(table.to_pylist())
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), self.checkpoint())


Damage = Callable[[Subject], object]


@dataclass(frozen=True)
class Entry:
    """One way to damage a table, and the code of the error that says so."""

    name: str
    base: str
    damage: Damage
    code: str


def plain_table(path: Path) -> None:
    """Five commits of a row each."""
    for i in range(ROWS):
        write_deltalake(str(path), pa.table({"id": [i], "v": ["a"]}), mode="append")


def pointed_table(path: Path) -> None:
    """The same with a checkpoint at version 3."""
    plain_table(path)
    last = path / "_delta_log" / f"{ROWS - 1:020d}.json"
    kept = last.read_bytes()
    last.unlink()
    DeltaTable(str(path)).create_checkpoint()
    last.write_bytes(kept)


def _replaced(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


def _cut(path: Path, share: float) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])


def _as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def as_link(path: Path, *, dangling: bool = False) -> None:
    target = path.with_name(f"elsewhere-{path.name}.txt")
    path.rename(target)
    path.symlink_to(target)
    if dangling:
        target.unlink()


def _commits() -> Iterator[tuple[str, Damage, str]]:
    """Commits that are torn, empty, missing or no commits at all."""
    for place, version in (("first", 0), ("middle", 2), ("last", 4)):
        yield from _one_commit(place, version)
    yield "first commit missing", lambda t: t.commit(0).unlink(), LOG
    yield "middle commit missing", lambda t: t.commit(2).unlink(), LOG
    yield "last commit not utf-8", lambda t: t.commit(4).write_bytes(b'{"txn":"\xff\xfe"}\n'), LOG
    yield "last commit a list", lambda t: t.commit(4).write_text("[1, 2]\n"), LOG
    yield "last commit a number", lambda t: t.commit(4).write_text("7\n"), LOG
    yield "last commit empty objects", lambda t: t.commit(4).write_text("{}\n{}\n"), LOG
    yield "last commit null", lambda t: t.commit(4).write_text("null\n"), LOG
    yield "last commit with a byte order mark", _with_mark, LOG
    yield "short number", lambda t: t.commit(4).rename(t.log / "4.json"), LOG
    yield "long number", lambda t: t.commit(4).rename(t.log / f"{4:021d}.json"), LOG
    yield "no number", lambda t: t.commit(4).rename(t.log / ".json"), LOG
    yield (
        "zero-width space in the number",
        lambda t: t.commit(4).rename(t.log / f"{4:020d}\u200b.json"),
        LOG,
    )
    yield (
        "digits of another script",
        lambda t: t.commit(4).rename(t.log / (ARABIC[0] * 19 + ARABIC[4] + ".json")),
        LOG,
    )
    yield "a number beyond all", lambda t: t.commit(4).rename(t.log / ("9" * 20 + ".json")), LOG
    yield "log is a file", _log_as_file, LOG


def _one_commit(place: str, v: int) -> Iterator[tuple[str, Damage, str]]:
    yield f"{place} commit empty", lambda t: t.commit(v).write_bytes(b""), LOG
    yield f"{place} commit blank lines", lambda t: t.commit(v).write_bytes(b"\n \n\n"), LOG
    yield f"{place} commit torn", lambda t: _cut(t.commit(v), 0.6), LOG
    yield f"{place} commit no json", lambda t: t.commit(v).write_text("hello\n"), LOG
    yield f"{place} commit zero bytes", lambda t: t.commit(v).write_bytes(bytes(200)), LOG
    yield f"{place} commit a folder", lambda t: _as_folder(t.commit(v)), LOG
    yield f"{place} commit a dangling link", lambda t: as_link(t.commit(v), dangling=True), LOG


def _with_mark(t: Subject) -> None:
    t.commit(4).write_bytes(b"\xef\xbb\xbf" + t.commit(4).read_bytes())


def _log_as_file(t: Subject) -> None:
    t.log.rename(t.path / "elsewhere")
    t.log.write_text("")


def _actions() -> Iterator[tuple[str, Damage, str]]:
    """Actions that lack what they must have."""
    yield "add without path", lambda t: t.within("add", 4, path=None), LOG
    yield "add with a number for path", lambda t: t.within("add", 4, path=5), LOG
    yield "add with an empty path", lambda t: t.within("add", 4, path=""), LOG
    yield "add without size", lambda t: t.within("add", 4, size=None), LOG
    yield "add with text for size", lambda t: t.within("add", 4, size="many"), LOG
    yield "add with a negative size", lambda t: t.within("add", 4, size=-1), LOG
    yield "add without partition values", lambda t: t.within("add", 4, partitionValues=None), LOG
    yield "add with a list of values", lambda t: t.within("add", 4, partitionValues=[1]), LOG
    yield "add is a text", lambda t: t.edit(4, lambda a: {"add": "x"} if "add" in a else a), LOG
    yield "statistics no json", lambda t: t.within("add", 4, stats="{'numRecords'"), LOG
    yield "statistics empty", lambda t: t.within("add", 4, stats=""), LOG
    yield "statistics a list", lambda t: t.within("add", 4, stats="[1]"), LOG
    yield "statistics no text", lambda t: t.within("add", 4, stats=7), LOG
    yield (
        "statistics with words for rows",
        lambda t: t.within("add", 4, stats='{"numRecords": "one"}'),
        LOG,
    )
    yield (
        "statistics with fewer than no rows",
        lambda t: t.within("add", 4, stats='{"numRecords": -1}'),
        LOG,
    )
    yield "remove without path", lambda t: t.write(5, [{"remove": {"dataChange": True}}]), LOG
    yield "transaction without a writer", lambda t: t.write(5, [{"txn": {"version": 1}}]), LOG
    yield (
        "transaction with words for its number",
        lambda t: t.write(5, [{"txn": {"appId": "a", "version": "b"}}]),
        LOG,
    )
    yield "two protocols in one commit", _two("protocol"), LOG
    yield "two metadata in one commit", _two("metaData"), LOG


def _two(kind: str) -> Damage:
    def damage(t: Subject) -> None:
        actions = t.read(0)
        others = [action[kind] for action in actions if kind in action]
        t.write(0, [*actions, *({kind: {**other, "description": "other"}} for other in others)])

    return damage


def _checksums() -> Iterator[tuple[str, Damage, str]]:
    """A last commit cut at a line end, and what the checksum beside it says."""

    def cut(t: Subject, **said: int) -> None:
        _checksum(t, 4, **said)
        t.without("add", 4)

    yield "cut at a line end, files counted", lambda t: cut(t, numFiles=5), LOG
    yield "cut at a line end, bytes counted", lambda t: cut(t, tableSizeBytes=1 << 20), LOG
    yield "checksum of another table", lambda t: _checksum(t, 4, numFiles=3), LOG


def _checksum(t: Subject, version: int, **said: int) -> None:
    (t.log / f"{version:020d}.crc").write_text(json.dumps(said))


def _protocols() -> Iterator[tuple[str, Damage, str]]:
    yield "no protocol", lambda t: t.without("protocol"), SHAPE
    yield "protocol null", lambda t: t.edit(0, _nulled("protocol")), SHAPE
    for reader, writer in ((0, 2), (-1, 2), (None, 2), ("1", "2"), (1.5, 2), (True, 2), (1, -1)):
        name = f"protocol {reader!r}/{writer!r}"
        yield name, _protocol(reader, writer), SHAPE
    yield "protocol without a reader", lambda t: t.within("protocol", minReaderVersion=None), SHAPE
    yield "features that are no list", _features_as_text, SHAPE
    yield "version 3 without features", lambda t: t.protocol(3, 7), SHAPE
    yield (
        "a reader feature that writers do not list",
        lambda t: t.protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=[]),
        SHAPE,
    )
    yield "reader 4", lambda t: t.protocol(4, 7, readerFeatures=[], writerFeatures=[]), FUTURE
    yield "reader 99", lambda t: t.protocol(99, 99), FUTURE
    for feature in ("timeCrystals", "adaptiveMetadata-preview", "redirectReaderWriter-preview"):
        yield f"reader feature {feature}", _feature(feature), FUTURE
    for feature in ("catalogManaged", "catalogOwned-preview"):
        yield feature, _feature(feature), FUTURE
    yield (
        "coordinated commits",
        lambda t: t.within(
            "metaData",
            configuration={"delta.coordinatedCommits.commitCoordinator-preview": "dynamodb"},
        ),
        FUTURE,
    )


def _protocol(reader: Any, writer: Any) -> Damage:
    return lambda t: t.protocol(reader, writer)


def _feature(name: str) -> Damage:
    return lambda t: t.protocol(3, 7, readerFeatures=[name], writerFeatures=[name])


def _nulled(kind: str) -> Callable[[Action], Action]:
    return lambda action: {kind: None} if kind in action else action


def _features_as_text(t: Subject) -> None:
    t.within("protocol", minReaderVersion=3, minWriterVersion=7, readerFeatures="timestampNtz")


def _metadata() -> Iterator[tuple[str, Damage, str]]:
    yield "no metadata", lambda t: t.without("metaData"), SHAPE
    yield "neither protocol nor metadata", _bare, SHAPE
    yield "metadata null", lambda t: t.edit(0, _nulled("metaData")), SHAPE
    yield "metadata without id", lambda t: t.within("metaData", id=None), SHAPE
    yield "metadata without schema", lambda t: t.within("metaData", schemaString=None), SHAPE
    yield "schema empty", lambda t: t.within("metaData", schemaString=""), SHAPE
    yield "schema no json", lambda t: t.within("metaData", schemaString="{struct"), SHAPE
    yield "schema of words", lambda t: t.schema({"type": "struct", "fields": ["id"]}), SHAPE
    yield "schema a list", lambda t: t.schema([]), SHAPE
    yield "schema an array type", lambda t: t.schema({"type": "array"}), SHAPE
    yield "schema without fields", lambda t: t.schema({"type": "struct"}), SHAPE
    yield "no columns", lambda t: t.schema({"type": "struct", "fields": []}), SHAPE
    yield "unknown type", lambda t: t.field(type="quaternion"), SHAPE
    yield (
        "unknown nested type",
        lambda t: t.field(type={"type": "set", "elementType": "long"}),
        SHAPE,
    )
    yield "array without an element", lambda t: t.field(type={"type": "array"}), SHAPE
    yield "map without a value", lambda t: t.field(type={"type": "map", "keyType": "long"}), SHAPE
    nested = {"type": "struct", "fields": [{"name": "x", "type": "quaternion"}]}
    yield "unknown type within", lambda t: t.field(type=nested), SHAPE
    yield "struct without fields", lambda t: t.field(type={"type": "struct"}), SHAPE
    yield "decimal too wide", lambda t: t.field(type="decimal(99,2)"), SHAPE
    yield "decimal without digits", lambda t: t.field(type="decimal(,)"), SHAPE
    yield "type null", lambda t: t.field(type=None), SHAPE
    yield "column without a name", lambda t: t.field(name=None), SHAPE
    yield "column with a number for name", lambda t: t.field(name=3), SHAPE
    yield "column twice", lambda t: t.field(name="V"), SHAPE
    yield "unknown partition column", lambda t: t.within("metaData", partitionColumns=["x"]), SHAPE
    yield (
        "partition columns that are no list",
        lambda t: t.within("metaData", partitionColumns="v"),
        SHAPE,
    )
    yield "unknown format", lambda t: t.within("metaData", format={"provider": "csv"}), FUTURE
    yield (
        "properties that are no map",
        lambda t: t.within("metaData", configuration=["delta.appendOnly"]),
        SHAPE,
    )
    yield (
        "unknown column mapping",
        lambda t: t.within("metaData", configuration={"delta.columnMapping.mode": "magic"}),
        SHAPE,
    )


def _bare(t: Subject) -> None:
    t.without("protocol")
    t.without("metaData")


def _data() -> Iterator[tuple[str, Damage, str]]:
    yield "data file missing", lambda t: t.data(2).unlink(), DATA
    yield "data file empty", lambda t: t.data(2).write_bytes(b""), DATA
    yield "data file torn", lambda t: _cut(t.data(2), 0.5), DATA
    yield "data file grown", lambda t: t.data(2).write_bytes(t.data(2).read_bytes() + b"x"), DATA
    yield "data file a folder", lambda t: _as_folder(t.data(2)), DATA
    yield "data file a dangling link", lambda t: as_link(t.data(2), dangling=True), DATA
    yield "data file foreign, its size right", _foreign, DATA
    yield "size wrong in the log", lambda t: t.within("add", 2, size=123), DATA
    yield "all data files missing", _no_data, DATA
    yield "deletion vector missing", lambda t: _with_vector(t, ""), DATA
    yield "deletion vector torn", lambda t: _with_vector(t, "x"), DATA


def _foreign(t: Subject) -> None:
    t.data(2).write_bytes(b"id,v\n" + b" " * (t.data(2).stat().st_size - 5))


def _no_data(t: Subject) -> None:
    for file in t.path.glob("*.parquet"):
        file.unlink()


def _with_vector(t: Subject, content: str) -> None:
    """A deletion vector on the third row's file, at a path of its own."""
    named = ["deletionVectors"]
    t.protocol(3, 7, readerFeatures=named, writerFeatures=named)
    place = t.path / "vector.bin"
    if content:
        place.write_text(content)
    vector = {
        "storageType": "p",
        "pathOrInlineDv": place.as_uri(),
        "offset": 1,
        "sizeInBytes": 34,
        "cardinality": 1,
    }
    t.within("add", 2, deletionVector=vector)


def _checkpoints() -> Iterator[tuple[str, Damage, str]]:
    yield "checkpoint empty", lambda t: t.checkpoint().write_bytes(b""), CHECKPOINT
    yield "checkpoint torn", lambda t: _cut(t.checkpoint(), 0.7), CHECKPOINT
    yield "checkpoint of words", lambda t: t.checkpoint().write_text("PAR1"), CHECKPOINT
    yield "checkpoint a folder", lambda t: _as_folder(t.checkpoint()), CHECKPOINT
    yield (
        "checkpoint a dangling link",
        lambda t: as_link(t.checkpoint(), dangling=True),
        CHECKPOINT,
    )
    yield (
        "checkpoint without protocol",
        lambda t: t.recheckpoint(lambda rows: [r for r in rows if not r["protocol"]]),
        SHAPE,
    )
    yield (
        "checkpoint without metadata",
        lambda t: t.recheckpoint(lambda rows: [r for r in rows if not r["metaData"]]),
        SHAPE,
    )
    yield "checkpoint without a file", lambda t: t.recheckpoint(_one_file_less), CHECKPOINT
    yield "checkpoint of no rows", lambda t: t.recheckpoint(lambda _: []), CHECKPOINT
    yield "checkpoint of other columns", _other_columns, SHAPE
    yield "checkpoint part missing", _part_missing, CHECKPOINT
    yield "checkpoint part missing, and no pointer", _lost_part, CHECKPOINT
    yield "checkpoint missing, its pointer there", _only_pointer, CHECKPOINT
    yield "pointer beyond the log", lambda t: t.point('{"version": 77, "size": 9}'), CHECKPOINT
    yield "pointer negative", lambda t: t.point('{"version": -3, "size": 9}'), CHECKPOINT
    yield "commit after the checkpoint missing", _gap_behind, LOG
    yield "commit after the checkpoint empty", lambda t: t.commit(4).write_bytes(b""), LOG
    yield (
        "data file of the checkpoint missing",
        lambda t: t.data(1).unlink(),
        DATA,
    )
    yield "data file of the checkpoint torn", lambda t: _cut(t.data(1), 0.5), DATA
    yield "sidecar missing", lambda t: _with_sidecar(t, "missing"), CHECKPOINT
    yield "sidecar torn", lambda t: _with_sidecar(t, "torn"), CHECKPOINT
    yield "sidecar foreign", lambda t: _with_sidecar(t, "foreign"), CHECKPOINT


def _one_file_less(rows: list[Action]) -> list[Action]:
    added = next(row for row in rows if row["add"])
    return [row for row in rows if row is not added]


def _other_columns(t: Subject) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), t.checkpoint())
    (t.log / "_last_checkpoint").unlink()


def _part_missing(t: Subject) -> None:
    """The first of two parts, all that is left of a checkpoint and of the commits behind it."""
    t.checkpoint().rename(t.log / f"{3:020d}.checkpoint.{1:010d}.{2:010d}.parquet")
    t.point('{"version": 3, "size": 9, "parts": 2}')
    for version in range(4):
        t.commit(version).unlink()


def _lost_part(t: Subject) -> None:
    _part_missing(t)
    (t.log / "_last_checkpoint").unlink()


def _only_pointer(t: Subject) -> None:
    t.checkpoint().unlink()


def _gap_behind(t: Subject) -> None:
    t.append()
    t.commit(4).unlink()


def _with_sidecar(t: Subject, state: str) -> None:
    """The checkpoint as a v2 one, its files in a sidecar."""
    version2_checkpoint(t, t.checkpoint().name)
    sidecar = next((t.log / "_sidecars").iterdir())
    if state == "missing":
        sidecar.unlink()
    elif state == "torn":
        _cut(sidecar, 0.5)
    else:
        sidecar.write_bytes(b" " * sidecar.stat().st_size)


def version2_checkpoint(t: Subject, name: str) -> None:
    """Put a v2 checkpoint in place of the classic one, under a name."""
    classic = pq.read_table(t.checkpoint())
    rows = classic.to_pylist()
    adds = [row for row in rows if row["add"]]
    files = pa.Table.from_pylist(
        [{"add": row["add"]} for row in adds], schema=pa.schema([classic.schema.field("add")])
    )
    (t.log / "_sidecars").mkdir()
    sidecar = t.log / "_sidecars" / "3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet"
    pq.write_table(files, sidecar)
    named = ["v2Checkpoint"]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": named,
        "writerFeatures": named,
    }
    metadata = next(row["metaData"] for row in rows if row["metaData"])
    place = {
        "path": sidecar.name,
        "sizeInBytes": sidecar.stat().st_size,
        "modificationTime": 1_700_000_000_000,
    }
    top: list[Action] = [
        {"checkpointMetadata": {"version": 3}},
        {"protocol": protocol},
        {"metaData": metadata},
        {"sidecar": place},
    ]
    t.checkpoint().unlink()
    if name.endswith(".json"):
        (t.log / name).write_text("\n".join(json.dumps(plain(action)) for action in top) + "\n")
    else:
        fields = [
            pa.field("checkpointMetadata", pa.struct([("version", pa.int64())])),
            pa.field(
                "protocol",
                pa.struct(
                    [
                        ("minReaderVersion", pa.int32()),
                        ("minWriterVersion", pa.int32()),
                        ("readerFeatures", pa.list_(pa.string())),
                        ("writerFeatures", pa.list_(pa.string())),
                    ]
                ),
            ),
            classic.schema.field("metaData"),
            classic.schema.field("add"),
            pa.field(
                "sidecar",
                pa.struct(
                    [
                        ("path", pa.string()),
                        ("sizeInBytes", pa.int64()),
                        ("modificationTime", pa.int64()),
                    ]
                ),
            ),
        ]
        pq.write_table(pa.Table.from_pylist(top, schema=pa.schema(fields)), t.log / name)
    t.point(json.dumps({"version": 3, "size": len(top), "numOfAddFiles": len(adds)}))


def plain(action: Action) -> Action:
    """An action as JSON has it: a list of pairs is a map there."""
    for body in action.values():
        for key, value in body.items():
            if key in ("configuration", "options"):
                body[key] = dict(value or ())
            elif key == "format":
                body[key] = {"provider": value["provider"], "options": {}}
    return {kind: {k: v for k, v in body.items() if v is not None} for kind, body in action.items()}


def _misspelled_pointers() -> Iterator[tuple[str, Damage]]:
    yield "pointer no json", lambda t: t.point("{version")
    yield "pointer empty", lambda t: t.point("")
    yield "pointer a list", lambda t: t.point("[3]")
    yield "pointer without version", lambda t: t.point('{"size": 9}')
    yield "pointer with words", lambda t: t.point('{"version": "three", "size": 9}')
    yield "pointer a folder", lambda t: _as_folder(t.log / "_last_checkpoint")


def _strange_and_sound() -> Iterator[tuple[str, Damage]]:
    """What others leave in their logs, and every reader must cope with."""
    yield "as it is", lambda _: None
    yield "first commit a link", lambda t: as_link(t.commit(0))
    yield "last commit a link", lambda t: as_link(t.commit(4))
    yield "no commit says who made it", _anonymous
    yield "one commit does not say who made it", lambda t: t.without("commitInfo", 2)
    yield "who made it is no object", lambda t: t.within("commitInfo", 2, operationMetrics=[1])
    yield "an unknown action", lambda t: t.write(2, [*t.read(2), {"whatever": {"it": "is"}}])
    yield "an unknown domain", _with_domain
    yield (
        "blank lines between actions",
        lambda t: t.commit(2).write_bytes(t.commit(2).read_bytes().replace(b"\n", b"\n\n")),
    )
    yield (
        "line ends of another system",
        lambda t: t.commit(2).write_bytes(t.commit(2).read_bytes().replace(b"\n", b"\r\n")),
    )
    yield "the same protocol twice", lambda t: t.write(0, [*t.read(0), t.read(0)[0]])
    yield "a number for the table's id", lambda t: t.within("metaData", id=7)
    yield "no statistics", lambda t: t.within("add", 2, stats=None)
    yield (
        "a feature only writers must know",
        lambda t: t.protocol(1, 7, writerFeatures=["appendOnly", "timeCrystals"]),
    )
    yield "a checksum that says nothing", lambda t: (t.log / f"{4:020d}.crc").write_text("{}")
    yield "a checksum that is right", lambda t: _checksum(t, 4, numFiles=5)
    yield "a checksum that cannot be read", lambda t: (t.log / f"{4:020d}.crc").write_text("?")
    yield "other files in the log", _other_files
    yield "compacted commits", lambda t: compacted(t, 1, 3)


def _sound_behind_a_checkpoint() -> Iterator[tuple[str, Damage]]:
    yield "as it is", lambda _: None
    yield "a gap before the checkpoint", lambda t: t.commit(1).unlink()
    yield "an empty commit before the checkpoint", lambda t: t.commit(1).write_bytes(b"")
    yield "a torn commit before the checkpoint", lambda t: _cut(t.commit(1), 0.5)
    yield "a commit before the checkpoint that is torn in its first line", _torn_at_once
    yield "a folder before the checkpoint", lambda t: _as_folder(t.commit(1))
    yield "a v2 checkpoint of a classic name", lambda t: version2_checkpoint(t, t.checkpoint().name)
    for kind in ("json", "parquet"):
        name = f"{3:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.{kind}"
        yield f"a v2 checkpoint in {kind}", _version2(name)
    yield (
        "a checkpoint without statistics",
        lambda t: pq.write_table(
            pq.read_table(t.checkpoint()), t.checkpoint(), write_statistics=False
        ),
    )
    yield "a checkpoint in two parts", _in_two_parts
    yield (
        "a part too few beside the whole",
        lambda t: shutil.copy(
            t.checkpoint(), t.log / f"{3:020d}.checkpoint.{1:010d}.{2:010d}.parquet"
        ),
    )
    yield "a part too few and all commits", _unfinished_later


def _torn_at_once(t: Subject) -> None:
    t.commit(1).write_text('{"commitInfo": {"operation": "WRI')


def _version2(name: str) -> Damage:
    return lambda t: version2_checkpoint(t, name)


def _anonymous(t: Subject) -> None:
    for version in range(ROWS):
        t.without("commitInfo", version)


def _with_domain(t: Subject) -> None:
    t.protocol(1, 7, writerFeatures=["domainMetadata"])
    domain = {"domain": "somebody.else", "configuration": "{}", "removed": False}
    t.write(2, [*t.read(2), {"domainMetadata": domain}])


def _other_files(t: Subject) -> None:
    for name in ("notes.json", "_commit_x.json.tmp", ".hidden", "00000000000000000009.json.tmp"):
        (t.log / name).write_text("{}")
    (t.log / "_staged_commits").mkdir()


def compacted(t: Subject, first: int, last: int, *, most: int | None = None) -> None:
    """Put what some commits say, or a part of it, into one compacted file."""
    actions = [
        action
        for version in range(first, last + 1)
        for action in t.read(version)
        if "commitInfo" not in action
    ]
    lines = "".join(f"{json.dumps(action)}\n" for action in actions[:most])
    (t.log / f"{first:020d}.{last:020d}.compacted.json").write_text(lines)


def _in_two_parts(t: Subject) -> None:
    whole = pq.read_table(t.checkpoint())
    t.checkpoint().unlink()
    for part, rows in ((1, whole.slice(0, 3)), (2, whole.slice(3))):
        pq.write_table(rows, t.log / f"{3:020d}.checkpoint.{part:010d}.{2:010d}.parquet")
    t.point(json.dumps({"version": 3, "size": whole.num_rows, "parts": 2}))


def _unfinished_later(t: Subject) -> None:
    shutil.copy(t.checkpoint(), t.log / f"{4:020d}.checkpoint.{1:010d}.{2:010d}.parquet")


def sound_ones() -> tuple[Entry, ...]:
    """Logs that are strange and sound: five rows in five commits."""
    found = [Entry(name, PLAIN, change, "") for name, change in _strange_and_sound()]
    behind = (*_sound_behind_a_checkpoint(), *_misspelled_pointers())
    return (*found, *(Entry(name, POINTED, change, "") for name, change in behind))


def catalogue() -> tuple[Entry, ...]:
    """Every damage there is."""
    plain_ones = (_commits, _actions, _checksums, _protocols, _metadata, _data)
    entries = [
        Entry(name, PLAIN, damage, code) for group in plain_ones for name, damage, code in group()
    ]
    entries += [Entry(name, POINTED, damage, code) for name, damage, code in _checkpoints()]
    return tuple(entries)


def make(entry_base: str, path: Path) -> None:
    """The good table that an entry damages."""
    (pointed_table if entry_base == POINTED else plain_table)(path)


def tree(path: Path) -> dict[str, tuple[int, int]]:
    """Every file below a folder, so that one can see that nothing was touched."""
    return {
        str(file.relative_to(path)): (os.lstat(file).st_size, os.lstat(file).st_mtime_ns)
        for file in sorted(path.rglob("*"))
    }
