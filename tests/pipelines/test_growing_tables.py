"""Whoever commits, a batch that adds columns does what the file says, or is refused."""

from __future__ import annotations

import pytest

from tests.workbench import Workbench

PIPELINE = """
extract: {type: csv, path: in.csv, infer_schema: true}
load: {type: delta, table: t, merge_schema: true, writer: WRITER, MODE}
"""
MODES = ("mode: append", "mode: upsert, merge_keys: [id]")


@pytest.mark.parametrize("mode", MODES)
def test_a_forced_writer_that_cannot_add_columns_says_so(bench: Workbench, mode: str) -> None:
    text = PIPELINE.replace("MODE", mode)
    bench.write("in.csv", "id,v\n1,2\n")
    bench.pipeline("p", text.replace("WRITER", "deltars"))
    bench.run("p")
    bench.write("in.csv", "id,v,more\n1,2,3\n")
    for command in ("plan", "run"):
        refused = bench.cli(command, "p")
        assert refused.code == 4, refused.stdout
        assert "the batch changes the table's columns" in refused.stderr
        assert "leave out `writer: deltars`; Spark can" in refused.stderr
    assert bench.version("t") == 0
    bench.pipeline("p", text.replace("WRITER", "auto"))
    assert bench.cli("plan", "p").code == 0
    bench.run("p")
    assert 3 in [row.get("more") for row in bench.rows("t")]
