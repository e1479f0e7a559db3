/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c: a few threads and one job at a time. */
#include "pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct pool {
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  int n_threads, n_working, stop;
  uint64_t job; /* counts up with each job */
  void (*slice)(void *arg, int64_t i);
  void *arg;
  int64_t n;
  atomic_int_least64_t next, n_slices;
  atomic_flag busy;
  pthread_t threads[];
};

static void work(pool *p, void (*slice)(void *, int64_t), void *arg, int64_t n) {
  for (;;) {
    const int64_t i = atomic_fetch_add(&p->next, 1);
    if (i >= n) return;
    slice(arg, i);
    atomic_fetch_add(&p->n_slices, 1);
  }
}

static void *worker(void *given) {
  pool *p = given;
  uint64_t seen = 0;
  pthread_mutex_lock(&p->lock);
  for (;;) {
    while (!p->stop && p->job == seen) pthread_cond_wait(&p->wake, &p->lock);
    if (p->stop) break;
    seen = p->job;
    void (*slice)(void *, int64_t) = p->slice;
    void *arg = p->arg;
    const int64_t n = p->n;
    pthread_mutex_unlock(&p->lock);
    work(p, slice, arg, n);
    pthread_mutex_lock(&p->lock);
    if (--p->n_working == 0) pthread_cond_signal(&p->done);
  }
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

pool *pool_new(int n_threads) {
  pool *p = calloc(1, sizeof *p + (size_t)n_threads * sizeof *p->threads);
  if (!p) return NULL;
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->wake, NULL);
  pthread_cond_init(&p->done, NULL);
  atomic_flag_clear(&p->busy);
  while (p->n_threads < n_threads && pthread_create(&p->threads[p->n_threads], NULL, worker, p) == 0) p->n_threads++;
  if (p->n_threads < n_threads) {
    pool_free(p);
    return NULL;
  }
  return p;
}

void pool_free(pool *p) {
  if (!p) return;
  pthread_mutex_lock(&p->lock);
  p->stop = 1;
  pthread_cond_broadcast(&p->wake);
  pthread_mutex_unlock(&p->lock);
  for (int k = 0; k < p->n_threads; k++) pthread_join(p->threads[k], NULL);
  pthread_cond_destroy(&p->wake);
  pthread_cond_destroy(&p->done);
  pthread_mutex_destroy(&p->lock);
  free(p);
}

void pool_parallel_for(void *host, int64_t n, void (*slice)(void *arg, int64_t i), void *arg) {
  pool *p = host;
  if (n < 2 || atomic_flag_test_and_set(&p->busy)) {
    for (int64_t i = 0; i < n; i++) {
      slice(arg, i);
      atomic_fetch_add(&p->n_slices, 1);
    }
    return;
  }
  pthread_mutex_lock(&p->lock);
  p->slice = slice;
  p->arg = arg;
  p->n = n;
  p->n_working = p->n_threads;
  p->job++;
  atomic_store(&p->next, 0);
  pthread_cond_broadcast(&p->wake);
  pthread_mutex_unlock(&p->lock);
  work(p, slice, arg, n);
  pthread_mutex_lock(&p->lock);
  while (p->n_working > 0) pthread_cond_wait(&p->done, &p->lock);
  pthread_mutex_unlock(&p->lock);
  atomic_flag_clear(&p->busy);
}

int64_t pool_n_slices(pool *p) { return atomic_load(&p->n_slices); }
