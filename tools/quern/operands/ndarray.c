/* SPDX-License-Identifier: Apache-2.0
 *
 * ndarray.c: see ndarray.h. Files are read, not mapped: one that shrinks while it is used gives a sentence, not a
 * signal. */
#include "ndarray.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "files/inflate.h"
#include "files/npz.h"
#include "say.h"

#define STEP_BYTES ((int64_t)1 << 25) /* read or written between two looks at progress */

static int complain_of(const ndarray *array, const char *why) { return complain("%s: %s", array->word->path, why), 0; }

static void begin(ndarray *array, const operand_word *word, int32_t ndim, const int64_t *shape, DLDataType dtype) {
  memset(array, 0, sizeof *array);
  array->word = word;
  array->source.fd = array->target.fd = -1;
  if (ndim) memcpy(array->shape, shape, (size_t)ndim * sizeof shape[0]);
  array->tensor = (DLTensor){.device = {kDLCPU, 0}, .ndim = ndim, .dtype = dtype, .shape = array->shape};
}

/* The most that memory of a process can be; the library refuses beyond it too. */
static int count_bytes(ndarray *array) {
  int64_t bytes = array->tensor.dtype.bits / 8;
  for (int32_t k = 0; k < array->tensor.ndim; k++) {
    if (array->shape[k] == 0) return array->bytes = 0, 1;
    if (__builtin_mul_overflow(bytes, array->shape[k], &bytes) || bytes > (int64_t)1 << 60)
      return complain("%s: more than 2^60 bytes", array->word->name), 0;
  }
  array->bytes = bytes;
  return 1;
}

static int take_memory(ndarray *array) {
  /* Large arrays on large pages, where the system has them to give. */
  const size_t alignment = array->bytes < 1 << 22 ? 64 : 1 << 21;
  const size_t size = array->bytes ? (size_t)array->bytes : 1;
  if (posix_memalign(&array->memory, alignment, size) != 0) {
    array->memory = NULL;
    return complain("%s: out of memory: it has %lld bytes", array->word->name, (long long)array->bytes), 0;
  }
  if (alignment > 64) madvise(array->memory, size, MADV_HUGEPAGE);
  array->tensor.data = array->memory;
  return 1;
}

void ndarray_end(ndarray *array) {
  if (!array->word) return;
  array_source_close(&array->source);
  output_file_end(&array->target);
  free(array->archive);
  free(array->memory);
  memset(array, 0, sizeof *array);
}

int ndarray_describe(ndarray *array, const operand_word *word) {
  begin(array, word, word->ndim, word->shape, word->dtype);
  return count_bytes(array);
}

/* ---- Dtypes ---- */

/* The dtype of what NumPy wrote; 0 for items of no type. */
static int dtype_of_file(const npy_header *header, DLDataType *dtype) {
  const uint8_t code = header->kind == 'b'   ? kDLBool
                       : header->kind == 'i' ? kDLInt
                       : header->kind == 'u' ? kDLUInt
                                             : kDLFloat;
  *dtype = (DLDataType){.code = code, .bits = (uint8_t)(8 * header->item_bytes), .lanes = 1};
  return header->kind != 'V';
}

/* The dtypes that the library takes: those of the op that copies anything; NULL where it was built without it. */
static const char *dtypes_taken(quern_ctx *ctx, quern_op **copy) {
  const quern_op_info *info = quern_op_find(ctx, "copy", copy) ? NULL : quern_op_describe(*copy);
  return info && info->n_in == 1 && info->args[0].dtypes[0] ? info->args[0].dtypes : NULL;
}

static int is_among(const char *word, const char *list) {
  const size_t n = strlen(word);
  for (const char *at = list; (at = strstr(at, word)); at += n)
    if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return 1;
  return 0;
}

static int check_taken(ndarray *array, quern_ctx *ctx) {
  char name[OPERAND_DTYPE_SIZE];
  const char *descr = array->source.header.descr;
  const DLDataType dtype = array->tensor.dtype;
  quern_op *copy = NULL;
  const char *taken = dtypes_taken(ctx, &copy);
  int good = 1;
  operand_dtype_name(dtype, name);
  if (taken && !is_among(operand_dtype_name(dtype, name), taken)) {
    const char *instead = dtype.bits < 32 && (dtype.code == kDLInt || dtype.code == kDLUInt) ? "i4" : "i8";
    complain("%s: dtype %s ('%s') is not taken in this version; save a.astype('%s')%s", array->word->path, name, descr,
             instead, dtype.bits == 16 ? ", or say NAME:f16=FILE or NAME:bf16=FILE if these are such floats" : "");
    good = 0;
  }
  quern_op_release(copy);
  return good;
}

/* The file's dtype, or what the word says that its 16-bit items are. */
static int choose_dtype(ndarray *array, quern_ctx *ctx) {
  const operand_word *word = array->word;
  const npy_header *header = &array->source.header;
  char wanted[OPERAND_DTYPE_SIZE], found[OPERAND_DTYPE_SIZE];
  const int is_typed = dtype_of_file(header, &array->tensor.dtype);
  if (!is_typed && !word->has_dtype)
    return complain("%s: its items are 16 bits of no type ('%s'): say %s:bf16=FILE or %s:f16=FILE", word->path,
                    header->descr, word->name, word->name),
           0;
  if (!word->has_dtype) return check_taken(array, ctx);
  const DLDataType dtype = word->dtype;
  const int is_half = dtype.bits == 16 && (dtype.code == kDLFloat || dtype.code == kDLBfloat);
  if ((is_half && header->item_bytes == 2) || (is_typed && memcmp(&dtype, &array->tensor.dtype, sizeof dtype) == 0)) {
    array->tensor.dtype = dtype;
    return is_half || check_taken(array, ctx);
  }
  complain(
      "%s: it holds %s ('%s'), not %s: %s:DTYPE=FILE only says whether 16-bit items are f16 or bf16; "
      "an expression casts: (%s)%s",
      word->path, is_typed ? operand_dtype_name(array->tensor.dtype, found) : "items of no type", header->descr,
      operand_dtype_name(dtype, wanted), word->name, operand_dtype_name(dtype, wanted), word->name);
  return 0;
}

/* ---- Inputs ---- */

int ndarray_open(ndarray *array, const operand_word *word, quern_ctx *ctx) {
  char why[WHY_SIZE];
  const npy_header *header = &array->source.header;
  begin(array, word, 0, NULL, word->dtype);
  if (!array_source_open(word->path, word->name, &array->source, why)) return complain_of(array, why);
  array->tensor.ndim = header->ndim;
  memcpy(array->shape, header->shape, sizeof array->shape);
  array->bytes = header->data_bytes;
  if (header->is_fortran && header->data_bytes) {
    int64_t stride = 1;
    for (int32_t k = 0; k < header->ndim; k++) {
      array->strides[k] = stride;
      stride *= header->shape[k];
    }
    array->tensor.strides = array->strides;
  }
  return choose_dtype(array, ctx);
}

int ndarray_read(ndarray *array) {
  char why[WHY_SIZE];
  if (!take_memory(array)) return 0;
  for (int64_t at = 0; at < array->bytes; at += STEP_BYTES) {
    const int64_t left = array->bytes - at;
    progress_set("reading", array->word->path, at, array->bytes);
    if (!array_source_read(&array->source, (char *)array->memory + at, (size_t)(left < STEP_BYTES ? left : STEP_BYTES), why))
      return complain_of(array, why);
  }
  if (!array_source_finish(&array->source, why)) return complain_of(array, why);
  array_source_close(&array->source);
  return 1;
}

/* ---- Outputs ---- */

int ndarray_infer(ndarray *array, const operand_word *word, const quern_shape *shape) {
  begin(array, word, shape->ndim, shape->shape, word->has_dtype ? word->dtype : shape->dtype);
  if (!count_bytes(array)) return 0;
  if (!word->path) return 1;
  if (!(array->archive = malloc(strlen(word->path) + 1))) return complain("out of memory"), 0;
  if (!array_source_splits(word->path, array->archive, &array->member)) {
    free(array->archive);
    array->archive = NULL;
  } else if (!array->member) {
    array->member = word->name;
  }
  if (array->member && strlen(array->member) >= NPZ_NAME_SIZE) return complain_of(array, "its name in the archive is too long");
  return 1;
}

int ndarray_join(ndarray *array, ndarray *earlier) {
  if (!array->archive || !earlier->archive || strcmp(array->archive, earlier->archive) != 0) return 0;
  array->first = earlier->first ? earlier->first : earlier;
  while (earlier->next) earlier = earlier->next;
  earlier->next = array;
  return 1;
}

static size_t format_header(const ndarray *array, char text[NPY_FORMAT_SIZE]) {
  const DLDataType dtype = array->tensor.dtype;
  static const char kinds[] = {[kDLInt] = 'i', [kDLUInt] = 'u', [kDLFloat] = 'f', [kDLBfloat] = 'V', [kDLBool] = 'b'};
  return npy_format(kinds[dtype.code], dtype.bits / 8, array->tensor.ndim, array->shape, text);
}

/* Standard output is this array's from now on. */
static int begin_output(ndarray *array) {
  if (isatty(STDOUT_FILENO)) return complain_of(array, "standard output is a terminal: what is written is an .npy file");
  array->target.fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (array->target.fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return complain_of(array, strerror(errno));
  return 1;
}

static int is_output(const ndarray *array) { return array->word->path && strcmp(array->word->path, "-") == 0; }

int ndarray_begin(ndarray *array) {
  char text[NPY_FORMAT_SIZE], why[WHY_SIZE];
  const char *path = array->archive ? array->archive : array->word->path;
  const int64_t size = (int64_t)format_header(array, text) + array->bytes;
  if (is_output(array)) {
    if (!begin_output(array)) return 0;
  } else if (path && !array->first && !output_file_begin(&array->target, path, array->is_packed ? 0 : size, why)) {
    return complain_of(array, why);
  }
  return take_memory(array);
}

/* Gives the file's bytes, header first, to put(arg, bytes, size, is_last). */
static int give_bytes(const ndarray *array, int (*put)(void *arg, const void *bytes, size_t size, int is_last), void *arg) {
  char text[NPY_FORMAT_SIZE];
  int good = put(arg, text, format_header(array, text), array->bytes == 0);
  for (int64_t at = 0; good && at < array->bytes; at += STEP_BYTES) {
    const int64_t left = array->bytes - at;
    progress_set("writing", array->word->path, at, array->bytes);
    good = put(arg, (char *)array->memory + at, (size_t)(left < STEP_BYTES ? left : STEP_BYTES), left <= STEP_BYTES);
  }
  return good;
}

/* ---- Archives ---- */

typedef struct archive {
  output_file *file;
  int64_t at; /* bytes written */
  npz_member *member; /* the one being written */
  packer *packer; /* NULL: it is not packed */
  char *why;
} archive;

static int put_raw(void *arg, const void *bytes, size_t size) {
  archive *to = arg;
  to->at += (int64_t)size;
  return output_file_write(to->file, bytes, size, to->why);
}

static int put_part(void *arg, const void *bytes, size_t size, int is_last) {
  archive *to = arg;
  to->member->crc = npz_crc(to->member->crc, bytes, size);
  to->member->bytes += (int64_t)size;
  return to->packer ? packer_add(to->packer, bytes, size, is_last) : put_raw(to, bytes, size);
}

/* One array; its record is written again when its size is known. */
static int write_member(archive *to, const ndarray *array, npz_member *member, int64_t *local_at) {
  unsigned char record[NPZ_RECORD_SIZE];
  strcpy(member->name, array->member);
  member->is_deflated = array->is_packed;
  to->member = member;
  to->packer = NULL;
  *local_at = to->at;
  if (!put_raw(to, record, npz_format_local(member, record))) return 0;
  member->data_at = to->at;
  if (array->is_packed && !(to->packer = packer_open(put_raw, to))) return strcpy(to->why, "out of memory"), 0;
  const int good = give_bytes(array, put_part, to);
  packer_close(to->packer);
  member->packed_bytes = to->at - member->data_at;
  return good && output_file_patch(to->file, *local_at, record, npz_format_local(member, record), to->why);
}

static int write_archive(ndarray *first, char *why) {
  unsigned char record[NPZ_RECORD_SIZE];
  archive to = {.file = &first->target, .why = why};
  int n = 0, good = 1;
  for (const ndarray *at = first; at; at = at->next) n++;
  npz_member *members = calloc((size_t)n, sizeof members[0]);
  int64_t *places = calloc((size_t)n, sizeof places[0]);
  if (!members || !places) good = (strcpy(why, "out of memory"), 0);
  const ndarray *at = first;
  for (int k = 0; k < n && good; k++, at = at->next) good = write_member(&to, at, &members[k], &places[k]);
  const int64_t directory_at = to.at;
  for (int k = 0; k < n && good; k++) good = put_raw(&to, record, npz_format_entry(&members[k], places[k], record));
  good = good && put_raw(&to, record, npz_format_end(n, directory_at, to.at - directory_at, record));
  free(members);
  free(places);
  return good;
}

/* ---- Files ---- */

typedef struct plain {
  output_file *file;
  char *why;
} plain;

static int put_plain(void *arg, const void *bytes, size_t size, int is_last) {
  const plain *to = arg;
  (void)is_last;
  return output_file_write(to->file, bytes, size, to->why);
}

int ndarray_write(ndarray *array) {
  char why[WHY_SIZE];
  plain to = {&array->target, why};
  if (!array->word->path || array->first) return 1;
  if (!(array->archive ? write_archive(array, why) : give_bytes(array, put_plain, &to))) return complain_of(array, why);
  if (!is_output(array)) return output_file_finish(&array->target, why) ? 1 : complain_of(array, why);
  return close(array->target.fd) == 0 ? 1 : complain_of(array, strerror(errno));
}

int ndarray_publish(ndarray *array) {
  char why[WHY_SIZE];
  return !array->word->path || array->first || is_output(array) || output_file_publish(&array->target, why) ? 1 : complain_of(array, why);
}
