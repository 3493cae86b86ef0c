"""Which of Java's compilers a command gets: by its input, unless somebody says otherwise."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from deltaworks.api import Project
from deltaworks.engines.spark.java.jvm_options import (
    SHORT_INPUT_BYTES,
    choose_compiler,
    wanted_compiler,
)
from deltaworks.engines.spark.session import start as session
from deltaworks.engines.spark.session.conf import SessionSettings
from deltaworks.errors import ConfigError
from deltaworks.runtime.environment import input_bytes
from tests.workbench import Workbench

QUICK = "-XX:TieredStopAtLevel=1"


def chosen(size: int | None, *, environ: dict[str, str] | None = None, java: str = "") -> bool:
    """Whether a session gets the quick compiler."""
    conf = {"spark.driver.extraJavaOptions": java} if java else {}
    settings = SessionSettings(app_name="test", conf=conf, input_bytes=size)
    said = session._said_to_java(settings, environ or {})
    return QUICK in session._compiler_options(settings, environ or {}, said)


def test_a_small_command_starts_sooner_and_a_large_one_works_faster() -> None:
    assert chosen(0)
    assert chosen(SHORT_INPUT_BYTES)
    assert not chosen(SHORT_INPUT_BYTES + 1)


def test_what_is_not_known_may_be_large() -> None:
    assert not chosen(None)


@pytest.mark.parametrize("java", ["-Xint", "-XX:-TieredCompilation", "-Xss4m -Xcomp", QUICK])
def test_the_users_own_options_for_the_compiler_win(java: str) -> None:
    assert not chosen(1, java=java)
    assert not chosen(1, environ={"JAVA_TOOL_OPTIONS": java})


def test_other_options_for_java_change_nothing() -> None:
    assert chosen(1, java="-Xss4m")


def test_the_environment_overrules_the_project() -> None:
    assert not chosen(1, environ={"DELTAWORKS_COMPILER": "full"})
    assert chosen(None, environ={"DELTAWORKS_COMPILER": "QUICK"})
    assert wanted_compiler({}, "full") == "full"
    with pytest.raises(ConfigError, match="soon"):
        wanted_compiler({"DELTAWORKS_COMPILER": "soon"}, "auto")


def test_the_choice_is_in_the_log_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        chosen(2000)
    assert caplog.messages == ["Java compiles quickly for 2,000 bytes of input"]
    assert choose_compiler("full", input_bytes=1, said=[]).reason.endswith("as asked")


def sized(desk: Workbench, *names: str) -> int | None:
    project = desk.open()
    plans = project.catalog(*names).plans
    return input_bytes(plans, project.config)


ORDERS = "extract: {type: csv, path: data/*.csv, schema: 'id int'}\nload: {type: delta, table: t}\n"


def test_the_files_of_all_pipelines_that_will_run_are_counted(desk: Workbench) -> None:
    desk.write("data/a.csv", "id\n1\n")
    desk.write("data/b.csv", "id\n22\n")
    desk.pipeline("orders", ORDERS)
    desk.pipeline("again", ORDERS.replace("table: t", "table: u, mode: upsert, merge_keys: [id]"))
    assert sized(desk, "orders") == 11
    assert sized(desk) == 22


def test_tables_that_are_read_or_merged_into_count_too(desk: Workbench) -> None:
    import pyarrow as pa
    from deltalake import DeltaTable, write_deltalake

    desk.write("data/a.csv", "id\n1\n")
    table = desk.root / "warehouse" / "t"
    write_deltalake(str(table), pa.table({"id": [1, 2]}))
    size = sum(pa.table(DeltaTable(str(table)).get_add_actions()).column("size_bytes").to_pylist())
    desk.pipeline("merged", ORDERS.replace("table: t", "table: t, mode: upsert, merge_keys: [id]"))
    desk.pipeline("read", "extract: {type: delta, table: t}\nload: {type: delta, table: u}\n")
    assert sized(desk, "merged") == size + 5
    assert sized(desk, "read") == size


@pytest.mark.parametrize(
    "extract",
    [
        "{type: csv, path: missing.csv, schema: 'id int'}",
        "{type: delta, path: 's3://lake/orders'}",
        "{type: sql, query: 'SELECT 1 AS id'}",
    ],
)
def test_an_input_that_cannot_be_measured_is_not_known(desk: Workbench, extract: str) -> None:
    desk.pipeline("orders", f"extract: {extract}\nload: {{type: delta, table: t}}\n")
    assert sized(desk, "orders") is None


def test_only_a_process_of_one_command_says_what_it_will_read(desk: Workbench) -> None:
    """A notebook may do anything next."""
    desk.write("data/a.csv", "id\n1\n")
    desk.pipeline("orders", ORDERS)
    for one_command, size in ((True, 5), (False, None)):
        project = Project.open(Path(desk.root), one_command=one_command)
        (plan,) = project.catalog().plans
        assert project._workplace(plan).input_bytes() == size
