/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_frozen.c: the process-wide list of tables; see jit_frozen.h. Tables are only ever added, at the front, so lookups
 * need no lock. */
#include "jit/jit_frozen.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/isa.h"
#include "core/base/status.h"

typedef struct frozen {
  struct frozen *older;
  const quern_kernel_table *table;
  unsigned count;  /* of the tables up to this one */
  uint64_t hash[]; /* [n_rows], of the keys */
} frozen;

static _Atomic(frozen *) newest;

static quern_status check_row(const quern_kernel_row *row, int32_t i) {
  if (!row->key) return qn_status_fail(QUERN_E_ARGUMENT, "kernels_register: row %d: the key is NULL", i);
  if (!row->name) return qn_status_fail(QUERN_E_ARGUMENT, "kernels_register: row %d: the name is NULL", i);
  for (int level = 0; level < QN_ISA_COUNT; level++) {
    if (row->fn[level]) return QUERN_OK;
  }
  return qn_status_fail(QUERN_E_ARGUMENT, "kernels_register: row %d (%.64s): no level has a function", i, row->name);
}

static quern_status check_table(const quern_kernel_table *table) {
  if (!table) return qn_status_fail(QUERN_E_ARGUMENT, "kernels_register: the table is NULL");
  if (table->size != sizeof *table || table->version != QUERN_KERNEL_TABLE_VERSION)
    return qn_status_fail(QUERN_E_VERSION,
                          "kernels_register: a table of %zu bytes, version %u; this library knows %zu, %u", table->size,
                          (unsigned)table->version, sizeof *table, QUERN_KERNEL_TABLE_VERSION);
  if (table->numerics != QN_NUMERICS)
    return qn_status_fail(QUERN_E_VERSION,
                          "kernels_register: numerics version %u, this library's is %d: freeze the kernels again",
                          (unsigned)table->numerics, QN_NUMERICS);
  if (table->n_rows < 0 || (table->n_rows && !table->rows))
    return qn_status_fail(QUERN_E_ARGUMENT, "kernels_register: %d rows%s", (int)table->n_rows,
                          table->rows ? "" : ", and rows is NULL");
  for (int32_t i = 0; i < table->n_rows; i++) {
    quern_status status = check_row(&table->rows[i], i);
    if (status != QUERN_OK) return status;
  }
  return QUERN_OK;
}

quern_status qn_jit_frozen_register(const quern_kernel_table *table) {
  quern_status status = check_table(table);
  if (status != QUERN_OK) return status;
  for (frozen *each = atomic_load_explicit(&newest, memory_order_acquire); each; each = each->older) {
    if (each->table == table) return QUERN_OK;
  }
  frozen *made = malloc(sizeof *made + (size_t)table->n_rows * sizeof made->hash[0]);
  if (!made) return qn_status_fail(QUERN_E_MEMORY, "kernels_register: out of memory");
  made->table = table;
  for (int32_t i = 0; i < table->n_rows; i++) {
    const char *key = table->rows[i].key;
    made->hash[i] = qn_digest_of(key, strlen(key)).low;
  }
  made->older = atomic_load_explicit(&newest, memory_order_acquire);
  do {
    made->count = made->older ? made->older->count + 1 : 1;
  } while (!atomic_compare_exchange_weak(&newest, &made->older, made));
  return QUERN_OK;
}

unsigned qn_jit_frozen_count(void) {
  const frozen *first = atomic_load_explicit(&newest, memory_order_acquire);
  return first ? first->count : 0;
}

/* The row's best function for this machine: at the current level, else below it. If all levels of the row are above a cap,
 * the lowest of them that the machine runs, as for built ops. */
static qn_kernel *choose(const quern_kernel_row *row, qn_isa *isa) {
  int level = (int)qn_isa_detect();
  const int most = (int)qn_isa_machine();
  while (level > 0 && !row->fn[level]) level--;
  while (level < most && !row->fn[level]) level++;
  *isa = (qn_isa)level;
  return row->fn[level];
}

qn_kernel *qn_jit_frozen_find(const char *key, qn_digest digest, qn_isa *isa) {
  for (const frozen *each = atomic_load_explicit(&newest, memory_order_acquire); each; each = each->older) {
    for (int32_t i = 0; i < each->table->n_rows; i++) {
      const quern_kernel_row *row = &each->table->rows[i];
      if (each->hash[i] != digest.low || strcmp(row->key, key) != 0) continue;
      qn_kernel *kernel = choose(row, isa);
      if (kernel) return kernel;
    }
  }
  return NULL;
}
