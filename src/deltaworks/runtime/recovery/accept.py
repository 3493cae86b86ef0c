"""Taking a table as it is, after others changed it, and what that means for the ledger.

The user says what becomes of batches whose rows are not in the table any more: they are read
again, or they count as read. As with a restore, the intent is in the ledger first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.errors import ConfigError, GuardError
from deltaworks.model.batch import Bounds
from deltaworks.model.commit import CommitInfo, SinkState
from deltaworks.model.table_info import CommitRecord
from deltaworks.model.table_ref import TableRef
from deltaworks.pipeline.stages import Load, Plan
from deltaworks.runtime.environment import RunEnv, new_run
from deltaworks.runtime.ledger.evidence import Writer, commit_of, refuse_meddling
from deltaworks.runtime.ledger.state import (
    ABANDONED,
    DONE,
    RESTORED,
    RESTORING,
    REVERTED,
    UNDONE,
    BatchEntry,
    LedgerState,
    Restore,
    SinkEntry,
    after_restore,
)
from deltaworks.runtime.ledger.table import Ledger, landed_sink
from deltaworks.runtime.ledger.table_contents import (
    GONE,
    RECREATED,
    SOUND,
    Accepted,
    Finding,
    adopted,
    found_in,
    known_version,
)
from deltaworks.runtime.ledger.timeline import standing
from deltaworks.runtime.quarantine.table import Quarantine
from deltaworks.runtime.recovery.accept_result import AcceptResult, Meaning
from deltaworks.runtime.recovery.restore import is_in, moved, settle_quarantine, settle_restores
from deltaworks.runtime.recovery.undo import settle_undos
from deltaworks.runtime.source_bounds import take_bounds
from deltaworks.storage.locks.file_lock import lock_of, locked, pipeline_lock


def accept_table(
    ref: TableRef, writers: Sequence[tuple[Plan, RunEnv]], *, keep: bool, apply: bool
) -> AcceptResult:
    """Take a table as it is. With `keep` nothing is read again; without `apply` nothing changes."""
    mine = [(plan, place) for plan, place in writers if _sinks(plan, place, ref)]
    if not mine:
        raise ConfigError(
            f'no pipeline of this project writes "{ref.label}", so that there is nothing to accept',
            hint="a table that others write needs no acceptance",
        )
    place = mine[0][1]
    accept_id = new_run("accept", place).run_id
    if not apply:
        looks = [_Look(ref, plan, at, keep, accept_id) for plan, at in mine]
        return _result(ref, looks, [look.meaning(look.state) for look in looks], applied=False)
    config = place.config
    names = (pipeline_lock(config.warehouse, plan.pipeline.name) for plan, _ in mine)
    paths = [lock_of(ref.location), *names]
    wait = config.locks.wait_seconds
    with locked(paths, wait_seconds=wait, notify=place.notify, stores=config.stores) as locks:
        looks = [_Look(ref, plan, at, keep, accept_id) for plan, at in mine]
        for look in looks:
            look.refuse_mixture()
        states = [look.settled() for look in looks]
        for look, state in zip(looks, states, strict=True):
            look.require(state)  # all can be accepted, or none is
        locks.require()
        done = [look.carry_out(state) for look, state in zip(looks, states, strict=True)]
        return _result(ref, looks, done, applied=True)


def _result(
    ref: TableRef, looks: Sequence[_Look], meanings: Sequence[Meaning], *, applied: bool
) -> AcceptResult:
    table = looks[0].table
    return AcceptResult(
        table=ref.label,
        version=None if table is None else table[1],
        keeps_position=looks[0].keep,
        applied=applied,
        pipelines=tuple(one for one in meanings if one.found != SOUND),
    )


def _sinks(plan: Plan, place: RunEnv, ref: TableRef) -> dict[str, Load]:
    """The sinks of a pipeline that write a table."""
    return {
        load.name: load
        for load in plan.loads
        if load.plugin.tracks_batches
        and load.plugin.target(place.project_ctx).location == ref.location
    }


@dataclass(frozen=True)
class _Look:
    """One pipeline that writes the table, and what both know of each other."""

    ref: TableRef
    plan: Plan
    place: RunEnv
    keep: bool
    accept_id: str

    @cached_property
    def loads(self) -> dict[str, Load]:
        return _sinks(self.plan, self.place, self.ref)

    @property
    def sinks(self) -> frozenset[str]:
        return frozenset(self.loads)

    @cached_property
    def ledger(self) -> Ledger:
        return self.place.ledger(self.plan.pipeline.name)

    @property
    def quarantine(self) -> Quarantine:
        return self.place.quarantine(self.plan.pipeline.name)

    @cached_property
    def table(self) -> tuple[str, int] | None:
        """The id and version of the table; None when there is none."""
        return self._identity(self.ref.location)

    @property
    def state(self) -> LedgerState:
        """What the ledger says once batches that were cut off are settled."""
        state = self.ledger.state()
        for entry, sinks in self._cut_off(state):
            end = ABANDONED if sinks is None else DONE
            state = state.with_batch(
                replace(entry, state=end, sinks=entry.sinks if sinks is None else sinks),
                state.events + 1,
            )
        return state

    def _identity(self, location: str) -> tuple[str, int] | None:
        return DeltaRsEngine(self.place.config.stores).identity(location)

    def _records(self, location: str) -> tuple[CommitRecord, ...]:
        is_there = self._identity(location) is not None
        return DeltaRsEngine(self.place.config.stores).history(location) if is_there else ()

    def _writer(self, sink: str) -> Writer:
        return Writer(self.place.config.project_id, self.plan.pipeline.name, sink)

    # ------------------------------------------------------------- what was begun before

    def settled(self) -> LedgerState:
        """The state once all that was begun before is written down as far as it got."""
        now, ledger = self.place.clock.now(), self.ledger
        state = settle_restores(ledger, ledger.state(), self.quarantine, now)
        state = settle_undos(
            self.plan, self.place.project_ctx, ledger, state, quarantine=self.quarantine, now=now
        )
        for entry, sinks in self._cut_off(state):
            if sinks is None:
                self.quarantine.give_up(entry)
                state = ledger.abandoned(entry, state, now)
            else:
                self.quarantine.leave(entry)
                state = ledger.done(entry, state, sinks, now)
        return state

    def _cut_off(self, state: LedgerState) -> list[tuple[BatchEntry, tuple[SinkEntry, ...] | None]]:
        """Batches that nobody finished, with their commits; None for those that have none.

        Those with commits in some of their sinks only are left to the next run.
        """
        found: list[tuple[BatchEntry, tuple[SinkEntry, ...] | None]] = []
        for entry in state.all_unfinished():
            sinks = [self._commit(entry, sink) for sink in entry.sinks]
            landed = tuple(sink for sink in sinks if sink is not None)
            if entry.token and not landed:
                found.append((entry, None))
            elif landed and len(landed) == len(sinks):
                self._refuse_meddling(entry, landed)
                found.append((entry, landed))
        return found

    def _refuse_meddling(self, entry: BatchEntry, landed: Iterable[SinkEntry]) -> None:
        """Another table that was set back while a batch was loaded must be accepted first."""
        project_ctx = self.place.project_ctx
        for load in (load for load in self.plan.loads if load.name not in self.sinks):
            for sink in (sink for sink in landed if sink.name == load.name):
                now = load.plugin.state(project_ctx, sink.app_id)
                info = CommitInfo(committed=True, version=sink.version)
                refuse_meddling(load, project_ctx, entry, sink, info=info, now=now)

    def _commit(self, entry: BatchEntry, sink: SinkEntry) -> SinkEntry | None:
        """How a batch landed in a sink, also where its rows are not there any more."""
        load = next((load for load in self.plan.loads if load.name == sink.name), None)
        if load is None or not entry.token:
            return None
        records = self._records(load.plugin.target(self.place.project_ctx).location)
        record = commit_of(records, entry, self._writer(sink.name))
        if record is None:
            return None
        later = (one.operation for one in records if one.version > record.version)
        now = load.plugin.state(self.place.project_ctx, sink.app_id)
        is_replaced = any("REPLACE" in word for word in later)  # by a table with an id of its own
        identity = "a table that is gone" if is_replaced else now.identity
        state = replace(now, identity=sink.identity or identity)
        return landed_sink(sink, CommitInfo(committed=True, version=record.version), state)

    # ------------------------------------------------------------- what it means

    def finding(self, state: LedgerState) -> Finding:
        """What the table holds."""
        writers = [self._writer(name) for name in self.sinks]
        return found_in(state, self.sinks, self.table, self._records(self.ref.location), writers)

    def refuse_mixture(self) -> None:
        """Raise when the table holds rows twice, or of two generations.

        That comes of a table which was set back while a batch was loaded. It is asked before
        anything is written down, as the ledger would take all that for its own doing.
        """
        state = self.state
        standing = self.finding(state).now.standing
        held = [entry for entry in state.batches if entry.n in standing.present]
        newest = max((entry.generation for entry in held), default=0)
        put_back = any(state.batch(n).generation == newest for n in standing.undone)
        for entry in held:
            if entry.generation < newest and not put_back:
                self._refuse_rows(entry, "which a full refresh has replaced")
        if any(load.plugin.is_append() for load in self.loads.values()):
            for entry, other in ((a, b) for a in held for b in held if a.n in b.covers):
                self._refuse_rows(entry, f"which batch {other.n} has read again")

    def _refuse_rows(self, entry: BatchEntry, why: str) -> None:
        raise GuardError(
            f'"{self.ref.label}" holds rows of batch {entry.n}, {why}',
            hint="reload everything with --full-refresh",
        )

    def require(self, state: LedgerState) -> None:
        """Raise unless the table can be accepted."""
        if (restore := self.restore(state)) is not None:
            out, _ = moved(state, restore)
            self.quarantine.require_returns(out, [entry.n for entry in out])

    def meaning(self, state: LedgerState) -> Meaning:
        """What accepting it means."""
        finding, restore = self.finding(state), self.restore(state)
        if restore is None:
            return Meaning(pipeline=self.plan.pipeline.name, found=SOUND)
        accepted = Accepted.from_json(restore.accept)
        sources = accepted.adopted.get("sources", {})
        held = set(accepted.steps[-1][1]) - {accepted.adopted.get("n")}
        return Meaning(
            pipeline=self.plan.pipeline.name,
            found=finding.kind,
            held=tuple(sorted(held)),
            read_again=restore.batches,
            undone=restore.undone,
            unknown=tuple(sorted({n for _, n in finding.now.unknown})),
            counts_as_read={n: Bounds.from_json(doc).summary() for n, doc in sources.items()},
        )

    def carry_out(self, state: LedgerState) -> Meaning:
        """Write it down, and let the quarantine follow."""
        meaning, restore = self.meaning(state), self.restore(state)
        if restore is not None:
            now = self.place.clock.now()
            self.quarantine.clear_unknown(state, kept=self.finding(state).now.unknown)
            state = self.ledger.restore(RESTORING, restore, state, now)
            settle_quarantine(state, restore, self.quarantine)
            self.ledger.restore(RESTORED, restore, state, now)
        return meaning

    def restore(self, state: LedgerState) -> Restore | None:
        """The event that makes the ledger say what the table holds; None when it does already."""
        finding = self.finding(state)
        if finding.kind == SOUND:
            return None
        plain = self._plain_restore(state, finding)
        gone = {*plain.batches}
        counted = self._counted(state, finding, gone) if self.keep else frozenset()
        if self.keep:
            undone = {*plain.undone, *(gone - counted)}
            plain = replace(plain, batches=(), undone=tuple(sorted(undone)))
        txns = self._numbers(state, finding)
        accepted = Accepted(
            steps=self._steps(finding, counted),
            txns=txns,
            is_other=finding.is_other,
            is_floor=finding.is_other or any(h.unknown for _, h in finding.steps),
            lost=self._lost(state, finding, gone),
            counted=tuple(sorted(counted)) if finding.is_other else (),
            found=self._found(state, finding),
            replanned=self._replanned(state, finding, plain.generation),
        )
        restore = replace(plain, accept=accepted.to_json())
        if not finding.now.unknown:
            return restore
        return self._with_unknown(restore, accepted, state, finding)

    def _plain_restore(self, state: LedgerState, finding: Finding) -> Restore:
        """What a restore to what the table holds now would be."""
        then, version = finding.now.standing, -1 if self.table is None else self.table[1]
        table_id = "" if self.table is None else self.table[0]
        ids = {sink.identity for entry in state.batches for sink in entry.sinks if sink.committed}
        known = max((known_version(state, self.sinks, one) for one in ids), default=-1)
        now = standing(state, self.sinks, known)
        generations = [state.batch(n).generation for n in then.present | then.undone]
        generation = max(generations, default=state.generation)
        if self.keep:
            generation = state.generation  # how far was read is said there
        believed = {e.n for e in state.batches if is_in(e, generation, self.sinks)}
        parked = {entry.n for entry, sink in state.parked() if sink.name in self.sinks}
        gone = (now.present | believed) - then.present - parked
        return Restore(
            restore_id=self.accept_id,
            sink=min(self.sinks),
            more_sinks=tuple(sorted(self.sinks - {min(self.sinks)})),
            location=self.ref.location,
            table_id=table_id,
            version_from=known,
            version_to=version,
            batches=tuple(sorted(gone - then.undone)),
            revived=tuple(sorted(then.present - now.present)),
            undone=tuple(sorted(gone & then.undone)),
            generation=generation,
            quarantine_version=self.quarantine.version(),
            version=version,
        )

    def _counted(self, state: LedgerState, finding: Finding, gone: set[int]) -> frozenset[int]:
        """Batches that count as in: those a recreated table was made with, or other sinks have."""
        if finding.kind == RECREATED:
            return frozenset(gone)
        return frozenset(n for n in gone if state.batch(n).kept - self.sinks)

    def _steps(
        self, finding: Finding, counted: frozenset[int]
    ) -> tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]:
        """The versions from which on the table holds something else than the ledger knew."""
        last = -1 if self.table is None else self.table[1]
        steps = () if finding.is_other else finding.steps[1:]
        return tuple(
            (
                at,
                tuple(sorted(holding.standing.present | counted)),
                tuple(sorted(holding.standing.undone)),
            )
            for at, holding in (*steps, (last, finding.now))
        )

    def _lost(self, state: LedgerState, finding: Finding, gone: set[int]) -> tuple[int, ...]:
        """Batches whose commits the log does not have."""
        if not finding.is_other:
            return ()
        committed = {
            entry.n
            for entry in state.batches
            if entry.state in (DONE, UNDONE, REVERTED)
            for sink in entry.sinks
            if sink.name in self.sinks and sink.committed
            if finding.kind in (GONE, RECREATED) or (sink.version or 0) > finding.since
        }
        return tuple(sorted(committed | gone))

    def _found(self, state: LedgerState, finding: Finding) -> tuple[tuple[int, str, int], ...]:
        """Batches that the table holds and that the ledger had forgotten there."""
        if finding.since >= 0:
            return ()
        records = self._records(self.ref.location)
        entries = [state.batch(n) for n in finding.now.standing.present]
        commits = [
            (entry.n, sink.name, commit_of(records, entry, self._writer(sink.name)))
            for entry in entries
            for sink in entry.sinks
            if sink.name in self.sinks
        ]
        return tuple((n, name, made.version) for n, name, made in commits if made is not None)

    def _replanned(
        self, state: LedgerState, finding: Finding, generation: int
    ) -> tuple[tuple[int, str, int | None], ...]:
        """Batches that are still to be made, where the table is not the one they were planned for.

        A batch that had landed there cannot land under its number once more, and one of another
        generation has no place in this one.
        """
        found: list[tuple[int, str, int | None]] = []
        for entry in state.all_unfinished():
            for sink in (sink for sink in entry.sinks if sink.name in self.sinks):
                txn = (
                    self.loads[sink.name]
                    .plugin.state(self.place.project_ctx, sink.app_id)
                    .txn_version
                )
                if (txn or 0) >= entry.n or entry.generation != generation:
                    raise GuardError(
                        f"batch {entry.n} had landed in some of its sinks only when "
                        f'"{self.ref.label}" was changed',
                        hint="reload everything with --full-refresh",
                    )
                found.append((entry.n, sink.name, txn))
        return tuple(found) if finding.is_other else ()

    def _numbers(self, state: LedgerState, finding: Finding) -> dict[str, int]:
        """The last number that the table knows of each sink."""
        unknown = [n for _, n in finding.now.unknown]
        found = {}
        for name, load in self.loads.items():
            txn = self._now(load, state.generation).txn_version
            if numbers := [n for n in (txn, *unknown) if n is not None]:
                found[name] = max(numbers)
        return found

    def _now(self, load: Load, generation: int) -> SinkState:
        app_id = self.ledger.app_id(load.name, generation)
        return load.plugin.state(self.place.project_ctx, app_id)

    # ------------------------------------------------------------- what no ledger knows

    def _with_unknown(
        self, restore: Restore, accepted: Accepted, state: LedgerState, finding: Finding
    ) -> Restore:
        """The same, where the table holds batches that the ledger does not know."""
        numbers = ", ".join(str(n) for n in sorted({n for _, n in finding.now.unknown}))
        if not self.keep:
            self._require_harmless(numbers)
            return restore
        self._require_all_ahead(state, numbers)
        generation = max(state.generation, *(one for one, _ in finding.now.unknown))
        after = after_restore(state, RESTORED, restore, state.events + 1)
        # a full refresh that the ledger lost has read everything, and not what came last
        read = after if generation == state.generation else LedgerState()
        sinks = [self._adopting(load, generation) for load in self._keepers()]
        taken = (*accepted.txns.values(), *(sink.txn_found or 0 for sink in sinks))
        n = max(after.next_batch, max(taken, default=0) + 1)
        document = adopted(
            n=n,
            generation=generation,
            restore_id=self.accept_id,
            at=self.place.clock.now(),
            spec=self.plan.fingerprint(self.place.project_ctx),
            bounds=take_bounds(self.plan, self.place.project_ctx, read),
            sinks=sinks,
        )
        at, present, undone = accepted.steps[-1]
        steps = (*accepted.steps[:-1], (at, (*present, n), undone))
        return replace(restore, accept=replace(accepted, adopted=document, steps=steps).to_json())

    def _require_harmless(self, numbers: str) -> None:
        """Reading again what no ledger knows must add no row, neither there nor in quarantine."""
        what = f'"{self.ref.label}" holds batch {numbers}, which the ledger does not know'
        hint = "use --keep-position, or reload everything with --full-refresh"
        for name, load in self.loads.items():
            if load.plugin.is_append():
                problem = f'{what}, and sink "{name}" appends: its rows would be there twice'
                raise GuardError(problem, hint=hint)
        if self.quarantine.exists():
            problem = f"{what}; it may have replayed rows, which would be in quarantine once more"
            raise GuardError(problem, hint=hint)

    def _keepers(self) -> list[Load]:
        return [load for load in self.plan.loads if load.plugin.is_persistent]

    def _adopting(self, load: Load, generation: int) -> SinkEntry:
        found = self._now(load, generation)
        return SinkEntry(
            name=load.name,
            app_id=self.ledger.app_id(load.name, generation),
            identity=found.identity,
            txn_found=found.txn_version,
            version=found.version,
        )

    def _require_all_ahead(self, state: LedgerState, numbers: str) -> None:
        """What no ledger knows counts as read only if every sink of the pipeline has it."""
        for load in self._keepers():
            location = load.plugin.target(self.place.project_ctx).location
            is_table = load.plugin.state(self.place.project_ctx, "").version is not None
            table = self._identity(location) if is_table else None
            records = self._records(location) if is_table else ()
            names, writers = frozenset({load.name}), [self._writer(load.name)]
            if not found_in(state, names, table, records, writers).now.unknown:
                raise GuardError(
                    f'sink "{load.name}" may lack batch {numbers}, which the ledger does not know',
                    hint="reload everything with --full-refresh",
                )
