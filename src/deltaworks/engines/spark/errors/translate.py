"""Spark's, Delta's and Java's errors in our words; nowhere else is one of theirs read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from deltaworks.engines.spark.errors.causes import Cause, causes_of
from deltaworks.engines.spark.errors.connectors import jdbc_error, kafka_error, worker_trouble
from deltaworks.engines.spark.errors.lost_jvm import is_lost, lost_jvm
from deltaworks.engines.spark.errors.row_notes import noted
from deltaworks.engines.spark.errors.tables import TABLE_ERRORS
from deltaworks.engines.spark.errors.values import VALUE_ERRORS
from deltaworks.errors import (
    CommitConflict,
    ConstraintViolated,
    DamagedData,
    DamagedTable,
    DeltaworksError,
    EngineError,
    InputError,
    Interrupted,
    RunError,
    SchemaMismatch,
    SpecError,
    StorageError,
    TableNotFound,
    VersionNotFound,
)
from deltaworks.model.type_text import suggested_type
from deltaworks.storage.listing import damaged_file
from deltaworks.suggest import did_you_mean

_CONFLICTS = (
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "ProtocolChangedException",
)
_STORAGE_WORDS = ("No space left on device", "Permission denied", "Read-only file system")


@contextmanager
def told() -> Iterator[None]:
    """What Spark raises inside becomes one of our errors, its cause kept."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise translate(error) from error


def translate(error: BaseException) -> DeltaworksError:
    """The error a user should read for one that Spark raised."""
    from py4j.protocol import Py4JError

    try:
        chain = list(causes_of(error))
    except (Py4JError, ConnectionError):  # the JVM that should tell the cause is gone
        return lost_jvm()
    notes = [*getattr(error, "__notes__", ()), *(cause.message for cause in chain)]
    if found := noted(notes) or worker_trouble(notes):
        return found
    for cause in reversed(chain):
        make = _BY_CONDITION.get(cause.condition)
        if make is not None:
            return make(cause)
    for cause in chain:
        if found := _by_class_or_words(cause):
            return found
    for cause in reversed(chain):
        if cause.condition.startswith("FAILED_READ_FILE"):
            return _unreadable_file(cause)
    return lost_jvm() if is_lost() else _unknown(chain, error)


def _unknown(chain: list[Cause], error: BaseException) -> DeltaworksError:
    from pyspark.errors import AnalysisException, ParseException

    top = chain[0] if chain else Cause("", message=str(error))
    if isinstance(error, AnalysisException | ParseException):
        hint = "correct the SQL" if isinstance(error, ParseException) else ""
        return SpecError(top.first_line, hint=hint, context={"condition": top.condition})
    deepest = next((cause for cause in reversed(chain) if cause.first_line), top)
    return EngineError(
        deepest.first_line or type(error).__name__,
        hint="Spark's log of this run has the details (`deltaworks runs show`)",
        context={"condition": deepest.condition or top.condition},
    )


def _by_class_or_words(cause: Cause) -> DeltaworksError | None:
    short = cause.class_name.rpartition(".")[2]
    if short in _CONFLICTS:
        return CommitConflict(
            f"another writer changed the table at the same time ({short})",
            hint="run it again; Deltaworks goes on where it stopped",
        )
    if short in _LOST:
        return lost_jvm()
    if found := _by_connector(cause):
        return found
    for words in _STORAGE_WORDS:
        if words in cause.message:
            return StorageError(_storage_message(cause, words), hint=_STORAGE_FIX[words])
    return None


def _by_connector(cause: Cause) -> DeltaworksError | None:
    """What databases and Kafka say."""
    line, condition = cause.first_line, cause.condition
    return jdbc_error(cause.class_name, cause.message) or kafka_error(
        class_name=cause.class_name, condition=condition, line=line
    )


_LOST = ("Py4JError", "Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError")
"""What py4j raises by itself, with no error of Java's behind it."""
_STORAGE_FIX = {
    "No space left on device": "free some space and run it again; nothing was committed",
    "Permission denied": "give this user the right to write there; nothing was committed",
    "Read-only file system": "make it writable; nothing was committed",
}


def _storage_message(cause: Cause, words: str) -> str:
    path = re.search(r"(?:file:)?(/[^\s:'\"()]+)", cause.message)
    return f'{words.lower()}: "{path[1]}"' if path else words.lower()


def _unreadable_file(cause: Cause) -> DeltaworksError:
    path = cause.parameters.get("path", "").removeprefix("file://").removeprefix("file:")
    if "/_delta_log/" in path:
        return DamagedTable(
            f'the log of "{path.partition("/_delta_log/")[0]}" is damaged: '
            f"{path.rpartition('/')[2]} cannot be read",
            hint="nothing was written; restore the file from a backup before you run again",
        )
    if cause.condition.endswith("FILE_NOT_EXIST"):
        return DamagedData(
            f'data file "{path}" is gone', hint="restore it from a backup, or restore the table"
        )
    return damaged_file(path)


def _bare(name: str) -> str:
    return name.replace("`", "")


def _names(text: str) -> list[str]:
    """Names as Spark lists them, each in backticks; a name may hold commas."""
    return [_bare(name) for name in re.findall(r"`[^`]*`(?:\.`[^`]*`)*", text)]


def _unresolved(cause: Cause) -> SpecError:
    name = _bare(cause.parameters.get("objectName", ""))
    choices = _names(cause.parameters.get("proposal", ""))
    # of `adress.city` only the first part is compared: Spark proposes no nested fields
    word = name if any("." in choice for choice in choices) else name.partition(".")[0]
    return SpecError(
        f'column "{name}" does not exist',
        hint=did_you_mean(word, choices),
        context={"column": name},
    )


def _no_field(cause: Cause) -> SpecError:
    name = _bare(cause.parameters.get("fieldName", ""))
    return SpecError(
        f'field "{name}" does not exist',
        hint=did_you_mean(name, _names(cause.parameters.get("fields", ""))),
        context={"column": name},
    )


def _no_type(cause: Cause) -> SpecError:
    name = cause.parameters.get("typeName", "").strip('"').lower()
    word, bracket, rest = name.partition("(")
    hint = suggested_type(word)
    return SpecError(f'there is no type "{word}{bracket}{rest}"', hint=hint)


def _unknown_function(cause: Cause) -> SpecError:
    name = _bare(cause.parameters.get("routineName", ""))
    return SpecError(f'there is no function "{name}"', hint="see Spark SQL's function list")


def _python_code(cause: Cause) -> RunError:
    """Code of the user's that failed in a worker, outside of what we call there ourselves."""
    trace = cause.parameters.get("traceback", cause.message)
    places = re.findall(r'File "([^"]+)", line (\d+)', trace)
    file, line = next(
        (place for place in reversed(places) if "/pyspark/" not in place[0]), ("", "0")
    )
    lines = [text.strip() for text in trace.splitlines() if text.strip()]
    return RunError(
        f"Python code failed: {lines[-1] if lines else cause.first_line}",
        hint="correct the function",
        file=file,
        line=int(line),
    )


def _column_name(cause: Cause) -> SpecError:
    name = _bare(cause.parameters.get("columnName", ""))
    return SpecError(
        f'the files cannot have a column named "{name}"',
        hint=f'rename it in a select step: "`{name}` as other"',
    )


def _twins(cause: Cause) -> SpecError:
    name = _bare(cause.parameters.get("columnName", ""))
    return SpecError(
        f'there are two columns named "{name}"; upper and lower case make no difference',
        hint="give one of them another name where the rows come from, or read only the columns "
        "you need with `schema` and `unknown_columns: ignore`",
        context={"column": name},
    )


def _column_type(cause: Cause) -> SpecError:
    name = _bare(cause.parameters.get("columnName", ""))
    kind = cause.parameters.get("columnType", "").strip('"').lower()
    named = cause.parameters.get("format", "").lower()
    return SpecError(
        f'{"Delta" if "delta" in named else named} cannot hold column "{name}" of type {kind}',
        hint=f"make it text in a derive step: {name}: to_json({name})",
    )


def _values(text: str) -> str:
    """Delta's list of ` - column : value` lines as `column = value`."""
    lines = [line.strip().removeprefix("- ") for line in text.splitlines() if line.strip()]
    return ", ".join(line.replace(" : ", " = ", 1) for line in lines)


def _rule(text: str) -> str:
    """A rule without the parentheses that Delta puts around all of it."""
    depth, closes_at = 0, -1
    for i, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            closes_at = i
            break
    return text[1:-1] if text.startswith("(") and closes_at == len(text) - 1 else text


def _constraint(cause: Cause) -> ConstraintViolated:
    values = _values(cause.parameters.get("values", ""))
    rule = _rule(cause.parameters.get("expression", ""))
    name = cause.parameters.get("constraintName", "")
    if name.upper().startswith("EXPRESSION("):
        return ConstraintViolated(
            f"a row lies outside replace_where ({rule}): {values}",
            hint="filter the rows first, or widen replace_where",
        )
    return ConstraintViolated(
        f'a row breaks constraint "{name}" of the table ({rule}): {values}',
        hint="correct the row, or quarantine such rows with a check and `on_fail: quarantine`",
    )


def _not_null(cause: Cause) -> ConstraintViolated:
    column = cause.parameters.get("columnName", "")
    return ConstraintViolated(
        f'column "{column}" of the table does not allow NULL, and a row has one',
        hint="correct the row, or quarantine such rows with a not_null check",
    )


def _no_column(cause: Cause) -> ConstraintViolated:
    column = cause.parameters.get("columnName", "")
    return ConstraintViolated(
        f'column "{column}" of the table does not allow NULL, and the rows do not have it',
        hint="add the column to the rows in a derive step",
    )


def _outside_replace_where(cause: Cause) -> ConstraintViolated:
    values = _values(cause.message.rpartition("with values:")[2])
    rule = _rule(cause.parameters.get("replaceWhere", ""))
    return ConstraintViolated(
        f"a row lies outside replace_where ({rule}): {values}",
        hint="filter the rows first, or widen replace_where",
    )


def _schema(cause: Cause) -> SchemaMismatch:
    return SchemaMismatch(cause.first_line, hint="see the difference with `deltaworks plan`")


def _no_table(cause: Cause) -> TableNotFound:
    return TableNotFound(
        cause.first_line, hint="check the name, or run the pipeline that makes it first"
    )


def _no_version(cause: Cause) -> VersionNotFound:
    return VersionNotFound(cause.first_line)


def _too_old(cause: Cause) -> VersionNotFound:
    return VersionNotFound(
        cause.first_line,
        hint="the files of older versions may be removed at any time; to keep them longer, "
        "set the table's property delta.deletedFileRetentionDuration",
    )


def _no_log_folder(cause: Cause) -> StorageError:
    return StorageError(
        f'"{cause.parameters.get("path", "the table")}" cannot be written',
        hint="give this user the right to write there, and see that no file is in the way",
    )


def _made_meanwhile(cause: Cause) -> CommitConflict:
    parameters = cause.parameters
    named = _bare(parameters.get("relationName", "")).removeprefix("delta.")
    location = named or parameters.get("path", "").removeprefix("file:")
    return CommitConflict(
        f'another writer made "{location}" at the same time',
        hint="run it again; Deltaworks goes on where it stopped",
    )


def _no_changes_kept(cause: Cause) -> InputError:
    return InputError(
        f"the changes cannot be determined: {cause.first_line}",
        hint="start at a later version: the feed was off for a while, or its files were vacuumed",
    )


def _cancelled(_: Cause) -> Interrupted:
    return Interrupted(
        "the work was cancelled in Spark; no table was left half written",
        hint="run it again: it goes on where it stopped",
    )


_BY_CONDITION: dict[str, Callable[[Cause], DeltaworksError]] = {
    **VALUE_ERRORS,
    **TABLE_ERRORS,
    "UNRESOLVED_COLUMN.WITH_SUGGESTION": _unresolved,
    "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION": _unresolved,
    "FIELD_NOT_FOUND": _no_field,
    "UNSUPPORTED_DATATYPE": _no_type,
    "UNRESOLVED_ROUTINE": _unknown_function,
    "PYTHON_EXCEPTION": _python_code,
    "SPARK_JOB_CANCELLED": _cancelled,
    "INVALID_COLUMN_NAME_AS_PATH": _column_name,
    "COLUMN_ALREADY_EXISTS": _twins,
    "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE": _column_type,
    "DELTA_METADATA_MISMATCH": _schema,
    "DELTA_FAILED_TO_MERGE_FIELDS": _schema,
    "TABLE_OR_VIEW_ALREADY_EXISTS": _made_meanwhile,
    "DELTA_PATH_EXISTS": _made_meanwhile,
    "PATH_NOT_FOUND": _no_table,
    "DELTA_MISSING_DELTA_TABLE": _no_table,
    "DELTA_TABLE_NOT_FOUND": _no_table,
    "DELTA_TABLE_ONLY_OPERATION": _no_table,
    "DELTA_MISSING_CHANGE_DATA": _no_changes_kept,
    "DELTA_VERSION_NOT_FOUND": _no_version,
    "DELTA_CANNOT_RESTORE_TABLE_VERSION": _no_version,
    "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION": _too_old,
    "DELTA_REPLACE_WHERE_MISMATCH": _outside_replace_where,
    "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES": _constraint,
    "DELTA_NOT_NULL_CONSTRAINT_VIOLATED": _not_null,
    "DELTA_MISSING_NOT_NULL_COLUMN_VALUE": _no_column,
    "DELTA_CANNOT_CREATE_LOG_PATH": _no_log_folder,
}
