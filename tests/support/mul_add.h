/* SPDX-License-Identifier: Apache-2.0
 *
 * mul_add.h: whether an object that a compiler of kernels made of a kernel mul_add, out = a * b + c, does that. */
#ifndef QUERN_TESTS_MUL_ADD_H
#define QUERN_TESTS_MUL_ADD_H

#include <stdio.h>
#include <stdlib.h>

#include "runtime/core/base/kernel_abi.h"
#include "runtime/toolchain/object_loader.h"

#define KERNEL_HEAD "#include \"kernel.h\"\nQ_KERNELS_BEGIN\n"
#define KERNEL_TAIL "\nQ_KERNELS_END\n"

/* Loads the object, which is freed, and runs its kernel on a few numbers. more[i & 3] is added to result i. */
static int mul_add_is_right(qn_bytes object, const float more[4], char *why, size_t size) {
  float a[37], b[37], c[37], out[37];
  char *ptr[] = {(char *)a, (char *)b, (char *)c, (char *)out};
  const int64_t n[2] = {37, 1};
  union {
    void *address;
    qn_kernel *run;
  } entry;
  qn_loaded *loaded = qn_object_load(object.data, object.size, "mul_add", why, size);
  free(object.data);
  if (!loaded) return 0;
  for (int i = 0; i < 37; i++) a[i] = (float)i, b[i] = 0.5f, c[i] = 3, out[i] = -1;
  entry.address = qn_object_entry(loaded);
  entry.run(ptr, NULL, n, NULL);
  int good = 1;
  for (int i = 0; i < 37; i++) good &= out[i] == (float)i * 0.5f + more[i & 3] + 3;
  qn_object_unload(loaded);
  return good;
}

#endif
