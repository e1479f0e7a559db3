/* SPDX-License-Identifier: Apache-2.0
 *
 * target.h: a target of run-time compilation, that is a kind of device, as a table of functions: its line in keys, its
 * compilers, its loader, its description. A request for a kernel has its target, so higher layers know none by name. Knows
 * no kernels and no tensors. */
#ifndef QN_TARGET_H
#define QN_TARGET_H

#include <stdatomic.h>

#include "base/bytes.h"
#include "core/base/kernel_abi.h"
#include "core/base/status.h"

/* A kernel, for compilers and loaders. */
typedef struct qn_target_kernel {
  const char *symbol;       /* the function's name */
  int32_t capability;       /* of its devices, in the target's numbers; 0: this machine */
  int32_t is_wide;          /* it counts in 64 bits */
  int32_t items_per_thread; /* chosen by the generator; 0: not generated yet */
  int32_t most_ms;          /* for one compile, where a compiler can be ended; 0: its own limit */
  int32_t is_large;         /* compiling it takes long: others are compiled beside it */
  atomic_int *is_cancelled; /* 1: it is not wanted any more; a compiler that can be ended by request ends */
} qn_target_kernel;

/* Loaded code. */
typedef struct qn_target_code {
  void *handle;      /* the target's; NULL: nothing is loaded */
  qn_kernel *kernel; /* the function, if this process calls it; else NULL */
  size_t bytes;      /* of memory of this process */
} qn_target_code;

/* cc: the C compiler that the host named, NULL: none. */
typedef struct qn_compiler {
  const char *tier; /* its name in explain and in the log */
  int wants_cc;     /* 1: it is used only where the host named a C compiler */
  /* The compiler's identity: versions and files. Opens nothing. 0: not known, or there is none. */
  int (*identity)(const char *cc, char *text, size_t size);
  /* Whether a compiler without an identity may be usable; may open it to find out. 0: why is a sentence. */
  int (*may_be_there)(char *why, size_t why_size);
  /* 1: *object is set. 0: why is a sentence, or the compiler's messages. */
  int (*compile)(const char *cc, const qn_target_kernel *kernel, const qn_bytes *source, qn_bytes *object, char *why,
                 size_t why_size);
} qn_compiler;

/* Bytes of a target's longest line of a key, with the newline and a 0. */
#define QN_TARGET_KEY_LINE 64

typedef struct qn_target {
  const char *name;   /* the generator's name of it: "c" */
  const char *suffix; /* of a file with a kernel's source: ".c" */
  int is_recorded;    /* 1: its kernels are written to records, and may be built ahead (jit_frozen.h) */
  /* The line that it adds to a kernel's key; NULL: none. */
  void (*key_line)(const qn_target_kernel *kernel, char text[QN_TARGET_KEY_LINE]);
  /* The machine that code on disk must match, beside its key; one line without a newline. 0: there is none. */
  int (*machine)(char *text, size_t size);
  const qn_compiler *compilers; /* in the order in which they are asked */
  int32_t n_compilers;
  /* Loads a compiler's bytes, or bytes of the disk cache, which it checks. 0: why is a sentence. */
  int (*load)(const qn_target_kernel *kernel, const qn_bytes *object, qn_target_code *code, char *why, size_t why_size);
  void (*unload)(void *handle);
  /* Adds its lines to quern_ctx_describe. Opens nothing. */
  void (*describe)(const char *cc, qn_strbuf *buf);
} qn_target;

/* The targets of this library, in the order in which they are described; defined in targets.c. */
extern const qn_target *const qn_targets[];
extern const int32_t qn_n_targets;

#endif
