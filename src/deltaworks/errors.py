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
    │   │   └── UnsupportedTable
    │   ├── DamagedTable
    │   │   ├── DamagedCheckpoint
    │   │   ├── DamagedData
    │   │   └── UnreadableTable
    │   ├── StorageError
    │   └── Unreachable
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

from deltaworks.redact import scrub

EXIT_OK = 0
EXIT_DATA = 1
EXIT_SPEC = 2
EXIT_CHECK = 3
EXIT_ENGINE = 4
EXIT_GUARD = 5
EXIT_PARKED = 6
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
    column: int = 0
    """The column of a fault inside a text, counted from 1; 0 when it is not known."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", scrub(self.message))
        object.__setattr__(self, "hint", scrub(self.hint))

    @property
    def place(self) -> str:
        """`file:line` or `file:line:column`, as editors and terminals understand it."""
        if self.file and self.line:
            column = f":{self.column}" if self.column else ""
            return f"{self.file}:{self.line}{column}"
        return self.file

    def text(self) -> str:
        """The problem as a person reads it: at most six lines."""
        lines = [f"{self.place}: {self.message}" if self.place else self.message]
        if self.hint:
            lines.append(f"  fix: {self.hint}")
        return "\n".join(lines)


class DeltaworksError(Exception):
    """Anything that Deltaworks raises on purpose; the root of all errors."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = EXIT_ENGINE
    retryable: ClassVar[bool] = False
    remedy: ClassVar[str] = "See the message."
    """What helps in general; the hint of an error says what helps here."""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        file: str = "",
        line: int = 0,
        context: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(scrub(message))
        self.message = scrub(message)
        self.hint = scrub(hint)
        self.file = file
        self.line = line
        self.context: dict[str, object] = {
            key: scrub(value) if isinstance(value, str) else value
            for key, value in (context or {}).items()
        }

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
    """A wrong option, folder, profile or project file."""

    code = "config"
    remedy = "The message names the right word."
    exit_code = EXIT_SPEC


class SpecError(DeltaworksError):
    """A pipeline file is wrong, or names a column that its data does not have."""

    code = "spec"
    remedy = "See [problems in files](#problems-in-files)."
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
    """Spark or Delta failed in a way without a code of its own."""

    code = "engine"
    remedy = "Spark's log of the run has the details."


class TableNotFound(EngineError):
    """There is no Delta table at the name or path."""

    code = "table_not_found"
    remedy = "Correct it, or run the pipeline that makes the table."
    exit_code = EXIT_DATA


class VersionNotFound(EngineError):
    """The table has no such version, or none at that time; the range is shown."""

    code = "version_not_found"
    remedy = "Choose one within the range."
    exit_code = EXIT_DATA


class SchemaMismatch(EngineError):
    """The rows do not fit the table; the difference is shown column by column."""

    code = "schema_mismatch"
    remedy = (
        "Cast the columns; `merge_schema: true` adds columns; `overwrite_schema: true` "
        "replaces them."
    )
    exit_code = EXIT_DATA


class ConstraintViolated(EngineError):
    """A row breaks a rule of the table, or lies outside `replace_where`; both are shown."""

    code = "constraint_violated"
    remedy = "Filter or quarantine such rows."
    exit_code = EXIT_DATA


class CommitConflict(EngineError):
    """Other writers were faster, more often than `retries` allows."""

    code = "commit_conflict"
    remedy = "Run it again."
    retryable = True


class CommitUnknown(EngineError):
    """It is not known whether the commit landed."""

    code = "commit_unknown"
    remedy = "Run it again: the next run looks before it writes."


class UnsupportedOperation(EngineError):
    """The engine, the table or the connection does not support this operation."""

    code = "unsupported"
    remedy = "The message names what can."


class UnsupportedTable(UnsupportedOperation):
    """The table needs a protocol version or feature that is not known here, or a catalog."""

    code = "unsupported_table"
    remedy = "Use it with what made it, or take the feature out there. Nothing was written."


class DamagedTable(EngineError):
    """A commit of the table's log is empty, torn or missing, or says what no commit can say."""

    code = "damaged_table"
    remedy = "Restore the file from a backup. Nothing was written."


class DamagedCheckpoint(DamagedTable):
    """A checkpoint, a part or sidecar of it, or `_last_checkpoint` is torn, missing or wrong."""

    code = "damaged_checkpoint"
    remedy = "Restore the file from a backup. Nothing was written."


class DamagedData(DamagedTable):
    """A data file or deletion vector is missing, torn, or not the file that the log names."""

    code = "damaged_data"
    remedy = "Restore the file from a backup, or restore the table to a version without it."


class UnreadableTable(DamagedTable):
    """The log has no protocol, metadata or columns, or none that can be understood."""

    code = "unreadable_table"
    remedy = "Restore the log from a backup, or rewrite the table. Nothing was written."


class StorageError(EngineError):
    """A disk, an object store or a server is full, read-only, forbidden or does not answer."""

    code = "storage"
    remedy = "Free space, give the user the right to write there, or correct the keys."


class Unreachable(EngineError):
    """A server does not answer, or broke the connection off."""

    code = "unreachable"
    remedy = "See that it is up and can be reached, then run again."


class GuardError(DeltaworksError):
    """Going on could lose or double data.

    The table was deleted, replaced or set back by hand, half a batch landed and its input is gone,
    or another run holds the lock.
    """

    code = "guard"
    remedy = "The message lists the choices."
    exit_code = EXIT_GUARD


class RunError(DeltaworksError):
    """A run stopped for another reason in its data."""

    code = "run"
    remedy = "See the message."
    exit_code = EXIT_DATA


class InputError(RunError):
    """A file is missing, a glob matches nothing, or a value cannot be read."""

    code = "input"
    remedy = "Correct the file, or quarantine such rows with `on_error: quarantine`."


class BatchKeyError(RunError):
    """Merge keys of the batch are NULL or repeated; examples are shown."""

    code = "keys"
    remedy = "Quarantine such rows with a `not_null` check; say which row wins with `duplicates`."


class QualityError(RunError):
    """A check with `on_fail: fail` found rows; an example is shown."""

    code = "check_failed"
    remedy = "Correct the rows or the rule, or choose `quarantine`, `drop` or `warn`."
    exit_code = EXIT_CHECK


class MissingDependencyError(DeltaworksError):
    """A package or jar is missing or does not fit the others."""

    code = "missing_dependency"
    remedy = "Run the command in the message, or `deltaworks doctor`."
    exit_code = EXIT_SPEC


class Interrupted(DeltaworksError):
    """Ctrl-C, or the work was cancelled in Spark."""

    code = "interrupted"
    remedy = "Run it again; it goes on where it stopped."
    exit_code = EXIT_INTERRUPTED


class TimedOut(Interrupted):
    """The run took longer than `--timeout` allows; the message names the step it was in."""

    code = "timeout"
    remedy = "Run it again, with more time: it goes on where it stopped."
    exit_code = EXIT_TIMEOUT


class InternalError(DeltaworksError):
    """A bug."""

    code = "internal"
    remedy = "Report what `--debug` prints."
    exit_code = EXIT_BUG
