/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy_table: writes ACCURACY.md: what each op declares, what was found, where, beside what others document. The CMake
 * target `accuracy` runs it over everything, which takes over an hour of two cores; of ops that are not measured this time,
 * the rows of the file stay. */
#include "accuracy.h"

#include "accuracy_reductions.h"
#include "accuracy_rows.h"
#include "progress.h"
#include "tensors.h"

static const char usage[] =
    "usage: accuracy_table FILE [--ops NAME,...] [--dtypes NAME,...] [--sample] [--threads N]\n"
    "       [--progress auto|always|never]\n"
    "  measures all ops in all float dtypes, or some, and writes FILE, where other rows stay; --sample: what t300 does\n";

/* ---- What others document ---------------------------------------------------------------------------------------
 * f32 and f64; NULL: nothing. Sources are named in the file. */

typedef struct documented {
  const char *name, *glibc[2], *cuda[2], *sleef[2];
} documented;

static const documented others[] = {
    {"add", {"exact", "exact"}, {"0", "0"}, {0}},
    {"subtract", {"exact", "exact"}, {"0", "0"}, {0}},
    {"multiply", {"exact", "exact"}, {"0", "0"}, {0}},
    {"divide", {"exact", "exact"}, {"0", "0"}, {0}},
    {"fma", {"exact", "exact"}, {"0", "0"}, {0}},
    {"sqrt", {"exact", "exact"}, {"0", "0"}, {0}},
    {"floor", {"exact", "exact"}, {"0", "0"}, {0}},
    {"ceil", {"exact", "exact"}, {"0", "0"}, {0}},
    {"trunc", {"exact", "exact"}, {"0", "0"}, {0}},
    {"rint", {"exact", "exact"}, {"0", "0"}, {0}},
    {"fmod", {"exact", "exact"}, {"0", "0"}, {0}},
    {"ldexp", {"exact", "exact"}, {"0", "0"}, {0}},
    {"cbrt", {"0", "4"}, {"1", "1"}, {"1.0", "1.0"}},
    {"exp", {"1", "1"}, {"2", "1"}, {"1.0", "1.0"}},
    {"exp2", {"1", "1"}, {"2", "1"}, {"1.0", "1.0"}},
    {"expm1", {"0", "1"}, {"1", "1"}, {"1.0", "1.0"}},
    {"log", {"1", "1"}, {"1", "1"}, {"1.0", "1.0"}},
    {"log2", {"1", "2"}, {"1", "1"}, {"1.0", "1.0"}},
    {"log10", {"2", "2"}, {"2", "1"}, {"1.0", "1.0"}},
    {"log1p", {"0", "1"}, {"1", "1"}, {"1.0", "1.0"}},
    {"pow", {"1", "1"}, {"4", "2"}, {"1.0", "1.0"}},
    {"hypot", {"1", "1"}, {"3", "2"}, {"0.5", "0.5"}},
    {"sin", {"1", "1"}, {"2", "2"}, {"1.0", "1.0"}},
    {"cos", {"1", "1"}, {"2", "2"}, {"1.0", "1.0"}},
    {"tan", {"0", "0"}, {"4", "2"}, {"1.0", "1.0"}},
    {"asin", {"1", "1"}, {"2", "2"}, {"1.0", "1.0"}},
    {"acos", {"1", "1"}, {"2", "2"}, {"1.0", "1.0"}},
    {"atan", {"1", "1"}, {"2", "2"}, {"1.0", "1.0"}},
    {"atan2", {"2", "0"}, {"3", "2"}, {"1.0", "1.0"}},
    {"sinh", {"2", "2"}, {"3", "2"}, {"1.0", "1.0"}},
    {"cosh", {"2", "2"}, {"2", "1"}, {"1.0", "1.0"}},
    {"tanh", {"2", "2"}, {"2", "1"}, {"1.0", "1.0"}},
    {"asinh", {"2", "2"}, {"3", "3"}, {"1.0", "1.0"}},
    {"acosh", {"2", "2"}, {"4", "3"}, {"1.0", "1.0"}},
    {"atanh", {"2", "2"}, {"3", "2"}, {"1.0", "1.0"}},
    {"erf", {"0", "1"}, {"2", "2"}, {"1.0", "1.0"}},
    {"erfc", {"0", "5"}, {"4", "5"}, {"1.5", "1.5"}},
};

/* ---- What is out of the common ----------------------------------------------------------------------------------
 * Ops that declare a bound above 1, or a bound in other ULPs than those of the result, each with its cause. */

static const struct {
  const char *name, *cause;
} causes[] = {
    {"logaddexp", "where the result is nearer to zero than the larger operand, the bound is in ULPs of that operand:\n"
                  "  the sum cancels, and the exponentials would have to be known to twice the precision"},
    {"logaddexp2", "as logaddexp"},
    {"softplus", "an exponential and a logarithm, each with its error; with a `beta` that is no power of two up to 2 more"},
    {"log_sigmoid", "as softplus"},
    {"softsign", "a sum and a quotient"},
    {"selu", "`expm1` times a constant"},
    {"hard_sigmoid", "a sum and a product"},
    {"hard_swish", "as hard_sigmoid"},
    {"swiglu", "the product of `silu`, rounded, and x; where `silu` is subnormal, the bound is in ULPs of x times the least normal\n"
               "  number"},
    {"geglu", "as swiglu, of `gelu`"},
};

/* ---- Rows ------------------------------------------------------------------------------------------------------- */

static accuracy_row rows[REF_N_OPS][REF_N_DTYPES];
static accuracy_programs measured, now;
static reduction_rows reductions;
static backward_row backward_rows[BACKWARD_MAX_ROWS][REF_N_DTYPES][BACKWARD_MAX_OUT];

/* The row is of the text that there is. */
static void note_program(const char *name, ref_dtype d) {
  accuracy_program_set(&measured, name, ref_dtype_name(d), accuracy_program(&now, name, ref_dtype_name(d)));
}

static void set_row(const accuracy *a) {
  accuracy_row *r = &rows[a->op][a->d];
  snprintf(r->found, sizeof r->found, "%.4f", a->worst);
  if (a->worst == 0) snprintf(r->found, sizeof r->found, "0");
  accuracy_place(a, r->at, sizeof r->at);
  if (a->worst == 0) r->at[0] = 0;
  snprintf(r->points, sizeof r->points, "%s%lld", a->is_complete ? "all " : "", a->n);
  snprintf(r->reference, sizeof r->reference, "%s", a->reference);
  note_program(ref_op_describe(a->op)->name, a->d);
}

static void set_backward_row(int k, ref_dtype d, const backward_accuracy *a) {
  note_program(a->name, d);
  for (int j = 0; j < a->n_out; j++) {
    backward_row *r = &backward_rows[k][d][j];
    snprintf(r->output, sizeof r->output, "%s", a->outputs[j]);
    snprintf(r->found, sizeof r->found, "%.4f", a->found[j].worst);
    backward_place(a, j, r->at, sizeof r->at);
    if (a->found[j].worst <= 0) snprintf(r->found, sizeof r->found, "0"), r->at[0] = 0;
    snprintf(r->points, sizeof r->points, "%s%lld", a->is_complete ? "all, twice: " : "", a->n);
  }
}

/* ---- The file --------------------------------------------------------------------------------------------------- */

static const char *of_other(const char *const *figures, int d) {
  const char *figure = d == REF_F32 ? figures[0] : d == REF_F64 ? figures[1] : NULL;
  return figure ? figure : "";
}

static void write_table(FILE *f) {
  static const documented nothing;
  fputs("| op | dtype | declared | found | at | points | against | glibc | CUDA | SLEEF |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n", f);
  for (int op = 0; op < REF_N_OPS; op++) {
    const char *name = ref_op_describe((ref_op)op)->name;
    const documented *other = &nothing;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
      if (strcmp(others[k].name, name) == 0) other = &others[k];
    }
    for (int d = REF_F16; d <= REF_F64; d++) {
      const accuracy_row *r = &rows[op][d];
      if (!r->found[0] || accuracy_excuse((ref_op)op, (ref_dtype)d)) continue;
      fprintf(f, "| %s | %s | %g | %s | %s | %s | %s | %s | %s | %s |\n", name, ref_dtype_name((ref_dtype)d),
              accuracy_declared((ref_op)op, (ref_dtype)d), r->found, r->at, r->points, r->reference, of_other(other->glibc, d),
              of_other(other->cuda, d), of_other(other->sleef, d));
    }
  }
}

static void write_backward_table(FILE *f) {
  fputs("| derivative | dtype | by | declared | found | at | points |\n|---|---|---|---|---|---|---|\n", f);
  for (int k = 0; backward_op(k); k++) {
    for (int d = REF_F16; d <= REF_F64; d++) {
      for (int j = 0; j < BACKWARD_MAX_OUT; j++) {
        const backward_row *r = &backward_rows[k][d][j];
        if (!r->found[0]) continue;
        fprintf(f, "| %s_backward | %s | %s | %g | %s | %s | %s |\n", backward_op(k), ref_dtype_name((ref_dtype)d), r->output,
                backward_declared(k, (ref_dtype)d), r->found, r->at, r->points);
      }
    }
  }
}

static void write_reductions(FILE *f) {
  fputs("| op | dtype | declared | found | elements, which, seed | results |\n|---|---|---|---|---|---|\n", f);
  for (int k = 0; k < reductions.n; k++) {
    const reduction_row *r = &reductions.rows[k];
    if (!r->found[0]) continue;
    if (r->ulp != 0) fprintf(f, "| %s | %s | %g |", r->name, r->dtype, r->ulp);
    else fprintf(f, "| %s | %s | `%s` |", r->name, r->dtype, r->bound);
    fprintf(f, " %s | %s | %s |\n", r->found, r->at, r->points);
  }
}

static void write_causes(FILE *f) {
  for (size_t k = 0; k < sizeof causes / sizeof *causes; k++) fprintf(f, "- `%s`: %s.\n", causes[k].name, causes[k].cause);
}

static void write_exact(FILE *f) {
  for (int op = 0; op < REF_N_OPS; op++) {
    const char *excuse = "";
    for (int d = REF_F16; d <= REF_F64 && excuse; d++) excuse = accuracy_excuse((ref_op)op, (ref_dtype)d);
    if (excuse) fprintf(f, "- `%s`: %s.\n", ref_op_describe((ref_op)op)->name, excuse);
  }
  for (int32_t i = 0; i < quern_op_count(NULL); i++) {
    quern_op *op;
    if (quern_op_at(NULL, i, &op) != QUERN_OK) bail("%s", quern_last_error());
    const quern_op_info *info = quern_op_describe(op);
    if (info->n_out > 1 && !is_backward(info->name) && !has_axes(info)) {
      fprintf(f, "- `%s`: it has %d outputs, each exact.\n", info->name, (int)info->n_out);
    }
    quern_op_release(op);
  }
  fputs("\nOps without inputs have no rows; `t206` holds them to their bounds. Floats of `arange` are the fma of f64, rounded to the\n"
        "dtype, bit for bit; elements of `linspace` lie within 0.501 ULP of the exact line, and 2^-103 of its larger end, in the\n"
        "dtypes that are rounded from f64 within one of f64's ULPs more.\n", f);
}

/* The folder of the file. */
static const char *folder_of(const char *file) {
  static char folder[4096];
  const char *slash = strrchr(file, '/');
  snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - file) : 1, slash ? file : ".");
  return folder;
}

static void write_file(const char *file) {
  char temporary[4096];
  snprintf(temporary, sizeof temporary, "%s.new", file);
  FILE *f = fopen(temporary, "w");
  if (!f) bail("%s: cannot be written", temporary);
  fputs("# Accuracy\n\n"
        "<!-- Written by the CMake target `accuracy` (tools/measure/accuracy/accuracy_table.c). -->\n\n"
        "What each op declares, in units in the last place (ULP) of the exact result, and the worst that was found, at which\n"
        "inputs, among how many points. A result within 0.5 ULP is the correctly rounded one; NaN, infinities and the signs of\n"
        "zeros are right, or the error counts as infinite. `all`: every value that the dtype has, every pair of them where there\n"
        "are two inputs; fma's triples are too many. f16 and bf16 are computed in f32 and rounded: 0.501 is declared of all of\n"
        "them. Points that are not all there are: hard ones (zeros, ends of ranges, seams of tables, multiples of ln2 and pi/2,\n"
        "1e22, subnormals, pairs of special values) and random ones.\n\n"
        "`against`: what the exact value was had from: MPFR with 200 bits; glibc's functions of f64, good to 2^-28 of an f32's\n"
        "ULP, and MPFR for the worst of them; or the 113 bits of tools/measure/ref.c, which of an op that declares 0.5 are the\n"
        "correctly rounded result: 0 is found where it is that, bit for bit. For pairs of f16 and bf16 f64 will do, with one of\n"
        "the others for the worst: it has their products, and sums of f16, to the last bit, the rest to 2^-38 of an ULP. An op\n"
        "that is exact in f32 must give the correctly rounded f32 result, rounded once more, bit for bit.\n\n"
        "`t300` repeats a sample of this with each run of the tests, of every op that has changed since (measured.txt in\n"
        "tools/measure has a digest of each) and of some others; it fails beyond a declared bound or what was found here, and\n"
        "where a point has not the error given beside it. The same for an op of your own:\n"
        "`lua5.4 build.lua check --measure FILE`.\n\n"
        "glibc, CUDA and SLEEF: the largest errors their makers document, not measured here. glibc and CUDA count whole ULPs\n"
        "from the correctly rounded result, so that their 1 may be up to 1.5 here. Sources:\n\n"
        "- glibc: `sysdeps/x86_64/fpu/libm-test-ulps` at commit 0003605, from which the manual has its \"Known Maximum\n"
        "  Errors in Math Functions\"; a function without a figure there is 0;\n"
        "- CUDA C++ Programming Guide, \"Mathematical Functions\", \"Standard Functions\";\n"
        "- SLEEF, \"Math library reference\": the variants of 1.0 ULP, of hypot 0.5 and of erfc 1.5; sin, cos and tan are for\n"
        "  sizes up to 1e28 in f32 and 1e299 in f64.\n\n", f);
  write_table(f);
  fputs("\n## Bounds that need a word\n\n", f);
  write_causes(f);
  fputs("\n## Ops that round nothing of their own\n\n", f);
  write_exact(f);
  fputs("\n## Derivatives\n\n"
        "What each `NAME_backward` declares, by `grad_ulp` in its spec, and the worst that was found, against MPFR with 200\n"
        "bits, at which grad and inputs. Exact is grad times the derivative at the inputs that the kernel has: where one of\n"
        "them is the op's own result, as for `exp`, at that result. f16 and bf16 are computed in f32 and rounded, within 0.501\n"
        "ULP: with one input at every value it has, for grad = 1 and for another grad each. `grad` is of any size, and one\n"
        "in eight an extreme: 0, infinite, NaN, subnormal, the largest. Left out are points where the op's result is NaN; of\n"
        "one input those where neither grad nor the derivative is a normal number, of two those where grad, an input or the\n"
        "derivative is none.\n\n"
        "Where a derivative passes through zero, between sums that cancel, its bound is in ULPs of a number that is larger:\n"
        "`gelu_backward`, of a quarter of grad, as those of `silu`, `gelu_tanh` and `mish`; `swiglu_backward` and\n"
        "`geglu_backward` by gate, of a quarter of grad times x; `sinc_backward`, beyond 1, of grad / (32 x^2).\n\n"
        "Derivatives without a row round a product at most: they are grad, its negative, its half or 0, ldexp of it, or, of\n"
        "`leaky_relu`, its product with the parameter; of `thresholded_relu`, grad or 0. `t306` repeats a sample of this.\n\n", f);
  write_backward_table(f);
  fputs("\n## Reductions\n\n"
        "What ops that reduce declare: by `bound` in their specs, a formula of the largest absolute error; by `ulp`, a number of\n"
        "ULPs of the result. In a formula `u` is half of the last place of 1 in the dtype that is computed in, 2^-24 in f32 and in\n"
        "f16 and bf16, which are rounded once more, 2^-53 in f64 and for integers; `count` is the number of elements, and `depth`\n"
        "that of the additions that one of them takes part in: 19 + ceil(log2(ceil(count / 256))) along one axis, for each further\n"
        "axis beyond 256 elements its ceil(log2(extent)) more; of a scan min(count - 1, 15) + min((count - 1) / 16, 15) + min((count - 1)\n"
        "/ 256, 255) + (count - 1) / 65536, all quotients rounded down. A formula is text of the expression language: with `u` and `depth` as\n"
        "parameters, one can evaluate it at run time on one's own data. It holds where nothing overflows or underflows on the way.\n\n"
        "`found`: of a number, the worst in ULPs; of a formula, the worst as a part of it: 0.1 is a tenth of what is declared. Exact\n"
        "results are MPFR's with 300 bits. `uniform` is in 0 to 1; `normal` is nearly that, within 12; `signs` are sizes in 1 to 2 of both\n"
        "signs; `wide` runs over 2^-8 to 2^40 (f16, bf16: 2^8), of both signs; `third` is 1/3 everywhere; `offset` is 1000 and a\n"
        "normal number; `near-one` lies within 1/128 of 1. Weights are uniform.\n\n"
        "Not here: what only picks an element or counts (`max`, `min`, `argmax`, `nll_loss`, `any`, `count_nonzero` and their like), the\n"
        "sums of integers, which are exact modulo 2^64, and `ptp`, one subtraction. `t300` repeats a sample of this.\n\n", f);
  write_reductions(f);
  if (fclose(f) || rename(temporary, file)) bail("%s: cannot be written", file);
  if (!accuracy_programs_write(folder_of(file), &measured)) bail("no tools/measure beside %s to write measured.txt to", file);
}

/* ---- The run ---------------------------------------------------------------------------------------------------- */

static int is_wanted(const char *list, const char *name) {
  size_t n = strlen(name);
  for (const char *at = list; at && *at; at += *at == ',') {
    size_t length = strcspn(at, ",");
    if (length == n && memcmp(at, name, n) == 0) return 1;
    at += length;
  }
  return !list;
}

int main(int argc, char **argv) {
  const char *file = NULL, *ops = NULL, *dtypes = NULL, *when = "auto";
  accuracy_effort effort = accuracy_full;
  int n_beyond = 0, n_threads = effort.n_threads, n_backward = 0;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--ops") == 0 && i + 1 < argc) ops = argv[++i];
    else if (strcmp(argv[i], "--dtypes") == 0 && i + 1 < argc) dtypes = argv[++i];
    else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) n_threads = atoi(argv[++i]);
    else if (strcmp(argv[i], "--sample") == 0) effort = accuracy_sample;
    else if (strcmp(argv[i], "--progress") == 0 && i + 1 < argc) when = argv[++i];
    else if (argv[i][0] != '-' && !file) file = argv[i];
    else file = "";
  }
  if (!file || !*file) {
    fputs(usage, stderr);
    return 2;
  }
  effort.n_threads = n_threads;
  progress_begin(when);
  setenv("QUERN_NUM_THREADS", "1", 0); /* each of these threads makes calls of its own */
  accuracy_read(file, rows);
  accuracy_read_backward(file, backward_rows);
  accuracy_programs_read(folder_of(file), &measured);
  if (!reductions_declared(folder_of(file), &reductions)) bail("tools/measure/bounds.lua beside %s cannot be run", file);
  reductions_read(file, &reductions);
  if (!accuracy_programs_now(folder_of(file), &now)) bail("tools/measure/programs.lua beside %s cannot be run", file);
  for (int op = 0; op < REF_N_OPS; op++) {
    const char *name = ref_op_describe((ref_op)op)->name;
    if (!is_wanted(ops, name)) continue;
    for (int d = REF_F16; d <= REF_F64; d++) {
      if (accuracy_excuse((ref_op)op, (ref_dtype)d) || !is_wanted(dtypes, ref_dtype_name((ref_dtype)d))) continue;
      progress_show(name, ref_dtype_name((ref_dtype)d), op + 1, REF_N_OPS);
      accuracy a = accuracy_measure((ref_op)op, (ref_dtype)d, &effort);
      progress_wipe();
      set_row(&a);
      const accuracy_row *r = &rows[op][d];
      printf("%s %s: %s ULP at %s, %s points\n", name, ref_dtype_name((ref_dtype)d), r->found, r->at, r->points);
      fflush(stdout);
      if (a.n_bad) fprintf(stderr, "%s %s: %lld beyond what is declared\n", name, ref_dtype_name((ref_dtype)d), a.n_bad);
      n_beyond += a.n_bad > 0;
    }
    write_file(file);
  }
  while (backward_op(n_backward)) n_backward++;
  for (int k = 0; k < n_backward; k++) {
    char name[64];
    snprintf(name, sizeof name, "%s_backward", backward_op(k));
    if (!is_wanted(ops, name)) continue;
    for (int d = REF_F16; d <= REF_F64; d++) {
      backward_accuracy a;
      if (!is_wanted(dtypes, ref_dtype_name((ref_dtype)d))) continue;
      progress_show(name, ref_dtype_name((ref_dtype)d), k + 1, n_backward);
      const int is_measured = backward_measure(k, (ref_dtype)d, effort.n_random, &a);
      progress_wipe();
      if (!is_measured) continue;
      set_backward_row(k, (ref_dtype)d, &a);
      for (int j = 0; j < a.n_out; j++) {
        const backward_row *r = &backward_rows[k][d][j];
        printf("%s %s %s: %s ULP at %s, %s points\n", name, ref_dtype_name((ref_dtype)d), r->output, r->found, r->at, r->points);
      }
      fflush(stdout);
      if (a.n_bad) fprintf(stderr, "%s %s: %lld beyond what is declared\n", name, ref_dtype_name((ref_dtype)d), a.n_bad);
      n_beyond += a.n_bad > 0;
    }
    write_file(file);
  }
  for (int k = 0; k < reductions.n; k++) {
    reduction_row *r = &reductions.rows[k];
    if (!is_wanted(ops, r->name) || !is_wanted(dtypes, r->dtype)) continue;
    if (!reduction_is_known(r)) {
      fprintf(stderr, "%s %s: declares a bound, and has no exact results in accuracy_reductions.c\n", r->name, r->dtype);
      n_beyond++;
      continue;
    }
    progress_show(r->name, r->dtype, k + 1, reductions.n);
    const int is_beyond = !(reduction_measure(r, effort.f32_step > 1) <= (r->ulp != 0 ? r->ulp : 1));
    progress_wipe();
    printf("%s %s: %s %s at %s, %s results\n", r->name, r->dtype, r->found, r->ulp != 0 ? "ULP" : "of the bound", r->at, r->points);
    fflush(stdout);
    if (is_beyond) fprintf(stderr, "%s %s: beyond what is declared\n", r->name, r->dtype);
    n_beyond += is_beyond;
  }
  write_file(file);
  return n_beyond > 0;
}
