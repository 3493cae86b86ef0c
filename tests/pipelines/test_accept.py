"""A table that others changed is no dead end: it is accepted as it is, and runs go on (M1)."""

from __future__ import annotations

import shutil

import pytest
from deltalake import DeltaTable, write_deltalake

from tests.workbench import Answer, Workbench

FILES = 'extract: {type: csv, path: "in/*.csv", schema: "id bigint, v string", incremental: true}\n'
APPEND = "load: {type: delta, table: t}\n"


def feed(bench: Workbench, *ids: int) -> None:
    rows = "".join(f"{n},x\n" for n in ids)
    bench.write(f"in/{ids[0]}.csv", f"id,v\n{rows}")


def load(bench: Workbench, *ids: int) -> None:
    feed(bench, *ids)
    bench.run("p")


def ids(bench: Workbench) -> list[int]:
    return sorted(row["id"] for row in bench.rows("t"))


def accept(bench: Workbench, *options: str) -> Answer:
    answer = bench.cli("table", "accept", "t", *options)
    assert answer.code == 0, answer.stderr
    return answer


def harm(bench: Workbench, how: str) -> None:
    """What somebody does to the table after two batches."""
    place = str(bench.table("t"))
    if how == "set back":
        DeltaTable(place).restore(0)
    else:
        rows = DeltaTable(place).to_pyarrow_table()
        shutil.rmtree(place)
        write_deltalake(place, rows)


EXPECTED = {
    ("set back", "--read-again"): [1, 2, 3],
    ("recreated", "--keep-position"): [1, 2, 3],
}


@pytest.mark.parametrize(("how", "choice"), EXPECTED)
def test_a_table_that_others_changed_is_accepted_as_it_is(
    bench: Workbench, how: str, choice: str
) -> None:
    bench.pipeline("p", FILES + APPEND)
    load(bench, 1)
    load(bench, 2)
    harm(bench, how)
    feed(bench, 3)
    refused = bench.fail("p")
    assert (refused.code, "deltaworks table accept t" in refused.stderr) == (5, True)
    before = bench.version("t")
    shown = accept(bench)
    assert choice in shown.stdout
    assert "Nothing has changed yet" in shown.stdout
    done = accept(bench, choice, "--apply", "--json").json
    assert (done["applied"], done["pipelines"][0]["pipeline"]) == (True, "p")
    assert bench.version("t") == before
    bench.run("p")
    assert ids(bench) == EXPECTED[how, choice]
    assert "nothing to accept" in accept(bench).stdout
