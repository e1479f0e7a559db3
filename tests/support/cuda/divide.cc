/* SPDX-License-Identifier: Apache-2.0
 *
 * divide.cc: q_fast_divide of templates/cuda/kernel_items.h on random numbers of every size, next to multiples of the divisor as often as
 * not. Part of t710-cuda-text; compiled with -DQC_HOST. argv[1]: the seed. */
#include "../../../templates/cuda/kernel_cuda.h"
#include "../../../templates/cuda/kernel_items.h"
#include "problem.h"

/* A number below 2^bits. */
static u64 number(int bits) { return next_random() >> (64 - bits + next_random() % (u64)bits); }

template <typename X> static long wrong(int bits) {
  long bad = 0;
  for (int i = 0; i < 1000000; i++) {
    u64 by[2], d = number(bits) | (i % 5 == 0), x = number(bits);
    if (d == 0) d = 1;
    if (i % 2) x = x / d * d + (i % 4 == 1 ? 0 : d - 1);
    if (x >> bits) x = ((u64)1 << bits) - 1;
    magic(by, d, bits);
    bad += (bits == 31 && by[0] >> 32 != 0) || q_fast_divide((X)x, by) != x / d;
  }
  return bad;
}

int main(int argc, char **argv) {
  random_state = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
  const long narrow = wrong<u32>(31), wide = wrong<u64>(63);
  printf("%ld and %ld of 1000000 quotients are wrong\n", narrow, wide);
  return narrow + wide != 0;
}
