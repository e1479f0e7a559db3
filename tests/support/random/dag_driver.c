/* SPDX-License-Identifier: Apache-2.0
 *
 * dag_driver.c: runs every op of a generated tree (prefix rnd) on special and random values in many layouts, checks that
 * all of them give the bits that single elements give, and prints "op dtype hash" lines for comparison with other builds.
 * Part of t350-random-dag. */
#include "rnd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1031, MAX_IN = 3 };

static uint64_t state = 0x9e3779b97f4a7c15u;
static uint64_t next_random(void) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static const uint64_t special_f64[] = {
    0, 0x8000000000000000u, 0x3ff0000000000000u, 0xbff0000000000000u, 0x7ff0000000000000u, 0xfff0000000000000u,
    0x7ff8000000000000u, 0xfff8000000012345u, 0x7ff0000000000001u, 1, 0x8000000000000001u, 0x000fffffffffffffu,
    0x0010000000000000u, 0x7fefffffffffffffu, 0xffefffffffffffffu, 0x3fe0000000000000u, 0x4330000000000000u,
    0x41dfffffffc00000u, 0x41e0000000000000u, 0xc1e0000000000000u, 0x43e0000000000000u, 0xc3e0000000000000u};
static const uint32_t special_f32[] = {
    0, 0x80000000u, 0x3f800000u, 0xbf800000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc12345u, 0x7f800001u, 1, 0x80000001u,
    0x007fffffu, 0x00800000u, 0x7f7fffffu, 0xff7fffffu, 0x3f000000u, 0x4b000000u, 0x4effffffu, 0x4f000000u, 0xcf000000u,
    0x5f000000u, 0xdf000000u, 0x477fe000u, 0x33800000u};
static const uint64_t special_int[] = {0, 1, (uint64_t)-1, 2, 0x7f, 0x80, 0xff, 0x7fffffff, 0x80000000u, 0xffffffffu,
                                       0x7fffffffffffffffu, 0x8000000000000000u, 31, 32, 33, 63, 64, 65};

static void fill(char *at, DLDataType dtype) {
  uint64_t bits = 0;
  int special = next_random() % 3 == 0, small = next_random() % 3 == 0;
  if (dtype.code == kDLFloat && dtype.bits == 64) {
    double value = (double)(int64_t)(next_random() % 4001 - 2000) / 64;
    if (small) memcpy(&bits, &value, 8);
    else bits = special ? special_f64[next_random() % (sizeof special_f64 / 8)] : next_random();
  } else if (dtype.code == kDLFloat && dtype.bits == 32) {
    float value = (float)((double)(int64_t)(next_random() % 4001 - 2000) / 64);
    if (small) memcpy(&bits, &value, 4);
    else bits = special ? special_f32[next_random() % (sizeof special_f32 / 4)] : next_random();
  } else {
    bits = special ? special_int[next_random() % (sizeof special_int / 8)] : next_random();
    if (small) bits = next_random() % 100 - 50;
  }
  memcpy(at, &bits, dtype.bits / 8);
}

typedef struct array { char *data; DLTensor tensor; int64_t shape[2], strides[2]; } array;

static void view(array *a, char *data, DLDataType dtype, int32_t ndim, int64_t n0, int64_t n1, int64_t s0, int64_t s1) {
  a->shape[0] = n0, a->shape[1] = n1, a->strides[0] = s0, a->strides[1] = s1;
  a->tensor = (DLTensor){data, {kDLCPU, 0}, ndim, dtype, a->shape, a->strides, 0};
}

static int failures = 0;

static void call(rnd_op *op, int n_in, array *in, array *out, const char *what) {
  DLTensor *ins[MAX_IN], *outs[1] = {&out->tensor};
  for (int k = 0; k < n_in; k++) ins[k] = &in[k].tensor;
  rnd_status status = rnd_op_call(op, n_in, ins, 1, outs, NULL);
  if (status) {
    failures++;
    printf("# %s: %s\n", what, rnd_last_error());
  }
}

static void compare(const char *name, const char *layout, const char *wanted, const char *got, size_t size, int64_t stride,
                    int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (memcmp(wanted + i * (int64_t)size, got + i * stride, size)) {
      failures++;
      printf("# %s: %s: element %lld of %lld differs from its own single result\n", name, layout, (long long)i, (long long)count);
      return;
    }
}

static uint64_t hash(const char *bytes, size_t n) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)bytes[i]) * 0x100000001b3u;
  return h;
}

static DLDataType dtype_named(const char *name) { /* "f64", "i16", "u8" */
  uint8_t code = name[0] == 'f' ? kDLFloat : name[0] == 'i' ? kDLInt : kDLUInt;
  return (DLDataType){code, (uint8_t)atoi(name + 1), 1};
}

/* dtypes come as a list; the random ops take one each, and it is the last (a float-only op lists integers before it) */
static DLDataType dtype_of(const rnd_op_info *info) {
  const char *names = info->args[info->n_in].dtypes, *last = strrchr(names, ' ');
  return dtype_named(last ? last + 1 : names);
}

static void run(rnd_op *op) {
  const rnd_op_info *info = rnd_op_describe(op);
  DLDataType dtype = dtype_of(info);
  size_t size = dtype.bits / 8;
  int n_in = info->n_in;
  static char single[N * 8], other[3 * N * 8 + 64], in_data[MAX_IN][3 * N * 8 + 64], strided_in[MAX_IN][3 * N * 8 + 64];
  array in[MAX_IN], out;
  state = hash(info->name, strlen(info->name));
  for (int k = 0; k < n_in; k++)
    for (int64_t i = 0; i < N; i++) fill(in_data[k] + i * (int64_t)size, dtype);
  /* the reference: each element by itself */
  for (int64_t i = 0; i < N; i++) {
    for (int k = 0; k < n_in; k++) view(&in[k], in_data[k] + i * (int64_t)size, dtype, 0, 0, 0, 0, 0);
    view(&out, single + i * (int64_t)size, dtype, 0, 0, 0, 0, 0);
    call(op, n_in, in, &out, info->name);
  }
  /* body and tail, at every start */
  for (int64_t n = 1; n < 70; n += 3) {
    memset(other, 0x55, sizeof other);
    int64_t at = n % 17;
    for (int k = 0; k < n_in; k++) view(&in[k], in_data[k] + at * (int64_t)size, dtype, 1, n, 0, 1, 0);
    view(&out, other + 1, dtype, 1, n, 0, 1, 0);
    call(op, n_in, in, &out, info->name);
    compare(info->name, "short rows", single + at * (int64_t)size, other + 1, size, (int64_t)size, n);
  }
  for (int k = 0; k < n_in; k++) view(&in[k], in_data[k], dtype, 1, N, 0, 1, 0);
  view(&out, other, dtype, 1, N, 0, 1, 0);
  call(op, n_in, in, &out, info->name);
  compare(info->name, "contiguous", single, other, size, (int64_t)size, N);
  /* strided, backwards */
  for (int k = 0; k < n_in; k++) {
    for (int64_t i = 0; i < N; i++) memcpy(strided_in[k] + 3 * i * (int64_t)size, in_data[k] + i * (int64_t)size, size);
    view(&in[k], strided_in[k] + 3 * (N - 1) * (int64_t)size, dtype, 1, N, 0, -3, 0);
  }
  view(&out, other + 2 * (N - 1) * (int64_t)size, dtype, 1, N, 0, -2, 0);
  call(op, n_in, in, &out, info->name);
  compare(info->name, "strided", single, other, size, 2 * (int64_t)size, N);
  /* two dimensions, the first input transposed in memory: [m, m] */
  enum { M = 32 };
  for (int64_t i = 0; i < M; i++)
    for (int64_t j = 0; j < M; j++)
      memcpy(strided_in[0] + (j * M + i) * (int64_t)size, in_data[0] + (i * M + j) * (int64_t)size, size);
  view(&in[0], strided_in[0], dtype, 2, M, M, 1, M);
  for (int k = 1; k < n_in; k++) view(&in[k], in_data[k], dtype, 2, M, M, M, 1);
  view(&out, other, dtype, 2, M, M, M, 1);
  call(op, n_in, in, &out, info->name);
  compare(info->name, "transposed", single, other, size, (int64_t)size, M * M);
  /* in place of each input */
  for (int a = 0; a < n_in; a++) {
    for (int k = 0; k < n_in; k++) view(&in[k], in_data[k], dtype, 1, N, 0, 1, 0);
    memcpy(other, in_data[a], N * size);
    view(&in[a], other, dtype, 1, N, 0, 1, 0);
    view(&out, other, dtype, 1, N, 0, 1, 0);
    call(op, n_in, in, &out, info->name);
    compare(info->name, "in place", single, other, size, (int64_t)size, N);
  }
  printf("%s %016llx\n", info->name, (unsigned long long)hash(single, N * size));
}

/* Large enough for several threads: the same rows again and again. */
static void run_threads(rnd_ctx *ctx, rnd_op *op) {
  const rnd_op_info *info = rnd_op_describe(op);
  DLDataType dtype = dtype_of(info);
  size_t size = dtype.bits / 8;
  enum { ROWS = 300 };
  char *one = malloc(N * size), *many = malloc((size_t)ROWS * N * size);
  char *data[MAX_IN];
  array in[MAX_IN], out;
  rnd_op *threaded;
  if (!one || !many || rnd_op_find(ctx, info->name, &threaded)) exit(1);
  for (int k = 0; k < info->n_in; k++) {
    data[k] = malloc(N * size);
    for (int64_t i = 0; i < N; i++) fill(data[k] + i * (int64_t)size, dtype);
    view(&in[k], data[k], dtype, 2, 1, N, 0, 1);
  }
  view(&out, one, dtype, 2, 1, N, N, 1);
  call(op, info->n_in, in, &out, info->name);
  for (int k = 0; k < info->n_in; k++) view(&in[k], data[k], dtype, 2, ROWS, N, 0, 1);
  view(&out, many, dtype, 2, ROWS, N, N, 1);
  call(threaded, info->n_in, in, &out, info->name);
  for (int64_t r = 0; r < ROWS; r++) compare(info->name, "threads", one, many + r * N * (int64_t)size, size, (int64_t)size, N);
  for (int k = 0; k < info->n_in; k++) free(data[k]);
  free(one), free(many);
  rnd_op_release(threaded);
}

int main(void) {
  rnd_options options = {.size = sizeof options, .threads = 3};
  rnd_ctx *ctx;
  if (rnd_ctx_create(&options, &ctx)) return 1;
  for (int32_t i = 0; i < rnd_op_count(NULL); i++) {
    rnd_op *op;
    if (rnd_op_at(NULL, i, &op)) return 1;
    run(op);
    run_threads(ctx, op);
    rnd_op_release(op);
  }
  rnd_ctx_release(ctx);
  return failures != 0;
}
