-- SPDX-License-Identifier: Apache-2.0
--
-- The packed description of a spec's op that reduces or is a row, for the runtime (runtime/toolchain/spec/spec_rows.c reads it).
-- Bytes: numbers of 32 bits, little-endian, and counted strings.

local M = {}

-- The program of an op, computed in K: as qn_row_program, kernels by their names.
local function packed_program(kit, op, K)
  local types, parts, slots, row_types = kit.types, {}, {}, {}
  local program = kit.stages(op, K)
  local function index(name) return types.by_name[name].index end
  local function put(...) parts[#parts + 1] = string.pack(...) end
  for k, param in ipairs(op.params) do slots[#slots + 1] = not param.role and k - 1 or nil end
  for k, name in ipairs(program.row_types) do row_types[k] = index(name) end
  put("<I4I4d", index(kit.kind.param_type(types, op, K)), math.type(op.empty) and 1 or 0, math.type(op.empty) and op.empty or 0)
  parts[#parts + 1] = kit.numbers(slots) .. kit.numbers(row_types) .. string.pack("<I4", #program.stages)
  for number_of, stage in ipairs(program.stages) do
    local values, dtypes = {}, {}
    for _, list in ipairs { stage.ins, stage.outs } do
      for _, value in ipairs(list) do values[#values + 1] = kit.kind.value_number(value) end
    end
    for _, list in ipairs(stage.dag and { stage.dag.inputs, stage.dag.outputs } or {}) do
      for _, node in ipairs(list) do dtypes[#dtypes + 1] = index(node.type) end
    end
    put("<s4I4I4I4", stage.dag and kit.kernel_name(op, K, number_of) or "", stage.is_row and 1 or 0, stage.is_again and 1 or 0, #stage.ins)
    parts[#parts + 1] = kit.numbers(values) .. kit.numbers(dtypes) .. string.pack("<I4", #stage.reduces)
    for _, reduce in ipairs(stage.reduces) do
      local flags = (reduce.op.reducer.empty and 1 or 0) | (op.empty == "identity" and 2 or 0)
      local none, from, state_types = kit.kind.empty_result(types, reduce.op, reduce.type), { kit.kind.value_number(reduce.from) }, { index(reduce.type) }
      for k, value in ipairs(reduce.others) do from[k + 1] = kit.kind.value_number(value) end
      for k, part in ipairs(kit.combine(reduce.op, reduce.type).parts or {}) do state_types[k] = index(part.type) end
      put("<s4s4s4I4I4i8", reduce.op.name, kit.kernel_name(reduce.op, reduce.type, "combine"), kit.twin(reduce.op, reduce.type), reduce.to, flags,
          kit.bits(types.by_name[reduce.type], none))
      parts[#parts + 1] = kit.numbers(from) .. kit.numbers(state_types)
    end
  end
  return table.concat(parts)
end

-- The packed description of a spec's op, for the runtime: its shape, its programs, and for each dtype which of them, and the result's dtype. kit: types;
-- kind, the op's; numbers(list), packed; bits(type, value); kernel_dtypes(op, built); stages(op, K) and combine(op, A), as gen/graph makes
-- them; states(op, A): as gen/graph/states.lua; kernel_name(op, K, what): of a program; twin(op, A): the built reduction that is the same
function M.packed(kit, op, built)
  local types, number_of, programs, dtypes, row_in = kit.types, {}, {}, {}, 0
  for _, K in ipairs(kit.kernel_dtypes(op, built)) do programs[#programs + 1], number_of[K] = packed_program(kit, op, K), #programs end
  for _, t in ipairs(types.list) do
    local K = built[t.name] and t.kind ~= "bits" and kit.kind.compute_type(types, op, t.name)
    if K and number_of[K] then
      local T = types.by_name[K].kind == "float" and t.kind ~= "float" and t.floating or t.name
      dtypes[#dtypes + 1] = string.pack("<I4I4I4", t.index, number_of[K], types.by_name[kit.kind.result_dtype(types, op, T)].index)
    end
  end
  for k, input in ipairs(op.inputs) do row_in = row_in | (input.is_row and 1 << (k - 1) or 0) end
  return string.pack("<I4I4I4", op.is_reduced and 1 or 0, row_in, #programs) .. table.concat(programs) .. string.pack("<I4", #dtypes)
    .. table.concat(dtypes)
end

return M
