-- SPDX-License-Identifier: Apache-2.0
--
-- Loops over strips. A strip has as many elements as a vector, a wide strip as many as two. A body that looks up small tables is cut into
-- stages: computation of the indices, the lookups, computation with the items. Each stage is a short loop over the strip, which compilers
-- turn into one vector iteration, or into two. Between the loops are operations of templates/c/headers/kernel_strips.h, which compilers do
-- not vectorise: they would load each table[index] by itself, and GCC before 14 does not vectorise the casts of f16.

local access = require "gen.targets.c.access"
local dag_of = require "gen.graph.dag.dag"
local target_c = require "gen.targets.c.emit"

local M = {}

-- The sizes of f32 and f64 tables for which templates/c/headers/kernel_strips.h has functions.
local SIZES = { [16] = true, [32] = true }

local function is_lookup(node)
  local list = node.op == "lookup" and node.table
  return list and (list.type == "f32" or list.type == "f64") and SIZES[#list.items] or false
end

-- Of how many operations, each of which waits for the one before, a body has more that also gets a loop over wide strips: by the bits of
-- the widest type. That takes 0.85 to 0.97 of the time: a processor does not overlap enough of such a body with the next vector's by itself.
M.WIDE = { [32] = 8, [64] = 16 }

-- The bits of the widest type of the computation, which determine the number of elements of a strip.
local function width_of(types, roots)
  local widest = 32
  for _, node in ipairs(dag_of.order(roots)) do
    if node.type ~= "bool" then widest = math.max(widest, types.by_name[node.type].bits) end
  end
  return widest
end

-- node -> its stage, counted from 1, and the number of stages. Each node has the latest possible stage, so that few values are
-- kept from stage to stage. A lookup's value is available from its stage on; its index is computed before.
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

-- The array of the indices of a lookup: one for all lookups with the same index in a stage.
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

-- The values that the loop of stage s needs: the nodes computed or looked up before it, in order, and the inputs, as a set.
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

-- Stage s. It keeps only indices for later stages; cut_of adds the values when the needs of all stages are known.
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
      lookups[#lookups + 1] = string.format("q_lookup_%s_%d_%d(%s%s, %s, %s%s);", node.table.type, #node.table.items, self.bits,
                                            self:kept(node), self.part, self.options.tables[node.table], self:indices_of(node), self.part)
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

-- The computation of `roots` as a Cut: { stages, arrays = list of { type, name }, bits = of the widest type, part = what is added to an
-- address for the part of a wide strip that is one vector, emitter = of the last stage }. A stage has the texts of its lookups, before its
-- loop; the loop's lines; inputs, the set of nodes of variable_of that it reads; and keeps, the texts that store values in arrays for later
-- stages. Loops count by l. variable_of: node -> name of a variable that every stage can read; options: those of target_c.emit.
local function cut_of(types, roots, variable_of, options, is_wide)
  local self = setmetatable({ types = types, roots = roots, variable_of = variable_of, options = options, arrays = {},
                              is_kept = {}, has_indices = {}, index_arrays = {}, kept_arrays = {},
                              list = dag_of.order(roots, options.without_rare), bits = width_of(types, roots) }, Cut)
  self.part = is_wide and " + q_part" or ""
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

-- Whether a kernel's main loop goes over strips. Its operands must be contiguous, and it must look up small tables or be built
-- ahead for a dtype that is cast in blocks, and cast (only such records have a D; Clang, which compiles at run time, vectorises the casts itself).
function M.serves(types, record, operands, roots, is_rare)
  for _, operand in ipairs(operands) do
    if operand.is_used and operand.class ~= "c" and not (operand.is_input and operand.class == "b") then return false end
  end
  for _, node in ipairs(dag_of.order(roots)) do
    if is_lookup(node) then return true end
  end
  local D = types.by_name[record.D]
  return D and D.casts_in_blocks and not roots[1].is_stored and (not is_rare or record.dag) and width_of(types, roots) == 32
end

local function is_cast_in_blocks(types, operand, node)
  local t = types.by_name[operand.dtype]
  return t.casts_in_blocks and node.type == t.compute
end

-- The stores at the end of the last stage's loop, of results and of the search, and the texts that follow that loop.
local function ends_of(types, loop, cut)
  local at_end, after, has_index = {}, {}, false
  local function give(operand, result, element, store, value)
    cut:array(element, "give_" .. operand.short)
    at_end[#at_end + 1] = string.format("give_%s[l] = %s;", operand.short, value)
    local to = loop.is_rare and result.to .. " + k" or string.format("(%s_u *)%s + first", operand.element, operand.row)
    after[#after + 1] = string.format("%s_%d(%s%s, give_%s%s);", store, cut.bits, to, cut.part, operand.short, cut.part)
  end
  for _, found in ipairs(loop.search) do
    at_end[#at_end + 1] = string.format("%s_of[l] = %s;", found.name, found.next_of)
  end
  for k, result in ipairs(loop.results) do
    local operand, node = loop.operands[#loop.dag.inputs + k], loop.dag.outputs[k]
    if is_cast_in_blocks(types, operand, node) then
      node = dag_of.value_of(node, loop.is_rare)
      give(operand, result, "f32", "q_narrow", access.output(types, "f32", node, cut.emitter:argument(node)))
    elseif node.type == "bool" then
      give(operand, result, "m" .. cut.bits, "q_give_bool", cut.emitter:argument(node, cut.bits))
    elseif loop.is_rare then
      at_end[#at_end + 1] = string.format("%s[k + l] = %s;", result.to, result.value)
    else
      if not has_index then at_end[#at_end + 1] = "const i64 i = first + l;" end
      at_end[#at_end + 1] = string.format("%s = %s;", result.lvalue, result.value)
      has_index = true
    end
  end
  return at_end, after
end

-- The texts that fill an array with a strip of each input that the stages read. Adds the lines that read these arrays to the
-- stages.
local function take_inputs(types, loop, cut)
  local takes = {}
  for k, node in ipairs(loop.dag.inputs) do
    local operand, is_taken = loop.operands[k], false
    for _, stage in ipairs(operand.class == "c" and cut.stages or {}) do
      if stage.inputs[node] then
        local load = string.format("strip_%s[l]", operand.short)
        local line = is_cast_in_blocks(types, operand, node) and string.format("const f32 %s = %s;", operand.name, load)
          or access.input(types, operand, node, load)
        table.insert(stage.lines, 1, line)
        is_taken = true
      end
    end
    if is_taken and is_cast_in_blocks(types, operand, node) then
      cut:array("f32", "strip_" .. operand.short)
      takes[#takes + 1] = string.format("q_widen_%d(strip_%s%s, (const %s_u *)%s + first%s, q_zero);", cut.bits, operand.short, cut.part,
                                        operand.element, operand.row, cut.part)
    elseif is_taken then
      cut:array(operand.element, "strip_" .. operand.short)
      takes[#takes + 1] = string.format("q_take_%s_%d(strip_%s%s, (const %s_u *)%s + first%s);", operand.element, cut.bits,
                                        operand.short, cut.part, operand.element, operand.row, cut.part)
    end
  end
  return takes
end

-- The bytes of a vector for which a loop over wide strips is compiled, at least; a lookup of f32 takes more registers than AVX2 has for two
-- vectors.
local function least_of(cut)
  for _, node in ipairs(cut.bits == 32 and cut.list or {}) do
    if is_lookup(node) then return 64 end
  end
  return 32
end

-- A loop over strips: { strip = the macro of a strip's length, is_wide, least = bytes of a vector that a loop over wide strips is for, at
-- least, each = what precedes a statement for each vector, ivdep = the pragma before a loop over a strip, arrays, takes, stages, gives }
local function loop_of(types, loop, is_wide)
  local cut = cut_of(types, loop.roots, loop.variable_of, loop.options, is_wide)
  local at_end, gives = ends_of(types, loop, cut)
  local takes = take_inputs(types, loop, cut)
  cut.stages[#cut.stages].keeps = at_end
  return { strip = (is_wide and "Q_WIDE_" or "Q_STRIP_") .. cut.bits, is_wide = is_wide, least = least_of(cut),
           each = is_wide and string.format("Q_EACH_VECTOR(%d) ", cut.bits) or "", ivdep = is_wide and "Q_IVDEP_WIDE" or "Q_IVDEP_STRIP",
           arrays = cut.arrays, takes = takes, stages = cut.stages, gives = gives }
end

-- The values of the templates of loops over strips: { strips = list of what part_strip.c.in takes, longest = the macro of the longest strip's
-- length }. A strip begins at element `first` (of a block with rare paths: at k). loop: dag, operands, roots (outputs, and the values of the
-- search for rare blocks), is_rare, variable_of and options as in cut_of, search and results as in the loop without strips
function M.loop(types, loop)
  local depth = dag_of.depth(dag_of.order(loop.roots, loop.options.without_rare))
  local is_deep = depth > M.WIDE[width_of(types, loop.roots)]
  local list = { is_deep and loop_of(types, loop, true) or nil }
  list[#list + 1] = loop_of(types, loop, false)
  return { strips = list, longest = list[1].strip }
end

return M
