"""`table rows`: rows by delta-rs, with every type, condition and mistake; no JVM."""

from __future__ import annotations

import json
import math
import os
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from deltaworks.contracts.engine import CanRead
from deltaworks.engines.deltars.read.filters import filter_sql
from deltaworks.engines.deltars.read.read_support import refuse_misread_rows
from deltaworks.engines.deltars.read.scan import scan_rows
from deltaworks.engines.deltars.write.data_files import DataFolder
from deltaworks.errors import ConfigError, UnsupportedOperation
from deltaworks.model.selection import Selection
from deltaworks.model.table_ref import TableRef
from deltaworks.tables.manager import TableManager
from deltaworks.tables.plain_values import plain_lists
from tests.unit.edited_logs import edit_log, with_feature, with_mapping, with_note
from tests.workbench import Workbench

ORDERS = pa.table(
    {
        "id": [1, 2, 3],
        "amount": [1.0, math.nan, -0.0],
        "Who": ["a", "b", None],
        "nested": [{"f": 1.0, "n": 1}, {"f": math.nan, "n": 2}, None],
    }
)


@pytest.fixture
def orders(desk: Workbench) -> Workbench:
    """A project with one table of three rows, written twice."""
    write_deltalake(str(desk.table("orders")), ORDERS.slice(0, 1))
    write_deltalake(str(desk.table("orders")), ORDERS, mode="overwrite")
    return desk


def rows(desk: Workbench, *arguments: str) -> Any:
    """The JSON document of rows that delta-rs read."""
    answer = desk.cli("table", "rows", *arguments, "--json")
    assert answer.code == 0, answer.stdout
    assert answer.json["engine"] == "delta-rs"
    return answer.json


def test_values_of_every_type(desk: Workbench) -> None:
    values = {
        "t": pa.array([-128], pa.int8()),
        "n": pa.array([2**63 - 1], pa.int64()),
        "f": pa.array([0.1], pa.float32()),
        "nan": pa.array([math.nan], pa.float32()),
        "low": pa.array([-math.inf], pa.float64()),
        "d": pa.array([Decimal("0.0000000001")], pa.decimal128(38, 10)),
        "ok": pa.array([True]),
        "b": pa.array([b"\x00\xff"]),
        "day": pa.array([date(1582, 10, 10)]),
        "at": pa.array([datetime(1, 1, 1, 1, 2, 3, 4, tzinfo=UTC)], pa.timestamp("us", "UTC")),
        "ntz": pa.array([253_402_300_799_999_999], pa.timestamp("us")),
        "s": pa.array([{"a": None, "d": [Decimal("1.50"), None]}]).cast(
            pa.struct([("a", pa.int32()), ("d", pa.list_(pa.decimal128(5, 2)))])
        ),
        "m": pa.array([[(1, math.inf), (2, None)]], pa.map_(pa.int32(), pa.float64())),
        "p": pa.array(["a/b ü%"]),
    }
    write_deltalake(str(desk.table("types")), pa.table(values), partition_by=["p"])
    found = rows(desk, "types")
    assert found["rows"] == [
        {
            "t": -128,
            "n": 2**63 - 1,
            "f": 0.1,
            "nan": "NaN",
            "low": "-Infinity",
            "d": "0.0000000001",
            "ok": True,
            "b": "AP8=",
            "day": "1582-10-10",
            "at": "0001-01-01 01:02:03.000004Z",
            "ntz": "9999-12-31 23:59:59.999999",
            "s": {"a": None, "d": ["1.50", None]},
            "m": {"1": "Infinity", "2": None},
            "p": "a/b ü%",
        }
    ]
    types = [column["type"] for column in found["columns"]]
    assert types[:6] == ["tinyint", "bigint", "float", "float", "double", "decimal(38,10)"]
    assert types[6:12] == [
        *("boolean", "binary", "date", "timestamp", "timestamp_ntz"),
        "struct<a: int, d: array<decimal(5,2)>>",
    ]
    assert types[12:] == ["map<int, double>", "string"]


def test_timestamps_in_the_old_form_do_not_wrap_around(desk: Workbench) -> None:
    far = pa.array([datetime(9999, 12, 31, tzinfo=UTC), datetime(1500, 1, 1, tzinfo=UTC)])
    write_deltalake(str(desk.table("t")), pa.table({"at": far.cast(pa.timestamp("us", "UTC"))}))
    (file,) = desk.table("t").glob("*.parquet")
    whole = pq.read_table(file)
    pq.write_table(whole, file, use_deprecated_int96_timestamps=True, store_schema=False)

    def without_statistics(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"] |= {"size": file.stat().st_size, "stats": '{"numRecords":2}'}

    edit_log(desk.table("t"), without_statistics)
    texts = [row["at"][:10] for row in rows(desk, "t")["rows"]]
    assert texts == ["9999-12-31", "1500-01-01"]
    assert len(rows(desk, "t", "--where", "at > '9000-01-01'")["rows"]) == 1


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("amount > 100", [2]),  # NaN, which the statistics of the file leave out
        ("amount = 0", [3]),
        ("amount < 0", []),
        ("nested.f > 100", [2]),
        ("nested.n = 1", [1]),
        ("nested.f IS NULL", [3]),
        ("ID = 1 OR (who = 'b' AND NOT id = 3)", [1, 2]),
        ("id BETWEEN 2 AND 3 AND Who IS NOT NULL", [2]),
        ("Who LIKE 'a%'", [1]),
        ("id IN (1, -2, 3)", [1, 3]),
        ("3 > id", [1, 2]),
        ("id = amount OR id = id", None),
    ],
)
def test_conditions(orders: Workbench, condition: str, ids: list[int] | None) -> None:
    document = DeltaTable(str(orders.table("orders"))).schema().to_json()
    if ids is None:
        assert filter_sql(condition, document) is None
        return
    found = rows(orders, "orders", "--where", condition, "--columns", "id")
    assert sorted(row["id"] for row in found["rows"]) == ids


@pytest.mark.parametrize(
    "condition",
    [
        *(
            "id = 1.5",
            "id = 9223372036854775808",
            "id = '1'",
            "id = NULL",
            f"id = {10**40}",
            "id = -'1'",
            "id = abs(1)",
        ),
        *("amount = 9007199254740993", "amount = '1'", "money = 1e2", "money = 'x'"),
        *("money = 0.12345678901234567890123456789012345", f"money = {10**36}"),
        *("name = 'a\\'b'", "name = 'a''b'", "name = true", "name ILIKE 'a'", "name = 1", "name"),
        *("day = '2020-02-30'", "day = '2020-1-1'", "day = TIMESTAMP '2020-01-01'", "day = 1"),
        *("at = '2020-02-30 00:00:00'", "at = '2020-01-01 00:00:00+01:00'", "at = 'now'"),
        *(
            "ntz = '2020-01-01 00:00:00Z'",
            "at = TIMESTAMP '2020-01-01'",
            "at = ntz",
            "at = current_date",
        ),
        *("flag = 1", "flag <=> true", "tags = 1", "tags.x = 1", "missing = 1", "s.missing = 1"),
        *(
            "id IN (1, 2.5)",
            "id IN (SELECT 1)",
            "id BETWEEN 1 AND 'x'",
            "id BETWEEN SYMMETRIC 1 AND 2",
        ),
        *("id = 1 AND upper(name) = 'A'", "NOT upper(name) = 'A'", "name LIKE upper('a')", "1 = 1"),
        *("upper(name) IS NULL", "upper(name) IN ('A')", "id LIKE '1'", "id > (", "bytes = 'a'"),
        *("1 = upper(name)", "1.5 = id", "at = CAST('2020-01-01 00:00:00' AS INT)"),
    ],
)
def test_what_engines_may_judge_otherwise_is_left_to_spark(condition: str) -> None:
    types = {
        "id": "long",
        "amount": "double",
        "money": "decimal(10,2)",
        "name": "string",
        "day": "date",
        "at": "timestamp",
        "ntz": "timestamp_ntz",
        "flag": "boolean",
        "bytes": "binary",
    }
    tags = {"type": "array", "elementType": "string", "containsNull": True}
    struct = {"type": "struct", "fields": [{"name": "a", "type": "long"}]}
    fields: list[dict[str, Any]] = [{"name": name, "type": kind} for name, kind in types.items()]
    fields += [{"name": "tags", "type": tags}, {"name": "s", "type": struct}]
    assert filter_sql(condition, json.dumps({"fields": fields})) is None


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        *(
            ("money = 1.5", [1]),
            ("money > 99.999", [2]),
            ("money >= .5", [1, 2]),
            ("money > 1", [1, 2]),
        ),
        *(("long = 12345678901234567890.1234567891", [1]), ("flag = false", [2]), ("flag", [1])),
        *(
            ("day < '1582-10-15'", [1]),
            ("day = DATE '2020-01-01'", [2]),
            ("at = '2020-01-01'", [2]),
        ),
        *(
            ("at < TIMESTAMP '1600-01-01 00:00:00'", [1]),
            ("ntz = '2020-01-01 00:00:00.123456'", [2]),
        ),
        *(("f >= 0.5", [1, 2]), ("f <= 1", [1]), ("at = '2020-01-01T00:00:00Z'", [2])),
    ],
)
def test_conditions_on_other_types(desk: Workbench, condition: str, ids: list[int]) -> None:
    moments = [datetime(1500, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)]
    values = {
        "id": pa.array([1, 2]),
        "money": pa.array([Decimal("1.50"), Decimal("100.00")], pa.decimal128(10, 2)),
        "long": pa.array([Decimal("12345678901234567890.1234567891"), None], pa.decimal128(38, 10)),
        "flag": pa.array([True, False]),
        "day": pa.array([moment.date() for moment in moments]),
        "at": pa.array(moments, pa.timestamp("us", "UTC")),
        "ntz": pa.array([0, 1_577_836_800_123_456], pa.timestamp("us")),
        "f": pa.array([0.5, math.nan], pa.float32()),
    }
    write_deltalake(str(desk.table("t")), pa.table(values))
    found = rows(desk, "t", "--where", condition)
    assert sorted(row["id"] for row in found["rows"]) == ids


def as_it_is(_: dict[str, Any]) -> None:
    """Leave a commit as it is."""


@pytest.mark.parametrize(
    ("edit", "partition", "what"),
    [
        (with_feature, "text", "the feature variantType"),
        (with_mapping, "text", "column mapping"),
        (with_note("__CHAR_VARCHAR_TYPE_STRING", "char(3)"), "text", "a fixed length"),
        (with_note("__COLLATIONS", {"text": "spark.UTF8_LCASE"}), "text", "a collation"),
        (as_it_is, "number", 'column "number" of a type'),
    ],
    ids=["feature", "mapping", "length", "collation", "partition"],
)
def test_tables_that_only_spark_reads_right(
    tmp_path: Path, edit: Any, partition: str, what: str
) -> None:
    place = tmp_path / "t"
    values = {"text": ["a"], "number": [0.5], "tags": [["a"]], "m": [1]}
    write_deltalake(str(place), pa.table(values), partition_by=[partition])
    edit_log(place, edit)
    with pytest.raises(UnsupportedOperation, match=what):
        refuse_misread_rows(DeltaTable(str(place)), DataFolder(str(place)))


def test_a_length_that_may_vary_changes_nothing(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"text": ["a"]}))
    edit_log(tmp_path / "t", with_note("__CHAR_VARCHAR_TYPE_STRING", "varchar(3)"))
    refuse_misread_rows(DeltaTable(str(tmp_path / "t")), DataFolder(str(tmp_path / "t")))


@pytest.mark.parametrize(
    ("note", "day", "is_refused"),
    [
        ({"org.apache.spark.legacyDateTime": ""}, date(1500, 1, 1), True),
        ({"org.apache.spark.version": "2.4.8"}, date(1500, 1, 1), True),
        ({"org.apache.spark.version": "4.2.0"}, date(1500, 1, 1), False),
        ({"org.apache.spark.legacyDateTime": ""}, date(1900, 1, 1), False),
        ({"org.apache.spark.legacyDateTime": ""}, None, False),
    ],
)
def test_days_by_the_old_calendar_are_left_to_spark(
    tmp_path: Path, note: dict[str, str], day: date | None, is_refused: bool
) -> None:
    place = tmp_path / "t"
    rows = pa.table({"s": pa.array([{"day": day}], pa.struct([("day", pa.date32())]))})
    write_deltalake(str(place), rows)
    (file,) = place.glob("*.parquet")
    pq.write_table(rows.replace_schema_metadata(note), file)
    if is_refused:
        with pytest.raises(UnsupportedOperation, match="the old calendar"):
            refuse_misread_rows(DeltaTable(str(place)), DataFolder(str(place)))
        return
    refuse_misread_rows(DeltaTable(str(place)), DataFolder(str(place)))


def test_files_of_other_folders_and_days_in_lists_are_looked_into(tmp_path: Path) -> None:
    place = tmp_path / "t"
    write_deltalake(str(place), pa.table({"days": [[date(2020, 1, 1)]]}))
    refuse_misread_rows(DeltaTable(str(place)), DataFolder(str(place)))
    (file,) = place.glob("*.parquet")

    def elsewhere(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"]["path"] = f"file://{file}"

    edit_log(place, elsewhere)
    with pytest.raises(UnsupportedOperation, match="the old calendar"):
        refuse_misread_rows(DeltaTable(str(place)), DataFolder(str(place)))


def test_text_that_is_not_utf8_is_left_to_spark(tmp_path: Path) -> None:
    place = tmp_path / "t"
    write_deltalake(str(place), pa.table({"text": ["abc"]}))
    (file,) = place.glob("*.parquet")
    _, offsets, data = pa.array([b"a\xffc"]).buffers()
    torn = pa.StringArray.from_buffers(1, offsets, data)
    pq.write_table(pa.table({"text": torn}), file, store_schema=False)

    def as_written(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"] |= {"size": file.stat().st_size, "stats": '{"numRecords":1}'}

    edit_log(place, as_written)
    with pytest.raises(UnsupportedOperation, match="not UTF-8"):
        scan_rows(str(place), Selection())
    assert plain_lists(pa.table({"text": torn})) == [["a\N{REPLACEMENT CHARACTER}c"]]


class SparkStarted(Exception):
    """Spark would be started now."""


@pytest.mark.parametrize("where", ["upper(text) = 'A'", ""], ids=["condition", "table"])
def test_spark_is_started_where_only_it_reads_right(tmp_path: Path, where: str) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"text": ["a"]}))
    if not where:
        edit_log(tmp_path / "t", with_mapping)

    def spark() -> CanRead:
        raise SparkStarted

    manager = TableManager(TableRef("t", str(tmp_path / "t")), spark=spark)
    with pytest.raises(SparkStarted):
        manager.rows(where=where)
    with pytest.raises(ConfigError):  # told before Spark is started
        manager.rows(where=where, columns=["txt"])


def test_versions_and_timestamps(orders: Workbench) -> None:
    assert len(rows(orders, "orders", "--version", "0")["rows"]) == 1
    assert rows(orders, "orders")["versions"] == {"orders": 1}
    first = DeltaTable(str(orders.table("orders"))).history()[1]["timestamp"]
    moment = datetime.fromtimestamp(first / 1000 + 0.001, UTC).isoformat()
    log = orders.table("orders") / "_delta_log"
    last = log / f"{1:020d}.json"
    os.utime(last, (first / 1000 + 60, first / 1000 + 60))
    os.utime(log / f"{0:020d}.json", (first / 1000, first / 1000))
    assert rows(orders, "orders", "--timestamp", moment)["versions"] == {"orders": 0}


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["ordrs"], 1, ['"ordrs" is not a Delta table', 'did you mean "orders"?']),
        (["nowhere/at"], 1, ['"nowhere/at" is not a Delta table', "looked in"]),
        (["orders", "--where", "amont > 1"], 2, ['no column "amont"', 'did you mean "amount"?']),
        (["orders", "--where", "amont.x > 1"], 2, ['no column "amont"']),
        (["orders", "--columns", "id,Wo"], 2, ['no column "Wo"', 'did you mean "Who"?']),
        (["orders", "--where", "id >= 3 and"], 2, ['is incomplete after "and"']),
        (
            ["orders", "--where", "id >= 3\n and and"],
            2,
            ['"id >= 3 and and" is incomplete after "and"'],
        ),
        (["orders", "--where", "(id = 1"], 2, ['opens "(" and does not close it']),
        (["orders", "--where", "DROP TABLE x"], 2, ["is a statement"]),
        (["orders", "--version", "7"], 1, ["has no version 7", "from 0 to 1"]),
        (["orders", "--timestamp", "x"], 2, ["--timestamp"]),
        (["orders", "--timestamp", "2020-01-01"], 1, ["has no version at 2020-01-01"]),
        (["orders", "--timestamp", "2020-01-01", "--version", "1"], 2, ["exclude each other"]),
        (["orders", "--json", "--csv"], 2, ["exclude each other"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_mistakes(orders: Workbench, words: list[str], code: int, told: list[str]) -> None:
    answer = orders.cli("table", "rows", *words)
    assert answer.code == code
    for text in told:
        assert text in answer.stderr + answer.stdout


def test_the_screen(desk: Workbench) -> None:
    values = {"id": [1, 2], "text": ["x" * 100, "\x1b[31mred\nline"], "[b]": [None, True]}
    write_deltalake(str(desk.table("t")), pa.table(values))
    assert desk.cli("table", "rows", "t").stdout.splitlines() == [
        "id      text                                      [b]    ",
        "bigint  string                                    boolean",
        f"1       {'x' * 37}...  NULL   ",
        "2       \\x1b[31mred\\nline                         true   ",
        "2 rows",
        "long values are cut after 40 characters; --json shows them whole",
    ]
    one = desk.cli("table", "rows", "t", "--columns", "id", "-n", "1", "--verbose")
    assert one.stdout.splitlines()[2:] == ["1     ", "the first 1 row"]
    assert one.stderr == "read by delta-rs\n"


def test_columns_that_do_not_fit_are_named(desk: Workbench) -> None:
    values = {f"column_{n}": ["x" * 30] for n in range(10)}
    write_deltalake(str(desk.table("t")), pa.table(values))
    lines = desk.cli("table", "rows", "t").stdout.splitlines()
    assert lines[-1] == "7 of 10 columns fit here; not shown: column_7, column_8, column_9"
    assert len(lines[0]) <= 240
    wide = pa.table({"w": ["ü"], **{f"{'y' * 250}{n}": [1] for n in range(2)}})
    write_deltalake(str(desk.table("w")), wide.select([1, 2, 0]))
    assert desk.cli("table", "rows", "w").stdout.splitlines()[-1].startswith("1 of 3 columns fit")


def test_csv(orders: Workbench) -> None:
    answer = orders.cli("table", "rows", "orders", "--csv", "-n", "2", "--columns", "Who,nested")
    assert (
        answer.stdout == 'Who,nested\na,"{""f"": 1.0, ""n"": 1}"\nb,"{""f"": ""NaN"", ""n"": 2}"\n'
    )
    assert answer.stderr == "the first 2 rows; --limit 0 gives all of them\n"
    every = orders.cli("table", "rows", "orders", "--csv", "-n", "0", "--columns", "Who,id")
    assert (every.stdout, every.stderr) == ("Who,id\na,1\nb,2\n,3\n", "")


def test_rows_from_python(orders: Workbench) -> None:
    project = orders.open()
    found = project.read("orders", columns=["who", "id"], where="id > 1")
    assert found.schema == pa.schema([("Who", pa.string()), ("id", pa.int64())])
    assert found.to_pylist() == [{"Who": "b", "id": 2}, {"Who": None, "id": 3}]
    assert project.read("orders", version=0).num_rows == 1
    assert project.read(str(orders.table("orders")), limit=2).num_rows == 2


def test_rows_of_a_folder_with_a_log_and_no_commits(desk: Workbench) -> None:
    (desk.table("t") / "_delta_log").mkdir(parents=True)
    answer = desk.cli("table", "rows", "t")
    assert (answer.code, '"t" is not a Delta table' in answer.stderr) == (1, True)
