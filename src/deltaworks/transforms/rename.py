"""Give columns other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example, Some
from deltaworks.contracts.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RenameTransform(Transform):
    """Columns and nested fields under new names, in the same places."""

    example: ClassVar[Example] = {"columns": {"amount": "total"}}
    row_preserving: ClassVar[bool] = True

    columns: Annotated[dict[str, str], Some]
    """Old name -> new name; `address.city: town` renames the field inside `address`."""

    def problems(self) -> tuple[str, ...]:
        return tuple(
            f'"{old}" needs a new name' for old, new in self.columns.items() if not new.strip()
        )

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from deltaworks.engines.spark.columns import refuse_twins, require_place
        from deltaworks.engines.spark.nested import renamed, struct_at

        names = {
            require_place(frame, old, where="rename").path: new for old, new in self.columns.items()
        }
        for path in {path[:-1] for path in names}:
            fields = struct_at(frame.schema, path).fieldNames()
            after = [names.get((*path, field), field) for field in fields]
            where = f'rename in "{".".join(path)}"' if path else "rename"
            refuse_twins(after, where=where, hint="choose another name, or rename both")
        return renamed(frame, names)
