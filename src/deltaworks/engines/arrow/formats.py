"""Which formats can be read without Spark, and what of their sources is understood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.arrow.csv_json_text import CsvFiles, JsonFiles, TextFiles
from deltaworks.engines.arrow.ddl import declared_schema
from deltaworks.engines.arrow.parquet_orc import OrcFiles, ParquetFiles
from deltaworks.engines.arrow.readers import ArrowFiles

_ANY = frozenset({"type", "path", "incremental", "credential"})
_CSV = frozenset(
    {"header", "delimiter", "quote", "escape", "null_value", "encoding", "multiline", "schema"}
)
WORDS: Mapping[str, frozenset[str]] = {
    "csv": _ANY | _CSV,
    "json": _ANY | {"schema"},
    "orc": _ANY,
    "parquet": _ANY,
    "text": _ANY | {"encoding"},
}
"""What a source of each format may say."""


def arrow_files(kind: str, words: Mapping[str, Any], stores: Stores = NO_STORES) -> ArrowFiles:
    """A reader of files as their source describes them."""
    said = {name: value for name, value in words.items() if name not in _ANY}
    if "schema" in said:
        said["schema"] = declared_schema(said["schema"])
    readers: Mapping[str, Any] = {
        "csv": CsvFiles,
        "json": JsonFiles,
        "orc": OrcFiles,
        "parquet": ParquetFiles,
        "text": TextFiles,
    }
    reader: ArrowFiles = readers[kind](**said, stores=stores)
    return reader
