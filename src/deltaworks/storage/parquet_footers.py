"""Files that tell their rows and columns at their end or beginning, asked without Spark."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import IO

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.model.batch import Bounds, FileStamp
from deltaworks.model.table_ref import is_url
from deltaworks.storage.listing import damaged_file, unreadable_file
from deltaworks.storage.paths import open_bytes

_MAX_FOOTERS = 1_000
_THREADS = 8
_AVRO_SCHEMA = b"avro.schema"
_FIELD_ID = re.compile(r" field_id=-?\d+")


@dataclass(frozen=True, kw_only=True)
class Footer:
    """What a file says of itself."""

    rows: int | None = None
    """How many it holds; None when it does not say."""
    shape: str = ""
    """Its columns and their types: files with the same text are read alike."""


FooterReader = Callable[[str | IO[bytes]], Footer]


def rows_in_footers(
    bounds: Bounds, look: FooterReader, *, kind: str, stores: Stores = NO_STORES
) -> int | None:
    """The rows of all files, told by their footers; None when there are too many to ask."""
    if len(bounds.files) > _MAX_FOOTERS:
        return None
    return sum(footer.rows or 0 for footer in _footers(bounds, look, kind, stores))


def alike(
    bounds: Bounds, look: FooterReader, *, kind: str, stores: Stores = NO_STORES
) -> tuple[Bounds, ...]:
    """The files in groups of the same columns and types, in the order of their first files."""
    groups: dict[str, list[FileStamp]] = {}
    found = _footers(bounds, look, kind, stores)
    for stamp, footer in zip(bounds.files, found, strict=True):
        groups.setdefault(footer.shape, []).append(stamp)
    return tuple(replace(bounds, files=tuple(stamps)) for stamps in groups.values())


def parquet_footer(file: str | IO[bytes]) -> Footer:
    """What the footer of a Parquet file says."""
    import pyarrow.parquet as pq

    found = pq.read_metadata(file)
    shape = _FIELD_ID.sub("", str(found.schema).partition("{")[2])
    return Footer(rows=found.num_rows, shape=shape)


def orc_footer(file: str | IO[bytes]) -> Footer:
    """What the footer of an ORC file says."""
    from pyarrow import orc

    found = orc.ORCFile(file)
    return Footer(rows=found.nrows, shape=str(found.schema))


def avro_header(file: str | IO[bytes]) -> Footer:
    """What the beginning of an Avro file says: its columns, not its rows."""
    if isinstance(file, str):
        with open_bytes(file) as handle:
            return avro_header(handle)
    file.read(4)  # the mark of the format, which was looked at before
    while count := _long(file):
        if count < 0:
            _long(file)  # the size of the block in bytes
        for _ in range(abs(count)):
            key, value = file.read(_long(file)), file.read(_long(file))
            if key == _AVRO_SCHEMA:
                return Footer(shape=value.decode("utf-8", errors="replace"))
    raise EOFError


def _long(file: IO[bytes]) -> int:
    """A number as Avro writes it: seven bits in a byte, the lowest first, the sign at the end."""
    found, shift = 0, 0
    while True:
        byte = file.read(1)
        if not byte:
            raise EOFError
        found |= (byte[0] & 0x7F) << shift
        shift += 7
        if not byte[0] & 0x80:
            return (found >> 1) ^ -(found & 1)


@dataclass(frozen=True)
class _Question:
    """A look into a file as it was stamped, so that the answer holds for as long as the stamp."""

    look: FooterReader
    stamp: FileStamp
    seen: str
    stores: Stores = field(compare=False)

    def asked(self) -> Footer:
        path = self.stamp.path
        if not is_url(path):
            return self.look(path)
        with open_bytes(path, self.stores) as handle:
            return self.look(handle)


@lru_cache(maxsize=20_000)
def _kept_answer(question: _Question) -> Footer:
    return question.asked()


def _footers(bounds: Bounds, look: FooterReader, kind: str, stores: Stores) -> list[Footer]:
    import pyarrow as pa

    def answer(stamp: FileStamp) -> Footer:
        question = _Question(look, stamp, stamp.seen, stores)
        try:
            return _kept_answer(question) if stamp.seen or stamp.tag else question.asked()
        except (pa.ArrowException, OSError, EOFError) as problem:
            if isinstance(problem, OSError) and problem.strerror:
                raise unreadable_file(stamp.path, problem) from problem
            raise damaged_file(stamp.path, f"is not {kind} file") from problem

    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        return list(pool.map(answer, bounds.files))
