"""P1: an append is one atomic commit, and no earlier row is touched. P11: with honest counts."""

from __future__ import annotations

from tests.tables.loader import Loader
from tests.workbench import Workbench

TWO = "(1, 'a'), (2, 'b') AS t(id, v)"


def test_append_adds_rows_in_one_commit_and_leaves_the_old_files(loader: Loader) -> None:
    first = loader.load(TWO)
    files = loader.files()
    second = loader.load("(2, 'again'), (3, 'c') AS t(id, v)")
    assert loader.rows() == [(1, "a"), (2, "again"), (2, "b"), (3, "c")]
    assert (first.version, second.version, loader.version()) == (0, 1, 1)
    assert files < loader.files()
    assert [action for action in loader.commits()[1] if "remove" in action] == []
    assert (second.rows_inserted, second.rows_updated, second.rows_deleted) == (2, 0, 0)


def test_columns_go_by_name_not_by_place(loader: Loader) -> None:
    loader.load(TWO)
    loader.load("SELECT 'c' AS V, 3 AS ID")
    assert loader.rows() == [(1, "a"), (2, "b"), (3, "c")]


def test_an_empty_batch_makes_no_commit_and_says_so(loader: Loader) -> None:
    loader.load(TWO)
    info = loader.load("SELECT 1 AS id, 'x' AS v WHERE false")
    assert (info.committed, info.version, info.rows_inserted) == (False, 0, 0)
    assert "no commit" in info.note
    assert loader.version() == 0


def test_an_empty_first_batch_makes_no_table(loader: Loader) -> None:
    info = loader.load("SELECT 1 AS id WHERE false")
    assert (info.committed, info.version, info.rows_inserted) == (False, None, 0)
    assert "no table was made" in info.note
    assert not loader.path.exists()


def test_rows_are_counted_where_they_pass_also_when_the_table_is_made(bench: Workbench) -> None:
    for n in (1, 2, 3):
        lines = "".join(f"{n}{i:02d},x\n" for i in range(30))
        bench.write(f"data/{n}.csv", f"id,v\n{lines}")
    bench.pipeline(
        "p",
        "extract: {type: csv, path: data}\n"
        'transform: [{type: filter, condition: "id % 100 >= 10"}]\n'
        "load: {type: delta, table: t}\n",
    )
    for arguments in ((), ("--again",)):
        batch = bench.run("p", *arguments)["batches"][0]
        assert (batch["rows_read"], batch["rows_dropped"]) == (90, 30)
        assert [step["rows"] for step in batch["steps"]] == [90, 60]
        assert batch["outputs"][0]["rows_inserted"] == 60
    assert len(bench.rows("t")) == 120


def test_rows_of_a_batch_that_is_filtered_to_nothing_are_counted_too(bench: Workbench) -> None:
    bench.write("a.csv", "id\n1\n2\n")
    for name, condition in (("p", "id > 5"), ("never", "1 = 0")):
        bench.pipeline(
            name,
            "extract: {type: csv, path: a.csv}\n"
            f'transform: [{{type: filter, condition: "{condition}"}}]\n'
            f"load: {{type: delta, table: {name}}}\n",
        )
    batch = bench.run("p")["batches"][0]
    assert (batch["rows_read"], batch["rows_dropped"]) == (2, 2)
    # Spark does not read at all what can give no row, so nobody knows: null, not 0
    assert bench.run("never")["batches"][0]["rows_read"] is None
    assert (bench.version("p"), bench.version("never")) == (None, None)
