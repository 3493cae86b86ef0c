"""An archive of the classes Spark loads, so that a JVM need not read and check them anew.

Java ties an archive to its own build and to the class path, and ignores one that does not fit. So
its name is made of both: what changes either gets another archive. A note beside it says whose it
is; when one is made, those that the same Spark or a Spark that is gone left behind are removed.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from deltaworks.config.cache import write_atomically
from deltaworks.engines.spark.java.find import JavaHome
from deltaworks.errors import ConfigError, StorageError

ARCHIVE_VARIABLE = "DELTAWORKS_CLASS_ARCHIVE"
_BASE_SECONDS = 120
_SILENT = ("-Xlog:disable", "-Xlog:all=error:stderr")

ArchiveMode = Literal["use", "make", "off"]


def archive_mode(environ: Mapping[str, str]) -> ArchiveMode:
    """What the environment says: use an archive that is there, make one, or do without."""
    said = environ.get(ARCHIVE_VARIABLE, "").strip().lower()
    if said in ("", "use", "on"):
        return "use"
    if said in ("make", "off"):
        return "make" if said == "make" else "off"
    raise ConfigError(f'{ARCHIVE_VARIABLE} is "{said}"', hint='set it to "off", or unset it')


@dataclass(frozen=True, kw_only=True)
class ClassArchive:
    """The archive for one Java and one class path, made or not."""

    file: Path
    base: Path | None
    """Java's own classes, where the runtime came without an archive of them."""
    java: Path
    spark_home: Path

    @property
    def ready(self) -> bool:
        """Whether it can be used."""
        return self.file.is_file() and (self.base is None or self.base.is_file())

    @property
    def draft(self) -> Path:
        """Where a JVM of this process writes it when it ends."""
        return self.file.with_name(f".{self.file.name}.{os.getpid()}")

    def options(self, wish: ArchiveMode) -> list[str]:
        """What a JVM is started with to use the archive, or to write it at its end."""
        if wish == "make":
            base = [] if self.base is None else [f"-XX:SharedArchiveFile={self.base}"]
            return [*base, f"-XX:ArchiveClassesAtExit={self.draft}", *_SILENT]
        if wish == "off" or not self.ready:
            return []
        files = self.file if self.base is None else f"{self.base}{os.pathsep}{self.file}"
        return [f"-XX:SharedArchiveFile={files}", "-Xshare:auto", *_SILENT]

    def prepare(self) -> None:
        """Make the folder, and the archive of Java's own classes where the runtime has none."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                f"cannot write to {self.file.parent}: {error.strerror}",
                hint="set DELTAWORKS_CACHE to a folder that can be written to",
            ) from error
        if self.base is None or self.base.is_file():
            return
        draft = self.base.with_name(f".{self.base.name}.{os.getpid()}")
        command = [
            str(self.java),
            "-Xshare:dump",
            f"-XX:SharedArchiveFile={draft}",
            "-Xlog:disable",
        ]
        subprocess.run(command, capture_output=True, timeout=_BASE_SECONDS, check=False)
        if draft.is_file():
            draft.replace(self.base)

    def finish(self) -> bool:
        """Put what an ended JVM wrote into its place, and remove what it replaces."""
        if not self.draft.is_file():
            return False
        self.draft.replace(self.file)
        write_atomically(_note(self.file), str(self.spark_home).encode())
        for old in self.file.parent.glob("spark-*.jsa"):
            if old != self.file and self._replaces(old):
                old.unlink(missing_ok=True)
                _note(old).unlink(missing_ok=True)
        return True

    def _replaces(self, old: Path) -> bool:
        try:
            owner = Path(_note(old).read_text(encoding="utf-8"))
        except OSError:
            return True
        return owner == self.spark_home or not owner.exists()


def class_archive(
    java: JavaHome, *, jars: Sequence[Path], spark_home: Path, cache: Path
) -> ClassArchive:
    """The archive that fits a Java, Spark's jars and ours."""
    folder = cache / "classes"
    build = _stamp(java.runtime / "lib" / "modules")
    has_base = any((java.runtime / "lib" / "server").glob("classes*.jsa"))
    key = _digest(build, _stamp(spark_home / "jars"), *map(_stamp, jars))
    return ClassArchive(
        file=folder / f"spark-{key}.jsa",
        base=None if has_base else folder / f"java-{_digest(build)}.jsa",
        java=java.executable,
        spark_home=spark_home,
    )


def _note(file: Path) -> Path:
    return file.with_suffix(".txt")


def _stamp(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return f"{path} is missing"
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
