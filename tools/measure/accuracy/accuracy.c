/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy.c: points, calls and errors in ULPs; see accuracy.h. Knows no op by name: accuracy_functions.c does. */
#include "accuracy.h"

#include <pthread.h>

#include "accuracy_error.h"
#include "accuracy_functions.h"
#include "accuracy_libm.h"
#include "accuracy_pairs.h"
#include "tensors.h"

#define CHUNK 16384
#define PRECISION 200

const accuracy_effort accuracy_sample = {64, 512, 100000, 120000, 3000000, 2};
const accuracy_effort accuracy_brief = {4096, 16384, 5000, 25000, 100000, 2};
const accuracy_effort accuracy_full = {1, 1, 1000000, 1000000, 30000000, 2};

/* ---- What is measured ------------------------------------------------------------------------------------------- */

const char *accuracy_excuse(ref_op op, ref_dtype d) {
  const ref_op_info *info = ref_op_describe(op);
  ref_dtype in[REF_MAX_INPUTS] = {d, d, d}, result = d, compute;
  if (info->move) return "it moves values";
  if (info->cast) return "it casts, which rounds once";
  if (ref_resolve(op, in, &result, &compute)) return "it takes no floats";
  return result == d ? NULL : "its result is of another dtype";
}

double accuracy_declared(ref_op op, ref_dtype d) {
  return ref_compute(d) != d ? 0.501 : ref_op_bound(op, d);
}

/* How the exact values are had. */
enum { BY_DOUBLE, BY_ROWS, BY_MPFR, BY_REF };

static int is_half(ref_dtype d) {
  return ref_dtype_size(d) == 2;
}

/* ---- Errors ----------------------------------------------------------------------------------------------------- */

/* The exponent of a float's binade, between those of f32's least and largest. */
static int f32_exponent(double x) {
  uint64_t bits;
  memcpy(&bits, &x, 8);
  int e = (int)(bits >> 52 & 0x7ff) - 1023;
  return e < -126 ? -126 : e > 127 ? 127 : e;
}

/* |got - exact| in ULPs of exact, or of `least` where that is larger; a NaN must be the one NaN, a zero must have exact's
 * sign. */
static double f32_error(float got, double exact, double least) {
  uint32_t bits;
  memcpy(&bits, &got, 4);
  if (exact != exact) return bits == 0x7fc00000u ? 0 : INFINITY;
  if (got != got) return INFINITY;
  if (!signbit(got) != !signbit(exact) && fabs(exact) >= least) return INFINITY;
  if (isinf(exact)) return isinf(got) ? 0 : INFINITY;
  double g = got;
  if (isinf(g)) g = copysign(0x1p128, g);
  if (fabs(exact) >= 0x1p128) exact = copysign(0x1p128, exact);
  int e = f32_exponent(least > fabs(exact) ? least : exact);
  uint64_t scale_bits = (uint64_t)(1023 + 23 - e) << 52;
  double scale;
  memcpy(&scale, &scale_bits, 8);
  return fabs(g - exact) * scale;
}

typedef struct subject {
  ref_op op;
  ref_dtype d;
  const accuracy_function *function;
  int n_in, way, close_way; /* how points are measured, and those that are looked at closer */
  accuracy_pairs *pairs;    /* where the way is by rows */
  mpfr_t v[REF_MAX_INPUTS], z;
  accuracy_format format; /* of d */
} subject;

static void subject_open(subject *s, ref_op op, ref_dtype d) {
  const accuracy_function *f = accuracy_function_of(op);
  const ref_op_info *info = ref_op_describe(op);
  const int has_mpfr = f->m1 || f->m2 || f->m3;
  *s = (subject){.op = op, .d = d, .function = f, .n_in = info->n_in};
  s->format = accuracy_format_of(d);
  if (s->n_in == 2) s->pairs = accuracy_pairs_open(op, d, &s->format, info->ulp <= 0.5);
  s->close_way = has_mpfr && (!is_half(d) || s->pairs) ? BY_MPFR : BY_REF;
  s->way = s->pairs ? BY_ROWS : d == REF_F32 && (f->f1 || f->f2) ? BY_DOUBLE : s->close_way;
  for (int k = 0; k < REF_MAX_INPUTS; k++) mpfr_init2(s->v[k], PRECISION);
  mpfr_init2(s->z, PRECISION);
}

static void subject_close(subject *s) {
  accuracy_pairs_close(s->pairs);
  for (int k = 0; k < REF_MAX_INPUTS; k++) mpfr_clear(s->v[k]);
  mpfr_clear(s->z);
  mpfr_free_cache();
}

static const char *reference_of(const subject *s) {
  if (s->way == BY_DOUBLE && s->close_way == BY_REF) return "libm's f64, 113 bits";
  if (s->way == BY_DOUBLE || (s->way == BY_ROWS && s->function->f2)) return "libm's f64, MPFR";
  if (s->way == BY_ROWS) return s->close_way == BY_MPFR ? "f64, MPFR" : "f64, 113 bits";
  return s->way == BY_MPFR ? "MPFR" : "113 bits";
}

static double least_of(const subject *s, const uint64_t *x) {
  if (!s->function->least) return 0;
  const double normal = ldexp(1, ref_least_exponent(ref_compute(s->d)));
  double least = s->function->least((double)ref_value(s->d, x[0]), (double)ref_value(s->d, x[1]), normal);
  return isfinite(least) ? least : 0;
}

/* By MPFR, or the 113 bits of ref.c, which also knows what may come out: of pairs of halves, whether an exact op is that. */
static double close_error(subject *s, const uint64_t *x, uint64_t got) {
  const accuracy_function *f = s->function;
  ref_dtype in[REF_MAX_INPUTS] = {s->d, s->d, s->d};
  ref_expect e = {0};
  if (s->close_way == BY_REF || (s->pairs && ref_op_describe(s->op)->ulp <= 0.5)) {
    e = ref_eval(s->op, in, x, NULL, s->d);
    if (!ref_within(s->d, got, &e)) return INFINITY;
  }
  if (s->close_way == BY_MPFR) {
    for (int k = 0; k < s->n_in; k++) mpfr_set_d(s->v[k], (double)ref_value(s->d, x[k]), MPFR_RNDN);
    if (f->m1) f->m1(s->z, s->v[0], MPFR_RNDN);
    else if (f->m2) f->m2(s->z, s->v[0], s->v[1], MPFR_RNDN);
    else f->m3(s->z, s->v[0], s->v[1], s->v[2], MPFR_RNDN);
    return accuracy_error(s->d, got, s->z, least_of(s, x));
  }
  double ulp = ref_ulp_error(s->d, got, e.exact), least = least_of(s, x);
  if (ulp > 0 && least > 0) ulp *= (double)(ref_ulp(s->d, e.exact) / ref_ulp(s->d, fmax(least, fabs((double)e.exact))));
  return ulp;
}

/* ---- Points ----------------------------------------------------------------------------------------------------- */

typedef struct points {
  const subject *subject;
  const accuracy_effort *effort;
  const double *hard;
  int n_hard;
  uint64_t n;
} points;

static const double specials[] = {
    0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, 1.5, 65504, 0x1p23, 0x1p52, 0x1p-30, 0x1p-126, 0x1p-133, -0x1p-149, -0x1p-1022,
    0x1p-1074, 0x1.fffffep127, -0x1.fffffffffffffp1023, INFINITY, -INFINITY, NAN};
#define N_SPECIALS (sizeof specials / sizeof *specials)

static uint64_t f32_step(const points *p) {
  /* 113 bits take a microsecond or two for each. */
  uint64_t most = p->subject->way == BY_DOUBLE ? 1 : 4096;
  return p->effort->f32_step > most ? p->effort->f32_step : most;
}

static uint64_t n_rows(const points *p) {
  return PAIRS_ROW / p->effort->half_step + (p->effort->half_step > 1 ? N_SPECIALS : 0);
}

/* The first operand of a row of pairs: special values, where not all are there, and others. */
static uint16_t row_of(const points *p, uint32_t at) {
  uint32_t step = p->effort->half_step;
  if (step == 1) return (uint16_t)at;
  if (at < N_SPECIALS) return (uint16_t)accuracy_bits(p->subject->d, specials[at]);
  at -= (uint32_t)N_SPECIALS;
  return (uint16_t)(at * step + at * 29 % step);
}

static uint64_t n_points(const points *p) {
  const subject *s = p->subject;
  if (s->n_in == 1 && is_half(s->d)) return 65536;
  if (s->n_in == 1 && s->d == REF_F32) return ((uint64_t)1 << 32) / f32_step(p);
  if (s->n_in == 1) return (uint64_t)(p->n_hard + p->effort->n_random);
  if (s->way == BY_ROWS) return n_rows(p) * PAIRS_ROW;
  return (uint64_t)(s->way == BY_DOUBLE ? p->effort->n_pairs_f32 : p->effort->n_pairs);
}

/* Points first, ..., first + n - 1, each the same whoever asks: x[k] is of CHUNK inputs. */
static void fill(const points *p, uint64_t first, int n, uint64_t x[][CHUNK]) {
  const subject *s = p->subject;
  rng r;
  rng_seed(&r, first * REF_N_DTYPES + s->d);
  for (int i = 0; i < n; i++) {
    uint64_t at = first + (uint64_t)i;
    if (s->n_in == 1) {
      uint64_t step = f32_step(p);
      if (is_half(s->d)) x[0][i] = at;
      else if (s->d == REF_F32) x[0][i] = at * step + at * 29 % step; /* the low bits vary too */
      else x[0][i] = accuracy_bits(s->d, at < (uint64_t)p->n_hard ? p->hard[at] : accuracy_draw_one(s->function, at, &r));
      continue;
    }
    double v[REF_MAX_INPUTS];
    if (at < N_SPECIALS * N_SPECIALS) {
      v[0] = specials[at % N_SPECIALS];
      v[1] = specials[at / N_SPECIALS];
      v[2] = specials[at * 7 % N_SPECIALS];
    } else if (at % 8 == 7) {
      for (int k = 0; k < s->n_in; k++) x[k][i] = rng_u64(&r) >> (64 - 8 * ref_dtype_size(s->d));
      continue;
    } else {
      accuracy_draw(s->function, &r, &s->format, &v[0], &v[1]);
      v[2] = at % 2 ? -v[0] * v[1] * (1 + (rng_unit(&r) - 0.5) * ldexp(1, -(int)rng_below(&r, 50))) : 8 * rng_unit(&r) - 4;
    }
    for (int k = 0; k < s->n_in; k++) x[k][i] = accuracy_bits(s->d, v[k]);
  }
}

/* ---- A run ------------------------------------------------------------------------------------------------------ */

static void note(accuracy *a, double ulp, double bound, const uint64_t *x, uint64_t got) {
  if (!(ulp <= bound)) a->n_bad++;
  if (ulp <= a->worst) return;
  a->worst = ulp;
  for (int k = 0; k < ref_op_describe(a->op)->n_in; k++) a->x[k] = x[k];
  a->got = got;
}

typedef struct worker {
  const points *points;
  int index;
  accuracy found;
  char error[300];
} worker;

/* One chunk: calls the op, compares. memory: room for inputs and output, as their dtype */
static quern_status run_chunk(worker *w, subject *s, uint64_t first, int n, uint64_t x[][CHUNK], char *const *memory) {
  int size = ref_dtype_size(s->d);
  double bound = accuracy_declared(s->op, s->d);
  uint64_t at[REF_MAX_INPUTS];
  DLTensor in[REF_MAX_INPUTS], out, *ins[REF_MAX_INPUTS], *outs = &out;
  int64_t shape = n;
  fill(w->points, first, n, x);
  for (int k = 0; k <= s->n_in; k++) {
    DLTensor *t = k < s->n_in ? &in[k] : &out;
    *t = (DLTensor){.data = memory[k], .device = {kDLCPU, 0}, .ndim = 1, .dtype = ref_dtype_dl(s->d), .shape = &shape};
    if (k == s->n_in) break;
    ins[k] = t;
    for (int i = 0; i < n; i++) memcpy(memory[k] + i * size, &x[k][i], (size_t)size);
  }
  quern_status status = quern_op_call(the_op(s->op), s->n_in, ins, 1, &outs, NULL);
  if (status != QUERN_OK) return status;
  w->found.n += n;
  if (s->way != BY_DOUBLE) {
    for (int i = 0; i < n; i++) {
      uint64_t got = ref_get(s->d, memory[s->n_in] + i * size);
      for (int k = 0; k < s->n_in; k++) at[k] = x[k][i];
      note(&w->found, close_error(s, at, got), bound, at, got);
    }
    return status;
  }
  const float *a = (const float *)memory[0], *b = (const float *)memory[1], *got = (const float *)memory[s->n_in];
  double about[CHUNK];
  const accuracy_function *f = s->function;
  int is_quick = f->f1 && accuracy_libm(f->f1, n, a, about);
  for (int i = 0; i < n; i++) {
    double least = f->least ? f->least(a[i], b[i], 0x1p-126) : 0;
    /* Vectorised functions of libm are good to 2^-26 ULP; where that may count, and for special values, the plain ones. */
    if (is_quick && f32_error(got[i], about[i], 0) < fmin(bound, w->found.worst) - 0x1p-20) continue;
    double ulp = f32_error(got[i], f->f1 ? f->f1(a[i]) : f->f2(a[i], b[i]), isfinite(least) ? least : 0);
    for (int k = 0; k < s->n_in; k++) at[k] = x[k][i];
    note(&w->found, ulp, bound, at, ref_get(REF_F32, &got[i]));
  }
  return status;
}

/* Calls the op for x and every y, which are written first. */
static quern_status call_row(const subject *s, uint16_t x, uint16_t *y, uint16_t *got) {
  int64_t shape = PAIRS_ROW;
  DLTensor all = {.data = y, .device = {kDLCPU, 0}, .ndim = 1, .dtype = ref_dtype_dl(s->d), .shape = &shape};
  DLTensor one = all, out = all, *ins[2] = {&one, &all}, *outs = &out;
  one.data = &x;
  one.ndim = 0;
  out.data = got;
  for (int i = 0; i < PAIRS_ROW; i++) y[i] = (uint16_t)i;
  return quern_op_call(the_op(s->op), 2, ins, 1, &outs, NULL);
}

/* memory: three rows */
static quern_status run_row(worker *w, subject *s, uint16_t x, uint16_t *const *memory) {
  uint16_t *const got = memory[1], *const suspects = memory[2];
  const double bound = accuracy_declared(s->op, s->d);
  quern_status status = call_row(s, x, memory[0], got);
  if (status != QUERN_OK) return status;
  w->found.n += PAIRS_ROW;
  int n = accuracy_pairs_check(s->pairs, x, got, w->found.worst, bound, suspects);
  for (int i = 0; i < n; i++) {
    uint64_t at[REF_MAX_INPUTS] = {x, suspects[i]};
    note(&w->found, close_error(s, at, got[suspects[i]]), bound, at, got[suspects[i]]);
  }
  return status;
}

static void run_rows(worker *w, subject *s) {
  uint16_t *memory[3];
  for (int k = 0; k < 3; k++) memory[k] = malloc(PAIRS_ROW * sizeof *memory[k]);
  const uint32_t n = (uint32_t)n_rows(w->points);
  for (uint32_t at = (uint32_t)w->index; at < n; at += (uint32_t)w->points->effort->n_threads) {
    if (run_row(w, s, row_of(w->points, at), memory) == QUERN_OK) continue;
    snprintf(w->error, sizeof w->error, "%s", quern_last_error());
    break;
  }
  for (int k = 0; k < 3; k++) free(memory[k]);
}

static void run_chunks(worker *w, subject *s) {
  uint64_t(*x)[CHUNK] = malloc(sizeof *x * REF_MAX_INPUTS);
  char *memory[REF_MAX_INPUTS + 1];
  for (int k = 0; k <= REF_MAX_INPUTS; k++) memory[k] = malloc(CHUNK * 8);
  uint64_t stride = (uint64_t)w->points->effort->n_threads * CHUNK;
  for (uint64_t first = (uint64_t)w->index * CHUNK; first < w->points->n; first += stride) {
    uint64_t left = w->points->n - first;
    if (run_chunk(w, s, first, left < CHUNK ? (int)left : CHUNK, x, memory) != QUERN_OK) {
      snprintf(w->error, sizeof w->error, "%s", quern_last_error());
      break;
    }
  }
  for (int k = 0; k <= REF_MAX_INPUTS; k++) free(memory[k]);
  free(x);
}

static void *run(void *arg) {
  worker *w = arg;
  subject s;
  subject_open(&s, w->points->subject->op, w->points->subject->d);
  (s.way == BY_ROWS ? run_rows : run_chunks)(w, &s);
  subject_close(&s);
  return NULL;
}

static void merge(accuracy *into, const accuracy *a) {
  into->n += a->n;
  into->n_bad += a->n_bad;
  if (a->worst <= into->worst) return;
  into->worst = a->worst;
  memcpy(into->x, a->x, sizeof a->x);
  into->got = a->got;
}

accuracy accuracy_measure(ref_op op, ref_dtype d, const accuracy_effort *effort) {
  enum { MAX_THREADS = 64 };
  pthread_t threads[MAX_THREADS];
  worker *workers = calloc(MAX_THREADS, sizeof *workers);
  double *hard = malloc(sizeof *hard * ACCURACY_MAX_HARD);
  subject s;
  subject_open(&s, op, d);
  points p = {.subject = &s, .effort = effort, .hard = hard};
  int n_threads = effort->n_threads;
  accuracy found = {.op = op, .d = d, .worst = -1, .reference = reference_of(&s)};
  if (n_threads < 1 || n_threads > MAX_THREADS) bail("%d threads", n_threads);
  p.n_hard = accuracy_hard_points(s.function, hard);
  if (p.n_hard > ACCURACY_MAX_HARD) bail("too many hard points");
  p.n = n_points(&p);
  found.is_complete = s.n_in == 1 ? is_half(d) || (d == REF_F32 && f32_step(&p) == 1)
                                  : s.way == BY_ROWS && effort->half_step == 1;
  the_op(op); /* before threads ask */
  for (int i = 0; i < n_threads; i++) {
    workers[i] = (worker){.points = &p, .index = i, .found = found};
    pthread_create(&threads[i], NULL, run, &workers[i]);
  }
  for (int i = 0; i < n_threads; i++) {
    pthread_join(threads[i], NULL);
    if (workers[i].error[0]) bail("%s", workers[i].error);
    merge(&found, &workers[i].found);
  }
  if (s.way == BY_DOUBLE) found.worst = close_error(&s, found.x, found.got);
  subject_close(&s);
  if (found.n != (long long)p.n) bail("%lld points of %llu", found.n, (unsigned long long)p.n);
  free(hard);
  free(workers);
  return found;
}

double accuracy_at(ref_op op, ref_dtype d, const double *x) {
  subject s;
  uint64_t bits[REF_MAX_INPUTS] = {0}, out_bits = 0;
  DLTensor in[REF_MAX_INPUTS], out, *ins[REF_MAX_INPUTS], *outs = &out;
  subject_open(&s, op, d);
  out = (DLTensor){.data = &out_bits, .device = {kDLCPU, 0}, .ndim = 0, .dtype = ref_dtype_dl(d)};
  for (int k = 0; k < s.n_in; k++) {
    bits[k] = accuracy_bits(d, x[k]);
    in[k] = out;
    in[k].data = &bits[k];
    ins[k] = &in[k];
  }
  if (quern_op_call(the_op(op), s.n_in, ins, 1, &outs, NULL) != QUERN_OK) bail("%s", quern_last_error());
  double ulp = close_error(&s, bits, out_bits);
  subject_close(&s);
  return ulp;
}

/* A result that must not pass for `got`. */
static uint16_t spoiled(const subject *s, uint16_t got, uint64_t how) {
  const int size = got & 0x7fff, infinity = (int)ref_from_double(s->d, INFINITY);
  if (size > infinity) return how == 0 ? 0 : how == 1 ? (uint16_t)infinity : how == 2 ? got ^ 0x8000 : got ^ 1;
  if (how == 0 || size > infinity - 4 || s->function->least) return (uint16_t)ref_nan(s->d);
  if (how == 1) return got | (uint16_t)infinity;
  if (how == 2) return got ^ 0x8000;
  return s->function->f2 ? got + 2 : got ^ 1;
}

int accuracy_overlooked(ref_op op, ref_dtype d, int n) {
  enum { AT_ONCE = 64 };
  uint16_t *memory[3], *place[AT_ONCE];
  subject s;
  rng r;
  int n_overlooked = -1;
  subject_open(&s, op, d);
  rng_seed(&r, (uint64_t)op);
  for (int k = 0; k < 3; k++) memory[k] = malloc(PAIRS_ROW * sizeof *memory[k]);
  for (int row = 0; s.pairs && row < n / AT_ONCE; row++) {
    const uint16_t x = (uint16_t)(row < (int)N_SPECIALS ? accuracy_bits(d, specials[row]) : rng_below(&r, PAIRS_ROW));
    if (call_row(&s, x, memory[0], memory[1]) != QUERN_OK) bail("%s", quern_last_error());
    for (int k = 0; k < AT_ONCE; k++) {
      const uint64_t y = k < (int)N_SPECIALS ? accuracy_bits(d, specials[k]) : rng_below(&r, PAIRS_ROW);
      place[k] = &memory[1][y];
    }
    for (int k = 0; k < AT_ONCE; k++) {
      int is_double = 0;
      for (int j = 0; j < k; j++) is_double |= place[j] == place[k];
      if (!is_double) *place[k] = spoiled(&s, *place[k], rng_below(&r, 4));
    }
    const int n_seen = accuracy_pairs_check(s.pairs, x, memory[1], INFINITY, accuracy_declared(op, d), memory[2]);
    if (row == 0) n_overlooked = 0;
    for (int k = 0; k < AT_ONCE; k++) {
      int is_seen = 0;
      for (int i = 0; i < n_seen; i++) is_seen |= memory[1] + memory[2][i] == place[k];
      n_overlooked += !is_seen;
    }
  }
  for (int k = 0; k < 3; k++) free(memory[k]);
  subject_close(&s);
  return n_overlooked;
}

char *accuracy_place(const accuracy *a, char *text, int size) {
  const int n = ref_op_describe(a->op)->n_in;
  double x[REF_MAX_INPUTS];
  for (int k = 0; k < n; k++) x[k] = (double)ref_value(a->d, a->x[k]);
  return accuracy_text(x, n, text, size);
}
