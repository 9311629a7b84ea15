"""Find where a capture resumes, and refuse to resume where changes may have been lost."""

from __future__ import annotations

import zlib

from potok.log.failpoint import failpoint
from potok.sources.cdc.errors import CaptureStopped, ChangesLost
from potok.sources.cdc.landing.landing import CapturePosition, Landing
from potok.sources.cdc.landing.start import check_topics, with_tables
from potok.sources.cdc.landing.topics import Topics
from potok.sources.cdc.mysql.server import Server
from potok.topology.capture import Capture


def start(capture: Capture, server: Server, landing: Landing, topics: Topics) -> CapturePosition:
    """Return the position; the first start begins at the end of the log."""
    position = landing.load()
    server.check()
    for table in capture.tables:
        server.shape(table)
    if server_id_of(capture) == server.server_id:
        raise CaptureStopped(
            f'capture "{capture.name}" has the server_id of the server itself, {server.server_id}',
            hint="choose one that no server and no replica has: server_id=...",
        )
    if position is None:
        at = server.log_position()
        stream = {"file": at.file, "pos": at.pos, "gtid": at.gtid, "done": 0}
        position = CapturePosition(_identity(server), stream)
        landing.store(position)
        failpoint("cdc.position.stored")
    else:
        _check(capture, server, position)
        check_topics(capture, position, topics)
    topics.create()
    return with_tables(capture, position, landing, topics)


def server_id_of(capture: Capture) -> int:
    """Return the id of a capture as a replica; two replicas with one id would end each other's connections."""
    return capture.server_id or zlib.crc32(capture.name.encode()) | 1 << 30


def _identity(server: Server) -> dict[str, str]:
    found = {"kind": server.kind, "server_id": str(server.server_id)}
    if not server.is_mariadb:
        [(uuid,)] = server.rows("SELECT @@server_uuid")
        found["uuid"] = uuid
    return found


def _check(capture: Capture, server: Server, position: CapturePosition) -> None:
    known, found = position.server, _identity(server)
    if known.get("kind") != found["kind"]:
        raise ChangesLost(capture.name, f"this is another server ({found['kind']}, not {known.get('kind')})")
    if known["server_id"] != found["server_id"] or known.get("uuid") != found.get("uuid"):
        was, is_ = known.get("uuid", known["server_id"]), found.get("uuid", found["server_id"])
        raise ChangesLost(capture.name, f"this is another server, or its id was changed ({is_}, not {was})")
    file, pos, gtid = position.stream["file"], position.stream["pos"], position.stream["gtid"]
    files = server.log_files()
    if file not in files:
        raise ChangesLost(capture.name, f'the server has removed the log file "{file}" (PURGE, RESET or its expiry)')
    if pos > files[file]:
        raise ChangesLost(capture.name, f'the log file "{file}" is shorter than it was: the log was reset')
    if server.is_mariadb:
        at = server.gtid_at(file, pos)
        if at != gtid:
            raise ChangesLost(
                capture.name, f"the log was reset: GTID {at or 'none'} is at {file}:{pos}, and {gtid or 'none'} was"
            )
        return
    query = "SELECT GTID_SUBSET(%s, @@global.gtid_executed), GTID_SUBSET(@@global.gtid_purged, %s)"
    [(is_known, is_kept)] = server.rows(query, (gtid, gtid))
    if not is_known:
        raise ChangesLost(capture.name, "the log was reset: the server does not know the last GTIDs of the capture")
    if not is_kept:
        raise ChangesLost(capture.name, "the server has removed transactions that the capture has not read")
