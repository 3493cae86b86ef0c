"""The archive of classes: one per Java and class path, written aside, used only when whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deltaworks.engines.spark.java import find as home
from deltaworks.engines.spark.java.class_archive import ClassArchive, archive_mode, class_archive
from deltaworks.engines.spark.java.find import JavaHome
from deltaworks.engines.spark.session import start as session
from deltaworks.errors import ConfigError, MissingDependencyError, StorageError


@pytest.fixture
def java(tmp_path: Path) -> JavaHome:
    """A runtime that comes with an archive of its own classes."""
    runtime = tmp_path / "java"
    (runtime / "lib" / "server").mkdir(parents=True)
    (runtime / "lib" / "modules").write_text("build 1")
    (runtime / "lib" / "server" / "classes.jsa").write_text("")
    return JavaHome(home=runtime, runtime=runtime, version=17, origin="path")


def archive(java: JavaHome, tmp_path: Path, *, spark: str = "spark") -> ClassArchive:
    home, jar = tmp_path / spark, tmp_path / "delta.jar"
    (home / "jars").mkdir(parents=True, exist_ok=True)
    if not jar.exists():
        jar.touch()
    return class_archive(java, jars=[jar], spark_home=home, cache=tmp_path / "cache")


def made(java: JavaHome, tmp_path: Path, *, spark: str = "spark") -> ClassArchive:
    found = archive(java, tmp_path, spark=spark)
    found.prepare()
    found.draft.write_text("classes")
    assert found.finish()
    return found


def test_an_archive_is_used_only_when_it_is_there(java: JavaHome, tmp_path: Path) -> None:
    found = archive(java, tmp_path)
    assert found.options("use") == []
    assert not found.finish()
    assert made(java, tmp_path) == found
    assert f"-XX:SharedArchiveFile={found.file}" in found.options("use")
    assert found.options("off") == []


def test_a_jvm_that_makes_one_writes_it_aside(java: JavaHome, tmp_path: Path) -> None:
    found = archive(java, tmp_path)
    assert f"-XX:ArchiveClassesAtExit={found.draft}" in found.options("make")
    assert found.draft != found.file


def test_a_runtime_without_an_archive_of_its_own_gets_one(java: JavaHome, tmp_path: Path) -> None:
    (java.runtime / "lib" / "server" / "classes.jsa").unlink()
    starter = java.home / "bin" / "java"
    starter.parent.mkdir()
    starter.write_text(
        '#!/bin/sh\nfor arg; do case "$arg" in *File=*) : >"${arg#*=}";; esac; done\n'
    )
    starter.chmod(0o755)
    found = made(java, tmp_path)
    assert found.base is not None
    assert found.base.is_file()
    assert f"-XX:SharedArchiveFile={found.base}{os.pathsep}{found.file}" in found.options("use")
    assert f"-XX:SharedArchiveFile={found.base}" in found.options("make")
    found.base.unlink()
    assert found.options("use") == []


@pytest.mark.parametrize("what", ["java/lib/modules", "delta.jar", "spark/jars/another.jar"])
def test_whatever_changes_java_or_the_class_path_makes_another_archive(
    java: JavaHome, tmp_path: Path, what: str
) -> None:
    before = made(java, tmp_path)
    (tmp_path / what).write_text("changed")
    after = archive(java, tmp_path)
    assert after.file != before.file
    assert not after.ready
    made(java, tmp_path)
    assert not before.file.exists()


def test_the_archive_of_another_spark_stays_until_that_spark_is_gone(
    java: JavaHome, tmp_path: Path
) -> None:
    mine, other = made(java, tmp_path), made(java, tmp_path, spark="other")
    assert mine.ready
    assert other.ready
    (tmp_path / "other" / "jars").rmdir()
    (tmp_path / "other").rmdir()
    made(java, tmp_path)
    assert not other.ready


def test_an_archive_that_nobody_owns_is_removed(java: JavaHome, tmp_path: Path) -> None:
    other = made(java, tmp_path, spark="other")
    other.file.with_suffix(".txt").unlink()
    made(java, tmp_path)
    assert not other.ready


def test_the_switch_reaches_the_jvm(java: JavaHome, tmp_path: Path) -> None:
    found = archive(java, tmp_path)
    asked = session._archive_options(found, {"DELTAWORKS_CLASS_ARCHIVE": "make"})
    assert asked == found.options("make")
    assert found.file.parent.is_dir()
    assert session._archive_options(found, {}) == []


def test_a_missing_pyspark_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match="PySpark is not installed"):
        home.find_spark_home({})


def test_a_folder_that_cannot_be_written_is_named(java: JavaHome, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(StorageError, match="cannot write to"):
        archive(java, tmp_path).prepare()


def test_the_switch_takes_three_words() -> None:
    said = {word: archive_mode({"DELTAWORKS_CLASS_ARCHIVE": word}) for word in ("", "make", "OFF")}
    assert said == {"": "use", "make": "make", "OFF": "off"}
    with pytest.raises(ConfigError, match="maybe"):
        archive_mode({"DELTAWORKS_CLASS_ARCHIVE": "maybe"})
