-- SPDX-License-Identifier: Apache-2.0
--
-- op x dtype x rank x class x index width -> sorted records of CUDA kernels with names: the counterpart of
-- gen/targets/variants.lua. It has the policies.
--
-- A kernel's name: qc_<op>_<dtype per operand, inputs then outputs>_<rank>d_<class letter per operand>[_i64]. Classes:
-- c contiguous, b broadcast (stride 0), s any stride, along dimension 0; t contiguous along dimension 1 (inputs of
-- transpose kernels). _i64: offsets that need more than 31 bits. There are no packs: every dtype has kernels of its own.
--
-- An index op has two operands: its indices, without memory, and the output. The class of the indices is always b, so
-- that the output can be written in rows.
--
-- lean: rank 1 and 2 contiguous and broadcast (of two or three inputs, any but all), rank n strided, and rank 2 with
-- transposed inputs for light ops of one or two; rank 1 and n in both widths, the others in 32 bits. Where ranks are asked
-- for, all of these classes in each.
-- full: rank 1, 2, 3 and n in every combination of classes and both widths.

local adjoints_cuda = require "gen.targets.cuda.adjoints"
local expr = require "gen.graph.body.expr"
local kernel_name = require "gen.base.kernel_name"
local kinds = require "gen.kinds.kinds"
local row_stages = require "gen.graph.dag.rows"
local rows_cuda = require "gen.targets.cuda.rows"
local scans_cuda = require "gen.targets.cuda.scans"
local short_rows = require "gen.targets.cuda.short_rows"
local saturate = require "gen.graph.dag.saturate"
local variants = require "gen.targets.variants"

local M = {}

M.MAX_RANK = 32
M.INDEX_DTYPE = "b8" -- QN_INDEX_DTYPE of runtime/core/base/kernel_abi.h
M.MAX_STRIDES = 384 -- of all operands, so that arguments stay below 4 KB

-- The maximal number of extents of a kernel of rank "n" with n operands.
function M.max_rank(n_operands) return math.min(M.MAX_RANK, M.MAX_STRIDES // n_operands) end

-- One record. fields: op, dtypes, rank, classes, is_wide, K, and further ones
function M.record(c_name, fields)
  fields.name = kernel_name.of_cuda(c_name, fields.dtypes, fields.rank, fields.classes, fields.is_wide)
  fields.template = fields.classes:find "t" and "transpose" or "elementwise"
  return fields
end

-- { rank, classes, is_wide } of an op of n inputs and n_out outputs by the lean policy; in the ranks asked for, if any.
local function lean_shapes(n, n_out, heavy, ranks)
  local rows, strided, tiled, list = { ("c"):rep(n + n_out) }, { ("s"):rep(n + n_out) }, {}, {}
  if n == 2 or n == 3 then rows = variants.broadcast_classes(n, n_out) end
  if not heavy and (n == 1 or n == 2) then
    for _, classes in ipairs(variants.class_product(n, n_out, "ct")) do
      if classes:find "t" then tiled[#tiled + 1] = classes end
    end
  end
  local function add(rank, all, in_both_widths)
    if ranks and not ranks[rank] then return end
    for _, classes in ipairs(all) do
      list[#list + 1] = { rank, classes, false }
      if in_both_widths then list[#list + 1] = { rank, classes, true } end
    end
  end
  add("1", rows, true)
  if ranks then add("1", strided, true) end
  add("2", rows, ranks ~= nil)
  add("2", tiled, ranks ~= nil)
  if ranks then
    add("2", strided, true)
    for _, all in ipairs { rows, tiled, strided } do add("3", all, true) end
    add("n", rows, true)
    add("n", tiled, true)
  end
  add("n", strided, true)
  return list
end

local function full_shapes(n, n_out, policy)
  local list = {}
  for _, rank in ipairs { "1", "2", "3", "n" } do
    for _, classes in ipairs(variants.class_product(n, n_out, "cbst", policy.classes)) do
      if not (rank == "1" and classes:find "t") then
        list[#list + 1] = { rank, classes, false }
        list[#list + 1] = { rank, classes, true }
      end
    end
  end
  return list
end

-- The subset of the shapes that a policy allows.
local function kept(shapes, policy)
  local list = {}
  for _, shape in ipairs(shapes) do
    local has_rank = not policy.ranks or policy.ranks[shape[1]]
    if has_rank and variants.is_allowed(policy, shape[2]) then list[#list + 1] = shape end
  end
  return list
end

-- The storage dtypes of an op's kernels of compute dtype K: list of { D, dtypes = the operands' }. D is K itself or a dtype that
-- is computed in K. A floating op also takes bool and the integers that become K; an op of f64 alone takes all dtypes. An index
-- op's output need not be K.
local function stored(types, op, K, wanted)
  local list = { { D = K, dtypes = variants.operand_dtypes(op, K) } }
  if kinds.of(op).cuda_operands and not expr.is_listed(op, K) then list = {} end
  if kinds.of(op).is_bits then return list end
  for _, name in ipairs(op.dtypes) do
    if wanted[name] and name ~= K and expr.compute_type(types, op, name) == K then
      list[#list + 1] = { D = name, dtypes = variants.operand_dtypes(op, name) }
    end
  end
  local promotion = variants.promotion(types, op)
  if promotion ~= "DOUBLE" and promotion ~= "FLOATING" then return list end
  for _, t in ipairs(types.list) do
    local is_taken = promotion == "DOUBLE" or t.floating == K
    if wanted[t.name] and is_taken and (t.kind == "integer" or t.kind == "bool" or (t.kind == "float" and t.name ~= K and promotion == "DOUBLE")) then
      local dtypes = variants.operand_dtypes(op, t.name)
      for k, output in ipairs(op.outputs) do dtypes[#op.inputs + k] = output.type or K end
      list[#list + 1] = { D = t.name, dtypes = dtypes }
    end
  end
  return list
end

-- Whether a cast can change bits: from a dtype to itself only those of NaN and bool.
M.changes = kinds.changes

-- The forms of kernels that reduce, by the index width: a thread has a short row where 32 bits suffice.
local function row_forms(types, dag, is_wide)
  local is_short = not is_wide and short_rows.is_worthwhile(types, row_stages.stages(types, dag))
  return is_short and { rows_cuda, short_rows } or { rows_cuda }
end

-- The functions that kinds of op use to make records of their own.
local kit = { record = M.record, rows_record = rows_cuda.record, row_forms = row_forms, scan_record = scans_cuda.record, adjoint_record = adjoints_cuda.record,
              states_record = adjoints_cuda.forward.record, kernel_dtypes = variants.kernel_dtypes, saturate = saturate.dag, INDEX_DTYPE = M.INDEX_DTYPE }

-- The records of one op, sorted by kernel dtype; arguments as those of variants.of_op.
function M.of_op(types, op, wanted, policy, dag_for, combine_for)
  local records, n, n_out = {}, #op.inputs, #op.outputs
  local kind = kinds.of(op)
  if kind.only_cpu then return records end
  if kind.cuda_records then
    local shapes = policy.variants == "full" and full_shapes(1, 1, policy) or lean_shapes(1, 1, false, policy.ranks)
    local are_all
    records, are_all = kind.cuda_records(kit, types, op, wanted, kept(shapes, policy), dag_for, combine_for)
    if are_all then return records end
  end
  for _, K in ipairs(variants.kernel_dtypes(types, op, wanted)) do
    local weight = variants.weight(dag_for(op, K))
    local heavy = weight > variants.HEAVY_NODES
    local shapes = policy.variants == "full" and full_shapes(n, n_out, policy) or lean_shapes(n, n_out, heavy, policy.ranks)
    shapes = kept(shapes, policy)
    for _, one in ipairs(stored(types, op, K, wanted)) do
      for _, shape in ipairs(shapes) do
        local dtypes, classes = table.move(one.dtypes, 1, #one.dtypes, 1, {}), shape[2]
        if kind.cuda_operands then dtypes, classes = kind.cuda_operands(kit, one.D, classes) end
        records[#records + 1] = M.record(op.c_name, {
          op = op, K = K, D = one.D, dtypes = dtypes, rank = shape[1], classes = classes, is_wide = shape[3], heavy = heavy,
          weight = weight,
        })
      end
    end
  end
  return records
end

return M
