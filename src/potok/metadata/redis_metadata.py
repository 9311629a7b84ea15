"""Query metadata in Redis: all metadata keys are fields of one hash, changed by one script."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from potok.backends.redis_connection import connect, reached
from potok.backends.state_url import Where
from potok.errors import StateError
from potok.metadata.metadata_store import MetadataConflict, MetadataStore

_SET = """
-- KEYS: metadata, last writer of each name. ARGV: writer, number of expectations, then triples of name, "1" or "0"
-- (absent), and value. A call that is sent again because its response was lost finds itself as the writer.
local at, expected = 3, tonumber(ARGV[2])
local first = at + 3 * expected
if first <= #ARGV and redis.call('HGET', KEYS[2], ARGV[first]) == ARGV[1] then return false end
for i = 1, expected do
  local found = redis.call('HGET', KEYS[1], ARGV[at])
  local wanted = ARGV[at + 1] == '1' and ARGV[at + 2]
  if found ~= wanted then return ARGV[at] end
  at = at + 3
end
while at <= #ARGV do
  if ARGV[at + 1] == '1' then
    redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 2])
  else
    redis.call('HDEL', KEYS[1], ARGV[at])
  end
  redis.call('HSET', KEYS[2], ARGV[at], ARGV[1])
  at = at + 3
end
return false
"""

# The part in braces decides the node of a cluster.
VALUES, WRITERS = "potok:{metadata}:values", "potok:{metadata}:writers"


class RedisMetadata(MetadataStore):
    def __init__(self, where: Where) -> None:
        self._where, self._client = where, connect(where)

    def __reduce__(self) -> tuple[object, ...]:
        return RedisMetadata, (self._where,)

    def get_metadata(self, name: str) -> bytes | None:
        with reached(self._where):
            found: bytes | None = self._client.hget(VALUES, name)
            return found

    def list_metadata(self, prefix: str) -> dict[str, bytes]:
        with reached(self._where):
            names = sorted(name for name in self._client.hkeys(VALUES) if name.startswith(prefix.encode()))
            values = self._client.hmget(VALUES, names) if names else []
        pairs = zip(names, values, strict=True)
        return {self._decoded(name): value for name, value in pairs if value is not None}

    def _decoded(self, name: bytes) -> str:
        try:
            return name.decode()
        except UnicodeDecodeError as error:
            message = (
                f"the hash {VALUES} of Redis at {self._where} has the field {name!r}, which is not written by Potok"
            )
            raise StateError(message, hint="remove the field, or use another database of the server") from error

    def set_metadata(self, updates: Mapping[str, bytes | None], expect: Mapping[str, bytes | None] = {}) -> None:
        triples = [
            part
            for name, value in [*expect.items(), *updates.items()]
            for part in (name, "0" if value is None else "1", value or b"")
        ]
        with reached(self._where):
            changed = self._client.eval(_SET, 2, VALUES, WRITERS, secrets.token_bytes(16), len(expect), *triples)
        if changed is not None:
            raise MetadataConflict(changed.decode())

    def close(self) -> None:
        """Do nothing: the connections belong to the process, which closes them at exit."""
