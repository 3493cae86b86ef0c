"""Every row that was read is in a table, in quarantine, undone on purpose, or read again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from deltaworks.runtime.batch.attempt import Attempt
from tests.workbench import Answer, Workbench

FILES = 'extract: {type: csv, path: "in/*.csv", schema: "id bigint, v string", incremental: true}\n'
APPEND = "load: {type: delta, table: t}\n"
UPSERT = "load: {type: delta, table: t, mode: upsert, merge_keys: [id]}\n"
POSITIVE = 'checks: [{type: expression, rule: "id < 100", on_fail: quarantine}]\n'


def two(mode: str = "") -> str:
    return f"load:\n- {{type: delta, table: a{mode}}}\n- {{type: delta, table: b{mode}}}\n"


def feed(bench: Workbench, *ids: int) -> None:
    rows = "".join(f"{n},x\n" for n in ids)
    bench.write(f"in/{ids[0]}.csv", f"id,v\n{rows}")


def load(bench: Workbench, *ids: int) -> str:
    feed(bench, *ids)
    return str(bench.run("p")["run_id"])


def ids(bench: Workbench, table: str = "t") -> list[int]:
    return sorted(row["id"] for row in bench.rows(table))


def quarantined(bench: Workbench) -> list[tuple[int, int]]:
    groups = bench.cli("quarantine", "list", "p", "--json").json["groups"]
    return sorted((group["batch"], group["rows"]) for group in groups)


def restore(bench: Workbench, table: str, version: int) -> Answer:
    answer = bench.cli("table", "restore", table, "--version", str(version), "--apply")
    assert answer.code == 0, answer.stderr
    return answer


def undo(bench: Workbench, run: str) -> Answer:
    answer = bench.cli("table", "undo", run, "--apply")
    assert answer.code == 0, answer.stderr
    return answer


def foreign_rows(place: Path, *numbers: int) -> None:
    for n in numbers:
        rows = pa.table({"id": pa.array([n], pa.int64()), "v": ["foreign"]})
        write_deltalake(str(place), rows, mode="append")


def fails_in_b(bench: Workbench) -> None:
    """A run whose second sink cannot be written after the first has its rows."""
    bench.write("warehouse/b/foreign.txt", "x")
    bench.fail("p")
    shutil.rmtree(bench.table("b"))


class Cut(BaseException):
    """The process dies here."""


def test_a_batch_that_a_later_run_finished_is_known_to_a_restore(bench: Workbench) -> None:
    foreign_rows(bench.table("a"), 1000)
    bench.pipeline("p", FILES + two(", mode: upsert, merge_keys: [id]"))
    feed(bench, 1)
    fails_in_b(bench)
    bench.run("p")
    answer = restore(bench, "a", 0)
    assert "loads again what came with batch 1" in answer.stdout
    bench.run("p")
    assert (ids(bench, "a"), ids(bench, "b")) == ([1, 1000], [1])


@pytest.mark.parametrize("how", ["restore", "undo"])
def test_rows_of_a_replay_that_is_taken_back_are_in_quarantine_again(
    bench: Workbench, how: str
) -> None:
    bench.pipeline("p", FILES + POSITIVE + APPEND)
    load(bench, 1, 200)
    assert bench.cli("quarantine", "replay", "p", "--set", "id=2").code == 0
    assert (ids(bench), quarantined(bench)) == ([1, 2], [])
    if how == "restore":
        restore(bench, "t", 0)
    else:
        undo(bench, bench.cli("runs", "list", "--json").json["runs"][0]["run_id"])
    assert (ids(bench), quarantined(bench)) == ([1], [(1, 1)])
    bench.run("p")
    assert (ids(bench), quarantined(bench)) == ([1], [(1, 1)])


def test_the_quarantine_before_a_full_refresh_comes_back_with_its_table(bench: Workbench) -> None:
    bench.pipeline("p", FILES + POSITIVE + APPEND)
    load(bench, 1, 200)
    bench.run("p", "--full-refresh")
    assert quarantined(bench) == [(2, 1)]
    restore(bench, "t", 0)
    assert (ids(bench), quarantined(bench)) == ([1], [(1, 1)])
    assert bench.run("p")["status"] == "skipped"


@pytest.mark.parametrize("refreshed", [False, True])
def test_a_ledger_older_than_its_table_stops_the_run(bench: Workbench, refreshed: bool) -> None:
    bench.pipeline("p", FILES + APPEND)
    load(bench, 1)
    own, backup = bench.table("_deltaworks"), bench.root / "backup"
    shutil.copytree(own, backup)
    if refreshed:
        bench.run("p", "--full-refresh")
    load(bench, 2)
    shutil.rmtree(own)
    shutil.copytree(backup, own)
    feed(bench, 3)
    answer = bench.fail("p")
    assert answer.code == 5
    assert '"t" is ahead of the ledger' in answer.stderr
    assert ids(bench) == [1, 2]
    bench.run("p", "--full-refresh")
    assert ids(bench) == [1, 2, 3]
    load(bench, 4)
    assert ids(bench) == [1, 2, 3, 4]


def test_a_full_refresh_that_fails_leaves_a_half_landed_batch_to_be_finished(
    bench: Workbench,
) -> None:
    bench.pipeline("p", FILES + "checks: [{type: row_count, max: 1}]\n" + two())
    feed(bench, 1)
    fails_in_b(bench)
    feed(bench, 2)
    bench.fail("p", "--full-refresh")
    (bench.root / "in/2.csv").unlink()
    bench.run("p")
    assert ids(bench, "a") == ids(bench, "b") == [1]


def test_a_full_refresh_that_lands_replaces_a_half_landed_batch(bench: Workbench) -> None:
    bench.pipeline("p", FILES + two())
    feed(bench, 1)
    fails_in_b(bench)
    answer = bench.cli("run", "p", "--full-refresh", "--json")
    assert answer.code == 0
    assert ids(bench, "a") == ids(bench, "b") == [1]
    load(bench, 2)
    assert ids(bench, "a") == ids(bench, "b") == [1, 2]


def test_the_same_input_is_judged_again_and_its_refused_rows_are_there_once(
    bench: Workbench,
) -> None:
    bench.pipeline(
        "p",
        FILES.replace(", incremental: true", "")
        + "checks:\n- {type: references, table: known, columns: {id: id}, on_fail: quarantine}\n"
        + APPEND.replace("t}", "t, mode: overwrite}"),
    )
    known = pa.table({"id": pa.array([1, 2], pa.int64())})
    write_deltalake(str(bench.table("known")), known)
    load(bench, 1, 2, 3)
    assert (ids(bench), quarantined(bench)) == ([1, 2], [(1, 1)])
    write_deltalake(str(bench.table("known")), known.slice(0, 1), mode="overwrite")
    run = bench.run("p")["run_id"]
    assert (ids(bench), quarantined(bench)) == ([1], [(2, 2)])
    undo(bench, run)
    assert (ids(bench), quarantined(bench)) == ([1, 2], [(1, 1)])


def test_a_table_replaced_by_hand_stops_the_run(bench: Workbench) -> None:
    bench.pipeline("p", FILES + APPEND)
    load(bench, 1)
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    DeltaTable.create(str(bench.table("t")), schema=schema, mode="overwrite")
    feed(bench, 2)
    answer = bench.fail("p")
    assert (answer.code, "recreated or replaced by hand" in answer.stderr) == (5, True)


def test_a_table_put_back_from_an_older_copy_stops_the_run(bench: Workbench) -> None:
    bench.pipeline("p", FILES + UPSERT)
    load(bench, 1)
    run = load(bench, 2)
    shutil.copytree(bench.table("t"), bench.root / "copy")
    undo(bench, run)
    shutil.rmtree(bench.table("t"))
    shutil.copytree(bench.root / "copy", bench.table("t"))
    feed(bench, 3)
    answer = bench.fail("p")
    assert (answer.code, "an older copy of it was put back" in answer.stderr) == (5, True)


def test_a_sink_that_comes_back_is_asked_about_and_gets_what_it_missed(bench: Workbench) -> None:
    bench.pipeline("p", FILES + two())
    load(bench, 1)
    bench.pipeline("p", FILES + "load: {type: delta, table: a}\n")
    load(bench, 2)
    bench.pipeline("p", FILES + two())
    feed(bench, 3)
    answer = bench.fail("p")
    assert 'sink "b" was not in the pipeline when batch 2 came' in answer.stderr
    bench.run("p", "--new-sinks", "backfill")
    assert ids(bench, "a") == ids(bench, "b") == [1, 2, 3]
    load(bench, 4)
    assert ids(bench, "b") == [1, 2, 3, 4]


def test_a_table_set_back_by_hand_is_noticed_however_long_ago(bench: Workbench) -> None:
    bench.pipeline("p", FILES + APPEND)
    load(bench, 1)
    load(bench, 2)
    DeltaTable(str(bench.table("t"))).restore(0)
    foreign_rows(bench.table("t"), *range(1000, 1060))
    feed(bench, 3)
    answer = bench.fail("p")
    assert (answer.code, "set back to an older version by hand" in answer.stderr) == (5, True)


def test_a_restore_that_takes_back_only_what_others_wrote_stops_nothing(bench: Workbench) -> None:
    bench.pipeline("p", FILES + APPEND)
    load(bench, 1)
    foreign_rows(bench.table("t"), 1000)
    restore(bench, "t", 0)
    load(bench, 2)
    assert ids(bench) == [1, 2]


@pytest.mark.parametrize("writer", ["auto", "spark"])
def test_an_older_run_is_undone_after_a_newer_one(bench: Workbench, writer: str) -> None:
    bench.pipeline("p", FILES + UPSERT.replace("}", f", writer: {writer}}}"))
    runs = [load(bench, n) for n in (1, 2, 3)]
    undo(bench, runs[2])
    undo(bench, runs[1])
    assert ids(bench) == [1]


def test_a_full_refresh_that_was_stopped_is_not_carried_out_by_an_ordinary_run(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = FILES.replace("in/*.csv", "in/${var:day}.csv").replace(", incremental: true", "")
    bench.pipeline("p", source + APPEND)
    for day in (1, 2):
        feed(bench, day)
        bench.run("p", "--var", f"day={day}")

    def cut(*_: Any, **__: Any) -> Any:
        raise Cut

    with monkeypatch.context() as patched:
        patched.setattr(Attempt, "make", cut)
        with pytest.raises(Cut):
            bench.open(variables={"day": "2"}).run("p", full_refresh=True, drop_history=True)
    notes = bench.run("p", "--var", "day=2")["notes"]
    assert any("it was a full refresh, which this run is not" in note for note in notes)
    assert ids(bench) == [1, 2]


def test_all_batches_of_a_run_are_undone(bench: Workbench) -> None:
    bench.pipeline("p", FILES + "load: {type: delta, table: a}\n")
    load(bench, 1)
    load(bench, 2)
    bench.pipeline("p", FILES + two())
    feed(bench, 3)
    run = str(bench.run("p", "--new-sinks", "backfill")["run_id"])
    assert (ids(bench, "a"), ids(bench, "b")) == ([1, 2, 3], [1, 2, 3])
    assert "--apply" in bench.cli("table", "undo", run).stdout
    undo(bench, run)
    assert (ids(bench, "a"), ids(bench, "b")) == ([1, 2], [])
    again = bench.cli("table", "undo", run, "--apply")
    assert (again.code, "is undone" in again.stderr) == (5, True)


@pytest.fixture
def copied(bench: Workbench) -> list[str]:
    """Three versions of a source table, copied one by one."""
    bench.pipeline("p", "extract: {type: delta, path: src, incremental: true}\n" + UPSERT)
    runs = []
    for n in (1, 2, 3):
        foreign_rows(bench.root / "src", n)
        runs.append(str(bench.run("p")["run_id"]))
    return runs


def test_a_batch_that_a_restore_took_out_before_an_undone_one_is_loaded_again(
    bench: Workbench, copied: list[str]
) -> None:
    undo(bench, copied[2])
    restore(bench, "t", 0)
    assert ids(bench) == [1]
    bench.run("p")
    assert ids(bench) == [1, 2]
    assert bench.run("p")["status"] == "skipped"
    foreign_rows(bench.root / "src", 4)
    bench.run("p")
    assert ids(bench) == [1, 2, 4]


def test_a_restore_to_before_an_undo_brings_its_rows_back(
    bench: Workbench, copied: list[str]
) -> None:
    before = bench.version("t")
    assert before is not None
    undo(bench, copied[2])
    assert ids(bench) == [1, 2]
    restore(bench, "t", before)
    assert ids(bench) == [1, 2, 3]
    assert bench.run("p")["status"] == "skipped"
    undo(bench, copied[2])
    assert ids(bench) == [1, 2]


def test_a_batch_whose_files_a_power_cut_took_is_not_called_done(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltaworks.runtime.batch.lifecycle import Batches

    bench.pipeline("p", FILES + APPEND)

    def cut(*_: Any, **__: Any) -> Any:
        raise Cut

    feed(bench, 1)
    with monkeypatch.context() as patched:
        patched.setattr(Batches, "_done", cut)
        with pytest.raises(Cut):
            bench.open().run("p")
    (file,) = bench.table("t").glob("*.parquet")
    whole = file.read_bytes()
    file.write_bytes(whole[:-10])
    answer = bench.fail("p")
    assert answer.code != 70
    assert file.name in answer.stderr
    file.write_bytes(whole)
    bench.run("p")
    assert ids(bench) == [1]


def test_a_restore_waits_for_a_batch_that_landed_and_that_no_ledger_knows(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltaworks.runtime.batch.lifecycle import Batches

    bench.pipeline("p", FILES + APPEND)
    foreign_rows(bench.table("t"), 1000)

    def cut(*_: Any, **__: Any) -> Any:
        raise Cut

    feed(bench, 1)
    with monkeypatch.context() as patched:
        patched.setattr(Batches, "_done", cut)
        with pytest.raises(Cut):
            bench.open().run("p")
    answer = bench.cli("table", "restore", "t", "--version", "0", "--apply")
    assert (answer.code, "batch 1 of pipeline" in answer.stderr) == (5, True)
    bench.run("p")
    restore(bench, "t", 0)
    bench.run("p")
    assert ids(bench) == [1, 1000]
