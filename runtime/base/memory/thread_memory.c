/* SPDX-License-Identifier: Apache-2.0
 *
 * thread_memory.c: see thread_memory.h. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* dl_iterate_phdr */
#endif
#include "base/memory/thread_memory.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#if defined(__GLIBC__) && defined(__x86_64__)
#include <dlfcn.h>
#include <link.h>

#define MOST_LIBRARIES 64

typedef struct untouched {
  size_t n;
  size_t library[MOST_LIBRARIES];
} untouched;

typedef struct tls_place {
  unsigned long library, offset;
} tls_place;

static int add_library(struct dl_phdr_info *info, size_t size, void *arg) {
  untouched *all = arg;
  if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof info->dlpi_tls_data) return 1;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_TLS || info->dlpi_tls_data || all->n == MOST_LIBRARIES) continue;
    all->library[all->n++] = info->dlpi_tls_modid;
  }
  return 0;
}

static void touch(void) {
  untouched all = {.n = 0};
  void *(*get)(tls_place *place);
  *(void **)&get = dlsym(RTLD_DEFAULT, "__tls_get_addr"); /* NULL: in a program without shared libraries */
  if (!get) return;
  dl_iterate_phdr(add_library, &all);
  for (size_t i = 0; i < all.n; i++) get(&(tls_place){all.library[i], 0});
}
#else
static void touch(void) {}
#endif

int qn_thread_memory_touch(size_t reserve) {
  const int kept_errno = errno;
  void *there = mmap(NULL, reserve, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  errno = kept_errno;
  if (there == MAP_FAILED) return 0;
  munmap(there, reserve);
  touch();
  return 1;
}
