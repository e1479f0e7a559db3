/* SPDX-License-Identifier: Apache-2.0
 *
 * quern.c: the public functions that only the library has, not a generated tree: expressions and specs at run time, and
 * descriptions. Each checks its arguments and calls one function. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/status.h"
#include "core/op/params.h"
#include "core/tensor/tensor.h"
#include "base/files/read_all.h"
#include "base/threads/thread_shield.h"
#include "run/describe.h"
#include "run/extension.h"
#include "run/fused/fused_ops.h"
#include "jit/jit_cache.h"
#include "jit/jit_frozen.h"

/* The size limit of gen/front/sandbox.lua. One byte more is read, so that it can report larger files. */
#define LARGEST_SPEC ((size_t)1 << 20)

static quern_status refuse_null(const char *function, const char *argument) {
  return qn_status_fail(QUERN_E_ARGUMENT, "%s: %s is NULL", function, argument);
}

static quern_status no_memory(const char *function) { return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", function); }

/* Specs can be loaded into a context of the caller only, not into the process-wide one. */
static quern_status check_spec_ctx(const char *function, quern_ctx *ctx) {
  if (ctx && ctx != qn_registry_ctx(NULL)) return QUERN_OK;
  return qn_status_fail(QUERN_E_ARGUMENT, "%s: not on the process-wide context; make one with quern_ctx_create", function);
}

/* Reads a regular file that is open; file < 0: errno says why it is not. */
static quern_status read_regular(int file, const char *path, char *text, size_t *size) {
  struct stat about;
  if (file < 0 || fstat(file, &about)) return qn_status_fail(QUERN_E_IO, "spec_load: %.512s: cannot be opened (error %d)", path, errno);
  if (!S_ISREG(about.st_mode)) return qn_status_fail(QUERN_E_IO, "spec_load: %.512s: not a regular file", path);
  *size = qn_read_all(file, text, LARGEST_SPEC + 1);
  if (*size <= LARGEST_SPEC && errno) return qn_status_fail(QUERN_E_IO, "spec_load: %.512s: cannot be read", path);
  return QUERN_OK;
}

static quern_status read_spec(const char *path, char **text, size_t *size) {
  const int kept_errno = errno;
  *text = malloc(LARGEST_SPEC + 1);
  if (!*text) return no_memory("spec_load");
  const int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); /* a FIFO is not waited for */
  const quern_status status = read_regular(file, path, *text, size);
  if (file >= 0) close(file);
  if (status) free(*text);
  errno = kept_errno;
  return status;
}

quern_status quern_spec_load(quern_ctx *ctx, const char *path) {
  quern_status status = check_spec_ctx("spec_load", ctx);
  char *text;
  size_t size = 0;
  if (status) return status;
  if (!path) return refuse_null("spec_load", "the path");
  const int shield = qn_thread_shield();
  status = read_spec(path, &text, &size);
  if (status == QUERN_OK) {
    status = qn_extension_load_spec(ctx, path, text, size);
    free(text);
  }
  qn_thread_unshield(shield);
  return status;
}

quern_status quern_spec_load_text(quern_ctx *ctx, const char *name, const char *text, size_t size) {
  quern_status status = check_spec_ctx("spec_load_text", ctx);
  if (status) return status;
  if (!name) return refuse_null("spec_load_text", "the name");
  if (!text && size) return refuse_null("spec_load_text", "the text");
  return qn_extension_load_spec(ctx, name, text ? text : "", size);
}

quern_status quern_op_compile(quern_ctx *ctx, const char *expression, quern_op **op) {
  if (!expression) return refuse_null("op_compile", "the expression");
  if (!op) return refuse_null("op_compile", "the place for the op");
  if (!(ctx = qn_registry_ctx(ctx))) return no_memory("op_compile");
  return qn_extension_compile(ctx, expression, op);
}

void quern_ctx_cancel(quern_ctx *ctx) {
  if ((ctx = qn_registry_ctx(ctx))) qn_extension_cancel(ctx);
}

/* ---- About kernels ---- */

quern_status quern_scalar_store(const quern_scalar *number, DLDataType type, void *item) {
  static const quern_arg_info arg = {.name = "item", .is_output = 1};
  char text[QN_TENSOR_DTYPE_CHARS];
  uint64_t words[2];
  uint8_t dtype;
  if (!number || !item) return refuse_null("scalar_store", number ? "the item" : "the number");
  const quern_status status = qn_tensor_read_dtype(type, "scalar_store", &arg, 0, &dtype);
  if (status) return qn_status_fail(status, "scalar_store: dtype %s is not known to this library", qn_tensor_dtype_text(type, text));
  const qn_dtype_info *info = &qn_dtype_infos[dtype];
  qn_assert(qn_dtype_words(dtype) <= 2);
  if (number->kind < 0 || number->kind > QUERN_C128)
    return qn_status_fail(QUERN_E_ARGUMENT, "scalar_store: kind %d is no kind of number", number->kind);
  const char *wrong = number->kind == QUERN_C128 && info->kind != QN_KIND_COMPLEX ? "a complex number"
                                                                                  : qn_params_number(number, dtype, words);
  if (wrong) return qn_status_fail(QUERN_E_DTYPE, "scalar_store: %s, expected a number for dtype %s", wrong, info->name);
  memcpy(item, words, info->bits / 8u);
  return QUERN_OK;
}

void quern_free(void *memory) { free(memory); }

/* The dtypes of the operands of a call; shapes do not matter. */
static quern_status read_dtypes(const quern_op_info *info, DLTensor *const *in, DLTensor *const *out, uint8_t *dtypes) {
  for (int32_t k = 0; k < info->n_in + info->n_out; k++) {
    int32_t index = k < info->n_in ? k : k - info->n_in;
    qn_tensor tensor;
    quern_status status =
        qn_tensor_read(k < info->n_in ? in[index] : out[index], info->name, &info->args[k], index, 0, &tensor);
    if (status) return status;
    dtypes[k] = tensor.dtype;
  }
  return QUERN_OK;
}

quern_status quern_op_source(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out, char **text) {
  uint8_t dtypes[QN_MAX_OPERANDS];
  qn_bytes source;
  if (!op) return refuse_null("op_source", "the op");
  const quern_op_info *info = op->info;
  if (n_in != info->n_in || n_out != info->n_out || (n_in && !in) || (n_out && !out))
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: %d inputs and %d outputs given, it has %d and %d", info->name, in ? n_in : 0,
                          out ? n_out : 0, info->n_in, info->n_out);
  if (!text) return refuse_null(info->name, "the place for the text");
  if (!op->fused)
    return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: its kernels are built ahead; `build.lua show` prints them", info->name);
  quern_status status = read_dtypes(info, in, out, dtypes);
  if (status == QUERN_OK) status = qn_fused_ops_source(op, dtypes, &source);
  if (status == QUERN_OK) *text = source.data;
  return status;
}

quern_status quern_kernels_register(const quern_kernel_table *table) {
  if (!table) return refuse_null("kernels_register", "the table");
  return qn_jit_frozen_register(table);
}

quern_status quern_record(quern_ctx *ctx, const char *path) {
  ctx = qn_registry_ctx(ctx);
  qn_jit *jit = ctx ? qn_extension_jit(ctx) : NULL;
  return jit ? qn_jit_record(jit, path) : no_memory("record");
}

/* ---- About the context ---- */

quern_status quern_ctx_describe(quern_ctx *ctx, char *text, size_t size) {
  if (!text || size == 0) return refuse_null("ctx_describe", "the place for the text");
  ctx = qn_registry_ctx(ctx);
  if (!ctx) return no_memory("ctx_describe");
  return qn_describe(ctx, text, size);
}

/* The arguments of quern_cache_list. */
typedef struct cache_listing {
  void (*each)(void *arg, const char *key, int64_t bytes, int64_t used);
  void *arg;
  int is_short; /* out of memory for an item */
} cache_listing;

static void list_item(void *arg, const qn_cache_item *item) {
  cache_listing *listing = arg;
  char *key = malloc(item->key_size + 1);
  listing->is_short |= !key;
  if (!key) return;
  memcpy(key, item->key, item->key_size);
  key[item->key_size] = 0;
  listing->each(listing->arg, key, item->bytes, item->used);
  free(key);
}

quern_status quern_cache_list(quern_ctx *ctx, void (*each)(void *arg, const char *key, int64_t bytes, int64_t used), void *arg) {
  cache_listing listing = {each, arg, 0};
  if (!each) return refuse_null("cache_list", "the function");
  ctx = qn_registry_ctx(ctx);
  qn_jit *jit = ctx ? qn_extension_jit(ctx) : NULL;
  if (!jit) return no_memory("cache_list");
  const int shield = qn_thread_shield();
  qn_jit_cache_list(qn_jit_disk(jit), list_item, &listing);
  qn_thread_unshield(shield);
  return listing.is_short ? no_memory("cache_list") : QUERN_OK;
}

quern_status quern_cache_clear(quern_ctx *ctx, int64_t *n_removed) {
  ctx = qn_registry_ctx(ctx);
  qn_jit *jit = ctx ? qn_extension_jit(ctx) : NULL;
  if (!jit) return no_memory("cache_clear");
  const int shield = qn_thread_shield();
  const int64_t n = qn_jit_cache_clear(qn_jit_disk(jit));
  qn_thread_unshield(shield);
  if (n_removed) *n_removed = n;
  return QUERN_OK;
}
