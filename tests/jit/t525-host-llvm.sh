#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t525-host-llvm: Clang in process and hosts that use LLVM themselves do not notice each other: hosts linked with the same
# LLVM, with another one, that open it later, that define LLVM's names, that have a malloc of their own.
# What it is given and how it builds hosts: support/plain_host.sh.
. "$(dirname "$0")/../support/plain_host.sh"
plain_host quern-clang

# ---- What every host does ---------------------------------------------------------------------------------------------
cat >"$work/use.h" <<'END'
#include "core/base/kernel_abi.h"
#include "toolchain/jit_clang.h"
#include "toolchain/object_loader.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* Compiles a kernel in process and runs it; 0 if that fails, with a word on stderr. */
static int use_clang(void) {
  static const char text[] =
      "#include \"kernel.h\"\nQ_KERNELS_BEGIN\n"
      "void k(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {\n"
      "  Q_KERNEL_ENTRY;\n  (void)stride, (void)params;\n  const i64 n0 = n[0];\n"
      "  const char *row_a = ptr[0];\n  char *row_out = ptr[1];\n"
      "  Q_IVDEP\n  for (i64 i = 0; i < n0; i++) ((f32_u *)row_out)[i] = q_canon_f32(q_sqrt_f32(((const f32_u *)row_a)[i]) + 1);\n}\n"
      "Q_KERNELS_END\n";
  const qn_compile_request request = {.source = text, .size = sizeof text - 1, .isa = qn_isa_machine()};
  float a[100], out[100];
  char *ptr[] = {(char *)a, (char *)out}, why[500] = "";
  const int64_t extents[2] = {100, 1};
  union { void *address; qn_kernel *run; } entry;
  qn_bytes object;
  qn_loaded *loaded = NULL;
  if (qn_clang_compile(&request, &object, why, sizeof why)) {
    loaded = qn_object_load(object.data, object.size, "k", why, sizeof why);
    free(object.data);
  }
  if (!loaded) {
    fprintf(stderr, "%s\n", why);
    return 0;
  }
  for (int i = 0; i < 100; i++) a[i] = (float)(i * i);
  entry.address = qn_object_entry(loaded);
  entry.run(ptr, NULL, extents, NULL);
  for (int i = 0; i < 100; i++) if (out[i] != (float)(i + 1)) return fprintf(stderr, "out[%d] is wrong\n", i), 0;
  qn_object_unload(loaded);
  return 1;
}
END
cat >"$work/plain.c" <<'END'
#include "use.h"
int main(void) { return !use_clang() || !use_clang(); }
END
compile plain "$work/plain.c" && "$work/plain" >"$said" 2>&1
ok $? "a plain host"

# ---- Hosts that use LLVM ----------------------------------------------------------------------------------------------
cat >"$work/main.c" <<'END'
#include "use.h"
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>
#ifdef LATE /* the part that uses LLVM is a library */
static int (*host_llvm_work)(char *, size_t);
static void (*host_llvm_handle)(void), (*host_llvm_break)(void);
#else
int host_llvm_work(char *text, size_t size);
void host_llvm_handle(void);
void host_llvm_break(void);
#endif
static int with_quern = 1;
static void use(void) { if (with_quern && !use_clang()) exit(7); }
static void work(void) {
  char text[300];
  const int status = host_llvm_work(text, sizeof text);
  if (status) exit(status);
  puts(text);
  fflush(stdout);
}
static void *works(void *unused) {
  char text[300];
  for (int i = 0; i < 20; i++) if (host_llvm_work(text, sizeof text)) exit(8);
  return unused;
}
static void *uses(void *unused) {
  for (int i = 0; i < 20; i++) use();
  return unused;
}
static void *uses_on(void *unused) {
  while (use_clang()) {
  }
  return unused;
}
static void open_late(const char *library) {
#ifdef LATE
  void *there = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
  if (!there) exit((fprintf(stderr, "%s\n", dlerror()), 9));
  *(void **)&host_llvm_work = dlsym(there, "host_llvm_work");
  *(void **)&host_llvm_handle = dlsym(there, "host_llvm_handle");
  *(void **)&host_llvm_break = dlsym(there, "host_llvm_break");
#else
  (void)library;
#endif
}
int main(int argc, char **argv) {
  pthread_t threads[3];
  if (argc < 4) return 2;
  const char *what = argv[1];
  with_quern = strcmp(argv[2], "alone") != 0;
#ifdef LATE
  use();
#endif
  open_late(argv[3]);
  if (strcmp(what, "work") == 0) {
    work(), use(), work(), use(), work();
  } else if (strcmp(what, "handle") == 0) { /* its handler is there first */
    host_llvm_handle(), use(), work(), host_llvm_break();
  } else if (strcmp(what, "handle-then") == 0) { /* or comes in between */
    use(), host_llvm_handle(), use(), host_llvm_break();
  } else if (strcmp(what, "break") == 0) {
    work(), use(), host_llvm_break();
  } else if (strcmp(what, "threads") == 0) {
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, i ? works : uses, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  } else if (strcmp(what, "exit") == 0) { /* while a compile is under way that is not the first */
    work(), use();
    pthread_create(&threads[0], NULL, uses_on, NULL);
    usleep(5000);
  } else if (strcmp(what, "fatal") == 0) { /* Quern's LLVM fails, the host's goes on */
    setenv("QUERN_TEST_COMPILER", "fatal", 1);
    if (use_clang() || !strstr(qn_clang_state(), "LLVM failed")) return 10;
    work(), work();
  }
  return 0;
}
END

hosts() { # hosts NAME CONFIG: what holds for a host that uses that LLVM
  name=$1
  config=$2
  if ! command -v "$config" >/dev/null 2>&1; then
    skip "$name" "it is not installed"
    return
  fi
  includes=$("$config" --includedir)
  # a library of C++, which the linker finds through LLVM's
  library="-L$("$config" --libdir) $("$config" --libs --link-shared core) -Wl,-rpath,$("$config" --libdir)"
  # shellcheck disable=SC2086
  $CC -std=gnu11 -O1 -Wall -Wextra -Werror -Wno-deprecated-declarations -fPIC -shared -isystem "$includes" \
    "$QUERN_SOURCE_DIR/tests/jit/t525-host-llvm.c" -o "$work/late.so" $library >"$said" 2>&1 &&
    compile late "$work/main.c" -DLATE
  ok $? "$name: a host that opens it late"
  # shellcheck disable=SC2086
  compile linked "$work/main.c" -Wno-deprecated-declarations -isystem "$includes" "$QUERN_SOURCE_DIR/tests/jit/t525-host-llvm.c" $library
  ok $? "$name: a host that is linked with it"
  for host in linked late; do
    "$work/$host" work alone "$work/late.so" >"$work/wanted" 2>"$said"
    ok $? "$name, $host: alone: $(head -n 1 "$work/wanted")"
    "$work/$host" work quern "$work/late.so" >"$work/got" 2>"$said" && cmp "$work/wanted" "$work/got" >>"$said" 2>&1 &&
      [ "$(sort -u "$work/got" | wc -l)" -eq 1 ]
    ok $? "$name, $host: the same before, between and after compiles of ours"
    for action in handle handle-then; do
      "$work/$host" $action quern "$work/late.so" >"$work/got" 2>"$said"
      [ $? -eq 42 ] && grep -q "^the host's handler: Broken module" "$work/got"
      ok $? "$name, $host: $action: its handler of fatal errors is called"
    done
    sh -c '"$@"; echo "status $?"' - "$work/$host" break alone "$work/late.so" >"$work/wanted" 2>&1
    sh -c '"$@"; echo "status $?"' - "$work/$host" break quern "$work/late.so" >"$work/got" 2>&1
    # the stack trace has addresses
    sed 's/0x[0-9a-f]*//g; s/[0-9][0-9]* Aborted/Aborted/' "$work/wanted" >"$said"
    sed 's/0x[0-9a-f]*//g; s/[0-9][0-9]* Aborted/Aborted/' "$work/got" | cmp - "$said" >/dev/null && grep -q 'LLVM ERROR: Broken module' "$work/got"
    ok $? "$name, $host: without one, LLVM ends the process as it does alone: $(tail -n 1 "$work/got")"
    "$work/$host" threads quern "$work/late.so" >"$said" 2>&1
    ok $? "$name, $host: both at once, on threads"
    exits=0
    for _ in 1 2 3 4 5 6 7 8; do "$work/$host" exit quern "$work/late.so" >>"$said" 2>&1 || exits=$?; done
    ok $exits "$name, $host: exit while we compile, 8 times"
  done
  if [ "$name" != LLVM-19 ]; then
    "$work/linked" fatal quern "$work/late.so" >"$said" 2>&1
    ok $? "$name, linked: a fatal error of our LLVM is not the host's"
  else
    "$work/late" fatal quern "$work/late.so" >"$said" 2>&1
    ok $? "$name, late: a fatal error in a compile of ours leaves the host's LLVM at work"
  fi
}
hosts LLVM-19 llvm-config-19
hosts LLVM-14 llvm-config-14

# ---- A host that defines LLVM's names ---------------------------------------------------------------------------------
{
  printf '%s\n' '#include "use.h"' '#define TRAP(name) int name(void); int name(void) { fprintf(stderr, #name " of the host was called\n"); _Exit(99); }'
  nm -D --undefined-only "$module" | sed -n 's/^ *[UWw] \(_ZN[A-Za-z0-9_]*\|_ZNK[A-Za-z0-9_]*\|LLVM[A-Za-z0-9_]*\).*/TRAP(\1)/p' | grep '4llvm\|5clang\|LLVM' | sort -u
  echo 'int main(void) { return !use_clang(); }'
} >"$work/impostor.c"
[ "$(grep -c '^TRAP(' "$work/impostor.c")" -gt 50 ]
ok $? "$(grep -c '^TRAP(' "$work/impostor.c") names that the module takes from Clang and LLVM"
compile impostor "$work/impostor.c"
ok $? "a host that defines all of them"
"$work/impostor" >"$said" 2>&1
ok $? "does not see one called"

# ---- A host with a malloc of its own ----------------------------------------------------------------------------------
cat >"$work/malloc.c" <<'END'
#include "use.h"
#include <errno.h>
/* Blocks of a static area, each behind its size: a block of another malloc's is noticed. */
static _Alignas(16) char area[256 << 20];
static size_t at;
static int is_own(const void *p) { return (const char *)p >= area && (const char *)p < area + sizeof area; }
void *malloc(size_t n) {
  const size_t here = __atomic_fetch_add(&at, 16 + ((n + 15) & ~(size_t)15), __ATOMIC_RELAXED);
  if (here > sizeof area || n > sizeof area - here - 16) return errno = ENOMEM, NULL;
  size_t *block = (size_t *)(void *)(area + here);
  *block = n;
  return block + 2;
}
void *calloc(size_t n, size_t m) {
  void *p = malloc(n * m);
  return p ? memset(p, 0, n * m) : NULL;
}
void free(void *p) {
  if (p && !is_own(p)) {
    fputs("a block that is not the host's was freed\n", stderr);
    abort();
  }
}
void *realloc(void *p, size_t n) {
  void *q = malloc(n);
  if (p && !is_own(p)) free(p);
  if (p && q) memcpy(q, p, ((size_t *)p)[-2] < n ? ((size_t *)p)[-2] : n);
  return q;
}
int main(void) {
  for (int i = 0; i < 5; i++) if (!use_clang()) return 1;
  return 0;
}
END
compile malloc "$work/malloc.c" -fno-builtin
ok $? "a host with a malloc of its own"
"$work/malloc" >"$said" 2>&1
ok $? "frees no block of another one, nor does Clang free one of the host's"

# ---- A library that is closed and opened again ------------------------------------------------------------------------
cat >"$work/part.c" <<'END'
#include "use.h"
int part(void);
int part(void) { return use_clang(); }
END
cat >"$work/closes.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
  for (int i = 0; i < 4 && argc > 1; i++) {
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
    int (*part)(void);
    *(void **)&part = dlsym(library, "part");
    if (!part()) return 2;
    dlclose(library);
    if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD)) return 3;
  }
  return argc < 2;
}
END
compile part.so "$work/part.c" -shared -fPIC -Wl,--exclude-libs,ALL &&
  $CC -std=gnu11 -O1 -D_GNU_SOURCE -Wall -Wextra -Werror "$work/closes.c" -o "$work/closes" -ldl >"$said" 2>&1
ok $? "a plugin with the library in it"
"$work/closes" "$work/part.so" >"$said" 2>&1
ok $? "is opened, compiles and is closed four times"

# ---- Two copies of the library ----------------------------------------------------------------------------------------
cat >"$work/both.c" <<'END'
#include "use.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static int (*part)(void);
static void *uses(void *function) {
  int (*use)(void);
  *(void **)&use = function;
  for (int i = 0; i < 20; i++) if (!use()) exit(3);
  return NULL;
}
int main(int argc, char **argv) {
  pthread_t threads[2];
  void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library) return 2;
  *(void **)&part = dlsym(library, "part");
  pthread_create(&threads[0], NULL, uses, (void *)use_clang);
  pthread_create(&threads[1], NULL, uses, (void *)part);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
  const pid_t pid = fork();
  if (pid == 0) exit(use_clang() && part() ? 0 : 4);
  int status = -1;
  waitpid(pid, &status, 0);
  if (status) return 5;
  setenv("QUERN_TEST_COMPILER", "fatal", 1);
  if (part()) return 6;
  unsetenv("QUERN_TEST_COMPILER");
  return use_clang() || part() || !strstr(qn_clang_state(), "Clang failed before") ? 7 : 0;
}
END
compile both "$work/both.c" && "$work/both" "$work/part.so" >"$said" 2>&1
ok $? "compile in turns, in a child as well; a fatal error of one is the end for both"

done_testing || exit 1
