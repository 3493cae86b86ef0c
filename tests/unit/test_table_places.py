"""Where a table may lie: a folder of any name that both engines take for the same one."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from deltaworks.api import Project
from deltaworks.errors import ConfigError, InputError
from deltaworks.model.batch import Bounds, FileStamp
from deltaworks.model.table_ref import table_path_problem
from deltaworks.storage.hive_partitions import partition_keys
from deltaworks.storage.listing import spark_paths
from tests.workbench import Workbench

FINE = (
    *("sp ace", " lead", "trail ", "h#sh", "wh?t", "50%", "100%", "tick`y", "qu'ote", 'dq"x'),
    *("émoji😀", "a;b", "a&b=c+d", "{x}", "*", "<x>", "~x", "a,b", "a:b", "$a", "dots.in.it"),
)
MISREAD = ("[x]", "a|b", "^x", "a%20b", "a%2Fb", "back\\slash", "new\nline", "t\tab")


@pytest.mark.parametrize("name", FINE)
def test_a_table_may_lie_in_a_folder_of_nearly_any_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    desk = Workbench(folder)
    for rows in ([1, 2], [3]):
        write_deltalake(desk.table("t"), pa.table({"a": rows}), mode="append")
    shown = desk.cli("table", "show", "t", "--json").json
    assert (shown["rows"], shown["version"]) == (3, 1)
    assert desk.cli("table", "show", "./warehouse/t", "--json").json["rows"] == 3
    assert [path.name for path in tmp_path.iterdir()] == [name]  # and nothing lies elsewhere


@pytest.mark.parametrize("name", MISREAD)
def test_a_folder_that_would_be_taken_for_another_is_refused(tmp_path: Path, name: str) -> None:
    desk = Workbench(tmp_path / name)
    answer = desk.cli("table", "show", "t")
    assert answer.code == 2
    assert f"a folder named {json.dumps(name, ensure_ascii=False)} would be taken" in answer.stderr
    assert "deltaworks.yaml:2" in answer.stderr
    assert not desk.table("t").exists()


@pytest.mark.parametrize("name", MISREAD)
def test_validate_names_the_place_in_the_file(desk: Workbench, name: str) -> None:
    path = json.dumps(f"out/{name}/t")
    desk.pipeline(
        "p",
        f"extract: {{type: delta, path: {path}}}\n"
        f"checks: [{{type: references, path: {path}, columns: [id]}}]\n"
        f"load: {{type: delta, path: {path}}}\n",
    )
    problems = desk.cli("validate", "--json").json["problems"]
    assert [(p["code"], p["line"]) for p in problems] == [("wrong_value", n) for n in (2, 3, 4)]
    assert all("no table can lie at" in problem["message"] for problem in problems)
    with pytest.raises(ConfigError, match="no table can lie at"):
        Project.open(desk.root).table(f"out/{name}/t")


def test_addresses_are_left_to_their_stores() -> None:
    assert table_path_problem("s3://lake/a%20b/[x]") == ""


def test_spark_is_given_names_as_they_are_or_not_at_all() -> None:
    def given(path: str) -> list[str]:
        return spark_paths(Bounds(kind="files", identity="/in", files=(FileStamp(path, 1, 1),)))

    assert given("/in/a:b/c d.csv") == ["/in/a:b/c d.csv"]
    assert given("/in/[x] 1?.csv") == ["/in/\\[x\\] 1\\?.csv"]
    with pytest.raises(InputError, match='has a ":" and one of'):
        given("/in/a:b/what?.csv")


def test_a_folder_tells_its_column_as_spark_spelled_it() -> None:
    stamp = FileStamp("/in/h%23sh=a%3Db/100%25=1/a.b=x/part.json", 1, 1)
    assert partition_keys(Bounds(kind="files", identity="/in/*", files=(stamp,))) == (
        *("h#sh", "100%", "a.b"),
    )
