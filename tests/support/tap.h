/* SPDX-License-Identifier: Apache-2.0
 *
 * tap.h: owns the words of a test program: TAP 13 on standard output (for `prove`), a seeded generator of random
 * numbers, and a sink for failures inside loops. Must not know Quern: tests of anything may use it.
 *
 * A test program calls plan(n) or, at its end, done_testing(), and returns what exit_status() says. */
#ifndef QUERN_TESTS_TAP_H
#define QUERN_TESTS_TAP_H

#include <stdint.h>

/* Whether this build has a sanitizer that makes calls slow and maps memory of its own. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define TAP_PRINTF(text, rest) __attribute__((format(printf, text, rest)))

/* The plan: how many tests follow; or all of them at the end, counted. done_testing() returns what main should. */
void plan(int n_tests);
void skip_all(const char *reason, ...) TAP_PRINTF(1, 2) __attribute__((noreturn));
int done_testing(void);
int exit_status(void);

/* One test each; the value tested is returned. File and line of a failure are printed. Thread-safe. */
#define ok(condition, ...) tap_ok((condition) ? 1 : 0, __FILE__, __LINE__, #condition, __VA_ARGS__)
#define is_int(got, wanted, ...) \
  tap_is_int((long long)(got), (long long)(wanted), __FILE__, __LINE__, #got, __VA_ARGS__)
#define is_str(got, wanted, ...) tap_is_str((got), (wanted), __FILE__, __LINE__, #got, __VA_ARGS__)
/* `part` is somewhere in `text`. */
#define has_str(text, part, ...) tap_has_str((text), (part), __FILE__, __LINE__, #text, __VA_ARGS__)
#define pass(...) tap_ok(1, __FILE__, __LINE__, "pass", __VA_ARGS__)
#define fail(...) tap_ok(0, __FILE__, __LINE__, "fail", __VA_ARGS__)

int tap_ok(int good, const char *file, int line, const char *text, const char *name, ...) TAP_PRINTF(5, 6);
int tap_is_int(long long got, long long wanted, const char *file, int line, const char *text, const char *name, ...)
    TAP_PRINTF(6, 7);
int tap_is_str(const char *got, const char *wanted, const char *file, int line, const char *text, const char *name,
               ...) TAP_PRINTF(6, 7);
int tap_has_str(const char *got, const char *part, const char *file, int line, const char *text, const char *name, ...)
    TAP_PRINTF(6, 7);

/* Counts as `n` passed tests that did not run; the reason is printed and must not be empty. */
void skip(int n_tests, const char *reason, ...) TAP_PRINTF(2, 3);

/* A `# ` line. Text may hold several lines. */
void diag(const char *text, ...) TAP_PRINTF(1, 2);

/* The test cannot go on: prints `Bail out!`, leaves the process at once with status 255. */
void bail(const char *reason, ...) TAP_PRINTF(1, 2) __attribute__((noreturn));

/* How many tests have failed so far. */
int n_failed(void);

/* ---- Loops ------------------------------------------------------------------------------------------------------
 * A test that checks thousands of cases is one TAP line: group_begin(name), then group_fail(...) for each bad case (the
 * first 5 are printed), group_count(n) for the cases checked, group_end(): not ok when one failed or none was checked.
 * One group at a time; group_fail and group_count are thread-safe. */
void group_begin(const char *name, ...) TAP_PRINTF(1, 2);
void group_count(long long n_cases);
void group_fail(const char *text, ...) TAP_PRINTF(1, 2);
int group_end(void);

/* ---- Random numbers ---------------------------------------------------------------------------------------------
 * xoshiro256**, seeded by splitmix64. The seed of a program is QUERN_TEST_SEED (decimal or 0x...) or a fixed number,
 * and is printed once. Each rng_seed(r, salt) stream depends on the seed and the salt only, so that a case can be
 * repeated alone. */
typedef struct rng {
  uint64_t s[4];
  const uint8_t *bytes; /* rng_from: what choices are read from, while there is any; else NULL */
  uint64_t n_bytes;
} rng;

uint64_t test_seed(void);
void rng_seed(rng *r, uint64_t salt);
/* A stream that is read from borrowed bytes, as few for each number as its range needs, then goes on at random, by a seed that the
 * bytes give: what a fuzzer changes in them changes one choice. */
void rng_from(rng *r, const uint8_t *bytes, uint64_t n_bytes);
uint64_t rng_u64(rng *r);
uint64_t rng_below(rng *r, uint64_t n); /* in [0, n), n > 0, without bias */
int64_t rng_range(rng *r, int64_t low, int64_t high); /* both ends included */
double rng_unit(rng *r);                /* in [0, 1), 53 bits */

/* Cases that are cut in n parts, one for each day: the part of this run, in [0, n), is said once. QUERN_TEST_DAY=k repeats it: days
 * since 1970. -1: all parts, with QUERN_TEST_EXHAUSTIVE=1. */
int test_part(int n);

#ifdef __cplusplus
}
#endif

#endif /* QUERN_TESTS_TAP_H */
