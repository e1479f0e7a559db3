/* SPDX-License-Identifier: Apache-2.0
 *
 * problem.h: what the programs of t710-cuda-text make problems of: random bits, and the numbers by which q_fast_divide divides. Must
 * not know kernels. C++ only. */
#ifndef QUERN_TESTS_CUDA_PROBLEM_H
#define QUERN_TESTS_CUDA_PROBLEM_H

static unsigned long long random_state;
static unsigned long long next_random(void) {
  unsigned long long z = (random_state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* { the least m with m d >= 2^(bits + s), s = the least with d <= 2^s }; d = 0 counts as 1 */
template <typename U> static void magic(U *by, U d, int bits) {
  __extension__ typedef unsigned __int128 u128;
  U s = 0;
  if (d == 0) d = 1;
  while (((u128)1 << s) < d) s++;
  by[0] = (U)((((u128)1 << (bits + s)) + d - 1) / d);
  by[1] = s;
}

#endif
