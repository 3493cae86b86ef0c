"""Spark's and Delta's errors in our words; what no pipeline provokes is translated here."""

from __future__ import annotations

import pytest

from deltaworks.engines.spark.errors.causes import Cause
from deltaworks.engines.spark.errors.translate import (
    _BY_CONDITION,
    _by_class_or_words,
    _rule,
    _unreadable_file,
    _values,
    translate,
)
from deltaworks.errors import (
    BatchKeyError,
    CommitConflict,
    ConstraintViolated,
    DamagedCheckpoint,
    DamagedData,
    DamagedTable,
    DeltaworksError,
    EngineError,
    InputError,
    RunError,
    SchemaMismatch,
    SpecError,
    StorageError,
    TableNotFound,
    UnreadableTable,
    UnsupportedTable,
    VersionNotFound,
)

SPARKS = "[SOME_CONDITION] Something is wrong. SQLSTATE: 42K03; line 1 pos 3"


@pytest.mark.parametrize(
    ("condition", "parameters", "kind", "message"),
    [
        (
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            {"objectName": "`contry`", "proposal": "`country`, `id`"},
            SpecError,
            'column "contry" does not exist',
        ),
        (
            "FIELD_NOT_FOUND",
            {"fieldName": "`ctiy`", "fields": "`city`, `zip`"},
            SpecError,
            'field "ctiy" does not exist',
        ),
        (
            "UNSUPPORTED_DATATYPE",
            {"typeName": '"DECMAL(9,2)"'},
            SpecError,
            'there is no type "decmal(9,2)"',
        ),
        (
            "INVALID_COLUMN_NAME_AS_PATH",
            {"columnName": "`a;b`"},
            SpecError,
            'the files cannot have a column named "a;b"',
        ),
        (
            "USER_RAISED_EXCEPTION",
            {"errorMessage": "too old"},
            InputError,
            "a row was refused by an expression: too old",
        ),
        (
            "PYTHON_EXCEPTION",
            {"traceback": 'Traceback:\n  File "/p/clean.py", line 3, in f\nValueError: x\n'},
            RunError,
            "Python code failed: ValueError: x",
        ),
        (
            "UNRESOLVED_ROUTINE",
            {"routineName": "`uper`"},
            SpecError,
            'there is no function "uper"',
        ),
        (
            "CAST_INVALID_INPUT",
            {"expression": "'x'", "targetType": '"DOUBLE"'},
            InputError,
            "the value 'x' is not double",
        ),
        (
            "CAST_OVERFLOW",
            {"value": "300", "sourceType": '"INT"', "targetType": '"TINYINT"'},
            InputError,
            "the value 300 is not tinyint",
        ),
        (
            "NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION",
            {"roundedValue": "1000.0", "originalValue": "999.99", "precision": "3", "scale": "1"},
            InputError,
            "the value 999.99 does not fit decimal(3,1)",
        ),
        ("MALFORMED_CSV_RECORD", {"badRecord": "a,b,c"}, InputError, "a row cannot be read: a,b,c"),
        (
            "TABLE_OR_VIEW_ALREADY_EXISTS",
            {"relationName": "`delta`.`/lake/t`"},
            CommitConflict,
            'another writer made "/lake/t" at the same time',
        ),
        (
            "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
            {"constraintName": "positive", "expression": "(a > 0)", "values": " - a : -1"},
            ConstraintViolated,
            'a row breaks constraint "positive" of the table (a > 0): a = -1',
        ),
        (
            "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
            {"constraintName": "EXPRESSION(a)", "expression": "a = 1", "values": " - a : 2"},
            ConstraintViolated,
            "a row lies outside replace_where (a = 1): a = 2",
        ),
        (
            "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
            {"columnName": "id"},
            ConstraintViolated,
            'column "id" of the table does not allow NULL, and a row has one',
        ),
        (
            "DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
            {"columnName": "id"},
            ConstraintViolated,
            'column "id" of the table does not allow NULL, and the rows do not have it',
        ),
        (
            "DELTA_CANNOT_CREATE_LOG_PATH",
            {"path": "/lake/t"},
            StorageError,
            '"/lake/t" cannot be written',
        ),
        ("DELTA_FAILED_TO_MERGE_FIELDS", {}, SchemaMismatch, "Something is wrong."),
        ("DELTA_MISSING_DELTA_TABLE", {}, TableNotFound, "Something is wrong."),
        (
            "DELTA_MISSING_CHANGE_DATA",
            {},
            InputError,
            "the changes cannot be determined: Something is wrong.",
        ),
        ("DELTA_VERSION_NOT_FOUND", {}, VersionNotFound, "Something is wrong."),
        (
            "DELTA_VERSIONS_NOT_CONTIGUOUS",
            {"startVersion": "3", "endVersion": "5"},
            DamagedTable,
            "a table's log is damaged: commits between 3 and 5 are missing",
        ),
        (
            "DELTA_TRUNCATED_TRANSACTION_LOG",
            {"path": "file:/lake/t/_delta_log", "version": "7"},
            DamagedTable,
            'the log of "/lake/t" is damaged: version 7 cannot be put together from what is left',
        ),
        (
            "DELTA_MISSING_PART_FILES",
            {"version": "7"},
            DamagedCheckpoint,
            "a table's log is damaged: a part of checkpoint 7 is missing",
        ),
        (
            "DELTA_STATE_RECOVER_ERROR",
            {"operation": "metadata", "version": "7"},
            UnreadableTable,
            "a table's log cannot be read: it has no metadata",
        ),
        (
            "DELTA_READ_TABLE_WITHOUT_COLUMNS",
            {},
            UnreadableTable,
            "a table cannot be read: it has no columns",
        ),
        (
            "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
            {"tableNameOrPath": "file:/lake/t", "unsupported": "timeCrystals"},
            UnsupportedTable,
            '"/lake/t" needs timeCrystals, which is not known here',
        ),
        (
            "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED",
            {"path": "/lake/t"},
            UnsupportedTable,
            '"/lake/t" is managed by a catalog',
        ),
        (
            "DELTA_DELETION_VECTOR_SIZE_MISMATCH",
            {},
            DamagedData,
            "a deletion vector of a table is damaged",
        ),
    ],
)
def test_a_condition_becomes_an_error_of_ours(
    condition: str, parameters: dict[str, str], kind: type[DeltaworksError], message: str
) -> None:
    error = _BY_CONDITION[condition](Cause(condition, parameters, message=SPARKS))
    assert (type(error), error.message) == (kind, message)


@pytest.mark.parametrize(
    ("name", "proposal", "hint"),
    [
        ("`contry`", "`country`, `id`", 'did you mean "country"?'),
        ("`adress`.`postal code`", "`address`, `id`", 'did you mean "address"?'),
        ("`i`.`contry`", "`i`.`country`, `i`.`id`", 'did you mean "i.country"?'),
        ("`a,c`", "`a,b`, `zzz`", 'did you mean "a,b"?'),
    ],
)
def test_the_right_column_is_proposed(name: str, proposal: str, hint: str) -> None:
    parameters = {"objectName": name, "proposal": proposal}
    condition = "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    assert _BY_CONDITION[condition](Cause(condition, parameters)).hint == hint


def test_a_note_inside_an_error_is_the_error() -> None:
    note = '{"kind": "keys", "step": "one", "message": "two rows", "hint": "choose"}'
    found = translate(ValueError(f"task failed: deltaworks-note {note} SQLSTATE: P0001 {{}}"))
    assert (type(found), found.message, found.hint) == (BatchKeyError, "two rows", "choose")
    assert found.context["raised_by"] == "one"


@pytest.mark.parametrize("text", ["{", "[1]", '{"kind": "keys"}', '"x"'])
def test_a_value_that_looks_like_a_note_is_none(text: str) -> None:
    assert type(translate(ValueError(f"bad value deltaworks-note {text}"))) is EngineError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "/lake/t/part-1.parquet (No space left on device)",
            'no space left on device: "/lake/t/part-1.parquet"',
        ),
        ("No space left on device", "no space left on device"),
        ("mkdir of file:/lake/t: Permission denied", 'permission denied: "/lake/t"'),
        ("Read-only file system", "read-only file system"),
    ],
)
def test_trouble_with_the_disk_is_known_by_its_words(text: str, message: str) -> None:
    error = translate(OSError(text))
    assert (type(error), error.message, error.exit_code) == (StorageError, message, 4)
    assert error.hint.endswith("nothing was committed")


def test_a_conflict_is_known_by_its_class() -> None:
    error = _by_class_or_words(Cause("", class_name="io.delta.ConcurrentAppendException"))
    assert isinstance(error, CommitConflict)
    assert "ConcurrentAppendException" in error.message


def test_a_row_outside_replace_where_is_shown() -> None:
    cause = Cause("", {"replaceWhere": "(a = 1)"}, message="Invalid data with values:\n - a : 2")
    error = _BY_CONDITION["DELTA_REPLACE_WHERE_MISMATCH"](cause)
    assert error.message == "a row lies outside replace_where (a = 1): a = 2"


def test_a_log_that_spark_cannot_read_is_damage() -> None:
    path = "file:///lake/t/_delta_log/00000000000000000003.json"
    error = _unreadable_file(Cause("FAILED_READ_FILE.NO_HINT", {"path": path}))
    assert isinstance(error, DamagedTable)
    assert 'the log of "/lake/t" is damaged' in error.message


def test_what_nobody_knows_is_one_line_and_points_to_the_log() -> None:
    error = translate(RuntimeError("first line\nsecond line"))
    assert (type(error), error.message) == (EngineError, "first line")
    assert "log" in error.hint


@pytest.mark.parametrize(
    ("rule", "bare"),
    [
        ("(a > 0)", "a > 0"),
        ("((a) AND (b))", "(a) AND (b)"),
        ("(a) AND (b)", "(a) AND (b)"),
        ("((a)) OR (b)", "((a)) OR (b)"),
        ("a > 0", "a > 0"),
        ("", ""),
    ],
)
def test_only_parentheses_around_all_of_a_rule_are_taken_off(rule: str, bare: str) -> None:
    assert _rule(rule) == bare


def test_values_read_as_in_a_rule() -> None:
    assert _values("\n - a : -1\n - b : x : y\n") == "a = -1, b = x : y"
