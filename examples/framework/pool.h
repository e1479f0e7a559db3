/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.h: Pebble's threads. */
#ifndef POOL_H
#define POOL_H

#include <stdint.h>

typedef struct pool pool;

/* n_threads workers beside the calling thread; NULL when they cannot be had. */
pool *pool_new(int n_threads);
void pool_free(pool *p);

/* Runs slice(arg, i) for each i in [0, n) on the workers and the calling thread; returns when all have returned. One
 * caller at a time has the workers; another, or a slice that calls again, does its own work alone. The shape that
 * pebble_options.parallel_for asks for: host is the pool. */
void pool_parallel_for(void *host, int64_t n, void (*slice)(void *arg, int64_t i), void *arg);

/* How many slices it has run in all. */
int64_t pool_n_slices(pool *p);

#endif
