-- SPDX-License-Identifier: Apache-2.0
--
-- tap.lua: owns the words of a Lua test: TAP 13 on standard output, a seeded random generator. The mirror of tap.h.
-- Must not know Quern. Use: local tap = require "tap"; ...; tap.done_testing().
-- A test script that errors is reported as a failure by its missing plan.

local M = {}

local n_run, n_bad, n_planned, started = 0, 0, nil, false
local group

local function put(text)
  if not started then
    started = true
    io.stdout:setvbuf("line")
    io.stdout:write("TAP version 13\n")
  end
  io.stdout:write(text, "\n")
end

local function name_of(format, ...)
  if format == nil then return "unnamed" end
  if select("#", ...) > 0 then format = string.format(format, ...) end
  return (tostring(format):gsub("#", "*"):gsub("\n", " "))
end

local function quoted(value)
  return type(value) == "string" and string.format("%q", value) or tostring(value)
end

-- File and line of the test itself: the first frame outside this file.
local function where()
  for level = 2, 12 do
    local info = debug.getinfo(level, "Sl")
    if not info then break end
    if info.currentline > 0 and not info.source:find("tap%.lua$") then
      return info.short_src .. ":" .. info.currentline
    end
  end
  return "?"
end

local function result(good, name)
  n_run = n_run + 1
  if not good then n_bad = n_bad + 1 end
  put((good and "ok " or "not ok ") .. n_run .. " - " .. name)
  if not good then M.diag("failed at " .. where()) end
  return good
end

function M.plan(n_tests)
  n_planned = n_tests
  put("1.." .. n_tests)
end

function M.skip_all(reason)
  assert(reason and reason ~= "", "a skip needs its reason")
  put("1..0 # SKIP " .. reason)
  os.exit(0, true)
end

-- Ends the program with the status that the tests deserve.
function M.done_testing()
  if group then
    M.diag("a group was left open: " .. group.name)
    n_bad = n_bad + 1
  end
  if not n_planned then M.plan(n_run) end
  if n_run == 0 or n_planned ~= n_run then n_bad = n_bad + 1 end
  if n_bad > 0 then M.diag("%d of %d failed, seed 0x%x", n_bad, n_run, M.test_seed()) end
  os.exit(n_bad == 0 and 0 or 1, true)
end

function M.n_failed() return n_bad end

function M.diag(format, ...)
  if select("#", ...) > 0 then format = string.format(format, ...) end
  for line in (tostring(format) .. "\n"):gmatch("(.-)\n") do put("# " .. line) end
end

function M.bail(format, ...)
  put("Bail out! " .. name_of(format, ...))
  os.exit(255, false)
end

function M.skip(n_tests, reason)
  assert(reason and reason ~= "", "a skip needs its reason")
  for _ = 1, n_tests do
    n_run = n_run + 1
    put("ok " .. n_run .. " # SKIP " .. reason)
  end
end

function M.ok(condition, ...) return result(condition and true or false, name_of(...)) end
function M.pass(...) return result(true, name_of(...)) end
function M.fail(...) return result(false, name_of(...)) end

-- Same value and, for numbers, same subtype (1 is not 1.0).
function M.is(got, wanted, ...)
  local good = got == wanted and math.type(got) == math.type(wanted)
  result(good, name_of(...))
  if not good then M.diag("   got: " .. quoted(got) .. "\nwanted: " .. quoted(wanted)) end
  return good
end
M.is_int = M.is
M.is_str = M.is

-- Plain search; for patterns use M.like.
function M.has_str(text, part, ...)
  local good = type(text) == "string" and text:find(part, 1, true) ~= nil
  result(good, name_of(...))
  if not good then M.diag("   got: " .. quoted(text) .. "\nwanted in it: " .. quoted(part)) end
  return good
end

function M.like(text, pattern, ...)
  local good = type(text) == "string" and text:find(pattern) ~= nil
  result(good, name_of(...))
  if not good then M.diag("   got: " .. quoted(text) .. "\nwanted like: " .. quoted(pattern)) end
  return good
end

local function same(a, b, path)
  if type(a) ~= "table" or type(b) ~= "table" then
    if a == b and math.type(a) == math.type(b) then return nil end
    return path .. ": got " .. quoted(a) .. ", wanted " .. quoted(b)
  end
  for key, value in pairs(b) do
    local why = same(a[key], value, path .. "." .. tostring(key))
    if why then return why end
  end
  for key, value in pairs(a) do
    if b[key] == nil then return path .. "." .. tostring(key) .. ": got " .. quoted(value) .. ", wanted nothing" end
  end
end

-- Deep equality of plain tables; names the first difference.
function M.is_deeply(got, wanted, ...)
  local why = same(got, wanted, "value")
  result(why == nil, name_of(...))
  if why then M.diag(why) end
  return why == nil
end

-- f() must raise an error with `part` in its text.
function M.fails_with(f, part, ...)
  local fine, message = pcall(f)
  if fine then
    result(false, name_of(...))
    M.diag("no error was raised; wanted: " .. part)
    return false
  end
  return M.has_str(tostring(message), part, ...)
end

-- Many cases, one line: as in tap.h.
function M.group_begin(...)
  assert(not group, "a group is open")
  group = { name = name_of(...), cases = 0, bad = 0 }
end
function M.group_count(n) group.cases = group.cases + (n or 1) end
function M.group_fail(format, ...)
  group.bad = group.bad + 1
  if group.bad <= 5 then M.diag(format, ...) end
end
function M.group_end()
  local g = group
  group = nil
  local good = result(g.bad == 0 and g.cases > 0, g.name .. " (" .. g.cases .. " cases)")
  if g.cases == 0 then M.diag("no case was checked") end
  if g.bad > 0 then M.diag("%d bad cases, seed 0x%x", g.bad, M.test_seed()) end
  return good
end

-- xoshiro256** seeded by splitmix64 from QUERN_TEST_SEED and a salt: the same streams as tap.c.
local seed
function M.test_seed()
  if not seed then
    local text = os.getenv("QUERN_TEST_SEED")
    seed = text and math.tointeger(tonumber(text)) or 0x5eed0fa11a7e57
  end
  return seed
end

-- The part of this run, in [0, n), of cases that are cut in n, one for each day; nil: all. The mirror of test_part in tap.h.
local day_printed
function M.test_part(n)
  if os.getenv "QUERN_TEST_EXHAUSTIVE" == "1" then return nil end
  local day = math.tointeger(tonumber(os.getenv "QUERN_TEST_DAY" or "")) or os.time() // 86400
  if not day_printed then M.diag("QUERN_TEST_DAY=%d: its part of the cases", day) end
  day_printed = true
  return day % n
end

local function splitmix64(state)
  state = state + 0x9e3779b97f4a7c15
  local z = state
  z = (z ~ (z >> 30)) * 0xbf58476d1ce4e5b9
  z = (z ~ (z >> 27)) * 0x94d049bb133111eb
  return z ~ (z >> 31), state
end

local function rotate(x, k) return x << k | x >> (64 - k) end

local Rng = {}
Rng.__index = Rng
local seed_printed

function M.rng(salt)
  if not seed_printed then
    seed_printed = true
    M.diag("QUERN_TEST_SEED=0x%x", M.test_seed())
  end
  local mixed = splitmix64(M.test_seed()) ~ (salt or 0)
  local r = setmetatable({}, Rng)
  for i = 1, 4 do r[i], mixed = splitmix64(mixed) end
  return r
end

function Rng:u64()
  local value, t = rotate(self[2] * 5, 7) * 9, self[2] << 17
  self[3] = self[3] ~ self[1]
  self[4] = self[4] ~ self[2]
  self[2] = self[2] ~ self[3]
  self[1] = self[1] ~ self[4]
  self[3] = self[3] ~ t
  self[4] = rotate(self[4], 45)
  return value
end

-- An integer in [low, high], high - low < 2^53.
function Rng:range(low, high)
  return low + math.floor(self:unit() * (high - low + 1))
end

function Rng:unit() return (self:u64() >> 11) * 0x1p-53 end
function Rng:pick(list) return list[self:range(1, #list)] end

return M
