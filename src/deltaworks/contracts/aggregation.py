"""One figure of a group, as files write it: shared by steps that group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict

from deltaworks.model.text_fault import twin_problem

Function = Literal[
    "sum",
    "avg",
    "min",
    "max",
    "count",
    "count_distinct",
    "median",
    "stddev",
    "variance",
    "first",
    "last",
    "collect_list",
    "collect_set",
]


class Aggregation(BaseModel):
    """One figure of a group."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    column: str = ""
    """The column to aggregate; left out only for `count`, which then counts rows."""
    function: Function
    """How its values become one."""
    alias: str = ""
    """The result's name; function and column when left out."""

    def result_name(self) -> str:
        """The name the figure gets."""
        return self.alias or figure_name(self.function, self.column)


def figure_name(function: str, column: str) -> str:
    """What a figure is called when the file does not say it: `sum_address_size`."""
    return "_".join(part for part in (function, column.replace(".", "_")) if part)


def aggregation_problems(
    aggregations: Iterable[Aggregation], *, group_by: Iterable[str] = ()
) -> tuple[str, ...]:
    """What is wrong with figures before any column is known; `group_by` is beside them."""
    figures = tuple(aggregations)
    found = [
        f'aggregation "{wanted.function}" needs a "column"'
        for wanted in figures
        if not wanted.column and wanted.function != "count"
    ]
    if problem := twin_problem([*group_by, *(wanted.result_name() for wanted in figures)]):
        found.append(f'{problem}; give one of them an "alias"')
    return tuple(found)
