-- GCRA over all buckets of a call at once, on one clock, in whole microseconds, for several calls and a share of what is left.
-- KEYS[i]: a bucket.
-- ARGV: calls, share, how long a share may be used at most, how many calls of the share before are given back, until when
-- they are in any case; then of each bucket four: the time one call costs, how far ahead of now it may be (its tolerance),
-- what the share before has left, and how much earlier that would be, had the share counted from when it was used.
-- Answers {calls given, share given, bucket that refuses the next or 0, wait, how long the share holds, now, time of each
-- bucket ..., how far each was ahead before ...}. A share counts from the end of its time: see gateway/lease, whose test has
-- the same arithmetic.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local calls, share, longest, unused, until_ = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local function keep(key, tat)
  redis.call('SET', key, string.format('%.0f', tat), 'PX', math.max(math.ceil((tat - now) / 1000), 0) + 1)
end

local buckets, given, refused, wait = {}, calls, 0, 0
for i, key in ipairs(KEYS) do
  local b = {cost = tonumber(ARGV[4 * i + 2]), tolerance = tonumber(ARGV[4 * i + 3])}
  local kept, early = ARGV[4 * i + 4], tonumber(ARGV[4 * i + 5])
  -- What is no number, or no text at all, is an empty bucket. One too far ahead, which has been written by somebody else
  -- or by another clock, is as far ahead as may be: it is kept so, or it would not come closer.
  local stored = redis.pcall('GET', key)
  local tat = type(stored) == 'string' and string.match(stored, '^%d+$') and tonumber(stored) or now
  if stored == kept then
    tat = tat - unused * b.cost - early
    keep(key, tat)
  elseif now <= until_ and unused > 0 then
    tat = tat - unused * b.cost
    keep(key, tat)
  end
  b.furthest = now + b.tolerance
  if tat > b.furthest then
    tat = b.furthest
    keep(key, tat)
  end
  b.tat = math.max(now, tat)
  b.left = math.floor((b.furthest - b.tat) / b.cost)
  given = math.min(given, b.left)
  buckets[i] = b
end

local hold, extra = longest, share
for i, b in ipairs(buckets) do
  local early = b.tat + (given + 1) * b.cost - b.furthest
  if early > wait then
    refused, wait = i, early
  end
  local tenth = math.floor((b.left - given) / 10)
  extra, hold = math.min(extra, tenth), math.min(hold, tenth * b.cost)
end
if given < calls then
  extra = 0
end

local answer = {given, extra, refused, wait, hold, now}
for i, b in ipairs(buckets) do
  local tat = b.tat + given * b.cost
  if extra > 0 then
    tat = math.max(b.tat, now + hold) + (given + extra) * b.cost
  end
  if given + extra > 0 then
    keep(KEYS[i], tat)
  end
  answer[6 + i], answer[6 + #KEYS + i] = tat, b.tat - now
end
return answer
