"""What delta-rs may commit in Spark's place: only what both surely leave alike."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltaworks.engines.deltars.write.spark_parity import (
    column_problem,
    key_problem,
    property_problem,
    value_problem,
)
from deltaworks.engines.deltars.write.write_support import may_forget, refuse_properties
from deltaworks.errors import UnsupportedOperation
from deltaworks.model.schema import Schema

KEYS = ("byte", "short", "integer", "long", "string", "date", "timestamp", "boolean")
NOT_KEYS = ("decimal(10,2)", "decimal(38,0)", "float", "double", "binary", "timestamp_ntz")


def schema(kind: object, **notes: str) -> Schema:
    field = {"name": "c", "type": kind, "nullable": True, "metadata": notes}
    return Schema.from_json(json.dumps({"type": "struct", "fields": [field]}))


@pytest.mark.parametrize("kind", KEYS)
def test_keys_that_both_engines_find(kind: str) -> None:
    assert key_problem(schema(kind), ["C"]) == ""
    assert column_problem(schema(kind)) == ""


@pytest.mark.parametrize("kind", NOT_KEYS)
def test_keys_that_only_spark_surely_finds_may_be_other_columns(kind: str) -> None:
    """delta-rs skips files by statistics, and others round those of long decimals."""
    assert "compare" in key_problem(schema(kind), ["c"])
    assert column_problem(schema(kind)) == ""


@pytest.mark.parametrize(
    "kind", ["variant", "void", {"type": "array", "elementType": "long", "containsNull": True}]
)
def test_all_other_types_are_sparks(kind: object) -> None:
    assert "type" in column_problem(schema(kind))


@pytest.mark.parametrize(
    ("note", "is_fine"),
    [
        ("comment", True),
        ("scale", True),
        ("__CHAR_VARCHAR_TYPE_STRING", False),
        ("__COLLATIONS", False),
        ("CURRENT_DEFAULT", False),
        ("delta.generationExpression", False),
        ("delta.whatever.comes.next", False),
    ],
)
def test_notes_that_change_what_a_column_holds_are_sparks(note: str, is_fine: bool) -> None:
    assert (column_problem(schema("string", **{note: "x"})) == "") is is_fine


@pytest.mark.parametrize(
    ("properties", "adds", "merges"),
    [
        ({}, True, True),
        ({"team": "shop", "delta.checkpointInterval": "5"}, True, True),
        ({"delta.enableChangeDataFeed": "True"}, True, False),
        ({"delta.enableChangeDataFeed": "False"}, True, True),
        ({"delta.appendOnly": "TRUE"}, True, False),
        ({"delta.autoOptimize.autoCompact": "True"}, False, False),
        ({"delta.autoOptimize.autoCompact": "false"}, True, True),
        ({"delta.compatibility.symlinkFormatManifest.enabled": "true"}, False, False),
        ({"parquet.block.size": "1"}, False, False),
        ({"delta.universalFormat.enabledFormats": "iceberg"}, False, False),
        ({"delta.nobody.knows.yet": "1"}, False, False),
    ],
)
def test_properties_that_are_known_to_be_harmless(
    properties: dict[str, str], adds: bool, merges: bool
) -> None:
    assert (property_problem(properties, merges=False) == "") is adds
    assert (property_problem(properties, merges=True) == "") is merges


def not_utf8() -> pa.Array:
    return pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (pa.array(["a", None, " ", "a/b %"]), ""),
        (pa.array([None], pa.string()), ""),
        (pa.array(["a", ""]), "stores otherwise"),
        (pa.array(["__HIVE_DEFAULT_PARTITION__"]), "stores otherwise"),
        (pa.array(["ü" * 50]), "stores otherwise"),
        (pa.array([1, None]), ""),
    ],
)
def test_values_that_make_folders(values: Any, problem: str) -> None:
    """Delta keeps such a value as text, and takes an empty one for NULL."""
    found = value_problem(pa.table({"P": values}), ["p"])
    assert problem in found
    assert bool(found) == bool(problem)
    assert value_problem(pa.table({"P": values}), ["other"]) == ""


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (pa.array([date(1, 1, 1), date(9999, 12, 31), None]), ""),
        (pa.array([datetime(1, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")), ""),
        (pa.array([-719_163], pa.int32()).cast(pa.date32()), "year 1"),
        (pa.array([2_932_897], pa.int32()).cast(pa.date32()), "year 9999"),
        (pa.array([2**62]).cast(pa.timestamp("us", "UTC")), "year 9999"),
        (pa.array([None], pa.date32()), ""),
        (pa.array([Decimal("1.10")]), ""),
        (not_utf8(), "not UTF-8"),
    ],
)
def test_values_that_not_every_engine_can_tell(values: Any, problem: str) -> None:
    found = value_problem(pa.table({"v": values}), [])
    assert problem in found
    assert bool(found) == bool(problem)


@pytest.mark.parametrize(
    ("properties", "may"),
    [
        ({}, True),
        ({"delta.enableExpiredLogCleanup": "False"}, False),
        ({"delta.logRetentionDuration": "interval 365 days"}, True),
        ({"delta.logRetentionDuration": "interval 50 weeks 2 days"}, True),
        ({"delta.logRetentionDuration": "INTERVAL 365 DAYS"}, False),
        ({"delta.logRetentionDuration": "365 days"}, False),
    ],
)
def test_a_log_is_forgotten_only_where_delta_rs_reads_how_long_it_is_kept(
    properties: dict[str, str], may: bool
) -> None:
    assert may_forget(properties) is may


@pytest.mark.parametrize("name", ["delta.appendOnly", "delta.enableChangeDataFeed"])
def test_a_stream_makes_no_table_with_a_flag_that_delta_rs_would_not_read(name: str) -> None:
    with pytest.raises(UnsupportedOperation, match='"True", which delta-rs does not read'):
        refuse_properties({name: "True"})
    refuse_properties({name: "true"})
