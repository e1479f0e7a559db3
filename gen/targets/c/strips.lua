-- SPDX-License-Identifier: Apache-2.0
--
-- Loops over strips, as many elements as a vector has. A body that looks up small tables is cut into stages: what leads to the
-- indices, the lookups, what is done with the items. Each stage is a short loop over the strip, which compilers make one turn of
-- vectors; between the loops templates/c/kernel_strips.h does what they do not find by themselves: they would make a load for each
-- element of table[index], and GCC before 14 does not vectorise the casts of f16.

local access = require "gen.targets.c.access"
local dag_of = require "gen.graph.dag"
local target_c = require "gen.targets.c.emit"

local M = {}

-- Of f32 and f64 tables, the numbers of items that templates/c/kernel_strips.h has functions for.
local SIZES = { [16] = true, [32] = true }

local function is_lookup(node)
  local list = node.op == "lookup" and node.table
  return list and (list.type == "f32" or list.type == "f64") and SIZES[#list.items] or false
end

-- The bits of the widest type that is computed with: how many elements a strip has is counted by them.
local function width_of(types, roots)
  local widest = 32
  for _, node in ipairs(dag_of.order(roots)) do
    if node.type ~= "bool" then widest = math.max(widest, types.by_name[node.type].bits) end
  end
  return widest
end

-- node -> its stage, counted from 1, each as late as it can be, so that little is kept from stage to stage; and the number of
-- stages. A lookup's value is there from its stage on; its index is computed before.
local function stages_of(list, without_rare)
  local before, last, stage_of = {}, 1, {}
  for _, node in ipairs(list) do
    local stage = 1
    for _, arg in ipairs(dag_of.args_of(node, without_rare)) do stage = math.max(stage, before[arg]) end
    before[node] = stage + (is_lookup(node) and 1 or 0)
    last = math.max(last, before[node])
  end
  for k = #list, 1, -1 do -- users first
    local node = list[k]
    stage_of[node] = stage_of[node] or last
    for _, arg in ipairs(dag_of.args_of(node, without_rare)) do
      stage_of[arg] = math.min(stage_of[arg] or last, stage_of[node] - (is_lookup(node) and 1 or 0))
    end
  end
  return stage_of, last
end

local Cut = {}
Cut.__index = Cut

function Cut:is_computed(node) return node.op ~= "const" and not self.variable_of[node] end

function Cut:value_of(node) return dag_of.value_of(node, self.options.without_rare) end

-- The array of the indices of a lookup: one for all of an index, of a stage.
function Cut:indices_of(lookup)
  local index, s = lookup.args[1], self.stage_of[lookup]
  local of_stage = self.index_arrays[index] or {}
  self.index_arrays[index] = of_stage
  of_stage[s] = of_stage[s] or self.options.locals:fresh(string.format("at_%d_%d", index.id, s))
  return of_stage[s]
end

-- The array that keeps a node's values for later stages.
function Cut:kept(node)
  self.kept_arrays[node] = self.kept_arrays[node] or self.options.locals:fresh("kept_" .. self.options.locals:of(node))
  return self.kept_arrays[node]
end

-- What the loop of stage s takes over: the nodes computed or looked up before it, in order, and the inputs, as a set.
function Cut:needs(s)
  local before, seen, inputs = {}, {}, {}
  local function use(node)
    node = self:value_of(node)
    if self.variable_of[node] then inputs[node] = true end
    if self:is_computed(node) and (self.stage_of[node] < s or is_lookup(node)) and not seen[node] then
      seen[node] = true
      before[#before + 1] = node
    end
  end
  for _, node in ipairs(self.list) do
    local is_own = self.stage_of[node] == s and self:is_computed(node) and self:value_of(node) == node
    if is_own and not is_lookup(node) then
      for _, arg in ipairs(node.args) do use(arg) end
    elseif is_lookup(node) and self.stage_of[node] == s + 1 then
      use(node.args[1])
    end
  end
  for _, node in ipairs(s == self.last and self.roots or {}) do use(node) end
  return before, inputs
end

-- Stage s. Of what it keeps for later ones only indices: cut_of adds the values, when all stages have said what they need.
function Cut:stage(s)
  local names, lookups, keeps = {}, {}, {}
  for node, name in pairs(self.variable_of) do names[node] = name end
  for _, node in ipairs(self.list) do
    local is_elsewhere = self.stage_of[node] ~= s or is_lookup(node)
    if self:is_computed(node) and self:value_of(node) == node and is_elsewhere then names[node] = self.options.locals:of(node) end
  end
  local before, inputs = self:needs(s)
  local own, emitter = target_c.emit(self.types, self.list, names, self.options)
  local lines = {}
  for k, node in ipairs(before) do
    lines[k] = string.format("const %s %s = %s[l];", emitter:c_type(node), self.options.locals:of(node), self:kept(node))
    self.is_kept[node] = true
  end
  table.move(own, 1, #own, #lines + 1, lines)
  for _, node in ipairs(self.list) do
    if is_lookup(node) and self.stage_of[node] == s then
      lookups[#lookups + 1] = string.format("q_lookup_%s_%d_%d(%s, %s, %s);", node.table.type, #node.table.items, self.bits,
                                            self:kept(node), self.options.tables[node.table], self:indices_of(node))
    elseif is_lookup(node) and self.stage_of[node] == s + 1 then
      local indices, t = self:indices_of(node), "u" .. self.types.by_name[node.table.type].bits
      if not self.has_indices[indices] then
        self:array(t, indices)
        keeps[#keeps + 1] = string.format("%s[l] = (%s)%s;", indices, t, emitter:argument(node.args[1]))
      end
      self.has_indices[indices] = true
    end
  end
  return { lookups = lookups, inputs = inputs, lines = lines, keeps = keeps }, emitter
end

function Cut:array(t, name) self.arrays[#self.arrays + 1] = { type = t, name = name } end

-- What `roots` need, in a Cut of { stages, arrays, bits, emitter }: of each stage what it looks up before its loop (text), what
-- the loop computes (lines), which of what variable_of names it does that with (inputs, a set of nodes) and what it keeps for a
-- later one (text), in the arrays ({ type, name }); the width that strips are counted by; the emitter of the last stage. Loops count by
-- l. variable_of: node -> name of what is at hand in every stage; options: those of target_c.emit.
local function cut_of(types, roots, variable_of, options)
  local self = setmetatable({ types = types, roots = roots, variable_of = variable_of, options = options, arrays = {},
                              is_kept = {}, has_indices = {}, index_arrays = {}, kept_arrays = {}, list = dag_of.order(roots, options.without_rare),
                              bits = width_of(types, roots) }, Cut)
  self.stage_of, self.last = stages_of(self.list, options.without_rare)
  local stages, emitter = {}, nil
  for s = 1, self.last do stages[s], emitter = self:stage(s) end
  for _, node in ipairs(self.list) do
    if self.is_kept[node] then
      self:array(emitter:c_type(node), self:kept(node))
      local keeps = stages[self.stage_of[node]].keeps
      if not is_lookup(node) then keeps[#keeps + 1] = string.format("%s[l] = %s;", self:kept(node), options.locals:of(node)) end
    end
  end
  self.stages, self.emitter = stages, emitter
  return self
end

-- Whether a kernel's main loop goes over strips, in what is contiguous: it looks up small tables, or it is built ahead for f16
-- (only such records have a D; Clang, which compiles at run time, vectorises the casts itself).
function M.serves(types, record, operands, roots, is_rare)
  for _, operand in ipairs(operands) do
    if operand.is_used and operand.class ~= "c" and not (operand.is_input and operand.class == "b") then return false end
  end
  for _, node in ipairs(dag_of.order(roots)) do
    if is_lookup(node) then return true end
  end
  return record.D == "f16" and record.K == "f32" and not is_rare and width_of(types, roots) == 32
end

local function is_half(operand, node) return operand.dtype == "f16" and node.type == "f32" end

-- What the last stage does at its end with what it has found and computed, and what follows that loop.
local function ends_of(types, job, cut)
  local at_end, after, has_index = {}, {}, false
  local function give(operand, result, element, store, value)
    cut:array(element, "give_" .. operand.short)
    at_end[#at_end + 1] = string.format("give_%s[l] = %s;", operand.short, value)
    local to = job.is_rare and result.to .. " + k" or string.format("(%s_u *)%s + first", operand.element, operand.row)
    after[#after + 1] = string.format("%s_%d(%s, give_%s);", store, cut.bits, to, operand.short)
  end
  for _, found in ipairs(job.search) do
    at_end[#at_end + 1] = string.format("%s_of[l] = %s;", found.name, (found.value:gsub("%$1", found.name .. "_of[l]")))
  end
  for k, result in ipairs(job.results) do
    local operand, node = job.operands[#job.dag.inputs + k], job.dag.outputs[k]
    if is_half(operand, node) then
      give(operand, result, "f32", "q_narrow", access.output(types, "f32", node, cut.emitter:argument(node)))
    elseif node.type == "bool" then
      give(operand, result, "m" .. cut.bits, "q_give_bool", cut.emitter:argument(node, cut.bits))
    elseif job.is_rare then
      at_end[#at_end + 1] = string.format("%s[k + l] = %s;", result.to, result.value)
    else
      if not has_index then at_end[#at_end + 1] = "const i64 i = first + l;" end
      at_end[#at_end + 1] = string.format("%s = %s;", result.lvalue, result.value)
      has_index = true
    end
  end
  return at_end, after
end

-- The inputs that the stages read, as arrays that are filled at once: texts that fill them. Adds to the stages' lines what reads
-- them.
local function take_inputs(types, job, cut)
  local takes = {}
  for k, node in ipairs(job.dag.inputs) do
    local operand, is_taken = job.operands[k], false
    for _, stage in ipairs(operand.class == "c" and cut.stages or {}) do
      if stage.inputs[node] then
        local load = string.format("strip_%s[l]", operand.short)
        local line = is_half(operand, node) and string.format("const f32 %s = %s;", operand.name, load)
          or access.input(types, operand, node, load)
        table.insert(stage.lines, 1, line)
        is_taken = true
      end
    end
    if is_taken and is_half(operand, node) then
      cut:array("f32", "strip_" .. operand.short)
      takes[#takes + 1] = string.format("q_widen_%d(strip_%s, (const f16_s_u *)%s + first, q_zero);", cut.bits, operand.short,
                                        operand.row)
    elseif is_taken then
      cut:array(operand.element, "strip_" .. operand.short)
      takes[#takes + 1] = string.format("q_take_%s_%d(strip_%s, (const %s_u *)%s + first);", operand.element, cut.bits,
                                        operand.short, operand.element, operand.row)
    end
  end
  return takes
end

-- What templates/c/part_strip.c.in makes the main loop over strips of: { strip = what a strip's length is called, arrays, takes,
-- stages, gives }, for a strip that begins at element `first` (of a block with rare paths: at k). job: dag, operands, roots
-- (outputs, and what tells that a rare path must run), is_rare, variable_of and options as of cut_of, search and results: what is
-- found and what is stored, as the loop without strips has them
function M.loop(types, job)
  local cut = cut_of(types, job.roots, job.variable_of, job.options)
  local at_end, gives = ends_of(types, job, cut)
  local takes = take_inputs(types, job, cut)
  cut.stages[#cut.stages].keeps = at_end
  return { strip = "Q_STRIP_" .. cut.bits, arrays = cut.arrays, takes = takes, stages = cut.stages, gives = gives }
end

return M
