"""The fields of JSON records, compared with the columns that are declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from deltaworks.engines.spark.read.drifting_files import differences, merged_fields, retyped
from deltaworks.errors import InputError
from deltaworks.storage.drift import Drift, FileDrift
from deltaworks.storage.listing import UnknownColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

IN_QUARANTINE = "rows in quarantine"
_CORRUPT = "__deltaworks_not_json"
FIELDS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, "samplingRatio": "1.0"}
"""What Spark is told when it finds the fields of all records; text that is not JSON has none."""


def without_text(found: StructType) -> StructType:
    """The fields that Spark found, without the one that holds texts that are not JSON."""
    from pyspark.sql.types import StructType

    return StructType([field for field in found.fields if field.name != _CORRUPT])


def fields_of(texts: DataFrame, options: Mapping[str, str]) -> StructType:
    """The fields of all records in a column of texts; each type takes in every value."""
    reader = texts.sparkSession.read.options(**{**options, **FIELDS})
    return without_text(reader.json(texts).schema)


def judge_fields(
    asked: StructType,
    found: StructType,
    drift: Drift,
    warn: Callable[[str], None],
    *,
    first: Callable[[str], FileDrift],
) -> None:
    """Refuse or tell fields outside the declared columns, with the first record that has one.

    Spark finds fields by their exact spelling, so that one in another case would be lost.
    """
    unknown, missing = differences(asked, found, exact_case=True)
    place = first(unknown[0] if unknown else "")
    misspelled = set(unknown) - set(differences(asked, found)[0])
    if misspelled:
        raise InputError(
            f'{place.place}: the record has "{unknown[0]}", which `schema` spells in '
            "upper and lower case otherwise",
            hint="spell it in `schema` as the records do",
        )
    drift.judge([place.with_columns(unknown, missing)], warn)


def kept_columns(
    texts: DataFrame,
    left: StructType,
    declared: StructType,
    unknown: UnknownColumns,
    *,
    options: Mapping[str, str],
    warn: Callable[[str], None],
) -> StructType:
    """What is read of quarantined texts, which left with some columns.

    Fields that few records leave out are not missing, so that only unknown ones are judged.
    """
    if unknown == "ignore":
        return declared
    found = fields_of(texts, options)
    drift = Drift(unknown=unknown, missing="fill")
    judge_fields(declared, found, drift, warn, first=lambda _: FileDrift(path=IN_QUARANTINE))
    return with_others(with_others(declared, left), found) if unknown == "keep" else declared


def with_others(declared: StructType, found: StructType) -> StructType:
    """The declared columns, and those besides them that were found."""
    return merged_fields(declared, retyped(found, declared)) or declared
