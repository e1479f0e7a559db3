/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_abi.h: what generated tables and the core agree on: the type of a kernel, its variants, the table of ops.
 * The tables themselves are written by the generator (op_table.c, dtype_table.h). Knows no tensors. */
#ifndef QN_KERNEL_ABI_H
#define QN_KERNEL_ABI_H

#include "quern/quern.h"

#include "core/base/isa_machine.h"
#include "core/base/spelled.h"
#include "core/dtype_table.h" /* generated: qn_dtype (QN_BOOL, QN_I8 ... QN_F64, QN_B8 ... QN_B64, QN_DTYPE_COUNT), see there */

/* Operands of one op, inputs and outputs together; its parameters. */
#define QN_MAX_OPERANDS 32
#define QN_MAX_OUTPUTS 8 /* of an op with dtype rules; ORDER MAX_OUTPUTS of gen/front/declare_op.lua */
#define QN_MAX_PARAMS 16

/* Parameters and single values are kept in words of 8 bytes: how many one of a dtype takes. */
static inline int32_t qn_dtype_words(uint8_t dtype) { return (qn_dtype_infos[dtype].size + 7) / 8; }

/* A kernel runs two nested loops, n[0] inner and n[1] outer, over operands (inputs, then outputs) at ptr[k] with byte
 * strides stride[k][0] and stride[k][1]. A kernel of rank 3 or n reads on: n[2], n[3], ... are further extents, ended by
 * a 0, and stride[j * n_operands + k] holds operand k's strides of the dimensions 2j and 2j + 1. No extent is 0 when a
 * kernel runs. A kernel of rank 1 reads n[0] and stride[k][0] only; of rank 2, also n[1] and stride[k][1], which may be
 * anything for any class: the class letter speaks of the inner dimension. params: the parameters, one behind the other, each in
 * the first bytes of qn_dtype_words words, in the kernel's compute type (rules that move bits: in the dtype that is moved). In a
 * row an input that is not one value is the output's memory, item for item, or shares nothing with it. */
typedef void qn_kernel(char *const *ptr, const int64_t (*stride)[2], const int64_t n[2], const void *params);

/* How an operand lies along the inner dimension of a kernel. */
typedef enum qn_class {
  QN_CLASS_CONTIGUOUS, /* 'c': stride = item size */
  QN_CLASS_BROADCAST,  /* 'b': stride 0 */
  QN_CLASS_STRIDED,    /* 's': any stride */
  QN_CLASS_TILED       /* 't': contiguous along dimension 1: inputs of kernels that transpose */
} qn_class;

/* One kernel in all its ISA levels. */
typedef struct qn_variant {
  const char *name;      /* without the ISA: "qk_add_f32_f32_f32_2d_ccc" */
  const uint8_t *dtypes; /* qn_dtype per operand */
  const uint8_t *classes; /* qn_class per operand */
  uint8_t rank;          /* 1, 2, 3; 0 = any */
  qn_kernel *fn[QN_ISA_COUNT]; /* NULL where not built */
} qn_variant;

/* From the inputs' dtypes to T, of kinds of op whose inputs promote. */
typedef enum qn_promotion {
  QN_PROMOTION_COMMON,   /* T is their common dtype */
  QN_PROMOTION_FLOATING, /* likewise, but f32 for integers and bool */
  QN_PROMOTION_DOUBLE    /* each input becomes f64, which T is, whatever its dtype */
} qn_promotion;

/* Kernels that a generated tree has for a target beside the CPU, as that target's backend knows them. */
struct qn_backend;
typedef struct qn_ahead {
  const struct qn_backend *backend; /* NULL: the end of a list */
  const void *kernels;
  int32_t n_kernels;
} qn_ahead;

/* An op as the generator knows it. */
typedef struct qn_builtin {
  quern_op_info info;
  const struct qn_kind *kind; /* what it does, and how a call of it runs: op/kind.h */
  uint8_t promotion;          /* qn_promotion */
  uint32_t dtypes;        /* bit qn_dtype set: the promoted dtype T may be this */
  uint32_t own;           /* bit qn_dtype set: it computes in another, but there are kernels of that T itself */
  uint32_t bool_in;       /* bit k set: input k is a condition: bool, outside promotion */
  uint8_t results[QN_MAX_OUTPUTS]; /* the dtype that output k has whatever T is; QN_DTYPE_NONE: T */
  const qn_variant *variants; /* grouped by kernel dtype, the all-contiguous variant first in each group */
  int32_t n_variants;
  /* The group of kernel dtype K is variants[first[K]] up to, not including, variants[first[K + 1]]. K follows from T by the kind:
   * T's compute dtype or a T of `own`, or T's bits dtype (QN_B8 ...). 65535 variants an op at most. */
  uint16_t first[QN_DTYPE_COUNT + 1];
  uint8_t heavy;          /* 1: one contiguous kernel per compute dtype, everything else goes through blocks */
  const qn_ahead *ahead;  /* for other targets; NULL: none */
  const char *refusal;    /* why it is no part of an expression, as a phrase; NULL: it may be */
  /* Of a backward op: for each of its inputs the input of its op that it is, or QN_READS_*; for each of its outputs the input
   * of its op by which it is the derivative. */
  uint8_t is_backward, reads[QN_MAX_OPERANDS], by[QN_MAX_OUTPUTS];
} qn_builtin;

#define QN_READS_GRAD 0xff   /* the derivative by the op's output */
#define QN_READS_OUTPUT 0xfe /* the op's output; ORDER READS of gen/graph/derive.lua */

/* Sorted by name. */
extern const qn_builtin qn_builtins[];
extern const int32_t qn_n_builtins;

/* The shared kernels around the ops' own: by element size or by dtype pair. */
typedef struct qn_pack_table {
  const qn_variant *convert[QN_DTYPE_COUNT][QN_DTYPE_COUNT]; /* [from][to], "cc", rank 1; NULL: no such cast, or one
                                                              that changes nothing (an integer to itself) */
  /* The same between a storage dtype and what it computes in, for a kernel's inputs and outputs: a NaN is left as it lies. By
   * the storage dtype; NULL: it has none, and convert is taken. */
  const qn_variant *widen[QN_DTYPE_COUNT], *narrow[QN_DTYPE_COUNT];
  /* By log2 of the item size. */
  const qn_variant *gather[QN_DTYPE_N_SIZES];    /* "sc", rank 2: strided source to contiguous rows */
  const qn_variant *scatter[QN_DTYPE_N_SIZES];   /* "cs", rank 2 */
  const qn_variant *fill[QN_DTYPE_N_SIZES];      /* "bc", rank 2: one value over each contiguous row */
  const qn_variant *transpose[QN_DTYPE_N_SIZES]; /* "sc", rank 2: source contiguous along dimension 1, destination along
                                                    dimension 0; tiled */
  /* Three operands, rank 1: elements at byte offsets, an i32 each, from one address.
   * ptr[1] of gather_at and scatter_at: the offsets, contiguous. */
  const qn_variant *gather_at[QN_DTYPE_N_SIZES];  /* ptr[0] + offset[i] -> ptr[2][i], contiguous */
  const qn_variant *scatter_at[QN_DTYPE_N_SIZES]; /* ptr[0][i], contiguous -> ptr[2] + offset[i] */
  /* "cc", rank 1, n[0] in bytes, any alignment: past the cache. Not fenced: a fence after each block, even of 2 KB, costs more
   * than streaming gains (0.8 against 0.44 ns per f32 of add); the engine fences once per slice. */
  const qn_variant *stream; /* NULL: nothing is built for the CPU */
} qn_pack_table;

extern const qn_pack_table qn_packs;

/* What makes outputs where the caller of quern_op_call_alloc names nobody; NULL: nothing does. */
extern const quern_allocator qn_allocator;

#endif
