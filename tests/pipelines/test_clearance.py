"""A table is made only where nothing else is."""

from __future__ import annotations

from tests.workbench import Workbench

PIPELINE = """
extract: {{type: csv, path: data/in.csv}}
load: {{type: delta, path: {path}}}
"""


def test_a_table_inside_or_around_another_is_refused(bench: Workbench) -> None:
    bench.write("data/in.csv", "id\n1\n")
    bench.pipeline("middle", PIPELINE.format(path="lake/a/b"))
    bench.pipeline("inside", PIPELINE.format(path="lake/a/b/c"))
    bench.pipeline("around", PIPELINE.format(path="lake/a"))
    bench.run("middle")
    for name in ("inside", "around"):
        answer = bench.fail(name)
        assert answer.code == 5
        assert "lie" in answer.stderr


def test_a_folder_with_other_files_is_not_turned_into_a_table(bench: Workbench) -> None:
    bench.write("data/in.csv", "id\n1\n")
    bench.write("lake/t/notes.txt", "mine")
    bench.pipeline("t", PIPELINE.format(path="lake/t"))
    answer = bench.fail("t")
    assert answer.code == 1
    assert "not a Delta table" in answer.stderr
    assert (bench.root / "lake/t/notes.txt").read_text() == "mine"
