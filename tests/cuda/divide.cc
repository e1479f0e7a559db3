/* SPDX-License-Identifier: Apache-2.0
 *
 * divide.cc: q_divide of templates/kernel_slots.h on random numbers of every size, next to multiples of the divisor as often as not.
 * Part of t710-cuda-text; compiled with -DQC_HOST. argv[1]: the seed. */
#include "../../templates/kernel_cuda.h"
#include "../../templates/kernel_slots.h"

static u64 state;
static u64 next_random(void) {
  u64 z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* { the least m with m d >= 2^(bits + s), s = the least with d <= 2^s } */
static void magic(u64 *by, u64 d, int bits) {
  __extension__ typedef unsigned __int128 u128;
  u64 s = 0;
  while (((u128)1 << s) < d) s++;
  by[0] = (u64)((((u128)1 << (bits + s)) + d - 1) / d);
  by[1] = s;
}

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
    bad += (bits == 31 && by[0] >> 32 != 0) || q_divide((X)x, by) != x / d;
  }
  return bad;
}

int main(int argc, char **argv) {
  state = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
  const long narrow = wrong<u32>(31), wide = wrong<u64>(63);
  printf("%ld and %ld of 1000000 quotients are wrong\n", narrow, wide);
  return narrow + wide != 0;
}
