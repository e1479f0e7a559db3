/* SPDX-License-Identifier: Apache-2.0
 *
 * reduction_law.c: see reduction_law.h. */
#include "reduction_law.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "the law needs IEEE arithmetic"
#endif

/* ---- The order --------------------------------------------------------------------------------------------------
 * One axis: lane l of 16 has the elements k with k % 16 == l; 16 successive elements of a lane are a run, combined from left to
 * right; the runs of a lane are the leaves of an aligned binary tree; the 16 lanes are combined last.
 * Several axes: the last ones, until they have 256 elements together, count as one axis. Each axis before them is an aligned
 * binary tree over its index, for each lane by itself. */

enum { LANES = 16, RUN = 16, JOINED = 256 };

typedef struct lanes {
  law_value x[LANES];
  int n; /* lanes 0 to n - 1 have elements */
} lanes;

typedef struct order {
  law_combine combine;
  int n_outer;            /* axes before the joined ones */
  const int64_t *extents; /* of those */
  int64_t n;              /* elements of the joined axes together */
} order;

/* Elements from one run of a lane to its next, */
enum { CHUNK = LANES * RUN };

/* A run that has an element at least. */
static law_value combine_run(const order *o, const law_value *x, int64_t lane, int64_t run) {
  int64_t k = run * CHUNK + lane;
  law_value total = x[k];
  for (int i = 1; i < RUN && k + LANES < o->n; i++) {
    k += LANES;
    total = o->combine(total, x[k]);
  }
  return total;
}

/* Node (m, i) of a lane: runs [i 2^m, (i + 1) 2^m), of which there is the first. */
static law_value combine_runs(const order *o, const law_value *x, int64_t lane, int m, int64_t i) {
  if (m == 0) return combine_run(o, x, lane, i);
  const law_value left = combine_runs(o, x, lane, m - 1, 2 * i);
  const int64_t first_on_the_right = (2 * i + 1) << (m - 1);
  if (first_on_the_right * CHUNK + lane >= o->n) return left;
  return o->combine(left, combine_runs(o, x, lane, m - 1, 2 * i + 1));
}

/* The least m for which 2^m is at least n. */
static int levels(int64_t n) {
  int m = 0;
  while ((int64_t)1 << m < n) m++;
  return m;
}

static lanes combine_joined(const order *o, const law_value *x) {
  lanes result;
  result.n = o->n < LANES ? (int)o->n : LANES;
  for (int lane = 0; lane < result.n; lane++) result.x[lane] = combine_runs(o, x, lane, levels((o->n + CHUNK - 1) / CHUNK), 0);
  return result;
}

static lanes combine_axes(const order *o, int axis, const law_value *x);

/* Node (m, i) of an axis: its indices [i 2^m, (i + 1) 2^m), of which there is the first. x: the axis's index 0. */
static lanes combine_indices(const order *o, int axis, const law_value *x, int m, int64_t i) {
  if (m == 0) {
    int64_t step = o->n;
    for (int a = axis + 1; a < o->n_outer; a++) step *= o->extents[a];
    return combine_axes(o, axis + 1, x + i * step);
  }
  lanes left = combine_indices(o, axis, x, m - 1, 2 * i);
  if ((2 * i + 1) << (m - 1) >= o->extents[axis]) return left;
  const lanes right = combine_indices(o, axis, x, m - 1, 2 * i + 1);
  for (int lane = 0; lane < left.n; lane++) left.x[lane] = o->combine(left.x[lane], right.x[lane]);
  return left;
}

static lanes combine_axes(const order *o, int axis, const law_value *x) {
  if (axis == o->n_outer) return combine_joined(o, x);
  return combine_indices(o, axis, x, levels(o->extents[axis]), 0);
}

int law_tree(law_combine combine, int n_axes, const int64_t *extents, const law_value *x, law_value *total) {
  order o = {combine, n_axes, extents, 1};
  for (int a = 0; a < n_axes; a++)
    if (extents[a] == 0) return 0;
  while (o.n_outer > 0 && o.n < JOINED) o.n *= extents[--o.n_outer];
  lanes result = combine_axes(&o, 0, x);
  for (int half = LANES / 2; half >= 1; half /= 2)
    for (int lane = 0; lane < half; lane++)
      if (lane + half < result.n) result.x[lane] = combine(result.x[lane], result.x[lane + half]);
  *total = result.x[0];
  return 1;
}

law_value law_add_f32(law_value a, law_value b) { return (law_value){.f32 = a.f32 + b.f32}; }
law_value law_add_f64(law_value a, law_value b) { return (law_value){.f64 = a.f64 + b.f64}; }
law_value law_add_u64(law_value a, law_value b) { return (law_value){.u64 = a.u64 + b.u64}; }
law_value law_mul_f32(law_value a, law_value b) { return (law_value){.f32 = a.f32 * b.f32}; }
law_value law_mul_f64(law_value a, law_value b) { return (law_value){.f64 = a.f64 * b.f64}; }
law_value law_mul_u64(law_value a, law_value b) { return (law_value){.u64 = a.u64 * b.u64}; }

/* ---- Dtypes ----------------------------------------------------------------------------------------------------- */

static const char *const names[LAW_N_OPS] = {
    "sum", "prod", "mean", "max", "min", "any", "all", "count_nonzero", "argmax", "argmin", "logsumexp", "var", "std", "ptp", "nansum",
    "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanargmax", "nanargmin", "reduce_l1", "reduce_l2",
    "reduce_sum_square", "reduce_log_sum", "sum_initial", "prod_initial", "max_initial", "min_initial", "argmax_last", "argmin_last", "softmax", "log_softmax", "softmin", "normalize", "rms_norm", "layer_norm"};

const char *law_name(law_op op) { return names[op]; }

int law_is_full(law_op op) { return op >= LAW_SOFTMAX; }
int law_has_correction(law_op op) { return op == LAW_VAR || op == LAW_STD || op == LAW_NANVAR || op == LAW_NANSTD; }

int law_has_initial(law_op op) { return op >= LAW_SUM_INITIAL && op <= LAW_MIN_INITIAL; }
law_op law_plain(law_op op) {
  return op == LAW_SUM_INITIAL    ? LAW_SUM
         : op == LAW_PROD_INITIAL ? LAW_PROD
         : op == LAW_MAX_INITIAL  ? LAW_MAX
         : op == LAW_MIN_INITIAL  ? LAW_MIN
         : op == LAW_ARGMAX_LAST  ? LAW_ARGMAX
         : op == LAW_ARGMIN_LAST  ? LAW_ARGMIN
                                  : op;
}
double law_default(law_op op) { return op == LAW_PROD_INITIAL; }

static int is_extreme(law_op op) {
  return op == LAW_MAX || op == LAW_MIN || op == LAW_ARGMAX || op == LAW_ARGMIN || op == LAW_PTP || op == LAW_NANMAX ||
         op == LAW_NANMIN || op == LAW_NANARGMAX || op == LAW_NANARGMIN || op == LAW_ARGMAX_LAST || op == LAW_ARGMIN_LAST;
}

static int is_unsigned(ref_dtype d) { return d >= REF_U8 && d <= REF_U64; }

ref_dtype law_result(law_op op, ref_dtype d) {
  switch (law_plain(op)) {
    case LAW_SUM:
    case LAW_PROD:
    case LAW_NANSUM:
    case LAW_NANPROD:
    case LAW_REDUCE_L1:
    case LAW_REDUCE_SUM_SQUARE:
      if (ref_dtype_kind(d) == REF_KIND_FLOAT) return d;
      return is_unsigned(d) ? REF_U64 : REF_I64;
    case LAW_MAX:
    case LAW_MIN:
    case LAW_PTP:
    case LAW_NANMAX:
    case LAW_NANMIN: return d;
    case LAW_ANY:
    case LAW_ALL: return REF_BOOL;
    case LAW_COUNT_NONZERO:
    case LAW_ARGMAX:
    case LAW_ARGMIN:
    case LAW_NANARGMAX:
    case LAW_NANARGMIN: return REF_I64;
    default: return ref_floating(d);
  }
}

int law_must_take(law_op op, ref_dtype d) {
  switch (law_plain(op)) {
    case LAW_SUM:
    case LAW_PROD:
    case LAW_MEAN:
    case LAW_ANY:
    case LAW_ALL:
    case LAW_COUNT_NONZERO:
    case LAW_NANSUM:
    case LAW_NANPROD:
    case LAW_NANMEAN:
    case LAW_REDUCE_L1:
    case LAW_REDUCE_SUM_SQUARE: return 1;
    default:
      if (is_extreme(law_plain(op))) return d != REF_BOOL;
      return ref_dtype_kind(d) == REF_KIND_FLOAT;
  }
}

/* How an element is read. */
static law_type type_of(ref_dtype d) {
  if (d == REF_F64) return LAW_F64;
  if (ref_dtype_kind(d) == REF_KIND_FLOAT) return LAW_F32;
  return is_unsigned(d) ? LAW_U64 : LAW_I64;
}

static float as_f32(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static law_value read_element(ref_dtype d, const void *at) {
  const uint64_t bits = ref_get(d, at);
  law_value x = {.u64 = bits};
  switch (d) {
    case REF_BOOL: x.u64 = bits != 0; break;
    case REF_I8: x.i64 = (int8_t)bits; break;
    case REF_I16: x.i64 = (int16_t)bits; break;
    case REF_I32: x.i64 = (int32_t)bits; break;
    case REF_F32: x.f32 = as_f32((uint32_t)bits); break;
    case REF_BF16: x.f32 = as_f32((uint32_t)bits << 16); break;
    case REF_F16: {
      const uint32_t sign = (uint32_t)(bits >> 15) << 31, e = (uint32_t)bits >> 10 & 31, f = (uint32_t)bits & 1023;
      if (e == 31) x.f32 = as_f32(sign | 0x7f800000 | f << 13);
      else if (e) x.f32 = as_f32(sign | (e + 112) << 23 | f << 13);
      else x.f32 = sign ? -(float)f * 0x1p-24f : (float)f * 0x1p-24f;
      break;
    }
    default: break; /* 64 bits, and unsigned integers, are themselves */
  }
  return x;
}

static law_value convert(law_type from, law_type to, law_value x) {
  if (from == to) return x;
  const double y = from == LAW_I64 ? (double)x.i64 : from == LAW_U64 ? (double)x.u64 : (double)x.f32;
  /* to f32: from integers of at most 16 bits */
  return to == LAW_F32 ? (law_value){.f32 = (float)y} : (law_value){.f64 = y};
}

static uint64_t store(law_type type, law_value x, ref_kind kind, ref_dtype out) {
  if (type == LAW_F32) {
    uint32_t bits;
    if (out != REF_F32 || isnan(x.f32)) return ref_cast(out, (ref_real)x.f32, kind);
    memcpy(&bits, &x.f32, sizeof bits);
    return bits;
  }
  if (type == LAW_F64) {
    if (out != REF_F64 || isnan(x.f64)) return ref_cast(out, (ref_real)x.f64, kind);
    return x.u64;
  }
  if (out == REF_I64 || out == REF_U64) return x.u64;
  return ref_cast(out, type == LAW_I64 ? (ref_real)x.i64 : (ref_real)x.u64, kind);
}

/* ---- Ops -------------------------------------------------------------------------------------------------------- */

/* A row and what is needed beside it. */
typedef struct row {
  law_op op;
  ref_dtype d;
  int n_axes;
  int64_t extents[32], n;
  double correction;
  law_map map;
  law_type type;      /* of x */
  const law_value *x; /* n elements */
  law_value *work;    /* room for n */
} row;

static law_value number(law_type type, double x) {
  return type == LAW_F32 ? (law_value){.f32 = (float)x} : (law_value){.f64 = x};
}

/* The sum of floats is never -0. */
static law_value sum_of(const row *r, law_type type, const law_value *x) {
  law_value total = {.u64 = 0};
  law_tree(type == LAW_F32 ? law_add_f32 : type == LAW_F64 ? law_add_f64 : law_add_u64, r->n_axes, r->extents, x, &total);
  if (type == LAW_F32) total.f32 = 0 + total.f32;
  if (type == LAW_F64) total.f64 = 0 + total.f64;
  return total;
}

static law_value product_of(const row *r, const law_value *x) {
  law_value total;
  const law_combine combine = r->type == LAW_F32 ? law_mul_f32 : r->type == LAW_F64 ? law_mul_f64 : law_mul_u64;
  if (law_tree(combine, r->n_axes, r->extents, x, &total)) return total;
  return r->type == LAW_F32 || r->type == LAW_F64 ? number(r->type, 1) : (law_value){.u64 = 1};
}

/* Sum / count: integers of up to 32 bits exactly, then in f64; others in what they become where a float is needed. */
static law_value mean_of(const row *r, law_type *type) {
  const int bits = 8 * ref_dtype_size(r->d);
  if (ref_dtype_kind(r->d) != REF_KIND_FLOAT && bits <= 32) {
    int64_t total = 0;
    for (int64_t k = 0; k < r->n; k++) total += r->x[k].i64;
    *type = LAW_F64;
    return number(LAW_F64, (double)total / (double)r->n);
  }
  *type = r->type == LAW_F32 ? LAW_F32 : LAW_F64;
  for (int64_t k = 0; k < r->n; k++) r->work[k] = convert(r->type, *type, r->x[k]);
  law_value total = sum_of(r, *type, r->work);
  if (*type == LAW_F32) total.f32 = total.f32 / (float)r->n;
  else total.f64 = total.f64 / (double)r->n;
  return total;
}

static int is_nan(law_type type, law_value x) { return type == LAW_F32 ? isnan(x.f32) : type == LAW_F64 ? isnan(x.f64) : 0; }

static int is_less(law_type type, law_value a, law_value b) {
  switch (type) {
    case LAW_F32: return a.f32 < b.f32;
    case LAW_F64: return a.f64 < b.f64;
    case LAW_I64: return a.i64 < b.i64;
    default: return a.u64 < b.u64;
  }
}

static int is_negative(law_type type, law_value x) {
  return type == LAW_F32 ? signbit(x.f32) != 0 : type == LAW_F64 ? signbit(x.f64) != 0 : 0;
}

/* NaN if one is NaN; -0 is less than +0. sign 1: the largest, -1: the smallest. n is at least 1. */
static law_value extreme_of(int64_t n, law_type type, const law_value *x, int sign) {
  law_value best = x[0];
  for (int64_t k = 1; k < n && !is_nan(type, best); k++) {
    const law_value low = sign > 0 ? best : x[k], high = sign > 0 ? x[k] : best;
    const int is_equal = !is_less(type, low, high) && !is_less(type, high, low) && !is_nan(type, x[k]);
    if (is_nan(type, x[k]) || is_less(type, low, high) || (is_equal && is_negative(type, low) && !is_negative(type, high)))
      best = x[k];
  }
  return best;
}

/* Where the first NaN is, else the first of the largest (smallest); -0 is +0. */
static int64_t place_of(const row *r, int sign) {
  int64_t best = 0;
  for (int64_t k = 0; k < r->n; k++)
    if (is_nan(r->type, r->x[k])) return k;
  for (int64_t k = 1; k < r->n; k++)
    if (sign > 0 ? is_less(r->type, r->x[best], r->x[k]) : is_less(r->type, r->x[k], r->x[best])) best = k;
  return best;
}

/* The same from the other end. */
static int64_t last_place_of(const row *r, int sign) {
  int64_t best = r->n - 1;
  for (int64_t k = r->n - 1; k >= 0; k--)
    if (is_nan(r->type, r->x[k])) return k;
  for (int64_t k = r->n - 2; k >= 0; k--)
    if (sign > 0 ? is_less(r->type, r->x[best], r->x[k]) : is_less(r->type, r->x[k], r->x[best])) best = k;
  return best;
}

static int64_t count_of(const row *r) {
  int64_t count = 0;
  for (int64_t k = 0; k < r->n; k++) {
    const law_value x = r->x[k];
    count += r->type == LAW_F32 ? x.f32 != 0 : r->type == LAW_F64 ? x.f64 != 0 : x.u64 != 0; /* NaN is */
  }
  return count;
}

/* What is not NaN, at the front of work. Returns how much that is. */
static int64_t numbers_of(const row *r) {
  int64_t n = 0;
  for (int64_t k = 0; k < r->n; k++)
    if (!is_nan(r->type, r->x[k])) r->work[n++] = r->x[k];
  return n;
}

/* The extreme of what is not NaN, or NaN. */
static law_value nan_extreme_of(const row *r, int sign) {
  const int64_t n = numbers_of(r);
  return n ? extreme_of(n, r->type, r->work, sign) : r->x[0];
}

/* The first place of the largest (smallest) of what is not NaN, or -1. */
static int64_t nan_place_of(const row *r, int sign) {
  int64_t best = -1;
  for (int64_t k = 0; k < r->n; k++) {
    if (is_nan(r->type, r->x[k])) continue;
    if (best < 0 || (sign > 0 ? is_less(r->type, r->x[best], r->x[k]) : is_less(r->type, r->x[k], r->x[best]))) best = k;
  }
  return best;
}

/* x, or `instead` where it is NaN, in work. */
static const law_value *without_nan(const row *r, double instead) {
  for (int64_t k = 0; k < r->n; k++) r->work[k] = is_nan(r->type, r->x[k]) ? number(r->type, instead) : r->x[k];
  return r->work;
}

/* Integers wrap in their dtype. */
static law_value range_of(const row *r) {
  const law_value high = extreme_of(r->n, r->type, r->x, 1), low = extreme_of(r->n, r->type, r->x, -1);
  const int unused = 64 - 8 * ref_dtype_size(r->d);
  law_value y = {.u64 = high.u64 - low.u64};
  if (r->type == LAW_F32) return (law_value){.f32 = high.f32 - low.f32};
  if (r->type == LAW_F64) return (law_value){.f64 = high.f64 - low.f64};
  y.u64 <<= unused;
  if (r->type == LAW_I64) y.i64 /= (int64_t)1 << unused;
  else y.u64 >>= unused;
  return y;
}

static law_value magnitude_of(law_type type, law_value x) {
  if (type == LAW_F32) return (law_value){.f32 = fabsf(x.f32)};
  if (type == LAW_F64) return (law_value){.f64 = fabs(x.f64)};
  return type == LAW_I64 && x.i64 < 0 ? (law_value){.u64 = 0 - x.u64} : x;
}

/* Bodies of rows, in T: f32 or f64. */

static law_value subtract(law_type T, law_value a, law_value b) {
  return T == LAW_F32 ? (law_value){.f32 = a.f32 - b.f32} : (law_value){.f64 = a.f64 - b.f64};
}

static law_value multiply(law_type T, law_value a, law_value b) { return T == LAW_F32 ? law_mul_f32(a, b) : law_mul_f64(a, b); }

static law_value divide(law_type T, law_value a, law_value b) {
  return T == LAW_F32 ? (law_value){.f32 = a.f32 / b.f32} : (law_value){.f64 = a.f64 / b.f64};
}

static int is_finite(law_type T, law_value x) { return T == LAW_F32 ? isfinite(x.f32) != 0 : isfinite(x.f64) != 0; }

/* e = exp(x - max(x)); r = 1 / sum(e); e * r */
static void softmax(const row *r, law_type T, law_value *y) {
  const law_value m = extreme_of(r->n, T, r->work, 1);
  for (int64_t k = 0; k < r->n; k++) r->work[k] = subtract(T, r->work[k], m);
  r->map("exp", T, r->n, r->work, y);
  const law_value reciprocal = divide(T, number(T, 1), sum_of(r, T, y));
  for (int64_t k = 0; k < r->n; k++) y[k] = multiply(T, y[k], reciprocal);
}

/* d = x - max(x); d - log(sum(exp(d))) */
static void log_softmax(const row *r, law_type T, law_value *y) {
  const law_value m = extreme_of(r->n, T, r->work, 1);
  law_value total, logarithm;
  for (int64_t k = 0; k < r->n; k++) r->work[k] = subtract(T, r->work[k], m);
  r->map("exp", T, r->n, r->work, y);
  total = sum_of(r, T, y);
  r->map("log", T, 1, &total, &logarithm);
  for (int64_t k = 0; k < r->n; k++) y[k] = subtract(T, r->work[k], logarithm);
}

/* m = max(x); s = abs(m) < INFINITY ? m : 0; log(sum(exp(x - s))) + s; of nothing -INFINITY */
static law_value logsumexp(const row *r, law_type T) {
  if (r->n == 0) return number(T, -INFINITY);
  const law_value m = extreme_of(r->n, T, r->work, 1), s = is_finite(T, m) ? m : number(T, 0);
  law_value total, logarithm;
  for (int64_t k = 0; k < r->n; k++) r->work[k] = subtract(T, r->work[k], s);
  r->map("exp", T, r->n, r->work, r->work);
  total = sum_of(r, T, r->work);
  r->map("log", T, 1, &total, &logarithm);
  return T == LAW_F32 ? law_add_f32(logarithm, s) : law_add_f64(logarithm, s);
}

/* The Euclidean norm of work, in f64: of f32 as it is; of f64 scaled by the exponent of the largest, within the normal numbers. */
static double norm_of(const row *r, law_type T) {
  double unit = 1;
  law_value *x = calloc((size_t)r->n + 1, sizeof *x), most = number(LAW_F64, 0);
  for (int64_t k = 0; k < r->n; k++) x[k] = convert(T, LAW_F64, magnitude_of(T, r->work[k]));
  if (r->n) most = extreme_of(r->n, LAW_F64, x, 1);
  if (T == LAW_F64 && most.f64 > 0 && isfinite(most.f64)) {
    const int e = ilogb(most.f64);
    unit = ldexp(1, e < -1022 ? -1022 : e > 1022 ? 1022 : e);
  }
  for (int64_t k = 0; k < r->n; k++) x[k].f64 = x[k].f64 / unit * (x[k].f64 / unit);
  const double total = sum_of(r, LAW_F64, x).f64;
  free(x);
  if (T == LAW_F64 && !(most.f64 > 0 && isfinite(most.f64))) return most.f64;
  return sqrt(total) * unit;
}

/* x / maximum(norm, eps) */
static void normalize(const row *r, law_type T, law_value *y) {
  const law_value norm = number(T, norm_of(r, T)), eps = number(T, 1e-12);
  for (int64_t k = 0; k < r->n; k++) y[k] = divide(T, r->work[k], is_less(T, norm, eps) ? eps : norm);
}

static law_value root(law_type T, law_value x) {
  return T == LAW_F32 ? (law_value){.f32 = sqrtf(x.f32)} : (law_value){.f64 = sqrt(x.f64)};
}

/* r = 1 / sqrt(mean(d * d) + 1e-5); d * r; d: x, less its mean if is_centred */
static void norm_layer(const row *r, law_type T, law_value *y, int is_centred) {
  const law_value count = number(T, (double)r->n);
  if (is_centred) {
    const law_value mean = divide(T, sum_of(r, T, r->work), count);
    for (int64_t k = 0; k < r->n; k++) r->work[k] = subtract(T, r->work[k], mean);
  }
  for (int64_t k = 0; k < r->n; k++) y[k] = multiply(T, r->work[k], r->work[k]);
  const law_value square = divide(T, sum_of(r, T, y), count), eps = number(T, 1e-5);
  const law_value reciprocal =
      divide(T, number(T, 1), root(T, T == LAW_F32 ? law_add_f32(square, eps) : law_add_f64(square, eps)));
  for (int64_t k = 0; k < r->n; k++) y[k] = multiply(T, r->work[k], reciprocal);
}

/* The sum of squares in T, or of integers; of magnitudes if !is_square. */
static law_value power_sum(const row *r, int is_square) {
  for (int64_t k = 0; k < r->n; k++) {
    const law_value x = magnitude_of(r->type, r->x[k]);
    r->work[k] = !is_square ? x : r->type == LAW_F32 || r->type == LAW_F64 ? multiply(r->type, x, x) : law_mul_u64(x, x);
  }
  return sum_of(r, r->type, r->work);
}

/* n = the number of elements that are no NaN; d = x - sum / n, or 0; sum(d * d) / (n - correction), NaN if that is not above 0 */
static law_value nan_variance(const row *r, law_type T) {
  row of_numbers = *r;
  law_value *x = malloc((size_t)(r->n + 1) * sizeof *x);
  int64_t n = 0;
  of_numbers.type = T;
  of_numbers.x = x;
  for (int64_t k = 0; k < r->n; k++) n += !is_nan(T, x[k] = r->work[k]);
  const law_value count = number(T, (double)n), mean = divide(T, sum_of(r, T, without_nan(&of_numbers, 0)), count);
  const law_value left = subtract(T, count, number(T, r->correction));
  for (int64_t k = 0; k < r->n; k++) {
    const law_value d = is_nan(T, x[k]) ? number(T, 0) : subtract(T, x[k], mean);
    r->work[k] = multiply(T, d, d);
  }
  free(x);
  return is_less(T, number(T, 0), left) ? divide(T, sum_of(r, T, r->work), left) : number(T, NAN);
}

/* d = x - mean(x); sum(d * d) / (count - correction), NaN if that is not above 0 */
static law_value variance(const row *r, law_type T) {
  const law_value count = number(T, (double)r->n), mean = divide(T, sum_of(r, T, r->work), count);
  for (int64_t k = 0; k < r->n; k++) {
    const law_value d = subtract(T, r->work[k], mean);
    r->work[k] = multiply(T, d, d);
  }
  const law_value left = subtract(T, count, number(T, r->correction));
  return is_less(T, number(T, 0), left) ? divide(T, sum_of(r, T, r->work), left) : number(T, NAN);
}

/* The result of the elements, combined with initial. */
static law_value with_initial(const row *r) {
  const int is_float = r->type == LAW_F32 || r->type == LAW_F64;
  const law_value initial = is_float ? number(r->type, r->correction) : (law_value){.i64 = (int64_t)r->correction};
  law_value two[2] = {initial, initial};
  switch (r->op) {
    case LAW_SUM_INITIAL: return (r->type == LAW_F32 ? law_add_f32 : r->type == LAW_F64 ? law_add_f64 : law_add_u64)(sum_of(r, r->type, r->x), initial);
    case LAW_PROD_INITIAL: return (r->type == LAW_F32 ? law_mul_f32 : r->type == LAW_F64 ? law_mul_f64 : law_mul_u64)(product_of(r, r->x), initial);
    default:
      if (r->n) two[0] = extreme_of(r->n, r->type, r->x, r->op == LAW_MAX_INITIAL ? 1 : -1);
      return extreme_of(2, r->type, two, r->op == LAW_MAX_INITIAL ? 1 : -1);
  }
}

/* The row's result, or its n results: y, of type *type. */
static void eval_row(const row *r, law_value *y, law_type *type) {
  *type = LAW_I64;
  switch (r->op) {
    case LAW_SUM: *type = r->type, *y = sum_of(r, r->type, r->x); return;
    case LAW_PROD: *type = r->type, *y = product_of(r, r->x); return;
    case LAW_MEAN: *y = mean_of(r, type); return;
    case LAW_MAX: *type = r->type, *y = extreme_of(r->n, r->type, r->x, 1); return;
    case LAW_MIN: *type = r->type, *y = extreme_of(r->n, r->type, r->x, -1); return;
    case LAW_ANY: y->i64 = count_of(r) > 0; return;
    case LAW_ALL: y->i64 = count_of(r) == r->n; return;
    case LAW_COUNT_NONZERO: y->i64 = count_of(r); return;
    case LAW_ARGMAX: y->i64 = place_of(r, 1); return;
    case LAW_ARGMIN: y->i64 = place_of(r, -1); return;
    case LAW_ARGMAX_LAST: y->i64 = last_place_of(r, 1); return;
    case LAW_ARGMIN_LAST: y->i64 = last_place_of(r, -1); return;
    case LAW_PTP: *type = r->type, *y = range_of(r); return;
    case LAW_NANSUM: *type = r->type, *y = sum_of(r, r->type, without_nan(r, 0)); return;
    case LAW_NANPROD: *type = r->type, *y = product_of(r, without_nan(r, 1)); return;
    case LAW_NANMAX: *type = r->type, *y = nan_extreme_of(r, 1); return;
    case LAW_NANMIN: *type = r->type, *y = nan_extreme_of(r, -1); return;
    case LAW_NANARGMAX: y->i64 = nan_place_of(r, 1); return;
    case LAW_NANARGMIN: y->i64 = nan_place_of(r, -1); return;
    case LAW_REDUCE_L1: *type = r->type, *y = power_sum(r, 0); return;
    case LAW_REDUCE_SUM_SQUARE: *type = r->type, *y = power_sum(r, 1); return;
    case LAW_NANMEAN:
      if (r->type != LAW_F32 && r->type != LAW_F64) {
        *y = mean_of(r, type);
        return;
      }
      *type = r->type;
      *y = divide(*type, sum_of(r, *type, without_nan(r, 0)), number(*type, (double)numbers_of(r)));
      return;
    case LAW_SUM_INITIAL:
    case LAW_PROD_INITIAL:
    case LAW_MAX_INITIAL:
    case LAW_MIN_INITIAL: *type = r->type, *y = with_initial(r); return;
    default: break;
  }
  const law_type T = type_of(ref_floating(r->d));
  *type = T;
  for (int64_t k = 0; k < r->n; k++) r->work[k] = convert(r->type, T, r->x[k]);
  switch (r->op) {
    case LAW_LOGSUMEXP: *y = logsumexp(r, T); return;
    case LAW_SOFTMAX: softmax(r, T, y); return;
    case LAW_LOG_SOFTMAX: log_softmax(r, T, y); return;
    case LAW_SOFTMIN:
      for (int64_t k = 0; k < r->n; k++) r->work[k] = T == LAW_F32 ? (law_value){.f32 = -r->work[k].f32} : (law_value){.f64 = -r->work[k].f64};
      softmax(r, T, y);
      return;
    case LAW_NORMALIZE: normalize(r, T, y); return;
    case LAW_RMS_NORM: norm_layer(r, T, y, 0); return;
    case LAW_LAYER_NORM: norm_layer(r, T, y, 1); return;
    case LAW_REDUCE_L2: *type = LAW_F64, *y = number(LAW_F64, norm_of(r, T)); return;
    case LAW_REDUCE_LOG_SUM: {
      const law_value total = sum_of(r, T, r->work);
      if (r->n == 0) *y = number(T, -INFINITY);
      else r->map("log", T, 1, &total, y);
      return;
    }
    default: break;
  }
  *y = r->op == LAW_VAR || r->op == LAW_STD ? variance(r, T) : nan_variance(r, T);
  if (r->op == LAW_STD || r->op == LAW_NANSTD) *y = root(T, *y);
}

/* ---- Tensors ---------------------------------------------------------------------------------------------------- */

int law_is_refused(law_op op, const DLTensor *in, uint64_t axes) {
  int64_t n = 1, n_results = 1;
  for (int k = 0; k < in->ndim; k++) *(axes >> k & 1 ? &n : &n_results) *= in->shape[k];
  return is_extreme(op) && n == 0 && n_results > 0;
}

uint64_t *law_eval(law_op op, const DLTensor *in, uint64_t axes, double correction, ref_dtype out, law_map map, int64_t *count) {
  row r = {.op = op, .d = ref_dtype_of(in->dtype), .n = 1, .correction = correction, .map = map};
  int64_t kept[32], index[32] = {0}, n_rows = 1;
  int reduced_axis[32], kept_axis[32], n_kept = 0;
  r.type = type_of(r.d);
  for (int k = 0; k < in->ndim; k++)
    if (axes >> k & 1) {
      reduced_axis[r.n_axes] = k;
      r.extents[r.n_axes++] = in->shape[k];
      r.n *= in->shape[k];
    } else {
      kept_axis[n_kept] = k;
      kept[n_kept++] = in->shape[k];
      n_rows *= in->shape[k];
    }
  const int is_full = law_is_full(op);
  const ref_kind kind = ref_dtype_kind(law_result(op, r.d));
  *count = is_full ? n_rows * r.n : n_rows;
  uint64_t *result = malloc((size_t)(*count + 1) * sizeof *result);
  if (*count == 0) return result;
  law_value *x = malloc((size_t)(r.n + 1) * sizeof *x), *y = malloc((size_t)(is_full ? r.n : 1) * sizeof *y);
  r.x = x;
  r.work = malloc((size_t)(r.n + 1) * sizeof *r.work);
  int64_t kept_index[32] = {0}, at[32] = {0};
  /* Elements along the last reduced axis, and bytes from one to the next. */
  int64_t along = 1, step = 0;
  if (r.n_axes) {
    along = r.extents[r.n_axes - 1];
    index[reduced_axis[r.n_axes - 1]] = along > 1;
    step = ref_address(in, index) - (char *)in->data - (int64_t)in->byte_offset;
    index[reduced_axis[r.n_axes - 1]] = 0;
  }
  for (int64_t i = 0; i < n_rows; i++, ref_next_index(n_kept, kept, kept_index)) {
    for (int k = 0; k < n_kept; k++) index[kept_axis[k]] = kept_index[k];
    for (int64_t k = 0; k < r.n; k += along, ref_next_index(r.n_axes - 1, r.extents, at)) {
      for (int a = 0; a < r.n_axes; a++) index[reduced_axis[a]] = at[a];
      const char *from = ref_address(in, index);
      for (int64_t l = 0; l < along; l++) x[k + l] = read_element(r.d, from + l * step);
    }
    law_type type;
    eval_row(&r, y, &type);
    if (!is_full) result[i] = store(type, y[0], kind, out);
    for (int64_t k = 0; is_full && k < r.n; k++, ref_next_index(r.n_axes, r.extents, at)) {
      int64_t place = 0; /* in row-major order of all axes */
      for (int a = 0; a < r.n_axes; a++) index[reduced_axis[a]] = at[a];
      for (int a = 0; a < in->ndim; a++) place = place * in->shape[a] + index[a];
      result[place] = store(type, y[k], kind, out);
    }
  }
  free(x);
  free(y);
  free(r.work);
  return result;
}
