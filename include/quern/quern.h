/* SPDX-License-Identifier: Apache-2.0
 *
 * quern.h: the whole C API of Quern, a library of generated tensor kernels.
 *
 * An op is looked up (or named by a typed inline function of quern/ops.h) and called on DLPack tensors that the
 * caller owns. Quern never allocates, frees or keeps a tensor. C99 and C++17 clean. */
#ifndef QUERN_QUERN_H
#define QUERN_QUERN_H

#include <stddef.h>
#include <stdint.h>

#include "dlpack.h"

#ifndef QUERN_API
#if defined(_WIN32)
#define QUERN_API
#else
#define QUERN_API __attribute__((visibility("default")))
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_VERSION_MAJOR 0
#define QUERN_VERSION_MINOR 1
#define QUERN_VERSION_PATCH 0

/* The largest rank of a tensor. */
#define QUERN_MAX_NDIM 32

typedef struct quern_ctx quern_ctx;
typedef struct quern_op quern_op;
typedef struct quern_plan quern_plan;

/* ---- Status and errors ------------------------------------------------------------------------------------------
 * Every call that can fail returns 0 or one negative QUERN_E_* value, one per reason; values are only ever appended.
 * On failure no output tensor has been written and no out-parameter holds anything to release. A sentence that names
 * the argument at fault is kept per thread. */

typedef int32_t quern_status;

#define QUERN_OK 0
#define QUERN_E_ARGUMENT (-1)     /* an invalid NULL, count, size or parameter */
#define QUERN_E_DTYPE (-2)        /* the op does not take, or cannot give, this dtype */
#define QUERN_E_SHAPE (-3)        /* shapes do not broadcast, or an output is not of the broadcast shape */
#define QUERN_E_DEVICE (-4)       /* operands on different devices, or a device without a backend here */
#define QUERN_E_LAYOUT (-5)       /* unsupported strides or rank */
#define QUERN_E_ALIGNMENT (-6)    /* a device, or a registered op, requires better alignment */
#define QUERN_E_OVERLAP (-7)      /* an output overlaps itself, another output, or an input at other addresses */
#define QUERN_E_READONLY (-8)     /* an output is flagged read-only */
#define QUERN_E_MEMORY (-9)       /* out of memory */
#define QUERN_E_UNSUPPORTED (-10) /* not possible here; the sentence says why */
#define QUERN_E_SYNTAX (-11)      /* an expression or a spec is not well formed */
#define QUERN_E_NOTFOUND (-12)    /* no op of this name */
#define QUERN_E_EXISTS (-13)      /* an op of this name is there already */
#define QUERN_E_COMPILER (-14)    /* a compiler failed */
#define QUERN_E_DRIVER (-15)      /* a device driver failed */
#define QUERN_E_IO (-16)          /* a file could not be read or written */
#define QUERN_E_VERSION (-17)     /* a struct or a file of an unknown version */
#define QUERN_E_LIMIT (-18)       /* a documented limit was exceeded */
#define QUERN_E_WORKSPACE (-19)   /* the workspace is smaller than required */
#define QUERN_E_CAPTURING (-20)   /* the stream is being captured, and a kernel would have to be compiled or loaded */

/* The version of the loaded library, major << 16 | minor << 8 | patch. */
QUERN_API uint32_t quern_version(void);

/* The sentence about this thread's last failure; never NULL, "" before the first. Static to the thread: valid until
 * its next failing call. A call that succeeds leaves it as it is. */
QUERN_API const char *quern_last_error(void);

/* Sets that sentence (copied, cut at 1023 bytes). For implementers of registered ops. */
QUERN_API void quern_set_last_error(const char *text);

/* ---- Processes, threads, signals --------------------------------------------------------------------------------
 * fork: a child may call all functions. Its calls run on the calling thread alone, its compiles on other threads.
 * What was compiled stays. fork() waits until a compile under way comes to a safe point, some ms, at most 200, and
 * at most 20 ms for a spec that is loaded. A child has no Clang if the fork met its
 * opening, or a compile beyond that wait: quern_op_explain says so.
 *
 * Signals: the library installs no handler. Its threads block all signals, except those that end a process (HUP,
 * INT, QUIT, TERM, ...) while they are the process's last, unless the host's threads blocked them. No function here
 * may be called in a signal handler. Writing to a file beyond RLIMIT_FSIZE, or to a closed pipe, is an error, not a
 * signal.
 *
 * Stack: a call on the CPU takes up to 8 KiB of the caller's stack, 16 KiB where a kernel keeps blocks of its own
 * (norms, variances and log_softmax of f64, expressions of many functions with rare cases), 30 KiB vector_norm and
 * lp_normalize of any ord; the first call of an expression and quern_op_compile 12 KiB; quern_op_explain 16 KiB;
 * quern_spec_load, quern_op_source and what first asks for a derivative of a spec's op 64 KiB.
 * What is larger lies in blocks of 32 KB that the library allocates once and keeps: some for each thread in a call.
 * Where there is no memory for one, or 256 are taken, it lies on the stack, as in a generated tree in any case: then
 * a call takes up to 48 KiB. A reduction down the columns of an input of 256 KB and more takes one block of 280 KB for each of its
 * threads; without it, and in a tree, it is slower. Compilers have threads of their own.
 *
 * Ends: the library's threads end when they have had nothing to do for a second; a process of which the main thread
 * left before ends then, too. A thread is not cancelled while it waits for a compile; asynchronous cancellation is
 * not supported. exit() waits at most a second for a compile under way (30 s where LLVM is a shared library: its
 * destructors must not run during one). What ends a process at once (_exit(), a fatal signal) leaves the disk cache readable: entries
 * are written beside their place, then renamed.
 *
 * Exceptions: callbacks are called through C. An allocator may throw a C++ exception: it passes through
 * quern_op_call_alloc, and what was allocated before is deleted (of a program that has libgcc_s; of a generated tree, if
 * it is compiled with -fexceptions). After a longjmp out of an allocator that memory is lost, and nothing else. The
 * other callbacks (parallel_for, log, deleters, functions of registered ops) must return: an exception or a longjmp
 * through the library leaves locks held and memory allocated, and other threads may still use the unwound frames.
 *
 * dlclose: leaves nothing behind if no other thread is in the library and all ops, plans and contexts are released.
 * After the first request to compile the library stays loaded. Ops registered by a plugin, and tables of kernels,
 * must outlive the library. */

/* ---- Contexts ---------------------------------------------------------------------------------------------------
 * A context holds a set of ops and the threads that run them. Where a function takes a context, NULL means the
 * process-wide default, which has the built-in ops and the library's thread pool. Contexts may be shared by threads.
 * Ops and plans hold references to their context, so releasing it early is safe. */

/* When to compile expressions at run time. */
#define QUERN_JIT_DEFAULT 0 /* the variable QUERN_JIT (off, sync, async) if set, else ASYNC */
#define QUERN_JIT_OFF 1   /* built kernels and the interpreter only */
#define QUERN_JIT_SYNC 2  /* compile before the first run */
#define QUERN_JIT_ASYNC 3 /* run at once, swap in compiled code when it is ready */

typedef struct quern_options {
  size_t size; /* sizeof(quern_options) of the caller */
  int32_t jit; /* QUERN_JIT_*; 0 = default */
  /* The most threads that one call uses, the caller's included; 0 = QUERN_NUM_THREADS if set, else one per available
   * core. */
  int32_t threads;
  /* The host's own thread pool: must run slice(arg, i) once for each i in [0, n), on any threads, in any order, and return
   * when all have returned. Called on the thread of the call. NULL: the library's pool. Its calls are checked: slice(arg, i)
   * runs nothing if i is outside [0, n), has run before, or comes after the return of parallel_for; slices left out are run by the
   * caller. After any of these errors the call of the op returns ARGUMENT, and its outputs are right. */
  void (*parallel_for)(void *host, int64_t n, void (*slice)(void *arg, int64_t i), void *arg);
  void *host; /* passed to parallel_for and log */
  /* Receives log messages: level 0 error, 1 warning, 2 information, 3 debugging. May be called on any thread. NULL: no
   * messages, or, if the variable QUERN_LOG names a level, standard error up to that level. Warnings: invalid values of
   * variables, failures to make threads, caches and compilers that cannot be used. Information: compiled kernels. */
  void (*log)(void *host, int level, const char *text);
  /* Code compiled at run time: */
  /* The folder of its disk cache, an absolute path; a relative one is logged and not used. NULL = QUERN_CACHE_DIR, else quern
   * in XDG_CACHE_HOME or ~/.cache; "" = no cache. */
  const char *cache_dir;
  /* A limit of the bytes of all code of the context. Above it code that no op refers to is freed, in the order of its release.
   * 0 = 64 MiB. */
  size_t kernel_memory_limit;
  const char *cc;             /* name or path of a C compiler to use instead of Clang in process; NULL = QUERN_CC, if set */
  /* The library only: a line for each call of the context's ops, and totals by op at exit. "1": on standard error; "0": none; else
   * a file's path, to be appended to (docs/profile.md). NULL = QUERN_PROFILE, if set. A file that cannot be opened is logged. */
  const char *profile;
  /* Limits, for a host that takes expressions and specs from others; 0 = the default. What is beyond one is refused: LIMIT; code
   * that would cost a compiler too much is not compiled, the expression stays interpreted, and the log and quern_op_explain say
   * so. What is below 0 counts as 0. (docs/howto/limits.md) */
  size_t text_limit;          /* bytes of an expression, and of a spec. 0 = 64 KiB and 1 MiB, which are the most */
  int32_t node_limit;         /* values of an expression or a body, after inlining. 0 = 4096, which is the most */
  int32_t compile_ms_limit;   /* milliseconds of one compile, if it can be ended so early. 0 = 60000 */
  int64_t compile_cost_limit; /* instructions of a kernel, by an estimate before it is compiled. 0 = 8192 */
  int64_t spec_step_limit;    /* work for a spec, for a derivative of an op of it, for a kernel's text. 0 = 200 million, seconds */
  int64_t kernel_limit;       /* kernels in memory; above it those that no op refers to are freed, and while all are in use the
                                 next expressions are interpreted. A hundred share four mappings of the process. 0 = 4096 */
  int64_t cache_bytes_limit;  /* bytes of the disk cache. 0 = 256 MiB */
} quern_options;

/* Makes a context with the built-in ops. `options` may be NULL; it is read during the call, strings are copied.
 * `*ctx` is owned by the caller. Errors: ARGUMENT, VERSION, MEMORY. */
QUERN_API quern_status quern_ctx_create(const quern_options *options, quern_ctx **ctx);

/* Releases the caller's reference. NULL is allowed. Ops and plans made from it stay valid. */
QUERN_API void quern_ctx_release(quern_ctx *ctx);

/* Sets the options of the process-wide default context. To be called once, before the first use of that context:
 * EXISTS afterwards. For frameworks with their own threads, at their start. */
QUERN_API quern_status quern_ctx_configure_default(const quern_options *options);

/* ---- Ops: finding and describing --------------------------------------------------------------------------------
 * Ops are immutable, thread-safe and reference counted: each out-parameter is owned by the caller and released with
 * quern_op_release. A later registration under a context never changes ops already found. */

/* The number of ops of the context. */
QUERN_API int32_t quern_op_count(quern_ctx *ctx);

/* The op at an index of them: 0-based, sorted by name. */
QUERN_API quern_status quern_op_at(quern_ctx *ctx, int32_t index, quern_op **op);

/* The op of that name. NOTFOUND names the nearest name. The derivative of a spec's op is made when it is first asked for, here or by an
 * expression: quern_spec_load. */
QUERN_API quern_status quern_op_find(quern_ctx *ctx, const char *name, quern_op **op);

/* Releases one reference. NULL is allowed. */
QUERN_API void quern_op_release(quern_op *op);

/* Classes of ops: what the shapes of results depend on, and whether a call needs workspace. */
#define QUERN_CLASS_BASIC 0     /* shapes only; no workspace */
#define QUERN_CLASS_WORKSPACE 1 /* shapes only; needs workspace */
#define QUERN_CLASS_DYNAMIC 2   /* shapes and values of the inputs */
#define QUERN_CLASS_REDUCTION 3 /* shapes, and the parameters axes and keepdims: quern_op_measure */

/* Kinds of a quern_scalar. NONE: no number, for parameters without a default. */
enum { QUERN_NONE = -1, QUERN_I64 = 0, QUERN_U64 = 1, QUERN_F64 = 2, QUERN_C128 = 3 };

/* A number for a parameter. It is weak: it is converted to the compute dtype of the operands (of f16 and bf16: f32). If that is
 * an integer dtype, a whole number saturates, and any other number is refused: DTYPE. */
typedef struct quern_scalar {
  int32_t kind; /* QUERN_I64, QUERN_U64, QUERN_F64, QUERN_C128; QUERN_NONE */
  union {
    int64_t i;
    uint64_t u;
    double f[2]; /* real, imaginary */
  } v;
} quern_scalar;

/* Numbers, in C and C++: QUERN_F64(0.5), QUERN_I64(-1), QUERN_C128(0, 1). Without parentheses the names are the kinds. */
static inline quern_scalar quern_scalar_i64(int64_t x) {
  quern_scalar number = {QUERN_I64, {0}};
  number.v.i = x;
  return number;
}
static inline quern_scalar quern_scalar_u64(uint64_t x) {
  quern_scalar number = {QUERN_U64, {0}};
  number.v.u = x;
  return number;
}
static inline quern_scalar quern_scalar_c128(double re, double im) {
  quern_scalar number = {QUERN_C128, {0}};
  number.v.f[0] = re;
  number.v.f[1] = im;
  return number;
}
static inline quern_scalar quern_scalar_f64(double x) {
  quern_scalar number = quern_scalar_c128(x, 0);
  number.kind = QUERN_F64;
  return number;
}
#define QUERN_I64(x) quern_scalar_i64(x)
#define QUERN_U64(x) quern_scalar_u64(x)
#define QUERN_F64(x) quern_scalar_f64(x)
#define QUERN_C128(re, im) quern_scalar_c128(re, im)

/* The parameter axes of an op that reduces, of one on rows, or of a scan: a bit for each dimension of the inputs' broadcast shape, so that -1,
 * all bits, is all axes and not the last one. This makes it from axes counted as NumPy's, of `ndim` dimensions: QUERN_AXES(3, -1) is
 * the last of three, QUERN_AXES(3, 0, -1) the first and the last; QUERN_ALL_AXES all. Of an axis that is out of bounds or given twice it
 * makes a number that every call refuses: ARGUMENT. C++ has a class for it, Axes. */
static inline quern_scalar quern_scalar_axes(int32_t ndim, int32_t n, const int32_t *axes) {
  int64_t bits = 0;
  for (int32_t k = 0; k < n; k++) {
    const int32_t axis = axes[k] < 0 ? axes[k] + ndim : axes[k];
    if (axis < 0 || axis >= ndim || axis >= 32 || (bits >> axis & 1)) return quern_scalar_i64(INT64_MIN);
    bits |= INT64_C(1) << axis;
  }
  return quern_scalar_i64(bits);
}
#define QUERN_ALL_AXES quern_scalar_i64(-1)
#ifndef __cplusplus
#define QUERN_AXES(ndim, ...) \
  quern_scalar_axes(ndim, (int32_t)(sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)), (const int32_t[]){__VA_ARGS__})
#endif

/* An input or output of an op. */
typedef struct quern_arg_info {
  const char *name;
  const char *dtypes; /* names of its dtypes, separated by blanks: "f16 bf16 f32 f64" */
  int32_t is_output;  /* the op writes it; else it only reads it */
  uint32_t may_alias; /* for an output: bit k set = it may be the same tensor as input k */
} quern_arg_info;

/* What a parameter is to its op. */
#define QUERN_ROLE_NUMBER 0   /* a number that the body computes with */
#define QUERN_ROLE_AXES 1     /* the axes of a reduction or of rows: a bit for each, -1: all; QUERN_AXES makes it */
#define QUERN_ROLE_AXIS 2     /* the same of a scan, which has exactly one */
#define QUERN_ROLE_KEEPDIMS 3 /* 1: outputs keep the axes, with extent 1 */
#define QUERN_ROLE_INITIAL 4  /* a further element; QUERN_NONE: none */
#define QUERN_ROLE_FLAG 5     /* 0 or 1 */

/* A parameter of an op. */
typedef struct quern_param_info {
  const char *name;
  quern_scalar value; /* the default */
} quern_param_info;

/* The description of an op. Static: valid as long as the op. */
typedef struct quern_op_info {
  size_t size; /* sizeof(quern_op_info) of the library */
  const char *name;
  const char *doc;
  const char *formula;      /* the body in the expression language; "" where there is none */
  int32_t op_class;         /* QUERN_CLASS_* */
  int32_t n_in, n_out, n_params;
  const quern_arg_info *args; /* n_in inputs, then n_out outputs */
  const quern_param_info *params;
  size_t preferred_alignment; /* bytes; a hint: the CPU supports every alignment */
  const char *backward;       /* name of the op that computes its derivative, or NULL. Inputs: grad, the derivative by this op's
                                 output; then, by name, the inputs and the output of this op that it needs. Outputs: grad_NAME
                                 for each input with a derivative. Parameters: the same, but
                                 not keepdims: where this op has it, grad and the output have extent 1 along
                                 the axes */
  uint32_t counts;            /* bit k set: input k is a whole number, of a float dtype too: ldexp's exponent */
  const uint8_t *roles;       /* QUERN_ROLE_* of each parameter; NULL: all are numbers: quern_param_role */
} quern_op_info;

/* The role of parameter k. Its name says nothing of it: an element-wise op may have a parameter `axes`. */
static inline int32_t quern_param_role(const quern_op_info *info, int32_t k) {
  return info->size > offsetof(quern_op_info, roles) && info->roles ? info->roles[k] : QUERN_ROLE_NUMBER;
}

/* Never NULL for a valid op. */
QUERN_API const quern_op_info *quern_op_describe(const quern_op *op);

/* ---- Calling ----------------------------------------------------------------------------------------------------
 * Ops without inputs: the caller chooses the output's shape and dtype. full writes one value. arange and linspace compute each
 * element from its index in row-major order: integers modulo 2^64, floats in f64, then rounded. These two cannot be used
 * in expressions.
 *
 * Tensors: strides count elements, byte_offset counts bytes; NULL strides mean compact row-major. Any rank up to
 * QUERN_MAX_NDIM, any strides (zero, negative), any alignment on the CPU, any size including 0. Descriptors and the arrays they
 * point to are borrowed for the call and only read; the memory of inputs is only read, that of outputs only written. Inputs
 * broadcast against each other and promote without a copy. Where a float is needed, bool and integers of 8 and 16 bits become
 * f32, wider integers f64. An output must have exactly the broadcast shape. It may have any dtype of the result's kind or a
 * higher one (bool < integer < float).
 *
 * Aliasing: an output may share memory with an input only if every index has the same address in both and the items
 * have the same size. Outputs must not overlap themselves or each other. Tensors that cannot be proven disjoint count as
 * overlapping: OVERLAP.
 *
 * Threads: all functions here may be called from any thread at any time, also on the same op or plan. A call returns when
 * its outputs are written (CPU), or when the work is on the stream (devices). */

typedef struct quern_call {
  size_t size;                /* sizeof(quern_call) of the caller */
  const quern_scalar *params; /* declared order; NULL = the defaults, whatever n_params is (then logged once) */
  int32_t n_params;           /* number of params; the rest keep their defaults */
  void *stream;               /* the device stream; the CPU ignores it */
  void *workspace;            /* scratch memory of the caller, or NULL */
  size_t workspace_bytes;
  const uint64_t *out_flags; /* the DLPack flags of each output, or NULL = all writable */
} quern_call;

/* A tensor's shape and dtype without its memory. Elements of an array are array[0].size bytes apart. */
typedef struct quern_shape {
  size_t size; /* sizeof(quern_shape) of the caller, set in each element before the call */
  DLDevice device;
  DLDataType dtype;
  int32_t ndim;
  int64_t shape[QUERN_MAX_NDIM];
  int64_t strides[QUERN_MAX_NDIM]; /* in elements, of dense memory, 1 or more; structs of older versions end before them */
} quern_shape;

/* The layout of results is that of the inputs. quern_op_infer and quern_op_measure write the strides of dense memory. The order
 * of dimensions comes from the inputs of full shape: those with as many elements as the broadcast shape. Two dimensions are
 * compared in the first of these inputs where their strides differ in size and neither is 0: the smaller stride is inside. (A
 * dimension of extent 1 counts as of stride 0.) Dimensions are placed one by one, from the last to the first. A new one is
 * compared with the placed ones, from the outermost inwards, up to the first that it is outside of. It goes directly inside the
 * last one that it is inside of, or outermost if there is none. So a result is row-major where no input decides. A reduced
 * result has the order of the dimensions that are left. Outputs of the caller may have any layout. */

/* The shapes and dtypes of the outputs for these inputs; no data is read and `data` may be NULL. If the dtype is the
 * caller's choice (astype, full, arange), it is read from out[i].dtype. */
QUERN_API quern_status quern_op_infer(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *out);

/* The exact shapes and dtypes for these data. For an op of QUERN_CLASS_DYNAMIC it reads the inputs' values; quern_op_infer
 * gives -1 for an extent that depends on values. quern_op_call then fills outputs of these shapes: it counts again, and returns
 * SHAPE, with nothing written, if the values have changed. If they change during the call, it may find fewer elements than it
 * counted: SHAPE, and the rest of the output is 0; or write items of either state, but never beyond an output. `call` may be NULL. The library's own ops of this class run on the CPU only,
 * elsewhere: DEVICE. UNSUPPORTED: a registered op without measure and infer. */
QUERN_API quern_status quern_op_measure(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *out,
                                        const quern_call *call);

/* An allocator of tensors, in the form of the DLPack exchange API (managed_tensor_allocator). It makes a tensor of the
 * prototype's dtype, ndim, shape and device (data is NULL there, strides are undefined). Returns 0; or calls set_error(error_ctx,
 * kind, message), with the name of a Python exception as kind, and returns -1. */
struct DLManagedTensorVersioned;
typedef int (*quern_allocator)(DLTensor *prototype, struct DLManagedTensorVersioned **managed, void *error_ctx,
                               void (*set_error)(void *error_ctx, const char *kind, const char *message));

/* Measures, allocates the outputs by `allocate`, and computes, for any op. out[k] is owned by the caller, who calls its
 * deleter. allocate: NULL means quern_managed_alloc (dlpack_exchange.h); in a generated tree, which lacks that function, NULL
 * is an ARGUMENT error. shapes: NULL, or as in quern_op_infer: a dtype that is the caller's choice is read from it, the
 * shapes of the outputs are written to it. The allocator is called on this thread, and its tensors are checked as any output.
 * For a result that is not row-major its prototype has the dimensions in the order of memory, outermost first, and the
 * extents and strides of its tensor are then permuted in place. A tensor without strides is deleted, and a row-major one
 * asked for. If the structs of `shapes` have no strides, results are row-major. Errors: those of quern_op_measure and
 * quern_op_call; MEMORY with the allocator's message if it fails. On failure the tensors allocated so far have been deleted, and what the
 * allocator has put into *managed beside an error is not touched. */
QUERN_API quern_status quern_op_call_alloc(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *shapes,
                                           struct DLManagedTensorVersioned **out, quern_allocator allocate,
                                           const quern_call *call);

/* The bytes of workspace that a call with these operands can use; may be 0. `call` may be NULL. */
QUERN_API quern_status quern_op_workspace(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out,
                                          DLTensor *const *out, const quern_call *call, size_t *bytes);

/* Computes the op. `call` may be NULL: default parameters. */
QUERN_API quern_status quern_op_call(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out,
                                     DLTensor *const *out, const quern_call *call);

/* Does all checks and choices of a call once. `*plan` is owned by the caller and keeps the op alive. It keeps the parameters,
 * unless a run has its own, but no data pointers: each run has them. UNSUPPORTED: the library's own ops of
 * QUERN_CLASS_DYNAMIC. */
QUERN_API quern_status quern_op_prepare(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out,
                                        DLTensor *const *out, const quern_call *call, quern_plan **plan);

/* Runs a plan on n_in and n_out data pointers (byte_offset included) of tensors that are otherwise as prepared. Plans
 * are immutable: any number of threads may run one concurrently. Overlap is checked again. */
QUERN_API quern_status quern_plan_run(quern_plan *plan, void *const *in, void *const *out, const quern_call *call);

/* Releases the plan. NULL is allowed. */
QUERN_API void quern_plan_release(quern_plan *plan);

/* Writes into text (at most size bytes, always terminated) how a call with these operands would run: lines of
 * `key: value`, among them tier, reason, variant, isa, threads. Of a call that reduces: passes, their number; then for each
 * pass its number (pass) and its kernels (variant), or, where it is interpreted, the kernels of its operations (step); the tier
 * is the interpreter's until each pass has compiled code. Nothing is computed. LIMIT if text is too small: then it is cut. */
QUERN_API quern_status quern_op_explain(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out,
                                        DLTensor *const *out, const quern_call *call, char *text, size_t size);

/* ---- Calling on CUDA devices -------------------------------------------------------------------------------------
 * Devices: all kDLCUDA tensors of a call must be on one device, which computes. Other operands may be in managed or pinned memory
 * (kDLCUDAManaged, kDLCUDAHost); inputs of 0 dimensions may be on the CPU, and are read during the call. The address of each
 * item must be a multiple of its size.
 *
 * Streams: `stream` is a cudaStream_t (a CUstream). NULL and 1 are the legacy default stream, 2 is the per-thread default
 * stream. Work is put on the stream, in order; the stream is never synchronised.
 *
 * Contexts: work runs in the stream's CUDA context; else in the caller's current one, if it belongs to this device; else in
 * the device's primary one. The caller's current context is left as it was.
 *
 * Compilation and capture: a kernel that does not exist yet is compiled for the device. The call waits for that, in mode async
 * too. While the stream is being captured nothing is compiled or loaded: CAPTURING. quern_op_prepare compiles and loads, so
 * that runs of the plan can be captured. The limits of quern_options hold for NVRTC, too.
 *
 * Fallback and workspace: with CUDA kernels built ahead (the build option QUERN_CUDA_FATBIN) a call of one op does not wait.
 * An expression runs step by step with built kernels until its own kernel is compiled, or permanently if that fails.
 * The steps process chunks of the operands and keep temporaries in quern_call.workspace, memory of that device.
 * quern_op_workspace gives the largest useful number of bytes; 0: no workspace helps.
 * An op that reduces or scans, and an expression that reduces, cuts few long rows into pieces for the whole device, with their
 * partial results in the workspace; without one, or with less than quern_op_workspace says, a row takes one block of threads:
 * slower, the same bits.
 *
 * Processes: after a fork of a process that has used CUDA the child cannot use it: DRIVER. exit() waits up to some 2 s where NVRTC
 * writes machine code of the dearest kernels, in which it cannot be ended. Where there is no driver, a call takes up to 32 KiB of the
 * caller's stack.
 *
 * Errors: ALIGNMENT, at the launch, for an item at an address that is no multiple of its size. DRIVER or MEMORY for errors
 * of the driver. CAPTURING as above. */

/* ---- Ops of the host's own --------------------------------------------------------------------------------------
 * A host or vendor registers an implementation under a name; it is then found and called as any other op. If the name
 * is that of a built-in op, or of an op of a spec, the registered one is called first; if one of its functions returns
 * UNSUPPORTED, DTYPE, DEVICE, LAYOUT or ALIGNMENT, the other one is used. Any other name must be new in the
 * context. In expressions and specs a name always means the built-in op or the op of a spec. Names are
 * [a-z][a-z0-9_]*, optionally after a namespace of that form and a dot: "acme.swishy". Dtypes, shapes and strides
 * are passed on unchanged, including those that no built-in op takes. */

typedef struct quern_op_def {
  size_t size; /* sizeof(quern_op_def) of the caller */
  const char *name;
  const char *doc;
  int32_t op_class; /* with the name of a built-in op: DYNAMIC if and only if that op is */
  int32_t n_in, n_out, n_params;
  const char *const *arg_names; /* n_in + n_out names, or NULL */
  const quern_param_info *params;
  void *self; /* passed to the functions */
  /* Computes. Must check its arguments, write nothing on failure, and be thread-safe. Required. */
  quern_status (*call)(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                       const quern_call *call);
  /* Infers shapes and dtypes. NULL: as the built-in op of the same name, else as an elementwise op (class DYNAMIC:
   * UNSUPPORTED). The elements of `out` have the size that quern_shape has in this struct's version of the header; their strides are 0.
   * infer may write strides: the library takes the order of dimensions from their sizes. If one is 0, the result is row-major. */
  quern_status (*infer)(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *out);
  /* Bytes of workspace. NULL: 0. */
  quern_status (*workspace)(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                            const quern_call *call, size_t *bytes);
  /* Called once, when the last reference to the op is gone. May be NULL. */
  void (*release)(void *self);
  /* The exact shapes for these data, for QUERN_CLASS_DYNAMIC. NULL: the result of infer. */
  quern_status (*measure)(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *out,
                          const quern_call *call);
  /* If there is neither infer nor another op of this name: 1: results keep the layout of the inputs; 0: they are row-major. */
  int32_t keeps_layout;
} quern_op_def;

/* Adds the op to a context (NULL: the process-wide default). Names and structs are copied. On failure `release` is not
 * called. Errors: ARGUMENT, EXISTS, MEMORY, VERSION. */
QUERN_API quern_status quern_op_register(quern_ctx *ctx, const quern_op_def *def);

/* ---- Run time: expressions and specs (the library only; a generated tree ends above) -----------------------------
 * An expression is text, `y = gelu(x * w + b); z = y > 0`, in C's spelling and precedence, and x ** y, x // y, and, or, not in
 * Python's (docs/expressions.md): arithmetic, logic, ?:, casts such as (f32)x, calls of the context's ops and of a few primitives
 * (quot, rem, as_u32). Names that are not assigned are its inputs, as they first appear; assigned names are its outputs, in
 * order; `f32 t = ...;` and `auto t = ...;` are locals. `param a;` declares a scalar argument of each call. A param is weak, as are
 * numbers and expressions of numbers: it takes the other operand's dtype. A last expression without a name is the output
 * `out`. Arguments of an op after its inputs are its parameters: clip(x, 0, 6). An op of several outputs is called by one of
 * them: frexp.mantissa(x). `NAME :` before the expression names the kernel. '#' begins a comment.
 * `grad(expression, x)` is the derivative by the input x, element by element, in x's dtype, without a sum over broadcast
 * elements.
 * A call of an op that reduces, or of one on rows such as softmax, has axes: `sum(x, axis=-1)`, `max(x, axis=(0, 2),
 * keepdims=1)`, behind its other arguments. An axis is a whole number, counted in the shape of the argument, from the end if it
 * is negative; without axis= all of them. Within the expression the result keeps the reduced dimensions, as 1, so that it
 * broadcasts in place: `e = exp(x - max(x, axis=-1)); y = e / sum(e, axis=-1)`. An output that is reduced has them only if a call
 * in it has keepdims=1. All reductions of an expression are over the same dimensions, and each argument has all elements along
 * them; for others write an expression each (UNSUPPORTED). The derivative through a reduction, grad(sum(x * x, axis=-1), x), is
 * that of the sum of all results, for each element. max(x, y) of two operands is written maximum(x, y). axis and keepdims remain
 * names that variables may have.
 * Integers divide to a float, and become one beside 0.5: f32 those of 8 and 16 bits, f64 wider ones. quot(x, y) is the
 * truncated integer quotient, rem(x, y) its remainder; both are 0 if y is 0. rem of floats is C's fmod; gcd is of integers.
 * Comparisons do not chain. f16 and bf16 are computed in f32: numbers, params and intermediate values are not rounded to them;
 * outputs are, once, and so are the operands of nextafter and spacing. (So x == 0.1 is false for an f16 x of 0.1; x ==
 * (f16)0.1 is true.) A NaN output is the canonical NaN of its dtype (f32: 0x7fc00000). Exception: an expression that is only a
 * copy op on its inputs in order, copy(x) or where(c, x, y), is that op, and keeps all bits of elements that need no
 * conversion.
 * All rules of calls hold, and the bits are the same in each tier:
 *   built        kernels compiled ahead
 *   compiled     a kernel for this expression, these dtypes and this layout: kept in memory and on disk
 *   interpreter  a built kernel for each operation, over blocks in the cache; needs no compiler
 * Compiling needs the library's module quern-gen (Lua), and quern-clang (Clang) or a C compiler (quern_options.cc). Modules
 * are opened when first needed; without them the interpreter is used. Modules are never closed. After the first request to
 * compile the library stays loaded, also after dlclose. Any thread may call any of these functions at any time. */

/* Makes an op from an expression. `*op` is owned by the caller, reference counted, and called as any other op. The names of the
 * ops it calls are looked up here, once. Errors: SYNTAX (the sentence has line, column and a caret), NOTFOUND (an unknown
 * function), LIMIT (64 KiB, 200 levels of nesting, 2000 operators in one chain, 32 operands, 16 parameters), UNSUPPORTED (an
 * op that only a host's function computes), ARGUMENT, MEMORY. Errors that depend on dtypes are returned by calls: DTYPE, and
 * LIMIT for more than 4096 values, more than 4 KiB of live values per element, or more than 16 reductions, or 10 that each need
 * the one before. */
QUERN_API quern_status quern_op_compile(quern_ctx *ctx, const char *expression, quern_op **op);

/* The text of a named expression for quern_op_compile, written as code: QUERN_KERNEL(bias_gelu, y = gelu(x + b)).
 * `build.lua generate --scan FILE.c` finds its uses in C sources and builds the kernels ahead of time, for inputs of one dtype
 * that are contiguous or, if there are at most 3, broadcast along the inner dimension. The sources are not preprocessed:
 * comments, strings, and lines between #if 0 and its #else or #endif are skipped; all other conditions count as true. An
 * expression that reduces is an error there: its kernels are compiled at run time, or frozen from a record. */
#define QUERN_KERNEL(name, ...) #name ": " #__VA_ARGS__

/* Adds the ops of a spec file, all or none, to a context of the caller (not the process-wide one). They are then found,
 * called and used in expressions as any other. Existing ops do not change. Needs the quern-gen module. Errors: SYNTAX (the
 * sentence has the place), EXISTS, IO, UNSUPPORTED (no such module; an op that moves or casts), LIMIT (the bodies are too
 * large), ARGUMENT, MEMORY. A derivative that the spec does not write is found out to exist, and made when it is first asked for by its name,
 * quern_op_info.backward: LIMIT if it is too large then. Before that it is none of the ops that quern_op_at lists. */
QUERN_API quern_status quern_spec_load(quern_ctx *ctx, const char *path);

/* The same from memory: `size` bytes of text, borrowed for the call; `name` is used as the file name in errors. */
QUERN_API quern_status quern_spec_load_text(quern_ctx *ctx, const char *name, const char *text, size_t size);

/* Drops the compiles of a context (NULL: the process-wide default) that have not begun. What waits for one goes on with the
 * interpreter, and the op's next call asks for it anew. A compile under way is bounded by its cost; one by NVRTC of CUDA 13 ends, too, mostly
 * within half a second. */
QUERN_API void quern_ctx_cancel(quern_ctx *ctx);

/* The C text of the op's kernel for contiguous operands of these dtypes; shapes and strides are ignored, and data may be
 * NULL. *text is owned by the caller, and freed by quern_free. Errors: UNSUPPORTED (no quern-gen module, or an op that is
 * neither an expression nor of a spec: see `build.lua show`), ARGUMENT, DTYPE, LIMIT, MEMORY. */
QUERN_API quern_status quern_op_source(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                                       char **text);

/* Writes a number as one item of a dtype, as the op full does: rounded once; whole numbers saturate to an integer dtype. item: as
 * many bytes as the dtype has, in the host's memory, of any alignment; written on success only. Errors: ARGUMENT; DTYPE (a dtype
 * that this library does not have; a fraction or NaN for an integer dtype; a complex number for a real one). */
QUERN_API quern_status quern_scalar_store(const quern_scalar *number, DLDataType dtype, void *item);

/* Frees memory that a function here has returned. NULL is allowed. */
QUERN_API void quern_free(void *memory);

/* Writes into text (at most size bytes, always terminated) the context's resources, as lines of `key: value`: version, isa,
 * machine, threads, ops, jit, generator, clang, cc, cuda, cache, cache_state. The value of a missing one is the reason.
 * Opens nothing. LIMIT if text is too small: then it is cut. */
QUERN_API quern_status quern_ctx_describe(quern_ctx *ctx, char *text, size_t size);

/* The context's disk cache. quern_cache_list calls each(arg, key, bytes, used) for every entry, on the caller's thread (key: text
 * in lines, borrowed for the call; used: time of the last use, to an hour, in seconds of the epoch). quern_cache_clear removes
 * and counts all entries (n_removed may be NULL). A missing or unusable cache has no entries. Errors: ARGUMENT, MEMORY. */
QUERN_API quern_status quern_cache_list(quern_ctx *ctx, void (*each)(void *arg, const char *key, int64_t bytes, int64_t used),
                                        void *arg);
QUERN_API quern_status quern_cache_clear(quern_ctx *ctx, int64_t *n_removed);

/* ---- Kernels of expressions built ahead ----
 * `build.lua freeze` turns the kernels that a program has recorded (QUERN_RECORD) into C sources with one table. A
 * program that has registered the table runs these kernels without a compiler, in every mode. */

/* A kernel function; made by the generator, not by hand. */
typedef void quern_kernel_fn(char *const *ptr, const int64_t (*stride)[2], const int64_t n[2], const void *params);

typedef struct quern_kernel_row {
  const char *key;        /* formula, dtypes and layout, as in a record */
  const char *name;       /* of the functions, without the level */
  quern_kernel_fn *fn[4]; /* generic, v2, v3, v4; NULL where not built */
} quern_kernel_row;

#define QUERN_KERNEL_TABLE_VERSION 1

typedef struct quern_kernel_table {
  size_t size;       /* sizeof(quern_kernel_table) of the caller */
  uint32_t version;  /* QUERN_KERNEL_TABLE_VERSION */
  uint32_t numerics; /* of the generator that made the kernels */
  int32_t n_rows;
  const quern_kernel_row *rows;
} quern_kernel_table;

/* Adds a table for all contexts of the process. The table, its rows and its functions are borrowed for the life of the
 * process: a plugin that has registered one must stay loaded. A table is added once only. If two tables have a key, the
 * later one is used. Existing plans keep their code. Errors: ARGUMENT, VERSION (a table of another layout, or kernels of
 * another numerics version: they would give other bits), MEMORY. */
QUERN_API quern_status quern_kernels_register(const quern_kernel_table *table);

/* Appends to the file at `path` (made if it is missing) each kernel of an expression that the context (NULL: the process-wide
 * default) has requested so far and requests from now on, from any tier; path NULL ends that. The variable QUERN_RECORD names
 * such a file for all contexts. Several contexts and processes may share one file. Errors: IO (also for a file that is no
 * record, which is left unchanged; later errors are logged once), MEMORY. */
QUERN_API quern_status quern_record(quern_ctx *ctx, const char *path);

#ifdef __cplusplus
}
#endif

#endif /* QUERN_QUERN_H */
