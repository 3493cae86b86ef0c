"""Keep the jars that Spark needs in a cache, each checked against its known checksum."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from deltaworks.engines.spark.java.find import JavaHome
from deltaworks.engines.spark.java.network import java_network_options
from deltaworks.engines.spark.versions import PYSPARK, Jar
from deltaworks.errors import MissingDependencyError, StorageError

_DOWNLOAD_SECONDS = 900
_MAX_NAMES = 3
_REFUSALS = (
    re.compile(r"Server access error at url \S+ \((?:[\w.$]+(?:Exception|Error): ?)?(.+)\)\s*$"),
    re.compile(r"^\s*(Host \S+ not found)"),
    re.compile(r"^\s*(?:Exception in thread \S+ )?(\S.*(?:Exception|Error)\b.*)$"),
    re.compile(r":: (\S+: not found)"),
)


def missing_jars(jars: Iterable[Jar], *, cache: Path) -> tuple[Jar, ...]:
    """Those of the jars that are not in the cache yet."""
    return tuple(jar for jar in jars if not _place(jar, cache).is_file())


def jar_files(jars: Iterable[Jar], *, cache: Path) -> tuple[Path, ...]:
    """Where the jars are, or will be."""
    return tuple(_place(jar, cache) for jar in jars)


def total_megabytes(jars: Iterable[Jar]) -> str:
    """The size of the jars for people, or nothing when one of them is not known."""
    sizes = [jar.size_bytes for jar in jars]
    return f"{sum(sizes) / 1e6:.1f} MB" if all(sizes) else ""


def ensure_jars(
    jars: Sequence[Jar],
    *,
    java: JavaHome,
    cache: Path,
    environ: Mapping[str, str],
    notify: Callable[[str], None],
) -> tuple[Path, ...]:
    """The files of the jars, downloaded once and verified every time."""
    missing = missing_jars(jars, cache=cache)
    try:
        if missing:
            notify(_announcement(missing, cache))
            _download(missing, java=java, cache=cache, environ=environ)
        return tuple(_verified(jar, _place(jar, cache)) for jar in jars)
    except OSError as error:
        raise StorageError(
            f"cannot use the jar cache {cache / 'jars'}: {error.strerror or error}",
            hint="free some space or set DELTAWORKS_CACHE to a folder that can be written to",
        ) from error


def _place(jar: Jar, cache: Path) -> Path:
    return cache / "jars" / jar.file_name


def _announcement(missing: Sequence[Jar], cache: Path) -> str:
    size = total_megabytes(missing)
    names = _names(missing)
    return f"downloading {names}{f' ({size})' if size else ''} to {cache / 'jars'}, only this once"


def _names(jars: Sequence[Jar]) -> str:
    """The jars by name, or the first of many."""
    shown = [jar.file_name for jar in jars[:_MAX_NAMES]]
    more = len(jars) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _verified(jar: Jar, path: Path) -> Path:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != jar.sha256:
        raise StorageError(
            f"{path} is not the tested {jar.coordinate}: its SHA-256 is {digest[:12]}..., "
            f"expected {jar.sha256[:12]}...",
            hint=f"delete {path} and run again to download it again",
            context={"file": str(path), "expected": jar.sha256, "found": digest},
        )
    return path


def _download(
    jars: Sequence[Jar], *, java: JavaHome, cache: Path, environ: Mapping[str, str]
) -> None:
    folder = cache / "jars"
    folder.mkdir(parents=True, exist_ok=True)
    # Inside the cache, so that the last step is a rename on one file system: another
    # process sees a jar whole or not at all.
    with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as name:
        work = Path(name)
        (work / "ivy.xml").write_text(_ivy_module(jars), encoding="utf-8")
        output = _resolve(work, java=java, options=java_network_options(environ, cache=cache))
        fetched = {jar: work / "out" / jar.file_name for jar in jars}
        if not all(path.is_file() for path in fetched.values()):
            raise _unreachable(jars, output=output, cache=cache)
        for jar, path in fetched.items():
            _check_download(jar, path)
        for jar, path in fetched.items():
            path.replace(_place(jar, cache))


def _check_download(jar: Jar, path: Path) -> None:
    try:
        _verified(jar, path)
    except StorageError as error:
        # The file is thrown away with its folder, so there is nothing to delete.
        error.hint = "a proxy or mirror changed the file: download it over another network"
        raise


def _resolve(work: Path, *, java: JavaHome, options: Sequence[str]) -> str:
    # Paths are relative to the working folder because brackets in them would be
    # read as part of the pattern.
    command = [str(java.executable), *options, "-cp", str(_ivy_jar()), "org.apache.ivy.Main"]
    # Some projects call the jar they publish a bundle.
    command += ["-ivy", "ivy.xml", "-cache", "cache", "-types", "jar", "bundle", "-warn"]
    command += ["-retrieve", "out/[artifact]-[revision].[ext]"]
    try:
        done = subprocess.run(
            command,
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_DOWNLOAD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"Host did not answer within {_DOWNLOAD_SECONDS} s: TimeoutError"
    return done.stdout


def _ivy_jar() -> Path:
    # Spark's own resolver: it comes with PySpark, so nothing more is installed.
    package = find_spec("pyspark")
    if package is not None and package.origin is not None:
        for path in sorted((Path(package.origin).parent / "jars").glob("ivy-*.jar")):
            return path
    raise MissingDependencyError(
        "PySpark, whose resolver downloads the jars, is not installed",
        hint=f"pip install 'pyspark=={PYSPARK}'",
    )


def _ivy_module(jars: Iterable[Jar]) -> str:
    from xml.sax.saxutils import quoteattr  # brings half of the network along

    dependencies = "".join(
        f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)}"
        f' rev={quoteattr(jar.version)} transitive="false" conf="default->default"/>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0"><info organisation="deltaworks" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def _unreachable(jars: Sequence[Jar], *, output: str, cache: Path) -> MissingDependencyError:
    cause = download_failure(output)
    names = _names(jars)
    hint = f"connect to the network once, or copy {names} into {cache / 'jars'}"
    if "certification path" in cause:
        hint = f"set SSL_CERT_FILE to the certificates of your network; or {hint}"
    return MissingDependencyError(
        f"cannot download {names}: {cause}", hint=hint, context={"output": output[-4000:]}
    )


def download_failure(output: str) -> str:
    """The one line of the resolver's report that says why it failed."""
    for pattern in _REFUSALS:
        for line in output.splitlines():
            found = pattern.search(line)
            if found:
                return found.group(1).strip()
    return "the resolver gave no reason"
