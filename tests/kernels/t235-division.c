/* SPDX-License-Identifier: Apache-2.0
 *
 * t235-division: division to whole numbers and its remainders where it is hard: quotients next to whole numbers, next to the
 * last one that a float of that dtype still has all neighbours of, and far beyond; subnormals, infinities, zeros. Of integers
 * every pair of 8 bits, and those of 64 with quotients next to whole numbers or sizes next to powers of two.
 * Against ref.c, which has exact products and remainders. */
#include <math.h>

#include "tensors.h"

enum { N_POINTS = 30000 };

static const ref_op float_ops[] = {REF_FLOOR_DIVIDE, REF_TRUNC_DIVIDE, REF_REMAINDER, REF_FMOD};
static const ref_op integer_ops[] = {REF_FLOOR_DIVIDE, REF_TRUNC_DIVIDE, REF_REMAINDER, REF_FMOD, REF_GCD, REF_LCM};

typedef struct dtype_range {
  ref_dtype d;
  int digits, least, most; /* exponents: of the smallest subnormal, of the largest binade */
} dtype_range;
static const dtype_range ranges[] = {
    {REF_F16, 11, -24, 15}, {REF_BF16, 8, -133, 127}, {REF_F32, 24, -149, 127}, {REF_F64, 53, -1074, 1023}};

/* 2^e times a number from 1 to 2 of so many digits. */
static double random_float(rng *r, int digits, int64_t e) {
  double x = 1;
  for (int k = 1; k < digits; k++) x += rng_below(r, 2) ? ldexp(1, -k) : 0;
  return ldexp(x, (int)e);
}

/* A pair; x is moved by up to two steps of its bits. */
static void hard_pair(rng *r, const dtype_range *range, uint64_t *x, uint64_t *y) {
  int compute_digits = range->d == REF_F64 ? 53 : 24, few = 1 + (int)rng_below(r, 6);
  int most_k = range->most - 4 < compute_digits ? range->most - 4 : compute_digits;
  double b, a;
  switch (rng_below(r, 6)) {
    case 0: /* next to k y */
      b = random_float(r, range->digits, rng_range(r, -12, 3));
      a = b * floor(random_float(r, range->digits, rng_range(r, 0, most_k)));
      break;
    case 1: /* a quotient of about as many digits as the dtype that computes has */
      b = random_float(r, range->digits, rng_range(r, -24, -12));
      a = b * random_float(r, range->digits, compute_digits + rng_range(r, -2, 2));
      break;
    case 2: /* any size, a divisor of few digits: large quotients that are nearly whole */
      b = random_float(r, few, rng_range(r, range->least, range->most));
      a = random_float(r, range->digits, rng_range(r, range->least, range->most));
      break;
    case 3: /* subnormal divisors */
      b = ldexp((double)(1 + rng_below(r, 9)), range->least);
      a = random_float(r, range->digits, rng_range(r, range->least, range->least + 40));
      break;
    case 4: /* a quotient just below 1 or 2 */
      b = random_float(r, range->digits, rng_range(r, range->least + 2, range->most - 2));
      a = b * (double)(1 + rng_below(r, 2));
      break;
    default: /* anything */
      *x = random_bits(r, range->d);
      *y = random_bits(r, range->d);
      return;
  }
  *y = ref_from_double(range->d, rng_below(r, 2) ? -b : b);
  *x = ref_from_double(range->d, rng_below(r, 2) ? -a : a);
  if (rng_below(r, 3)) *x += (uint64_t)rng_range(r, -2, 2);
  *x &= ~(uint64_t)0 >> (64 - 8 * ref_dtype_size(range->d));
}

static void run(ref_op op, ref_dtype d, int64_t n, void (*fill)(rng *, void *, int64_t, uint64_t *, uint64_t *), void *arg) {
  rng r;
  rng_seed(&r, (uint64_t)op * 64 + (uint64_t)d);
  trial t = {.op = op, .note = "hard quotients"};
  for (int k = 0; k < 2; k++) operand_vector(&t.in[k], d, n, &r);
  operand_vector(&t.out, d, n, &r);
  for (int64_t i = 0; i < n; i++) {
    uint64_t x, y;
    fill(&r, arg, i, &x, &y);
    ref_put(d, (char *)t.in[0].t.data + i * ref_dtype_size(d), x);
    ref_put(d, (char *)t.in[1].t.data + i * ref_dtype_size(d), y);
  }
  trial_run(&t);
  trial_free(&t);
}

static void fill_hard(rng *r, void *arg, int64_t i, uint64_t *x, uint64_t *y) {
  (void)i;
  hard_pair(r, arg, x, y);
}

/* Next to 2^k, or to what an f64 makes of it; of either sign. */
static uint64_t hard_integer(rng *r) {
  static const int64_t off[] = {0, 1, 2, 512, 513, 1024, 1536};
  uint64_t x = (uint64_t)1 << rng_below(r, 64), by = (uint64_t)off[rng_below(r, 7)];
  if (rng_below(r, 3) == 0) x = rng_u64(r) >> rng_below(r, 64);
  x = rng_below(r, 2) ? x + by : x - by;
  return rng_below(r, 2) ? x : 0 - x;
}

static void fill_hard_integers(rng *r, void *arg, int64_t i, uint64_t *x, uint64_t *y) {
  (void)arg, (void)i;
  *x = *y = hard_integer(r);
  if (rng_below(r, 2)) *x *= hard_integer(r) >> rng_below(r, 64);
  *x += (uint64_t)rng_range(r, -1, 1);
  if (rng_below(r, 4) == 0) *x = hard_integer(r);
}

static void fill_all_bytes(rng *r, void *arg, int64_t i, uint64_t *x, uint64_t *y) {
  (void)r, (void)arg;
  *x = (uint64_t)i & 0xff;
  *y = (uint64_t)i >> 8;
}

int main(void) {
  for (size_t k = 0; k < sizeof float_ops / sizeof *float_ops; k++) {
    if (!has_op(float_ops[k])) continue;
    group_begin("%s of floats", ref_op_describe(float_ops[k])->name);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
      run(float_ops[k], ranges[i].d, N_POINTS, fill_hard, (void *)&ranges[i]);
    group_end();
  }
  for (size_t k = 0; k < sizeof integer_ops / sizeof *integer_ops; k++) {
    if (!has_op(integer_ops[k])) continue;
    group_begin("%s of all integers of 8 bits", ref_op_describe(integer_ops[k])->name);
    run(integer_ops[k], REF_I8, 65536, fill_all_bytes, NULL);
    run(integer_ops[k], REF_U8, 65536, fill_all_bytes, NULL);
    group_end();
    group_begin("%s of integers of 64 bits", ref_op_describe(integer_ops[k])->name);
    run(integer_ops[k], REF_I64, N_POINTS, fill_hard_integers, NULL);
    run(integer_ops[k], REF_U64, N_POINTS, fill_hard_integers, NULL);
    group_end();
  }
  return done_testing();
}
