-- GCRA over all buckets of a call at once, on one clock, in whole microseconds.
-- KEYS[i]: a bucket. ARGV[2i-1]: the time one call costs. ARGV[2i]: how far ahead of now a bucket may be: the tolerance.
-- Answers {bucket that refuses or 0, wait, time ahead of each bucket ...}.
-- The same arithmetic as edge.decide.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local function keep(key, tat)
  redis.call('SET', key, string.format('%.0f', tat), 'PX', math.ceil((tat - now) / 1000) + 1)
end

local tats, refused, wait = {}, 0, 0
for i, key in ipairs(KEYS) do
  -- What is no number, or no text at all, is an empty bucket. One too far ahead, which has been written by somebody else
  -- or by another clock, is as far ahead as may be: it is kept so, or it would not come closer.
  local stored = redis.pcall('GET', key)
  local tat = type(stored) == 'string' and string.match(stored, '^%d+$') and tonumber(stored) or now
  local furthest = now + ARGV[2 * i]
  if tat > furthest then
    tat = furthest
    keep(key, tat)
  end
  tats[i] = math.max(now, tat)
  local early = tats[i] + ARGV[2 * i - 1] - furthest
  if early > wait then
    refused, wait = i, early
  end
end
local answer = {refused, wait}
for i, key in ipairs(KEYS) do
  if refused == 0 then
    tats[i] = tats[i] + ARGV[2 * i - 1]
    keep(key, tats[i])
  end
  answer[i + 2] = tats[i] - now
end
return answer
