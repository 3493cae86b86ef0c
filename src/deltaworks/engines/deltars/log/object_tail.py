"""The end of a log on an object store, read and written commit by commit.

To learn what is new delta-rs asks for a log two or three times, and reads each commit as often. But
a commit is put as a whole and never changes. So what was once read still holds when the last commit
of it has the tag it had then: one listing tells, and whatever it shows besides is new.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from deltaworks.config.object_stores import Stores
from deltaworks.engines.deltars.log.commit_facts import facts_of
from deltaworks.errors import MissingDependencyError
from deltaworks.storage.objects import Bucket

Action = Mapping[str, Any]
_COMMIT = re.compile(r"(\d{20})\.json")
_NUMBERED = re.compile(r"\d{20}\.")
_AT_ONCE = 16
_MAX_NEW = 50
"""More commits than this are read by delta-rs, which begins at a checkpoint."""


@dataclass(frozen=True, kw_only=True)
class Commit:
    """One commit as it stands in the log."""

    version: int
    tag: str
    actions: tuple[Action, ...]
    problem: str = ""
    """What is wrong with it, as with a commit on a disk; it has no actions then."""

    @property
    def info(self) -> Mapping[str, Any]:
        """What it says about itself."""
        return next((a["commitInfo"] for a in self.actions if "commitInfo" in a), {})

    @property
    def txns(self) -> dict[str, int]:
        """The transactions it carries, by writer."""
        return {a["txn"]["appId"]: int(a["txn"]["version"]) for a in self.actions if "txn" in a}

    def actions_of(self, kind: str) -> list[Action]:
        """Its actions of one kind."""
        return [action[kind] for action in self.actions if kind in action]

    def is_made_of(self, *kinds: str) -> bool:
        """Whether it has some actions, and none of another kind."""
        return bool(self.actions) and all(set(action) <= set(kinds) for action in self.actions)


@dataclass(frozen=True)
class ObjectLog:
    """The log of one table in a bucket."""

    location: str
    bucket: Bucket

    def since(self, version: int, tag: str, *, most: int = _MAX_NEW) -> list[Commit] | None:
        """The commits after one that is known; None when it is not certain which these are."""
        tags = self._listed(version)
        if not tag or tags.pop(version, "") != tag or len(tags) > most:
            return None
        if sorted(tags) != list(range(version + 1, version + 1 + len(tags))):
            return None
        if not tags:
            return []
        with ThreadPoolExecutor(min(len(tags), _AT_ONCE)) as pool:
            found = list(pool.map(self.read, sorted(tags)))
        known = [commit for commit in found if commit is not None]
        return known if len(known) == len(tags) else None

    def is_empty(self) -> bool:
        """Whether nothing was ever committed here."""
        found = self.bucket.listed(self._folder)
        return not any(_NUMBERED.match(one.address.rpartition("/")[2]) for one in found)

    def read(self, version: int) -> Commit | None:
        """One commit; None when there is none, or none that can be read here."""
        found = self.bucket.read(self._address(version))
        if found is None:
            return None
        try:
            lines = found[0].decode("utf-8").split("\n")  # other breaks stand within values
            actions = tuple(json.loads(line) for line in lines if line)
        except (ValueError, RecursionError):  # delta-rs says what is wrong with it
            return None
        problem = facts_of(found[0]).problem.format(f"commit {version}")
        own = () if problem else actions
        return Commit(version=version, tag=found[1], actions=own, problem=problem)

    def put(self, version: int, actions: Sequence[Action]) -> str | None:
        """Make a commit; its tag, or None when somebody has made one of that number."""
        lines = (json.dumps(action, ensure_ascii=False, allow_nan=False) for action in actions)
        content = "\n".join(lines) + "\n"
        return self.bucket.create(self._address(version), content.encode())

    def _listed(self, first: int) -> dict[int, str]:
        """The tags of commits from a version on."""
        before = self._address(first - 1) if first else ""
        return {
            int(match[1]): one.tag
            for one in self.bucket.listed(self._folder, after=before)
            if (match := _COMMIT.fullmatch(one.address.removeprefix(f"{self._folder}/")))
        }

    @property
    def _folder(self) -> str:
        return f"{self.location}/_delta_log"

    def _address(self, version: int) -> str:
        return f"{self._folder}/{version:020d}.json"


def object_log(location: str, stores: Stores) -> ObjectLog | None:
    """The log of a table in a bucket, where nothing but a put decides who commits; else None."""
    access = stores.access(location)
    if access is None or access.log.store != "single_driver":
        return None
    try:
        return ObjectLog(location, Bucket(location, stores))
    except MissingDependencyError:  # delta-rs can do without
        return None
