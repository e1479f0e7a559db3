-- SPDX-License-Identifier: Apache-2.0
--
-- A throwaway target, for t330-recipes: "plain", which has kernels of add alone, for f32 and f64. Its devices are OpenCL's in
-- DLPack, where `data` is a handle: here the address of a pointer to memory. So base and offset come to its kernels apart.

return {
  new = {
    ["gen/targets/plain/build.lua"] = [==[
-- SPDX-License-Identifier: Apache-2.0
--
-- How plain kernels are compiled: as the core is.

local M = {}

M.KINDS, M.NOTES = {}, {}
function M.flags() return {} end
M.CMAKE = { version = "3.16", lists = {} }

return M
]==],
    ["gen/targets/plain/emit.lua"] = [==[
-- SPDX-License-Identifier: Apache-2.0
--
-- DAG -> statements of plain C.

local M = {}

local SPELLING = { add = "%s + %s" }

-- nodes: in order; names: node -> name of those that are named already. Returns lines, and node -> name
function M.emit(nodes, names)
  local lines = {}
  for _, node in ipairs(nodes) do
    if not names[node] then
      names[node] = "t" .. node.id
      local value = SPELLING[node.op]:format(names[node.args[1]], names[node.args[2]])
      lines[#lines + 1] = string.format("const %s %s = %s;", node.type, names[node], value)
    end
  end
  return lines, names
end

return M
]==],
    ["gen/targets/plain/target.lua"] = [==[
-- SPDX-License-Identifier: Apache-2.0
--
-- The target plain: a kernel for each dtype, over a row of any strides. (The keys of a target: gen/targets/all.lua.)

local banner = require "gen.targets.c.banner"
local dag_of = require "gen.graph.dag.dag"
local emit = require "gen.targets.plain.emit"
local names_of = require "gen.targets.c.names"
local operands_of = require "gen.targets.operands"
local template = require "gen.base.template"

local M = {}

M.name = "plain"
M.build = require "gen.targets.plain.build"
M.is_basic, M.in_single = false, false
M.core_folder = "plain"

local TEMPLATE = "templates/plain/plain_row.c.in"

function M.refusal(op) return op.name ~= "add" and "has no kernels of plain C" or nil end
function M.dtype_refusal() return nil end -- there are fewer kernels, not fewer dtypes

local function kernel(plan, op, K, name, parsed)
  local dag, inputs, names = plan.dag_for(op, K), {}, {}
  for k, node in ipairs(dag.inputs) do
    inputs[k] = { name = "in_" .. node.name, index = k - 1 }
    names[node] = inputs[k].name
  end
  local body, known = emit.emit(dag_of.order(dag.outputs), names)
  local comment = string.format("%s: %s (%s)", op.name, operands_of.formula(op), operands_of.sources(op, dag, TEMPLATE))
  return template.render(parsed, { name = name, comment = comment, type = K, inputs = inputs, body = body,
                                   output = #inputs, value = known[dag.outputs[1]] })
end

function M.files(job)
  if job.is_library then return {} end
  local parsed = template.parse(TEMPLATE, job.read(TEMPLATE), job.read)
  local texts = { table.concat(banner.c "plain kernels", "\n"), "#include <stdint.h>\n\ntypedef float f32;\ntypedef double f64;\n" }
  local declarations, rows_of = {}, {}
  for _, op in ipairs(job.plan.ops) do
    for _, K in ipairs(M.refusal(op) and {} or { "f32", "f64" }) do
      if job.plan.wanted[K] then
        local name = names_of.kernel(string.format("ql_%s_%s_1d_sss", op.c_name, K), job.prefix)
        texts[#texts + 1] = kernel(job.plan, op, K, name, parsed)
        declarations[#declarations + 1] = "qn_plain_kernel " .. name .. ";"
        rows_of[op.name] = rows_of[op.name] or {}
        table.insert(rows_of[op.name], { record = { classes = "sss", rank = "1" }, name = name, dtypes = { K, K, K } })
      end
    end
  end
  job.put("core", string.format("kernels/%s_plain.c", job.prefix), table.concat(texts, "\n"))
  job.put_core("core", "runtime/tree/plain_tree.c")
  return { device_table = { backend = "qn_plain_tree", declarations = declarations, rows_of = rows_of,
                            row_type = "qn_plain_variant", list = "plain_variants", header = "core/plain/plain.h",
                            row_text = function(row, head) return head .. ", " .. row.name .. "}" end } }
end

function M.sources() return {} end
function M.run_time_headers() return {} end
function M.bare_name(name) return name:match "^[%w_]-(ql_[%w_]+)$" end
function M.show() return nil, {} end
function M.source() return nil, "plain kernels are built ahead", "unsupported" end

return M
]==],
    ["templates/plain/plain_row.c.in"] = [==[
/* SPDX-License-Identifier: Apache-2.0 */
$param name comment type inputs body output value
/* ${comment} */
void ${name}(char *const *ptr, const int64_t *stride, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
$for o in inputs
    const ${type} ${o.name} = *(const ${type} *)(ptr[${o.index}] + i * stride[${o.index}]);
$end
$for line in body
    ${line}
$end
    *(${type} *)(ptr[${output}] + i * stride[${output}]) = ${value};
  }
}
]==],
    ["runtime/core/plain/plain.h"] = [==[
/* SPDX-License-Identifier: Apache-2.0
 *
 * plain.h: kernels of the target plain, as the table of ops has them. */
#ifndef QN_PLAIN_H
#define QN_PLAIN_H

#include "core/base/kernel_abi.h"

/* A row of n elements, from addresses and strides in bytes. */
typedef void qn_plain_kernel(char *const *ptr, const int64_t *stride, int64_t n);

typedef struct qn_plain_variant {
  const char *name;
  const uint8_t *dtypes, *classes;
  uint8_t rank;
  qn_plain_kernel *run;
} qn_plain_variant;

#endif
]==],
    ["runtime/tree/plain_tree.c"] = [==[
/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_tree.c: the target plain as a backend. A tensor's `data` is a handle: the address of a pointer to its memory. */
#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "core/op/backend.h"
#include "core/plain/plain.h"

extern const qn_backend qn_plain_tree;

static const qn_plain_variant *find(const qn_decision *decision) {
  const qn_ahead *ahead = decision->op->builtin->ahead;
  while (ahead && ahead->backend && ahead->backend != &qn_plain_tree) ahead++;
  for (int32_t i = 0; ahead && i < ahead->n_kernels; i++) {
    const qn_plain_variant *variant = (const qn_plain_variant *)ahead->kernels + i;
    const size_t n = (size_t)decision->n_operands;
    if (!memchr(decision->device_types, kDLCPU, n) && memcmp(variant->dtypes, decision->dtypes, n) == 0) return variant;
  }
  return NULL;
}

static quern_status pick(const qn_decision *decision, const qn_plain_variant **variant) {
  *variant = find(decision);
  if (*variant) return QUERN_OK;
  return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: there is no plain kernel for these operands", decision->op->info->name);
}

static void run(const qn_decision *decision, const qn_plain_variant *variant, const qn_ref *ref) {
  const qn_nest *nest = &decision->nest;
  char *ptr[QN_MAX_OPERANDS];
  int64_t inner[QN_MAX_OPERANDS], at[QUERN_MAX_NDIM] = {0};
  for (int32_t k = 0; k < nest->n_operands; k++) {
    ptr[k] = *(char **)(void *)ref[k].base + ref[k].offset;
    inner[k] = nest->rank ? nest->stride[k][0] : 0;
  }
  for (int32_t d = 1;;) {
    variant->run(ptr, inner, nest->rank ? nest->n[0] : 1);
    for (d = 1; d < nest->rank; d++) {
      const int64_t step = ++at[d] < nest->n[d] ? 1 : 1 - nest->n[d];
      for (int32_t k = 0; k < nest->n_operands; k++) ptr[k] += step * nest->stride[k][d];
      if (step == 1) break;
      at[d] = 0;
    }
    if (d >= nest->rank) return;
  }
}

static quern_status call(const qn_decision *decision, const quern_call *of) {
  const qn_plain_variant *variant;
  quern_status status = pick(decision, &variant);
  (void)of;
  if (status == QUERN_OK) run(decision, variant, decision->nest.ref);
  return status;
}

static quern_status prepare(const qn_decision *decision, const quern_call *of, qn_run **made) {
  const qn_plain_variant *variant, **kept;
  quern_status status = pick(decision, &variant);
  (void)of;
  if (status) return status;
  if (!(kept = malloc(sizeof *kept))) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", decision->op->info->name);
  *kept = variant;
  *made = (qn_run *)(void *)kept;
  return QUERN_OK;
}

static quern_status launch(const qn_decision *decision, const qn_run *made, const qn_ref *ref, const qn_params *params,
                           const quern_call *of) {
  (void)params, (void)of;
  run(decision, *(const qn_plain_variant *const *)(const void *)made, ref);
  return QUERN_OK;
}

static quern_status explain(const qn_decision *decision, const quern_call *of, qn_strbuf *buf) {
  const qn_plain_variant *variant;
  quern_status status = pick(decision, &variant);
  (void)of;
  if (status == QUERN_OK) qn_strbuf_add(buf, "tier: built\nreason: a kernel of plain C\nvariant: %s\n", variant->name);
  return status;
}

const qn_backend qn_plain_tree = {.device_name = "a plain device", .device_type = kDLOpenCL, .has_handles = 1, .call = call,
                                  .prepare = prepare, .launch = launch, .explain = explain};
]==],
  },
  edits = {
    ["gen/targets/all.lua"] = { { after = [[(require "gen.targets.cuda.target")]], text = [[, (require "gen.targets.plain.target")]] } },
  },
}
