"""Whether a CSV source surely holds a row is told from its first lines, or left open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltaworks.contracts.context import Site
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
