/* SPDX-License-Identifier: Apache-2.0
 * tags: long
 *
 * t300-accuracy: the declared ULP bounds, measured, of every op in every float dtype, if its text has changed since its row in
 * ACCURACY.md was measured, and of an eighth of the others, another each day: f16 and bf16 at all patterns, f32 at every 256th,
 * pairs of f16 and bf16 for every 2048th first operand, f64 and other pairs at hard and random points; with
 * QUERN_TEST_EXHAUSTIVE=1 of all ops, at all of f32 and pairs of halves. The worst of each is printed. Every point that
 * ACCURACY.md names has the error given there. No op of the library is passed over in silence. Of reductions, rows of up to
 * 1000 elements of those that declare a bound, and the rows that ACCURACY.md names. */
#include "accuracy.h"

#include "accuracy_reductions.h"
#include "accuracy_rows.h"
#include "tensors.h"

static accuracy_row published[REF_N_OPS][REF_N_DTYPES];
static double found[REF_N_OPS][REF_N_DTYPES]; /* negative: not measured */

static reduction_rows reductions;

static accuracy_programs measured, now; /* what ACCURACY.md's rows are of, and what there is */

/* Whether the row is measured in this run; only_changed: for its text alone. */
static int is_due(ref_op op, ref_dtype d, int only_changed) {
  const int part = only_changed ? 16 : test_part(16);
  const char *name = ref_op_describe(op)->name, *dtype = ref_dtype_name(d), *digest = accuracy_program(&now, name, dtype);
  return part < 0 || !*digest || strcmp(digest, accuracy_program(&measured, name, dtype)) != 0 || ((int)op * 4 + (int)d) % 16 == part;
}

static void measure(ref_op op, ref_dtype d, const accuracy_effort *effort) {
  accuracy a = accuracy_measure(op, d, effort);
  found[op][d] = a.worst;
  const char *name = ref_op_describe(op)->name;
  double declared = accuracy_declared(op, d);
  char got[64], place[100];
  diag("%s %s: worst %.4f ULP at %s, got %s; declared %g; %lld points against %s", name, ref_dtype_name(d), a.worst,
       accuracy_place(&a, place, sizeof place), ref_text(d, a.got, got), declared, a.n, a.reference);
  ok(a.n > 0 && a.n_bad == 0, "%s %s: within %g ULP", name, ref_dtype_name(d), declared);
}

/* The bounds that the specs declare (the manifest has them) are the ones that ref.c holds the ops to. */
static void test_declared(void) {
  char path[4096], line[8192];
  const char *build = getenv("QUERN_BUILD_DIR");
  snprintf(path, sizeof path, "%s/generated/manifest.json", build ? build : "");
  FILE *f = build ? fopen(path, "r") : NULL;
  if (!f) {
    skip(1, "no manifest.json: QUERN_BUILD_DIR is %s", build ? build : "not set");
    return;
  }
  group_begin("declared bounds are ref.c's");
  while (fgets(line, sizeof line, f)) { /* one op a line */
    char name[100];
    const char *formula = strstr(line, "\"formula\""), *ulp = strstr(line, "\"ulp\": {");
    if (!formula || !ulp || sscanf(line, " {\"name\": \"%99[a-z0-9_.]\"", name) != 1) continue;
    ref_op op = ref_op_find(name);
    if (op == REF_N_OPS) continue;
    for (int d = REF_F32; d <= REF_F64; d++) {
      char key[16];
      snprintf(key, sizeof key, "\"%s\": ", ref_dtype_name((ref_dtype)d));
      const char *at = strstr(ulp, key);
      if (!at && ulp[strlen("\"ulp\": {")] != '}') continue; /* it declares of others only: it does not take this one */
      double declared = at ? strtod(at + strlen(key), NULL) : 0.5, held = ref_op_bound(op, (ref_dtype)d);
      group_count(1);
      if (declared != held) {
        group_fail("%s %s: the spec declares %g ULP, ref.c holds it to %g", name, ref_dtype_name((ref_dtype)d), declared, held);
      }
    }
  }
  fclose(f);
  group_end();
}

/* What the library has and ref.c has not is not measured. Ops with an output as large as values say compute nothing; t206
 * has those without inputs, t306 derivatives; reductions are measured below. */
static void test_covered(void) {
  group_begin("every op of the library has a reference");
  for (int32_t i = 0; i < quern_op_count(NULL); i++) {
    quern_op *op;
    if (quern_op_at(NULL, i, &op) != QUERN_OK) bail("%s", quern_last_error());
    const quern_op_info *info = quern_op_describe(op);
    group_count(1);
    const int is_elsewhere =
        info->op_class == QUERN_CLASS_DYNAMIC || info->n_in == 0 || is_backward(info->name) || has_axes(info);
    if (info->n_out > 1 && !is_elsewhere) {
      diag("%s: not measured: its outputs are exact, and t205 holds them to that", info->name);
    } else if (!is_elsewhere && ref_op_find(info->name) >= REF_N_OPS) {
      group_fail("%s: no entry in ref.c: its accuracy is not measured", info->name);
    }
    quern_op_release(op);
  }
  group_end();
}

/* What ACCURACY.md says holds of this library: nothing worse is among the points here, which are among those it was written
 * from, and the point it names has the error it names. */
static void test_published(void) {
  group_begin("ACCURACY.md says what is found");
  for (int op = 0; op < REF_N_OPS; op++) {
    for (int d = REF_F16; d <= REF_F64; d++) {
      const accuracy_row *row = &published[op][d];
      const char *name = ref_op_describe((ref_op)op)->name, *dtype = ref_dtype_name((ref_dtype)d);
      double ulp = strtod(row->found, NULL), x[REF_MAX_INPUTS] = {0};
      if (!has_op((ref_op)op) || accuracy_excuse((ref_op)op, (ref_dtype)d)) continue;
      group_count(1);
      if (!row->found[0]) {
        group_fail("%s %s: no row", name, dtype);
        continue;
      }
      if (found[op][d] > ulp + 0.0001) group_fail("%s %s: %.4f ULP found, %s written", name, dtype, found[op][d], row->found);
      if (ulp == 0) continue;
      char *at = (char *)(uintptr_t)row->at;
      for (int k = 0; k < ref_op_describe((ref_op)op)->n_in; k++) {
        x[k] = strtod(at, &at);
        if (*at == ',') at++;
      }
      double again = accuracy_at((ref_op)op, (ref_dtype)d, x);
      int is_it = fabs(again - ulp) <= 0.0001;
      if (!is_it) group_fail("%s %s: %.4f ULP at %s, %s written", name, dtype, again, row->at, row->found);
    }
  }
  if (!group_end()) diag("the CMake target `accuracy` writes it anew; of some ops: accuracy-table ACCURACY.md --ops NAME,...");
}

/* Results that are put wrong among pairs of halves do not pass. */
static void test_overlooked(void) {
  enum { N = 2048 };
  group_begin("wrong results of pairs of f16 and bf16 are seen");
  for (int op = 0; op < REF_N_OPS; op++) {
    for (int d = REF_F16; d <= REF_BF16; d++) {
      if (!has_op((ref_op)op) || ref_op_describe((ref_op)op)->n_in != 2 || accuracy_excuse((ref_op)op, (ref_dtype)d)) continue;
      const int n = accuracy_overlooked((ref_op)op, (ref_dtype)d, N);
      group_count(1);
      if (n != 0) group_fail("%s %s: %d of %d overlooked", ref_op_describe((ref_op)op)->name, ref_dtype_name((ref_dtype)d), n, N);
    }
  }
  group_end();
}

/* What reductions declare holds, and ACCURACY.md says what is found. */
static void test_reductions(const char *source, const char *path, int is_published) {
  if (!reductions_declared(source, &reductions)) bail("tools/measure/bounds.lua cannot be run");
  reductions_read(path, &reductions);
  group_begin("reductions are within the bounds that they declare, and ACCURACY.md says what is found");
  for (int k = 0; k < reductions.n; k++) {
    reduction_row row = reductions.rows[k];
    quern_op *op;
    if (quern_op_find(NULL, row.name, &op) != QUERN_OK) {
      if (!is_subset()) group_fail("%s: %s", row.name, quern_last_error());
      continue;
    }
    quern_op_release(op);
    group_count(1);
    if (!reduction_is_known(&row)) {
      group_fail("%s %s: declares a bound, and has no exact results in accuracy_reductions.c", row.name, row.dtype);
      continue;
    }
    const char *was = reductions.rows[k].found, *at = reductions.rows[k].at;
    const double most = row.ulp != 0 ? row.ulp : 1, worst = reduction_measure(&row, 1);
    if (!(worst <= most)) group_fail("%s %s: %s at %s, beyond %g", row.name, row.dtype, row.found, row.at, most);
    if (!is_published) continue;
    if (!was[0]) {
      group_fail("%s %s: ACCURACY.md has no row of what it declares now", row.name, row.dtype);
      continue;
    }
    if (worst > strtod(was, NULL) + 0.0001) group_fail("%s %s: %s found at %s, %s written", row.name, row.dtype, row.found, row.at, was);
    const double again = reduction_error_at(&reductions.rows[k], at);
    if (!(fabs(again - strtod(was, NULL)) <= 0.0001)) group_fail("%s %s: %.4f at %s, %s written", row.name, row.dtype, again, at, was);
  }
  if (!group_end()) diag("the target `accuracy` writes it anew; of some ops: accuracy-table ACCURACY.md --ops NAME,...");
  for (int k = 0; k < reductions.n && !is_subset(); k++) { /* it sees what it is for */
    reduction_row row = reductions.rows[k];
    if (strcmp(row.name, "sum") != 0 || strcmp(row.dtype, "f32") != 0) continue;
    row.u /= 1024;
    ok(reduction_measure(&row, 1) > 1, "sum f32: not within a thousandth of what it declares");
  }
}

int main(void) {
  const char *all = getenv("QUERN_TEST_EXHAUSTIVE");
  accuracy_effort effort = SANITIZED ? accuracy_brief : accuracy_sample; /* sanitised kernels are slow */
  if (!SANITIZED && all && *all == '1') effort.f32_step = effort.half_step = 1;
  else if (!SANITIZED) effort.f32_step *= 4, effort.half_step *= 4, effort.n_pairs_f32 /= 4;
  char path[4096];
  const char *source = getenv("QUERN_SOURCE_DIR");
  snprintf(path, sizeof path, "%s/ACCURACY.md", source ? source : ".");
  int is_published = accuracy_read(path, published), n_due = 0, n_changed = 0, n_rows = 0;
  accuracy_programs_read(source ? source : ".", &measured);
  ok(accuracy_programs_now(source ? source : ".", &now), "the digests of the ops' text");
  test_declared();
  test_covered();
  for (int op = 0; op < REF_N_OPS; op++) {
    for (int d = 0; d < REF_N_DTYPES; d++) found[op][d] = -1;
  }
  for (int op = 0; op < REF_N_OPS; op++) {
    const char *excuse = NULL;
    if (!has_op((ref_op)op)) continue;
    for (int d = REF_F16; d <= REF_F64; d++) {
      excuse = accuracy_excuse((ref_op)op, (ref_dtype)d);
      if (excuse) continue;
      n_rows++;
      n_changed += is_due((ref_op)op, (ref_dtype)d, 1);
      if (!is_due((ref_op)op, (ref_dtype)d, 0)) continue;
      n_due++;
      measure((ref_op)op, (ref_dtype)d, &effort);
    }
    if (excuse) diag("%s: not measured: %s", ref_op_describe((ref_op)op)->name, excuse);
  }
  diag("%d rows of %d measured; the text of %d is not that of which ACCURACY.md was measured", n_due, n_rows, n_changed);
  test_overlooked();
  if (SANITIZED) skip(1, "reductions are measured on the plain build");
  else test_reductions(source ? source : ".", path, is_published && !getenv("QUERN_TEST_SEED"));
  if (getenv("QUERN_TEST_SEED")) skip(1, "QUERN_TEST_SEED is set: other points than ACCURACY.md was written from");
  else if (!is_published) skip(1, "%s is not there: QUERN_SOURCE_DIR is %s", path, source ? source : "not set");
  else test_published();
  return done_testing();
}
