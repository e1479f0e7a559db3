-- SPDX-License-Identifier: Apache-2.0
--
-- op x dtype x rank x class -> sorted records with names: the only maker of kernel names, and the policies.
--
-- A kernel's name: qk_<op>_<dtype per operand, inputs then outputs>_<rank>d_<class letter per operand>, with the
-- suffix _<isa> once compiled. Classes: c contiguous, b broadcast (stride 0), s any stride.
--
-- lean: light ops in contiguous, broadcast (of two or three inputs, any but all) and strided forms, and contiguous in dtypes that
-- are only stored, as f16; heavy ops one contiguous kernel per compute dtype. Other operands of heavy ops are packed and unpacked in
-- blocks around that kernel.
-- full: every op in every dtype of its own, rank 1, 2, 3 and n, and every combination of classes.

local expr = require "gen.graph.body.expr"
local dag_of = require "gen.graph.dag.dag"
local evaluate = require "gen.graph.dag.evaluate"
local kernel_name = require "gen.base.kernel_name"
local kinds = require "gen.kinds.kinds"
local order = require "gen.base.order"
local partial = require "gen.graph.dag.partial"
local picks = require "gen.graph.dag.picks"
local rows = require "gen.graph.dag.rows"
local saturate = require "gen.graph.dag.saturate"

local M = {}

-- A body of more nodes than this is heavy: its time is in the arithmetic, not in the loads.
M.HEAVY_NODES = 14
M.RARE_BLOCK = 256
M.RARE_BYTES = 2048 -- of all outputs' blocks, on the stack: a frame over 4 KB is probed by a call to __chkstk on Windows

M.ISAS = { "generic", "v2", "v3", "v4" }
M.CLASS_NAMES = { contiguous = "c", broadcast = "b", scalar = "b", strided = "s", transposed = "t", c = "c", b = "b", s = "s", t = "t" }
M.RANKS = { ["1"] = true, ["2"] = true, ["3"] = true, n = true }

-- How an op's inputs become the dtype of a call.
function M.promotion(types, op) return kinds.of(op).promotion(types, op) end

-- The kernel dtypes of an op for the wanted dtypes (set of names): compute dtypes, or bits of their sizes. In order.
function M.kernel_dtypes(types, op, wanted)
  local kind, list = kinds.of(op), {}
  local set = kind.kernel_dtypes(types, op, wanted, kind)
  for _, t in ipairs(types.list) do
    if set[t.name] then list[#list + 1] = t.name end
  end
  return list
end

-- The number of operations of a list of nodes. Bits that are only read as another type are none.
local FREE = { input = true, param = true, const = true, raw = true, from_bits = true }
function M.weight_of(nodes)
  local count = 0
  for _, node in ipairs(nodes) do
    if not FREE[node.op] then count = count + 1 end
  end
  return count
end

-- Whether a body has a loop of some ten steps, and so takes longer than its weight says.
local function has_loop(dag)
  for _, node in ipairs(dag_of.order(dag.outputs)) do
    if node.op == "gcd" then return true end
  end
  return false
end

-- The work of a body.
function M.weight(dag) return M.weight_of(dag_of.order(dag.outputs)) end

-- The dtypes of an op's operands in a kernel that computes in K, stored as D (K itself, or a dtype that computes in K).
function M.operand_dtypes(op, D)
  local dtypes = {}
  for _, input in ipairs(op.inputs) do dtypes[#dtypes + 1] = input.type or D end
  for _, output in ipairs(op.outputs) do dtypes[#dtypes + 1] = output.type or D end
  return dtypes
end

-- All class strings of n_in inputs and n_out outputs over `letters`, in this order. allowed: a set of them, or nil: all; an
-- output is contiguous or strided.
function M.class_product(n_in, n_out, letters, allowed)
  local list = { "" }
  for k = 1, n_in + n_out do
    local longer = {}
    for _, head in ipairs(list) do
      for letter in letters:gmatch "." do
        local may_be = k <= n_in or letter == "c" or letter == "s"
        if may_be and (not allowed or allowed[letter]) then longer[#longer + 1] = head .. letter end
      end
    end
    list = longer
  end
  return list
end

-- Contiguous, then every choice of broadcast inputs but all of them.
function M.broadcast_classes(n_in, n_out)
  local contiguous = ("c"):rep(n_in + n_out)
  local list = { contiguous }
  for _, classes in ipairs(M.class_product(n_in, n_out, "cb")) do
    if classes ~= contiguous and classes:find("c") <= n_in then list[#list + 1] = classes end
  end
  return list
end

-- Whether a policy allows kernels of these classes.
function M.is_allowed(policy, classes)
  local allowed = true
  for letter in classes:gmatch "." do
    allowed = allowed and (not policy.classes or policy.classes[letter])
  end
  return allowed
end

local function lean_classes(op, heavy)
  local n, n_out, has_strided_forms = #op.inputs, #op.outputs, kinds.of(op).has_strided_forms
  local contiguous, strided = ("c"):rep(n + n_out), ("s"):rep(n + n_out)
  if heavy then return { contiguous } end
  if n == 0 then return { contiguous, strided } end
  local list = n <= 3 and M.broadcast_classes(n, n_out) or { contiguous }
  if n == 1 and has_strided_forms then list[#list + 1] = "bc" end
  list[#list + 1] = strided
  if n == 1 and has_strided_forms then
    list[#list + 1] = "sc"
    list[#list + 1] = "cs"
  end
  return list
end

-- The functions that kinds of op use to make records of their own.
local kit = { name_of = kernel_name.of, weight = M.weight, kernel_dtypes = M.kernel_dtypes, saturate = saturate.dag, stages = rows.stages,
              picks = picks.program, partial = partial.dag,
              sorted_keys = order.keys }

-- Puts records in the order of their kernel dtypes.
function kit.sort_by_dtype(types, records)
  local place = {}
  for k, t in ipairs(types.list) do place[t.name] = k end
  for k, record in ipairs(records) do record.number = k end
  table.sort(records, function(a, b)
    if a.K ~= b.K then return place[a.K] < place[b.K] end
    return a.number < b.number
  end)
end

-- A record of rank 1 of an op. fields: K, D, dtypes, classes, weight, template, and further ones
function kit.record(op, fields)
  fields.name, fields.op = kernel_name.of(op.c_name, fields.dtypes, "1", fields.classes), op
  fields.rank, fields.heavy = "1", false
  return fields
end

-- The dtypes of an op's operands that compute in K: K itself, and those that are only stored.
local function stored_dtypes(types, op, wanted, K)
  local list = { K }
  if kinds.of(op).is_bits then return list end
  for _, name in ipairs(op.dtypes) do
    if wanted[name] and name ~= K and expr.compute_type(types, op, name) == K then list[#list + 1] = name end
  end
  return list
end

-- The operand dtypes of an op's kernel that computes in K and takes the inputs of `counts` as i32; nil: it has no body for that.
local function counted_dtypes(op, wanted, K)
  if not (op.narrow and op.narrow.i32 and wanted.i32) then return nil end
  local dtypes = M.operand_dtypes(op, K)
  for k in ipairs(op.inputs) do
    if op.counts >> (k - 1) & 1 == 1 then dtypes[k] = "i32" end
  end
  return dtypes
end

-- The records of one op. policy: { variants = "lean" | "full", ranks = set or nil, classes = set or nil }; wanted: set of
-- dtypes. dag_for(op, K, narrow) gives a DAG or nil; combine_for(op, A) that of a combine. The contiguous kernel of each kernel dtype
-- always exists: it serves operands that fit no other variant. Sorted by kernel dtype, contiguous first. A record with a `dag` of its own is computed by that.
function M.of_op(types, op, wanted, policy, dag_for, combine_for)
  local kind, records, are_all = kinds.of(op), {}, false
  if kind.blocks then records, are_all = kind.blocks(kit, types, op, wanted, dag_for, combine_for) end
  if are_all then return records end
  local n, n_out = #op.inputs, #op.outputs
  local contiguous = ("c"):rep(n + n_out)
  for _, K in ipairs(M.kernel_dtypes(types, op, wanted)) do
    local dag = dag_for(op, K)
    local weight = M.weight(dag)
    local heavy, sees_signs, loops = weight > M.HEAVY_NODES, evaluate.sees_signs(types, dag), has_loop(dag)
    local seen = {}
    local function add(D, rank, classes, mixed)
      local dtypes = mixed or M.operand_dtypes(op, D)
      local name = kernel_name.of(op.c_name, dtypes, rank, classes)
      if seen[name] then return end
      seen[name] = true
      records[#records + 1] = { name = name, op = op, K = K, D = D, dtypes = dtypes, rank = rank, classes = classes,
                                 heavy = heavy, loops = loops, weight = weight, sees_signs = sees_signs, template = "elementwise",
                                 dag = op.narrow and op.narrow[D] and dag_for(op, K, D) or nil }
    end
    if policy.variants == "full" then
      local ranks = policy.ranks or M.RANKS
      local first_rank = ranks["2"] and "2" or ranks["1"] and "1" or ranks["3"] and "3" or "n"
      add(K, (first_rank == "1" or first_rank == "2") and first_rank or "1", contiguous)
      for _, D in ipairs(stored_dtypes(types, op, wanted, K)) do
        for _, rank in ipairs { "1", "2", "3", "n" } do
          if ranks[rank] then
            for _, classes in ipairs(M.class_product(n, n_out, "cbs", policy.classes)) do add(D, rank, classes) end
          end
        end
      end
    else
      local ranks = policy.ranks
      local first = heavy and "1" or "2"
      if ranks and not ranks[first] then first = ranks["1"] and "1" or ranks["2"] and "2" or "1" end
      add(K, first, contiguous)
      for _, classes in ipairs(lean_classes(op, heavy)) do
        if M.is_allowed(policy, classes) then
          if ranks then
            for _, rank in ipairs { "1", "2", "3", "n" } do
              if ranks[rank] then add(K, rank, classes) end
            end
          else
            add(K, first, classes)
          end
        end
      end
      for _, D in ipairs(stored_dtypes(types, op, wanted, K)) do
        if types.by_name[D].kind == "float" and (not heavy or op.narrow and op.narrow[D]) then add(D, first, contiguous) end
      end
    end
    local counted = counted_dtypes(op, wanted, K)
    if counted then add("i32", records[1].rank, contiguous, counted) end
  end
  return records
end

-- A kernel of one primitive; dtypes: its arguments', then the result's.
function M.of_primitive(op, dtypes, classes, template)
  return { name = kernel_name.of("prim_" .. op, dtypes, "1", classes), role = "primitive", primitive = op, dtypes = dtypes,
           K = dtypes[#dtypes], rank = "1", classes = classes, template = template, heavy = false, weight = 1 }
end

-- The kinds of dtype in the order of promotion. An operand is converted to one of its own kind or a later one
-- (runtime/core/op/resolve.c: inputs are promoted, and outputs take a result of an earlier kind); an op goes back if
-- its kind says so (converts_back).
local KIND_ORDER = { bool = 0, integer = 1, float = 2, complex = 3 }

-- The packing kernels: conversions, by [from][to] over the wanted dtypes and their compute dtypes, and copies by the sizes of
-- these. They serve every op, and compute some ops themselves (pack_role of gen/kinds). `widen` and `narrow` convert a kernel's
-- inputs and outputs between a storage dtype and its compute dtype, without a check for NaN. Then the kernels that the ops of a
-- kind share. ops: those of the plan; records_of: op name -> their records
function M.of_packs(model, wanted, ops, records_of)
  local types = model.types
  kit.types, kit.wanted = types, wanted
  function kit.combine(op, A) return expr.combine(model, op, A) end
  local records = {}
  local is_added = {}
  local function add(name, fields) -- ops of two kinds may need the same
    if is_added[name] then return end
    is_added[name] = true
    fields.name = name
    fields.K = fields.K or fields.dtypes[1]
    fields.heavy, fields.weight = false, 1
    records[#records + 1] = fields
  end
  local is_any = kinds.any(ops, "converts_back")
  for _, from in ipairs(types.sets.all) do
    for _, to in ipairs(types.sets.all) do
      local a, b = types.by_name[from], types.by_name[to]
      local is_needed = is_any or KIND_ORDER[a.kind] <= KIND_ORDER[b.kind]
      if is_needed and wanted[from] and wanted[to] and kinds.changes(types, from, to) then
        local block = (a.casts_in_blocks and to == a.compute) or (b.casts_in_blocks and from == b.compute)
        local function add_role(role, storage)
          add(kernel_name.of("pack_" .. role, { from, to }, "1", "cc"),
              { role = role, storage = storage, from = from, to = to, dtypes = { from, to }, rank = "1", classes = "cc",
                template = block and "convert" or "elementwise" })
        end
        add_role "convert"
        if from ~= to and to == a.compute then add_role("widen", from) end
        if from ~= to and from == b.compute then add_role("narrow", to) end
      end
    end
  end
  local is_moved = {}
  for name in pairs(wanted) do is_moved[types.by_name[name].size] = true end
  for _, t in ipairs(types.list) do
    if t.kind == "bits" and is_moved[t.size] then
      local b, log2 = t.name, 0
      while 1 << log2 < t.size do log2 = log2 + 1 end
      for _, mover in ipairs { { "gather", "sc" }, { "scatter", "cs" }, { "fill", "bc" } } do
        add(kernel_name.of("pack_" .. mover[1], { b, b }, "2", mover[2]),
            { role = mover[1], log2 = log2, dtypes = { b, b }, rank = "2", classes = mover[2], template = "elementwise" })
      end
      add(kernel_name.of("pack_transpose", { b, b }, "2", "sc"),
          { role = "transpose", log2 = log2, dtypes = { b, b }, rank = "2", classes = "sc", template = "transpose" })
      for _, direction in ipairs { "gather", "scatter" } do
        local classes = direction == "gather" and "scc" or "ccs"
        add(kernel_name.of("pack_" .. direction .. "_at", { b, "i32", b }, "1", classes),
            { role = direction .. "_at", log2 = log2, dtypes = { b, "i32", b }, rank = "1", classes = classes,
              template = "at", direction = direction })
      end
    end
  end
  for _, kind in ipairs(kinds.list) do
    local is_met, dtypes, of_kind = false, {}, {}
    for _, op in ipairs(kind.packs and ops or {}) do
      if kinds.of(op) == kind then
        is_met, of_kind[#of_kind + 1] = true, op
        for _, record in ipairs(records_of[op.name]) do dtypes[record.K] = true end
      end
    end
    local Ks = {}
    for _, t in ipairs(types.list) do Ks[#Ks + 1] = dtypes[t.name] and t.name or nil end
    if is_met then kind.packs(kit, add, Ks, of_kind, records_of) end
  end
  add(kernel_name.of("pack_stream", { "b8", "b8" }, "1", "cc"),
      { role = "stream", dtypes = { "b8", "b8" }, rank = "1", classes = "cc", template = "stream" })
  return records
end

return M
