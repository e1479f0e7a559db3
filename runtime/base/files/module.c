/* SPDX-License-Identifier: Apache-2.0
 *
 * module.c: see module.h. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* dladdr1, RTLD_DEEPBIND */
#endif
#include "base/files/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <link.h>
#endif

#include "base/jit_environment.h"
#include "base/threads/transient.h"

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

/* The absolute path of the folder of the file that has this code; 0: not known. Of a program linked with it that is
 * /proc/self/exe: argv[0] is chosen by the caller, so no code may be loaded from there. */
static int own_folder(char *folder, size_t size) {
  const char *name = NULL;
  Dl_info info;
#if defined(__GLIBC__)
  struct link_map *map = NULL;
  if (!dladdr1((void *)(uintptr_t)qn_module_path, &info, (void **)&map, RTLD_DL_LINKMAP) || !map) return 0;
  name = map->l_name;
#else
  if (!dladdr((void *)(uintptr_t)qn_module_path, &info)) return 0;
  name = info.dli_fname;
#endif
  if (!name || !name[0]) {
    const ssize_t n = readlink("/proc/self/exe", folder, size - 1);
    if (n <= 0) return 0;
    folder[n] = 0;
  } else if (strlen(name) < size) {
    strcpy(folder, name);
  } else {
    return 0;
  }
  char *slash = strrchr(folder, '/');
  if (folder[0] != '/') return 0;
  *slash = 0;
  return 1;
}

int qn_module_is_there(const char *folder, const char *inner, const char *name, char *path, size_t size) {
  struct stat file;
  int n = snprintf(path, size, "%s%s/%s", folder, inner, name);
  return n > 0 && (size_t)n < size && stat(path, &file) == 0 && S_ISREG(file.st_mode);
}

#if !defined(QN_MODULE_DIR)
#define QN_MODULE_DIR ""
#endif
/* Where the modules are installed; "" if that is not known. */
static const char installed[] = QN_MODULE_DIR;

int qn_module_path(const char *name, char *path, size_t size) {
  const int kept_errno = errno;
  const char *given = qn_environment_module_dir();
  char *own = malloc(PATH_MAX); /* callers' stacks may be small */
  int is_own = own && own_folder(own, PATH_MAX), is_found = 0;
  if (given && given[0] != '/') given = NULL; /* a relative path depends on the working directory */
  if (given) is_found = qn_module_is_there(given, "", name, path, size);
  if (!is_found && is_own)
    is_found = qn_module_is_there(own, "/quern", name, path, size) || qn_module_is_there(own, "", name, path, size);
  if (!is_found && sizeof installed > 1) is_found = qn_module_is_there(installed, "", name, path, size);
  if (!is_found)
    snprintf(path, size, "%s is not in %s%s%s%s%s%s%s", name, given ? given : "", given ? ", " : "", is_own ? own : "",
             is_own ? "/quern, " : "", is_own ? own : "", is_own && sizeof installed > 1 ? ", " : "", installed);
  free(own);
  errno = kept_errno;
  return is_found;
}

/* ---- Opening ---- */

/* Whether a sanitizer's runtime is in the process: it does not work with RTLD_DEEPBIND. Without that flag a module may get
 * the host's libraries in place of its own. And quern-clang's __cxa_atexit is not found: a process that exits while another
 * thread opens that module, or compiles for the first time, runs LLVM's destructors during its constructors and may crash.
 * An exit handler cannot prevent that: LLVM's destructors are registered later, so they are called first. */
static int is_sanitized(void) {
  static const char *const names[] = {"__asan_init", "__tsan_init", "__msan_init", "__hwasan_init"};
  int found = 0;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) found |= dlsym(RTLD_DEFAULT, names[i]) != NULL;
  dlerror();
  return found;
}

static const void *open_at(const char *path, const char *symbol, uint32_t abi, const char *version, char *why, size_t why_size) {
  typedef struct module_head {
    uint32_t abi;
    const char *version;
  } module_head;
  int flags = RTLD_NOW | RTLD_LOCAL;
#if defined(RTLD_NODELETE)
  flags |= RTLD_NODELETE; /* threads and exit handlers of its libraries outlive a dlclose */
#endif
#if defined(RTLD_DEEPBIND)
  if (!is_sanitized()) flags |= RTLD_DEEPBIND;
#endif
  errno = 0;
  void *library = dlopen(path, flags);
  const int error = errno;
  const char *failure = library ? NULL : dlerror();
  if (!library) {
    qn_transient_note_text(error, failure);
    snprintf(why, why_size, "%s", failure ? failure : "the module cannot be opened");
    return NULL;
  }
  const module_head *head = dlsym(library, symbol);
  if (head && head->abi == abi && strcmp(head->version, version) == 0) return head;
  snprintf(why, why_size, "%s is of another build than this library", path);
  return NULL;
}

const void *qn_module_open(const char *name, const char *symbol, uint32_t abi, const char *version, char *why, size_t why_size) {
  char *path = malloc(PATH_MAX);
  const void *head = NULL;
  if (!path) {
    snprintf(why, why_size, "out of memory");
    qn_transient_note(ENOMEM);
    return NULL;
  }
  if (!qn_module_path(name, path, PATH_MAX))
    snprintf(why, why_size, "%s", path);
  else
    head = open_at(path, symbol, abi, version, why, why_size);
  free(path);
  return head;
}

void qn_module_describe(qn_strbuf *buf, const char *key, const char *file, const char *state) {
  char path[1024];
  if (qn_module_path(file, path, sizeof path))
    qn_strbuf_add(buf, "%s: %s, %s\n", key, state, path);
  else
    qn_strbuf_add(buf, "%s: not found: %s\n", key, path);
}
