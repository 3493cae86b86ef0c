from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from deltaworks.config.object_stores import StoreAccess
from deltaworks.engines.spark.jars.compatibility import (
    check_versions,
    installed_versions,
    require_versions,
)
from deltaworks.engines.spark.jars.connectors import (
    CONNECTOR_JARS,
    connector_jars,
    connectors_missing,
)
from deltaworks.engines.spark.jars.s3 import S3_JARS, store_jars
from deltaworks.engines.spark.versions import CORE_JARS, DELTA_SPARK, PYSPARK, SPARK_AVRO
from deltaworks.errors import MissingDependencyError

GOOD = {"pyspark": PYSPARK, "delta-spark": DELTA_SPARK, "pandas": "2.3.3"}


def test_the_lock_and_the_package_metadata_name_the_same_versions() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    wanted = tomllib.loads(project.read_text())["project"]["dependencies"]
    assert {f"pyspark=={PYSPARK}", f"delta-spark=={DELTA_SPARK}"} <= set(wanted)


def test_every_core_jar_has_a_coordinate_a_checksum_and_a_size() -> None:
    versions = {"io.delta": DELTA_SPARK, "org.apache.spark": SPARK_AVRO}
    assert {jar.group for jar in CORE_JARS} == versions.keys()
    for jar in CORE_JARS:
        assert jar.coordinate == f"{jar.group}:{jar.artifact}:{versions[jar.group]}"
        assert jar.file_name == f"{jar.artifact}-{versions[jar.group]}.jar"
        assert re.fullmatch(r"[0-9a-f]{64}", jar.sha256)
        assert jar.size_bytes > 50_000


def test_the_tested_mix_has_no_problems() -> None:
    assert check_versions(GOOD) == ()
    require_versions(GOOD)


def test_pandas_may_be_absent() -> None:
    assert check_versions({key: GOOD[key] for key in ("pyspark", "delta-spark")}) == ()


@pytest.mark.parametrize(
    ("package", "version", "says", "fix"),
    [
        ("pyspark", "4.2.1", "PySpark 4.2.1", "pip install 'pyspark==4.2.0'"),
        ("delta-spark", "4.4.1", "jar is not available", "pip install 'delta-spark==4.4.0'"),
        ("delta-spark", "4.0.0", "tested version", "pip install 'delta-spark==4.4.0'"),
        ("pandas", "3.1.0", "below 3", "pip install 'pandas<3'"),
    ],
)
def test_each_wrong_version_is_named_with_its_fix(
    package: str, version: str, says: str, fix: str
) -> None:
    (problem,) = check_versions({**GOOD, package: version})
    assert says in problem.message
    assert problem.hint == fix


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(MissingDependencyError) as caught:
        require_versions({"pandas": "3.0"})
    assert "PySpark is not installed; delta-spark is not installed" in caught.value.message
    assert caught.value.hint.count("pip install") == 3


def test_installed_versions_leaves_out_what_is_not_there() -> None:
    assert set(installed_versions(["pytest", "no-such-package"])) == {"pytest"}


def test_every_jar_of_s3_has_a_checksum_and_a_size_and_is_named_once() -> None:
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) for jar in S3_JARS)
    assert 5_000_000 < sum(jar.size_bytes for jar in S3_JARS) < 20_000_000
    names = [jar.file_name for jar in (*CORE_JARS, *S3_JARS)]
    assert len(set(names)) == len(names)
    assert "hadoop-aws-3.5.0.jar" in names


def test_every_jar_of_a_connector_has_a_checksum_and_a_size() -> None:
    jars = connector_jars(CONNECTOR_JARS)
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) for jar in jars)
    assert all(jar.size_bytes for jar in jars)
    assert len({jar.file_name for jar in (*CORE_JARS, *S3_JARS, *jars)}) == len(
        [*CORE_JARS, *S3_JARS, *jars]
    )


def test_a_connector_that_two_steps_need_is_fetched_once() -> None:
    assert connector_jars(["postgres"]) == CONNECTOR_JARS["postgres"]
    assert len(connector_jars(["postgres", "postgres"])) == len(CONNECTOR_JARS["postgres"])


def test_a_connector_is_missing_until_its_jars_are_in_the_cache(tmp_path: Path) -> None:
    assert set(connectors_missing(cache=tmp_path)) == set(CONNECTOR_JARS)
    (tmp_path / "jars").mkdir()
    for jar in CONNECTOR_JARS["postgres"]:
        (tmp_path / "jars" / jar.file_name).touch()
    assert "postgres" not in connectors_missing(cache=tmp_path)


def test_only_stores_of_s3_need_its_jars() -> None:
    lake = StoreAccess(kind="s3", bucket="lake", values={}, origins={})
    assert store_jars([lake]) == S3_JARS
    assert store_jars([replace(lake, kind="gcs")]) == ()
