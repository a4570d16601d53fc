-- GCRA over all buckets of a call at once, on one clock, in whole microseconds.
-- KEYS[i]: a bucket. ARGV[2i-1]: the time one call costs. ARGV[2i]: how early a call may come.
-- Answers {bucket that refuses or 0, wait, time ahead of each bucket ...}.
-- The same arithmetic as gateway.decide.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local tats, refused, wait = {}, 0, 0
for i, key in ipairs(KEYS) do
  local tat = math.max(tonumber(redis.call('GET', key) or 0), now)
  tats[i] = tat
  local early = tat + ARGV[2 * i - 1] - now - ARGV[2 * i]
  if early > 0 and early > wait then
    refused, wait = i, early
  end
end
local answer = {refused, wait}
for i, key in ipairs(KEYS) do
  if refused == 0 then
    tats[i] = tats[i] + ARGV[2 * i - 1]
    redis.call('SET', key, string.format('%.0f', tats[i]), 'PX', math.ceil((tats[i] - now) / 1000) + 1)
  end
  answer[i + 2] = tats[i] - now
end
return answer
