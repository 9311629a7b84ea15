"""Scripts of the Redis sink: each checks the fence and writes, in one step of the server."""

from __future__ import annotations

OK, GONE, TAKEN = b"OK", b"GONE", b"TAKEN"

TAKE_OVER = """
-- KEYS: fence. ARGV: epoch, committed batch. Returns OK and the last batch, or TAKEN and the later epoch.
local found = redis.call('HMGET', KEYS[1], 'epoch', 'batch')
local epoch, batch = tonumber(found[1] or '0'), tonumber(found[2] or ARGV[2])
if epoch > tonumber(ARGV[1]) then return {'TAKEN', tostring(epoch)} end
if batch <= tonumber(ARGV[2]) + 1 then
  redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'batch', string.format('%d', batch))
end
return {'OK', string.format('%d', batch)}
"""
"""Fence earlier epochs of the query, unless the fence shows that the cache is ahead of it."""

WRITE = """
-- KEYS: fence, deleted keys, written keys. ARGV: epoch (0: without fence), batch, time to live in ms (0: none),
-- number of deleted keys, format, then the values; of a hash the number of its strings, and these.
local epoch, batch, ttl = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if epoch > 0 then
  local found = redis.call('HMGET', KEYS[1], 'epoch', 'batch')
  if not found[1] then return 'GONE' end
  if tonumber(found[1]) > epoch or tonumber(found[2]) > batch then return 'TAKEN' end
  redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'batch', ARGV[2])
end
local deleted = tonumber(ARGV[4])
for i = 2, deleted + 1 do redis.call('DEL', KEYS[i]) end
local at = 6
for i = deleted + 2, #KEYS do
  if ARGV[5] == 'hash' then
    redis.call('DEL', KEYS[i])
    local last = at + tonumber(ARGV[at])
    while at < last do
      redis.call('HSET', KEYS[i], ARGV[at + 1], ARGV[at + 2])
      at = at + 2
    end
    if ttl > 0 then redis.call('PEXPIRE', KEYS[i], ttl) end
  elseif ttl > 0 then
    redis.call('SET', KEYS[i], ARGV[at], 'PX', ttl)
  else
    redis.call('SET', KEYS[i], ARGV[at])
  end
  at = at + 1
end
return 'OK'
"""
"""Write part of a batch."""
