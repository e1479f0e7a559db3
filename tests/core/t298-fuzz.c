/* SPDX-License-Identifier: Apache-2.0
 * tags: memory long
 *
 * t298-fuzz: the fuzz targets of tests/fuzz without a fuzzer: every file of their corpora, then changed and random ones, half a
 * second each, more under a sanitizer and in full. QUERN_FUZZ_SECONDS: how many; QUERN_FUZZ_TARGET: one target only. An input that ends the process lies in t298-TARGET.input of the build. What a day tries
 * differs; QUERN_TEST_DAY=k repeats it. CUDA's fake driver is there, for descriptors of its devices. */
#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "runtime/toolchain/generator.h"
#include "tensors.h"

enum { MOST_BYTES = 8192, MOST_FILES = 400 };

typedef int target_fn(const uint8_t *bytes, size_t size);
target_fn fuzz_call, fuzz_expression, fuzz_fused, fuzz_jit_cache, fuzz_npy, fuzz_npz, fuzz_object_loader, fuzz_program, fuzz_spec;

static const struct target {
  const char *name;
  target_fn *run;
  size_t longest;
  int needs_specs;
} targets[] = {{"call", fuzz_call, 256, 0}, {"expression", fuzz_expression, 4096, 0}, {"fused", fuzz_fused, 512, 0},
               {"jit_cache", fuzz_jit_cache, 4096, 0}, {"npy", fuzz_npy, 512, 0}, {"npz", fuzz_npz, 1024, 0},
               {"object_loader", fuzz_object_loader, 4096, 0},
               {"program", fuzz_program, 512, 1}, {"spec", fuzz_spec, 2048, 1}};

typedef struct corpus {
  uint8_t *bytes[MOST_FILES];
  size_t size[MOST_FILES];
  int n;
} corpus;

static void corpus_read(corpus *c, const char *target) {
  char path[4096];
  const char *source = getenv("QUERN_SOURCE_DIR");
  memset(c, 0, sizeof *c);
  snprintf(path, sizeof path, "%s/tests/fuzz/corpus/%s", source ? source : ".", target);
  DIR *folder = opendir(path);
  if (!folder) bail("no %s", path);
  for (struct dirent *entry; (entry = readdir(folder)) && c->n < MOST_FILES;) {
    char file[8192];
    if (entry->d_name[0] == '.') continue;
    snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
    FILE *f = fopen(file, "rb");
    if (!f) bail("no %s", file);
    c->bytes[c->n] = malloc(MOST_BYTES);
    c->size[c->n] = fread(c->bytes[c->n], 1, MOST_BYTES, f);
    fclose(f);
    c->n++;
  }
  closedir(folder);
}

static void corpus_free(corpus *c) {
  for (int k = 0; k < c->n; k++) free(c->bytes[k]);
}

/* The input that runs, in a file that outlives the process. */
typedef struct record {
  char path[4096];
  unsigned char *bytes;
} record;

static void record_begin(record *r, const char *target) {
  const char *build = getenv("QUERN_BUILD_DIR");
  snprintf(r->path, sizeof r->path, "%.3900s/t298-%s.input", build ? build : ".", target);
  const int fd = open(r->path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (fd < 0 || ftruncate(fd, MOST_BYTES)) bail("%s", r->path);
  r->bytes = mmap(NULL, MOST_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (r->bytes == MAP_FAILED) bail("%s", r->path);
  close(fd);
}

static void record_end(record *r) {
  munmap(r->bytes, MOST_BYTES);
  unlink(r->path);
}

/* Runs an exact copy, so that what is read behind it is seen; the file is cut to it if it ends here. */
static void run_one(const struct target *t, record *r, const uint8_t *bytes, size_t size) {
  uint8_t *copy = malloc(size + !size);
  memcpy(copy, bytes, size);
  memcpy(r->bytes, bytes, size);
  if (truncate(r->path, (off_t)size) || truncate(r->path, MOST_BYTES)) bail("%s", r->path);
  memcpy(r->bytes, bytes, size);
  t->run(copy, size);
  free(copy);
  group_count(1);
}

/* A file of the corpus with a few changes, or random bytes. */
static size_t next_input(const corpus *c, rng *r, size_t longest, uint8_t *bytes) {
  size_t n = 0;
  if (c->n && rng_below(r, 4)) {
    const int k = (int)rng_below(r, (uint64_t)c->n);
    n = c->size[k];
    memcpy(bytes, c->bytes[k], n);
  } else {
    n = (size_t)rng_below(r, longest + 1);
    for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)rng_u64(r);
    return n;
  }
  for (uint64_t changes = 1 + rng_below(r, 6); changes; changes--) {
    const size_t at = n ? (size_t)rng_below(r, n) : 0, rest = n - at, few = (size_t)rng_below(r, 17);
    switch (rng_below(r, 5)) {
      case 0:
        if (n) bytes[at] ^= (uint8_t)(1u << rng_below(r, 8));
        break;
      case 1:
        if (n) bytes[at] = (uint8_t)rng_u64(r);
        break;
      case 2: /* cut out */
        if (few <= rest) memmove(bytes + at, bytes + at + few, rest - few), n -= few;
        break;
      case 3: /* twice */
        if (few <= rest && n + few <= MOST_BYTES) memmove(bytes + at + few, bytes + at, rest), n += few;
        break;
      default: { /* a part of another one */
        const int k = (int)rng_below(r, (uint64_t)c->n);
        const size_t from = c->size[k] ? (size_t)rng_below(r, c->size[k]) : 0;
        size_t length = c->size[k] - from;
        if (length > rest) length = rest;
        memcpy(bytes + at, c->bytes[k] + from, length);
      }
    }
  }
  return n;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int has_specs(void) {
  qn_generator *g = qn_generator_create();
  qn_spec_op **ops = NULL;
  int32_t n = 0;
  const quern_status status = qn_generator_load_spec(g, "empty.lua", "", 0, &ops, &n);
  free(ops);
  qn_generator_destroy(g);
  return status == QUERN_OK;
}

/* A library of some ops only has a generator that knows them all. */
static void test_lacking(void) {
  static const char *const names[] = {"sum", "max", "min", "mean", "prod", "any"};
  group_begin("specs that call reductions: they load, or say that the build lacks them");
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    char text[200];
    quern_ctx *ctx = NULL;
    quern_op *op = NULL;
    snprintf(text, sizeof text, "row \"lacking.f\" { doc = \"d\", dtypes = floating, body = \"x - (T)%s(x)\" }", names[k]);
    if (quern_ctx_create(NULL, &ctx)) bail("%s", quern_last_error());
    const int is_built = quern_op_find(NULL, names[k], &op) == QUERN_OK;
    const quern_status status = quern_spec_load_text(ctx, "lacking.lua", text, strlen(text));
    group_count(1);
    if (is_built ? status != QUERN_OK : status != QUERN_E_UNSUPPORTED || !strstr(quern_last_error(), "built without"))
      group_fail("%s: %s: %s", names[k], status_name(status), quern_last_error());
    quern_op_release(op);
    quern_ctx_release(ctx);
  }
  group_end();
}

int main(void) {
  static uint8_t bytes[2 * MOST_BYTES];
  const int day = test_part(1 << 20), specs = has_specs();
  const char *text = getenv("QUERN_FUZZ_SECONDS"), *only = getenv("QUERN_FUZZ_TARGET");
  const double seconds = text ? atof(text) : SANITIZED ? 1 : day < 0 ? 2 : 0.5; /* what it looks for, sanitizers see best */
  char fake[4096];
  setenv("QUERN_CACHE_DIR", "none", 1);
  snprintf(fake, sizeof fake, "%.4000s/tests/fake", getenv("QUERN_BUILD_DIR") ? getenv("QUERN_BUILD_DIR") : ".");
  setenv("QUERN_CUDA_PATH", fake, 1);
  setenv("FAKE_NVRTC_VERSION", "99.0", 1); /* without a compiler */
  for (size_t k = 0; k < sizeof targets / sizeof *targets; k++) {
    const struct target *t = &targets[k];
    corpus c;
    record file;
    rng r;
    if (only && strcmp(only, t->name) != 0) continue;
    if (t->needs_specs && !specs) {
      skip(1, "%s: no specs at run time here: %s", t->name, quern_last_error());
      continue;
    }
    corpus_read(&c, t->name);
    record_begin(&file, t->name);
    group_begin("%s", t->name);
    for (int i = 0; i < c.n; i++) run_one(t, &file, c.bytes[i], c.size[i]);
    rng_seed(&r, (uint64_t)day * 64 + k);
    for (const double end = now() + seconds; now() < end;) run_one(t, &file, bytes, next_input(&c, &r, t->longest, bytes));
    group_end();
    record_end(&file);
    corpus_free(&c);
  }
  if (specs && !only) test_lacking();
  return done_testing();
}
