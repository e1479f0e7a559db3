/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_cache.h: the disk cache: bytes under keys, in a folder of the user's own that many processes share. Failure warns
 * once and is a miss. Knows neither kernels nor compilers. */
#ifndef QN_JIT_CACHE_H
#define QN_JIT_CACHE_H

#include <stdint.h>

#include "base/bytes.h"
#include "core/base/status.h"

/* The most bytes of files in a folder; above it the least recently used ones are removed until three quarters are left.
 * Checked at an object's first put and at every 64th. */
#define QN_JIT_CACHE_LIMIT ((int64_t)256 << 20)

/* The most bytes of one entry; larger ones are not stored. */
#define QN_JIT_CACHE_ENTRY_LIMIT ((size_t)32 << 20)

typedef struct qn_jit_cache qn_jit_cache;

/* dir NULL: QUERN_CACHE_DIR, else $XDG_CACHE_HOME/quern, else ~/.cache/quern. "" or "none": no cache. Never fails: a
 * cache that cannot be used misses. NULL for lack of memory; all functions here treat NULL as a cache that misses.
 * Touches no file and logs nothing yet. Warnings go to `log` (copied), once for each object.
 *
 * The folder is made at the first put, mode 0700. It must be an absolute path, no link, the effective user's own, and
 * not writable for others; else it is not used. All functions are thread-safe, may be called by any number of processes
 * on one folder at once, keep errno, and hold no descriptor after they return. */
qn_jit_cache *qn_jit_cache_open(const char *dir, const qn_log *log);

/* Another limit than QN_JIT_CACHE_LIMIT, before the first use. */
void qn_jit_cache_limit(qn_jit_cache *cache, int64_t bytes);
void qn_jit_cache_close(qn_jit_cache *cache);

/* Ends all logging. */
void qn_jit_cache_disable_log(qn_jit_cache *cache);

/* The folder, "" if there is none; and the reason why it is not used, "" if none has been met so far. Both are valid as
 * long as the cache. */
const char *qn_jit_cache_dir(const qn_jit_cache *cache);
const char *qn_jit_cache_failure(const qn_jit_cache *cache);

/* 1: *value was put under that key with that check (the identity of the value's maker). check NULL: with any check. A
 * damaged entry is a miss. */
int qn_jit_cache_get(qn_jit_cache *cache, const char *key, size_t key_size, const char *check, size_t check_size,
                     qn_bytes *value);

/* A key has one entry: the last one put, with any check. */
void qn_jit_cache_put(qn_jit_cache *cache, const char *key, size_t key_size, const char *check, size_t check_size,
                      const char *value, size_t size);

typedef struct qn_cache_item {
  const char *key; /* key_size bytes, for the call of each() only */
  size_t key_size;
  int64_t bytes;   /* of the file */
  int64_t used;    /* when it was last used, to an hour; seconds of the epoch */
} qn_cache_item;

/* Calls each(arg, entry) for every sound entry, in no order; returns how many there are. each NULL: counts. */
int64_t qn_jit_cache_list(qn_jit_cache *cache, void (*each)(void *arg, const qn_cache_item *entry), void *arg);

/* Removes all entries, sound or not, and temporary files, nothing else; returns the number of entries. */
int64_t qn_jit_cache_clear(qn_jit_cache *cache);

/* ---- The format of an entry, for tests ---- */

typedef struct qn_cache_parts {
  const char *key, *check, *value; /* within the entry's bytes */
  size_t key_size, check_size, value_size;
} qn_cache_parts;

/* 1: the bytes are an entry, undamaged. They may be anything. */
int qn_jit_cache_parse(const char *bytes, size_t size, qn_cache_parts *parts);

#endif
