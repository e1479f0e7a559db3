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
 * On failure no output tensor has been written and no out-parameter holds anything to release. The sentence that
 * names the argument at fault is kept per thread. */

typedef int32_t quern_status;

#define QUERN_OK 0
#define QUERN_E_ARGUMENT (-1)     /* a NULL, a count, a size or a parameter that cannot be meant */
#define QUERN_E_DTYPE (-2)        /* this op does not take, or cannot deliver, this dtype */
#define QUERN_E_SHAPE (-3)        /* shapes do not broadcast, or an output is not of the broadcast shape */
#define QUERN_E_DEVICE (-4)       /* operands on different devices, or a device that no backend here serves */
#define QUERN_E_LAYOUT (-5)       /* strides or rank that cannot be served */
#define QUERN_E_ALIGNMENT (-6)    /* a CUDA device, or a registered op's implementation, wants better alignment */
#define QUERN_E_OVERLAP (-7)      /* an output overlaps itself, or an input other than at the same addresses */
#define QUERN_E_READONLY (-8)     /* an output is flagged read-only */
#define QUERN_E_MEMORY (-9)       /* an allocation of the library's own failed */
#define QUERN_E_UNSUPPORTED (-10) /* known, but not possible here; the sentence says why */
#define QUERN_E_SYNTAX (-11)      /* an expression or a spec is not well formed */
#define QUERN_E_NOTFOUND (-12)    /* no op of this name */
#define QUERN_E_EXISTS (-13)      /* an op of this name is there already */
#define QUERN_E_COMPILER (-14)    /* a compiler failed */
#define QUERN_E_DRIVER (-15)      /* a device driver failed */
#define QUERN_E_IO (-16)          /* a file could not be read or written */
#define QUERN_E_VERSION (-17)     /* a struct or a file of a version this library does not know */
#define QUERN_E_LIMIT (-18)       /* a documented limit was passed */
#define QUERN_E_WORKSPACE (-19)   /* the workspace given is smaller than quern_op_workspace asked for */
#define QUERN_E_CAPTURING (-20)   /* the stream is being captured and this call would have to compile or load */

/* The version of the library that is running, major << 16 | minor << 8 | patch. */
QUERN_API uint32_t quern_version(void);

/* The sentence about this thread's last failure; never NULL, "" before the first. Static to the thread: valid until
 * its next failing call. A call that succeeds leaves it as it is. */
QUERN_API const char *quern_last_error(void);

/* Sets that sentence (copied, cut at 1023 bytes). For implementers of registered ops. */
QUERN_API void quern_set_last_error(const char *text);

/* ---- Contexts ---------------------------------------------------------------------------------------------------
 * A context holds a set of ops and the threads that run them. Where a function takes a context, NULL means the
 * process-wide default, which has the built-in ops and the library's thread pool. Contexts may be shared by threads;
 * they are reference counted by the ops made from them, so releasing one early is safe. */

/* When to compile expressions at run time. */
#define QUERN_JIT_DEFAULT 0 /* QUERN_JIT (off, sync, async) where that is set, else ASYNC */
#define QUERN_JIT_OFF 1   /* built kernels and the interpreter only */
#define QUERN_JIT_SYNC 2  /* compile before the first run */
#define QUERN_JIT_ASYNC 3 /* run at once, swap in compiled code when it is ready */

typedef struct quern_options {
  size_t size; /* sizeof(quern_options) of the caller */
  int32_t jit; /* QUERN_JIT_*; 0 = default */
  /* The most threads one call uses, the caller's included; 0 = QUERN_NUM_THREADS where set, else one per available
   * core. */
  int32_t threads;
  /* The host's own threads: must run slice(arg, i) once for each i in [0, n), on any threads, in any order, and return
   * when all have returned. NULL: the library's pool. Called from the thread that made the call. */
  void (*parallel_for)(void *host, int64_t n, void (*slice)(void *arg, int64_t i), void *arg);
  void *host; /* handed to parallel_for and log */
  /* Receives what the library has to say: level 0 error, 1 warning, 2 information, 3 debugging. NULL: silence, or
   * standard error up to the level that the variable QUERN_LOG names. May be called from any thread. Warnings: a variable
   * that names nothing, threads that could not be made, a cache or compiler that cannot be used. Information: what was
   * compiled. */
  void (*log)(void *host, int level, const char *text);
  /* Of code compiled at run time: */
  /* The folder of its disk cache, an absolute path: another one is not used, and that is logged. NULL = QUERN_CACHE_DIR, else
   * quern in XDG_CACHE_HOME or ~/.cache; "" = none. */
  const char *cache_dir;
  /* Bytes of all the code that the context has, in use or not: above it, what no op refers to goes, first what was released
   * first. 0 = 64 MiB. */
  size_t kernel_memory_limit;
  const char *cc;             /* a C compiler's name or path: it is used instead of Clang in process; NULL = QUERN_CC, if set */
} quern_options;

/* Makes a context with the built-in ops. `options` may be NULL; it is read during the call, strings are copied.
 * `*ctx` is owned by the caller. Errors: ARGUMENT, VERSION, MEMORY. */
QUERN_API quern_status quern_ctx_create(const quern_options *options, quern_ctx **ctx);

/* Gives up the caller's reference. NULL is allowed. Ops and plans made from it stay valid. */
QUERN_API void quern_ctx_release(quern_ctx *ctx);

/* Sets the options of the process-wide default context. To be called once, before anything uses that context:
 * EXISTS afterwards. A framework that brings its own threads calls this at its start. */
QUERN_API quern_status quern_ctx_configure_default(const quern_options *options);

/* ---- Ops: finding and describing --------------------------------------------------------------------------------
 * Ops are immutable, thread-safe and reference counted: each out-parameter is owned by the caller and released with
 * quern_op_release. A later registration under a context never changes ops already found. */

/* How many ops the context has, and the index-th of them (0-based, sorted by name). */
QUERN_API int32_t quern_op_count(quern_ctx *ctx);
QUERN_API quern_status quern_op_at(quern_ctx *ctx, int32_t index, quern_op **op);

/* The op of that name. NOTFOUND names the nearest name. */
QUERN_API quern_status quern_op_find(quern_ctx *ctx, const char *name, quern_op **op);

/* Gives up one reference. NULL is allowed. */
QUERN_API void quern_op_release(quern_op *op);

/* What the shape of a result depends on, and what a call needs beside its operands. */
#define QUERN_CLASS_BASIC 0     /* shapes only; no workspace */
#define QUERN_CLASS_WORKSPACE 1 /* shapes only; wants workspace */
#define QUERN_CLASS_DYNAMIC 2   /* the values of the inputs */

/* Kinds of a quern_scalar. NONE: no number, the default of a parameter that must be given. */
#define QUERN_NONE (-1)
#define QUERN_I64 0
#define QUERN_U64 1
#define QUERN_F64 2
#define QUERN_C128 3

/* A number for a parameter. It is weak: it takes the dtype of the op's other operands, or what that is computed in (f16 and
 * bf16: f32). To an integer a whole number saturates; another is refused: DTYPE. */
typedef struct quern_scalar {
  int32_t kind; /* QUERN_I64, QUERN_U64, QUERN_F64, QUERN_C128; QUERN_NONE */
  union {
    int64_t i;
    uint64_t u;
    double f[2]; /* real, imaginary */
  } v;
} quern_scalar;

/* An input or output of an op. */
typedef struct quern_arg_info {
  const char *name;
  const char *dtypes; /* names of the dtypes it takes, separated by blanks: "f16 bf16 f32 f64" */
  int32_t is_output;  /* the op writes it; else it only reads it */
  uint32_t may_alias; /* for an output: bit k set = it may be the very tensor given as input k */
} quern_arg_info;

/* A parameter of an op. */
typedef struct quern_param_info {
  const char *name;
  quern_scalar value; /* the default */
} quern_param_info;

/* What an op is. Static: valid as long as the op. */
typedef struct quern_op_info {
  size_t size; /* sizeof(quern_op_info) of the library */
  const char *name;
  const char *doc;
  const char *formula;      /* the body in the expression language; "" where there is none */
  int32_t op_class;         /* QUERN_CLASS_* */
  int32_t n_in, n_out, n_params;
  const quern_arg_info *args; /* n_in inputs, then n_out outputs */
  const quern_param_info *params;
  size_t preferred_alignment; /* bytes; a hint: on the CPU every alignment is served */
  const char *backward;       /* the op that computes its derivative, or NULL. Its inputs: grad, the derivative by this op's
                                 output, then those of this op's inputs, and its output, that it reads, by their names; its
                                 outputs: grad_NAME for each input that has a derivative; the same parameters */
  uint32_t counts;            /* bit k set: input k is a whole number, of a float dtype too: ldexp's exponent */
} quern_op_info;

/* Never NULL for a valid op. */
QUERN_API const quern_op_info *quern_op_describe(const quern_op *op);

/* ---- Calling ----------------------------------------------------------------------------------------------------
 * An op without inputs writes to an output of any shape, and its dtype is the caller's choice, too: full, and those whose
 * elements follow from where they stand, counted in row-major order (arange, linspace): integers modulo 2^64, floats in
 * f64, then rounded. The latter are no part of expressions.
 *
 * Tensors: strides count elements, byte_offset counts bytes; NULL strides mean compact row-major. Any rank up to
 * QUERN_MAX_NDIM, any strides (zero, negative), any alignment on the CPU, any size including 0. Descriptors and the arrays they
 * point to are borrowed for the call and only read; inputs' memory is only read, outputs' only written. Inputs
 * broadcast against each other and promote without a copy; an output must have exactly the broadcast shape, and may
 * have any dtype that the result casts to without changing kind downward (bool < integer < float).
 *
 * Aliasing: an output may share memory with an input only if every index has the same address in both and the items
 * are of one size; outputs may not overlap themselves or each other. Anything else: OVERLAP, unless it is proven
 * disjoint.
 *
 * All functions here may be called from any thread at any time, on one op or plan as well. A call returns when its
 * outputs are written (CPU), or are going to be in stream order (devices).
 *
 * CUDA.
 *
 * Devices: all tensors of kDLCUDA in a call are on one device, which computes. Managed and pinned memory (kDLCUDAManaged,
 * kDLCUDAHost) may join them, and so may inputs of 0 dimensions on the CPU: their value is read when the call is made. The
 * address of each item must be a multiple of its size, since no instruction of a GPU reads it otherwise.
 *
 * Streams: `stream` is a cudaStream_t (a CUstream). NULL and 1 are the legacy default stream, 2 is the calling thread's own.
 * Work is put on the stream, in order; the stream is never synchronised.
 *
 * Contexts: work runs in the stream's CUDA context; else in the caller's current one, if it belongs to this device; else in
 * the device's primary one. The caller's current context is left as it was.
 *
 * Compilation and capture: a kernel that is not there yet is compiled for the device. The call waits for that, in mode async
 * too. While the stream is being captured nothing is compiled or loaded: CAPTURING. quern_op_prepare compiles and loads, so
 * that runs of the plan can be captured.
 *
 * Fallback and workspace: with CUDA kernels built ahead (the build option QUERN_CUDA_FATBIN) a call of one op waits for
 * nothing. An expression runs by the built kernels of its steps until its own kernel is compiled, or for good where none can
 * be. The steps go over chunks of the operands and keep temporaries in quern_call.workspace, memory of that device.
 * quern_op_workspace says how many bytes of it help, 0 where none do.
 *
 * Errors: ALIGNMENT, at the launch, for an item at an address that is no multiple of its size. DRIVER, or MEMORY, for what
 * the driver reports. CAPTURING as above. */

typedef struct quern_call {
  size_t size;                /* sizeof(quern_call) of the caller */
  const quern_scalar *params; /* declared order; NULL = the defaults */
  int32_t n_params;           /* how many of them are given; the rest keep their defaults */
  void *stream;               /* the device stream; the CPU ignores it */
  void *workspace;            /* caller's scratch memory, or NULL */
  size_t workspace_bytes;
  const uint64_t *out_flags; /* the DLPack flags of each output, or NULL = all writable */
} quern_call;

/* A tensor's shape and dtype without its memory. */
typedef struct quern_shape {
  size_t size; /* sizeof(quern_shape) of the caller, set in each element before the call */
  DLDevice device;
  DLDataType dtype;
  int32_t ndim;
  int64_t shape[QUERN_MAX_NDIM];
} quern_shape;

/* The shapes and dtypes of the outputs for these inputs; no data is touched and `data` may be NULL. Where the dtype is
 * the caller's choice (astype, full, arange), it is read from out[i].dtype. */
QUERN_API quern_status quern_op_infer(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *out);

/* The same for a call on these very data: of an op of QUERN_CLASS_DYNAMIC the inputs' values are read, and every extent is
 * exact; quern_op_infer gives -1 for an extent that depends on values. Outputs of these shapes are what quern_op_call then
 * fills: it counts again, and answers SHAPE, with nothing written, where the values are others by then. (Values that change
 * while it runs cannot make it write beyond an output; which items the output then has is not said.) `call` may be NULL. The
 * library's own such ops run on the CPU only, elsewhere: DEVICE. UNSUPPORTED: a registered op that does not say. */
QUERN_API quern_status quern_op_measure(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *out,
                                        const quern_call *call);

/* An allocator of tensors, in the form of the DLPack exchange API (managed_tensor_allocator): a tensor of the prototype's
 * dtype, ndim, shape and device (its data is NULL, strides mean nothing). Returns 0; or calls set_error(error_ctx, kind,
 * message), kind being the name of a Python exception, and returns -1. */
struct DLManagedTensorVersioned;
typedef int (*quern_allocator)(DLTensor *prototype, struct DLManagedTensorVersioned **managed, void *error_ctx,
                               void (*set_error)(void *error_ctx, const char *kind, const char *message));

/* Computes any op into outputs that `allocate` makes: measured, allocated, computed in one call. out[k] is the caller's, to
 * be given to its deleter. allocate: NULL stands for quern_managed_alloc (dlpack_exchange.h); in a generated tree, which has
 * no such function, for none (ARGUMENT). shapes: NULL, or as in quern_op_infer: a dtype that is the caller's choice is read
 * from it, the shapes of the outputs are written to it. What the allocator gives is checked as any output. It is called on
 * this thread. Errors: those of quern_op_measure and quern_op_call; when the allocator fails, MEMORY with its message; what was
 * allocated until then has been deleted. */
QUERN_API quern_status quern_op_call_alloc(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *shapes,
                                           struct DLManagedTensorVersioned **out, quern_allocator allocate,
                                           const quern_call *call);

/* How many bytes of workspace a call with these operands can use; 0 is allowed. `call` may be NULL. */
QUERN_API quern_status quern_op_workspace(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out,
                                          DLTensor *const *out, const quern_call *call, size_t *bytes);

/* Computes the op. `call` may be NULL: default parameters. */
QUERN_API quern_status quern_op_call(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out,
                                     DLTensor *const *out, const quern_call *call);

/* Does all checks and choices of a call once. `*plan` is owned by the caller and keeps the op alive. Data pointers are
 * not kept: they are given to each run. Parameters are, unless a run brings its own. UNSUPPORTED: the library's own ops of
 * QUERN_CLASS_DYNAMIC. */
QUERN_API quern_status quern_op_prepare(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out,
                                        DLTensor *const *out, const quern_call *call, quern_plan **plan);

/* Runs a plan on n_in and n_out data pointers (byte_offset included) of tensors that are otherwise as prepared. Plans
 * are immutable: any number of threads may run one at once. Overlap is checked again. */
QUERN_API quern_status quern_plan_run(quern_plan *plan, void *const *in, void *const *out, const quern_call *call);

/* Gives up the plan. NULL is allowed. */
QUERN_API void quern_plan_release(quern_plan *plan);

/* Writes into text (at most size bytes, always terminated) how a call with these operands would run: lines of
 * `key: value`, among them tier, reason, variant, isa, threads. Nothing is computed. LIMIT if text is too small:
 * what fits is there. */
QUERN_API quern_status quern_op_explain(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out,
                                        DLTensor *const *out, const quern_call *call, char *text, size_t size);

/* ---- Ops of the host's own --------------------------------------------------------------------------------------
 * A host or vendor registers an implementation under a name; it is then found and called as any other op. If the name
 * is that of a built-in op, or of an op that a spec brought, the registered one is asked first: when a function of it
 * declines with UNSUPPORTED, DTYPE, DEVICE, LAYOUT or ALIGNMENT the other one serves. Otherwise the name must be new in the
 * context. In expressions and specs a name means the op that is built in or that a spec brought. Names are
 * [a-z][a-z0-9_]*, with a namespace of that form and a dot before it or not: "acme.swishy". Dtypes, shapes and strides
 * are handed on as they are, those that no built-in op takes as well. */

typedef struct quern_op_def {
  size_t size; /* sizeof(quern_op_def) of the caller */
  const char *name;
  const char *doc;
  int32_t op_class; /* over a built-in op: DYNAMIC if that is, and only then */
  int32_t n_in, n_out, n_params;
  const char *const *arg_names; /* n_in + n_out names, or NULL */
  const quern_param_info *params;
  void *self; /* handed to the functions */
  /* Computes; must check what it needs to, write nothing when it fails, and be thread-safe. Required. */
  quern_status (*call)(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                       const quern_call *call);
  /* Infers shapes and dtypes. NULL: a built-in op's of the same name, else those of an elementwise op (of class DYNAMIC: none,
   * UNSUPPORTED). */
  quern_status (*infer)(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *out);
  /* Bytes of workspace. NULL: 0. */
  quern_status (*workspace)(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                            const quern_call *call, size_t *bytes);
  /* Called when nothing refers to the op any more. May be NULL. */
  void (*release)(void *self);
  /* The exact shapes for these data, of an op of QUERN_CLASS_DYNAMIC. NULL: what infer says. */
  quern_status (*measure)(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *out,
                          const quern_call *call);
} quern_op_def;

/* Adds the op to a context (NULL: the process-wide default). Names and structs are copied. On failure `release` is not
 * called. Errors: ARGUMENT, EXISTS, MEMORY, VERSION. */
QUERN_API quern_status quern_op_register(quern_ctx *ctx, const quern_op_def *def);

/* ---- Run time: expressions and specs (the library only; a generated tree ends above) -----------------------------
 * An expression is text, `y = gelu(x * w + b); z = y > 0`, in C's spelling and precedence: arithmetic, comparisons, logic,
 * bit operations, ?:, casts such as (f32)x, calls of the context's ops and of a few primitives (quot, rem, as_u32, ...).
 * Names that are not assigned are its inputs, in the order in which they first appear; assigned names are its outputs, in
 * order; `f32 t = ...;` is a local; `param a;` declares a scalar that each call gives, and that, as a number does, takes the
 * dtype of what it meets. One last expression without a name is the output `out`. Arguments of an op behind its inputs are
 * its parameters: clip(x, 0, 6). Of an op of several outputs one is taken by its name: frexp.mantissa(x). `NAME :` before
 * all that names the kernel.
 * `grad(expression, x)` is the derivative by the input x, element by element, in x's dtype: what broadcasting repeats is
 * not summed.
 * Integers divide to f32, and to an integer by quot(x, y), truncated, whose remainder is rem(x, y); both are 0 where y
 * is. rem of floats is C's fmod; gcd is of integers. Comparisons do not chain. Numbers, params and values between operations
 * are not rounded to f16 or bf16, which compute in f32: outputs are, once, and what nextafter and spacing take. (So
 * x == 0.1 is false where x is f16's 0.1: that is (f16)0.1.) An output that is NaN is the one NaN of its dtype (f32:
 * 0x7fc00000), whatever NaN went in; but an expression that is nothing else than one op that moves values, on its inputs
 * in order, is that op, and keeps all bits of what it need not convert: copy(x), where(c, x, y).
 * All laws of calling hold, and the bits are the same whichever way it runs:
 *   built        kernels that were compiled ahead serve it
 *   compiled     a kernel made for this expression, these dtypes and this layout: kept in memory and on disk
 *   interpreter  built kernels of its single operations over blocks in the cache; no compiler is needed
 * Compiling needs the library's module quern-gen (Lua), and quern-clang (Clang) or a C compiler (quern_options.cc); modules
 * are opened when first needed, and where they are missing the interpreter serves. They are never closed; nor is the library
 * once it was asked to compile something, whoever calls dlclose. Any thread may call any of these functions at any time. */

/* An op from an expression. `*op` is owned by the caller, counted by itself, and called as any other op. The names of the
 * ops it calls are looked up here, once. Errors: SYNTAX (the sentence has line, column and a caret), NOTFOUND (an unknown
 * function), LIMIT (64 KiB, 200 levels of nesting, 2000 operators in one chain, 32 operands, 16 parameters), UNSUPPORTED (an
 * op that only a host's function computes), ARGUMENT, MEMORY. What depends on dtypes is told by calls: DTYPE, and LIMIT for
 * more than 4096 values, or than 4 KiB of values an element at a time. */
QUERN_API quern_status quern_op_compile(quern_ctx *ctx, const char *expression, quern_op **op);

/* The text of an expression with a name, for quern_op_compile, written as code: QUERN_KERNEL(bias_gelu, y = gelu(x + b)).
 * `build.lua generate --scan FILE.c` finds these in C sources and builds their kernels ahead of time, for inputs of one dtype,
 * contiguous or, of at most 3, broadcast along the inner dimension. It reads the sources as they stand: what is in comments, in
 * strings, and between #if 0 and its #else or #endif is no use of the macro; all other conditions are taken to be true. */
#define QUERN_KERNEL(name, ...) #name ": " #__VA_ARGS__

/* Adds the ops of a spec file, all or none, to a context of the caller's own (not the process-wide one). They are then
 * found, called and used in expressions as any other. What is there already does not change. Needs the quern-gen module.
 * Errors: SYNTAX (the sentence has the place), EXISTS, IO, UNSUPPORTED (no such module; an op that moves or casts), LIMIT (the
 * bodies are too much work), ARGUMENT, MEMORY. */
QUERN_API quern_status quern_spec_load(quern_ctx *ctx, const char *path);

/* The same from memory: `size` bytes of text, borrowed for the call; `name` stands for the file name in errors. */
QUERN_API quern_status quern_spec_load_text(quern_ctx *ctx, const char *name, const char *text, size_t size);

/* The C text of the kernel that is compiled for operands of these dtypes, all contiguous; their shapes and strides do not
 * matter, and data may be NULL. *text is the caller's, to be given to quern_free. Errors: UNSUPPORTED (no quern-gen module,
 * or an op that is neither an expression nor a spec's: `build.lua show` has those), ARGUMENT, DTYPE, LIMIT, MEMORY. */
QUERN_API quern_status quern_op_source(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                                       char **text);

/* Frees what a function here has given. NULL is allowed. */
QUERN_API void quern_free(void *memory);

/* Writes into text (at most size bytes, always terminated) what the context has to work with, in lines of `key: value`:
 * version, isa, machine, threads, ops, jit, generator, clang, cc, cuda, cache, cache_state. The values of what is not there say
 * why. Opens nothing. LIMIT if text is too small: what fits is there. */
QUERN_API quern_status quern_ctx_describe(quern_ctx *ctx, char *text, size_t size);

/* The context's disk cache: calls each(arg, key, bytes, used) for every entry, on the caller's thread (key: what it is, lines
 * of text, borrowed for the call; used: when it was last, to an hour, in seconds of the epoch); removes all entries, and
 * counts them (n_removed may be NULL). A cache that is not there, or cannot be used, has none. Errors: ARGUMENT, MEMORY. */
QUERN_API quern_status quern_cache_list(quern_ctx *ctx, void (*each)(void *arg, const char *key, int64_t bytes, int64_t used),
                                        void *arg);
QUERN_API quern_status quern_cache_clear(quern_ctx *ctx, int64_t *n_removed);

/* ---- Kernels of expressions built ahead ----
 * `build.lua freeze` turns the kernels that a program was seen to want (QUERN_RECORD) into C sources with one table. A
 * program that has registered the table runs these kernels without a compiler, in every mode. */

/* A kernel as kernel sources define it; made by the generator, not by hand. */
typedef void quern_kernel_fn(char *const *ptr, const int64_t (*stride)[2], const int64_t n[2], const void *params);

typedef struct quern_kernel_row {
  const char *key;        /* what it computes, for which dtypes, and how the operands lie, as a record has it */
  const char *name;       /* the functions' name without the level */
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
 * process: a plugin that has registered one must stay loaded. A table that is there already is not added again. Where
 * two tables have a key, the later one serves. Plans made before keep the code they have. Errors: ARGUMENT, VERSION (a
 * table of another layout, or kernels of another numerics version: they would give other bits), MEMORY. */
QUERN_API quern_status quern_kernels_register(const quern_kernel_table *table);

/* Appends to the file at `path` (made if it is not there) each kernel of an expression that the context (NULL: the
 * process-wide default) has wanted so far and wants from now on, whatever served it; path NULL ends that. The variable
 * QUERN_RECORD names such a file for all contexts. Several contexts and processes may share one file. Errors: IO (also for a
 * file that is something else than a record: it is left as it is; later trouble is logged once), MEMORY. */
QUERN_API quern_status quern_record(quern_ctx *ctx, const char *path);

#ifdef __cplusplus
}
#endif

#endif /* QUERN_QUERN_H */
