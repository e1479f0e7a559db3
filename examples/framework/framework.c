/* SPDX-License-Identifier: Apache-2.0
 *
 * framework.c: Pebble at work: its arrays through generated kernels, typed and by name, on its own threads. Checks itself
 * and prints TAP. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "pool.h"

static int n_run, n_bad;

static void ok(int good, const char *name) {
  printf("%sok %d - %s\n", good ? "" : "not ", ++n_run, name);
  if (!good) n_bad++;
}

static void must(pebble_status status, const char *name) {
  ok(status == 0, name);
  if (status != 0) printf("# %s\n", pebble_last_error());
}

/* An array of floats in which every element differs. */
static array floats(size_t n, size_t m, float scale) {
  array a = array_new(ARRAY_FLOAT, 2, (size_t[]){n, m});
  if (!a.memory) abort();
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < m; j++) *(float *)array_at(&a, i, j) = scale * ((float)(i * m + j) - (float)(n * m) / 2.0f);
  return a;
}

static float at(const array *a, size_t i, size_t j) { return *(float *)array_at(a, i, j); }

static double gelu(double x) { return 0.5 * x * erfc(-x * 0.70710678118654752440); }
static double mish(double x) { return x * tanh(log1p(exp(x))); }

/* The largest relative difference of y to f(x). */
static double worst(const array *x, const array *y, double (*f)(double)) {
  double most = 0;
  for (size_t i = 0; i < x->extent[0]; i++)
    for (size_t j = 0; j < x->extent[1]; j++) {
      const double wanted = f(at(x, i, j)), got = at(y, i, j);
      const double off = fabs(got - wanted) / fmax(fabs(wanted), 1e-30);
      if (!(off <= most)) most = off;
    }
  return most;
}

static void test_typed(void) {
  array a = floats(37, 53, 0.01f), y = array_new(ARRAY_FLOAT, 2, (size_t[]){37, 53});
  array_view va, vb, vy;
  must(pebble_gelu(array_show(&a, &va), array_show(&y, &vy), NULL), "gelu of a matrix, typed");
  ok(worst(&a, &y, gelu) < 2e-7, "  gives gelu");

  const pebble_scalar slope = {PEBBLE_F64, {.f = {0.25}}};
  const pebble_call call = {.size = sizeof call, .params = &slope, .n_params = 1};
  must(pebble_leaky_relu(&va.tensor, &vy.tensor, &call), "leaky_relu with a parameter");
  int good = 1;
  for (size_t i = 0; i < 37; i++)
    for (size_t j = 0; j < 53; j++) good &= at(&y, i, j) == (at(&a, i, j) > 0 ? at(&a, i, j) : 0.25f * at(&a, i, j));
  ok(good, "  takes it");

  array b = floats(53, 37, 1.0f), turned = array_transpose(&b);
  must(pebble_add(&va.tensor, array_show(&turned, &vb), &vy.tensor, NULL), "a matrix and a transposed one");
  good = 1;
  for (size_t i = 0; i < 37; i++)
    for (size_t j = 0; j < 53; j++) good &= at(&y, i, j) == at(&a, i, j) + at(&b, j, i);
  ok(good, "  add up, nothing copied");

  array row = floats(1, 53, 3.0f), backwards = array_slice(&row, 1, 52, 53, -1);
  must(pebble_multiply(&va.tensor, array_show(&backwards, &vb), &vy.tensor, NULL), "a matrix and a row that runs backwards");
  good = 1;
  for (size_t i = 0; i < 37; i++)
    for (size_t j = 0; j < 53; j++) good &= at(&y, i, j) == at(&a, i, j) * at(&row, 0, 52 - j);
  ok(good, "  multiply, the row broadcast");

  array bytes = array_new(ARRAY_BYTE, 2, (size_t[]){37, 53}), every_other = array_slice(&a, 0, 0, 19, 2);
  for (size_t k = 0; k < 37 * 53; k++) bytes.first[k] = (char)(k * 7);
  array some = array_slice(&bytes, 0, 18, 19, 1), part = array_slice(&y, 0, 3, 19, 1);
  must(pebble_add(array_show(&some, &va), array_show(&every_other, &vb), array_show(&part, &vy), NULL), "bytes and floats, sliced");
  good = 1;
  for (size_t i = 0; i < 19; i++)
    for (size_t j = 0; j < 53; j++)
      good &= at(&y, i + 3, j) == (float)*(unsigned char *)array_at(&bytes, i + 18, j) + at(&a, 2 * i, j);
  ok(good, "  promote without a copy");

  must(pebble_add(array_show(&a, &va), &va.tensor, &va.tensor, NULL), "in place");
  ok(at(&a, 36, 52) == 0.01f * (36 * 53 + 52 - 37 * 53 / 2.0f) * 2, "  is allowed");

  memset(y.first, 0x55, 37 * 53 * sizeof(float));
  const pebble_status status = pebble_add(array_show(&a, &va), array_show(&b, &vb), array_show(&y, &vy), NULL);
  ok(status == PEBBLE_E_SHAPE && strlen(pebble_last_error()) > 0, "shapes that do not fit are refused, with a sentence");
  printf("# %s\n", pebble_last_error());
  good = 1;
  for (size_t k = 0; k < 37 * 53 * sizeof(float); k++) good &= y.first[k] == 0x55;
  ok(good, "  and the output is as it was");

  array *all[] = {&a, &y, &b, &turned, &row, &backwards, &bytes, &every_other, &some, &part};
  for (size_t k = 0; k < sizeof all / sizeof *all; k++) array_free(all[k]);
}

static void test_by_name(void) {
  pebble_op *op = NULL;
  int found = 0;
  for (int32_t k = 0; k < pebble_op_count(NULL); k++) {
    must(pebble_op_at(NULL, k, &op), "an op by number");
    printf("#   %s: %s\n", pebble_op_describe(op)->name, pebble_op_describe(op)->doc);
    found += strcmp(pebble_op_describe(op)->name, "pebble.mish") == 0;
    pebble_op_release(op);
  }
  ok(found == 1, "Pebble's own op is one of them");
  ok(pebble_op_find(NULL, "pebble.mash", &op) == PEBBLE_E_NOTFOUND && strstr(pebble_last_error(), "pebble.mish"), "a wrong name is told the right one");
  must(pebble_op_find(NULL, "pebble.mish", &op), "an op by name");

  array x = floats(64, 100, 0.005f), y = array_new(ARRAY_FLOAT, 2, (size_t[]){64, 100});
  array_view vx, vy;
  DLTensor *in[] = {array_show(&x, &vx)}, *out[] = {array_show(&y, &vy)};
  must(pebble_op_call(op, 1, in, 1, out, NULL), "  called");
  ok(worst(&x, &y, mish) < 5e-7, "  gives mish");

  pebble_plan *plan = NULL;
  must(pebble_op_prepare(op, 1, in, 1, out, NULL, &plan), "  prepared once");
  memset(y.first, 0, 64 * 100 * sizeof(float));
  void *from = x.first, *to = y.first;
  must(pebble_plan_run(plan, &from, &to, NULL), "  run");
  ok(worst(&x, &y, mish) < 5e-7, "  gives the same");
  pebble_plan_release(plan);

  char text[2048];
  must(pebble_op_explain(op, 1, in, 1, out, NULL, text, sizeof text), "  explained");
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) printf("#   %s\n", line);
  pebble_op_release(op);
  array_free(&x);
  array_free(&y);
}

static void test_threads(pool *threads) {
  const size_t n = 1 << 11, m = 1 << 10;
  array x = floats(n, m, 1e-5f), many = array_new(ARRAY_FLOAT, 2, (size_t[]){n, m}), one = array_new(ARRAY_FLOAT, 2, (size_t[]){n, m});
  array_view vx, vy;
  const int64_t before = pool_n_slices(threads);
  must(pebble_gelu(array_show(&x, &vx), array_show(&many, &vy), NULL), "two million elements");
  ok(pool_n_slices(threads) >= before + 2, "  are cut into slices for Pebble's threads");
  printf("# slices: %lld\n", (long long)(pool_n_slices(threads) - before));

  const pebble_options alone = {.size = sizeof alone, .threads = 1};
  pebble_ctx *ctx = NULL;
  pebble_op *op = NULL;
  must(pebble_ctx_create(&alone, &ctx), "a context of one thread");
  must(pebble_op_find(ctx, "gelu", &op), "  has the op");
  DLTensor *in[] = {&vx.tensor}, *out[] = {array_show(&one, &vy)};
  const int64_t between = pool_n_slices(threads);
  must(pebble_op_call(op, 1, in, 1, out, NULL), "  called");
  ok(pool_n_slices(threads) == between, "  leaves Pebble's threads alone");
  ok(memcmp(many.first, one.first, n * m * sizeof(float)) == 0, "  and gives the same bits");
  pebble_op_release(op);
  pebble_ctx_release(ctx);
  array_free(&x);
  array_free(&many);
  array_free(&one);
}

int main(void) {
  pool *threads = pool_new(3);
  if (!threads) return 1;
  const pebble_options options = {.size = sizeof options, .threads = 4, .parallel_for = pool_parallel_for, .host = threads};
  must(pebble_ctx_configure_default(&options), "Pebble's threads handed in");
  test_typed();
  test_by_name();
  test_threads(threads);
  ok(pebble_ctx_configure_default(&options) == PEBBLE_E_EXISTS, "a second configuration is refused");
  pool_free(threads);
  printf("1..%d\n", n_run);
  return n_bad != 0;
}
