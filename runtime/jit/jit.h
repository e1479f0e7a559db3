/* jit.h: from a kernel that is wanted, for this CPU or a CUDA device, to code that computes it: built ahead, in memory, on
 * disk, or compiled, now or in the background. Knows no tensors; what a kernel computes is a key to it. */
#ifndef QN_JIT_H
#define QN_JIT_H

#include <stdatomic.h>

#include "core/base/kernel_abi.h"
#include "core/base/log.h"
#include "base/digest.h"
#include "toolchain/generator.h"
#include "jit/jit_cache.h"

/* A context's compiled kernels, and how it comes by them. */
typedef struct qn_jit qn_jit;

/* Of the options (NULL: the defaults): jit, cache_dir, kernel_memory_limit, cc, log, host. `generator` is borrowed.
 * NULL for lack of memory. Opens nothing, starts no thread, calls no log, takes no lock. Reads QUERN_JIT, QUERN_CC,
 * QUERN_RECORD and QUERN_DUMP. */
qn_jit *qn_jit_create(const quern_options *options, qn_generator *generator);

/* Jobs that have not begun are dropped. A compile that is under way finishes by itself, and its result goes to the disk
 * cache and nowhere else; waited for is only what uses the context: the generator, its log (ms). After it neither the
 * generator nor the log is called any more. Code that is still held stays, and is released as ever. A log that is called
 * may release the context. */
void qn_jit_destroy(qn_jit *jit);

/* QUERN_JIT_OFF, SYNC or ASYNC. */
int32_t qn_jit_mode(const qn_jit *jit);

/* The disk cache, in mode off too (nothing is looked for there then); NULL for lack of memory. As long as the jit
 * lives. */
qn_jit_cache *qn_jit_disk(const qn_jit *jit);

/* What is computed, how its operands lie. */
typedef struct qn_code_request {
  const char *canonical; /* expression.h */
  qn_digest specs;       /* of the specs its ops come from; {0, 0}: built-in ops only */
  int32_t n_in, n_out;
  const uint8_t *dtypes;  /* qn_dtype of the operands, inputs then outputs */
  const uint8_t *classes; /* qn_class of each */
  int32_t rank;           /* 1 or 2; for CUDA also 3, and 0: any */
  int32_t capability;     /* 0: for this CPU; else for CUDA devices of this compute capability: 90 */
  int32_t is_wide;        /* CUDA: counts in 64 bits */
} qn_code_request;

/* The kernel's key, four lines that records and tables of kernels built ahead have, too; malloc'ed, NULL for lack of
 * memory:
 *   CANONICAL
 *   DTYPE,DTYPE > DTYPE
 *   RANKd CLASSES
 *   specs DIGEST   (32 hex digits; "-": built-in ops only)
 * and for CUDA, with nd for a RANK of 0, a fifth one, which neither records nor tables have:
 *   cuda sm_90   (or: cuda sm_90 i64) */
char *qn_code_key(const qn_code_request *request);

/* One kernel's code; counted. Whoever has it keeps the pointer: to find it again takes a lock and 0.1 us. */
typedef struct qn_code qn_code;

/* The code of that kernel, retained. Mode off: only built ahead ("frozen"). sync: compiled when this returns, if it can
 * be. async: being compiled. NULL: for lack of memory. One compile per kernel, however many threads ask. A kernel that
 * could not be made is not tried again as long as its code is in memory. quern_last_error and errno are kept. */
qn_code *qn_jit_acquire(qn_jit *jit, const qn_code_request *request);

/* The code stays in memory as long as the limit allows: what was released first goes first, what is held never. NULL is
 * allowed. */
void qn_code_release(qn_code *code);

/* Until the code is made or cannot be, whatever the mode; what others do not wait for is done after it. The background thread,
 * which would wait for itself, does not. quern_last_error and errno are kept. */
void qn_code_wait(qn_code *code);

/* For who holds code that has no kernel: in a forked child, asks again for what the parent's thread would have
 * compiled. */
static inline void qn_code_ask(qn_code *code);

/* For explain. */
typedef struct qn_code_info {
  const char *tier;  /* "frozen", "clang", "cc", "nvrtc", "disk"; "" while there is no kernel */
  const char *name;  /* the function's: qj_<16 hex digits>; as long as the code is held */
  char reason[256];  /* why there is none, or how there is one; one line */
  qn_isa isa;        /* not of CUDA code */
  double compile_ms; /* what making it took; 0: nothing was compiled */
  int64_t compiles;  /* how often a compiler was asked for it */
  size_t bytes;      /* of memory that its machine code takes; 0: built ahead */
  int failed;        /* 1: there is none, and nobody is going to make one */
} qn_code_info;
void qn_code_describe(const qn_code *code, qn_code_info *info);

/* Appends to the file at `path` (NULL: to none from now on) the kernels in memory and those wanted from now on, each
 * once: see jit_record.c. Errors: IO, MEMORY. */
quern_status qn_jit_record(qn_jit *jit, const char *path);

struct qn_code {
  _Atomic(qn_kernel *) kernel; /* once there is one; NULL until then, or for good */
  _Atomic(struct qn_cuda_image *) image; /* the same of a CUDA kernel: cuda_image.h */
  atomic_int dropped; /* 1: wanted, but nobody makes it */
};

void qn_code_want(qn_code *code);
static inline void qn_code_ask(qn_code *code) {
  if (atomic_load_explicit(&code->dropped, memory_order_relaxed)) qn_code_want(code);
}

#endif
