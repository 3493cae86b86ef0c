"""`table accept` on real tables and a real ledger, whose batches are committed without a JVM."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from deltaworks.errors import GuardError
from deltaworks.model.commit import CommitInfo
from deltaworks.pipeline.stages import Plan
from deltaworks.runtime.batch.lifecycle import Batches, NewBatch
from deltaworks.runtime.batch.verify_sinks import verify_sinks
from deltaworks.runtime.environment import RunEnv, new_run
from deltaworks.runtime.ledger.evidence import Writer, note_of
from deltaworks.runtime.ledger.table import landed_sink
from deltaworks.runtime.source_bounds import take_bounds
from tests.workbench import Answer, Workbench

PIPELINE = (
    'extract: {type: csv, path: "in/*.csv", schema: "id bigint", incremental: true}\n'
    "load: {type: delta, table: t}\n"
)


class Shop:
    """A project with one pipeline, whose batches land without Spark."""

    def __init__(self, desk: Workbench) -> None:
        self.desk = desk
        desk.pipeline("p", PIPELINE)

    def opened(self) -> tuple[Plan, RunEnv]:
        project = self.desk.open()
        plan = project._plan("p", None)
        return plan, project._workplace(plan)

    def load(self, number: int) -> None:
        """What a run does with one file."""
        self.desk.write(f"in/{number}.csv", f"id\n{number}\n")
        plan, place = self.opened()
        ledger = place.ledger("p")
        state = ledger.state()
        verify_sinks(plan, place.project_ctx, state, project=place.config.project_id)
        nothing: Any = None
        run = new_run("p", place)
        batches = Batches(plan=plan, place=place, run=run, ledger=ledger, locks=nothing, warn=print)
        new = NewBatch(plan=plan, bounds=take_bounds(plan, place.project_ctx, state))
        entry = batches._entry(new, state)
        state = ledger.planned(entry, state)
        sink, load = entry.sinks[0], plan.loads[0]
        note = {
            **note_of(entry, Writer(place.config.project_id, "p", sink.name)),
            "generation": entry.generation,
        }
        write_deltalake(
            load.plugin.target(place.project_ctx).location,
            pa.table({"id": pa.array([number], pa.int64())}),
            mode="append",
            commit_properties=CommitProperties(
                custom_metadata={"userMetadata": json.dumps(note)},
                app_transactions=[Transaction(sink.app_id, entry.n)],
            ),
        )
        now = load.plugin.state(place.project_ctx, sink.app_id)
        landed = landed_sink(sink, CommitInfo(committed=True, version=now.version), now)
        ledger.done(entry, state, [landed], place.clock.now())

    def waiting(self) -> list[str]:
        """The files that the next run would read; raises where it would stop."""
        plan, place = self.opened()
        state = place.ledger("p").state()
        verify_sinks(plan, place.project_ctx, state, project=place.config.project_id)
        (bounds,) = take_bounds(plan, place.project_ctx, state).values()
        return sorted(Path(stamp.path).stem for stamp in bounds.files)

    def accept(self, *options: str) -> Answer:
        return self.desk.cli("table", "accept", "t", *options)

    @property
    def table(self) -> str:
        return str(self.desk.table("t"))

    @property
    def books(self) -> Path:
        return self.desk.table("_deltaworks")


@pytest.fixture
def shop(desk: Workbench) -> Shop:
    return Shop(desk)


def set_back(shop: Shop) -> None:
    DeltaTable(shop.table).restore(0)
    foreign = pa.table({"id": pa.array([99], pa.int64())})
    write_deltalake(shop.table, foreign, mode="append")


def recreated(shop: Shop) -> None:
    rows = DeltaTable(shop.table).to_pyarrow_table()
    shutil.rmtree(shop.table)
    write_deltalake(shop.table, rows)


def replaced(shop: Shop) -> None:
    rows = DeltaTable(shop.table).to_pyarrow_table()
    DeltaTable.create(shop.table, rows.schema, mode="overwrite")


def gone(shop: Shop) -> None:
    shutil.rmtree(shop.table)


def older_copy(shop: Shop) -> None:
    (Path(shop.table) / "_delta_log" / f"{1:020d}.json").unlink()


HARM = {
    set_back: ("set back by hand", ["2"]),
    recreated: ("recreated", ["1", "2"]),
    replaced: ("recreated", ["1", "2"]),
    gone: ("gone", ["1", "2"]),
    older_copy: ("an older copy", ["2"]),
}


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("keep", [False, True])
def test_a_table_that_others_changed_can_be_gone_on_with(shop: Shop, harm: Any, keep: bool) -> None:
    shop.load(1)
    shop.load(2)
    harm(shop)
    found, lost = HARM[harm]
    with pytest.raises(GuardError) as caught:
        shop.waiting()
    assert "deltaworks table accept t" in (caught.value.hint or "")
    choice = "--keep-position" if keep else "--read-again"
    shown = shop.accept("--json").json["choices"]
    assert [one["choice"] for one in shown] == ["read-again", "keep-position"]
    done = shop.accept(choice, "--apply", "--json").json
    (meaning,) = done["pipelines"]
    assert (done["applied"], meaning["found"]) == (True, found)
    assert meaning["read_again"] == ([] if keep else [int(n) for n in lost])
    assert shop.waiting() == ([] if keep else lost)
    assert "nothing to accept" in shop.accept().stdout
    shop.load(3)
    assert shop.waiting() == []
    assert "nothing to accept" in shop.accept().stdout


@pytest.mark.parametrize("keep_books", [False, True])
def test_a_table_ahead_of_its_ledger_is_taken_with_what_it_holds(
    shop: Shop, tmp_path: Path, keep_books: bool
) -> None:
    shop.load(1)
    shutil.copytree(shop.books, tmp_path / "backup")
    shop.load(2)
    shutil.rmtree(shop.books)
    if keep_books:
        shutil.copytree(tmp_path / "backup", shop.books)
    with pytest.raises(GuardError, match="ledger"):
        shop.waiting()
    both = {one["choice"]: one for one in shop.accept("--json").json["choices"]}
    assert "would be there twice" in both["read-again"]["error"]["message"]
    text = shop.accept().stdout
    assert "not possible" in text
    assert "counts as read: " in text
    assert shop.accept("--apply").code == 2
    assert shop.accept("--keep-position", "--apply").code == 0
    assert shop.waiting() == []
    shop.load(3)
    assert shop.waiting() == []
    refused = shop.desk.cli("table", "restore", "t", "--version", "0", "--apply")
    assert (refused.code, "was accepted as it is" in refused.stderr) == (5, True)


def test_a_restore_whose_aim_the_log_does_not_tell_cannot_be_accepted(shop: Shop) -> None:
    shop.load(1)
    shop.load(2)
    table = DeltaTable(shop.table)
    moment = table.history()[-1]["timestamp"]
    table.restore(datetime.fromtimestamp(moment / 1000, UTC))
    answer = shop.accept("--read-again")
    assert (answer.code, "nobody can say" in answer.stderr) == (5, True)


def test_a_table_that_nobody_writes_needs_no_acceptance(shop: Shop) -> None:
    answer = shop.desk.cli("table", "accept", "elsewhere", "--read-again")
    assert (answer.code, "no pipeline of this project writes" in answer.stderr) == (2, True)
    both = shop.accept("--read-again", "--keep-position")
    assert (both.code, "exclude each other" in both.stderr) == (2, True)


def test_what_a_stream_has_read_stops_a_run_and_the_other_way_round(shop: Shop) -> None:
    shop.desk.pipeline("p", PIPELINE.replace(", incremental: true", ""))
    shop.desk.write("in/1.csv", "id\n1\n")
    assert shop.desk.cli("stream", "run", "p").code == 0
    refused = shop.desk.fail("p")
    assert (refused.code, "deltaworks stream run p" in refused.stderr) == (5, True)


def test_a_stream_after_runs_begins_where_they_ended(shop: Shop) -> None:
    shop.load(1)
    shop.desk.pipeline("p", PIPELINE.replace(", incremental: true", ""))
    shop.desk.write("in/2.csv", "id\n2\n")
    refused = shop.desk.cli("stream", "run", "p")
    assert (refused.code, "--after-runs" in refused.stderr) == (5, True)
    done = shop.desk.cli("stream", "run", "p", "--after-runs", "--json").json
    assert (done["files"], done["rows"]) == (1, 1)
    assert sorted(row["id"] for row in shop.desk.rows("t")) == [1, 2]


def test_a_full_refresh_that_would_drop_history_is_refused_before_it_begins(shop: Shop) -> None:
    shop.load(1)
    shop.load(2)
    (shop.desk.root / "in" / "1.csv").unlink()
    refused = shop.desk.fail("p", "--full-refresh")
    assert (refused.code, "--drop-history" in refused.stderr) == (5, True)
    assert '1.csv" is not read any more (batch 1)' in refused.stderr
