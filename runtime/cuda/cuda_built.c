/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_built.c: see cuda_built.h.
 *
 * The index is read once, at first need, into tables that never change: text cut into words, kernels, ops, rows. Only the
 * images of kernels and the files that the driver has refused change later, by atomic pointers. */
#include "cuda/cuda_built.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build_id.h"
#include "core/base/status.h"
#include "base/files/module.h"
#include "base/threads/thread_shield.h"

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif
#define INDEX_FILE "cuda/kernels.txt"
enum { MAX_CHIPS = 8, MAX_INDEX = 16 << 20, MAX_ITEMS = 64, INDEX_VERSION = 2 };

typedef struct built_file {
  qn_cuda_shelf shelf;
  _Atomic(char *) failure; /* why its kernels are not used; NULL: they are */
} built_file;

typedef struct built_kernel {
  qn_cuda_variant variant; /* dtypes is NULL */
  built_file *file;
  _Atomic(qn_cuda_image *) image; /* NULL: not requested yet */
  uint8_t classes[QN_MAX_OPERANDS];
  int32_t n_operands;
} built_kernel;

typedef struct built_op {
  const char *name;
  int32_t n_operands, first_row, n_rows;
} built_op;

/* The name of a C kernel, and the CUDA kernel that computes the same over contiguous elements. */
typedef struct built_step {
  const char *c_kernel;
  const built_kernel *kernel;
} built_step;

typedef struct table {
  char failure[PATH_MAX + 256]; /* why there are no kernels; "": there are */
  char *text, *folder;
  int32_t n_chips, n_files, n_kernels, n_ops, n_rows, n_steps;
  int32_t chips[MAX_CHIPS];
  built_file *files;
  built_kernel *kernels;
  built_op *ops;
  qn_cuda_variant *rows;
  uint8_t *dtypes; /* [n_rows][QN_MAX_OPERANDS] */
  built_step *steps;
} table;

/* ---- Reading the index ---- */

static void index_free(table *all) {
  if (!all) return;
  for (int32_t i = 0; all->files && i < all->n_files; i++) free((char *)(uintptr_t)all->files[i].shelf.path);
  free(all->files);
  free(all->kernels);
  free(all->steps);
  free(all->ops);
  free(all->rows);
  free(all->dtypes);
  free(all->text);
  free(all->folder);
  free(all);
}

/* The next word of a line; "" at its end. */
static char *word(char **at) {
  char *start = *at, *end = start + strcspn(start, " ");
  *at = *end ? end + 1 : end;
  *end = 0;
  return start;
}

/* Reads a number from 0 to `most`; else -1. */
static int32_t number(char **at, int32_t most) {
  char *text = word(at), *end;
  if (text[0] < '0' || text[0] > '9' || strlen(text) > 9) return -1;
  const long value = strtol(text, &end, 10);
  return *end || value > most ? -1 : (int32_t)value;
}

static int is_name(const char *text) {
  const size_t n = strlen(text);
  return n > 0 && n < 512 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

static int read_head(char *line) {
  if (strcmp(word(&line), "quern-cuda") || number(&line, INDEX_VERSION) != INDEX_VERSION) return 0;
  return strcmp(word(&line), QN_BUILD_ID) == 0 ? 1 : -1;
}

static int read_chips(table *all, char *line) {
  while (*line && all->n_chips < MAX_CHIPS) {
    const int32_t chip = number(&line, 9999);
    if (chip < 10) return 0;
    all->chips[all->n_chips++] = chip;
  }
  return all->n_chips > 0 && !*line;
}

static int read_file_line(table *all, char *line) {
  const char *stem = word(&line);
  if (!is_name(stem) || *line) return 0;
  const size_t size = strlen(all->folder) + strlen(stem) + sizeof "/.fatbin";
  char *path = malloc(size);
  if (!path) return -1;
  snprintf(path, size, "%s/%s.fatbin", all->folder, stem);
  all->files[all->n_files++].shelf.path = path;
  return 1;
}

static int read_kernel(table *all, char *line) {
  static const char letters[] = "cbst"; /* ORDER qn_class */
  built_kernel *kernel = &all->kernels[all->n_kernels];
  const char *name = word(&line);
  const int32_t rank = number(&line, 3);
  const char *classes = word(&line);
  const int32_t is_wide = number(&line, 1), n_items = number(&line, MAX_ITEMS);
  const size_t n = strlen(classes);
  if (!is_name(name) || rank < 0 || is_wide < 0 || n_items < 1 || *line || !all->n_files) return 0;
  if (n < 1 || n > QN_MAX_OPERANDS || strspn(classes, letters) != n) return 0;
  for (size_t k = 0; k < n; k++) kernel->classes[k] = (uint8_t)(strchr(letters, classes[k]) - letters);
  kernel->n_operands = (int32_t)n;
  kernel->file = &all->files[all->n_files - 1];
  kernel->variant = (qn_cuda_variant){.name = name, .classes = kernel->classes, .rank = (uint8_t)rank,
                                      .is_wide = (uint8_t)is_wide, .items_per_thread = (uint8_t)n_items, .function = kernel};
  all->n_kernels++;
  return 1;
}

static int read_op(table *all, char *line) {
  const char *name = word(&line);
  const int32_t n = number(&line, QN_MAX_OPERANDS);
  if (!is_name(name) || n < 1 || *line) return 0;
  all->ops[all->n_ops++] = (built_op){name, n, all->n_rows, 0};
  return 1;
}

static int read_row(table *all, char *line) {
  const int32_t at = number(&line, all->n_kernels - 1);
  if (at < 0 || !all->n_ops) return 0;
  const built_kernel *kernel = &all->kernels[at];
  built_op *op = &all->ops[all->n_ops - 1];
  uint8_t *dtypes = all->dtypes + (size_t)all->n_rows * QN_MAX_OPERANDS;
  for (int32_t k = 0; k < op->n_operands; k++) {
    const int32_t dtype = number(&line, QN_DTYPE_COUNT - 1);
    if (dtype < 0) return 0;
    dtypes[k] = (uint8_t)dtype;
  }
  if (*line || kernel->n_operands != op->n_operands) return 0;
  if (op->n_rows && memcmp(dtypes - QN_MAX_OPERANDS, dtypes, (size_t)op->n_operands) > 0) return 0;
  all->rows[all->n_rows] = kernel->variant;
  all->rows[all->n_rows++].dtypes = dtypes;
  op->n_rows++;
  return 1;
}

static int read_step(table *all, char *line) {
  const char *c_kernel = word(&line);
  const int32_t at = number(&line, all->n_kernels - 1);
  if (!is_name(c_kernel) || at < 0 || *line) return 0;
  if (all->n_steps && strcmp(all->steps[all->n_steps - 1].c_kernel, c_kernel) >= 0) return 0;
  all->steps[all->n_steps++] = (built_step){c_kernel, &all->kernels[at]};
  return 1;
}

/* Room for all lines of each kind. 0: out of memory. */
static int make_room(table *all) {
  size_t n[5] = {0};
  for (const char *at = all->text; at; at = strchr(at, '\n')) {
    at += *at == '\n';
    n[0] += strncmp(at, "file ", 5) == 0;
    n[1] += strncmp(at, "kernel ", 7) == 0;
    n[2] += strncmp(at, "op ", 3) == 0;
    n[3] += strncmp(at, "row ", 4) == 0;
    n[4] += strncmp(at, "step ", 5) == 0;
  }
  all->files = calloc(n[0] + 1, sizeof *all->files);
  all->kernels = calloc(n[1] + 1, sizeof *all->kernels);
  all->ops = calloc(n[2] + 1, sizeof *all->ops);
  all->rows = calloc(n[3] + 1, sizeof *all->rows);
  all->dtypes = calloc(n[3] + 1, QN_MAX_OPERANDS);
  all->steps = calloc(n[4] + 1, sizeof *all->steps);
  return all->files && all->kernels && all->ops && all->rows && all->dtypes && all->steps;
}

/* 1: read the whole index. 0: `failure` has the error. -1: out of memory. */
static int read_lines(table *all, const char *path) {
  static const struct { const char *word; int (*read)(struct table *all, char *line); } kinds[] = {
    {"chips", read_chips}, {"file", read_file_line}, {"kernel", read_kernel}, {"op", read_op}, {"row", read_row}, {"step", read_step},
  };
  int32_t at_line = 0;
  int is_good = 1;
  if (!make_room(all)) return -1;
  for (char *line = all->text, *next; is_good == 1; line = next) {
    next = strchr(line, '\n');
    if (next) *next++ = 0;
    if (at_line++ == 0) {
      is_good = read_head(line);
      if (is_good < 0) {
        snprintf(all->failure, sizeof all->failure, "%s is of another build than this library", path);
        return 0;
      }
    } else if (strcmp(line, "end") == 0) {
      break;
    } else {
      const char *kind = word(&line);
      size_t i = 0;
      while (i < sizeof kinds / sizeof kinds[0] && strcmp(kinds[i].word, kind)) i++;
      is_good = i < sizeof kinds / sizeof kinds[0] ? kinds[i].read(all, line) : 0;
    }
    if (is_good == 1 && !next) is_good = 0; /* the end line is missing */
  }
  if (is_good < 0) return -1;
  if (!is_good) snprintf(all->failure, sizeof all->failure, "%s is damaged in line %d", path, (int)at_line);
  return is_good;
}

/* NULL: out of memory, or *is_there 0. */
static char *read_text(const char *path, int *is_there) {
  FILE *file = fopen(path, "re");
  char *text = NULL;
  *is_there = file != NULL;
  if (!file) return NULL;
  long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  if (size < 0 || size > MAX_INDEX || fseek(file, 0, SEEK_SET)) size = 0;
  if ((text = malloc((size_t)size + 1))) text[fread(text, 1, (size_t)size, file)] = 0;
  fclose(file);
  return text;
}

/* NULL: out of memory. */
static table *read_index(void) {
  table *made = calloc(1, sizeof *made);
  char *path = malloc(PATH_MAX);
  int is_there, is_good = -1;
  if (!made || !path) {
    free(path);
    free(made);
    return NULL;
  }
  if (!qn_module_path(INDEX_FILE, path, PATH_MAX)) {
    snprintf(made->failure, sizeof made->failure, "%s", path);
    is_good = 0;
  } else if (!(made->text = read_text(path, &is_there))) {
    if (!is_there) snprintf(made->failure, sizeof made->failure, "%s cannot be read", path);
    is_good = is_there ? -1 : 0;
  } else if ((made->folder = strdup(path))) {
    *strrchr(made->folder, '/') = 0;
    is_good = read_lines(made, path);
  }
  free(path);
  if (is_good >= 0) return made;
  index_free(made);
  return NULL;
}

static _Atomic(table *) the_index;

/* The table in use after a failed allocation. */
static table no_memory = {.failure = "out of memory"};

static table *index_of_all(void) {
  table *known = atomic_load_explicit(&the_index, memory_order_acquire), *made;
  if (known) return known;
  const int kept_errno = errno, kept_cancel = qn_thread_shield();
  made = read_index();
  if (made && !atomic_compare_exchange_strong(&the_index, &known, made)) { /* another thread was quicker */
    index_free(made);
    made = known;
  }
  qn_thread_unshield(kept_cancel);
  errno = kept_errno;
  return made ? made : &no_memory;
}

/* ---- Finding ---- */

/* Machine code for one chip runs on that and on later ones of its generation. */
static int has_chip(const table *all, int32_t capability) {
  for (int32_t i = 0; i < all->n_chips; i++)
    if (all->chips[i] / 10 == capability / 10 && all->chips[i] <= capability) return 1;
  return 0;
}

/* NULL: the kernels may be used. */
static const char *failure_of(const table *all, int32_t capability) {
  if (all->failure[0]) return all->failure;
  return has_chip(all, capability) ? NULL : "they are for other chips than this one";
}

static const char *failure_of_file(const qn_cuda_variant *variant) {
  const built_kernel *kernel = variant->function;
  return atomic_load_explicit(&kernel->file->failure, memory_order_acquire);
}

const qn_cuda_variant *qn_cuda_built_find(const qn_builtin *op, const uint8_t *dtypes, int32_t n_operands, int32_t capability,
                                          int32_t *n, const char **why) {
  const table *all = index_of_all();
  const built_op *found = NULL;
  const char *unsaid, *failure = failure_of(all, capability);
  if (!why) why = &unsaid;
  *n = 0;
  *why = failure;
  if (failure) return NULL;
  for (int32_t i = 0; i < all->n_ops && !found; i++)
    if (all->ops[i].n_operands == n_operands && strcmp(all->ops[i].name, op->info.name) == 0) found = &all->ops[i];
  *why = "there are none for these dtypes";
  if (!found) return NULL;
  int32_t n_found;
  const qn_cuda_variant *first =
      qn_launch_of_dtypes(all->rows + found->first_row, found->n_rows, dtypes, n_operands, &n_found);
  if (n_found == 0) return NULL;
  if ((failure = failure_of_file(first))) {
    *why = failure;
    return NULL;
  }
  *n = n_found;
  return first;
}

const qn_cuda_variant *qn_cuda_built_step(const qn_variant *c_kernel, int32_t capability, const char **why) {
  const table *all = index_of_all();
  int32_t low = 0, high = all->n_steps;
  if ((*why = failure_of(all, capability))) return NULL;
  *why = "there is none for one of its steps";
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    const qn_cuda_variant *variant = &all->steps[middle].kernel->variant;
    const int side = strcmp(c_kernel->name, all->steps[middle].c_kernel);
    if (side == 0) return (*why = failure_of_file(variant)) ? NULL : variant;
    if (side < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

qn_cuda_image *qn_cuda_built_image(const qn_cuda_variant *variant) {
  built_kernel *kernel = (built_kernel *)(uintptr_t)variant->function;
  qn_cuda_image *known = atomic_load_explicit(&kernel->image, memory_order_acquire);
  if (known) return known;
  qn_cuda_image *made = qn_cuda_image_of_shelf(&kernel->file->shelf, variant->name, variant->items_per_thread);
  if (!made || atomic_compare_exchange_strong(&kernel->image, &known, made)) return made;
  qn_cuda_image_free(made);
  return known;
}

void qn_cuda_built_refuse(const qn_cuda_variant *variant) {
  const built_kernel *kernel = variant->function;
  qn_sentence said;
  char *none = NULL;
  qn_status_keep(&said);
  char *failure = strdup(said.text);
  if (failure && !atomic_compare_exchange_strong(&kernel->file->failure, &none, failure)) free(failure);
}

void qn_cuda_built_state(char *text, size_t size) {
  const table *all = index_of_all();
  qn_strbuf buf = {text, size, 0};
  if (size) text[0] = 0;
  if (all->failure[0]) {
    qn_strbuf_add(&buf, "none: %s", all->failure);
    return;
  }
  qn_strbuf_add(&buf, "%d kernels for", all->n_kernels);
  for (int32_t i = 0; i < all->n_chips; i++) qn_strbuf_add(&buf, "%s sm_%d", i ? "," : "", all->chips[i]);
  qn_strbuf_add(&buf, ", %s", all->folder);
}
