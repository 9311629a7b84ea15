"""Positions in the binary log, in their order, and which transactions a chunk has seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pymysqlreplication.gtid import Gtid, GtidSet


def number_of(file: str) -> int:
    """Return the number of a file of the log: `changes.000012`."""
    return int(file.rpartition(".")[2])


class Place(NamedTuple):
    """Where a transaction begins, and which it is."""

    file: int
    pos: int
    gtid: str | None


@dataclass(frozen=True, slots=True)
class VisibleLog:
    """What a chunk has seen: everything before `end`, and nothing behind it.

    MySQL does not say where in the log a snapshot is. There, `end` is behind what the snapshot may have seen, and
    `gtids` are the transactions that it has seen for certain; the changes of the others are taken from the log.
    """

    end: tuple[int, int]
    gtids: str | None = None

    def sees(self, transaction: Place) -> bool:
        if self.gtids is None:
            return (transaction.file, transaction.pos) < self.end
        return transaction.gtid is not None and Gtid(transaction.gtid) in GtidSet(self.gtids)


def with_gtid(known: str, gtid: str, *, is_mariadb: bool) -> str:
    """Return the GTIDs of a position with that of the next transaction."""
    if not is_mariadb:
        return str(GtidSet(known) + Gtid(gtid))
    domain = gtid.partition("-")[0]
    rest = [each for each in known.split(",") if each and each.partition("-")[0] != domain]
    return ",".join(sorted([*rest, gtid], key=lambda each: int(each.partition("-")[0])))
