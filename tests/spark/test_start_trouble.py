"""What goes wrong when Spark starts is one of our errors, and leaves nothing behind (B1)."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaworks.config.object_stores import Stores
from deltaworks.engines.spark.jars import resolve as jars
from deltaworks.engines.spark.java import find as home
from deltaworks.engines.spark.java import find as java
from deltaworks.engines.spark.java import network
from deltaworks.engines.spark.java.find import JavaHome
from deltaworks.engines.spark.session import jvm as launch
from deltaworks.engines.spark.session import start as session
from deltaworks.engines.spark.session.start import SessionSettings, start_session
from deltaworks.engines.spark.versions import PYSPARK, SCALA, Jar
from deltaworks.errors import ConfigError, MissingDependencyError, StorageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = """
import json, os, sys, threading
from pathlib import Path

import psutil
from deltaworks.engines.spark.session import jvm as launch
from deltaworks.engines.spark.session.start import (
    SessionSettings, adopt_session, start_session, stop_session,
)
from deltaworks.errors import DeltaworksError

folder, answer, said = Path(sys.argv[1]), {}, []


def start(conf, **more):
    settings = SessionSettings(app_name="trouble", master="local[1]", conf=conf, **more)
    return start_session(settings, environ=os.environ, notify=said.append)


def failed(conf):
    try:
        start(conf, log_file=folder / "spark.log")
    except DeltaworksError as error:
        return [type(error).__name__, error.message, len(psutil.Process().children())]


answer["bad_flag"] = failed({"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=99"})
answer["bad_memory"] = failed({"spark.testing.memory": "1"})
started = []
thread = threading.Thread(target=lambda: started.append(start({"spark.driver.memory": "900m"})))
thread.start()
thread.join()
answer["in_a_thread"] = started[0].range(3).count()
launch._END_SECONDS = 0  # a JVM that does not end by itself in time is killed
stop_session(started[0])
answer["ended"] = psutil.Process().children() == []
answer["notes"] = said
answer["java_home"] = os.environ["JAVA_HOME"]

from pyspark.sql import SparkSession
from deltaworks.engines.spark.session.conf import DELTA_EXTENSION
from deltaworks.engines.spark.java.find import find_java
from deltaworks.config.cache import cache_dir

os.environ["JAVA_HOME"] = str(find_java(os.environ, cache=cache_dir(os.environ)).home)
plain = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
stop_session(plain)  # not ours, so it goes on
answer["plain_goes_on"] = plain.range(2).count()
try:
    adopt_session(plain, {})
except DeltaworksError as error:
    answer["plain"] = [type(error).__name__, error.message]
plain.stop()
plain = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.extensions", DELTA_EXTENSION)
    .getOrCreate()
)
try:
    adopt_session(plain, {})
except DeltaworksError as error:
    answer["no_jar"] = [type(error).__name__, error.message]
plain.stop()
(folder / "answer.json").write_text(json.dumps(answer))
"""


@pytest.mark.spark
def test_a_jvm_that_does_not_start_or_knows_no_delta_is_told_in_one_line(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path)],
        env={**os.environ, "JAVA_HOME": str(tmp_path / "no-java")},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads((tmp_path / "answer.json").read_text())
    assert answer["bad_flag"][0] == answer["bad_memory"][0] == "EngineError"
    assert "TieredStopAtLevel" in answer["bad_flag"][1]
    assert "System memory 1 must be at least" in answer["bad_memory"][1]
    assert answer["bad_flag"][2] == answer["bad_memory"][2] == 0
    assert (answer["in_a_thread"], answer["ended"]) == (3, True)
    assert any("no-java" in note for note in answer["notes"])
    assert answer["java_home"] == str(tmp_path / "no-java")  # put back after the start
    assert answer["plain_goes_on"] == 2
    unknown = ["ConfigError", "the running Spark session knows no Delta tables"]
    assert (answer["plain"], answer["no_jar"]) == (unknown, unknown)


@pytest.mark.spark
def test_a_second_start_shares_the_jvm_and_takes_the_settings_a_session_can_have(
    jvm: SparkSession,
) -> None:
    conf = {
        "spark.sql.shuffle.partitions": "3",
        "spark.hadoop.fs.s3a.endpoint": "here",
        "spark.executor.cores": "7",
    }
    settings = SessionSettings(app_name="again", master="local[2]", conf=conf)
    spark = start_session(settings, environ=os.environ, notify=lambda _: None)
    assert spark.sparkContext is jvm.sparkContext
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    assert spark.conf.get("fs.s3a.endpoint") == "here"
    assert spark.conf.get("spark.executor.cores", None) is None
    assert jvm.conf.get("spark.sql.shuffle.partitions") != "3"


@pytest.mark.spark
def test_a_running_spark_is_told_of_stores_out_of_sight_of_its_pages(
    jvm: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "told-access-1", "AWS_SECRET_ACCESS_KEY": "told-secret-1"}
    access = Stores(environ={**keys, "AWS_REGION": "ours"}).access("s3://told/orders")
    assert access is not None
    session.reach_stores(jvm, [], theirs=False)
    session.reach_stores(jvm, [access], theirs=False)
    known = jvm._jsc.hadoopConfiguration()
    secret, region = "fs.s3a.bucket.told.secret.key", "fs.s3a.bucket.told.endpoint.region"
    assert known.get(secret) == "told-secret-1"
    assert jvm.conf.get(secret, None) is None
    known.set(region, "theirs")
    session.reach_stores(jvm, [access], theirs=True)
    assert known.get(region) == "theirs"
    monkeypatch.setattr(session, "_can_load", lambda *_: False)
    with pytest.raises(ConfigError, match="without the jars for S3"):
        session.reach_stores(jvm, [access], theirs=False)


@pytest.mark.spark
def test_work_at_hand_is_counted_and_cancelled(spark: SparkSession) -> None:
    from deltaworks.engines.spark.session.jobs import rows_so_far

    assert rows_so_far(spark) == 0
    session.cancel_work(spark)
    assert spark.range(3).count() == 3
    process = session.jvm_process(spark)
    assert process is not None
    assert process[0] != os.getpid()


def test_another_spark_home_must_be_the_same_version(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"which is not Spark {PYSPARK}") as caught:
        home.find_spark_home({"SPARK_HOME": str(tmp_path)})
    assert caught.value.hint == "unset SPARK_HOME"
    jar = tmp_path / "jars" / f"spark-core_{SCALA}-{PYSPARK}.jar"
    jar.parent.mkdir()
    jar.touch()
    assert home.find_spark_home({"SPARK_HOME": str(tmp_path)}) == tmp_path


@pytest.mark.parametrize(
    ("master", "python", "address"),
    [("local[*]", sys.executable, "127.0.0.1"), ("spark://far:7077", "/opt/python3", None)],
)
def test_workers_elsewhere_may_have_their_own_python(
    tmp_path: Path, master: str, python: str, address: str | None
) -> None:
    environment = session._launch_environment(
        SessionSettings(app_name="a", master=master),
        java=JavaHome(home=tmp_path, runtime=tmp_path, version=17, origin="JAVA_HOME"),
        spark_home=tmp_path,
        environ={"PYSPARK_PYTHON": "/opt/python3"},
    )
    assert environment["PYSPARK_PYTHON"] == python
    assert environment.get("SPARK_LOCAL_IP") == address


def test_a_log_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot write Spark's log"):
        launch._open_log(tmp_path / "file" / "spark.log")


def test_py4js_own_complaints_are_kept_from_the_screen(tmp_path: Path) -> None:
    launch._silence_echoes()
    record = logging.makeLogRecord({"pathname": "/lib/py4j/java_gateway.py"})
    ours = logging.makeLogRecord({"pathname": str(tmp_path / "mine.py")})
    assert (launch._not_from_py4j(record), launch._not_from_py4j(ours)) == (False, True)


def fake_java(home: Path, script: str, release: str | None = None) -> Path:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(script)
    program.chmod(0o755)
    if release is not None:
        (home / "release").write_text(release)
    return home


SETTINGS = "#!/bin/sh\necho '    java.home = /opt/jdk' >&2\necho '    java.version = 17.0.1' >&2\n"


@pytest.mark.parametrize(
    ("script", "release", "version"),
    [
        (SETTINGS, "IMPLEMENTOR=nobody\n", 17),
        (SETTINGS, None, 17),
        ("no program at all", None, None),
    ],
)
def test_a_java_that_does_not_say_its_version_is_asked(
    tmp_path: Path, script: str, release: str | None, version: int | None
) -> None:
    home = fake_java(tmp_path / "jdk", script, release)
    found = java._inspect(home / "bin" / "java")
    assert (found.version if found else None) == version


def downloading(tmp_path: Path, script: str) -> Mapping[str, object]:
    folder = fake_java(tmp_path / "jdk", script)
    home = JavaHome(home=folder, runtime=folder, version=17, origin="JAVA_HOME")
    jar = Jar(group="g", artifact="a", version="1", sha256="0" * 64, size_bytes=1)
    with pytest.raises(MissingDependencyError) as caught:
        jars.ensure_jars([jar], java=home, cache=tmp_path, environ={}, notify=lambda _: None)
    return {"message": caught.value.message, "hint": caught.value.hint}


def test_a_download_without_an_answer_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "_DOWNLOAD_SECONDS", 0.1)
    said = downloading(tmp_path, "#!/bin/sh\nexec sleep 30\n")
    assert "did not answer within 0.1 s" in str(said["message"])


def test_a_network_with_its_own_certificates_is_told_how_to_name_them(tmp_path: Path) -> None:
    problem = "javax.net.ssl.SSLException: unable to find valid certification path"
    said = downloading(tmp_path, f"#!/bin/sh\necho '{problem}'\n")
    assert "SSL_CERT_FILE" in str(said["hint"])


def test_without_pyspark_there_is_no_resolver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "find_spec", lambda _: None)
    assert "pip install 'pyspark==" in str(downloading(tmp_path, "")["hint"])


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.touch()
    with pytest.raises(StorageError, match="cannot write the Java starter"):
        java._shim(java._Runtime(tmp_path, 17), cache=cache)
    bundle = next(
        path
        for path in ("/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem", _certifi())
        if path and Path(path).is_file()
    )
    with pytest.raises(StorageError, match="certificate store"):
        network.trust_options({"SSL_CERT_FILE": bundle}, cache=cache)


def _certifi() -> str:
    """pip's own bundle, where the machine has none."""
    from pip._vendor import certifi

    return certifi.where()


def test_a_socks_proxy_reaches_java_as_one() -> None:
    options = network.proxy_options({"https_proxy": "socks5://proxy.example"})
    assert "-DsocksProxyHost=proxy.example" in options
    assert "-DsocksProxyPort=1080" in options
