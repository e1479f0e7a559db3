-- SPDX-License-Identifier: Apache-2.0
--
-- The kinds of op, and the kind of an op: op.kind is its name. A kind is a file; nothing outside this folder asks for a kind by
-- name. Knows dtypes and specs' fields, no graphs; `kit` has functions of the target's variants.
--
--   name, mark, schema    of a kind; the field of a spec by which an op is of it (elementwise: none), with its type
--   class, class_of(op)   quern_op_info's: the kind's, or one that depends on the op
--   computes              its kernels compute in dtypes, and are measured
--   is_bits               its kernels depend on the size of elements only
--   has_body, has_derivative, may_alias, may_be_added, only_cpu, no_outputs, no_result, has_strided_forms
--   needs_runtime         why its kernels serve no dispatcher but the runtime's; nil: they do
--   converts_back         operands are converted to dtypes of an earlier kind too: floats to integers, numbers to bool
--   is_packed             conversions between dtypes, which are among the packing kernels, are kernels of its ops
--   pack_role(op)         the role of the packing kernels that compute the op over contiguous elements; nil: there are none
--   has_own_entry         a kernel for CUDA at run time is asked for by the op's name, not by an expression
--   has_indices, promotes           its operands: see index.lua, copy.lua
--   has_own_nest          its outputs have loops of their own: qn_tensor_check_apart of the runtime
--   output_dtype, dtypes_words      for documents and reports
--   failure(fields, is_builtin), declare(op, fields), check(op, fields, model), check_outputs(op, fields, types), result(fields)   what a spec says
--   declared(model, op)   what follows from it for other ops
--   derivative_kind, bound_kind     the kind of the ops that are derivatives of its ops, and of a bound as an op
--   shape_params(op)      parameters that are the kind's, before the op's own; each has a `role`, of M.ROLES; the own ones have none
--   axes_of_call(op)      a call of it in an expression may say axes: what gen/front/parse.lua reads them into, { is_reduced } or { scans }
--   allowed_in_expression(op)   whether it may be part of an expression in spite of its refusal. A kind with this key refuses its other ops as
--                         UNSUPPORTED, a limit of this version; a kind without it as SYNTAX
--   empty_result(types, op, A) the result of no elements, in the accumulator's dtype
--   from_end              its states are carried from the end of an axis to its beginning
--   combine_claims        gen/tools/claims.lua tries whether its combine is associative; commutative: that, too
--   depth(n), bound_is_expression, no_bound(op)     of gen/tools/bounds.lua: additions that one of n elements takes part in at most; a bound is
--                         read as an expression, not as a body; why there may be none
--   not_measured          why gen/tools/measure.lua does not measure its ops; nil: it does where they take floats
--   packed_form, packed(kit, op, built)             what the runtime gets of an op of a spec beyond other ops: see row_packed.lua, spec_forms.h
--   cuda_form             which function of gen/targets/cuda/source.lua makes an entry of it
--   own_inputs, own_params          names that a body has beyond inputs and params: operands, parameters of its kernels, which
--                         qn_kind.n_positions and .bind of the runtime give; names: both lists in one, made here
--   refusal(op)           why it is no part of an expression; nil: it may be
--   param_dtypes(types, T)          the dtypes that parameters are converted to in a call of a promoted or chosen dtype T
--   served, compute_type, kernel_dtypes, promotion, add_dtypes   dtypes: see elementwise.lua
--   blocks(kit, types, op, wanted, dag_for)       records of its own for the CPU, and whether they are all
--   packs(kit, add, Ks)                           records that its ops share
--   templates             those of templates/c that only its records have. A record without a DAG has values(c, types, record),
--                         the values of its template; c: functions of gen/targets/c/kernels.lua. A record without an op has
--                         says, the text of the kernel's comment
--   table                 of the packs, for the runtime: { header, text(packs_of, upper, bits_of, has_cpu) }. packs_of(role): list of
--                         { record, name }; has_cpu: false in a tree without kernels for the CPU, where no pack has a name
--   cuda_records, cuda_operands                   the same for CUDA; cuda_records also gives whether they are all
--   runtime_needs         another kind of the runtime: its own files include files of that one
--   runtime, runtime_cpu                          its qn_kind and its folder of the core, if not its name and core/kinds; the sources
--                         there that only kernels for the CPU need

local elementwise = require "gen.kinds.elementwise"

local M = {}

-- An op's kind is the first with a mark that is in the spec.
M.list = { require "gen.kinds.reduction", require "gen.kinds.row", require "gen.kinds.scan", require "gen.kinds.adjoint",
           require "gen.kinds.index",
           require "gen.kinds.compact", require "gen.kinds.cast", require "gen.kinds.copy", elementwise }

local of_name = {}
for _, kind in ipairs(M.list) do
  of_name[kind.name] = kind
  if kind.own_inputs or kind.own_params then
    local inputs, params = kind.own_inputs or {}, kind.own_params or {}
    kind.names = table.move(params, 1, #params, #inputs + 1, table.move(inputs, 1, #inputs, 1, {}))
  end
  for _, key in ipairs { "class", "output_dtype", "compute_type", "kernel_dtypes", "promotion", "param_dtypes",
                         "derivative_kind" } do -- flags are each kind's own
    kind[key] = kind[key] or elementwise[key]
  end
end

-- The kind of an op. One that is no spec's has none.
function M.of(op) return of_name[op.kind] or elementwise end

-- The kind of an op, by the fields of its spec.
function M.of_fields(fields)
  for _, kind in ipairs(M.list) do
    if not kind.declarator and (not kind.mark or fields[kind.mark]) then return kind end
  end
end

-- Whether an element of the output is the op's body on the inputs' elements, as in an expression.
function M.is_formula(op) return M.of(op).has_body and not M.of(op).names end

-- The fields of an op that mark its kind.
M.marks = {}
for _, kind in ipairs(M.list) do M.marks[#M.marks + 1] = kind.mark end

-- Whether the kind of an op in the list has this field.
function M.any(ops, field)
  for _, op in ipairs(ops) do
    if M.of(op)[field] then return true end
  end
  return false
end

-- The class of an op, what the shapes of its results depend on: its name, its constant, and the number of that.
local CLASSES = { basic = 0, workspace = 1, dynamic = 2, reduction = 3 } -- ORDER QUERN_CLASS_* of quern.h
function M.class_of(op)
  local kind = M.of(op)
  return kind.class_of and kind.class_of(op) or kind.class
end
function M.class_constant(op) return "QUERN_CLASS_" .. M.class_of(op):upper() end
function M.class_number(op) return CLASSES[M.class_of(op)] end

-- What a parameter is to its op, in the order of QUERN_ROLE_* of quern.h.
M.ROLES = { "number", "axes", "axis", "keepdims", "initial", "flag" }
local ROLE_NUMBERS = {}
for k, role in ipairs(M.ROLES) do ROLE_NUMBERS[role] = k - 1 end

-- The roles of an op's parameters as numbers; nil: all are numbers for its body.
function M.roles(op)
  local list, has_other = {}, false
  for k, param in ipairs(op.params) do
    list[k] = ROLE_NUMBERS[param.role or "number"]
    has_other = has_other or list[k] ~= 0
  end
  return has_other and list or nil
end

-- Whether a cast changes anything.
M.changes = require "gen.kinds.cast".changes

-- What specs may have of the kinds' fields: name -> types.
M.schema = {}
for _, kind in ipairs(M.list) do
  for field, types in pairs(not kind.declarator and kind.schema or {}) do M.schema[field] = types end
end

return M
