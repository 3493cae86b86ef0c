"""Regular expressions of a pipeline file: what Java would surely refuse is refused without it."""

from __future__ import annotations

import re
import warnings
from typing import Annotated

from pydantic import AfterValidator

_ALWAYS_WRONG = (
    "missing ), unterminated subpattern",
    "unbalanced parenthesis",
    "unterminated character set",
    "min repeat greater than max repeat",
    "bad escape (end of pattern)",
)
_PLAIN_RANGE = re.compile(r"bad character range [^\\]-[^\\]")
_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|$)", re.DOTALL)


def pattern_problem(text: str) -> str:
    """Why a text is surely no regular expression of Java; empty when it is, or may be, one.

    Python's own parser is asked. Java knows more than Python, so that only those of its
    complaints count which Java shares; Spark has the last word.
    """
    if "(?P<" in text:
        return f'"{text}" names a group with "(?P<...>"; Java writes "(?<...>"'
    problem = _complaint(_as_python(text))
    return f'"{text}" is not a regular expression: {problem}' if problem else ""


def _as_python(text: str) -> str:
    """What Java spells in its own way, as Python spells it."""
    plain = _QUOTED.sub(lambda quoted: re.escape(quoted[1]), text)
    plain = re.sub(r"\(\?<(?![=!])", "(?P<", plain)
    return re.sub(r"\\[pP](?:\{\w+(?:=\w+)?\}|[A-Z])", r"\\w", plain)


def _complaint(text: str) -> str:
    with warnings.catch_warnings(record=True) as doubts:  # a class in a class is Java's own
        warnings.simplefilter("always")
        try:
            re.compile(text)
        except re.error as error:
            return error.msg if not doubts and _is_certain(error, text) else ""
    return ""


def _is_certain(error: re.error, text: str) -> bool:
    place = error.pos or 0
    if error.msg == "nothing to repeat":
        return place == 0 or text[place - 1] in "(|"
    if error.msg == "multiple repeat":
        return text[place] in "*+?"
    return error.msg in _ALWAYS_WRONG or bool(_PLAIN_RANGE.match(error.msg))


def _checked(text: str) -> str:
    if problem := pattern_problem(text):
        raise ValueError(problem)
    return text


Pattern = Annotated[str, AfterValidator(_checked)]
"""A regular expression, as Java spells it."""
