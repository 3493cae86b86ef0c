"""Statistics are kept of the columns that rows are found by."""

from __future__ import annotations

import json

from deltaworks.engines.spark.delta.layout import (
    STATS_COLUMNS,
    first_properties,
    statistics_columns,
)
from deltaworks.model.schema import Schema
from deltaworks.model.write import Layout


def schema(columns: int) -> Schema:
    fields = [
        {"name": f"c{n}", "type": "long", "nullable": True, "metadata": {}} for n in range(columns)
    ]
    return Schema.from_json(json.dumps({"type": "struct", "fields": fields}))


def test_a_key_behind_the_columns_that_delta_looks_at_comes_first() -> None:
    found = statistics_columns(Layout(sought=("C35",), partition_by=("c1",)), schema(40))
    assert found[:3] == ("c35", "c0", "c2")
    assert len(found) == 32
    assert first_properties(Layout(sought=("c35",)), schema(40))[STATS_COLUMNS].startswith("`c35`,")


def test_deltas_own_choice_stands_where_it_covers_the_keys_or_the_file_decides() -> None:
    assert statistics_columns(Layout(sought=("c3",)), schema(40)) == ()
    assert statistics_columns(Layout(sought=("c3",)), schema(4)) == ()
    chosen = {"delta.dataSkippingNumIndexedCols": "5"}
    assert first_properties(Layout(sought=("c35",), properties=chosen), schema(40)) == chosen
