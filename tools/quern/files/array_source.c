/* SPDX-License-Identifier: Apache-2.0
 *
 * array_source.c: see array_source.h. */
#include "array_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inflate.h"
#include "npz.h"
#include "reading.h"

enum { PREAMBLE = 12 }; /* bytes that tell where a header ends */

int array_source_splits(const char *path, char *file, const char **name) {
  const size_t n = strlen(path);
  const char *colon = strstr(path, ".npz:");
  for (const char *next = colon; (next = next ? strstr(next + 1, ".npz:") : NULL);) colon = next;
  *name = NULL;
  if (colon && colon[5]) {
    *name = colon + 5;
    memcpy(file, path, (size_t)(colon + 4 - path));
    file[colon + 4 - path] = 0;
    return 1;
  }
  memcpy(file, path, n + 1);
  return n > 4 && strcmp(path + n - 4, ".npz") == 0;
}

/* ---- Bytes ---- */

int array_source_read(array_source *source, void *memory, size_t size, char why[WHY_SIZE]) {
  size_t got = size;
  if (source->inflater) {
    if (!inflater_read(source->inflater, memory, size, why)) return 0;
  } else if (!read_bytes(source->fd, source->at, memory, size, &got, why)) {
    return 0;
  }
  if (got < size) return refuse(why, source->is_input ? "truncated: it ends before its array does" : "truncated while it was being read");
  if (source->at >= 0) source->at += (int64_t)size;
  if (source->has_crc) source->crc = npz_crc(source->crc, memory, size);
  return 1;
}

int array_source_finish(array_source *source, char why[WHY_SIZE]) {
  char more;
  size_t got = 0;
  if (source->has_crc && source->crc != source->wanted_crc)
    return refuse(why, "damaged: its bytes are not those of its checksum");
  if (source->is_input && !read_bytes(source->fd, -1, &more, 1, &got, why)) return 0;
  return got == 0 ? 1 : refuse(why, "too long: something comes behind its array");
}

void array_source_close(array_source *source) {
  inflater_close(source->inflater);
  if (source->fd >= 0 && !source->is_input) close(source->fd);
  source->inflater = NULL;
  source->fd = -1;
}

/* ---- Headers ---- */

/* Reads a header from the first byte on; `bytes`: of the whole image, NPY_NO_SIZE for a stream. */
static int read_header(array_source *source, int64_t bytes, char *why) {
  unsigned char few[PREAMBLE], *all = NULL;
  const size_t size = bytes == NPY_NO_SIZE || bytes > PREAMBLE ? PREAMBLE : (size_t)bytes;
  int64_t offset;
  if (!array_source_read(source, few, size, why) || !npy_data_offset(few, size, bytes, &offset, why)) return 0;
  /* A header ends no earlier than these do, unless it is one that npy_parse refuses. */
  if (offset < (int64_t)size) return refuse(why, "its header is not a dict");
  if (!(all = malloc((size_t)offset))) return refuse(why, "out of memory");
  memcpy(all, few, size);
  const int good = array_source_read(source, all + size, (size_t)offset - size, why) &&
                   npy_parse(all, (size_t)offset, bytes, &source->header, why);
  free(all);
  return good;
}

/* An array of an archive that is open. */
static int open_member(array_source *source, int64_t file_bytes, const char *name, const char *usual, char *why) {
  npz_member member;
  if (!npz_find(source->fd, file_bytes, name, usual, &member, why)) return 0;
  source->at = member.data_at;
  source->has_crc = 1;
  source->wanted_crc = member.crc;
  if (member.is_deflated && !inflater_open(source->fd, member.data_at, member.packed_bytes, &source->inflater, why)) return 0;
  char about[WHY_SIZE];
  if (read_header(source, member.bytes, about)) return 1;
  return refuse(why, "its array %.60s: %.180s", member.name, about);
}

static int open_input(array_source *source, char *why) {
  source->fd = STDIN_FILENO;
  source->is_input = 1;
  source->at = -1;
  if (isatty(STDIN_FILENO)) return refuse(why, "standard input is a terminal, not an .npy file");
  if (read_header(source, NPY_NO_SIZE, why)) return 1;
  if (strstr(why, ".npz archive")) refuse(why, "an .npz archive is no stream; give it as a file");
  return 0;
}

/* Whether a file that can be read begins as an archive does. */
static int is_archive(int fd) {
  char magic[4];
  size_t got;
  char why[WHY_SIZE];
  return read_bytes(fd, 0, magic, sizeof magic, &got, why) && got == 4 &&
         (memcmp(magic, "PK\3\4", 4) == 0 || memcmp(magic, "PK\5\6", 4) == 0);
}

static int open_file(array_source *source, const char *file, const char *name, const char *usual, char *why) {
  struct stat facts;
  npy_file plain;
  source->fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO is refused by npy_open, not waited for */
  if (source->fd >= 0 && fstat(source->fd, &facts) == 0 && S_ISREG(facts.st_mode) && is_archive(source->fd))
    return open_member(source, (int64_t)facts.st_size, name, usual, why);
  array_source_close(source);
  if (!npy_open(file, &plain, why)) return 0;
  source->fd = plain.fd;
  source->header = plain.header;
  source->at = plain.header.data_offset;
  return name ? refuse(why, "this is an .npy file, which has no array %.60s", name) : 1;
}

int array_source_open(const char *path, const char *usual, array_source *source, char why[WHY_SIZE]) {
  const char *name;
  struct stat facts;
  memset(source, 0, sizeof *source);
  source->fd = -1;
  char *file = malloc(strlen(path) + 1);
  if (!file) return refuse(why, "out of memory");
  array_source_splits(path, file, &name);
  if (name && stat(path, &facts) == 0) { /* a file that is called so */
    strcpy(file, path);
    name = NULL;
  }
  const int good = strcmp(path, "-") == 0 ? open_input(source, why) : open_file(source, file, name, usual, why);
  free(file);
  if (!good) array_source_close(source);
  return good;
}
