"""One bucket: what is in it, read, put and removed by address.

An address is a whole location, such as s3://lake/orders/a.csv. A put is atomic; one that is to
make an object, or to replace the one that was read, fails when somebody else was faster.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from deltaworks.config.object_stores import StoreAccess, Stores, store_place
from deltaworks.contracts.duration import duration
from deltaworks.errors import MissingDependencyError, StorageError, UnsupportedOperation
from deltaworks.storage.engine_options import delta_rs_options
from deltaworks.storage.object_errors import reaching

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_OWN_WORDS = ("aws_", "azure_", "google_")
_LOG_WORDS = ("dynamodb", "locking_provider")
_CLIENT_WORDS = ("timeout", "connect_timeout")
_PLAIN_HTTP = ("aws_allow_http", "azure_allow_http")
_RETRY_WORDS = ("max_retries", "retry_timeout")
_AT_ONCE = 16
_BUFFER_BYTES = 4 << 20


@dataclass(frozen=True, kw_only=True)
class StoredObject:
    """One object as it is now."""

    address: str
    size_bytes: int
    modified_ns: int
    tag: str
    """Changes with the content."""


class Bucket:
    """The objects of one bucket or container."""

    def __init__(self, location: str, stores: Stores) -> None:
        access = stores.access(location)
        if access is None:
            scheme = location.partition("://")[0]
            raise UnsupportedOperation(
                f'"{location}": files at {scheme}:// cannot be read or written',
                hint="there are s3, gs, abfss and folders of this machine",
            )
        self._root = _root(location)
        self.reached = (self._root, _words(access))
        """Which bucket this is and how it is reached, to tell it from others; holds secrets."""
        self._store = _client(*self.reached)

    def listed(self, folder: str, *, after: str = "") -> list[StoredObject]:
        """All objects below a folder, or those whose address comes after one, by address."""
        import obstore

        offset = self._key(after) if after else None
        with reaching(folder):
            pages = obstore.list(self._store, prefix=self._key(folder) or None, offset=offset)
            found = [self._object(entry) for page in pages for entry in page]
        return sorted(found, key=lambda one: one.address)

    def holds(self, folder: str) -> bool:
        """Whether there is any object below a folder."""
        import obstore

        with reaching(folder):
            pages = obstore.list(self._store, prefix=self._key(folder) or None, chunk_size=1)
            return any(len(page) for page in pages)

    def folders(self, folder: str) -> tuple[str, ...]:
        """The names of the folders right below one."""
        import obstore

        with reaching(folder):
            found = obstore.list_with_delimiter(self._store, prefix=self._key(folder) or None)
        return tuple(
            sorted(name.rstrip("/").rpartition("/")[2] for name in found["common_prefixes"])
        )

    def look(self, address: str) -> StoredObject | None:
        """An object; None when there is none."""
        import obstore

        try:
            with reaching(address):
                return self._object(obstore.head(self._store, self._key(address)))
        except FileNotFoundError:
            return None

    def read(self, address: str) -> tuple[bytes, str] | None:
        """The content of an object and its tag; None when there is none."""
        import obstore

        try:
            with reaching(address):
                found = obstore.get(self._store, self._key(address))
                return bytes(found.bytes()), str(found.meta["e_tag"])
        except FileNotFoundError:
            return None

    def open(self, address: str) -> io.BufferedReader:
        """An object as a file to read."""
        found = self.look(address)
        if found is None:
            raise FileNotFoundError(2, "it is gone", address)
        raw = _Reader(self._store, self._key(address), found)
        return io.BufferedReader(raw, _BUFFER_BYTES)

    def put(self, address: str, content: bytes) -> str:
        """Make or replace an object; its tag."""
        return self._put(address, content, "overwrite")

    def create(self, address: str, content: bytes) -> str | None:
        """Make an object; None when there is one already."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        try:
            return self._put(address, content, "create")
        except (AlreadyExistsError, PreconditionError):
            return None

    def replace(self, address: str, content: bytes, *, tag: str) -> str | None:
        """Replace the object that has a tag; None when it is another one by now, or gone."""
        from obstore.exceptions import PreconditionError

        try:
            return self._put(address, content, self._following(address, tag))
        except (PreconditionError, FileNotFoundError):
            return None

    def _following(self, address: str, tag: str) -> dict[str, str]:
        """What a put must find there: an object by its tag, or on Google by its generation."""
        import obstore
        from obstore.exceptions import PreconditionError

        if not self._root.startswith("gs://"):
            return {"e_tag": tag}
        with reaching(address):
            found = obstore.head(self._store, self._key(address))
        if found["e_tag"] != tag:
            raise PreconditionError(address)
        return {"e_tag": tag, "version": str(found["version"])}

    def copy(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Copy objects within the store, several at a time."""
        import obstore

        def one(pair: tuple[str, str]) -> None:
            with reaching(pair[1]):
                obstore.copy(self._store, self._key(pair[0]), self._key(pair[1]))

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(one, pairs))

    def delete(self, addresses: Iterable[str]) -> None:
        """Remove objects; those that are gone do not matter."""
        import obstore

        keys = [self._key(address) for address in addresses]
        if keys:
            with reaching(self._root):
                obstore.delete(self._store, keys)

    def _put(self, address: str, content: bytes, mode: Any) -> str:
        import obstore

        key = self._key(address)
        try:
            with reaching(address):
                done = obstore.put(self._store, key, content, mode=mode, use_multipart=False)
        except StorageError:
            self.holds(self._root)  # a bucket that is not there is told by a listing only
            raise
        return str(done["e_tag"])

    def _key(self, address: str) -> str:
        return address.removeprefix(self._root).strip("/")

    def _object(self, entry: Any) -> StoredObject:
        return StoredObject(
            address=f"{self._root}/{entry['path']}",
            size_bytes=int(entry["size"]),
            modified_ns=int(entry["last_modified"].timestamp() * 1_000_000_000),
            tag=str(entry["e_tag"] or ""),
        )


class _Reader(io.RawIOBase):
    """An object, read in ranges."""

    def __init__(self, store: ObjectStore, key: str, found: StoredObject) -> None:
        self._store = store
        self._key = key
        self._found = found
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._found.size_bytes}
        self._at = start[whence] + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        import obstore

        end = min(self._at + len(buffer), self._found.size_bytes)
        if end <= self._at:
            return 0
        with reaching(self._found.address):
            part = obstore.get_range(self._store, self._key, start=self._at, end=end)
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)


def _root(location: str) -> str:
    place = store_place(location)
    assert place is not None
    return f"{location.partition('://')[0]}://{place[1]}"


def _words(access: StoreAccess) -> tuple[tuple[str, str], ...]:
    """How a store is reached, in the client's words; what is only for Delta's log is left out."""
    given = {name.lower(): value for name, value in delta_rs_options(access).items()}
    own = {
        name: value
        for name, value in given.items()
        if name.startswith(_OWN_WORDS) and not any(word in name for word in _LOG_WORDS)
    }
    more = {name: given[name] for name in (*_CLIENT_WORDS, *_RETRY_WORDS) if name in given}
    return tuple(sorted({**own, **more}.items()))


@lru_cache(maxsize=64)
def _client(root: str, words: tuple[tuple[str, str], ...]) -> ObjectStore:
    try:
        from obstore.store import from_url
    except ModuleNotFoundError:
        raise MissingDependencyError(
            "files on object stores need the package obstore, which is not installed",
            hint="pip install 'deltaworks[cloud]'",
        ) from None
    given = dict(words)
    client: Any = {name: given.pop(name) for name in _CLIENT_WORDS if name in given}
    if any(given.pop(name, "") == "true" for name in _PLAIN_HTTP):
        client["allow_http"] = True
    retries: Any = {}
    if "max_retries" in given:
        retries["max_retries"] = int(given.pop("max_retries"))
    if "retry_timeout" in given:
        retries["retry_timeout"] = _span(given.pop("retry_timeout"))
    config: Any = given
    return from_url(root, config=config, client_options=client, retry_config=retries)


def _span(text: str) -> timedelta:
    """A length of time as delta-rs takes it."""
    if text.endswith("ms"):
        return timedelta(milliseconds=float(text.removesuffix("ms")))
    return duration(text)
