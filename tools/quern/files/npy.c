/* SPDX-License-Identifier: Apache-2.0
 *
 * npy.c: see npy.h. A header is a Python literal: a dict of three known keys. What Python's own reader takes and NumPy
 * never writes (comments, joined strings, escapes, numbers in hexadecimal) is refused. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reading.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6

/* ---- Preamble: magic, two bytes of version, the header's length as u16 (version 1) or u32, little-endian ---- */

int npy_data_offset(const void *bytes, size_t size, int64_t file_bytes, int64_t *offset, char why[WHY_SIZE]) {
  const unsigned char *b = bytes;
  if (size == 0) return refuse(why, "the file is empty");
  if (size >= 4 && memcmp(b, "PK\3\4", 4) == 0)
    return refuse(why, "this is an .npz archive, not an .npy file; save its arrays one by one with numpy.save");
  if (memcmp(b, MAGIC, size < MAGIC_BYTES ? size : MAGIC_BYTES) != 0) return refuse(why, "this is not an .npy file");
  if (size < 8) return refuse(why, "truncated: the file has only %zu bytes", size);
  if (b[6] < 1 || b[6] > 3 || b[7] != 0)
    return refuse(why, "format version %d.%d is not known; 1.0, 2.0 and 3.0 are", b[6], b[7]);
  const size_t length_bytes = b[6] == 1 ? 2 : 4, preamble = 8 + length_bytes;
  if (size < preamble) return refuse(why, "truncated: the file has only %zu bytes", size);
  int64_t length = b[8] | b[9] << 8;
  if (length_bytes == 4) length |= (int64_t)b[10] << 16 | (int64_t)b[11] << 24;
  *offset = (int64_t)preamble + length;
  if (file_bytes != NPY_NO_SIZE && *offset > file_bytes)
    return refuse(why, "truncated: its header ends at byte %lld, the file at %lld", (long long)*offset,
                  (long long)file_bytes);
  if (*offset > NPY_MAX_HEADER)
    return refuse(why, "its header has %lld bytes; no array needs that many", (long long)length);
  return 1;
}

/* ---- The literal ---- */

typedef struct reader {
  const char *at, *end;
  char *why;
} reader;

/* Moves to the next character that is no white space. 0 at the end. */
static char peek(reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r' || *r->at == '\f'))
    r->at++;
  return r->at < r->end ? *r->at : 0;
}

static int take(reader *r, char c) {
  if (peek(r) != c || r->at == r->end) return 0;
  r->at++;
  return 1;
}

static int take_word(reader *r, const char *word) {
  const size_t n = strlen(word);
  peek(r);
  if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0) return 0;
  r->at += n;
  return 1;
}

static int refuse_end(const reader *r) { return refuse(r->why, "its header ends too early"); }

/* A string in either quotes into text, terminated. */
static int read_string(reader *r, const char *what, char text[NPY_DESCR_SIZE]) {
  const char quote = peek(r);
  size_t n = 0;
  if (r->at == r->end) return refuse_end(r);
  if (quote != '\'' && quote != '"') return refuse(r->why, "its header: %s is not a string", what);
  for (r->at++; r->at < r->end && *r->at != quote; r->at++) {
    if (*r->at < ' ' || *r->at > '~' || *r->at == '\\')
      return refuse(r->why, "its header: %s has a character it cannot have", what);
    if (n == NPY_DESCR_SIZE - 1) return refuse(r->why, "its header: %s is too long", what);
    text[n++] = *r->at;
  }
  if (r->at == r->end) return refuse_end(r);
  r->at++;
  text[n] = 0;
  return 1;
}

/* 12, 12L; never negative. */
static int read_extent(reader *r, int64_t *extent) {
  const char first = peek(r);
  if (r->at == r->end) return refuse_end(r);
  if (first == '-') return refuse(r->why, "its shape has a negative extent");
  if (first < '0' || first > '9') return refuse(r->why, "its shape is not a tuple of integers");
  *extent = 0;
  const char *start = r->at;
  for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
    if (__builtin_mul_overflow(*extent, 10, extent) || __builtin_add_overflow(*extent, *r->at - '0', extent))
      return refuse(r->why, "its shape has an extent of more than 2^63 - 1");
  }
  if (first == '0' && r->at - start > 1) return refuse(r->why, "its shape has a number that begins with 0");
  if (r->at < r->end && *r->at == 'L') r->at++;
  return 1;
}

/* (), (3,), (3, 4), (3, 4,); (3) is a number in Python. */
static int read_shape(reader *r, npy_header *header) {
  int comma = 1;
  if (!take(r, '(')) return r->at == r->end ? refuse_end(r) : refuse(r->why, "its shape is not a tuple");
  for (header->ndim = 0; !take(r, ')'); header->ndim++) {
    if (r->at == r->end) return refuse_end(r);
    if (!comma) return refuse(r->why, "its shape is not a tuple of integers");
    if (header->ndim == NPY_MAX_NDIM) return refuse(r->why, "it has more than %d dimensions", NPY_MAX_NDIM);
    if (!read_extent(r, &header->shape[header->ndim])) return 0;
    comma = take(r, ',');
  }
  return header->ndim == 1 && !comma ? refuse(r->why, "its shape is a number, not a tuple") : 1;
}

static int read_descr(reader *r, npy_header *header) {
  const char first = peek(r);
  if (first == '[' || first == '(')
    return refuse(r->why, "it holds records (a structured dtype); save its fields one by one with numpy.save");
  return read_string(r, "descr", header->descr);
}

static int read_order(reader *r, npy_header *header) {
  header->is_fortran = take_word(r, "True");
  if (header->is_fortran || take_word(r, "False")) return 1;
  return r->at == r->end ? refuse_end(r) : refuse(r->why, "its header: fortran_order is neither True nor False");
}

static int read_dict(reader *r, npy_header *header) {
  static const struct {
    const char *key;
    int (*read)(reader *r, npy_header *header);
  } entries[] = {{"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};
  int seen = 0, comma = 1;
  if (!take(r, '{')) return r->at == r->end ? refuse_end(r) : refuse(r->why, "its header is not a dict");
  while (!take(r, '}')) {
    char key[NPY_DESCR_SIZE];
    int k = 0;
    if (r->at == r->end) return refuse_end(r);
    if (!comma) return refuse(r->why, "its header: a comma is missing");
    if (!read_string(r, "a key", key)) return 0;
    while (k < 3 && strcmp(entries[k].key, key) != 0) k++;
    if (k == 3) return refuse(r->why, "its header has an unknown key '%s'", key);
    if (seen >> k & 1) return refuse(r->why, "its header has the key '%s' twice", key);
    if (!take(r, ':')) return r->at == r->end ? refuse_end(r) : refuse(r->why, "its header: no colon behind '%s'", key);
    if (!entries[k].read(r, header)) return 0;
    seen |= 1 << k;
    comma = take(r, ',');
  }
  for (int k = 0; k < 3; k++)
    if (!(seen >> k & 1)) return refuse(r->why, "its header has no key '%s'", entries[k].key);
  peek(r);
  return r->at == r->end ? 1 : refuse(r->why, "its header has more in it than a dict");
}

/* ---- What it means ---- */

/* Splits "<f4" into byte order, kind and size; refuses what no tensor of numbers is made of. */
static int read_dtype(npy_header *header, char *why) {
  const char *d = header->descr;
  const char order = *d == '<' || *d == '>' || *d == '|' || *d == '=' ? *d++ : 0;
  const char kind = *d ? *d++ : 0;
  char *rest = NULL;
  const long size = *d >= '1' && *d <= '9' ? strtol(d, &rest, 10) : 0;
  const int plain = size > 0 && *rest == 0;
  if (kind == 'O') return refuse(why, "it holds Python objects ('%s'), not numbers; save numbers", header->descr);
  if (kind && strchr("SUTa", kind)) return refuse(why, "it holds strings ('%s'), not numbers", header->descr);
  if (kind && strchr("mM", kind))
    return refuse(why, "it holds times ('%s'); save them as integers: a.view('i8')", header->descr);
  if (kind == 'c')
    return refuse(why, "complex numbers ('%s') are not taken in this version; save a.real and a.imag", header->descr);
  if (kind == 'f' && plain && size > 8)
    return refuse(why, "floats of %ld bytes ('%s') are not taken; save a.astype('f8')", size, header->descr);
  const int known = plain && ((kind == 'b' && size == 1) || (kind == 'V' && size == 2) ||
                              (kind && strchr("iu", kind) && (size == 1 || size == 2 || size == 4 || size == 8)) ||
                              (kind == 'f' && (size == 2 || size == 4 || size == 8)));
  if (kind == 'V' && plain && !known)
    return refuse(why, "its items are %ld bytes of no type ('%s'); 2 bytes are taken, as f16 or bf16", size,
                  header->descr);
  if (!known) return refuse(why, "dtype '%s' is not known", header->descr);
  if (order == '>')
    return refuse(why, "it is byte-swapped ('%s'); save it as little-endian: a.astype('<%s')", header->descr,
                  header->descr + 1);
  if (order != '<' && !(order == '|' && (size == 1 || kind == 'V')))
    return refuse(why, "dtype '%s' does not say its byte order; save it with numpy.save", header->descr);
  header->kind = kind;
  header->item_bytes = (int32_t)size;
  return 1;
}

/* The product of the extents other than 0 must fit, and leave room for sums. This holds for empty arrays too: NumPy makes no empty
 * array with other extents too large. */
static int count_items(npy_header *header, char *why) {
  int64_t product = header->item_bytes;
  int is_empty = 0;
  for (int32_t k = 0; k < header->ndim; k++) {
    if (header->shape[k] == 0)
      is_empty = 1;
    else if (__builtin_mul_overflow(product, header->shape[k], &product) || product > (int64_t)1 << 62)
      return refuse(why, "its shape has more than 2^62 bytes");
  }
  header->data_bytes = is_empty ? 0 : product;
  header->n_items = header->data_bytes / header->item_bytes;
  return 1;
}

int npy_parse(const void *bytes, size_t size, int64_t file_bytes, npy_header *header, char why[WHY_SIZE]) {
  memset(header, 0, sizeof *header);
  if (!npy_data_offset(bytes, size, file_bytes, &header->data_offset, why)) return 0;
  if ((int64_t)size < header->data_offset) return refuse(why, "truncated within its header");
  const char *text = bytes;
  reader r = {text + (text[6] == 1 ? 10 : 12), text + header->data_offset, why};
  if (!read_dict(&r, header) || !read_dtype(header, why) || !count_items(header, why)) return 0;
  if (file_bytes == NPY_NO_SIZE) return 1;
  const int64_t there = file_bytes - header->data_offset;
  if (there < header->data_bytes)
    return refuse(why, "truncated: its header says %lld bytes of data, there are %lld", (long long)header->data_bytes,
                  (long long)there);
  if (there > header->data_bytes)
    return refuse(why, "too long: its header says %lld bytes of data, there are %lld", (long long)header->data_bytes,
                  (long long)there);
  return 1;
}

size_t npy_format(char kind, int32_t item_bytes, int32_t ndim, const int64_t *shape, char text[NPY_FORMAT_SIZE]) {
  enum { PREAMBLE = 10, ROOM_TO_GROW = 21 };
  char *const start = text + PREAMBLE, *const end = text + NPY_FORMAT_SIZE, *at = start;
  int digits = 0; /* of the first extent */
  at += snprintf(at, (size_t)(end - at), "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (",
                 item_bytes == 1 ? '|' : '<', kind, (int)item_bytes);
  for (int32_t k = 0; k < ndim; k++) {
    const int n = snprintf(at, (size_t)(end - at), k ? ", %lld" : "%lld", (long long)shape[k]);
    if (k == 0) digits = n;
    at += n;
  }
  at += snprintf(at, (size_t)(end - at), ndim == 1 ? ",), }" : "), }");
  /* NumPy leaves room for the first extent to grow to 21 digits in place. */
  if (ndim > 0) at += snprintf(at, (size_t)(end - at), "%*s", ROOM_TO_GROW - digits, "");
  while ((at + 1 - text) % NPY_ALIGNMENT) *at++ = ' ';
  *at++ = '\n';
  const size_t length = (size_t)(at - start);
  memcpy(text, MAGIC "\x01", MAGIC_BYTES + 2); /* 1 and the 0 behind it: the version */
  text[8] = (char)(length & 255);
  text[9] = (char)(length >> 8);
  return PREAMBLE + length;
}

/* ---- Files ---- */

int npy_read(const npy_file *file, int64_t offset, void *memory, size_t size, char why[WHY_SIZE]) {
  size_t got;
  if (!read_bytes(file->fd, file->header.data_offset + offset, memory, size, &got, why)) return 0;
  return got == size ? 1 : refuse(why, "truncated while it was being read");
}

static int read_header(npy_file *file, int64_t file_bytes, char *why) {
  char few[4096], *bytes = few;
  size_t size = file_bytes < (int64_t)sizeof few ? (size_t)file_bytes : sizeof few;
  int64_t offset;
  if (!npy_read(file, 0, few, size, why) || !npy_data_offset(few, size, file_bytes, &offset, why)) return 0;
  if (offset > (int64_t)size) {
    size = (size_t)offset;
    bytes = malloc(size);
    if (!bytes) return refuse(why, "out of memory");
  }
  const int good =
      (bytes == few || npy_read(file, 0, bytes, size, why)) && npy_parse(bytes, size, file_bytes, &file->header, why);
  if (bytes != few) free(bytes);
  return good;
}

int npy_open(const char *path, npy_file *file, char why[WHY_SIZE]) {
  struct stat facts;
  memset(file, 0, sizeof *file);
  file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO is refused below, not waited for */
  if (file->fd < 0) return refuse(why, "%s", errno == ENOENT ? "there is no such file" : strerror(errno));
  int good = 0;
  if (fstat(file->fd, &facts) != 0)
    refuse(why, "%s", strerror(errno));
  else if (!S_ISREG(facts.st_mode))
    refuse(why, "%s", S_ISDIR(facts.st_mode) ? "this is a folder" : "this is not a regular file");
  else
    good = read_header(file, (int64_t)facts.st_size, why);
  if (!good) npy_close(file);
  return good;
}

void npy_close(npy_file *file) {
  if (file->fd >= 0) close(file->fd);
  file->fd = -1;
}
