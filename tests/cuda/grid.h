/* SPDX-License-Identifier: Apache-2.0
 *
 * grid.h: runs the threads of a grid on the CPU: block after block, the threads of a block in turn, and as fibers where they meet
 * barriers. C and C++. Must not know kernels: a thread is a function and its argument; where it is stands in the object that
 * cuda_host.h calls qc_host. Not for two threads at a time. */
#ifndef QUERN_TESTS_CUDA_GRID_H
#define QUERN_TESTS_CUDA_GRID_H

#include <sys/mman.h>
#include <ucontext.h>

enum { GRID_MAX_THREADS = 1024, GRID_STACK = 128 << 10 };

/* As cuda_host.h's qc_host_thread. */
struct grid_dim { unsigned x, y, z; };
struct grid_place {
  struct grid_dim thread, block, block_dim, grid_dim;
  void (*barrier)(void);
};

static struct {
  ucontext_t scheduler, fibers[GRID_MAX_THREADS];
  struct grid_dim waiting[GRID_MAX_THREADS]; /* the thread of a fiber that stands at a barrier */
  char is_parked[GRID_MAX_THREADS];
  char *stacks;
  struct grid_place *place;
  void (*run)(void *arg);
  void *arg;
  unsigned next, n; /* of the block's threads: which starts next; how many */
  int current;      /* the fiber that runs */
} grid;

static void grid_barrier(void) {
  const int self = grid.current;
  grid.waiting[self] = grid.place->thread;
  grid.is_parked[self] = 1;
  swapcontext(&grid.fibers[self], &grid.scheduler);
  grid.place->thread = grid.waiting[self];
}

/* A fiber runs threads until none is left to start; at a barrier it is set aside, and another takes the next thread. */
static void grid_fiber(void) {
  while (grid.next < grid.n) {
    const unsigned t = grid.next++, x = grid.place->block_dim.x, y = grid.place->block_dim.y;
    grid.place->thread.x = t % x;
    grid.place->thread.y = t / x % y;
    grid.place->thread.z = t / x / y;
    grid.run(grid.arg);
  }
  grid.is_parked[grid.current] = 0;
  swapcontext(&grid.fibers[grid.current], &grid.scheduler);
}

static void grid_enter(int fiber) {
  grid.current = fiber;
  grid.is_parked[fiber] = 0;
  swapcontext(&grid.scheduler, &grid.fibers[fiber]);
}

static void grid_block(void) {
  int n_fibers = 0;
  grid.next = 0;
  while (grid.next < grid.n) {
    ucontext_t *fiber = &grid.fibers[n_fibers];
    getcontext(fiber);
    fiber->uc_stack.ss_sp = grid.stacks + (size_t)n_fibers * GRID_STACK;
    fiber->uc_stack.ss_size = GRID_STACK;
    fiber->uc_link = 0;
    makecontext(fiber, grid_fiber, 0);
    grid_enter(n_fibers++);
  }
  for (int n_waiting = 1; n_waiting;) {
    n_waiting = 0;
    for (int i = 0; i < n_fibers; i++) {
      if (!grid.is_parked[i]) continue;
      grid_enter(i);
      n_waiting += grid.is_parked[i];
    }
  }
}

/* 0: there is no memory for stacks, or a block has more threads than it may. place: where the kernel looks. */
static int grid_run(struct grid_place *place, struct grid_dim blocks, struct grid_dim threads, void (*run)(void *arg),
    void *arg) {
  const unsigned long n = (unsigned long)threads.x * threads.y * threads.z;
  if (n == 0 || n > GRID_MAX_THREADS) return 0;
  if (!grid.stacks) {
    void *memory = mmap(0, (size_t)GRID_MAX_THREADS * GRID_STACK, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return 0;
    grid.stacks = (char *)memory;
  }
  grid.place = place;
  grid.run = run;
  grid.arg = arg;
  grid.n = (unsigned)n;
  place->block_dim = threads;
  place->grid_dim = blocks;
  place->barrier = grid_barrier;
  for (place->block.z = 0; place->block.z < blocks.z; place->block.z++)
    for (place->block.y = 0; place->block.y < blocks.y; place->block.y++)
      for (place->block.x = 0; place->block.x < blocks.x; place->block.x++) grid_block();
  return 1;
}

#endif
