"""Spark's event log is published by us: no secret in it, however the session ends (P10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaworks.engines.spark.session.conf import SessionSettings, build_conf, command_line_conf
from deltaworks.engines.spark.session.event_log import EventLog, event_log, publish_events
from deltaworks.errors import StorageError
from deltaworks.redact import know_secret

CANARY = "c4n@ry+events-1"
ON = {"spark.eventLog.enabled": "true"}


def test_events_are_copied_without_secrets_and_the_raw_ones_go(tmp_path: Path) -> None:
    know_secret(CANARY)
    log = event_log(
        {**ON, "spark.eventLog.dir": (tmp_path / "my events").as_uri()},
        scratch=tmp_path / "scratch",
        notify=pytest.fail,
    )
    assert log is not None
    log.prepare()
    assert log.raw.stat().st_mode & 0o077 == 0
    (log.raw / "app-1.inprogress").write_text(f'{{"a": "{CANARY}"}}\n{{"b": 1}}\n')
    publish_events(str(tmp_path / "scratch"), str(tmp_path / "my events"))
    assert (tmp_path / "my events" / "app-1").read_text() == '{"a": "***"}\n{"b": 1}\n'
    assert list(log.raw.iterdir()) == []
    publish_events(str(tmp_path / "gone"), None)


def test_a_log_elsewhere_is_sparks_own_and_said(tmp_path: Path) -> None:
    said: list[str] = []
    assert event_log({}, scratch=tmp_path, notify=said.append) is None
    remote = {**ON, "spark.eventLog.dir": "hdfs://n/logs"}
    assert event_log(remote, scratch=tmp_path, notify=said.append) is None
    assert "hdfs://n/logs itself" in said[0]
    assert event_log(ON, scratch=tmp_path, notify=said.append) is not None


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="event log cannot be written"):
        EventLog(raw=tmp_path / "raw", wanted=tmp_path / "file" / "events").prepare()


def test_known_values_are_hidden_by_spark_too_and_stay_off_the_command_line(
    tmp_path: Path,
) -> None:
    know_secret(CANARY)
    conf = build_conf(
        SessionSettings(app_name="a", conf={"spark.harmless": f"kept-{CANARY}"}),
        jars=[],
        scratch=tmp_path,
        java_options=[],
        memory_bytes=8 * 2**30,
        cores=2,
    )
    assert r"c4n@ry\+events\-1" in conf["spark.redaction.regex"]
    assert r"c4n@ry\+events\-1" in conf["spark.redaction.string.regex"]
    shown = command_line_conf(conf)
    assert "spark.redaction.regex" not in shown
    assert not any("c4n@ry" in value for value in shown.values())
