/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t100: from DLTensor to nest: what is refused and with which words; normalisation against an index-by-index walk; the
 * aliasing law against sets of bytes; hostile descriptors. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/core/base/status.h"
#include "runtime/core/tensor/tensor.h"
#include "tap.h"

static const quern_arg_info args[] = {{"x", "", 0, 0}, {"y", "", 0, 0}, {"z", "", 0, 0}, {"out", "", 1, 0}, {"out2", "", 1, 0}};
#define OUT 3 /* args of `add`: three inputs, two outputs */

static const DLDataType types[] = {{kDLUInt, 8, 1}, {kDLFloat, 16, 1}, {kDLFloat, 32, 1}, {kDLFloat, 64, 1}};

/* A tensor with room for its arrays. */
typedef struct tensor {
  DLTensor dl;
  int64_t shape[64], strides[64];
} tensor;

static void make(tensor *t, void *data, DLDataType type, int ndim, const int64_t *shape, const int64_t *strides) {
  memset(t, 0, sizeof *t);
  t->dl.data = data;
  t->dl.device.device_type = kDLCPU;
  t->dl.dtype = type;
  t->dl.ndim = ndim;
  for (int d = 0; d < ndim; d++) {
    t->shape[d] = shape[d];
    if (strides) t->strides[d] = strides[d];
  }
  t->dl.shape = t->shape;
  t->dl.strides = strides ? t->strides : NULL;
}

static char memory[1 << 16];

/* ---- Reading ---- */

static quern_status read_one(const tensor *t, int which, qn_tensor *read) {
  return qn_tensor_read(&t->dl, "add", &args[which], which < OUT ? which : which - OUT, 1, read);
}

static void refused(const tensor *t, int which, quern_status status, const char *sentence) {
  qn_tensor read;
  is_int(read_one(t, which, &read), status, "refused: %s", sentence);
  is_str(quern_last_error(), sentence, "and in these words");
}

static DLDataType dtype(int code, int bits, int lanes) {
  DLDataType t = {(uint8_t)code, (uint8_t)bits, (uint16_t)lanes};
  return t;
}

static void test_refusals(void) {
  static const int64_t s23[] = {2, 3};
  const DLDataType f32 = {kDLFloat, 32, 1};
  tensor t;
  qn_tensor read;

  is_int(qn_tensor_read(NULL, "add", &args[1], 1, 1, &read), QUERN_E_ARGUMENT, "NULL tensor");
  is_str(quern_last_error(), "add: input 2 (y): the tensor is NULL", "and in these words");
  make(&t, NULL, f32, 2, s23, NULL);
  refused(&t, 3, QUERN_E_ARGUMENT, "add: output 1 (out): data is NULL, with 6 elements");
  is_int(qn_tensor_read(&t.dl, "add", &args[0], 0, 0, &read), 0, "data NULL where it is not needed");
  make(&t, memory, f32, 2, s23, NULL);
  t.dl.shape = NULL;
  refused(&t, 0, QUERN_E_ARGUMENT, "add: input 1 (x): shape is NULL, with 2 dimensions");
  make(&t, memory, f32, 2, s23, NULL);
  t.dl.ndim = -1;
  refused(&t, 0, QUERN_E_ARGUMENT, "add: input 1 (x): ndim is -1");
  t.dl.ndim = 33;
  refused(&t, 0, QUERN_E_LAYOUT, "add: input 1 (x): 33 dimensions, at most 32 are served");
  t.dl.ndim = INT32_MIN;
  refused(&t, 0, QUERN_E_ARGUMENT, "add: input 1 (x): ndim is -2147483648");
  make(&t, memory, f32, 2, (int64_t[]){2, -3}, NULL);
  refused(&t, 4, QUERN_E_SHAPE, "add: output 2 (out2): shape [2, -3] has a negative extent");
  make(&t, memory, f32, 2, (int64_t[]){0, -3}, NULL);
  refused(&t, 4, QUERN_E_SHAPE, "add: output 2 (out2): shape [0, -3] has a negative extent");

  make(&t, memory, dtype(kDLFloat, 32, 4), 2, s23, NULL);
  refused(&t, 0, QUERN_E_DTYPE, "add: input 1 (x): dtype float32 x 4 lanes, expected 1 lane");
  make(&t, memory, dtype(kDLFloat, 32, 0), 2, s23, NULL);
  refused(&t, 0, QUERN_E_DTYPE, "add: input 1 (x): dtype float32 x 0 lanes, expected 1 lane");
  make(&t, memory, dtype(kDLFloat4_e2m1fn, 4, 1), 2, s23, NULL);
  refused(&t, 0, QUERN_E_DTYPE, "add: input 1 (x): dtype float4_e2m1fn has items of 4 bits, expected whole bytes");
  make(&t, memory, dtype(kDLInt, 4, 1), 2, s23, NULL);
  refused(&t, 0, QUERN_E_DTYPE, "add: input 1 (x): dtype int4 has items of 4 bits, expected whole bytes");
  make(&t, memory, dtype(kDLFloat8_e4m3fn, 8, 1), 2, s23, NULL);
  refused(&t, 0, QUERN_E_DTYPE, "add: input 1 (x): dtype float8_e4m3fn is not known to this library");
  make(&t, memory, dtype(kDLFloat, 128, 1), 2, s23, NULL);
  refused(&t, 0, QUERN_E_DTYPE, "add: input 1 (x): dtype float128 is not known to this library");
  make(&t, memory, dtype(kDLFloat, 24, 1), 2, s23, NULL);
  refused(&t, 0, QUERN_E_DTYPE, "add: input 1 (x): dtype float24 is not known to this library");
  make(&t, memory, dtype(kDLOpaqueHandle, 64, 1), 2, s23, NULL);
  refused(&t, 0, QUERN_E_DTYPE, "add: input 1 (x): dtype opaque_handle64 is not known to this library");
  make(&t, memory, dtype(200, 16, 1), 2, s23, NULL);
  refused(&t, 0, QUERN_E_DTYPE, "add: input 1 (x): dtype code 200, 16 bits is not known to this library");
  make(&t, memory, dtype(kDLFloat, 0, 1), 2, s23, NULL);
  refused(&t, 0, QUERN_E_DTYPE, "add: input 1 (x): dtype float0 is not known to this library");
  for (int d = 0; d < QN_DTYPE_COUNT; d++) {
    if (qn_dtype_infos[d].built || qn_dtype_infos[d].code >= QN_DTYPE_N_CODES) continue;
    char sentence[128];
    snprintf(sentence, sizeof sentence, "add: input 1 (x): dtype %s is not built into this library", qn_dtype_infos[d].name);
    make(&t, memory, dtype(qn_dtype_infos[d].code, qn_dtype_infos[d].bits, 1), 2, s23, NULL);
    refused(&t, 0, QUERN_E_DTYPE, sentence);
  }

  make(&t, memory, f32, 2, (int64_t[]){INT64_C(1) << 32, INT64_C(1) << 31}, NULL);
  refused(&t, 0, QUERN_E_SHAPE, "add: input 1 (x): shape [4294967296, 2147483648] has more than 2^63 - 1 elements");
  make(&t, memory, f32, 2, (int64_t[]){INT64_MAX, 2}, (int64_t[]){0, 0});
  refused(&t, 0, QUERN_E_SHAPE, "add: input 1 (x): shape [9223372036854775807, 2] has more than 2^63 - 1 elements");
  make(&t, memory, f32, 1, (int64_t[]){INT64_C(1) << 60}, NULL);
  refused(&t, 0, QUERN_E_LAYOUT, "add: input 1 (x): its items are more than 2^61 bytes apart");
  make(&t, memory, f32, 1, (int64_t[]){2}, (int64_t[]){INT64_MAX});
  refused(&t, 0, QUERN_E_LAYOUT, "add: input 1 (x): its items are more than 2^61 bytes apart");
  make(&t, memory, f32, 1, (int64_t[]){2}, (int64_t[]){INT64_MIN});
  refused(&t, 0, QUERN_E_LAYOUT, "add: input 1 (x): its items are more than 2^61 bytes apart");
  make(&t, memory, f32, 2, (int64_t[]){3, 3}, (int64_t[]){INT64_MAX / 2, INT64_MIN / 2});
  refused(&t, 0, QUERN_E_LAYOUT, "add: input 1 (x): its items are more than 2^61 bytes apart");
  make(&t, memory, f32, 1, (int64_t[]){2}, (int64_t[]){-(INT64_C(1) << 56)});
  refused(&t, 0, QUERN_E_LAYOUT, "add: input 1 (x): data, byte_offset and strides reach past the address space");
  make(&t, memory, f32, 1, (int64_t[]){2}, NULL);
  t.dl.byte_offset = UINT64_MAX;
  refused(&t, 0, QUERN_E_LAYOUT, "add: input 1 (x): data, byte_offset and strides reach past the address space");
  t.dl.byte_offset = 0 - (uint64_t)(uintptr_t)memory - 7;
  refused(&t, 0, QUERN_E_LAYOUT, "add: input 1 (x): data, byte_offset and strides reach past the address space");
  t.dl.byte_offset -= 1;
  refused(&t, 0, QUERN_E_LAYOUT, "add: input 1 (x): data, byte_offset and strides reach past the address space");
  t.dl.byte_offset -= 1;
  is_int(read_one(&t, 0, &read), 0, "all but the last byte of the address space can be had");
}

static void test_reads(void) {
  const DLDataType f32 = {kDLFloat, 32, 1};
  tensor t;
  qn_tensor r;

  make(&t, memory, f32, 2, (int64_t[]){2, 3}, NULL);
  t.dl.byte_offset = 5;
  is_int(read_one(&t, 0, &r), 0, "NULL strides");
  ok(r.data == memory + 5 && r.n_elements == 6 && r.ndim == 2 && r.dtype == QN_F32 && r.size == 4 && r.compact, "as it is");
  make(&t, memory, f32, 0, NULL, NULL);
  t.dl.shape = NULL;
  is_int(read_one(&t, 0, &r), 0, "no dimensions, shape and strides NULL");
  ok(r.n_elements == 1 && r.compact, "one element");
  make(&t, memory, f32, 3, (int64_t[]){2, 1, 3}, (int64_t[]){3, INT64_MIN, 1});
  is_int(read_one(&t, 0, &r), 0, "any stride where the extent is 1");
  ok(r.compact, "still compact");
  make(&t, memory, f32, 2, (int64_t[]){2, 3}, (int64_t[]){4, 1});
  is_int(read_one(&t, 0, &r), 0, "a gap");
  ok(!r.compact && r.n_elements == 6, "not compact");
  make(&t, NULL, f32, 3, (int64_t[]){INT64_MAX, 0, INT64_MAX}, (int64_t[]){INT64_MIN, INT64_MAX, -1});
  t.dl.byte_offset = UINT64_MAX;
  is_int(read_one(&t, 0, &r), 0, "an empty tensor may have any strides, extents and offset");
  ok(r.n_elements == 0 && r.compact, "no elements");
  make(&t, NULL, dtype(kDLFloat, 32, 2), 1, (int64_t[]){0}, NULL);
  is_int(read_one(&t, 0, &r), QUERN_E_DTYPE, "an empty tensor's dtype counts");
  make(&t, memory, f32, 2, (int64_t[]){INT64_C(1) << 31, INT64_C(1) << 31}, (int64_t[]){0, 0});
  is_int(read_one(&t, 0, &r), 0, "2^62 elements at one address");
  ok(r.n_elements == INT64_C(1) << 62 && !r.compact, "are that many");
  make(&t, memory, dtype(kDLUInt, 1, 1), 1, (int64_t[]){4}, NULL);
  is_int(read_one(&t, 0, &r), 0, "bool as (UInt, 1)");
  ok(r.dtype == QN_BOOL && r.size == 1, "is bool, a byte each");
  make(&t, memory, dtype(kDLBool, 8, 1), 1, (int64_t[]){4}, NULL);
  is_int(read_one(&t, 0, &r), 0, "bool as (Bool, 8)");
  ok(r.dtype == QN_BOOL && r.size == 1, "is bool, a byte each");
  for (int d = 0; d < QN_DTYPE_COUNT; d++) {
    const qn_dtype_info *info = &qn_dtype_infos[d];
    if (!info->built || info->code >= QN_DTYPE_N_CODES) continue;
    make(&t, memory, dtype(info->code, info->bits, 1), 0, NULL, NULL);
    is_int(read_one(&t, 0, &r), 0, "dtype %s", info->name);
    ok(r.dtype == d && r.size == info->size && info->size * 8 == info->bits, "is itself");
  }
  int64_t ones[32];
  for (int d = 0; d < 32; d++) ones[d] = 1;
  make(&t, memory, f32, 32, ones, NULL);
  is_int(read_one(&t, 0, &r), 0, "32 dimensions");
}

/* ---- Shapes ---- */

static int broadcast_of(int n, const int64_t (*shapes)[4], const int *ndims, int64_t *shape, int *ndim) {
  tensor t[3];
  qn_tensor in[3];
  int32_t nd = -1;
  for (int k = 0; k < n; k++) {
    make(&t[k], memory, types[2], ndims[k], shapes[k], (int64_t[]){0, 0, 0, 0});
    if (qn_tensor_read(&t[k].dl, "add", &args[k], k, 1, &in[k])) return 1;
  }
  const int status = qn_tensor_broadcast("add", args, n, in, shape, &nd);
  *ndim = (int)nd;
  return status;
}

static void test_shapes(void) {
  int64_t shape[QUERN_MAX_NDIM];
  int ndim;
  is_int(broadcast_of(2, (const int64_t[][4]){{2, 3}, {2, 3}}, (int[]){2, 2}, shape, &ndim), 0, "same shapes");
  ok(ndim == 2 && shape[0] == 2 && shape[1] == 3, "[2, 3]");
  is_int(broadcast_of(3, (const int64_t[][4]){{3}, {4, 1, 1}, {2, 1}}, (int[]){1, 3, 2}, shape, &ndim), 0, "three inputs");
  ok(ndim == 3 && shape[0] == 4 && shape[1] == 2 && shape[2] == 3, "[4, 2, 3]");
  is_int(broadcast_of(2, (const int64_t[][4]){{0, 3}, {1, 1}}, (int[]){2, 2}, shape, &ndim), 0, "nothing and one");
  ok(ndim == 2 && shape[0] == 0 && shape[1] == 3, "[0, 3]");
  is_int(broadcast_of(0, NULL, NULL, shape, &ndim), 0, "no inputs");
  is_int(ndim, 0, "no dimensions");
  is_int(broadcast_of(2, (const int64_t[][4]){{2, 3}, {2, 4}}, (int[]){2, 2}, shape, &ndim), QUERN_E_SHAPE, "3 and 4");
  is_str(quern_last_error(), "add: input 2 (y): shape [2, 4] does not broadcast with input 1 (x) of shape [2, 3]", "words");
  is_int(broadcast_of(2, (const int64_t[][4]){{0}, {2}}, (int[]){1, 1}, shape, &ndim), QUERN_E_SHAPE, "0 and 2");
  is_int(broadcast_of(3, (const int64_t[][4]){{3, 1}, {2, 1}, {5, 1, 7}}, (int[]){2, 2, 3}, shape, &ndim), QUERN_E_SHAPE,
         "the longest is not to blame");
  is_str(quern_last_error(), "add: input 2 (y): shape [2, 1] does not broadcast with input 1 (x) of shape [3, 1]", "words");
  is_int(broadcast_of(3, (const int64_t[][4]){{3}, {5, 1}, {5, 2}}, (int[]){1, 2, 2}, shape, &ndim), QUERN_E_SHAPE,
         "the one between fits both");
  is_str(quern_last_error(), "add: input 3 (z): shape [5, 2] does not broadcast with input 1 (x) of shape [3]", "words");
  is_int(broadcast_of(2, (const int64_t[][4]){{INT64_C(1) << 40, 1}, {1, INT64_C(1) << 40}}, (int[]){2, 2}, shape, &ndim),
         QUERN_E_SHAPE, "too many elements");
  is_str(quern_last_error(),
         "add: input 2 (y): the broadcast shape [1099511627776, 1099511627776] has more than 2^63 - 1 elements", "words");
  is_int(broadcast_of(3, (const int64_t[][4]){{INT64_C(1) << 40, 1, 1}, {1, INT64_C(1) << 40, 1}, {1, 1, 0}},
                      (int[]){3, 3, 3}, shape, &ndim),
         0, "unless there are none");

  tensor t;
  qn_tensor r;
  make(&t, memory, types[2], 2, (int64_t[]){2, 3}, NULL);
  read_one(&t, OUT, &r);
  is_int(qn_tensor_check_shape("add", &args[OUT], 0, &r, 2, (int64_t[]){2, 3}), 0, "an output of the shape");
  is_int(qn_tensor_check_shape("add", &args[OUT], 0, &r, 2, (int64_t[]){2, 1}), QUERN_E_SHAPE, "of another");
  is_str(quern_last_error(), "add: output 1 (out): shape [2, 3], expected [2, 1]", "words");
  is_int(qn_tensor_check_shape("add", &args[OUT], 0, &r, 3, (int64_t[]){1, 2, 3}), QUERN_E_SHAPE, "of another rank");
  is_int(qn_tensor_check_shape("add", &args[OUT], 0, &r, 0, NULL), QUERN_E_SHAPE, "of none");
  is_str(quern_last_error(), "add: output 1 (out): shape [2, 3], expected []", "words");
}

/* ---- Devices ---- */

static int devices(int n_in, int n_out, const int (*where)[3], DLDevice *device) {
  tensor t[5];
  qn_tensor in[3], out[2];
  for (int k = 0; k < n_in + n_out; k++) {
    qn_tensor *r = k < n_in ? &in[k] : &out[k - n_in];
    make(&t[k], memory, types[k == 1 ? 1 : 2], where[k][2], (int64_t[]){1, 1, 1}, NULL);
    t[k].dl.device.device_type = (DLDeviceType)where[k][0];
    t[k].dl.device.device_id = where[k][1];
    if (qn_tensor_read(&t[k].dl, "add", &args[k], k, 1, r)) return 1;
  }
  const quern_arg_info named[] = {args[0], args[1], args[OUT]};
  return qn_tensor_check_devices("add", named, n_in, in, n_out, out, device);
}

static void test_devices(void) {
  DLDevice d;
  char text[QN_TENSOR_DEVICE_CHARS];
  is_int(devices(2, 1, (const int[][3]){{1, 0, 1}, {1, 0, 1}, {1, 0, 1}}, &d), 0, "all on the CPU");
  ok(d.device_type == kDLCPU && d.device_id == 0, "computed there");
  is_int(devices(2, 1, (const int[][3]){{1, 0, 1}, {3, 0, 1}, {13, 1, 1}}, &d), 0, "all host-readable");
  ok(d.device_type == kDLCPU && d.device_id == 0, "computed on the CPU");
  is_int(devices(2, 1, (const int[][3]){{1, 0, 1}, {2, 0, 1}, {1, 0, 1}}, &d), QUERN_E_DEVICE, "one elsewhere");
  is_str(quern_last_error(), "add: input 2 (y): dtype f16 on cuda:0, expected the same device as input 1 (cpu)", "words");
  is_int(devices(2, 1, (const int[][3]){{2, 1, 1}, {2, 0, 1}, {2, 1, 1}}, &d), QUERN_E_DEVICE, "another of the same kind");
  is_str(quern_last_error(), "add: input 2 (y): dtype f16 on cuda:0, expected the same device as input 1 (cuda:1)", "words");
  is_int(devices(2, 1, (const int[][3]){{13, 0, 1}, {2, 3, 1}, {3, 0, 1}}, &d), 0, "managed and pinned memory join CUDA");
  ok(d.device_type == kDLCUDA && d.device_id == 3, "computed there");
  is_int(devices(2, 1, (const int[][3]){{1, 0, 0}, {2, 3, 1}, {2, 3, 1}}, &d), 0, "a CPU scalar joins any");
  ok(d.device_type == kDLCUDA && d.device_id == 3, "computed there");
  is_int(devices(2, 1, (const int[][3]){{2, 3, 1}, {2, 3, 1}, {1, 0, 0}}, &d), QUERN_E_DEVICE, "but not as an output");
  is_str(quern_last_error(), "add: output 1 (out): dtype f32 on cpu, expected the same device as input 1 (cuda:3)", "words");
  is_int(devices(2, 1, (const int[][3]){{3, 0, 1}, {10, 0, 1}, {10, 0, 1}}, &d), QUERN_E_DEVICE, "CUDA's memory, not ROCm's");
  is_int(devices(1, 1, (const int[][3]){{8, 0, 1}, {8, 0, 1}}, &d), 0, "Metal throughout");
  ok(d.device_type == kDLMetal, "is Metal's, whoever serves it");
  is_str(qn_tensor_device_text((DLDevice){(DLDeviceType)99, 2}, text), "device_99:2", "a device without a name");
  is_str(qn_tensor_device_text((DLDevice){kDLTrn, INT32_MIN}, text), "trn:-2147483648", "and without sense");
}

/* ---- Random nests ---- */

typedef struct nest_case {
  int n_in, n_out, ndim;
  int64_t shape[8];
  tensor t[5];
  qn_tensor in[3], out[2];
  uint8_t sizes[5];
} nest_case;

/* Strides of `t` over its own shape: compact, permuted, with gaps, negative, zero, or any. Extents are small. */
static void random_strides(rng *r, tensor *t, int wild, int64_t most) {
  int order[8], n = t->dl.ndim;
  int64_t step = 1;
  const int kind = (int)rng_below(r, 4), plain = rng_below(r, 2) == 0;
  for (int d = 0; d < n; d++) order[d] = n - 1 - d;
  if (!plain) {
    for (int d = n - 1; d > 0; d--) {
      const int e = (int)rng_below(r, (uint64_t)d + 1), o = order[d];
      order[d] = order[e];
      order[e] = o;
    }
  }
  for (int i = 0; i < n; i++) {
    const int d = order[i];
    t->strides[d] = step;
    step *= t->shape[d];
    if (kind == 1 && rng_below(r, 3) == 0) step += rng_range(r, 0, 3);
    if (kind >= 2 && rng_below(r, 3) == 0) t->strides[d] = -t->strides[d];
    if (wild && rng_below(r, 4) == 0) t->strides[d] = rng_range(r, -most, most);
    if (wild && rng_below(r, 6) == 0) t->strides[d] = 0;
    if (t->shape[d] == 1 && rng_below(r, 2)) t->strides[d] = rng_range(r, -99, 99);
  }
  t->dl.strides = t->strides;
}

/* span: where the tensors start, in a stretch of this many bytes. */
static int random_case(rng *r, nest_case *c, int most_extent, int64_t wild_stride, int64_t span) {
  const int shared_size = rng_below(r, 2) ? (int)rng_below(r, 4) : -1;
  c->n_in = (int)rng_below(r, 4);
  c->n_out = (int)rng_range(r, 1, 2);
  c->ndim = (int)rng_below(r, rng_below(r, 3) ? 4 : 7);
  for (int d = 0; d < c->ndim; d++) {
    c->shape[d] = rng_below(r, 40) == 0 ? 0 : rng_range(r, 1, most_extent);
    if (rng_below(r, 5) == 0) c->shape[d] = 1;
  }
  for (int k = 0; k < c->n_in + c->n_out; k++) {
    const int is_out = k >= c->n_in, type = shared_size >= 0 ? shared_size : (int)rng_below(r, 4);
    int ndim = c->ndim, lead = 0;
    int64_t shape[8];
    if (!is_out && rng_below(r, 4) == 0) lead = (int)rng_below(r, (uint64_t)ndim + 1);
    ndim -= lead;
    for (int d = 0; d < ndim; d++) {
      shape[d] = c->shape[lead + d];
      if (!is_out && rng_below(r, 8) == 0) shape[d] = 1;
    }
    make(&c->t[k], (void *)((uintptr_t)0x100000 + rng_below(r, (uint64_t)span)), types[type], ndim, shape, NULL);
    if (rng_below(r, 4)) random_strides(r, &c->t[k], rng_below(r, 3) == 0, wild_stride);
    if (k > 0 && rng_below(r, 3) == 0) { /* near or exactly an earlier one */
      const tensor *other = &c->t[rng_below(r, (uint64_t)k)];
      c->t[k].dl.data = other->dl.data;
      if (other->dl.ndim == ndim) {
        memcpy(c->t[k].strides, other->strides, sizeof other->strides);
        c->t[k].dl.strides = other->dl.strides ? c->t[k].strides : NULL;
      }
      if (rng_below(r, 2)) c->t[k].dl.dtype = other->dl.dtype;
      if (rng_below(r, 4) == 0) c->t[k].dl.byte_offset = rng_below(r, 16);
    }
  }
  for (int k = 0; k < c->n_in + c->n_out; k++) {
    qn_tensor *read = k < c->n_in ? &c->in[k] : &c->out[k - c->n_in];
    if (qn_tensor_read(&c->t[k].dl, "add", &args[k], k, 1, read)) return 0;
    c->sizes[k] = read->size;
  }
  return 1;
}

/* Address of operand k at the index of the shape, straight from the definition. */
static uintptr_t address_of(const nest_case *c, int k, const int64_t *index) {
  const DLTensor *t = &c->t[k].dl;
  const int64_t *shape = c->shape, lead = c->ndim - t->ndim;
  uintptr_t at = (uintptr_t)t->data + t->byte_offset;
  int64_t compact = 1;
  (void)shape;
  for (int d = t->ndim - 1; d >= 0; d--) {
    const int64_t i = t->shape[d] == 1 ? 0 : index[lead + d];
    at += (uintptr_t)(i * (t->strides ? t->strides[d] : compact) * (t->dtype.bits / 8));
    compact *= t->shape[d];
  }
  return at;
}

static int next_index(int ndim, const int64_t *shape, int64_t *index) {
  for (int d = ndim - 1; d >= 0; d--) {
    if (++index[d] < shape[d]) return 1;
    index[d] = 0;
  }
  return 0;
}

typedef struct row {
  uintptr_t a[5];
} row;

static int compare_rows(const void *a, const void *b) {
  return memcmp(a, b, sizeof(row));
}

static row *rows_wanted, *rows_got;
#define MAX_ROWS 200000

static int64_t walk_definition(const nest_case *c, row *rows) {
  int64_t n = 0, index[8] = {0};
  for (int d = 0; d < c->ndim; d++) {
    if (c->shape[d] == 0) return 0;
  }
  do {
    memset(&rows[n], 0, sizeof(row));
    for (int k = 0; k < c->n_in + c->n_out; k++) rows[n].a[k] = address_of(c, k, index);
    n++;
  } while (next_index(c->ndim, c->shape, index));
  return n;
}

static int64_t walk_nest(const qn_nest *nest, row *rows) {
  int64_t n = 0, index[QUERN_MAX_NDIM] = {0};
  if (nest->n_elements == 0) return 0;
  for (;;) {
    memset(&rows[n], 0, sizeof(row));
    for (int k = 0; k < nest->n_operands; k++) {
      rows[n].a[k] = (uintptr_t)nest->ptr[k];
      for (int d = 0; d < nest->rank; d++) rows[n].a[k] += (uintptr_t)(index[d] * nest->stride[k][d]);
    }
    n++;
    int d = 0;
    for (; d < nest->rank && ++index[d] == nest->n[d]; d++) index[d] = 0;
    if (d == nest->rank) return n;
  }
}

static int64_t absolute(int64_t x) {
  return x < 0 ? -x : x;
}

/* What a normalised nest must look like; NULL, or what is wrong. */
static const char *not_normal(const qn_nest *nest, int key) {
  for (int d = 0; d < nest->rank; d++) {
    int up = 0, down = 0, even = d > 0;
    if (nest->n[d] < 2) return "an extent below 2";
    for (int k = 0; k < nest->n_operands; k++) {
      up |= nest->stride[k][d] > 0;
      down |= nest->stride[k][d] < 0;
      even = even && nest->stride[k][d] == nest->stride[k][d - 1] * nest->n[d - 1];
    }
    if (down && !up) return "a dimension not flipped";
    if (even) return "dimensions not merged";
    if (d && absolute(nest->stride[key][d]) < absolute(nest->stride[key][d - 1])) return "dimensions out of order";
  }
  return NULL;
}

static void describe(const nest_case *c, char *text, size_t size) {
  size_t at = 0;
  for (int k = 0; k < c->n_in + c->n_out; k++) {
    const DLTensor *t = &c->t[k].dl;
    at += (size_t)snprintf(text + at, size - at, "%s 0x%llx +%llu x%d shape", k < c->n_in ? "in" : "out",
                           (unsigned long long)(uintptr_t)t->data, (unsigned long long)t->byte_offset, t->dtype.bits / 8);
    for (int d = 0; d < t->ndim; d++) at += (size_t)snprintf(text + at, size - at, " %lld", (long long)t->shape[d]);
    at += (size_t)snprintf(text + at, size - at, t->strides ? " strides" : " compact");
    for (int d = 0; t->strides && d < t->ndim; d++) {
      at += (size_t)snprintf(text + at, size - at, " %lld", (long long)t->strides[d]);
    }
    at += (size_t)snprintf(text + at, size - at, "\n");
  }
}

static void test_normalise(void) {
  static nest_case c;
  static char text[4096];
  qn_nest nest;
  rng r;
  rng_seed(&r, 1);
  int low_rank = 0;
  group_begin("normalised nests walk the same addresses together");
  for (int i = 0; i < 30000; i++) {
    if (!random_case(&r, &c, 4, 1000, 4096)) {
      group_fail("case %d: not read: %s", i, quern_last_error());
      continue;
    }
    memset(&nest, 0x5a, sizeof nest);
    qn_tensor_normalise(c.ndim, c.shape, c.n_in, c.in, c.n_out, c.out, &nest);
    const int64_t wanted = walk_definition(&c, rows_wanted);
    group_count(1);
    const char *wrong = NULL;
    if (nest.n_elements != wanted || nest.n_operands != c.n_in + c.n_out) {
      wrong = "counts";
    } else if (!(wrong = not_normal(&nest, c.n_in)) && walk_nest(&nest, rows_got) != wanted) {
      wrong = "number of elements walked";
    } else if (!wrong) {
      qsort(rows_wanted, (size_t)wanted, sizeof(row), compare_rows);
      qsort(rows_got, (size_t)wanted, sizeof(row), compare_rows);
      if (memcmp(rows_wanted, rows_got, (size_t)wanted * sizeof(row))) wrong = "addresses";
    }
    low_rank += nest.rank <= 1;
    if (wrong) {
      describe(&c, text, sizeof text);
      group_fail("case %d: %s (rank %d)\n%s", i, wrong, nest.rank, text);
    }
  }
  group_end();
  diag("%d of 30000 nests have rank 0 or 1", low_rank);
}

/* ---- Overlap ---- */

#define ARENA 8192
static uint8_t touched[5][ARENA]; /* how often: 0, 1, 2 = more */

/* The law by sets of bytes. */
static int lawful(const nest_case *c) {
  const int n = c->n_in + c->n_out;
  uintptr_t low = UINTPTR_MAX;
  const int64_t n_rows = walk_definition(c, rows_wanted);
  for (int64_t i = 0; i < n_rows; i++) {
    for (int k = 0; k < n; k++) low = rows_wanted[i].a[k] < low ? rows_wanted[i].a[k] : low;
  }
  memset(touched, 0, sizeof touched);
  for (int64_t i = 0; i < n_rows; i++) {
    for (int k = 0; k < n; k++) {
      for (int b = 0; b < c->sizes[k]; b++) {
        const uintptr_t at = rows_wanted[i].a[k] - low + (uintptr_t)b;
        if (at >= ARENA) return -1;
        if (touched[k][at] < 2) touched[k][at]++;
      }
    }
  }
  for (int k = c->n_in; k < n; k++) {
    for (int b = 0; b < ARENA; b++) {
      if (touched[k][b] > 1) return 0;
    }
    for (int j = 0; j < k; j++) {
      int same = j < c->n_in && c->sizes[j] == c->sizes[k], disjoint = 1;
      for (int64_t i = 0; i < n_rows && same; i++) same = rows_wanted[i].a[j] == rows_wanted[i].a[k];
      for (int b = 0; b < ARENA && !same && disjoint; b++) disjoint = !(touched[k][b] && touched[j][b]);
      if (!same && !disjoint) return 0;
    }
  }
  return 1;
}

static void test_overlap(void) {
  static nest_case c;
  static char text[4096];
  qn_nest nest;
  rng r;
  int n_lawful = 0, n_checked = 0;
  rng_seed(&r, 2);
  group_begin("the aliasing law agrees with sets of bytes");
  for (int i = 0; i < 60000; i++) {
    const int64_t spans[] = {64, 256, 1024};
    if (!random_case(&r, &c, i % 3 ? 4 : 3, 30, spans[i % 3])) continue;
    const int wanted = lawful(&c);
    if (wanted < 0) continue;
    qn_tensor_normalise(c.ndim, c.shape, c.n_in, c.in, c.n_out, c.out, &nest);
    const quern_arg_info named[] = {args[0], args[1], args[2], args[OUT], args[OUT + 1]};
    const quern_status got = qn_tensor_check_overlap("add", named, &nest, c.n_out, c.sizes);
    group_count(1);
    n_checked++;
    n_lawful += wanted;
    if (got != (wanted ? 0 : QUERN_E_OVERLAP)) {
      describe(&c, text, sizeof text);
      group_fail("case %d: got %d (%s), wanted %s\n%s", i, (int)got, got ? quern_last_error() : "", wanted ? "lawful" : "overlap",
                 text);
    }
  }
  group_end();
  diag("%d of %d are lawful", n_lawful, n_checked);
  ok(n_lawful > n_checked / 5 && n_lawful < n_checked * 4 / 5, "the cases are mixed");
}

static quern_status overlap_of(int n_in, tensor *const *t, int n_out) {
  qn_tensor in[3], out[2];
  uint8_t sizes[5];
  int64_t shape[QUERN_MAX_NDIM];
  int32_t ndim;
  qn_nest nest;
  quern_arg_info named[5];
  for (int k = 0; k < n_in + n_out; k++) {
    qn_tensor *read = k < n_in ? &in[k] : &out[k - n_in];
    named[k] = args[k < n_in ? k : k - n_in + OUT];
    if (qn_tensor_read(&t[k]->dl, "add", &named[k], k < n_in ? k : k - n_in, 1, read)) return 1;
    sizes[k] = read->size;
  }
  if (qn_tensor_broadcast("add", named, n_in, in, shape, &ndim)) return 1;
  ndim = out[0].ndim;
  memcpy(shape, out[0].shape, (size_t)ndim * sizeof *shape);
  qn_tensor_normalise(ndim, shape, n_in, in, n_out, out, &nest);
  return qn_tensor_check_overlap("add", named, &nest, n_out, sizes);
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void test_overlap_cases(void) {
  tensor a, o, p;
  const DLDataType f32 = {kDLFloat, 32, 1};
  char *m = (char *)(uintptr_t)0x10000000;
  make(&a, m, f32, 1, (int64_t[]){100}, NULL);
  make(&o, m, f32, 1, (int64_t[]){100}, NULL);
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), 0, "in place");
  o.dl.byte_offset = 4;
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), QUERN_E_OVERLAP, "an item on");
  is_str(quern_last_error(), "add: output 1 (out): overlaps input 1 (x) other than item by item at the same addresses", "words");
  o.dl.byte_offset = 400;
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), 0, "right behind");
  o.dl.byte_offset = 399;
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), QUERN_E_OVERLAP, "a byte less");
  make(&o, m, f32, 1, (int64_t[]){100}, (int64_t[]){-1});
  o.dl.byte_offset = 99 * 4;
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), QUERN_E_OVERLAP, "reversed in place");
  make(&o, m, f32, 1, (int64_t[]){100}, (int64_t[]){0});
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), QUERN_E_OVERLAP, "an output of stride 0");
  is_str(quern_last_error(), "add: output 1 (out): overlaps itself", "words");
  make(&a, m, f32, 2, (int64_t[]){10, 10}, (int64_t[]){1, 10});
  make(&o, m, f32, 2, (int64_t[]){10, 10}, NULL);
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), QUERN_E_OVERLAP, "transposed in place");
  make(&a, m, f32, 1, (int64_t[]){100}, (int64_t[]){2});
  make(&o, m + 4, f32, 1, (int64_t[]){100}, (int64_t[]){2});
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), 0, "interleaved");
  make(&a, m, f32, 2, (int64_t[]){1000, 50}, (int64_t[]){100, 1});
  make(&o, m + 200, f32, 2, (int64_t[]){1000, 50}, (int64_t[]){100, 1});
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), 0, "left and right half of a matrix");
  o.dl.byte_offset = 1;
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), QUERN_E_OVERLAP, "a byte on: the rows meet the next");
  make(&a, m, f32, 0, NULL, NULL);
  make(&o, m, f32, 1, (int64_t[]){10}, NULL);
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), QUERN_E_OVERLAP, "an element of the output as a scalar");
  make(&a, m, f32, 1, (int64_t[]){10}, NULL);
  make(&o, m + 40, f32, 1, (int64_t[]){10}, NULL);
  make(&p, m + 40, f32, 1, (int64_t[]){10}, NULL);
  is_int(overlap_of(1, (tensor *[]){&a, &o, &p}, 2), QUERN_E_OVERLAP, "two outputs in one place");
  is_str(quern_last_error(), "add: output 2 (out2): overlaps output 1 (out)", "words");
  make(&a, m, types[3], 1, (int64_t[]){10}, NULL);
  make(&o, m, f32, 1, (int64_t[]){10}, (int64_t[]){2});
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), QUERN_E_OVERLAP, "same addresses, other item sizes");
  make(&a, m, f32, 1, (int64_t[]){0}, NULL);
  make(&o, m, f32, 1, (int64_t[]){0}, (int64_t[]){0});
  is_int(overlap_of(1, (tensor *[]){&a, &o}, 1), 0, "nothing overlaps nothing");
  make(&o, m, f32, 2, (int64_t[]){4, 3}, (int64_t[]){2, 3});
  is_int(overlap_of(0, (tensor *[]){&o}, 1), QUERN_E_OVERLAP, "strides 2 and 3 meet");
  make(&o, m, f32, 2, (int64_t[]){3, 4}, (int64_t[]){2, 3});
  is_int(overlap_of(0, (tensor *[]){&o}, 1), 0, "but not within 3 x 4");
  make(&o, m, types[0], 2, (int64_t[]){INT64_C(1) << 29, INT64_C(1) << 29},
       (int64_t[]){INT64_C(1) << 30, (INT64_C(1) << 30) + 1});
  const quern_status huge = overlap_of(0, (tensor *[]){&o}, 1);
  is_int(huge, 0, "2^30 and 2^30 + 1 over 2^29 x 2^29");

  /* Nests made to be hard: many coprime strides. Whatever the answer, it comes soon. */
  rng r;
  rng_seed(&r, 3);
  double worst = 0;
  int n_refused = 0, n_told = 0;
  for (int i = 0; i < 2000; i++) {
    int64_t shape[12], sa[12], so[12];
    const int ndim = (int)rng_range(&r, 3, 12);
    for (int d = 0; d < ndim; d++) {
      shape[d] = rng_range(&r, 2, i % 2 ? 3 : 30);
      sa[d] = rng_range(&r, 1, i % 5 ? 1000000 : 1000000000);
      so[d] = rng_range(&r, 1, i % 5 ? 1000000 : 1000000000);
    }
    make(&a, m, f32, ndim, shape, sa);
    make(&o, m + 4 * rng_range(&r, 0, 1000000), f32, ndim, shape, so);
    const double start = seconds();
    const quern_status got = overlap_of(1, (tensor *[]){&a, &o}, 1);
    const double took = seconds() - start;
    if (took > worst) worst = took;
    n_refused += got == QUERN_E_OVERLAP;
    n_told += got == QUERN_E_OVERLAP && strstr(quern_last_error(), "may overlap");
  }
  diag("hard nests: %d of 2000 refused, %d of them undecided; the slowest took %.0f us", n_refused, n_told, worst * 1e6);
  ok(worst < 0.2, "the work is bounded");

  /* Overlaps by construction, too large to enumerate: never taken for disjoint. */
  group_begin("large overlapping nests are refused");
  for (int i = 0; i < 3000; i++) {
    int64_t shape[6], sa[6], so[6], shift = 0;
    const int ndim = (int)rng_range(&r, 1, 6);
    for (int d = 0; d < ndim; d++) {
      shape[d] = rng_range(&r, 2, 1000);
      sa[d] = rng_range(&r, -100000000, 100000000);
      so[d] = rng_range(&r, -100000000, 100000000);
      shift += rng_range(&r, 0, shape[d] - 1) * sa[d] - rng_range(&r, 0, shape[d] - 1) * so[d];
    }
    make(&a, (char *)(uintptr_t)(INT64_C(1) << 62), f32, ndim, shape, sa);
    make(&o, (char *)(uintptr_t)((INT64_C(1) << 62) + 4 * shift + rng_range(&r, -3, 3)), f32, ndim, shape, so);
    const quern_status got = overlap_of(1, (tensor *[]){&a, &o}, 1);
    group_count(1);
    if (got != QUERN_E_OVERLAP) group_fail("case %d: %d", i, (int)got);
  }
  group_end();
}

/* ---- Hostile descriptors ---- */

static int64_t odd_number(rng *r) {
  static const int64_t numbers[] = {0, 1, 2, 3, -1, -2, INT64_MAX, INT64_MIN, INT64_MAX - 1, INT64_MIN + 1, INT64_C(1) << 31,
                                    INT64_C(1) << 32, (INT64_C(1) << 31) - 1, INT64_C(1) << 61, INT64_C(1) << 62,
                                    -(INT64_C(1) << 62)};
  if (rng_below(r, 3) == 0) return (int64_t)(rng_u64(r) >> rng_below(r, 64));
  return numbers[rng_below(r, sizeof numbers / sizeof numbers[0])];
}

static void test_hostile(void) {
  static tensor t[3];
  rng r;
  int n_read = 0, n_whole = 0;
  rng_seed(&r, 4);
  group_begin("hostile descriptors are refused or bounded");
  for (int i = 0; i < 300000; i++) {
    qn_tensor read[3];
    uint8_t sizes[3];
    int good = 1;
    const int ndim = (int)rng_below(&r, 4) == 0 ? (int)rng_below(&r, 40) - 3 : (int)rng_below(&r, 4);
    for (int k = 0; k < 3; k++) {
      int64_t shape[40], strides[40];
      for (int d = 0; d < 40; d++) {
        const int64_t e = odd_number(&r);
        shape[d] = rng_below(&r, 3) && e < 0 ? 1 : e;
        if (k && rng_below(&r, 8)) shape[d] = t[0].shape[d];
        strides[d] = rng_below(&r, 2) ? odd_number(&r) : rng_range(&r, -4, 4);
      }
      make(&t[k], (void *)(uintptr_t)(rng_below(&r, 4) ? UINT64_C(0x7f0000000000) : (uint64_t)odd_number(&r)),
           types[rng_below(&r, 4)],
           ndim < 0 ? 0 : ndim, shape, rng_below(&r, 4) ? strides : NULL);
      t[k].dl.ndim = ndim;
      if (rng_below(&r, 4) == 0) t[k].dl.byte_offset = (uint64_t)odd_number(&r);
      if (rng_below(&r, 50) == 0) t[k].dl.dtype = dtype((int)rng_below(&r, 256), (int)rng_below(&r, 256), (int)rng_below(&r, 3));
      const quern_status status = qn_tensor_read(&t[k].dl, "add", &args[k == 2 ? OUT : k], k == 2 ? 0 : k, 1, &read[k]);
      group_count(1);
      if (status) {
        good = 0;
        if (status > 0 || strncmp(quern_last_error(), "add: ", 5) != 0) group_fail("case %d: status %d", i, (int)status);
        break;
      }
      n_read++;
      sizes[k] = read[k].size;
      /* What was read has its items in the address space. Sums here are far from the ends of long double's 64 bits. */
      if (read[k].n_elements) {
        long double low = (long double)(uintptr_t)t[k].dl.data + (long double)t[k].dl.byte_offset, high = low, n = 1, step = 1;
        for (int d = ndim - 1; d >= 0; d--) {
          const long double stride = t[k].dl.strides && t[k].shape[d] != 1 ? (long double)strides[d] : step;
          const long double reach = (long double)(t[k].shape[d] - 1) * stride * read[k].size;
          if (reach < 0) low += reach; else high += reach;
          n *= (long double)t[k].shape[d];
          step = n;
        }
        high += read[k].size;
        if (low < 0 || high > 18446744073709551616.0L || high - low > 2305843009213693952.0L ||
            n != (long double)read[k].n_elements) {
          group_fail("case %d: read with low %Lg, high %Lg, n %Lg", i, low, high, n);
        }
      }
    }
    if (!good) continue;
    int64_t shape[QUERN_MAX_NDIM];
    int32_t nd;
    const quern_arg_info named[] = {args[0], args[1], args[OUT]};
    if (qn_tensor_broadcast("add", named, 2, read, shape, &nd)) continue;
    if (qn_tensor_check_shape("add", &args[OUT], 0, &read[2], nd, shape)) continue;
    qn_nest nest;
    qn_tensor_normalise(nd, shape, 2, read, 1, read + 2, &nest);
    if (!qn_tensor_check_overlap("add", named, &nest, 1, sizes)) n_whole++;
  }
  group_end();
  diag("%d tensors read, %d calls went through", n_read, n_whole);
  ok(n_read > 10000 && n_whole > 1000, "not all were refused");
}

int main(void) {
  rows_wanted = malloc(MAX_ROWS * sizeof(row));
  rows_got = malloc(MAX_ROWS * sizeof(row));
  is_str(quern_last_error(), "", "no error yet");
  test_refusals();
  test_reads();
  test_shapes();
  test_devices();
  test_normalise();
  test_overlap();
  test_overlap_cases();
  test_hostile();
  char longer[3000];
  memset(longer, 'a', sizeof longer);
  longer[sizeof longer - 1] = 0;
  quern_set_last_error(longer);
  is_int(strlen(quern_last_error()), 1023, "a sentence is cut at 1023 bytes");
  quern_set_last_error(quern_last_error() + 3);
  is_int(strlen(quern_last_error()), 1020, "and may be made from itself");
  quern_set_last_error(NULL);
  is_str(quern_last_error(), "", "NULL is the empty one");
  free(rows_wanted);
  free(rows_got);
  return done_testing();
}
