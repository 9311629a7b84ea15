"""Find where a capture resumes, and refuse to resume where changes may have been lost."""

from __future__ import annotations

from potok.log.failpoint import failpoint
from potok.sources.cdc.errors import CaptureStopped, ChangesLost
from potok.sources.cdc.landing.landing import CapturePosition, Landing
from potok.sources.cdc.landing.start import check_topics, with_tables
from potok.sources.cdc.landing.topics import Topics
from potok.sources.cdc.postgres.server import Identity, Server
from potok.topology.capture import Capture


def start(capture: Capture, server: Server, identity: Identity, landing: Landing, topics: Topics) -> CapturePosition:
    """Return the position, after the first start has created what is needed."""
    position = landing.load()
    server.check()
    server.prepare_publication()
    if position is None or position.server.get("creating"):
        position = _begin(capture, server, identity, landing, position)
    else:
        _check(capture, server, identity, position, topics)
    topics.create()
    return with_tables(capture, position, landing, topics)


def _begin(
    capture: Capture, server: Server, identity: Identity, landing: Landing, creating: CapturePosition | None
) -> CapturePosition:
    """Create the slot. The intention is stored before, so that a slot of a crashed start is recognised."""
    slot = server.slot()
    if slot is not None and creating is None:
        drop = f"SELECT pg_drop_replication_slot('{capture.slot}');"
        raise CaptureStopped(
            f'replication slot "{capture.slot}" exists, but this log has no position for it',
            hint=f"run on the database, if no other capture uses it: {drop}",
        )
    known = {"system": identity.system, "timeline": identity.timeline, "slot": capture.slot}
    landing.store(CapturePosition({**known, "creating": True}))
    failpoint("cdc.slot.intended")
    if slot is not None:
        server.drop_slot()
    lsn = server.create_slot()
    failpoint("cdc.slot.created")
    position = CapturePosition(known, {"lsn": lsn, "commit": 0, "done": 0, "last": 0})
    landing.store(position)
    failpoint("cdc.slot.stored")
    return position


def _check(capture: Capture, server: Server, identity: Identity, position: CapturePosition, topics: Topics) -> None:
    known = position.server
    if known["system"] != identity.system:
        raise ChangesLost(capture.name, f"this is another server ({identity.system}, not {known['system']})")
    if known["timeline"] != identity.timeline:
        problem = f"the server is on timeline {identity.timeline}, and was on {known['timeline']}"
        raise ChangesLost(capture.name, f"{problem}: it was restored, or a standby was promoted")
    if known["slot"] != capture.slot:
        raise ChangesLost(capture.name, f'it used the replication slot "{known["slot"]}", not "{capture.slot}"')
    slot = server.slot()
    if slot is None:
        raise ChangesLost(capture.name, f'the replication slot "{capture.slot}" does not exist any more')
    if slot.lost:
        raise ChangesLost(
            capture.name, f'the server has removed WAL that slot "{capture.slot}" needs (max_slot_wal_keep_size)'
        )
    if slot.confirmed > position.stream["lsn"]:
        raise ChangesLost(capture.name, f'the replication slot "{capture.slot}" was created again, or read by others')
    check_topics(capture, position, topics)


def reset(capture: Capture, server: Server, landing: Landing) -> None:
    """Forget the position and drop the slot: the next start takes a new snapshot."""
    landing.load()
    slot = server.slot()
    if slot is not None and slot.active:
        raise CaptureStopped(f'capture "{capture.name}" is running', hint="stop it first")
    landing.delete()
    server.drop_slot()
