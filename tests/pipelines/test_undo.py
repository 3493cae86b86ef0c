"""One run is taken back, if nothing later touched its rows; else it is said why not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltaworks.engines.spark.delta.undo import Reversal
from deltaworks.engines.spark.delta.writer import TableWriter
from deltaworks.sinks.delta import DeltaSink
from tests.workbench import Answer, Workbench

EXTRACT = 'extract: {type: csv, path: "in/*.csv", schema: "id int, v string", incremental: true}\n'
APPEND = "load: {type: delta, table: orders}\n"
UPSERT = "load: {type: delta, table: orders, mode: upsert, merge_keys: [id]}\n"
TWO = "load:\n- {type: delta, table: orders}\n- {type: delta, table: copy}\n"


def feed(bench: Workbench, name: str, rows: str) -> str:
    bench.write(f"in/{name}.csv", f"id,v\n{rows}\n")
    return str(bench.run("orders")["run_id"])


def undo(bench: Workbench, run: str, *arguments: str) -> Answer:
    return bench.cli("table", "undo", run, *arguments)


def values(bench: Workbench, table: str = "orders") -> dict[int, str]:
    return {row["id"]: row["v"] for row in bench.rows(table)}


def test_an_append_goes_and_later_ones_stay(bench: Workbench) -> None:
    bench.pipeline("orders", EXTRACT + APPEND)
    feed(bench, "a", "1,a")
    run = feed(bench, "b", "2,b")
    feed(bench, "c", "3,c")
    assert "orders: 1 rows would be removed, 0 would be put back" in undo(bench, run).stdout
    assert bench.version("orders") == 2
    done = undo(bench, run, "--apply", "--json").json
    assert (done["applied"], done["tables"][0]["rows_removed"]) == (True, 1)
    assert values(bench) == {1: "a", 3: "c"}
    assert undo(bench, run, "--apply").code == 5  # it is undone already
    feed(bench, "d", "4,d")
    assert values(bench) == {1: "a", 3: "c", 4: "d"}  # what the run had read is not read again
    feed(bench, "b", "2,corrected")  # unless it changed
    assert values(bench)[2] == "corrected"


def test_an_upsert_is_put_back_row_by_row(bench: Workbench) -> None:
    bench.pipeline("orders", EXTRACT + UPSERT)
    feed(bench, "a", "1,a\n2,a")
    run = feed(bench, "b", "2,b\n3,b")
    feed(bench, "c", "4,c")
    assert undo(bench, run, "--apply").code == 0
    assert values(bench) == {1: "a", 2: "a", 4: "c"}


def test_what_later_runs_changed_again_stays(bench: Workbench) -> None:
    bench.pipeline("orders", EXTRACT + UPSERT)
    feed(bench, "a", "1,a\n2,a")
    run = feed(bench, "b", "2,b\n3,b")
    feed(bench, "c", "2,c")
    before = (values(bench), bench.version("orders"))
    refused = undo(bench, run, "--apply")
    assert refused.code == 5
    assert '1 of its row changed again in later versions, for example {"id":2}' in refused.stderr
    assert (values(bench), bench.version("orders")) == before


def test_files_that_were_rewritten_cannot_be_taken_out(bench: Workbench) -> None:
    from deltalake import DeltaTable

    bench.pipeline("orders", EXTRACT + APPEND)
    feed(bench, "a", "1,a")
    run = feed(bench, "b", "2,b")
    DeltaTable(str(bench.table("orders"))).optimize.compact()
    refused = undo(bench, run, "--apply")
    assert (refused.code, "version 2 rewrote files" in refused.stderr) == (5, True)
    assert values(bench) == {1: "a", 2: "b"}


@pytest.mark.parametrize("later", [False, True])
def test_an_overwrite_is_taken_back_only_as_the_last(bench: Workbench, later: bool) -> None:
    overwrite = APPEND.replace("orders}", "orders, mode: overwrite}")
    bench.pipeline("orders", EXTRACT + overwrite)
    feed(bench, "a", "1,a")
    run = feed(bench, "b", "2,b")
    if later:
        feed(bench, "c", "3,c")
    answer = undo(bench, run, "--apply")
    assert answer.code == (5 if later else 0)
    assert values(bench) == ({3: "c"} if later else {1: "a"})


def test_what_another_writer_commits_meanwhile_stays(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltalake import DeltaTable, write_deltalake

    bench.pipeline("orders", EXTRACT + APPEND)
    feed(bench, "a", "1,a")
    run = feed(bench, "b", "2,b")
    real, place = Reversal.commit, str(bench.table("orders"))

    def overtaken(self: Reversal, writer: TableWriter) -> int | None:
        rows = pa.table({"id": pa.array([1000], pa.int32()), "v": ["foreign"]})
        write_deltalake(place, rows, mode="append")
        return real(self, writer)

    with monkeypatch.context() as patched:
        patched.setattr(Reversal, "commit", overtaken)
        done = undo(bench, run, "--apply", "--json").json
    assert done["tables"][0]["version"] == bench.version("orders") == 3
    assert values(bench) == {1: "a", 1000: "foreign"}
    assert DeltaTable(place).history(1)[0]["operation"] == "UNDO"
    feed(bench, "c", "3,c")
    assert values(bench) == {1: "a", 1000: "foreign", 3: "c"}


class Cut(BaseException):
    """The process dies here."""


@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_undo_that_was_cut_off_is_settled_or_must_be_finished(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    bench.pipeline("orders", EXTRACT + TWO)
    feed(bench, "a", "1,a")
    run = feed(bench, "b", "2,b")
    real = DeltaSink.undo
    done: list[str] = []

    def cut(self: DeltaSink, *arguments: Any, apply: bool) -> Any:
        if apply and len(done) == at:
            raise Cut
        info = real(self, *arguments, apply=apply)
        if apply:
            done.append(self.table)
            if len(done) == at == 2:
                raise Cut
        return info

    with monkeypatch.context() as patched:
        patched.setattr(DeltaSink, "undo", cut)
        with pytest.raises(Cut):
            bench.open().undo(run, apply=True)
    bench.write("in/c.csv", "id,v\n3,c\n")
    if at == 1:
        refused = bench.fail("orders")
        assert (refused.code, f"deltaworks table undo {run} --apply" in refused.stderr) == (5, True)
        assert undo(bench, run, "--apply").code == 0
    bench.run("orders")
    expected = {1: "a", 3: "c"} if at else {1: "a", 2: "b", 3: "c"}
    assert values(bench) == values(bench, "copy") == expected


def test_a_run_without_a_batch_of_its_own_is_not_undone(bench: Workbench) -> None:
    bench.pipeline("orders", EXTRACT + APPEND)
    feed(bench, "a", "1,a")
    skipped = str(bench.run("orders")["run_id"])
    assert undo(bench, skipped).code == 5
    assert undo(bench, "nothing").code == 2
