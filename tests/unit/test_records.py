"""Run records: how each run began and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from deltaworks.errors import InputError
from deltaworks.model.results import FAILED, SUCCEEDED, BatchResult, RunResult
from deltaworks.runtime.run_records import RunRecords
from deltaworks.storage.locks.file_lock import locked, may_be_held, pipeline_lock
from deltaworks.storage.locks.owner import signature
from tests.workbench import Workbench

if TYPE_CHECKING:
    import pytest

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


WORDS = 'extract: {type: csv, path: in.csv, schema: "id int"}\nload: {type: delta, table: t}\n'


def statuses(desk: Workbench) -> list[tuple[str, str]]:
    runs = desk.cli("runs", "list", "--json").json["runs"]
    return [(run["pipeline"], run["status"]) for run in runs]


def test_a_run_that_was_killed_does_not_stay_running(desk: Workbench, tmp_path: Path) -> None:
    java = tmp_path / "java"
    (java / "bin").mkdir(parents=True)
    (java / "bin" / "java").write_text(f"#!/bin/sh\necho up > {tmp_path}/up\nexec sleep 60\n")
    (java / "bin" / "java").chmod(0o755)
    (java / "release").write_text('JAVA_VERSION="17.0.1"\nMODULES="jdk.incubator.vector"\n')
    desk.write("in.csv", "id\n1\n")
    desk.pipeline("p", WORDS)
    code = "from deltaworks.cli.app import main; main()"
    words = ("run", "p", "--quiet", "--project", str(desk.root))
    child = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env={**os.environ, "JAVA_HOME": str(java)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until((tmp_path / "up").exists)
        assert statuses(desk) == [("p", "running")]
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    assert statuses(desk) == [("p", "killed")]
    run_id = desk.cli("runs", "list", "--json").json["runs"][0]["run_id"]
    assert "killed" in desk.cli("runs", "show", run_id).stdout


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_of_two_runs_of_a_pipeline_without_an_end_the_older_was_killed(tmp_path: Path) -> None:
    records = RunRecords(str(tmp_path), "shop")
    for n, name in enumerate(("orders", "orders", "sales")):
        records.started(f"run-{n}", name, AT + timedelta(seconds=n))
    found = {run.run_id: run.status for run in records.all()}
    assert found == {"run-0": "killed", "run-1": "running", "run-2": "running"}


def test_a_run_that_cannot_be_seen_from_here_runs_as_long_as_its_pipeline_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = {**signature(None), "machine": "another", "boot": "another"}
    monkeypatch.setattr("deltaworks.runtime.run_records.signature", lambda _: elsewhere)
    records = RunRecords(str(tmp_path), "shop")
    records.started("run-1", "orders", AT)
    lock = pipeline_lock(str(tmp_path), "orders")
    assert records.all()[0].status == "killed"
    with locked([lock], wait_seconds=1, notify=lambda _: None):
        assert records.all()[0].status == "running"
    assert records.all()[0].status == "killed"
    assert may_be_held("s3://lake/_deltaworks/locks/orders.lock")
