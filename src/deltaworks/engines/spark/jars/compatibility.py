"""Whether the installed Python packages fit the tested versions, without importing any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import metadata

from deltaworks.engines.spark.versions import DELTA_SPARK, PYSPARK
from deltaworks.errors import MissingDependencyError, Problem

CHECKED_PACKAGES = ("pyspark", "delta-spark", "pandas", "deltalake")
_FIRST_REFUSED_PANDAS = 3


def installed_versions(packages: Iterable[str] = CHECKED_PACKAGES) -> dict[str, str]:
    """The versions of those of the packages that are installed."""
    found: dict[str, str] = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def check_versions(installed: Mapping[str, str]) -> tuple[Problem, ...]:
    """Everything about the installed packages that would break or mislead Spark."""
    problems = (
        _check_pyspark(installed.get("pyspark")),
        _check_delta(installed.get("delta-spark")),
        _check_pandas(installed.get("pandas")),
    )
    return tuple(problem for problem in problems if problem is not None)


def require_versions(installed: Mapping[str, str]) -> None:
    """Refuse a wrong mix before a JVM is started with it."""
    problems = check_versions(installed)
    if not problems:
        return
    raise MissingDependencyError(
        "; ".join(problem.message for problem in problems),
        hint=" && ".join(problem.hint for problem in problems),
        context={"problems": [problem.code for problem in problems]},
    )


def _check_pyspark(version: str | None) -> Problem | None:
    if version == PYSPARK:
        return None
    message = (
        "PySpark is not installed"
        if version is None
        else f"PySpark {version} is installed, but Delta {DELTA_SPARK} is built for {PYSPARK}"
    )
    return Problem(
        code="pyspark_version", message=message, hint=f"pip install 'pyspark=={PYSPARK}'"
    )


def _check_delta(version: str | None) -> Problem | None:
    if version == DELTA_SPARK:
        return None
    message = "delta-spark is not installed"
    if version is not None:
        message = f"delta-spark {version} is installed, but {DELTA_SPARK} is the tested version"
    if version == "4.4.1":
        # The Python package was published, the jar it asks for was not.
        message = f"delta-spark {version} is installed, but its jar is not available"
    return Problem(
        code="delta_version", message=message, hint=f"pip install 'delta-spark=={DELTA_SPARK}'"
    )


def _check_pandas(version: str | None) -> Problem | None:
    # Spark uses pandas only when it is there, so its absence is no problem.
    if version is None or _major(version) < _FIRST_REFUSED_PANDAS:
        return None
    return Problem(
        code="pandas_version",
        message=f"pandas {version} is installed, but PySpark {PYSPARK} needs a version below 3",
        hint="pip install 'pandas<3'",
    )


def _major(version: str) -> int:
    head = version.split(".", 1)[0]
    return int(head) if head.isdecimal() else 0
