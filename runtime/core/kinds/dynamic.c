/* dynamic.c: see dynamic.h.
 *
 * Both passes walk the inputs in row-major order, block by block. The first counts, slice by slice; the second knows by that
 * where each slice's share of the output begins. Another thread may change the inputs between the two, or meanwhile: a slice
 * writes no more than was counted for it. */
#include "core/kinds/dynamic.h"

#include <string.h>

#include "core/call/dispatch.h"
#include "core/cpu/engine.h"
#include "core/base/float_env.h"
#include "core/op/params.h"
#include "core/base/status.h"

/* More than that many threads are not used. */
#define MOST_SLICES 64

_Static_assert(QN_BLOCK <= 1024, "coordinate.c.in: places are below 1024");

/* ---- Decided ---- */

/* One row for each element found, of so many columns; -1: a row is one item. */
static int32_t columns_of(const qn_dynamic *dynamic) { return dynamic->builtin->rule == QN_RULE_PLACES ? dynamic->ndim : -1; }

quern_status qn_dynamic_check_machine(const qn_dynamic *dynamic) {
  const quern_op_info *info = &dynamic->builtin->info;
  const DLDevice device = dynamic->device;
  char text[QN_TENSOR_DEVICE_CHARS];
  if (device.device_type == kDLCPU) return qn_dispatch_check_cpu_kernels(info);
  return qn_status_fail(QUERN_E_DEVICE, "%s: its tensors are on %s, but an op whose output's shape depends on values runs on the "
                        "cpu only; copy them there", info->name, qn_tensor_device_text(device, text));
}

static quern_status read_output(const quern_op_info *info, const DLTensor *tensor, const quern_call *call, int needs_data,
                                qn_dynamic *dynamic) {
  const int32_t n_in = info->n_in;
  quern_status status = qn_tensor_read(tensor, info->name, &info->args[n_in], 0, needs_data, &dynamic->out);
  if (status) return status;
  dynamic->sizes[n_in] = dynamic->out.size;
  status = qn_resolve_output(dynamic->builtin, &dynamic->signature, dynamic->out.dtype);
  return status || !call ? status : qn_dispatch_check_flags(info, call->out_flags);
}

/* The nest of the inputs alone, its dimensions in row-major order: as they would be for a compact output. */
static void set_nest(const quern_op_info *info, const qn_tensor *in, qn_dynamic *dynamic) {
  qn_nest *nest = &dynamic->job.nest;
  qn_tensor compact = {.n_elements = 1, .shape = dynamic->shape, .ndim = dynamic->ndim, .size = 1, .compact = 1};
  for (int32_t d = 0; d < dynamic->ndim; d++)
    compact.n_elements = (int64_t)((uint64_t)compact.n_elements * (uint64_t)dynamic->shape[d]);
  qn_tensor_normalise(dynamic->ndim, dynamic->shape, info->n_in, in, 1, &compact, nest);
  nest->n_operands = info->n_in;
}

/* Not inlined: what it needs on the stack is to be free again when the op runs. */
__attribute__((noinline)) quern_status qn_dynamic_decide(const quern_op *op, DLTensor *const *in, DLTensor *const *out,
                                                         const quern_call *call, int needs_data, qn_dynamic *dynamic) {
  const quern_op_info *info = &op->builtin->info;
  qn_tensor tensors[QN_DYNAMIC_INPUTS];
  uint8_t dtypes[QN_DYNAMIC_INPUTS];
  qn_params none;
  quern_status status;
  qn_assert(info->n_out == 1 && info->n_in >= 1 && info->n_in <= QN_DYNAMIC_INPUTS);
  dynamic->builtin = op->builtin;
  for (int32_t k = 0; k < info->n_in; k++) {
    if ((status = qn_tensor_read(in[k], info->name, &info->args[k], k, needs_data, &tensors[k]))) return status;
    dtypes[k] = tensors[k].dtype;
    dynamic->sizes[k] = tensors[k].size;
  }
  if ((status = qn_resolve_inputs(op->builtin, dtypes, &dynamic->signature))) return status;
  if (out && (status = read_output(info, out[0], call, needs_data, dynamic))) return status;
  status = qn_tensor_broadcast(info->name, info->args, info->n_in, tensors, dynamic->shape, &dynamic->ndim);
  if (status) return status;
  status = qn_tensor_check_devices(info->name, info->args, info->n_in, tensors, out ? 1 : 0, &dynamic->out, &dynamic->device);
  if (status) return status;
  if (call && (status = qn_params_convert(info, 0, call->params ? call->n_params : 0, call->params, &none))) return status;
  set_nest(info, tensors, dynamic);
  if (dynamic->job.nest.n_elements == 0) return QUERN_OK;
  if (dynamic->device.device_type != kDLCPU || !qn_packs.stream) return QUERN_OK; /* nothing to plan: shapes are all it is for */
  uint8_t room = columns_of(dynamic) < 0 ? dynamic->sizes[info->n_in - 1] : (uint8_t)sizeof(int32_t);
  qn_job_plan_inputs(&dynamic->signature, dtypes, room, &dynamic->job);
  return QUERN_OK;
}

/* ---- Two passes ---- */

/* What all slices of a call share. */
typedef struct finding {
  const qn_dynamic *dynamic;
  qn_kernel *count;                /* how many conditions hold */
  qn_kernel *coordinate;           /* of PLACES */
  qn_kernel *scatter;              /* of ITEMS that lie apart in the output, else NULL */
  int64_t stride[2];               /* of the output's rows and columns, in bytes */
  int32_t n_slices;
  int64_t begin[MOST_SLICES + 1];  /* where in the output each slice's share begins */
} finding;

/* A slice's share of the output. */
typedef struct share {
  const finding *finding;
  char *to;     /* the next row */
  int64_t left; /* rows */
} share;

static int count_box(void *arg, const qn_engine_box *box) {
  share *share = arg;
  int64_t n;
  char *const ptr[2] = {box->ptr[0], (char *)&n};
  const int64_t stride[2][2] = {{1, 0}, {0, 0}}, extent[3] = {box->count, 1, 0};
  share->finding->count(ptr, stride, extent, NULL);
  share->left += n;
  return 1;
}

static void count_slice(void *arg, int64_t i) {
  finding *finding = arg;
  share share = {.finding = finding};
  qn_engine_walk(&finding->dynamic->job, 1, i, finding->n_slices, count_box, &share);
  finding->begin[i + 1] = share.left;
}

/* Runs the op's kernel over a box: what it finds goes to `to`, which has room for a whole box. Returns how many that are. */
static int64_t find(const qn_dynamic *dynamic, const qn_engine_box *box, char *to) {
  const int32_t n_in = dynamic->job.n_in;
  char *ptr[QN_DYNAMIC_INPUTS + 2];
  int64_t n, stride[QN_DYNAMIC_INPUTS + 2][2] = {{1, 0}}; /* of the condition, and of the count */
  const int64_t extent[3] = {box->count, 1, 0};
  for (int32_t k = 0; k < n_in; k++) ptr[k] = box->ptr[k];
  for (int32_t k = 1; k <= n_in; k++) stride[k][0] = dynamic->job.room_size; /* of items, or of places */
  ptr[n_in] = to;
  ptr[n_in + 1] = (char *)&n;
  dynamic->job.kernel(ptr, (const int64_t(*)[2])stride, extent, NULL);
  return n;
}

static void take(share *share, int64_t n) {
  share->to += n * share->finding->stride[0];
  share->left -= n;
}

static int fill_items(void *arg, const qn_engine_box *box) {
  share *share = arg;
  const finding *finding = share->finding;
  const int64_t size = finding->dynamic->job.room_size;
  const int is_direct = !finding->scatter && share->left >= box->count; /* the kernel may write as many as it looks at */
  int64_t n = find(finding->dynamic, box, is_direct ? share->to : box->room);
  if (n > share->left) n = share->left;
  if (finding->scatter && n) {
    char *const ptr[2] = {box->room, share->to};
    const int64_t stride[2][2] = {{size, 0}, {finding->stride[0], 0}}, extent[3] = {n, 1, 0};
    finding->scatter(ptr, stride, extent, NULL);
  } else if (!is_direct) {
    memcpy(share->to, box->room, (size_t)(n * size));
  }
  take(share, n);
  return share->left > 0;
}

/* Dimension by dimension, the inner one first: coordinates of the places, and what is left of them for the next. */
static int fill_places(void *arg, const qn_engine_box *box) {
  share *share = arg;
  const finding *finding = share->finding;
  const qn_dynamic *dynamic = finding->dynamic;
  int64_t n = find(dynamic, box, box->room), rest = box->first;
  if (n > share->left) n = share->left;
  for (int32_t d = dynamic->ndim - 1; d >= 0 && n; d--) {
    const int64_t whole = dynamic->shape[d], begin = rest % whole, room = whole - begin;
    const int64_t reciprocal = whole <= 1024 ? ((1 << 21) + whole - 1) / whole : 0;
    const int64_t params[4] = {begin, room < INT32_MAX ? room : INT32_MAX, whole, reciprocal};
    char *const ptr[3] = {box->room, box->room, share->to + d * finding->stride[1]};
    const int64_t stride[3][2] = {{sizeof(int32_t), 0}, {sizeof(int32_t), 0}, {finding->stride[0], 0}}, extent[3] = {n, 1, 0};
    finding->coordinate(ptr, stride, extent, params);
    rest /= whole;
  }
  take(share, n);
  return share->left > 0;
}

static void fill_slice(void *arg, int64_t i) {
  const finding *finding = arg;
  const qn_dynamic *dynamic = finding->dynamic;
  share share = {.finding = finding, .left = finding->begin[i + 1] - finding->begin[i]};
  if (share.left == 0) return;
  share.to = dynamic->out.data + finding->begin[i] * finding->stride[0];
  int (*fill)(void *arg, const qn_engine_box *box) = columns_of(dynamic) < 0 ? fill_items : fill_places;
  qn_engine_walk(&dynamic->job, dynamic->job.n_in, i, finding->n_slices, fill, &share);
}

/* A pass: once for each slice. */
static void run_pass(finding *finding, void (*slice)(void *arg, int64_t i), qn_slices *slices) {
  if (finding->n_slices > 1)
    qn_slices_run(slices, finding->n_slices, slice, finding);
  else
    slice(finding, 0);
}

/* How many elements are found; finding->begin is then right. */
static int64_t count_all(const qn_dynamic *dynamic, qn_slices *slices, finding *finding) {
  const int32_t n_slices = dynamic->job.nest.n_elements ? qn_engine_slices(&dynamic->job, slices) : 0;
  finding->dynamic = dynamic;
  finding->n_slices = n_slices < MOST_SLICES ? n_slices : MOST_SLICES;
  finding->begin[0] = 0;
  if (n_slices == 0) return 0;
  finding->count = qn_job_kernel(qn_packs.count, NULL);
  run_pass(finding, count_slice, slices);
  for (int32_t i = 0; i < finding->n_slices; i++) finding->begin[i + 1] += finding->begin[i];
  return finding->begin[finding->n_slices];
}

/* ---- Shapes ---- */

/* The output's for so many elements found; -1: not known. Returns its rank. */
static int32_t shape_of(const qn_dynamic *dynamic, int64_t count, int64_t shape[2]) {
  const int32_t columns = columns_of(dynamic);
  shape[0] = count;
  shape[1] = columns;
  return columns < 0 ? 1 : 2;
}

static void describe(const qn_dynamic *dynamic, int64_t count, quern_shape *out) {
  const uint8_t dtype = dynamic->builtin->rule == QN_RULE_PLACES ? (uint8_t)QN_I64 : dynamic->signature.param;
  int64_t shape[2];
  out->device = dynamic->device;
  out->dtype = (DLDataType){.code = qn_dtype_infos[dtype].code, .bits = qn_dtype_infos[dtype].bits, .lanes = 1};
  out->ndim = shape_of(dynamic, count, shape);
  memcpy(out->shape, shape, (size_t)out->ndim * sizeof shape[0]);
}

quern_status qn_dynamic_infer(const quern_op *op, DLTensor *const *in, quern_shape *out) {
  qn_dynamic dynamic;
  quern_status status = qn_dynamic_decide(op, in, NULL, NULL, 0, &dynamic);
  if (status == QUERN_OK) describe(&dynamic, -1, out);
  return status;
}

quern_status qn_dynamic_measure(const quern_op *op, DLTensor *const *in, quern_shape *out, const quern_call *call) {
  qn_dynamic dynamic;
  finding finding;
  quern_status status = qn_dynamic_decide(op, in, NULL, call, 1, &dynamic);
  if (status || (status = qn_dynamic_check_machine(&dynamic))) return status;
  qn_float_env was = qn_float_env_enter();
  const int64_t count = count_all(&dynamic, qn_registry_slices(op), &finding);
  qn_float_env_leave(was);
  describe(&dynamic, count, out);
  return QUERN_OK;
}

/* ---- Calls ---- */

/* Not inlined, for its stack. */
__attribute__((noinline)) static quern_status check_found(const qn_dynamic *dynamic, int64_t count) {
  const quern_op_info *info = &dynamic->builtin->info;
  const quern_arg_info *arg = &info->args[info->n_in];
  int64_t shape[2];
  qn_nest nest;
  const int32_t ndim = shape_of(dynamic, count, shape);
  quern_status status = qn_tensor_check_shape(info->name, arg, 0, &dynamic->out, ndim, shape);
  if (status) return status;
  qn_tensor_normalise(ndim, shape, 0, NULL, 1, &dynamic->out, &nest);
  return qn_tensor_check_apart(info->name, info->args, &dynamic->job.nest, &nest, dynamic->sizes);
}

/* How the output is written. */
static void begin_fill(const qn_dynamic *dynamic, finding *finding) {
  const qn_tensor *out = &dynamic->out;
  const int64_t size = out->size, *strides = out->strides;
  const int32_t log2 = __builtin_ctz(out->size), columns = columns_of(dynamic);
  finding->stride[0] = size * (strides ? strides[0] : columns < 0 ? 1 : columns);
  finding->stride[1] = columns < 0 ? 0 : size * (strides ? strides[1] : 1);
  finding->scatter = columns < 0 && finding->stride[0] != size ? qn_job_kernel(qn_packs.scatter[log2], NULL) : NULL;
  if (columns >= 0) finding->coordinate = qn_job_kernel(qn_packs.coordinate[finding->stride[0] != size], NULL);
}

quern_status qn_dynamic_call(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call) {
  qn_dynamic dynamic;
  finding finding;
  quern_status status = qn_dynamic_decide(op, in, out, call, 1, &dynamic);
  if (status || (status = qn_dynamic_check_machine(&dynamic))) return status;
  qn_slices *slices = qn_registry_slices(op);
  qn_float_env was = qn_float_env_enter();
  const int64_t count = count_all(&dynamic, slices, &finding);
  if ((status = check_found(&dynamic, count)) == QUERN_OK && dynamic.out.n_elements) {
    begin_fill(&dynamic, &finding);
    run_pass(&finding, fill_slice, slices);
  }
  qn_float_env_leave(was);
  return status;
}
