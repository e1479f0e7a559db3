/* SPDX-License-Identifier: Apache-2.0
 *
 * memo.c: see memo.h. */
#include "call/memo.h"

#include <string.h>

/* Calls of a layout before a plan is made: making one costs about as much as a few calls. */
#define WORTHWHILE 4

static int64_t type_word(const DLTensor *tensor) {
  DLDataType type = tensor->dtype;
  return (int64_t)tensor->ndim << 32 | (int64_t)type.lanes << 16 | type.bits << 8 | type.code;
}

/* Appends a tensor's layout. Returns the number of words, or -1: not to be remembered. */
static int32_t append_layout(const DLTensor *tensor, int64_t *words, int32_t n) {
  int32_t ndim = tensor->ndim;
  if (n < 0 || ndim < 0 || n + 1 + 2 * ndim > MEMO_WORDS || (ndim && !tensor->strides)) return -1;
  words[n++] = type_word(tensor);
  for (int32_t d = 0; d < ndim; d++) words[n++] = tensor->shape[d];
  for (int32_t d = 0; d < ndim; d++) words[n++] = tensor->strides[d];
  return n;
}

/* The same of a tensor in the CPU's memory. */
static int32_t append(const DLTensor *tensor, int64_t *words, int32_t n) {
  return tensor->device.device_type == kDLCPU ? append_layout(tensor, words, n) : -1;
}

/* Appends a parameter, bit by bit. */
static int32_t append_param(const quern_scalar *param, int64_t *words, int32_t n) {
  const int32_t n_values = param->kind == QUERN_C128 ? 2 : 1;
  if (n < 0 || n + 1 + n_values > MEMO_WORDS) return -1;
  words[n++] = param->kind;
  memcpy(words + n, &param->v, (size_t)n_values * sizeof *words);
  return n + n_values;
}

/* The words behind those that are the tensor's layout; NULL: they are another's. */
static inline const int64_t *skip(const DLTensor *tensor, const int64_t *words) {
  const int32_t ndim = tensor->ndim;
  int64_t different = *words ^ type_word(tensor);
  if (different || tensor->device.device_type != kDLCPU || (ndim && !tensor->strides)) return NULL;
  for (int32_t d = 0; d < ndim; d++) different |= (tensor->shape[d] ^ words[1 + d]) | (tensor->strides[d] ^ words[1 + ndim + d]);
  return different ? NULL : words + 1 + 2 * ndim;
}

static inline const int64_t *skip_param(const quern_scalar *param, const int64_t *words) {
  int64_t values[2];
  memcpy(values, &param->v, sizeof values);
  if (*words != param->kind || words[1] != values[0]) return NULL;
  if (param->kind != QUERN_C128) return words + 2;
  return words[2] == values[1] ? words + 3 : NULL;
}

/* As many words follow as the ones before say. */
int memo_knows(const memo *memo, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out, const quern_call *how) {
  const int64_t *words = memo->words, *end = words + memo->n_words;
  if (words == end) return 0;
  for (int32_t k = 0; k < n_in; k++)
    if (!(words = skip(in[k], words))) return 0;
  for (int32_t k = 0; k < n_out; k++)
    if (!(words = skip(out[k], words))) return 0;
  for (int32_t k = 0; k < how->n_params; k++)
    if (words == end || !(words = skip_param(&how->params[k], words))) return 0;
  return words == end;
}

void memo_clear(memo *memo) {
  quern_plan *plan = memo->plan;
  memo->plan = NULL;
  memo->n_words = memo->n_seen = 0;
  quern_plan_release(plan);
}

__attribute__((noinline)) int memo_keep(memo *memo, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                                        const quern_call *how, int is_small) {
  int64_t words[MEMO_WORDS];
  int32_t n = 0;
  if (memo->is_running) return 0;
  for (int32_t k = 0; k < n_in; k++) n = append(in[k], words, n);
  for (int32_t k = 0; k < n_out; k++) n = append(out[k], words, n);
  for (int32_t k = 0; k < how->n_params; k++) n = append_param(&how->params[k], words, n);
  if (n <= 0) return 0;
  memo_clear(memo);
  memcpy(memo->words, words, (size_t)n * sizeof *words);
  memo->n_words = n;
  memo->is_small = is_small;
  return 1;
}

quern_plan *memo_begin(memo *memo, quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                       const quern_call *how) {
  if (memo->is_running) return NULL;
  if (!memo->plan && memo->n_seen < WORTHWHILE && ++memo->n_seen == WORTHWHILE) {
    const quern_call with = {.size = sizeof with, .params = how->params, .n_params = how->n_params};
    memo->is_running = 1;
    if (quern_op_prepare(op, n_in, in, n_out, out, &with, &memo->plan)) memo->plan = NULL; /* not tried again for this call */
  }
  memo->is_running = memo->plan != NULL;
  return memo->plan;
}

/* ---- The last call ---- */

static int64_t device_word(DLDevice device) { return (int64_t)device.device_type << 32 | (uint32_t)device.device_id; }

void memo_note(memo_words *last, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out, const quern_call *how) {
  int32_t n = 1;
  last->words[0] = n_in + n_out ? device_word((n_out ? out[0] : in[0])->device) : 0;
  for (int32_t k = 0; k < n_in; k++) n = append_layout(in[k], last->words, n);
  for (int32_t k = 0; k < n_out; k++) n = append_layout(out[k], last->words, n);
  for (int32_t k = 0; k < how->n_params; k++) n = append_param(&how->params[k], last->words, n);
  last->n = n < 0 ? 0 : n;
}

int32_t memo_call(const memo_words *last, const memo *memo, int32_t n, DLTensor *tensors, int64_t *room, quern_scalar *params) {
  const int64_t *words = last->n ? last->words + 1 : memo->words, *end = last->n ? last->words + last->n : words + memo->n_words;
  DLDevice device = {kDLCPU, 0};
  int32_t n_params = 0;
  if (words == end) return -1;
  if (last->n) device = (DLDevice){(DLDeviceType)(last->words[0] >> 32), (int32_t)last->words[0]};
  for (int32_t k = 0; k < n; k++) {
    const int32_t ndim = (int32_t)(*words >> 32);
    const DLDataType type = {(uint8_t)*words, (uint8_t)(*words >> 8), (uint16_t)(*words >> 16)};
    memcpy(room, words + 1, 2 * (size_t)ndim * sizeof *room);
    tensors[k] = (DLTensor){.device = device, .ndim = ndim, .dtype = type, .shape = room, .strides = room + ndim};
    words += 1 + 2 * ndim;
    room += 2 * ndim;
  }
  for (; words < end; n_params++) {
    quern_scalar *param = &params[n_params];
    const int32_t n_values = *words == QUERN_C128 ? 2 : 1;
    *param = (quern_scalar){.kind = (int32_t)*words};
    memcpy(&param->v, words + 1, (size_t)n_values * sizeof *words);
    words += 1 + n_values;
  }
  return n_params;
}
