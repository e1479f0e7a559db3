/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor.c: the only reader of DLTensor; see tensor.h. Descriptors are untrusted: no product or sum of their
 * numbers is formed unchecked. The first lines of each function are the fast path for common tensors. */
#include "core/tensor/tensor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/tensor/device.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- Words for errors ---- */

const char *qn_tensor_arg_text(const quern_arg_info *arg, int32_t index, char text[QN_TENSOR_ARG_CHARS]) {
  const char *role = arg->is_output ? "output" : "input";
  if (arg->name && arg->name[0])
    snprintf(text, QN_TENSOR_ARG_CHARS, "%s %d (%.64s)", role, (int)index + 1, arg->name);
  else
    snprintf(text, QN_TENSOR_ARG_CHARS, "%s %d", role, (int)index + 1);
  return text;
}

quern_status qn_tensor_fail(quern_status status, const char *op, const quern_arg_info *arg, int32_t index, const char *format, ...) {
  char operand[QN_TENSOR_ARG_CHARS], prefix[QN_TENSOR_ARG_CHARS + 160];
  va_list args;
  snprintf(prefix, sizeof prefix, "%.128s: %s: ", op, qn_tensor_arg_text(arg, index, operand));
  va_start(args, format);
  qn_status_vfail(prefix, format, args);
  va_end(args);
  return status;
}

#define SHAPE_CHARS 256

/* "[2, 3]"; cut if too long: "[2, 3, ...]". */
static const char *shape_text(int32_t ndim, const int64_t *shape, char text[SHAPE_CHARS]) {
  size_t at = 0;
  text[at++] = '[';
  for (int32_t d = 0; d < ndim; d++) {
    if (at > SHAPE_CHARS - 32) {
      at += (size_t)snprintf(text + at, SHAPE_CHARS - at, ", ...");
      break;
    }
    at += (size_t)snprintf(text + at, SHAPE_CHARS - at, d ? ", %lld" : "%lld", (long long)shape[d]);
  }
  text[at++] = ']';
  text[at] = 0;
  return text;
}

const char *qn_tensor_dtype_text(DLDataType type, char text[QN_TENSOR_DTYPE_CHARS]) {
  static const char *const codes[] = {
      "int",         "uint",          "float",           "opaque_handle",   "bfloat",          "complex",
      "bool",        "float8_e3m4",   "float8_e4m3",     "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
      "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn",  "float6_e3m2fn",   "float4_e2m1fn",
  };
  const unsigned code = type.code, bits = type.bits, lanes = type.lanes;
  char *end = text;
  if (code >= sizeof codes / sizeof codes[0])
    end += snprintf(text, QN_TENSOR_DTYPE_CHARS, "code %u, %u bits", code, bits);
  else if (code >= kDLFloat8_e3m4 || (code == kDLBool && bits == 8))
    end += snprintf(text, QN_TENSOR_DTYPE_CHARS, "%s", codes[code]);
  else
    end += snprintf(text, QN_TENSOR_DTYPE_CHARS, "%s%u", codes[code], bits);
  if (lanes != 1) snprintf(end, (size_t)(text + QN_TENSOR_DTYPE_CHARS - end), " x %u lanes", lanes);
  return text;
}

/* ---- Reading ---- */

static uint8_t dtype_of(DLDataType type) {
  const unsigned bits = type.bits;
  if (UNLIKELY(type.code >= QN_DTYPE_N_CODES || bits == 0 || (bits & (bits - 1)) || type.lanes != 1)) return QN_DTYPE_NONE;
  return qn_dtype_of_dlpack[type.code][__builtin_ctz(bits)];
}

static quern_status refuse_dtype(DLDataType type, const char *op, const quern_arg_info *arg, int32_t index) {
  char text[QN_TENSOR_DTYPE_CHARS];
  const uint8_t dtype = dtype_of(type);
  qn_tensor_dtype_text(type, text);
  if (dtype != QN_DTYPE_NONE)
    return qn_tensor_fail(QUERN_E_DTYPE, op, arg, index, "dtype %s is not built into this library", qn_dtype_infos[dtype].name);
  if (type.lanes != 1) return qn_tensor_fail(QUERN_E_DTYPE, op, arg, index, "dtype %s, expected 1 lane", text);
  if (type.bits % 8 != 0)
    return qn_tensor_fail(QUERN_E_DTYPE, op, arg, index, "dtype %s has items of %u bits, expected whole bytes", text, (unsigned)type.bits);
  return qn_tensor_fail(QUERN_E_DTYPE, op, arg, index, "dtype %s is not known to this library%s", text,
                        type.code == kDLComplex ? ": give the real and the imaginary parts" : "");
}

quern_status qn_tensor_read_dtype(DLDataType type, const char *op, const quern_arg_info *arg, int32_t index, uint8_t *dtype) {
  const uint8_t d = dtype_of(type);
  if (UNLIKELY(d == QN_DTYPE_NONE || !qn_dtype_infos[d].built)) return refuse_dtype(type, op, arg, index);
  *dtype = d;
  return QUERN_OK;
}

/* The slow path of qn_tensor_read: large or negative extents, empty tensors, gaps, negative or zero strides. Sets n_elements;
 * [*low, *high) holds all bytes, relative to the first item. */
static quern_status read_layout(const DLTensor *tensor, const char *op, const quern_arg_info *arg, int32_t index,
                                qn_tensor *read, int64_t *low, int64_t *high) {
  char text[SHAPE_CHARS];
  const int32_t ndim = tensor->ndim;
  const int64_t *shape = tensor->shape, *strides = tensor->strides;
  int64_t n = 1, below = 0, above = 0;
  int overflow = 0, empty = 0;
  for (int32_t d = 0; d < ndim; d++) {
    if (shape[d] < 0)
      return qn_tensor_fail(QUERN_E_SHAPE, op, arg, index, "shape %s has a negative extent", shape_text(ndim, shape, text));
    if (shape[d] == 0) empty = 1;
    overflow |= __builtin_mul_overflow(n, shape[d], &n);
  }
  *low = *high = 0;
  if (empty) {
    read->n_elements = 0;
    read->compact = 1;
    return QUERN_OK;
  }
  if (overflow)
    return qn_tensor_fail(QUERN_E_SHAPE, op, arg, index, "shape %s has more than 2^63 - 1 elements", shape_text(ndim, shape, text));
  read->n_elements = n;
  if (!strides) {
    above = n - 1;
  } else {
    for (int32_t d = 0; d < ndim; d++) {
      int64_t reach;
      if (shape[d] == 1) continue;
      overflow |= __builtin_mul_overflow(shape[d] - 1, strides[d], &reach);
      overflow |= reach < 0 ? __builtin_add_overflow(below, reach, &below) : __builtin_add_overflow(above, reach, &above);
    }
  }
  const int64_t limit = QN_TENSOR_MAX_SPAN / read->size;
  if (overflow || below < -limit || above > limit || above - below > limit - 1)
    return qn_tensor_fail(QUERN_E_LAYOUT, op, arg, index, "its items are more than 2^61 bytes apart");
  *low = below * read->size;
  *high = (above + 1) * read->size;
  return QUERN_OK;
}

/* Whether ndim and shape are valid. */
static inline int is_readable(const DLTensor *tensor) {
  return tensor && (uint32_t)tensor->ndim <= QUERN_MAX_NDIM && (tensor->shape || !tensor->ndim);
}

static quern_status refuse_descriptor(const DLTensor *tensor, const char *op, const quern_arg_info *arg, int32_t index) {
  if (!tensor) return qn_tensor_fail(QUERN_E_ARGUMENT, op, arg, index, "the tensor is NULL");
  const int ndim = (int)tensor->ndim;
  if (ndim < 0) return qn_tensor_fail(QUERN_E_ARGUMENT, op, arg, index, "ndim is %d", ndim);
  if (ndim > QUERN_MAX_NDIM)
    return qn_tensor_fail(QUERN_E_LAYOUT, op, arg, index, "%d dimensions, at most %d are served", ndim, QUERN_MAX_NDIM);
  return qn_tensor_fail(QUERN_E_ARGUMENT, op, arg, index, "shape is NULL, with %d dimensions", ndim);
}

quern_status qn_tensor_copy(const DLTensor *tensor, const char *op, const quern_arg_info *arg, int32_t index, DLTensor *copy,
                            int64_t layout[2 * QUERN_MAX_NDIM]) {
  if (!is_readable(tensor)) return refuse_descriptor(tensor, op, arg, index);
  const size_t bytes = (size_t)tensor->ndim * sizeof layout[0];
  *copy = *tensor;
  copy->shape = layout;
  copy->strides = tensor->strides ? layout + QUERN_MAX_NDIM : NULL;
  if (bytes) memcpy(copy->shape, tensor->shape, bytes);
  if (bytes && tensor->strides) memcpy(copy->strides, tensor->strides, bytes);
  return QUERN_OK;
}

quern_status qn_tensor_read(const DLTensor *tensor, const char *op, const quern_arg_info *arg, int32_t index, int needs_data, qn_tensor *read) {
  if (UNLIKELY(!is_readable(tensor))) return refuse_descriptor(tensor, op, arg, index);
  const int32_t ndim = tensor->ndim;
  const int64_t *const shape = tensor->shape, *const strides = tensor->strides;
  const uint8_t dtype = dtype_of(tensor->dtype);
  if (UNLIKELY(dtype == QN_DTYPE_NONE || !qn_dtype_infos[dtype].built)) return refuse_dtype(tensor->dtype, op, arg, index);
  read->shape = shape;
  read->strides = strides;
  read->device = tensor->device;
  read->ndim = ndim;
  read->dtype = dtype;
  const int64_t size = qn_dtype_infos[dtype].size;
  read->size = (uint8_t)size;

  /* The fast path: compact and small. Extents below 2^31 cannot overflow a product kept below
   * 2^31; odd tensors (negative, empty, huge) take the slow path. */
  int64_t n = 1, low = 0, high;
  int odd = 0, compact = 1;
  for (int32_t d = ndim - 1; d >= 0; d--) {
    const int64_t extent = shape[d];
    odd |= (uint64_t)extent - 1 >= 0x7fffffff;
    if (strides && extent != 1 && strides[d] != n) compact = 0;
    n = (int64_t)((uint64_t)n * (uint64_t)extent);
    odd |= (uint64_t)n > 0x7fffffff;
  }
  read->compact = (uint8_t)compact;
  if (LIKELY(!odd && compact)) {
    read->n_elements = n;
    high = n * size;
  } else {
    const quern_status status = read_layout(tensor, op, arg, index, read, &low, &high);
    if (status) return status;
  }

  const uint64_t address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
  read->ref = (qn_ref){tensor->data, (int64_t)tensor->byte_offset};
  if (UNLIKELY(!tensor->data)) {
    if (!needs_data || read->n_elements == 0) return QUERN_OK;
    return qn_tensor_fail(QUERN_E_ARGUMENT, op, arg, index, "data is NULL, with %lld elements", (long long)read->n_elements);
  }
  /* address + low >= 0 and address + high < 2^64 (the last byte of memory is excluded), without a wrap in between */
  if (UNLIKELY((uintptr_t)address != address || address < tensor->byte_offset || address < (uint64_t)-low ||
               (uint64_t)UINTPTR_MAX - address < (uint64_t)high) && read->n_elements) {
    return qn_tensor_fail(QUERN_E_LAYOUT, op, arg, index, "data, byte_offset and strides reach past the address space");
  }
  return QUERN_OK;
}

/* ---- Broadcasting ---- */

static int same_shape(int32_t ndim, const int64_t *a, const int64_t *b) {
  for (int32_t d = 0; d < ndim; d++)
    if (a[d] != b[d]) return 0;
  return 1;
}

/* The extent of dimension `from_end` (1 = the last); 1 where there is none. */
static int64_t extent_of(const qn_tensor *t, int32_t from_end) { return from_end <= t->ndim ? t->shape[t->ndim - from_end] : 1; }

/* Names the first input that does not broadcast with an earlier one in dimension `from_end`. */
static quern_status refuse_broadcast(const char *op, const quern_arg_info *args, const qn_tensor *in, int32_t from_end) {
  char mine[SHAPE_CHARS], other[SHAPE_CHARS], operand[QN_TENSOR_ARG_CHARS];
  int32_t j = 0, k;
  while (extent_of(&in[j], from_end) == 1) j++;
  for (k = j + 1; extent_of(&in[k], from_end) == 1 || extent_of(&in[k], from_end) == extent_of(&in[j], from_end);) k++;
  return qn_tensor_fail(QUERN_E_SHAPE, op, &args[k], k, "shape %s does not broadcast with %s of shape %s",
                        shape_text(in[k].ndim, in[k].shape, mine), qn_tensor_arg_text(&args[j], j, operand),
                        shape_text(in[j].ndim, in[j].shape, other));
}

quern_status qn_tensor_broadcast(const char *op, const quern_arg_info *args, int32_t n_in, const qn_tensor *in, int64_t *shape, int32_t *ndim) {
  int32_t longest = 0, k;
  if (UNLIKELY(n_in == 0)) {
    *ndim = 0;
    return QUERN_OK;
  }
  for (k = 1; k < n_in; k++)
    if (in[k].ndim != in[0].ndim || !same_shape(in[0].ndim, in[k].shape, in[0].shape)) break;
  if (LIKELY(k == n_in)) {
    for (int32_t d = 0; d < in[0].ndim; d++) shape[d] = in[0].shape[d];
    *ndim = in[0].ndim;
    return QUERN_OK;
  }

  for (k = 1; k < n_in; k++)
    if (in[k].ndim > in[longest].ndim) longest = k;
  const int32_t n = in[longest].ndim;
  for (int32_t d = 0; d < n; d++) shape[d] = in[longest].shape[d];
  for (k = 0; k < n_in; k++) {
    int64_t *const mine = shape + n - in[k].ndim;
    for (int32_t d = 0; d < in[k].ndim; d++) {
      const int64_t extent = in[k].shape[d];
      if (extent == mine[d] || extent == 1) continue;
      if (UNLIKELY(mine[d] != 1)) return refuse_broadcast(op, args, in, in[k].ndim - d);
      mine[d] = extent;
    }
  }
  int64_t total = 1;
  int overflow = 0, empty = 0;
  for (int32_t d = 0; d < n; d++) {
    overflow |= __builtin_mul_overflow(total, shape[d], &total);
    empty |= shape[d] == 0;
  }
  if (UNLIKELY(overflow && !empty)) {
    char text[SHAPE_CHARS];
    return qn_tensor_fail(QUERN_E_SHAPE, op, &args[n_in - 1], n_in - 1,
                          "the broadcast shape %s has more than 2^63 - 1 elements", shape_text(n, shape, text));
  }
  *ndim = n;
  return QUERN_OK;
}

quern_status qn_tensor_check_shape(const char *op, const quern_arg_info *arg, int32_t index, const qn_tensor *out,
                                   int32_t ndim, const int64_t *shape) {
  if (LIKELY(out->ndim == ndim && same_shape(ndim, out->shape, shape))) return QUERN_OK;
  char got[SHAPE_CHARS], wanted[SHAPE_CHARS];
  return qn_tensor_fail(QUERN_E_SHAPE, op, arg, index, "shape %s, expected %s", shape_text(out->ndim, out->shape, got),
                        shape_text(ndim, shape, wanted));
}

/* ---- Devices ---- */

/* Whether computation on `main` can use the tensor's memory. */
static int joins(const qn_tensor *tensor, int is_input, DLDevice main) {
  const DLDevice device = tensor->device;
  if (device.device_type == main.device_type && device.device_id == main.device_id) return 1;
  if (qn_device_joins(device) == (int)main.device_type) return 1;
  return is_input && tensor->ndim == 0 && device.device_type == kDLCPU;
}

static inline const qn_tensor *operand_at(int32_t n_in, const qn_tensor *in, const qn_tensor *out, int32_t k) {
  return k < n_in ? &in[k] : &out[k - n_in];
}

/* Refuses operand `at` (inputs, then outputs), on another device than operand `other` before it. */
static quern_status refuse_devices(const char *op, const quern_arg_info *args, int32_t n_in, const qn_tensor *in,
                                   const qn_tensor *out, int32_t at, int32_t other) {
  const qn_tensor *mine = operand_at(n_in, in, out, at), *theirs = operand_at(n_in, in, out, other);
  char device[QN_DEVICE_CHARS], expected[QN_DEVICE_CHARS];
  return qn_tensor_fail(QUERN_E_DEVICE, op, &args[at], at < n_in ? at : at - n_in,
                        "dtype %s on %s, expected the same device as %s %d (%s)", qn_dtype_infos[mine->dtype].name,
                        qn_device_text(mine->device, device), other < n_in ? "input" : "output",
                        (int)(other < n_in ? other : other - n_in) + 1, qn_device_text(theirs->device, expected));
}

quern_status qn_tensor_check_devices(const char *op, const quern_arg_info *args, int32_t n_in, const qn_tensor *in,
                                     int32_t n_out, const qn_tensor *out, DLDevice *device) {
  const int32_t n = n_in + n_out;
  int32_t at = 0;
  while (at < n && LIKELY(qn_device_is_host(operand_at(n_in, in, out, at)->device))) at++;
  *device = at == n ? (DLDevice){kDLCPU, 0} : operand_at(n_in, in, out, at)->device;
  for (int32_t k = 0; k < n && at < n; k++) {
    if (joins(operand_at(n_in, in, out, k), k < n_in, *device)) continue;
    return k < at ? refuse_devices(op, args, n_in, in, out, at, k) : refuse_devices(op, args, n_in, in, out, k, at);
  }
  return QUERN_OK;
}

/* ---- Normalising ---- */

/* Writes one operand's strides, innermost first, of the dimensions in the nest. */
static void fill_strides(const qn_tensor *t, int32_t ndim, const int64_t *shape, int64_t *row) {
  int64_t compact = t->size;
  int32_t r = 0;
  for (int32_t d = 1; d <= ndim; d++) { /* d-th from the end */
    const int64_t extent = d <= t->ndim ? t->shape[t->ndim - d] : 1;
    if (shape[ndim - d] == 1) continue;
    if (extent == 1) {
      row[r++] = 0;
    } else if (t->strides) {
      row[r++] = t->strides[t->ndim - d] * t->size;
    } else {
      row[r++] = compact;
      compact *= extent;
    }
  }
}

static void swap_dimensions(qn_nest *nest, int32_t a, int32_t b) {
  int64_t t = nest->n[a];
  nest->n[a] = nest->n[b];
  nest->n[b] = t;
  for (int32_t k = 0; k < nest->n_operands; k++) {
    t = nest->stride[k][a];
    nest->stride[k][a] = nest->stride[k][b];
    nest->stride[k][b] = t;
  }
}

void qn_tensor_normalise(int32_t ndim, const int64_t *shape, int32_t n_in, const qn_tensor *in, int32_t n_out, const qn_tensor *out, qn_nest *nest) {
  const int32_t n_operands = n_in + n_out;
  int64_t total = 1;
  int flat = 1;
  for (int32_t d = 0; d < ndim; d++) {
    if (UNLIKELY(shape[d] == 0)) {
      total = 0;
      break;
    }
    total = (int64_t)((uint64_t)total * (uint64_t)shape[d]);
  }
  nest->n_operands = n_operands;
  nest->n_elements = total;
  nest->rank = 0;
  nest->apart = nest->has_handles = nest->n_positions = nest->n_joined = nest->n_reduced = 0;
  for (int32_t k = 0; k < n_operands; k++) {
    const qn_tensor *t = operand_at(n_in, in, out, k);
    nest->ref[k] = t->ref;
    nest->stride[k][0] = t->n_elements == 1 ? 0 : t->size;
    flat &= t->n_elements == 1 || (t->compact && t->n_elements == total);
  }
  if (total <= 1) return;
  if (LIKELY(flat)) { /* every operand is contiguous, or one item */
    nest->rank = 1;
    nest->n[0] = total;
    return;
  }

  int32_t rank = 0;
  for (int32_t d = ndim - 1; d >= 0; d--)
    if (shape[d] != 1) nest->n[rank++] = shape[d];
  for (int32_t k = 0; k < n_operands; k++) fill_strides(operand_at(n_in, in, out, k), ndim, shape, nest->stride[k]);

  /* Order dimensions by the first output's strides, smallest innermost. */
  const int64_t *const key = nest->stride[n_out ? n_in : 0];
  for (int32_t i = 1; i < rank; i++) {
    for (int32_t j = i; j > 0 && qn_tensor_magnitude(key[j]) < qn_tensor_magnitude(key[j - 1]); j--)
      swap_dimensions(nest, j, j - 1);
  }

  /* Flip dimensions along which no operand has a positive stride and some a negative one. */
  for (int32_t d = 0; d < rank; d++) {
    int up = 0, down = 0;
    for (int32_t k = 0; k < n_operands; k++) {
      up |= nest->stride[k][d] > 0;
      down |= nest->stride[k][d] < 0;
    }
    if (up || !down) continue;
    for (int32_t k = 0; k < n_operands; k++) {
      nest->ref[k] = qn_ref_move(nest->ref[k], (nest->n[d] - 1) * nest->stride[k][d]);
      nest->stride[k][d] = -nest->stride[k][d];
    }
  }

  /* Merge a dimension into the one inside it where every operand's strides are contiguous across both. */
  int32_t last = 0;
  for (int32_t d = 1; d < rank; d++) {
    int even = 1;
    for (int32_t k = 0; k < n_operands && even; k++) {
      int64_t step;
      even = !__builtin_mul_overflow(nest->stride[k][last], nest->n[last], &step) && step == nest->stride[k][d];
    }
    if (even) {
      nest->n[last] *= nest->n[d];
      continue;
    }
    if (++last == d) continue;
    nest->n[last] = nest->n[d];
    for (int32_t k = 0; k < n_operands; k++) nest->stride[k][last] = nest->stride[k][d];
  }
  nest->rank = last + 1;
}
