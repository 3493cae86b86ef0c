"""JSON text as rows: every record of a text, or the text itself where it is not JSON to its end.

Spark's own reader stops after the first record of a text and says nothing of what follows. So each
text is put between brackets and before a last word: only when that word is read was all before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from deltaworks.engines.spark.frames.columns import quoted
from deltaworks.engines.spark.read.json_decimals import digits_of, only_exact

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

TEXT = "__deltaworks_text"
PARSED = "__deltaworks_parsed"
_RECORD = "__deltaworks_record"
_FITS = "__deltaworks_fits"
_CORRUPT = "corrupt"
_BLANKS = " \t\r\n\ufeff"


def parsed(frame: DataFrame, columns: StructType, options: Mapping[str, str]) -> DataFrame:
    """The frame with what is read of its texts; those that are blank are left out."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

    text = F.ltrim(F.col(TEXT), F.lit(_BLANKS))
    whole = F.when(
        text.startswith("["), F.concat(F.lit('{"records":'), text, F.lit(',"end":true}'))
    )
    whole = whole.otherwise(F.concat(F.lit('{"records":['), text, F.lit('],"end":true}')))
    shape = StructType(
        [
            StructField("records", ArrayType(columns)),
            StructField("end", BooleanType()),
            StructField(_CORRUPT, StringType()),
        ]
    )
    told = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    read = F.from_json(whole, shape, told)
    some = frame.filter(text != "")
    # generated rather than selected, so that no filter of a later step parses the text once more
    found = some.select("*", F.explode_outer(F.array(read)).alias(PARSED))
    return only_exact(found, columns, options, parsed=PARSED, text=text)


def fits() -> Column:
    """Whether a text is records of the columns and nothing else."""
    from pyspark.sql import functions as F

    records = F.col(PARSED).getField("records")
    no = F.lit(0).cast("boolean")
    many = F.exists(records, lambda record: record.isNull())  # slow, and rarely asked for
    hollow = F.when(F.size(records) == 1, F.get(records, 0).isNull())
    hollow = hollow.when(F.size(records) > 1, many).otherwise(no)
    ended = F.coalesce(F.col(PARSED).getField("end"), no)
    return ended & F.col(PARSED).getField(_CORRUPT).isNull() & records.isNotNull() & ~hollow


def records(frame: DataFrame, columns: StructType, *, corrupt: str) -> DataFrame:
    """A row for each record; a text that does not fit is one row, and stands in a column."""
    from pyspark.sql import functions as F

    found = F.col(PARSED).getField("records")
    judged = frame.select("*", fits().alias(_FITS)).filter(~(F.col(_FITS) & (F.size(found) == 0)))
    taken = F.when(F.col(_FITS) | (F.size(found) == 1), found)
    rows = judged.select("*", F.explode_outer(taken).alias(_RECORD))
    own = [F.col(_RECORD).getField(name).alias(name) for name in columns.fieldNames()]
    apart = {TEXT, PARSED, _FITS, _RECORD}
    others = [F.col(quoted(name)) for name in rows.columns if name not in apart]
    return rows.select(*own, *others, F.when(~F.col(_FITS), F.col(TEXT)).alias(corrupt))


def misfit(corrupt: str, columns: StructType) -> Column:
    """Why a text does not fit the columns; the frame has what Spark could read of it."""
    from pyspark.sql import functions as F

    raw = F.col(corrupt)
    found = F.concat_ws("; ", *_misfits(raw, columns, None, "", "$"))
    fallback = F.lit("the record does not fit the columns")
    told = F.when(found != "", found).otherwise(fallback)
    return F.when(F.try_parse_json(raw).isNull(), F.lit("not JSON")).otherwise(told)


def _misfits(
    raw: Column, columns: StructType, inside: Column | None, above: str, path: str
) -> Iterator[Column]:
    """For every field, NULL or that its value in the text was not taken."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import DecimalType, StructType

    for field in columns.fields:
        name, place = f"{above}{field.name}", f"{path}['{field.name}']"
        value = F.col(quoted(field.name)) if inside is None else inside.getField(field.name)
        text, kind = F.get_json_object(raw, place), field.dataType.simpleString()
        if isinstance(field.dataType, DecimalType):
            text = digits_of(raw, place)
        is_lost = value.isNull() & text.isNotNull()
        told = F.concat(F.lit(f'column "{name}": "'), text, F.lit(f'" is not {kind}'))
        yield F.when(is_lost if inside is None else inside.isNotNull() & is_lost, told)
        if isinstance(field.dataType, StructType):
            yield from _misfits(raw, field.dataType, value, f"{name}.", place)
