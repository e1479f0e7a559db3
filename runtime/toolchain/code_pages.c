/* SPDX-License-Identifier: Apache-2.0
 *
 * code_pages.c: see code_pages.h.
 *
 * An arena is one anonymous private region: an area of texts, and one of data. A kernel has whole pages of each. They are
 * written first, then made executable or read-only, never both writable and executable. Linux merges neighbours of the same rights
 * to one mapping. So an arena is four, for any number of kernels: texts, pages not yet used, data, pages not yet used. Pages that
 * are given back keep their rights, since the rights of a page in the middle would cut a mapping in three. Of texts traps remain.
 * An arena without kernels is unmapped.
 *
 * Linux merges only what belongs to one anon_vma. All of a region does that was written once as a whole, until a fork: a child has
 * arenas of its own. It runs and gives back what is in its parent's. The regions are private: neither sees what the other writes. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#endif
#include "toolchain/code_pages.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define N_PAGES 128   /* of each area */
#define MOST_PAGES 16 /* of one kernel in each area; a larger one has a mapping of its own */
#define AREA_BYTES ((size_t)N_PAGES * QN_CODE_PAGE)

typedef struct qn_code_arena {
  struct qn_code_arena *next;
  unsigned char *region;
  unsigned forks; /* of when it was made */
  int n_taken;    /* kernels */
  unsigned char is_text_taken[N_PAGES], is_data_taken[N_PAGES];
} arena;

static struct arenas {
  pthread_mutex_t lock; /* held for system calls at most */
  arena *first;
  unsigned forks;
} arenas = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Forks ---- */

static void before_pages_fork(void) { pthread_mutex_lock(&arenas.lock); }
static void after_pages_fork(void) { pthread_mutex_unlock(&arenas.lock); }

static void after_pages_fork_in_child(void) {
  arenas.forks++;
  pthread_mutex_unlock(&arenas.lock);
}

/* Registered first: taken last before a fork, and given back first in the child, where other handlers unload kernels. */
__attribute__((constructor(101))) static void watch_pages_forks(void) {
  pthread_atfork(before_pages_fork, after_pages_fork, after_pages_fork_in_child);
}

/* ---- Pages of an arena ---- */

/* The first of n free pages; -1: there are none. */
static int find_free(const unsigned char *is_taken, int n) {
  int n_free = 0;
  for (int i = 0; n > 0 && i < N_PAGES; i++) {
    n_free = is_taken[i] ? 0 : n_free + 1;
    if (n_free == n) return i - n + 1;
  }
  return n > 0 ? -1 : 0;
}

static int pages_of(size_t size) { return (int)(size / QN_CODE_PAGE); }

/* Marks pages as taken, or as free. */
static void mark(const qn_code_pages *pages, int is_taken) {
  arena *a = pages->arena;
  memset(a->is_text_taken + pages_of((size_t)(pages->text - a->region)), is_taken, (size_t)pages_of(pages->text_size));
  memset(a->is_data_taken + pages_of((size_t)(pages->data - a->region) - AREA_BYTES), is_taken, (size_t)pages_of(pages->data_size));
}

static int set_rights(const qn_code_pages *pages, int of_text, int of_data) {
  return mprotect(pages->text, pages->text_size, of_text) == 0 &&
         (pages->data_size == 0 || mprotect(pages->data, pages->data_size, of_data) == 0);
}

/* Makes pages that nothing runs any more like those of no kernel. Where that is refused, they are zero, or what they were. */
static void wipe(const qn_code_pages *pages) {
  if (pages->data_size) madvise(pages->data, pages->data_size, MADV_DONTNEED);
  if (mprotect(pages->text, pages->text_size, PROT_READ | PROT_WRITE)) {
    madvise(pages->text, pages->text_size, MADV_DONTNEED);
    return;
  }
  memset(pages->text, QN_CODE_TRAP, pages->text_size);
  set_rights(pages, PROT_READ | PROT_EXEC, PROT_READ);
}

/* ---- Arenas ---- */

static arena *make_arena(void) {
  arena *a = calloc(1, sizeof *a);
  if (!a) return NULL;
  void *region = mmap(NULL, 2 * AREA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (region != MAP_FAILED) {
    *(volatile char *)region = 0;
    if (mprotect(region, 2 * AREA_BYTES, PROT_NONE) == 0) {
      *a = (arena){.next = arenas.first, .region = region, .forks = arenas.forks};
      return arenas.first = a;
    }
    munmap(region, 2 * AREA_BYTES);
  }
  free(a);
  return NULL;
}

static void drop_if_empty(arena *a) {
  arena **at = &arenas.first;
  if (a->n_taken) return;
  while (*at != a) at = &(*at)->next;
  *at = a->next;
  munmap(a->region, 2 * AREA_BYTES);
  free(a);
}

static int take_in(arena *a, qn_code_pages *pages) {
  const int text = find_free(a->is_text_taken, pages_of(pages->text_size));
  const int data = find_free(a->is_data_taken, pages_of(pages->data_size));
  if (text < 0 || data < 0 || a->forks != arenas.forks) return 0;
  pages->arena = a;
  pages->text = a->region + (size_t)text * QN_CODE_PAGE;
  pages->data = a->region + AREA_BYTES + (size_t)data * QN_CODE_PAGE;
  if (!set_rights(pages, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE)) return 0;
  a->n_taken++;
  mark(pages, 1);
  return 1;
}

static int take_shared(qn_code_pages *pages) {
  for (arena *a = arenas.first; a; a = a->next)
    if (take_in(a, pages)) return 1;
  arena *a = make_arena();
  if (!a) return 0;
  if (take_in(a, pages)) return 1;
  drop_if_empty(a);
  return 0;
}

/* ---- Outside ---- */

int qn_code_pages_take(size_t text_size, size_t data_size, qn_code_pages *pages) {
  int is_taken = 0;
  *pages = (qn_code_pages){.text_size = text_size, .data_size = data_size};
  if (text_size <= MOST_PAGES * QN_CODE_PAGE && data_size <= MOST_PAGES * QN_CODE_PAGE) {
    pthread_mutex_lock(&arenas.lock);
    is_taken = take_shared(pages);
    pthread_mutex_unlock(&arenas.lock);
  }
  if (is_taken) return 1;
  void *own = mmap(NULL, text_size + data_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (own == MAP_FAILED) return 0;
  pages->arena = NULL;
  pages->text = own;
  pages->data = pages->text + text_size;
  return 1;
}

int qn_code_pages_seal(const qn_code_pages *pages) { return set_rights(pages, PROT_READ | PROT_EXEC, PROT_READ); }

void qn_code_pages_give(const qn_code_pages *pages) {
  if (!pages->arena) {
    munmap(pages->text, pages->text_size + pages->data_size);
    return;
  }
  pthread_mutex_lock(&arenas.lock);
  if (--pages->arena->n_taken) wipe(pages);
  mark(pages, 0);
  drop_if_empty(pages->arena);
  pthread_mutex_unlock(&arenas.lock);
}
