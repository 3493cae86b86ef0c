"""Whatever happens to a stream, its table holds each epoch once, and it knows the last one (S3)."""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

import pytest
from deltalake import write_deltalake
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from deltaworks.errors import GuardError
from deltaworks.model.table_ref import TableRef
from deltaworks.streams.epochs import table_epochs
from deltaworks.streams.maintenance import MaintenancePlan
from tests.streams.tables import batch, ids, opened, own_files, table

FOREIGN = 1_000_000


class Stream(RuleBasedStateMachine):
    """A stream, and the epochs its table must have, in plain Python."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.epochs: dict[int, list[int]] = {}
        self.versions: dict[int, tuple[int, dict[int, list[int]], list[int]]] = {}
        self.foreign: list[int] = []
        self.next_id = 0
        self.sink = self._open()

    def _open(self) -> Any:
        return opened(self.folder, upkeep=MaintenancePlan(checkpoint_every=3, compact_files=0))

    def _new_ids(self, count: int) -> list[int]:
        self.next_id += count
        return list(range(self.next_id - count, self.next_id))

    @property
    def last(self) -> int | None:
        return max(self.epochs, default=None)

    @rule(counts=st.lists(st.integers(0, 3), max_size=3))
    def commit(self, counts: list[int]) -> None:
        written = [self._new_ids(count) for count in counts]
        for listed in written:
            self.sink.write(batch(*listed))
        epoch = 1 if self.last is None else self.last + 1
        done = self.sink.commit_epoch(epoch)
        self.epochs[epoch] = [one for listed in written for one in listed]
        self.versions[done.version] = (epoch, dict(self.epochs), list(self.foreign))

    @precondition(lambda self: self.epochs)
    @rule(back=st.integers(0, 3))
    def replay(self, back: int) -> None:
        assert self.last is not None
        self.sink.write(batch(*self._new_ids(2)))
        assert self.sink.commit_epoch(max(0, self.last - back)).skipped

    @precondition(lambda self: self.epochs)
    @rule()
    def leave_one_out(self) -> None:
        assert self.last is not None
        with pytest.raises(GuardError, match="does not follow"):
            self.sink.commit_epoch(self.last + 2)

    @rule(count=st.integers(0, 2))
    def start_again(self, count: int) -> None:
        if count:
            self.sink.write(batch(*self._new_ids(count)))  # and never committed
        self.sink.close()
        self.sink = self._open()

    @rule()
    def somebody_else_writes(self) -> None:
        self.foreign.append(FOREIGN + self._new_ids(1)[0])
        write_deltalake(f"{self.folder}/t", batch(self.foreign[-1]), mode="append")

    @rule()
    def files_are_joined(self) -> None:
        table(self.folder).optimize.compact()

    @precondition(lambda self: self.versions)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(sorted(self.versions)))
        if version == table(self.folder).version():
            return
        _, self.epochs, self.foreign = self.versions[version]
        self.epochs, self.foreign = dict(self.epochs), list(self.foreign)
        table(self.folder).restore(version)
        self.sink.close()
        self.sink = self._open()

    @invariant()
    def the_table_is_what_the_model_is(self) -> None:
        rows = [one for listed in self.epochs.values() for one in listed]
        assert ids(self.folder) == sorted([*rows, *self.foreign])
        assert self.sink.last_committed_epoch == self.last

    def teardown(self) -> None:
        self.sink.close()
        self._open().close()
        kept = [e.epoch for e in table_epochs(TableRef("t", f"{self.folder}/t")) if e.kept]
        assert kept == sorted(self.epochs)
        assert all(name.endswith(".parquet") for name in own_files(self.folder))
        shutil.rmtree(self.folder)


Stream.TestCase.settings = settings(
    max_examples=12, stateful_step_count=12, deadline=None, derandomize=True
)
test_a_stream_survives_whatever_happens = Stream.TestCase
