"""Many topologies in one of Spark's queries: one loop over batches, in which each takes part as long as it likes."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from potok.engine.batch_loop import BatchLoop
from potok.engine.beginning import Begin, Places, places_of
from potok.engine.checkpoint import check_checkpoint, drop_unbegun
from potok.engine.lock import QueryLock, QueryTakenOver, this_process
from potok.engine.prepare import Buildable, topology_of
from potok.engine.session import spark_session
from potok.engine.shared.errors import AlreadyMember, NotCaughtUp, NotFailed, NotMember, NotRunning
from potok.engine.shared.joint_batch import Committed, JointBatch
from potok.engine.shared.member import Member, MemberState, MemberStatus
from potok.engine.shared.roll import Roll, owner_mark, roll_mark, shared_directory
from potok.engine.shared.shared_planner import SharedPlanner
from potok.engine.shared.shares import Share, last_shares, shares_of_batch, unfinished
from potok.engine.upkeep import Upkeep
from potok.errors import PotokError
from potok.log.broker import Broker
from potok.log.errors import MarkChanged
from potok.settings import Settings
from potok.state.entry import mark_of
from potok.state.offsets import Offsets
from potok.topology.graph import Topology
from potok.views.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

Heard = Callable[[Mapping[str, Committed]], None]

LOOK_S = 0.01


class SharedQuery:
    """Runs the topologies that are added to it, each under its own name, as if each were a query of its own.

    >>> with SharedQuery(broker, settings) as shared:
    ...     shared.add(builder)
    ...     shared.wait_caught_up(10)

    May be called from any thread. Members take part from the next batch on, and leave between two.
    """

    def __init__(
        self, broker: Broker, settings: Settings, name: str = "shared", *, spark: SparkSession | None = None
    ) -> None:
        self._broker, self._settings, self.name = broker, settings, name
        self._spark = spark or spark_session(settings)
        self._lock = QueryLock(shared_directory(broker, name), name)
        try:
            self._loop = BatchLoop(
                name,
                shared_directory(broker, name),
                work=self._run,
                after=self._tell,
                close=self._close,
                waiting=self._all_wait,
                retry_for_ms=settings.retry_for_ms,
            )
            drop_unbegun(self._loop.checkpoint)
            check_checkpoint(name, self._loop.checkpoint)
            # What the last process began: Spark has it in its log, or it failed before, and stands in the roll.
            roll = Roll.of_bytes(broker.mark(roll_mark(name)))
            self._owed: dict[str, Share] = {**roll.owed, **last_shares(self._loop.checkpoint).shares}
            self._claim = f"{this_process()} {uuid.uuid4().hex}".encode()
            broker.set_marks({owner_mark(name): self._claim})
        except BaseException:
            self._lock.release()
            raise
        self._members: dict[str, Member] = {}
        self._waiting_for: PotokError | None = None
        self._books, self._entering = threading.RLock(), threading.Lock()
        self._done: dict[str, Committed] = {}
        self._heard: list[Heard] = []
        self._upkeep = Upkeep(broker)
        self._closing, self._closed = False, False

    def start(self) -> SharedQuery:
        """Begin with the batches; members may come before and after."""
        try:
            self._write_roll()
            settings = self._settings
            bounds = settings.idle_after_ms, settings.max_batch_records, settings.max_batch_bytes
            planner = SharedPlanner(self._broker, self.name, *bounds)
            self._loop.start(self._spark, planner)
            self._upkeep.start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop at the next batch boundary, and close the books of all members."""
        if self._loop.is_active:
            self._loop.stop()
        else:
            self._close(None)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; whether it has come. Raises what ended all members at once."""
        return self._loop.wait(timeout)

    @property
    def is_active(self) -> bool:
        return self._loop.is_active

    def taken_over(self) -> QueryTakenOver | None:
        """What to say if another process has begun to run these queries: one on this machine is kept off by the lock,
        unless that was lost, and one on another machine by nothing."""
        try:
            owner = self._broker.mark(owner_mark(self.name)) or b""
        except PotokError:
            # Nobody can say.
            return None
        return None if owner == self._claim else QueryTakenOver(self.name, owner.decode().rpartition(" ")[0])

    def add(self, program: Buildable | Topology, *, begin: Begin = "earliest", paused: bool = False) -> None:
        """Let a topology take part; one that ran before goes on where its ledger stands.

        Args:
            begin: Where a topology that never ran begins. `latest` holds for streams: a table is read from its first
                record on, because it would not be the table otherwise.
            paused: Let it rest from the beginning.
        """
        topology = topology_of(program)
        with self._entering:
            known = self._members.get(topology.name)
            if known is not None:
                raise AlreadyMember(topology.name, known.state)
            self._enter(topology, places_of(self._broker, topology, begin), paused=paused)

    def retry(self, name: str) -> None:
        """Let a member that failed take part again. If it cannot even begin, it stays as it is, with the new error."""
        with self._entering:
            member = self._member(name)
            if member.state is not MemberState.FAILED:
                raise NotFailed(name, member.state)
            try:
                self._enter(member.topology, {})
            except PotokError as error:
                member.error = error
                raise

    def _enter(self, topology: Topology, begin: Places, *, paused: bool = False) -> None:
        if (taken := self.taken_over()) is not None:
            raise taken
        member = Member.begun(topology, self._broker, self._spark, self._settings, begin)
        with self._books:
            if self._closing:
                member.end()
                raise NotRunning(member.name, f'the shared query "{self.name}" has ended')
            before = dict(self._members)
            try:
                self._take_in(member, paused=paused)
            except BaseException:
                # Who is not on the roll takes no part, and may not keep its lock.
                self._members = before
                with contextlib.suppress(PotokError):
                    member.end()
                raise

    def _take_in(self, member: Member, *, paused: bool) -> None:
        owed = self._owed.pop(member.name, None) or _left_alone(member)
        if owed is not None and owed.fits(member.runner.ledger.entry) and member.runner.ahead(owed.end) is not None:
            self._owed[member.name] = owed
        if paused:
            member.tell(MemberState.PAUSED)
        self._members[member.name] = member
        self._write_roll()

    def remove(self, name: str) -> None:
        """End a member between two batches; its ledger and its tables stay."""
        with self._loop.boundary, self._books:
            member = self._member(name)
            del self._members[name]
            self._write_roll()
            member.end()

    def pause(self, name: str) -> None:
        """Let a member rest between two batches. It keeps its lock, and its records wait in the log."""
        self._turn(name, MemberState.RUNNING, MemberState.PAUSED)

    def resume(self, name: str) -> None:
        self._turn(name, MemberState.PAUSED, MemberState.RUNNING)

    def _turn(self, name: str, before: MemberState, after: MemberState) -> None:
        with self._loop.boundary, self._books:
            member = self._member(name)
            if member.state is MemberState.FAILED:
                raise NotRunning(name, str(member.error))
            if member.state is before:
                member.tell(after)
                self._write_roll()

    def members(self) -> dict[str, MemberStatus]:
        """How all of them are doing."""
        with self._books:
            members = dict(self._members)
        return {name: member.status(self._waiting_for) for name, member in sorted(members.items())}

    def tables(self, name: str) -> Tables:
        """The tables of a member, as of its last committed batch."""
        return Tables(self._broker, name)

    def on_batch(self, heard: Heard) -> Callable[[], None]:
        """Call a function after each batch that committed anything, with the members that did; returns what undoes it.

        It runs between two batches, so it must be quick. What it raises is logged, and hurts nobody.
        """
        self._heard.append(heard)
        return lambda: self._heard.remove(heard) if heard in self._heard else None

    def wait_caught_up(self, timeout_s: float, names: Iterable[str] | None = None) -> None:
        """Wait until no member that runs, or none of those named, has records left to read.

        Raises the error of one that failed, if it was named.
        """
        named = None if names is None else list(names)
        end = time.monotonic() + timeout_s
        while behind := self._behind(named):
            if self._loop.wait(LOOK_S):
                raise NotCaughtUp(behind, "the shared query was stopped")
            if time.monotonic() > end:
                raise NotCaughtUp(behind, f"after {timeout_s:g} seconds")

    def _behind(self, named: list[str] | None) -> dict[str, int]:
        """Records that are left for each; ledgers are looked at before the ends, which their output may have moved."""
        with self._books:
            members = [self._member(name) for name in named] if named is not None else list(self._members.values())
        for member in members:
            if named is not None and member.state is not MemberState.RUNNING:
                raise member.error or NotRunning(member.name, "it is paused")
        running = [member for member in members if member.state is MemberState.RUNNING]
        offsets: dict[str, Offsets] = {member.name: member.runner.ledger.entry.offsets for member in running}
        ends = {member.name: self._broker.end_offsets_of(member.topology.source_topics) for member in running}
        left = {name: offsets[name].pending(ends[name]) for name in offsets}
        return {name: records for name, records in left.items() if records}

    def _run(self, batch_id: int) -> None:
        """One batch: those who fail are set aside, and the others lose nothing."""
        planned = shares_of_batch(self._loop.checkpoint, batch_id)
        with self._books:
            running = {name: m for name, m in self._members.items() if m.state is MemberState.RUNNING}
        here = {name: share for name, share in planned.shares.items() if name in running}
        fitting = {name: share for name, share in here.items() if share.fits(running[name].runner.ledger.entry)}
        batch = JointBatch(self._spark.sparkContext, self._broker)
        batch.failed |= _troubles([running[name] for name in planned.in_trouble if name in running])
        batch.run({name: (running[name], share.end) for name, share in fitting.items()})
        void = batch.failed.keys() - batch.committed.keys()
        owed = {name: share for name, share in planned.shares.items() if name not in here or name in void}
        self._settle(batch, owed, here.keys() - owed.keys(), {*here, *planned.in_trouble} & running.keys())

    def _settle(self, batch: JointBatch, owed: Mapping[str, Share], paid: Iterable[str], tried: Iterable[str]) -> None:
        # A batch that is run again, because the books could not be written, has nothing left to commit.
        self._done |= batch.committed
        with self._books:
            before = dict(self._owed)
            self._owed = {name: share for name, share in {**before, **owed}.items() if name not in set(paid)}
            continuing = [name for name in tried if name not in batch.failed and self._members[name].waiting]
            for name in continuing:
                self._members[name].go_on()
            for name, error in batch.failed.items():
                self._put_off(self._members[name], error, committed=name in batch.committed)
            if batch.failed or continuing or self._owed != before:
                self._write_roll()

    def _put_off(self, member: Member, error: BaseException, *, committed: bool) -> None:
        """Let a member try again later, or set it aside where there is no hope."""
        if committed and isinstance(error, PotokError) and error.passing:
            # There is nothing to do again; what it left undone comes with its next batch.
            log.warning('query "%s": after batch %d: %s', member.name, member.runner.ledger.entry.batch, error.message)
            member.go_on()
        elif not member.wait(error, self._settings.retry_for_ms):
            member.fail(error)
            log.warning('query "%s" is set aside: %s', member.name, member.error)

    def _all_wait(self, error: PotokError | None) -> None:
        """Say what no batch can do without, and None when it is there."""
        before, self._waiting_for = self._waiting_for, error
        if before is None and error is not None:
            log.warning('the shared query "%s" waits and tries again: %s', self.name, error.message)
        elif before is not None and error is None:
            log.warning('the shared query "%s" continues', self.name)

    def _tell(self) -> None:
        done, self._done = self._done, {}
        for heard in list(self._heard) if done else []:
            try:
                heard(done)
            except Exception:
                log.exception("what was to be called after a batch failed")

    def _write_roll(self) -> None:
        """Say who takes part. What is owed by a query that is forgotten is owed by nobody; and once this one has ended,
        the roll may be that of another which took its place."""
        with self._books:
            if self._closed:
                return
            running = {n: m.listed() for n, m in self._members.items() if m.state is MemberState.RUNNING}
            self._owed = {n: s for n, s in self._owed.items() if n in self._members or self._has_ledger(n)}
            waiting = {n: self._members[n].waiting for n in running}
            until = {n: found.until_ms for n, found in waiting.items() if found is not None}
            roll = {roll_mark(self.name): Roll(running, self._owed, until).to_bytes()}
            try:
                self._broker.set_marks(roll, {owner_mark(self.name): self._claim})
            except MarkChanged as error:
                raise self.taken_over() or error from None

    def _has_ledger(self, name: str) -> bool:
        return self._broker.mark(mark_of(name, "ledger")) is not None

    def _close(self, failure: PotokError | None) -> None:
        with self._books:
            if self._closing:
                return
            self._closing = True
        self._upkeep.stop()
        try:
            with self._books:
                failure = failure or self.taken_over()
                members = list(self._members.values())
                if failure is None:
                    self._members = {}
                for member in members:
                    _let_go(member, failure)
                if not isinstance(failure, QueryTakenOver):
                    self._write_roll()
        finally:
            with self._books:
                self._closed = True
            self._lock.release()

    def _member(self, name: str) -> Member:
        if name not in self._members:
            raise NotMember(name, sorted(self._members))
        return self._members[name]

    def __enter__(self) -> SharedQuery:
        return self.start()

    def __exit__(self, *_: Any) -> None:
        self.stop()


def _let_go(member: Member, failure: PotokError | None) -> None:
    """Close the books of a member. If even that fails, its lock is free all the same, and the others are closed."""
    try:
        if failure is None:
            member.end()
        elif member.state is not MemberState.FAILED:
            member.fail(failure)
    except PotokError as error:
        log.warning('query "%s" could not write down that it has ended: %s', member.name, error)


def _left_alone(member: Member) -> Share | None:
    """What a member began when it was a query of its own, and was killed on the way."""
    end = unfinished(member.prepared.directory / "checkpoint")
    return None if end is None else Share(member.offsets, end)


def _troubles(members: list[Member]) -> dict[str, BaseException]:
    """What the planner could not say of those that it could not plan for."""
    found: dict[str, BaseException] = {}
    for member in members:
        try:
            member.runner.check()
            member.lag()
        except PotokError as error:
            found[member.name] = error
    return found
