/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_compact.c: ops with an output shape that depends on values: they select the elements where the first input is not 0. The
 * output is the second input's items there, or, if it has a dtype of its own, the elements' indices, a row for each. CPU only;
 * no memory beyond the operands but the slice's stack.
 *
 * Both passes walk the inputs in row-major order, block by block. The first counts the elements of each slice, which gives the
 * start of each slice's share of the output; the second writes. Another thread may change the inputs in between or meanwhile,
 * so a slice never writes more than was counted for it. */
#include "core/kinds/kind_compact.h"

#include <stdatomic.h>
#include <string.h>

#include "core/base/float_env.h"
#include "core/base/status.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/engine.h"
#include "core/cpu/tiles.h"
#include "core/op/decide.h"
#include "core/op/kind.h"
#include "core/tensor/apart.h"
#include "core/tensor/device.h"

extern const qn_kind qn_kind_compact;

/* The most slices, and so threads, of a call. */
#define MOST_SLICES 64

_Static_assert(QN_BLOCK <= 1024, "coordinate.c.in: indices in a block are below 1024");

/* The condition and the items. There is one output. */
#define MOST_INPUTS 2

/* A decided call, before the number of elements found is known. */
typedef struct compact_walk {
  const qn_builtin *builtin;
  DLDevice device;
  uint8_t sizes[MOST_INPUTS + 1]; /* bytes an item */
  qn_tensor out;                  /* if the call has one */
  int32_t ndim;
  int64_t shape[QUERN_MAX_NDIM];  /* the inputs' broadcast shape */
  qn_signature signature;
  qn_nest nest;                   /* of the inputs alone, its dimensions in row-major order */
  char *to;                       /* the output's first byte */
  qn_job job;                     /* set if there are elements and kernels */
} compact_walk;

/* ---- Dtypes ---- */

/* Whether the output is indices, not items. */
static int gives_indices(const qn_builtin *builtin) { return builtin->results[0] != QN_DTYPE_NONE; }

/* dtypes: of the inputs; there may be no output yet. */
static quern_status resolve_inputs(const qn_builtin *builtin, const uint8_t *dtypes, qn_signature *signature) {
  uint8_t promoted;
  quern_status status = qn_resolve_promoted(builtin, dtypes, &promoted);
  if (status) return status;
  qn_signature_begin(signature, 0, 0);
  signature->temp_bytes = gives_indices(builtin) ? sizeof(int32_t) : qn_dtype_infos[promoted].size; /* one element found */
  signature->param = promoted;
  for (int32_t k = 0; k < builtin->info.n_in; k++) signature->compute_dtypes[k] = k == 0 ? QN_BOOL : promoted;
  qn_resolve_variants(builtin, gives_indices(builtin) ? QN_BOOL : qn_dtype_infos[promoted].bits_dtype, signature);
  return QUERN_OK;
}

static quern_status resolve_output(const qn_builtin *builtin, const qn_signature *signature, uint8_t given) {
  const quern_op_info *info = &builtin->info;
  const uint8_t result = qn_resolve_result(builtin, signature->param, 0);
  if (given == result) return QUERN_OK;
  return qn_tensor_fail(QUERN_E_DTYPE, info->name, &info->args[info->n_in], 0,
                        "dtype %s, expected %s: what is found is stored as it is; cast it with astype",
                        qn_dtype_infos[given].name, qn_dtype_infos[result].name);
}

/* ---- Decided ---- */

/* The columns of an output row, of which each element found has one; -1: a row is one item. */
static int32_t columns_of(const compact_walk *call) { return gives_indices(call->builtin) ? call->ndim : -1; }

/* Whether the call can run on this machine and device. Not asked for inferring shapes. */
static quern_status check_machine(const compact_walk *call) {
  const quern_op_info *info = &call->builtin->info;
  const DLDevice device = call->device;
  char text[QN_DEVICE_CHARS];
  if (device.device_type == kDLCPU) return qn_cpu_check(info);
  return qn_status_fail(QUERN_E_DEVICE, "%s: its tensors are on %s, but an op whose output's shape depends on values runs on the "
                        "cpu only; copy them there", info->name, qn_device_text(device, text));
}

static quern_status read_output(const quern_op_info *info, const DLTensor *tensor, const quern_call *call, int needs_data,
                                compact_walk *decided) {
  const int32_t n_in = info->n_in;
  quern_status status = qn_tensor_read(tensor, info->name, &info->args[n_in], 0, needs_data, &decided->out);
  if (status) return status;
  decided->sizes[n_in] = decided->out.size;
  decided->to = qn_ref_address(decided->out.ref);
  status = resolve_output(decided->builtin, &decided->signature, decided->out.dtype);
  return status || !call ? status : qn_decide_check_flags(info, call->out_flags);
}

/* Builds the nest of the inputs, its dimensions in row-major order as for a compact output. */
static void set_nest(const quern_op_info *info, const qn_tensor *in, compact_walk *call) {
  qn_nest *nest = &call->nest;
  qn_tensor dense = {.n_elements = 1, .shape = call->shape, .ndim = call->ndim, .size = 1, .compact = 1};
  for (int32_t d = 0; d < call->ndim; d++)
    dense.n_elements = (int64_t)((uint64_t)dense.n_elements * (uint64_t)call->shape[d]);
  qn_tensor_normalise(call->ndim, call->shape, info->n_in, in, 1, &dense, nest);
  nest->n_operands = info->n_in;
}

/* Checks all that does not depend on values. out: NULL if there is no output yet. Not inlined, so that its stack is free when
 * the op runs. */
__attribute__((noinline)) static quern_status decide_compact(const quern_op *op, DLTensor *const *in, DLTensor *const *out,
                                                             const quern_call *call, int needs_data, compact_walk *decided) {
  const quern_op_info *info = &op->builtin->info;
  qn_tensor tensors[MOST_INPUTS];
  uint8_t dtypes[MOST_INPUTS];
  qn_params none;
  quern_status status;
  qn_assert(info->n_out == 1 && info->n_in >= 1 && info->n_in <= MOST_INPUTS);
  decided->builtin = op->builtin;
  for (int32_t k = 0; k < info->n_in; k++) {
    if ((status = qn_tensor_read(in[k], info->name, &info->args[k], k, needs_data, &tensors[k]))) return status;
    dtypes[k] = tensors[k].dtype;
    decided->sizes[k] = tensors[k].size;
  }
  if ((status = resolve_inputs(op->builtin, dtypes, &decided->signature))) return status;
  if (out && (status = read_output(info, out[0], call, needs_data, decided))) return status;
  status = qn_tensor_broadcast(info->name, info->args, info->n_in, tensors, decided->shape, &decided->ndim);
  if (status) return status;
  status = qn_tensor_check_devices(info->name, info->args, info->n_in, tensors, out ? 1 : 0, &decided->out, &decided->device);
  if (status) return status;
  if (call && (status = qn_params_convert(info, 0, 0, NULL, call->params ? call->n_params : 0, call->params, &none))) return status;
  set_nest(info, tensors, decided);
  if (decided->nest.n_elements == 0) return QUERN_OK;
  if (decided->device.device_type != kDLCPU || !qn_packs.stream) return QUERN_OK; /* no job: only shapes are wanted */
  qn_job_plan(&decided->signature, dtypes, &decided->nest, 0, &decided->job);
  return QUERN_OK;
}

/* ---- Tiles ---- */

/* A tile, with its inputs packed for the op's kernel. */
typedef struct visited_tile {
  char *const *ptr; /* [n_in] */
  int64_t first;    /* the row-major index of its first element */
  int64_t count;    /* its number of elements */
  char *found;      /* a buffer for the results of a tile: signature.temp_bytes of each */
} visited_tile;

/* Calls visit(arg, tile) for each tile of part `i` of `n` in order, with the first n_in inputs, until it returns 0. A part may
 * have no tiles. */
static void walk(const compact_walk *call, int32_t n_in, int64_t i, int64_t n, int (*visit)(void *arg, const visited_tile *tile),
                 void *arg) {
  const qn_job *job = &call->job;
  const qn_tiles tiles = {.job = job, .ref = call->nest.ref};
  const int64_t n_tiles = qn_tiles_count(&tiles), first = qn_tiles_part(n_tiles, i, n, 1);
  const int64_t end = qn_tiles_part(n_tiles, i + 1, n, 1);
  QN_IN_SCRATCH(qn_tile_cursor, cursor);
  char *const scratch = cursor->scratch;
  char *ptr[MOST_INPUTS];
  qn_tile tile;
  if (first == end) return;
  qn_tiles_start(job, &tile, cursor->held, scratch);
  qn_tiles_set(&tiles, cursor, first);
  visited_tile visited = {.ptr = ptr, .found = scratch + job->temps};
  for (int64_t d = 0, weight = 1; d < job->nest->rank; weight *= job->nest->n[d++]) visited.first += cursor->begin[d] * weight;
  for (int64_t at = first;;) {
    qn_tiles_measure(&tiles, cursor, &tile);
    qn_tiles_load(&tiles, n_in, cursor, &tile, cursor->held, scratch);
    for (int32_t k = 0; k < n_in; k++)
      ptr[k] = job->operand[k].packing == QN_PACKING_IN_PLACE ? cursor->ptr[k] : scratch + job->operand[k].block;
    visited.count = tile.count;
    if (!visit(arg, &visited) || ++at == end) return;
    visited.first += tile.count;
    qn_tiles_next(&tiles, cursor);
  }
}

/* ---- Two passes ---- */

/* The data that all slices of a call share. */
typedef struct compact_finding {
  const compact_walk *call;
  qn_kernel *count;                /* counts true conditions */
  qn_kernel *coordinate;           /* for an output of indices */
  qn_kernel *scatter;              /* for an output of items that are not contiguous; else NULL */
  int64_t stride[2];               /* of the output's rows and columns, in bytes */
  int32_t n_slices;
  int64_t begin[MOST_SLICES + 1];  /* the first output row of each slice's share */
  atomic_int has_lost;             /* 1: a slice found fewer elements than it had counted */
} compact_finding;

/* A slice's share of the output. */
typedef struct compact_share {
  const compact_finding *finding;
  char *to;     /* the next row */
  int64_t left; /* rows not yet written */
} compact_share;

static int count_tile(void *arg, const visited_tile *tile) {
  compact_share *share = arg;
  int64_t n;
  char *const ptr[2] = {tile->ptr[0], (char *)&n};
  const int64_t stride[2][2] = {{1, 0}, {0, 0}}, extent[3] = {tile->count, 1, 0};
  share->finding->count(ptr, stride, extent, NULL);
  share->left += n;
  return 1;
}

static void count_slice(void *arg, int64_t i) {
  compact_finding *finding = arg;
  compact_share share = {.finding = finding};
  walk(finding->call, 1, i, finding->n_slices, count_tile, &share);
  finding->begin[i + 1] = share.left;
}

/* Runs the op's kernel over a tile and stores its results at `to`, which has room for a whole tile. Returns their number. */
static int64_t find(const compact_walk *call, const visited_tile *tile, char *to) {
  const int32_t n_in = call->job.n_in;
  char *ptr[MOST_INPUTS + 2];
  int64_t n, stride[MOST_INPUTS + 2][2] = {{1, 0}}; /* [0]: the condition; the last: the count */
  const int64_t extent[3] = {tile->count, 1, 0};
  for (int32_t k = 0; k < n_in; k++) ptr[k] = tile->ptr[k];
  for (int32_t k = 1; k <= n_in; k++) stride[k][0] = call->signature.temp_bytes; /* of items, or of indices in the block */
  ptr[n_in] = to;
  ptr[n_in + 1] = (char *)&n;
  call->job.kernel(ptr, (const int64_t(*)[2])stride, extent, NULL);
  return n;
}

/* The last row may have a stride of any number, and nothing lies behind it. */
static void take(compact_share *share, int64_t n) {
  share->to = qn_tiles_moved(share->to, (int64_t)((uint64_t)n * (uint64_t)share->finding->stride[0]));
  share->left -= n;
}

static int fill_items(void *arg, const visited_tile *tile) {
  compact_share *share = arg;
  const compact_finding *finding = share->finding;
  const int64_t size = finding->call->signature.temp_bytes;
  const int is_direct = !finding->scatter && share->left >= tile->count; /* the kernel may write a whole tile */
  int64_t n = find(finding->call, tile, is_direct ? share->to : tile->found);
  if (n > share->left) n = share->left;
  if (finding->scatter && n) {
    char *const ptr[2] = {tile->found, share->to};
    const int64_t stride[2][2] = {{size, 0}, {finding->stride[0], 0}}, extent[3] = {n, 1, 0};
    finding->scatter(ptr, stride, extent, NULL);
  } else if (!is_direct) {
    memcpy(share->to, tile->found, (size_t)(n * size));
  }
  take(share, n);
  return share->left > 0;
}

/* Splits indices into coordinates, one dimension at a time, the innermost first; quotients remain for the next dimension. */
static int fill_indices(void *arg, const visited_tile *tile) {
  compact_share *share = arg;
  const compact_finding *finding = share->finding;
  const compact_walk *call = finding->call;
  int64_t n = find(call, tile, tile->found), rest = tile->first;
  if (n > share->left) n = share->left;
  for (int32_t d = call->ndim - 1; d >= 0 && n; d--) {
    const int64_t whole = call->shape[d], begin = rest % whole, room = whole - begin;
    const int64_t reciprocal = whole <= 1024 ? ((1 << 21) + whole - 1) / whole : 0;
    const int64_t params[4] = {begin, room < INT32_MAX ? room : INT32_MAX, whole, reciprocal};
    char *const ptr[3] = {tile->found, tile->found, share->to + d * finding->stride[1]};
    const int64_t stride[3][2] = {{sizeof(int32_t), 0}, {sizeof(int32_t), 0}, {finding->stride[0], 0}}, extent[3] = {n, 1, 0};
    finding->coordinate(ptr, stride, extent, params);
    rest /= whole;
  }
  take(share, n);
  return share->left > 0;
}

/* Sets the rows that are left to 0: another thread changed the inputs after they were counted. */
static void clear_rest(compact_finding *finding, compact_share *share) {
  const int32_t columns = columns_of(finding->call);
  atomic_store_explicit(&finding->has_lost, 1, memory_order_relaxed);
  while (share->left > 0) {
    for (int32_t d = 0; d < (columns < 0 ? 1 : columns); d++)
      memset(share->to + d * finding->stride[1], 0, finding->call->out.size);
    take(share, 1);
  }
}

static void fill_slice(void *arg, int64_t i) {
  compact_finding *finding = arg;
  const compact_walk *call = finding->call;
  compact_share share = {.finding = finding, .left = finding->begin[i + 1] - finding->begin[i]};
  if (share.left == 0) return;
  share.to = call->to + finding->begin[i] * finding->stride[0];
  int (*fill_tile)(void *arg, const visited_tile *tile) = columns_of(call) < 0 ? fill_items : fill_indices;
  walk(call, call->job.n_in, i, finding->n_slices, fill_tile, &share);
  if (share.left > 0) clear_rest(finding, &share);
}

/* Runs one pass: `slice` once for each slice. */
static quern_status run_pass(compact_finding *finding, void (*slice)(void *arg, int64_t i), qn_slices *slices) {
  if (finding->n_slices > 1) return qn_slices_run(slices, finding->n_slices, slice, finding);
  slice(finding, 0);
  return QUERN_OK;
}

/* Counts the elements found and sets finding->begin. *status: of the pass, which has counted them in any case. */
static int64_t count_all(const compact_walk *call, qn_slices *slices, compact_finding *finding, quern_status *status) {
  const int32_t n_slices = call->nest.n_elements ? qn_engine_slices(&call->job, slices) : 0;
  finding->call = call;
  finding->n_slices = n_slices < MOST_SLICES ? n_slices : MOST_SLICES;
  finding->begin[0] = 0;
  atomic_init(&finding->has_lost, 0);
  if (n_slices == 0) return 0;
  finding->count = qn_job_kernel(qn_compact_packs.count, NULL);
  *status = run_pass(finding, count_slice, slices);
  for (int32_t i = 0; i < finding->n_slices; i++) finding->begin[i + 1] += finding->begin[i];
  return finding->begin[finding->n_slices];
}

/* ---- Shapes ---- */

/* The output's shape for `count` elements found; -1: not known. Returns its rank. */
static int32_t shape_of(const compact_walk *call, int64_t count, int64_t shape[2]) {
  const int32_t columns = columns_of(call);
  shape[0] = count;
  shape[1] = columns;
  return columns < 0 ? 1 : 2;
}

static void describe(const compact_walk *call, int64_t count, quern_shape *out) {
  const uint8_t dtype = qn_resolve_result(call->builtin, call->signature.param, 0);
  int64_t shape[2];
  out->device = call->device;
  out->dtype = (DLDataType){.code = qn_dtype_infos[dtype].code, .bits = qn_dtype_infos[dtype].bits, .lanes = 1};
  out->ndim = shape_of(call, count, shape);
  memcpy(out->shape, shape, (size_t)out->ndim * sizeof shape[0]);
  qn_tensor_lay_out(out, NULL);
}

/* An extent that depends on values is -1. */
static quern_status infer_compact(const quern_op *op, DLTensor *const *in, quern_shape *out) {
  QN_IN_SCRATCH(compact_walk, decided);
  quern_status status = decide_compact(op, in, NULL, NULL, 0, decided);
  if (status == QUERN_OK) describe(decided, -1, out);
  return status;
}

static quern_status measure_compact(const quern_op *op, DLTensor *const *in, quern_shape *out, const quern_call *call) {
  QN_IN_SCRATCH(compact_walk, decided);
  compact_finding finding;
  quern_status status = decide_compact(op, in, NULL, call, 1, decided);
  if (status || (status = check_machine(decided))) return status;
  qn_float_env was = qn_float_env_enter();
  const int64_t count = count_all(decided, qn_registry_slices(op), &finding, &status);
  qn_float_env_leave(was);
  if (status == QUERN_OK) describe(decided, count, out);
  return status;
}

/* ---- Calls ---- */

/* Checks the output against the number of elements found. Not inlined, for its stack. */
__attribute__((noinline)) static quern_status check_found(const compact_walk *call, int64_t count) {
  const quern_op_info *info = &call->builtin->info;
  const quern_arg_info *arg = &info->args[info->n_in];
  int64_t shape[2];
  QN_IN_SCRATCH(qn_nest, nest);
  const int32_t ndim = shape_of(call, count, shape);
  quern_status status = qn_tensor_check_shape(info->name, arg, 0, &call->out, ndim, shape);
  if (status) return status;
  qn_tensor_normalise(ndim, shape, 0, NULL, 1, &call->out, nest);
  return qn_tensor_check_apart(info->name, info->args, &call->nest, nest, call->sizes);
}

/* Sets the output's strides and the kernels that write it. */
static void begin_fill(const compact_walk *call, compact_finding *finding) {
  const qn_tensor *out = &call->out;
  const int64_t size = out->size;
  const int32_t log2 = __builtin_ctz(out->size), columns = columns_of(call);
  finding->stride[1] = 0;
  for (int32_t d = 0; d < out->ndim; d++) /* along an extent of 1 any number may stand */
    finding->stride[d] = size * (out->strides && out->shape[d] != 1 ? out->strides[d] : d == 0 && columns >= 0 ? columns : 1);
  finding->scatter = columns < 0 && finding->stride[0] != size ? qn_job_kernel(qn_packs.scatter[log2], NULL) : NULL;
  if (columns >= 0) finding->coordinate = qn_job_kernel(qn_compact_packs.coordinate[finding->stride[0] != size], NULL);
}

/* Counts, checks the output, and fills it. */
static quern_status call_compact(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call) {
  QN_IN_SCRATCH(compact_walk, decided);
  compact_finding finding;
  quern_status status = decide_compact(op, in, out, call, 1, decided);
  if (status || (status = check_machine(decided))) return status;
  qn_slices *slices = qn_registry_slices(op);
  qn_float_env was = qn_float_env_enter();
  const int64_t count = count_all(decided, slices, &finding, &status);
  if (status == QUERN_OK && (status = check_found(decided, count)) == QUERN_OK && decided->out.n_elements) {
    begin_fill(decided, &finding);
    status = run_pass(&finding, fill_slice, slices);
    if (finding.has_lost)
      status = qn_status_fail(QUERN_E_SHAPE, "%s: another thread changed %s during the call: fewer elements were found than counted",
                              op->builtin->info.name, op->builtin->info.args[0].name);
  }
  qn_float_env_leave(was);
  return status;
}

static quern_status explain_compact(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                                    qn_strbuf *buf) {
  QN_IN_SCRATCH(compact_walk, decided);
  quern_status status = decide_compact(op, in, out, call, 0, decided);
  if (status || (status = check_machine(decided))) return status;
  const int has_elements = decided->nest.n_elements != 0;
  qn_strbuf_add(buf, "tier: built\nreason: %s\n",
                has_elements ? "built kernels count what there is in blocks of the inputs, then write it"
                             : "there are no elements");
  qn_cpu_explain_job(buf, &op->builtin->info, has_elements ? &decided->job : NULL, qn_registry_slices(op));
  return QUERN_OK;
}

const qn_kind qn_kind_compact = {
    .name = "compact",
    .not_planned = "its output's shape depends on values, which a plan does not know; call it with " QN_SPELLED(quern_op_call),
    .infer = infer_compact, .measure = measure_compact, .call = call_compact,
    .explain = explain_compact};
