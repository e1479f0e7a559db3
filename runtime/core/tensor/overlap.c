/* SPDX-License-Identifier: Apache-2.0
 *
 * overlap.c: the aliasing law (see qn_tensor_check_overlap in tensor.h): may two operands of a nest, or an output with
 * itself, touch one byte? Knows addresses, extents and strides only.
 *
 * Most pairs lie apart, or are the same. The rest is one question: is there an integer x with 0 <= x[k] <= most[k] and
 * low <= a[0] x[0] + ... <= high, all a[k] > 0? It is answered exactly by a search, largest coefficient first: what the
 * terms to come can reach bounds each x[k] from both sides, and their greatest common divisor leaves one residue of it.
 * The search has a bound of work, since the question is NP-hard in general. */
#include <string.h>

#include "core/tensor/tensor.h"

#define MAX_TERMS (2 * QUERN_MAX_NDIM)
#define MAX_STEPS 10000 /* at most some 300 us */

typedef struct term {
  int64_t a, most; /* coefficient; 0 <= x <= most */
} term;

typedef struct search {
  int32_t n;
  int32_t steps;             /* steps left */
  term terms[MAX_TERMS];     /* largest coefficient first */
  int64_t reach[MAX_TERMS];  /* the largest sum of the terms from this one on */
  int64_t gcd[MAX_TERMS];    /* their greatest common divisor */
  int64_t period[MAX_TERMS]; /* x must be (sum / gcd) * inverse modulo this */
  int64_t inverse[MAX_TERMS];
} search;

static int64_t gcd_of(int64_t a, int64_t b) {
  while (b) {
    const int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

/* a * b modulo m, for 0 <= a, b < m <= 2^62. */
static int64_t multiply_modulo(int64_t a, int64_t b, int64_t m) {
  if (m <= (int64_t)1 << 31) return a * b % m;
  int64_t sum = 0;
  for (; b; b >>= 1) {
    if (b & 1) sum = sum >= m - a ? sum - (m - a) : sum + a;
    a = a >= m - a ? a - (m - a) : a + a;
  }
  return sum;
}

/* The inverse of a modulo m; they are coprime. */
static int64_t invert_modulo(int64_t a, int64_t m) {
  int64_t r0 = m, r1 = a % m, t0 = 0, t1 = 1; /* r = t * a modulo m; |t| <= m */
  while (r1) {
    const int64_t q = r0 / r1, r = r0 - q * r1, t = t0 - q * t1;
    r0 = r1, r1 = r;
    t0 = t1, t1 = t;
  }
  return t0 < 0 ? t0 + m : t0 % m;
}

/* Can the terms from k on make `sum`? It is in [0, reach[k]] and a multiple of gcd[k]. */
static qn_overlap solve_from(search *s, int32_t k, int64_t sum) {
  const int64_t a = s->terms[k].a, most = s->terms[k].most;
  if (k == s->n - 1) return QN_OVERLAP_YES; /* sum / a is whole, and at most `most` */
  const int64_t rest = s->reach[k + 1], period = s->period[k];
  const int64_t first = sum <= rest ? 0 : (sum - rest + a - 1) / a, last = sum / a < most ? sum / a : most;
  if (first > last) return QN_OVERLAP_NO;
  const int64_t residue = period == 1 ? 0 : multiply_modulo(sum / s->gcd[k] % period, s->inverse[k], period);
  int64_t x = first - first % period + residue;
  if (x < first) x += period;
  for (; x <= last; x += period) {
    if (--s->steps < 0) return QN_OVERLAP_UNKNOWN;
    const qn_overlap found = solve_from(s, k + 1, sum - a * x);
    if (found != QN_OVERLAP_NO) return found;
  }
  return QN_OVERLAP_NO;
}

/* The question above. Terms may come in any order, with equal or no coefficients; all sums are at most 2^62. */
static qn_overlap solve(search *s, int32_t n_terms, const term *terms, int64_t low, int64_t high, int32_t *steps) {
  s->n = 0;
  for (int32_t i = 0; i < n_terms; i++) {
    int32_t at = 0;
    if (terms[i].a == 0 || terms[i].most == 0) continue;
    while (at < s->n && s->terms[at].a > terms[i].a) at++;
    if (at < s->n && s->terms[at].a == terms[i].a) {
      s->terms[at].most += terms[i].most;
      continue;
    }
    memmove(&s->terms[at + 1], &s->terms[at], (size_t)(s->n - at) * sizeof(term));
    s->terms[at] = terms[i];
    s->n++;
  }
  if (s->n == 0) return low <= 0 && 0 <= high ? QN_OVERLAP_YES : QN_OVERLAP_NO;
  int64_t reach = 0, gcd = 0;
  for (int32_t k = s->n - 1; k >= 0; k--) {
    const int64_t a = s->terms[k].a, below = gcd;
    gcd = gcd_of(a, gcd);
    reach += a * s->terms[k].most;
    s->reach[k] = reach;
    s->gcd[k] = gcd;
    s->period[k] = below ? below / gcd : 1;
    s->inverse[k] = s->period[k] == 1 ? 0 : invert_modulo(a / gcd % s->period[k], s->period[k]);
  }
  if (low < 0) low = 0;
  if (high > reach) high = reach;
  if (low > high) return QN_OVERLAP_NO;
  qn_overlap worst = QN_OVERLAP_NO;
  s->steps = *steps;
  for (int64_t sum = low + (gcd - low % gcd) % gcd; sum <= high && worst == QN_OVERLAP_NO; sum += gcd)
    worst = solve_from(s, 0, sum);
  *steps = s->steps;
  return worst;
}

/* ---- Operands ---- */

/* The bytes an operand touches lie in [low, high), counted from its handle, if it has one. */
typedef struct span {
  uintptr_t low, high;
} span;

static inline span span_of(const qn_nest *nest, int32_t k, uint8_t size) {
  const uintptr_t base = nest->has_handles ? 0 : (uintptr_t)nest->ref[k].base, first = base + (uintptr_t)nest->ref[k].offset;
  span s = {first, first + size};
  for (int32_t d = 0; d < nest->rank; d++) {
    const int64_t reach = (nest->n[d] - 1) * nest->stride[k][d];
    if (reach < 0)
      s.low += (uintptr_t)reach;
    else
      s.high += (uintptr_t)reach;
  }
  return s;
}

static inline int spans_are_apart(span a, span b) { return a.high <= b.low || b.high <= a.low; }

qn_overlap qn_tensor_meet(const qn_nest *nest_a, int32_t a, uint8_t size_a, const qn_nest *nest_b, int32_t b, uint8_t size_b) {
  const span span_a = span_of(nest_a, a, size_a), span_b = span_of(nest_b, b, size_b);
  if (spans_are_apart(span_a, span_b)) return QN_OVERLAP_NO;
  if (nest_a->has_handles && nest_a->ref[a].base != nest_b->ref[b].base) return QN_OVERLAP_NO;
  term terms[MAX_TERMS];
  search s;
  int32_t n = 0, steps = MAX_STEPS;
  /* An item of a is at span_a.low + (sum over a), an item of b at span_b.high - size_b - (sum over b); they meet when
   * the first less the second is above -size_a and below size_b. */
  for (int32_t d = 0; d < nest_a->rank; d++) terms[n++] = (term){qn_tensor_magnitude(nest_a->stride[a][d]), nest_a->n[d] - 1};
  for (int32_t d = 0; d < nest_b->rank; d++) terms[n++] = (term){qn_tensor_magnitude(nest_b->stride[b][d]), nest_b->n[d] - 1};
  const int64_t apart = (int64_t)(span_b.high - size_b - span_a.low);
  return solve(&s, n, terms, apart - (size_a - 1), apart + (size_b - 1), &steps);
}

__attribute__((noinline)) static qn_overlap meets_itself(const qn_nest *nest, int32_t k, uint8_t size) {
  term dims[QUERN_MAX_NDIM], terms[MAX_TERMS];
  int32_t n = 0, steps = MAX_STEPS;
  for (int32_t d = 0; d < nest->rank; d++) {
    const term t = {qn_tensor_magnitude(nest->stride[k][d]), nest->n[d] - 1};
    if (t.a == 0 && d < nest->n_reduced) continue; /* one element for all of a row */
    int32_t at = n++;
    if (t.a < size) return QN_OVERLAP_YES; /* two neighbours; extents are 2 or more */
    for (; at > 0 && dims[at - 1].a > t.a; at--) dims[at] = dims[at - 1];
    dims[at] = t;
  }
  int64_t inner = size; /* bytes that the dimensions so far span */
  int nested = 1;
  for (int32_t d = 0; d < n; d++) {
    nested &= dims[d].a >= inner;
    inner += dims[d].a * dims[d].most;
  }
  if (nested) return QN_OVERLAP_NO;

  /* Two indices that differ, by delta: let `top` be the outermost dimension where it is not 0, and positive there.
   * With x = delta - 1 in `top` and delta + most in those inside it, all x are 0 or more. */
  search s;
  for (int32_t top = n - 1; top > 0; top--) {
    int64_t shift = -dims[top].a;
    int32_t n_terms = 0;
    terms[n_terms++] = (term){dims[top].a, dims[top].most - 1};
    for (int32_t d = 0; d < top; d++) {
      terms[n_terms++] = (term){dims[d].a, 2 * dims[d].most};
      shift += dims[d].a * dims[d].most;
    }
    const qn_overlap met = solve(&s, n_terms, terms, shift - (size - 1), shift + (size - 1), &steps);
    if (met != QN_OVERLAP_NO) return met;
  }
  return QN_OVERLAP_NO;
}

/* Whether two operands have the same address for each element. */
static int same_addresses(const qn_nest *nest, int32_t a, int32_t b) {
  if (qn_ref_address(nest->ref[a]) != qn_ref_address(nest->ref[b])) return 0;
  for (int32_t d = 0; d < nest->rank; d++)
    if (nest->stride[a][d] != nest->stride[b][d] || (d < nest->n_reduced && nest->stride[b][d] == 0)) return 0;
  return 1;
}

#define ITEM_BY_ITEM " other than item by item at the same addresses"

quern_status qn_tensor_refuse_overlap(const char *op, const quern_arg_info *args, int32_t n_in, int32_t k, int32_t other,
                                      qn_overlap met, const char *allowed) {
  char operand[QN_TENSOR_ARG_CHARS];
  const char *verb = met == QN_OVERLAP_YES ? "overlaps" : "may overlap";
  const char *tail = met == QN_OVERLAP_YES ? "" : " (strides too intricate to tell)";
  if (other == k) return qn_tensor_fail(QUERN_E_OVERLAP, op, &args[k], k - n_in, "%s itself%s", verb, tail);
  return qn_tensor_fail(QUERN_E_OVERLAP, op, &args[k], k - n_in, "%s %s%s%s", verb,
                        qn_tensor_arg_text(&args[other], other < n_in ? other : other - n_in, operand), other < n_in ? allowed : "", tail);
}

/* Checks output k against itself. */
static inline quern_status check_itself(const char *op, const quern_arg_info *args, const qn_nest *nest, int32_t n_out,
                                        const uint8_t *sizes, int32_t k) {
  if (nest->rank == 0 || (nest->rank == 1 && !nest->n_reduced && qn_tensor_magnitude(nest->stride[k][0]) >= sizes[k])) return QUERN_OK;
  const qn_overlap met = meets_itself(nest, k, sizes[k]);
  const int32_t first = nest->n_positions, n_in = nest->n_operands - n_out - first;
  return met == QN_OVERLAP_NO ? QUERN_OK : qn_tensor_refuse_overlap(op, args, n_in, k - first, k - first, met, "");
}

/* Checks output k against operand j before it, if their spans overlap. Not inlined: most calls have no such pair. */
__attribute__((noinline)) static quern_status check_pair(const char *op, const quern_arg_info *args, const qn_nest *nest,
                                                         int32_t n_out, const uint8_t *sizes, int32_t k, int32_t j) {
  const int32_t first = nest->n_positions, outputs = nest->n_operands - n_out, is_apart = nest->apart >> (k - outputs) & 1;
  if (sizes[j] == 0 || sizes[k] == 0) return QUERN_OK; /* without elements */
  if (j < outputs && !is_apart && sizes[j] == sizes[k] && same_addresses(nest, j, k)) return QUERN_OK;
  const qn_overlap met = qn_tensor_meet(nest, k, sizes[k], nest, j, sizes[j]);
  if (met == QN_OVERLAP_NO) return QUERN_OK;
  return qn_tensor_refuse_overlap(op, args, outputs - first, k - first, j - first, met, is_apart ? "" : ITEM_BY_ITEM);
}

quern_status qn_tensor_check_itself(const char *op, const quern_arg_info *args, const qn_nest *nest, int32_t n_out, const uint8_t *sizes) {
  quern_status status = QUERN_OK;
  for (int32_t k = nest->n_operands - n_out; k < nest->n_operands && status == QUERN_OK; k++)
    status = check_itself(op, args, nest, n_out, sizes, k);
  return status;
}

quern_status qn_tensor_check_overlap(const char *op, const quern_arg_info *args, const qn_nest *nest, int32_t n_out, const uint8_t *sizes) {
  const int32_t n = nest->n_operands, first = nest->n_positions;
  quern_status status = QUERN_OK;
  span spans[QN_MAX_OPERANDS];
  if (nest->n_elements == 0) return QUERN_OK;
  for (int32_t k = first; k < n; k++) spans[k] = span_of(nest, k, sizes[k]);
  for (int32_t k = n - n_out; k < n; k++) {
    if ((status = check_itself(op, args, nest, n_out, sizes, k))) return status;
    for (int32_t j = first; j < k; j++) {
      if (spans_are_apart(spans[k], spans[j])) continue;
      if ((status = check_pair(op, args, nest, n_out, sizes, k, j))) return status;
    }
  }
  return QUERN_OK;
}
