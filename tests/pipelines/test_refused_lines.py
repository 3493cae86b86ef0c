"""A quarantined record tells the file, the line, the column and the value at fault."""

from __future__ import annotations

import pytest

from deltaworks.engines.spark.read import line_numbers
from tests.workbench import Workbench

pytestmark = pytest.mark.spark

PIPELINE = """
extract: {type: csv, path: "in/*.csv", schema: "id int, v string", on_error: quarantine, MORE}
checks: [{type: not_null, columns: [v], on_fail: quarantine}]
load: {type: delta, table: t, mode: overwrite}
"""


def reasons(bench: Workbench, more: str = "multiline: false") -> list[str]:
    bench.pipeline("p", PIPELINE.replace("MORE", more))
    bench.run("p", "--again")
    shown = bench.cli("quarantine", "show", "p", "--json").json["rows"]
    return sorted(row["reason"].replace(f"{bench.root}/", "") for row in shown)


def test_a_refused_record_names_its_line(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("in/a.csv", "id,v\n1,a\ntwo,b\n3,\ntwo,b\n")
    bench.write("in/b.csv", "id,v\n\ntwo,b\n")
    misfit = 'column "id": "two" is not int'
    assert reasons(bench) == [
        "check not_null failed: v = NULL",
        f"in in/a.csv:3 and 1 more: {misfit}",
        f"in in/a.csv:3 and 1 more: {misfit}",
        f"in in/b.csv:3: {misfit}",
    ]
    monkeypatch.setattr(line_numbers, "MAX_BYTES", 8)
    assert reasons(bench)[1:] == [f"in in/a.csv: {misfit}"] * 2 + [f"in in/b.csv: {misfit}"]


def test_a_record_of_several_lines_names_its_file(bench: Workbench) -> None:
    bench.write("in/a.csv", 'id,v\ntwo,"b\nc"\n')
    (reason,) = reasons(bench, "multiline: true")
    assert reason == 'in in/a.csv: column "id": "two" is not int'
