"""Whether a log is sound is decided in one place, before any engine is asked (P11)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from deltaworks.contracts.context import ProjectContext
from deltaworks.engines.deltars.log import commit_facts, data_presence, soundness
from deltaworks.engines.deltars.log.commits import check_log
from deltaworks.engines.deltars.log.deletion_vectors import check_vectors
from deltaworks.engines.deltars.log.file_names import log_names
from deltaworks.engines.deltars.log.soundness import sound_log
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.deltars.write.restore import restore
from deltaworks.engines.spark.delta.first_load import tidied
from deltaworks.errors import (
    CommitConflict,
    CommitUnknown,
    DamagedCheckpoint,
    DamagedData,
    DamagedTable,
    DeltaworksError,
    EngineError,
    UnreadableTable,
    UnsupportedOperation,
    UnsupportedTable,
    VersionNotFound,
)
from deltaworks.sinks.delta import DeltaSink
from deltaworks.sources.delta import DeltaSource
from deltaworks.sources.delta_changes import DeltaChangesSource
from deltaworks.storage.table_path import require_free
from deltaworks.streams.opening import stream_into
from tests.unit.damages import (
    DATA,
    PLAIN,
    POINTED,
    Entry,
    Subject,
    catalogue,
    compacted,
    plain_table,
    pointed_table,
    sound_ones,
    tree,
    version2_checkpoint,
)
from tests.workbench import Workbench

INNER_WORDS = (
    "Kernel",
    "kernel",
    "Arrow",
    "Json error",
    "Traceback",
    "java.",
    "org.apache",
    "rust",
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The tables that are damaged, made once."""
    root = tmp_path_factory.mktemp("good")
    plain_table(root / PLAIN)
    pointed_table(root / POINTED)
    return {PLAIN: root / PLAIN, POINTED: root / POINTED}


def put(desk: Workbench, good: dict[str, Path], entry: Entry) -> Subject:
    shutil.copytree(good[entry.base], desk.table("t"))
    subject = Subject(desk.table("t"))
    entry.damage(subject)
    return subject


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.name)
def test_every_damage_is_one_refusal_with_a_code_and_the_table_untouched(
    desk: Workbench, good: dict[str, Path], entry: Entry
) -> None:
    subject = put(desk, good, entry)
    before = tree(subject.path)
    for command in (("show", "t"), ("history", "t")):
        answered = desk.cli("table", *command, "--json")
        told = answered.stdout + answered.stderr
        assert answered.code == 4, told
        assert answered.json["error"]["code"] == entry.code, told
        assert answered.json["error"]["hint"], told
        assert not [word for word in INNER_WORDS if word in told], told
    for verb in verbs(
        ProjectContext(root=desk.root, warehouse=str(desk.root / "warehouse")), entry
    ):
        with pytest.raises(DeltaworksError) as caught:
            verb()
        assert caught.value.code == entry.code
    assert tree(subject.path) == before


def verbs(project_ctx: ProjectContext, entry: Entry) -> Iterator[Callable[[], object]]:
    """What a run, a preview, a restore and an undo ask before they start Spark."""
    yield lambda: DeltaSource(table="t").bounds(project_ctx, None)
    yield lambda: DeltaChangesSource(table="t", starting_version=0).bounds(project_ctx, None)
    yield lambda: DeltaRsEngine().info(str(project_ctx.root / "warehouse" / "t"))
    if entry.code != DATA and not entry.name.startswith(("cut", "checksum")):
        yield lambda: DeltaSink(table="t").state(project_ctx, "anyone")
        yield lambda: DeltaRsEngine().open(str(project_ctx.root / "warehouse" / "t"), 0)


@pytest.mark.parametrize("entry", sound_ones(), ids=lambda entry: f"{entry.base}: {entry.name}")
def test_what_is_only_strange_is_read_with_every_row_and_version(
    desk: Workbench, good: dict[str, Path], entry: Entry
) -> None:
    subject = put(desk, good, entry)
    shown = desk.cli("table", "show", "t", "--json")
    assert shown.code == 0, shown.stdout
    assert (shown.json["rows"], shown.json["version"], shown.json["files"]) == (5, 4, 5)
    there = [v for v in range(5) if subject.commit(v).is_file()]
    told = desk.cli("table", "history", "t", "--json").json["commits"]
    assert [commit["version"] for commit in told] == there[::-1]
    assert all(commit["timestamp"] > "2020" for commit in told)
    newest = desk.cli("table", "history", "t", "--limit", "2", "--json").json["commits"]
    assert newest == told[:2]


@pytest.mark.parametrize("name", ["a#b", "a?b", "a b", "ü", "a'b"])
def test_a_folder_may_be_called_what_it_likes(desk: Workbench, name: str) -> None:
    place = desk.root / name
    plain_table(place)
    assert desk.cli("table", "show", str(place), "--json").json["rows"] == 5
    told = desk.cli("table", "history", str(place), "--json").json["commits"]
    assert [commit["version"] for commit in told] == [4, 3, 2, 1, 0]


def test_a_folder_with_a_percent_sign_is_never_another_one(tmp_path: Path) -> None:
    plain_table(tmp_path / "a b")
    plain_table(tmp_path / "made")
    place = (tmp_path / "made").rename(tmp_path / "a%20b")
    own = next(a["metaData"]["id"] for a in Subject(place).read(0) if "metaData" in a)
    found = DeltaRsEngine().info(str(place))
    assert found is not None
    assert (found.table_id, found.version, found.rows) == (own, 4, None)
    with pytest.raises(UnsupportedOperation, match="%"):
        DeltaRsEngine(only_sure=True).info(str(place))
    with pytest.raises(UnsupportedOperation, match="%"):
        DeltaRsEngine().open(str(place))


@pytest.mark.parametrize(
    ("reader", "writer", "features"),
    [
        (3, 7, {"readerFeatures": ["geospatial"], "writerFeatures": ["geospatial"]}),
        (1, 0, {}),
    ],
    ids=["a feature that only Spark knows", "a protocol older than delta-rs"],
)
def test_a_table_that_only_spark_reads_is_known_by_its_log(
    tmp_path: Path, reader: int, writer: int, features: dict[str, list[str]]
) -> None:
    pointed_table(tmp_path)
    subject = Subject(tmp_path)
    subject.write(4, [*subject.read(4), {"txn": {"appId": "me", "version": 8}}])
    versions = {"minReaderVersion": reader, "minWriterVersion": writer}
    subject.write(5, [{"protocol": {**versions, **features}}])
    engine = DeltaRsEngine()
    found, look = engine.info(str(tmp_path)), engine.look(str(tmp_path))
    assert found is not None
    assert look is not None
    assert found.schema.columns == ("id", "v")
    assert (found.version, found.rows, found.reader_version) == (5, None, reader)
    assert set(found.features) == {name for names in features.values() for name in names}
    assert (look.transaction("me"), look.transaction("you")) == (8, None)
    assert [record.version for record in look.history()] == [5, 4, 3, 2, 1, 0]
    with pytest.raises(UnsupportedOperation, match="delta-rs"):
        look.opened()
    before = engine.info(str(tmp_path), version=4)
    assert before is not None
    assert before.rows == 5


def test_a_table_that_asks_writers_for_the_unknown_is_read_and_not_written(
    desk: Workbench,
) -> None:
    plain_table(desk.table("t"))
    project_ctx = ProjectContext(root=desk.root, warehouse=str(desk.root / "warehouse"))
    subject = Subject(desk.table("t"))
    for version, features in ((7, ["timeCrystals"]), (9, [])):
        subject.protocol(1, version, writerFeatures=features)
        assert DeltaSource(table="t").bounds(project_ctx, None).position["version"] == 4
        with pytest.raises(UnsupportedTable, match="cannot be written"):
            DeltaSink(table="t").state(project_ctx, "anyone")


def test_where_compacted_commits_say_something_else_only_spark_is_asked(tmp_path: Path) -> None:
    plain_table(tmp_path)
    subject, engine = Subject(tmp_path), DeltaRsEngine()
    broken = f"{2:020d}.{3:020d}.compacted.json"
    for damage in (
        lambda: compacted(subject, 1, 3, most=1),
        lambda: compacted(subject, 3, 4, most=0),
        lambda: (subject.log / broken).write_text('{"add": {"no": "path"}}'),
    ):
        damage()
        with pytest.raises(UnsupportedOperation, match="compacted commits"):
            engine.count(str(tmp_path))
        with pytest.raises(UnsupportedOperation, match="compacted commits"):
            DeltaRsEngine(only_sure=True).info(str(tmp_path))
        with pytest.raises(UnsupportedOperation, match="compacted commits"):
            restore(str(tmp_path), 0, base=1, note={})
        found = engine.info(str(tmp_path))
        assert found is not None
        assert found.rows is None
        for file in subject.log.glob("*.compacted.json"):
            file.unlink()
    assert engine.count(str(tmp_path)) == 5


def test_compacted_commits_are_compared_by_what_they_come_to(tmp_path: Path) -> None:
    pointed_table(tmp_path)
    subject = Subject(tmp_path)
    DeltaTable(str(tmp_path)).delete("id = 4")
    protocol = next(action for action in subject.read(0) if "protocol" in action)
    subject.write(6, [{"txn": {"appId": "me", "version": 1}}, protocol])
    compacted(subject, 4, 6)
    log = check_log(str(tmp_path))
    assert log is not None
    assert (log.disputed, log.checkpoint, log.oldest) == ((), 3, 0)
    compacted(subject, 2, 4)  # half of it is in the checkpoint: nobody can compare it
    log = check_log(str(tmp_path))
    assert log is not None
    assert log.disputed == (f"{2:020d}.{4:020d}.compacted.json",)


@pytest.mark.parametrize(
    "said",
    [
        {"stats": '{"numRecords":1,"minValues":{"id":7},"maxValues":{"id":7}}'},
        {"partitionValues": {"id": "7"}},
        {"size": 1},
    ],
)
def test_compacted_commits_that_tell_other_things_of_a_file_are_noticed(
    tmp_path: Path, said: dict[str, object]
) -> None:
    plain_table(tmp_path / "t")
    subject = Subject(tmp_path / "t")
    kept = subject.commit(2).read_bytes()
    subject.within("add", 2, **said)
    compacted(subject, 1, 3)
    subject.commit(2).write_bytes(kept)
    log = check_log(str(subject.path))
    assert log is not None
    assert log.disputed
    with pytest.raises(UnsupportedOperation, match="compacted commits"):
        stream_into(str(subject.path), writer_id="w")


INLINE = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
"""Rows 3, 4, 7, 11, 18 and 29 of a file."""


@pytest.mark.parametrize("switch", ["true", "True", "false", None])
def test_rows_marked_as_deleted_are_not_counted_whatever_the_property_says(
    desk: Workbench, switch: str | None
) -> None:
    write_deltalake(str(desk.table("t")), pa.table({"id": list(range(40))}))
    subject, named = Subject(desk.table("t")), ["deletionVectors"]
    subject.protocol(3, 7, readerFeatures=named, writerFeatures=named)
    if switch is not None:
        subject.within("metaData", configuration={"delta.enableDeletionVectors": switch})
    vector = {
        "storageType": "i",
        "pathOrInlineDv": INLINE,
        "sizeInBytes": 44,
        "cardinality": 6,
    }
    subject.within("add", deletionVector=vector)
    project_ctx = ProjectContext(root=desk.root, warehouse=str(desk.root / "warehouse"))
    for _ in range(2):
        assert desk.cli("table", "show", "t", "--json").json["rows"] == 34
        assert DeltaSource(table="t").bounds(project_ctx, None).position["rows"] is None
        DeltaTable(str(subject.path)).create_checkpoint()  # the mark is in there now
    pq.write_table(
        pq.read_table(subject.checkpoint(0)), subject.checkpoint(0), write_statistics=False
    )
    assert desk.cli("table", "show", "t", "--json").json["rows"] == 34


def test_a_table_whose_vectors_are_gone_is_counted_from_its_log(tmp_path: Path) -> None:
    plain_table(tmp_path)
    named = ["deletionVectors"]
    Subject(tmp_path).protocol(3, 7, readerFeatures=named, writerFeatures=named)
    found = DeltaRsEngine().info(str(tmp_path))
    assert found is not None
    assert found.rows == 5


def test_where_nothing_was_ever_committed_there_is_no_log(tmp_path: Path) -> None:
    assert sound_log(str(tmp_path)) is None
    (tmp_path / "_delta_log").mkdir()
    assert check_log(str(tmp_path)) is None
    assert DeltaRsEngine().info(str(tmp_path)) is None


def test_of_a_large_commit_only_the_lines_are_read_that_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commit_facts, "_LARGE", 10)
    vector = '"deletionVector":{"storageType":"i"}'
    lines = ['{"txn":{"appId":"a","version":3}}', '{"add":{"path":"x",' + vector + "}}"]
    facts = commit_facts.facts_of("\n".join(lines).encode())
    assert (facts.problem, facts.has_vectors, dict(facts.txns)) == ("", True, {"a": 3})
    torn = commit_facts.facts_of(b'{"add":{"path":"x"}}\n{"add":{"path":"y"')
    assert torn.problem == "line 2 of {} cannot be read"


def test_a_version_that_can_no_longer_be_read_is_told_with_the_range(tmp_path: Path) -> None:
    pointed_table(tmp_path)
    engine, subject = DeltaRsEngine(), Subject(tmp_path)
    old = engine.info(str(tmp_path), version=1)
    assert old is not None
    assert old.rows == 2
    subject.commit(0).unlink()
    for version in (1, 9):
        with pytest.raises(VersionNotFound) as caught:
            engine.info(str(tmp_path), version=version)
        assert caught.value.hint == "its versions go from 3 to 4"


def test_a_commit_that_was_cleaned_up_since_it_was_listed_is_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain_table(tmp_path)
    known = log_names(str(tmp_path))
    assert known is not None
    more = replace(known, commits=(*known.commits, 5))
    monkeypatch.setattr(soundness, "log_names", lambda _: more)
    with pytest.raises(CommitConflict):
        check_log(str(tmp_path))


def test_files_elsewhere_are_left_to_who_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a b.parquet").write_bytes(b"no parquet")
    here = (tmp_path / "a b.parquet").as_uri()
    paths = ["s3://lake/t/x.parquet", "a%20b.parquet", here]
    files = pa.table({"path": paths, "size_bytes": [7, 10, 10]})
    with pytest.raises(DamagedData, match="is not a Parquet file"):
        data_presence.check_data(str(tmp_path), files)
    monkeypatch.setattr(data_presence, "_MAX_OPENED", 1)
    data_presence.check_data(str(tmp_path), files)


def test_a_sidecar_may_lie_elsewhere(tmp_path: Path) -> None:
    pointed_table(tmp_path / "t")
    subject = Subject(tmp_path / "t")
    name = f"{3:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    version2_checkpoint(subject, name)
    sidecar = next((subject.log / "_sidecars").iterdir())
    moved = sidecar.rename(tmp_path / sidecar.name)
    text = (subject.log / name).read_text()
    (subject.log / name).write_text(text.replace(sidecar.name, moved.as_uri()))
    log = check_log(str(subject.path))
    assert log is not None
    assert log.version == 4


@pytest.mark.parametrize("was_there", [False, True])
def test_a_first_load_that_fails_leaves_nothing_behind(tmp_path: Path, *, was_there: bool) -> None:
    place = tmp_path / "t"
    if was_there:
        place.mkdir()

    def load() -> None:
        (place / "_delta_log").mkdir(parents=True)
        (place / "part-0.parquet").write_text("")
        raise EngineError("it did not work")

    with pytest.raises(EngineError), tidied(str(place), before=require_free(str(place))):
        load()
    assert list(tmp_path.iterdir()) == ([place] if was_there else [])
    assert not was_there or list(place.iterdir()) == []


def test_a_first_load_that_fails_takes_nothing_of_others_along(tmp_path: Path) -> None:
    place = tmp_path / "t"
    (place / "_delta_log").mkdir(parents=True)  # what a run that died left behind
    (place / "kept").mkdir()
    (place / "kept" / "part-9.parquet").write_text("theirs")
    (place / "elsewhere").symlink_to(tmp_path)
    before = tree(place)

    def load() -> None:
        (place / "kept" / "part-0.parquet").write_text("ours")
        (place / "day=1").mkdir()
        (place / "day=1" / "part-1.parquet").write_text("ours")
        (place / "link").symlink_to(tmp_path)
        raise EngineError("it did not work")

    with pytest.raises(EngineError), tidied(str(place), before=require_free(str(place))):
        load()
    assert tree(place).keys() == before.keys()


def test_a_first_load_that_landed_all_the_same_stays(tmp_path: Path) -> None:
    def load() -> None:
        plain_table(tmp_path / "t")
        raise EngineError("the answer was lost")

    with pytest.raises(EngineError), tidied(str(tmp_path / "t")):
        load()
    assert DeltaRsEngine().count(str(tmp_path / "t")) == 5


def test_a_checkpoint_may_be_all_that_is_left(tmp_path: Path) -> None:
    pointed_table(tmp_path)
    for version in range(5):
        Subject(tmp_path).commit(version).unlink()
    log, found = check_log(str(tmp_path)), DeltaRsEngine().info(str(tmp_path))
    assert log is not None
    assert found is not None
    assert (log.version, log.oldest, found.version, found.rows) == (3, 3, 3, 4)
    assert DeltaRsEngine().history(str(tmp_path)) == ()


DEEP = "[" * 20_000


@pytest.mark.parametrize(
    "line",
    [
        *("1", "null", "[]", '"x"', "{", DEEP),
        *('{"metaData": 7}', '{"protocol": "x"}', '{"sidecar": 7}', '{"sidecar": {}}'),
        *('{"txn": {"version": 1}}', '{"add": 7}', '{"add": {"path": 3}}'),
    ],
)
def test_a_checkpoint_in_json_is_read_as_carefully_as_a_commit(tmp_path: Path, line: str) -> None:
    pointed_table(tmp_path / "t")
    table = Subject(tmp_path / "t")
    name = f"{3:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    version2_checkpoint(table, name)
    with (table.log / name).open("a") as checkpoint:
        checkpoint.write(f"{line}\n")
    with pytest.raises(DamagedCheckpoint):
        DeltaRsEngine().info(str(table.path))


@pytest.mark.parametrize("kind", ["protocol", "metaData", "txn"])
def test_a_checkpoint_whose_actions_are_no_actions_is_refused(tmp_path: Path, kind: str) -> None:
    pointed_table(tmp_path / "t")
    table = Subject(tmp_path / "t")
    whole = pq.read_table(table.checkpoint())
    wrong = pa.array(["x"] * whole.num_rows)
    place = whole.schema.get_field_index(kind)
    rest = whole.drop_columns([kind]) if place >= 0 else whole
    pq.write_table(rest.append_column(kind, wrong), table.checkpoint())
    with pytest.raises(DamagedCheckpoint):
        sound_log(str(table.path))


def test_what_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    plain_table(tmp_path / "t")
    table = Subject(tmp_path / "t")
    kept = table.commit(0).read_text()
    kind = '{"type":"array","containsNull":true,"elementType":' * 600 + '"long"' + "}" * 600
    schema = f'{{"type":"struct","fields":[{{"name":"id","type":{kind}}}]}}'
    table.within("metaData", schemaString=schema)
    with pytest.raises(UnreadableTable):
        sound_log(str(table.path))
    table.commit(0).write_text(kept)
    table.within("add", 4, stats=DEEP)
    with pytest.raises(DamagedTable):
        sound_log(str(table.path))
    table.commit(4).write_text(DEEP)
    with pytest.raises(DamagedTable):
        sound_log(str(table.path))


@pytest.mark.parametrize("path", ["\0", "%00", "a%00b.parquet", "_delta_log/x/y", "{file}/x"])
def test_a_data_file_under_a_name_that_no_file_has_is_missing(tmp_path: Path, path: str) -> None:
    plain_table(tmp_path / "t")
    table = Subject(tmp_path / "t")
    table.within("add", 4, path=path.format(file=table.data(1).name))
    with pytest.raises(DamagedData, match="is missing"):
        DeltaRsEngine().info(str(table.path))


VECTOR_ID = "ab^-aqEH.-t@S}K{vb[*k^"
VECTOR_FILE = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
"""A vector's place, as the log tells it and as the folder has it."""


def vector(**said: object) -> dict[str, object]:
    whole = {"storageType": "u", "pathOrInlineDv": VECTOR_ID, "offset": 4, "sizeInBytes": 40}
    return {**whole, "cardinality": 1, **said}


def with_vectors(path: Path, **said: object) -> Subject:
    """A table with a deletion vector in its third commit, whose file is whole."""
    plain_table(path)
    table, named = Subject(path), ["deletionVectors"]
    table.protocol(3, 7, readerFeatures=named, writerFeatures=named)
    table.within("add", 2, deletionVector=vector(**said))
    place = path / VECTOR_FILE
    place.parent.mkdir()
    place.write_bytes(bytes(52))
    return table


def in_checkpoint(table: Subject) -> None:
    DeltaTable(str(table.path)).create_checkpoint()


def in_checkpoint_of_json(table: Subject) -> None:
    """The same as a v2 checkpoint in JSON, its files in a sidecar."""
    in_checkpoint(table)
    table.checkpoint(4).rename(table.checkpoint())
    version2_checkpoint(table, f"{3:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json")
    table.commit(4).unlink()


@pytest.mark.parametrize("folded", [lambda _: None, in_checkpoint, in_checkpoint_of_json])
def test_a_vector_that_a_file_needs_must_be_there_and_whole(
    tmp_path: Path, folded: Callable[[Subject], None]
) -> None:
    table = with_vectors(tmp_path / "t")
    folded(table)
    assert DeltaRsEngine().info(str(table.path)) is not None
    (table.path / VECTOR_FILE).write_bytes(bytes(51))
    with pytest.raises(DamagedData, match="is torn"):
        DeltaRsEngine().info(str(table.path))
    (table.path / VECTOR_FILE).unlink()
    with pytest.raises(DamagedData, match="is missing"):
        DeltaRsEngine().info(str(table.path))


def test_a_vector_that_no_file_needs_any_more_may_be_gone(tmp_path: Path) -> None:
    table = with_vectors(tmp_path / "t")
    (table.path / VECTOR_FILE).unlink()
    gone = {"path": table.data(2).name, "dataChange": True, "deletionVector": vector()}
    table.write(5, [{"remove": gone}])
    assert DeltaRsEngine().info(str(table.path)) is not None


@pytest.mark.parametrize(
    "said", [{"pathOrInlineDv": "short"}, {"pathOrInlineDv": "é" * 20}, {"offset": "x"}]
)
def test_a_vector_whose_place_makes_no_sense_is_refused(
    tmp_path: Path, said: dict[str, object]
) -> None:
    table = with_vectors(tmp_path / "t", **said)
    log = sound_log(str(table.path))
    assert log is not None
    with pytest.raises(DamagedData, match="cannot be found"):
        check_vectors(log)


def test_a_vector_in_a_bucket_is_left_to_who_reads_it(tmp_path: Path) -> None:
    table = with_vectors(tmp_path / "t", storageType="p", pathOrInlineDv="s3://lake/v.bin")
    log = sound_log(str(table.path))
    assert log is not None
    check_vectors(log)


def test_what_is_nested_without_end_hides_no_other_commit(tmp_path: Path) -> None:
    pointed_table(tmp_path / "t")
    table = Subject(tmp_path / "t")
    table.commit(1).write_text(f'{{"commitInfo": {DEEP}')  # before the checkpoint: nobody reads it
    found = DeltaRsEngine().history(str(table.path))
    assert [record.version for record in found] == [4, 3, 2, 1, 0]
    name = f"{4:020d}.{4:020d}.compacted.json"
    (table.log / name).write_text(DEEP)
    log = check_log(str(table.path))
    assert log is not None
    assert log.disputed == (name,)
    (table.log / name).unlink()
    with stream_into(str(table.path), writer_id="w") as sink:
        table.commit(5).write_text(DEEP)
        sink.write(pa.table({"id": [7], "v": ["x"]}))
        with pytest.raises(CommitUnknown, match="is damaged"):
            sink.commit_epoch(1)
