/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_code.h: a request for a kernel compiled at run time, its key, and its code. Does not know how code is made and
 * stored. */
#ifndef QN_JIT_CODE_H
#define QN_JIT_CODE_H

#include <stdatomic.h>

#include "base/digest.h"
#include "core/base/kernel_abi.h"
#include "toolchain/target.h"

/* A formula, and the dtypes and layout of its operands. */
typedef struct qn_code_request {
  const qn_target *target;
  const char *canonical; /* the expression (expression.h); of a single op its name in the key */
  const char *op;        /* the op, if it is a single op (generator.h), else NULL */
  qn_digest specs;       /* of the specs that its ops come from; {0, 0}: built-in ops only */
  int32_t n_in, n_out;
  const uint8_t *dtypes;  /* qn_dtype of the operands, inputs then outputs */
  const uint8_t *classes; /* qn_class of each */
  int32_t rank;           /* 1 or 2; for targets with tiles also 3, and 0: any */
  int32_t capability;     /* of the target's devices, in its numbers; 0: this machine */
  int32_t is_wide;        /* it counts in 64 bits, if its target has 32 and 64 */
} qn_code_request;

/* The kernel's key: four lines, the same in records and in tables of kernels built ahead; malloc'ed, NULL for lack of
 * memory:
 *   CANONICAL
 *   DTYPE,DTYPE > DTYPE
 *   RANKd CLASSES
 *   specs DIGEST   (32 hex digits; "-": built-in ops only)
 * RANK 0 is written as n. A target may add one line. */
char *qn_code_key(const qn_code_request *request);

/* The letters of the operands' classes, for requests to the generator and for keys; ends with a 0. */
void qn_code_class_letters(const qn_code_request *request, char *letters);

/* One kernel's code; counted. */
typedef struct qn_code {
  _Atomic(qn_kernel *) kernel; /* the function, if this process calls it; NULL: not made yet, or failed */
  _Atomic(void *) image;       /* else the target's loaded code; NULL likewise */
  atomic_int dropped;          /* 1: wanted, but not being made */
} qn_code;

/* For explain. */
typedef struct qn_code_info {
  const char *tier;  /* "frozen", "disk", or a compiler's; "" while there is no code */
  const char *name;  /* the function's: qj_<16 hex digits>; as long as the code is held */
  char reason[256];  /* why there is no code, or where it is from; one line */
  qn_isa isa;        /* of a function of this process */
  double compile_ms; /* time to make it; 0: nothing was compiled */
  int64_t compiles;  /* number of compiler runs for it */
  size_t bytes;      /* of memory for its machine code; 0: built ahead */
  int failed;        /* 1: there is no code, and none will be made */
} qn_code_info;

#endif
