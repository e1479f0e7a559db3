/* SPDX-License-Identifier: Apache-2.0
 *
 * t297-preview.c: the program that t297-preview.sh builds with a tree and with a library that have the dtypes in preview, too:
 * f8_e4m3fn and complex128. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(OF_TREE)
#include "tiny.h"
#define Q(name) tiny_##name
#define OK TINY_OK
#define E_DTYPE TINY_E_DTYPE
#define C128 TINY_C128
#define I64 TINY_I64
#define U64 TINY_U64
#define F64 TINY_F64
#else
#include <quern/quern.h>
#define Q(name) quern_##name
#define OK QUERN_OK
#define E_DTYPE QUERN_E_DTYPE
#define C128 QUERN_C128
#define I64 QUERN_I64
#define U64 QUERN_U64
#define F64 QUERN_F64
#endif

static int n_wrong, n_test;

/* A case that fails says so, the first twenty of them. */
#define WRONG(...) (n_wrong++ < 20 ? (printf("# "), printf(__VA_ARGS__), printf("\n"), 0) : 0)

static void ends(const char *name) {
  printf("%sok %d - %s\n", n_wrong ? "not " : "", ++n_test, name);
  if (n_wrong > 20) printf("# and %d more\n", n_wrong - 20);
  n_wrong = 0;
}

static uint64_t seed = 0x9e3779b97f4a7c15;
static uint64_t random_bits(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}

#define UNUSED __attribute__((unused)) /* a tree has fewer dtypes */
static const DLDataType BOOL = {kDLBool, 8, 1}, I32 = {kDLInt, 32, 1}, INT64 = {kDLInt, 64, 1}, U8 = {kDLUInt, 8, 1},
                        F16 = {kDLFloat, 16, 1}, BF16 = {kDLBfloat, 16, 1}, F32 = {kDLFloat, 32, 1}, FLOAT64 = {kDLFloat, 64, 1},
                        F8 = {10, 8, 1}, COMPLEX = {5, 128, 1};
UNUSED static const DLDataType I8 = {kDLInt, 8, 1}, I16 = {kDLInt, 16, 1}, U32 = {kDLUInt, 32, 1}, UINT64 = {kDLUInt, 64, 1};

static DLTensor tensor(void *data, DLDataType dtype, int ndim, int64_t *shape, int64_t *strides) {
  return (DLTensor){data, {kDLCPU, 0}, ndim, dtype, shape, strides, 0};
}

static Q(status) call(const char *name, int n_in, DLTensor *a, DLTensor *b, DLTensor *c, DLTensor *out, const Q(call) * with) {
  Q(op) * op;
  DLTensor *in[3] = {a, b, c};
  Q(status) status = Q(op_find)(NULL, name, &op);
  if (!status) status = Q(op_call)(op, n_in, in, 1, &out, with);
  if (!status) Q(op_release)(op);
  return status;
}

static void must(const char *name, int n_in, DLTensor *a, DLTensor *b, DLTensor *c, DLTensor *out, const Q(call) * with) {
  if (call(name, n_in, a, b, c, out, with)) WRONG("%s: %s", name, Q(last_error)());
}

/* The call is refused for a dtype, in these words. */
static void refused(const char *name, int n_in, DLTensor *a, DLTensor *b, DLTensor *c, DLTensor *out, const char *words) {
  Q(status) status = call(name, n_in, a, b, c, out, NULL);
  if (status != E_DTYPE)
    WRONG("%s: status %d, expected DTYPE", name, (int)status);
  else if (!strstr(Q(last_error)(), words))
    WRONG("%s: '%s' lacks '%s'", name, Q(last_error)(), words);
}

static FILE *table; /* of casts to f8 and from it, for the CUDA text's twin of them; or NULL */

/* n items from one array to another. */
static void cast_all(DLDataType from, void *x, DLDataType to, void *y, int64_t n) {
  DLTensor in = tensor(x, from, 1, &n, NULL), out = tensor(y, to, 1, &n, NULL);
  must("astype", 1, &in, NULL, NULL, &out, NULL);
  if (table && (from.code == F8.code || to.code == F8.code)) {
    const int32_t head[5] = {from.code, from.bits, to.code, to.bits, (int32_t)n};
    fwrite(head, sizeof head, 1, table);
    fwrite(x, from.bits / 8, (size_t)n, table);
    fwrite(y, to.bits / 8, (size_t)n, table);
  }
}

/* ---- The format, from its definition: sign, 4 bits of exponent with bias 7, 3 of fraction; S.1111.111 is NaN, no infinity ---- */

static double f8_value(unsigned code) {
  const int exponent = code >> 3 & 15, fraction = code & 7;
  const double magnitude = exponent == 0 ? ldexp(fraction, -9) : ldexp(8 + fraction, exponent - 10);
  if ((code & 0x7f) == 0x7f) return NAN;
  return code & 0x80 ? -magnitude : magnitude;
}

/* The code nearest to a number, of two the even one; NaN if it is nearer to 480, which is beyond. A long double has every number
 * that is cast. */
static unsigned f8_code(long double x) {
  const unsigned sign = signbit(x) ? 0x80 : 0;
  unsigned code = 0;
  if (isnan(x)) return 0x7f;
  x = fabsl(x);
  for (; code < 0x7f; code++) {
    const long double here = f8_value(code), next = code == 0x7e ? 480 : f8_value(code + 1), middle = (here + next) / 2;
    if (x < middle || (x == middle && code % 2 == 0)) return sign | code;
  }
  return 0x7f;
}

/* A float of 16 bits with so many of exponent. */
static double half_value(unsigned code, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
  const int exponent = (int)(code >> fraction_bits) & top, fraction = (int)code & ((1 << fraction_bits) - 1);
  double magnitude = ldexp(fraction + (exponent ? 1 << fraction_bits : 0), (exponent ? exponent : 1) - bias - fraction_bits);
  if (exponent == top) magnitude = fraction ? NAN : INFINITY;
  return code & 0x8000 ? -magnitude : magnitude;
}

/* ---- Casts ---- */

#define N 8192
static long double numbers[1 << 16];
static uint8_t codes[1 << 16];

static void compare_codes(const char *from, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (codes[i] != f8_code(numbers[i]))
      WRONG("%s %.20Lg (%La): %02x, expected %02x", from, numbers[i], numbers[i], codes[i], f8_code(numbers[i]));
}

static void from_halves(DLDataType dtype, int exponent_bits, const char *name) {
  static uint16_t all[1 << 16];
  for (int i = 0; i < 1 << 16; i++) {
    all[i] = (uint16_t)i;
    numbers[i] = half_value((unsigned)i, exponent_bits);
  }
  cast_all(dtype, all, F8, codes, 1 << 16);
  compare_codes(name, 1 << 16);
}

/* Numbers and middles of the format, and what lies close beside them: what rounds wrongly where it is rounded twice. */
static double hard_f64(int i) {
  const unsigned code = (unsigned)i & 0x7f;
  const double here = code == 0x7f ? 480 : f8_value(code), next = code >= 0x7e ? 512 : f8_value(code + 1),
               middle = (here + next) / 2;
  const double sign = i & 0x80 ? -1 : 1;
  switch (i >> 8 & 15) {
  case 0: return sign * here;
  case 1: return sign * middle;
  case 2: return sign * nextafter(middle, 1000);
  case 3: return sign * nextafter(middle, 0);
  case 4: return sign * middle * (1 + 0x1p-25);
  case 5: return sign * middle * (1 - 0x1p-25);
  case 6: return sign * middle * (1 + 0x1p-40);
  case 7: return sign * middle * (1 - 0x1p-40);
  case 8: return sign * nextafterf((float)middle, 1000);
  case 9: return sign * nextafterf((float)middle, 0);
  case 10: return sign * ldexp(here, -40);
  case 11: return sign * ldexp(middle, 100);
  case 12: return i & 1 ? NAN : sign * INFINITY;
  case 13: return sign * ldexp(middle, -1020);
  case 14: return sign * 0x1p-10 * (1 + (i & 1 ? 0x1p-30 : i & 2 ? -0x1p-30 : 0));
  default: return sign * 464 * (1 + (i & 1 ? 0x1p-52 : i & 2 ? -0x1p-52 : 0));
  }
}

static void from_floats(void) {
  static double doubles[1 << 16];
  static float singles[1 << 16];
  for (int i = 0; i < 1 << 16; i++) {
    const uint64_t bits = random_bits();
    if (i < 1 << 14)
      doubles[i] = hard_f64(i);
    else if (i & 1)
      memcpy(&doubles[i], &bits, 8);
    else
      doubles[i] = ldexp((double)(int64_t)bits, (int)(random_bits() % 40) - 84);
    numbers[i] = doubles[i];
  }
  cast_all(FLOAT64, doubles, F8, codes, 1 << 16);
  compare_codes("f64", 1 << 16);
  for (int i = 0; i < 1 << 16; i++) {
    const uint32_t bits = (uint32_t)random_bits();
    if (i < 1 << 15 || i & 1)
      singles[i] = (float)doubles[i];
    else
      memcpy(&singles[i], &bits, 4);
    numbers[i] = singles[i];
  }
  cast_all(F32, singles, F8, codes, 1 << 16);
  compare_codes("f32", 1 << 16);
}

/* Of integers: all about 0, those beyond, and any. */
#define FROM_INTEGERS(TYPE, DTYPE, LOW, HIGH)                                                                                    \
  {                                                                                                                              \
    static TYPE integers[N];                                                                                                     \
    for (int i = 0; i < N; i++) {                                                                                                \
      integers[i] = (TYPE)(i < 2048 ? i - 1024 : i == 2048 ? LOW : i == 2049 ? HIGH : (int64_t)random_bits());                   \
      if (i >= 6000) integers[i] = (TYPE)(integers[i] >> (random_bits() % (8 * sizeof(TYPE))));                                  \
      numbers[i] = integers[i];                                                                                                  \
    }                                                                                                                            \
    cast_all(DTYPE, integers, F8, codes, N);                                                                                     \
    compare_codes(#TYPE, N);                                                                                                     \
  }

/* All 256 to an integer type: truncated, the nearest end where they do not fit, NaN is 0. */
#define TO_INTEGERS(TYPE, DTYPE, LOW, HIGH)                                                                                      \
  {                                                                                                                              \
    TYPE got[256];                                                                                                               \
    cast_all(F8, all, DTYPE, got, 256);                                                                                          \
    for (unsigned i = 0; i < 256; i++) {                                                                                         \
      const double value = f8_value(i), whole = isnan(value) ? 0 : trunc(value);                                                 \
      const TYPE wanted = whole < LOW ? LOW : whole > HIGH ? HIGH : (TYPE)whole;                                                 \
      if (got[i] != wanted) WRONG("%02x to " #TYPE ": %lld", i, (long long)got[i]);                                              \
    }                                                                                                                            \
  }

static void test_casts(void) {
  uint8_t all[256], bools[256], back[256];
  uint16_t halves[256];
  float singles[256];
  double doubles[256];
  for (int i = 0; i < 256; i++) all[i] = (uint8_t)i;
  from_halves(F16, 5, "f16");
  from_halves(BF16, 8, "bf16");
  from_floats();
  FROM_INTEGERS(int32_t, I32, INT32_MIN, INT32_MAX)
  FROM_INTEGERS(int64_t, INT64, INT64_MIN, INT64_MAX)
  FROM_INTEGERS(uint8_t, U8, 0, 255)
#if !defined(OF_TREE)
  FROM_INTEGERS(uint64_t, UINT64, 0, -1)
  FROM_INTEGERS(uint32_t, U32, 0, -1)
  FROM_INTEGERS(int16_t, I16, -32768, 32767)
  FROM_INTEGERS(int8_t, I8, -128, 127)
  TO_INTEGERS(uint64_t, UINT64, 0, (double)UINT64_MAX)
  TO_INTEGERS(uint32_t, U32, 0, (double)UINT32_MAX)
  TO_INTEGERS(int8_t, I8, -128, 127)
  TO_INTEGERS(int16_t, I16, -32768, 32767)
#endif
  ends("to f8_e4m3fn: nearest, ties to even, rounded once; what is too large is NaN");

  TO_INTEGERS(int32_t, I32, INT32_MIN, INT32_MAX)
  TO_INTEGERS(int64_t, INT64, (double)INT64_MIN, (double)INT64_MAX)
  TO_INTEGERS(uint8_t, U8, 0, 255)
  cast_all(F8, all, BOOL, bools, 256);
  cast_all(F8, all, F32, singles, 256);
  cast_all(F8, all, FLOAT64, doubles, 256);
  cast_all(F8, all, F8, back, 256);
  for (unsigned i = 0; i < 256; i++) {
    const double value = f8_value(i);
    const uint32_t f32_nan = 0x7fc00000;
    const uint64_t f64_nan = 0x7ff8000000000000;
    if (bools[i] != (value != 0)) WRONG("%02x to bool: %d", i, bools[i]);
    if (isnan(value) ? memcmp(&singles[i], &f32_nan, 4) : singles[i] != value || !signbit(singles[i]) != !signbit(value))
      WRONG("%02x to f32: %a", i, singles[i]);
    if (isnan(value) ? memcmp(&doubles[i], &f64_nan, 8) : doubles[i] != value || !signbit(doubles[i]) != !signbit(value))
      WRONG("%02x to f64: %a", i, doubles[i]);
    if (back[i] != (isnan(value) ? 0x7f : i)) WRONG("%02x to itself: %02x", i, back[i]);
  }
  for (int form = 0; form < 2; form++) {
    cast_all(F8, all, form ? BF16 : F16, halves, 256);
    for (unsigned i = 0; i < 256; i++) {
      const double value = f8_value(i), got = half_value(halves[i], form ? 8 : 5);
      if (isnan(value) ? halves[i] != (form ? 0x7fc0 : 0x7e00) : got != value || !signbit(got) != !signbit(value))
        WRONG("%02x to %s: %04x", i, form ? "bf16" : "f16", halves[i]);
    }
  }
  for (int i = 0; i < 256; i++) all[i] = (uint8_t)(i % 3);
  cast_all(BOOL, all, F8, codes, 256);
  for (int i = 0; i < 256; i++)
    if (codes[i] != (all[i] ? 0x38 : 0)) WRONG("bool %d: %02x", all[i], codes[i]);
  ends("from f8_e4m3fn: all 256 patterns to every dtype");
}

static void test_complex_casts(void) {
  double from[6] = {1.5, -0.0, NAN, INFINITY, 0x1p-1074, -3}, to[12];
  int64_t integers[4] = {1, -1, INT64_MAX, (INT64_C(1) << 53) + 1};
  uint8_t f8[4] = {0x38, 0x80, 0x7f, 0x7e}, truth[4];
  float single = 0.1f, real;
  double complexes[8] = {0, -0.0, 0, 1e-310, NAN, 0, -0.0, -0.0};
  int64_t one = 1;
  cast_all(FLOAT64, from, COMPLEX, to, 6);
  for (int i = 0; i < 6; i++)
    if ((isnan(from[i]) ? !isnan(to[2 * i]) : memcmp(&from[i], &to[2 * i], 8)) || to[2 * i + 1] != 0 || signbit(to[2 * i + 1]))
      WRONG("f64 %a: %a %a", from[i], to[2 * i], to[2 * i + 1]);
  cast_all(INT64, integers, COMPLEX, to, 4);
  for (int i = 0; i < 4; i++)
    if (to[2 * i] != (double)integers[i] || to[2 * i + 1] != 0) WRONG("i64 %lld: %a", (long long)integers[i], to[2 * i]);
  cast_all(F8, f8, COMPLEX, to, 4);
  for (int i = 0; i < 4; i++)
    if (isnan(f8_value(f8[i])) ? !isnan(to[2 * i]) : to[2 * i] != f8_value(f8[i])) WRONG("f8 %02x: %a", f8[i], to[2 * i]);
  cast_all(F32, &single, COMPLEX, to, 1);
  if (to[0] != (double)single || to[1] != 0) WRONG("f32: %a", to[0]);
  cast_all(COMPLEX, complexes, BOOL, truth, 4);
  if (truth[0] != 0 || truth[1] != 1 || truth[2] != 1 || truth[3] != 0)
    WRONG("to bool: %d %d %d %d", truth[0], truth[1], truth[2], truth[3]);
  DLTensor in = tensor(complexes, COMPLEX, 1, &one, NULL), out = tensor(&real, F32, 1, &one, NULL), other = in;
  refused("astype", 1, &in, NULL, NULL, &out, "there is no cast from complex128 to f32");
  refused("less", 2, &in, &other, NULL, &out, "dtype complex128 is not taken");
  refused("add", 2, &in, &other, NULL, &other, "dtype complex128 is not taken");
  ends("complex128: from real dtypes with an imaginary part of 0, to bool; to real ones, and in ops that compute, refused");
}

/* ---- Moves ---- */

#define MOST 4
typedef struct view {
  int64_t offset; /* items from the beginning of the memory to the first */
  int64_t stride[MOST];
} view;
typedef struct layout {
  int ndim;
  int64_t shape[MOST];
  view in, out;
} layout;

/* contiguous; transposed; flipped; every second; broadcast along either dimension; rows with a pitch; small inner dimensions,
 * turned; scattered outputs; larger than what is written past the cache */
static const layout layouts[] = {
    {1, {1}, {0, {1}}, {0, {1}}},
    {1, {17}, {0, {1}}, {0, {1}}},
    {1, {5000}, {0, {1}}, {0, {1}}},
    {1, {5000}, {4999, {-1}}, {0, {1}}},
    {1, {5000}, {1, {2}}, {3, {3}}},
    {1, {5000}, {7, {0}}, {0, {1}}},
    {2, {70, 90}, {0, {1, 70}}, {0, {90, 1}}},
    {2, {300, 310}, {0, {1, 300}}, {0, {310, 1}}},
    {2, {300, 310}, {0, {310, 1}}, {0, {1, 300}}},
    {2, {200, 40}, {0, {0, 1}}, {0, {40, 1}}},
    {2, {200, 40}, {0, {1, 0}}, {0, {40, 1}}},
    {2, {100, 60}, {5, {70, 1}}, {2, {64, 1}}},
    {3, {50, 3, 40}, {0, {120, 1, 3}}, {0, {120, 40, 1}}},
    {4, {9, 5, 7, 3}, {0, {1, 9, 45, 315}}, {0, {105, 21, 3, 1}}},
    {4, {9, 5, 7, 3}, {944, {-105, -21, -3, -1}}, {0, {1, 9, 45, 315}}},
    {2, {1000, 3}, {0, {1, 1000}}, {0, {3, 1}}},
    {2, {3, 1000}, {0, {1, 3}}, {0, {1000, 1}}},
    {2, {700, 5}, {0, {5, 1}}, {1, {12, 2}}},
    {1, {1600000}, {0, {1}}, {0, {1}}},
};
#define N_LAYOUTS (sizeof layouts / sizeof layouts[0])

static char seen[1 << 20]; /* what explain said of the calls */

static void explain(const char *name, int n_in, DLTensor *a, DLTensor *b, DLTensor *c, DLTensor *out) {
  static char text[4096];
  Q(op) * op;
  DLTensor *in[3] = {a, b, c};
  if (Q(op_find)(NULL, name, &op)) return;
  if (!Q(op_explain)(op, n_in, in, 1, &out, NULL, text, sizeof text) && strlen(seen) + strlen(text) < sizeof seen)
    strcat(seen, text);
  Q(op_release)(op);
}

static void must_be_seen(const char *words) {
  if (!strstr(seen, words)) WRONG("no call was explained with '%s'", words);
}

static int64_t offset_of(const layout *l, const view *v, int64_t i) {
  int64_t offset = v->offset;
  for (int d = l->ndim - 1; d >= 0; d--) {
    offset += i % l->shape[d] * v->stride[d];
    i /= l->shape[d];
  }
  return offset;
}

static int64_t count_of(const layout *l) {
  int64_t n = 1;
  for (int d = 0; d < l->ndim; d++) n *= l->shape[d];
  return n;
}

#define ROOM 1700000 /* items */
static char *memory[4]; /* of 16 bytes an item, and some more for odd addresses */

static void fill_random(char *to, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 8) {
    const uint64_t bits = random_bits();
    memcpy(to + i, &bits, (size_t)(bytes - i < 8 ? bytes - i : 8));
  }
}

/* Where output items lie is written, and nothing else: `wanted(i)` is item i. */
static void compare(const char *what, const layout *l, const char *out, int64_t size,
                    const char *(*wanted)(const layout *l, int64_t i)) {
  const int64_t n = count_of(l);
  int64_t span = 1;
  for (int d = 0; d < l->ndim; d++) span += (l->shape[d] - 1) * l->out.stride[d];
  char *expected = malloc((size_t)((l->out.offset + span + 8) * size));
  memset(expected, 0xa5, (size_t)((l->out.offset + span + 8) * size));
  for (int64_t i = 0; i < n; i++) memcpy(expected + offset_of(l, &l->out, i) * size, wanted(l, i), (size_t)size);
  if (memcmp(expected, out, (size_t)((l->out.offset + span + 8) * size))) WRONG("%s of layout %d", what, (int)(l - layouts));
  free(expected);
}

static int64_t item_size;
static const char *source_item(const layout *l, int64_t i) { return memory[0] + 1 + offset_of(l, &l->in, i) * item_size; }

static DLTensor viewed(char *at, DLDataType dtype, const layout *l, const view *v) {
  return tensor(at + v->offset * (dtype.bits / 8), dtype, l->ndim, (int64_t *)(uintptr_t)l->shape,
                (int64_t *)(uintptr_t)v->stride);
}

/* copy, at odd addresses. */
static void test_copy(DLDataType dtype, const char *name) {
  char title[80];
  item_size = dtype.bits / 8;
  for (size_t k = 0; k < N_LAYOUTS; k++) {
    const layout *l = &layouts[k];
    DLTensor in = viewed(memory[0] + 1, dtype, l, &l->in), out = viewed(memory[1], dtype, l, &l->out);
    memset(memory[1], 0xa5, (size_t)(ROOM * item_size));
    must("copy", 1, &in, NULL, NULL, &out, NULL);
    explain("copy", 1, &in, NULL, NULL, &out);
    compare("copy", l, memory[1], item_size, source_item);
  }
  snprintf(title, sizeof title, "copy of %s in every layout: every bit", name);
  ends(title);
}

/* From f64s to complex128 and from f32s to f8, in all layouts: what converts between tensors and blocks. */
static const char *complex_item(const layout *l, int64_t i) {
  static double item[2];
  memcpy(item, memory[0] + offset_of(l, &l->in, i) * 8, 8);
  item[1] = 0;
  return (const char *)item;
}
static const char *f8_item(const layout *l, int64_t i) {
  static char code;
  float value;
  memcpy(&value, memory[0] + offset_of(l, &l->in, i) * 4, 4);
  code = (char)f8_code(value);
  return &code;
}

static void test_cast_layouts(void) {
  for (int form = 0; form < 2; form++) {
    const DLDataType from = form ? F32 : FLOAT64, to = form ? F8 : COMPLEX;
    for (int64_t i = 0; i < ROOM; i++) {
      const double value = (double)(int64_t)(random_bits() % 2000 - 1000) / 3;
      const float single = (float)value;
      memcpy(memory[0] + i * (form ? 4 : 8), form ? (const void *)&single : &value, form ? 4 : 8);
    }
    for (size_t k = 0; k + form < N_LAYOUTS; k++) { /* a million codes are too slow to look for */
      const layout *l = &layouts[k];
      DLTensor in = viewed(memory[0], from, l, &l->in), out = viewed(memory[1], to, l, &l->out);
      memset(memory[1], 0xa5, (size_t)(ROOM * (to.bits / 8)));
      must("astype", 1, &in, NULL, NULL, &out, NULL);
      explain("astype", 1, &in, NULL, NULL, &out);
      compare("astype", l, memory[1], to.bits / 8, form ? f8_item : complex_item);
    }
  }
  ends("astype in every layout");
}

/* where: the condition contiguous, x as the layout says, y f64s promoted to complex128, or f8s, one for each row. */
static const char *chosen_item(const layout *l, int64_t i) {
  static double item[2];
  if (memory[2][i]) return memory[0] + offset_of(l, &l->in, i) * 16;
  memcpy(item, memory[3] + i % l->shape[l->ndim - 1] * 8, 8);
  item[1] = 0;
  return (const char *)item;
}

static void test_where(void) {
  fill_random(memory[0], (int64_t)ROOM * 16);
  for (int64_t i = 0; i < ROOM; i++) memory[2][i] = (char)(random_bits() & 1);
  for (int64_t i = 0; i < ROOM; i++) {
    const double value = (double)(int64_t)random_bits();
    memcpy(memory[3] + i * 8, &value, 8);
  }
  for (size_t k = 0; k < N_LAYOUTS; k++) {
    const layout *l = &layouts[k];
    int64_t row = l->shape[l->ndim - 1];
    DLTensor condition = tensor(memory[2], BOOL, l->ndim, (int64_t *)(uintptr_t)l->shape, NULL),
             x = viewed(memory[0], COMPLEX, l, &l->in);
    DLTensor y = tensor(memory[3], FLOAT64, 1, &row, NULL), out = viewed(memory[1], COMPLEX, l, &l->out);
    memset(memory[1], 0xa5, (size_t)ROOM * 16);
    must("where", 3, &condition, &x, &y, &out, NULL);
    explain("where", 3, &condition, &x, &y, &out);
    compare("where", l, memory[1], 16, chosen_item);
  }
  /* what is one value is spread, or converted and broadcast */
  ends("where of complex128 and f64: what is promoted is converted, the rest keeps every bit");
}

static void test_modes(void) {
  must_be_seen("streamed: yes");
  must_be_seen("rows copied");
  must_be_seen("one value spread by ");
  must_be_seen("pack_gather_b128_b128_2d_sc");
  must_be_seen("pack_scatter_b128_b128_2d_cs");
  must_be_seen("pack_transpose_b128_b128_2d_sc");
  must_be_seen("pack_gather_at_b128_i32_b128_1d_scc");
  must_be_seen("pack_scatter_at_b128_i32_b128_1d_ccs");
  must_be_seen("pack_fill_b128_b128_2d_bc");
  must_be_seen("converted from f64 to complex128");
  must_be_seen("pack_scatter_b8_b8_2d_cs");
  ends("in these calls every packing mode of 16 bytes was met");
}

/* ---- Numbers, and what is found ---- */

static void test_full(void) {
  double got[6];
  uint8_t codes8[5];
  int64_t shape = 3, strides = 1, five = 5;
  static const struct {
    Q(scalar) scalar;
    double real, imaginary;
    unsigned code;
  } rows[] = {{{C128, {.f = {1.5, -2}}}, 1.5, -2, 0x1000},
              {{F64, {.f = {464, 0}}}, 464, 0, 0x7e},
              {{F64, {.f = {464.00001, 0}}}, 464.00001, 0, 0x7f},
              {{F64, {.f = {-1e300, 0}}}, -1e300, 0, 0x7f},
              {{F64, {.f = {-0x1p-10, 0}}}, -0x1p-10, 0, 0x80},
              {{F64, {.f = {0x1.8p-9, 0}}}, 0x1.8p-9, 0, 0x02},
              {{F64, {.f = {-INFINITY, 0}}}, -INFINITY, 0, 0x7f},
              {{I64, {.i = -448}}, -448, 0, 0xfe},
              {{I64, {.i = 465}}, 465, 0, 0x7f},
              {{U64, {.u = UINT64_MAX}}, (double)UINT64_MAX, 0, 0x7f},
              {{I64, {.i = 17}}, 17, 0, 0x58},
              {{I64, {.i = 19}}, 19, 0, 0x5a}};
  for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
    const Q(call) with = {.size = sizeof with, .params = &rows[k].scalar, .n_params = 1};
    DLTensor out = tensor(got, COMPLEX, 1, &shape, &strides), narrow = tensor(codes8, F8, 1, &five, NULL);
    must("full", 0, NULL, NULL, NULL, &out, &with);
    for (int i = 0; i < 3; i++)
      if (got[2 * i] != rows[k].real || got[2 * i + 1] != rows[k].imaginary)
        WRONG("row %d: %a %a", (int)k, got[2 * i], got[2 * i + 1]);
    if (rows[k].code == 0x1000) {
      if (call("full", 0, NULL, NULL, NULL, &narrow, &with) != E_DTYPE) WRONG("a complex number for f8_e4m3fn is not refused");
      continue;
    }
    must("full", 0, NULL, NULL, NULL, &narrow, &with);
#if !defined(OF_TREE)
    uint8_t stored8 = 0;
    double stored[2] = {0};
    const Q(scalar) *number = &rows[k].scalar;
    if (quern_scalar_store(number, F8, &stored8) || stored8 != rows[k].code) WRONG("row %d stored: %02x", (int)k, stored8);
    if (quern_scalar_store(number, COMPLEX, stored) || memcmp(stored, got, 16)) WRONG("row %d stored: %a", (int)k, stored[0]);
#endif
    for (int i = 0; i < 5; i++)
      if (codes8[i] != rows[k].code) WRONG("row %d: %02x, expected %02x", (int)k, codes8[i], rows[k].code);
  }
  ends("full: complex numbers, and numbers rounded to f8_e4m3fn");
}

static void test_found(void) {
  int64_t n = 3000, found = 0;
  double *const items = (double *)(void *)memory[0], *const to = (double *)(void *)memory[1];
  for (int64_t i = 0; i < 2 * n; i++) items[i] = random_bits() % 3 ? 0 : (double)(int64_t)random_bits();
  for (int64_t i = 0; i < n; i++) memory[2][i] = (char)(random_bits() % 5 == 0), found += memory[2][i];
  DLTensor condition = tensor(memory[2], BOOL, 1, &n, NULL), x = tensor(items, COMPLEX, 1, &n, NULL);
  for (int64_t apart = 1; apart < 4; apart += 2) {
    int64_t at = 0;
    DLTensor out = tensor(to, COMPLEX, 1, &found, &apart);
    must("compress", 2, &condition, &x, NULL, &out, NULL);
    for (int64_t i = 0; i < n; i++)
      if (memory[2][i] && memcmp(&to[2 * apart * at++], &items[2 * i], 16)) WRONG("compress: item %lld", (long long)i);
  }
  int64_t shape[2] = {0, 1}, *const places = (int64_t *)(void *)memory[1];
  for (int64_t i = 0; i < n; i++) shape[0] += items[2 * i] != 0 || items[2 * i + 1] != 0;
  DLTensor out = tensor(places, INT64, 2, shape, NULL);
  must("nonzero", 1, &x, NULL, NULL, &out, NULL);
  for (int64_t i = 0, at = 0; i < n; i++)
    if ((items[2 * i] != 0 || items[2 * i + 1] != 0) && places[at++] != i) WRONG("nonzero: %lld", (long long)i);
  ends("compress and nonzero of complex128");
}

/* All pairs: an f64 has every sum of two exactly. */
static void test_add(void) {
  static uint8_t a[1 << 16], b[1 << 16];
  int64_t n = 1 << 16;
  for (int i = 0; i < 1 << 16; i++) a[i] = (uint8_t)i, b[i] = (uint8_t)(i >> 8);
  DLTensor x = tensor(a, F8, 1, &n, NULL), y = tensor(b, F8, 1, &n, NULL), out = tensor(codes, F8, 1, &n, NULL);
  must("add", 2, &x, &y, NULL, &out, NULL);
  for (int i = 0; i < 1 << 16; i++) {
    const unsigned wanted = f8_code((long double)f8_value(a[i]) + f8_value(b[i]));
    if (codes[i] != wanted) WRONG("%02x + %02x: %02x, expected %02x", a[i], b[i], codes[i], wanted);
  }
  ends("add of f8_e4m3fn is computed in f32 and rounded once: all pairs");
}

/* ---- Typing ---- */

static const struct {
  DLDataType a, b, both;
} PROMOTED[] = {
    {{10, 8, 1}, {10, 8, 1}, {10, 8, 1}},    {{10, 8, 1}, {2, 16, 1}, {2, 16, 1}},   {{10, 8, 1}, {4, 16, 1}, {4, 16, 1}},
    {{10, 8, 1}, {2, 32, 1}, {2, 32, 1}},    {{10, 8, 1}, {2, 64, 1}, {2, 64, 1}},   {{10, 8, 1}, {0, 32, 1}, {10, 8, 1}},
    {{10, 8, 1}, {6, 8, 1}, {10, 8, 1}},     {{10, 8, 1}, {5, 128, 1}, {5, 128, 1}}, {{5, 128, 1}, {2, 64, 1}, {5, 128, 1}},
    {{5, 128, 1}, {2, 16, 1}, {5, 128, 1}},  {{5, 128, 1}, {0, 64, 1}, {5, 128, 1}}, {{5, 128, 1}, {6, 8, 1}, {5, 128, 1}},
    {{5, 128, 1}, {5, 128, 1}, {5, 128, 1}}, {{1, 8, 1}, {10, 8, 1}, {10, 8, 1}}};

static int is_same(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

static void infer(Q(op) * op, const char *name) {
  for (size_t k = 0; k < 2 * sizeof PROMOTED / sizeof PROMOTED[0]; k++) {
    const DLDataType a = k % 2 ? PROMOTED[k / 2].b : PROMOTED[k / 2].a, b = k % 2 ? PROMOTED[k / 2].a : PROMOTED[k / 2].b;
    DLTensor condition = tensor(NULL, BOOL, 0, NULL, NULL), x = tensor(NULL, a, 0, NULL, NULL),
             y = tensor(NULL, b, 0, NULL, NULL);
    DLTensor *in[3] = {&condition, &x, &y};
    Q(shape) shape = {.size = sizeof shape};
    if (Q(op_infer)(op, 3, in, 1, &shape))
      WRONG("%s: %s", name, Q(last_error)());
    else if (!is_same(shape.dtype, PROMOTED[k / 2].both))
      WRONG("%s of (%d, %d) and (%d, %d): (%d, %d)", name, a.code, a.bits, b.code, b.bits, shape.dtype.code, shape.dtype.bits);
  }
}

static void test_promotion(void) {
  Q(op) * op;
  if (Q(op_find)(NULL, "where", &op))
    WRONG("%s", Q(last_error)());
  else
    infer(op, "where");
  Q(op_release)(op);
  ends("promotion");
}

#if !defined(OF_TREE)
static quern_op *compiled(const char *text) {
  quern_op *op = NULL;
  if (quern_op_compile(NULL, text, &op)) WRONG("%s: %s", text, quern_last_error());
  return op;
}

static quern_status run(const char *text, int n_in, DLTensor *a, DLTensor *b, DLTensor *c, DLTensor *out) {
  DLTensor *in[3] = {a, b, c};
  quern_op *op = compiled(text);
  quern_status status = quern_op_call(op, n_in, in, 1, &out, NULL);
  quern_op_release(op);
  return status;
}

/* Expressions, interpreted. */
static void test_expressions(void) {
  int64_t n = 3000, one = 1;
  quern_op *choice = compiled("c ? a : b");
  infer(choice, "c ? a : b"); /* what Python asks */
  quern_op_release(choice);
  ends("promotion in expressions: names of dtypes have any length");

  float *const x = (float *)(void *)memory[0];
  uint8_t *const narrow = (uint8_t *)memory[1];
  double *const complexes = (double *)(void *)memory[3];
  for (int64_t i = 0; i < n; i++) x[i] = (float)(i - n / 2) / 3;
  DLTensor in = tensor(x, F32, 1, &n, NULL), f8 = tensor(narrow, F8, 1, &n, NULL), wide = tensor(complexes, COMPLEX, 1, &n, NULL);
  if (run("(f8_e4m3fn)x", 1, &in, NULL, NULL, &f8)) WRONG("%s", quern_last_error());
  for (int64_t i = 0; i < n; i++)
    if (narrow[i] != f8_code(x[i])) WRONG("(f8_e4m3fn)%a: %02x", x[i], narrow[i]);
  if (run("(f8_e4m3fn)x * (f8_e4m3fn)x + 1", 1, &in, NULL, NULL, &f8)) WRONG("%s", quern_last_error());
  for (int64_t i = 0; i < n; i++) { /* the square and the sum are exact in f32 */
    const double y = f8_value(f8_code(x[i]));
    if (narrow[i] != f8_code(y * y + 1)) WRONG("y * y + 1 of %a: %02x", x[i], narrow[i]);
  }
  if (run("(complex128)x", 1, &in, NULL, NULL, &wide)) WRONG("%s", quern_last_error());
  for (int64_t i = 0; i < n; i++)
    if (complexes[2 * i] != x[i] || complexes[2 * i + 1] != 0) WRONG("(complex128)%a: %a", x[i], complexes[2 * i]);
  fill_random(memory[2], 16 * n);
  DLTensor other = tensor(memory[2], COMPLEX, 1, &n, NULL), single = tensor(memory[2] + 16, COMPLEX, 1, &one, NULL);
  DLTensor out = tensor(memory[1], COMPLEX, 1, &n, NULL);
  for (int form = 0; form < 2; form++) { /* of all elements, and of one for all of them */
    if (run("x > 0 ? a : x", 2, &in, form ? &single : &other, NULL, &out)) WRONG("%s", quern_last_error());
    for (int64_t i = 0; i < n; i++) {
      const double number[2] = {x[i], 0};
      const char *wanted = x[i] > 0 ? memory[2] + (form ? 16 : 16 * i) : (const char *)number;
      if (memcmp(memory[1] + 16 * i, wanted, 16)) WRONG("choice %lld", (long long)i);
    }
  }
  ends("expressions with both, interpreted");

  static const struct {
    const char *text, *words;
  } rows[] = {{"a + a", "no kernel for add of complex128"},
              {"(f32)a", "no kernel for cast of complex128"},
              {"a == a", "no kernel for eq of complex128"},
              {"a > 0 ? a : 1.5", "a number where complex128 is expected"},
              {"param p; a == p", "a parameter where complex128 is expected"},
              {"(complex64)a", "complex64"},
              {"less(a, a)", "less does not take complex128"}};
  for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
    quern_op *op = NULL;
    DLTensor *ins[1] = {&other}, *outs[1] = {&out};
    quern_status status = quern_op_compile(NULL, rows[k].text, &op);
    if (!status) status = quern_op_call(op, 1, ins, 1, outs, NULL);
    if (!status)
      WRONG("'%s' is not refused", rows[k].text);
    else if (!strstr(quern_last_error(), rows[k].words))
      WRONG("'%s': %s", rows[k].text, quern_last_error());
    if (op) quern_op_release(op);
  }
  ends("what is not there for complex128 is refused by name");
}

/* What runs an expression, where expressions are compiled: dtypes that the generator has are, those in preview are interpreted. The
 * reason names the dtype. */
static void test_tiers(void) {
  static const struct {
    const char *text;
    DLDataType in, out;
    const char *tier, *reason;
  } rows[] = {{"x * x + 1", {2, 32, 1}, {2, 32, 1}, "tier: clang", "compiled by clang"},
              {"x * x + 1", {10, 8, 1}, {10, 8, 1}, "tier: interpreter", "unknown dtype 'f8_e4m3fn'"},
              {"(f8_e4m3fn)(x + 1)", {2, 32, 1}, {10, 8, 1}, "tier: interpreter", "unknown dtype 'f8_e4m3fn'"},
              {"x + 1", {10, 8, 1}, {2, 32, 1}, "tier: interpreter", "unknown dtype 'f8_e4m3fn'"},
              {"(complex128)x", {2, 32, 1}, {5, 128, 1}, "tier: interpreter", "unknown dtype 'complex128'"}};
  int64_t n = 3000;
  for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
    char text[4096];
    DLTensor x = tensor(memory[0], rows[k].in, 1, &n, NULL), out = tensor(memory[1], rows[k].out, 1, &n, NULL);
    DLTensor *ins[1] = {&x}, *outs[1] = {&out};
    quern_op *op = compiled(rows[k].text);
    if (quern_op_call(op, 1, ins, 1, outs, NULL) || quern_op_explain(op, 1, ins, 1, outs, NULL, text, sizeof text))
      WRONG("%s: %s", rows[k].text, quern_last_error());
    else if (!strstr(text, rows[k].tier) || !strstr(text, rows[k].reason))
      WRONG("%s, wanted %s, %s: %s", rows[k].text, rows[k].tier, rows[k].reason, text);
    quern_op_release(op);
  }
  ends("compiled where the generator knows the dtypes, else interpreted, and explain says why");
}
#endif

int main(int argc, char **argv) {
  table = argc > 1 ? fopen(argv[1], "wb") : NULL;
  for (int k = 0; k < 4; k++) {
    memory[k] = malloc((size_t)ROOM * 16 + 64);
    if (!memory[k]) return 1;
    fill_random(memory[k], (int64_t)ROOM * 16);
  }
  test_casts();
  if (table) fclose(table);
  table = NULL;
  test_complex_casts();
  test_copy(COMPLEX, "complex128");
  test_copy(F8, "f8_e4m3fn");
  test_cast_layouts();
  test_where();
  test_modes();
  test_full();
  test_found();
  test_add();
  test_promotion();
#if !defined(OF_TREE)
  test_expressions();
  if (getenv("T297_COMPILES")) test_tiers();
#endif
  printf("1..%d\n", n_test);
  for (int k = 0; k < 4; k++) free(memory[k]);
  return 0;
}
