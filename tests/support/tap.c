/* SPDX-License-Identifier: Apache-2.0
 *
 * tap.c: TAP 13 producer and random numbers; see tap.h. Output is flushed line by line, so that a crash loses nothing,
 * and goes through one lock, so that threads may report. */
#include "tap.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_run, n_bad, n_planned = -1, started;

static char group_name[256];
static long long group_cases, group_bad;
static int group_open;
#define GROUP_SHOWN 5

static void start(void) {
  if (started) return;
  started = 1;
  setvbuf(stdout, NULL, _IOLBF, 1 << 16);
  puts("TAP version 13");
}

/* Prints text, each line behind "# ". */
static void put_diag(const char *text) {
  while (*text) {
    size_t n = strcspn(text, "\n");
    printf("# %.*s\n", (int)n, text);
    text += n + (text[n] == '\n');
  }
}

static void put_vdiag(const char *format, va_list args) {
  char text[8192];
  vsnprintf(text, sizeof text, format, args);
  put_diag(text);
}

/* One result line; '#' and newlines would change its meaning. */
static void put_result(int good, const char *name) {
  start();
  n_run++;
  if (!good) n_bad++;
  printf("%s %d - ", good ? "ok" : "not ok", n_run);
  for (; *name; name++) putchar(*name == '#' ? '*' : *name == '\n' ? ' ' : *name);
  putchar('\n');
}

#define FORMAT_NAME(buffer, name) \
  char buffer[1024]; \
  do { \
    va_list args; \
    va_start(args, name); \
    vsnprintf(buffer, sizeof buffer, name, args); \
    va_end(args); \
  } while (0)

void plan(int n_tests) {
  pthread_mutex_lock(&lock);
  start();
  n_planned = n_tests;
  printf("1..%d\n", n_tests);
  pthread_mutex_unlock(&lock);
}

void skip_all(const char *reason, ...) {
  FORMAT_NAME(text, reason);
  start();
  printf("1..0 # SKIP %s\n", text);
  fflush(stdout);
  exit(0);
}

int exit_status(void) {
  return n_bad || (n_planned >= 0 && n_planned != n_run) ? 1 : 0;
}

int done_testing(void) {
  pthread_mutex_lock(&lock);
  start();
  if (group_open) {
    put_diag("a group was left open");
    n_bad++;
  }
  if (n_planned < 0) printf("1..%d\n", n_planned = n_run);
  if (n_run == 0) n_bad++;
  if (n_bad) printf("# %d of %d failed, seed 0x%" PRIx64 "\n", n_bad, n_run, test_seed());
  fflush(stdout);
  pthread_mutex_unlock(&lock);
  return exit_status();
}

int n_failed(void) {
  return n_bad;
}

int tap_ok(int good, const char *file, int line, const char *text, const char *name, ...) {
  FORMAT_NAME(buffer, name);
  pthread_mutex_lock(&lock);
  put_result(good, buffer);
  if (!good) printf("# failed at %s:%d: %s\n", file, line, text);
  fflush(stdout);
  pthread_mutex_unlock(&lock);
  return good;
}

int tap_is_int(long long got, long long wanted, const char *file, int line, const char *text, const char *name, ...) {
  FORMAT_NAME(buffer, name);
  pthread_mutex_lock(&lock);
  put_result(got == wanted, buffer);
  if (got != wanted) printf("# failed at %s:%d: %s\n#    got: %lld\n# wanted: %lld\n", file, line, text, got, wanted);
  fflush(stdout);
  pthread_mutex_unlock(&lock);
  return got == wanted;
}

int tap_is_str(const char *got, const char *wanted, const char *file, int line, const char *text, const char *name,
               ...) {
  FORMAT_NAME(buffer, name);
  int good = got == wanted || (got && wanted && strcmp(got, wanted) == 0);
  pthread_mutex_lock(&lock);
  put_result(good, buffer);
  if (!good) {
    printf("# failed at %s:%d: %s\n", file, line, text);
    put_diag("got:");
    put_diag(got ? got : "(null)");
    put_diag("wanted:");
    put_diag(wanted ? wanted : "(null)");
  }
  fflush(stdout);
  pthread_mutex_unlock(&lock);
  return good;
}

int tap_has_str(const char *got, const char *part, const char *file, int line, const char *text, const char *name,
                ...) {
  FORMAT_NAME(buffer, name);
  int good = got && strstr(got, part);
  pthread_mutex_lock(&lock);
  put_result(good, buffer);
  if (!good) {
    printf("# failed at %s:%d: %s\n", file, line, text);
    put_diag("got:");
    put_diag(got ? got : "(null)");
    put_diag("wanted somewhere in it:");
    put_diag(part);
  }
  fflush(stdout);
  pthread_mutex_unlock(&lock);
  return good;
}

void skip(int n_tests, const char *reason, ...) {
  FORMAT_NAME(text, reason);
  pthread_mutex_lock(&lock);
  start();
  for (int i = 0; i < n_tests; i++) printf("ok %d # SKIP %s\n", ++n_run, text[0] ? text : "(no reason given)");
  if (!text[0]) n_bad++;
  fflush(stdout);
  pthread_mutex_unlock(&lock);
}

void diag(const char *text, ...) {
  va_list args;
  pthread_mutex_lock(&lock);
  start();
  va_start(args, text);
  put_vdiag(text, args);
  va_end(args);
  fflush(stdout);
  pthread_mutex_unlock(&lock);
}

void bail(const char *reason, ...) {
  FORMAT_NAME(text, reason);
  printf("Bail out! %s\n", text);
  fflush(stdout);
  _exit(255);
}

void group_begin(const char *name, ...) {
  FORMAT_NAME(text, name);
  pthread_mutex_lock(&lock);
  start();
  if (group_open) {
    put_diag("a group was left open");
    n_bad++;
  }
  memcpy(group_name, text, sizeof group_name);
  group_name[sizeof group_name - 1] = 0;
  group_cases = group_bad = 0;
  group_open = 1;
  pthread_mutex_unlock(&lock);
}

void group_count(long long n_cases) {
  pthread_mutex_lock(&lock);
  group_cases += n_cases;
  pthread_mutex_unlock(&lock);
}

void group_fail(const char *text, ...) {
  va_list args;
  pthread_mutex_lock(&lock);
  start();
  if (group_bad++ < GROUP_SHOWN) {
    va_start(args, text);
    put_vdiag(text, args);
    va_end(args);
  }
  fflush(stdout);
  pthread_mutex_unlock(&lock);
}

int group_end(void) {
  char text[512];
  pthread_mutex_lock(&lock);
  int good = group_bad == 0 && group_cases > 0;
  snprintf(text, sizeof text, "%s (%lld cases)", group_name, group_cases);
  put_result(good, text);
  if (group_cases == 0) put_diag("no case was checked");
  if (group_bad) printf("# %lld bad cases, seed 0x%" PRIx64 "\n", group_bad, test_seed());
  group_open = 0;
  fflush(stdout);
  pthread_mutex_unlock(&lock);
  return good;
}

static uint64_t splitmix64(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static uint64_t seed_value;
static pthread_once_t seed_once = PTHREAD_ONCE_INIT;

static void read_seed(void) {
  const char *text = getenv("QUERN_TEST_SEED");
  seed_value = text && *text ? strtoull(text, NULL, 0) : 0x5eed0fa11a7e57u;
}

uint64_t test_seed(void) {
  pthread_once(&seed_once, read_seed);
  return seed_value;
}

int test_part(int n) {
  static int printed;
  const char *all = getenv("QUERN_TEST_EXHAUSTIVE"), *text = getenv("QUERN_TEST_DAY");
  if (all && *all == '1') return -1;
  const long day = text && *text ? strtol(text, NULL, 10) : (long)(time(NULL) / 86400);
  if (!__atomic_exchange_n(&printed, 1, __ATOMIC_RELAXED)) diag("QUERN_TEST_DAY=%ld: its part of the cases", day);
  return (int)(day % n);
}

void rng_seed(rng *r, uint64_t salt) {
  static int printed;
  if (!__atomic_exchange_n(&printed, 1, __ATOMIC_RELAXED)) {
    diag("QUERN_TEST_SEED=0x%" PRIx64, test_seed());
  }
  uint64_t state = test_seed();
  uint64_t mixed = splitmix64(&state) ^ salt;
  for (int i = 0; i < 4; i++) r->s[i] = splitmix64(&mixed);
  r->bytes = 0;
  r->n_bytes = 0;
}

void rng_from(rng *r, const uint8_t *bytes, uint64_t n_bytes) {
  uint64_t mixed = n_bytes;
  for (uint64_t i = 0; i < n_bytes; i++) mixed = (mixed ^ bytes[i]) * 0x100000001b3;
  for (int i = 0; i < 4; i++) r->s[i] = splitmix64(&mixed);
  r->bytes = bytes;
  r->n_bytes = n_bytes;
}

/* The next `n` bytes of a stream that has them, lowest first. */
static int take(rng *r, int n, uint64_t *x) {
  if (r->n_bytes < (uint64_t)n) return 0;
  *x = 0;
  for (int i = 0; i < n; i++) *x |= (uint64_t)r->bytes[i] << i * 8;
  r->bytes += n;
  r->n_bytes -= (uint64_t)n;
  return 1;
}

static uint64_t rotate(uint64_t x, int k) {
  return x << k | x >> (64 - k);
}

uint64_t rng_u64(rng *r) {
  uint64_t *s = r->s, result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17, x;
  if (take(r, 8, &x)) return x;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotate(s[3], 45);
  return result;
}

uint64_t rng_below(rng *r, uint64_t n) {
  uint64_t skip_below = -n % n, x; /* 2^64 mod n values are one too many */
  int n_bytes = 1;
  while (n_bytes < 8 && (n - 1) >> (n_bytes * 8)) n_bytes++;
  if (take(r, n_bytes, &x)) return x % n;
  do x = rng_u64(r);
  while (x < skip_below);
  return x % n;
}

int64_t rng_range(rng *r, int64_t low, int64_t high) {
  uint64_t width = (uint64_t)high - (uint64_t)low + 1;
  return (int64_t)((uint64_t)low + (width ? rng_below(r, width) : rng_u64(r)));
}

double rng_unit(rng *r) {
  return (double)(rng_u64(r) >> 11) * 0x1p-53;
}
