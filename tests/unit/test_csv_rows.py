"""What the first lines of a CSV file tell: whether there surely is a row, and its columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltaworks.contracts.context import ProjectContext
from deltaworks.engines.spark.read.csv import CsvFiles
from deltaworks.sources.csv import CsvSource


@pytest.mark.parametrize(
    ("text", "options", "sure"),
    [
        ("id\n1\n", {}, True),
        ("id\n", {}, False),
        ("", {}, False),
        ("id\n\n  \n", {}, False),
        ("id\n\n2\n", {}, True),
        ("1\n", {"header": False}, True),
        ("id\n#1\n", {"options": {"comment": "#"}}, False),
        ('"i\nd"\n', {"multiline": True}, False),
    ],
)
def test_a_row_is_seen_only_where_there_is_one(
    tmp_path: Path, text: str, options: dict[str, Any], sure: bool
) -> None:
    (tmp_path / "a.csv").write_text("id\n")
    (tmp_path / "b.csv").write_text(text)
    project_ctx = ProjectContext(root=tmp_path, warehouse=str(tmp_path / "warehouse"))
    source = CsvSource.model_validate({"path": "b.csv", **options})
    assert source.holds_rows(project_ctx, source.bounds(project_ctx, None)) is sure


@pytest.mark.parametrize(
    ("text", "options", "names"),
    [
        ("id,v\n1,a\n", {}, ["id", "v"]),
        ("\ufeffid,v", {}, ["id", "v"]),
        ("ID,_x1\r\n", {}, ["ID", "_x1"]),
        ("", {}, []),
        ("\n  \n", {}, []),
        ("\nid\n", {}, ["id"]),
        ("id,,NA\n", {}, ["id", "_c1", "_c2"]),
        ("id,ID\n", {}, ["id", "ID"]),
        ('"i,d", v\n', {}, ["i,d", " v"]),
        ('"i""d",größe\n', {}, ['i"d', "größe"]),
        ('"i\\"d",v\n', {"escape": "\\"}, ['i"d', "v"]),
        ('"i\nd",v\n1,2\n', {"multiline": True}, ["i\nd", "v"]),
        ('"id|v\n', {"delimiter": "|", "quote": ""}, ['"id', "v"]),
        ("id||v\n", {"delimiter": "||", "quote": ""}, ["id", "v"]),
        ("id||v\n", {"delimiter": "||"}, None),
    ],
)
def test_a_header_is_read_without_spark_where_that_is_sure(
    tmp_path: Path, text: str, options: dict[str, Any], names: list[str] | None
) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8", newline="")
    plain = {"delimiter": ",", "quote": '"', "header": True, "null_value": "NA"}
    files = CsvFiles(encoding="UTF-8", **{**plain, **options})
    assert files.header_names(str(tmp_path / "a.csv")) == names
    assert files.header_names(str(tmp_path / "a.csv.zst")) is None


@pytest.mark.parametrize(
    ("raw", "multiline", "hint"),
    [
        ('1,"two', False, "say `multiline: true`"),
        ('1,"two"', False, "on_error: quarantine"),
        ('1,"two', True, "on_error: quarantine"),
    ],
)
def test_a_quote_that_is_not_closed_hints_at_multiline(
    raw: str, multiline: bool, hint: str
) -> None:
    files = CsvFiles(
        delimiter=",",
        quote='"',
        encoding="UTF-8",
        header=True,
        null_value="",
        multiline=multiline,
    )
    assert hint in files.remedy(raw)
