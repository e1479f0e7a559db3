/* SPDX-License-Identifier: Apache-2.0
 *
 * dlpack_exchange.h: DLPack's managed tensors, those that come with a deleter: calls that take them, and their way in and
 * out of a library. What quern.h says of tensors, threads and errors holds here too. The library only: a generated tree
 * has no such functions. C99 and C++17 clean. */
#ifndef QUERN_DLPACK_EXCHANGE_H
#define QUERN_DLPACK_EXCHANGE_H

#include "quern.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Ownership --------------------------------------------------------------------------------------------------
 * A function that takes a managed tensor over calls its deleter exactly once, sooner or later, on every path, those that
 * fail as well; a NULL deleter is none. A deleter may run on any thread that uses or releases the tensor, and must not rely
 * on any lock of the caller. Of a tensor whose major version is not 1 nothing but the deleter is used: VERSION. A minor
 * version is not looked at: codes that are not known are refused by name (DTYPE).
 *
 * Memory that is made here (QUERN_COPY_*, quern_managed_alloc) begins at a multiple of 256 bytes and goes with the last
 * holder of its tensor. Nothing else of Quern allocates tensors. */

/* ---- Calls on managed tensors ---- */

/* Which member of quern_operand.of is meant. */
#define QUERN_OPERAND_TENSOR 0    /* a bare descriptor, borrowed */
#define QUERN_OPERAND_LEGACY 1    /* DLManagedTensor: of DLPack before 1.0 */
#define QUERN_OPERAND_VERSIONED 2 /* DLManagedTensorVersioned: of DLPack 1.x */

typedef struct quern_operand {
  int32_t form;    /* QUERN_OPERAND_* */
  int32_t consume; /* not 0: a managed tensor is taken over; 0: borrowed, and its deleter left alone */
  union {
    DLTensor *tensor;
    DLManagedTensor *legacy;
    struct DLManagedTensorVersioned *versioned;
  } of;
} quern_operand;

/* quern_op_call on operands of any form. Flags are obeyed: a READ_ONLY output is refused (READONLY), sub-byte items that are
 * not padded to bytes are (DTYPE). A bool of one bit is a bool of one byte where it is legacy or flagged as padded, as old
 * producers mean it. What is consumed is deleted when the call returns, once also if it stands for several operands; on a
 * device the work is then on its stream, not done: the producer must reuse its memory in the order of that stream, as is
 * usual, or the operand must be borrowed. Errors: those of quern_op_call; VERSION; ARGUMENT for a form that is none, or a
 * NULL. */
QUERN_API quern_status quern_op_call_managed(quern_op *op, int32_t n_in, const quern_operand *in, int32_t n_out,
                                             const quern_operand *out, const quern_call *call);

/* ---- Out: a tensor of the caller's becomes a managed one ---- */

/* A managed tensor of the caller's memory, in one allocation with its shape and strides, which are copied: strides are
 * never NULL where ndim > 0, those of extents of 1 are as given. `release(owner)` is called once, by the deleter; NULL:
 * nothing is. flags: DLPACK_FLAG_BITMASK_*. The deleter is safe on any thread if `release` is. `*managed` is the caller's.
 * Errors, after which `release` is not called: ARGUMENT (NULL, ndim, a negative extent), LAYOUT (more than 32 dimensions, too
 * far apart), DTYPE (0 bits or lanes; beyond that neither dtype nor device is looked at), MEMORY. */
QUERN_API quern_status quern_managed_wrap(const DLTensor *tensor, uint64_t flags, void (*release)(void *owner), void *owner,
                                          struct DLManagedTensorVersioned **managed);

/* The same for a consumer from before 1.0, which sees no flags: READ_ONLY is refused (READONLY), and so are sub-byte items
 * that are flagged as padded to bytes, other than bool (DTYPE). */
QUERN_API quern_status quern_managed_wrap_legacy(const DLTensor *tensor, uint64_t flags, void (*release)(void *owner),
                                                 void *owner, DLManagedTensor **managed);

/* When an export makes a copy. */
#define QUERN_COPY_IF_NEEDED 0 /* where the memory is not on the device that is asked for */
#define QUERN_COPY_NEVER 1     /* DEVICE where one would be needed */
#define QUERN_COPY_ALWAYS 2

typedef struct quern_export {
  size_t size;      /* sizeof(quern_export) of the caller */
  int32_t copy;     /* QUERN_COPY_* */
  DLDevice device;  /* where the consumer wants it; device_type 0: where it is */
  void *stream;     /* CUDA: the stream that orders the work on the tensor's memory, as quern_call.stream */
} quern_export;

/* A managed tensor of the caller's tensor for a consumer elsewhere: the memory itself, as quern_managed_wrap has it, or a
 * compact, row-major copy, flagged IS_COPIED and not READ_ONLY. `wish` NULL: the memory itself. On success the caller's share
 * has passed: release(owner) is called by the deleter, or, for a copy, before this returns (on a device: when the copy is on
 * its stream). From a device to the host the stream is synchronised: the result can be read. From the host to a CUDA device,
 * and from one device to the same, the result is ready in the order of wish->stream. kDLCUDAHost and kDLCUDAManaged memory
 * counts as the host's, and is not copied for it, but is synchronised with. Any dtype of whole bytes goes, those that no op
 * takes too, complex ones and fp8. On failure `release` is not called. Errors: those of quern_managed_wrap; VERSION; DEVICE (no
 * such device, or no way there: the sentence says why), UNSUPPORTED (items of less than a byte), COMPILER,
 * DRIVER, CAPTURING, MEMORY. */
QUERN_API quern_status quern_managed_export(const DLTensor *tensor, uint64_t flags, void (*release)(void *owner), void *owner,
                                            const quern_export *wish, struct DLManagedTensorVersioned **managed);

/* The legacy form of a versioned tensor, which is taken over. Errors, after which the source has been deleted: READONLY and
 * DTYPE (what its flags say, or bools packed to bits, the legacy form cannot say), VERSION, ARGUMENT, LAYOUT, MEMORY. */
QUERN_API quern_status quern_managed_downgrade(struct DLManagedTensorVersioned *source, DLManagedTensor **managed);

/* A new tensor of the prototype's dtype, ndim, shape and device, compact: an allocator of the DLPack exchange API's form
 * (quern_allocator), and the one that quern_op_call_alloc uses where none is given. The CPU's memory, or a CUDA device's.
 * Returns 0, or -1 after calling set_error(error_ctx, kind, sentence) (may be NULL; kind: a Python exception's name). */
QUERN_API int quern_managed_alloc(DLTensor *prototype, struct DLManagedTensorVersioned **managed, void *error_ctx,
                                  void (*set_error)(void *error_ctx, const char *kind, const char *message));

/* ---- In: a managed tensor of somebody's, of any form, becomes one without surprises ---- */

/* For quern_managed_import*. */
#define QUERN_IMPORT_U8_IS_BOOL 1u /* (UInt, 8) means bool: producers from before DLPack had one */

/* Takes the tensor over and gives one of version 1.3 in `*managed` that can be relied on: shape and strides are there, rank,
 * extents and reach are within Quern's limits, the dtype has one lane and whole bytes, bool is (Bool, 8). It is the same
 * struct where nothing had to be changed, else a new one that holds the old. The memory is not touched; its alignment and
 * device are as they are. Errors: VERSION, ARGUMENT, DTYPE (lanes, items of less than a byte, and codes that DLPack 1.3 does
 * not have, by name), LAYOUT, MEMORY; the source has then been deleted. */
QUERN_API quern_status quern_managed_import(struct DLManagedTensorVersioned *source, uint32_t options,
                                            struct DLManagedTensorVersioned **managed);
QUERN_API quern_status quern_managed_import_legacy(DLManagedTensor *source, uint32_t options,
                                                   struct DLManagedTensorVersioned **managed);

/* Calls the deleter, if there is one. NULL is allowed. */
QUERN_API void quern_managed_release(struct DLManagedTensorVersioned *managed);

#ifdef __cplusplus
}
#endif

#endif /* QUERN_DLPACK_EXCHANGE_H */
