"""One JVM for each worker of a run, a session of its own for every test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaworks.redact import forget_secrets
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CODEGEN_VARIABLE = "DELTAWORKS_TEST_CODEGEN"
_JAVA_OPTIONS = (
    # the quick compiler comes with a small code cache, which a long run fills and sweeps for ever
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m "
    # the default young generation is collected more than once a second
    "-XX:+UseSerialGC -XX:InitialRAMPercentage=6 -XX:NewRatio=1"
)
_NO_CODEGEN = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the shared JVM, so that `-m "not spark"` starts none."""
    for item in items:
        if isinstance(item, pytest.Function) and "jvm" in item.fixturenames:
            item.add_marker("spark")


def _quick_settings() -> dict[str, str]:
    """What makes Spark quick on a few rows and changes no result.

    Each query of a test differs from the last, so Java classes that Spark generates for it cost
    more than they save. DELTAWORKS_TEST_CODEGEN=on generates them, as users' sessions do.
    """
    codegen = os.environ.get(CODEGEN_VARIABLE) == "on"
    return {
        "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
        # the text of each plan, for a page that is off
        "spark.sql.ui.explainMode": "simple",
        **({} if codegen else _NO_CODEGEN),
    }


@pytest.fixture(scope="session")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The JVM that all Spark tests of a worker share."""
    from deltaworks.engines.spark.jars.s3 import S3_JARS
    from deltaworks.engines.spark.session.start import SessionSettings, start_session, stop_session
    from deltaworks.engines.spark.versions import CORE_JARS

    log_file = tmp_path_factory.mktemp("spark") / "spark.log"
    settings = SessionSettings(
        app_name="tests",
        master="local[2]",
        conf=_quick_settings(),
        jars=(*CORE_JARS, *S3_JARS),
        log_file=log_file,
    )
    spark = start_session(settings, environ=os.environ, notify=lambda _: None)
    yield spark
    stop_session(spark)


@pytest.fixture
def spark(jvm: SparkSession) -> SparkSession:
    """A session that no other test sees."""
    return jvm.newSession()


@pytest.fixture
def bench(jvm: SparkSession, tmp_path: Path) -> Workbench:  # noqa: ARG001 - the JVM must be up
    """A project folder whose runs use the shared JVM."""
    return Workbench(tmp_path)


@pytest.fixture(autouse=True)
def _no_secrets_of_others() -> Iterator[None]:
    """Secrets are known for as long as a process lives; here, a test."""
    forget_secrets()
    yield
    forget_secrets()


@pytest.fixture
def desk(tmp_path: Path) -> Workbench:
    """A project folder for what needs no JVM."""
    return Workbench(tmp_path)
