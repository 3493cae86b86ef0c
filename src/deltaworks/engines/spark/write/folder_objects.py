"""Batches in a folder on an object store, where nothing can be renamed.

Files are staged, copied in under the name of their batch, and the manifest is put last, in one
step. Whoever goes by the manifest, as our own sources do, sees whole batches at every moment; a
reader that only lists the folder may see a batch while it is copied in.
"""

from __future__ import annotations

import json
from typing import Any

from deltaworks.config.object_stores import Stores
from deltaworks.engines.spark.write.folder import (
    FolderWriter,
    Manifest,
    a_file,
    foreign,
    refuse_files,
)
from deltaworks.errors import CommitConflict
from deltaworks.model.commit import Txn
from deltaworks.model.table_ref import is_lock
from deltaworks.storage.folder_manifest import (
    EMPTY,
    MANIFEST,
    batch_mark,
    batch_of,
    counted,
    is_ours,
    short_name,
)
from deltaworks.storage.objects import Bucket

_STAGING = "_deltaworks_staging"


class ObjectFolder(FolderWriter):
    """Stages in the folder, out of readers' sight, and copies."""

    def __init__(self, folder: str, stores: Stores, **how: Any) -> None:
        super().__init__(folder, **how)
        self._bucket = Bucket(folder, stores)
        self._tag: str | None = None
        """The manifest that was read, so that no other is replaced."""

    @property
    def staging(self) -> str:
        return f"{self.folder}/{_STAGING}"

    def exists(self) -> bool:
        return self._bucket.look(self.folder) is not None or self._bucket.holds(self.folder)

    def manifest(self) -> Manifest:
        found = self._bucket.read(self._manifest_address)
        self._tag = None if found is None else found[1]
        return EMPTY if found is None else dict(json.loads(found[0]))

    @property
    def _manifest_address(self) -> str:
        return f"{self.folder}/{MANIFEST}"

    def recover(self) -> None:
        """Remove files of batches that were replaced, which a crash left behind."""
        gone = {writer: first for writer, (first, _) in counted(self.manifest()).items()}
        if any(gone.values()):
            self._remove(lambda told: told[1] <= gone.get(told[0], 0))

    def refuse_foreign(self, manifest: Manifest, *, replace: bool) -> None:
        if self._bucket.look(self.folder) is not None:
            raise a_file(self.folder)
        if not replace:
            return
        files = self._files()
        if self._tag is None and files:
            raise foreign(self.folder)
        refuse_files(self.folder, map(self._below, files), manifest)

    def clear_staging(self) -> None:
        self._bucket.delete(one.address for one in self._bucket.listed(self.staging))

    def swap(self, txn: Txn, document: Manifest) -> None:
        own = short_name(txn.app_id)
        gone = {short_name(app_id): n for app_id, n in document["writers"].items()}
        self._copy_in(txn)
        self._put_manifest({**document, "files": [], "gone": {**gone, own: txn.version - 1}})
        mark = batch_mark(txn.version, txn.app_id)
        self._bucket.delete(
            address
            for address in self._files()
            if not address.rpartition("/")[2].startswith(mark)
            and is_ours(self._below(address), document)
        )

    def move_in(self, txn: Txn, document: Manifest, *, landed: int) -> None:
        if self._tag is None:  # before the first file, or it would count
            self._put_manifest({**document, "writers": {}})
        writer = short_name(txn.app_id)
        self._remove(lambda told: told[0] == writer and told[1] > landed)
        self._copy_in(txn)
        self._put_manifest(document)

    def _copy_in(self, txn: Txn) -> None:
        mark, start = batch_mark(txn.version, txn.app_id), len(self.staging) + 1
        pairs = []
        for one in self._bucket.listed(self.staging):
            around, slash, name = one.address[start:].rpartition("/")
            if not name.startswith(("_", ".")) and not around.startswith("_temporary"):
                pairs.append((one.address, f"{self.folder}/{around}{slash}{mark}{name}"))
        self._bucket.copy(pairs)

    def _below(self, address: str) -> str:
        return address[len(self.folder) + 1 :]

    def _files(self) -> list[str]:
        apart = (f"{self.staging}/", self._manifest_address)
        below = (one.address for one in self._bucket.listed(self.folder))
        return [one for one in below if not one.startswith(apart) and not is_lock(one)]

    def _remove(self, is_left: Any) -> None:
        named = ((address, batch_of(address.rpartition("/")[2])) for address in self._files())
        self._bucket.delete(address for address, told in named if told and is_left(told))

    def _put_manifest(self, document: Manifest) -> None:
        content = json.dumps(document).encode()
        if self._tag is None:
            tag = self._bucket.create(self._manifest_address, content)
        else:
            tag = self._bucket.replace(self._manifest_address, content, tag=self._tag)
        if tag is None:
            raise CommitConflict(f'another writer was faster in "{self.folder}"')
        self._tag = tag
