/* SPDX-License-Identifier: Apache-2.0
 *
 * grid.h: runs the threads of a grid on the CPU: block after block, the threads of a block in some order, and as fibers where
 * they meet barriers. C and C++. Must not know kernels: a thread is a function and its argument; its place is in the
 * object that cuda_host.h calls qc_host. Not for two threads at a time. */
#ifndef QUERN_TESTS_CUDA_GRID_H
#define QUERN_TESTS_CUDA_GRID_H

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* Contexts. Of ucontext.h, which sanitizers know; two system calls a switch, so elsewhere the registers that a call preserves. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GRID_UCONTEXT 1
#endif
#endif
#if defined(GRID_UCONTEXT) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__x86_64__) || defined(__CET__)
#include <ucontext.h>
typedef ucontext_t grid_context;
static void grid_switch(grid_context *from, grid_context *to) { swapcontext(from, to); }
static void grid_begin(grid_context *c, char *stack, size_t size, void (*entry)(void)) {
  getcontext(c);
  c->uc_stack.ss_sp = stack;
  c->uc_stack.ss_size = size;
  c->uc_link = 0;
  makecontext(c, entry, 0);
}
#else
typedef struct grid_context { void *sp; } grid_context;
#ifdef __cplusplus
extern "C"
#endif
void grid_switch_stack(void **from, void *to) __asm__("grid_switch_stack");
__asm__(".pushsection .text\n"
        "grid_switch_stack:\n"
        "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
        "  mov %rsp, (%rdi)\n  mov %rsi, %rsp\n"
        "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n"
        "  ret\n"
        ".popsection\n");
static void grid_switch(grid_context *from, grid_context *to) { grid_switch_stack(&from->sp, to->sp); }
/* The first switch to it pops six registers and returns to `entry`, which never returns. */
static void grid_begin(grid_context *c, char *stack, size_t size, void (*entry)(void)) {
  uintptr_t *const sp = (uintptr_t *)(void *)(stack + size) - 8;
  memset(sp, 0, 8 * sizeof *sp);
  sp[6] = (uintptr_t)entry;
  c->sp = sp;
}
#endif

enum { GRID_MAX_THREADS = 1024, GRID_STACK = 128 << 10 };

/* In which order the threads of a block run first; it changes with every barrier. */
enum grid_order { GRID_FORWARD, GRID_BACKWARD, GRID_SHUFFLED };

/* What became of a grid: it cannot be run here (stacks, or threads in a block); a thread ended while others of its block stood
 * at a barrier, which waited for no more; all is well. */
enum grid_end { GRID_REFUSED, GRID_PARTED, GRID_DONE };

/* As cuda_host.h's qc_host_thread. */
struct grid_dim { unsigned x, y, z; };
struct grid_place {
  struct grid_dim thread, block, block_dim, grid_dim;
  void (*barrier)(void);
  char *shared; /* of a launch, of so many bytes */
  size_t n_shared;
};

static struct {
  grid_context scheduler, fibers[GRID_MAX_THREADS];
  struct grid_dim waiting[GRID_MAX_THREADS]; /* the thread of a fiber that waits at a barrier */
  char is_parked[GRID_MAX_THREADS];
  char *stacks;
  struct grid_place *place;
  void (*run)(void *arg);
  void *arg;
  unsigned n_started, n; /* of the block's threads */
  unsigned order, n_waits; /* how often a thread has come to a barrier, in the whole grid */
  int current;             /* the fiber that runs */
} grid;

/* The k-th of `count` (at most 1024: below a prime, every step of its size reaches all of them). */
static unsigned grid_nth(unsigned k, unsigned count, unsigned order) {
  return order == GRID_FORWARD ? k : order == GRID_BACKWARD ? count - 1 - k : (unsigned)((k * 1031ull + 13) % count);
}

static void grid_barrier(void) {
  const int self = grid.current;
  grid.waiting[self] = grid.place->thread;
  grid.is_parked[self] = 1;
  grid.n_waits++;
  grid_switch(&grid.fibers[self], &grid.scheduler);
  grid.place->thread = grid.waiting[self];
}

/* A fiber runs threads until none is left to start; at a barrier it is set aside, and another takes the next thread. */
static void grid_fiber(void) {
  while (grid.n_started < grid.n) {
    const unsigned t = grid_nth(grid.n_started++, grid.n, grid.order), x = grid.place->block_dim.x, y = grid.place->block_dim.y;
    grid.place->thread.x = t % x;
    grid.place->thread.y = t / x % y;
    grid.place->thread.z = t / x / y;
    grid.run(grid.arg);
  }
  grid.is_parked[grid.current] = 0;
  grid_switch(&grid.fibers[grid.current], &grid.scheduler);
}

static void grid_enter(int fiber) {
  grid.current = fiber;
  grid.is_parked[fiber] = 0;
  grid_switch(&grid.scheduler, &grid.fibers[fiber]);
}

/* 0: it has parted. */
static int grid_block(void) {
  volatile unsigned n_fibers = 0, n_waiting = 0; /* getcontext and swapcontext return like setjmp */
  volatile int is_whole = 1;
  grid.n_started = 0;
  if (grid.place->n_shared) memset(grid.place->shared, 0xa5, grid.place->n_shared);
  while (grid.n_started < grid.n) {
    grid_begin(&grid.fibers[n_fibers], grid.stacks + (size_t)n_fibers * GRID_STACK, GRID_STACK, grid_fiber);
    grid_enter((int)n_fibers);
    n_waiting += (unsigned)grid.is_parked[n_fibers];
    n_fibers++;
  }
  while (n_waiting) {
    if (n_waiting != grid.n) is_whole = 0;
    grid.order = (grid.order + 1) % 3;
    n_waiting = 0;
    for (unsigned k = 0; k < n_fibers; k++) {
      const int fiber = (int)grid_nth(k, n_fibers, grid.order);
      if (!grid.is_parked[fiber]) continue;
      grid_enter(fiber);
      n_waiting += (unsigned)grid.is_parked[fiber];
    }
  }
  return is_whole;
}

/* place: where the kernel looks. */
static enum grid_end grid_run(struct grid_place *place, struct grid_dim blocks, struct grid_dim threads, enum grid_order order,
    void (*run)(void *arg), void *arg) {
  const unsigned long n = (unsigned long)threads.x * threads.y * threads.z;
  enum grid_end end = GRID_DONE;
  if (n == 0 || n > GRID_MAX_THREADS) return GRID_REFUSED;
  if (!grid.stacks) {
    void *memory = mmap(0, (size_t)GRID_MAX_THREADS * GRID_STACK, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return GRID_REFUSED;
    grid.stacks = (char *)memory;
  }
  grid.place = place;
  grid.run = run;
  grid.arg = arg;
  grid.n = (unsigned)n;
  grid.n_waits = 0;
  place->block_dim = threads;
  place->grid_dim = blocks;
  place->barrier = grid_barrier;
  const unsigned long n_blocks = (unsigned long)blocks.x * blocks.y * blocks.z;
  for (unsigned long k = 0; k < n_blocks; k++) {
    const unsigned long b = order == GRID_FORWARD ? k : n_blocks - 1 - k;
    place->block.x = (unsigned)(b % blocks.x);
    place->block.y = (unsigned)(b / blocks.x % blocks.y);
    place->block.z = (unsigned)(b / blocks.x / blocks.y);
    grid.order = order;
    if (!grid_block()) end = GRID_PARTED;
  }
  return end;
}

#endif
