"""Every error a user can meet: what is wrong, where, and what to do next.

The tree, which a test compares with the classes below::

    DeltaworksError
    ├── ConfigError
    ├── SpecError
    ├── EngineError
    │   ├── TableNotFound
    │   ├── VersionNotFound
    │   ├── SchemaMismatch
    │   ├── ConstraintViolated
    │   ├── CommitConflict
    │   ├── CommitUnknown
    │   ├── UnsupportedOperation
    │   ├── DamagedTable
    │   └── StorageError
    ├── GuardError
    ├── RunError
    │   ├── InputError
    │   ├── BatchKeyError
    │   └── QualityError
    ├── MissingDependencyError
    ├── Interrupted
    │   └── TimedOut
    └── InternalError
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

EXIT_OK = 0
EXIT_DATA = 1
EXIT_SPEC = 2
EXIT_CHECK = 3
EXIT_ENGINE = 4
EXIT_GUARD = 5
EXIT_BUG = 70
EXIT_TIMEOUT = 124
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One mistake in a file, with its place."""

    code: str
    message: str
    hint: str = ""
    file: str = ""
    line: int = 0
    path: str = ""

    @property
    def place(self) -> str:
        """`file:line`, as editors and terminals understand it."""
        if self.file and self.line:
            return f"{self.file}:{self.line}"
        return self.file

    def text(self) -> str:
        """The problem as a person reads it: at most six lines."""
        lines = [f"{self.place}: {self.message}" if self.place else self.message]
        if self.hint:
            lines.append(f"  fix: {self.hint}")
        return "\n".join(lines)


class DeltaworksError(Exception):
    """The root: everything this package raises on purpose."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = EXIT_ENGINE
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        file: str = "",
        line: int = 0,
        context: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.file = file
        self.line = line
        self.context: dict[str, object] = dict(context or {})

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The error as a list of places to mend; most errors are one."""
        return (
            Problem(
                code=self.code,
                message=self.message,
                hint=self.hint,
                file=self.file,
                line=self.line,
            ),
        )

    def at(self, file: str, line: int) -> DeltaworksError:
        """Name the place in the user's file, unless one is named already."""
        if not self.file:
            self.file, self.line = file, line
        return self

    def __str__(self) -> str:
        return "\n".join(problem.text() for problem in self.problems)


class ConfigError(DeltaworksError):
    """The project file, the environment or the command line is wrong."""

    code = "config"
    exit_code = EXIT_SPEC


class SpecError(DeltaworksError):
    """A pipeline file is wrong; carries every problem found in it."""

    code = "spec"
    exit_code = EXIT_SPEC

    def __init__(
        self,
        message: str,
        *,
        problems: Sequence[Problem] = (),
        hint: str = "",
        file: str = "",
        line: int = 0,
        context: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message, hint=hint, file=file, line=line, context=context)
        self._problems = tuple(problems)

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self._problems or super().problems


class EngineError(DeltaworksError):
    """Spark, Delta or storage could not do what was asked."""

    code = "engine"


class TableNotFound(EngineError):
    """No Delta table is there."""

    code = "table_not_found"
    exit_code = EXIT_DATA


class VersionNotFound(EngineError):
    """The table has no such version, or none at that time."""

    code = "version_not_found"
    exit_code = EXIT_DATA


class SchemaMismatch(EngineError):
    """The rows do not fit the table; the message holds the difference."""

    code = "schema_mismatch"
    exit_code = EXIT_DATA


class ConstraintViolated(EngineError):
    """A rule of the table or of the write refuses a row."""

    code = "constraint_violated"
    exit_code = EXIT_DATA


class CommitConflict(EngineError):
    """Another writer committed first; doing it again may work."""

    code = "commit_conflict"
    retryable = True


class CommitUnknown(EngineError):
    """Nobody knows whether the commit landed; look before trying again."""

    code = "commit_unknown"


class UnsupportedOperation(EngineError):
    """This engine cannot do that here; the hint names what can."""

    code = "unsupported"


class DamagedTable(EngineError):
    """The table's log is empty, torn or has a gap."""

    code = "damaged_table"


class StorageError(EngineError):
    """The disk or object store refused: full, forbidden, unreachable."""

    code = "storage"


class GuardError(DeltaworksError):
    """Refused on purpose, because it could lose or double data."""

    code = "guard"
    exit_code = EXIT_GUARD


class RunError(DeltaworksError):
    """A run stopped; the context names the run and the step."""

    code = "run"
    exit_code = EXIT_DATA


class InputError(RunError):
    """A source is missing, empty or holds a value that cannot be read."""

    code = "input"


class BatchKeyError(RunError):
    """Merge keys of the batch are NULL or repeated."""

    code = "keys"


class QualityError(RunError):
    """A check failed, so nothing was published."""

    code = "check_failed"
    exit_code = EXIT_CHECK


class MissingDependencyError(DeltaworksError):
    """Something must be installed first; the hint is the command."""

    code = "missing_dependency"
    exit_code = EXIT_SPEC


class Interrupted(DeltaworksError):
    """Stopped by the user, with nothing half done."""

    code = "interrupted"
    exit_code = EXIT_INTERRUPTED


class TimedOut(Interrupted):
    """Stopped because it took longer than it was given, with nothing half done."""

    code = "timeout"
    exit_code = EXIT_TIMEOUT


class InternalError(DeltaworksError):
    """A bug in Deltaworks."""

    code = "internal"
    exit_code = EXIT_BUG
