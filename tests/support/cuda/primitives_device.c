/* SPDX-License-Identifier: Apache-2.0
 *
 * primitives_device.c: see primitives_device.h. Operands are copied to a device and results back, one launch a loop. */
#include "primitives_device.h"

#include "on_device.h"

enum { MOST_BYTES = 64 << 20 };
static void *module;
static char *there[4]; /* a, b, c, y */

static void launch(const char *name, void **arguments, long long n) {
  void *function = NULL;
  const unsigned grid = n < 1 ? 1 : n > 4096 * 256 ? 4096 : (unsigned)((n + 255) / 256);
  device_do(cuda.module_function(&function, module, name));
  device_do(cuda.launch(function, grid, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
}

/* sizes: bytes an element; 0: no such operand. */
static void run(const char *name, const int *sizes, const void *a, const void *b, const void *c, void *y, long long n) {
  const void *from[3] = {a, b, c};
  uint64_t address[4];
  if (n * 8 > MOST_BYTES) bail("%s: %lld elements", name, n);
  for (int k = 0; k < 4; k++) address[k] = (uintptr_t)there[k];
  for (int k = 0; k < 3; k++)
    if (sizes[k]) device_write(there[k], from[k], (size_t)(n * sizes[k]));
  void *arguments[5] = {&address[0], &address[1], &address[2], &address[3], &n};
  launch(name, arguments, n);
  device_read(y, there[3], (size_t)(n * sizes[3]));
}

void device_run_named(const char *name, int is_copy, int bytes, const void *a, const void *b, const void *c, void *y,
                      long long n) {
  const int sizes[4] = {bytes, bytes, bytes, bytes};
  if (!is_copy) {
    run(name, sizes, a, b, c, y, n);
    return;
  }
  uint64_t from = (uintptr_t)there[0], flag = (uintptr_t)c, to = (uintptr_t)there[3];
  void *arguments[4] = {&from, &flag, &to, &n};
  device_write(there[0], a, (size_t)(n * bytes));
  launch(name, arguments, n);
  device_read(y, there[3], (size_t)(n * bytes));
}

/* ---- The table ---- */

enum { SIZE_bool = 1, SIZE_i8 = 1, SIZE_u8 = 1, SIZE_i16 = 2, SIZE_u16 = 2, SIZE_f16 = 2, SIZE_bf16 = 2, SIZE_i32 = 4,
       SIZE_u32 = 4, SIZE_f32 = 4, SIZE_i64 = 8, SIZE_u64 = 8, SIZE_f64 = 8 };
#define LOOP(NAME, A, B, C, Y)                                                                                  \
  static void on_##NAME(const void *a, const void *b, const void *c, void *y, __INT64_TYPE__ n) {               \
    run("run_" #NAME, (const int[4]){A, B, C, Y}, a, b, c, y, n);                                               \
  }
#define UNARY(OP, X, R) LOOP(OP##_##X, SIZE_##X, 0, 0, SIZE_##R)
#define BINARY(OP, X, R) LOOP(OP##_##X, SIZE_##X, SIZE_##X, 0, SIZE_##R)
#define TERNARY(OP, X, R) LOOP(OP##_##X, SIZE_##X, SIZE_##X, SIZE_##X, SIZE_##R)
#define FROM(OP, X, U) LOOP(OP##_##X, SIZE_##U, 0, 0, SIZE_##X)
#define SELECT(OP, X, M) LOOP(OP##_##X, SIZE_##M, SIZE_##X, SIZE_##X, SIZE_##X)
#define CAST(P, Q) LOOP(cast_##P##_##Q, SIZE_##P, 0, 0, SIZE_##Q)
#include "kernel_subject.def"
#undef UNARY
#undef BINARY
#undef TERNARY
#undef FROM
#undef SELECT
#undef CAST
#define UNARY(OP, X, R) {#OP, #X, "", "", #R, on_##OP##_##X, 0},
#define BINARY(OP, X, R) {#OP, #X, #X, "", #R, on_##OP##_##X, 0},
#define TERNARY(OP, X, R) {#OP, #X, #X, #X, #R, on_##OP##_##X, 0},
#define FROM(OP, X, U) {#OP, #U, "", "", #X, on_##OP##_##X, 0},
#define SELECT(OP, X, M) {#OP, #M, #X, #X, #X, on_##OP##_##X, 0},
#define CAST(P, Q) {"cast", #P, "", "", #Q, on_cast_##P##_##Q, 0},
static const subject_loop loops[] = {
#include "kernel_subject.def"
};
static const subject device = {.loops = loops, .n_loops = sizeof loops / sizeof loops[0]};

const subject *device_subject(const char *folder, const char **why) {
  char path[4200];
  int major = 0, minor = 0;
  FILE *file = NULL;
  if ((*why = device_open())) return NULL;
  device_do(cuda.context_set(cuda.contexts[0]));
  device_do(cuda.device_attribute(&major, 75, 0));
  device_do(cuda.device_attribute(&minor, 76, 0));
  for (int m = minor; m >= 0 && !file; m--) { /* code runs on later chips of its generation */
    snprintf(path, sizeof path, "%s/sm_%d%d.cubin", folder, major, m);
    file = fopen(path, "rb");
  }
  if (!file) return *why = "the device is none that the kernels were compiled for", NULL;
  fseek(file, 0, SEEK_END);
  const size_t size = (size_t)ftell(file);
  char *image = malloc(size + 1);
  rewind(file);
  if (!image || fread(image, 1, size, file) != size) bail("%s cannot be read", path);
  fclose(file);
  device_do(cuda.module_load(&module, image));
  free(image);
  for (int k = 0; k < 4; k++) there[k] = device_allocate(MOST_BYTES);
  return &device;
}
