/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t100-tensor: from DLTensor to tensor: what is refused and with which words; shapes, devices, hostile descriptors; the last
 * error. What becomes of tensors together is t103's. */
#include <stdio.h>

#include "runtime/core/base/status.h"
#include "descriptors.h"

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
  ok(qn_ref_address(r.ref) == (char *)memory + 5 && r.n_elements == 6 && r.ndim == 2 && r.dtype == QN_F32 && r.size == 4 && r.compact, "as it is");
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
  char text[QN_DEVICE_CHARS];
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
  is_str(qn_device_text((DLDevice){(DLDeviceType)99, 2}, text), "device_99:2", "a device without a name");
  is_str(qn_device_text((DLDevice){kDLTrn, INT32_MIN}, text), "trn:-2147483648", "and without sense");
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
  is_str(quern_last_error(), "", "no error yet");
  test_refusals();
  test_reads();
  test_shapes();
  test_devices();
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
  return done_testing();
}
