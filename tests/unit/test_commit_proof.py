"""A batch is known by the note in its commit; its number may be another batch's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake

from deltaworks.engines.deltars.commit_proof import landed_before, own_commit
from deltaworks.engines.deltars.snapshot import TableSnapshot
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.errors import CommitConflict, GuardError
from deltaworks.model.commit import LANDED_BEFORE, Txn
from deltaworks.model.write import Stamp

OURS: dict[str, Any] = {"token": "t1", "step": "out", "batch": 3}


def stamp(n: int = 3, **note: object) -> Stamp:
    return Stamp(txn=Txn("p", n), user_metadata=json.dumps(note or OURS))


def commit(place: Path, written: Stamp | None = None) -> None:
    """A commit with what a batch carries, or of somebody else."""
    properties = None
    if written is not None:
        properties = CommitProperties(
            custom_metadata={"userMetadata": written.user_metadata},
            app_transactions=[Transaction(written.txn.app_id, written.txn.version)],
        )
    rows = pa.table({"id": [1]})
    write_deltalake(str(place), rows, mode="append", commit_properties=properties)


def look(place: Path) -> TableSnapshot:
    found = DeltaRsEngine().look(str(place))
    assert found is not None
    return found


def test_a_batch_is_found_however_many_commits_of_others_came_after_it(tmp_path: Path) -> None:
    commit(tmp_path, stamp(attempt=1, **OURS))
    for _ in range(25):
        commit(tmp_path)
    found = own_commit(look(tmp_path), stamp(attempt=2, **OURS))
    assert found is not None
    assert found.version == 0
    again = landed_before(look(tmp_path), stamp(), label="t")
    assert (again.version, again.note) == (0, LANDED_BEFORE)


@pytest.mark.parametrize("other", [{**OURS, "token": "t2"}, {**OURS, "step": "b"}, {"batch": 3}])
@pytest.mark.parametrize("n", [3, 4])
def test_another_batch_of_the_same_number_is_not_taken_for_ours(
    tmp_path: Path, other: dict[str, Any], n: int
) -> None:
    commit(tmp_path, stamp(n, **other))
    with pytest.raises(CommitConflict, match=f"batch {n} of .* is not the batch 3"):
        own_commit(look(tmp_path), stamp())
    with pytest.raises(GuardError, match="ahead of the ledger"):
        landed_before(look(tmp_path), stamp(), label="t")


def test_a_table_that_never_saw_the_number_does_not_have_the_batch(tmp_path: Path) -> None:
    assert own_commit(None, stamp()) is None
    commit(tmp_path)
    assert own_commit(look(tmp_path), stamp()) is None
    commit(tmp_path, stamp(2, **{**OURS, "batch": 2}))
    assert own_commit(look(tmp_path), stamp()) is None
    with pytest.raises(GuardError):
        landed_before(None, stamp(), label="t")


def test_notes_without_a_token_are_compared_as_a_whole(tmp_path: Path) -> None:
    commit(tmp_path, stamp(batch=3))
    assert own_commit(look(tmp_path), stamp(batch=3, attempt=2)) is not None
    with pytest.raises(CommitConflict):
        own_commit(look(tmp_path), stamp(batch=3, run_id="other"))


def test_a_batch_that_was_taken_out_is_known_by_its_token_too(tmp_path: Path) -> None:
    taken: dict[str, Any] = {"undone_token": "t1", "step": "out", "undo": 3, "run_id": "first"}
    commit(tmp_path, stamp(**taken))
    again = stamp(**{**taken, "run_id": "second"})
    assert landed_before(look(tmp_path), again, label="t").version is not None
    for other in ({"undone_token": "t2"}, {"undo": 4}):
        with pytest.raises(GuardError):
            landed_before(look(tmp_path), stamp(**{**taken, **other}), label="t")
