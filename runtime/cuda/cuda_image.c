/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_image.c: see cuda_image.h.
 *
 * What the driver has loaded is never unloaded. Kernels may be on their way in streams when their last owner lets go of them,
 * and may be nodes of graphs that a host captured and replays a day later; the driver has no question that tells, its calls to
 * unload promise to wait for nothing, and to synchronise is not ours (it blocks the host, and ends captures). So libraries and
 * modules are the process's, some 10 KB of a device's memory for each kernel that was ever launched; an image of the same bytes
 * finds them again, so that a kernel which is forgotten and wanted again does not count twice.
 *
 * Nothing is locked: threads that load the same at once all do so, the first is everybody's, and what another has loaded in
 * vain, which was never published, is unloaded. */
#include "cuda/cuda_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/files/read_all.h"
#include "base/threads/thread_shield.h"

/* ---- The format ---- */

/* Little-endian, as all hosts of CUDA devices are. */
typedef struct header {
  char magic[8];
  uint32_t version, is_ptx, capability, items_per_thread;
  uint64_t size; /* of the code, which follows */
  qn_digest digest; /* of the header, with 0 in this field, and the code */
} header;
_Static_assert(sizeof(header) == 48, "a header has no gaps");

#define MAGIC "quern-cu"
enum { VERSION = 1, MAX_ITEMS = 64, MOST_CAPABILITY = 9999 };

static qn_digest digest_of(header head, const char *data) {
  head.digest = (qn_digest){0, 0};
  return qn_digest_add(qn_digest_of(&head, sizeof head), data, head.size);
}

qn_bytes qn_cuda_image_pack(const qn_cuda_code *code) {
  header head = {.version = VERSION, .is_ptx = (uint32_t)code->is_ptx, .capability = (uint32_t)code->capability,
                 .items_per_thread = (uint32_t)code->items_per_thread, .size = code->size};
  memcpy(head.magic, MAGIC, sizeof head.magic);
  head.digest = digest_of(head, code->data);
  char *data = malloc(sizeof head + code->size + 1);
  if (!data) return (qn_bytes){NULL, 0};
  memcpy(data, &head, sizeof head);
  memcpy(data + sizeof head, code->data, code->size);
  data[sizeof head + code->size] = 0;
  return (qn_bytes){data, sizeof head + code->size};
}

/* Checks an image. NULL: it is sound. */
static const char *failure_of(const char *bytes, size_t size, header *head) {
  if (size < sizeof *head) return "it is too short";
  memcpy(head, bytes, sizeof *head);
  if (memcmp(head->magic, MAGIC, sizeof head->magic)) return "it does not begin as one";
  if (head->version != VERSION) return "it is of another version of the format";
  if (head->size == 0 || head->size != size - sizeof *head) return "its size is not what it says";
  if (!qn_digest_is_equal(head->digest, digest_of(*head, bytes + sizeof *head))) return "it is damaged";
  const uint32_t items = head->items_per_thread & QN_CUDA_ITEMS;
  if (head->is_ptx > 1 || items < 1 || items > MAX_ITEMS || head->capability > MOST_CAPABILITY)
    return "its header makes no sense";
  if (head->is_ptx && bytes[size - 1]) return "its text has no end";
  return NULL;
}

int qn_cuda_image_parse(const char *bytes, size_t size, qn_cuda_code *code, char *why, size_t why_size) {
  header head;
  const char *failure = failure_of(bytes, size, &head);
  if (failure) {
    snprintf(why, why_size, "this is no kernel for CUDA: %s", failure);
    return 0;
  }
  *code = (qn_cuda_code){bytes + sizeof head, head.size, (int32_t)head.is_ptx, (int32_t)head.capability,
                         (int32_t)head.items_per_thread};
  return 1;
}

/* ---- Loaded kernels: never unloaded ---- */

/* A kernel in one context, for one block size. Before CUDA 12.0 contexts have no ids: a new context at the address of a
 * destroyed one is taken for it. */
typedef struct context_kernel {
  struct context_kernel *next;
  qn_cuda_context context;
  uint64_t id;
  int32_t block;
  qn_cuda_kernel_info info;
} context_kernel;

typedef struct loaded {
  struct loaded *next;
  qn_digest digest; /* of the image */
  char symbol[64];
  _Atomic(qn_cuda_kernel) kernel; /* of a library; NULL: not loaded as one */
  _Atomic(context_kernel *) in_contexts;
} loaded;

static _Atomic(loaded *) all_loaded;

/* A shelf's module in one context. */
struct qn_shelf_module {
  struct qn_shelf_module *next;
  qn_cuda_context context;
  uint64_t id;
  qn_cuda_module module;
};

struct qn_cuda_image {
  _Atomic(loaded *) loaded; /* NULL: its kernel was not requested yet */
  qn_cuda_shelf *shelf;     /* NULL: it has its own code, in `code` */
  qn_digest digest;
  qn_cuda_code code; /* its data follows this struct; with a shelf only items_per_thread is set */
  char symbol[64];
  size_t size;
};

qn_cuda_image *qn_cuda_image_make(const char *bytes, size_t size, const char *symbol, char *why, size_t why_size) {
  qn_cuda_code code;
  const int kept_errno = errno;
  if (!qn_cuda_image_parse(bytes, size, &code, why, why_size)) return NULL;
  qn_cuda_image *image;
  const size_t room = sizeof *image + code.size;
  if (strlen(symbol) >= sizeof image->symbol) {
    snprintf(why, why_size, "the kernel's name is too long");
    return NULL;
  }
  if (!(image = malloc(room))) {
    snprintf(why, why_size, "out of memory");
    errno = kept_errno;
    return NULL;
  }
  header head;
  memcpy(&head, bytes, sizeof head);
  memset(image, 0, sizeof *image);
  image->digest = head.digest;
  image->code = code;
  image->code.data = memcpy(image + 1, code.data, code.size);
  memcpy(image->symbol, symbol, strlen(symbol) + 1);
  image->size = room;
  return image;
}

qn_cuda_image *qn_cuda_image_of_shelf(qn_cuda_shelf *shelf, const char *symbol, int32_t items_per_thread) {
  const int kept_errno = errno;
  qn_cuda_image *image = strlen(symbol) < sizeof image->symbol ? calloc(1, sizeof *image) : NULL;
  errno = kept_errno;
  if (!image) return NULL;
  image->shelf = shelf;
  image->code.items_per_thread = items_per_thread;
  image->size = sizeof *image;
  strcpy(image->symbol, symbol);
  return image;
}

void qn_cuda_image_free(qn_cuda_image *image) { free(image); }

size_t qn_cuda_image_size(const qn_cuda_image *image) { return image->size; }

static loaded *find_loaded(loaded *first, const qn_cuda_image *image) {
  while (first && !(qn_digest_is_equal(first->digest, image->digest) && strcmp(first->symbol, image->symbol) == 0))
    first = first->next;
  return first;
}

/* A kernel of a shelf has only one image, so there is no search by digest. */
static loaded *loaded_of_shelf(qn_cuda_image *image) {
  loaded *known = NULL, *own = calloc(1, sizeof *own);
  if (!own) return NULL;
  memcpy(own->symbol, image->symbol, sizeof own->symbol);
  if (atomic_compare_exchange_strong(&image->loaded, &known, own)) return own;
  free(own);
  return known;
}

/* NULL: out of memory. */
static loaded *loaded_of(qn_cuda_image *image) {
  loaded *known = atomic_load_explicit(&image->loaded, memory_order_acquire), *own = NULL;
  if (known) return known;
  if (image->shelf) return loaded_of_shelf(image);
  loaded *first = atomic_load(&all_loaded);
  while (!(known = find_loaded(first, image))) {
    if (!own && !(own = calloc(1, sizeof *own))) return NULL;
    own->next = first;
    own->digest = image->digest;
    memcpy(own->symbol, image->symbol, sizeof own->symbol);
    if (!atomic_compare_exchange_strong(&all_loaded, &first, own)) continue;
    known = own;
    own = NULL;
    break;
  }
  free(own);
  atomic_store_explicit(&image->loaded, known, memory_order_release);
  return known;
}

static const context_kernel *find_in_context(const context_kernel *first, const qn_cuda_scope *scope, int32_t block) {
  while (first && !(first->context == scope->context && first->id == scope->id && first->block == block)) first = first->next;
  return first;
}

/* ---- Loading: the scope's context is current ---- */

static quern_status fail(const qn_cuda_image *image, const qn_cuda_scope *scope, qn_cuda_result result, const char *function) {
  char what[128];
  snprintf(what, sizeof what, "%s: %s", image->symbol, function);
  return qn_cuda_fail(scope->driver, result, what);
}

/* Checks the length in a fatbin's header: the driver does not. */
static int is_whole_fatbin(const qn_bytes *bytes) {
  uint32_t words[2];
  uint64_t size;
  if (bytes->size < 16) return 0;
  memcpy(words, bytes->data, sizeof words);
  memcpy(&size, bytes->data + 8, sizeof size);
  const uint64_t head = words[1] >> 16;
  return words[0] == 0xba55ed50u && head >= 16 && head < bytes->size && size <= bytes->size - head;
}

static quern_status read_shelf(const qn_cuda_shelf *shelf, qn_bytes *bytes) {
  struct stat st;
  *bytes = (qn_bytes){NULL, 0};
  const int file = open(shelf->path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return qn_status_fail(QUERN_E_IO, "%s cannot be read", shelf->path);
  const int is_file = fstat(file, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
  char *data = is_file ? malloc((size_t)st.st_size) : NULL;
  const size_t size = data ? qn_read_all(file, data, (size_t)st.st_size) : 0;
  close(file);
  *bytes = (qn_bytes){data, size};
  if (is_file && !data) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", shelf->path);
  if (data && is_whole_fatbin(bytes)) return QUERN_OK;
  free(data);
  return qn_status_fail(QUERN_E_IO, "%s is damaged", shelf->path);
}

/* The image's bytes; with a shelf they are read from its file, to be freed. */
static quern_status code_of(const qn_cuda_image *image, qn_bytes *bytes) {
  if (image->shelf) return read_shelf(image->shelf, bytes);
  *bytes = (qn_bytes){(char *)(uintptr_t)image->code.data, image->code.size};
  return QUERN_OK;
}

static void drop_code(const qn_cuda_image *image, qn_bytes *bytes) {
  if (image->shelf) free(bytes->data);
}

/* A missing name in a shelf is an error of its file: IO. */
static quern_status fail_name(const qn_cuda_image *image, const qn_cuda_scope *scope, qn_cuda_result result,
                              const char *function) {
  if (!image->shelf || result != QN_CUDA_NOT_FOUND) return fail(image, scope, result, function);
  return qn_status_fail(QUERN_E_IO, "%s has no kernel %s", image->shelf->path, image->symbol);
}

/* *library NULL: use a module instead. A shelf keeps its library, an image's own belongs to the caller. */
static quern_status open_library(const qn_cuda_image *image, const qn_cuda_scope *scope, qn_cuda_library *library) {
  const qn_cuda_driver *d = scope->driver;
  qn_cuda_library first = NULL;
  qn_bytes bytes;
  *library = image->shelf ? atomic_load_explicit(&image->shelf->library, memory_order_acquire) : NULL;
  if (*library) return QUERN_OK;
  quern_status status = code_of(image, &bytes);
  if (status) return status;
  const qn_cuda_result result = d->library_load(library, bytes.data, NULL, NULL, 0, NULL, NULL, 0);
  drop_code(image, &bytes);
  if (result) *library = NULL;
  if (result) return result == QN_CUDA_NO_BINARY_FOR_GPU ? QUERN_OK : fail(image, scope, result, "cuLibraryLoadData");
  if (!image->shelf || atomic_compare_exchange_strong(&image->shelf->library, &first, *library)) return QUERN_OK;
  d->library_unload(*library);
  *library = first;
  return QUERN_OK;
}

/* A shelf's module in the scope's context. */
static quern_status open_module(qn_cuda_image *image, const qn_cuda_scope *scope, qn_cuda_module *module) {
  const qn_cuda_driver *d = scope->driver;
  struct qn_shelf_module *first = image->shelf ? atomic_load(&image->shelf->modules) : NULL, *own = NULL;
  for (const struct qn_shelf_module *at = first; at; at = at->next) {
    if (at->context != scope->context || at->id != scope->id) continue;
    *module = at->module;
    return QUERN_OK;
  }
  qn_bytes bytes;
  if (image->shelf && !(own = calloc(1, sizeof *own))) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", image->symbol);
  quern_status status = code_of(image, &bytes);
  if (!status) {
    const qn_cuda_result result = d->module_load(module, bytes.data);
    drop_code(image, &bytes);
    if (result) status = fail(image, scope, result, "cuModuleLoadData");
  }
  if (status || !own) {
    free(own);
    return status;
  }
  /* Two threads may both load it: each module is good. */
  *own = (struct qn_shelf_module){first, scope->context, scope->id, *module};
  while (!atomic_compare_exchange_weak(&image->shelf->modules, &own->next, own)) continue;
  return QUERN_OK;
}

/* *kernel NULL: use a module, because the driver has no libraries, or this one cannot be loaded as a library: with eager loading
 * it would go into the contexts of all devices, and another chip refuses it. */
static quern_status load_library(const qn_cuda_image *image, const qn_cuda_scope *scope, loaded *to, qn_cuda_kernel *kernel) {
  const qn_cuda_driver *d = scope->driver;
  qn_cuda_library library = NULL;
  qn_cuda_kernel first = NULL;
  if ((*kernel = atomic_load_explicit(&to->kernel, memory_order_acquire))) return QUERN_OK;
  if (!d->library_load || !d->library_unload || !d->library_kernel || !d->kernel_function) return QUERN_OK;
  quern_status status = open_library(image, scope, &library);
  if (status || !library) return status;
  const qn_cuda_result result = d->library_kernel(kernel, library, image->symbol);
  const int is_first = !result && atomic_compare_exchange_strong(&to->kernel, &first, *kernel);
  if (!is_first && !image->shelf) d->library_unload(library);
  if (result) return fail_name(image, scope, result, "cuLibraryGetKernel");
  if (!is_first) *kernel = first;
  return QUERN_OK;
}

/* Queries the properties of a function of this context. */
enum { SHARED_BYTES = 48 << 10 }; /* of a block, which need no leave */

/* Gives launches of a kernel that has shared memory of its own leave to ask for more, up to what its device has for a block. kernel: NULL:
 * of a module. */
static void allow_shared(const qn_cuda_scope *scope, qn_cuda_function function, qn_cuda_kernel kernel, qn_cuda_kernel_info *info) {
  const qn_cuda_driver *d = scope->driver;
  int most = 0;
  info->dynamic_bytes = info->shared_bytes < SHARED_BYTES ? SHARED_BYTES - info->shared_bytes : 0;
  if (info->items_per_thread <= QN_CUDA_ITEMS && info->shared_bytes == 0) return;
  if (d->device_attribute(&most, QN_CUDA_DEVICE_SHARED_PER_BLOCK, scope->device) || most <= SHARED_BYTES) return;
  most -= info->shared_bytes;
  if (kernel ? !d->kernel_set_attribute || d->kernel_set_attribute(QN_CUDA_FUNCTION_DYNAMIC_SHARED_BYTES, most, kernel, scope->device)
             : !d->function_set_attribute || d->function_set_attribute(function, QN_CUDA_FUNCTION_DYNAMIC_SHARED_BYTES, most))
    return;
  info->dynamic_bytes = most;
}

static quern_status ask(const qn_cuda_image *image, const qn_cuda_scope *scope, qn_cuda_function function, context_kernel *p) {
  const qn_cuda_driver *d = scope->driver;
  const struct { int attribute; int32_t *value; } wanted[] = {
    {QN_CUDA_FUNCTION_REGISTERS, &p->info.registers}, {QN_CUDA_FUNCTION_LOCAL_BYTES, &p->info.local_bytes},
    {QN_CUDA_FUNCTION_SHARED_BYTES, &p->info.shared_bytes},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
    const qn_cuda_result result = d->function_attribute(wanted[i].value, wanted[i].attribute, function);
    if (result) return fail(image, scope, result, "cuFuncGetAttribute");
  }
  const qn_cuda_result result = d->occupancy(&p->info.blocks_per_multiprocessor, function, p->block, 0);
  if (result) return fail(image, scope, result, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  return QUERN_OK;
}

/* Fills *p, and adds it to the contexts of `to`. *module: loaded for it. */
static quern_status fill(qn_cuda_image *image, const qn_cuda_scope *scope, loaded *to, context_kernel *p, qn_cuda_module *module) {
  const qn_cuda_driver *d = scope->driver;
  qn_cuda_kernel kernel;
  qn_cuda_function function = NULL;
  qn_cuda_result result;
  quern_status status = load_library(image, scope, to, &kernel);
  if (status) return status;
  if (kernel) {
    /* cuKernelGetFunction loads the kernel in this context. The kernel itself is launched: that stays valid even if the host
     * resets the context. */
    if ((result = d->kernel_function(&function, kernel))) return fail(image, scope, result, "cuKernelGetFunction");
    p->info.function = (qn_cuda_function)(void *)kernel;
  } else {
    if ((status = open_module(image, scope, module))) return status;
    if ((result = d->module_function(&function, *module, image->symbol)))
      return fail_name(image, scope, result, "cuModuleGetFunction");
    p->info.function = function;
  }
  status = ask(image, scope, function, p);
  if (!status) allow_shared(scope, function, kernel, &p->info);
  return status;
}

/* Publishes a kernel; if another thread was first, its kernel is used. */
static const context_kernel *publish(loaded *to, const qn_cuda_scope *scope, context_kernel *own) {
  context_kernel *first = atomic_load_explicit(&to->in_contexts, memory_order_acquire);
  const context_kernel *known;
  do {
    if ((known = find_in_context(first, scope, own->block))) return known;
    own->next = first;
  } while (!atomic_compare_exchange_weak_explicit(&to->in_contexts, &first, own, memory_order_acq_rel, memory_order_acquire));
  return own;
}

static quern_status load(qn_cuda_image *image, const qn_cuda_scope *scope, int32_t block, const qn_cuda_kernel_info **info) {
  qn_cuda_module module = NULL;
  loaded *to = loaded_of(image);
  context_kernel *own = to ? calloc(1, sizeof *own) : NULL;
  if (!own) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", image->symbol);
  *own = (context_kernel){.context = scope->context, .id = scope->id, .block = block,
                  .info = {.items_per_thread = image->code.items_per_thread}};
  const int kept_mode = qn_cuda_relax(scope->driver);
  const quern_status status = fill(image, scope, to, own, &module);
  const context_kernel *known = status ? NULL : publish(to, scope, own);
  if (known) *info = &known->info;
  if (known != own) {
    if (module && !image->shelf) scope->driver->module_unload(module);
    free(own);
  }
  qn_cuda_unrelax(scope->driver, kept_mode);
  return status;
}

const qn_cuda_kernel_info *qn_cuda_image_find(qn_cuda_image *image, const qn_cuda_scope *scope, int32_t block) {
  loaded *to = atomic_load_explicit(&image->loaded, memory_order_acquire);
  if (!to && !image->shelf && (to = find_loaded(atomic_load(&all_loaded), image)))
    atomic_store_explicit(&image->loaded, to, memory_order_release);
  const context_kernel *known = to ? find_in_context(atomic_load_explicit(&to->in_contexts, memory_order_acquire), scope, block) : NULL;
  return known ? &known->info : NULL;
}

quern_status qn_cuda_image_load(qn_cuda_image *image, const qn_cuda_scope *scope, int32_t block,
                                const qn_cuda_kernel_info **info) {
  if ((*info = qn_cuda_image_find(image, scope, block))) return QUERN_OK;
  const int kept_errno = errno, kept_cancel = qn_thread_shield();
  const quern_status status = load(image, scope, block, info);
  qn_thread_unshield(kept_cancel);
  errno = kept_errno;
  return status;
}
