"""What the first lines of a CSV file tell: whether there surely is a row, and its columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltaworks.contracts.context import Site
from deltaworks.engines.spark.csv_files import CsvFiles
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
    site = Site(root=tmp_path, warehouse=str(tmp_path / "warehouse"))
    source = CsvSource.model_validate({"path": "b.csv", **options})
    assert source.holds_rows(site, source.bounds(site, None)) is sure


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("id,v\n1,a\n", ["id", "v"]),
        ("\ufeffid,v", ["id", "v"]),
        ("ID,_x1\r\n", ["ID", "_x1"]),
        ("", None),
        ("\nid\n", None),
        ("id,,v\n", None),
        ("id,ID\n", None),
        ('"id",v\n', None),
        ("id, v\n", None),
        ("id,NA\n", None),
        ("id,größe\n", None),
    ],
)
def test_only_a_plain_header_is_read_without_spark(
    tmp_path: Path, text: str, names: list[str] | None
) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8", newline="")
    files = CsvFiles(delimiter=",", quote='"', encoding="UTF-8", header=True, null_value="NA")
    assert files.plain_header(str(tmp_path / "a.csv")) == names
