/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t560: a kernel that is wanted is found or made: one compile however many ask, at once or in the background, from disk
 * by who would make it, built ahead; failures are remembered, memory is given back, what was wanted is recorded. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "runtime/jit/jit_frozen.h"
#include "runtime/jit/jit_record.h"
#include "runtime/base/files/write_all.h"
#include "jit_parts.h"

/* ---- Keys ---- */

static void test_keys(void) {
  static const uint8_t dtypes[] = {QN_F16, QN_BOOL, QN_F32, QN_I64};
  static const uint8_t classes[] = {QN_CLASS_CONTIGUOUS, QN_CLASS_BROADCAST, QN_CLASS_CONTIGUOUS, QN_CLASS_STRIDED};
  qn_code_request request = {.target = &qn_cpu_target, .canonical = "v0 = x0 ; x1 ? 1 : 2", .n_in = 2, .n_out = 2,
                             .dtypes = dtypes, .classes = classes, .rank = 2};
  char *key = qn_code_key(&request);
  is_str(key, "v0 = x0 ; x1 ? 1 : 2\nf16,bool > f32,i64\n2d cbcs\nspecs -\n", "a key");
  free(key);
  request = (qn_code_request){.target = &qn_cpu_target, .canonical = "PI", .specs = {1, 0xabc}, .n_out = 1, .dtypes = dtypes,
                              .classes = classes, .rank = 1};
  key = qn_code_key(&request);
  is_str(key, "PI\n > f16\n1d c\nspecs 00000000000000010000000000000abc\n", "a key without inputs, of a spec's op");
  free(key);
}

/* ---- Mode sync ---- */

static void test_sync(void) {
  heard h = HEARD_START;
  subject s = subject_make(QUERN_JIT_SYNC, &h);
  is_int(qn_jit_mode(s.jit), QUERN_JIT_SYNC, "the mode");
  quern_set_last_error("before");
  errno = 77;
  qn_code *code = acquire(s.jit, 3);
  is_int(errno, 77, "errno is kept");
  is_str(quern_last_error(), "before", "and so is the last error");
  ok(computes(code, 3), "sync: there is a kernel, and it computes");
  const qn_code_info info = info_of(code);
  char wanted[64];
  snprintf(wanted, sizeof wanted, "compiled by %s in ", tier);
  is_str(info.tier, tier, "tier");
  has_str(info.reason, wanted, "reason");
  is_int(info.compiles, 1, "one compile");
  ok(info.compile_ms > 0 && info.bytes > 0, "it took %.1f ms and %zu bytes", info.compile_ms, info.bytes);
  is_int(info.isa, qn_isa_detect(), "level");
  ok(strlen(info.name) == 19 && strncmp(info.name, "qj_", 3) == 0, "name %s", info.name);
  qn_code *again = acquire(s.jit, 3), *other = acquire(s.jit, 4);
  ok(again == code && other != code && computes(other, 4), "the same code for the same kernel, another for another");
  qn_code_release(again);
  qn_code_release(other);
  is_int(n_compiled(&h), 2, "each compile is said");
  is_int(h.n_warnings, 0, "without warnings");
  /* Code outlives its context for who holds it. */
  subject_end(&s);
  ok(computes(code, 3), "code that is held outlives its context");
  qn_code_release(code);
  qn_code_release(NULL);
}

typedef struct crowd {
  subject *s;
  int n_kernels;
  atomic_int bad;
  pthread_barrier_t start;
} crowd;

static void *asks(void *arg) {
  crowd *c = arg;
  pthread_barrier_wait(&c->start);
  for (int i = 0; i < c->n_kernels; i++) {
    qn_code *code = acquire(c->s->jit, 1000 + i);
    if (!computes(code, 1000 + i) || info_of(code).compiles != 1) c->bad++;
    qn_code_release(code);
  }
  return NULL;
}

static void test_crowd(int n_kernels) {
  heard h = HEARD_START;
  subject s = subject_make(QUERN_JIT_SYNC, &h);
  crowd c = {.s = &s, .n_kernels = n_kernels};
  pthread_t threads[32];
  pthread_barrier_init(&c.start, NULL, 32);
  for (int i = 0; i < 32; i++) pthread_create(&threads[i], NULL, asks, &c);
  for (int i = 0; i < 32; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&c.start);
  is_int(c.bad, 0, "32 threads ask for %d kernels and get them", n_kernels);
  is_int(n_compiled(&h), n_kernels, "each compiled once");
  subject_end(&s);
}

/* ---- Little stack ---- */

typedef struct painted {
  unsigned char *low;
  size_t size;
  subject *s;
  int n;
} painted;

enum { STACK = 64 << 10 };

static void *does_nothing(void *arg) {
  return arg;
}

static void *asks_once(void *arg) {
  painted *p = arg;
  qn_code_release(acquire(p->s->jit, p->n));
  return NULL;
}

/* How many bytes of a stack that was painted before a thread uses; its thread-local variables are among them. */
static long stack_used(void *(*body)(void *), painted *p) {
  pthread_attr_t attributes;
  pthread_t thread;
  const size_t guard = 64 << 10;
  unsigned char *memory = mmap(NULL, STACK + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, guard, PROT_NONE)) bail("no stack");
  memset(memory + guard, 0xa5, STACK);
  pthread_attr_init(&attributes);
  long used = -1;
  if (pthread_attr_setstack(&attributes, memory + guard, STACK) == 0 &&
      pthread_create(&thread, &attributes, body, p) == 0) {
    pthread_join(thread, NULL);
    for (used = STACK; used > 0 && memory[guard + STACK - (size_t)used] == 0xa5;) used--;
  }
  pthread_attr_destroy(&attributes);
  munmap(memory, STACK + guard);
  return used;
}

/* What the caller's thread does of a compile: it looks for the compiler's files and in the disk cache, and waits or
 * not. */
static void test_little_stack(void) {
  char folder[300];
  snprintf(folder, sizeof folder, "%s/little", scratch);
  const long nothing = stack_used(does_nothing, NULL);
  if (nothing < 0) {
    skip(9, "no thread with so little stack here");
    return;
  }
  static const struct {
    int32_t mode;
    int n;
    const char *name;
  } rows[] = {{QUERN_JIT_ASYNC, 5, "async"}, {QUERN_JIT_SYNC, 6, "sync"}, {QUERN_JIT_ASYNC, 6, "from disk"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    subject s = subject_with((quern_options){.jit = rows[i].mode, .cache_dir = folder}, NULL);
    painted p = {.s = &s, .n = rows[i].n};
    const long used = stack_used(asks_once, &p);
    qn_code *code = acquire(s.jit, p.n);
    ok(used > 0 && comes(code) && computes(code, p.n), "%s: a thread with 64 KiB of stack", rows[i].name);
    is_str(info_of(code).tier, i == 2 ? "disk" : tier, "  tier");
    if (UNDER_ASAN || UNDER_TSAN)
      skip(1, "frames are larger where sanitizers look on");
    else
      ok(used - nothing <= 8192, "  it takes %ld bytes", used - nothing);
    qn_code_release(code);
    subject_end(&s);
  }
}

/* ---- Mode async ---- */

static int held(void) {
  subject s = subject_make(QUERN_JIT_ASYNC, NULL);
  const double start = now_ms();
  qn_code *code = acquire(s.jit, 8), *second = acquire(s.jit, 9);
  double least = 1e9;
  for (int i = 0; i < 5; i++) { /* the machine may be busy with other things */
    const double before = now_ms();
    qn_code_release(acquire(s.jit, 10 + i));
    if (now_ms() - before < least) least = now_ms() - before;
  }
  MUST(least < 10 && now_ms() - start < 400);
  MUST(!kernel_of(code));
  const qn_code_info info = info_of(code);
  MUST(info.tier[0] == 0 && strcmp(info.reason, "being compiled") == 0 && info.bytes == 0);
  MUST(comes(code));
  MUST(now_ms() - start > 400);
  MUST(computes(code, 8) && info_of(code).compiles == 1);
  MUST(comes(second) && computes(second, 9));
  qn_code_release(code);
  qn_code_release(second);
  subject_end(&s); /* three jobs have not begun */
  return 0;
}

static void test_async(void) {
  heard h = HEARD_START;
  if (cc_given)
    skip(1, "only Clang in process can be held");
  else
    is_int(child_with(500, 0, held), 0, "async: acquire returns at once while the compiler is held");
  subject s = subject_make(QUERN_JIT_DEFAULT, &h);
  is_int(qn_jit_mode(s.jit), QUERN_JIT_ASYNC, "async is the default");
  qn_code *codes[6];
  for (int i = 0; i < 6; i++) codes[i] = acquire(s.jit, 20 + i);
  int good = 0;
  for (int i = 0; i < 6; i++) good += comes(codes[i]) && computes(codes[i], 20 + i);
  is_int(good, 6, "async: six kernels come by themselves");
  for (int i = 0; i < 6; i++) qn_code_release(codes[i]);
  subject_end(&s);
}

/* ---- No code ---- */

static void test_off(void) {
  heard h = HEARD_START;
  subject s = subject_make(QUERN_JIT_OFF, &h);
  qn_code *code = acquire(s.jit, 1);
  const qn_code_info info = info_of(code);
  ok(!kernel_of(code), "off: no kernel");
  is_str(info.reason, "compiling at run time is off", "and why");
  is_str(info.tier, "", "no tier");
  ok(qn_jit_disk(s.jit), "there is a disk cache to be looked at all the same");
  qn_code_release(code);
  subject_end(&s);
  is_int(h.n_warnings, 0, "no warnings");
}

static void test_failure(void) {
  heard h = HEARD_START;
  subject s = subject_make(QUERN_JIT_SYNC, &h);
  qn_code *first = acquire_text(s.jit, "nonsense ( x0 , x1 )");
  ok(first && !kernel_of(first), "what cannot be generated has no kernel");
  has_str(info_of(first).reason, "nonsense", "and a reason");
  ok(!strchr(info_of(first).reason, '\n'), "of one line");
  is_int(info_of(first).compiles, 0, "no compiler was asked");
  is_int(h.n_warnings, 1, "one warning");
  qn_code_release(first);
  for (int i = 0; i < 5; i++) {
    qn_code *again = acquire_text(s.jit, "nonsense ( x0 , x1 )");
    if (again != first) fail("it was forgotten");
    qn_code_release(again);
  }
  is_int(h.n_warnings, 1, "the failure is remembered, and said once");
  subject_end(&s);

  h = (heard)HEARD_START;
  s = subject_with((quern_options){.jit = QUERN_JIT_SYNC, .cache_dir = "", .cc = "/bin/false"}, &h);
  qn_code *code = acquire(s.jit, 2);
  if (strcmp(tier, "clang") == 0) {
    ok(computes(code, 2), "a cc that fails: Clang serves");
    is_str(info_of(code).tier, "clang", "which the tier says");
    has_str(h.warning, "since cc: ", "and a warning why");
  } else {
    ok(!kernel_of(code), "a cc that fails, and no Clang: no kernel");
    has_str(info_of(code).reason, "cc: ", "the reason has the compiler's name");
    is_int(info_of(code).compiles, 1, "it was asked");
  }
  is_int(h.n_warnings, 1, "one warning");
  qn_code_release(code);
  code = acquire(s.jit, 6);
  qn_code_release(code);
  subject_end(&s);
}

/* ---- Memory ---- */

static void test_memory(void) {
  heard h = HEARD_START;
  subject s = subject_with((quern_options){.jit = QUERN_JIT_SYNC, .cache_dir = "", .kernel_memory_limit = 1}, &h);
  qn_code *held_code = acquire(s.jit, 1), *passing = acquire(s.jit, 2);
  const size_t bytes = info_of(passing).bytes;
  qn_code_release(passing);
  passing = acquire(s.jit, 2);
  is_int(n_compiled(&h), 3, "a limit of one byte: what was released is compiled again");
  qn_code *same = acquire(s.jit, 1);
  ok(same == held_code && computes(held_code, 1), "what is held stays");
  qn_code_release(same);
  qn_code_release(passing);
  qn_code_release(held_code);
  subject_end(&s);

  /* Room for three kernels and what they take beside, not for four. */
  h = (heard)HEARD_START;
  const size_t limit = 3 * bytes + 3 * 1100;
  s = subject_with((quern_options){.jit = QUERN_JIT_SYNC, .cache_dir = "", .kernel_memory_limit = limit}, &h);
  for (int i = 0; i < 3; i++) qn_code_release(acquire(s.jit, i));
  for (int i = 0; i < 3; i++) qn_code_release(acquire(s.jit, i));
  is_int(n_compiled(&h), 3, "what no op refers to stays within the limit");
  qn_code_release(acquire(s.jit, 0)); /* now 1 is what was released first */
  qn_code_release(acquire(s.jit, 3));
  qn_code_release(acquire(s.jit, 2));
  qn_code_release(acquire(s.jit, 0));
  is_int(n_compiled(&h), 4, "beyond it, others stay");
  qn_code_release(acquire(s.jit, 1));
  is_int(n_compiled(&h), 5, "and what was released first went");
  subject_end(&s);
}

typedef struct mill {
  qn_jit *jit;
  atomic_int bad, next;
} mill;

static void *mills(void *arg) {
  mill *m = arg;
  rng r;
  rng_seed(&r, (uint64_t)m->next++);
  for (int i = 0; i < 60; i++) {
    const int n = (int)rng_below(&r, 10);
    qn_code *code = acquire(m->jit, n);
    if (!computes(code, n)) m->bad++;
    qn_code_release(code);
  }
  return NULL;
}

static void test_mill(void) {
  char dir[300];
  snprintf(dir, sizeof dir, "%s/mill", scratch);
  subject s = subject_with((quern_options){.jit = QUERN_JIT_SYNC, .cache_dir = dir, .kernel_memory_limit = 1}, NULL);
  mill m = {.jit = s.jit};
  pthread_t threads[8];
  for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, mills, &m);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  is_int(m.bad, 0, "8 threads acquire and release 10 kernels where none may stay");
  subject_end(&s);
}

/* ---- Disk ---- */

static void write_text(const char *path, const char *text, mode_t mode) {
  FILE *file = fopen(path, "w");
  if (!file || fputs(text, file) < 0 || fclose(file) || chmod(path, mode)) bail("%s cannot be written", path);
}

static char disk_key[1000];
static size_t disk_key_size;

static void note_key(void *arg, const qn_cache_item *entry) {
  (void)arg;
  disk_key_size = entry->key_size;
  memcpy(disk_key, entry->key, entry->key_size < sizeof disk_key ? entry->key_size : 0);
}

/* The tier that serves a kernel in a new context; the log tells how often it compiled. */
static const char *tier_in(quern_options options, heard *h, int n) {
  *h = (heard)HEARD_START;
  subject s = subject_with(options, h);
  qn_code *code = acquire(s.jit, n);
  const char *found = computes(code, n) ? info_of(code).tier : "none";
  qn_code_release(code);
  subject_end(&s);
  return found;
}

static void test_disk(void) {
  heard h;
  char dir[300], script[300], identity[2048];
  snprintf(dir, sizeof dir, "%s/cache", scratch);
  snprintf(script, sizeof script, "%s/my-cc", scratch);
  quern_options sync = {.jit = QUERN_JIT_SYNC, .cache_dir = dir}, async = {.jit = QUERN_JIT_ASYNC, .cache_dir = dir};
  is_str(tier_in(sync, &h, 1), tier, "an empty cache: compiled");
  is_str(tier_in(sync, &h, 1), "disk", "then from disk");
  is_int(n_compiled(&h), 0, "without a compile");
  is_str(tier_in(async, &h, 1), "disk", "async: from disk before acquire returns");
  is_str(tier_in((quern_options){.jit = QUERN_JIT_OFF, .cache_dir = dir}, &h, 1), "none", "off: not even from disk");

  subject s = subject_with(sync, &h);
  is_int(qn_jit_cache_list(qn_jit_disk(s.jit), note_key, NULL), 1, "one entry");
  disk_key[disk_key_size] = 0;
  has_str(disk_key, "x0 * x1 + 1\nf32,f32 > f32\n1d ccc\nspecs -\nisa ", "under the kernel's key");
  has_str(disk_key, qn_isa_name(qn_isa_detect()), "and the level");
  has_str(disk_key, "\nbuild ", "and the build");
  if (cc_given ? qn_cc_identity(cc_given, identity, sizeof identity) : qn_clang_identity(identity, sizeof identity)) {
    qn_jit_cache_put(qn_jit_disk(s.jit), disk_key, disk_key_size, identity, strlen(identity), "no object", 9);
    is_str(tier_in(sync, &h, 1), tier, "an entry that is no object is compiled anew");
    is_str(tier_in(sync, &h, 1), "disk", "and replaced");
    qn_jit_cache_put(qn_jit_disk(s.jit), disk_key, disk_key_size, "somebody", 8, "no object", 9);
    is_str(tier_in(sync, &h, 1), tier, "another compiler's entry is compiled anew");
  }
  subject_end(&s);

  write_text(script, "#!/bin/sh\nexec cc \"$@\"\n", 0755);
  sync.cc = script;
  is_str(tier_in(sync, &h, 2), "cc", "a C compiler of the host's");
  is_str(tier_in(sync, &h, 2), "disk", "then from disk");
  write_text(script, "#!/bin/sh\n# another\nexec cc \"$@\"\n", 0755);
  is_str(tier_in(sync, &h, 2), "cc", "it changed: compiled again");
  is_str(tier_in(sync, &h, 2), "disk", "then from disk");
}

/* ---- Built ahead ---- */

static void ahead(char *const *ptr, const int64_t (*stride)[2], const int64_t n[2], const void *params) {
  (void)stride, (void)params;
  for (int64_t i = 0; i < n[0]; i++) ((float *)ptr[2])[i] = ((float *)ptr[0])[i] * ((float *)ptr[1])[i] + 77;
}

static void test_frozen(void) {
  static const quern_kernel_row rows[] = {
      {"x0 * x1 + 77\nf32,f32 > f32\n1d ccc\nspecs -\n", "ahead", {ahead, NULL, NULL, NULL}},
      {"x0 * x1 + 78\nf32,f32 > f32\n1d ccc\nspecs -\n", "ahead_too", {NULL, NULL, NULL, ahead}}};
  static const quern_kernel_row bad_rows[] = {{"key", "name", {NULL, NULL, NULL, NULL}},
                                              {NULL, "name", {ahead, ahead, ahead, ahead}}};
  static quern_kernel_table table = {sizeof table, QUERN_KERNEL_TABLE_VERSION, QN_NUMERICS, 2, rows};
  quern_kernel_table bad = table;
  heard h = HEARD_START;
  subject s = subject_make(QUERN_JIT_OFF, &h);
  qn_code *before = acquire(s.jit, 77), *other = acquire(s.jit, 78);
  ok(!kernel_of(before), "not there yet");

  is_int(qn_jit_frozen_register(NULL), QUERN_E_ARGUMENT, "no table");
  bad.numerics++;
  is_int(qn_jit_frozen_register(&bad), QUERN_E_VERSION, "kernels of other bits");
  has_str(quern_last_error(), "numerics", "and why");
  bad = table;
  bad.version++;
  is_int(qn_jit_frozen_register(&bad), QUERN_E_VERSION, "a table of another version");
  bad = table;
  bad.size--;
  is_int(qn_jit_frozen_register(&bad), QUERN_E_VERSION, "a table of another size");
  bad = table;
  bad.n_rows = -1;
  is_int(qn_jit_frozen_register(&bad), QUERN_E_ARGUMENT, "fewer rows than none");
  bad = table;
  bad.rows = NULL;
  is_int(qn_jit_frozen_register(&bad), QUERN_E_ARGUMENT, "rows NULL");
  for (int i = 0; i < 2; i++) {
    bad = table;
    bad.rows = &bad_rows[i];
    bad.n_rows = 1;
    is_int(qn_jit_frozen_register(&bad), QUERN_E_ARGUMENT, "a row without %s", i ? "a key" : "functions");
  }
  is_int(qn_jit_frozen_register(&table), QUERN_OK, "a table");
  is_int(qn_jit_frozen_register(&table), QUERN_OK, "twice");
  is_int(qn_jit_frozen_count(), 1, "is there once");

  qn_code *after = acquire(s.jit, 77);
  ok(after == before && computes(before, 77), "mode off: a kernel built ahead, after the table came");
  const qn_code_info info = info_of(after);
  is_str(info.tier, "frozen", "tier");
  is_str(info.reason, "built ahead", "reason");
  is_int(info.isa, QN_ISA_GENERIC, "the best level that was built");
  is_int(info.bytes, 0, "no memory");
  qn_code *still = acquire(s.jit, 78);
  is_int(kernel_of(still) != NULL, qn_isa_machine() >= QN_ISA_V4, "a kernel for v4 only runs where v4 does");
  qn_code_release(before);
  qn_code_release(after);
  qn_code_release(other);
  qn_code_release(still);
  subject_end(&s);
  s = subject_make(QUERN_JIT_SYNC, &h);
  qn_code *code = acquire(s.jit, 77);
  is_str(info_of(code).tier, "frozen", "mode sync: before all other tiers");
  is_int(n_compiled(&h), 0, "without a compile");
  qn_code_release(code);
  subject_end(&s);
}

/* ---- Records and dumps ---- */

/* The text of a file; "" if it is not there. One at a time. */
static const char *text_of(const char *path) {
  static char text[20000];
  const int file = open(path, O_RDONLY);
  const ssize_t n = file < 0 ? 0 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  text[n < 0 ? 0 : n] = 0;
  return text;
}

static size_t block(char *text, size_t room, const char *name, int n) {
  return (size_t)snprintf(text, room, "kernel %s\nx0 * x1 + %d\nf32,f32 > f32\n1d ccc\nspecs -\nend\n", name, n);
}

static void test_record(void) {
  char path[300], wanted[2000], names[3][32];
  heard h = HEARD_START;
  snprintf(path, sizeof path, "%s/record", scratch);
  setenv("QUERN_RECORD", path, 1);
  subject s = subject_make(QUERN_JIT_OFF, &h);
  subject other = subject_with((quern_options){.jit = QUERN_JIT_OFF, .kernel_memory_limit = 1}, &h);
  unsetenv("QUERN_RECORD");
  size_t n = (size_t)snprintf(wanted, sizeof wanted, "quern-record 1\n");
  for (int i = 0; i < 2; i++) {
    for (int k = 0; k < 3; k++) {
      qn_code *code = acquire(s.jit, i);
      strcpy(names[i], info_of(code).name);
      qn_code_release(code);
    }
    n += block(wanted + n, sizeof wanted - n, names[i], i);
  }
  is_str(text_of(path), wanted, "QUERN_RECORD: a header, and each kernel once");
  for (int k = 0; k < 3; k++) qn_code_release(acquire(other.jit, 1));
  n += block(wanted + n, sizeof wanted - n, names[1], 1);
  is_str(text_of(path), wanted, "another context appends, once though nothing stays in its memory");
  struct stat status;
  const mode_t mask = umask(0);
  umask(mask);
  ok(stat(path, &status) == 0 && (status.st_mode & 0777) == (0666 & ~mask), "made with the rights that files have");

  /* By function: what is in memory, and what comes. */
  snprintf(path, sizeof path, "%s/record2", scratch);
  is_int(qn_jit_record(s.jit, path), QUERN_OK, "record");
  qn_code *code = acquire(s.jit, 2);
  strcpy(names[2], info_of(code).name);
  qn_code_release(code);
  const char *text = text_of(path);
  for (int i = 0; i < 3; i++) {
    block(wanted, sizeof wanted, names[i], i);
    has_str(text, wanted, "kernel %d is there", i);
  }
  is_int(strlen(text), (long long)strlen("quern-record 1\n") + 3 * (long long)strlen(wanted), "and nothing else");
  is_int(qn_jit_record(s.jit, NULL), QUERN_OK, "no more");
  qn_code_release(acquire(s.jit, 3));
  is_int(strlen(text_of(path)), (long long)strlen("quern-record 1\n") + 3 * (long long)strlen(wanted), "nothing comes");
  is_int(qn_jit_record(s.jit, scratch), QUERN_E_IO, "a folder is no record");
  has_str(quern_last_error(), scratch, "which is said");
  snprintf(path, sizeof path, "%s/fifo", scratch);
  if (mkfifo(path, 0600)) bail("no fifo");
  is_int(qn_jit_record(s.jit, path), QUERN_E_IO, "nor a pipe");
  is_int(h.n_warnings, 0, "no warnings so far");
  subject_end(&s);
  subject_end(&other);

  setenv("QUERN_RECORD", scratch, 1);
  s = subject_make(QUERN_JIT_OFF, &h);
  unsetenv("QUERN_RECORD");
  for (int i = 0; i < 3; i++) qn_code_release(acquire(s.jit, i));
  is_int(h.n_warnings, 1, "a record that cannot be written warns once");
  subject_end(&s);
}

/* A file that is somebody's, and no record. */
static void test_strange_record(void) {
  static const char *const texts[] = {"notes\n", "quern-rec", "quern-record 2\nkernel qj_0\n", "\n"};
  char path[300];
  snprintf(path, sizeof path, "%s/notes", scratch);
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    heard h = HEARD_START;
    write_text(path, texts[i], 0600);
    setenv("QUERN_RECORD", path, 1);
    subject s = subject_make(QUERN_JIT_OFF, &h);
    unsetenv("QUERN_RECORD");
    for (int k = 0; k < 2; k++) qn_code_release(acquire(s.jit, k));
    is_int(h.n_warnings, 1, "a file that is no record: a warning");
    has_str(h.warning, "is something else than a record", "  which says so");
    is_int(qn_jit_record(s.jit, path), QUERN_E_IO, "  nor by function");
    has_str(quern_last_error(), "is something else than a record", "  which says so, too");
    is_str(text_of(path), texts[i], "  it is left as it is");
    subject_end(&s);
  }
}

/* Where the process has a limit of a file's size, beyond which a write raises a signal that ends it. */
static int writes_to_the_limit(void) {
  char path[300], dumped[300];
  struct stat status;
  heard h = HEARD_START;
  snprintf(path, sizeof path, "%s/limited", scratch);
  setenv("QUERN_RECORD", path, 1);
  subject s = subject_make(QUERN_JIT_OFF, &h);
  qn_code_release(acquire(s.jit, 1));
  MUST(stat(path, &status) == 0 && status.st_size > 20 && h.n_warnings == 0);
  const struct rlimit limit = {(rlim_t)status.st_size + 20, (rlim_t)status.st_size + 20};
  MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  qn_code_release(acquire(s.jit, 2));
  MUST(h.n_warnings == 1 && strstr(h.warning, "cannot be written"));
  off_t before = status.st_size;
  MUST(stat(path, &status) == 0 && status.st_size == before); /* no half of a block */

  static char text[5000];
  qn_record record = {.dump = scratch};
  qn_log log = {hear, &h};
  qn_record_dump(&record, "long", ".c", text, sizeof text, &log);
  MUST(h.n_warnings == 2 && strstr(h.warning, "QUERN_DUMP"));
  snprintf(dumped, sizeof dumped, "%s/long.c", scratch);
  MUST(stat(dumped, &status) == 0 && status.st_size == 0);

  /* What is seen too late */
  const int file = open(dumped, O_WRONLY);
  sigset_t pending;
  MUST(file >= 0 && lseek(file, (off_t)limit.rlim_cur, SEEK_SET) > 0);
  MUST(qn_write_all(file, "xyz", 3) == EFBIG);
  MUST(sigpending(&pending) == 0 && !sigismember(&pending, SIGXFSZ));
  MUST(lseek(file, (off_t)limit.rlim_cur - 2, SEEK_SET) > 0);
  MUST(qn_write_all(file, "xyz", 3) == EFBIG);
  close(file);
  subject_end(&s);
  return 0;
}

static void test_limited_record(void) {
  is_int(child_with(0, 0, writes_to_the_limit), 0, "records and dumps go to a file's limit, and not beyond it");
}

static void test_dump(void) {
  char path[400];
  heard h = HEARD_START;
  setenv("QUERN_DUMP", scratch, 1);
  subject s = subject_with((quern_options){.jit = QUERN_JIT_SYNC, .cache_dir = "", .cc = "/bin/false"}, &h);
  unsetenv("QUERN_DUMP");
  qn_code *code = acquire(s.jit, 1);
  const qn_code_info info = info_of(code);
  snprintf(path, sizeof path, "%s/%s.c", scratch, info.name);
  has_str(text_of(path), info.name, "QUERN_DUMP: the source");
  snprintf(path, sizeof path, "%s/%s.log", scratch, info.name);
  has_str(text_of(path), "cc: ", "and what a compiler that failed had to say");
  qn_code_release(code);
  subject_end(&s);

  snprintf(path, sizeof path, "%s/none", scratch);
  setenv("QUERN_DUMP", path, 1);
  h = (heard)HEARD_START;
  s = subject_make(QUERN_JIT_SYNC, &h);
  unsetenv("QUERN_DUMP");
  for (int i = 0; i < 2; i++) qn_code_release(acquire(s.jit, i));
  is_int(h.n_warnings, 1, "a folder that is not there warns once");
  ok(access(path, F_OK) != 0, "and is not made");
  subject_end(&s);
}

/* ---- Modes ---- */

static void test_modes(void) {
  static const struct {
    const char *text;
    int mode, warnings;
  } rows[] = {{"off", QUERN_JIT_OFF, 0},
              {"sync", QUERN_JIT_SYNC, 0},
              {"async", QUERN_JIT_ASYNC, 0},
              {"", QUERN_JIT_ASYNC, 0},
              {"on", QUERN_JIT_ASYNC, 1}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    heard h = HEARD_START;
    setenv("QUERN_JIT", rows[i].text, 1);
    subject s = subject_make(QUERN_JIT_DEFAULT, &h), given = subject_make(QUERN_JIT_OFF, &h);
    is_int(qn_jit_mode(s.jit), rows[i].mode, "QUERN_JIT='%s'", rows[i].text);
    is_int(qn_jit_mode(given.jit), QUERN_JIT_OFF, "the host's option counts first");
    is_int(h.n_warnings, 0, "nothing is said while a context is made");
    for (int k = 0; k < 2; k++) qn_code_release(acquire(s.jit, 77)); /* built ahead */
    qn_code_release(acquire(given.jit, 77));
    is_int(h.n_warnings, rows[i].warnings, "warnings");
    subject_end(&s);
    subject_end(&given);
  }
  unsetenv("QUERN_JIT");
}

int main(void) {
  need_parts();
  /* Children first: where threads run, a sanitizer does not let them start others. */
  test_async();
  test_limited_record();
  test_keys();
  test_sync();
  test_crowd(1);
  test_crowd(5);
  test_little_stack();
  test_off();
  test_failure();
  test_memory();
  test_mill();
  test_disk();
  test_frozen();
  test_record();
  test_strange_record();
  test_dump();
  test_modes();
  leave_parts();
  return done_testing();
}
