/* SPDX-License-Identifier: Apache-2.0
 *
 * t580-freeze.c: the program for which t580-freeze.sh builds kernels ahead: some expressions, on some dtypes and layouts.
 * Prints a line for each call: what it was, its tier, how often a compiler ran, a hash of the outputs; then which modules
 * are mapped.
 *   t580-freeze [--jit off|sync|async] [--only NAME] [--record FILE] [--spec FILE] [--register] [--rows]
 * --rows: expressions that reduce or scan, which sources do not name. With --spec: one with ops of it.
 * --record: by quern_record, asked for in the midst and ended before the last expression. */
#include <math.h> /* INFINITY is a macro here, and a word of expressions */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quern/quern.h"

/* What a table that is linked in has; two folders may be. */
extern int frozen_register(void) __attribute__((weak));
extern int ahead_register(void) __attribute__((weak));

/* No uses: QUERN_KERNEL(commented, y = x * 2)
 * QUERN_KERNEL(commented_too, y = x * 3) */
// QUERN_KERNEL(commented_as_well, y = x * 4)
static const char *const quoted = "QUERN_KERNEL(quoted, y = x * 5) \" QUERN_KERNEL(quoted_too, y = x * 6)";
static const char quote = '"';
#define BIAS_GELU QUERN_KERNEL(bias_gelu, y = gelu(x + b))

typedef struct expression {
  const char *name, *text;
  int n_in, n_params, takes_floats;
} expression;

static const expression expressions[] = {
    {"bias_gelu", BIAS_GELU, 2, 0, 1},
    {"two", QUERN_KERNEL ( two, y = x * w + b; // a comment in the midst, with a ) in it
                           z = y > w /* and ( another */ ), 3, 0, 1},
    {"mix", QUERN_KERNEL(mix, (a ^ b) + a * 3), 2, 0, 0},
    {"scaled", QUERN_KERNEL(scaled, param s; y = s * x + 1), 1, 1, 1},
    {"four", QUERN_KERNEL(four, y = a * b + c * d), 4, 0, 1},
    {"ends", QUERN_KERNEL(ends, y = x > 0 ? minimum(x * PI, w) : x < -4 ? -INFINITY : 0x1.8p1 * x - w), 2, 0, 1},
};
static const expression reducing[] = {
    {"softmax", "e = exp(x - max(x, axis=-1)); y = e / sum(e, axis=-1)", 1, 0, 1},
    {"distance", "param s; sum((x - w) * (x - w) * s, axis=0, keepdims=1)", 2, 1, 1},
    {"spread", "i64 n = count_nonzero(x); max(x) - min(x); ", 1, 0, 1},
    {"scanned", "cumulative_sum(x * w + max(x, axis=-1), axis=-1, exclusive=1) - x", 2, 0, 1},
    {"from_the_end", "y = cumulative_max(x + w, axis=0, reverse=1) * w", 2, 0, 1},
};
/* The same once more, as a second source would have it. */
#define AGAIN QUERN_KERNEL(bias_gelu, \
                           y = gelu(x \
                                    + b);)

enum { F32, F16, I64, BOOL, N_DTYPES };
static const char *const dtype_names[N_DTYPES] = {"f32", "f16", "i64", "bool"};
static const DLDataType dtypes[N_DTYPES] = {{kDLFloat, 32, 1}, {kDLFloat, 16, 1}, {kDLInt, 64, 1}, {kDLBool, 8, 1}};

static uint64_t next(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

/* n values, with special ones among them. */
static void fill(char *at, int dtype, int64_t n, uint64_t *state) {
  static const uint32_t f32[] = {0, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u,
                                 0x7f800001u, 1, 0x807fffffu, 0x7f7fffffu};
  static const uint16_t f16[] = {0, 0x8000, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 1, 0x83ff, 0x7bff};
  static const int64_t i64[] = {0, -1, 1, INT64_MIN, INT64_MAX, 16777217, -16777217, 255, 1 << 20};
  for (int64_t i = 0; i < n; i++) {
    const uint64_t any = next(state), special = next(state) % 12;
    if (dtype == F32) {
      const float tame = (float)((double)(any & 0xffffff) / 0x800000 - 1) * 6;
      uint32_t bits;
      memcpy(&bits, &tame, 4);
      if (special < 9 && any % 8 == 0) bits = f32[special];
      memcpy(at + 4 * i, &bits, 4);
    } else if (dtype == F16) {
      uint16_t bits = (uint16_t)((any & 0x83ff) | (10 + any / 4096 % 7) << 10);
      if (special < 9 && any % 8 == 0) bits = f16[special];
      memcpy(at + 2 * i, &bits, 2);
    } else {
      int64_t value = (int64_t)(any % 2001) - 1000;
      if (special < 9 && any % 8 == 0) value = i64[special];
      memcpy(at + 8 * i, &value, 8);
    }
  }
}

/* ---- Layouts ---- */

#define MOST 8192
typedef struct layout {
  const char *name;
  int ndim;
  int64_t shape[2];
  int64_t first[2], last[2]; /* strides of the first input, the last one; the others are compact, or broadcast if both are */
  int is_for_two, is_in_place;
} layout;

static const layout layouts[] = {
    {"flat", 1, {1003}, {1}, {1}, 0, 0},
    {"one-to-the-left", 1, {1003}, {0}, {1}, 1, 0},
    {"one-to-the-right", 1, {1003}, {1}, {0}, 1, 0},
    {"stepped", 1, {1003}, {2}, {-1}, 0, 0},
    {"rows", 2, {70, 32}, {40, 1}, {32, 1}, 0, 0},
    {"a-row", 2, {70, 32}, {32, 1}, {0, 1}, 1, 0},
    {"a-column", 2, {70, 32}, {32, 1}, {1, 0}, 1, 0},
    {"a-column-to-the-left", 2, {70, 32}, {1, 0}, {32, 1}, 1, 0},
    {"long-rows", 2, {3, 900}, {1000, 1}, {0, 1}, 1, 0},
    {"transposed", 2, {50, 60}, {1, 50}, {60, 1}, 0, 0},
    {"one-for-all", 1, {1003}, {0}, {0}, 0, 0},
    {"a-column-for-all", 2, {70, 32}, {1, 0}, {1, 0}, 0, 0},
    {"in-place", 1, {1003}, {1}, {1}, 0, 1},
    {"no-dimensions", 0, {0}, {0}, {0}, 0, 0},
};

/* Which of the first and the last input is broadcast along the inner dimension: how many of them. */
static int n_broadcast(const layout *layout) {
  const int inner = layout->ndim - 1;
  return inner < 0 ? 0 : (layout->first[inner] == 0) + (layout->last[inner] == 0);
}

static uint64_t hash_of(const char *bytes, size_t n, uint64_t hash) {
  for (size_t i = 0; i < n; i++) hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
  return hash;
}

static int dtype_of(DLDataType type) {
  for (int d = 0; d < N_DTYPES; d++) {
    if (dtypes[d].code == type.code && dtypes[d].bits == type.bits) return d;
  }
  return -1;
}

static void say(const char *key, const char *explain, char *value) {
  const char *at = strstr(explain, key);
  strcpy(value, "?");
  if (at && (at == explain || at[-1] == '\n')) sscanf(at + strlen(key), " %63s", value);
}

static char memory[6][MOST * 8 + 64];

/* One call, one line. */
static int call(quern_op *op, const char *name, int n_in, int dtype, const layout *layout) {
  const int n_out = quern_op_describe(op)->n_out;
  uint64_t state = 1, hash = 0xcbf29ce484222325u;
  int64_t strides[4][2];
  DLTensor operand[6], *in[4], *out[2];
  quern_shape shapes[2] = {{.size = sizeof shapes[0]}, {.size = sizeof shapes[0]}};
  const size_t item = dtypes[dtype].bits / 8;
  for (int k = 0; k < n_in; k++) {
    const int64_t compact[2] = {layout->ndim == 2 ? layout->shape[1] : 1, 1};
    const int64_t *others = n_broadcast(layout) == 2 ? layout->first : compact;
    memcpy(strides[k], k == 0 ? layout->first : k == n_in - 1 ? layout->last : others, sizeof strides[k]);
    operand[k] = (DLTensor){.data = memory[k], .device = {kDLCPU, 0}, .ndim = layout->ndim, .dtype = dtypes[dtype],
                            .shape = (int64_t *)layout->shape, .strides = strides[k]};
    fill(memory[k], dtype, MOST, &state);
    for (int d = 0; d < layout->ndim; d++) {
      if (strides[k][d] < 0) operand[k].byte_offset += (size_t)((layout->shape[d] - 1) * -strides[k][d]) * item;
    }
    in[k] = &operand[k];
  }
  if (quern_op_infer(op, n_in, in, n_out, shapes)) return 1;
  for (int k = 0; k < n_out; k++) {
    operand[4 + k] = (DLTensor){.data = memory[4 + k], .device = {kDLCPU, 0}, .ndim = shapes[k].ndim, .dtype = shapes[k].dtype,
                                .shape = shapes[k].shape};
    const int is_full = shapes[k].ndim == layout->ndim && memcmp(shapes[k].shape, layout->shape, (size_t)layout->ndim * 8) == 0;
    if (layout->is_in_place && k == 0 && is_full && dtype_of(shapes[0].dtype) == dtype) operand[4] = operand[0];
    out[k] = &operand[4 + k];
  }
  const quern_scalar three = {QUERN_F64, {.f = {2.75, 0}}};
  const quern_scalar whole = {QUERN_I64, {.i = -3}};
  const quern_call with = {.size = sizeof with, .params = dtype == I64 ? &whole : &three,
                           .n_params = quern_op_describe(op)->n_params};
  char explain[16384] = "", tier[64], compiles[64];
  if (quern_op_call(op, n_in, in, n_out, out, &with)) return 1;
  for (int k = 0; k < n_out; k++) {
    int64_t n = 1;
    for (int d = 0; d < shapes[k].ndim; d++) n *= shapes[k].shape[d];
    hash = hash_of(out[k]->data, (size_t)n * out[k]->dtype.bits / 8, hash);
  }
  if (quern_op_explain(op, n_in, in, n_out, out, &with, explain, sizeof explain)) return 1;
  say("tier:", explain, tier);
  say("compiles:", explain, compiles);
  printf("%s %s %s %s %s %016llx\n", name, dtype_names[dtype], layout->name, tier, compiles, (unsigned long long)hash);
  return 0;
}

static int all_calls(quern_ctx *ctx, const char *name, const char *text, int n_in, int takes_floats) {
  quern_op *op;
  if (quern_op_compile(ctx, text, &op)) return 1;
  for (int dtype = 0; dtype < BOOL; dtype++) {
    if (dtype != I64 && !takes_floats) continue;
    for (size_t l = 0; l < sizeof layouts / sizeof layouts[0]; l++) {
      if (n_in < 2 && layouts[l].is_for_two) continue;
      if (strstr(text, "axis") && layouts[l].ndim == 0) continue; /* there is none */
      if (n_in > 3 && n_broadcast(&layouts[l])) continue; /* not built so */
      if (call(op, name, n_in, dtype, &layouts[l])) {
        quern_op_release(op);
        return 1;
      }
    }
  }
  quern_op_release(op);
  return 0;
}

static void print_maps(void) {
  static const char *const parts[] = {"quern-gen", "quern-clang", "liblua", "libLLVM", "libclang"};
  char line[4096];
  FILE *maps = fopen("/proc/self/maps", "r");
  printf("maps:");
  while (maps && fgets(line, sizeof line, maps)) {
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
      if (strstr(line, parts[i])) printf(" %s", parts[i]);
    }
  }
  if (maps) fclose(maps);
  else printf(" unknown");
  printf("\n");
}

int main(int argc, char **argv) {
  const char *jit = "off", *only = NULL, *record = NULL, *spec = NULL;
  const int n = sizeof expressions / sizeof expressions[0];
  quern_options options = {.size = sizeof options, .threads = 1, .cache_dir = ""};
  quern_ctx *ctx;
  int failed = 0, rows = 0;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--register") == 0) {
      const int status = frozen_register ? frozen_register() : -1000;
      printf("register: %d %s\n", status, status ? quern_last_error() : "");
    } else if (strcmp(argv[i], "--rows") == 0) {
      rows = 1;
    } else if (i + 1 < argc) {
      const char **option = strcmp(argv[i], "--jit") == 0      ? &jit
                            : strcmp(argv[i], "--only") == 0   ? &only
                            : strcmp(argv[i], "--record") == 0 ? &record
                                                               : &spec;
      *option = argv[++i];
    }
  }
  options.jit = strcmp(jit, "off") == 0 ? QUERN_JIT_OFF : strcmp(jit, "sync") == 0 ? QUERN_JIT_SYNC : QUERN_JIT_ASYNC;
  if (quote != '"' || strlen(quoted) < 9) return 3;
  if (ahead_register && ahead_register()) return 3; /* registered twice: no matter */
  if (quern_ctx_create(&options, &ctx)) return 3;
  if (rows) {
    failed = spec && (quern_spec_load(ctx, spec) || all_calls(ctx, "spec", "y = acme.grow(acme.swish(x, 0.5) / acme.norm(acme.swish(b, 2.0) + x, axis=-1), axis=-1, exclusive=1) * acme.swish(x, 0.25) + b", 2, 1));
    for (size_t i = 0; i < sizeof reducing / sizeof reducing[0] && !failed; i++)
      failed = all_calls(ctx, reducing[i].name, reducing[i].text, reducing[i].n_in, reducing[i].takes_floats);
  } else if (spec) {
    failed = quern_spec_load(ctx, spec) || all_calls(ctx, "spec", "y = acme.swish(x, 0.5) + b", 2, 1);
  } else {
    for (int i = 0; i < n && !failed; i++) {
      if (only && strcmp(only, expressions[i].name) != 0) continue;
      if (record && i == n / 2) failed = quern_record(ctx, record);
      if (record && i == n - 1) failed |= quern_record(ctx, NULL);
      if (!failed)
        failed = all_calls(ctx, expressions[i].name, expressions[i].text, expressions[i].n_in, expressions[i].takes_floats);
    }
    if (!failed && !only) failed = all_calls(ctx, "again", AGAIN, 2, 1);
  }
  if (failed) printf("failed: %s\n", quern_last_error());
  print_maps();
  quern_ctx_release(ctx);
  return failed;
}
