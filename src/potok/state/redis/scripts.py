"""Lua scripts that run atomically in Redis.

Lua accepts a few thousand arguments per call, so long lists are passed in slices.
"""

from __future__ import annotations

PUT = """
-- KEYS: attempt, table names, cells, index. ARGV: attempt, table, "put" or "remove" or "fence", items.
-- Attempts are texts of one length, digits only, so that they compare as texts.
local seen = redis.call('GET', KEYS[1])
if seen and seen > ARGV[1] then return seen end
if seen ~= ARGV[1] then redis.call('SET', KEYS[1], ARGV[1]) end
local last = #ARGV
if ARGV[3] == 'put' then
  redis.call('SADD', KEYS[2], ARGV[2])
  for first = 4, last, 4000 do
    local stop = math.min(first + 3999, last)
    redis.call('HSET', KEYS[3], unpack(ARGV, first, stop))
    local scored, n = {}, 0
    for i = first, stop, 2 do
      scored[n + 1], scored[n + 2], n = 0, ARGV[i], n + 2
    end
    redis.call('ZADD', KEYS[4], unpack(scored))
  end
elseif ARGV[3] == 'remove' then
  for first = 4, last, 4000 do
    local stop = math.min(first + 3999, last)
    redis.call('HDEL', KEYS[3], unpack(ARGV, first, stop))
    redis.call('ZREM', KEYS[4], unpack(ARGV, first, stop))
  end
end
return false
"""

PAGE = """
-- KEYS: cells, index. ARGV: the number of cells wanted, then pairs of bounds. Gives for each pair keys and cells.
local found = {}
for i = 2, #ARGV, 2 do
  local keys = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[i], ARGV[i + 1], 'LIMIT', 0, ARGV[1])
  local cells, n = {}, 0
  for first = 1, #keys, 4000 do
    local part = redis.call('HMGET', KEYS[1], unpack(keys, first, math.min(first + 3999, #keys)))
    for j = 1, #part do
      n = n + 1
      cells[n] = part[j]
    end
  end
  found[#found + 1] = {keys, cells}
end
return found
"""
