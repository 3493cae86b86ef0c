"""Values that Spark could not read, convert or compute with, in our words."""

from __future__ import annotations

from collections.abc import Callable

from deltaworks.engines.spark.errors.causes import Cause
from deltaworks.errors import DeltaworksError, InputError


def _raised(cause: Cause) -> InputError:
    return InputError(
        f"a row was refused by an expression: {cause.parameters.get('errorMessage', '')}",
        hint="correct the row, or filter such rows first",
    )


def _bad_value(cause: Cause) -> InputError:
    value = cause.parameters.get("expression") or cause.parameters.get("value", "")
    wanted = cause.parameters.get("targetType", "").strip('"').lower()
    return InputError(
        f"the value {value} is not {wanted}",
        hint="correct it, or let the cast set_null or quarantine such values with `on_error`",
        context={"value": value.strip("'"), "type": wanted},
    )


def _by_zero(_: Cause) -> InputError:
    return InputError(
        "an expression divides a row's value by zero",
        hint="divide by nullif(x, 0), or use try_divide or try_mod: both give NULL then",
    )


def _overflow(cause: Cause) -> InputError:
    names = ("value1", "symbol", "value2")
    told = " ".join(cause.parameters[name] for name in names if name in cause.parameters)
    return InputError(
        f"an expression makes a number that its type cannot hold{told and ': '}{told}",
        hint="cast to a wider type first, or use try_add, try_subtract or try_multiply "
        "for NULL instead",
    )


def _too_precise(cause: Cause) -> InputError:
    given = cause.parameters
    value = given.get("value") or given.get("originalValue", "")
    return InputError(
        f"the value {value} does not fit decimal"
        f"({given.get('precision', '')},{given.get('scale', '')})",
        hint="make the decimal wider, or use try_cast for NULL instead",
    )


def _no_element(cause: Cause) -> InputError:
    given = cause.parameters
    return InputError(
        f"an expression asks for element {given.get('indexValue', '')} of an array "
        f"of {given.get('arraySize', '')}",
        hint="use get(array, n), which counts from 0, or try_element_at(array, n), "
        "which counts from 1: both give NULL then",
    )


def _no_moment(cause: Cause) -> InputError:
    found = cause.parameters.get("message", "")
    return InputError(
        f"a text is not a date or time of the format asked for: {found}",
        hint="correct it, or use try_to_date or try_to_timestamp for NULL instead",
    )


def _bad_record(cause: Cause) -> InputError:
    record = cause.parameters.get("badRecord", "")
    return InputError(
        f"a row cannot be read: {record}",
        hint="correct it, or quarantine such rows with `on_error: quarantine`",
        context={"record": record},
    )


def _bad_partition(cause: Cause) -> InputError:
    key = cause.parameters.get("columnName", "").replace("`", "")
    value = cause.parameters.get("value", "").strip("'")
    kind = cause.parameters.get("dataType", "").strip('"').lower()
    return InputError(
        f'folder "{key}={value}": "{value}" is not {kind}',
        hint="correct the folder's name, or the type in `partition_types`",
    )


def _not_text(cause: Cause) -> InputError:
    charset = cause.parameters.get("charset", "UTF-8")
    return InputError(
        f"a file is not {charset} text",
        hint="say its `encoding` at the source",
        context={"encoding": charset},
    )


VALUE_ERRORS: dict[str, Callable[[Cause], DeltaworksError]] = {
    "USER_RAISED_EXCEPTION": _raised,
    "CAST_INVALID_INPUT": _bad_value,
    "CAST_OVERFLOW": _bad_value,
    "DIVIDE_BY_ZERO": _by_zero,
    "REMAINDER_BY_ZERO": _by_zero,
    "INTERVAL_DIVIDED_BY_ZERO": _by_zero,
    "ARITHMETIC_OVERFLOW": _overflow,
    "BINARY_ARITHMETIC_OVERFLOW": _overflow,
    "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION": _too_precise,
    "NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION": _too_precise,
    "INVALID_ARRAY_INDEX": _no_element,
    "INVALID_ARRAY_INDEX_IN_ELEMENT_AT": _no_element,
    "CANNOT_PARSE_TIMESTAMP": _no_moment,
    "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION": _bad_record,
    "MALFORMED_RECORD_IN_PARSING.CANNOT_PARSE_RECORD": _bad_record,
    "MALFORMED_CSV_RECORD": _bad_record,
    "INVALID_PARTITION_VALUE": _bad_partition,
    "MALFORMED_CHARACTER_CODING": _not_text,
    "INVALID_UTF8_STRING": _not_text,
}
"""How each of Spark's conditions about a value is told."""
