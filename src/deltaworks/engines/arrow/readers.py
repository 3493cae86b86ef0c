"""What a reader of files must be, and how its failures are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from deltaworks.config.object_stores import Stores
from deltaworks.model.table_ref import is_url
from deltaworks.storage.listing import damaged_file, unreadable_file
from deltaworks.storage.paths import open_bytes

if TYPE_CHECKING:
    import pyarrow as pa


class ArrowFiles(Protocol):
    """The files of one format."""

    def columns(self, path: str) -> pa.Schema | None:
        """The columns that a file tells of, or its source; None when nobody does."""
        ...

    def batches(self, path: str, *, into: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a file, a part at a time; text becomes the types of the table it goes to."""
        ...


def source(path: str, stores: Stores) -> Any:
    """What Arrow opens: a path of this machine as it is, an object as a file."""
    return open_bytes(path, stores) if is_url(path) else path


def is_empty(path: str, stores: Stores) -> bool:
    """Whether a file has no bytes, which Arrow would not read."""
    with open_bytes(path, stores) as handle:
        return not handle.read(1)


@contextmanager
def reading(path: str, what: str) -> Iterator[None]:
    """Whatever goes wrong with a file inside names it."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError, UnicodeError) as error:
        reason = str(error).partition("\n")[0].strip("\"'")
        raise damaged_file(path, f"is not {what} file, or not as it should be: {reason}") from error
    except OSError as error:
        raise unreadable_file(path, error) from error
