"""Values cast to other types: as Spark casts them, by a format, and without a loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltaworks.engines.spark.frames.columns import Place
from deltaworks.engines.spark.frames.exact_casts import lossy, stopped, unlike
from deltaworks.engines.spark.frames.nested import Change, require_single
from deltaworks.engines.spark.frames.text_formats import read_format
from deltaworks.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_INEXACT = "correct it, choose a type that holds it, or say `exact: false` to round or cut it"
_UNSPELLED = "correct it or the format, or let the cast set_null or quarantine it with `on_error`"


@dataclass(frozen=True, kw_only=True)
class Cast:
    """What becomes of one column or nested field."""

    name: str
    place: Place
    kind: DataType
    written: str
    """The type as the pipeline file has it."""
    spelled: str = ""
    """The format of its texts."""
    exact: bool = True

    def strict(self, step: str) -> Change:
        """The cast that stops the run at a value that does not fit."""

        def change(value: Column) -> Column:
            from pyspark.sql import functions as F

            plain, has = self._read(value)
            cast, loses = plain.cast(self.written), self._loses(plain, has)
            if loses is not None:
                halt = stopped(plain, has, self.kind, hint=_INEXACT, step=step)
                cast = F.when(loses, halt).otherwise(cast)
            if not self.spelled:
                return cast
            wrong = value.isNotNull() & plain.isNull()
            return F.when(wrong, self._misspelled(value, step)).otherwise(cast)

        return change

    def lenient(self, value: Column) -> Column:
        """The cast that gives NULL for a value that does not fit."""
        from pyspark.sql import functions as F

        plain, has = self._read(value)
        cast, loses = plain.try_cast(self.written), self._loses(plain, has)
        return cast if loses is None else F.when(~F.coalesce(loses, _no()), cast)

    def reason(self, value: Column) -> Column:
        """Why a value does not fit; NULL when it does."""
        from pyspark.sql import functions as F

        plain, has = self._read(value)
        shown = F.concat(F.lit(f"{self.name}: '"), value.cast("string"), F.lit("' is not "))
        how = f" spelled as {self.spelled}" if self.spelled else ""
        wrong = F.concat(shown, F.lit(f"{self.written}{how}"))
        found = F.when(value.isNotNull() & plain.try_cast(self.written).isNull(), wrong)
        loses = self._loses(plain, has)
        if loses is None:
            return found
        return found.when(loses, F.concat(shown, unlike(plain, has, self.kind)))

    def _loses(self, plain: Column, has: DataType) -> Column | None:
        return lossy(plain, has, self.kind) if self.exact else None

    def _read(self, value: Column) -> tuple[Column, DataType]:
        """The value to be cast: by its format, where there is one."""
        if not self.spelled:
            return value, self.place.kind
        read, is_text = read_format(value, self.kind, self.spelled)
        return read, self.place.kind if is_text else self.kind

    def _misspelled(self, value: Column, step: str) -> Column:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.errors.row_notes import stop

        said = F.lit(f"{self.written} spelled as {self.spelled}")
        message = F.concat(F.lit("the value '"), value, F.lit("' is not "), said)
        return stop(kind="value", step=step, message=message, hint=_UNSPELLED, about=(value, said))


def casts(
    frame: DataFrame, columns: Mapping[str, str], formats: Mapping[str, str], *, exact: bool
) -> list[Cast]:
    """What becomes of the columns of a frame."""
    from pyspark.sql import functions as F

    places = [require_single(frame, name, where="cast") for name in columns]
    kinds = frame.select(*[F.lit(None).cast(kind) for kind in columns.values()]).schema.fields
    made = [
        Cast(
            name=name,
            place=place,
            kind=field.dataType,
            written=columns[name],
            spelled=formats.get(name, ""),
            exact=exact,
        )
        for name, place, field in zip(columns, places, kinds, strict=True)
    ]
    for cast in made:
        if cast.spelled and cast.place.kind.simpleString() != "string":
            raise SpecError(
                f'formats names "{cast.name}", which is {cast.place.kind.simpleString()}, not text',
                hint="leave its format out",
                context={"column": cast.name},
            )
    return made


def _no() -> Column:
    from pyspark.sql import functions as F

    return F.lit(0).cast("boolean")
