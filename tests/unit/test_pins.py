"""The tables that checks look into are pinned with the batch (B3)."""

from __future__ import annotations

import shutil

import pyarrow as pa
from deltalake import write_deltalake

from deltaworks.runtime.source_bounds import take_pins, why_unpinned
from tests.workbench import Workbench

PIPELINE = """
extract: {type: csv, path: in.csv}
checks:
  - {type: references, table: known, columns: id}
  - {type: references, table: nowhere, columns: id}
load: {type: delta, table: t}
"""


def write(desk: Workbench) -> None:
    write_deltalake(str(desk.table("known")), pa.table({"id": [1]}), mode="append")


def test_a_pinned_version_is_told_when_it_is_gone(desk: Workbench) -> None:
    desk.pipeline("p", PIPELINE)
    write(desk)
    project = desk.open()
    plan = project.catalog("p").plans[0]
    pins = take_pins(plan, project.project_ctx)
    place = str(desk.table("known"))
    assert {name: pin.version for name, pin in pins.items()} == {place: 0}
    write(desk)
    assert why_unpinned(pins) == ""
    pins = take_pins(plan, project.project_ctx)
    assert pins[place].version == 1
    shutil.rmtree(place)
    assert "is not a Delta table" in why_unpinned(pins)
    write(desk)
    assert "is another table now" in why_unpinned(pins)
