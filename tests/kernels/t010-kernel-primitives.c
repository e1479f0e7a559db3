/* SPDX-License-Identifier: Apache-2.0
 *
 * t010-kernel-primitives.c: compares builds of kernel_subject.c (shared objects named on the command line, one per compiler and level) with
 * obvious references: casts with exact integers, fma, sqrt and rounding with libm. All values of 8 and 16 bits, special and random ones of
 * 32 and 64. Run by t010-kernel-primitives.sh. QUERN_TEST_SCALE multiplies the random cases. Must share no code with templates/. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_subject.h"
#include "primitive_reference.h"
#include "tap.h"

typedef struct dtype {
  const char *name;
  int bits, kind;            /* 'b' bool, 'i' signed, 'u' unsigned, 'f' float */
  int precision, least_bit;  /* floats: bits of the significand, exponent of the smallest subnormal */
} dtype;
static const dtype dtypes[] = {
  {"bool", 8, 'b', 0, 0}, {"i8", 8, 'i', 0, 0}, {"i16", 16, 'i', 0, 0}, {"i32", 32, 'i', 0, 0}, {"i64", 64, 'i', 0, 0},
  {"u8", 8, 'u', 0, 0}, {"u16", 16, 'u', 0, 0}, {"u32", 32, 'u', 0, 0}, {"u64", 64, 'u', 0, 0},
  {"f16", 16, 'f', 11, -24}, {"bf16", 16, 'f', 8, -133}, {"f32", 32, 'f', 24, -149}, {"f64", 64, 'f', 53, -1074},
};
static const dtype *dtype_of(const char *name) {
  for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
    if (!strcmp(dtypes[i].name, name)) return &dtypes[i];
  return NULL;
}
static uint64_t inf_of(const dtype *t) { return (mask_of(t->bits) >> 1) & ~mask_of(t->precision - 1); }
static uint64_t nan_of(const dtype *t) { return inf_of(t) | 1ull << (t->precision - 2); }
static int is_a_nan(const dtype *t, uint64_t x) { return (x & (mask_of(t->bits) >> 1)) > inf_of(t); }
static int64_t sign_extend(uint64_t x, int bits) { return (int64_t)(x << (64 - bits)) >> (64 - bits); }

/* ---- Casts: through the exact value, sign * m * 2^e ---- */

typedef struct exact { int kind; /* 'f' finite, 'i' infinite, 'n' NaN */ int negative; uint64_t m; int e; } exact;

static exact decode(const dtype *t, uint64_t x) {
  exact v = {'f', 0, x, 0};
  if (t->kind == 'b') v.m = x != 0;
  if (t->kind == 'i' && sign_extend(x, t->bits) < 0) v.negative = 1, v.m = 0 - (uint64_t)sign_extend(x, t->bits);
  if (t->kind != 'f') return v;
  v.negative = (int)(x >> (t->bits - 1));
  uint64_t magnitude = x & (mask_of(t->bits) >> 1), field = magnitude >> (t->precision - 1);
  if (magnitude >= inf_of(t)) v.kind = magnitude > inf_of(t) ? 'n' : 'i';
  v.m = magnitude & mask_of(t->precision - 1);
  if (field) v.m |= 1ull << (t->precision - 1);
  v.e = t->least_bit + (field ? (int)field - 1 : 0);
  return v;
}
static uint64_t encode(const dtype *t, exact v) {
  uint64_t sign = (uint64_t)v.negative << (t->bits - 1);
  if (v.kind == 'n') return nan_of(t);
  if (v.kind == 'i') return sign | inf_of(t);
  if (!v.m) return sign;
  int lead = 63 - __builtin_clzll(v.m) + v.e, least = lead - (t->precision - 1);
  if (least < t->least_bit) least = t->least_bit;
  int shift = least - v.e; /* one unit of the result is 2^shift units of m */
  uint64_t q;
  if (shift <= 0) q = v.m << -shift;
  else if (shift > 64) q = 0;
  else {
    unsigned __int128 wide = v.m, half = (unsigned __int128)1 << (shift - 1), rest = wide & (2 * half - 1);
    q = (uint64_t)(wide >> shift);
    if (rest > half || (rest == half && (q & 1))) q++;
  }
  uint64_t field = (uint64_t)(least - t->least_bit);
  if (field > 4096) field = 4096;
  unsigned __int128 bits = ((unsigned __int128)field << (t->precision - 1)) + q;
  return sign | (bits >= inf_of(t) ? inf_of(t) : (uint64_t)bits);
}
static uint64_t truncate(const dtype *t, exact v) { /* saturating, to an integer type */
  uint64_t most = t->kind == 'u' ? mask_of(t->bits) : (mask_of(t->bits) >> 1) + (uint64_t)v.negative;
  uint64_t m = v.e <= -64 ? 0 : v.e < 0 ? v.m >> -v.e : v.m;
  if (v.kind == 'n') return 0;
  if (v.kind == 'i' || (v.m && v.e > 0 && (v.e > 63 || v.m >> (64 - v.e)))) m = most;
  else if (v.e > 0) m = v.m << v.e;
  if (m > most) m = most;
  if (v.negative && t->kind == 'u') m = 0;
  return (v.negative ? 0 - m : m) & mask_of(t->bits);
}
static uint64_t cast(const dtype *from, const dtype *to, uint64_t x) {
  exact v = decode(from, x);
  if (to->kind == 'b') return v.kind != 'f' || v.m != 0;
  if (to->kind == 'f') return encode(to, v);
  if (from->kind == 'f') return truncate(to, v);
  return (v.negative ? 0 - v.m : v.m) & mask_of(to->bits);
}

/* ---- The other primitives. A result of arithmetic that is NaN may have any payload: *any_nan ---- */

/* The primitive that a function of kernel.h computes. */
static const char *primitive_named(const char *op) {
  if (!strcmp(op, "max")) return "maximum";
  if (!strcmp(op, "min")) return "minimum";
  return !strncmp(op, "fma", 3) ? "fma" : op;
}
static uint64_t float_op(const char *op, const dtype *t, uint64_t a, uint64_t b, uint64_t c, int *any_nan) {
  const uint64_t canon_a = is_a_nan(t, a) ? nan_of(t) : a, x[3] = {a, b, c};
  if (!strcmp(op, "raw") || !strcmp(op, "from")) return a;
  if (!strcmp(op, "bits") || !strcmp(op, "canon")) return canon_a;
  if (!strcmp(op, "raw_signbit")) return a >> (t->bits - 1) ? mask_of(t->bits) : 0;
  if (!strcmp(op, "raw_copysign")) return (a & mask_of(t->bits) >> 1) | (b & ~(mask_of(t->bits) >> 1) & mask_of(t->bits));
  if (!strcmp(op, "signbit")) return canon_a >> (t->bits - 1) ? mask_of(t->bits) : 0;
  *any_nan = 1;
  return primitive_of_floats(primitive_named(op), t->bits, x);
}
/* shlc, shrc: by a constant, which counts modulo the width. */
static uint64_t integer_op(const char *op, const dtype *t, uint64_t a, uint64_t b) {
  const int is_signed = t->kind == 'i';
  if (!strcmp(op, "shlc") || !strcmp(op, "shrc"))
    return primitive_of_integers(op[2] == 'l' ? "shl" : "shr", t->bits, is_signed, a, b % (unsigned)t->bits);
  return primitive_of_integers(primitive_named(op), t->bits, is_signed, a, b);
}
static uint64_t reference(const subject_loop *l, const dtype *a, const dtype *y, uint64_t x0, uint64_t x1, uint64_t x2, int *any_nan) {
  if (!strcmp(l->op, "cast") || !strcmp(l->op, "convert")) return cast(a, y, x0);
  if (!strcmp(l->op, "widen") || !strcmp(l->op, "narrow")) {
    *any_nan = x0 != nan_of(a); /* the one NaN stays it */
    return cast(a, y, x0);
  }
  if (!strcmp(l->op, "sel")) return x0 ? x1 : x2;
  if (!strcmp(l->op, "from")) return x0;
  return a->kind == 'f' ? float_op(l->op, a, x0, x1, x2, any_nan) : integer_op(l->op, a, x0, x1);
}

/* ---- Cases ---- */

static uint64_t load(const void *p, int64_t i, int bits) {
  uint64_t x = 0;
  memcpy(&x, (const char *)p + i * (bits / 8), (size_t)bits / 8);
  return x;
}
static void store(void *p, int64_t i, int bits, uint64_t x) { memcpy((char *)p + i * (bits / 8), &x, (size_t)bits / 8); }

/* Ends, powers of two and their neighbours, for floats also the ends of every format and of every integer type. */
static int special_values(const dtype *t, uint64_t *v, int dense) {
  int n = 0;
  if (t->kind == 'b') { v[n++] = 0, v[n++] = 1, v[n++] = 2, v[n++] = 0x80, v[n++] = 0xff; return n; }
  if (t->kind != 'f') {
    for (int k = 0; k < t->bits; k += dense ? 1 : t->bits / 8)
      for (int d = -1; d <= 1; d++) v[n++] = ((1ull << k) + (uint64_t)d) & mask_of(t->bits), v[n++] = (0 - (1ull << k) + (uint64_t)d) & mask_of(t->bits);
    return n;
  }
  uint64_t sign = 1ull << (t->bits - 1);
  exact one = {'f', 0, 1, 0};
  for (int s = 0; s < 2; s++) {
    static const int coarse[] = {0, 1, -1, 24, -24, 52, -52, 63, 127, -126, -149, 1023, -1022, -1074};
    int n_exponents = dense ? 2200 : (int)(sizeof coarse / sizeof coarse[0]);
    for (int i = 0; i < n_exponents; i++) {
      one.e = dense ? i - 1100 : coarse[i];
      uint64_t x = encode(t, one);
      if (x == 0 || x >= inf_of(t)) continue;
      for (int d = -1; d <= 1; d++) v[n++] = (x + (uint64_t)d) | (s ? sign : 0);
      if (dense) v[n++] = (x + (1ull << (t->precision - 2))) | (s ? sign : 0), v[n++] = (x + (3ull << (t->precision - 3))) | (s ? sign : 0);
    }
    uint64_t ends[] = {0, inf_of(t), inf_of(t) - 1, nan_of(t), inf_of(t) + 1, mask_of(t->bits) >> 1};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) v[n++] = ends[i] | (s ? sign : 0);
  }
  return n;
}

/* Uniform bits; or few bits set, so that ties and exact values turn up; or, float, near the integers, or near the ties of narrower formats. */
static uint64_t random_value(rng *r, const dtype *t) {
  uint64_t x = rng_u64(r), how = rng_u64(r);
  if (t->kind == 'f') {
    int fraction = t->precision - 1;
    if (how & 1) x = (x & ~mask_of((int)(how >> 8 & 63) % (fraction + 1))) ^ (how >> 2 & 1) ^ (how >> 3 & 1 ? 1ull << (how >> 16 & 63) % (unsigned)fraction : 0);
    if (how & 2) { /* exponent from 2^-160 to 2^70 */
      exact v = {'f', (int)(x & 1), x >> (64 - t->precision) | 1ull << (t->precision - 1), (int)(how >> 32 & 0xffff) % 230 - 160 - t->precision};
      if (!(how & 4)) v.m &= ~mask_of((int)(how >> 24 & 63) % t->precision);
      x = encode(t, v);
    }
  } else {
    if (how & 1) x >>= how >> 8 & 63;
    if (how & 2) x &= ~mask_of((int)(how >> 16 & 31));
    if (how & 4) x += (how >> 24 & 2) - 1;
    if (how & 8) x = 0 - x;
  }
  return x & mask_of(t->bits);
}

/* a*b + c where it is hard: c near -a*b, far below or above it, at the ends of the exponents. */
static void random_fma(rng *r, const dtype *t, uint64_t *a, uint64_t *b, uint64_t *c) {
  int fraction = t->precision - 1, n_fields = 1 << (t->bits - t->precision);
  uint64_t how = rng_u64(r), x[3];
  for (int i = 0; i < 3; i++) {
    x[i] = rng_u64(r) & mask_of(t->bits);
    if (how >> i & 1) x[i] &= ~mask_of((int)(rng_u64(r) % (unsigned)(fraction + 1)));
    if (how >> (3 + i) & 1) x[i] |= mask_of((int)(rng_u64(r) % (unsigned)(fraction + 1)));
  }
  int bias = n_fields / 2 - 1, field_a = (int)(x[0] >> fraction) % n_fields, target, field_b;
  switch (how >> 8 & 3) { /* the product's exponent: anywhere, around the smallest numbers, around overflow */
    case 0: target = (int)(rng_u64(r) % (unsigned)n_fields); break;
    case 1: target = (int)(rng_u64(r) % (unsigned)(2 * fraction)) - fraction - 4; break;
    case 2: target = n_fields - 4 + (int)(rng_u64(r) % 6); break;
    default: target = bias; break;
  }
  field_b = target - field_a + bias;
  if (field_b < 0 || field_b > n_fields - 2) field_b = (int)(rng_u64(r) % (unsigned)(n_fields - 1));
  x[1] = (x[1] & ~((uint64_t)(n_fields - 1) << fraction)) | (uint64_t)field_b << fraction;
  int field_c = target + (int)(rng_u64(r) % (unsigned)(4 * fraction)) - 2 * fraction;
  if (how >> 10 & 1) { /* near -a*b, a few units away */
    uint64_t p = t->bits == 64 ? of_f64(-(f64_of(x[0]) * f64_of(x[1]))) : of_f32(-(f32_of(x[0]) * f32_of(x[1])));
    x[2] = p + (how >> 16 & 7) - (how >> 20 & 7);
  } else if (field_c >= 0 && field_c < n_fields - 1) x[2] = (x[2] & ~((uint64_t)(n_fields - 1) << fraction)) | (uint64_t)field_c << fraction;
  *a = x[0] & mask_of(t->bits), *b = x[1] & mask_of(t->bits), *c = x[2] & mask_of(t->bits);
}

typedef struct cases { int64_t n, room; int bits[4]; char *operand[4]; } cases; /* a, b, c and what is wanted */

static void add_case(cases *k, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t v[3] = {a, b, c};
  if (k->n == k->room) {
    k->room = k->room ? 2 * k->room : 1 << 16;
    for (int i = 0; i < 4; i++)
      if (!(k->operand[i] = realloc(k->operand[i], (size_t)k->room * 8 + 64))) bail("no memory");
  }
  for (int i = 0; i < 3; i++)
    if (k->bits[i]) store(k->operand[i], k->n, k->bits[i], v[i]);
  k->n++;
}

static int64_t scale = 1;

static void make_cases(cases *k, const subject_loop *l, rng *r) {
  static uint64_t special[40000];
  const dtype *a = dtype_of(l->a), *b = dtype_of(l->b), *c = dtype_of(l->c);
  k->n = 0;
  k->bits[0] = a->bits, k->bits[1] = b ? b->bits : 0, k->bits[2] = c ? c->bits : 0, k->bits[3] = dtype_of(l->y)->bits;
  if (!b) {
    if (a->bits <= 16) { for (uint64_t x = 0; x <= mask_of(a->bits); x++) add_case(k, x, 0, 0); return; }
    int n = special_values(a, special, 1);
    for (int i = 0; i < n; i++) add_case(k, special[i], 0, 0);
    for (int64_t i = 0; i < 250000 * scale; i++) add_case(k, random_value(r, a), 0, 0);
  } else if (!strcmp(l->op, "sel")) {
    for (int64_t i = 0; i < 5000; i++) add_case(k, rng_u64(r) & 1 ? mask_of(a->bits) : 0, random_value(r, b), random_value(r, c));
  } else if (!c) {
    if (a->bits == 8) { for (uint64_t x = 0; x <= 0xffff; x++) add_case(k, x & 0xff, x >> 8, 0); return; }
    int n = special_values(a, special, 0);
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) add_case(k, special[i], special[j], 0);
    for (int64_t i = 0; i < 100000 * scale; i++) add_case(k, random_value(r, a), i & 1 ? random_value(r, b) : rng_u64(r) % 80, 0);
  } else {
    int n = special_values(a, special, 0);
    for (int64_t i = 0; i < 200000; i++) add_case(k, special[rng_u64(r) % (unsigned)n], special[rng_u64(r) % (unsigned)n], special[rng_u64(r) % (unsigned)n]);
    for (int64_t i = 0; i < 800000 * scale; i++) {
      uint64_t x, y, z;
      random_fma(r, a, &x, &y, &z);
      add_case(k, x, y, z);
    }
  }
}

/* ---- Running ---- */

typedef struct build { const char *path; const subject *s; } build;
static build builds[64];
static int n_builds;

static void check_loop(int index, rng *r) {
  static cases k;
  static char *any_nan, *got;
  static int64_t room;
  const subject_loop *l = &builds[0].s->loops[index];
  const dtype *a = dtype_of(l->a), *y = dtype_of(l->y);
  group_begin("%s %s %s -> %s", l->op, l->a, l->b, l->y);
  make_cases(&k, l, r);
  if (k.n > room) {
    room = k.n;
    any_nan = realloc(any_nan, (size_t)room), got = realloc(got, (size_t)room * 8 + 64);
    if (!any_nan || !got) bail("no memory");
  }
  for (int64_t i = 0; i < k.n; i++) {
    int any = 0;
    store(k.operand[3], i, y->bits, reference(l, a, y, load(k.operand[0], i, a->bits), k.bits[1] ? load(k.operand[1], i, k.bits[1]) : 0,
                                              k.bits[2] ? load(k.operand[2], i, k.bits[2]) : 0, &any));
    any_nan[i] = (char)any;
  }
  for (int b = 0; b < n_builds; b++) {
    const subject_loop *m = &builds[b].s->loops[index];
    m->run(k.operand[0], k.operand[1], k.operand[2], got, k.n);
    group_count(k.n);
    if (!memcmp(got, k.operand[3], (size_t)(k.n * y->bits / 8))) continue;
    for (int64_t i = 0, bad = 0; i < k.n && bad < 3; i++) {
      uint64_t wanted = load(k.operand[3], i, y->bits), g = load(got, i, y->bits);
      if (g == wanted || (any_nan[i] && is_a_nan(y, wanted) && is_a_nan(y, g))) continue;
      bad++;
      group_fail("%s: q_%s %s(0x%llx, 0x%llx, 0x%llx) -> %s: got 0x%llx, wanted 0x%llx (case %lld of %lld)", builds[b].path, l->op, l->a,
                 (unsigned long long)load(k.operand[0], i, a->bits), k.bits[1] ? (unsigned long long)load(k.operand[1], i, k.bits[1]) : 0ull,
                 k.bits[2] ? (unsigned long long)load(k.operand[2], i, k.bits[2]) : 0ull, l->y, (unsigned long long)g, (unsigned long long)wanted,
                 (long long)i, (long long)k.n);
    }
  }
  group_end();
}

/* Small counts, at unaligned addresses: bodies and tails agree, and nothing outside the result is touched. */
static void check_tails(const build *b, rng *r) {
  group_begin("tails: %s", b->path);
  for (int64_t i = 0; i < b->s->n_loops; i++) {
    const subject_loop *l = &b->s->loops[i];
    int bits[4] = {dtype_of(l->a)->bits, *l->b ? dtype_of(l->b)->bits : 0, *l->c ? dtype_of(l->c)->bits : 0, dtype_of(l->y)->bits};
    static char in[3][2048], whole[2048], part[2048];
    for (int o = 0; o < 3; o++)
      for (int64_t j = 0; bits[o] && j < 140; j++)
        store(in[o] + 1, j, bits[o], !strcmp(l->op, "sel") && o == 0 ? (rng_u64(r) & 1 ? ~0ull : 0) : random_value(r, dtype_of(o == 0 ? l->a : o == 1 ? l->b : l->c)));
    l->run(in[0] + 1, in[1] + 1, in[2] + 1, whole + 1, 140);
    for (int64_t n = 0; n <= 140; n = n < 70 ? n + 1 : n + 13) {
      memset(part, 0x5a, sizeof part);
      l->run(in[0] + 1, in[1] + 1, in[2] + 1, part + 1, n);
      int64_t bytes = n * bits[3] / 8;
      group_count(1);
      int same = !memcmp(whole + 1, part + 1, (size_t)bytes) && part[0] == 0x5a && part[bytes + 1] == 0x5a;
      for (int64_t j = 0; !same && j < n; j++) { /* NaNs of arithmetic may differ */
        uint64_t w = load(whole + 1, j, bits[3]), p = load(part + 1, j, bits[3]);
        const dtype *y = dtype_of(l->y);
        if (w != p && !(y->kind == 'f' && strcmp(l->op, "cast") && is_a_nan(y, w) && is_a_nan(y, p))) break;
        if (j == n - 1) same = part[0] == 0x5a && part[bytes + 1] == 0x5a;
      }
      if (!same) group_fail("%s %s %s, %lld elements", l->op, l->a, l->y, (long long)n);
    }
  }
  group_end();
}

static void check_moves(const build *b, rng *r) {
  enum { BYTES = 1 << 16 };
  static char src[BYTES], dst[BYTES], wanted[BYTES];
  for (int i = 0; i < BYTES; i++) src[i] = (char)rng_u64(r);
  group_begin("stream: %s", b->path);
  for (int i = 0; i < 3000; i++) {
    int64_t from = (int64_t)rng_below(r, 130), to = (int64_t)rng_below(r, 130), n = (int64_t)rng_below(r, i % 10 ? 600 : BYTES - 200);
    memset(dst, 0x5a, sizeof dst), memset(wanted, 0x5a, sizeof wanted), memcpy(wanted + to, src + from, (size_t)n);
    b->s->stream(src + from, dst + to, n);
    group_count(1);
    if (memcmp(dst, wanted, sizeof dst)) group_fail("%lld bytes from %lld to %lld", (long long)n, (long long)from, (long long)to);
  }
  group_end();
  group_begin("transpose: %s", b->path);
  for (int i = 0; i < 3000; i++) {
    int64_t size = 1 << (i & 3), n0 = (int64_t)rng_below(r, i % 5 ? 20 : 75), n1 = (int64_t)rng_below(r, i % 5 ? 20 : 75);
    int64_t ss = n1 * size + (int64_t)rng_below(r, 9), ds = n0 * size + (int64_t)rng_below(r, 9), from = (int64_t)rng_below(r, 9), to = (int64_t)rng_below(r, 9);
    int flip = (int)rng_below(r, 4); /* rows may run backwards */
    const char *s = src + from + (flip & 1 ? (n0 - 1) * ss : 0);
    char *d = dst + to + (flip & 2 ? (n1 - 1) * ds : 0), *w = wanted + (d - dst);
    if (flip & 1) ss = -ss;
    if (flip & 2) ds = -ds;
    memset(dst, 0x5a, sizeof dst), memset(wanted, 0x5a, sizeof wanted);
    for (int64_t x = 0; x < n0; x++)
      for (int64_t y = 0; y < n1; y++) memcpy(w + y * ds + x * size, s + x * ss + y * size, (size_t)size);
    b->s->transpose[i & 3](s, ss, d, ds, n0, n1);
    group_count(1);
    if (memcmp(dst, wanted, sizeof dst)) group_fail("size %lld, %lld x %lld, strides %lld and %lld", (long long)size, (long long)n0, (long long)n1, (long long)ss, (long long)ds);
  }
  group_end();
}

/* What has a loop of its own, a division or a count of bits of 64 bits below AVX-512, or replaces hardware. */
static int may_be_scalar(const build *b, const subject_loop *l) {
  int is_division = !strcmp(l->op, "quot") || !strcmp(l->op, "rem"), is_wide = strstr(l->a, "64") && !strstr(b->path, "v4");
  return !strcmp(l->op, "fma_soft") || !strcmp(l->op, "gcd") || (is_division && (*l->a == 'f' || is_wide)) || (!strcmp(l->op, "count_bits") && is_wide);
}

/* <object>.remarks, where there is one: what the compiler said of its loops. All others must be vectorised. */
static void check_remarks(const build *b, const char *object) {
  char name[4096], text[1024];
  static char vectorised[4096];
  snprintf(name, sizeof name, "%.*s.remarks", (int)strlen(object) - 3, object);
  FILE *f = fopen(name, "r");
  if (!f) return;
  memset(vectorised, 0, sizeof vectorised);
  while (fgets(text, sizeof text, f)) {
    const char *at = strstr(text, "kernel_subject.def:");
    if (at && (strstr(at, "loop vectorized using") || strstr(at, "vectorized loop"))) vectorised[(unsigned)atoi(at + 19) % sizeof vectorised] = 1;
  }
  fclose(f);
  group_begin("every loop vectorised: %s", b->path);
  for (int64_t i = 0; i < b->s->n_loops; i++) {
    const subject_loop *l = &b->s->loops[i];
    if (!l->line || may_be_scalar(b, l)) continue;
    group_count(1);
    if (!vectorised[l->line]) group_fail("kernel_subject.def:%d: %s %s -> %s", l->line, l->op, l->a, l->y);
  }
  group_end();
}

int main(int argc, char **argv) {
  if (getenv("QUERN_TEST_SCALE")) scale = atoll(getenv("QUERN_TEST_SCALE"));
  for (int i = 1; i < argc && n_builds < 64; i++) {
    void *object = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (!object) bail("%s", dlerror());
    const char *slash = strrchr(argv[i], '/');
    builds[n_builds].path = slash ? slash + 1 : argv[i];
    builds[n_builds].s = dlsym(object, "kernel_subject");
    if (!builds[n_builds++].s) bail("%s", dlerror());
  }
  if (!n_builds) skip_all("no build of kernel_subject.c given");
  rng r;
  rng_seed(&r, 10);
  for (int b = 0; b < n_builds; b++) check_remarks(&builds[b], argv[b + 1]);
  for (int b = 0; b < n_builds; b++) is_int(builds[b].s->selftest(), 0, "self-test: %s", builds[b].path);
  for (int i = 0; i < (int)builds[0].s->n_loops; i++) check_loop(i, &r);
  for (int b = 0; b < n_builds; b++) check_tails(&builds[b], &r), check_moves(&builds[b], &r);
  return done_testing();
}
