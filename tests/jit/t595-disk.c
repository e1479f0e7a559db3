/* SPDX-License-Identifier: Apache-2.0
 * tags: threads-full
 *
 * t595-disk: the disk cache from end to end: this program runs itself again and again, each time a fresh process that
 * computes one expression and says how. Cold and warm, many at once, after damage, for other levels, dtypes, layouts,
 * specs and compilers; where it lies, and where nothing may be written. */
#include "expressions.h"

static double started; /* when main began */

/* ---- The process that computes: t595-disk CACHE JIT CC DTYPE LAYOUT EXPRESSION [SPEC]...------------------------------
 */

static void print_maps(void) {
  static const char *const parts[] = {"quern-gen", "quern-clang", "liblua", "libLLVM", "libclang"};
  char line[4096];
  FILE *maps = fopen("/proc/self/maps", "r");
  printf("maps:");
  for (size_t i = 0; i < sizeof parts / sizeof parts[0] && maps; i++) {
    rewind(maps);
    while (fgets(line, sizeof line, maps)) {
      if (!strstr(line, parts[i])) continue;
      printf(" %s", parts[i]);
      break;
    }
  }
  if (maps) fclose(maps);
  printf("\n");
}

static int compute(char **argv) {
  rng r;
  operands o;
  const char *const cache = argv[1], *const cc = argv[3], *const layout = argv[5];
  const int32_t jit = strcmp(argv[2], "off") == 0    ? QUERN_JIT_OFF
                      : strcmp(argv[2], "sync") == 0 ? QUERN_JIT_SYNC
                                                     : QUERN_JIT_ASYNC;
  quern_options options = {.size = sizeof options, .threads = 1, .jit = jit};
  options.cache_dir = strcmp(cache, "-") == 0 ? NULL : cache; /* "-": the library's own choice */
  options.cc = strcmp(cc, "-") == 0 ? NULL : cc;
  quern_ctx *ctx;
  quern_op *op;
  int64_t shape[2] = {1, 2000};
  char dtypes[64];
  if (quern_ctx_create(&options, &ctx)) return 2;
  for (char **spec = argv + 7; *spec; spec++)
    if (quern_spec_load_text(ctx, "acme.lua", *spec, strlen(*spec))) {
      printf("error: %s\n", quern_last_error());
      return 2;
    }
  if (strcmp(layout, "rows") == 0) shape[0] = 40, shape[1] = 50;
  snprintf(dtypes, sizeof dtypes, "%s %s", argv[4], argv[4]);
  rng_seed(&r, 1);
  operands_make(&o, dtypes, argv[4], 2, shape, &r);
  if (strcmp(layout, "broadcast") == 0) o.in[1].strides[1] = 0;
  if (strcmp(layout, "rows") == 0) o.in[0].strides[0] = 0; /* nothing to coalesce */
  if (quern_op_compile(ctx, argv[6], &op) || operands_call(op, &o, NULL)) {
    printf("error: %s\n", quern_last_error());
    return 2;
  }
  uint64_t hash = 0xcbf29ce484222325u;
  const unsigned char *bytes = o.out[0].t.data;
  for (size_t i = 0; i < (size_t)(shape[0] * shape[1] * ref_dtype_size(o.out[0].d)); i++)
    hash = (hash ^ bytes[i]) * 0x100000001b3u;
  printf("hash: %016" PRIx64 "\n", hash);
  fflush(stdout);
  printf("ms: %.3f\n", now_ms() - started);
  printf("tier: %s\n", tier_of(op, &o, NULL));
  printf("reason: %s\n", explained(op, &o, NULL, "reason"));
  printf("compiles: %s\n", explained(op, &o, NULL, "compiles"));
  print_maps();
  for (int i = 0; i < 10000 && jit == QUERN_JIT_ASYNC && strcmp(tier_of(op, &o, NULL), "interpreter") == 0; i++)
    sleep_ms(2);
  fflush(stdout);
  operands_free(&o);
  quern_op_release(op);
  quern_ctx_release(ctx);
  return 0;
}

/* ---- Running it ------------------------------------------------------------------------------------------------- */

static char scratch[200], folder[256];

typedef struct run {
  const char *cache, *jit, *cc, *dtype, *layout, *text, *spec, *more;
  pid_t pid;
  int pipe;
  int status;
  char said[4096];
} run;

#define TEXT "y = exp(x * w) - tanh(w)"

static void start(run *p) {
  int ends[2];
  const char *const words[] = {"t595-disk",
                               p->cache ? p->cache : folder,
                               p->jit ? p->jit : "sync",
                               p->cc             ? p->cc
                               : compiler_option ? compiler_option
                                                 : "-",
                               p->dtype ? p->dtype : "f32",
                               p->layout ? p->layout : "flat",
                               p->text ? p->text : TEXT,
                               p->spec,
                               p->more,
                               NULL};
  char *argv[10];
  for (int i = 0; i < 10; i++) argv[i] = (char *)(uintptr_t)words[i];
  fflush(stdout);
  if (pipe(ends)) bail("no pipe");
  p->pid = fork();
  if (p->pid < 0) bail("no process");
  if (p->pid == 0) {
    dup2(ends[1], 1);
    close(ends[0]);
    close(ends[1]);
    execv("/proc/self/exe", argv);
    _exit(127);
  }
  close(ends[1]);
  p->pipe = ends[0];
}

static void finish(run *p) {
  size_t n = 0;
  ssize_t got;
  while ((got = read(p->pipe, p->said + n, sizeof p->said - 1 - n)) > 0) n += (size_t)got;
  p->said[n] = 0;
  close(p->pipe);
  waitpid(p->pid, &p->status, 0);
}

static run go(run p) {
  start(&p);
  finish(&p);
  return p;
}

static char right[32]; /* the hash of TEXT for f32, flat */

static void is_run(run p, const char *tier, const char *compiles, const char *name) {
  ok(p.status == 0 && strcmp(line_of(p.said, "tier"), tier) == 0 && strcmp(line_of(p.said, "compiles"), compiles) == 0,
     "%s: tier %s, compiles %s", name, tier, compiles);
  if (p.status || strcmp(line_of(p.said, "tier"), tier) != 0) diag("status 0x%x\n%s", p.status, p.said);
}

static void is_right(const run *p, const char *hash) { is_str(line_of(p->said, "hash"), hash, "  the same bits"); }

/* ---- Files ------------------------------------------------------------------------------------------------------ */

static void empty_folder(const char *path) {
  char command[400];
  snprintf(command, sizeof command, "rm -rf '%s'", path);
  if (system(command)) bail("%s is left", path);
}

/* How many files lie in a folder and below; the path of one of them. */
static int n_files(const char *path, char *one) {
  int n = 0;
  DIR *dir = opendir(path);
  for (struct dirent *entry; dir && (entry = readdir(dir));) {
    char inner[600];
    struct stat status;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
    if (lstat(inner, &status)) continue;
    if (S_ISDIR(status.st_mode)) {
      n += n_files(inner, one);
    } else {
      n++;
      if (one) strcpy(one, inner);
    }
  }
  if (dir) closedir(dir);
  return n;
}

/* ---- Tests ------------------------------------------------------------------------------------------------------ */

static void test_warm(void) {
  struct stat status;
  char interpreted[32];
  run p = go((run){.jit = "off"});
  is_run(p, "interpreter", "0", "mode off");
  is_int(n_files(folder, NULL), 0, "  writes nothing");
  snprintf(interpreted, sizeof interpreted, "%s", line_of(p.said, "hash"));
  p = go((run){.jit = "sync"});
  is_run(p, compiler, "1", "cold");
  is_right(&p, interpreted);
  snprintf(right, sizeof right, "%s", line_of(p.said, "hash"));
  diag("cold: %s ms from main to the result", line_of(p.said, "ms"));
  is_int(n_files(folder, NULL), 1, "  leaves one entry");
  ok(lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && (status.st_mode & 07777) == 0700 &&
         status.st_uid == geteuid(),
     "  in a folder of its own, mode 0700");
  double best = 1e9;
  for (int i = 0; i < 3; i++) {
    static const char *const modes[] = {"sync", "async", "sync"};
    p = go((run){.jit = modes[i]});
    is_run(p, "disk", "0", "warm");
    is_right(&p, right);
    is_str(line_of(p.said, "maps"), "", "  no Lua, no LLVM, no Clang is mapped");
    if (strtod(line_of(p.said, "ms"), NULL) < best) best = strtod(line_of(p.said, "ms"), NULL);
  }
  ok(best < 100, "  %.3f ms from main to the result (10 wanted, 100 allowed)", best);
  p = go((run){.jit = "off"});
  is_run(p, "interpreter", "0", "mode off looks for nothing");
  setenv("QUERN_MODULE_DIR", "/nonexistent", 1);
  p = go((run){0});
  is_run(p, "disk", "0", "warm, without a compiler");
  is_right(&p, right);
  unsetenv("QUERN_MODULE_DIR");
  p = go((run){.text = "exp(x * w) - tanh(w)"});
  is_run(p, compiler, "1", "a result instead of an output: another text");
  is_right(&p, right);
  p = go((run){.text = "named: other=exp(a*b)-tanh(b);"});
  is_run(p, "disk", "0", "other names and blanks: the same kernel");
  is_right(&p, right);
}

/* Each of these is compiled although all the others lie there. */
static void test_others(void) {
  static const struct {
    run p;
    const char *name;
  } cases[] = {
      {{.dtype = "f64"}, "another dtype"},
      {{.dtype = "f16"}, "a third one"},
      {{.layout = "broadcast"}, "a broadcast operand"},
      {{.layout = "rows"}, "rows"},
      {{.text = "y = exp(x * w) - tanh(x)"}, "another expression"},
      {{.text = "y = exp(x * w) - tanh(w); z = y"}, NULL}, /* two outputs: not for this program */
      {{.text = "y = exp(x * w) - tanh(w) * 1"}, "one that is worth the same"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    if (!cases[i].name) continue;
    run p = go(cases[i].p), off = cases[i].p, again;
    off.jit = "off";
    off = go(off);
    is_run(p, compiler, "1", cases[i].name);
    is_right(&p, line_of(off.said, "hash"));
    again = go(cases[i].p);
    is_run(again, "disk", "0", "  once more");
    is_right(&again, line_of(off.said, "hash"));
  }
  run p = go((run){0});
  is_run(p, "disk", "0", "the first one is still there");
  is_right(&p, right);
}

static void test_levels(void) {
  static const char *const levels[] = {"v3", "v2", "generic"};
  char text[4000];
  if (quern_ctx_describe(NULL, text, sizeof text)) bail("%s", quern_last_error());
  for (int i = 0; i < 3; i++) {
    if (strcmp(line_of(text, "machine"), levels[i]) <= 0 ||
        strcmp(line_of(text, "machine"), "generic") == 0) { /* "v4" > "v3" */
      if (strcmp(levels[i], "generic") != 0) skip(1, "this machine is of level %s", line_of(text, "machine"));
      if (strcmp(levels[i], "generic") != 0 || strcmp(line_of(text, "machine"), "generic") == 0) continue;
    }
    setenv("QUERN_ISA", levels[i], 1);
    run p = go((run){0});
    ok(strcmp(line_of(p.said, "tier"), compiler) == 0, "held to %s: tier %s, nothing that is there serves", levels[i],
       line_of(p.said, "tier"));
    is_right(&p, right);
    p = go((run){0});
    is_run(p, "disk", "0", "  once more");
    is_right(&p, right);
    unsetenv("QUERN_ISA");
  }
  run p = go((run){0});
  is_run(p, "disk", "0", "not held: what was there");
  is_right(&p, right);
}

static void test_specs(void) {
  static const char *const specs[] = {
      "unary \"acme.f\" { doc = \"One.\", dtypes = floating, body = [[ x * 3 + 1 ]] }\n",
      "unary \"acme.f\" { doc = \"One.\", dtypes = floating, body = [[ x * 3 + 2 ]] }\n",
      "func \"acme_g\" { doc = \"One.\", args = \"x\", body = [[ x * 5 ]] }\n"
      "unary \"acme.f\" { doc = \"One.\", dtypes = floating, body = [[ acme_g(x) ]] }\n",
      "func \"acme_g\" { doc = \"One.\", args = \"x\", body = [[ x * 7 ]] }\n"
      "unary \"acme.f\" { doc = \"One.\", dtypes = floating, body = [[ acme_g(x) ]] }\n",
  };
  char hashes[4][32];
  run p = go((run){.jit = "off", .spec = specs[0], .text = "y = acme.f(x) + w"});
  if (p.status) {
    skip(1, "no specs at run time here: %s", line_of(p.said, "error"));
    return;
  }
  for (int i = 0; i < 4; i++) {
    p = go((run){.spec = specs[i], .text = "y = acme.f(x) + w"});
    is_run(p, compiler, "1", "an op of a spec; another spec's under the same name is another");
    snprintf(hashes[i], sizeof hashes[i], "%s", line_of(p.said, "hash"));
    run off = go((run){.jit = "off", .spec = specs[i], .text = "y = acme.f(x) + w"});
    is_right(&p, line_of(off.said, "hash"));
    for (int k = 0; k < i; k++) ok(strcmp(hashes[k], hashes[i]) != 0, "  unlike spec %d's", k);
  }
  for (int i = 3; i >= 0; i--) {
    p = go((run){.spec = specs[i], .text = "y = acme.f(x) + w"});
    is_run(p, "disk", "0", "  once more");
    is_right(&p, hashes[i]);
  }
  /* Constants hold for a file: two files are not the file that they would be together. */
  static const char first[] = "constants { PI = 3 }\n",
                    second[] = "unary \"acme.h\" { doc = \"H.\", dtypes = floating, body = [[ x * PI ]] }\n",
                    both[] = "constants { PI = 3 }\nunary \"acme.h\" { doc = \"H.\", dtypes = floating, body = [[ x * PI ]] }\n";
  p = go((run){.spec = both, .text = "y = acme.h(x) + w"});
  is_run(p, compiler, "1", "a constant and its op in one file");
  run apart = go((run){.spec = first, .more = second, .text = "y = acme.h(x) + w"});
  is_run(apart, compiler, "1", "  in two");
  run off = go((run){.jit = "off", .spec = first, .more = second, .text = "y = acme.h(x) + w"});
  is_right(&apart, line_of(off.said, "hash"));
}

static void test_damage(void) {
  char path[600];
  static char bytes[1 << 20], bad[1 << 20];
  empty_folder(folder);
  run p = go((run){0});
  is_run(p, compiler, "1", "cold");
  if (n_files(folder, path) != 1) {
    fail("an entry");
    return;
  }
  FILE *file = fopen(path, "rb");
  const size_t n = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  if (file) fclose(file);
  for (int i = 0; i < 6; i++) {
    size_t m = n;
    memcpy(bad, bytes, n);
    switch (i) {
      case 0: bad[n / 2] ^= 1; break;
      case 1: bad[n - 1] ^= 0x80; break; /* the code's end, or a sum */
      case 2: m = n / 2; break;
      case 3: m = 0; break;
      case 4: memset(bad, 0x90, n); break;
      case 5: bad[m++] = 0; break;
    }
    file = fopen(path, "wb");
    if (!file || fwrite(bad, 1, m, file) != m || fclose(file)) bail("%s cannot be written", path);
    p = go((run){0});
    is_run(p, compiler, "1", "a damaged entry");
    is_right(&p, right);
    p = go((run){0});
    is_run(p, "disk", "0", "  is made anew");
    is_right(&p, right);
  }
  /* A sound entry under another one's name */
  p = go((run){.text = "y = x - w"});
  char other[600] = "", command[1400];
  DIR *dir = opendir(folder);
  for (struct dirent *entry; dir && (entry = readdir(dir));) {
    if (entry->d_name[0] != '.' && !strstr(path, entry->d_name))
      snprintf(other, sizeof other, "%s/%s", folder, entry->d_name);
  }
  if (dir) closedir(dir);
  snprintf(command, sizeof command, "cp '%s' '%s'", other, path);
  ok(*other && system(command) == 0, "an entry takes another one's place");
  p = go((run){0});
  is_run(p, compiler, "1", "  is not taken for it");
  is_right(&p, right);
}

static void test_crowd(void) {
  enum { N = 16 };
  static run crowd[N];
  empty_folder(folder);
  for (int i = 0; i < N; i++) {
    crowd[i] = (run){.jit = i % 4 == 3 ? "async" : "sync"};
    start(&crowd[i]);
  }
  group_begin("16 processes at once on an empty cache");
  for (int i = 0; i < N; i++) {
    finish(&crowd[i]);
    group_count(1);
    if (crowd[i].status || strcmp(line_of(crowd[i].said, "hash"), right) != 0)
      group_fail("process %d: status 0x%x\n%s", i, crowd[i].status, crowd[i].said);
  }
  group_end();
  is_int(n_files(folder, NULL), 1, "  leave one entry and nothing else");
  run p = go((run){0});
  is_run(p, "disk", "0", "  that serves the next one");
  is_right(&p, right);
}

static void test_compilers(void) {
  if (strcmp(compiler, "clang") != 0 || !compiles_with("cc", "cc")) {
    skip(1, "there are no two compilers here");
    return;
  }
  run p = go((run){.cc = "cc"});
  is_run(p, "cc", "1", "another compiler: the entry is not its own");
  is_right(&p, right);
  p = go((run){.cc = "cc"});
  is_run(p, "disk", "0", "  once more");
  p = go((run){0});
  is_run(p, "clang", "1", "  and back");
  is_right(&p, right);
}

typedef struct listed {
  int n;
  int64_t bytes;
  int is_recent, has_text, is_named;
} listed;

static void each(void *arg, const char *key, int64_t bytes, int64_t used) {
  listed *l = arg;
  l->n++;
  l->bytes += bytes;
  l->is_recent += llabs((long long)(time(NULL) - used)) < 3 * 3600;
  l->has_text += strstr(key, "exp ( x0 * x1 ) - tanh ( x1 )") != NULL;
  l->is_named += strstr(key, "f32,f32 > f32") != NULL;
}

static void test_list(void) {
  listed l = {0};
  int64_t removed = -1;
  empty_folder(folder);
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .cache_dir = folder});
  is_int(quern_cache_list(ctx, each, &l), QUERN_OK, "a list where nothing is");
  is_int(l.n, 0, "  is empty");
  is_int(quern_cache_clear(ctx, &removed), QUERN_OK, "clearing it");
  is_int(removed, 0, "  removes nothing");
  go((run){0});
  go((run){.text = "y = x - w"});
  is_int(quern_cache_list(ctx, each, &l), QUERN_OK, "a list of two");
  ok(l.n == 2 && l.is_recent == 2 && l.has_text == 1 && l.is_named == 2 && l.bytes > 200,
     "  says what they are: %d entries of %lld bytes, %d recent, %d and %d by their keys", l.n, (long long)l.bytes,
     l.is_recent, l.has_text, l.is_named);
  is_int(quern_cache_list(ctx, NULL, NULL), QUERN_E_ARGUMENT, "no function to call");
  char stranger[300];
  snprintf(stranger, sizeof stranger, "%s/notes.txt", folder);
  FILE *file = fopen(stranger, "w");
  if (!file || fclose(file)) bail("%s", stranger);
  is_int(quern_cache_clear(ctx, &removed), QUERN_OK, "cleared");
  is_int(removed, 2, "  of two");
  is_int(n_files(folder, NULL), 1, "  but not of what is somebody else's");
  is_int(quern_cache_clear(ctx, NULL), QUERN_OK, "the count may be NULL");
  run p = go((run){0});
  is_run(p, compiler, "1", "then it is cold");
  quern_ctx_release(ctx);
}

/* Where it lies: the host's word, the variables', or nowhere. */
static void test_places(void) {
  char home[256], cache[300], own[300];
  snprintf(home, sizeof home, "%s/home", scratch);
  snprintf(cache, sizeof cache, "%s/home/xdg", scratch);
  snprintf(own, sizeof own, "%s/own", scratch);
  if (mkdir(home, 0700) || mkdir(cache, 0700)) bail("%s", home);
  empty_folder(folder);
  setenv("HOME", home, 1);
  setenv("XDG_CACHE_HOME", cache, 1);
  setenv("QUERN_CACHE_DIR", "none", 1);
  run p = go((run){.cache = "-"});
  is_run(p, compiler, "1", "QUERN_CACHE_DIR=none");
  is_right(&p, right);
  p = go((run){.cache = "-"});
  is_run(p, compiler, "1", "  once more");
  setenv("QUERN_CACHE_DIR", own, 1);
  p = go((run){.cache = ""});
  is_run(p, compiler, "1", "the host wants none");
  p = go((run){.cache = ""});
  is_run(p, compiler, "1", "  once more");
  ok(n_files(home, NULL) == 0 && n_files(own, NULL) == 0 && access(own, F_OK) != 0, "  neither wrote anything");
  p = go((run){.cache = "-"});
  is_run(p, compiler, "1", "QUERN_CACHE_DIR=FOLDER");
  is_int(n_files(own, NULL), 1, "  an entry lies there");
  p = go((run){0});
  is_run(p, compiler, "1", "the host's folder goes before it");
  is_int(n_files(folder, NULL), 1, "  an entry lies there");
  unsetenv("QUERN_CACHE_DIR");
  p = go((run){.cache = "-"});
  is_run(p, compiler, "1", "XDG_CACHE_HOME");
  char inner[400];
  snprintf(inner, sizeof inner, "%s/quern", cache);
  is_int(n_files(inner, NULL), 1, "  an entry lies in its folder quern");
  unsetenv("XDG_CACHE_HOME");
  p = go((run){.cache = "-"});
  is_run(p, compiler, "1", "HOME");
  snprintf(inner, sizeof inner, "%s/.cache/quern", home);
  is_int(n_files(inner, NULL), 1, "  an entry lies in .cache/quern");
  p = go((run){.cache = "-"});
  is_run(p, "disk", "0", "  and serves");
  setenv("QUERN_CACHE_DIR", "none", 1);
  p = go((run){.cache = "relative/folder"});
  is_run(p, compiler, "1", "a folder that is relative is not used");
  ok(access("relative", F_OK) != 0, "  nor made");
  snprintf(inner, sizeof inner, "%s/open", scratch);
  if (mkdir(inner, 0777) || chmod(inner, 0777)) bail("%s", inner);
  p = go((run){.cache = inner});
  is_run(p, compiler, "1", "a folder that others may write to");
  is_right(&p, right);
  is_int(n_files(inner, NULL), 0, "  is not used");
  p = go((run){.cache = "/proc/nonexistent/folder"});
  is_run(p, compiler, "1", "a folder that cannot be made");
  is_right(&p, right);
}

int main(int argc, char **argv) {
  started = now_ms();
  if (argc >= 7) return compute(argv);
  forget_environment();
  find_compiler();
  if (!compiler) skip_all("no compiler of kernels is here");
  const char *tmp = getenv("TMPDIR");
  snprintf(scratch, sizeof scratch, "%s/quern-t595.XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(scratch)) bail("no folder");
  snprintf(folder, sizeof folder, "%s/cache", scratch);
  test_warm();
  test_others();
  test_levels();
  test_specs();
  test_damage();
  test_crowd();
  test_compilers();
  test_list();
  test_places();
  empty_folder(scratch);
  return done_testing();
}
