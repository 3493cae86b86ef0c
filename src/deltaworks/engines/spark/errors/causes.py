"""What lies behind an error of Spark's: the links of its chain, Python's and Java's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_MAX_CAUSES = 12


@dataclass(frozen=True)
class Cause:
    """One link of an error's chain: Spark's condition where it has one, class and message."""

    condition: str
    parameters: dict[str, str] = field(default_factory=dict)
    class_name: str = ""
    message: str = ""

    @property
    def first_line(self) -> str:
        """The message without condition, SQL state and plan."""
        line = next((text.strip() for text in self.message.splitlines() if text.strip()), "")
        line = re.sub(r"^\[[A-Z_.0-9]+\]\s*", "", line)
        return re.sub(r"\s*SQLSTATE: \w+;?.*$", "", line)


def causes_of(error: BaseException) -> Iterator[Cause]:
    """Every link, outermost first: Python's view, then Java's."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    java = None
    if isinstance(error, PySparkException):
        parameters = error.getMessageParameters() or {}
        yield Cause(error.getCondition() or "", parameters, type(error).__name__, str(error))
        java = getattr(error, "_origin", None)
        java = java.getCause() if java is not None else None
    elif isinstance(error, Py4JJavaError):
        java = error.java_exception
    else:
        yield Cause("", {}, type(error).__name__, str(error))
    for _ in range(_MAX_CAUSES):
        if java is None:
            return
        yield _java_cause(java)
        java = java.getCause()


def _java_cause(java: Any) -> Cause:
    class_name = str(java.getClass().getName())
    message = str(java.getMessage() or "")
    condition = _asked(java, "getCondition")
    parameters: Any = _asked(java, "getMessageParameters") if condition else None
    return Cause(
        str(condition or ""),
        {str(key): str(value) for key, value in dict(parameters or {}).items()},
        class_name,
        message,
    )


def _asked(java: Any, method: str) -> Any:
    """What a method answers, or None where the object has no such method."""
    from py4j.protocol import Py4JError

    try:
        return getattr(java, method)()
    except Py4JError:
        return None
