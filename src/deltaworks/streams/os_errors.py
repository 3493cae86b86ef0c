"""Errors of the operating system in our words, wherever a stream meets one."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from deltaworks.errors import EngineError, StorageError

_TOO_MANY = (errno.EMFILE, errno.ENFILE)
_TOO_MANY_TEXT = "Too many open files"


@contextmanager
def plainly(location: str) -> Iterator[None]:
    """What the system refuses inside becomes one of our errors, its cause kept."""
    try:
        yield
    except OSError as problem:
        if _is_too_many(problem):
            raise _too_many(location) from problem
        said = problem.strerror or str(problem)
        raise StorageError(f'"{location}" cannot be used: {said}') from problem
    except EngineError as problem:
        if not (_is_too_many(problem) or _is_too_many(problem.__cause__)):
            raise
        raise _too_many(location) from problem


def _is_too_many(problem: BaseException | None) -> bool:
    return getattr(problem, "errno", None) in _TOO_MANY or _TOO_MANY_TEXT in str(problem)


def _too_many(location: str) -> StorageError:
    return StorageError(
        f'this process has too many open files to use "{location}"',
        hint="close some, or raise the limit (ulimit -n); no row is lost by it",
    )
