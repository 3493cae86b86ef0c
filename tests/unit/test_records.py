"""Run records: how each run began and ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from deltaworks.errors import InputError
from deltaworks.model.results import FAILED, SUCCEEDED, BatchResult, RunResult
from deltaworks.runtime.records import RunRecords

AT = datetime(2026, 1, 2, 10, tzinfo=UTC)


def result(run_id: str, *, error: InputError | None = None) -> RunResult:
    return RunResult(
        run_id=run_id,
        pipeline="orders",
        status=FAILED if error else SUCCEEDED,
        started_at=AT.isoformat(),
        duration_s=1.23456,
        batches=(BatchResult(n=1, id=None, state="done", rows_read=5),),
        error=error,
    )


def test_a_project_without_runs_has_none_and_makes_no_table(tmp_path: Path) -> None:
    assert RunRecords(str(tmp_path), "shop").all() == ()
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_remembered_as_the_document_it_printed(tmp_path: Path) -> None:
    records = RunRecords(str(tmp_path), "shop")
    records.started("run-1", "orders", AT)
    records.ended(result("run-1"), AT + timedelta(seconds=2))
    found = RunRecords(str(tmp_path), "shop").all()
    assert [(r.run_id, r.pipeline, r.status, r.started_at) for r in found] == [
        ("run-1", "orders", SUCCEEDED, AT)
    ]
    assert found[0].to_json() == result("run-1").to_json()


def test_a_run_without_an_end_is_running_or_was_killed(tmp_path: Path) -> None:
    records = RunRecords(str(tmp_path), "shop")
    records.started("run-1", "orders", AT)
    assert records.all()[0].to_json() == {
        "run_id": "run-1",
        "pipeline": "orders",
        "status": "running",
        "started_at": AT.isoformat(),
    }


def test_a_failed_run_keeps_its_error(tmp_path: Path) -> None:
    records = RunRecords(str(tmp_path), "shop")
    records.started("run-1", "orders", AT)
    failed = result("run-1", error=InputError("no file", hint="make one"))
    records.ended(failed, AT + timedelta(seconds=1))
    error = records.all()[0].to_json()["error"]
    assert (error["code"], error["message"], error["hint"]) == ("input", "no file", "make one")


def test_runs_come_newest_first_and_only_the_projects_own(tmp_path: Path) -> None:
    records = RunRecords(str(tmp_path), "shop")
    for minutes in (0, 10, 5):
        records.started(f"run-{minutes}", "orders", AT + timedelta(minutes=minutes))
    RunRecords(str(tmp_path), "other").started("foreign", "orders", AT)
    assert [r.run_id for r in records.all()] == ["run-10", "run-5", "run-0"]
