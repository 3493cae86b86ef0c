"""Columns and tables of any name: nothing is lost, whatever the mode (S4, S5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaworks.errors import SchemaMismatch, UnsupportedOperation
from deltaworks.streams.maintenance import MaintenancePlan
from deltaworks.streams.opening import NewTable, stream_into
from tests.streams.tables import QUICK, SCHEMA, opened

HOSTILE = (
    "a.b",
    ".a",
    "a.",
    "..",
    "a`b",
    "`a`",
    "a[0]",
    "[0]",
    "a#b",
    "a?b",
    "a b",
    " a",
    "a'b",
    'a"b',
    "a\\b",
    "a/b",
    "a%20b",
    "a*b",
    "a:b",
    "Select",
    "SOURCE",
    "target",
    "TAble",
    "group",
    "Größe",
    "\U0001f600",
    "列",
    "$a",
    "@",
    "-",
    "1",
    "NULL",
    "__gone",
    "element",
    "list",
    "key",
    "place",
)
MODES: dict[str, dict[str, Any]] = {
    "append": {"mode": "append"},
    "joined": {"mode": "append", "upkeep": MaintenancePlan(checkpoint_every=1, compact_files=2)},
    "overwrite_partitions": {"mode": "overwrite_partitions"},
    "upsert": {"mode": "upsert"},
    "changelog": {"mode": "changelog", "op_column": "op."},
}
NAMES = st.lists(
    st.sampled_from(HOSTILE), min_size=4, max_size=5, unique_by=lambda name: name.lower()
)


def found(path: str, names: list[str]) -> list[dict[str, Any]]:
    """The rows of a table, column by column: no name goes through SQL."""
    rows = DeltaTable(path).to_pyarrow_table()
    listed = ({name: row[name] for name in names} for row in rows.to_pylist())
    return sorted(listed, key=str)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(names=NAMES, mode=st.sampled_from(sorted(MODES)), within=st.sampled_from(HOSTILE))
def test_every_column_of_every_name_arrives(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], mode: str, within: str
) -> None:
    folder = tmp_path_factory.mktemp("names")
    key, part, value, nested, *new = names
    schema = pa.schema(
        [
            (key, pa.int64()),
            (part, pa.string()),
            (value, pa.string()),
            (nested, pa.struct([(within, pa.float64())])),
        ]
    )
    options = {**MODES[mode], **({"keys": [key]} if mode in ("upsert", "changelog") else {})}
    partition_by = (part,) if mode != "upsert" else ()
    options["evolution"] = "add_columns"
    model: dict[int, dict[str, Any]] = {}
    with opened(folder, schema=schema, partition_by=partition_by, **options) as sink:
        for epoch in range(4):
            row = {key: epoch // 2, part: f"p{epoch // 2}", value: f"v{epoch}"}
            row[nested] = {within: float(epoch)}
            kinds = schema
            for name in new if epoch >= 2 else ():
                row[name] = f"new {epoch}"
                kinds = kinds.append(pa.field(name, pa.string()))
            model[epoch if options["mode"] == "append" else epoch // 2] = row
            rows = pa.Table.from_pylist([row], kinds)
            if mode == "changelog":
                rows = rows.append_column("op.", pa.array(["u"]))
            sink.write(rows)
            sink.commit_epoch(epoch)
    expected = [{name: row.get(name) for name in names} for row in model.values()]
    assert found(f"{folder}/t", names) == sorted(expected, key=str)


@pytest.mark.parametrize("evolution", ["refuse", "add_columns"])
def test_a_column_with_a_dot_is_a_column_of_its_own(tmp_path: Path, evolution: str) -> None:
    with opened(tmp_path, schema=pa.schema([("id", pa.int64())]), evolution=evolution) as sink:
        if evolution == "refuse":
            for name in ("address.city", "id.x"):
                with pytest.raises(SchemaMismatch, match=f'\\+ "{name}" string'):
                    sink.write(pa.table({"id": [1], name: ["Rome"]}))
            return
        sink.write(pa.table({"id": [1], "address.city": ["Rome"]}))
        sink.commit_epoch(1)
    assert found(f"{tmp_path}/t", ["id", "address.city"]) == [{"id": 1, "address.city": "Rome"}]


def test_two_columns_that_differ_in_case_only_are_refused(tmp_path: Path) -> None:
    with (
        opened(tmp_path, schema=pa.schema([("id", pa.int64())])) as sink,
        pytest.raises(SchemaMismatch, match='"ID" is there twice'),
    ):
        sink.write(pa.table({"id": [1], "ID": [2]}))
    twins = pa.struct([("x", pa.int64()), ("X", pa.int64())])
    with pytest.raises(SchemaMismatch, match=r'"n\.item\.X" is there twice'):
        opened(tmp_path / "new", schema=pa.schema([("n", pa.list_(twins))]))
    assert not (tmp_path / "new" / "t").exists()


def misread(name: str) -> bool:
    """Whether delta-rs takes the name of a folder for something else."""
    return any(mark in name for mark in ("[", "\\", "%20", "/")) or name == ".."


@pytest.mark.parametrize("name", [name for name in HOSTILE if not misread(name)])
def test_a_table_in_a_folder_of_any_name_takes_a_stream(tmp_path: Path, name: str) -> None:
    path = f"{tmp_path}/{name}"
    rows = pa.table({"id": pa.array([1], pa.int64()), "p": ["x y#?%"]})
    for mode in ("append", "overwrite_partitions", "upsert"):
        words: dict[str, Any] = {"mode": mode, "limits": QUICK}
        if mode == "upsert":
            words["keys"] = ["id"]
        new = NewTable(schema=rows.schema, partition_by=("p",))
        with stream_into(path, writer_id=mode, new_table=new, **words) as sink:
            sink.write(rows)
            sink.commit_epoch(1)
    assert found(path, ["id", "p"]) == rows.to_pylist()
    assert Path(path, "_delta_log").is_dir()


@pytest.mark.parametrize("name", ["a[0]", "a]", "a^b", "a|b", "a\\b", "a%20b", "a\nb"])
def test_a_folder_that_delta_rs_would_take_for_another_is_refused(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(UnsupportedOperation, match="in its path, which delta-rs"):
        stream_into(f"{tmp_path}/{name}", writer_id="w", new_table=NewTable(schema=SCHEMA))
    assert list(tmp_path.iterdir()) == []
