/* SPDX-License-Identifier: Apache-2.0
 *
 * scratch.c: see scratch.h.
 *
 * There are N_PLACES places for blocks of each size. A place gets its block when it is first taken, and keeps it until the library is unloaded. A
 * thread's search begins at a place computed from an address of the thread: it finds the block of its last call, and threads rarely
 * meet at one place. */
#include "base/memory/scratch.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define N_SIZES 2 /* of blocks: for what calls take instead of the stack; for wide tiles of reductions */
#define BLOCK_ALIGN 64
#define N_PLACES 256
#define PLACES_LOG2 8
#define EACH_THREADS 2 /* places side by side that a thread begins with: most calls take no more */

/* Before a block's bytes. */
typedef struct scratch_head {
  _Alignas(BLOCK_ALIGN) atomic_uint *taken; /* of its place */
  void *memory;                             /* of malloc */
} scratch_head;

static struct scratch_place {
  _Alignas(BLOCK_ALIGN) atomic_uint taken;
  scratch_head *head; /* of the thread that has taken the place; NULL: it has no block yet */
} places[N_SIZES][N_PLACES];

static const size_t block_bytes[N_SIZES] = {32000, 280000};

/* An address that no other thread has. */
static uintptr_t thread_address(void) {
#if defined(__x86_64__) && defined(__linux__)
  uintptr_t at;
  __asm__("mov %%fs:0, %0" : "=r"(at));
  return at;
#else
  return (uintptr_t)&errno;
#endif
}

static int try_place(struct scratch_place *place) {
  return !atomic_load_explicit(&place->taken, memory_order_relaxed) && !atomic_exchange_explicit(&place->taken, 1, memory_order_acquire);
}

__attribute__((noinline)) static scratch_head *make_block(struct scratch_place *place, size_t bytes) {
  const int kept_errno = errno;
  char *memory = malloc(BLOCK_ALIGN + sizeof(scratch_head) + bytes);
  errno = kept_errno;
  if (!memory) return NULL;
  scratch_head *head = (scratch_head *)(void *)(memory + (BLOCK_ALIGN - (uintptr_t)memory % BLOCK_ALIGN));
  head->memory = memory;
  head->taken = &place->taken;
  return place->head = head;
}

void *qn_scratch_take(size_t bytes) {
  const uint64_t hash = (uint64_t)thread_address() * UINT64_C(0x9e3779b97f4a7c15);
  const uint32_t first = (uint32_t)(hash >> (64 - PLACES_LOG2)) / EACH_THREADS * EACH_THREADS;
  const int size = bytes > block_bytes[0];
  for (uint32_t i = 0; i < N_PLACES && bytes <= block_bytes[size]; i++) {
    struct scratch_place *place = &places[size][(first + i) % N_PLACES];
    if (!try_place(place)) continue;
    scratch_head *head = place->head ? place->head : make_block(place, block_bytes[size]);
    if (head) return head + 1;
    atomic_store_explicit(&place->taken, 0, memory_order_release);
    return NULL;
  }
  return NULL;
}

void qn_scratch_give(void *const *taken) {
  atomic_store_explicit(((scratch_head *)*taken - 1)->taken, 0, memory_order_release);
}

/* Runs when the process ends or the library is unloaded. Blocks in use stay; calls still to come run on their stacks. */
__attribute__((destructor)) static void free_blocks(void) {
  for (int size = 0; size < N_SIZES; size++)
    for (uint32_t i = 0; i < N_PLACES; i++)
      if (try_place(&places[size][i]) && places[size][i].head) free(places[size][i].head->memory);
}
