from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from deltaworks.engines.spark.jars.resolve import download_failure, ensure_jars, missing_jars
from deltaworks.engines.spark.java.find import JavaHome, find_java
from deltaworks.engines.spark.versions import CORE_JARS, Jar
from deltaworks.errors import MissingDependencyError, StorageError

CONTENT = b"what the jar holds"


def make_jar(name: str = "thing") -> Jar:
    digest = hashlib.sha256(CONTENT).hexdigest()
    return Jar(group="org.example", artifact=name, version="1.0", sha256=digest, size_bytes=2**20)


def make_resolver(folder: Path, *, content: bytes) -> JavaHome:
    """A program in Java's place that puts the jar where the resolver would."""
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "java"
    program.write_text(
        f"#!/bin/sh\nmkdir out\nprintf '%s' '{content.decode()}' >out/thing-1.0.jar\n"
    )
    program.chmod(0o755)
    return JavaHome(home=folder, runtime=folder, version=17, origin="JAVA_HOME")


def put(jar: Jar, cache: Path, *, content: bytes = CONTENT) -> Path:
    path = cache / "jars" / jar.file_name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def nowhere() -> JavaHome:
    return JavaHome(home=Path("/nowhere"), runtime=Path("/nowhere"), version=17, origin="path")


def test_a_cached_jar_is_used_without_java_and_without_a_word(
    tmp_path: Path, nowhere: JavaHome
) -> None:
    jar = make_jar()
    path = put(jar, tmp_path)
    said: list[str] = []
    found = ensure_jars([jar], java=nowhere, cache=tmp_path, environ={}, notify=said.append)
    assert (found, said) == ((path,), [])


def test_a_cached_jar_with_another_checksum_is_refused(tmp_path: Path, nowhere: JavaHome) -> None:
    path = put(make_jar(), tmp_path, content=b"something else")
    with pytest.raises(StorageError) as caught:
        ensure_jars([make_jar()], java=nowhere, cache=tmp_path, environ={}, notify=print)
    assert str(path) in caught.value.message
    assert f"delete {path}" in caught.value.hint


def test_a_missing_jar_is_announced_then_downloaded_and_nothing_else_stays(tmp_path: Path) -> None:
    cache = tmp_path / "ca [che]"
    java = make_resolver(tmp_path / "java", content=CONTENT)
    said: list[str] = []
    (path,) = ensure_jars([make_jar()], java=java, cache=cache, environ={}, notify=said.append)
    assert path.read_bytes() == CONTENT
    assert [entry.name for entry in (cache / "jars").iterdir()] == ["thing-1.0.jar"]
    assert said == [f"downloading thing-1.0.jar (1.0 MB) to {cache / 'jars'}, only this once"]


def test_a_download_with_another_checksum_is_refused_and_not_kept(tmp_path: Path) -> None:
    java = make_resolver(tmp_path / "java", content=b"tampered")
    with pytest.raises(StorageError, match=r"thing-1\.0\.jar is not the tested"):
        ensure_jars([make_jar()], java=java, cache=tmp_path, environ={}, notify=lambda _: None)
    assert list((tmp_path / "jars").iterdir()) == []


def test_without_a_network_the_cause_is_one_line_and_the_fix_is_named(tmp_path: Path) -> None:
    java = find_java({}, cache=tmp_path)
    environ = {"HTTPS_PROXY": "http://127.0.0.1:9"}
    with pytest.raises(MissingDependencyError) as caught:
        ensure_jars(CORE_JARS, java=java, cache=tmp_path, environ=environ, notify=lambda _: None)
    assert caught.value.message.endswith(": Connection refused")
    assert "\n" not in caught.value.message
    assert str(tmp_path / "jars") in caught.value.hint
    assert list((tmp_path / "jars").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_a_storage_error(
    tmp_path: Path, nowhere: JavaHome
) -> None:
    cache = tmp_path / "file"
    cache.touch()
    with pytest.raises(StorageError, match="jar cache"):
        ensure_jars([make_jar()], java=nowhere, cache=cache, environ={}, notify=lambda _: None)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (
            "\tServer access error at url x://h/a.pom (java.net.ConnectException: No route)",
            "No route",
        ),
        ("\tHost repository.example not found. url=x://h/a", "Host repository.example not found"),
        ("\t\t:: io.delta#delta-storage;9: not found", "io.delta#delta-storage;9: not found"),
        ("", "the resolver gave no reason"),
    ],
)
def test_the_resolvers_report_becomes_one_line(line: str, cause: str) -> None:
    assert download_failure(f":: problems summary ::\n{line}\n") == cause


def test_only_absent_jars_are_missing(tmp_path: Path) -> None:
    here, gone = make_jar("here"), make_jar("gone")
    put(here, tmp_path)
    assert missing_jars([here, gone], cache=tmp_path) == (gone,)
