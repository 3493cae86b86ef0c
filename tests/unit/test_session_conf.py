from __future__ import annotations

from pathlib import Path

import pytest

from deltaworks.engines.spark.java.jvm_options import (
    collector_options,
    driver_memory_mebibytes,
    machine_memory_bytes,
)
from deltaworks.engines.spark.session.conf import (
    DELTA_EXTENSION,
    SessionSettings,
    build_conf,
    command_line_conf,
    refuse_contradictions,
)
from deltaworks.engines.spark.session.jvm import first_cause
from deltaworks.engines.spark.session.required_conf import ALWAYS, DELTA_CATALOG, UNLESS_TOLD
from deltaworks.errors import ConfigError

JARS = (Path("/ca che/a.jar"), Path("/ca che/b.jar"))
GIBIBYTE = 1024**3


def conf_of(master: str = "local[*]", **conf: str) -> dict[str, str]:
    settings = SessionSettings(
        app_name="test",
        master=master,
        conf={key.replace("__", "."): value for key, value in conf.items()},
    )
    return build_conf(
        settings,
        jars=JARS,
        scratch=Path("/tmp/scratch"),
        java_options=["-Da=/ca che/x", "-Db=c"],
        memory_bytes=8 * GIBIBYTE,
        cores=2,
    )


def test_a_local_session_knows_delta_keeps_to_itself_and_leaves_the_folder_clean() -> None:
    conf = conf_of()
    assert conf["spark.sql.extensions"] == DELTA_EXTENSION
    assert conf["spark.sql.catalog.spark_catalog"] == DELTA_CATALOG
    assert conf["spark.driver.extraClassPath"] == "/ca che/a.jar:/ca che/b.jar"
    assert conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert conf["spark.sql.warehouse.dir"] == "file:///tmp/scratch/warehouse"
    assert conf["spark.sql.session.timeZone"] == "UTC"
    assert conf["spark.sql.ansi.enabled"] == "true"
    assert "spark.jars" not in conf


def test_a_cluster_gets_the_jars_sent_and_its_own_sizes() -> None:
    conf = conf_of("spark://host:7077")
    assert conf["spark.executor.extraJavaOptions"] == "-Duser.timezone=UTC"
    assert conf["spark.jars"] == "file:///ca%20che/a.jar,file:///ca%20che/b.jar"
    for key in ("driver.extraClassPath", "driver.host", "sql.shuffle.partitions", "driver.memory"):
        assert f"spark.{key}" not in conf


def test_the_users_settings_win() -> None:
    conf = conf_of(spark__sql__shuffle__partitions="64", spark__ui__enabled="true")
    assert (conf["spark.sql.shuffle.partitions"], conf["spark.ui.enabled"]) == ("64", "true")


def test_expressions_are_sent_without_the_line_of_code_behind_them() -> None:
    key = "spark.python.sql.dataFrameDebugging.enabled"
    assert conf_of()[key] == "false"
    assert conf_of(spark__python__sql__dataFrameDebugging__enabled="true")[key] == "true"


def test_lists_of_the_user_are_extended() -> None:
    conf = conf_of(
        spark__sql__extensions="org.example.Mine",
        spark__driver__extraJavaOptions="-Xss4m",
        spark__driver__extraClassPath="/mine.jar",
    )
    assert conf["spark.sql.extensions"] == f"org.example.Mine,{DELTA_EXTENSION}"
    assert conf["spark.driver.extraJavaOptions"] == '-Xss4m "-Da=/ca che/x" -Db=c'
    assert conf["spark.driver.extraClassPath"] == "/mine.jar:/ca che/a.jar:/ca che/b.jar"


def test_an_extension_is_not_named_twice() -> None:
    assert conf_of(spark__sql__extensions=DELTA_EXTENSION)["spark.sql.extensions"] == (
        DELTA_EXTENSION
    )


def test_what_would_break_us_is_refused_by_name() -> None:
    settings = SessionSettings(app_name="test", conf={"spark.sql.session.timeZone": "CET"})
    with pytest.raises(ConfigError, match=r"spark\.sql\.session\.timeZone is always UTC"):
        refuse_contradictions(settings)


@pytest.mark.parametrize("key", ALWAYS)
def test_no_setting_that_decides_about_rows_can_be_chosen(key: str) -> None:
    settings = SessionSettings(app_name="test", conf={key: "something else"})
    with pytest.raises(ConfigError, match="is always"):
        refuse_contradictions(settings)


def test_how_foreign_files_are_read_can_be_chosen() -> None:
    rebase = "spark.sql.parquet.datetimeRebaseModeInRead"
    assert conf_of()[rebase] == UNLESS_TOLD[rebase] == "CORRECTED"
    assert conf_of(spark__sql__parquet__datetimeRebaseModeInRead="LEGACY")[rebase] == "LEGACY"


@pytest.mark.parametrize(
    "key",
    [
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.access.key",
        "spark.ssl.keyPassword",
        "spark.hadoop.fs.azure.account.key.name",
        "spark.some.token",
    ],
)
def test_secrets_stay_off_the_command_line(key: str) -> None:
    assert command_line_conf({key: "x", "spark.app.name": "a"}) == {"spark.app.name": "a"}


@pytest.mark.parametrize(("gibibytes", "mebibytes"), [(1, 768), (4, 1638), (8, 3276), (64, 4096)])
def test_the_driver_gets_a_share_of_the_memory(gibibytes: int, mebibytes: int) -> None:
    assert driver_memory_mebibytes(gibibytes * GIBIBYTE) == mebibytes


@pytest.mark.parametrize(
    ("input_mebibytes", "mebibytes"), [(0, 1024), (64, 1024), (100, 1600), (1000, 4096)]
)
def test_a_command_that_reads_little_takes_little_memory(
    input_mebibytes: int, mebibytes: int
) -> None:
    read = input_mebibytes * GIBIBYTE // 1024
    assert driver_memory_mebibytes(64 * GIBIBYTE, read) == mebibytes
    assert driver_memory_mebibytes(GIBIBYTE, read) == 768


def test_the_machine_has_memory() -> None:
    assert machine_memory_bytes() > GIBIBYTE // 4


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (
            "Error occurred during initialization of VM\nCould not reserve enough space\n",
            "Could not reserve enough space",
        ),
        (
            (
                "WARNING: Using incubator modules\n"
                'Exception in thread "main" org.apache.spark.SparkException: Master is no URL\n'
                "\tat org.apache.spark.Some.thing(Some.scala:1)\n"
            ),
            "Master is no URL",
        ),
        (
            (
                "26/01/02 03:04:05 WARN Client: no answer\njava.io.IOException: refused\n"
                "26/01/02 03:04:06 ERROR Backend: All masters are unresponsive\n"
            ),
            "All masters are unresponsive",
        ),
        ("", "it gave no reason"),
    ],
)
def test_a_failed_start_is_told_in_one_line(log: str, cause: str) -> None:
    assert first_cause(log) == cause


@pytest.mark.parametrize(
    ("said", "options"),
    [
        (["", "-Xss4m"], ["-XX:+UseParallelGC"]),
        (["-Xss4m -XX:+UseG1GC"], []),
        (["", "-XX:-UseParallelGC"], []),
    ],
)
def test_a_local_driver_collects_with_all_cores_unless_the_user_chose(
    said: list[str], options: list[str]
) -> None:
    assert collector_options(said, short=False) == options


def test_a_short_command_collects_with_one_thread() -> None:
    assert collector_options([], short=True) == ["-XX:+UseSerialGC"]
    assert collector_options(["-XX:+UseG1GC"], short=True) == []


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.parser.escapedStringLiterals",
        "spark.sql.ansi.doubleQuotedIdentifiers",
        "spark.sql.variable.substitute",
        "spark.sql.caseSensitive",
    ],
)
def test_settings_that_would_change_what_our_own_sql_says_are_refused(key: str) -> None:
    """A key with a backslash would not be found, and inserted again."""
    settings = SessionSettings(app_name="test", conf={key: "true"})
    with pytest.raises(ConfigError, match=f"{key} is always false here"):
        refuse_contradictions(settings)
    refuse_contradictions(SessionSettings(app_name="test", conf={key: "False"}))
    assert conf_of()[key] == "false"
