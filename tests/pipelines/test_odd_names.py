"""Columns and folders of any name: they work, or are refused by name before anything is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pipelines.applying import Bench
from tests.workbench import Workbench

ODD = (
    *("a.b", "a", "x.y.z", "tick`y", "br[0]", "h#sh", "wh?t", "100%", "a%20b", "qu'ote", 'dq"x'),
    *("émoji😀", "select", "ORDER", "back\\slash", "star*", "c:d", "-dash", "source.id", "target"),
)
FOLDER = "of 50% é'`; a&b=c+d, {x}"


def rows(count: int, change: str = "") -> list[dict[str, Any]]:
    fixed = ("a.b", "tick`y")
    return [
        {"id": n, **{name: f"{name}{n}{'' if name in fixed else change}" for name in ODD}}
        for n in range(1, count + 1)
    ]


def put(path: Path, records: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(records), path)


def pipeline(bench: Workbench, name: str, **document: Any) -> None:
    bench.write(f"pipelines/{name}.json", json.dumps({"pipeline": name, **document}))


def seen(bench: Workbench, name: str) -> list[dict[str, Any]]:
    return sorted(bench.rows(name), key=lambda row: int(row["id"]))


@pytest.fixture
def odd(jvm: object, tmp_path: Path) -> Workbench:  # noqa: ARG001 - the JVM must be up
    """A project in a folder whose name is no easier than those of its columns."""
    return Workbench(tmp_path / FOLDER)


@pytest.mark.parametrize("writer", ["auto", "spark"])
def test_a_table_of_odd_columns_is_loaded_changed_quarantined_and_replayed(
    odd: Workbench, writer: str
) -> None:
    checks: list[dict[str, Any]] = [
        {"type": "not_null", "columns": ["a.b", "tick`y"]},
        {"type": "unique", "columns": ["a.b", "x.y.z"], "scope": "table"},
        {
            "type": "matches",
            "column": "br[0]",
            "pattern": "br\\[0\\][12]n?",
            "on_fail": "quarantine",
        },
    ]
    load = {
        "type": "delta",
        "table": "t",
        "mode": "upsert",
        "writer": writer,
        "merge_keys": ["a.b", "tick`y"],
        "duplicates": {"keep": "newest", "by": "x.y.z"},
        "stats_columns": ["a.b", "tick`y", "id"],
        "partition_by": ["h#sh"],
    }
    pipeline(
        odd, "p", extract={"type": "parquet", "path": "in/*.parquet"}, checks=checks, load=load
    )
    put(odd.root / "in" / "f.parquet", rows(3))
    odd.run("p")
    assert seen(odd, "t") == rows(2)
    put(odd.root / "in" / "f.parquet", rows(3, "n"))
    planned = odd.cli("plan", "p", "--json").json["outputs"][0]
    assert planned["rows_to_update"] == 2
    odd.run("p")
    assert seen(odd, "t") == rows(2, "n")
    corrected = ("--set", "br[0]='br[0]1'", "--set", "wh?t='w'", "--batch", "2")
    replayed = odd.cli("quarantine", "replay", "p", *corrected)
    assert replayed.code == 0, replayed.stderr
    last = {**rows(3, "n")[2], "br[0]": "br[0]1", "wh?t": "w"}
    assert seen(odd, "t") == [*rows(2, "n"), last]


def test_history_and_files_keep_odd_columns(odd: Workbench) -> None:
    source = {"type": "parquet", "path": "in/f.parquet"}
    scd2 = {"type": "delta", "table": "h", "mode": "scd2", "merge_keys": ["a.b"]}
    files = [
        {"type": kind, "path": f"out #1?/{kind} 50%25", "mode": "overwrite"}
        for kind in ("csv", "json", "parquet")
    ]
    by = ["a.b", "h#sh", "100%"]
    parts = [
        {"type": kind, "path": f"parts/{kind}", "mode": "overwrite", "partition_by": by}
        for kind in ("json", "parquet")
    ]
    tracked = {**scd2, "track_columns": ["x.y.z", "tick`y"]}
    pipeline(odd, "p", extract=source, load=[tracked, *files, *parts])
    put(odd.root / "in" / "f.parquet", rows(2))
    odd.run("p")
    put(odd.root / "in" / "f.parquet", rows(2, "n"))
    odd.run("p")
    assert sorted(row["x.y.z"] for row in odd.rows("h")) == [
        *("x.y.z1", "x.y.z1n", "x.y.z2", "x.y.z2n")
    ]
    places: list[dict[str, Any]] = [*files, *parts]
    for place in places:
        back = {"type": place["type"], "path": str(place["path"]).replace("?", "[?]")}
        pipeline(odd, "back", extract=back, load={"type": "console"})
        shown = odd.cli("preview", "back", "--json")
        assert shown.code == 0, shown.stdout
        names = [column["name"] for column in shown.json["columns"]]
        assert sorted(names) == sorted(["id", *ODD]), place
        found = sorted(shown.json["rows"], key=lambda row: row["id"])
        assert [{**row, "id": int(row["id"])} for row in found] == rows(2, "n"), place


@pytest.mark.parametrize("writer", ["auto", "spark"])
def test_a_field_and_a_column_of_one_spelling_are_two(odd: Workbench, writer: str) -> None:
    def day(*records: tuple[int, str]) -> None:
        found = [{"a": {"b": n}, "a.b": text, "id": n} for n, text in records]
        put(odd.root / "in" / "f.parquet", found)

    load = {"type": "delta", "table": "t", "mode": "upsert", "merge_keys": ["a.b"]}
    pipeline(
        odd,
        "p",
        extract={"type": "parquet", "path": "in/f.parquet"},
        checks=[{"type": "unique", "columns": ["a.b"], "scope": "table"}],
        load={**load, "writer": writer, "duplicates": {"keep": "newest", "by": "id"}},
    )
    day((1, "x"), (2, "y"))
    odd.run("p")
    day((3, "y"), (4, "z"), (5, "z"))
    odd.run("p")
    assert [(row["a.b"], row["a"]["b"]) for row in seen(odd, "t")] == [("x", 1), ("y", 3), ("z", 5)]


def test_a_column_with_a_dot_is_added_only_where_columns_may_be(odd: Workbench) -> None:
    source, load = {"type": "parquet", "path": "in/f.parquet"}, {"type": "delta", "table": "t"}
    pipeline(odd, "p", extract=source, load=load)
    put(odd.root / "in" / "f.parquet", [{"id": 1, "a": "x"}])
    odd.run("p")
    put(odd.root / "in" / "f.parquet", [{"id": 2, "a": "x", "a.b": "y"}])
    for refused in (odd.cli("plan", "p"), odd.cli("run", "p", "--quiet")):
        assert refused.code != 0
        assert '+ "a.b" string (not in the table)' in refused.stderr
    pipeline(odd, "p", extract=source, load={**load, "merge_schema": True})
    odd.run("p")
    assert seen(odd, "t") == [{"id": 1, "a": "x", "a.b": None}, {"id": 2, "a": "x", "a.b": "y"}]


@pytest.mark.parametrize(
    ("record", "load", "says", "fix"),
    [
        (
            {"sp ace": 1},
            {"type": "delta", "table": "t"},
            '"sp ace": its name holds a space',
            "name",
        ),
        ({"s": {"a=b": 1}}, {"type": "delta", "table": "t"}, '"s.a=b": its name holds "="', "name"),
        (
            {"a.b": 1},
            {"type": "avro", "path": "o"},
            'Avro files cannot have a column named "a.b"',
            "",
        ),
        (
            {"t`y": 1},
            {"type": "orc", "path": "o"},
            'ORC files cannot have a column named "t`y"',
            "",
        ),
        (
            {"a.b": 1},
            {"type": "delta", "table": "t", "bloom": ["a.b"]},
            'bloom names column "a.b": Parquet takes the dot for a path',
            "leave it out",
        ),
        (
            {"Ab": 1, "aB": 2},
            {"type": "delta", "table": "t"},
            'two columns named "ab"',
            "another name",
        ),
    ],
)
def test_a_name_that_cannot_be_kept_is_refused_by_plan_with_the_way_out(
    odd: Workbench, record: dict[str, Any], load: dict[str, Any], says: str, fix: str
) -> None:
    put(odd.root / "in" / "f.parquet", [{"id": 1, **record}])
    pipeline(odd, "p", extract={"type": "parquet", "path": "in/f.parquet"}, load=load)
    planned = odd.cli("plan", "p")
    assert planned.code == 2
    assert says in planned.stderr
    assert fix in planned.stderr.partition("fix: ")[2]
    assert not odd.table("t").exists()


def test_a_table_under_other_names_takes_any_column(odd: Workbench) -> None:
    put(odd.root / "in" / "f.parquet", [{"id": 1, "sp ace": "x", "a=b": "y", " lead": "z"}])
    mapped = {"properties": {"delta.columnMapping.mode": "name"}}
    load = {"type": "delta", "table": "t", "mode": "upsert", "merge_keys": ["sp ace"], **mapped}
    pipeline(odd, "p", extract={"type": "parquet", "path": "in/f.parquet"}, load=load)
    odd.run("p")
    put(odd.root / "in" / "f.parquet", [{"id": 2, "sp ace": "x", "a=b": "n", " lead": "z"}])
    result = odd.run("p")
    assert result["batches"][0]["outputs"][0]["rows_updated"] == 1


SOURCE = (
    "SELECT 1 AS id, 'p' AS `a.b`, 'q' AS `tick``y`, named_struct('b', 's') AS a, '7' AS `n[0]`"
)


@pytest.mark.parametrize(
    ("step", "columns", "row"),
    [
        ({"type": "select", "columns": ["a.b", "tick`y"]}, ["a.b", "tick`y"], ("p", "q")),
        ({"type": "select", "exclude": ["a.b", "tick`y", "id", "a"]}, ["n[0]"], ("7",)),
        (
            {"type": "rename", "columns": {"a.b": "c.d", "tick`y": "a.b"}},
            ["id", "c.d", "a.b", "a", "n[0]"],
            (1, "p", "q", ("s",), "7"),
        ),
        (
            {"type": "cast", "columns": {"n[0]": "int", "a.b": "string"}},
            ["id", "a.b", "tick`y", "a", "n[0]"],
            (1, "p", "q", ("s",), 7),
        ),
        (
            {"type": "fill", "columns": {"a.b": "x", "tick`y": "y"}},
            ["id", "a.b", "tick`y", "a", "n[0]"],
            (1, "p", "q", ("s",), "7"),
        ),
        (
            {"type": "derive", "columns": {"a.b": "upper(`a.b`)", "z.z": "`a`.`b`"}},
            ["id", "a.b", "tick`y", "a", "n[0]", "z.z"],
            (1, "P", "q", ("s",), "7", "s"),
        ),
        (
            {"type": "deduplicate", "columns": ["a.b", "tick`y"], "keep": "newest", "by": "n[0]"},
            ["id", "a.b", "tick`y", "a", "n[0]"],
            (1, "p", "q", ("s",), "7"),
        ),
        (
            {
                "type": "aggregate",
                "group_by": ["a.b", "tick`y"],
                "aggregations": [{"function": "max", "column": "n[0]", "alias": "m.x"}],
            },
            ["a.b", "tick`y", "m.x"],
            ("p", "q", "7"),
        ),
        (
            {
                "type": "window",
                "partition_by": ["a.b"],
                "order_by": ["tick`y"],
                "functions": [{"function": "row_number", "alias": "r.n"}],
            },
            ["id", "a.b", "tick`y", "a", "n[0]", "r.n"],
            (1, "p", "q", ("s",), "7", 1),
        ),
        (
            {
                "type": "pivot",
                "group_by": ["a.b"],
                "column": "tick`y",
                "aggregations": [{"function": "max", "column": "n[0]"}],
            },
            ["a.b", "q"],
            ("p", "7"),
        ),
        (
            {"type": "join", "with": "other", "on": ["a.b", "tick`y"], "how": "left"},
            ["a.b", "tick`y", "id", "a", "n[0]", "more.z"],
            ("p", "q", 1, ("s",), "7", 5),
        ),
        ({"type": "flatten", "separator": "_"}, ["id", "a.b", "tick`y", "a_b", "n[0]"], None),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_every_step_takes_odd_columns_for_what_they_are(
    orders: Bench, step: dict[str, Any], columns: list[str], row: tuple[Any, ...] | None
) -> None:
    others = {"other": "SELECT 'p' AS `a.b`, 'q' AS `tick``y`, 5 AS `more.z`"}
    frame = orders.frame(SOURCE, others, **step)
    assert frame.columns == columns
    assert [tuple(found) for found in frame.collect()] == [row or (1, "p", "q", "s", "7")]
