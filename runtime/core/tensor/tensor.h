/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor.h: from DLTensors to a loop nest. tensor.c is the only reader of DLTensor: validation, dtypes,
 * broadcasting, normalisation (order, flip, coalesce); device.c has DLPack's device types, overlap.c the aliasing law.
 * Knows no ops and no kernels. Errors name an operand by its op, its quern_arg_info (`args`: inputs, then
 * outputs) and its index (0-based, inputs and outputs counted apart): "add: input 2 (y): ...". */
#ifndef QN_TENSOR_H
#define QN_TENSOR_H

#include "core/base/kernel_abi.h"

/* A location in memory: a DLTensor's `data` and a byte offset from it. On most devices `data` is an address, and the location is
 * their sum; where it is a handle, the device's kernels take base and offset separately. base NULL: not known yet. */
typedef struct qn_ref {
  char *base;
  int64_t offset;
} qn_ref;

/* The address of a location, if its base is an address. */
static inline char *qn_ref_address(qn_ref ref) { return (char *)((uintptr_t)ref.base + (uintptr_t)ref.offset); }

static inline qn_ref qn_ref_move(qn_ref ref, int64_t bytes) {
  ref.offset = (int64_t)((uint64_t)ref.offset + (uint64_t)bytes);
  return ref;
}

/* A validated tensor; each field of the DLTensor is read once. */
typedef struct qn_tensor {
  qn_ref ref; /* data, byte_offset; meaningless when n_elements is 0 */
  int64_t n_elements;
  const int64_t *shape;   /* borrowed, [ndim], outermost first */
  const int64_t *strides; /* borrowed, elements; NULL = compact */
  DLDevice device;
  int32_t ndim;
  uint8_t dtype;   /* qn_dtype */
  uint8_t size;    /* bytes an item */
  uint8_t compact; /* 1: row-major without gaps; extents of 1 do not count; so is every empty tensor */
} qn_tensor;

/* The most bytes between two items of a tensor, so that sums and differences of offsets stay in int64. */
#define QN_TENSOR_MAX_SPAN ((int64_t)1 << 61)

/* A loop nest over n_operands operands (inputs, then outputs), dimensions innermost first. Only the first `rank` entries of n and
 * of each stride row are set, and no extent among them is 0 or 1; rank 0 = one element, or none when n_elements is 0. */
typedef struct qn_nest {
  int32_t rank;
  int32_t n_operands;
  int64_t n_elements;
  uint8_t n_positions; /* the number of first operands that are elements' positions: computed from offset and strides */
  uint8_t n_joined, n_reduced; /* of a nest of core/row: the number of first dimensions that are joined, and reduced; else 0 */
  uint8_t has_handles; /* 1: bases are handles: operands with different handles share no memory */
  uint32_t apart;      /* bit k: output k shares no memory with an input, not even item by item */
  int64_t n[QUERN_MAX_NDIM];
  qn_ref ref[QN_MAX_OPERANDS]; /* the first item walked; not qn_tensor.ref where a dimension was flipped */
  int64_t stride[QN_MAX_OPERANDS][QUERN_MAX_NDIM]; /* bytes */
} qn_nest;

/* Records "<op>: <input or output> <index + 1> (<name>): <text>" and returns `status`. */
quern_status qn_tensor_fail(quern_status status, const char *op, const quern_arg_info *arg, int32_t index,
                            const char *format, ...) __attribute__((format(printf, 5, 6)));

/* "input 2 (y)", "output 1 (out)"; cut to fit; written to `text`, which is returned. */
#define QN_TENSOR_ARG_CHARS 96
const char *qn_tensor_arg_text(const quern_arg_info *arg, int32_t index, char text[QN_TENSOR_ARG_CHARS]);

/* The name of any DLDataType for such texts, supported or not: "float32", "float4_e2m1fn", "int4", "code 40, 8 bits"; with its
 * lanes if they are not 1: "float32 x 4 lanes". */
#define QN_TENSOR_DTYPE_CHARS 48
const char *qn_tensor_dtype_text(DLDataType type, char text[QN_TENSOR_DTYPE_CHARS]);

/* The qn_dtype of a DLDataType. DTYPE if its lanes are not 1, it is unknown, or it is not built into this library. */
quern_status qn_tensor_read_dtype(DLDataType type, const char *op, const quern_arg_info *arg, int32_t index, uint8_t *dtype);

/* |x| of a stride. No overflow: strides are bounded by QN_TENSOR_MAX_SPAN. */
static inline int64_t qn_tensor_magnitude(int64_t x) { return x < 0 ? -x : x; }

/* Validates one tensor. `needs_data` 0: data may be NULL (it is not accessed, or is given later). */
quern_status qn_tensor_read(const DLTensor *tensor, const char *op, const quern_arg_info *arg, int32_t index, int needs_data, qn_tensor *read);

/* Copies a descriptor with its shape and strides, which are stored in `layout`. Checks only the fields that copying uses. */
quern_status qn_tensor_copy(const DLTensor *tensor, const char *op, const quern_arg_info *arg, int32_t index, DLTensor *copy,
                            int64_t layout[2 * QUERN_MAX_NDIM]);

/* The broadcast of the inputs' shapes, outermost first; *ndim <= QUERN_MAX_NDIM; no inputs: 0 dimensions. SHAPE when
 * they do not broadcast or the result would have 2^63 elements or more. */
quern_status qn_tensor_broadcast(const char *op, const quern_arg_info *args, int32_t n_in, const qn_tensor *in, int64_t *shape, int32_t *ndim);

/* Orders the dimensions of a result in memory, innermost first, by the layout of the inputs (docs/layouts.md). shape: the inputs'
 * broadcast shape. Returns `order`, [ndim], or NULL: row-major. */
const int32_t *qn_tensor_order(int32_t ndim, const int64_t *shape, int32_t n_in, const qn_tensor *in, int32_t *order);

/* The order of dimensions with strides, by the strides' size; NULL: row-major, or one is 0, or the caller's struct has none. */
const int32_t *qn_tensor_order_of(const quern_shape *shape, int32_t *order);

/* Sets the strides of dense memory in such an order (NULL: row-major), if the caller's struct has them. */
void qn_tensor_lay_out(quern_shape *result, const int32_t *order);

/* An output must have exactly that shape. */
quern_status qn_tensor_check_shape(const char *op, const quern_arg_info *arg, int32_t index, const qn_tensor *out,
                                   int32_t ndim, const int64_t *shape);

/* Checks that all operands are on one device, or all in host-readable memory. A device also takes its own host memory
 * (device.h) and 0-d inputs on the CPU. *device: the one that computes; {kDLCPU, 0} if all memory is host-readable. */
quern_status qn_tensor_check_devices(const char *op, const quern_arg_info *args, int32_t n_in, const qn_tensor *in,
                                     int32_t n_out, const qn_tensor *out, DLDevice *device);

/* Builds the normalised nest of validated operands that broadcast to `shape`: drops dimensions of extent 1, orders them by the
 * first output's strides, innermost smallest (without outputs: the first input's), flips dimensions with no positive and some
 * negative stride, and merges adjacent dimensions where every operand allows it. */
void qn_tensor_normalise(int32_t ndim, const int64_t *shape, int32_t n_in, const qn_tensor *in, int32_t n_out, const qn_tensor *out, qn_nest *nest);

/* The aliasing law of elementwise work over a nest with n_out outputs as its last operands; sizes: bytes an item of each operand;
 * args: of those in memory. An output may have exactly the addresses and item size of an input; otherwise each pair with an
 * output in it must be disjoint, and no output may overlap itself. OVERLAP names the pair. Exact for any strides within a bound
 * of work; undecided cases are refused. (Whether the op allows the alias at all, may_alias, is not checked.) */
quern_status qn_tensor_check_overlap(const char *op, const quern_arg_info *args, const qn_nest *nest, int32_t n_out, const uint8_t *sizes);

/* The part of the law that does not depend on addresses: no output of the nest may overlap itself. */
quern_status qn_tensor_check_itself(const char *op, const quern_arg_info *args, const qn_nest *nest, int32_t n_out, const uint8_t *sizes);

typedef enum qn_overlap { QN_OVERLAP_NO, QN_OVERLAP_YES, QN_OVERLAP_UNKNOWN } qn_overlap;

/* Whether operand a of one nest and b of another, or of the same, touch one byte. */
qn_overlap qn_tensor_meet(const qn_nest *nest_a, int32_t a, uint8_t size_a, const qn_nest *nest_b, int32_t b, uint8_t size_b);

/* Refuses that output k overlaps operand `other`. allowed: the phrase for the overlap with an input that the law allows. */
quern_status qn_tensor_refuse_overlap(const char *op, const quern_arg_info *args, int32_t n_in, int32_t k, int32_t other,
                                      qn_overlap met, const char *allowed);

#endif
