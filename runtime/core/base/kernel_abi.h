/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_abi.h: the interface between generated tables and the core: the type of a kernel, its variants, the table of ops.
 * The tables themselves are written by the generator (op_table.c, dtype_table.h). Knows no tensors. */
#ifndef QN_KERNEL_ABI_H
#define QN_KERNEL_ABI_H

#include "quern/quern.h"

#include "core/base/isa_machine.h"
#include "core/base/environment.h"
#include "core/base/status.h"
#include "core/dtype_table.h" /* generated: qn_dtype (QN_BOOL, QN_I8 ... QN_F64, QN_B8 ... QN_B64, QN_DTYPE_COUNT), see there */

/* Operands of one op, inputs and outputs together; its parameters. */
#define QN_MAX_OPERANDS 32
#define QN_MAX_OUTPUTS 8 /* of an op with dtype rules; ORDER MAX_OUTPUTS of gen/front/declare_op.lua */
#define QN_MAX_PARAMS 16

/* A kernel runs two nested loops, n[0] inner and n[1] outer, over operands (inputs, then outputs) at ptr[k] with byte
 * strides stride[k][0] and stride[k][1]. A kernel of rank 3 or n reads on: n[2], n[3], ... are further extents, ended by
 * a 0, and stride[j * n_operands + k] holds operand k's strides of the dimensions 2j and 2j + 1. No extent is 0 when a
 * kernel runs. A kernel of rank 1 reads n[0] and stride[k][0] only; of rank 2, also n[1] and stride[k][1]: any stride for any
 * class, since the class describes the inner dimension only. params: the parameters in sequence, each in the first bytes of its
 * qn_dtype_words words, in the kernel's compute type (kernels that copy bits: in the dtype copied). Within a row, an input with
 * a stride other than 0 has exactly the output's addresses, item by item, or shares no memory with it. */
typedef void qn_kernel(char *const *ptr, const int64_t (*stride)[2], const int64_t n[2], const void *params);

/* An operand's layout along the inner dimension of a kernel. */
typedef enum qn_class {
  QN_CLASS_CONTIGUOUS, /* 'c': stride = item size */
  QN_CLASS_BROADCAST,  /* 'b': stride 0 */
  QN_CLASS_STRIDED,    /* 's': any stride */
  QN_CLASS_TILED       /* 't': contiguous along dimension 1: inputs of kernels that transpose */
} qn_class;

/* One kernel, built for several ISA levels. */
typedef struct qn_variant {
  const char *name;      /* without the ISA: "qk_add_f32_f32_f32_2d_ccc" */
  const uint8_t *dtypes; /* qn_dtype per operand */
  const uint8_t *classes; /* qn_class per operand */
  uint8_t rank;          /* 1, 2, 3; 0 = any */
  qn_kernel *fn[QN_ISA_COUNT]; /* NULL where not built */
} qn_variant;

/* The rule from the inputs' dtypes to the promoted dtype T. */
typedef enum qn_promotion {
  QN_PROMOTION_COMMON,   /* T is their common dtype */
  QN_PROMOTION_FLOATING, /* likewise, but f32 for integers and bool */
  QN_PROMOTION_DOUBLE    /* T is f64 for all dtypes */
} qn_promotion;

/* A generated tree's kernels for a target other than the CPU, in the format of that target's backend. */
struct qn_backend;
typedef struct qn_ahead {
  const struct qn_backend *backend; /* NULL: the end of a list */
  const void *kernels;
  int32_t n_kernels;
} qn_ahead;

/* An op as the generator knows it. */
typedef struct qn_builtin {
  quern_op_info info;
  const struct qn_kind *kind; /* op/kind.h */
  uint8_t promotion;          /* qn_promotion */
  uint32_t dtypes;        /* bit qn_dtype set: the op takes this promoted dtype T */
  uint32_t own;           /* bit qn_dtype set: kernels compute in this T itself, not in its compute dtype */
  uint32_t bool_in;       /* bit k set: input k is a condition: bool, outside promotion */
  uint32_t whole_in;      /* bit k set: input k is an integer of any dtype, outside promotion */
  uint8_t results[QN_MAX_OUTPUTS]; /* the fixed dtype of output k; QN_DTYPE_NONE: T */
  const qn_variant *variants; /* grouped by kernel dtype, the all-contiguous variant first in each group */
  int32_t n_variants;
  /* The group of kernel dtype K: variants[first[K]] up to, not including, variants[first[K + 1]]. The kind derives K from T:
   * T's compute dtype, T itself if it is in `own`, or T's bits dtype (QN_B8 ...). At most 65535 variants an op. */
  uint16_t first[QN_DTYPE_COUNT + 1];
  uint8_t heavy;          /* 1: one contiguous kernel per compute dtype; other layouts go through blocks */
  const qn_ahead *ahead;  /* kernels for other targets; NULL: none */
  const void *of_kind;    /* further data of its kind: row_program.h; NULL: there are none */
  const struct qn_op_traits *traits; /* for layers above the core: base/op_traits.h; NULL: there are none */
} qn_builtin;

/* Sorted by name. */
extern const qn_builtin qn_builtins[];
extern const int32_t qn_n_builtins;

/* The kernels that all ops share for packing and converting: by item size or by dtype pair. */
typedef struct qn_pack_table {
  const qn_variant *convert[QN_DTYPE_COUNT][QN_DTYPE_COUNT]; /* [from][to], "cc", rank 1; NULL: no such cast, or one
                                                              that changes nothing (an integer to itself) */
  /* Conversions between a storage dtype and its compute dtype, for a kernel's inputs and outputs, that do not canonicalise NaNs.
   * By the storage dtype; NULL: `convert` is used. */
  const qn_variant *widen[QN_DTYPE_COUNT], *narrow[QN_DTYPE_COUNT];
  /* By log2 of the item size. */
  const qn_variant *gather[QN_DTYPE_N_SIZES];    /* "sc", rank 2: strided source to contiguous rows */
  const qn_variant *scatter[QN_DTYPE_N_SIZES];   /* "cs", rank 2 */
  const qn_variant *fill[QN_DTYPE_N_SIZES];      /* "bc", rank 2: one value over each contiguous row */
  const qn_variant *transpose[QN_DTYPE_N_SIZES]; /* "sc", rank 2: source contiguous along dimension 1, destination along
                                                    dimension 0; tiled */
  /* Three operands, rank 1: items at byte offsets from one address. The offsets, i32 and contiguous, are at ptr[1]. */
  const qn_variant *gather_at[QN_DTYPE_N_SIZES];  /* ptr[0] + offset[i] -> ptr[2][i], contiguous */
  const qn_variant *scatter_at[QN_DTYPE_N_SIZES]; /* ptr[0][i], contiguous -> ptr[2] + offset[i] */
  /* "cc", rank 1, n[0] in bytes, any alignment: a copy by non-temporal stores, without a fence. A fence after each block, even
   * of 2 KB, costs more than streaming gains (0.8 against 0.44 ns per f32 of add); the engine fences once per slice. */
  const qn_variant *stream; /* NULL: nothing is built for the CPU */
} qn_pack_table;

extern const qn_pack_table qn_packs;

/* Generated: what layers above the core add to it. All NULL in a tree, which has none. */
typedef struct qn_above_table {
  quern_allocator allocator; /* of outputs where the caller of quern_op_call_alloc gives none */
  /* Data that these layers keep with each context: qn_registry_extension. create: NULL for lack of memory. */
  void *(*create)(quern_ctx *ctx, const quern_options *options); /* ctx: it has its built-in ops */
  void (*destroy)(void *extension);
  quern_status (*define)(quern_ctx *ctx, const quern_op_def *def); /* before qn_registry_register */
  void *(*take)(size_t bytes);  /* memory in place of the stack, aligned to 64; NULL: there is none */
  void (*give)(void *const *taken);
  quern_status (*find)(quern_ctx *ctx, const char *name, quern_op **op); /* what is made at need; NOTFOUND: other libraries have the name */
} qn_above_table;

extern const qn_above_table qn_above;

static inline void qn_give_scratch(void *const *taken) { if (*taken) qn_above.give(taken); }

/* `type *name`, on the stack only where there is no other memory. (A size that is known would make room there in any case.) */
#define QN_IN_SCRATCH(type, name)                                                                                              \
  __attribute__((cleanup(qn_give_scratch))) void *const name##_taken = qn_above.take ? qn_above.take(sizeof(type)) : NULL;     \
  size_t name##_bytes = sizeof(type);                                                                                          \
  __asm__("" : "+r"(name##_bytes));                                                                                            \
  type *const name = name##_taken ? name##_taken : __builtin_alloca_with_align(name##_bytes, 512)

#endif
