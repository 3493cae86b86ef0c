"""Turn fields of structs into columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example, Names
from deltaworks.contracts.transform import Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class FlattenTransform(Transform):
    """Columns for the fields of structs, named after the way to them: `address_city`."""

    example: ClassVar[Example] = {"exclude": ["name"]}
    row_preserving: ClassVar[bool] = True

    columns: Names = ()
    """Structs to flatten; all of them when left out."""
    exclude: Names = ()
    """Columns that stay as they are."""
    separator: str = "_"
    """What stands between the names of a struct and its field."""
    recursive: bool = True
    """Whether structs inside structs are flattened too; arrays and maps stay as they are."""

    def apply(
        self, ctx: RunContext, frame: DataFrame, others: Mapping[str, DataFrame]
    ) -> DataFrame:
        from deltaworks.engines.spark.frames.columns import refuse_twins, require_columns
        from deltaworks.engines.spark.transforms.flatten import flat_columns, require_struct

        require_columns(frame, self.exclude, where="flatten", nested=False)
        require_columns(frame, self.columns, where="flatten", nested=False)
        for name in self.columns:
            require_struct(frame, name)
        result = frame.select(
            *flat_columns(
                frame,
                only=self.columns,
                exclude=self.exclude,
                separator=self.separator,
                recursive=self.recursive,
            )
        )
        refuse_twins(result.columns, where="flatten", hint="choose another separator")
        return result
