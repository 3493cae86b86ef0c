"""Every way out takes known secrets out: errors, logs, screens, books and command lines."""

from __future__ import annotations

import io
import logging
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from deltaworks.cli.output import error_line, line, print_json, print_table, print_text
from deltaworks.engines.spark.session.conf import (
    SessionSettings,
    build_conf,
    command_line_conf,
    refuse_exposed,
)
from deltaworks.engines.spark.session.jvm import PrintedLog
from deltaworks.errors import ConfigError, DeltaworksError, Problem
from deltaworks.log import set_up_logging
from deltaworks.model.batch import Bounds
from deltaworks.redact import MASK, know_secret, safe_json
from deltaworks.runtime.ledger.state import PLANNED, BatchEntry, LedgerState
from deltaworks.runtime.ledger.table import Ledger
from deltaworks.sinks.delta import DeltaSink
from tests.workbench import Workbench

SECRET = "canary-55-secret"  # noqa: S105


@pytest.fixture(autouse=True)
def _known() -> None:
    know_secret(SECRET, "orders")


def test_an_error_never_holds_one() -> None:
    context: dict[str, object] = {"log": f"x {SECRET}", "n": 1}
    error = DeltaworksError(f"a {SECRET}", hint=f"b {SECRET}", context=context)
    assert str(error) == f"a {MASK}\n  fix: b {MASK}"
    assert error.args == (f"a {MASK}",)
    assert error.context == {"log": f"x {MASK}", "n": 1}
    problem = Problem(code="x", message=SECRET, hint=SECRET)
    assert (problem.message, problem.hint) == (MASK, MASK)


def test_a_screen_never_shows_one(capsys: pytest.CaptureFixture[str]) -> None:
    line(f"1 {SECRET}")
    print_text(f"2 {SECRET}\n")
    print_table(("a",), [(f"3 {SECRET}",)])
    print_json({"a": [SECRET, 5], SECRET: Path(f"/{SECRET}")})
    error_line(f"5 {SECRET}")
    shown = capsys.readouterr()
    assert SECRET not in shown.out + shown.err
    assert shown.out.count(MASK) == 6
    assert shown.err == f"5 {MASK}\n"


def test_a_log_never_holds_one(monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    written = io.StringIO()
    monkeypatch.setattr("sys.stderr", written)
    try:
        set_up_logging(debug=True)
        try:
            int(SECRET)
        except ValueError:
            logging.getLogger("x").exception("failed with %s", SECRET)
    finally:
        logging.captureWarnings(capture=False)
        root.handlers[:] = before
        root.setLevel(level)
    assert f"base 10: '{MASK}'" in written.getvalue()
    assert SECRET not in written.getvalue()


def test_books_keep_words_that_happen_to_be_passwords() -> None:
    assert safe_json({"pipeline": "orders", "note": (SECRET,)}) == (
        f'{{"pipeline": "orders", "note": ["{MASK}"]}}'
    )


def entry(batch_id: str, path: str) -> BatchEntry:
    return BatchEntry(
        n=1,
        batch_id=batch_id,
        run_id="r",
        spec="s",
        generation=0,
        state=PLANNED,
        bounds={"source": Bounds(kind="files", identity=path)},
        sinks=(),
        at=datetime(2026, 1, 1, tzinfo=UTC),
    )


@pytest.mark.parametrize(("batch_id", "path"), [(SECRET, "data"), ("b", f"/{SECRET}/x.csv")])
def test_the_ledger_refuses_one_before_anything_is_read(
    tmp_path: Path, batch_id: str, path: str
) -> None:
    ledger = Ledger.open(str(tmp_path), project="p", pipeline="orders")
    with pytest.raises(ConfigError, match="the ledger would keep it"):
        ledger.planned(entry(batch_id, path), LedgerState())
    ledger.planned(entry("orders", "data/orders"), LedgerState())
    assert SECRET.encode() not in b"".join(
        p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()
    )


def test_a_commit_would_show_it_so_the_sink_refuses() -> None:
    sink = DeltaSink(
        table="t", mode="upsert", merge_keys=("id",), update_condition=f"source.x = '{SECRET}'"
    )
    assert sink.problems() == ("an option holds a secret, and every commit would show it",)
    assert DeltaSink(table="orders").problems() == ()


def test_a_check_would_show_it_so_validate_refuses(
    desk: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_TOKEN", SECRET)
    check = """{type: expression, rule: "id <> '${env:THE_TOKEN}'", on_fail: quarantine}"""
    spec = f"extract: {{type: csv, path: a}}\nchecks: [{check}]\n"
    desk.pipeline("p", f"{spec}load: {{type: delta, table: t}}\n")
    (problem,) = desk.cli("validate", "--json").json["problems"]
    assert (problem["code"], problem["line"]) == ("secret", 3)


def settings(**conf: str) -> SessionSettings:
    named = {f"spark.{key.replace('__', '.')}": value for key, value in conf.items()}
    return SessionSettings(app_name="a", conf=named)


def test_a_setting_whose_value_is_known_stays_off_the_command_line() -> None:
    conf = build_conf(
        settings(harmless=f"x{SECRET}", other="orders"),
        jars=(),
        scratch=Path("/tmp/scratch"),
        java_options=(),
        memory_bytes=2**33,
        cores=2,
    )
    shown = command_line_conf(conf)
    assert conf["spark.harmless"] == f"x{SECRET}"
    assert "spark.harmless" not in shown
    assert shown["spark.other"] == "orders"
    assert "credential" in conf["spark.redaction.regex"]


def test_a_secret_that_only_a_command_line_could_carry_is_refused() -> None:
    refuse_exposed(settings(driver__extraJavaOptions="-Da=b"))
    with pytest.raises(ConfigError, match=r"spark\.driver\.extraJavaOptions holds a secret"):
        refuse_exposed(settings(driver__extraJavaOptions=f"-Da={SECRET}"))


def test_what_a_jvm_prints_is_scrubbed_before_it_reaches_the_disk(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    printed = PrintedLog(log.open("ab", buffering=0))
    os.write(printed.end, f"one {SECRET}\ntwo \udcff and no end {SECRET}".encode(errors="replace"))
    printed.handed_over()
    printed.settle()
    assert log.read_text() == f"one {MASK}\ntwo ? and no end {MASK}"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_log_on_a_full_disk_keeps_no_jvm_waiting() -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        printed = PrintedLog(full)
        for _ in range(20):
            os.write(printed.end, b"x" * 10_000 + b"\n")
        printed.handed_over()
        printed.settle()
        assert full.closed
