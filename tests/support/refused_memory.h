/* SPDX-License-Identifier: Apache-2.0
 *
 * refused_memory.h: the library's n-th request for memory is refused, or every one from the n-th on. malloc, mmap and pthread_create
 * are replaced in the program that includes this; only calls from the library's own code count. Not with a sanitizer, to which malloc
 * belongs. Set countdown and sticky, then armed; n_refused, n_asked, n_live (blocks not given back) and n_mapped are the outcome. */
#ifndef QUERN_TESTS_REFUSED_MEMORY_H
#define QUERN_TESTS_REFUSED_MEMORY_H

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static uintptr_t code_low, code_high; /* the library in memory */
static atomic_int armed, countdown, sticky, n_refused, n_asked, n_live, n_mapped;

#define MAX_LIVE 8192
static void *_Atomic live[MAX_LIVE]; /* what the library got while armed, and has not given back */

static int from_library(const void *caller) { return (uintptr_t)caller >= code_low && (uintptr_t)caller < code_high; }

static int must_fail(const void *caller) {
  if (!armed || !from_library(caller)) return 0;
  n_asked++;
  int left = --countdown;
  if (left == 0 || (sticky && left < 0)) {
    n_refused++;
    return 1;
  }
  return 0;
}

static void *noted(void *p, const void *caller) {
  if (!p || !armed || !from_library(caller)) return p;
  for (int i = 0; i < MAX_LIVE; i++) {
    void *empty = NULL;
    if (live[i] || !atomic_compare_exchange_strong(&live[i], &empty, p)) continue;
    n_live++;
    break;
  }
  return p;
}

static void forget(void *p) {
  if (!p || !n_live) return;
  for (int i = 0; i < MAX_LIVE; i++) {
    void *is = p;
    if (live[i] != p || !atomic_compare_exchange_strong(&live[i], &is, NULL)) continue;
    n_live--;
    return;
  }
}

#define CALLER __builtin_return_address(0)
#define KEPT_BYTES 32128 /* a block of runtime/base/scratch.c: the library keeps it for calls to come, on whatever thread it was made */
void *malloc(size_t n) {
  if (must_fail(CALLER)) return errno = ENOMEM, NULL;
  void *p = __libc_malloc(n);
  return n == KEPT_BYTES ? p : noted(p, CALLER);
}
void *calloc(size_t n, size_t m) {
  return must_fail(CALLER) ? (errno = ENOMEM, NULL) : noted(__libc_calloc(n, m), CALLER);
}
void *realloc(void *p, size_t n) {
  if (must_fail(CALLER)) return errno = ENOMEM, NULL;
  forget(p);
  return noted(__libc_realloc(p, n), CALLER);
}
void *aligned_alloc(size_t a, size_t n) {
  return must_fail(CALLER) ? (errno = ENOMEM, NULL) : noted(__libc_memalign(a, n), CALLER);
}
int posix_memalign(void **p, size_t a, size_t n) {
  if (must_fail(CALLER)) return ENOMEM;
  *p = noted(__libc_memalign(a, n), CALLER);
  return *p ? 0 : ENOMEM;
}
void free(void *p) {
  forget(p);
  __libc_free(p);
}
/* These the library calls by way of libc: they are counted as if it had asked itself. */
char *strdup(const char *text) {
  const size_t n = strlen(text) + 1;
  char *copy = must_fail(CALLER) ? (errno = ENOMEM, NULL) : noted(__libc_malloc(n), CALLER);
  return copy ? memcpy(copy, text, n) : NULL;
}

#define REAL(name)               \
  static __typeof__(&name) real; \
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name)

void *mmap(void *at, size_t n, int rights, int flags, int file, off_t offset) {
  REAL(mmap);
  if (must_fail(CALLER)) return errno = ENOMEM, MAP_FAILED;
  void *p = real(at, n, rights, flags, file, offset);
  if (armed && p != MAP_FAILED && from_library(CALLER)) n_mapped++;
  return p;
}
int munmap(void *at, size_t n) {
  REAL(munmap);
  if (armed && from_library(CALLER)) n_mapped--;
  return real(at, n);
}
int mprotect(void *at, size_t n, int rights) {
  REAL(mprotect);
  return must_fail(CALLER) ? (errno = ENOMEM, -1) : real(at, n, rights);
}
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg) {
  REAL(pthread_create);
  return must_fail(CALLER) ? EAGAIN : real(thread, attributes, start, arg);
}

/* The object that holds an address, or whose file has that name. */
typedef struct wanted_object {
  uintptr_t inside;
  const char *name;
} wanted_object;

static int find_object(struct dl_phdr_info *info, size_t size, void *data) {
  const wanted_object *wanted = data;
  uintptr_t low = UINTPTR_MAX, high = 0;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, end = start + info->dlpi_phdr[i].p_memsz;
    if (start < low) low = start;
    if (end > high) high = end;
  }
  if (wanted->name ? !strstr(info->dlpi_name, wanted->name) : wanted->inside < low || wanted->inside >= high) return 0;
  code_low = low;
  code_high = high;
  return 1;
}

/* From now on calls count that come from the object that holds `inside`, or, if there is a name, whose file has that name. */
static int count_calls_from(void *inside, const char *name) {
  wanted_object wanted = {(uintptr_t)inside, name};
  code_low = code_high = 0;
  return dl_iterate_phdr(find_object, &wanted);
}

#endif
