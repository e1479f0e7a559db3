/* SPDX-License-Identifier: Apache-2.0
 *
 * xla_ops.c: see xla_ops.h. A hash table that only grows: reading takes no lock. */
#include "xla/xla_ops.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_BUCKETS 1024

typedef struct entry {
  struct entry *next;
  quern_op *op;
  size_t n;
  char key[];
} entry;

static _Atomic(entry *) buckets[N_BUCKETS];

static _Atomic(entry *) *bucket_of(const char *key, size_t n) {
  uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
  for (size_t k = 0; k < n; k++) hash = (hash ^ (unsigned char)key[k]) * UINT64_C(1099511628211);
  return &buckets[(hash ^ hash >> 32) % N_BUCKETS];
}

static quern_op *find(const char *key, size_t n) {
  for (const entry *e = atomic_load_explicit(bucket_of(key, n), memory_order_acquire); e; e = e->next)
    if (e->n == n && memcmp(e->key, key, n) == 0) return e->op;
  return NULL;
}

int xla_ops_has(const char *key, size_t n) { return find(key, n) != NULL; }

/* The key is terminated, too. */
quern_status xla_ops_put(const char *key, size_t n, quern_op *op) {
  _Atomic(entry *) *bucket = bucket_of(key, n);
  entry *e = malloc(sizeof *e + n + 1);
  if (!e) {
    quern_set_last_error("out of memory");
    return QUERN_E_MEMORY;
  }
  e->op = op;
  e->n = n;
  memcpy(e->key, key, n);
  e->key[n] = 0;
  e->next = atomic_load_explicit(bucket, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(bucket, &e->next, e, memory_order_release, memory_order_relaxed)) {}
  return QUERN_OK;
}

/* Sets *rest to what is behind the word, if the key begins with it. */
static int begins(const char *key, const char *word, const char **rest) {
  const size_t n = strlen(word);
  *rest = key + n;
  return strncmp(key, word, n) == 0;
}

static quern_status make(const char *key, quern_op **op) {
  char sentence[512];
  const char *rest;
  if (begins(key, "op ", &rest)) return quern_op_find(NULL, rest, op);
  if (begins(key, "expression ", &rest)) return quern_op_compile(NULL, rest, op);
  snprintf(sentence, sizeof sentence, "%s: this op of a spec or of a quern.Context was traced in another process; trace the program "
           "in this one", strrchr(key, ' ') ? strrchr(key, ' ') + 1 : key);
  quern_set_last_error(sentence);
  return QUERN_E_NOTFOUND;
}

quern_status xla_ops_get(const char *key, size_t n, quern_op **op) {
  if ((*op = find(key, n))) return QUERN_OK;
  char *text = malloc(n + 1); /* another thread may add the same meanwhile: then both stay, and either serves */
  if (!text) {
    quern_set_last_error("out of memory");
    return QUERN_E_MEMORY;
  }
  memcpy(text, key, n);
  text[n] = 0;
  quern_status status = make(text, op);
  free(text);
  if (status) return status;
  status = xla_ops_put(key, n, *op);
  if (status) quern_op_release(*op);
  return status;
}
