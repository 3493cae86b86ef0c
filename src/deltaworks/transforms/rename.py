"""Give columns other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import AfterValidator

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example, OnceEach, Some
from deltaworks.contracts.transform import Transform
from deltaworks.model.text_fault import TextFault, twins

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _new_names(columns: dict[str, str]) -> dict[str, str]:
    """Refuse two new names that are one, in the same struct."""
    olds = list(columns)
    for above in {old.rpartition(".")[0] for old in olds}:
        beside = [old for old in olds if old.rpartition(".")[0] == above]
        i, problem = twins(columns[old] for old in beside)
        if problem:
            raise TextFault(problem, hint="choose another name", inside=(beside[i],))
    return columns


class RenameTransform(Transform):
    """Columns and nested fields under new names, in the same places."""

    example: ClassVar[Example] = {"columns": {"amount": "total"}}
    row_preserving: ClassVar[bool] = True

    columns: Annotated[dict[str, str], Some, OnceEach, AfterValidator(_new_names)]
    """Old name -> new name; `address.city: town` renames the field inside `address`."""

    def problems(self) -> tuple[str, ...]:
        return tuple(
            f'"{old}" needs a new name' for old, new in self.columns.items() if not new.strip()
        )

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from deltaworks.engines.spark.frames.columns import refuse_twins, require_place
        from deltaworks.engines.spark.frames.nested import renamed, struct_at

        names = {
            require_place(frame, old, where="rename").path: new for old, new in self.columns.items()
        }
        for path in {path[:-1] for path in names}:
            fields = struct_at(frame.schema, path).fieldNames()
            after = [names.get((*path, field), field) for field in fields]
            where = f'rename in "{".".join(path)}"' if path else "rename"
            refuse_twins(after, where=where, hint="choose another name, or rename both")
        return renamed(frame, names)
