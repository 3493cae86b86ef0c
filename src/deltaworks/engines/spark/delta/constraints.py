"""Rules that a table itself holds its rows to: which rows of a batch would break them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltaworks.contracts.expression import columns_of
from deltaworks.engines.spark.frames.columns import quoted
from deltaworks.engines.spark.frames.json_rows import sample_rows
from deltaworks.model.results import CheckResult
from deltaworks.model.table_info import TableInfo

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_CHECK = "delta.constraints."
_FILLED = ("delta.generationExpression", "delta.identity", "CURRENT_DEFAULT")
"""The notes of columns that the table gives a value where rows have none."""


@dataclass(frozen=True)
class Constraint:
    """A rule of a table; Delta refuses a row for which it is not true."""

    name: str
    rule: str
    columns: frozenset[str]


def constraints(table: TableInfo) -> tuple[Constraint, ...]:
    """The rules of a table: its CHECK constraints, and columns that take no NULL."""
    found = [
        Constraint(key[len(_CHECK) :], rule, _columns(rule))
        for key, rule in table.properties.items()
        if key.lower().startswith(_CHECK)
    ]
    for entry in json.loads(table.schema.document)["fields"]:
        if not entry["nullable"]:
            name = entry["name"]
            rule = f"{quoted(name)} IS NOT NULL"
            found.append(Constraint(f"{name} is not null", rule, frozenset({name.lower()})))
    return tuple(found)


def _columns(rule: str) -> frozenset[str]:
    """The columns a rule names; of a nested field the one it lies in."""
    return frozenset((outer or name).lower() for outer, name in columns_of(rule))


def lacks(frame: DataFrame, table: TableInfo) -> tuple[str, ...]:
    """Columns that a rule of the table names, that rows do not have and nothing fills."""
    have = {name.lower() for name in frame.columns}
    named = {name for rule in constraints(table) for name in rule.columns}
    return tuple(
        entry["name"]
        for entry in json.loads(table.schema.document)["fields"]
        if entry["name"].lower() in named - have
        and not any(note.startswith(_FILLED) for note in entry["metadata"])
    )


def filled(frame: DataFrame, table: TableInfo) -> DataFrame:
    """The rows with NULL in the columns that they lack and that a rule of the table names."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    types = StructType.fromJson(json.loads(table.schema.document))
    added = {name: F.lit(None).cast(types[name].dataType) for name in lacks(frame, table)}
    return frame.withColumns(added) if added else frame


def violations(
    frame: DataFrame, table: TableInfo, *, about: Sequence[str] = ()
) -> tuple[CheckResult, ...]:
    """The rules that rows of the batch break, with a few of those rows; `about` some columns."""
    have = {name.lower() for name in frame.columns}
    rules = [rule for rule in constraints(table) if rule.columns <= have]
    if about:
        rules = [rule for rule in rules if rule.columns & {name.lower() for name in about}]
    if not rules:
        return ()
    counts = frame.agg(*[_count(rule) for rule in rules]).collect()[0]
    return tuple(
        _violated(frame, rule, int(rows)) for rule, rows in zip(rules, counts, strict=True) if rows
    )


def _breaks(rule: Constraint) -> Column:
    from pyspark.sql import functions as F

    return F.expr(f"NOT coalesce(({rule.rule}\n), false)")


def _count(rule: Constraint) -> Column:
    from pyspark.sql import functions as F

    return F.count_if(_breaks(rule))


def _violated(frame: DataFrame, rule: Constraint, rows: int) -> CheckResult:
    samples = sample_rows(frame.filter(_breaks(rule)))
    return CheckResult(
        name=rule.name,
        type="constraint",
        on_fail="fail",
        passed=False,
        rows_failed=rows,
        detail=f"{rows:,} row{'' if rows == 1 else 's'}, for example {samples[0]}",
        samples=samples,
    )
