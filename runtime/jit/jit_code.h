/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_code.h: a kernel that is wanted of run-time compilation: the request, its key, and its code. Knows neither how code is made
 * nor who keeps it. */
#ifndef QN_JIT_CODE_H
#define QN_JIT_CODE_H

#include <stdatomic.h>

#include "base/digest.h"
#include "core/base/kernel_abi.h"
#include "toolchain/target.h"

/* What is computed, and how its operands lie. */
typedef struct qn_code_request {
  const qn_target *target;
  const char *canonical; /* the expression: expression.h; of an op by itself, its name in the key */
  const char *op;        /* the op if it is an op by itself (generator.h), else NULL */
  qn_digest specs;       /* of the specs that its ops come from; {0, 0}: built-in ops only */
  int32_t n_in, n_out;
  const uint8_t *dtypes;  /* qn_dtype of the operands, inputs then outputs */
  const uint8_t *classes; /* qn_class of each */
  int32_t rank;           /* 1 or 2; of targets with tiles also 3, and 0: any */
  int32_t capability;     /* of the target's devices, in its numbers; 0: this machine */
  int32_t is_wide;        /* it counts in 64 bits, where its target has both */
} qn_code_request;

/* The kernel's key, four lines that records and tables of kernels built ahead have, too; malloc'ed, NULL for lack of
 * memory:
 *   CANONICAL
 *   DTYPE,DTYPE > DTYPE
 *   RANKd CLASSES
 *   specs DIGEST   (32 hex digits; "-": built-in ops only)
 * with nd for a RANK of 0, and the line that its target adds, if it adds one. */
char *qn_code_key(const qn_code_request *request);

/* The letters of operands' classes, in requests to the generator and in keys; with a 0 at the end. */
void qn_code_class_letters(const qn_code_request *request, char *letters);

/* One kernel's code; counted. */
typedef struct qn_code {
  _Atomic(qn_kernel *) kernel; /* the function where this process calls it; NULL until there is one, or for good */
  _Atomic(void *) image;       /* else what the target has loaded; likewise */
  atomic_int dropped;          /* 1: wanted, but not being made */
} qn_code;

/* For explain. */
typedef struct qn_code_info {
  const char *tier;  /* "frozen", "disk", or a compiler's; "" while there is no code */
  const char *name;  /* the function's: qj_<16 hex digits>; as long as the code is held */
  char reason[256];  /* why there is none, or how there is one; one line */
  qn_isa isa;        /* of a function of this process */
  double compile_ms; /* what making it took; 0: nothing was compiled */
  int64_t compiles;  /* how often a compiler was asked for it */
  size_t bytes;      /* of memory that its machine code takes; 0: built ahead */
  int failed;        /* 1: there is none, and none will be made */
} qn_code_info;

#endif
