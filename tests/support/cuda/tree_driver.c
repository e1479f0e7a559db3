/* SPDX-License-Identifier: Apache-2.0
 *
 * tree_driver.c: a generated tree, of the prefix "mine", called through its public functions on tensors of a CUDA device: with C
 * kernels in it, all memory is as after the same call on the CPU; without (-DONLY_CUDA), known results. -DWITH_SCANS: it has the scans of
 * t755-cuda-tree, which this is part of. The CUDA part runs on the CPU, by fake_runtime.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "mine.h"
#include "../tap.h"

enum { REGION = 1 << 17, MOST = 4, MAX_RANK = 6 };

static rng random_state;
static int below(int n) { return (int)rng_below(&random_state, (uint64_t)n); }

static const DLDataType BOOL = {kDLBool, 8, 1}, I32 = {kDLInt, 32, 1}, F16 = {kDLFloat, 16, 1}, F32 = {kDLFloat, 32, 1};

/* ---- Operands, twice: for the CPU and for the device ---- */

typedef struct operand {
  DLTensor on_cpu, on_device;
  int64_t shape[MAX_RANK], strides[MAX_RANK];
  char *memory[2];
} operand;
static operand operands[MOST];

static void fill(operand *o, DLDataType type) {
  for (int i = 0; i < REGION; i += type.bits / 8) {
    uint64_t bits = rng_u64(&random_state);
    float value = (float)(below(4001) - 2000) / 64;
    if (type.code == kDLFloat && type.bits == 32 && below(3)) memcpy(&bits, &value, 4);
    if (type.code == kDLInt && below(2)) bits = (uint64_t)(below(100) - 50);
    memcpy(o->memory[0] + i, &bits, type.bits / 8);
  }
  memcpy(o->memory[1], o->memory[0], REGION);
}

/* Strides in any order of the dimensions, with gaps, of any sign; some of an input's are 0. */
static void lay_out(operand *o, DLDataType type, int rank, const int64_t *shape, int is_output) {
  int order[MAX_RANK];
  int64_t next = 1, low = 0;
  for (int d = 0; d < rank; d++) order[d] = rank - 1 - d;
  for (int d = rank - 1; d > 0 && below(2); d--) {
    const int e = below(d + 1), was = order[d];
    order[d] = order[e], order[e] = was;
  }
  for (int k = 0; k < rank; k++) {
    const int d = order[k];
    o->shape[d] = shape[d];
    if (below(5) == 0) next += 1 + below(3);
    o->strides[d] = !is_output && below(6) == 0 ? 0 : below(6) == 0 ? -next : next;
    if (o->strides[d] < 0) low -= o->strides[d] * (shape[d] > 0 ? shape[d] - 1 : 0);
    if (o->strides[d]) next *= shape[d] > 0 ? shape[d] : 1;
  }
  o->on_cpu = (DLTensor){o->memory[0], {kDLCPU, 0}, rank, type, o->shape, o->strides, 0};
  o->on_cpu.byte_offset = (uint64_t)(low + below(17)) * (type.bits / 8);
  o->on_device = o->on_cpu;
  o->on_device.data = o->memory[1];
  o->on_device.device = (DLDevice){kDLCUDA, 1};
  if (is_output) return;
  const int kind = below(8);
  if (kind < 2) o->on_device.device.device_type = kind ? kDLCUDAHost : kDLCUDAManaged;
  if (kind < 2) o->on_device.device.device_id = 0;
  if (o != operands && kind == 2) { /* one value, on the CPU */
    o->on_cpu.ndim = o->on_device.ndim = 0;
    o->on_device.device = (DLDevice){kDLCPU, 0};
  }
}

/* ---- The same call on both ---- */

static int has_c(void) {
#if defined(ONLY_CUDA)
  return 0;
#else
  return 1;
#endif
}

typedef struct subject {
  const char *op;
  int n_in;
  DLDataType types[MOST];
} subject;

static void one_call(const subject *s, mine_op *op) {
  static const int extents[] = {0, 1, 2, 3, 7, 16, 17, 33, 64, 100, 300};
  const int rank = below(MAX_RANK), n = s->n_in + 1, is_prepared = below(2);
  int64_t shape[MAX_RANK], total = 1;
  for (int d = 0; d < rank; d++) {
    shape[d] = d >= rank - 2 ? extents[1 + below(10)] : 1 + below(4);
    if (below(40) == 0) shape[d] = 0;
    while (total * shape[d] > 6000) shape[d] /= 2;
    total *= shape[d];
  }
  DLTensor *on_cpu[MOST], *on_device[MOST];
  for (int k = 0; k < n; k++) {
    fill(&operands[k], s->types[k]);
    lay_out(&operands[k], s->types[k], rank, shape, k == s->n_in);
    on_cpu[k] = &operands[k].on_cpu, on_device[k] = &operands[k].on_device;
  }
  const int twin = s->n_in ? below(2 * s->n_in) : MOST;
  if (twin < s->n_in && memcmp(&s->types[twin], &s->types[s->n_in], sizeof(DLDataType)) == 0) { /* in place */
    on_cpu[twin] = on_cpu[s->n_in];
    on_device[twin] = on_device[s->n_in];
  }
  const int32_t n_params = mine_op_describe(op)->n_params;
  const double first = (n_params > 1 ? 1 : 0.25) * below(20); /* arange takes whole numbers of integers */
  const mine_scalar values[3] = {{MINE_F64, {.f = {first, 0}}}, {MINE_I64, {.i = below(9) - 4}}, {MINE_I64, {.i = below(2)}}};
  const mine_call call = {.size = sizeof call, .params = n_params ? values : NULL, .n_params = n_params, .stream = &operands};
  mine_status status = mine_op_call(op, s->n_in, on_cpu, 1, on_cpu + s->n_in, &call);
  if (status) {
    group_fail("%s: %s", s->op, mine_last_error());
    return;
  }
  fake_runtime.device = below(2);
  const int device = fake_runtime.device, n_launches = fake_runtime.n_launches;
  if (is_prepared) {
    void *data[MOST];
    mine_plan *plan;
    for (int k = 0; k < n; k++) data[k] = (char *)on_device[k]->data + on_device[k]->byte_offset;
    status = mine_op_prepare(op, s->n_in, on_device, 1, on_device + s->n_in, &call, &plan);
    if (!status) {
      status = mine_plan_run(plan, data, data + s->n_in, &call);
      mine_plan_release(plan);
    }
  } else {
    status = mine_op_call(op, s->n_in, on_device, 1, on_device + s->n_in, &call);
  }
  if (status) group_fail("%s on the device: %s", s->op, mine_last_error());
  if (fake_runtime.device != device) group_fail("%s: another device is current than was", s->op);
  if (fake_runtime.n_launches != n_launches + (total > 0))
    group_fail("%s: %d launches", s->op, fake_runtime.n_launches - n_launches);
  if (total && (fake_runtime.launched_on != 1 || fake_runtime.stream != call.stream)) group_fail("%s: on another stream", s->op);
  for (int k = 0; k < n; k++)
    if (memcmp(operands[k].memory[0], operands[k].memory[1], REGION))
      group_fail("%s: operand %d differs, rank %d", s->op, k, rank);
}

static void check_ops(void) {
  const subject subjects[] = {
      {"add", 2, {F32, F32, F32}},          {"add", 2, {F16, F16, F16}},
      {"add", 2, {I32, I32, I32}},          {"gelu", 1, {F32, F32}},
      {"less", 2, {F32, F32, BOOL}},        {"less", 2, {I32, I32, BOOL}},
      {"leaky_relu", 1, {F32, F32}},        {"leaky_relu", 1, {F16, F16}},
      {"copy", 1, {F32, F32}},              {"copy", 1, {F16, F16}},
      {"copy", 1, {BOOL, BOOL}},            {"where", 3, {BOOL, F32, F32, F32}},
      {"where", 3, {BOOL, F16, F16, F16}},  {"where", 3, {BOOL, BOOL, BOOL, BOOL}},
      {"astype", 1, {F32, F16}},            {"astype", 1, {F16, I32}},
      {"astype", 1, {I32, BOOL}},           {"astype", 1, {I32, I32}},
      {"astype", 1, {F16, F16}},            {"astype", 1, {BOOL, BOOL}},
      {"full", 0, {F32}},                   {"full", 0, {F16}},
      {"full", 0, {BOOL}},                  {"arange", 0, {I32}},
      {"arange", 0, {F32}},                 {"arange", 0, {F16}},
      {"linspace", 0, {F32}},               {"linspace", 0, {F16}}};
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
    mine_op *op;
    if (mine_op_find(NULL, subjects[i].op, &op)) bail("%s", mine_last_error());
    group_begin("%s to %d bits, as on the CPU", subjects[i].op, subjects[i].types[subjects[i].n_in].bits);
    for (int turn = 0; turn < 60; turn++, group_count(1)) one_call(&subjects[i], op);
    group_end();
    mine_op_release(op);
  }
}

static DLTensor vector(int k, DLDataType type, DLDevice device) {
  static int64_t n = 1000;
  return (DLTensor){operands[k].memory[0], device, 1, type, &n, NULL, 0};
}

/* ---- Rows ---- */

static const DLDataType I64 = {kDLInt, 64, 1};

/* An op that reduces: one call with the axes of a mask, on both. */
static void one_row_call(const char *name, mine_op *op, DLDataType type, DLDataType result, int is_full) {
  static const int extents[] = {1, 2, 3, 17, 100, 300, 1000};
  const int rank = below(4), axes = below(1 << rank);
  int64_t shape[MAX_RANK], kept[MAX_RANK], total = 1, n_out = 1;
  int n_kept = 0;
  for (int d = 0; d < rank; d++) {
    shape[d] = extents[below(7)];
    while (total * shape[d] > 4000) shape[d] /= 2;
    total *= shape[d];
    if (is_full || !(axes >> d & 1)) n_out *= kept[n_kept++] = shape[d];
  }
  while (n_out > 400 && !is_full && n_kept) n_out /= kept[--n_kept]; /* no such shape: refused on both */
  fill(&operands[0], type);
  lay_out(&operands[0], type, rank, shape, 0);
  fill(&operands[1], result);
  lay_out(&operands[1], result, n_kept, kept, 1);
  DLTensor *in[2] = {&operands[0].on_cpu, &operands[0].on_device}, *out[2] = {&operands[1].on_cpu, &operands[1].on_device};
  const mine_scalar value = {MINE_I64, {.i = axes}};
  const mine_call call = {.size = sizeof call, .params = &value, .n_params = 1};
  const mine_status wanted = mine_op_call(op, 1, in, 1, out, &call), got = mine_op_call(op, 1, in + 1, 1, out + 1, &call);
  if (got != wanted) group_fail("%s: status %d on the device: %s", name, got, mine_last_error());
  if (memcmp(operands[1].memory[0], operands[1].memory[1], REGION)) group_fail("%s: other bytes, axes %d of %d", name, axes, rank);
}

static void check_rows(void) {
  static const struct { const char *op; DLDataType type, result; int is_full; } subjects[] = {
      {"sum", {kDLFloat, 32, 1}, {kDLFloat, 32, 1}, 0}, {"sum", {kDLFloat, 16, 1}, {kDLFloat, 16, 1}, 0},
      {"sum", {kDLInt, 32, 1}, {kDLInt, 64, 1}, 0},     {"logsumexp", {kDLFloat, 32, 1}, {kDLFloat, 32, 1}, 0},
      {"softmax", {kDLFloat, 32, 1}, {kDLFloat, 32, 1}, 1}, {"softmax", {kDLFloat, 16, 1}, {kDLFloat, 16, 1}, 1}};
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
    mine_op *op;
    if (mine_op_find(NULL, subjects[i].op, &op)) bail("%s", mine_last_error());
    group_begin("%s of %d bits, as on the CPU", subjects[i].op, subjects[i].type.bits);
    for (int turn = 0; turn < 20; turn++, group_count(1))
      one_row_call(subjects[i].op, op, subjects[i].type, subjects[i].result, subjects[i].is_full);
    group_end();
    mine_op_release(op);
  }
}

#if defined(WITH_SCANS)
/* A user's scan with states, or the derivative of one: one call along an axis, on both. */
static void one_scan_call(const char *name, mine_op *op, int n_in, int n_out, const DLDataType *types) {
  static const int extents[] = {1, 2, 3, 17, 256, 300, 1000};
  const int rank = 1 + below(3), axis = below(rank), shift = n_in > 1 ? 0 : below(3), is_reverse = below(2);
  int64_t shape[MAX_RANK], total = 1;
  for (int d = 0; d < rank; d++) {
    shape[d] = extents[below(7)];
    while (total * shape[d] > 3000) shape[d] /= 2;
    total *= shape[d];
  }
  DLTensor *on_cpu[MOST], *on_device[MOST];
  for (int k = 0; k < n_in + n_out; k++) {
    if (k == n_in && shift == 1) shape[axis]++; /* include_initial */
    fill(&operands[k], types[k]);
    lay_out(&operands[k], types[k], rank, shape, k >= n_in);
    on_cpu[k] = &operands[k].on_cpu, on_device[k] = &operands[k].on_device;
    on_device[k]->device = (DLDevice){kDLCUDA, 1};
    on_cpu[k]->device = (DLDevice){kDLCPU, 0};
    on_cpu[k]->ndim = on_device[k]->ndim = rank;
  }
  const mine_scalar values[4] = {{MINE_I64, {.i = 1 << axis}}, {MINE_I64, {.i = shift == 1}}, {MINE_I64, {.i = shift == 2}}, {MINE_I64, {.i = is_reverse}}};
  const mine_call call = {.size = sizeof call, .params = values, .n_params = 4};
  const mine_status wanted = mine_op_call(op, n_in, on_cpu, n_out, on_cpu + n_in, &call);
  if (wanted) group_fail("%s: %s", name, mine_last_error());
  const mine_status got = mine_op_call(op, n_in, on_device, n_out, on_device + n_in, &call);
  if (got) group_fail("%s: status %d on the device: %s", name, got, mine_last_error());
  for (int k = n_in; k < n_in + n_out; k++)
    if (memcmp(operands[k].memory[0], operands[k].memory[1], REGION)) group_fail("%s: output %d: other bytes, axis %d of %d, shift %d", name, k - n_in, axis, rank, shift);
}

/* Calls an op that scans, along the only axis of its operands. */
static mine_status scan(const char *name, int n_in, DLTensor *const *in, int n_out, DLTensor *const *out, int includes_initial) {
  const mine_scalar values[2] = {{MINE_I64, {.i = 1}}, {MINE_I64, {.i = includes_initial}}};
  const mine_call call = {.size = sizeof call, .params = values, .n_params = 2};
  mine_op *op;
  if (mine_op_find(NULL, name, &op)) bail("%s", mine_last_error());
  const mine_status status = mine_op_call(op, n_in, in, n_out, out, &call);
  mine_op_release(op);
  return status;
}

/* Numbers with exact sums and products. */
static void check_known_scans(void) {
  const DLDevice cuda = {kDLCUDA, 0}, cpu = {kDLCPU, 0};
  enum { N = 1000 };
  static float grad[N], x[N], norm[N + 1], out[N + 1], back[N], largest[N];
  static int64_t places[N], n = N, n_and_one = N + 1;
  float squares = 0, behind = 0, top = -1;
  int64_t at = -1;
  int n_bad = 0;
  for (int i = 0; i < N; i++) grad[i] = (float)(i % 7 - 3), x[i] = (float)(i * 37 % 101), out[i] = 2;
  DLTensor g = {grad, cuda, 1, F32, &n, NULL, 0}, in = {x, cuda, 1, F32, &n, NULL, 0}, to = {norm, cuda, 1, F32, &n_and_one, NULL, 0};
  DLTensor of = {out, cuda, 1, F32, &n, NULL, 0}, to_x = {back, cuda, 1, F32, &n, NULL, 0}, values = {largest, cuda, 1, F32, &n, NULL, 0};
  DLTensor indices = {places, cuda, 1, I64, &n, NULL, 0};
  DLTensor *const ins[3] = {&g, &in, &of}, *const norms[1] = {&to}, *const found[2] = {&values, &indices}, *const backs[1] = {&to_x};
  is_int(scan("acme.norm", 1, ins + 1, 1, norms, 1), MINE_OK, "a scan");
  n_bad += norm[0] != 0.5f;
  for (int i = 0; i < N; i++) squares += x[i] * x[i], n_bad += norm[i + 1] != sqrtf(squares);
  is_int(n_bad, 0, "  the result of no elements, then norms");
  is_int(scan("acme.first_max", 1, ins + 1, 2, found, 0), MINE_OK, "a scan of two outputs");
  for (int i = 0; i < N; i++) {
    if (x[i] > top) top = x[i], at = i;
    n_bad += largest[i] != top || places[i] != at;
  }
  is_int(n_bad, 0, "  the largest so far, and its first place");
  is_int(scan("acme.norm_backward", 3, ins, 1, backs, 0), MINE_OK, "the derivative of a scan");
  for (int i = N - 1; i >= 0; i--) behind += grad[i] / 2, n_bad += back[i] != x[i] * behind;
  is_int(n_bad, 0, "  sums from the end");
  in.device = to.device = g.device = of.device = to_x.device = cpu;
  const mine_status wanted = has_c() ? MINE_OK : MINE_E_DEVICE;
  is_int(scan("acme.norm", 1, ins + 1, 1, norms, 1), wanted, "a scan on the CPU");
  if (!has_c()) has_str(mine_last_error(), "acme.norm: its tensors are on the cpu, which no kernels are built for", "  said");
  is_int(scan("acme.norm_backward", 3, ins, 1, backs, 0), wanted, "a derivative of one there");
  if (!has_c()) has_str(mine_last_error(), "acme.norm_backward: its tensors are on the cpu, which no kernels are built for", "  said");
}

static void check_scans(void) {
  static const struct { const char *op; int n_in, n_out; DLDataType types[MOST]; } subjects[] = {
      {"acme.first_max", 1, 2, {{kDLFloat, 32, 1}, {kDLFloat, 32, 1}, {kDLInt, 64, 1}}},
      {"acme.first_max", 1, 2, {{kDLInt, 32, 1}, {kDLInt, 32, 1}, {kDLInt, 64, 1}}},
      {"acme.norm", 1, 1, {{kDLFloat, 16, 1}, {kDLFloat, 16, 1}}},
      {"acme.norm_backward", 3, 1, {{kDLFloat, 32, 1}, {kDLFloat, 32, 1}, {kDLFloat, 32, 1}, {kDLFloat, 32, 1}}}};
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
    mine_op *op;
    if (mine_op_find(NULL, subjects[i].op, &op)) bail("%s", mine_last_error());
    group_begin("%s of %d bits, as on the CPU", subjects[i].op, subjects[i].types[0].bits);
    for (int turn = 0; turn < 20; turn++, group_count(1)) one_scan_call(subjects[i].op, op, subjects[i].n_in, subjects[i].n_out, subjects[i].types);
    group_end();
    mine_op_release(op);
  }
}
#endif

static void check_total(void) {
  const DLDevice cuda = {kDLCUDA, 0}, cpu = {kDLCPU, 0};
  int64_t total = 0;
  int32_t *x = (int32_t *)operands[0].memory[0];
  for (int i = 0; i < 1000; i++) x[i] = i;
  DLTensor a = vector(0, I32, cuda), sum = {&total, cuda, 0, I64, NULL, NULL, 0};
  char text[1000];
  const DLTensor *in = &a;
  DLTensor *out = &sum;
  is_int(mine_sum(&a, &sum, NULL), MINE_OK, "a sum of all");
  is_int((int)total, 499500, "  as it should be");
  is_int(mine_op_explain(mine_builtin_sum(), 1, (DLTensor **)(uintptr_t)&in, 1, &out, NULL, text, sizeof text), MINE_OK, "explained");
  has_str(text, "variant: mine_qc_sum_i32_i64_nd_ss\ndevice: cuda:0\n", "  names the kernel");
  a.device = sum.device = cpu;
  is_int(mine_sum(&a, &sum, NULL), has_c() ? MINE_OK : MINE_E_DEVICE, "on the CPU");
}

/* ---- What is refused, and said ---- */

static void check_sentences(void) {
  const DLDevice cuda = {kDLCUDA, 0}, third = {kDLCUDA, 2}, cpu = {kDLCPU, 0};
  DLTensor a = vector(0, F32, cuda), b = vector(1, F16, cuda), c = vector(2, F32, cuda), *in[2] = {&a, &b}, *out[1] = {&c};
  mine_op *add, *gelu;
  mine_op_find(NULL, "add", &add);
  mine_op_find(NULL, "gelu", &gelu);
  is_int(mine_add(&a, &b, &c, NULL), MINE_E_UNSUPPORTED, "dtypes that no kernel takes together");
  is_str(mine_last_error(), "add: no CUDA kernels are built for f32, f16, f32; cast the operands to one dtype with astype",
         "  said");
  DLTensor i = vector(0, I32, cuda), d = vector(2, (DLDataType){kDLFloat, 64, 1}, cuda);
  in[0] = &i;
  out[0] = &d;
  is_int(mine_op_call(gelu, 1, in, 1, out, NULL), MINE_OK, "a float's function of an integer");
  in[0] = &a;
  out[0] = &c;
  b = vector(1, F32, cuda);
  char text[1000];
  size_t bytes = 1;
  is_int(mine_op_explain(add, 2, in, 1, out, NULL, text, sizeof text), MINE_OK, "explain");
  has_str(text, "variant: mine_qc_add_f32_f32_f32_1d_ccc\ndevice: cuda:0\n", "  names the kernel");
  is_int(mine_op_workspace(add, 2, in, 1, out, NULL, &bytes), MINE_OK, "a workspace");
  is_int((int)bytes, 0, "  is not wanted");
  mine_shape shape = {.size = sizeof shape};
  is_int(mine_op_infer(add, 2, in, 1, &shape), MINE_OK, "infer");
  ok(shape.device.device_type == kDLCUDA && shape.ndim == 1 && shape.shape[0] == 1000, "  says where and what");

  DLTensor numbers = vector(2, F32, cuda), shorts = vector(2, (DLDataType){kDLInt, 16, 1}, cuda), *one[1] = {&numbers};
  is_int(mine_op_explain(mine_builtin_arange(), 0, NULL, 1, one, NULL, text, sizeof text), MINE_OK, "explain of an index op");
  has_str(text, "variant: mine_qc_arange_b8_f32_1d_bc\ndevice: cuda:0\n", "  names the kernel");
  is_int(mine_arange(&shorts, NULL), MINE_E_DTYPE, "a dtype that no kernel gives");
  has_str(mine_last_error(), "arange: output 1 (out): dtype i16 is not built into this library", "  said");
  numbers.data = operands[2].memory[0] + 2;
  is_int(mine_arange(&numbers, NULL), MINE_E_ALIGNMENT, "items between addresses of theirs");
  has_str(mine_last_error(), "arange: output 1 (out): its address is no multiple of 4", "  said");

  const mine_call call = {.size = sizeof call, .stream = &shape};
  fake_runtime.is_capturing = 1;
  DLTensor x = vector(0, F16, cuda), y = vector(1, F16, cuda), z = vector(2, F16, cuda);
  const int n_asked = fake_runtime.n_asked;
  is_int(mine_add(&x, &y, &z, &call), MINE_E_CAPTURING, "a kernel that is not loaded, while a stream is captured");
  has_str(mine_last_error(), "prepare it before", "  said");
  fake_runtime.is_capturing = 0;
  is_int(mine_add(&x, &y, &z, &call), MINE_OK, "not while one is captured");
  is_int(fake_runtime.n_asked, n_asked + 1, "  asked once");
  fake_runtime.is_capturing = 1;
  is_int(mine_add(&x, &y, &z, &call), MINE_OK, "a kernel that is loaded, while a stream is captured");
  is_int(fake_runtime.n_asked, n_asked + 1, "  not asked again");
  fake_runtime.is_capturing = 0;

  fake_runtime.launch_error = cudaErrorLaunchFailure;
  is_int(mine_add(&x, &y, &z, &call), MINE_E_DRIVER, "a launch that fails");
  is_str(mine_last_error(), "add: mine_qc_add_f16_f16_f16_1d_ccc: cudaErrorLaunchFailure: what went wrong", "  said");
  is_int(fake_runtime.last_error, cudaSuccess, "  to the host alone");
  fake_runtime.launch_error = cudaErrorMemoryAllocation;
  is_int(mine_add(&x, &y, &z, &call), MINE_E_MEMORY, "for lack of memory");
  fake_runtime.launch_error = cudaSuccess;
  fake_runtime.device = 1;
  a.device = b.device = c.device = third;
  is_int(mine_add(&a, &b, &c, NULL), MINE_E_DEVICE, "no such device");
  is_int(fake_runtime.device, 1, "  leaves the current one");

  a = vector(0, F32, cpu), b = vector(1, F32, cpu), c = vector(2, F32, cpu);
  is_int(mine_add(&a, &b, &c, NULL), has_c() ? MINE_OK : MINE_E_DEVICE, "tensors on the CPU");
  if (!has_c()) has_str(mine_last_error(), "add: its tensors are on the cpu, which no kernels are built for", "  said");
  DLTensor h = vector(1, F16, cpu);
  is_int(mine_astype(&a, &h, NULL), has_c() ? MINE_OK : MINE_E_DEVICE, "a cast there");
  b = vector(1, F32, cuda);
  is_int(mine_add(&a, &b, &c, NULL), MINE_E_DEVICE, "some there and some not");
  mine_op_release(add);
  mine_op_release(gelu);
}

static void check_sums(void) {
  const DLDevice cuda = {kDLCUDA, 0};
  float *x = (float *)operands[0].memory[0], *y = (float *)operands[1].memory[0], *z = (float *)operands[2].memory[0];
  int n_bad = 0;
  for (int i = 0; i < 1000; i++) x[i] = (float)i, y[i] = 0.5f;
  DLTensor a = vector(0, F32, cuda), b = vector(1, F32, cuda), c = vector(2, F32, cuda), h = vector(3, F16, cuda);
  is_int(mine_add(&a, &b, &c, NULL), MINE_OK, "a sum");
  for (int i = 0; i < 1000; i++) n_bad += z[i] != (float)i + 0.5f;
  is_int(mine_astype(&a, &h, NULL), MINE_OK, "a cast");
  is_int(mine_astype(&h, &c, NULL), MINE_OK, "  and back");
  for (int i = 0; i < 1000; i++) n_bad += z[i] != (float)i;
  const mine_scalar ends[2] = {{MINE_I64, {.i = 0}}, {MINE_I64, {.i = 999 * 3}}};
  const mine_call from_to = {.size = sizeof from_to, .params = ends, .n_params = 2};
  is_int(mine_arange(&a, NULL), MINE_OK, "indices");
  is_int(mine_linspace(&c, &from_to), MINE_OK, "  numbers in a line");
  for (int i = 0; i < 1000; i++) n_bad += (x[i] != (float)i) + (z[i] != (float)(3 * i));
  is_int(n_bad, 0, "all as they should be");
}

#if defined(WITH_TVM_FFI)
#include "abi/mine_tvm_ffi_abi.h"
mine_qn_tvm_function __tvm_ffi_add;
static int a_stream, asked_id = -1;

/* libtvm_ffi's, as far as it is needed here. */
__attribute__((visibility("default"))) void *TVMFFIEnvGetStream(int32_t type, int32_t id) {
  asked_id = type == kDLCUDA ? id : -2;
  return &a_stream;
}

static void check_tvm_ffi(void) {
  const DLDevice cuda = {kDLCUDA, 1};
  DLTensor a = vector(0, F32, cuda), b = vector(1, F32, cuda), c = vector(2, F32, cuda);
  const mine_qn_tvm_any args[3] = {{.type_index = MINE_QN_TVM_DLTENSOR, .v.pointer = &a}, {.type_index = MINE_QN_TVM_DLTENSOR, .v.pointer = &b},
                                   {.type_index = MINE_QN_TVM_DLTENSOR, .v.pointer = &c}};
  float *x = (float *)operands[0].memory[0], *y = (float *)operands[1].memory[0], *z = (float *)operands[2].memory[0];
  for (int i = 0; i < 1000; i++) x[i] = (float)i, y[i] = 0.5f, z[i] = 0;
  is_int(__tvm_ffi_add(NULL, args, 3, NULL), 0, "by tvm-ffi");
  ok(z[1] == 1.5f && z[999] == 999.5f, "  a sum");
  is_int(asked_id, 1, "  the stream of the tensors' device is asked for");
  ok(fake_runtime.stream == (cudaStream_t)&a_stream && fake_runtime.launched_on == 1, "  and launched on");
}
#endif

int main(void) {
  rng_seed(&random_state, 750);
  for (int k = 0; k < MOST; k++)
    for (int side = 0; side < 2; side++)
      if (!(operands[k].memory[side] = calloc(1, REGION))) bail("no memory");
  check_sentences();
  check_sums();
  check_total();
  if (has_c()) check_ops(), check_rows();
#if defined(WITH_SCANS)
  if (has_c()) check_scans();
  check_known_scans();
#endif
#if defined(WITH_TVM_FFI)
  check_tvm_ffi();
#endif
  return done_testing();
}
