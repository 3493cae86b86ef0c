"""Text files looked at line by line, to say exactly where one is wrong."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltaworks.config.documents import shown_path
from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.spark.read.files import FileRows, as_path
from deltaworks.errors import DeltaworksError, InputError
from deltaworks.model.batch import Bounds
from deltaworks.storage.encodings import is_wide
from deltaworks.storage.listing import damaged_file, unreadable_file
from deltaworks.storage.paths import open_bytes

if TYPE_CHECKING:
    from pyspark.sql import Column, Row
    from pyspark.sql.types import StructType

SET_ASIDE = "correct it, or quarantine such rows with `on_error: quarantine`"
_MAX_LINES = 5_000_000
_CHUNK_BYTES = 1 << 20
_EVERY_BYTE = ("iso-8859-1",)
"""Encodings in which all bytes are text."""
_UNPACK: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}


@dataclass(frozen=True, kw_only=True)
class TextFiles(ABC):
    """How text files are written: what is a record, and what its values are."""

    encoding: str
    stores: Stores = NO_STORES

    def lines(self, path: str) -> Iterator[tuple[int, str]]:
        """The lines of a file, numbered; none where only Spark can unpack it."""
        if only_spark_reads(path):
            return
        try:
            with unpacked(path, self.stores) as raw:
                text = io.TextIOWrapper(raw, self.encoding, errors="replace", newline="")
                for number, line in enumerate(text, start=1):
                    if number > _MAX_LINES:
                        return
                    yield number, line.rstrip("\r\n").removeprefix("\ufeff" if number == 1 else "")
        except (EOFError, zlib.error) as problem:
            raise damaged_file(path) from problem
        except OSError as problem:  # a disk that fails has a reason to give, a torn archive none
            raise unreadable_file(path, problem) from problem

    def records(self, path: str) -> Iterator[tuple[int, str]]:
        """The lines that hold a record."""
        return self.lines(path)

    def surely_row(self, line: str) -> bool:
        """Whether a line is a row, whatever else is true of it."""
        return bool(line.strip())

    def remedy(self, raw: str) -> str:
        """What to do about a text that does not fit the columns."""
        return SET_ASIDE

    @abstractmethod
    def values(self, line: str, columns: Sequence[str]) -> Mapping[str, str]:
        """The values of a record as text, by column."""

    @abstractmethod
    def fault(self, raw: str, parsed: Sequence[Row], columns: StructType) -> str:
        """Why a text does not fit the columns; `parsed` is what Spark made of it."""


def only_spark_reads(path: str) -> bool:
    """Whether a file is packed in a way that only Spark can unpack."""
    return path.lower().endswith((".zst", ".lz4", ".snappy", ".deflate"))


@contextmanager
def unpacked(path: str, stores: Stores) -> Iterator[Any]:
    """The bytes of a file that may be packed."""
    unpack = _UNPACK.get(Path(path).suffix.lower(), nullcontext)
    with open_bytes(path, stores) as handle, unpack(handle) as plain:
        yield plain


def refuse_other_text(bounds: Bounds, encoding: str, stores: Stores = NO_STORES) -> None:
    """Every file is text of the encoding; Spark would put another character for what is not."""
    if encoding.lower() in _EVERY_BYTE:
        return
    for stamp in bounds.files:
        if not only_spark_reads(stamp.path) and (line := _other_text(stamp.path, encoding, stores)):
            raise not_text(f"{shown_path(stamp.path)}:{line}", encoding)


def find_other_text(
    error: DeltaworksError, bounds: Bounds, encoding: str, stores: Stores = NO_STORES
) -> DeltaworksError:
    """The error for bytes that are not text of an encoding, with the file and line of them."""
    try:
        refuse_other_text(bounds, encoding, stores)
    except InputError as found:
        return found
    return error


def not_text(place: str, encoding: str) -> InputError:
    """The error for bytes that are not text."""
    return InputError(
        f"{place} is not {encoding} text",
        hint="say the `encoding` of the files at the source, or correct the bytes",
    )


def _other_text(path: str, encoding: str, stores: Stores) -> int:
    """The first line with bytes that are not text; 0 when there is none."""
    decoder, line = codecs.getincrementaldecoder(encoding)("strict"), 1
    holds_ascii = not is_wide(encoding)
    try:
        with unpacked(path, stores) as handle:
            while chunk := handle.read(_CHUNK_BYTES):
                if holds_ascii and chunk.isascii() and not decoder.getstate()[0]:
                    line += chunk.count(b"\n")  # which most of a file is, and is seen at a glance
                    continue
                try:
                    line += decoder.decode(chunk).count("\n")
                except UnicodeDecodeError as problem:
                    before = problem.object[: problem.start].decode(encoding, errors="ignore")
                    return line + before.count("\n")
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return line  # the last character is cut off
    except (EOFError, zlib.error) as problem:
        raise damaged_file(path) from problem
    except OSError as problem:
        raise unreadable_file(path, problem) from problem
    return 0


def record_error(
    files: TextFiles, path: str, *, raw: str, parsed: Sequence[Row], columns: StructType
) -> InputError:
    """The error for a record that does not fit its columns: file, line, column and value."""
    line = next((number for number, text in files.records(path) if text == raw), 0)
    return fault_at(files, path, line, raw=raw, fault=files.fault(raw, parsed, columns))


def fault_at(files: TextFiles, path: str, line: int, *, raw: str, fault: str) -> InputError:
    """The error for a text at a line, or for a whole file."""
    return InputError(f"{fault_place(path, line)}: {fault}", hint=files.remedy(raw))


def fault_place(path: str, line: int) -> str:
    """A line of a file as people write it, or the file when the line is not known."""
    return f"{shown_path(path)}:{line}" if line else shown_path(path)


def find_value(
    error: DeltaworksError, bounds: Bounds, files: TextFiles, *, columns: Sequence[str]
) -> DeltaworksError:
    """The error for a value that a later step could not cast, with its file, line and column."""
    value = str(error.context["value"])
    suspects = {str(name).lower() for name in error.context.get("columns") or ()}  # type: ignore[attr-defined]
    for stamp in bounds.files:
        for number, text in files.records(stamp.path):
            for name, cell in files.values(text, columns).items():
                if cell == value and (not suspects or name.lower() in suspects):
                    kind = error.context.get("type", "of its type")
                    place = f"{shown_path(stamp.path)}:{number}"
                    message = f'{place}: column "{name}": "{value}" is not {kind}'
                    return InputError(message, hint=error.hint)
    return error


_UTF_8 = "utf-8"


def decoded(column: Column, encoding: str) -> Column:
    """What Spark's text reader gives, which is bytes, as text of the encoding."""
    from pyspark.sql import functions as F

    if encoding.lower() == _UTF_8:
        return F.validate_utf8(column)
    return F.decode(column.cast("binary"), encoding)


def refuse_other_bytes(files: FileRows, encoding: str) -> None:
    """The same for files that only Spark can unpack, and whose reader would replace bytes."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    packed = tuple(stamp for stamp in files.bounds.files if only_spark_reads(stamp.path))
    if not packed or encoding.lower() != _UTF_8:
        return
    those = replace(files, bounds=replace(files.bounds, files=packed))
    frame, _ = those.texts(StructType([]), "text", "address", whole=False)
    wrong = frame.filter(~F.is_valid_utf8("text")).select(as_path(F.col("address"))).head(1)
    if wrong:
        raise not_text(shown_path(wrong[0][0]), encoding)
