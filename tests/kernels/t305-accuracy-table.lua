-- SPDX-License-Identifier: Apache-2.0
--
-- t305-accuracy-table: ACCURACY.md covers every op in every float dtype, says what the specs declare, and no bound in it is
-- looser than half an ULP beyond what was found, or than 1 without its cause; f16 and bf16 were measured at all their values and
-- pairs of them. Of reductions it has those that declare a bound, for what they declare. That its figures are so, t300 shows.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. root .. "/?.lua;" .. package.path
local tap = require "tap"
local main = require "gen.main"
local bounds = require "gen.tools.bounds"
local kinds = require "gen.kinds.kinds"

-- What is wrong with the text, a list of sentences, and the number of rows.
local function faults(text, listed, types)
  local wrong, rows, n_rows, caused, exact = {}, {}, 0, {}, {}
  local function fault(...) wrong[#wrong + 1] = string.format(...) end
  local section = ""
  local of_reductions = {}
  for line in text:gmatch "[^\n]*" do
    section = line:match "^## (.*)" or section
    if section == "Reductions" then
      local name, type_name, bound, worst = line:match "^| ([%w_.]+) | (%w+) | ([^|]+) | ([%d.]+) |"
      if name and type_name ~= "dtype" then
        n_rows = n_rows + 1
        of_reductions[name .. " " .. type_name] = { declared = bound, found = tonumber(worst) }
      end
      goto next_line
    end
    local op, dtype, declared, found, points = line:match "^| ([%w_.]+) | (%w+) | ([%d.]+) | ([%w.]+) | [^|]*| ([%w ]+) |"
    if op then
      n_rows = n_rows + 1
      if rows[op .. " " .. dtype] then fault("%s %s: two rows", op, dtype) end
      rows[op .. " " .. dtype] = { declared = tonumber(declared), found = tonumber(found) or math.huge, points = points }
    end
    op, dtype, declared, found = line:match "^| ([%w_.]+_backward) | (%w+) | [%w_]+ | ([%d.]+) | ([%w.]+) |"
    if op then
      n_rows = n_rows + 1
      local row = rows[op .. " " .. dtype] or { found = 0 }
      row.declared, row.found = tonumber(declared), math.max(row.found, tonumber(found) or math.huge)
      rows[op .. " " .. dtype] = row
    end
    local named = line:match "^%- `([%w_.]+)`:"
    if named and section:find "^Bounds" then caused[named] = true elseif named then exact[named] = true end
    ::next_line::
  end
  for _, row in ipairs(listed) do
    local op = row.op
    for _, dtype in ipairs((kinds.of(op).has_stages and not op.backward_of or op.bound) and op.dtypes or {}) do
      local t, bound = types.by_name[dtype], bounds.text(types, op, dtype)
      local ulp = t.kind == "float" and op.ulp[t.compute] and (t.bits == 16 and 0.501 or op.ulp[t.compute])
      local wanted, r = bound and "`" .. bound .. "`" or ulp and string.format("%g", ulp), of_reductions[op.name .. " " .. dtype]
      of_reductions[op.name .. " " .. dtype] = nil
      if wanted and not r then
        fault("%s %s: no row", op.name, dtype)
      elseif r and r.declared ~= wanted then
        fault("%s %s: the spec declares %s, not %s", op.name, dtype, wanted or "nothing", r.declared)
      elseif r and r.found > (bound and 1 or ulp) then
        fault("%s %s: %g found, beyond what is declared", op.name, dtype, r.found)
      end
    end
  end
  for name in pairs(of_reductions) do fault("%s: no such reduction and dtype", name) end
  for _, row in ipairs(listed) do
    local op = row.op
    if not kinds.is_formula(op) then goto next end -- nothing to round; t206 holds it to its bound
    if op.backward_of and not next(op.ulp) and not rows[op.name .. " f64"] then goto next end -- it rounds a product at most
    if exact[op.name] then
      if next(op.ulp) then fault("%s: declares a bound, and is listed with what rounds nothing", op.name) end
      goto next
    end
    for _, dtype in ipairs(op.dtypes) do
      local t = types.by_name[dtype]
      if t.kind == "float" then
        local is_half = t.bits == 16
        local wanted = is_half and 0.501 or op.ulp[dtype] or 0.5
        local r = rows[op.name .. " " .. dtype]
        if not r then
          fault("%s %s: no row", op.name, dtype)
        else
          if r.declared ~= wanted then fault("%s %s: the spec declares %g, not %g", op.name, dtype, wanted, r.declared) end
          if r.found > r.declared then fault("%s %s: %g found, beyond %g", op.name, dtype, r.found, r.declared) end
          if r.declared > r.found + 0.5 and r.declared > 0.501 then
            fault("%s %s: declares %g where %g was found: half an ULP more is the most", op.name, dtype, r.declared, r.found)
          end
          local n_all = not op.backward_of and (#op.inputs == 1 and 1 << 16 or #op.inputs == 2 and 1 << 32)
          if is_half and n_all and r.points ~= "all " .. n_all then
            fault("%s %s: not measured at all %d points", op.name, dtype, n_all)
          end
          if r.declared > 1 and not caused[op.name] and not op.backward_of then
            fault("%s %s: more than 1, without a cause", op.name, dtype)
          end
        end
        rows[op.name .. " " .. dtype] = nil
      end
    end
    ::next::
  end
  for name in pairs(rows) do fault("%s: no such op and dtype", name) end
  return wrong, n_rows
end

local listed, errors, model = main.list(root, nil)
tap.ok(listed, "the specs are read: %s", errors and errors[1] or "")
local handle = io.open(root .. "/ACCURACY.md")
tap.ok(handle, "there is an ACCURACY.md")
local text = handle:read "a"
handle:close()
local wrong, n_rows = faults(text, listed, model.types)
tap.ok(#wrong == 0 and n_rows > 100, "%d rows, of every op and float dtype", n_rows)
for _, message in ipairs(wrong) do tap.diag("%s", message) end

-- The test sees what it is for.
local function told(pattern, replacement, expected)
  local changed, n = text:gsub(pattern, replacement, 1)
  local messages = table.concat(faults(changed, listed, model.types), "; ")
  tap.ok(n == 1 and messages:find(expected, 1, true), "told: %s", expected)
end
told("\n| exp | f32 [^\n]*", "", "exp f32: no row")
told("(| exp | f32 |) 1 |", "%1 0.9 |", "exp f32: the spec declares 1, not 0.9")
told("(| exp | f32 | 1 |) [%d.]+", "%1 1.2", "exp f32: 1.2 found, beyond 1")
told("(| exp | f32 | 1 |) [%d.]+", "%1 inf", "exp f32: inf found, beyond 1")
told("(| exp | f32 | 1 |) [%d.]+", "%1 0.4", "exp f32: declares 1 where 0.4 was found")
told("(| pow | bf16 [^\n]*)| all %d+ |", "%1| 1000000 |", "pow bf16: not measured at all 4294967296 points")
told("(| tanh_backward | f64 | grad_x | [%d.]+ |) [%d.]+", "%1 0.9", "where 0.9 was found")
told("\n| tanh_backward | f64 [^\n]*", "", "tanh_backward f64: no row")
told("| exp | f32 |", "| expp | f32 |", "expp f32: no such op and dtype")
told("\n| sum | f32 [^\n]*", "", "sum f32: no row")
told("| sum | f32 | `u %* depth", "| sum | f32 | `u", "sum f32: the spec declares `u * depth * sum(abs(x))`, not `u * sum(abs(x))`")
told("(| sum | f32 | [^|]+ |) [%d.]+", "%1 1.1", "sum f32: 1.1 found, beyond what is declared")

for _, op in ipairs(model.ops) do
  local failure = bounds.failure(model, op)
  if op.bound then tap.ok(not failure, "%s: its bound is a body: %s", op.name, failure or "it is") end
end
tap.done_testing()
