/* SPDX-License-Identifier: Apache-2.0
 *
 * packed.h: reads what the generator packs (gen/service.lua): u32 and counted strings, little-endian. */
#ifndef QN_PACKED_H
#define QN_PACKED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Reading past the end sets is_short. */
typedef struct qn_packed {
  const unsigned char *at, *end;
  int is_short, is_lacking; /* the latter: out of memory */
  char **strings; /* where strings are copied to, which moves on; NULL: they are counted */
  size_t bytes;   /* of all strings so far */
} qn_packed;

static inline uint64_t qn_packed_number(qn_packed *r, size_t n_bytes) {
  uint64_t value = 0;
  if ((size_t)(r->end - r->at) < n_bytes) {
    r->is_short = 1;
    return 0;
  }
  for (size_t i = 0; i < n_bytes; i++) value |= (uint64_t)*r->at++ << 8 * i;
  return value;
}

static inline uint32_t qn_packed_u32(qn_packed *r) { return (uint32_t)qn_packed_number(r, 4); }

/* The bytes of a string, which are followed by no 0; NULL: it is short. */
static inline const char *qn_packed_bytes(qn_packed *r, size_t *size) {
  *size = qn_packed_u32(r);
  if ((size_t)(r->end - r->at) < *size) r->is_short = 1;
  if (r->is_short) return NULL;
  const char *text = (const char *)r->at;
  r->at += *size;
  return text;
}

/* A copy of a string; "" where strings are counted. */
static inline const char *qn_packed_string(qn_packed *r) {
  size_t size;
  const char *text = qn_packed_bytes(r, &size);
  if (!text) return "";
  r->bytes += size + 1;
  if (!r->strings) return "";
  char *copy = *r->strings;
  memcpy(copy, text, size);
  copy[size] = 0;
  *r->strings += size + 1;
  return copy;
}

/* Reads at most `most` small numbers. Returns how many. */
static inline int32_t qn_packed_list(qn_packed *r, uint8_t *list, uint32_t most) {
  const uint32_t n = qn_packed_u32(r);
  if (n > most) r->is_short = 1;
  for (uint32_t k = 0; k < n && !r->is_short; k++) list[k] = (uint8_t)qn_packed_u32(r);
  return r->is_short ? 0 : (int32_t)n;
}

#endif
