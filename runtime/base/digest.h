/* SPDX-License-Identifier: Apache-2.0
 *
 * digest.h: a 128-bit FNV-1a hash: identifies the inputs of compiled code and detects damage. Not collision-resistant
 * against an attacker. Source: the parameters of draft-eastlake-fnv (offset basis and prime of 128 bits). */
#ifndef QN_DIGEST_H
#define QN_DIGEST_H

#include <stddef.h>
#include <stdint.h>

typedef struct qn_digest {
  uint64_t high, low;
} qn_digest;

#define QN_DIGEST_START ((qn_digest){0x6c62272e07bb0142, 0x62b821756295c58d})

static inline qn_digest qn_digest_add(qn_digest digest, const void *bytes, size_t size) {
  __extension__ typedef unsigned __int128 u128;
  const u128 prime = (u128)1 << 88 | 0x13b;
  const unsigned char *byte = bytes;
  u128 hash = (u128)digest.high << 64 | digest.low;
  for (size_t i = 0; i < size; i++) hash = (hash ^ byte[i]) * prime;
  return (qn_digest){(uint64_t)(hash >> 64), (uint64_t)hash};
}

static inline qn_digest qn_digest_of(const void *bytes, size_t size) {
  return qn_digest_add(QN_DIGEST_START, bytes, size);
}

static inline int qn_digest_is_equal(qn_digest a, qn_digest b) { return a.high == b.high && a.low == b.low; }

#endif
