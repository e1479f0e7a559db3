/* SPDX-License-Identifier: Apache-2.0
 *
 * inflate.c: see inflate.h. */
#include "inflate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(QUERN_WITH_ZLIB)
#include <zlib.h>

enum { PART = 1 << 16 };

struct inflater {
  z_stream stream;
  int fd;
  int64_t at, left; /* of the packed bytes */
  unsigned char part[PART];
};

struct packer {
  z_stream stream;
  int (*write)(void *arg, const void *bytes, size_t size);
  void *arg;
  unsigned char part[PART];
};

const char *inflate_is_missing(void) { return NULL; }

/* ---- Unpacking ---- */

int inflater_open(int fd, int64_t at, int64_t packed_bytes, inflater **made, char why[WHY_SIZE]) {
  inflater *in = calloc(1, sizeof *in);
  if (!in || inflateInit2(&in->stream, -MAX_WBITS) != Z_OK) {
    free(in);
    return refuse(why, "out of memory");
  }
  in->fd = fd;
  in->at = at;
  in->left = packed_bytes;
  *made = in;
  return 1;
}

/* The next packed bytes. 0: there are none, or they cannot be read. */
static int fill(inflater *in) {
  const size_t size = in->left < PART ? (size_t)in->left : PART;
  ssize_t n;
  do n = pread(in->fd, in->part, size, (off_t)in->at);
  while (n < 0 && errno == EINTR);
  if (n <= 0) return 0;
  in->at += n;
  in->left -= n;
  in->stream.next_in = in->part;
  in->stream.avail_in = (uInt)n;
  return 1;
}

int inflater_read(inflater *in, void *memory, size_t size, char why[WHY_SIZE]) {
  unsigned char *at = memory;
  while (size > 0) {
    const uInt room = size < (1u << 30) ? (uInt)size : 1u << 30;
    if (in->stream.avail_in == 0 && !fill(in)) return refuse(why, "truncated: its packed bytes end too early");
    in->stream.next_out = at;
    in->stream.avail_out = room;
    const int status = inflate(&in->stream, Z_NO_FLUSH);
    const size_t n = room - in->stream.avail_out;
    at += n;
    size -= n;
    if (status == Z_STREAM_END && size > 0) return refuse(why, "damaged: its packed bytes are fewer than its size says");
    if (status != Z_OK && status != Z_STREAM_END) return refuse(why, "damaged: its packed bytes are none of deflate");
  }
  return 1;
}

void inflater_close(inflater *in) {
  if (!in) return;
  inflateEnd(&in->stream);
  free(in);
}

/* ---- Packing ---- */

packer *packer_open(int (*write)(void *arg, const void *bytes, size_t size), void *arg) {
  packer *out = calloc(1, sizeof *out);
  if (out && deflateInit2(&out->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    free(out);
    return NULL;
  }
  if (!out) return NULL;
  out->write = write;
  out->arg = arg;
  return out;
}

int packer_add(packer *out, const void *bytes, size_t size, int is_last) {
  z_stream *stream = &out->stream;
  stream->next_in = (z_const Bytef *)(uintptr_t)bytes;
  stream->avail_in = (uInt)size; /* a part of a file: below 4 GiB */
  int status;
  do {
    stream->next_out = out->part;
    stream->avail_out = PART;
    status = deflate(stream, is_last ? Z_FINISH : Z_NO_FLUSH);
    if (!out->write(out->arg, out->part, PART - stream->avail_out)) return 0;
  } while (stream->avail_out == 0 || (is_last && status != Z_STREAM_END));
  return 1;
}

void packer_close(packer *out) {
  if (!out) return;
  deflateEnd(&out->stream);
  free(out);
}

#else /* without zlib */

const char *inflate_is_missing(void) { return "this program is built without zlib"; }

int inflater_open(int fd, int64_t at, int64_t packed_bytes, inflater **made, char why[WHY_SIZE]) {
  (void)fd, (void)at, (void)packed_bytes, (void)made;
  return refuse(why, "its arrays are packed, and %s; save them with numpy.savez", inflate_is_missing());
}

int inflater_read(inflater *in, void *memory, size_t size, char why[WHY_SIZE]) {
  (void)in, (void)memory, (void)size;
  return inflater_open(-1, 0, 0, NULL, why);
}

void inflater_close(inflater *in) { (void)in; }

packer *packer_open(int (*write)(void *arg, const void *bytes, size_t size), void *arg) {
  (void)write, (void)arg;
  return NULL;
}

int packer_add(packer *out, const void *bytes, size_t size, int is_last) {
  (void)out, (void)bytes, (void)size, (void)is_last;
  return 0;
}

void packer_close(packer *out) { (void)out; }
#endif
