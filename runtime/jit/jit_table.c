/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_table.c: see jit_table.h. An entry without references can be freed at once: threads find entries under the lock
 * only, and count them before they give it up. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* base/clock.h */
#endif
#include "jit/jit_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads/clock.h"
#include "core/base/isa.h"
#include "jit/jit_frozen.h"

#define FIRST_BUCKETS 64

/* ---- The table ---- */

int qn_table_init(qn_table *table, struct qn_jit *jit, size_t limit) {
  *table = (qn_table){.jit = jit, .n_buckets = FIRST_BUCKETS, .limit = limit};
  table->buckets = calloc(FIRST_BUCKETS, sizeof(qn_entry *));
  return table->buckets != NULL;
}

static qn_entry **bucket_of(qn_table *table, qn_digest digest) {
  return &table->buckets[digest.low & (table->n_buckets - 1)];
}

qn_entry *qn_table_find(qn_table *table, qn_digest digest, const char *key) {
  qn_entry *entry = *bucket_of(table, digest);
  while (entry && !(qn_digest_is_equal(entry->digest, digest) && strcmp(entry->key, key) == 0)) entry = entry->chain;
  return entry;
}

static void grow(qn_table *table) {
  const size_t n_old = table->n_buckets;
  qn_entry **old = table->buckets, **buckets = calloc(2 * n_old, sizeof(qn_entry *));
  if (!buckets) return; /* longer chains will do */
  table->buckets = buckets;
  table->n_buckets = 2 * n_old;
  for (size_t i = 0; i < n_old; i++) {
    for (qn_entry *entry = old[i], *next; entry; entry = next) {
      next = entry->chain;
      entry->chain = *bucket_of(table, entry->digest);
      *bucket_of(table, entry->digest) = entry;
    }
  }
  free(old);
}

qn_entry *qn_table_add(qn_table *table, const qn_code_request *request, qn_digest digest, const char *key) {
  const size_t key_size = strlen(key) + 1, canonical_size = strlen(request->canonical) + 1;
  const size_t op_size = request->op ? strlen(request->op) + 1 : 0, size = sizeof(qn_entry) + key_size + canonical_size + op_size;
  qn_entry *entry = calloc(1, size);
  if (!entry) return NULL;
  entry->table = table;
  entry->references = 1;
  entry->digest = digest;
  entry->size = size;
  entry->key = memcpy(entry + 1, key, key_size);
  entry->canonical = memcpy(entry->key + key_size, request->canonical, canonical_size);
  if (op_size) entry->op = memcpy(entry->canonical + canonical_size, request->op, op_size);
  entry->target = request->target;
  snprintf(entry->name, sizeof entry->name, "qj_%016llx", (unsigned long long)(digest.high ^ digest.low));
  entry->n_in = request->n_in;
  entry->n_out = request->n_out;
  entry->rank = request->rank;
  entry->capability = request->capability;
  entry->is_wide = request->is_wide;
  memcpy(entry->dtypes, request->dtypes, (size_t)(request->n_in + request->n_out));
  qn_code_class_letters(request, entry->classes);
  entry->info.tier = "";
  entry->info.name = entry->name;
  entry->info.isa = qn_isa_detect();
  if (table->n_entries >= table->n_buckets) grow(table);
  entry->chain = *bucket_of(table, digest);
  *bucket_of(table, digest) = entry;
  table->n_entries++;
  table->bytes += entry->size;
  return entry;
}

/* ---- Entries without references ---- */

static void enter_idle(qn_entry *entry) {
  qn_table *table = entry->table;
  entry->older = table->newest;
  entry->newer = NULL;
  *(table->newest ? &table->newest->newer : &table->oldest) = entry;
  table->newest = entry;
}

static void leave_idle(qn_entry *entry) {
  qn_table *table = entry->table;
  *(entry->older ? &entry->older->newer : &table->oldest) = entry->newer;
  *(entry->newer ? &entry->newer->older : &table->newest) = entry->older;
}

static void retire(qn_entry *entry, qn_entry **dead) {
  entry->chain = *dead;
  *dead = entry;
}

static void evict(qn_table *table, qn_entry **dead) {
  while ((table->bytes > table->limit || (table->most && table->n_entries > table->most)) && table->oldest) {
    qn_entry *entry = table->oldest, **at = bucket_of(table, entry->digest);
    leave_idle(entry);
    while (*at != entry) at = &(*at)->chain;
    *at = entry->chain;
    table->n_entries--;
    table->n_loaded -= entry->loaded.handle != NULL;
    table->bytes -= entry->size + entry->info.bytes;
    retire(entry, dead);
  }
}

void qn_entry_ref(qn_entry *entry) {
  if (entry->references++ == 0) leave_idle(entry);
}

void qn_entry_unref(qn_entry *entry, qn_entry **dead) {
  if (--entry->references) return;
  if (entry->table) {
    enter_idle(entry);
    evict(entry->table, dead);
  } else {
    retire(entry, dead);
  }
}

void qn_entry_unref_later(qn_entry *entry) {
  if (--entry->references == 0) enter_idle(entry);
}

void qn_entries_free(qn_entry *dead) {
  while (dead) {
    qn_entry *next = dead->chain;
    if (dead->loaded.handle) dead->target->unload(dead->loaded.handle);
    free(dead);
    dead = next;
  }
}

void qn_table_clear(qn_table *table, qn_entry **dead) {
  for (size_t i = 0; i < table->n_buckets; i++) {
    for (qn_entry *entry = table->buckets[i], *next; entry; entry = next) {
      next = entry->chain;
      entry->table = NULL;
      if (entry->references == 0) retire(entry, dead);
    }
  }
  free(table->buckets);
  *table = (qn_table){.jit = table->jit};
}

/* ---- States ---- */

void qn_entry_set_reason(qn_entry *entry, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(entry->info.reason, sizeof entry->info.reason, format, args);
  va_end(args);
  entry->info.reason[strcspn(entry->info.reason, "\n")] = 0;
}

void qn_entry_set_wanted(qn_entry *entry, const char *why) {
  entry->state = QN_ENTRY_WANTED;
  entry->retry_at = 0;
  qn_entry_set_reason(entry, "%s", why);
  atomic_store_explicit(&entry->code.dropped, 1, memory_order_relaxed);
}

void qn_entry_set_making(qn_entry *entry, const char *how) {
  entry->state = QN_ENTRY_MAKING;
  qn_entry_set_reason(entry, "%s", how);
  atomic_store_explicit(&entry->code.dropped, 0, memory_order_relaxed);
}

void qn_entry_set_failed(qn_entry *entry, const char *why) {
  entry->state = QN_ENTRY_FAILED;
  qn_entry_set_reason(entry, "%s", why);
  atomic_store_explicit(&entry->code.dropped, 0, memory_order_relaxed);
}

void qn_entry_set_transient(qn_entry *entry, const char *why) {
  qn_entry_set_wanted(entry, why);
  entry->retry_at = qn_clock_ns() + ((int64_t)100000000 << (entry->n_transient < 6 ? entry->n_transient : 6));
  entry->n_transient++;
}

int qn_entry_is_due(const qn_entry *entry) { return entry->retry_at == 0 || qn_clock_ns() >= entry->retry_at; }

static void set_ready(qn_entry *entry, const char *tier) {
  entry->state = QN_ENTRY_READY;
  atomic_store_explicit(&entry->code.dropped, 0, memory_order_relaxed);
  entry->info.tier = tier;
}

void qn_entry_set_ready(qn_entry *entry, const char *tier, qn_isa isa, qn_kernel *kernel) {
  set_ready(entry, tier);
  entry->info.isa = isa;
  atomic_store_explicit(&entry->code.kernel, kernel, memory_order_release);
}

void qn_entry_set_loaded(qn_entry *entry, const char *tier, qn_target_code loaded, qn_entry **dead) {
  set_ready(entry, tier);
  entry->loaded = loaded;
  entry->table->n_loaded++;
  entry->info.bytes = loaded.bytes;
  if (loaded.kernel)
    atomic_store_explicit(&entry->code.kernel, loaded.kernel, memory_order_release);
  else
    atomic_store_explicit(&entry->code.image, loaded.handle, memory_order_release);
  entry->table->bytes += entry->info.bytes;
  evict(entry->table, dead);
}

void qn_entry_poll_frozen(qn_entry *entry) {
  const unsigned count = qn_jit_frozen_count();
  if (!entry->target->is_recorded || entry->frozen_seen == count) return;
  if (entry->state != QN_ENTRY_WANTED && entry->state != QN_ENTRY_FAILED) return;
  qn_isa isa;
  qn_kernel *kernel = qn_jit_frozen_find(entry->key, entry->digest, &isa);
  entry->frozen_seen = count;
  if (!kernel) return;
  qn_entry_set_reason(entry, "built ahead");
  qn_entry_set_ready(entry, "frozen", isa, kernel);
}
