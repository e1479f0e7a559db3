/* SPDX-License-Identifier: Apache-2.0
 *
 * managed.c: managed tensors, made of the caller's tensors, and of managed tensors of any form; see dlpack_exchange.h.
 *
 * A holder has a descriptor and an owner: the caller's object, or the managed tensor that this one was made of. So each form
 * needs one deleter only. */
#include "exchange/managed.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "exchange/descriptor.h"

/* ---- Deleting ---- */

void qn_managed_delete(struct DLManagedTensorVersioned *managed) {
  qn_sentence kept;
  if (!managed || !managed->deleter) return;
  qn_status_keep(&kept);
  managed->deleter(managed);
  qn_status_restore(&kept);
}

void qn_managed_delete_legacy(DLManagedTensor *managed) {
  qn_sentence kept;
  if (!managed || !managed->deleter) return;
  qn_status_keep(&kept);
  managed->deleter(managed);
  qn_status_restore(&kept);
}

void quern_managed_release(struct DLManagedTensorVersioned *managed) { qn_managed_delete(managed); }

/* `release` functions for owners that are managed tensors. */
static void release_versioned(void *owner) { qn_managed_delete(owner); }
static void release_legacy(void *owner) { qn_managed_delete_legacy(owner); }

/* ---- Making ---- */

/* The manager_ctx of tensors made here. Deleters use only that: a consumer may call them with a copy of the struct. */
typedef struct holder {
  union {
    DLManagedTensor legacy;
    struct DLManagedTensorVersioned versioned;
  } of;
  void (*release)(void *owner);
  void *owner;
  int64_t layout[]; /* the shape, then the strides */
} holder;

static void delete_holder(holder *h) {
  if (h->release) h->release(h->owner);
  free(h);
}

static void delete_versioned(struct DLManagedTensorVersioned *self) { delete_holder(self->manager_ctx); }
static void delete_legacy(DLManagedTensor *self) { delete_holder(self->manager_ctx); }

/* NULL: out of memory, recorded. *own: the tensor, with its shape and strides in the holder. */
static holder *make_holder(const char *function, const DLTensor *tensor, void (*release)(void *owner), void *owner,
                           DLTensor *own) {
  const size_t n = (size_t)tensor->ndim;
  holder *h = malloc(sizeof *h + 2 * n * sizeof h->layout[0]);
  if (!h) {
    qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", function);
    return NULL;
  }
  h->release = release;
  h->owner = owner;
  *own = *tensor;
  own->shape = n ? h->layout : NULL;
  own->strides = n ? h->layout + n : NULL;
  if (n) memcpy(own->shape, tensor->shape, n * sizeof h->layout[0]);
  qn_descriptor_strides(tensor, own->strides);
  return h;
}

quern_status qn_managed_make(const char *function, const DLTensor *tensor, uint64_t flags, void (*release)(void *owner),
                             void *owner, struct DLManagedTensorVersioned **managed) {
  DLTensor own;
  holder *h = make_holder(function, tensor, release, owner, &own);
  if (!h) return QUERN_E_MEMORY;
  h->of.versioned = (struct DLManagedTensorVersioned){
      {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, h, delete_versioned, flags, own};
  *managed = &h->of.versioned;
  return QUERN_OK;
}

static quern_status make_legacy(const char *function, const DLTensor *tensor, void (*release)(void *owner), void *owner,
                                DLManagedTensor **managed) {
  DLTensor own;
  holder *h = make_holder(function, tensor, release, owner, &own);
  if (!h) return QUERN_E_MEMORY;
  h->of.legacy = (DLManagedTensor){own, h, delete_legacy};
  *managed = &h->of.legacy;
  return QUERN_OK;
}

/* ---- Out ---- */

static quern_status refuse_place(const char *function) {
  return qn_status_fail(QUERN_E_ARGUMENT, "%s: the place for the managed tensor is NULL", function);
}

/* Refuses tensors that a consumer without flags would misread. */
static quern_status check_legacy(const char *function, const DLTensor *tensor, uint64_t flags) {
  char text[QN_TENSOR_DTYPE_CHARS];
  if (flags & DLPACK_FLAG_BITMASK_READ_ONLY)
    return qn_status_fail(QUERN_E_READONLY, "%s: the tensor is read-only, which the legacy form cannot say", function);
  if (flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED && tensor->dtype.bits % 8 && !qn_managed_is_old_bool(tensor->dtype))
    return qn_status_fail(QUERN_E_DTYPE, "%s: dtype %s is padded to bytes, which the legacy form cannot say", function,
                          qn_tensor_dtype_text(tensor->dtype, text));
  return QUERN_OK;
}

quern_status quern_managed_wrap(const DLTensor *tensor, uint64_t flags, void (*release)(void *owner), void *owner,
                                struct DLManagedTensorVersioned **managed) {
  static const char function[] = "managed_wrap";
  qn_descriptor descriptor;
  if (!managed) return refuse_place(function);
  *managed = NULL;
  quern_status status = qn_descriptor_read(function, tensor, 1, &descriptor);
  return status ? status : qn_managed_make(function, tensor, flags, release, owner, managed);
}

quern_status quern_managed_wrap_legacy(const DLTensor *tensor, uint64_t flags, void (*release)(void *owner), void *owner,
                                       DLManagedTensor **managed) {
  static const char function[] = "managed_wrap_legacy";
  qn_descriptor descriptor;
  if (!managed) return refuse_place(function);
  *managed = NULL;
  quern_status status = qn_descriptor_read(function, tensor, 1, &descriptor);
  if (status == QUERN_OK) status = check_legacy(function, tensor, flags);
  return status ? status : make_legacy(function, tensor, release, owner, managed);
}

/* Refuses other major versions: of those only the deleter is at a known offset. */
static quern_status check_version(const char *function, const struct DLManagedTensorVersioned *managed) {
  if (!managed) return qn_status_fail(QUERN_E_ARGUMENT, "%s: the managed tensor is NULL", function);
  if (managed->version.major == DLPACK_MAJOR_VERSION) return QUERN_OK;
  return qn_status_fail(QUERN_E_VERSION, "%s: the tensor is of DLPack %u.%u, expected version %d", function,
                        managed->version.major, managed->version.minor, DLPACK_MAJOR_VERSION);
}

static quern_status downgrade(const char *function, struct DLManagedTensorVersioned *source, DLManagedTensor **managed) {
  qn_descriptor descriptor;
  if (!managed) return refuse_place(function);
  *managed = NULL;
  quern_status status = check_version(function, source);
  if (status == QUERN_OK) status = qn_descriptor_read(function, &source->dl_tensor, 1, &descriptor);
  if (status == QUERN_OK) status = check_legacy(function, &source->dl_tensor, source->flags);
  if (status == QUERN_OK && qn_managed_is_old_bool(source->dl_tensor.dtype) &&
      !(source->flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED))
    status = qn_status_fail(QUERN_E_DTYPE, "%s: its bools are packed to bits; in the legacy form they would be bytes", function);
  return status ? status : make_legacy(function, &source->dl_tensor, release_versioned, source, managed);
}

quern_status quern_managed_downgrade(struct DLManagedTensorVersioned *source, DLManagedTensor **managed) {
  const quern_status status = downgrade("managed_downgrade", source, managed);
  if (status) qn_managed_delete(source);
  return status;
}

/* ---- In ---- */

int qn_managed_is_old_bool(DLDataType type) {
  return (type.code == kDLBool || type.code == kDLUInt) && type.bits == 1 && type.lanes == 1;
}

/* The bits of a code with one size only; 0: it has several sizes. */
static unsigned bits_of(uint8_t code) {
  if (code == kDLBool || (code >= kDLFloat8_e3m4 && code <= kDLFloat8_e8m0fnu)) return 8;
  if (code == kDLFloat6_e2m3fn || code == kDLFloat6_e3m2fn) return 6;
  return code == kDLFloat4_e2m1fn ? 4 : 0;
}

/* The error of a dtype that is not accepted. wanted: the bits of its code; 0: any size. */
static quern_status refuse_dtype(const char *function, DLDataType type, unsigned wanted) {
  const unsigned bits = type.bits;
  char text[QN_TENSOR_DTYPE_CHARS];
  qn_tensor_dtype_text(type, text);
  if (type.code > kDLFloat4_e2m1fn)
    return qn_status_fail(QUERN_E_DTYPE, "%s: dtype %s is none of DLPack %d.%d", function, text, DLPACK_MAJOR_VERSION,
                          DLPACK_MINOR_VERSION);
  if (type.lanes != 1) return qn_status_fail(QUERN_E_DTYPE, "%s: dtype %s, expected 1 lane", function, text);
  if (bits % 8)
    return qn_status_fail(QUERN_E_DTYPE, "%s: dtype %s has items of %u bits, expected whole bytes", function, text, bits);
  return qn_status_fail(QUERN_E_DTYPE, "%s: dtype %s has items of %u bits, expected %u", function, text, bits, wanted);
}

/* *dtype: the dtype as Quern has it. is_padded: sub-byte items take a byte each. */
static quern_status read_dtype(const char *function, DLDataType type, int is_padded, uint32_t options, DLDataType *dtype) {
  const DLDataType a_bool = {kDLBool, 8, 1};
  const unsigned wanted = bits_of(type.code), bits = type.bits;
  const int is_bool = (is_padded && qn_managed_is_old_bool(type)) ||
                      (options & QUERN_IMPORT_U8_IS_BOOL && type.code == kDLUInt && bits == 8 && type.lanes == 1);
  *dtype = is_bool ? a_bool : type;
  if (is_bool) return QUERN_OK;
  if (type.code > kDLFloat4_e2m1fn || type.lanes != 1 || bits % 8 || (wanted && bits != wanted))
    return refuse_dtype(function, type, wanted);
  return QUERN_OK;
}

/* Reads the source into *tensor with the final dtype; shape and strides are the source's. */
static quern_status read_import(const char *function, const DLTensor *source, int is_padded, uint32_t options, DLTensor *tensor) {
  qn_descriptor descriptor;
  if (options & ~QUERN_IMPORT_U8_IS_BOOL)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: options are %#x, beyond QUERN_IMPORT_*", function, options);
  quern_status status = qn_descriptor_read(function, source, 1, &descriptor);
  if (status) return status;
  *tensor = *source;
  return read_dtype(function, source->dtype, is_padded, options, &tensor->dtype);
}

static quern_status import(const char *function, struct DLManagedTensorVersioned *source, uint32_t options,
                           struct DLManagedTensorVersioned **managed) {
  const uint64_t padded = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  DLTensor tensor;
  if (!managed) return refuse_place(function);
  *managed = NULL;
  quern_status status = check_version(function, source);
  if (status) return status;
  status = read_import(function, &source->dl_tensor, (source->flags & padded) != 0, options, &tensor);
  if (status) return status;
  const DLDataType was = source->dl_tensor.dtype;
  const int is_same_dtype = tensor.dtype.code == was.code && tensor.dtype.bits == was.bits;
  if (source->version.minor == DLPACK_MINOR_VERSION && is_same_dtype && (tensor.strides || tensor.ndim == 0)) {
    *managed = source;
    return QUERN_OK;
  }
  return qn_managed_make(function, &tensor, source->flags & ~padded, release_versioned, source, managed);
}

quern_status quern_managed_import(struct DLManagedTensorVersioned *source, uint32_t options,
                                  struct DLManagedTensorVersioned **managed) {
  const quern_status status = import("managed_import", source, options, managed);
  if (status) qn_managed_delete(source);
  return status;
}

static quern_status import_legacy(const char *function, DLManagedTensor *source, uint32_t options,
                                  struct DLManagedTensorVersioned **managed) {
  DLTensor tensor;
  if (!managed) return refuse_place(function);
  *managed = NULL;
  if (!source) return qn_status_fail(QUERN_E_ARGUMENT, "%s: the managed tensor is NULL", function);
  const quern_status status = read_import(function, &source->dl_tensor, 1, options, &tensor);
  return status ? status : qn_managed_make(function, &tensor, 0, release_legacy, source, managed);
}

quern_status quern_managed_import_legacy(DLManagedTensor *source, uint32_t options, struct DLManagedTensorVersioned **managed) {
  const quern_status status = import_legacy("managed_import_legacy", source, options, managed);
  if (status) qn_managed_delete_legacy(source);
  return status;
}
