"""The way of returning rows through a plan, or why there is none."""

from __future__ import annotations

import pytest

from deltaworks.config.project import load_project
from deltaworks.errors import GuardError
from deltaworks.pipeline.catalog import find_pipeline, load_plan
from deltaworks.runtime.quarantine.replay import ReplayPath, replay_path
from tests.workbench import Workbench

PIPELINE = """
extract:
  orders: {type: csv, path: orders.csv}
  names: {type: csv, path: names.csv}
transform:
  - {name: typed, type: cast, input: orders, columns: {id: int}}
  - {name: known, type: filter, input: names, condition: "id > 0"}
  - {name: named, type: join, input: typed, with: known, on: [id]}
  - {name: totals, type: aggregate, input: typed, aggregations: [{function: count}]}
checks:
  - {type: not_null, columns: id, input: known, on_fail: quarantine}
load:
  - {type: delta, table: orders, input: named}
  - {type: delta, table: totals, input: totals, mode: overwrite}
"""


def way(desk: Workbench, *entries: tuple[str, str], text: str = PIPELINE) -> ReplayPath:
    desk.pipeline("p", text)
    config = load_project(desk.root, environ={})
    return replay_path(load_plan(find_pipeline(config, "p"), config.names), entries)


def without_totals(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if "totals" not in line)


def test_rows_pass_what_comes_after_and_the_rest_is_looked_up(desk: Workbench) -> None:
    found = way(desk, ("typed", "transform"), text=without_totals(PIPELINE))
    assert found.steps == {"typed", "named"}
    names = {stage.name for stage in found.plan.stages}
    assert names == {"names", "known", "typed", "named", "not_null(id)", "orders"}
    assert [load.name for load in found.plan.loads] == ["orders"]
    assert [source.name for source in found.plan.sources] == ["names"]


def test_a_row_that_a_check_refused_enters_after_its_step(desk: Workbench) -> None:
    found = way(desk, ("named", "check"))
    assert found.steps == {"named"}
    assert [load.name for load in found.plan.loads] == ["orders"]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (("typed", "transform"), '"totals" (aggregate) looks at all rows together'),
        (("known", "check"), '"named" looks up rows of "known"'),
        (("totals", "check"), 'sink "totals" replaces what it holds'),
        (("gone", "check"), 'step "gone", which the pipeline no longer has'),
    ],
)
def test_rows_do_not_come_back_where_they_would_do_harm(
    desk: Workbench, entry: tuple[str, str], words: str
) -> None:
    with pytest.raises(GuardError) as caught:
        way(desk, entry)
    assert words in caught.value.message
