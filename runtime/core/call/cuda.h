/* cuda.h: calls on tensors in CUDA memory, as the core sees them. Implemented above the core: in the library by kernels that are
 * compiled at run time, in a generated tree by those that nvcc has built. */
#ifndef QN_CUDA_H
#define QN_CUDA_H

#include "core/call/dispatch.h"
#include "core/simt/launch.h"
#include "core/base/strbuf.h"

/* A call made ready: on its caller's stack, or in a plan, where it is only read. */
typedef struct qn_cuda_run {
  const void *kernel; /* the backend's, as long as the op lives; NULL: it must look again at the launch */
  const void *detail; /* the backend's, likewise */
  qn_launch launch;   /* without addresses and parameters */
} qn_cuda_run;

struct qn_cuda_backend {
  /* The op that computes what this built one does, and is an expression; the op itself where that has no sense; NULL: out of
   * memory. Lives as long as its context. */
  const quern_op *(*stand_in)(const quern_op *op);
  /* Makes a decision ready whose nest has elements: finds, compiles, loads. `call` may be NULL. Errors: CAPTURING where its
   * stream is being captured and something would have to be compiled or loaded; UNSUPPORTED, COMPILER, MEMORY, DRIVER, DEVICE. */
  quern_status (*prepare)(const quern_op *op, const qn_decision *decision, const quern_call *call, qn_cuda_run *run);
  /* Puts it on the call's stream; qn_cuda_launch is how to call it. ptr: the operands' first items; of one on the CPU that is a
   * value, where that lies. */
  quern_status (*launch)(const quern_op *op, const qn_decision *decision, const qn_cuda_run *run, char *const *ptr,
                         const qn_params *params, const quern_call *call);
  /* How much of a workspace helps: bytes. */
  quern_status (*workspace)(const quern_op *op, const qn_decision *decision, const quern_call *call, size_t *bytes);
  /* The lines of quern_op_explain. */
  quern_status (*explain)(const quern_op *op, const qn_decision *decision, const quern_call *call, qn_strbuf *buf);
};

/* The first operand of the nest that is one of the op's: before them an index op has its indices. */
static inline int32_t qn_cuda_first(const qn_decision *decision) { return qn_registry_is_index(decision->op); }

/* Has the backend launch it, if addresses are multiples of their items' sizes: no instruction of a GPU takes others. */
quern_status qn_cuda_launch(const qn_decision *decision, const qn_cuda_run *run, char *const *ptr, const qn_params *params,
                            const quern_call *call);

/* For backends: the whole of a kernel's arguments, with the first items' addresses or values, and the parameters. */
void qn_cuda_arguments(const qn_decision *decision, const qn_cuda_run *run, char *const *ptr, const qn_params *params,
                       uint64_t args[QN_LAUNCH_ARGS]);

/* Moves the addresses to the next place of the dimensions over which the launch is repeated, at[0 ... repeat_rank), which is 0 to
 * begin with. 0: that was the last. */
int qn_cuda_next(const qn_decision *decision, const qn_launch *launch, int64_t *at, uint64_t *args);

#endif
