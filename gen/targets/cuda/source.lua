-- SPDX-License-Identifier: Apache-2.0
--
-- One CUDA kernel at run time, as a complete text: of a host's expression, or of a built-in op that is no expression because it
-- copies, casts or computes from indices. The kernel's name is in the request.

local adjoints_cuda = require "gen.targets.cuda.adjoints"
local expr = require "gen.graph.body.expr"
local host = require "gen.graph.host"
local kernels_cuda = require "gen.targets.cuda.kernels"
local promote = require "gen.front.promote"
local kinds = require "gen.kinds.kinds"
local rows_cuda = require "gen.targets.cuda.rows"
local scans_cuda = require "gen.targets.cuda.scans"
local short_rows = require "gen.targets.cuda.short_rows"
local saturate = require "gen.graph.dag.saturate"
local dtypes_of = require "gen.targets.cuda.dtypes"
local variants = require "gen.targets.variants"
local variants_cuda = require "gen.targets.cuda.variants"
local states = require "gen.graph.states"

local M = {}

M.MAX_ARGUMENTS = 512 -- QN_LAUNCH_ARGS of runtime/core/simt/launch.h

-- The op of that name, if it copies, casts or computes from indices; or nil, message, kind.
local function op_itself(model, name)
  local op = model.op_of_name[name]
  if not op then return nil, string.format("no op '%s'", name), "notfound" end
  if kinds.of(op).has_own_entry then return op end
  return nil, string.format("%s: it is compiled as an expression", name), "unsupported"
end

-- The promoted dtype of a copying op's inputs, or nil and a message.
local function moved_dtype(types, op, in_dtypes)
  local moved
  for k, input in ipairs(op.inputs) do
    if input.type ~= "bool" then
      local why
      moved, why = promote.common(types, moved or in_dtypes[k], in_dtypes[k])
      if not moved then return nil, string.format("%s: %s", op.name, why) end
    elseif in_dtypes[k] ~= "bool" then
      return nil, string.format("%s: input %d (%s): dtype %s, expected bool", op.name, k, input.name, in_dtypes[k])
    end
  end
  return moved
end

-- The entry of an index op for kernels_cuda.file, or nil, message, kind.
local function entry_of_index(model, op, request)
  local indices, out = table.unpack(request.dtypes)
  local K = request.n_in == 1 and indices == variants_cuda.INDEX_DTYPE and expr.compute_type(model.types, op, out)
  if not K then return nil, string.format("%s: no dtype '%s'", op.name, out), "dtype" end
  local dag, why, kind = expr.op_dag(model, op, K)
  if not dag then return nil, why, kind end
  return { record = { op = op, K = K, dtypes = { indices, out } }, dag = dag }
end

local function form_of_rows(request) return tostring(request.rank) == short_rows.RANK and short_rows or rows_cuda end

-- The dtype that an op over axes computes in for operands of these dtypes; or nil, message, kind.
local function dtype_of_kernel(types, op, dtypes)
  local promoted, why
  for k, input in ipairs(op.inputs) do
    if not input.type then promoted, why = promote.common(types, promoted or dtypes[k], dtypes[k]) end
    if why then return nil, string.format("%s: %s", op.name, why), "dtype" end
  end
  local K = promoted and #dtypes == #op.inputs + #op.outputs and expr.compute_type(types, op, promoted)
  if not K then return nil, string.format("%s: no dtype '%s'", op.name, promoted), "dtype" end
  return K
end

-- The entry of an op that reduces for kernels_cuda.file, or nil, message, kind.
local function entry_of_rows(model, op, request)
  local K, message, kind = dtype_of_kernel(model.types, op, request.dtypes)
  if not K then return nil, message, kind end
  local dag
  dag, message, kind = expr.op_dag(model, op, K)
  if not dag then return nil, message, kind end
  local fields = { op = op, K = K, dtypes = table.move(request.dtypes, 1, #request.dtypes, 1, {}) }
  return { record = rows_cuda.record(model.types, fields, dag, form_of_rows(request), function(given) return given end), dag = dag }
end

-- The entry of an op that scans for kernels_cuda.file, or nil, message, kind.
local function entry_of_scan(model, op, request)
  local types, kind = model.types, kinds.of(op)
  local n = 1 + #op.outputs
  local K = #request.dtypes == n and expr.compute_type(types, op, request.dtypes[1])
  if not K then return nil, string.format("%s: no dtype '%s'", op.name, request.dtypes[1]), "dtype" end
  local A = kind.accumulator(types, op, K)
  local fields = { op = op, K = K, dtypes = table.move(request.dtypes, 1, n, 1, {}), sought = kind.sought(op) }
  local by, of = scans_cuda, expr.combine
  if op.has_states then by, of = adjoints_cuda.forward, states.of end
  local record = by.record(fields, A, of(model, op, A), function(given) return given end)
  return { record = record, dag = record.dag }
end

-- The entry of a derivative of a scan for kernels_cuda.file, or nil, message, kind.
local function entry_of_adjoint(model, op, request)
  local K, why, kind = dtype_of_kernel(model.types, op, request.dtypes)
  if not K then return nil, why, kind end
  local fields = { op = op, dtypes = table.move(request.dtypes, 1, #request.dtypes, 1, {}) }
  local record = adjoints_cuda.record(fields, K, states.of(model, op, K), function(given) return given end)
  return { record = record, dag = record.dag }
end

-- By the field cuda_form of kinds.
local ENTRIES = { rows = entry_of_rows, scans = entry_of_scan, adjoints = entry_of_adjoint, indices = entry_of_index }

-- The entry of such an op for kernels_cuda.file, or nil, message, kind.
local function entry_of_op(model, op, request)
  local kind = kinds.of(op)
  local entry_of = ENTRIES[kind.cuda_form]
  if entry_of then return entry_of(model, op, request) end
  local types, dtypes, n_in = model.types, table.move(request.dtypes, 1, #request.dtypes, 1, {}), request.n_in
  if #op.inputs ~= n_in or #dtypes ~= n_in + 1 then
    return nil, string.format("%s: dtypes of operands: %d given, expected %d", op.name, #dtypes, n_in + 1), "dtype"
  end
  for _, name in ipairs(dtypes) do
    local t = types.by_name[name]
    if not t or not t.built or t.kind == "bits" then return nil, string.format("%s: no dtype '%s'", op.name, name), "dtype" end
  end
  local record, out = { op = op }, dtypes[n_in + 1]
  if kind.dag and n_in == 1 and variants_cuda.changes(types, dtypes[1], out) then
    record.dtypes, record.from, record.to = dtypes, dtypes[1], out
    return { record = record, dag = kind.dag({ saturate = saturate.dag }, types, op, dtypes[1], out) }
  end
  local moved, message = out, nil
  if kind.promotes then moved, message = moved_dtype(types, op, dtypes) end
  if not moved then return nil, message, "dtype" end
  local bits = promote.bits_dtype(types.by_name[moved])
  for k, name in ipairs(dtypes) do
    local is_condition = k <= n_in and op.inputs[k].type == "bool"
    if name == moved and not is_condition then dtypes[k] = bits end
  end
  record.dtypes, record.moved = dtypes, moved
  local dag, why, kind_of_error = expr.op_dag(model, op, bits)
  if not dag then return nil, why, kind_of_error end
  return { record = record, dag = dag }
end

local function is_sound(request, n)
  local classes, rank = request.classes, request.rank
  return request.symbol:find "^[a-z_][a-z0-9_]*$" and rank >= 0 and rank <= 3 and #classes == n and classes:find "^[cbst]*$"
    and not classes:find("[bt]", request.n_in + 1) and not (rank == 1 and classes:find("t", 1, true))
end

-- request: as service.lua has it, with in_dtypes, out_dtypes, and rank 0 for any; templates, headers: from
-- kernels_cuda.sources. Returns the text, items per thread; or nil, message, kind
function M.text(model, banner, request, templates, headers)
  local n = #request.dtypes
  if not is_sound(request, n) then
    return nil, string.format("bug: a kernel that cannot be: %s %dd %s", request.symbol, request.rank, request.classes), "bug"
  end
  for _, name in ipairs(request.dtypes) do
    local t = model.types.by_name[name]
    local refusal = t and dtypes_of.refusal(t)
    if refusal then return nil, refusal, "unsupported" end
  end
  local entry, message, kind
  if request.op then
    local op
    op, message, kind = op_itself(model, request.op)
    if not op then return nil, message, kind end
    entry, message, kind = entry_of_op(model, op, request)
  else
    entry, message, kind = host.entry(model, request, true)
    if entry and entry.reduces then rows_cuda.record(model.types, entry.record, entry.dag, form_of_rows(request), function(given) return given end) end
  end
  if not entry then return nil, message, kind end
  local record = entry.record
  record.name, record.classes, record.is_wide = request.symbol, request.classes, request.is_wide
  record.rank = request.rank == 0 and "n" or tostring(request.rank)
  if not record.program then record.template = request.classes:find("t", 1, true) and "transpose" or "elementwise" end
  local excess = record.by == rows_cuda and rows_cuda.excess(model.types, record)
  if excess then return nil, string.format("%s: %s", record.op.name, excess), "unsupported" end
  record.weight = entry.dag and variants.weight(entry.dag) or 1
  if kernels_cuda.n_arguments(record, entry.dag and #entry.dag.params or 0) > M.MAX_ARGUMENTS then
    return nil, string.format("%s: %d operands and their parameters are more than a launch takes", record.op.name, n), "limit"
  end
  local _, items_per_thread = kernels_cuda.items(model.types, record, request.n_in)
  if record.by == rows_cuda then items_per_thread = rows_cuda.items(model.types, record) end
  return kernels_cuda.file(model.types, banner, { entry }, templates, headers), items_per_thread, entry.cost
end

return M
