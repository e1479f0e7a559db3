/* SPDX-License-Identifier: Apache-2.0
 *
 * generator.h: the generator at run time: the only file that talks to the quern-gen module (Lua and gen/ as bytecode), which
 * is opened at first need. Knows no tensors and does not run kernels. */
#ifndef QN_GENERATOR_H
#define QN_GENERATOR_H

#include "base/bytes.h"
#include "toolchain/spec/spec_ops.h"

/* A context's generator: one Lua state, made at first need, under one lock. Thread-safe. */
typedef struct qn_generator qn_generator;

/* NULL: out of memory. Opens nothing. */
qn_generator *qn_generator_create(void);

/* Sets the limits of a host's options, before the first use; 0: the default. */
void qn_generator_limit(qn_generator *generator, int64_t nodes, int64_t cost, int64_t steps);
int64_t qn_generator_node_limit(const qn_generator *generator);
void qn_generator_destroy(qn_generator *generator);

/* One load of a spec at a time, with what its caller makes of it. */
void qn_generator_begin_load(qn_generator *generator);
void qn_generator_end_load(qn_generator *generator);

/* "ready", "not loaded yet", or why the module cannot be used; static. */
const char *qn_generator_state(void);

/* Loads a spec into this generator: all of its ops or none, without the derivatives of their bodies. *ops: a malloc'ed array of *n_ops. Errors: UNSUPPORTED (no
 * module; an op that moves or casts, or of no built dtype), SYNTAX with the places, EXISTS (names are taken, and nothing else
 * is wrong), LIMIT, MEMORY. One load at a time. Needs 64 KiB of stack, as all functions here do. */
quern_status qn_generator_load_spec(qn_generator *generator, const char *name, const char *text, size_t size,
                                    qn_spec_op ***ops, int32_t *n_ops);

/* The derivative of an op of a spec that has one: as qn_generator_load_spec. Errors: LIMIT (its graph, its steps), UNSUPPORTED, MEMORY. */
quern_status qn_generator_derivative(qn_generator *generator, const char *op, qn_spec_op ***ops, int32_t *n_ops);

/* Removes the ops of the last spec that was loaded. */
void qn_generator_forget_spec(qn_generator *generator);

/* The body of an op for a kernel dtype (K of kernel_abi.h), as text for op_lines.h. Errors: UNSUPPORTED, NOTFOUND, DTYPE,
 * SYNTAX (no body for that dtype), MEMORY. */
quern_status qn_generator_program(qn_generator *generator, const char *op, const char *kernel_dtype, qn_bytes *program);

typedef struct qn_source_request {
  const char *symbol;        /* the function's name */
  const char *op;            /* a single op that copies, casts or computes from indices: expressions cannot have it with unchanged
                                bits. The one input of an index op is the positions. NULL: the expression */
  const char *canonical;     /* the expression: expression.h */
  const char *const *dtypes; /* names of the operands' tensor dtypes, inputs then outputs */
  int32_t n_in, n_out;
  const char *classes; /* a letter an operand: "ccb"; see kernel_abi.h. 't' is for inputs, of targets with tiles */
  int32_t rank;        /* 1 or 2; for targets with tiles also 3, and 0: any */
  const char *target;  /* the name of a qn_target (target.h); NULL: "c" */
  int32_t is_wide;     /* it counts in 64 bits, if its target has 32 and 64 */
  int64_t *cost;       /* not NULL: it is to be compiled. LIMIT if that would take too long; else set, to about its instructions */
} qn_source_request;

/* The text of that kernel. In C it includes kernel.h, else it is self-contained. *items_per_thread (may be NULL): 1 for C.
 * Errors: UNSUPPORTED (also: a single op in C), LIMIT (the graph after inlining; the arguments of a launch),
 * SYNTAX, NOTFOUND, DTYPE, MEMORY. */
quern_status qn_generator_source(qn_generator *generator, const qn_source_request *request, qn_bytes *source,
                                 int32_t *items_per_thread);

#endif
