"""Keep some columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import AfterValidator

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.expression import is_bare_name
from deltaworks.contracts.plugin import Example, Names, Texts
from deltaworks.contracts.transform import Transform
from deltaworks.model.text_fault import TextFault, twins

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_ALIAS = re.compile(r"\sas\s+`?(?P<name>\w+)`?\s*", re.IGNORECASE)


def _once_each(columns: tuple[str, ...]) -> tuple[str, ...]:
    i, problem = twins(_result_name(text) for text in columns)
    if problem:
        raise TextFault(problem, hint="name one with `as`: a.id as a_id", inside=(i,))
    return columns


def _result_name(text: str) -> str:
    """What a column will be called, as far as the text alone tells."""
    found = [match for match in _ALIAS.finditer(text) if match.end() == len(text)]
    return found[-1]["name"] if found else text


class SelectTransform(Transform):
    """Columns by name or expression, or all but some."""

    example: ClassVar[Example] = {"columns": ["id", "upper(name) as name"]}
    row_preserving: ClassVar[bool] = True

    columns: Annotated[Texts, AfterValidator(_once_each)] = ()
    """Columns to keep, in order; an expression such as `upper(name) as name` works too."""
    exclude: Names = ()
    """Columns or nested fields to leave out; all others stay."""

    def problems(self) -> tuple[str, ...]:
        if bool(self.columns) == bool(self.exclude):
            return ('say either "columns" or "exclude"',)
        return ()

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from deltaworks.engines.spark.frames.columns import refuse_twins
        from deltaworks.engines.spark.frames.nested import without

        if self.exclude:
            for name in self.exclude:
                frame = without(frame, name, where="select")
            return frame
        result = frame.select(*[_wanted(frame, text) for text in self.columns])
        refuse_twins(result.columns, where="select", hint="name one with `as`: a.id as a_id")
        return result


def _wanted(frame: DataFrame, text: str) -> Column:
    from pyspark.sql import functions as F

    from deltaworks.engines.spark.frames.columns import column, find_place, require_columns

    if find_place(frame.schema, text):
        return column(frame, text)
    if "." in text and is_bare_name(text):  # one word alone may be an expression: current_date
        require_columns(frame, [text], where="select")
    return F.expr(text)
