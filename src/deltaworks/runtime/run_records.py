"""Run records: how each run began and ended, kept in the warehouse."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.deltars.event_table.table import EventTable, event_schema
from deltaworks.errors import ConfigError
from deltaworks.model.results import KILLED, RUNNING, RunResult
from deltaworks.model.table_ref import OWN_FOLDER
from deltaworks.redact import safe_json
from deltaworks.storage.locks.file_lock import may_be_held, pipeline_lock
from deltaworks.storage.locks.owner import fate, signature
from deltaworks.suggest import did_you_mean

STARTED, ENDED = "started", "ended"
_PROCESS = "process"
"""In the record of a run's start: who runs it."""
_COLUMNS = (
    ("project", "text"),
    ("pipeline", "text"),
    ("run_id", "text"),
    ("kind", "text"),
    ("at", "time"),
    ("status", "text"),
    ("record", "text"),
)


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One run as it is remembered; without an end it is running, or it was killed."""

    run_id: str
    pipeline: str
    started_at: datetime
    status: str
    record: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The run's own document, or what is known of a run that has no end."""
        if "contract" in self.record:
            return self.record
        return {
            "run_id": self.run_id,
            "pipeline": self.pipeline,
            "status": self.status,
            "started_at": self.started_at.isoformat(),
        }

    def checks(self) -> tuple[CheckRecord, ...]:
        """What the run's checks found, batch by batch."""
        return tuple(
            CheckRecord(run_id=self.run_id, at=self.started_at, batch=batch["n"], check=check)
            for batch in self.record.get("batches", ())
            for check in batch["checks"]
        )


@dataclass(frozen=True, kw_only=True)
class CheckRecord:
    """What one check found in one run; `check` is what the run's document says of it."""

    run_id: str
    at: datetime
    batch: int
    check: dict[str, Any]

    @property
    def name(self) -> str:
        """What results call the check."""
        return str(self.check["name"])

    def to_json(self) -> dict[str, Any]:
        """The check's own document, with its run."""
        whose = {"run_id": self.run_id, "at": self.at.isoformat(), "batch": self.batch}
        return {**whose, **self.check}


class RunRecords:
    """The runs of one project."""

    def __init__(self, warehouse: str, project: str, *, stores: Stores = NO_STORES) -> None:
        self.project, self.warehouse = project, warehouse
        place = f"{warehouse}/{OWN_FOLDER}/runs"
        self.table = EventTable(place, event_schema(_COLUMNS), stores=stores)

    def started(self, run_id: str, pipeline: str, at: datetime) -> None:
        """Remember that a run began."""
        record = {_PROCESS: signature(None)}
        self._add(run_id, pipeline, kind=STARTED, at=at, status=RUNNING, record=record)

    def ended(self, result: RunResult, at: datetime) -> None:
        """Remember how a run ended."""
        self._add(
            str(result.run_id),
            result.pipeline,
            kind=ENDED,
            at=at,
            status=result.status,
            record=result.to_json(),
        )
        self.table.compact()

    def _add(
        self,
        run_id: str,
        pipeline: str,
        *,
        kind: str,
        at: datetime,
        status: str,
        record: dict[str, Any],
    ) -> None:
        self.table.append(
            {
                "project": self.project,
                "pipeline": pipeline,
                "run_id": run_id,
                "kind": kind,
                "at": at,
                "status": status,
                "record": safe_json(record),
            }
        )

    def all(self, pipeline: str = "") -> tuple[RunRecord, ...]:
        """Every run, or those of one pipeline, newest first."""
        only = {"pipeline": pipeline} if pipeline else {}
        rows = self.table.read(project=self.project, **only)
        rows.sort(key=lambda row: (row["at"], row["kind"] == ENDED))
        found: dict[str, RunRecord] = {}
        for row in rows:
            known = found.get(row["run_id"])
            found[row["run_id"]] = RunRecord(
                run_id=row["run_id"],
                pipeline=row["pipeline"],
                started_at=known.started_at if known else row["at"],
                status=row["status"],
                record=json.loads(row["record"]),
            )
        newest = sorted(found.values(), key=lambda run: run.started_at, reverse=True)
        overtaken: set[str] = set()
        for i, run in enumerate(newest):
            if run.status == RUNNING and (run.pipeline in overtaken or self._is_gone(run)):
                newest[i] = replace(run, status=KILLED)
            overtaken.add(run.pipeline)
        return tuple(newest)

    def _is_gone(self, run: RunRecord) -> bool:
        """Whether the process of the last run of a pipeline is gone, and has written no end.

        A process that cannot be seen from here is at work as long as the pipeline is locked.
        """
        known = fate(run.record.get(_PROCESS, {}))
        if known != "unknown":
            return known != "alive"
        return not may_be_held(pipeline_lock(self.warehouse, run.pipeline))


def run_named(run_id: str, records: Sequence[RunRecord]) -> RunRecord:
    """The run whose id begins so."""
    found = [record for record in records if record.run_id.startswith(run_id)]
    if len(found) != 1:
        what = "no run has" if not found else f"{len(found)} runs have"
        raise ConfigError(
            f'{what} an id that begins with "{run_id}"',
            hint=did_you_mean(run_id, [record.run_id for record in records]),
        )
    return found[0]


def last_checks(
    pipeline: str, runs: Sequence[RunRecord], *, check: str, last: int
) -> tuple[CheckRecord, ...]:
    """What checks, or one of them, found in the last runs that had any, newest last."""
    judged = [run.checks() for run in runs]
    known = {record.name for found in judged for record in found}
    if check and check not in known:
        hint = did_you_mean(check, sorted(known)) or "no run has recorded a check"
        raise ConfigError(f'no run of "{pipeline}" had a check "{check}"', hint=hint)
    wanted = [[r for r in found if check in ("", r.name)] for found in judged]
    newest = [found for found in wanted if found][:last]
    return tuple(record for found in reversed(newest) for record in found)
