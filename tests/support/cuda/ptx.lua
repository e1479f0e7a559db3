-- SPDX-License-Identifier: Apache-2.0
--
-- ptx.lua: owns what PTX of our kernels may not have, whatever NVRTC makes of the text: operations on floats that are not rounded to
-- nearest, flush subnormals, are approximate or contracted; calls; memory of a thread's own, but for nodes that wait there
-- (rows.cu.in says where). Pure.

local M = {}

-- Of a PTX text: kernel's name -> its body.
function M.bodies(ptx)
  local bodies = {}
  for name, body in ptx:gmatch "%.visible %.entry ([%w_]+)(.-)\n}\n" do bodies[name] = body end
  return bodies
end

-- A kernel in the CUDA text, from its name to its end.
local function source_of(text, name)
  local first = text:find(name .. "(", 1, true)
  return first and text:sub(first, (text:find("\n}\n", first, true))) or ""
end

-- The arrays in which a kernel keeps nodes of each thread's own, as shared memory does not hold those of many reductions.
function M.n_waiting(text, name)
  local n = 0
  for _ in source_of(text, name):gmatch "waiting_%d+%[64%]; /%* shared memory does not hold those" do n = n + 1 end
  return n
end

local function set(words)
  local of = {}
  for word in words:gmatch "%S+" do of[word] = true end
  return of
end
local FLOATS, ROUNDED, APPROXIMATE = set "f16 f16x2 bf16 bf16x2 f32 f64", set "add sub mul fma mad div rcp sqrt",
  set "ex2 lg2 sin cos tanh rsqrt"

-- What is wrong with an operation, "mul.f64", or nil.
local function fault_of(operation)
  local words, is_float, is_nearest = {}, false, false
  for word in operation:gmatch "[^.]+" do
    words[#words + 1] = word
    is_float, is_nearest = is_float or FLOATS[word], is_nearest or word == "rn"
    if word == "ftz" or word == "approx" or word == "full" then return "not exact" end
  end
  if words[1] == "call" then return "a call" end
  if not is_float then return nil end
  if APPROXIMATE[words[1]] then return "approximate" end
  return ROUNDED[words[1]] and not is_nearest and "no rounding to nearest" or nil
end

M.NODES, M.WIDEST = 64, 32 -- of an array of waiting nodes; the bytes of the widest

-- The faults of each kernel, "kernel: operation: what is wrong". ptx: of `text`; uncontracted: the same with --fmad=false, or nil. They must not
-- differ, for then no fma.rn is there but what the text asks for.
function M.faults(ptx, uncontracted, text)
  local faults = {}
  local others = uncontracted and M.bodies(uncontracted)
  for name, body in pairs(M.bodies(ptx)) do
    local seen = {}
    local function put(what, why)
      if not seen[what] then faults[#faults + 1] = string.format("%s: %s: %s", name, what, why) end
      seen[what] = true
    end
    for line in body:gmatch "[^\n]+" do
      local operation = line:match "^%s+(%a[%w_.:]*)" or line:match "^%s+@!?%%p%d+%s+(%a[%w_.:]*)"
      local fault = operation and fault_of(operation)
      if fault then put(operation, fault) end
    end
    local most = M.n_waiting(text, name) * M.NODES * M.WIDEST
    for bytes in body:gmatch "%.local %.align %d+ %.b8%s+[%w_]+%[(%d+)%]" do
      if tonumber(bytes) > most then put(bytes .. " bytes of .local", "at most " .. most) end
    end
    if most == 0 and body:find(".local", 1, true) then put(".local", "no node waits there") end
    if others and others[name] ~= body then put("fma.rn", "not what --fmad=false gives: something was contracted") end
    local asked = source_of(text, name):find "q_fma_" ~= nil or source_of(text, name):find "__fmaf?_rn" ~= nil
    if body:find("fma.rn", 1, true) and not asked then put("fma.rn", "the text has none") end
  end
  return faults
end

return M
