"""What every plug-in is: a frozen, fully typed piece of a pipeline file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, model_serializer

from deltaworks.model.text_fault import TextFault, twins

REJECTED = "__deltaworks_rejected"
"""The column by which a stage marks rows it refuses: struct<rule, reason, raw>, NULL if fine."""


def _listed(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _some(value: Any) -> Any:
    if not value:
        raise ValueError("expected at least one")
    return value


def _no_twins(names: tuple[str, ...]) -> tuple[str, ...]:
    i, problem = twins(names)
    if problem:
        raise TextFault(problem, hint="name it once", inside=(i,))
    return names


def _no_twin_keys(columns: dict[str, Any]) -> dict[str, Any]:
    i, problem = twins(columns)
    if problem:
        raise TextFault(problem, hint="name it once", inside=(list(columns)[i],))
    return columns


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


_LISTED = BeforeValidator(_listed, json_schema_input_type=str | tuple[str, ...])

Texts = Annotated[tuple[str, ...], _LISTED]
"""A list of texts; a single text stands for a list of one."""

Names = Annotated[tuple[str, ...], _LISTED, AfterValidator(_no_twins)]
"""A list of columns, each named once; a single name stands for a list of one."""

Some = AfterValidator(_some)
"""Refuses an empty list."""

SomeTexts = Annotated[Texts, Some]
"""A list of at least one text."""

SomeNames = Annotated[Names, Some]
"""A list of at least one column, each named once."""

OnceEach = AfterValidator(_no_twin_keys)
"""Refuses a map whose keys are one column in two spellings."""

TextMap = dict[
    str, Annotated[str, BeforeValidator(_as_text, json_schema_input_type=str | bool | float)]
]
"""Names and texts; booleans and numbers are written as Spark spells them."""


Example = Mapping[str, Any]
"""Options that work as they stand."""


class Plugin(BaseModel):
    """One piece of a pipeline: its fields are exactly what the file may say."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )

    kind: ClassVar[str] = ""
    connector: ClassVar[str] = ""
    """Whose jars Spark must have for it; empty when those it always has are enough."""
    example: ClassVar[Example] = {}
    """Options for rows of `id bigint, name string, amount double`: shown by the reference, and run
    by the conformance suite, which a plug-in joins by existing."""

    @classmethod
    def plugin_type(cls) -> str:
        """The word that selects this plug-in in a file: its module's name."""
        return cls.__module__.rpartition(".")[2]

    @model_serializer(mode="wrap")
    def _with_type(self, handler: Any) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        return {"type": self.plugin_type(), **fields}

    def document(self) -> dict[str, Any]:
        """What the file would say: only what differs from the defaults."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)

    def credentials(self) -> tuple[str, ...]:
        """The names of the credentials it needs; see `NeedsCredential`."""
        return ()

    def problems(self) -> tuple[str, ...]:
        """What is wrong between fields that are right one by one."""
        return ()
