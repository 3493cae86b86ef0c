"""Give columns other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example, Some
from deltaworks.contracts.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TWINS = "choose another name, or rename the other one as well"


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
        result = renamed(frame, names)
        refuse_twins(result.columns, where="rename", hint=_TWINS)
        for path in {path[:-1] for path in names if len(path) > 1}:
            fields = struct_at(frame.schema, path).fieldNames()
            after = [names.get((*path, field), field) for field in fields]
            refuse_twins(after, where=f'rename in "{".".join(path)}"', hint=_TWINS)
        return result
